// Adds the parts of layers on their devices. See tensor_parallel.h for threads.
#include "strategy/tensor_parallel.h"

#include <array>

#include "nn/layer.h"
#include "nn/scope.h"
#include "strategy/sharded.h"

namespace dtg {
namespace {

// A variable of a layer, cut along an axis into parts of those sizes, one on each device of the model axis.
struct CutVariable {
  std::string_view layer = {};  // whose weights it shares; empty: its own
  std::string_view name = {};
  DType dtype = DType::f32;
  Shape shape = {};
  Initializer initializer = {};
  int32_t axis = 0;
};

Result<std::vector<NamedVariable>> cut_variable(Mesh& mesh, const CutVariable& whole, std::span<const int64_t> sizes) {
  const NameScope scope(mesh.model().graph(), whole.name);
  const std::string shared = whole.layer.empty() ? std::string() : std::string(whole.layer) + "/" + std::string(whole.name);
  std::vector<NamedVariable> parts;
  int64_t first = 0;
  for (size_t m = 0; m < sizes.size(); ++m) {
    std::vector<int64_t> dims(whole.shape.dims().begin(), whole.shape.dims().end());
    dims[static_cast<size_t>(whole.axis)] = sizes[m];
    DTG_ASSIGN(const Shape shape, Shape::make(dims));
    const std::string name = "part_" + std::to_string(m);
    const Mesh::OnRank there(mesh, static_cast<int64_t>(m));
    DTG_ASSIGN(NamedVariable part,
               variable_of(mesh.model(), shared,
                           {.name = name,
                            .dtype = whole.dtype,
                            .shape = shape,
                            .initializer = whole.initializer,
                            .part = {{}, whole.shape, whole.axis, static_cast<int32_t>(m), static_cast<int32_t>(sizes.size()), first}}));
    parts.push_back(std::move(part));
    first += sizes[m];
  }
  return parts;
}

// So many columns, rows or heads over the devices of the model axis.
Result<std::vector<int64_t>> dealt(const Mesh& mesh, int64_t count, const char* what) {
  const int64_t ranks = mesh.options().model;
  if (count < ranks) {
    return invalid_argument("%s: %lld are to be cut over %lld devices of the model axis; each needs one at least", what,
                            static_cast<long long>(count), static_cast<long long>(ranks));
  }
  std::vector<int64_t> sizes;
  for (int64_t m = 0; m < ranks; ++m) {
    DTG_ASSIGN(const ShardRows rows, shard_rows(count, ranks, m));
    sizes.push_back(rows.count);
  }
  return sizes;
}

Status check_parts(const Mesh& mesh, std::span<const Value> parts, const char* what) {
  DTG_TRY(mesh.in_step(what));
  if (parts.size() != static_cast<size_t>(mesh.options().model)) {
    return invalid_argument("%s: %zu parts for %lld devices of the model axis; give one for each", what, parts.size(),
                            static_cast<long long>(mesh.options().model));
  }
  for (const Value part : parts) DTG_TRY(mesh.model().graph().check(part).with_context(what));
  return {};
}

Value added(Build& build, std::span<const Value> parts) { return build.op("AddN", parts, {}, "sum"); }

}  // namespace

Result<std::vector<Value>> column_dense(Mesh& mesh, Value x, const DenseLayer& layer) {
  const char* const what = "column dense layer";
  Model& model = mesh.model();
  DTG_TRY(mesh.in_step(what));
  DTG_ASSIGN(const int64_t in, channels_of(model, x, what, 2, kRankMax));
  if (mesh.options().model == 1) {
    DTG_ASSIGN(const Value y, dense(model, x, layer));
    return std::vector<Value>{y};
  }
  if (layer.activation == Activation::softmax)
    return invalid_argument("%s: a softmax is over all columns, and each device has some; put them together first", what);
  DTG_ASSIGN(const std::vector<int64_t> units, dealt(mesh, layer.units, what));
  const NameScope scope(model.graph(), layer.name);
  Build build(model.graph());
  const DType dtype = build.info(x).dtype;
  DTG_ASSIGN(const auto kernels,
             cut_variable(mesh, {layer.weights_of, "kernel", dtype, Shape::of({in, layer.units}), layer.kernel, 1}, units));
  std::vector<NamedVariable> biases;
  if (layer.use_bias) {
    DTG_ASSIGN(biases, cut_variable(mesh, {layer.weights_of, "bias", dtype, Shape::of({layer.units}), layer.bias, 0}, units));
  }
  std::vector<Value> made;
  for (size_t m = 0; m < units.size(); ++m) {
    const Mesh::OnRank there(mesh, static_cast<int64_t>(m));
    Value y = project(build, x, kernels[m].read, in, units[m]);
    if (layer.use_bias) y = build.op("BiasAdd", {y, biases[m].read});
    made.push_back(activate(build, y, layer.activation));
  }
  DTG_TRY(build.status());
  return made;
}

Result<Value> row_dense(Mesh& mesh, std::span<const Value> parts, const DenseLayer& layer) {
  const char* const what = "row dense layer";
  Model& model = mesh.model();
  DTG_TRY(check_parts(mesh, parts, what));
  if (parts.size() == 1) return dense(model, parts[0], layer);
  if (layer.units < 1) return invalid_argument("%s: %lld units; at least 1 is needed", what, static_cast<long long>(layer.units));
  std::vector<int64_t> rows;
  int64_t in = 0;
  for (const Value part : parts) {
    DTG_ASSIGN(rows.emplace_back(), channels_of(model, part, what, 2, kRankMax));
    in += rows.back();
  }
  const NameScope scope(model.graph(), layer.name);
  Build build(model.graph());
  const DType dtype = build.info(parts[0]).dtype;
  DTG_ASSIGN(const auto kernels,
             cut_variable(mesh, {layer.weights_of, "kernel", dtype, Shape::of({in, layer.units}), layer.kernel, 0}, rows));
  std::vector<Value> products;
  for (size_t m = 0; m < parts.size(); ++m) {
    const Mesh::OnRank there(mesh, static_cast<int64_t>(m));
    products.push_back(project(build, parts[m], kernels[m].read, rows[m], layer.units));
  }
  Value y = added(build, products);
  if (layer.use_bias) y = add_bias(model, build, y, layer.units, layer.bias, layer.weights_of);
  y = activate(build, y, layer.activation);
  DTG_TRY(build.status());
  return y;
}

Result<Value> together(Mesh& mesh, std::span<const Value> parts, int32_t axis) {
  DTG_TRY(check_parts(mesh, parts, "put parts together"));
  if (parts.size() == 1) return parts[0];
  Build build(mesh.model().graph());
  std::vector<Value> inputs(parts.begin(), parts.end());
  inputs.push_back(build.integer(axis));
  const Value whole = build.op("ConcatV2", inputs);
  DTG_TRY(build.status().with_context("put parts together"));
  return whole;
}

// --- embedding ---

Result<Value> parallel_embedding(Mesh& mesh, Value ids, const EmbeddingLayer& layer, TableCut by) {
  const char* const what = "embedding layer";
  Model& model = mesh.model();
  DTG_TRY(mesh.in_step(what));
  DTG_TRY(model.graph().check(ids).with_context(what));
  if (mesh.options().model == 1) return embedding(model, ids, layer);
  const DType of_ids = model.graph().info(ids).dtype;
  if (of_ids != DType::i32 && of_ids != DType::i64)
    return invalid_argument("%s: the ids are %s; int32 or int64 is needed", what, described(model, ids).c_str());
  const int32_t axis = by == TableCut::rows ? 0 : 1;
  DTG_ASSIGN(const std::vector<int64_t> sizes, dealt(mesh, axis == 0 ? layer.rows : layer.width, what));
  DTG_ASSIGN(const Shape shape, Shape::make(std::array{layer.rows, layer.width}));
  const NameScope scope(model.graph(), layer.name);
  DTG_ASSIGN(const auto tables, cut_variable(mesh, {layer.weights_of, "embeddings", DType::f32, shape, layer.table, axis}, sizes));
  if (axis == 0) return sharded_lookup(model, {tables[0].part.whole, DType::f32, shape, 0, tables}, ids);
  Build build(model.graph());
  std::vector<Value> pieces;
  for (size_t m = 0; m < tables.size(); ++m) {
    const Mesh::OnRank there(mesh, static_cast<int64_t>(m));
    pieces.push_back(build.op("ResourceGather", {tables[m].handle, ids}, {{"dtype", DType::f32}}));
  }
  DTG_TRY(build.status());
  return together(mesh, pieces, -1);
}

// --- attention ---

namespace {

class ParallelHeads {
 public:
  ParallelHeads(Mesh& mesh, const AttentionLayer& layer, std::vector<int64_t> heads)
      : mesh_(mesh), layer_(layer), heads_(std::move(heads)), build_(mesh.model().graph()) {}

