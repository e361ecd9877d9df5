// Takes the part of a graph that is to be served, and writes and reads it with its values. See saved_model.h for threads.
#include "session/saved_model.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/json.h"
#include "graph/extract.h"
#include "nn/adopt.h"
#include "session/class_names.h"
#include "wire/graph_codec.h"

namespace dtg {
namespace {

constexpr const char* kGraph = "dtg.graph";
constexpr const char* kSignature = "dtg.signature";

// What goes into the file, before its values are known.
struct Served {
  std::vector<Value> fed;
  std::vector<NodeId> wanted;
  std::vector<const NamedVariable*> variables;  // that the part reads or changes
};

bool is_fed(const Served& part, Value value) { return std::ranges::find(part.fed, value) != part.fed.end(); }

Status check_endpoints(const Model& model, const std::vector<Endpoint>& endpoints) {
  std::set<std::string> names;
  bool any_output = false;
  for (const Endpoint& each : endpoints) {
    if (each.name.empty() || !is_utf8(each.name)) return invalid_argument("export a model: an input or output has no name in UTF-8");
    if (!names.insert(each.name).second)
      return invalid_argument("export a model: two inputs or outputs are called \"%s\"", each.name.c_str());
    DTG_TRY((each.input ? model.graph().check(each.value) : model.graph().check_node(each.value.node()))
                .with_context("export a model: \"" + each.name + "\""));
    any_output = any_output || !each.input;
  }
  return any_output ? Status() : invalid_argument("export a model: no outputs are named; what is it to compute?");
}

// Who serves the model can feed only what has a name.
Status check_fed(const Graph& graph, const std::vector<NodeId>& nodes, const ModelExport& what) {
  const auto fixed = [&what](NodeId id) {
    return std::ranges::any_of(what.fixed, [id](const auto& pair) { return pair.first.node() == id; });
  };
  const auto fed = std::ranges::find_if(nodes, [&](NodeId id) { return must_be_fed(graph.node(id)) && !fixed(id); });
  if (fed == nodes.end()) return {};
  return failed_precondition("export a model: the outputs need \"%s\", which is fed; name it among the inputs, or build outputs without it",
                             std::string(graph.node(*fed).name).c_str());
}

Result<Served> part_of(const Model& model, const ModelExport& what) {
  const Graph& graph = model.graph();
  Served part;
  for (const Endpoint& each : what.endpoints) {
    if (each.input) part.fed.push_back(each.value);
  }
  for (const Endpoint& each : what.endpoints) {
    if (!each.input && !is_fed(part, each.value)) part.wanted.push_back(each.value.node());
  }
  const std::vector<NodeId> nodes = needed_nodes(graph, part.wanted, part.fed);
  DTG_TRY(check_fed(graph, nodes, what));
  for (const NamedVariable& variable : model.variables()) {
    if (!std::ranges::binary_search(nodes, variable.handle.node())) continue;
    part.variables.push_back(&variable);
    if (what.freeze) continue;
    part.wanted.push_back(variable.read.node());
    part.wanted.push_back(variable.assign);
  }
  return part;
}

Result<std::vector<NamedTensor>> values_of(const Served& part, Session& session) {
  std::vector<Value> fetches;
  for (const NamedVariable* variable : part.variables) fetches.push_back(variable->read);
  std::vector<Tensor> values(fetches.size());
  if (!fetches.empty()) DTG_TRY(session.run({.feeds = {}, .feed_tensors = {}, .fetches = fetches, .targets = {}}, values));
  std::vector<NamedTensor> named;
  for (size_t i = 0; i < values.size(); ++i) named.push_back({part.variables[i]->name, values[i]});
  return named;
}

// A node without outputs has no value that could be named.
std::string text_of(const Graph& graph, Value value) {
  const Node& node = graph.node(value.node());
  return node.outputs.empty() ? std::string(node.name) : graph.value_name(value);
}

Json dims_of(const PartialShape& shape) {
  Json::Array dims;
  for (int i = 0; i < shape.rank(); ++i) dims.emplace_back(shape.dim(i));
  return dims;
}

std::string signature(const Model& model, const ModelExport& what, const Served& part, const Extracted& extracted) {
  Json::Array inputs, outputs, variables;
  for (const Endpoint& each : what.endpoints) {
    Json::Object entry{{"name", each.name}, {"value", text_of(*extracted.graph, extracted.of(each.value))}};
    if (!model.graph().node(each.value.node()).outputs.empty()) {
      const ValueInfo& info = extracted.graph->info(extracted.of(each.value));
      entry.emplace_back("dtype", dtype_name(info.dtype));
      if (info.shape.has_rank()) entry.emplace_back("shape", dims_of(info.shape));
    }
    (each.input ? inputs : outputs).emplace_back(std::move(entry));
  }
  for (const NamedVariable* variable : part.variables) {
    if (what.freeze) break;
    variables.emplace_back(
        Json::Object{{"name", variable->name}, {"trainable", variable->trainable}, {"of", variable->of}, {"slot", variable->slot}});
  }
  return Json(Json::Object{{"format", 1},
                           {"seed", std::to_string(model.seed())},
                           {"inputs", std::move(inputs)},
                           {"outputs", std::move(outputs)},
                           {"variables", std::move(variables)}})
      .text();
}

Result<Tensor> bytes_tensor(const std::string& bytes) {
  DTG_ASSIGN(Tensor tensor, Tensor::allocate(DType::u8, Shape::of({static_cast<int64_t>(bytes.size())})));
  std::ranges::copy(bytes, tensor.as<char>());
  return tensor;
}

Status no_model(const std::string& path, const char* why) {
  return data_loss("load the model \"%s\": %s; such files are written by exporting a model", path.c_str(), why);
}

std::string text_of(const Json& object, const char* key) {
  const Json* const member = object.find(key);
  return member && member->string() ? *member->string() : std::string();
}

std::span<const Json> list_of(const Json& object, const char* key) {
  const Json* const member = object.find(key);
  return member && member->array() ? std::span<const Json>(*member->array()) : std::span<const Json>();
}

// "node:1", or the name of a node without outputs.
Result<Value> find_value(const Graph& graph, const std::string& text) {
  const std::string node = text.substr(0, text.rfind(':'));
  if (const NodeId id = graph.find(node); id != kNoNode && graph.node(id).outputs.empty()) return graph.value(id);
  return graph.parse_value(text);
}

// Another release may know more or less of a shape; it contradicts nothing.
bool agrees(const PartialShape& shape, const Json* told) {
  if (!told || !shape.has_rank()) return true;
  const Json::Array* const dims = told->array();
  if (!dims || dims->size() != static_cast<size_t>(shape.rank())) return false;
  for (int i = 0; i < shape.rank(); ++i) {
    const int64_t* const dim = (*dims)[static_cast<size_t>(i)].integer();
    if (!dim || (*dim >= 0 && shape.dim(i) >= 0 && *dim != shape.dim(i))) return false;
  }
  return true;
}

// A file whose graph and signature are not of one another is not what was exported. Files of before have no types there.
Status check_told(const Graph& graph, const Json& entry, Value value) {
  const std::string dtype = text_of(entry, "dtype");
  if (dtype.empty()) return {};
  const ValueInfo nothing;
  const bool target = graph.node(value.node()).outputs.empty();
  const ValueInfo& info = target ? nothing : graph.info(value);
  if (!target && dtype == dtype_name(info.dtype) && agrees(info.shape, entry.find("shape"))) return {};
  const Json* const shape = entry.find("shape");
  return data_loss("\"%s\" is %s %s by the file's signature, and %s%s in its graph", text_of(entry, "name").c_str(), dtype.c_str(),
                   shape ? shape->text().c_str() : "of any shape", target ? "a target" : dtype_name(info.dtype),
                   target ? "" : info.shape.text().c_str());
}

Status read_endpoints(const Json& json, LoadedModel& loaded) {
  for (const char* const key : {"inputs", "outputs"}) {
    for (const Json& entry : list_of(json, key)) {
      DTG_ASSIGN(const Value value, find_value(loaded.model->graph(), text_of(entry, "value")));
      DTG_TRY(check_told(loaded.model->graph(), entry, value));
      loaded.endpoints.push_back({text_of(entry, "name"), value, std::string_view(key) == "inputs"});
    }
  }
  return {};
}

std::vector<VariableNote> read_notes(const Json& json) {
  std::vector<VariableNote> notes;
  for (const Json& entry : list_of(json, "variables")) {
    const Json* const trainable = entry.find("trainable");
    notes.push_back({text_of(entry, "name"), !trainable || !trainable->boolean() || *trainable->boolean(), text_of(entry, "of"),
                     text_of(entry, "slot")});
  }
  return notes;
}

}  // namespace

Status check_export(const Model& model, const ModelExport& what) {
  for (const NamedVariable& variable : model.variables()) {
    if (variable.copies.empty()) continue;
    return unimplemented("export: \"%s\" has a copy on each of %zu devices; save the weights, restore them into a model of the same "
                         "layers without the strategy, and export that",
                         variable.name.c_str(), variable.copies.size());
  }
  DTG_TRY(check_endpoints(model, what.endpoints));
  return part_of(model, what).status();
}

Status check_classes(const Graph& graph, const TextPairs& metadata, const std::vector<Endpoint>& endpoints) {
  for (const Endpoint& each : endpoints) {
    if (each.input || graph.node(each.value.node()).outputs.empty()) continue;
    DTG_TRY(check_classes(metadata, each.name, graph.info(each.value)));
  }
  return {};
}

std::string unknown_classes(const TextPairs& metadata, const std::vector<Endpoint>& endpoints) {
  std::vector<std::string_view> outputs;
  for (const Endpoint& each : endpoints) {
    if (!each.input) outputs.push_back(each.name);
  }
  return unknown_classes(metadata, outputs);
}

Status export_model(const Model& model, Session& session, const ModelExport& what, const TextPairs& metadata, const std::string& path) {
  DTG_TRY(check_export(model, what));
  DTG_TRY(check_classes(model.graph(), metadata, what.endpoints).with_context("export a model"));
  const std::string unknown = unknown_classes(metadata, what.endpoints);
  LogSink* const log = session.runtime().seams().log;
  if (!unknown.empty() && log) log->write(LogLevel::warn, "export", "export a model: " + unknown);
  DTG_ASSIGN(const Served part, part_of(model, what));
  DTG_ASSIGN(std::vector<NamedTensor> tensors, values_of(part, session));
  std::map<NodeId, Tensor> frozen;
  for (size_t i = 0; what.freeze && i < tensors.size(); ++i) frozen.emplace(part.variables[i]->handle.node(), tensors[i].tensor);
  if (what.freeze) tensors.clear();
  std::map<NodeId, Tensor> fixed;
  for (const auto& [placeholder, value] : what.fixed) fixed.emplace(placeholder.node(), value);
  DTG_ASSIGN(
      const Extracted extracted,
      extract_graph(model.graph(), {.wanted = part.wanted, .fed = part.fed, .frozen = what.freeze ? &frozen : nullptr, .fixed = &fixed}));
  DTG_ASSIGN(const std::string bytes, encode_graph(*extracted.graph));
  DTG_ASSIGN(const Tensor graph, bytes_tensor(bytes));
  tensors.push_back({kGraph, graph});
  TextPairs texts = metadata;
  texts.emplace_back(kSignature, signature(model, what, part, extracted));
  return write_tensors(*session.runtime().seams().disk, path, tensors, texts);
}

Result<LoadedModel> load_model(Disk& disk, const std::string& path, const OpTable& ops, MemoryBudget& budget) {
  LoadedModel loaded;
  DTG_ASSIGN(loaded.file, read_tensors(disk, path, {.budget = &budget}));
  const Tensor* const bytes = loaded.file.find(kGraph);
  const auto text = std::ranges::find(loaded.file.metadata, kSignature, [](const auto& pair) -> std::string_view { return pair.first; });
  if (!bytes || bytes->dtype() != DType::u8) return no_model(path, "there is no graph in it");
  if (text == loaded.file.metadata.end()) return no_model(path, "it does not name inputs and outputs");
  DTG_ASSIGN(const Json json, parse_json(text->second, "signature of a model"));
  const Json* const version = json.find("format");
  if (!version || !version->integer() || *version->integer() != 1)
    return unimplemented("load the model \"%s\": of a later release", path.c_str());
  DTG_ASSIGN(Ref<Graph> graph, Graph::create(&ops));
  DTG_TRY(decode_graph({bytes->as<char>(), static_cast<size_t>(bytes->count())}, *graph, budget)
              .with_context("load the model \"" + path + "\""));
  const uint64_t seed = std::strtoull(text_of(json, "seed").c_str(), nullptr, 10);
  DTG_ASSIGN(loaded.model, adopt_graph(std::move(graph), seed, read_notes(json)));
  DTG_TRY(read_endpoints(json, loaded).with_context("load the model \"" + path + "\""));
  return loaded;
}

std::vector<SavedTensor> saved_tensors(const TensorFile& file) {
  std::vector<SavedTensor> saved;
  for (const NamedTensor& each : file.tensors) {
    if (each.name != kGraph) saved.push_back({each.name, each.tensor.dtype(), each.tensor.shape()});
  }
  return saved;
}

Status assign_saved(const Model& model, Session& session, const TensorFile& file, const Fit& fit) {
  Assignment assign;
  for (const auto& [variable, saved] : fit.both) DTG_TRY(assign.add(model.graph(), variable, *file.find(saved)));
  if (assign.targets.empty()) return {};
  return session.run({.feeds = assign.feeds, .feed_tensors = assign.pointers(), .fetches = {}, .targets = assign.targets}, {});
}

}  // namespace dtg
