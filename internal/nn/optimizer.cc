// Adds the nodes of training: gradients, their norm, and the updates of each kind of optimizer. Called by the thread
// that builds the model.
#include "nn/optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "nn/scope.h"

namespace dtg {
namespace {

const char* kind_name(Optimizer::Kind kind) {
  switch (kind) {
    case Optimizer::Kind::sgd: return "GradientDescent";
    case Optimizer::Kind::momentum: return "Momentum";
    case Optimizer::Kind::adam: return "Adam";
    case Optimizer::Kind::adagrad: return "Adagrad";
    case Optimizer::Kind::rms_prop: return "RMSProp";
  }
  return nullptr;
}

// The nodes of one optimizer over all variables.
class Apply {
 public:
  Apply(Model& model, const Optimizer& optimizer) : model_(model), optimizer_(optimizer), build_(model.graph()) {}

  Result<NodeId> run(std::span<const VariableGradient> gradients) {
    const NameScope scope(model_.graph(), kind_name(optimizer_.kind));
    rate_ = optimizer_.learning_rate.valid() ? optimizer_.learning_rate : build_.scalar(DType::f32, optimizer_.rate, "learning_rate");
    for (const VariableGradient& each : gradients) {
      if (!each.gradient.any()) continue;
      DTG_TRY(update(each).with_context("optimize \"" + each.variable.name + "\""));
    }
    if (updates_.empty()) {
      return invalid_argument("optimize: the loss depends on no trainable variable (of %zu); is it made from the layers' outputs?",
                              gradients.size());
    }
    DTG_TRY(advance_betas());
    return count_step();
  }

 private:
  Status update(const VariableGradient& each) {
    const ColocationScope beside(model_.graph(), each.variable.handle.node());
    Gradient gradient = each.gradient;
    switch (optimizer_.kind) {
      case Optimizer::Kind::sgd: return descend(each.variable, gradient);
      case Optimizer::Kind::momentum: return momentum(each.variable, gradient);
      case Optimizer::Kind::adam: return adam(each.variable, gradient);
      case Optimizer::Kind::adagrad: return adagrad(each.variable, gradient);
      case Optimizer::Kind::rms_prop: return rms_prop(each.variable, gradient);
    }
    return {};
  }

  // Hyperparameters are of the variable's type.
  Value number(const NamedVariable& v, double value) { return build_.scalar(v.dtype, value); }
  Value rate(const NamedVariable& v) { return build_.cast(rate_, v.dtype); }

  Result<Value> slot(const NamedVariable& v, const char* name, double first) {
    DTG_ASSIGN(const NamedVariable slot,
               model_.add_variable({.name = v.name + "/" + name,
                                    .dtype = v.dtype,
                                    .shape = v.shape,
                                    .initializer = first == 0 ? Initializer::zeros() : Initializer::constant(first),
                                    .trainable = false,
                                    .colocate = v.handle.node(),
                                    .absolute = true}));
    return slot.handle;
  }

  Status add(const NamedVariable& v, const char* op, std::span<const Value> inputs, std::initializer_list<Attr> attrs = {}) {
    updates_.push_back(build_.node(op, inputs, std::span(attrs.begin(), attrs.size()), "update_" + v.name));
    return build_.status();
  }

  Status descend(const NamedVariable& v, Gradient& g) {
    if (!g.is_rows()) return add(v, "ResourceApplyGradientDescent", std::array{v.handle, rate(v), g.dense});
    // Subtracting is linear, so rows need not be merged.
    return add(v, "ResourceScatterSub", std::array{v.handle, g.indices, build_.mul(g.values, rate(v))}, {{"dtype", v.dtype}});
  }

  Status momentum(const NamedVariable& v, Gradient& g) {
    DTG_ASSIGN(const Value accum, slot(v, "Momentum", 0));
    const Attr nesterov{"use_nesterov", optimizer_.nesterov};
    const Value factor = number(v, optimizer_.momentum);
    if (!g.is_rows()) return add(v, "ResourceApplyMomentum", std::array{v.handle, accum, rate(v), g.dense, factor}, {nesterov});
    merge_rows(build_, g);
    return add(v, "ResourceSparseApplyMomentum", std::array{v.handle, accum, rate(v), g.values, g.indices, factor}, {nesterov});
  }

  // Also for rows: the moving means of rows without a gradient decay as well, and such rows still move.
  Status adam(const NamedVariable& v, Gradient& g) {
    DTG_TRY(make_betas(v));
    DTG_ASSIGN(const Value m, slot(v, "Adam", 0));
    DTG_ASSIGN(const Value second, slot(v, "Adam_1", 0));
    const Value gradient = densify(build_, g);
    return add(v, "ResourceApplyAdam",
               std::array{v.handle, m, second, build_.cast(beta_[0].read, v.dtype), build_.cast(beta_[1].read, v.dtype), rate(v),
                          number(v, optimizer_.beta1), number(v, optimizer_.beta2), number(v, optimizer_.epsilon), gradient});
  }