  Result<Value> run(Value query, Value value, Value key) {
    const int64_t values = layer_.value_width ? layer_.value_width : layer_.key_width;
    const int64_t in = build_.info(query).shape.dim(2), out = layer_.output_width ? layer_.output_width : in;
    DTG_ASSIGN(const auto q, headed("query", query, layer_.key_width));
    DTG_ASSIGN(const auto k, headed("key", key, layer_.key_width));
    DTG_ASSIGN(const auto v, headed("value", value, values));
    std::vector<Value> rows;
    for (size_t m = 0; m < heads_.size(); ++m) {
      const Mesh::OnRank there(mesh_, static_cast<int64_t>(m));
      rows.push_back(from_heads(build_, attend(build_, q[m], k[m], v[m], layer_), heads_[m], values));
    }
    DTG_TRY(build_.status());
    return output(rows, values, out);
  }

 private:
  std::string shared(const char* name) const {
    return layer_.weights_of.empty() ? std::string() : std::string(layer_.weights_of) + "/" + name;
  }

  Result<std::vector<Value>> headed(const char* name, Value x, int64_t width) {
    const int64_t in = build_.info(x).shape.dim(2);
    const DType dtype = build_.info(x).dtype;
    const NameScope scope(mesh_.model().graph(), name);
    DTG_ASSIGN(const auto kernels,
               cut_variable(mesh_, {shared(name), "kernel", dtype, Shape::of({in, layer_.heads, width}), layer_.kernel, 1}, heads_));
    std::vector<NamedVariable> biases;
    if (layer_.use_bias) {
      DTG_ASSIGN(biases, cut_variable(mesh_, {shared(name), "bias", dtype, Shape::of({layer_.heads, width}), layer_.bias, 0}, heads_));
    }
    std::vector<Value> made;
    for (size_t m = 0; m < heads_.size(); ++m) {
      const Mesh::OnRank there(mesh_, static_cast<int64_t>(m));
      const int64_t wide = heads_[m] * width;
      Value y = project(build_, x, build_.reshape(kernels[m].read, build_.ints({in, wide})), in, wide);
      if (layer_.use_bias) y = build_.op("BiasAdd", {y, build_.reshape(biases[m].read, build_.ints({wide}))});
      made.push_back(to_heads(build_, y, heads_[m], width));
    }
    DTG_TRY(build_.status());
    return made;
  }

