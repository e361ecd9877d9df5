// dtg/replicas.h: adds one worker's share of replicated training, begins towers, waits until another task has given the variables
// their values, and goes on after a loss. One thread at a time uses a model.
#include "dtg/replicas.h"

#include "capi/data.h"
#include "capi/guard.h"
#include "capi/model.h"
#include "session/recover.h"
#include "strategy/all_reduce.h"
#include "strategy/towers.h"

namespace dtg::capi {
namespace {

static_assert(static_cast<int>(SyncMode::strict) == DTG_SYNC_STRICT && static_cast<int>(SyncMode::replicas) == DTG_SYNC_REPLICAS &&
              static_cast<int>(SyncMode::ssp) == DTG_SYNC_SSP && static_cast<int>(SyncMode::elastic) == DTG_SYNC_ELASTIC);

// Holds the model, reads what all replicated training is given, lets fn add the share, answers it.
template <class Fn>
dtg_error* replicate(dtg_model* model, const dtg_optimizer* optimizer, const dtg_replication* replication, dtg_replicated* out, Fn&& fn) {
  return with_model(model, Owner::Use::change, [&](ModelObject& object) -> Status {
    dtg_replicated answer = DTG_REPLICATED_INIT;
    DTG_TRY(read_struct(out, sizeof(dtg_replicated), "dtg_replicated", &answer));
    DTG_ASSIGN(const Optimizer settings, read_optimizer(optimizer));
    DTG_ASSIGN(const Replication share, read_replication(replication));
    // Steps, tokens and notes are the model's, once.
    if (object.replicated && share.mode != SyncMode::async && !settings.variables.empty()) {
      return unimplemented("replicate: the model is trained by several workers already; two trainings of one model, each of its own "
                           "variables, need the asynchronous mode");
    }
    Replicated added;
    DTG_TRY(all_or_nothing(*object.model, [&]() -> Status {
      DTG_ASSIGN(added, fn(*object.model, settings, share));
      return {};
    }));
    object.replicated = added;
    fill_replicated(object.model->graph(), added, answer);
    write_struct(answer, out);
    return {};
  });
}

constexpr int64_t kWaitDefaultNs = int64_t{600} * 1'000'000'000;

// Asks in a run of its own; what it was given, the next step brings.
Result<DealtElement> ask_for_element(Session& session, const Replicated& added, int64_t epoch, int64_t timeout_ns) {
  DTG_ASSIGN(const Tensor wanted, Tensor::scalar<int64_t>(epoch));
  const Tensor* const feeds = &wanted;
  std::vector<Tensor> given(1);
  DTG_TRY(session
              .run({.feeds = {&added.epoch_to_deal, 1},
                    .feed_tensors = {&feeds, 1},
                    .fetches = {&added.dealt, 1},
                    .targets = {&added.deal, 1},
                    .timeout_ns = timeout_ns},
                   given)
              .with_context("ask for an element"));
  return DealtElement{given[0].values<int64_t>()[0], given[0].values<int64_t>()[1]};
}

Status check_deal(const ModelObject& model, const DatasetObject& data, int64_t timeout_ns) {
  if (!model.replicated || model.replicated->deal == kNoNode) {
    return failed_precondition("deal a data set: the model's training deals none; say in its replication how many elements the data set "
                               "has, with the elastic mode");
  }
  if (timeout_ns < 0) return invalid_argument("deal a data set: the timeout is negative; give a positive one, or 0 for 10 minutes");
  const int64_t dealt = model.replicated->elements, there = data.reading.data().cardinality();
  if (dealt == there) return {};
  return invalid_argument("deal a data set: by the replication an epoch has %lld elements, the data set has %lld; say its cardinality on "
                          "every worker",
                          static_cast<long long>(dealt), static_cast<long long>(there));
}

// Holds both, checks the time, and lets fn wait.
template <class Fn>
dtg_error* wait_for(dtg_model* model, dtg_session* session, int64_t timeout_ns, const char* what, Fn&& fn) {
  return with_model(model, Owner::Use::change, [&](ModelObject& object) -> Status {
    const Held<Session> running(session, HandleType::session);
    DTG_TRY(running.status());
    if (timeout_ns < 0) {
      return invalid_argument("%s: the timeout is %g s; give a positive one, or 0 for 10 minutes", what,
                              static_cast<double>(timeout_ns) * 1e-9);
    }
    return fn(object, *running, Deadline::after(system_clock(), timeout_ns == 0 ? kWaitDefaultNs : timeout_ns));
  });
}

}  // namespace

Result<Replication> read_replication(const dtg_replication* given) {
  dtg_replication c = DTG_REPLICATION_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_replication), "dtg_replication", &c));
  return Replication{
      static_cast<SyncMode>(c.mode), c.worker, c.total == 0 ? 1 : c.total, c.to_aggregate, c.staleness, c.min_workers, c.elements};
}

