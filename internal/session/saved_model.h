// A model in one file, to be loaded where nobody knows how it was built: what of its graph leads from named inputs to named outputs, the
// values of the variables in it, and what the host keeps with them. The file is a safetensors file; the graph is one of its tensors.
// Functions over a model and a session; the thread that uses the model.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "nn/model.h"
#include "session/fit.h"
#include "session/session.h"

namespace dtg {

struct Endpoint {
  std::string name;
  Value value;  // an output may be a target: output 0 of its node
  bool input = false;
};

struct ModelExport {
  std::vector<Endpoint> endpoints;
  bool freeze = false;  // variables become constants
  // Placeholders that are no inputs, with the value that each is to have for good, such as the switch of training.
  std::vector<std::pair<Value, Tensor>> fixed = {};
};

// What the texts say of the classes of these outputs fits them; INVALID_ARGUMENT where it does not.
Status check_classes(const Graph& graph, const TextPairs& metadata, const std::vector<Endpoint>& endpoints);
// What they say of outputs that are none of these; "" where they say nothing of others.
std::string unknown_classes(const TextPairs& metadata, const std::vector<Endpoint>& endpoints);

// Would it be written? What export_model says, but for the session and the disk.
Status check_export(const Model& model, const ModelExport& what);

// Atomically, as write_tensors. FAILED_PRECONDITION where an output needs a value that nobody would feed.
Status export_model(const Model& model, Session& session, const ModelExport& what, const TextPairs& metadata, const std::string& path);

struct LoadedModel {
  Ref<Model> model;
  std::vector<Endpoint> endpoints;
  TensorFile file;
};
// DATA_LOSS for a file that is no such model.
Result<LoadedModel> load_model(Disk& disk, const std::string& path, const OpTable& ops, MemoryBudget& budget);

// Assigns what was saved to the variables of the model that `fit` pairs, in one run.
Status assign_saved(const Model& model, Session& session, const TensorFile& file, const Fit& fit);
// What is in the file, but for what is dtg's own.
std::vector<SavedTensor> saved_tensors(const TensorFile& file);

}  // namespace dtg
