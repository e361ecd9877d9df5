// Runs single nodes without a session: builds a graph, infers shapes, prepares each kernel and runs it, one
// node after the other, checking what a kernel must not do (write past its outputs, leave its workspace).
// For the tests of op families; owned by the test that makes it, used from one thread.
//
//   OneOp one({ops::register_binary});
//   auto sum = one.run("AddV2", {one_op::values<float>({2}, {1, 2}), one_op::scalar<float>(3)});
//   ASSERT_TRUE(sum.ok()) << sum.status().message();
//   one_op::as_vector<float>(sum.value()[0])   // {4, 5}
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "exec/kernel.h"
#include "exec/resource.h"
#include "graph/build.h"
#include "tensor/text.h"

namespace dtg {

class OneOp {
 public:
  using RegisterFn = void (*)(OpTable&, KernelTable&);
  // How much shape functions and prepare know about the inputs; results must not depend on it.
  enum class Known {
    values,   // inputs are constants
    shapes,   // only their shapes
    nothing,  // shapes are unknown when the node is built, known when it is prepared
  };
  struct Options {
    Known known = Known::values;
    int threads = 1;
    bool in_place = false;           // outputs lie over the inputs that prepare says they may overwrite
    int over = -1;                   // in place: over this input only; -1: over the first that prepare names
    Interrupt* interrupt = nullptr;  // that is up while the kernel runs, and asked before and after
  };

  // Const is added when no family brings it.
  explicit OneOp(std::initializer_list<RegisterFn> families);
  explicit OneOp(std::span<const RegisterFn> families);

  // One node; errors carry the phase ("build", "prepare", "run") in their origin.
  Result<std::vector<Tensor>> run(std::string_view op, std::span<const Tensor> inputs, std::span<const Attr> attrs, Options options);
  Result<std::vector<Tensor>> run(std::string_view op, std::initializer_list<Tensor> inputs, std::initializer_list<Attr> attrs = {}) {
    return run(op, inputs, attrs, Options());
  }
  Result<std::vector<Tensor>> run(std::string_view op, std::initializer_list<Tensor> inputs, std::initializer_list<Attr> attrs,
                                  Options options) {
    return run(op, std::span(inputs.begin(), inputs.size()), std::span(attrs.begin(), attrs.size()), options);
  }

  // For graphs of several nodes, gradients for example: feed or build, then evaluate.
  Result<Value> input(Graph& graph, const Tensor& tensor, Known known);
  Result<std::vector<Tensor>> evaluate(const Graph& graph, std::span<const Value> fetches, Options options);
  Result<Ref<Graph>> graph() { return Graph::create(&ops_); }

  const OpTable& ops() const { return ops_; }
  const KernelTable& kernels() const { return kernels_; }
  // State for ops that own some; kept between runs.
  ResourceStore& store() { return *store_; }
  void use_store(ResourceStore* store) { store_ = store; }

 private:
  // What an output holds: a tensor, or a resource.
  struct Datum {
    Tensor tensor;
    Ref<RefCounted> resource;
    ValueInfo info;
    void* data() const { return resource ? static_cast<void*>(resource.get()) : tensor.data(); }
  };
  class Prepare;
  Result<std::vector<Datum>> run_node(const Node& node, std::span<const Datum> inputs, const Options& options);
  Status execute(const Node& node, std::span<const Datum> inputs, const Options& options, Prepare& prepare, std::span<Datum> outputs);

  OpTable ops_;
  KernelTable kernels_;
  ResourceStore* store_ = nullptr;
  std::map<uint64_t, Tensor> feeds_;  // Value::id of TestFeed nodes
};

namespace one_op {

inline Shape shape(std::initializer_list<int64_t> dims) { return Shape::make({dims.begin(), dims.size()}).take(); }

template <class T>
Tensor values(std::initializer_list<int64_t> dims, std::initializer_list<T> data) {
  return Tensor::of<T>(shape(dims), std::span<const T>(data.begin(), data.size())).take();
}
template <class T>
Tensor values(std::initializer_list<int64_t> dims, const std::vector<T>& data) {
  return Tensor::of<T>(shape(dims), std::span<const T>(data)).take();
}
template <class T>
Tensor scalar(T value) {
  return Tensor::scalar<T>(value).take();
}
template <class T>
std::vector<T> as_vector(const Tensor& tensor) {
  const auto all = tensor.values<T>();
  return {all.begin(), all.end()};
}
// Strings, and as they come out.
Tensor texts(std::initializer_list<int64_t> dims, std::initializer_list<std::string_view> values);
std::vector<std::string> as_strings(const Tensor& tensor);
// Same type, shape and bytes.
bool bit_equal(const Tensor& a, const Tensor& b);
// Reproducible floats in [low, high), for shapes too large to write down.
std::vector<float> ramp(int64_t count, float low, float high);

}  // namespace one_op

}  // namespace dtg
