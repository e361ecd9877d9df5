// Planning and running without a way between.
#include "cluster/local_worker.h"

#include "base/json.h"
#include "cluster/run.h"

namespace dtg {

struct LocalWorker::Placement final : RefCounted {
  Placement(Ref<Graph> of, const Task& task, bool soft) : graph(std::move(of)), placer(task.devices(), task.host().kernels, soft) {}
  const Ref<Graph> graph;
  Placer placer;
};

LocalWorker::LocalWorker(Ref<Task> task, const Planning& planning) : task_(std::move(task)), planning_(planning) {}
LocalWorker::~LocalWorker() = default;

PlanContext LocalWorker::context(Placer& placer, Deadline deadline) const {
  const Host& host = task_->host();
  PlanContext context;
  context.kernels = host.kernels;
  context.ops = host.ops;
  context.pool = host.pool;
  context.store = &task_->store();
  context.placer = &placer;
  context.clock = host.seams.clock;
  context.tracer = planning_.tracer;
  context.fuse = planning_.fuse;
  context.committing = planning_.committing;
  context.memory = host.memory;
  context.budget = host.seams.budget;
  context.deadline = deadline;
  return context;
}

Status LocalWorker::run(const Part&, Run& run) { return run.execute(); }

Result<Worker::Part> LocalWorker::prepare(Ref<Graph> graph, PlanRequest request, Deadline deadline) {
  if (!placement_ || !(placement_->graph == graph)) placement_ = make_ref<Placement>(graph, *task_, planning_.soft_placement);
  Part part;
  part.keeps = Ref<RefCounted>::share(placement_.get());
  DTG_ASSIGN(part.plan, Plan::make(context(placement_->placer, deadline), std::move(graph), std::move(request)));
  return part;
}

Result<PlanPages> LocalWorker::explain(Ref<Graph> graph, PlanRequest request, Deadline deadline) const {
  const bool placed = placement_ && placement_->graph == graph;
  Placer placer = placed ? placement_->placer : Placer(task_->devices(), task_->host().kernels, planning_.soft_placement);
  ResourceStore store;
  PlanContext context = this->context(placer, deadline);
  context.store = &store;
  return dtg::explain(context, std::move(graph), std::move(request));
}

void LocalWorker::reset(const std::vector<std::string>& containers, Deadline, Done done) {
  task_->store().reset(containers);
  done({});
}

void LocalWorker::arrive(uint64_t session, const wire::Arrive& question, Deadline, Answer<wire::ArriveReply> answer) {
  Attendance* const attendance = task_->attendance();
  if (!attendance) return answer(failed_precondition("arrive at a barrier: %s does not keep the attendance of the job", name().c_str()));
  attendance->loop().post([kept = Ref<Attendance>::share(attendance), task = name(), session, question, answer = std::move(answer)] {
    kept->arrive(task, session, question, [answer](const wire::ArriveReply& reply) { answer(reply); });
  });
}

void LocalWorker::inspect(uint64_t, Deadline, Answer<std::string> answer) {
  Json::Array names;
  for (const std::string& device : devices()) names.emplace_back(device);
  answer(Json(Json::Object{{"task", name()}, {"incarnation", std::to_string(task_->incarnation())}, {"devices", std::move(names)}}).text());
}

std::vector<std::string> LocalWorker::devices() const {
  std::vector<std::string> names;
  for (const Device& device : task_->devices()) names.push_back(device.text);
  return names;
}

}  // namespace dtg