  Result<Value> output(const std::vector<Value>& rows, int64_t values, int64_t out) {
    const char* const name = "attention_output";
    const NameScope scope(mesh_.model().graph(), name);
    const DType dtype = build_.info(rows[0]).dtype;
    DTG_ASSIGN(const auto kernels,
               cut_variable(mesh_, {shared(name), "kernel", dtype, Shape::of({layer_.heads, values, out}), layer_.kernel, 0}, heads_));
    std::vector<Value> products;
    for (size_t m = 0; m < heads_.size(); ++m) {
      const Mesh::OnRank there(mesh_, static_cast<int64_t>(m));
      const int64_t wide = heads_[m] * values;
      products.push_back(project(build_, rows[m], build_.reshape(kernels[m].read, build_.ints({wide, out})), wide, out));
    }
    Value y = added(build_, products);
    if (layer_.use_bias) y = add_bias(mesh_.model(), build_, y, out, layer_.bias, shared(name));
    DTG_TRY(build_.status());
    return y;
  }

  Mesh& mesh_;
  const AttentionLayer& layer_;
  const std::vector<int64_t> heads_;
  Build build_;
};

}  // namespace

Result<Value> parallel_attention(Mesh& mesh, Value query, Value value, Value key, const AttentionLayer& layer) {
  const char* const what = "multi head attention";
  DTG_TRY(mesh.in_step(what));
  DTG_TRY(check_attention(mesh.model(), query, value, key, layer));
  if (mesh.options().model == 1) return attention(mesh.model(), query, value, key, layer);
  DTG_ASSIGN(std::vector<int64_t> heads, dealt(mesh, layer.heads, what));
  const NameScope scope(mesh.model().graph(), layer.name);
  return ParallelHeads(mesh, layer, std::move(heads)).run(query, value, key.valid() ? key : value);
}

}  // namespace dtg
