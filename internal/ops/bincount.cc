// Counting: Bincount and DenseBincount count whole numbers, HistogramFixedWidth counts what falls into bins of one width.
// Weights are added in the order of the elements.
#include <algorithm>
#include <cmath>

#include "base/watched.h"
#include "device/cpu/copy.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/rows.h"

namespace dtg::ops {
namespace {

Status check_size(InferContext& c, const KnownIntegers& size) {
  if (!size.known || size.values[0] >= 0) return {};
  return c.error("size is %lld; it must not be negative", static_cast<long long>(size.values[0]));
}

Status bincount_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 0));
  const KnownIntegers size = known_integers(c, 1);
  DTG_TRY(check_size(c, size));
  c.output(0, PartialShape::vector(size.known ? size.values[0] : -1));
  return {};
}

Status dense_bincount_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 0));
  const PartialShape& in = c.input(0);
  const KnownIntegers size = known_integers(c, 1);
  DTG_TRY(check_size(c, size));
  if (!in.has_rank()) return {};
  PartialShape out = PartialShape::of_rank(0);
  if (in.rank() == 2) DTG_TRY(out.append(in.dim(0)));
  DTG_TRY(out.append(size.known ? size.values[0] : -1));
  c.output(0, out);
  return {};
}

struct BincountArgs {
  Shape in;
  int64_t rows = 1, columns = 0;
  DType dtype = DType::i32;
  bool weighted = false, binary = false;
  Integers size;
  OutputSpec out;
};

template <class T>
Status bincount_run(RunContext& c) {
  const auto& a = c.args<BincountArgs>();
  Integers::Buffer buffer;
  const int64_t size = a.size.get(c, buffer)[0];
  if (size < 0) return c.error("size is %lld; it must not be negative", static_cast<long long>(size));
  for (const int64_t i : watched(a.in.count())) {
    const int64_t value = integer_at(c.in<char>(0), a.dtype, i);
    if (value < 0) return c.error("element %lld is %lld; none may be negative", static_cast<long long>(i), static_cast<long long>(value));
  }
  const auto shape = a.in.rank() == 2 ? Shape::make(std::array{a.rows, size}) : Shape::make(std::array{size});
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  DTG_ASSIGN(char* memory, a.out.memory(c, shape.value()));
  cpu::clear(c.pool(), memory, shape.value().count() * static_cast<int64_t>(sizeof(T)));
  T* row = reinterpret_cast<T*>(memory);
  Lookout lookout;
  for (int64_t r = 0; r < a.rows; ++r, row += size) {
    lookout.after(4 + a.columns * 4);
    for (const int64_t i : watched(r * a.columns, (r + 1) * a.columns, 8)) {
      const int64_t value = integer_at(c.in<char>(0), a.dtype, i);
      if (value >= size) continue;
      if (a.binary) row[value] = T(1);
      else row[value] = sum_of<T>(row[value], a.weighted ? c.in<T>(2)[i] : T(1));
    }
  }
  return {};
}

template <class T>
Status bincount_prepare(PrepareContext& c) {
  auto* a = c.args<BincountArgs>();
  const bool dense = c.node().op->name() == "DenseBincount";
  a->in = c.input(0).shape;
  const Shape& weights = c.input(2).shape;
  if (weights.count() != 0 && !(weights == a->in)) {
    return c.error("weights of shape %s for values of shape %s", weights.text().c_str(), a->in.text().c_str());
  }
  if (!dense) a->in = Shape::of({a->in.count()});
  a->rows = a->in.rank() == 2 ? a->in.dim(0) : 1;
  a->columns = a->in.rank() == 2 ? a->in.dim(1) : a->in.count();
  a->dtype = c.input(0).dtype;
  a->weighted = weights.count() != 0;
  a->binary = dense && c.boolean("binary_output");
  DTG_TRY(a->size.prepare(c, 1));
  a->out.prepare(c, 0);
  return c.sync(bincount_run<T>);
}

template <class... T>
void add_count_kernels(KernelTable& kernels) {
  (kernels.add({.op = "Bincount", .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = bincount_prepare<T>}), ...);
  (kernels.add({.op = "DenseBincount", .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = bincount_prepare<T>}), ...);
}

// ---- HistogramFixedWidth -----------------------------------------------------------------------------------

