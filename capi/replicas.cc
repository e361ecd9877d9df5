// dtg/replicas.h: adds one worker's share of replicated training, begins towers, and waits until another task has given
// the variables their values. One thread at a time uses a model.
#include "dtg/replicas.h"

#include <algorithm>

#include "capi/guard.h"
#include "capi/model.h"
#include "session/completion_queue.h"
#include "session/session.h"
#include "strategy/replicas.h"
#include "strategy/towers.h"

namespace dtg::capi {
namespace {

static_assert(static_cast<int>(SyncMode::strict) == DTG_SYNC_STRICT && static_cast<int>(SyncMode::replicas) == DTG_SYNC_REPLICAS);

Result<Replication> read_replication(const dtg_replication* given) {
  dtg_replication c = DTG_REPLICATION_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_replication), "dtg_replication", &c));
  return Replication{static_cast<SyncMode>(c.mode), c.worker, c.total == 0 ? 1 : c.total, c.to_aggregate};
}

// Holds the model, reads what all replicated training is given, lets fn add the share, answers it.
template <class Fn>
dtg_error* replicate(dtg_model* model, const dtg_optimizer* optimizer, const dtg_replication* replication, dtg_replicated* out, Fn&& fn) {
  return guard([&]() -> Status {
    const Held<ModelObject> held(model, HandleType::model);
    DTG_TRY(held.status());
    dtg_replicated answer = DTG_REPLICATED_INIT;
    DTG_TRY(read_struct(out, sizeof(dtg_replicated), "dtg_replicated", &answer));
    DTG_ASSIGN(const Optimizer settings, read_optimizer(optimizer));
    DTG_ASSIGN(const Replication share, read_replication(replication));
    Replicated added;
    DTG_TRY(all_or_nothing(*held->model, [&]() -> Status {
      DTG_ASSIGN(added, fn(*held->model, settings, share));
      return {};
    }));
    const auto target = [&](NodeId node) { return node == kNoNode ? dtg_value{} : to_c(held->model->graph().value(node)); };
    answer.train = target(added.train);
    answer.local_init = target(added.local_init);
    answer.chief_init = target(added.chief_init);
    answer.resume = target(added.resume);
    answer.update = target(added.update);
    answer.global_step = to_c(added.global_step);
    answer.local_step = to_c(added.local_step);
    answer.next_step = to_c(added.next_step);
    answer.learning_rate = to_c(added.learning_rate);
    answer.gradient_norm = to_c(added.gradient_norm);
    write_struct(answer, out);
    return {};
  });
}

// --- waiting ---

constexpr int64_t kReadyDefaultNs = int64_t{600} * 1'000'000'000;
constexpr int64_t kFirstPauseNs = 2'000'000, kLastPauseNs = 100'000'000;
constexpr size_t kNamed = 8;  // variables a message lists

// The names of variables without a value, those beyond the first few counted only; empty when all are ready.
Result<std::string> unready(const Model& model, Session& session, std::span<const Value> flags, int64_t timeout_ns) {
  std::vector<Tensor> fetched(flags.size());
  DTG_TRY(session.run({.feeds = {}, .feed_tensors = {}, .fetches = flags, .targets = {}, .timeout_ns = timeout_ns}, fetched));
  std::string names;
  size_t count = 0;
  for (size_t i = 0; i < flags.size(); ++i) {
    if (fetched[i].values<bool>()[0]) continue;
    if (++count <= kNamed) names += (names.empty() ? "\"" : ", \"") + model.variables()[i].name + "\"";
  }
  if (count > kNamed) names += format(" and %zu more", count - kNamed);
  return names;
}

