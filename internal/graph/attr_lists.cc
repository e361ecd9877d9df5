// Looks at the few lists that an op had last; one that is missed is only stored twice.
#include "graph/attr_lists.h"

#include <algorithm>

namespace dtg {

std::span<const Attr> AttrLists::keep(const OpDef& op, std::vector<Attr>& list) {
  if (list.empty()) return {};
  const uint32_t place = *places_.emplace(op.number(), static_cast<uint32_t>(recent_.size())).first;
  if (place == recent_.size()) recent_.emplace_back();
  Recent& recent = recent_[place];
  for (const std::span<const Attr> known : recent.lists) {
    const auto same = [](const Attr& a, const Attr& b) { return a.name == b.name && same_value(a.value, b.value); };
    if (known.size() == list.size() && std::ranges::equal(known, list, same)) return known;
  }
  kept_.emplace_back(new Attr[list.size()]);
  const std::span<Attr> fresh(kept_.back().get(), list.size());
  std::ranges::move(list, fresh.begin());
  recent.lists[recent.next++ % recent.lists.size()] = fresh;
  return fresh;
}

}  // namespace dtg
