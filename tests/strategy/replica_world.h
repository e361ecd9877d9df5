// ReplicaWorld: several workers and parameter servers inside one graph and one local session. Each is a virtual device,
// so that handles, colocation and hand-overs are what they are between tasks. One thread drives it; blocking steps are
// asynchronous runs.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "graph/build.h"
#include "nn/losses.h"
#include "nn/model.h"
#include "session/async_run.h"
#include "session/session.h"

namespace dtg {

template <class T>
T good(Result<T> result) {
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? result.take() : T();
}

class ReplicaWorld {
 public:
  static constexpr int64_t kWaitNs = int64_t{20} * 1'000'000'000;
  using Feeds = std::vector<std::pair<Value, Tensor>>;

  // CPU:0 and CPU:1 are parameter servers, CPU:2 and up workers.
  explicit ReplicaWorld(int workers, int threads = 2)
      : runtime_(with_threads(threads)),
        graph_(good(Graph::create(&runtime_->ops()))),
        model_(make_ref<Model>(graph_, 7)),
        session_(good(Session::connect(runtime_, "local", graph_, {.devices = {.cpu = 2 + workers}}))),
        queue_(good(CompletionQueue::create())) {}
  ~ReplicaWorld() { EXPECT_TRUE(session_->close(kWaitNs).ok()); }

  Model& model() { return *model_; }
  Graph& graph() { return *graph_; }
  Session& session() { return *session_; }

  static std::string ps(int i) { return "/device:CPU:" + std::to_string(i); }
  static std::string worker(int w) { return "/device:CPU:" + std::to_string(2 + w); }

  NamedVariable variable(const char* name, std::vector<int64_t> dims, int on, Initializer first = Initializer::uniform(-1, 1)) {
    graph_->push_device(ps(on));
    const NamedVariable made = good(model_->add_variable({.name = name, .shape = good(Shape::make(dims)), .initializer = first}));
    EXPECT_TRUE(graph_->pop_device().ok());
    return made;
  }
  Value placeholder(DType dtype, std::vector<int64_t> dims) {
    Build build(*graph_);
    const Value value = build.op("Placeholder", {}, {{"dtype", dtype}, {"shape", good(PartialShape::make(dims))}});
    EXPECT_TRUE(build.ok()) << build.status().message();
    return value;
  }
  void init() { run({}, {}, {good(model_->init_target())}); }

  std::vector<Tensor> run(const Feeds& feeds, std::vector<Value> fetches, std::vector<NodeId> targets) {
    std::vector<Value> fed;
    std::vector<const Tensor*> tensors;
    for (const auto& [value, tensor] : feeds) fed.push_back(value), tensors.push_back(&tensor);
    std::vector<Tensor> fetched(fetches.size());
    const Status status =
        session_->run({.feeds = fed, .feed_tensors = tensors, .fetches = fetches, .targets = targets, .timeout_ns = kWaitNs}, fetched);
    EXPECT_TRUE(status.ok()) << status.message();
    return fetched;
  }
  // A run that may block. Its end is asked for with wait().
  Ref<AsyncRun> start(const Feeds& feeds, NodeId target, uint64_t tag) {
    std::vector<Value> fed;
    std::vector<const Tensor*> tensors;
    for (const auto& [value, tensor] : feeds) fed.push_back(value), tensors.push_back(&tensor);
    return good(session_->run_async({.feeds = fed, .feed_tensors = tensors, .fetches = {}, .targets = {&target, 1}, .timeout_ns = kWaitNs},
                                    queue_, tag));
  }
  // The end of the run with that tag.
  Status wait(uint64_t tag) {
    while (!ended_.contains(tag)) {
      CompletionQueue::Event event;
      const size_t count = queue_->next({&event, 1}, system_clock(), Deadline::after(system_clock(), kWaitNs));
      if (count == 0) return deadline_exceeded("run %d has not ended", static_cast<int>(tag));
      ended_[event.tag] = event.status;
    }
    const Status status = ended_[tag];
    ended_.erase(tag);
    return status;
  }

  // Whether it has, so far.
  bool has_ended(uint64_t tag) {
    CompletionQueue::Event event;
    while (queue_->next({&event, 1}, system_clock(), Deadline::after(system_clock(), 1'000'000)) != 0) ended_[event.tag] = event.status;
    return ended_.contains(tag);
  }

  int64_t integer(Value value) {
    const auto fetched = run({}, {value}, {});
    return fetched[0].valid() ? fetched[0].values<int64_t>()[0] : -1;
  }
  // Asks until the int32 value is `wanted`.
  bool reaches(Value value, int32_t wanted) {
    const Deadline deadline = Deadline::after(system_clock(), kWaitNs);
    while (!deadline.passed(system_clock())) {
      if (run({}, {value}, {})[0].values<int32_t>()[0] == wanted) return true;
    }
    return false;
  }
  // Every variable of the model, bit for bit, by name.
  std::map<std::string, std::string> bits() {
    std::map<std::string, std::string> all;
    for (const NamedVariable& variable : model_->variables()) {
      const Tensor value = run({}, {variable.read}, {})[0];
      all[variable.name] = std::string(value.as<char>(), static_cast<size_t>(value.bytes()));
    }
    return all;
  }

 private:
  static Ref<Runtime> with_threads(int threads) {
    Runtime::Options options;
    options.compute_threads = threads;
    return good(Runtime::create(std::move(options)));
  }

  Ref<Runtime> runtime_;
  Ref<Graph> graph_;
  Ref<Model> model_;
  Ref<Session> session_;
  Ref<CompletionQueue> queue_;
  std::map<uint64_t, Status> ended_;
};

}  // namespace dtg