void fill_replicated(const Graph& graph, const Replicated& added, dtg_replicated& answer) {
  const auto target = [&](NodeId node) { return node == kNoNode ? dtg_value{} : to_c(graph.value(node)); };
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
  answer.leave = target(added.leave);
  if (added.members.valid()) answer.members = to_c(added.members);
  if (added.clock.valid()) answer.clock = to_c(added.clock);
}

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
                     DTG_ASSIGN(const std::vector<VariableGradient> list, read_gradients(m, handles, gradients, num_gradients));
                     return apply_replicated(m, list, settings, share);
                   });
}

dtg_error* dtg_model_next_tower(dtg_model* model) noexcept {
  return with_model(model, Owner::Use::change, [&](ModelObject& object) -> Status {
    object.model->next_tower();
    return {};
  });
}

dtg_error* dtg_nn_minimize_towers(dtg_model* model, const dtg_value* losses, size_t num_losses, const dtg_optimizer* optimizer,
                                  dtg_training* out) noexcept {
  return with_model(model, Owner::Use::change, [&](ModelObject& object) -> Status {
    DTG_TRY(require_array(losses, num_losses, "losses"));
    return answer_training(*object.model, optimizer, out, [&](Model& m, const Optimizer& settings) {
      std::vector<Value> list;
      for (size_t i = 0; i < num_losses; ++i) list.push_back(value_of(losses[i]));
      return minimize_towers(m, list, settings);
    });
  });
}

dtg_error* dtg_nn_minimize_all_reduce(dtg_model* model, dtg_value loss, const dtg_optimizer* optimizer, const dtg_all_reduce* how,
                                      dtg_training* out) noexcept {
  return with_model(model, Owner::Use::change, [&](ModelObject& object) -> Status {
    dtg_all_reduce given = DTG_ALL_REDUCE_INIT;
    DTG_TRY(require(how, "how"));
    DTG_TRY(read_struct(how, sizeof(dtg_all_reduce), "dtg_all_reduce", &given));
    AllReduce wanted;
    if (given.group_key != 0) wanted.group_key = given.group_key;
    if (given.first_instance != 0) wanted.first_instance = given.first_instance;
    if (given.pack_bytes != 0) wanted.pack_bytes = given.pack_bytes;
    wanted.group_size = given.group_size;
    wanted.timeout_seconds = static_cast<double>(given.timeout_ns) * 1e-9;
    return answer_training(*object.model, optimizer, out,
                           [&](Model& m, const Optimizer& settings) { return minimize_all_reduce(m, value_of(loss), settings, wanted); });
  });
}

dtg_error* dtg_dataset_deal(dtg_dataset* dataset, dtg_model* model, dtg_session* session, int64_t timeout_ns) noexcept {
  return with_dataset(dataset, [&](DatasetObject& data) -> Status {
    const Held<ModelObject> held(model, HandleType::model);
    DTG_TRY(held.status());
    DTG_TRY(check_outermost(*held));
    const Owner::Turn turn(held->owner, Owner::Use::read);
    DTG_TRY(turn.status("model"));
    const Held<Session> running(session, HandleType::session);
    DTG_TRY(running.status());
    DTG_TRY(check_session(*held, *running, "deal a data set"));
    DTG_TRY(check_deal(*held, data, timeout_ns));
    DTG_ASSIGN(const DataPosition at, data.reading.position());
    if (at.elements > 0) return failed_precondition("deal a data set: elements have been taken from it; restart it first");
    const int64_t wait_ns = timeout_ns == 0 ? kWaitDefaultNs : timeout_ns;
    auto asks = [asked = Ref<Session>::share(running.get()), added = *held->replicated, wait_ns](int64_t epoch) {
      return ask_for_element(*asked, added, epoch, wait_ns);
    };
    auto longer = make_dealt(data.reading.take(), std::move(asks), running->driver().task().name());
    if (!longer.ok()) return data.give_up(longer.status());
    data.dealt = longer.value().get();
    data.reading.put(longer.take());
    return {};
  });
}

dtg_error* dtg_dataset_dealt(const dtg_dataset* dataset, int64_t* epoch, int64_t* element) noexcept {
  return look_at_dataset(dataset, [&](const DatasetObject& data) -> Status {
    if (!data.dealt) return failed_precondition("which element was dealt: the data set is not dealt; deal it first");
    const DealtElement last = data.dealt->last();
    if (epoch) *epoch = last.epoch;
    if (element) *element = last.index;
    return {};
  });
}

dtg_error* dtg_model_wait_ready(dtg_model* model, dtg_session* session, int64_t timeout_ns) noexcept {
  return wait_for(model, session, timeout_ns, "wait for variables", [](const ModelObject& held, Session& running, Deadline deadline) {
    return wait_ready(*held.model, running, system_clock(), deadline);
  });
}

dtg_error* dtg_model_recover(dtg_model* model, dtg_session* session, int64_t timeout_ns) noexcept {
  return wait_for(model, session, timeout_ns, "recover", [](const ModelObject& held, Session& running, Deadline deadline) -> Status {
    if (!held.replicated) {
      return failed_precondition("recover: the model is not trained by several workers; ask dtg_nn_minimize_replicated first");
    }
    return recover(*held.model, *held.replicated, running, system_clock(), deadline);
  });
}

}  // extern "C"
