// AttrLists: the attributes of a graph's nodes. Nodes of one op mostly have equal attributes, and share one list then: it is what
// makes a node small. Owned by the graph, used under its lock; a list that was given out never changes.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "base/flat_map.h"
#include "graph/op_def.h"

namespace dtg {

class AttrLists {
 public:
  // A list that is equal to `list`, whose contents may be moved out.
  std::span<const Attr> keep(const OpDef& op, std::vector<Attr>& list);

 private:
  // What was kept last for one op, in turn.
  struct Recent {
    std::array<std::span<const Attr>, 4> lists;
    size_t next = 0;
  };
  FlatMap<uint32_t> places_;  // number of the op -> place in recent_: a small graph has few of all the ops
  std::vector<Recent> recent_;
  std::vector<std::unique_ptr<Attr[]>> kept_;
};

}  // namespace dtg
