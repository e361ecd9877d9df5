// Adds shards and what reads them. See sharded.h for threads.
#include "strategy/sharded.h"

#include <algorithm>
#include <array>

#include "base/spelling.h"
#include "nn/layer.h"
#include "nn/scope.h"

namespace dtg {
namespace {

Status check_whole(const VariableSpec& whole) {
  if (whole.name.empty()) return invalid_argument("add a variable in shards: it has no name");
  if (whole.colocate == kNoNode && !whole.first.valid() && !whole.part.any()) return {};
  return invalid_argument("add \"%s\" in shards: what stands beside another variable, or begins with its value, is never cut",
                          std::string(whole.name).c_str());
}

Status check_ids(const Model& model, Value ids, const char* what) {
  DTG_TRY(model.graph().check(ids).with_context(what));
  const DType dtype = model.graph().info(ids).dtype;
  if (dtype == DType::i32 || dtype == DType::i64) return {};
  return invalid_argument("%s: the ids are %s; int32 or int64 is needed", what, described(model, ids).c_str());
}

// Which shard each id is in, and which row it is there, by the first row of each: of `rows` rows the first `extra` shards have one more.
struct Dealt {
  Value shard, row;
};

Dealt deal_out(Build& build, Value ids, int64_t rows, int64_t shards) {
  if (!build.ok()) return {};
  const DType dtype = build.info(ids).dtype;
  const auto number = [&](int64_t value) { return build.integer(value, dtype); };
  const int64_t each = rows / shards, extra = rows % shards;
  const Value beyond = build.sub(ids, number(extra));
  const Value shard = build.op("Maximum", {build.op("FloorDiv", {ids, number(each + 1)}), build.op("FloorDiv", {beyond, number(each)})});
  const Value is_long = build.op("Less", {shard, number(extra)});
  const Value row =
      build.op("SelectV2", {is_long, build.op("FloorMod", {ids, number(each + 1)}), build.op("FloorMod", {beyond, number(each)})});
  return {build.cast(shard, DType::i32), row};
}

}  // namespace

Result<ShardedVariable> add_sharded(Model& model, const VariableSpec& whole, const Partitioner& partitioner) {
  DTG_TRY(check_whole(whole));
  if (model.is_inside()) {
    return unimplemented("add \"%s\" in shards from the body of a function: make it outside, and name its layer in `weights_of`",
                         std::string(whole.name).c_str());
  }
  DTG_ASSIGN(const int64_t count, partitioner.shards(whole.dtype, whole.shape.dims()));
  if (count < 1 || count > kShardsPerVariable) {
    return invalid_argument("add \"%s\" of %s in %lld shards: there can be 1 to %lld, and none without a row",
                            std::string(whole.name).c_str(), whole.shape.text().c_str(), static_cast<long long>(count),
                            static_cast<long long>(kShardsPerVariable));
  }
  ShardedVariable made = {{}, whole.dtype, whole.shape, static_cast<int32_t>(partitioner.axis), {}};
  const NameScope scope(model.graph(), whole.name);
  for (int64_t i = 0; i < count; ++i) {
    DTG_ASSIGN(const ShardRows rows, shard_rows(whole.shape.dim(made.axis), count, i));
    std::vector<int64_t> dims(whole.shape.dims().begin(), whole.shape.dims().end());
    dims[static_cast<size_t>(made.axis)] = rows.count;
    const std::string name = "part_" + std::to_string(i);
    VariableSpec spec = whole;
    spec.name = name;
    DTG_ASSIGN(spec.shape, Shape::make(dims));
    spec.part = {{}, whole.shape, made.axis, static_cast<int32_t>(i), static_cast<int32_t>(count), rows.first};
    DTG_ASSIGN(NamedVariable shard, model.add_variable(spec));
    made.shards.push_back(std::move(shard));
  }
  made.name = made.shards[0].part.whole;
  return made;
}

Result<ShardedVariable> find_sharded(const Model& model, std::string_view name) {
  ShardedVariable found;
  for (const NamedVariable& each : model.variables()) {
    if (!each.part.any() || each.part.whole != name) continue;
    found.name = each.part.whole;
    found.dtype = each.dtype;
    found.shape = each.part.shape;
    found.axis = each.part.axis;
    found.shards.push_back(model.here(each));
  }
  if (!found.shards.empty()) return found;
  const std::string text(name.substr(0, 200));
  if (model.find(name)) return not_found("the variable \"%s\" is in one piece; only what was added in shards is in shards", text.c_str());
  std::vector<std::string_view> sharded;  // one by one: a whole has a shard after the other
  for (const NamedVariable& each : model.variables()) {
    if (each.part.any() && (sharded.empty() || sharded.back() != each.part.whole)) sharded.push_back(each.part.whole);
  }
  return not_found("the model has no variable \"%s\" in shards: %s", text.c_str(), names_text(name, sharded).c_str());
}

Result<Value> sharded_value(Model& model, const ShardedVariable& variable) {
  Build build(model.graph());
  if (variable.shards.size() == 1) return model.here(variable.shards[0]).read;
  std::vector<Value> inputs;
  for (const NamedVariable& shard : variable.shards) inputs.push_back(shard.read);
  inputs.push_back(build.integer(variable.axis));
  const Value whole = build.op("ConcatV2", inputs);
  DTG_TRY(build.status().with_context("the value of \"" + variable.name + "\""));
  return whole;
}

Result<Value> sharded_lookup(Model& model, const ShardedVariable& variable, Value ids) {
  DTG_TRY(check_ids(model, ids, "embedding lookup"));
  if (variable.axis != 0 || variable.shape.rank() < 1) {
    return invalid_argument("embedding lookup: \"%s\" is cut along axis %d; rows are looked up in what is cut along axis 0",
                            variable.name.c_str(), variable.axis);
  }
  Build build(model.graph());
  const NameScope scope(model.graph(), "embedding_lookup");
  const auto gather = [&](const NamedVariable& shard, Value rows) { return look_up(model, build, model.here(shard), rows); };
  const auto count = static_cast<int64_t>(variable.shards.size());
  const PartialShape of_ids = build.info(ids).shape;
  Value made;
  if (count == 1) {
    made = gather(variable.shards[0], ids);
  } else {
    const Value flat = build.reshape(ids, build.ints({-1}));
    const Dealt dealt = deal_out(build, flat, variable.shape.dim(0), count);
    const Value places = counting(build, build.op("Size", {flat}));
    const Value rows = build.op("DynamicPartition", {dealt.row, dealt.shard}, {{"num_partitions", count}});
    const Value where = build.op("DynamicPartition", {places, dealt.shard}, {{"num_partitions", count}});
    std::vector<Value> parts;
    for (int64_t i = 0; build.ok() && i < count; ++i) parts.push_back(where.sibling(static_cast<uint32_t>(i)));
    for (int64_t i = 0; build.ok() && i < count; ++i) {
      parts.push_back(gather(variable.shards[static_cast<size_t>(i)], rows.sibling(static_cast<uint32_t>(i))));
    }
    const Attr pairs{"N", count};
    const Value stitched = build.op("DynamicStitch", parts, {&pairs, 1});
    const Value width = build.ints(variable.shape.dims().subspan(1));
    made = build.reshape(stitched, build.op("ConcatV2", {build.shape(ids), width, build.integer(0)}));
  }
  DTG_TRY(build.status().with_context("embedding lookup in \"" + variable.name + "\""));
  if (!of_ids.has_rank()) return made;
  std::vector<int64_t> dims(of_ids.dims().begin(), of_ids.dims().end());
  dims.insert(dims.end(), variable.shape.dims().begin() + 1, variable.shape.dims().end());
  DTG_ASSIGN(const PartialShape shape, PartialShape::make(dims));
  made = shaped(build, made, shape);
  DTG_TRY(build.status());
  return made;
}

Result<Value> sharded_embedding(Model& model, Value ids, const EmbeddingLayer& layer, const Partitioner& partitioner) {
  DTG_TRY(check_ids(model, ids, "embedding layer"));
  if (layer.rows < 1 || layer.width < 1) {
    return invalid_argument("embedding layer: %lld rows of %lld; at least 1 of each is needed", static_cast<long long>(layer.rows),
                            static_cast<long long>(layer.width));
  }
  if (partitioner.axis != 0) {
    return invalid_argument("embedding layer: a table that is cut along axis %lld; its rows are looked up, so it is cut along axis 0",
                            static_cast<long long>(partitioner.axis));
  }
  const NameScope scope(model.graph(), layer.name);
  DTG_ASSIGN(const Shape shape, Shape::make(std::array{layer.rows, layer.width}));
  ShardedVariable table;
  if (layer.weights_of.empty()) {
    DTG_ASSIGN(table, add_sharded(model, {.name = "embeddings", .shape = shape, .initializer = layer.table}, partitioner));
  } else {
    DTG_ASSIGN(table, find_sharded(model, std::string(layer.weights_of) + "/embeddings"));
  }
  if (!(table.shape == shape)) {
    return invalid_argument("an embedding layer with the weights of \"%s\": its table is of %s, and %s is needed",
                            std::string(layer.weights_of).c_str(), table.shape.text().c_str(), shape.text().c_str());
  }
  return sharded_lookup(model, table, ids);
}

}  // namespace dtg
