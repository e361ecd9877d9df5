// dtg/nn.h, the half about models: adding and finding variables, the target of first values, saving and restoring. One
// thread at a time uses a model.
#include "capi/model.h"

#include <algorithm>

#include "base/spelling.h"
#include "capi/guard.h"
#include "capi/nn.h"
#include "checkpoint/safetensors.h"
#include "dtg/nn.h"
#include "nn/wholes.h"
#include "session/session.h"

namespace dtg::capi {
namespace {

Status answer_variable(const Model& model, const NamedVariable& variable, dtg_variable* out) {
  dtg_variable answer = DTG_VARIABLE_INIT;
  DTG_TRY(read_struct(out, sizeof(dtg_variable), "dtg_variable", &answer));
  fill_variable(model, variable, answer);
  write_struct(answer, out);
  return {};
}

}  // namespace

Result<VariableSpec> read_variable_spec(const dtg_variable_spec* given) {
  dtg_variable_spec c = DTG_VARIABLE_SPEC_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_variable_spec), "dtg_variable_spec", &c));
  DTG_TRY(require(c.name, "the name of a variable"));
  DTG_TRY(require_array(c.dims, c.rank, "dims"));
  if (c.rank > kRankMax) return invalid_argument("a variable of rank %zu: at most %d is supported", c.rank, kRankMax);
  if (c.dtype != 0 && !dtype_is_known(c.dtype)) return invalid_argument("%d is not an element type; use the DTG_ constants", c.dtype);
  VariableSpec spec;
  spec.name = text(c.name, c.name_len);
  spec.dtype = c.dtype == 0 ? DType::f32 : static_cast<DType>(c.dtype);
  spec.trainable = c.not_trainable == 0;
  DTG_ASSIGN(spec.shape, Shape::make({c.dims, c.rank}));
  DTG_ASSIGN(spec.initializer, read_initializer(c.initializer, spec.initializer));
  DTG_ASSIGN(spec.sync, read_enum(c.synchronization, Sync::on_read, "synchronization"));
  DTG_ASSIGN(spec.aggregation, read_enum(c.aggregation, Aggregation::only_first, "aggregation"));
  return spec;
}

namespace {

Status save(ModelObject& model, Session& session, const std::string& path) {
  std::vector<Value> fetches;
  for (const NamedVariable& variable : model.model->variables()) fetches.push_back(variable.read);
  if (fetches.empty()) return failed_precondition("save \"%s\": the model has no variables", path.c_str());
  std::vector<Tensor> values(fetches.size());
  DTG_TRY(session.run({.feeds = {}, .feed_tensors = {}, .fetches = fetches, .targets = {}}, values));
  std::vector<NamedTensor> named;
  for (const WholeVariable& whole : whole_variables(*model.model)) {
    std::vector<Tensor> parts;
    for (const NamedVariable* part : whole.parts) parts.push_back(values[static_cast<size_t>(part - model.model->variables().data())]);
    DTG_ASSIGN(Tensor value, join_parts(whole, parts));
    named.push_back({whole.name, std::move(value)});
  }
  return write_tensors(*model.graph->runtime->seams().disk, path, named, model.metadata);
}

Status fits(const WholeVariable& variable, const Tensor* tensor, const std::string& path) {
  if (!tensor) return not_found("restore \"%s\": the variable \"%s\" is not in it", path.c_str(), variable.name.c_str());
  if (tensor->dtype() == variable.dtype && tensor->shape() == variable.shape) return {};
  return invalid_argument("restore \"%s\": \"%s\" is %s there and %s%s in the model", path.c_str(), variable.name.c_str(),
                          tensor->text().c_str(), dtype_name(variable.dtype), variable.shape.text().c_str());
}

// The assignments of the first values, fed with the file's.
Status restore(ModelObject& model, Session& session, const std::string& path) {
  const Seams& seams = model.graph->runtime->seams();
  DTG_ASSIGN(const TensorFile file, read_tensors(*seams.disk, path, {.budget = seams.budget}));
  Assignment assign;
  for (const WholeVariable& variable : whole_variables(*model.model)) {
    const Tensor* const tensor = file.find(variable.name);
    DTG_TRY(fits(variable, tensor, path));
    DTG_TRY(assign.add(model.model->graph(), variable, *tensor));
  }
  if (assign.targets.empty()) return failed_precondition("restore \"%s\": the model has no variables", path.c_str());
  DTG_TRY(session.run({.feeds = assign.feeds, .feed_tensors = assign.pointers(), .fetches = {}, .targets = assign.targets}, {}));
  for (const auto& [key, value] : file.metadata) {
    if (!key.starts_with("dtg.")) set_metadata(model, key, value);
  }
  return {};
}

using FileFn = Status (*)(ModelObject&, Session&, const std::string&);

dtg_error* with_file(const dtg_model* model, dtg_session* session, const char* path, size_t length, Owner::Use use, FileFn fn) {
  return with_model(model, use, [&](ModelObject& object) -> Status {
    const Held<Session> running(session, HandleType::session);
    DTG_TRY(running.status());
    DTG_ASSIGN(const std::string file, read_path(path, length));
    DTG_TRY(check_session(object, *running, use == Owner::Use::read ? "save the weights" : "restore the weights"));
    return fn(object, *running, file);
  });
}

}  // namespace

