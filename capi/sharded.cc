// dtg/sharded.h: variables in shards and what reads them. One thread at a time uses a model.
#include "dtg/sharded.h"

#include <algorithm>

#include "capi/guard.h"
#include "capi/model.h"
#include "capi/nn.h"
#include "capi/sharded.h"
#include "strategy/sharded.h"

namespace dtg::capi {

Result<Partitioner> read_partitioner(const dtg_partitioner* given) {
  dtg_partitioner c = DTG_PARTITIONER_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_partitioner), "dtg_partitioner", &c));
  Partitioner partitioner;
  DTG_ASSIGN(partitioner.kind, read_enum(c.kind, Partitioner::Kind::max_size, "the kind of partitioner"));
  partitioner.axis = c.axis;
  partitioner.num_shards = c.num_shards;
  partitioner.shard_bytes = c.shard_bytes == 0 && partitioner.kind == Partitioner::Kind::min_size ? 256 << 10 : c.shard_bytes;
  partitioner.max_shards = c.max_shards == 0 && partitioner.kind == Partitioner::Kind::min_size ? 1 : c.max_shards;
  if (c.bytes_per_string) partitioner.bytes_per_string = c.bytes_per_string;
  return partitioner;
}

namespace {

// The name begins that of a node, which stays where it is while the graph does.
void fill_sharded(const Model& model, const ShardedVariable& variable, dtg_sharded& answer) {
  const NamedVariable& first = variable.shards[0];
  const Value named = first.copies.empty() ? first.handle : first.copies[0].handle;
  answer.name = model.graph().node(named.node()).name.data();
  answer.name_len = variable.name.size();
  answer.dtype = static_cast<dtg_dtype>(variable.dtype);
  answer.axis = variable.axis;
  answer.shards = static_cast<int64_t>(variable.shards.size());
  answer.rank = static_cast<size_t>(variable.shape.rank());
  std::fill(std::begin(answer.dims), std::end(answer.dims), 0);
  std::ranges::copy(variable.shape.dims(), answer.dims);
}

Status answer_sharded(const Model& model, const ShardedVariable& variable, dtg_sharded* out) {
  dtg_sharded answer = DTG_SHARDED_INIT;
  DTG_TRY(read_struct(out, sizeof(dtg_sharded), "dtg_sharded", &answer));
  fill_sharded(model, variable, answer);
  write_struct(answer, out);
  return {};
}

Result<ShardedVariable> find(const Model& model, const char* name, size_t length) {
  DTG_ASSIGN(const std::string_view wanted, read_name(name, length, "name"));
  return find_sharded(model, wanted);
}

Status add(ModelObject& object, const dtg_variable_spec* spec, const dtg_partitioner* given, dtg_sharded* out) {
  dtg_sharded answer = DTG_SHARDED_INIT;
  if (out) DTG_TRY(read_struct(out, sizeof(dtg_sharded), "dtg_sharded", &answer));
  DTG_ASSIGN(const Partitioner partitioner, read_partitioner(given));
  DTG_ASSIGN(const VariableSpec whole, read_variable_spec(spec));
  ShardedVariable made;
  DTG_TRY(all_or_nothing(*object.model, [&]() -> Status {
    DTG_ASSIGN(made, add_sharded(*object.model, whole, partitioner));
    return {};
  }));
  return out ? answer_sharded(*object.model, made, out) : Status();
}

}  // namespace
}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_model_add_sharded_variable(dtg_model* model, const dtg_variable_spec* spec, const dtg_partitioner* partitioner,
                                          dtg_sharded* out) noexcept {
  return with_model(model, Owner::Use::change, [&](ModelObject& object) { return add(object, spec, partitioner, out); });
}

dtg_error* dtg_model_find_sharded_variable(const dtg_model* model, const char* name, size_t name_len, dtg_sharded* out) noexcept {
  return with_model(model, Owner::Use::read, [&](ModelObject& object) -> Status {
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(const ShardedVariable found, find(*object.model, name, name_len));
    return answer_sharded(*object.model, found, out);
  });
}

dtg_error* dtg_sharded_shard(const dtg_model* model, const char* name, size_t name_len, int64_t i, dtg_variable* out) noexcept {
  return with_model(model, Owner::Use::read, [&](ModelObject& object) -> Status {
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(const ShardedVariable found, find(*object.model, name, name_len));
    const auto count = static_cast<int64_t>(found.shards.size());
    if (i < 0 || i >= count) {
      return out_of_range("shard %lld of \"%s\": it has %lld", static_cast<long long>(i), found.name.c_str(),
                          static_cast<long long>(count));
    }
    dtg_variable answer = DTG_VARIABLE_INIT;
    DTG_TRY(read_struct(out, sizeof(dtg_variable), "dtg_variable", &answer));
    fill_variable(*object.model, found.shards[static_cast<size_t>(i)], answer);
    write_struct(answer, out);
    return {};
  });
}

dtg_error* dtg_nn_sharded_value(dtg_model* model, const char* name, size_t name_len, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) -> Result<Value> {
    DTG_ASSIGN(const ShardedVariable found, find(m, name, name_len));
    return sharded_value(m, found);
  });
}

dtg_error* dtg_nn_sharded_lookup(dtg_model* model, const char* name, size_t name_len, dtg_value ids, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) -> Result<Value> {
    DTG_ASSIGN(const ShardedVariable found, find(m, name, name_len));
    return sharded_lookup(m, found, here(m, ids));
  });
}

dtg_error* dtg_nn_sharded_embedding(dtg_model* model, dtg_value ids, const dtg_embedding* layer, const dtg_partitioner* partitioner,
                                    dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) -> Result<Value> {
    DTG_ASSIGN(const Partitioner how, read_partitioner(partitioner));
    DTG_ASSIGN(const EmbeddingLayer what, read_embedding(layer));
    return sharded_embedding(m, here(m, ids), what, how);
  });
}

}  // extern "C"
