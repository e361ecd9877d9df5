// Adds the nodes of variables and keeps the model's list of them. The names follow TensorFlow: "dense/kernel" is the
// handle, "dense/kernel/Initializer/..." makes the first value, "dense/kernel/Assign" and "dense/kernel/Read" use it.
// One thread builds a model.
#include "nn/model.h"

#include "nn/scope.h"

namespace dtg {

Result<NamedVariable> Model::add_variable(const VariableSpec& spec) {
  if (spec.name.empty()) return invalid_argument("add a variable: it has no name");
  if (!shared_.empty() && !spec.absolute) return shared_variable(spec);
  NamedVariable variable;
  variable.dtype = spec.dtype;
  variable.shape = spec.shape;
  variable.trainable = spec.trainable;
  variable.absolute = spec.absolute;
  Build build(*graph_);
  if (spec.absolute) {
    const NameScope root(*graph_, "");
    variable.name = graph_->unique_name(spec.name);
  } else {
    variable.name = graph_->unique_name(spec.name);
  }
  const NameScope root(*graph_, "");
  {
    const ColocationScope beside(*graph_, spec.colocate);
    // The name is also the shared name: every task that builds this model means the same variable.
    variable.handle =
        build.op("VarHandleOp", {}, {{"dtype", spec.dtype}, {"shape", spec.shape}, {"shared_name", variable.name}}, variable.name);
  }
  DTG_TRY(build.status());
  const ColocationScope beside(*graph_, variable.handle.node());
  Value first;
  {
    const NameScope scope(*graph_, variable.name + "/Initializer");
    first = initial_value(build, spec.initializer, spec.dtype, spec.shape, {seed_, variables_.size()});
  }
  const Value assigned[] = {variable.handle, first};
  variable.assign = build.node("AssignVariableOp", assigned, {}, variable.name + "/Assign");
  variable.read = build.op("ReadVariableOp", {variable.handle}, {{"dtype", spec.dtype}}, variable.name + "/Read");
  DTG_TRY(build.status().with_context("add the variable \"" + variable.name + "\""));
  variables_.push_back(variable);
  return variable;
}

void Model::next_tower() {
  shared_.clear();
  for (size_t i = variables_.size(); i-- > 0;) {
    if (!variables_[i].absolute) shared_.push_back(i);
  }
}

// Scopes and names get numbers when they are taken, so only the last part is compared.
Result<NamedVariable> Model::shared_variable(const VariableSpec& spec) {
  const NamedVariable& there = variables_[shared_.back()];
  const std::string last = there.name.substr(there.name.rfind('/') + 1);
  const bool named = last == spec.name || last.starts_with(std::string(spec.name) + "_");
  if (!named || there.dtype != spec.dtype || !(there.shape == spec.shape) || there.trainable != spec.trainable) {
    return failed_precondition("a tower asks for the variable \"%s\" of %s%s where the first one made \"%s\" of %s%s; build the same "
                               "layers in the same order",
                               std::string(spec.name).c_str(), dtype_name(spec.dtype), spec.shape.text().c_str(), there.name.c_str(),
                               dtype_name(there.dtype), there.shape.text().c_str());
  }
  shared_.pop_back();
  return there;
}

const NamedVariable* Model::find(std::string_view name) const {
  for (const NamedVariable& variable : variables_) {
    if (variable.name == name) return &variable;
  }
  return nullptr;
}

void Model::forget_beyond(size_t count) {
  if (count >= variables_.size()) return;
  variables_.resize(count);
  if (global_step_ >= count) global_step_ = SIZE_MAX;
  std::erase_if(shared_, [&](size_t i) { return i >= count; });
}

Result<NamedVariable> Model::global_step() {
  if (global_step_ != SIZE_MAX) return variables_[global_step_];
  DTG_ASSIGN(NamedVariable step, add_variable({.name = "global_step", .dtype = DType::i64, .trainable = false, .absolute = true}));
  global_step_ = variables_.size() - 1;
  return step;
}

Result<NodeId> Model::init_target() {
  if (init_ != kNoNode && init_covers_ == variables_.size()) return init_;
  std::vector<NodeId> assignments;
  for (const NamedVariable& variable : variables_) assignments.push_back(variable.assign);
  const NameScope root(*graph_, "");
  const std::string name = graph_->unique_name("init");
  DTG_ASSIGN(init_, graph_->add({.op = "NoOp", .name = name, .controls = assignments}));
  init_covers_ = variables_.size();
  return init_;
}

RandomStream Model::next_stream() {
  // The upper half of the numbers; variables use the lower one.
  return {seed_, (uint64_t{1} << 63) + streams_++};
}

}  // namespace dtg
