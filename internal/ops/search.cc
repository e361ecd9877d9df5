// Where values belong among sorted ones: LowerBound, UpperBound and Bucketize.
#include <algorithm>

#include "device/cpu/copy.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/integers.h"

namespace dtg::ops {
namespace {

// ---- LowerBound, UpperBound --------------------------------------------------------------------------------

Status bound_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 2));
  DTG_TRY(c.require_rank(1, 2));
  c.output(0, c.input(1));
  return {};
}

struct BoundArgs {
  int64_t rows = 0, sorted = 0, values = 0;
  bool upper = false;
  bool wide = false;  // int64 places
};

template <class T>
Status bound_run(RunContext& c) {
  const auto& a = c.args<BoundArgs>();
  const auto before = [](T x, T y) { return x < y; };
  const int64_t count = a.rows * a.values, shards = std::min(cpu::shards_for_bytes(count * 64), std::max<int64_t>(count, 1));
  c.pool().parallel_for(shards, [&](int64_t s) {
    for (int64_t i = count * s / shards; i < count * (s + 1) / shards; ++i) {
      const T* const row = c.in<T>(0) + i / a.values * a.sorted;
      const T value = c.in<T>(1)[i];
      const T* const at =
          a.upper ? std::upper_bound(row, row + a.sorted, value, before) : std::lower_bound(row, row + a.sorted, value, before);
      if (a.wide) c.out<int64_t>(0)[i] = at - row;
      else c.out<int32_t>(0)[i] = static_cast<int32_t>(at - row);
    }
  });
  return {};
}

template <class T>
Status bound_prepare(PrepareContext& c) {
  auto* a = c.args<BoundArgs>();
  const Shape &sorted = c.input(0).shape, &values = c.input(1).shape;
  if (sorted.dim(0) != values.dim(0)) {
    return c.error("sorted inputs of shape %s and values of shape %s differ in the first dimension", sorted.text().c_str(),
                   values.text().c_str());
  }
  a->rows = values.dim(0);
  a->sorted = sorted.dim(1);
  a->values = values.dim(1);
  a->upper = c.node().op->name() == "UpperBound";
  a->wide = c.output(0).dtype == DType::i64;
  if (!a->wide && a->sorted > INT32_MAX) return c.error("rows of %lld need out_type int64", static_cast<long long>(a->sorted));
  return c.sync(bound_run<T>);
}

template <class... T>
void add_bound_kernels(KernelTable& kernels) {
  (kernels.add({.op = "LowerBound", .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = bound_prepare<T>}), ...);
  (kernels.add({.op = "UpperBound", .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = bound_prepare<T>}), ...);
}

// ---- Bucketize ---------------------------------------------------------------------------------------------

struct BucketArgs {
  std::span<const float> boundaries;
  int64_t count = 0;
};

template <class T>
Status bucketize_run(RunContext& c) {
  const auto& a = c.args<BucketArgs>();
  const auto& all = a.boundaries;
  const int64_t shards = std::min(cpu::shards_for_bytes(a.count * 64), std::max<int64_t>(a.count, 1));
  c.pool().parallel_for(shards, [&](int64_t s) {
    for (int64_t i = a.count * s / shards; i < a.count * (s + 1) / shards; ++i) {
      // In whatever the two promote to, as TensorFlow compares them.
      const auto at = std::upper_bound(all.begin(), all.end(), c.in<T>(0)[i], [](T value, float bound) {
        if constexpr (std::is_integral_v<T>) return static_cast<float>(value) < bound;
        else return value < bound;
      });
      c.out<int32_t>(0)[i] = static_cast<int32_t>(at - all.begin());
    }
  });
  return {};
}

template <class T>
Status bucketize_prepare(PrepareContext& c) {
  auto* a = c.args<BucketArgs>();
  std::vector<float> boundaries;
  for (double bound : c.attr<std::vector<double>>("boundaries")) boundaries.push_back(static_cast<float>(bound));
  if (!std::ranges::is_sorted(boundaries)) return c.error("the boundaries are not sorted");
  a->boundaries = c.arena().copy(std::span<const float>(boundaries));
  a->count = c.input(0).shape.count();
  return c.sync(bucketize_run<T>);
}

template <class... T>
void add_bucket_kernels(KernelTable& kernels) {
  (kernels.add({.op = "Bucketize", .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = bucketize_prepare<T>}), ...);
}

}  // namespace

void register_search(OpTable& ops, KernelTable& kernels) {
  for (const char* name : {"LowerBound", "UpperBound"}) {
    ops.add(OpDef::make(name)
                .input("sorted_inputs: T", {.rank = 2})
                .input("values: T", {.rank = 2})
                .output("output: out_type")
                .attr("T: type")
                .attr("out_type: {int32, int64} = int32")
                .shape(bound_shape)
                .no_gradient()
                .doc(name[0] == 'L' ? "The first place in the sorted row where the value could stand."
                                    : "The last place in the sorted row where the value could stand."));
  }
  add_bound_kernels<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, Half, BFloat16>(kernels);
  ops.add(OpDef::make("Bucketize")
              .input("input: T")
              .output("output: int32")
              .attr("T: {int32, int64, float, double}")
              .attr("boundaries: list(float)")
              .shape(unchanged_shape)
              .no_gradient()
              .doc("The bucket of each value: how many boundaries are not above it."));
  add_bucket_kernels<int32_t, int64_t, float, double>(kernels);
}

}  // namespace dtg::ops
