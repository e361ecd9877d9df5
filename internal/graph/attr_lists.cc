// Looks at the few lists that an op had last; one that is missed is only stored twice.
#include "graph/attr_lists.h"

#include <algorithm>

#include "graph/graph.h"

namespace dtg {

AttrLists::Signature AttrLists::signature(const Graph& graph, std::span<const Value> inputs) {
  if (inputs.size() >= sizeof(Signature)) return 0;
  Signature all = inputs.size() + 1;
  for (const Value input : inputs) all = all << 8 | static_cast<uint8_t>(graph.info(input).dtype);
  return all;
}

std::span<const Attr> AttrLists::find(const OpDef& op, Signature signature) const {
  const uint32_t* const place = signature ? places_.find(op.number()) : nullptr;
  const bool known = place && recent_[*place].signature == signature;
  return known ? recent_[*place].inferred : std::span<const Attr>();
}

std::span<const Attr> AttrLists::keep(const OpDef& op, std::vector<Attr>& list, Signature signature) {
  if (list.empty()) return {};
  const uint32_t* place = places_.find(op.number());
  if (!place) {
    // The place first: one that is given and not there would become another op's.
    recent_.emplace_back();
    place = places_.emplace(op.number(), static_cast<uint32_t>(recent_.size() - 1)).first;
  }
  Recent& recent = recent_[*place];
  const std::span<const Attr> kept = keep(recent, list);
  if (signature) {
    recent.signature = signature;
    recent.inferred = kept;
  }
  return kept;
}

std::span<const Attr> AttrLists::keep(Recent& recent, std::vector<Attr>& list) {
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
