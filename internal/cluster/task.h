// Task: what a server keeps whoever is connected: its name and incarnation, its devices, and the state that lives on
// them. Parts that were registered with it are prepared here. Any thread.
#pragma once

#include <string>
#include <vector>

#include "cluster/host.h"
#include "cluster/step_edges.h"
#include "plan/plan.h"

namespace dtg {

class Task;

// A part, ready to run.
class ServedPart final : public RefCounted {
 public:
  ServedPart(Ref<Task> task, std::vector<Device> devices);
  ~ServedPart() override;

  Plan& plan() const { return *plan_; }
  const Ref<EdgeTable>& edges() const { return edges_; }
  Task& task() const { return *task_; }

 private:
  friend class Task;
  const Ref<Task> task_;
  Placer placer_;
  Ref<Plan> plan_;
  Ref<EdgeTable> edges_;
  int64_t reserved_ = 0;
};

class Task final : public RefCounted {
 public:
  Task(const Host& host, std::string name, int cpu_devices, Ref<RefCounted> owner);

  const std::string& name() const { return name_; }
  uint64_t incarnation() const { return incarnation_; }
  const std::vector<Device>& devices() const { return devices_; }
  ResourceStore& store() { return store_; }
  const Host& host() const { return host_; }

  // From graph bytes of a peer: verified, held against the rights of remote graphs, placed and planned. Takes long;
  // never on the loop.
  Result<Ref<ServedPart>> prepare(std::string_view graph, std::span<const uint32_t> targets);

 private:
  const Ref<RefCounted> owner_;  // keeps the host's parts
  const Host host_;
  const std::string name_;
  const uint64_t incarnation_;
  std::vector<Device> devices_;
  ResourceStore store_;
};

// The CPU devices of a task.
std::vector<Device> cpu_devices(const std::string& task, int count);
Result<std::vector<Device>> parse_devices(std::span<const std::string> names);

}  // namespace dtg
