// Value and NodeId: the small integers that name things in a graph. A Value is one output of one node of one graph, in
// 8 bytes: graph tag 20 bits, node 28, output 16; 0 is invalid. Tags count up in the process, so a value that belongs
// to another graph is found out. Values; any thread.
#pragma once

#include <cstdint>

namespace dtg {

using NodeId = uint32_t;  // index in the graph, < 2^28
inline constexpr NodeId kNoNode = UINT32_MAX;
inline constexpr uint32_t kNodesMax = 1u << 28;

struct Value {
  uint64_t id = 0;
  Value() = default;
  explicit Value(uint64_t raw) : id(raw) {}
  Value(uint32_t tag, NodeId node, uint32_t output) : id(static_cast<uint64_t>(tag) << 44 | static_cast<uint64_t>(node) << 16 | output) {}
  bool valid() const { return id != 0; }
  uint32_t tag() const { return static_cast<uint32_t>(id >> 44); }
  NodeId node() const { return static_cast<NodeId>(id >> 16) & (kNodesMax - 1); }
  uint32_t output() const { return static_cast<uint32_t>(id) & 0xffffu; }
  Value sibling(uint32_t other) const { return Value((id & ~uint64_t{0xffff}) | other); }
  bool operator==(const Value&) const = default;
};

}  // namespace dtg
