// Adds the nodes of updates, of counters and of the count of steps. Called by the thread that builds the model.
#include "nn/updates.h"

#include "nn/rules.h"
#include "nn/scope.h"

namespace dtg {

namespace {

// Copies of a variable are all moved by the same gradient, so they stay equal. First copies come first: slots are made for them.
std::vector<VariableGradient> for_each_copy(std::span<const VariableGradient> given) {
  std::vector<VariableGradient> all(given.begin(), given.end());
  for (VariableGradient& each : all) each.variable = each.variable.at_replica(0);
  for (const VariableGradient& each : given) {
    for (size_t i = 1; i < each.variable.copies.size(); ++i) {
      all.push_back(each);
      all.back().variable = each.variable.at_replica(i);
    }
  }
  return all;
}

}  // namespace

Result<NodeId> Updates::run(std::span<const VariableGradient> given) {
  const std::vector<VariableGradient> gradients = for_each_copy(given);
  const NameScope scope(model_.graph(), Optimizer::name_of(optimizer_.kind));
  rate_ = optimizer_.learning_rate.valid() ? optimizer_.learning_rate : outside_.scalar(DType::f32, optimizer_.rate, "learning_rate");
  DTG_TRY(make_counters(gradients));
  if (accumulates()) {
    if (stages_) return unimplemented("optimizer: accumulation_steps has no strict form; add up on the workers, or have more of them");
    DTG_TRY(accumulate(gradients));
    return count_step();
  }
  if (stages_) DTG_TRY(keep_all(gradients));
  DTG_TRY(update_all(gradients));
  DTG_TRY(advance(0, counters_.size()));
  DTG_ASSIGN(const NodeId counted, count_step());
  if (!stages_) return counted;
  // Once more, each place for itself.
  const NameScope again(model_.graph(), "follow");
  stages_->follow_up();
  DTG_TRY(update_all(gradients));
  updates_.clear();
  DTG_TRY(advance(0, counters_.size()));
  return counted;
}

Status Updates::make_counters(std::span<const VariableGradient> gradients) {
  for (const VariableGradient& each : gradients) {
    if (!each.gradient.any() || each.share != 0) continue;
    anchor_ = &each.variable;
    const Rule& rule = rule_of(optimizer_.kind);
    if (rule.count) DTG_TRY(rule.count(*this));
    of_rule_ = counters_.size();
    if (averages()) DTG_TRY(count_steps("average_step", 0));
    return accumulates() ? count_steps("accumulation_step", 0) : Status();
  }
  return invalid_argument("optimize: the loss depends on no trainable variable (of %zu); is it made from the layers' outputs?",
                          gradients.size());
}

Status Updates::make_counter(const char* name, DType dtype, double first, std::function<Value()> by) {
  DTG_ASSIGN(const NamedVariable counter, model_.add_variable({.name = name,
                                                               .dtype = dtype,
                                                               .shape = Shape(),
                                                               .initializer = Initializer::constant(first),
                                                               .trainable = false,
                                                               .colocate = anchor_->handle.node(),
                                                               .alone = anchor_->copies.empty(),
                                                               .absolute = true}));
  counters_.push_back({counter, std::move(by)});
  return {};
}

Status Updates::count_power(const char* name, double first, std::function<Value()> by) {
  return make_counter(name, DType::f32, first, std::move(by));
}
Status Updates::count_steps(const char* name, double first) { return make_counter(name, DType::f64, first, nullptr); }

// What the updates are made from that does not stand beside their variables anyway.
Status Updates::keep_all(std::span<const VariableGradient> gradients) {
  for (const VariableGradient& each : gradients) {
    if (!each.gradient.any()) continue;
    const NodeId beside = each.variable.handle.node();
    const Gradient& g = each.gradient;
    std::vector<Value> all = {g.dense, g.values, g.indices, g.dense_shape, rate_};
    for (const Counter& counter : counters_) all.push_back(counter.variable.read);
    for (const Value value : all) {
      if (value.valid()) DTG_TRY(stages_->keep(beside, value));
    }
  }
  return stages_->all_kept();
}

// The value, or what was kept of it, or what stands for it in a body.
Value Updates::from(NodeId beside, Value value) {
  if (inside_ && value.valid() && build().ok()) {
    Result<Value> captured = graph().capture(value);
    if (captured.ok()) return captured.value();
    build().fail(captured.status());
    return {};
  }
  if (!stages_ || !value.valid() || !build().ok()) return value;
  Result<Value> kept = stages_->kept(beside, value);
  if (kept.ok()) return kept.value();
  build().fail(kept.status());
  return {};
}

Status Updates::update_all(std::span<const VariableGradient> gradients) {
  updates_.clear();
  besides_.clear();
  advanced_.clear();
  for (const VariableGradient& each : gradients) {
    if (each.gradient.any()) DTG_TRY(update(each).with_context("optimize \"" + each.variable.name + "\""));
  }
  return stages_ ? stages_->applied(besides_, updates_) : Status();
}

Status Updates::update(const VariableGradient& each) {
  const NamedVariable& v = each.variable;
  const NodeId at = v.handle.node();
  const ColocationScope beside(graph(), place(v));
  last_ = kNoNode;
  Gradient gradient = each.gradient;
  for (Value* part : {&gradient.dense, &gradient.values, &gradient.indices, &gradient.dense_shape}) *part = from(at, *part);
  if (each.share != 0) return apply(v, "ResourceApplyGradientDescent", std::array{v.handle, number(v, each.share), gradient.dense});
  const Rule& rule = rule_of(optimizer_.kind);
  if (const double decay = decay_of(v); decay > 0 && !rule.decays(optimizer_)) {
    // Not before the gradient is there: it may be made from v elsewhere, and somebody may wait for it.
    last_ = (gradient.is_rows() ? gradient.values : gradient.dense).node();
    const Value share = build().mul(rate(v), number(v, decay));
    DTG_TRY(apply(v, "ResourceApplyGradientDescent", std::array{v.handle, share, v.read}));
  }
  DTG_TRY(rule.update(*this, v, gradient));
  return averages() && !inside_ ? average(v) : Status();
}

double Updates::decay_of(const NamedVariable& v) const { return optimizer_.decays(v) ? optimizer_.weight_decay : 0; }

Value Updates::decayed(const NamedVariable& v) {
  const double decay = decay_of(v);
  if (!(decay > 0)) return v.read;
  return build().sub(v.read, build().mul(build().mul(rate(v), number(v, decay)), v.read));
}

Result<NamedVariable> Updates::slot(const NamedVariable& v, const char* name, double first, const Shape& shape, Value same_as) {
  const std::string full = v.name + "/" + name;
  // What has an element for each of a part's is cut as it is.
  WholePart part;
  if (v.part.any() && shape == v.shape) {
    part = v.part;
    part.whole += std::string("/") + name;
  }
  if (const auto made = slots_.find(full); made != slots_.end()) return made->second.at_replica(v.copy);
  DTG_ASSIGN(const NamedVariable slot, model_.add_variable({.name = full,
                                                            .dtype = v.dtype,
                                                            .shape = shape,
                                                            .initializer = first == 0 ? Initializer::zeros() : Initializer::constant(first),
                                                            .trainable = false,
                                                            .colocate = v.handle.node(),
                                                            .alone = v.copies.empty(),
                                                            .absolute = true,
                                                            .of = v.name,
                                                            .slot = name,
                                                            .first = same_as,
                                                            .part = part}));
  slots_.emplace(full, slot);
  return slot.at_replica(v.copy);
}

Status Updates::apply(const NamedVariable& v, const char* op, std::span<const Value> inputs, std::initializer_list<Attr> attrs) {
  std::vector<NodeId> after(first_.begin(), first_.end());
  if (last_ != kNoNode) after.push_back(last_);
  // One of them has a name of its own.
  const bool is_named = !besides_.empty() && besides_.back() == v.handle.node();
  const std::string name = is_named ? std::string() : "update_" + v.name + (v.copy == 0 ? "" : "/replica_" + std::to_string(v.copy));
  last_ = build().node(op, inputs, std::span(attrs.begin(), attrs.size()), name, after);
  updates_.push_back(last_);
  besides_.push_back(v.handle.node());
  return build().status();
}

Status Updates::increase(const NamedVariable& v, const NamedVariable& what, Value by) {
  return apply(v, "AssignAddVariableOp", std::array{what.handle, by});
}
Status Updates::decrease(const NamedVariable& v, const NamedVariable& what, Value by) {
  return apply(v, "AssignSubVariableOp", std::array{what.handle, by});
}

// Once all updates have used them.
Status Updates::advance(size_t from, size_t to) {
  if (from == to) return {};
  const NamedVariable& first = counters_[0].variable;
  const std::vector<NodeId> after = updates_;
  for (size_t k = from; k < to; ++k) {
    for (size_t i = 0; i == 0 || i < first.copies.size(); ++i) {
      if (only_copy_ == SIZE_MAX || i == only_copy_) DTG_TRY(advance(counters_[k], i, after));
    }
  }
  DTG_TRY(build().status());
  return stages_ ? stages_->went_on(first.handle.node(), advanced_, "the optimizer's counters") : Status();
}

Status Updates::advance(const Counter& counter, size_t copy, std::span<const NodeId> after) {
  const NamedVariable variable = counter.variable.at_replica(copy);
  const ColocationScope beside(graph(), place(variable));
  copy_ = copy;
  const Value inputs[] = {variable.handle, counter.by ? counter.by() : number(variable, 1)};
  advanced_.push_back(build().node(counter.by ? "_AssignMulVariableOp" : "AssignAddVariableOp", inputs, {}, {}, after));
  return build().status();
}

Result<NodeId> Updates::count_step() {
  DTG_ASSIGN(const NamedVariable step, model_.global_step());
  std::vector<NodeId> all = updates_;
  all.insert(all.end(), advanced_.begin(), advanced_.end());
  const ColocationScope beside(model_.graph(), step.handle.node());
  const Value inputs[] = {step.handle, build().integer(1, DType::i64)};
  const NodeId counted = build().node("AssignAddVariableOp", inputs, {}, "count_step", all);
  DTG_TRY(build().status());
  return counted;
}

}  // namespace dtg
