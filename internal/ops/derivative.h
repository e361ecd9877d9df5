// Derivative: a function taken apart for reverse mode. `forward` gives what the function gives and, after that, what the way back needs of
// it; `backward` takes gradients of the results and gives those of the arguments. Made once per function and kept with it, so that every
// gradient of a call is made of the same parts, and so are gradients of gradients.
//
// Called by threads that build graphs.
#pragma once

#include <vector>

#include "graph/build.h"
#include "graph/copy_nodes.h"
#include "graph/function.h"
#include "ops/tensor_array.h"

namespace dtg::ops {

struct Derivative final : RefCounted {
  Ref<const Function> forward;   // results: those of the function, then `saved` values
  Ref<const Function> backward;  // arguments: gradients of results `dy`, arguments `direct` of the function, saved values, `arrays`
  std::vector<size_t> dy;        // results whose gradient is wanted
  std::vector<size_t> dx;        // arguments that have one, in the order of the results of `backward`
  std::vector<size_t> direct;    // arguments that the way back takes as they are
  size_t saved = 0;
  // TensorArrays among the arguments, and arrays of their gradients, of which the way back takes the arrays of their gradients.
  struct Array {
    size_t argument;
    std::vector<ArrayStep> steps;
    bool operator==(const Array&) const = default;
  };
  std::vector<Array> arrays;
  const ValueInfo& array_info(size_t k) const { return backward->argument_info(dy.size() + direct.size() + saved + k); }
};

// call: all arguments are there on the way back. loop: only those that no round changes are.
enum class Reuse : int { call = 1, loop = 2 };
Result<Ref<const Derivative>> derivative_of(const Function& function, Reuse reuse);

// Does a gradient flow to such an argument: a number, a list, or a variable that is read?
bool has_gradient(const Function& function, size_t argument);
// Type and shape of the gradient of a value: of a variable's handle, those of what it holds.
ValueInfo gradient_info(const ValueInfo& of);
// Zeros to stand for a gradient that nothing flowed into.
Value zeros_for(Build& b, Value value);

// The nodes of a function again in `into`, for these arguments; gives what stands for its results. `controls` (may be null) receives the
// nodes that run in each call.
Result<std::vector<Value>> inline_function(const Function& function, Graph& into, std::span<const Value> arguments,
                                           std::vector<NodeId>* controls = nullptr);

// What some results of a function take.
struct Slice {
  std::vector<bool> arguments;
  std::vector<NodeId> nodes;  // in the order in which they were made
};
Slice slice_of(const Function& function, std::span<const size_t> results);
// As inline_function, but for those results only; arguments that are not in the slice need not be valid.
Result<std::vector<Value>> inline_slice(const Function& function, const Slice& slice, std::span<const size_t> results, Graph& into,
                                        std::span<const Value> arguments);

}  // namespace dtg::ops
