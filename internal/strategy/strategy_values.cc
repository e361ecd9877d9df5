// Per-replica values: making them, and one value out of them. See strategy.h for threads.
#include <algorithm>

#include "nn/scope.h"
#include "strategy/on_device.h"
#include "strategy/strategy.h"

namespace dtg {
namespace {

// What integers are divided in: as TensorFlow's true division, float32 where that holds them and float64 otherwise.
DType quotient_dtype(DType dtype) {
  if (dtype_is_floating(dtype)) return dtype;
  return dtype_size(dtype) <= 2 ? DType::f32 : DType::f64;
}

// How many elements there are along an axis, in the type that the value is divided in.
Value extent(Build& build, Value value, int32_t axis) {
  if (!build.ok()) return {};
  const DType dtype = quotient_dtype(build.info(value).dtype);
  return build.cast(build.op("GatherV2", {build.shape(value), build.integer(axis), build.integer(0)}), dtype);
}

Status check_axis(const Graph& graph, std::span<const Value> parts, int32_t axis, const char* what) {
  const PartialShape& first = graph.info(parts[0]).shape;
  for (const Value part : parts) {
    const PartialShape& shape = graph.info(part).shape;
    if (!shape.has_rank() || !first.has_rank() || shape.rank() == first.rank()) continue;
    return invalid_argument("%s: it needs all values to have the same rank, and they are of %s and %s", what, first.text().c_str(),
                            shape.text().c_str());
  }
  if (!first.has_rank()) return invalid_argument("%s along axis %d: the rank of the values is not known", what, axis);
  if (axis >= -first.rank() && axis < first.rank()) return {};
  return invalid_argument("%s along axis %d: the values are of %s", what, axis, first.text().c_str());
}

}  // namespace

Strategy::Id Strategy::add(std::vector<Value> values) {
  values_.push_back({std::move(values), run_ ? run_->first_tower : SIZE_MAX});
  return (Id{tag_} << 32) | values_.size();
}

Result<const Strategy::PerReplica*> Strategy::resolve(Id id, const char* what) const {
  const auto tag = static_cast<uint32_t>(id >> 32);
  const auto number = static_cast<uint32_t>(id);
  if (id == 0) return invalid_argument("%s: no value was given", what);
  if ((tag & 0x80000000u) == 0) {
    return invalid_argument("%s: the value is not per replica; give what a run, a distribution or a split made", what);
  }
  if (tag != tag_) return invalid_argument("%s: the value is of another strategy; strategies cannot be mixed", what);
  if (number == 0 || number > values_.size()) return invalid_argument("%s: the strategy has no per-replica value %u", what, number);
  return &values_[number - 1];
}

// Two halves of neighbours, each added up on its first device, then the halves: fewer values cross from one half to the other.
Value Strategy::add_up(Build& build, std::span<const Value> parts, std::span<const std::string> devices) {
  const size_t half = parts.size() / 2;
  if (options_.cross == CrossDevice::reduce_to_one || half < 2) return build.op("AddN", parts);
  std::vector<Value> halves;
  for (const size_t begin : {size_t{0}, half}) {
    const OnDevice there(graph(), devices[begin]);
    halves.push_back(build.op("AddN", parts.subspan(begin, begin == 0 ? half : parts.size() - half)));
  }
  return build.op("AddN", halves);
}

Result<Value> Strategy::combine(Reduce reduce, std::span<const Value> parts) {
  if (options_.hooks.reduce_to) {
    DTG_ASSIGN(const Value made, options_.hooks.reduce_to(reduce, parts));
    DTG_TRY(graph().check(made).with_context("reduce_to of the strategy"));
    return made;
  }
  const ValueInfo& info = graph().info(parts[0]);
  if (reduce == Reduce::mean && !dtype_is_floating(info.dtype)) {
    return invalid_argument("reduce to the mean: the values are %s; cast them to a floating-point type first", dtype_name(info.dtype));
  }
  if (options_.workers) return combine_workers(reduce, parts);
  Build build(graph());
  Value made = add_up(build, parts, options_.devices);
  if (build.ok() && reduce == Reduce::mean) made = build.div(made, build.like(made, static_cast<double>(parts.size())));
  DTG_TRY(build.status().with_context("reduce over replicas"));
  return made;
}

// The mean counts elements, so that shares of different sizes weigh what they are.
Result<Value> Strategy::along_axis(Reduce reduce, std::span<const Value> parts, int32_t axis) {
  DTG_TRY(check_axis(graph(), parts, axis, "reduce"));
  Build build(graph());
  std::vector<Value> sums, counts;
  for (size_t r = 0; r < parts.size(); ++r) {
    const OnDevice there(graph(), options_.devices[r]);
    const int32_t place = axis < 0 ? axis + graph().info(parts[r]).shape.rank() : axis;
    sums.push_back(build.sum(parts[r], build.ints({place})));
    if (reduce == Reduce::mean) counts.push_back(extent(build, parts[r], place));
  }
  DTG_TRY(build.status().with_context("reduce along an axis"));
  DTG_ASSIGN(const Value sum, combine(Reduce::sum, sums));
  if (reduce == Reduce::sum) return sum;
  DTG_ASSIGN(const Value count, options_.workers ? combine_workers(Reduce::sum, counts) : add_up(build, counts, options_.devices));
  DTG_TRY(build.status().with_context("reduce along an axis"));
  const Value made = build.div(build.cast(sum, build.info(count).dtype), count);
  DTG_TRY(build.status().with_context("reduce along an axis"));
  return made;
}

Result<Value> Strategy::reduce(Reduce reduce, Id value, int32_t axis) {
  DTG_TRY(cross("reduce"));
  if (reduce != Reduce::sum && reduce != Reduce::mean) return invalid_argument("reduce: %d is none of its ops", static_cast<int>(reduce));
  DTG_ASSIGN(const PerReplica* const found, resolve(value, "reduce"));
  const std::vector<Value> parts = found->values;
  const NameScope scope(graph(), "reduce");
  const OnDevice first(graph(), options_.devices[0]);
  return axis == kNoAxis ? combine(reduce, parts) : along_axis(reduce, parts, axis);
}

Result<Value> Strategy::gather(Id value, int32_t axis) {
  DTG_TRY(cross("gather"));
  DTG_ASSIGN(const PerReplica* const found, resolve(value, "gather"));
  const std::vector<Value> parts = found->values;
  DTG_TRY(check_axis(graph(), parts, axis, "gather"));
  const NameScope scope(graph(), "gather");
  const OnDevice first(graph(), options_.devices[0]);
  if (options_.hooks.gather) {
    DTG_ASSIGN(const Value made, options_.hooks.gather(parts, axis));
    DTG_TRY(graph().check(made).with_context("gather of the strategy"));
    return made;
  }
  Build build(graph());
  std::vector<Value> inputs = parts;
  inputs.push_back(build.integer(axis));
  const Value made = parts.size() == 1 ? parts[0] : build.op("ConcatV2", inputs);
  DTG_TRY(build.status().with_context("gather"));
  return options_.workers ? gather_workers(made, axis) : made;
}

Result<Strategy::Id> Strategy::distribute(std::span<const Value> values) {
  DTG_TRY(cross("distribute values"));
  if (values.size() != replicas()) return invalid_argument("distribute values: %zu values for %zu replicas", values.size(), replicas());
  for (const Value value : values) DTG_TRY(graph().check(value).with_context("distribute values"));
  return add({values.begin(), values.end()});
}

Result<Strategy::Id> Strategy::broadcast(Value value) {
  DTG_TRY(cross("broadcast"));
  DTG_TRY(graph().check(value).with_context("broadcast"));
  std::vector<Value> values(replicas(), value);
  if (options_.hooks.broadcast_to) DTG_TRY(options_.hooks.broadcast_to(value, values));
  return distribute(values);
}

Result<Strategy::Id> Strategy::split(Value batch) {
  DTG_TRY(cross("split a batch"));
  DTG_TRY(graph().check(batch).with_context("split a batch"));
  std::vector<Value> parts(replicas());
  const NameScope scope(graph(), "split");
  if (options_.hooks.split) {
    DTG_TRY(options_.hooks.split(batch, parts));
    return distribute(parts);
  }
  const PartialShape& shape = graph().info(batch).shape;
  if (!shape.has_rank() || shape.rank() == 0) {
    return invalid_argument("split a batch: it is %s; a known rank of 1 or more is needed", shape.text().c_str());
  }
  if (shape.dim(0) >= 0 && shape.dim(0) < static_cast<int64_t>(replicas())) {
    return invalid_argument("split a batch: it has %lld rows for %zu replicas; give each one at least",
                            static_cast<long long>(shape.dim(0)), replicas());
  }
  // Where the batch is fed: devices get their share only.
  const OnDevice host(graph(), "/device:CPU:0");
  Build build(graph());
  const Value all = build.shape(batch, DType::i64), zero = build.integer(0);
  const Value rows = build.op("GatherV2", {all, zero, zero});
  const auto n = static_cast<int64_t>(replicas());
  const Value each = build.op("FloorDiv", {rows, build.integer(n, DType::i64)});
  const Value extra = build.op("FloorMod", {rows, build.integer(n, DType::i64)});
  const auto begin_of = [&](int64_t r) {
    const Value number = build.integer(r, DType::i64);
    return build.reshape(build.add(build.mul(each, number), build.op("Minimum", {extra, number})), build.ints({1}));
  };
  for (int64_t r = 0; r < n; ++r) {
    parts[static_cast<size_t>(r)] = build.op("StridedSlice", {batch, begin_of(r), begin_of(r + 1), build.ints({1}, DType::i64)});
  }
  DTG_TRY(build.status().with_context("split a batch"));
  return distribute(parts);
}

Result<Value> Strategy::local(Id value) const {
  DTG_TRY(in_replica("the local value"));
  DTG_ASSIGN(const PerReplica* const found, resolve(value, "the local value"));
  return found->values[replica_];
}

Result<std::vector<Value>> Strategy::local_results(Id value) const {
  DTG_TRY(cross("local results"));
  DTG_ASSIGN(const PerReplica* const found, resolve(value, "local results"));
  std::vector<Value> results = found->values;
  if (options_.hooks.local_results) {
    const std::vector<Value> all = std::move(results);
    results.clear();
    DTG_TRY(options_.hooks.local_results(all, &results));
  }
  return results;
}

}  // namespace dtg
