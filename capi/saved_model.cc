// dtg/nn.h, the part about models that others built: taking over the variables of a graph, restoring by other names, exporting and loading
// whole models. One thread at a time uses a model.
#include "session/saved_model.h"

#include <algorithm>

#include "base/json.h"
#include "base/spelling.h"
#include "capi/guard.h"
#include "capi/model.h"
#include "dtg/nn.h"
#include "nn/adopt.h"
#include "nn/switches.h"
#include "session/class_names.h"
#include "tensor/text.h"

namespace dtg::capi {
namespace {

Json::Array words(const std::vector<std::string>& texts) { return {texts.begin(), texts.end()}; }

Status restore_from(ModelObject& model, Session& session, const std::string& path, const dtg_restore* given, dtg_string** report) {
  dtg_restore c = DTG_RESTORE_INIT;
  if (given) DTG_TRY(read_struct(given, sizeof(dtg_restore), "dtg_restore", &c));
  const Seams& seams = model.graph->runtime->seams();
  DTG_ASSIGN(const NameMap names, NameMap::parse(text(c.names, c.names_len)));
  DTG_ASSIGN(const TensorFile file, read_tensors(*seams.disk, path, {.budget = seams.budget}));
  DTG_ASSIGN(const Fit fit, Fit::of(*model.model, saved_tensors(file), names));
  if (!c.partial) DTG_TRY(fit.check(path, false));
  DTG_TRY(fit.check_any(path));
  DTG_TRY(assign_saved(*model.model, session, file, fit));
  for (const auto& [key, value] : file.metadata) {
    if (!key.starts_with("dtg.")) set_metadata(model, key, value);
  }
  if (!report) return {};
  const Json told(Json::Object{{"path", path},
                               {"variables", static_cast<int64_t>(fit.both.size())},
                               {"missing", words(Fit::names(fit.missing))},
                               {"extra", words(Fit::names(fit.extra))},
                               {"reshaped", words(Fit::names(fit.reshaped))}});
  return give(HandleType::string, make_ref<StringObject>(told.text() + "\n"), report);
}

// A file is most often for serving.
void tell_switches(const ModelObject& object, const ModelExport& what, const std::string& file) {
  std::vector<Value> wanted;
  for (const Endpoint& each : what.endpoints) {
    if (!each.input) wanted.push_back(each.value);
  }
  LogSink* const log = object.graph->runtime->seams().log;
  const std::string told = tell_always_on(*object.model, wanted, file.c_str());
  if (log && !told.empty()) log->write(LogLevel::warn, "model", "export: " + told);
}

Status read_endpoints(const char* const* names, const dtg_value* values, size_t count, bool input, std::vector<Endpoint>& out) {
  DTG_TRY(require_array(names, count, input ? "input_names" : "output_names"));
  DTG_TRY(require_array(values, count, input ? "inputs" : "outputs"));
  for (size_t i = 0; i < count; ++i) {
    DTG_TRY(require(names[i], "the name of an input or output"));
    out.push_back({names[i], value_of(values[i]), input});
  }
  return {};
}

Result<ModelExport> read_export(const Model& model, const dtg_export* given) {
  dtg_export c = DTG_EXPORT_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_export), "dtg_export", &c));
  ModelExport what;
  what.freeze = c.freeze != 0;
  DTG_TRY(read_endpoints(c.input_names, c.inputs, c.num_inputs, true, what.endpoints));
  DTG_TRY(read_endpoints(c.output_names, c.outputs, c.num_outputs, false, what.endpoints));
  for (const Endpoint& each : what.endpoints) DTG_TRY(check_owner(model.graph(), each.value).with_context("export \"" + each.name + "\""));
  return what;
}

// The session knows the values as soon as it is handed out.
Status connect_loaded(const Ref<Runtime>& runtime, const LoadedModel& loaded, dtg_session** out) {
  DTG_ASSIGN(Ref<Session> session, Session::connect(runtime, "local", Ref<Graph>::share(&loaded.model->graph()), {}));
  DTG_ASSIGN(const Fit fit, Fit::of(*loaded.model, saved_tensors(loaded.file), {}));
  DTG_TRY(fit.check("an exported model", false));
  DTG_TRY(assign_saved(*loaded.model, *session, loaded.file, fit));
  return give(HandleType::session, std::move(session), out);
}