void fill_variable(const Model& model, const NamedVariable& variable, dtg_variable& answer) {
  // The model's own copy may move when it grows; the graph's name stays. All copies of a variable go by the name of the first.
  const Value named = variable.copies.empty() ? variable.handle : variable.copies[0].handle;
  const Graph& graph = model.outermost().graph();
  const std::string_view name = graph.node(named.node()).name;
  answer.name = name.data();
  answer.name_len = name.size();
  answer.dtype = static_cast<dtg_dtype>(variable.dtype);
  answer.trainable = variable.trainable ? 1 : 0;
  answer.handle = to_c(variable.handle);
  answer.read = to_c(variable.read);
  answer.assign = to_c(graph.value(variable.assign));
  answer.rank = static_cast<size_t>(variable.shape.rank());
  std::fill(std::begin(answer.dims), std::end(answer.dims), 0);
  std::ranges::copy(variable.shape.dims(), answer.dims);
}

}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_model_create(dtg_graph* graph, uint64_t seed, dtg_model** out) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require(out, "out"));
    const Held<GraphObject> held(graph, HandleType::graph);
    DTG_TRY(held.status());
    auto model = make_ref<Model>(held->graph, seed);
    return give(HandleType::model, make_ref<ModelObject>(Ref<GraphObject>::share(held.get()), std::move(model)), out);
  });
}

dtg_error* dtg_model_inside(dtg_model* model, dtg_graph* body, dtg_model** out) noexcept {
  return with_builder(model, Owner::Use::change, [&](ModelObject& object) -> Status {
    DTG_TRY(require(out, "out"));
    const Held<GraphObject> held(body, HandleType::graph);
    DTG_TRY(held.status());
    DTG_ASSIGN(Ref<Model> inside, Model::inside(object.model, held->graph));
    auto made = make_ref<ModelObject>(Ref<GraphObject>::share(held.get()), std::move(inside), Ref<ModelObject>::share(&object));
    return give(HandleType::model, std::move(made), out);
  });
}

dtg_model* dtg_model_retain(dtg_model* model) noexcept { return retain_handle(model, HandleType::model); }
void dtg_model_release(dtg_model* model) noexcept { release_handle(model, HandleType::model); }

dtg_error* dtg_model_add_variable(dtg_model* model, const dtg_variable_spec* spec, dtg_variable* out) noexcept {
  return with_builder(model, Owner::Use::change, [&](ModelObject& object) -> Status {
    dtg_variable probe = DTG_VARIABLE_INIT;
    if (out) DTG_TRY(read_struct(out, sizeof(dtg_variable), "dtg_variable", &probe));
    DTG_ASSIGN(const VariableSpec wanted, read_variable_spec(spec));
    DTG_ASSIGN(const NamedVariable variable, object.model->add_variable(wanted));
    return out ? answer_variable(*object.model, variable, out) : Status();
  });
}

