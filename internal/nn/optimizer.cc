// Adds the nodes of training: gradients, their norm, and one step of an optimizer; and says what is wrong with its numbers. Called by the
// thread that builds the model.
#include "nn/optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/spelling.h"
#include "nn/clipping.h"
#include "nn/layer.h"
#include "nn/rules.h"
#include "nn/scope.h"

namespace dtg {
namespace {

using Kind = Optimizer::Kind;

// By kind.
constexpr Rule kRules[] = {
    {"GradientDescent", descend},
    {"Momentum", momentum},
    {"Adam", adam, count_betas, adam_decays},
    {"Adagrad", adagrad},
    {"RMSProp", rms_prop},
    {"AdamW", adam, count_betas, adam_decays},
    {"Adadelta", adadelta},
    {"Adamax", adamax, count_beta1},
    {"Nadam", nadam, count_nadam},
    {"Ftrl", ftrl},
    {"Lion", lion},
    {"LAMB", lamb, count_betas},
    {"LARS", lars, nullptr, [](const Optimizer&) { return true; }},
    {"Adafactor", adafactor, count_steps},
};
static_assert(std::size(kRules) == static_cast<size_t>(Kind::adafactor) + 1);

// As float32, which they are in the graph.
constexpr double kAny = std::numeric_limits<float>::max();

enum class Range { any, below_one, to_one, negative };

struct Number {
  bool is_used;
  const char* name;
  double value;
  Range range = Range::any;

