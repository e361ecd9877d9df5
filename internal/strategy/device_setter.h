// DeviceSetter: between-graph replication's rule of who goes where, as TensorFlow's replica_device_setter: ops that hold
// variables go to the parameter servers, by turns or to the least loaded one, and everything else to the worker. It acts as
// nodes are added, as a device function of the graph, so every worker that builds the same nodes in the same order gets
// the same placement.
//
// Owner: the graph's stack of device scopes, by count. Called under the graph's lock.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/device_name.h"
#include "graph/graph.h"

namespace dtg {

class DeviceSetter final : public DeviceFunction {
 public:
  enum class Choice : uint8_t {
    round_robin,   // task after task
    greedy_bytes,  // the one with the fewest bytes of variables so far; the first of equals
  };
  struct Options {
    std::vector<int> tasks;  // of the ps job; none: nothing is set at all
    DeviceName ps_device;
    DeviceName worker_device;
    bool keep_explicit = false;  // a node that asks for any device keeps just that
    Choice choice = Choice::round_robin;
    std::vector<std::string> ps_ops;  // empty: default_ps_ops()
  };

  explicit DeviceSetter(Options options);
  Result<std::string> place(const OpDef& op, std::string_view device, std::span<const Attr> attrs) override;

  // TensorFlow's list, ops that this library lacks included.
  static std::span<const std::string_view> default_ps_ops();

 private:
  bool is_ps_op(std::string_view op) const;
  Result<int> next_task(const OpDef& op, std::span<const Attr> attrs);

  const Options options_;
  size_t next_ = 0;
  std::vector<int64_t> loads_;  // bytes, per entry of options_.tasks
};

}  // namespace dtg