Status load(dtg_runtime* handle, const std::string& path, dtg_session** session, dtg_model** out) {
  DTG_TRY(require(out, "out"));
  DTG_ASSIGN(Ref<Runtime> runtime, runtime_of(handle));
  DTG_ASSIGN(LoadedModel loaded, load_model(*runtime->seams().disk, path, runtime->ops(), *runtime->seams().budget));
  auto graph = make_ref<GraphObject>(runtime, Ref<Graph>::share(&loaded.model->graph()));
  auto object = make_ref<ModelObject>(std::move(graph), loaded.model);
  object->endpoints = loaded.endpoints;
  for (const auto& [key, value] : loaded.file.metadata) {
    if (!key.starts_with("dtg.")) set_metadata(*object, key, value);
  }
  if (!session) return give(HandleType::model, std::move(object), out);
  dtg_session* running = nullptr;
  DTG_TRY(connect_loaded(runtime, loaded, &running));
  const Status given = give(HandleType::model, std::move(object), out);
  if (given.ok()) *session = running;
  else release_handle(running, HandleType::session);
  return given;
}

Json describe(const Graph& graph, const Endpoint& endpoint) {
  Json::Object entry{{"name", endpoint.name}};
  if (graph.node(endpoint.value.node()).outputs.empty()) {
    entry.emplace_back("dtype", "");
    entry.emplace_back("shape", Json());
    return entry;
  }
  const ValueInfo& info = graph.info(endpoint.value);
  Json shape;
  if (info.shape.has_rank()) {
    Json::Array dims;
    for (int i = 0; i < info.shape.rank(); ++i) dims.emplace_back(info.shape.dim(i));
    shape = std::move(dims);
  }
  entry.emplace_back("dtype", dtype_name(info.dtype));
  entry.emplace_back("shape", std::move(shape));
  return entry;
}

Result<const Endpoint*> find_endpoint(const ModelObject& object, std::string_view name) {
  const auto at = std::ranges::find(object.endpoints, name, [](const Endpoint& each) -> std::string_view { return each.name; });
  if (at != object.endpoints.end()) return &*at;
  if (object.endpoints.empty()) return not_found("the model was not loaded from a file, so it has no named inputs and outputs");
  return not_found("the model has no input or output \"%s\": %s", std::string(name).c_str(),
                   names_text(name, object.endpoints, &Endpoint::name).c_str());
}

// What is known of an output by now: of a trainer's, as a fit will export it, or of the file that the model came from. One that nobody
// knows may be of an export to come, which looks again.
Status check_new_classes(const ModelObject& object, const std::string& output, const std::string& words) {
  for (const std::vector<Endpoint>* const known : {&object.trained, &object.endpoints}) {
    const auto at = std::ranges::find(*known, output, &Endpoint::name);
    if (at == known->end()) continue;
    if (at->input) return invalid_argument("name classes: \"%s\" is an input of the model; its outputs tell classes apart", output.c_str());
    return check_classes(object.model->graph(), {{classes_key(output), words}}, {*at});
  }
  return {};
}

// Of names for all outputs: one of those that a fit will export has so many.
Status check_new_classes(const ModelObject& object, const std::string& words) {
  Status first;
  for (const Endpoint& each : object.trained) {
    if (each.input) continue;
    Status status = check_classes(object.model->graph(), {{classes_key(each.name), words}}, {each});
    if (status.ok()) return {};
    if (first.ok()) first = std::move(status);
  }
  return first;
}

Result<std::vector<std::string>> find_classes(const ModelObject& object, const std::string& output) {
  const ValueInfo* info = nullptr;
  if (!output.empty()) {
    DTG_ASSIGN(const Endpoint* const endpoint, find_endpoint(object, output));
    if (endpoint->input) return not_found("classes: \"%s\" is an input of the model; its outputs tell classes apart", output.c_str());
    const Graph& graph = object.model->graph();
    if (!graph.node(endpoint->value.node()).outputs.empty()) info = &graph.info(endpoint->value);
  }
  std::vector<std::string> names = class_names(object.metadata, output, info);
  if (!names.empty()) return names;
  const size_t all = class_names(object.metadata, "", nullptr).size();
  if (all > 0) {
    return not_found("classes: the model has names for %zu, and \"%s\" is %s%s, which does not tell so many apart", all, output.c_str(),
                     info ? dtype_name(info->dtype) : "a target", info ? info->shape.text().c_str() : "");
  }
  const std::string unknown = output.empty() ? "" : unknown_classes(object.metadata, object.endpoints);
  if (!unknown.empty()) return not_found("classes: nobody has named those of \"%s\"; %s", output.c_str(), unknown.c_str());
  return not_found("classes: nobody has named those of the model: keep the schema of the training data as its metadata \"schema\", which a "
                   "fit does by itself where the label is of names, or set the names, before it is saved");
}

}  // namespace
}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_model_restore_from(const dtg_model* model, dtg_session* session, const char* path, size_t path_len,
                                  const dtg_restore* restore, dtg_string** report) noexcept {
  return with_model(model, Owner::Use::change, [&](ModelObject& object) -> Status {
    const Held<Session> running(session, HandleType::session);
    DTG_TRY(running.status());
    DTG_ASSIGN(const std::string file, read_path(path, path_len));
    DTG_TRY(check_session(object, *running, "restore the weights"));
    return restore_from(object, *running, file, restore, report);
  });
}

