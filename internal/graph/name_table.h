// NameTable: node names of one graph, from a name to its node. Open addressing over eight bytes per node; the names themselves
// stand in the nodes. Owned by the graph, used under its lock.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "graph/value.h"

namespace dtg {

class Graph;

class NameTable {
 public:
  explicit NameTable(const Graph& graph) : graph_(graph) {}

  static uint32_t hash_of(std::string_view name);
  // kNoNode when there is none.
  NodeId find(std::string_view name) const { return find(name, hash_of(name)); }
  NodeId find(std::string_view name, uint32_t hash) const;
  // Says that the hash will be asked for soon.
  void fetch(uint32_t hash) const {
    if (!entries_.empty()) __builtin_prefetch(&entries_[hash & (entries_.size() - 1)]);
  }
  // A node that is in the graph, under a name of that hash that is not in the table.
  void add(NodeId node, uint32_t hash);
  // One that is in the table; its name is free. Asks for no memory.
  void remove(NodeId node);

 private:
  struct Entry {
    uint32_t hash = 0;
    NodeId node = kNoNode;
  };
  void grow();
  void place(Entry entry);

  const Graph& graph_;
  std::vector<Entry> entries_;  // a power of two
  size_t count_ = 0;
};

}  // namespace dtg
