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
  Committing committing = Committing::singly;
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
  void connect(Deadline, Done done) override { done({}); }
  void reach(Deadline, Done done) override { done({}); }
  // One at a time. The nodes of a graph that comes again stay where they were placed.
  Result<Part> prepare(Ref<Graph> graph, PlanRequest request, Deadline deadline);
  void register_part(Ref<Graph> graph, PlanRequest request, Deadline deadline, Answer<Part> answer) override {
    answer(prepare(std::move(graph), std::move(request), deadline));
  }
  // How the same would be planned. Leaves nothing behind: no placement, no variable. Not at the same time as prepare.
  Result<PlanPages> explain(Ref<Graph> graph, PlanRequest request, Deadline deadline) const;
  void reset(const std::vector<std::string>& containers, Deadline deadline, Done done) override;
  // It is its host's to stop.
  void end_job(Deadline, Done done) override { done({}); }
  void arrive(uint64_t session, const wire::Arrive& question, Deadline deadline, Answer<wire::ArriveReply> answer) override;
  void inspect(uint64_t write, Deadline deadline, Answer<std::string> answer) override;
  std::vector<std::string> devices() const override;
  std::string cluster() const override { return {}; }
  bool is_there() const override { return true; }
  uint64_t life() const override { return task_->incarnation(); }
  void close() override {}

 private:
  struct Placement;
  const Ref<Task> task_;
  const Planning planning_;
  Ref<Placement> placement_;  // of the graph that was registered last
};

}  // namespace dtg
