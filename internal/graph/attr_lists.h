// AttrLists: the attributes of a graph's nodes. Nodes of one op mostly have equal attributes, and share one list then: it is what
// makes a node small. Owned by the graph, used under its lock; a list that was given out never changes.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "base/flat_map.h"
#include "graph/op_def.h"
#include "graph/value.h"

namespace dtg {

class Graph;

class AttrLists {
 public:
  // What attributes follow from where none is given: how many inputs there are and of which types, in one number; 0 where it is too much
  // for one.
  using Signature = uint64_t;
  static Signature signature(const Graph& graph, std::span<const Value> inputs);

  // The attributes that the last node of the op had that was given none; empty where its inputs had another signature.
  std::span<const Attr> find(const OpDef& op, Signature signature) const;
  // A list that is equal to `list`, whose contents may be moved out. `signature`: of a node that was given none; 0 of any other.
  std::span<const Attr> keep(const OpDef& op, std::vector<Attr>& list, Signature signature = 0);

 private:
  // What was kept last for one op, in turn.
  struct Recent {
    std::array<std::span<const Attr>, 4> lists;
    size_t next = 0;
    Signature signature = 0;
    std::span<const Attr> inferred;
  };
  std::span<const Attr> keep(Recent& recent, std::vector<Attr>& list);
  FlatMap<uint32_t> places_;  // number of the op -> place in recent_: a small graph has few of all the ops
  std::vector<Recent> recent_;
  std::vector<std::unique_ptr<Attr[]>> kept_;
};

}  // namespace dtg
