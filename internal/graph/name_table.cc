// Linear probing; at most half of the entries are taken.
#include "graph/name_table.h"

#include <functional>

#include "graph/graph.h"

namespace dtg {

uint32_t NameTable::hash_of(std::string_view name) {
  const size_t hash = std::hash<std::string_view>()(name);
  return static_cast<uint32_t>(hash ^ hash >> 32);
}

NodeId NameTable::find(std::string_view name, uint32_t hash) const {
  if (entries_.empty()) return kNoNode;
  for (size_t at = hash;; ++at) {
    const Entry& entry = entries_[at & (entries_.size() - 1)];
    if (entry.node == kNoNode) return kNoNode;
    if (entry.hash == hash && graph_.node(entry.node).name == name) return entry.node;
  }
}

void NameTable::add(NodeId node, uint32_t hash) {
  if (2 * (count_ + 1) > entries_.size()) grow();
  place({hash, node});
  ++count_;
}

// What follows moves up, as far as it may, so that no search ends too early.
void NameTable::remove(NodeId node) {
  const size_t mask = entries_.size() - 1;
  size_t hole = hash_of(graph_.node(node).name) & mask;
  while (entries_[hole].node != node) hole = (hole + 1) & mask;
  for (size_t at = (hole + 1) & mask; entries_[at].node != kNoNode; at = (at + 1) & mask) {
    const size_t wanted = entries_[at].hash & mask;
    if (((at - wanted) & mask) < ((at - hole) & mask)) continue;  // it stands between its place and here
    entries_[hole] = entries_[at];
    hole = at;
  }
  entries_[hole] = {};
  --count_;
}

void NameTable::place(Entry entry) {
  size_t at = entry.hash;
  while (entries_[at & (entries_.size() - 1)].node != kNoNode) ++at;
  entries_[at & (entries_.size() - 1)] = entry;
}

void NameTable::grow() {
  std::vector<Entry> old(entries_.empty() ? 256 : 2 * entries_.size());
  old.swap(entries_);
  for (const Entry& entry : old) {
    if (entry.node != kNoNode) place(entry);
  }
}

}  // namespace dtg
