// ModelObject: the model behind a dtg_model, owned by its handle. Shared by nn.cc and replicas.cc, which build, and
// model.cc, which keeps variables and files. One thread at a time uses it.
#pragma once

#include <cstring>

#include "capi/guard.h"
#include "capi/objects.h"
#include "dtg/nn.h"
#include "nn/optimizer.h"

namespace dtg::capi {

// Keeps the graph's handle object too: it holds the runtime whose op table the graph uses.
class ModelObject final : public RefCounted {
 public:
  ModelObject(Ref<GraphObject> g, Ref<Model> m) : graph(std::move(g)), model(std::move(m)) {}
  const Ref<GraphObject> graph;
  const Ref<Model> model;
};

// The model as it was, unless fn succeeds.
template <class Fn>
Status all_or_nothing(Model& model, Fn&& fn) {
  const size_t before = model.variables().size();
  const Status status = fn();
  if (!status.ok()) model.forget_beyond(before);
  return status;
}

// What the host says about an optimizer, NULL for SGD, and about the gradient of a variable of this model.
Result<Optimizer> read_optimizer(const dtg_optimizer* given);
Result<VariableGradient> read_gradient(const Model& model, dtg_value handle, const dtg_gradient& given);

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
