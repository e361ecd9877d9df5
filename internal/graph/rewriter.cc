// What rules share.
#include "graph/rewriter.h"

namespace dtg {

std::vector<Attr> Rewriter::attrs_for(const OpDef& op, uint32_t n) const {
  std::vector<Attr> attrs;
  attrs.reserve(op.attrs().size() + 1);  // a rule adds one where it changes one
  for (const AttrDef& def : op.attrs()) {
    const AttrValue* value = node(n).find_attr(def.name);
    if (value) attrs.push_back({def.name, *value});
    else if (def.fallback) attrs.push_back({def.name, *def.fallback});
  }
  return attrs;
}

}  // namespace dtg
