// Placer: which device each node runs on. Groups of nodes that must stay together (a resource and all who
// use it, explicit colocation) are kept up over the whole graph and placed once; that is what makes a
// variable stay where it is when the graph grows.
//
// Owner: the session; one thread at a time. Rules as TensorFlow's placer: a request narrows the group, the
// first device that fits and has kernels for the whole group wins, and soft placement drops type and id of
// a request that cannot be met, never job or task.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "exec/kernel.h"
#include "graph/device_name.h"
#include "graph/graph.h"

namespace dtg {

// A device that parts of a plan may run on.
struct Device {
  DeviceName name;   // full
  std::string text;  // its canonical text
  std::string type;  // "CPU"
};

class Placer {
 public:
  Placer(std::vector<Device> devices, const KernelTable* kernels, bool soft)
      : devices_(std::move(devices)), kernels_(kernels), soft_(soft) {}

  // Takes in the nodes that were added since the last call.
  void update(const Graph& graph, uint32_t node_count);
  // The device of a node that update() has seen: an index into devices().
  Result<uint32_t> place(const Graph& graph, NodeId node);
  const std::vector<Device>& devices() const { return devices_; }

 private:
  struct Group {
    DeviceName request;
    Status conflict;              // why no device can satisfy all members
    int64_t device = -1;          // once placed
    std::vector<NodeId> members;  // kept at the root
  };
  uint32_t find(uint32_t node);
  void join(const Graph& graph, uint32_t a, uint32_t b);
  Status add_request(const Graph& graph, NodeId node);
  Result<uint32_t> choose(const Graph& graph, const Group& group, NodeId node, const DeviceName& request) const;
  bool has_kernels(const Graph& graph, const Group& group, const Device& device) const;
  std::string device_list() const;

  std::vector<Device> devices_;
  const KernelTable* kernels_;
  const bool soft_;
  std::vector<uint32_t> parents_;
  std::vector<Group> groups_;
};

}  // namespace dtg
