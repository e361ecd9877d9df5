// Building, stepping and judging.
#include "strict.h"

#include <algorithm>

#include "graph/build.h"
#include "session/async_run.h"

namespace dtg::sim {
namespace {

constexpr int64_t kRunNs = 3 * kSecond, kRecoverNs = 10 * kSecond;

class OnServer {
 public:
  OnServer(Graph& graph, int server) : graph_(graph) { graph_.push_device("/job:ps/task:" + std::to_string(server)); }
  ~OnServer() { (void)graph_.pop_device(); }

 private:
  Graph& graph_;
};

}  // namespace

StrictWorker::StrictWorker(Process& process, int servers, const Replication& share)
    : process_(process), share_(share), graph_(Graph::create(&process.runtime()->ops()).take()), is_chief_(share.worker == 0) {
  model_ = make_ref<Model>(graph_, 1);
  status_ = build(servers);
  ends_ = CompletionQueue::create().take();
}

StrictWorker::~StrictWorker() { stop_updates(); }

Status StrictWorker::build(int servers) {
  Build b(*graph_);
  graph_->push_device("/job:worker/task:" + std::to_string(share_.worker));
  number_ = b.op("Placeholder", {}, {{"dtype", DType::i32}, {"shape", PartialShape(Shape())}}, "number");
  const Value hot = b.op("OneHot", {number_, b.integer(kCells), b.scalar(DType::f32, 1), b.scalar(DType::f32, 0)});
  (void)graph_->pop_device();
  std::vector<NamedVariable> cells;
  std::vector<Value> sums;
  for (int p = 0; p < servers; ++p) {
    const OnServer there(*graph_, p);
    DTG_ASSIGN(
        cells.emplace_back(),
        model_->add_variable({.name = "cells" + std::to_string(p), .shape = Shape::of({kCells}), .initializer = Initializer::zeros()}));
  }
  {
    const OnServer there(*graph_, 0);
    DTG_TRY(model_->global_step().status());
  }
  graph_->push_device("/job:worker/task:" + std::to_string(share_.worker));
  for (const NamedVariable& each : cells) sums.push_back(b.add(b.sum(each.read, b.ints({0})), b.cast(number_, DType::f32)));
  // 0 where every server is at this step.
  std::vector<Value> squares;
  for (const Value sum : sums) squares.push_back(b.mul(sum, sum));
  const Value apart = b.op("Minimum", {b.op("AddN", squares), b.scalar(DType::f32, 0.5)});
  std::vector<VariableGradient> gradients;
  for (const NamedVariable& each : cells) {
    const Value gradient = b.mul(hot, b.add(apart, b.scalar(DType::f32, 1)));
    gradients.push_back({each, {.dense = gradient, .values = {}, .indices = {}, .dense_shape = {}}});
  }
  (void)graph_->pop_device();
  DTG_TRY(b.status());
  const Optimizer optimizer{.kind = Optimizer::Kind::sgd, .learning_rate = {}, .rate = 1};
  DTG_ASSIGN(added_, apply_replicated(*model_, gradients, optimizer, share_));
  DTG_ASSIGN(init_, model_->init_target());
  return {};
}

Status StrictWorker::connect(const std::string& target) {
  DTG_TRY(status_);
  Session::Options options;
  options.connect_timeout_ns = 10 * kSecond;
  auto session = Session::connect(process_.runtime(), target, graph_, options);
  process_.hears(session.status());
  DTG_ASSIGN(session_, std::move(session));
  return {};
}

Status StrictWorker::run(std::span<const Value> fetches, std::span<const NodeId> targets, std::vector<Tensor>* fetched, bool feeds) {
  Tensor fed;
  const Tensor* feed = &fed;
  RunArgs args{{}, {}, fetches, targets, kRunNs};
  if (feeds) {
    fed = Tensor::allocate(DType::i32, Shape()).take();
    *fed.as<int32_t>() = static_cast<int32_t>(step_);
    args.feeds = {&number_, 1};
    args.feed_tensors = {&feed, 1};
  }
  return runs_.run(*session_, args, fetched);
}

void StrictWorker::stop_updates() {
  if (!updates_) return;
  updates_->cancel();
  CompletionQueue::Event event;
  const Clock& clock = process_.clock();
  if (ends_->next({&event, 1}, clock, Deadline::after(clock, 5 * kSecond)) == 0) runs_.note_late();
  process_.hears(event.status);
  updates_ = nullptr;
}

// The first life of the chief gives the values; everybody else, and every later life, finds them.
Status StrictWorker::begin() {
  DTG_ASSIGN(const std::vector<Value> flags, ready_flags(*model_));
  std::vector<Tensor> there;
  DTG_TRY(run(flags, {}, &there));
  for (const Tensor& each : there) {
    if (each.as<bool>()[0]) continue;
    DTG_TRY(run({}, {&init_, 1}));
    return run({}, {&added_.chief_init, 1});
  }
  return {};
}

Status StrictWorker::settle() {
  stop_updates();
  return recovered();
}

Status StrictWorker::recovered() {
  if (is_chief_) DTG_TRY(begin());
  const Clock& clock = process_.clock();
  const Status status = recover(*model_, added_, *session_, clock, Deadline::after(clock, kRecoverNs));
  process_.hears(status);
  return status;
}

// Updates that were under way when a step failed go on, if they can.
Status StrictWorker::go_on() {
  if (updates_ && updates_->finished()) stop_updates();
  DTG_TRY(recovered());
  std::vector<Tensor> counted;
  DTG_TRY(run({&added_.global_step, 1}, {}, &counted));
  step_ = counted[0].as<int64_t>()[0];
  if (added_.update != kNoNode && !updates_) {
    auto updates = session_->run_repeatedly({&added_.update, 1}, ends_, 0);
    process_.hears(updates.status());
    DTG_ASSIGN(updates_, std::move(updates));
  }
  goes_on_ = true;
  return {};
}

// Of whichever epoch is now.
Status StrictWorker::deal() {
  if (added_.deal == kNoNode) return {};
  const Tensor whichever = Tensor::scalar<int64_t>(-1).take();
  const Tensor* const feed = &whichever;
  return runs_.run(*session_, {{&added_.epoch_to_deal, 1}, {&feed, 1}, {}, {&added_.deal, 1}, kRunNs}, nullptr);
}

Status StrictWorker::step() {
  if (!goes_on_) DTG_TRY(go_on());
  std::vector<Tensor> next;
  Status status = deal();
  if (status.ok()) status = run({&added_.next_step, 1}, {&added_.train, 1}, &next, true);
  if (status.ok()) step_ = next[0].as<int64_t>()[0];
  goes_on_ = status.ok();
  return status;
}

// Every step was made by somebody, and by nobody twice.
std::string StrictWorker::judge_contributions(int64_t counted, const Tensor& contributions) const {
  double sum = 0;
  for (const double one : contributions.values<double>()) {
    if (one > static_cast<double>(counted))
      return format("%g contributions of one worker to %lld steps", one, static_cast<long long>(counted));
    sum += one;
  }
  return sum >= static_cast<double>(counted) ? std::string()
                                             : format("%g contributions to %lld steps", sum, static_cast<long long>(counted));
}

// An element for each contribution, and none of an epoch before all of the one before.
std::string StrictWorker::judge_ledger(const Tensor& contributions, const Tensor& ledger) const {
  double sum = 0, entered = 0;
  for (const double one : contributions.values<double>()) sum += one;
  for (const double times : ledger.values<double>()) entered += times;
  if (entered != sum) return format("%g contributions, and %g elements in updates", sum, entered);
  const auto [least, most] = std::ranges::minmax(ledger.values<double>());
  return most - least <= 1 ? std::string() : format("one element was in %g updates, another in %g", least, most);
}

Result<std::string> StrictWorker::judge() {
  std::vector<Value> fetches{added_.global_step};
  for (const NamedVariable& each : model_->variables()) {
    if (each.trainable) fetches.push_back(each.read);
  }
  const NamedVariable* const contributions = model_->find("sync/contributions");
  if (contributions) fetches.push_back(contributions->read);
  const NamedVariable* const ledger = model_->find("sync/dealt");
  if (ledger) fetches.push_back(ledger->read);
  std::vector<Tensor> read;
  DTG_TRY(run(fetches, {}, &read));
  if (ledger) {
    if (const std::string found = judge_ledger(read[read.size() - 2], read.back()); !found.empty()) return found;
    read.pop_back();
  }
  const int64_t counted = read[0].as<int64_t>()[0];
  if (contributions) {
    if (const std::string found = judge_contributions(counted, read.back()); !found.empty()) return found;
    read.pop_back();
  }
  for (size_t p = 1; p < read.size(); ++p) {
    for (int64_t k = 0; k < kCells; ++k) {
      const float value = read[p].as<float>()[k], wanted = k < counted ? -1 : 0;
      if (value == wanted) continue;
      return format("step %lld of %lld on ps %zu: %g, not %g", static_cast<long long>(k), static_cast<long long>(counted), p - 1,
                    static_cast<double>(value), static_cast<double>(wanted));
    }
  }
  return std::string();
}

}  // namespace dtg::sim
