// ModelObject: the model behind a dtg_model, owned by its handle. Shared by nn.cc and replicas.cc, which build, and
// model.cc, which keeps variables and files. One thread at a time uses it.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
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
  ModelObject(Ref<GraphObject> g, Ref<Model> m, Ref<ModelObject> a = nullptr)
      : graph(std::move(g)), model(std::move(m)), around(std::move(a)) {}
  const Ref<GraphObject> graph;
  const Ref<Model> model;
  const Ref<ModelObject> around;  // of a model inside of a body: whose layers those are; else null
  // What the host keeps with the weights: it is saved with them, and comes back with them.
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<Endpoint> endpoints;       // of a model that was loaded
  std::vector<Endpoint> trained;         // of the trainer that was made last, as a fit exports it
  std::optional<Replicated> replicated;  // by the last dtg_nn_minimize_replicated
  Owner owner;
};

// fn() while no other thread is inside of the model, nor of its graph where `use` changes them, nor of the models around it.
template <class Fn>
Status enter_model(ModelObject& model, Owner::Use use, Fn&& fn) {
  const Owner::Turn turn(model.owner, use);
  DTG_TRY(turn.status("model"));
  std::optional<Owner::Turn> building;
  if (use != Owner::Use::read) {
    building.emplace(model.graph->owner, use);
    DTG_TRY(building->status("graph of the model"));
  }
  if (!model.around) return fn();
  const std::function<Status()> rest = [&] { return fn(); };
  return enter_model(*model.around, use, rest);
}

// An error for a model inside of a body.
inline Status check_outermost(const ModelObject& model) {
  if (!model.around) return {};
  return failed_precondition("this is the model inside of the body of \"%s\", which is for layers and losses; give the model itself",
                             model.graph->graph->function_name().c_str());
}

// fn(object) on an open model.
template <class Fn>
Status use_model(const dtg_model* handle, Owner::Use use, Fn&& fn) {
  const Held<ModelObject> held(handle, HandleType::model);
  DTG_TRY(held.status());
  DTG_TRY(check_outermost(*held));
  return enter_model(*held, use, [&] { return fn(*held); });
}
template <class Fn>
dtg_error* with_model(const dtg_model* handle, Owner::Use use, Fn&& fn) noexcept {
  return guard([&] { return use_model(handle, use, fn); });
}

// The same for what a body may have, too: layers, losses and variables.
template <class Fn>
dtg_error* with_builder(const dtg_model* handle, Owner::Use use, Fn&& fn) noexcept {
  return guard([&]() -> Status {
    const Held<ModelObject> held(handle, HandleType::model);
    DTG_TRY(held.status());
    for (const Graph* body = held->graph->graph.get(); body && body->outer_tag() != 0; body = body->outer()) {
      if (body->is_closed())
        return failed_precondition("the model inside of the body of \"%s\": the function was ended", body->function_name().c_str());
    }
    return enter_model(*held, use, [&] { return fn(*held); });
  });
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

// The books of a model and the graphs that it adds to, as they were, unless what is tried succeeds.
class Trial {
 public:
  explicit Trial(Model& model) : books_(model.outermost()), before_(books_.mark()) {
    size_t depth = 0;
    for (const Graph* graph = &model.graph(); graph; graph = graph->outer()) ++depth;
    nodes_.reserve(depth);  // what fails, fails before anything was begun
    for (Graph* graph = &model.graph(); graph; graph = graph->outer()) nodes_.emplace_back(graph, graph->begin_trial());
  }
  ~Trial() {  // also where memory ran out
    for (const auto& [graph, trial] : nodes_) graph->end_trial(trial, !done_);
    if (!done_) books_.go_back(before_, true);
  }
  void succeed() { done_ = true; }

 private:
  Model& books_;
  const Model::Mark before_;
  std::vector<std::pair<Graph*, Graph::Trial>> nodes_;  // the innermost first
  bool done_ = false;
};

// The model as it was, and what is around it, unless fn succeeds.
template <class Fn>
Status all_or_nothing(Model& model, Fn&& fn) {
  Trial trial(model);
  const Status status = fn();
  if (status.ok()) trial.succeed();
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
