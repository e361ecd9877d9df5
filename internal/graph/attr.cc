// The names of attribute kinds, as the op registry spells them ("list(int)"). Pure functions; any thread.
#include "graph/attr.h"

namespace dtg {

const char* attr_kind_name(AttrKind kind) {
  switch (kind) {
    case AttrKind::integer: return "int";
    case AttrKind::real: return "float";
    case AttrKind::boolean: return "bool";
    case AttrKind::type: return "type";
    case AttrKind::shape: return "shape";
    case AttrKind::string: return "string";
    case AttrKind::tensor: return "tensor";
    case AttrKind::list_integer: return "list(int)";
    case AttrKind::list_real: return "list(float)";
    case AttrKind::list_boolean: return "list(bool)";
    case AttrKind::list_type: return "list(type)";
    case AttrKind::list_shape: return "list(shape)";
    case AttrKind::list_string: return "list(string)";
  }
  return "unknown";
}

}  // namespace dtg