Status wait_ready(Model& model, Session& session, int64_t timeout_ns) {
  DTG_ASSIGN(const std::vector<Value> flags, ready_flags(model));
  if (flags.empty()) return {};
  const Clock& clock = system_clock();
  const Deadline deadline = Deadline::after(clock, timeout_ns == 0 ? kReadyDefaultNs : timeout_ns);
  DTG_ASSIGN(const Ref<CompletionQueue> pause, CompletionQueue::create());
  std::string missing = "all of them, as far as is known";
  for (int64_t pause_ns = kFirstPauseNs;; pause_ns = std::min(2 * pause_ns, kLastPauseNs)) {
    auto names = unready(model, session, flags, std::max<int64_t>(1, deadline.left_ns(clock)));
    // A run that the deadline ended says nothing new.
    if (!names.ok() && !(names.status().code() == Code::deadline_exceeded && deadline.passed(clock))) return names.status();
    if (names.ok() && names.value().empty()) return {};
    if (names.ok()) missing = names.take();
    if (deadline.passed(clock)) {
      return deadline_exceeded("wait for the variables of the model (%zu): without a value are %s; does the chief run, and has it "
                               "initialised them (dtg_model_init)?",
                               flags.size(), missing.c_str());
    }
    // Nothing arrives here; it is a wait with an end.
    CompletionQueue::Event none;
    (void)pause->next({&none, 1}, clock, Deadline{std::min(deadline.at_ns, clock.monotonic_ns() + pause_ns)});
  }
}

}  // namespace
}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_nn_minimize_replicated(dtg_model* model, dtg_value loss, const dtg_optimizer* optimizer, const dtg_replication* replication,
                                      dtg_replicated* out) noexcept {
  return replicate(model, optimizer, replication, out, [&](Model& m, const Optimizer& settings, const Replication& share) {
    return minimize_replicated(m, value_of(loss), settings, share);
  });
}

dtg_error* dtg_nn_apply_replicated(dtg_model* model, const dtg_value* handles, const dtg_gradient* gradients, size_t num_gradients,
                                   const dtg_optimizer* optimizer, const dtg_replication* replication, dtg_replicated* out) noexcept {
  return replicate(model, optimizer, replication, out,
                   [&](Model& m, const Optimizer& settings, const Replication& share) -> Result<Replicated> {
                     DTG_TRY(require_array(handles, num_gradients, "handles"));
                     DTG_TRY(require_array(gradients, num_gradients, "gradients"));
                     std::vector<VariableGradient> list;
                     for (size_t i = 0; i < num_gradients; ++i) {
                       DTG_ASSIGN(VariableGradient each, read_gradient(m, handles[i], gradients[i]));
                       list.push_back(std::move(each));
                     }
                     return apply_replicated(m, list, settings, share);
                   });
}

dtg_error* dtg_model_next_tower(dtg_model* model) noexcept {
  return guard([&]() -> Status {
    const Held<ModelObject> held(model, HandleType::model);
    DTG_TRY(held.status());
    held->model->next_tower();
    return {};
  });
}

dtg_error* dtg_nn_minimize_towers(dtg_model* model, const dtg_value* losses, size_t num_losses, const dtg_optimizer* optimizer,
                                  dtg_training* out) noexcept {
  return guard([&]() -> Status {
    const Held<ModelObject> held(model, HandleType::model);
    DTG_TRY(held.status());
    DTG_TRY(require_array(losses, num_losses, "losses"));
    return answer_training(*held->model, optimizer, out, [&](Model& m, const Optimizer& settings) {
      std::vector<Value> list;
      for (size_t i = 0; i < num_losses; ++i) list.push_back(value_of(losses[i]));
      return minimize_towers(m, list, settings);
    });
  });
}

dtg_error* dtg_model_wait_ready(dtg_model* model, dtg_session* session, int64_t timeout_ns) noexcept {
  return guard([&]() -> Status {
    const Held<ModelObject> held(model, HandleType::model);
    DTG_TRY(held.status());
    const Held<Session> running(session, HandleType::session);
    DTG_TRY(running.status());
    if (timeout_ns < 0)
      return invalid_argument("wait for variables: the timeout is %lld ns; give a positive one, or 0 for 10 minutes",
                              static_cast<long long>(timeout_ns));
    return wait_ready(*held->model, *running, timeout_ns);
  });
}

}  // extern "C"
