// Building and stepping.
#include "bounded_worker.h"

#include <algorithm>
#include <array>

#include "graph/build.h"
#include "session/async_run.h"
#include "session/recover.h"

namespace dtg::sim {
namespace {

constexpr int64_t kRunNs = 3 * kSecond, kRecoverNs = 10 * kSecond;

}  // namespace

BoundedWorker::BoundedWorker(Process& process, int servers, int cells, const Replication& share)
    : process_(process), share_(share), graph_(Graph::create(&process.runtime()->ops()).take()), model_(make_ref<Model>(graph_, 1)) {
  status_ = build(servers, cells);
}

Status BoundedWorker::build(int servers, int cells) {
  Build b(*graph_);
  const std::string home = "/job:worker/task:" + std::to_string(share_.worker);
  graph_->push_device(home);
  cell_ = b.op("Placeholder", {}, {{"dtype", DType::i32}, {"shape", PartialShape(Shape())}}, "cell");
  const Value row = b.reshape(cell_, b.ints({1})), one = b.constant(Tensor::of<float>(Shape::of({1}), std::array{1.0F}).take());
  (void)graph_->pop_device();
  std::vector<VariableGradient> gradients;
  for (int p = 0; p < servers; ++p) {
    graph_->push_device("/job:ps/task:" + std::to_string(p));
    DTG_ASSIGN(
        const NamedVariable variable,
        model_->add_variable({.name = "cells" + std::to_string(p), .shape = Shape::of({cells}), .initializer = Initializer::zeros()}));
    if (p == 0) DTG_TRY(model_->global_step().status());
    counts_.push_back(b.cast(b.op("Neg", {variable.read}), DType::i64));
    (void)graph_->pop_device();
    gradients.push_back({variable, {.dense = {}, .values = one, .indices = row, .dense_shape = {}}});
  }
  DTG_TRY(b.status());
  graph_->push_device(home);
  const Optimizer optimizer{.kind = Optimizer::Kind::sgd, .learning_rate = {}, .rate = 1};
  DTG_ASSIGN(added_, apply_replicated(*model_, gradients, optimizer, share_));
  (void)graph_->pop_device();
  clocks_ = model_->find("sync/clocks")->read;
  DTG_ASSIGN(init_, model_->init_target());
  return {};
}

Status BoundedWorker::connect(const std::string& target) {
  DTG_TRY(status_);
  Session::Options options;
  options.connect_timeout_ns = 10 * kSecond;
  auto session = Session::connect(process_.runtime(), target, graph_, options);
  process_.hears(session.status());
  DTG_ASSIGN(session_, std::move(session));
  return {};
}

Status BoundedWorker::run(std::span<const Value> fetches, std::span<const NodeId> targets, std::vector<Tensor>* fetched, int cell) {
  Tensor fed;
  const Tensor* feed = &fed;
  RunArgs args{{}, {}, fetches, targets, kRunNs};
  if (cell >= 0) {
    fed = Tensor::scalar<int32_t>(cell).take();
    args.feeds = {&cell_, 1};
    args.feed_tensors = {&feed, 1};
  }
  return runs_.run(*session_, args, fetched);
}

// The first life of the chief gives the values; everybody else, and every later life, finds them.
Status BoundedWorker::begin() {
  DTG_ASSIGN(const std::vector<Value> flags, ready_flags(*model_));
  std::vector<Tensor> there;
  DTG_TRY(run(flags, {}, &there));
  const bool ready = std::ranges::all_of(there, [](const Tensor& each) { return each.as<bool>()[0]; });
  return ready ? Status() : run({}, {&init_, 1});
}

Status BoundedWorker::go_on() {
  if (share_.worker == 0) DTG_TRY(begin());
  const Clock& clock = process_.clock();
  const Status status = recover(*model_, added_, *session_, clock, Deadline::after(clock, kRecoverNs));
  process_.hears(status);
  return status;
}

Result<int64_t> BoundedWorker::step(int cell) {
  std::vector<Tensor> told;
  DTG_TRY(run({&added_.clock, 1}, {&added_.train, 1}, &told, cell));
  return told[0].as<int64_t>()[0];
}

Result<int64_t> BoundedWorker::clock() {
  std::vector<Tensor> told;
  DTG_TRY(run({&clocks_, 1}, {}, &told));
  return told[0].as<int64_t>()[share_.worker];
}

Result<std::vector<Tensor>> BoundedWorker::counts() {
  std::vector<Tensor> told;
  DTG_TRY(run(counts_, {}, &told));
  return told;
}

}  // namespace dtg::sim
