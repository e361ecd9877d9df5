// ModelObject: the model behind a dtg_model, owned by its handle. Shared by nn.cc and replicas.cc, which build, and
// model.cc, which keeps variables and files. One thread at a time uses it.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capi/guard.h"
#include "capi/objects.h"
#include "dtg/nn.h"
#include "dtg/replicas.h"
#include "session/saved_model.h"
#include "strategy/replicas.h"

namespace dtg::capi {

// Keeps the graph's handle object too: it holds the runtime whose op table the graph uses.
class ModelObject final : public RefCounted {
 public:
  ModelObject(Ref<GraphObject> g, Ref<Model> m) : graph(std::move(g)), model(std::move(m)) {}
  const Ref<GraphObject> graph;
  const Ref<Model> model;
  // What the host keeps with the weights: it is saved with them, and comes back with them.
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<Endpoint> endpoints;       // of a model that was loaded
  std::vector<Endpoint> trained;         // of the trainer that was made last, as a fit exports it
  std::optional<Replicated> replicated;  // by the last dtg_nn_minimize_replicated
  Owner owner;
};

// fn(object) on an open model that no other thread is inside of, nor inside of its graph where fn changes them.
template <class Fn>
Status use_model(const dtg_model* handle, Owner::Use use, Fn&& fn) {
  const Held<ModelObject> held(handle, HandleType::model);
  DTG_TRY(held.status());
  const Owner::Turn turn(held->owner, use);
  DTG_TRY(turn.status("model"));
  if (use == Owner::Use::read) return fn(*held);
  const Owner::Turn building(held->graph->owner, use);
  DTG_TRY(building.status("graph of the model"));
  return fn(*held);
}
template <class Fn>
dtg_error* with_model(const dtg_model* handle, Owner::Use use, Fn&& fn) noexcept {
  return guard([&] { return use_model(handle, use, fn); });
}

// The values of a model's variables are in sessions of its graph.
inline Status check_session(const ModelObject& object, const Session& session, const char* attempted) {
  if (&session.graph() == &object.model->graph()) return {};
  return invalid_argument("%s: the session runs another graph than the model's; give one that was connected to the graph of this model",
                          attempted);
}

// What the host keeps with the weights; a key that is there gets the new value.
inline void set_metadata(ModelObject& model, std::string_view key, std::string_view value) {
  const auto at = std::ranges::find(model.metadata, key, [](const auto& pair) -> std::string_view { return pair.first; });
  if (at != model.metadata.end()) at->second = value;
  else model.metadata.emplace_back(key, value);
}

// The model as it was, unless fn succeeds.
template <class Fn>
Status all_or_nothing(Model& model, Fn&& fn) {
  struct Undo {
    Model& model;
    const Model::Mark before = model.mark();
    const Graph::Trial trial = model.graph().begin_trial();
    bool done = false;
    ~Undo() {  // also where memory ran out
      model.graph().end_trial(trial, !done);
      if (!done) model.go_back(before, true);
    }
  } undo{model};
  const Status status = fn();
  undo.done = status.ok();
  return status;
}

// What the host says about an optimizer, NULL for SGD, and about the gradients of variables of this model; those of what follows the
// batches come with them.
Result<Optimizer> read_optimizer(const dtg_optimizer* given);
Result<std::vector<VariableGradient>> read_gradients(Model& model, const dtg_value* handles, const dtg_gradient* gradients, size_t count);

// The same about one worker's place among several, and what the host is told of its share; of a variable, all but struct_size.
Result<Replication> read_replication(const dtg_replication* given);
void fill_replicated(const Graph& graph, const Replicated& added, dtg_replicated& answer);
void fill_variable(const Model& model, const NamedVariable& variable, dtg_variable& answer);

// Answers a struct of the host as far as its size goes; read_struct has checked it.
template <class T>
void write_struct(const T& answer, T* out) {
  const size_t size = answer.struct_size < sizeof(T) ? answer.struct_size : sizeof(T);
  std::memcpy(static_cast<void*>(out), &answer, size);
}

// Adds training by `build(model, settings)` and tells the host what it got.
template <class Fn>
Status answer_training(Model& model, const dtg_optimizer* optimizer, dtg_training* out, Fn&& build) {
  dtg_training answer = DTG_TRAINING_INIT;
  DTG_TRY(read_struct(out, sizeof(dtg_training), "dtg_training", &answer));
  DTG_ASSIGN(const Optimizer settings, read_optimizer(optimizer));
  Training training;
  DTG_TRY(all_or_nothing(model, [&]() -> Status {
    DTG_ASSIGN(training, build(model, settings));
    return {};
  }));
  answer.train = to_c(model.graph().value(training.train));
  answer.global_step = to_c(training.global_step);
  answer.learning_rate = to_c(training.learning_rate);
  answer.gradient_norm = to_c(training.gradient_norm);
  write_struct(answer, out);
  return {};
}

}  // namespace dtg::capi
