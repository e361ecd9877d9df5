// dtg/optimizers.h: optimizers, training steps and schedules. Each function reads its struct, fills in the defaults and calls its namesake
// in internal/nn. One thread at a time uses a model.
#include "dtg/optimizers.h"

#include <algorithm>

#include "capi/guard.h"
#include "capi/model.h"
#include "capi/nn.h"
#include "nn/optimizer.h"
#include "nn/schedule.h"

namespace dtg::capi {
namespace {

// What was given in place of a handle, if it is the value that one reads a variable by.
std::string read_of(const Model& model, Value given) {
  for (const NamedVariable& variable : model.variables()) {
    if (given == variable.read) return ": it is what reads \"" + variable.name + "\"; give the `handle` of its dtg_variable";
  }
  return "; give the `handle` of its dtg_variable (dtg_model_variable)";
}

Result<VariableGradient> read_gradient(const Model& model, dtg_value handle, const dtg_gradient& given, size_t i) {
  for (const NamedVariable& variable : model.variables()) {
    if (!variable.has_handle(value_of(handle))) continue;
    return VariableGradient{variable,
                            {value_of(given.dense), value_of(given.values), value_of(given.indices), value_of(given.dense_shape)}};
  }
  return invalid_argument("apply gradients: handles[%zu] is no variable of this model%s", i, read_of(model, value_of(handle)).c_str());
}

// Numbers of what is not asked for, and two rates.
Status check_pairs(const dtg_optimizer& c) {
  struct Number {
    const char* name;
    double value;
    const char* needs;
    bool there;
  };
  const Number numbers[] = {{"ema_momentum", c.ema_momentum, "use_ema", c.use_ema != 0},
                            {"ema_overwrite_every", static_cast<double>(c.ema_overwrite_every), "use_ema", c.use_ema != 0},
                            {"lookahead_share", c.lookahead_share, "lookahead_steps", c.lookahead_steps != 0}};
  for (const Number& each : numbers) {
    if (each.value == 0 || each.there) continue;
    return invalid_argument("optimizer: %s is %g and would do nothing without %s; set that too, or leave it out", each.name, each.value,
                            each.needs);
  }
  if (c.rate == 0 || c.learning_rate.id == 0) return {};
  return invalid_argument("optimizer: rate is %g and would do nothing beside learning_rate, a value of the graph; leave one of them out",
                          c.rate);
}

// What would do nothing was meant to do something, as momentum of an optimizer that has none.
Status check_used(const dtg_optimizer& c, Optimizer::Kind kind) {
  using Kind = Optimizer::Kind;
  const auto is = [&](auto... kinds) { return ((kind == kinds) || ...); };
  struct Number {
    const char* name;
    double value;
    bool used;
    const char* whose;
  };
  const Number numbers[] = {
      {"momentum", c.momentum, is(Kind::momentum, Kind::rms_prop, Kind::lars), "DTG_OPT_MOMENTUM, DTG_OPT_RMSPROP and DTG_OPT_LARS"},
      {"nesterov", static_cast<double>(c.nesterov), is(Kind::momentum, Kind::lars), "DTG_OPT_MOMENTUM and DTG_OPT_LARS"},
      {"amsgrad", static_cast<double>(c.amsgrad), is(Kind::adam, Kind::adam_w), "DTG_OPT_ADAM and DTG_OPT_ADAMW"},
      {"lazy", static_cast<double>(c.lazy), is(Kind::adam, Kind::adam_w), "DTG_OPT_ADAM and DTG_OPT_ADAMW"},
      {"centered", static_cast<double>(c.centered), is(Kind::rms_prop), "DTG_OPT_RMSPROP"},
      {"l1", c.l1, is(Kind::ftrl), "DTG_OPT_FTRL"},
      {"l2", c.l2, is(Kind::ftrl), "DTG_OPT_FTRL; of others weight_decay is the like"},
      {"l2_shrinkage", c.l2_shrinkage, is(Kind::ftrl), "DTG_OPT_FTRL"},
      {"ftrl_beta", c.ftrl_beta, is(Kind::ftrl), "DTG_OPT_FTRL"},
      {"rate_power", c.rate_power, is(Kind::ftrl), "DTG_OPT_FTRL"},
      {"trust", c.trust, is(Kind::lars), "DTG_OPT_LARS"},
      {"epsilon2", c.epsilon2, is(Kind::adafactor), "DTG_OPT_ADAFACTOR"},
      {"clip_threshold", c.clip_threshold, is(Kind::adafactor), "DTG_OPT_ADAFACTOR"},
      {"initial_accumulator", c.initial_accumulator, is(Kind::adagrad, Kind::ftrl), "DTG_OPT_ADAGRAD and DTG_OPT_FTRL"},
  };
  for (const Number& each : numbers) {
    if (each.value == 0 || each.used) continue;
    return invalid_argument("optimizer %s: %s is %g and would do nothing: it is of %s; take such a kind, or leave it out",
                            Optimizer::name_of(kind), each.name, each.value, each.whose);
  }
  return check_pairs(c);
}

// These stand around an update of given gradients.
Status check_unclipped(const Optimizer& optimizer) {
  const std::pair<const char*, double> limits[] = {
      {"clip_norm", optimizer.clip_norm}, {"clip_each_norm", optimizer.clip_each_norm}, {"clip_value", optimizer.clip_value}};
  for (const auto& [name, limit] : limits) {
    if (limit == 0) continue;
    return invalid_argument(
        "apply gradients: %s is %g and would do nothing: gradients are applied as they are given; clip them before, or let "
        "dtg_nn_minimize do it",
        name, limit);
  }
  return {};
}

std::vector<Value> values_of(const dtg_value* given, size_t count) {
  std::vector<Value> values;
  for (size_t i = 0; i < count; ++i) values.push_back(value_of(given[i]));
  return values;
}

// Words with commas between them, blanks around them left out.
std::vector<std::string> words_of(std::string_view list) {
  std::vector<std::string> words;
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    std::string_view word = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

// What stands around the rule: what is exempt, what is trained, means, accumulation.
Status read_surroundings(const dtg_optimizer& c, Optimizer* optimizer) {
  DTG_TRY(require_array(c.undecayed, c.num_undecayed, "undecayed"));
  DTG_TRY(require_array(c.variables, c.num_variables, "variables"));
  if (c.variables && c.num_variables == 0)
    return invalid_argument("dtg_optimizer: `variables` is given with 0 of them; list what is to be trained, or give NULL for all");
  optimizer->undecayed = values_of(c.undecayed, c.num_undecayed);
  optimizer->variables = values_of(c.variables, c.num_variables);
  optimizer->undecayed_names = words_of(text(c.undecayed_names, c.undecayed_names_len));
  optimizer->use_ema = c.use_ema != 0;
  optimizer->ema_momentum = real_or(c.ema_momentum, optimizer->ema_momentum);
  optimizer->ema_overwrite_every = c.ema_overwrite_every;
  optimizer->accumulation_steps = number_or(c.accumulation_steps, 1);
  optimizer->lookahead_steps = c.lookahead_steps;
  optimizer->lookahead_share = real_or(c.lookahead_share, optimizer->lookahead_share);
  return {};
}

Result<Schedule> read_schedule(const dtg_schedule* given) {
  dtg_schedule c = DTG_SCHEDULE_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_schedule), "dtg_schedule", &c));
  Schedule s;
  DTG_ASSIGN(s.kind, read_enum(c.kind, Schedule::Kind::cosine_decay_restarts, "kind of schedule"));
  s.staircase = c.staircase != 0;
  s.cycle = c.cycle != 0;
  s.warms_up = c.warms_up != 0;
  s.rate = c.rate;
  s.steps = c.steps;
  s.decay_rate = c.decay_rate;
  s.end_rate = c.end_rate;
  s.power = real_or(c.power, s.power);
  s.alpha = c.alpha;
  s.warmup_target = c.warmup_target;
  s.warmup_steps = c.warmup_steps;
  s.t_mul = real_or(c.t_mul, s.t_mul);
  s.m_mul = real_or(c.m_mul, s.m_mul);
  if (s.kind != Schedule::Kind::piecewise_constant) return s;
  DTG_TRY(require_array(c.boundaries, c.num_boundaries, "boundaries"));
  DTG_TRY(require(c.values, "values"));
  s.boundaries.assign(c.boundaries, c.boundaries + c.num_boundaries);
  s.values.assign(c.values, c.values + c.num_boundaries + 1);
  return s;
}

