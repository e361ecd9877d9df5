// What foreign bytes may cost: the largest frames, graphs, names and queues that a connection accepts. The numbers are
// the defaults; a server's owner may raise them, a peer may not. Values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dtg::wire {

struct Limits {
  size_t pre_auth_bytes = size_t{16} << 10;  // everything a connection may send before it is known
  size_t control_bytes = size_t{1} << 20;    // one control frame
  size_t graph_bytes = size_t{64} << 20;
  uint32_t graph_nodes = 100'000;
  uint32_t functions = 4096;  // of a graph
  uint32_t node_attrs = 64;
  size_t name_bytes = 256;   // of a node, an op, an attribute
  size_t text_bytes = 4096;  // device and location of a node
  uint64_t tensor_bytes = uint64_t{2} << 30;
  size_t in_flight_calls = 256;              // per connection
  size_t outbound_bytes = size_t{64} << 20;  // queued for a peer that does not read; large payloads wait for credit instead
};

}  // namespace dtg::wire
