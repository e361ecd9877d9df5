// LocalWorker: the task of this process as its sessions see it. Nothing of it goes over a network.
#pragma once

#include "cluster/task.h"
#include "cluster/worker.h"
#include "plan/explain.h"

namespace dtg {

// How a session plans.
struct Planning {
  Tracer* tracer = nullptr;
  bool fuse = true;
  bool soft_placement = false;
};

class LocalWorker final : public Worker {
 public:
  LocalWorker(Ref<Task> task, const Planning& planning);
  ~LocalWorker() override;

  Task& task() const { return *task_; }
  // For planning on devices of this task and of others.
  PlanContext context(Placer& placer, Deadline deadline) const;

  const std::string& name() const override { return task_->name(); }
  Status run(const Part& part, Run& run) override;
  bool is_current(const Part& part) const override { return part.plan->is_current(); }
  void drop(const Part&) override {}
  Status connect(Deadline) override { return {}; }
  // One at a time. The nodes of a graph that comes again stay where they were placed.
  Result<Part> register_part(Ref<Graph> graph, PlanRequest request, Deadline deadline) override;
  // How the same would be planned. Leaves nothing behind: no placement, no variable. Not at the same time as register_part.
  Result<PlanPages> explain(Ref<Graph> graph, PlanRequest request, Deadline deadline) const;
  Status reset(const std::vector<std::string>& containers, Deadline deadline) override;
  // It is its host's to stop.
  Status end_job(Deadline) override { return {}; }
  Result<std::string> inspect(Deadline deadline) override;
  std::vector<std::string> devices() const override;
  std::string cluster() const override { return {}; }
  void close() override {}

 private:
  struct Placement;
  const Ref<Task> task_;
  const Planning planning_;
  Ref<Placement> placement_;  // of the graph that was registered last
};

}  // namespace dtg
