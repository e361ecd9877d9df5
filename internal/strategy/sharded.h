// Sharded variables: one variable of a model cut along an axis into several, each of which stands by itself: under a device setter on one
// parameter server after the other. To optimizers, replicas and accumulators they are variables like others; files know the whole
// (nn/wholes.h). Rows are dealt out as TensorFlow's partition strategy "div" does, and an embedding is looked up shard by shard, where each
// stands, so that only rows travel.
// Functions over a model; the thread that builds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nn/layers.h"
#include "nn/model.h"
#include "strategy/partitioner.h"

namespace dtg {

inline constexpr int64_t kShardsPerVariable = 4096;

struct ShardedVariable {
  std::string name = {};
  DType dtype = DType::invalid;
  Shape shape = {};
  int32_t axis = 0;
  std::vector<NamedVariable> shards = {};  // as the replica that is being built has them
};

// `whole` as for a variable that is not cut. The shards are called "name/part_0" and so on, also where there is one only; first values are
// what the whole's would be.
Result<ShardedVariable> add_sharded(Model& model, const VariableSpec& whole, const Partitioner& partitioner);
// NOT_FOUND for a variable that is not cut.
Result<ShardedVariable> find_sharded(const Model& model, std::string_view name);

// All of it, dense: each run that uses it moves all shards.
Result<Value> sharded_value(Model& model, const ShardedVariable& variable);
// Row ids[i] of a variable that is cut along its first axis. Gradients are rows of the shards.
Result<Value> sharded_lookup(Model& model, const ShardedVariable& variable, Value ids);

// The embedding layer over a table in shards.
Result<Value> sharded_embedding(Model& model, Value ids, const EmbeddingLayer& layer, const Partitioner& partitioner);

}  // namespace dtg