Status histogram_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 1));
  DTG_TRY(c.require_rank(2, 0));
  if (c.input(1).has_rank() && c.input(1).dim(0) >= 0 && c.input(1).dim(0) != 2) {
    return c.error("value_range must have 2 elements, but has shape %s", c.input(1).text().c_str());
  }
  const KnownIntegers bins = known_integers(c, 2);
  if (bins.known && bins.values[0] <= 0) return c.error("nbins is %lld; it must be positive", static_cast<long long>(bins.values[0]));
  c.output(0, PartialShape::vector(bins.known ? bins.values[0] : -1));
  return {};
}

struct HistogramArgs {
  int64_t count = 0;
  Integers bins;
  OutputSpec out;
};

// The bin of a value; values outside go to the first or the last.
template <class T>
int64_t bin_of(T value, T low, double step, int64_t bins) {
  if (!(value > low)) return 0;
  double distance = 0;
  if constexpr (std::is_integral_v<T>) {
    // As TensorFlow subtracts them: wrapping around.
    distance = static_cast<double>(static_cast<T>(static_cast<uint64_t>(value) - static_cast<uint64_t>(low)));
  } else {
    distance = static_cast<double>(value - low);
  }
  const double bin = distance / step, last = static_cast<double>(bins - 1);
  return bin >= last ? bins - 1 : static_cast<int64_t>(std::max(bin, 0.0));
}

template <class T>
Status histogram_run(RunContext& c) {
  const auto& a = c.args<HistogramArgs>();
  Integers::Buffer buffer;
  const int64_t bins = a.bins.get(c, buffer)[0];
  const T low = c.in<T>(1)[0], high = c.in<T>(1)[1];
  if (bins <= 0) return c.error("nbins is %lld; it must be positive", static_cast<long long>(bins));
  if (!(low < high)) return c.error("value_range must rise, but its first element is not below the second");
  const T* const values = c.in<T>(0);
  for (const int64_t i : watched(a.count, 1)) {
    if (values[i] != values[i]) return c.error("value %lld is not a number", static_cast<long long>(i));
  }
  DTG_ASSIGN(char* out, a.out.memory(c, Shape::of({bins})));
  cpu::clear(c.pool(), out, bins * dtype_size(a.out.dtype));
  const double step = static_cast<double>(high - low) / static_cast<double>(bins);
  for (const int64_t i : watched(a.count, 6)) {
    const int64_t bin = bin_of(values[i], low, step, bins);
    if (a.out.dtype == DType::i64) ++reinterpret_cast<int64_t*>(out)[bin];
    else ++reinterpret_cast<int32_t*>(out)[bin];
  }
  return {};
}

template <class T>
Status histogram_prepare(PrepareContext& c) {
  auto* a = c.args<HistogramArgs>();
  if (c.input(1).shape.count() != 2) return c.error("value_range must have 2 elements, but has shape %s", c.input(1).shape.text().c_str());
  a->count = c.input(0).shape.count();
  DTG_TRY(a->bins.prepare(c, 2));
  a->out.prepare(c, 0);
  return c.sync(histogram_run<T>);
}

template <class... T>
void add_histogram_kernels(KernelTable& kernels) {
  (kernels.add({.op = "HistogramFixedWidth", .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = histogram_prepare<T>}), ...);
}

}  // namespace

void register_bincount(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("Bincount")
              .input("arr: int32")
              .input("size: int32", {.rank = 0})
              .input("weights: T")
              .output("bins: T")
              .attr("T: {int32, int64, float, double}")
              .shape(bincount_shape)
              .no_gradient()
              .doc("How often each number below size occurs, or the sum of its weights."));
  ops.add(OpDef::make("DenseBincount")
              .input("input: Tidx", {.rank_min = 1, .rank_max = 2})
              .input("size: Tidx", {.rank = 0})
              .input("weights: T")
              .output("output: T")
              .attr("Tidx: {int32, int64}")
              .attr("T: {int32, int64, float, double}")
              .attr("binary_output: bool = false")
              .shape(dense_bincount_shape)
              .no_gradient()
              .doc("How often each number below size occurs in each row, the sum of its weights, or whether it occurs."));
  add_count_kernels<int32_t, int64_t, float, double>(kernels);
  ops.add(OpDef::make("HistogramFixedWidth")
              .input("values: T")
              .input("value_range: T", {.rank = 1})
              .input("nbins: int32", {.rank = 0})
              .output("out: dtype")
              .attr("T: {int32, int64, float, double}")
              .attr("dtype: {int32, int64} = int32")
              .shape(histogram_shape)
              .no_gradient()
              .doc("How many values fall into each of nbins bins of one width; the outer bins take what lies outside."));
  add_histogram_kernels<int32_t, int64_t, float, double>(kernels);
}

}  // namespace dtg::ops