  Status adagrad(const NamedVariable& v, Gradient& g) {
    DTG_ASSIGN(const Value accum, slot(v, "Adagrad", optimizer_.initial_accumulator));
    if (!g.is_rows()) return add(v, "ResourceApplyAdagrad", std::array{v.handle, accum, rate(v), g.dense});
    merge_rows(build_, g);
    return add(v, "ResourceSparseApplyAdagrad", std::array{v.handle, accum, rate(v), g.values, g.indices});
  }

  Status rms_prop(const NamedVariable& v, Gradient& g) {
    DTG_ASSIGN(const Value square, slot(v, "RMSProp", 1));
    DTG_ASSIGN(const Value step, slot(v, "RMSProp_1", 0));
    const Value rho = number(v, optimizer_.decay), factor = number(v, optimizer_.momentum), epsilon = number(v, optimizer_.epsilon);
    if (!g.is_rows()) {
      return add(v, "ResourceApplyRMSProp", std::array{v.handle, square, step, rate(v), rho, factor, epsilon, g.dense});
    }
    merge_rows(build_, g);
    return add(v, "ResourceSparseApplyRMSProp", std::array{v.handle, square, step, rate(v), rho, factor, epsilon, g.values, g.indices});
  }

  // beta^t, kept beside the first variable; float32 as in TensorFlow, whatever the variables are.
  Status make_betas(const NamedVariable& first) {
    if (beta_[0].handle.valid()) return {};
    for (int k = 0; k < 2; ++k) {
      DTG_ASSIGN(beta_[k], model_.add_variable({.name = k == 0 ? "beta1_power" : "beta2_power",
                                                .shape = Shape(),
                                                .initializer = Initializer::constant(k == 0 ? optimizer_.beta1 : optimizer_.beta2),
                                                .trainable = false,
                                                .colocate = first.handle.node(),
                                                .absolute = true}));
    }
    return {};
  }

  // Once all updates have used them. By an update and not by an assignment of what was read: workers that train at once would
  // lose each other's steps, and what has a value only the chief may assign.
  Status advance_betas() {
    if (!beta_[0].handle.valid()) return {};
    for (int k = 0; k < 2; ++k) {
      const ColocationScope beside(model_.graph(), beta_[k].handle.node());
      const Value inputs[] = {beta_[k].handle, build_.scalar(DType::f32, k == 0 ? optimizer_.beta1 : optimizer_.beta2)};
      advanced_.push_back(build_.node("_AssignMulVariableOp", inputs, {}, {}, updates_));
    }
    return build_.status();
  }

  Result<NodeId> count_step() {
    DTG_ASSIGN(const NamedVariable step, model_.global_step());
    std::vector<NodeId> all = updates_;
    all.insert(all.end(), advanced_.begin(), advanced_.end());
    const ColocationScope beside(model_.graph(), step.handle.node());
    const Value inputs[] = {step.handle, build_.integer(1, DType::i64)};
    const NodeId counted = build_.node("AssignAddVariableOp", inputs, {}, "count_step", all);
    DTG_TRY(build_.status());
    return counted;
  }

