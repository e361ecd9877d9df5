// ValueContext: what a value function sees. An op whose outputs may be known from constants and shapes alone declares one, and the
// same function answers when the node is built, when a plan infers shapes, and when it folds. It says nothing where the answer is
// not known or not small. Lives for one call; one thread.
//
//   void size_value(ValueContext& c) {
//     if (c.input_info(0).shape.complete()) c.output_ints(0, {...});
//   }
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace dtg {

// A small vector (or scalar) of integers, as shapes, sizes and axes are.
struct SmallInts {
  std::vector<int64_t> values;
  bool scalar = false;
};

class ValueContext {
 public:
  // Larger values are not followed: what decides shapes is small.
  static constexpr int64_t kElementsMax = 64;

  ValueContext(const Node& node, std::span<const ValueInfo> outputs, std::span<Tensor> known)
      : node_(node), outputs_(outputs), known_(known) {}
  virtual ~ValueContext() = default;

  const Node& node() const { return node_; }
  int num_inputs() const { return static_cast<int>(node_.inputs.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  // The value of an input, or an invalid tensor.
  virtual Tensor input(int i) const = 0;
  virtual const ValueInfo& input_info(int i) const = 0;
  const ValueInfo& output_info(int o) const { return outputs_[static_cast<size_t>(o)]; }

  // The same as integers; nothing where it is not known, has no integer type, has rank 2 or more, or is long.
  std::optional<SmallInts> ints(int i) const;

  void output(int o, Tensor value) { known_[static_cast<size_t>(o)] = std::move(value); }
  // Nothing is known where a number does not fit the output's type, for then the kernel's answer is another.
  void output(int o, const SmallInts& value);

 private:
  const Node& node_;
  std::span<const ValueInfo> outputs_;
  std::span<Tensor> known_;
};

}  // namespace dtg
