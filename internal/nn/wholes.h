// Wholes: a model's variables as files know them. A variable that is cut into parts (NamedVariable::part) is one tensor there, so what was
// saved from so many parts is restored into any other number of them, or into a variable that is whole; what an optimizer keeps goes with
// its variable. Pure functions over a model and values; the thread that saves or restores.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "nn/model.h"
#include "tensor/tensor.h"

namespace dtg {

// One tensor of a file. `of` and `slot` as in NamedVariable, `of` by the name that the file has.
struct WholeVariable {
  std::string name = {};
  DType dtype = DType::invalid;
  Shape shape = {};
  std::string of = {};
  std::string slot = {};
  std::vector<const NamedVariable*> parts = {};  // the variable itself where it is whole; in order along the axis

  const NamedVariable& first() const { return *parts[0]; }
  bool is_cut() const { return first().part.any(); }
};

// In the order in which their first parts were made. Pointers are the model's, until it grows. Parts some of whose fellows are not
// among `variables` stay what they are, each under its own name.
std::vector<WholeVariable> whole_variables(const Model& model);
std::vector<WholeVariable> whole_variables(std::span<const NamedVariable* const> variables);

// The whole from the values of its parts, and the other way round. UNIMPLEMENTED for strings in several parts.
Result<Tensor> join_parts(const WholeVariable& whole, std::span<const Tensor> values);
Result<std::vector<Tensor>> cut_parts(const WholeVariable& whole, const Tensor& value);

// What a run takes to assign wholes: tensors, which are kept here, for the assignments of first values.
struct Assignment {
  std::vector<Value> feeds;
  std::vector<Tensor> tensors;
  std::vector<NodeId> targets;

  Status add(const Graph& graph, const WholeVariable& whole, const Tensor& value);
  std::vector<const Tensor*> pointers() const;
};

}  // namespace dtg
