// dtg/mesh.h: meshes, their builds and layers, over internal/strategy/mesh.h. One thread at a time uses a mesh: a call takes the turns of
// its model and graph.
#include "dtg/mesh.h"

#include <algorithm>

#include "base/or_undo.h"
#include "capi/guard.h"
#include "capi/model.h"
#include "capi/nn.h"
#include "strategy/tensor_parallel.h"

namespace dtg::capi {
namespace {

static_assert(static_cast<int>(Mesh::Zero::gradients) == DTG_ZERO_GRADIENTS && static_cast<int>(TableCut::columns) == DTG_CUT_COLUMNS);

constexpr size_t kValuesMost = 65535;

class MeshObject final : public RefCounted {
 public:
  MeshObject(Ref<ModelObject> m, Ref<Mesh> of) : model(std::move(m)), mesh(std::move(of)) {}
  const Ref<ModelObject> model;
  const Ref<Mesh> mesh;
  // Of the last step, lent to the host.
  std::vector<dtg_value> batch, inputs;
};

// fn(object) on an open mesh whose model and graph no other thread is inside of.
template <class Fn>
dtg_error* with_mesh(const dtg_mesh* handle, Fn&& fn) noexcept {
  return guard([&]() -> Status {
    const Held<MeshObject> held(handle, HandleType::mesh);
    DTG_TRY(held.status());
    const Owner::Turn turn(held->model->owner, Owner::Use::change);
    DTG_TRY(turn.status("model of the mesh"));
    const Owner::Turn building(held->model->graph->owner, Owner::Use::change);
    DTG_TRY(building.status("graph of the mesh"));
    return fn(*held);
  });
}
// The same for what gives one value, or leaves the model as it was.
template <class Fn>
dtg_error* value_of_mesh(dtg_mesh* handle, dtg_value* out, Fn&& fn) noexcept {
  return with_mesh(handle, [&](MeshObject& object) -> Status {
    DTG_TRY(require(out, "out"));
    return all_or_nothing(*object.model->model, [&]() -> Status {
      DTG_ASSIGN(const Value value, fn(*object.mesh));
      *out = to_c(value);
      return {};
    });
  });
}

Result<std::vector<Value>> read_values(const dtg_value* values, size_t count, const char* what) {
  DTG_TRY(require_array(values, count, what));
  if (count > kValuesMost) return invalid_argument("%s: %zu of them; at most %zu are possible", what, count, kValuesMost);
  std::vector<Value> list;
  for (size_t i = 0; i < count; ++i) list.push_back(value_of(values[i]));
  return list;
}

Result<Mesh::Options> read_options(const dtg_mesh_options* given) {
  dtg_mesh_options c = DTG_MESH_OPTIONS_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_mesh_options), "dtg_mesh_options", &c));
  DTG_TRY(require_array(c.devices, c.num_devices, "devices"));
  if (c.num_devices > kValuesMost) return invalid_argument("create a mesh: %zu devices", c.num_devices);
  if (c.reserved0 != 0) return invalid_argument("create a mesh: reserved0 is %d; it must be 0", c.reserved0);
  Mesh::Options options;
  options.data = number_or(c.data, 1);
  options.model = number_or(c.model, 1);
  options.pipe = number_or(c.pipe, 1);
  DTG_ASSIGN(options.zero, read_enum(c.zero, Mesh::Zero::gradients, "zero"));
  for (size_t i = 0; i < c.num_devices; ++i) {
    DTG_TRY(require(c.devices[i], "an entry of devices"));
    options.devices.emplace_back(c.devices[i]);
  }
  return options;
}

void lend(const std::vector<Value>& values, std::vector<dtg_value>& kept, const dtg_value** out, size_t* count) {
  kept.clear();
  for (const Value value : values) kept.push_back(to_c(value));
  *out = kept.data();
  *count = kept.size();
}

Status next(MeshObject& object, dtg_mesh_step* step, int32_t* more) {
  DTG_TRY(require(more, "more"));
  dtg_mesh_step answer = DTG_MESH_STEP_INIT;
  DTG_TRY(read_struct(step, sizeof(dtg_mesh_step), "dtg_mesh_step", &answer));
  Mesh::Step found;
  DTG_ASSIGN(const bool any, object.mesh->next(&found));
  *more = any ? 1 : 0;
  if (!any) return {};
  answer.stage = found.stage;
  answer.data = found.data;
  answer.micro = found.micro;
  // A step that the host was not told of could not be given.
  or_undo(
      [&] {
        lend(found.batch, object.batch, &answer.batch, &answer.num_batch);
        lend(found.inputs, object.inputs, &answer.inputs, &answer.num_inputs);
      },
      [&] { object.mesh->abandon(); });
  write_struct(answer, step);
  return {};
}