  bool is_good() const {
    switch (range) {
      case Range::any: return value >= 0 && value <= kAny;
      case Range::below_one: return value >= 0 && value <= double{std::nextafter(1.0f, 0.0f)};
      case Range::to_one: return value >= 0 && value <= 1;
      case Range::negative: return value < 0 && value >= -kAny;
    }
    return false;
  }
  const char* wanted() const {
    switch (range) {
      case Range::any: break;
      case Range::below_one: return "from 0 to below 1, as float32";
      case Range::to_one: return "from 0 to 1";
      case Range::negative: return "below 0, and none that float32 does not hold";
    }
    return "from 0 up to the largest float32, 3.4e+38";
  }
};

// Numbers of the kind that are none, or that no training survives.
Status check_numbers(const Optimizer& o) {
  const auto is = [&](auto... kinds) { return ((o.kind == kinds) || ...); };
  const bool adam = is(Kind::adam, Kind::adam_w, Kind::adamax, Kind::nadam, Kind::lamb);
  const Number numbers[] = {
      {!o.learning_rate.valid(), "rate", o.rate},
      {is(Kind::momentum, Kind::rms_prop, Kind::lars), "momentum", o.momentum, Range::to_one},
      {adam || is(Kind::lion), "beta1", o.beta1, Range::below_one},
      {adam || is(Kind::lion), "beta2", o.beta2, Range::below_one},
      {adam || is(Kind::rms_prop, Kind::adadelta, Kind::lars, Kind::adafactor), "epsilon", o.epsilon},
      {true, "weight_decay", o.weight_decay},
      {is(Kind::rms_prop, Kind::adadelta), "decay", o.decay, Range::to_one},
      {is(Kind::adafactor), "decay", o.decay, Range::negative},
      {is(Kind::adagrad, Kind::ftrl), "initial_accumulator", o.initial_accumulator},
      {is(Kind::ftrl), "l1", o.l1},
      {is(Kind::ftrl), "l2", o.l2},
      {is(Kind::ftrl), "l2_shrinkage", o.l2_shrinkage},
      {is(Kind::ftrl), "ftrl_beta", o.ftrl_beta},
      {is(Kind::ftrl), "rate_power", o.rate_power, Range::negative},
      {is(Kind::lars), "trust", o.trust},
      {is(Kind::adafactor), "epsilon2", o.epsilon2},
      {is(Kind::adafactor), "clip_threshold", o.clip_threshold},
      {o.use_ema, "ema_momentum", o.ema_momentum, Range::to_one},
      {o.lookahead_steps != 0, "lookahead_share", o.lookahead_share, Range::to_one},
  };
  for (const Number& each : numbers) {
    if (!each.is_used || each.is_good()) continue;
    return invalid_argument("optimizer %s: %s is %g; it must be a number %s", Optimizer::name_of(o.kind), each.name, each.value,
                            each.wanted());
  }
  return {};
}

// One way of clipping at most, as in Keras.
Status check_clipping(const Optimizer& o) {
  const std::pair<const char*, double> limits[] = {
      {"clip_norm", o.clip_norm}, {"clip_each_norm", o.clip_each_norm}, {"clip_value", o.clip_value}};
  int ways = 0;
  for (const auto& [name, limit] : limits) {
    if (!(limit >= 0 && limit <= kAny)) {
      return invalid_argument("optimizer: %s is %g; it must be a number from 0 (no clipping) up to the largest float32", name, limit);
    }
    ways += limit > 0 ? 1 : 0;
  }
  if (ways <= 1) return {};
  return invalid_argument("optimizer: %d of clip_norm, clip_each_norm and clip_value are given; give one", ways);
}

// Handles that `what` lists, each of a variable of the model.
Status check_listed(const Model& model, std::span<const Value> handles, const char* what) {
  for (size_t i = 0; i < handles.size(); ++i) {
    const auto is_it = [&](const NamedVariable& each) { return each.has_handle(handles[i]); };
    const auto found = std::ranges::find_if(model.variables(), is_it);
    if (found == model.variables().end()) return invalid_argument("optimizer: %s[%zu] is the handle of no variable of this model", what, i);
    for (size_t k = 0; k < i; ++k) {
      if (found->has_handle(handles[k]))
        return invalid_argument("optimizer: %s[%zu] and %s[%zu] are one variable, \"%s\"; list it once", what, k, what, i,
                                found->name.c_str());
    }
  }
  return {};
}

// A word of no variable exempts nothing, and what it was meant for decays.
Status check_words(const Model& model, const Optimizer& optimizer) {
  std::vector<std::string_view> trained;
  for (const NamedVariable& each : model.variables()) {
    if (each.trainable) trained.push_back(each.name);
  }
  for (const std::string& word : optimizer.undecayed_names) {
    if (std::ranges::any_of(trained, [&](std::string_view name) { return name.find(word) != std::string_view::npos; })) continue;
    return invalid_argument(
        "optimizer: undecayed_names: \"%.200s\" is in the name of no trainable variable, so nothing is exempt by it: %s", word.c_str(),
        names_text(word, trained).c_str());
  }
  return {};
}

// Whether the loss is made from what that variable follows.
bool is_followed(const Model& model, size_t tower, const NamedVariable& variable, Value loss) {
  for (const Model::Following& each : model.following()) {
    if (each.tower != tower || each.variable.handle != variable.handle) continue;
    return std::ranges::all_of(each.targets, [&](Value target) { return depends_on(model.graph(), loss, target); });
  }
  return false;
}

// The gradient of many numbers is that of their sum, so that a forgotten mean would train at a rate that grows with the batch.
Status check_loss(const Model& model, const char* what, Value loss) {
  DTG_TRY(model.graph().check(loss).with_context(std::string(what) + ": the loss"));
  const PartialShape& shape = model.graph().info(loss).shape;
  if (!shape.has_rank() || std::ranges::all_of(shape.dims(), [](int64_t d) { return d == 1; })) return {};
  return invalid_argument("%s: the loss is %s; one number is needed: reduce it first, for example with mean", what,
                          described(model, loss).c_str());
}

}  // namespace

bool depends_on(const Graph& graph, Value of, Value value) {
  std::vector<bool> seen(graph.node_count(), false);
  std::vector<NodeId> open = {of.node()};
  while (!open.empty()) {
    const NodeId at = open.back();
    open.pop_back();
    if (at == value.node()) return true;
    for (const Value input : graph.node(at).inputs) {
      // Who comes later in the graph cannot be what this is made from.
      if (input.node() < value.node() || seen[input.node()]) continue;
      seen[input.node()] = true;
      open.push_back(input.node());
    }
  }
  return false;
}

const char* Optimizer::name_of(Kind kind) {
  const auto i = static_cast<size_t>(kind);
  return static_cast<int32_t>(kind) >= 0 && i < std::size(kRules) ? kRules[i].name : nullptr;
}

const Rule& rule_of(Optimizer::Kind kind) { return kRules[static_cast<size_t>(kind)]; }

Optimizer Optimizer::of(Kind kind) {
  Optimizer o;
  o.kind = kind;
  if (kind == Kind::adam_w) o.weight_decay = 0.004;
  if (kind == Kind::lion) o.beta2 = 0.99;
  if (kind == Kind::adadelta) o.decay = 0.95;
  if (kind == Kind::adafactor) o.decay = -0.8;
  if (kind >= Kind::adadelta) o.epsilon = 1e-7;
  if (kind == Kind::adafactor) o.epsilon = 1e-30;
  if (kind == Kind::lars) o.epsilon = 0;
  return o;
}

bool Optimizer::decays(const NamedVariable& v) const {
  if (std::ranges::any_of(undecayed, [&](Value handle) { return v.has_handle(handle); })) return false;
  return std::ranges::none_of(undecayed_names, [&](const std::string& word) { return v.name.find(word) != std::string::npos; });
}

Status check_optimizer(const Model& model, const Optimizer& optimizer) {
  if (!Optimizer::name_of(optimizer.kind)) return invalid_argument("optimizer %d is unknown", static_cast<int>(optimizer.kind));
  DTG_TRY(check_numbers(optimizer));
  DTG_TRY(check_clipping(optimizer));
  const std::pair<const char*, int64_t> counts[] = {{"ema_overwrite_every", optimizer.ema_overwrite_every},
                                                    {"accumulation_steps", optimizer.accumulation_steps},
                                                    {"lookahead_steps", optimizer.lookahead_steps}};
  for (const auto& [name, count] : counts) {
    if (count >= 0 && count <= int64_t{1} << 50) continue;
    return invalid_argument("optimizer: %s is %lld; it must be a number of steps", name, static_cast<long long>(count));
  }
  DTG_TRY(check_listed(model, optimizer.undecayed, "undecayed"));
  DTG_TRY(check_listed(model, optimizer.variables, "variables"));
  DTG_TRY(check_words(model, optimizer));
  if (optimizer.lazy && optimizer.amsgrad && (optimizer.kind == Kind::adam || optimizer.kind == Kind::adam_w)) {
    return unimplemented("optimizer %s: amsgrad has no lazy form; leave one of them 0", Optimizer::name_of(optimizer.kind));
  }
  if (!optimizer.learning_rate.valid()) return {};
  DTG_TRY(model.graph().check(optimizer.learning_rate).with_context("optimizer, learning rate"));
  const ValueInfo& rate = model.graph().info(optimizer.learning_rate);
  if (dtype_is_floating(rate.dtype) && (!rate.shape.has_rank() || rate.shape.rank() == 0)) return {};
  return invalid_argument("optimizer: the learning rate is %s%s; it must be a floating-point scalar", dtype_name(rate.dtype),
                          rate.shape.text().c_str());
}

Status add_following(Model& model, size_t tower, std::vector<VariableGradient>* gradients) {
  const NameScope scope(model.graph(), "follow");
  Build build(model.graph());
  for (const Model::Following& each : model.following()) {
    const auto is_same = [&](const VariableGradient& other) { return other.variable.handle == each.variable.handle; };
    if (each.tower != tower || std::ranges::any_of(*gradients, is_same)) continue;
    Value target = each.targets[0];
    if (each.targets.size() > 1) {
      const Value sum = build.op("AddN", each.targets);
      if (build.ok()) target = build.div(sum, build.like(sum, static_cast<double>(each.targets.size())));
    }
    gradients->push_back({each.variable, {}, each.share});
    gradients->back().gradient.dense = build.sub(each.variable.read, target);
  }
  return build.status().with_context("moving statistics");
}

Result<std::vector<VariableGradient>> compute_gradients(Model& model, Value loss, size_t tower, std::span<const Value> listed,
                                                        size_t replica) {
  DTG_TRY(check_loss(model, "minimize", loss));
  std::vector<VariableGradient> result;
  std::vector<Value> handles;
  for (const NamedVariable& variable : model.variables()) {
    const auto is_listed = [&](Value handle) { return variable.has_handle(handle); };
    const bool is_meant = listed.empty() ? variable.trainable : std::ranges::any_of(listed, is_listed);
    if (!is_meant) continue;
    if (!variable.trainable) {
      return invalid_argument("minimize: \"%s\" is listed but not trainable", variable.name.c_str());
    }
    result.push_back({variable, {}});
    handles.push_back(variable.at_replica(replica).handle);
  }
  if (handles.empty()) return failed_precondition("minimize: the model has no trainable variable yet; add layers first");
  DTG_ASSIGN(const std::vector<Gradient> gradients, add_gradients(model.graph(), std::span(&loss, 1), handles, {}));
  for (size_t i = 0; i < result.size(); ++i) result[i].gradient = gradients[i];
  if (std::ranges::none_of(result, [](const VariableGradient& each) { return each.gradient.any(); })) {
    return invalid_argument("minimize: no gradient of \"%s\" reaches any of the %zu %s variables; is it made from the layers' outputs, "
                            "by ops that have gradients? (ArgMax, Round, comparisons and counts have none)",
                            model.graph().value_name(loss).c_str(), result.size(), listed.empty() ? "trainable" : "listed");
  }
  const size_t weights = result.size();
  DTG_TRY(add_following(model, tower, &result));
  if (listed.empty()) return result;
  // What belongs to another part of the model is not this training's, and may need feeds that it does not have.
  const auto is_anothers = [&](const VariableGradient& each) { return !is_followed(model, tower, each.variable, loss); };
  result.erase(std::remove_if(result.begin() + static_cast<ptrdiff_t>(weights), result.end(), is_anothers), result.end());
  return result;
}

namespace {

// Moments and means that go on by a share of what was: where the variable's type rounds that to 1 nothing new comes in, and a step
// divides by what stayed 0.
Status check_shares(const Optimizer& o, const NamedVariable& v) {
  const auto is = [&](auto... kinds) { return ((o.kind == kinds) || ...); };
  const bool adam = is(Kind::adam, Kind::adam_w, Kind::adamax, Kind::nadam, Kind::lamb);
  const Number shares[] = {{adam || is(Kind::lion), "beta1", o.beta1},
                           {adam || is(Kind::lion), "beta2", o.beta2},
                           {is(Kind::rms_prop, Kind::adadelta), "decay", o.decay},
                           {o.use_ema, "ema_momentum", o.ema_momentum}};
  for (const Number& each : shares) {
    const auto value = static_cast<float>(each.value);
    const float kept = v.dtype == DType::bf16 ? float(BFloat16(value)) : v.dtype == DType::f16 ? float(Half(value)) : value;
    if (!each.is_used || value >= 1 || kept < 1) continue;
    return invalid_argument(
        "optimizer %s: %s is %g, which %s rounds to 1, so that the moments of \"%s\" would never move; take at most %g, "
        "or give the layers float32",
        Optimizer::name_of(o.kind), each.name, each.value, dtype_name(v.dtype), v.name.c_str(), v.dtype == DType::bf16 ? 0.996 : 0.9995);
  }
  return {};
}

}  // namespace

Result<NodeId> apply_gradients(Model& model, const Optimizer& optimizer, std::span<const VariableGradient> gradients, ApplyStages* stages,
                               std::span<const NodeId> first) {
  DTG_TRY(check_optimizer(model, optimizer));
  for (const VariableGradient& each : gradients) {
    if (each.gradient.any() && each.share == 0) DTG_TRY(check_shares(optimizer, each.variable));
  }
  return Updates(model, optimizer, stages, first).run(gradients);
}

namespace {

// The nodes that fail where a loss is no finite number, each on the device of its loss.
Result<std::vector<NodeId>> check_losses(Model& model, const TrainingWay& way, Value step) {
  Build build(model.graph());
  std::vector<NodeId> checked;
  for (size_t i = 0; i < way.losses.size(); ++i) {
    const ColocationScope beside(model.graph(), way.losses[i].node());
    const Value inputs[] = {way.losses[i], step};
    const std::string tower = std::to_string(way.number + static_cast<int64_t>(i));
    const Attr who{"who", way.number < 0 ? std::string() : " of tower " + tower};
    checked.push_back(build.node("_CheckFinite", inputs, {&who, 1}, way.number < 0 ? "check_loss" : "check_loss_" + std::to_string(i)));
  }
  DTG_TRY(build.status());
  return checked;
}

}  // namespace

Result<Training> make_training(Model& model, const Optimizer& optimizer, const TrainingWay& way) {
  DTG_TRY(check_optimizer(model, optimizer));
  for (const Value loss : way.losses) DTG_TRY(check_loss(model, way.what, loss));
  const NameScope scope(model.graph(), "train");
  Training training;
  Optimizer with_rate = optimizer;
  Build build(model.graph());
  if (!with_rate.learning_rate.valid()) with_rate.learning_rate = build.scalar(DType::f32, optimizer.rate, "learning_rate");
  DTG_TRY(build.status());
  training.learning_rate = with_rate.learning_rate;
  std::vector<std::vector<VariableGradient>> towers;
  for (size_t i = 0; i < way.losses.size(); ++i) {
    DTG_ASSIGN(towers.emplace_back(), way.local(i));
  }
  DTG_ASSIGN(const NamedVariable step, model.global_step());
  training.global_step = step.read;
  std::vector<NodeId> checked;
  if (optimizer.check_loss) {
    DTG_ASSIGN(checked, check_losses(model, way, step.read));
  }
  training.gradients = towers[0];
  if (way.combine) DTG_TRY(way.combine(towers, &checked, &training.gradients));
  std::vector<VariableGradient> measured = training.gradients;
  DTG_TRY(clip_gradients(model, optimizer, training.gradients, &training.gradient_norm));
  // The norm merges rows; what is fetched for a chart must not change what is applied.
  if (!training.gradient_norm.valid()) {
    DTG_ASSIGN(training.gradient_norm, global_norm(model, measured));
  }
  DTG_ASSIGN(training.train, apply_gradients(model, with_rate, training.gradients, nullptr, checked));
  return training;
}

Result<Training> minimize(Model& model, Value loss, const Optimizer& optimizer) {
  return make_training(model, optimizer,
                       {.losses = {&loss, 1}, .local = [&](size_t) { return compute_gradients(model, loss, 0, optimizer.variables); }});
}

}  // namespace dtg
