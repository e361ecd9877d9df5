// dtg/optimizers.h: optimizers, training steps and schedules. Each function reads its struct, fills in the defaults and calls its namesake
// in internal/nn. One thread at a time uses a model.
#include "dtg/optimizers.h"

#include "capi/guard.h"
#include "capi/model.h"
#include "capi/nn.h"
#include "nn/optimizer.h"
#include "nn/schedule.h"

namespace dtg::capi {
namespace {

Result<VariableGradient> read_gradient(const Model& model, dtg_value handle, const dtg_gradient& given) {
  for (const NamedVariable& variable : model.variables()) {
    if (!variable.has_handle(value_of(handle))) continue;
    return VariableGradient{variable,
                            {value_of(given.dense), value_of(given.values), value_of(given.indices), value_of(given.dense_shape)}};
  }
  return invalid_argument("apply gradients: one of the handles is no variable of this model");
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
    DTG_ASSIGN(VariableGradient each, read_gradient(model, handles[i], gradients[i]));
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
  return value_of_model(model, out, [&](Model& m) -> Result<Value> {
    DTG_ASSIGN(Optimizer settings, read_optimizer(optimizer));
    settings.clip_norm = settings.clip_each_norm = settings.clip_value = 0;
    DTG_ASSIGN(const std::vector<VariableGradient> list, read_gradients(m, handles, gradients, num_gradients));
    DTG_ASSIGN(const NodeId train, apply_gradients(m, settings, list));
    return m.graph().value(train);
  });
}

dtg_error* dtg_nn_exponential_decay(dtg_model* model, dtg_value step, double rate, double every, double factor, int32_t staircase,
                                    dtg_value* out) noexcept {
  return value_of_model(model, out,
                        [&](Model& m) { return exponential_decay(m.graph(), value_of(step), rate, every, factor, staircase != 0); });
}

dtg_error* dtg_nn_cosine_decay(dtg_model* model, dtg_value step, double rate, double steps, double floor, double warmup,
                               dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return cosine_decay(m.graph(), value_of(step), rate, steps, floor, warmup); });
}

dtg_error* dtg_nn_schedule(dtg_model* model, dtg_value step, const dtg_schedule* schedule, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) -> Result<Value> {
    DTG_ASSIGN(const Schedule given, read_schedule(schedule));
    return add_schedule(m.graph(), value_of(step), given);
  });
}

}  // extern "C"
