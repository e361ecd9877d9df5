// SmallModel: graph, model and session of one test, with the few calls that all of them need. One thread.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "graph/build.h"
#include "nn/model.h"
#include "session/session.h"

namespace dtg {

// The value of a result that must be good.
template <class T>
T good(Result<T> result) {
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? result.take() : T();
}

class SmallModel {
 public:
  explicit SmallModel(uint64_t seed = 1, int threads = 1)
      : runtime_(with_threads(threads)),
        graph_(good(Graph::create(&runtime_->ops()))),
        model_(make_ref<Model>(graph_, seed)),
        session_(good(Session::connect(runtime_, "local", graph_, {}))) {}

  Model& model() { return *model_; }
  Graph& graph() { return *graph_; }
  Session& session() { return *session_; }

  Value placeholder(const char* name, DType dtype, std::vector<int64_t> dims) {
    Build build(*graph_);
    const Value value = build.op("Placeholder", {}, {{"dtype", dtype}, {"shape", good(PartialShape::make(dims))}}, name);
    EXPECT_TRUE(build.ok()) << build.status().message();
    return value;
  }

  // A float variable with these values at first.
  NamedVariable variable(const char* name, std::vector<float> values, std::vector<int64_t> dims = {}) {
    if (dims.empty()) dims = {static_cast<int64_t>(values.size())};
    const Shape shape = good(Shape::make(dims));
    const NamedVariable made = good(model_->add_variable({.name = name, .shape = shape}));
    preset_.push_back({graph_->node(made.assign).inputs[1], good(Tensor::of<float>(shape, std::span<const float>(values)))});
    return made;
  }

  void init() {
    const NodeId target[] = {good(model_->init_target())};
    std::vector<Value> feeds;
    std::vector<const Tensor*> tensors;
    for (const auto& [value, tensor] : preset_) {
      feeds.push_back(value);
      tensors.push_back(&tensor);
    }
    const Status status = session_->run({.feeds = feeds, .feed_tensors = tensors, .fetches = {}, .targets = target}, {});
    ASSERT_TRUE(status.ok()) << status.message();
  }

  void step(NodeId target) {
    const NodeId targets[] = {target};
    const Status status = session_->run({.feeds = {}, .feed_tensors = {}, .fetches = {}, .targets = targets}, {});
    ASSERT_TRUE(status.ok()) << status.message();
  }

  Tensor fetch(Value value, std::vector<Value> feeds = {}, std::vector<Tensor> given = {}) {
    std::vector<const Tensor*> tensors;
    for (const Tensor& tensor : given) tensors.push_back(&tensor);
    Tensor result;
    const Status status = session_->run({.feeds = feeds, .feed_tensors = tensors, .fetches = {&value, 1}, .targets = {}}, {&result, 1});
    EXPECT_TRUE(status.ok()) << status.message();
    return result;
  }
  std::vector<float> floats(Value value) {
    const Tensor tensor = fetch(value);
    if (!tensor.valid()) return {};
    const auto all = tensor.values<float>();
    return {all.begin(), all.end()};
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
  std::vector<std::pair<Value, Tensor>> preset_;
};

}  // namespace dtg