dtg_error* dtg_model_import(dtg_graph* graph, uint64_t seed, dtg_model** out) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require(out, "out"));
    const Held<GraphObject> held(graph, HandleType::graph);
    DTG_TRY(held.status());
    const Owner::Turn turn(held->owner, Owner::Use::change);
    DTG_TRY(turn.status("graph"));
    DTG_ASSIGN(Ref<Model> model, adopt_graph(held->graph, seed));
    return give(HandleType::model, make_ref<ModelObject>(Ref<GraphObject>::share(held.get()), std::move(model)), out);
  });
}

dtg_error* dtg_model_export(const dtg_model* model, dtg_session* session, const dtg_export* what, const char* path,
                            size_t path_len) noexcept {
  return with_model(model, Owner::Use::read, [&](ModelObject& object) -> Status {
    const Held<Session> running(session, HandleType::session);
    DTG_TRY(running.status());
    DTG_ASSIGN(const ModelExport read, read_export(*object.model, what));
    DTG_ASSIGN(const std::string file, read_path(path, path_len));
    DTG_TRY(check_session(object, *running, "export the model"));
    tell_switches(object, read, file);
    return export_model(*object.model, *running, read, object.metadata, file);
  });
}

dtg_error* dtg_model_load(dtg_runtime* runtime, const char* path, size_t path_len, dtg_session** session, dtg_model** out) noexcept {
  return guard([&]() -> Status {
    DTG_ASSIGN(const std::string file, read_path(path, path_len));
    return load(runtime, file, session, out);
  });
}

dtg_error* dtg_model_endpoint(const dtg_model* model, const char* name, size_t name_len, dtg_value* out) noexcept {
  return with_model(model, Owner::Use::read, [&](ModelObject& object) -> Status {
    DTG_ASSIGN(const std::string_view wanted, read_name(name, name_len, "name"));
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(const Endpoint* const endpoint, find_endpoint(object, wanted));
    *out = to_c(endpoint->value);
    return {};
  });
}

dtg_error* dtg_model_set_classes(dtg_model* model, const char* output, size_t output_len, const char* const* names,
                                 size_t num_names) noexcept {
  return with_model(model, Owner::Use::change, [&](ModelObject& object) -> Status {
    DTG_TRY(require_array(names, num_names, "names"));
    std::vector<std::string> list;
    for (size_t i = 0; i < num_names; ++i) {
      DTG_TRY(require(names[i], "a name of a class"));
      list.emplace_back(names[i]);
    }
    DTG_ASSIGN(const std::string words, class_list(list));
    const std::string name(text(output, output_len));
    DTG_TRY(check_name(name, "output"));
    DTG_TRY(name.empty() ? check_new_classes(object, words) : check_new_classes(object, name, words));
    set_metadata(object, classes_key(name), words);
    return {};
  });
}

dtg_error* dtg_model_classes(const dtg_model* model, const char* output, size_t output_len, dtg_tensor** out) noexcept {
  return with_model(model, Owner::Use::read, [&](ModelObject& object) -> Status {
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(const std::vector<std::string> names, find_classes(object, std::string(text(output, output_len))));
    const std::vector<Text> texts(names.begin(), names.end());
    DTG_ASSIGN(Tensor tensor, make_texts(Shape::of({static_cast<int64_t>(texts.size())}), texts));
    return give(HandleType::tensor, Ref<TensorObject>::adopt(TensorObject::make(std::move(tensor))), out);
  });
}

dtg_error* dtg_model_endpoints(const dtg_model* model, dtg_string** out) noexcept {
  return with_model(model, Owner::Use::read, [&](ModelObject& object) -> Status {
    DTG_TRY(require(out, "out"));
    Json::Array inputs, outputs;
    for (const Endpoint& each : object.endpoints) (each.input ? inputs : outputs).push_back(describe(object.model->graph(), each));
    const Json all(Json::Object{{"inputs", std::move(inputs)}, {"outputs", std::move(outputs)}});
    return give(HandleType::string, make_ref<StringObject>(all.text() + "\n"), out);
  });
}

dtg_error* dtg_model_graph(const dtg_model* model, dtg_graph** out) noexcept {
  return with_builder(model, Owner::Use::read, [&](ModelObject& object) -> Status {
    DTG_TRY(require(out, "out"));
    return give(HandleType::graph, object.graph, out);
  });
}

}  // extern "C"