Status column(Mesh& mesh, Value x, const dtg_dense* given, dtg_value* parts, size_t num_parts) {
  DTG_TRY(require_array(parts, num_parts, "parts"));
  if (num_parts != static_cast<size_t>(mesh.options().model)) {
    return invalid_argument("column dense layer: room for %zu parts; the model axis is %lld long", num_parts,
                            static_cast<long long>(mesh.options().model));
  }
  DTG_ASSIGN(const DenseLayer layer, read_dense(given));
  DTG_ASSIGN(const std::vector<Value> made, column_dense(mesh, x, layer));
  std::ranges::transform(made, parts, [](Value value) { return to_c(value); });
  return {};
}

}  // namespace
}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_mesh_create(dtg_model* model, const dtg_mesh_options* options, dtg_mesh** out) noexcept {
  return with_model(model, Owner::Use::change, [&](ModelObject& object) -> Status {
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(Mesh::Options grid, read_options(options));
    DTG_ASSIGN(Ref<Mesh> mesh, Mesh::create(object.model, std::move(grid)));
    return give(HandleType::mesh, make_ref<MeshObject>(Ref<ModelObject>::share(&object), std::move(mesh)), out);
  });
}
dtg_mesh* dtg_mesh_retain(dtg_mesh* mesh) noexcept { return retain_handle(mesh, HandleType::mesh); }
void dtg_mesh_release(dtg_mesh* mesh) noexcept { release_handle(mesh, HandleType::mesh); }

dtg_error* dtg_mesh_begin(dtg_mesh* mesh, const dtg_value* batch, size_t num_batch, int64_t micro_batches, int32_t forward_only) noexcept {
  return with_mesh(mesh, [&](MeshObject& object) -> Status {
    DTG_ASSIGN(const std::vector<Value> values, read_values(batch, num_batch, "batch"));
    return object.mesh->begin(values, micro_batches, forward_only != 0);
  });
}
dtg_error* dtg_mesh_next(dtg_mesh* mesh, dtg_mesh_step* step, int32_t* more) noexcept {
  return with_mesh(mesh, [&](MeshObject& object) { return next(object, step, more); });
}
dtg_error* dtg_mesh_give(dtg_mesh* mesh, const dtg_value* outputs, size_t num_outputs) noexcept {
  return with_mesh(mesh, [&](MeshObject& object) -> Status {
    DTG_ASSIGN(const std::vector<Value> values, read_values(outputs, num_outputs, "outputs"));
    return object.mesh->give(values);
  });
}
dtg_error* dtg_mesh_abandon(dtg_mesh* mesh) noexcept {
  return with_mesh(mesh, [&](MeshObject& object) -> Status {
    object.mesh->abandon();
    return {};
  });
}
dtg_error* dtg_mesh_result(dtg_mesh* mesh, size_t k, dtg_value* out) noexcept {
  return value_of_mesh(mesh, out, [&](Mesh& m) { return m.result(k); });
}
dtg_error* dtg_mesh_minimize(dtg_mesh* mesh, const dtg_optimizer* optimizer, dtg_training* out) noexcept {
  return with_mesh(mesh, [&](MeshObject& object) -> Status {
    return answer_training(*object.model->model, optimizer, out,
                           [&](Model&, const Optimizer& settings) { return object.mesh->minimize(settings); });
  });
}

dtg_error* dtg_mesh_column_dense(dtg_mesh* mesh, dtg_value x, const dtg_dense* layer, dtg_value* parts, size_t num_parts) noexcept {
  return with_mesh(mesh, [&](MeshObject& object) {
    return all_or_nothing(*object.model->model, [&] { return column(*object.mesh, value_of(x), layer, parts, num_parts); });
  });
}
dtg_error* dtg_mesh_row_dense(dtg_mesh* mesh, const dtg_value* parts, size_t num_parts, const dtg_dense* layer, dtg_value* out) noexcept {
  return value_of_mesh(mesh, out, [&](Mesh& m) -> Result<Value> {
    DTG_ASSIGN(const std::vector<Value> values, read_values(parts, num_parts, "parts"));
    DTG_ASSIGN(const DenseLayer what, read_dense(layer));
    return row_dense(m, values, what);
  });
}
dtg_error* dtg_mesh_together(dtg_mesh* mesh, const dtg_value* parts, size_t num_parts, int32_t axis, dtg_value* out) noexcept {
  return value_of_mesh(mesh, out, [&](Mesh& m) -> Result<Value> {
    DTG_ASSIGN(const std::vector<Value> values, read_values(parts, num_parts, "parts"));
    return together(m, values, axis);
  });
}
dtg_error* dtg_mesh_embedding(dtg_mesh* mesh, dtg_value ids, const dtg_embedding* layer, dtg_table_cut by, dtg_value* out) noexcept {
  return value_of_mesh(mesh, out, [&](Mesh& m) -> Result<Value> {
    DTG_ASSIGN(const EmbeddingLayer what, read_embedding(layer));
    DTG_ASSIGN(const TableCut cut, read_enum(by, TableCut::columns, "how a table is cut"));
    return parallel_embedding(m, value_of(ids), what, cut);
  });
}
dtg_error* dtg_mesh_attention(dtg_mesh* mesh, dtg_value query, dtg_value value, const dtg_attention* layer, dtg_value* out) noexcept {
  return value_of_mesh(mesh, out, [&](Mesh& m) -> Result<Value> {
    Value key;
    DTG_ASSIGN(const AttentionLayer what, read_attention(m.model(), layer, &key));
    return parallel_attention(m, value_of(query), value_of(value), key, what);
  });
}

}  // extern "C"
