// Placer: which device each node runs on. Groups of nodes that must stay together (a resource and all who
// use it, explicit colocation) are kept up over the whole graph and placed once; that is what makes a
// variable stay where it is when the graph grows: a node that would have it elsewhere is an error of its own,
// and of no run that does not need it.
//
// Owner: the session; one thread at a time. Rules as TensorFlow's placer: a request narrows the group, the
// first device that fits and has kernels for the whole group wins, and soft placement drops type and id of
// a request that cannot be met, never job or task.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/flat_map.h"
#include "device/accelerator.h"
#include "exec/kernel.h"
#include "graph/device_name.h"
#include "graph/graph.h"

namespace dtg {

// A device that parts of a plan may run on.
struct Device {
  DeviceName name;                         // full
  std::string text;                        // its canonical text
  std::string type;                        // "CPU"
  Ref<Accelerator> accelerator = nullptr;  // what it is, where it has memory of its own and is of this process
  bool is_host() const { return type == "CPU"; }
};

class Placer {
 public:
  // Where a node goes that asks for nothing: to the first accelerator, or to the first of all devices.
  enum class Preference : uint8_t { accelerators, first };
  Placer(std::vector<Device> devices, const KernelTable* kernels, bool soft, Preference preference = Preference::accelerators);
  // The same devices for one of several tasks that do the same: what asks for no task, or for any of that task's job, is done at `task`;
  // but what holds a resource and names no job stays where `wide` places it, so that all of them share it. `wide` outlives this one.
  Placer(Placer& wide, const DeviceName& task);

  // Takes in the nodes that were added since the last call.
  void update(const Graph& graph, uint32_t node_count);
  // The device of a node that update() has seen: an index into devices().
  Result<uint32_t> place(const Graph& graph, NodeId node);
  const std::vector<Device>& devices() const { return devices_; }
  // Where what runs on the host is done for a node on that device: there, or on the first CPU.
  uint32_t host_of(uint32_t device) const { return devices_[device].is_host() ? device : first_host_; }

 private:
  // One per node, and in it what is known of the group at the node that stands for it.
  struct Group {
    uint32_t parent;  // the node itself, or one nearer to who stands for the group
    uint32_t next;    // the group's members in a ring
    uint32_t size = 1;
    bool holds = false;    // a member holds or uses a resource
    bool given = false;    // a member is a resource that a body was given, which lies where the call is: at the first device
    uint32_t request = 0;  // in requests_
    int32_t device = -1;   // once placed
  };
  void group(const Graph& graph, NodeId node);
  bool is_free(const Graph& graph, NodeId first, NodeId end) const;
  uint32_t find(uint32_t node);
  void join(const Graph& graph, uint32_t a, NodeId joining);
  void request(const Graph& graph, NodeId node);
  uint32_t number_of(const DeviceName& request);
  Result<uint32_t> narrowed(uint32_t request);
  uint32_t keep(Status conflict);
  Result<uint32_t> choose(const Graph& graph, NodeId node, const DeviceName& request) const;
  Result<uint32_t> choose_or_relax(const Graph& graph, NodeId node, const DeviceName& request) const;
  bool has_kernels(const Graph& graph, NodeId member, const Device& device) const;
  bool is_for_host(const Graph& graph, NodeId member, const Device& device) const;
  std::string device_list() const;

  std::vector<Device> devices_;
  std::vector<uint32_t> preferred_;  // devices in the order in which they are considered
  uint32_t first_host_ = 0;
  const KernelTable* kernels_;
  const bool soft_;
  Placer* const wide_ = nullptr;  // of all tasks, where this one places for `task_`
  const DeviceName task_;
  // There is one device, of the host, and of so many nodes none asks for a place: they have no groups.
  NodeId free_ = 0;
  std::vector<Group> groups_;
  std::vector<DeviceName> requests_ = {{}};               // each once; 0: anything
  std::unordered_map<std::string, uint32_t> numbers_;     // of requests, by their canonical text
  std::unordered_map<NodeId, uint32_t> misfits_;          // nodes that cannot be where their groups are: in conflicts_
  std::vector<Status> conflicts_ = {{}};                  // 0: none
  FlatMap<uint32_t> chosen_;                              // (request, op) -> device, for nodes that stand alone
  std::unordered_map<std::string_view, uint32_t> texts_;  // requests as graphs spell them; the graph outlives the placer
};

}  // namespace dtg
