// Reverse mode: d(sum of ys)/d(xs) as new nodes of the same graph. Each op's own rule lives with the op; this file
// walks the graph backwards once, adds up what arrives at a value and keeps row gradients (IndexedSlices) as rows until
// somebody needs them dense. Called by the thread that builds the graph.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/build.h"

namespace dtg {

// The gradient of one value: nothing, dense, or rows of it.
struct Gradient {
  Value dense;        // valid when dense
  Value values;       // valid when rows: values[i] belongs to row indices[i]; equal indices add up
  Value indices;      // int32 or int64 vector
  Value dense_shape;  // int32 or int64 vector: shape of the whole
  bool any() const { return dense.valid() || values.valid(); }
  bool is_rows() const { return values.valid(); }
};

// What an op's gradient function sees.
class GradContext {
 public:
  // What the gradient functions of one reverse pass share: values by keys that they agree on.
  using Shared = std::map<std::string, Value, std::less<>>;
  GradContext(Build& build, const Node& node, std::span<const Gradient> dy, std::span<Gradient> dx, std::string_view call,
              const std::vector<bool>& wanted, Shared& shared)
      : build_(build), node_(node), dy_(dy), dx_(dx), call_(call), wanted_(wanted), shared_(shared) {}

  Build& b() { return build_; }
  const Node& node() const { return node_; }
  int num_inputs() const { return static_cast<int>(node_.inputs.size()); }
  int num_outputs() const { return static_cast<int>(node_.outputs.size()); }
  Value input(int i) const { return node_.inputs[static_cast<size_t>(i)]; }
  Value output(int i) const { return build_.graph().value(node_.id, static_cast<uint32_t>(i)); }
  const ValueInfo& input_info(int i) const { return build_.graph().info(input(i)); }
  const ValueInfo& output_info(int i) const { return node_.outputs[static_cast<size_t>(i)]; }
  template <class T>
  const T& attr(std::string_view name) const {
    return node_.attr<T>(name);
  }

  // A word that no other reverse pass over this graph has; empty where a function is taken apart, once for all who call it.
  std::string_view call() const { return call_; }
  Shared& shared() { return shared_; }

  // Did a gradient arrive at output i?
  bool has_dy(int i = 0) const { return dy_[static_cast<size_t>(i)].any(); }
  // It, dense; zeros like the output when none arrived.
  Value dy(int i = 0);
  // It, as it came.
  const Gradient& raw_dy(int i = 0) const { return dy_[static_cast<size_t>(i)]; }

  // Does input i lead to what is differentiated with respect to? An answer for one that does not is lost.
  bool wants(int i) const { return wanted_[static_cast<size_t>(i)]; }
  // The answer for input i. Not answering means: no gradient flows there.
  void dx(int i, Value value) { dx_[static_cast<size_t>(i)].dense = value; }
  void dx_rows(int i, Value values, Value indices, Value dense_shape) {
    dx_[static_cast<size_t>(i)] = {Value(), values, indices, dense_shape};
  }
  // dx(i) = sum of `value` down to the shape of input i, undoing a broadcast against input `other`.
  void dx_unbroadcast(int i, Value value, int other);

 private:
  Build& build_;
  const Node& node_;
  std::span<const Gradient> dy_;
  std::span<Gradient> dx_;
  std::string_view call_;
  const std::vector<bool>& wanted_;
  Shared& shared_;
};

// Gradients of the sum over all ys, weighted by grad_ys (empty, or one per y; an invalid value = ones).
// result[i].any() is false where no path leads from xs[i] to any y. A y may be an x. Fails with the path
// when it must pass an op that declares no gradient function although it is differentiable.
Result<std::vector<Gradient>> add_gradients(Graph& graph, std::span<const Value> ys, std::span<const Value> xs,
                                            std::span<const Value> grad_ys);

// The same inside a function, where gradients also come in at lists and at variables that are handed on: each y has a weight.
Result<std::vector<Gradient>> add_inner_gradients(Graph& graph, std::span<const Value> ys, std::span<const Value> xs,
                                                  std::span<const Value> grad_ys);

// The dense form of a gradient: UnsortedSegmentSum of its rows when it has rows.
Value densify(Build& build, const Gradient& gradient);

}  // namespace dtg