static_assert(static_cast<int>(Optimizer::Kind::adafactor) == DTG_OPT_ADAFACTOR && static_cast<int>(Optimizer::Kind::ftrl) == DTG_OPT_FTRL);
static_assert(static_cast<int>(Schedule::Kind::cosine_decay_restarts) == DTG_SCHEDULE_COSINE_DECAY_RESTARTS);

}  // namespace

Result<Optimizer> read_optimizer(const dtg_optimizer* given) {
  dtg_optimizer c = DTG_OPTIMIZER_INIT;
  if (given) DTG_TRY(read_struct(given, sizeof(dtg_optimizer), "dtg_optimizer", &c));
  DTG_ASSIGN(const Optimizer::Kind kind, read_enum(c.kind, Optimizer::Kind::adafactor, "kind of optimizer"));
  DTG_TRY(check_used(c, kind));
  Optimizer optimizer = Optimizer::of(kind);
  optimizer.nesterov = c.nesterov != 0;
  optimizer.learning_rate = value_of(c.learning_rate);
  optimizer.rate = real_or(c.rate, optimizer.rate);
  optimizer.momentum = c.momentum;
  optimizer.beta1 = real_or(c.beta1, optimizer.beta1);
  optimizer.beta2 = real_or(c.beta2, optimizer.beta2);
  optimizer.epsilon = real_or(c.epsilon, optimizer.epsilon);
  optimizer.decay = real_or(c.decay, optimizer.decay);
  optimizer.initial_accumulator = real_or(c.initial_accumulator, optimizer.initial_accumulator);
  optimizer.lazy = c.lazy != 0;
  optimizer.weight_decay = real_or(c.weight_decay, optimizer.weight_decay);
  optimizer.clip_norm = c.clip_norm;
  optimizer.check_loss = c.unchecked_loss == 0;
  optimizer.amsgrad = c.amsgrad != 0;
  optimizer.centered = c.centered != 0;
  optimizer.l1 = c.l1;
  optimizer.l2 = c.l2;
  optimizer.l2_shrinkage = c.l2_shrinkage;
  optimizer.ftrl_beta = c.ftrl_beta;
  optimizer.rate_power = real_or(c.rate_power, optimizer.rate_power);
  optimizer.trust = real_or(c.trust, optimizer.trust);
  optimizer.epsilon2 = real_or(c.epsilon2, optimizer.epsilon2);
  optimizer.clip_threshold = real_or(c.clip_threshold, optimizer.clip_threshold);
  optimizer.clip_value = c.clip_value;
  optimizer.clip_each_norm = c.clip_each_norm;
  DTG_TRY(read_surroundings(c, &optimizer));
  return optimizer;
}