size_t dtg_model_variable_count(const dtg_model* model) noexcept {
  const Held<ModelObject> held(model, HandleType::model);
  if (!held) return 0;
  const Owner::Turn turn(held->owner, Owner::Use::read);
  return turn.inside() ? held->model->variables().size() : 0;
}

dtg_error* dtg_model_variable(const dtg_model* model, size_t i, dtg_variable* out) noexcept {
  return with_builder(model, Owner::Use::read, [&](ModelObject& object) -> Status {
    const auto variables = object.model->variables();
    if (i >= variables.size()) return out_of_range("variable %lld: the model has %zu", static_cast<long long>(i), variables.size());
    return answer_variable(*object.model, object.model->is_inside() ? object.model->here(variables[i]) : variables[i], out);
  });
}

dtg_error* dtg_model_find_variable(const dtg_model* model, const char* name, size_t name_len, dtg_variable* out) noexcept {
  return with_builder(model, Owner::Use::read, [&](ModelObject& object) -> Status {
    DTG_ASSIGN(const std::string_view given, read_name(name, name_len, "name"));
    const std::string wanted(given);
    const NamedVariable* const found = object.model->find(wanted);
    if (!found) {
      return not_found("the model has no variable \"%s\": %s", wanted.c_str(),
                       names_text(wanted, object.model->variables(), &NamedVariable::name).c_str());
    }
    return answer_variable(*object.model, object.model->here(*found), out);
  });
}

dtg_error* dtg_model_global_step(dtg_model* model, dtg_variable* out) noexcept {
  return with_builder(model, Owner::Use::change, [&](ModelObject& object) -> Status {
    DTG_ASSIGN(const NamedVariable step, object.model->global_step());
    return answer_variable(*object.model, step, out);
  });
}

dtg_error* dtg_model_init(dtg_model* model, dtg_value* out) noexcept {
  return with_model(model, Owner::Use::change, [&](ModelObject& object) -> Status {
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(const NodeId init, object.model->init_target());
    *out = to_c(object.model->graph().value(init));
    return {};
  });
}

dtg_error* dtg_model_set_metadata(dtg_model* model, const char* key, size_t key_len, const char* value, size_t value_len) noexcept {
  return with_model(model, Owner::Use::change, [&](ModelObject& object) -> Status {
    DTG_ASSIGN(const std::string_view name, read_name(key, key_len, "key"));
    DTG_TRY(require(value, "value"));
    if (name.empty() || name.starts_with("dtg.")) {
      return invalid_argument("metadata: the key is \"%s\"; give one that is not empty and does not begin with \"dtg.\"",
                              std::string(name).c_str());
    }
    set_metadata(object, name, text(value, value_len));
    return {};
  });
}

dtg_error* dtg_model_metadata(const dtg_model* model, const char* key, size_t key_len, dtg_string** out) noexcept {
  return with_model(model, Owner::Use::read, [&](ModelObject& object) -> Status {
    DTG_ASSIGN(const std::string_view given, read_name(key, key_len, "key"));
    const std::string wanted(given);
    DTG_TRY(require(out, "out"));
    for (const auto& [name, value] : object.metadata) {
      if (name == wanted) return give(HandleType::string, make_ref<StringObject>(value), out);
    }
    return not_found("the model has no metadata \"%s\": %s", wanted.c_str(),
                     names_text(wanted, object.metadata, &TextPairs::value_type::first).c_str());
  });
}

dtg_error* dtg_model_save(const dtg_model* model, dtg_session* session, const char* path, size_t path_len) noexcept {
  return with_file(model, session, path, path_len, Owner::Use::read, save);
}

dtg_error* dtg_model_restore(const dtg_model* model, dtg_session* session, const char* path, size_t path_len) noexcept {
  return with_file(model, session, path, path_len, Owner::Use::change, restore);
}

}  // extern "C"
