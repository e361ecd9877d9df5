// InferContext: what a shape function sees. The same function serves twice: when the node is built, with what is known
// then, and when a plan prepares it, with everything complete. It rejects what no kernel could run. A context lives for
// one call, on the thread that builds or plans.
#pragma once

#include <span>
#include <string_view>

#include "graph/graph.h"

namespace dtg {

class InferContext {
 public:
  // Where the value of an input comes from when it is known: index of the input -> tensor or invalid.
  using ConstantFn = Tensor (*)(void* context, int input);
  InferContext(const Node& node, std::span<const ValueInfo> inputs, std::span<ValueInfo> outputs, ConstantFn constant_fn,
               void* constant_context)
      : node_(node), inputs_(inputs), outputs_(outputs), constant_fn_(constant_fn), constant_context_(constant_context) {}

  const Node& node() const { return node_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  // A resource shows the shape and type of what it holds.
  const PartialShape& input(int i) const { return inputs_[static_cast<size_t>(i)].shape; }
  DType input_dtype(int i) const { return inputs_[static_cast<size_t>(i)].dtype; }
  DType held_dtype(int i) const { return inputs_[static_cast<size_t>(i)].held; }
  // The input's value when it is known already, otherwise an invalid tensor.
  Tensor constant(int i) const { return constant_fn_ ? constant_fn_(constant_context_, i) : Tensor(); }

  template <class T>
  const T& attr(std::string_view name) const {
    return node_.attr<T>(name);
  }
  int64_t integer(std::string_view name) const { return attr<int64_t>(name); }
  bool boolean(std::string_view name) const { return attr<bool>(name); }

  void output(int i, PartialShape shape) { outputs_[static_cast<size_t>(i)].shape = std::move(shape); }
  void output_held(int i, DType held, PartialShape shape) {
    outputs_[static_cast<size_t>(i)].held = held;
    outputs_[static_cast<size_t>(i)].shape = std::move(shape);
  }
  // Output 0 (all outputs) like input i.
  Status same_as_input(int i = 0);
  // Output 0: the inputs 0 and 1 broadcast together by NumPy's rules.
  Status broadcast(int a = 0, int b = 1);

  // Checks with a message that names node and input.
  Status require_rank(int i, int rank) const;
  Status require_rank_at_least(int i, int rank) const;
  // A shape given as the value of an int vector input (-1 = open); unknown where the value is not known.
  Result<PartialShape> shape_from_input(int i) const;
  [[gnu::format(printf, 2, 3)]] Status error(const char* format, ...) const;

 private:
  const Node& node_;
  std::span<const ValueInfo> inputs_;
  std::span<ValueInfo> outputs_;
  ConstantFn constant_fn_;
  void* constant_context_;
};

// Broadcasting of two partial shapes; an error message without a node name.
Result<PartialShape> broadcast_shapes(const PartialShape& a, const PartialShape& b);

// Shape functions that many ops share.
Status unchanged_shape(InferContext& c);  // every output like input 0
Status broadcast_shape(InferContext& c);  // output 0 = broadcast(input 0, input 1)
Status scalar_shape(InferContext& c);     // every output a scalar
Status no_outputs(InferContext& c);       // nothing to say
Status unknown_shape(InferContext& c);    // known only when it has run

}  // namespace dtg