Result<std::vector<VariableGradient>> read_gradients(Model& model, const dtg_value* handles, const dtg_gradient* gradients, size_t count) {
  DTG_TRY(require_array(handles, count, "handles"));
  DTG_TRY(require_array(gradients, count, "gradients"));
  if (count == 0) {
    return invalid_argument(
        "apply gradients: there are none; give the handle and the gradient, of a loss, of each variable that is to move");
  }
  std::vector<VariableGradient> list;
  for (size_t i = 0; i < count; ++i) {
    DTG_ASSIGN(VariableGradient each, read_gradient(model, handles[i], gradients[i], i));
    const auto is_same = [&](const VariableGradient& other) { return other.variable.handle == each.variable.handle; };
    if (const auto same = std::ranges::find_if(list, is_same); same != list.end())
      return invalid_argument(
          "apply gradients: handles[%zu] and handles[%zu] are one variable, \"%s\", which would be moved twice; add up its "
          "gradients, or leave one out",
          static_cast<size_t>(same - list.begin()), i, each.variable.name.c_str());
    list.push_back(std::move(each));
  }
  DTG_TRY(add_following(model, 0, &list));
  return list;
}

}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_nn_minimize(dtg_model* model, dtg_value loss, const dtg_optimizer* optimizer, dtg_training* out) noexcept {
  return with_model(model, Owner::Use::change, [&](ModelObject& object) -> Status {
    return answer_training(*object.model, optimizer, out,
                           [&](Model& m, const Optimizer& settings) { return minimize(m, value_of(loss), settings); });
  });
}

dtg_error* dtg_nn_apply_gradients(dtg_model* model, const dtg_optimizer* optimizer, const dtg_value* handles, const dtg_gradient* gradients,
                                  size_t num_gradients, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](ModelObject& object) -> Result<Value> {
    DTG_TRY(check_outermost(object));
    Model& m = *object.model;
    DTG_ASSIGN(Optimizer settings, read_optimizer(optimizer));
    DTG_TRY(check_unclipped(settings));
    DTG_ASSIGN(const std::vector<VariableGradient> list, read_gradients(m, handles, gradients, num_gradients));
    DTG_ASSIGN(const NodeId train, apply_gradients(m, settings, list));
    return m.graph().value(train);
  });
}

dtg_error* dtg_nn_exponential_decay(dtg_model* model, dtg_value step, double rate, double every, double factor, int32_t staircase,
                                    dtg_value* out) noexcept {
  return value_of_model(model, out,
                        [&](Model& m) { return exponential_decay(m.graph(), here(m, step), rate, every, factor, staircase != 0); });
}

dtg_error* dtg_nn_cosine_decay(dtg_model* model, dtg_value step, double rate, double steps, double floor, double warmup,
                               dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return cosine_decay(m.graph(), here(m, step), rate, steps, floor, warmup); });
}

dtg_error* dtg_nn_schedule(dtg_model* model, dtg_value step, const dtg_schedule* schedule, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) -> Result<Value> {
    DTG_ASSIGN(const Schedule given, read_schedule(schedule));
    return add_schedule(m.graph(), here(m, step), given);
  });
}

}  // extern "C"