  Model& model_;
  const Optimizer& optimizer_;
  Build build_;
  Value rate_;
  NamedVariable beta_[2];
  std::vector<NodeId> updates_, advanced_;
};

// Numbers of the kind that are none, or that no training survives.
Status check_numbers(const Optimizer& o) {
  using Kind = Optimizer::Kind;
  // As float32, which they are in the graph.
  constexpr double kAny = std::numeric_limits<float>::max();
  const double below_one = std::nextafter(1.0f, 0.0f);
  const bool moves = o.kind == Kind::momentum || o.kind == Kind::rms_prop;
  const struct {
    bool is_used;
    const char* name;
    double value, most;
  } numbers[] = {{!o.learning_rate.valid(), "rate", o.rate, kAny},
                 {moves, "momentum", o.momentum, kAny},
                 {o.kind == Kind::adam, "beta1", o.beta1, below_one},
                 {o.kind == Kind::adam, "beta2", o.beta2, below_one},
                 {o.kind == Kind::adam || o.kind == Kind::rms_prop, "epsilon", o.epsilon, kAny},
                 {o.kind == Kind::rms_prop, "decay", o.decay, 1},
                 {o.kind == Kind::adagrad, "initial_accumulator", o.initial_accumulator, kAny}};
  for (const auto& number : numbers) {
    if (!number.is_used || (number.value >= 0 && number.value <= number.most)) continue;
    return invalid_argument("optimizer %s: %s is %g; it must be a number from 0 %s", kind_name(o.kind), number.name, number.value,
                            number.most == kAny ? "up"
                            : number.most == 1  ? "to 1"
                                                : "to below 1");
  }
  return {};
}

}  // namespace

Status check_optimizer(const Model& model, const Optimizer& optimizer) {
  if (!kind_name(optimizer.kind)) return invalid_argument("optimizer %d is unknown", static_cast<int>(optimizer.kind));
  DTG_TRY(check_numbers(optimizer));
  if (!(optimizer.clip_norm >= 0)) return invalid_argument("optimizer: clip_norm is %g; it must not be negative", optimizer.clip_norm);
  if (!optimizer.learning_rate.valid()) return {};
  DTG_TRY(model.graph().check(optimizer.learning_rate).with_context("optimizer, learning rate"));
  const ValueInfo& rate = model.graph().info(optimizer.learning_rate);
  if (dtype_is_floating(rate.dtype) && (!rate.shape.has_rank() || rate.shape.rank() == 0)) return {};
  return invalid_argument("optimizer: the learning rate is %s%s; it must be a floating-point scalar", dtype_name(rate.dtype),
                          rate.shape.text().c_str());
}

void merge_rows(Build& build, Gradient& gradient) {
  const Value unique = build.op("Unique", {gradient.indices});
  if (!build.ok()) return;
  const Value count = build.op("Size", {unique});
  gradient.values = build.op("UnsortedSegmentSum", {gradient.values, unique.sibling(1), count});
  gradient.indices = unique;
}

Result<std::vector<VariableGradient>> compute_gradients(Model& model, Value loss) {
  DTG_TRY(model.graph().check(loss).with_context("minimize"));
  std::vector<VariableGradient> result;
  std::vector<Value> handles;
  for (const NamedVariable& variable : model.variables()) {
    if (!variable.trainable) continue;
    result.push_back({variable, {}});
    handles.push_back(variable.handle);
  }
  if (handles.empty()) return failed_precondition("minimize: the model has no trainable variable yet; add layers first");
  DTG_ASSIGN(const std::vector<Gradient> gradients, add_gradients(model.graph(), std::span(&loss, 1), handles, {}));
  for (size_t i = 0; i < result.size(); ++i) result[i].gradient = gradients[i];
  return result;
}

Result<Value> global_norm(Model& model, std::span<VariableGradient> gradients) {
  const NameScope scope(model.graph(), "global_norm");
  Build build(model.graph());
  std::vector<Value> halves;
  for (VariableGradient& each : gradients) {
    if (!each.gradient.any()) continue;
    const ColocationScope beside(model.graph(), each.variable.handle.node());
    if (each.gradient.is_rows()) merge_rows(build, each.gradient);
    const Value half = build.op("L2Loss", {each.gradient.is_rows() ? each.gradient.values : each.gradient.dense});
    halves.push_back(build.cast(half, DType::f32));
  }
  if (halves.empty()) return invalid_argument("global norm: no variable has a gradient");
  const Value sum = halves.size() == 1 ? halves[0] : build.op("AddN", halves);
  const Value norm = build.op("Sqrt", {build.mul(sum, build.scalar(DType::f32, 2))});
  DTG_TRY(build.status().with_context("global norm"));
  return norm;
}

Status clip_by_norm(Model& model, std::span<VariableGradient> gradients, Value norm, double clip_norm) {
  const NameScope scope(model.graph(), "clip_by_norm");
  Build build(model.graph());
  const Value limit = build.scalar(DType::f32, clip_norm);
  const Value scale = build.div(limit, build.op("Maximum", {norm, limit}));
  // Infinity would scale everything to zero in silence; infinity - infinity is NaN.
  const Value factor = build.add(scale, build.sub(norm, norm));
  for (VariableGradient& each : gradients) {
    if (!each.gradient.any()) continue;
    const ColocationScope beside(model.graph(), each.variable.handle.node());
    Value& values = each.gradient.is_rows() ? each.gradient.values : each.gradient.dense;
    values = build.mul(values, build.cast(factor, build.info(values).dtype));
  }
  return build.status().with_context("clip by norm");
}

Result<NodeId> apply_gradients(Model& model, const Optimizer& optimizer, std::span<const VariableGradient> gradients) {
  DTG_TRY(check_optimizer(model, optimizer));
  return Apply(model, optimizer).run(gradients);
}

Result<Training> minimize(Model& model, Value loss, const Optimizer& optimizer) {
  DTG_TRY(check_optimizer(model, optimizer));
  const NameScope scope(model.graph(), "train");
  Build build(model.graph());
  Training training;
  Optimizer with_rate = optimizer;
  if (!with_rate.learning_rate.valid()) with_rate.learning_rate = build.scalar(DType::f32, optimizer.rate, "learning_rate");
  training.learning_rate = with_rate.learning_rate;
  DTG_TRY(build.status());
  DTG_ASSIGN(training.gradients, compute_gradients(model, loss));
  // The norm merges rows; what is fetched for a chart must not change what is applied.
  std::vector<VariableGradient> measured = training.gradients;
  DTG_ASSIGN(training.gradient_norm, global_norm(model, measured));
  if (optimizer.clip_norm > 0) {
    training.gradients = std::move(measured);
    DTG_TRY(clip_by_norm(model, training.gradients, training.gradient_norm, optimizer.clip_norm));
  }
  DTG_ASSIGN(training.train, apply_gradients(model, with_rate, training.gradients));
  DTG_ASSIGN(const NamedVariable step, model.global_step());
  training.global_step = step.read;
  return training;
}

}  // namespace dtg
