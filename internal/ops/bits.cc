// Memory as it is: Bitcast gives it another type, Snapshot and DeepCopy pass it on, Empty makes it, ParallelConcat puts rows
// together; PopulationCount counts its bits.
#include <algorithm>
#include <bit>

#include "device/cpu/copy.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/type_lists.h"

namespace dtg::ops {
namespace {

// ---- Bitcast -----------------------------------------------------------------------------------------------

// A wider element takes a last dimension of as many narrow ones, a narrower one brings such a dimension.
Status bitcast_shape(InferContext& c) {
  const PartialShape& in = c.input(0);
  const int64_t from = dtype_size(c.attr<DType>("T")), to = dtype_size(c.attr<DType>("type"));
  if (from == 0 || to == 0) return c.error("types without a size cannot be cast");
  if (!in.has_rank()) return {};
  PartialShape out = PartialShape::of_rank(0);
  const int kept = from < to ? in.rank() - 1 : in.rank();
  if (kept < 0 || (from < to && in.dim(kept) >= 0 && in.dim(kept) != to / from)) {
    return c.error("%s becomes %s where the last dimension is %lld, but the shape is %s", dtype_name(c.attr<DType>("T")),
                   dtype_name(c.attr<DType>("type")), static_cast<long long>(to / from), in.text().c_str());
  }
  for (int d = 0; d < kept; ++d) DTG_TRY(out.append(in.dim(d)));
  if (from > to) DTG_TRY(in_op(c.node(), out.append(from / to)));
  c.output(0, out);
  return {};
}

struct CopyArgs {
  int64_t bytes = 0;
};

Status copy_run(RunContext& c) {
  const int64_t bytes = c.args<CopyArgs>().bytes;
  Lookout lookout;
  if (bytes > 0 && c.in<char>(0) != c.out<char>(0)) cpu::copy_row(c.out<char>(0), c.in<char>(0), bytes, lookout);
  return {};
}

// For Bitcast as well: memory that is handed on keeps its type.
Status copy_prepare(PrepareContext& c) {
  c.args<CopyArgs>()->bytes = c.input(0).bytes();
  c.may_overwrite(0, 0);
  return c.sync(copy_run);
}

Status pass_on(PrepareContext& c) {
  c.alias(0, 0);
  return {};
}

// ---- Empty -------------------------------------------------------------------------------------------------

Status empty_shape(InferContext& c) {
  const KnownIntegers dims = known_integers(c, 0);
  for (int64_t dim : dims.span()) {
    if (dim < 0) return c.error("a dimension of %lld", static_cast<long long>(dim));
  }
  DTG_ASSIGN(PartialShape shape, c.shape_from_input(0));
  c.output(0, shape);
  return {};
}

struct EmptyArgs {
  Integers dims;
  OutputSpec out;
};

// What is not initialised is zero as well: no bytes of others, and the same in every run.
Status empty_run(RunContext& c) {
  const auto& a = c.args<EmptyArgs>();
  Integers::Buffer buffer;
  const auto shape = Shape::make(a.dims.get(c, buffer));
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  DTG_ASSIGN(char* out, a.out.memory(c, shape.value()));
  cpu::clear(c.pool(), out, shape.value().count() * dtype_size(a.out.dtype));
  return {};
}

Status empty_prepare(PrepareContext& c) {
  auto* a = c.args<EmptyArgs>();
  DTG_TRY(a->dims.prepare(c, 0));
  a->out.prepare(c, 0);
  return c.sync(empty_run);
}

// ---- ParallelConcat ----------------------------------------------------------------------------------------

Status parallel_concat_shape(InferContext& c) {
  const auto& wanted = c.attr<PartialShape>("shape");
  PartialShape row = wanted;
  if (!row.complete() || row.rank() == 0) return c.error("the shape must be known and have a first dimension");
  if (row.dim(0) != c.num_inputs()) {
    return c.error("shape %s for %d values of one row each", wanted.text().c_str(), c.num_inputs());
  }
  row.set_dim(0, 1);
  for (int i = 0; i < c.num_inputs(); ++i) {
    auto merged = PartialShape::merge(row, c.input(i), "a value");
    if (!merged.ok()) return c.error("%s", merged.status().message().c_str());
  }
  c.output(0, wanted);
  return {};
}

struct RowsArgs {
  int rows = 0;
  int64_t bytes = 0;
};

Status parallel_concat_run(RunContext& c) {
  const auto& a = c.args<RowsArgs>();
  Lookout lookout;
  for (int i = 0; i < a.rows; ++i) cpu::copy_row(c.out<char>(0) + i * a.bytes, c.in<char>(i), a.bytes, lookout);
  return {};
}

Status parallel_concat_prepare(PrepareContext& c) {
  *c.args<RowsArgs>() = {c.num_inputs(), c.input(0).bytes()};
  return c.sync(parallel_concat_run);
}

// ---- PopulationCount ---------------------------------------------------------------------------------------

struct CountArgs {
  int64_t count = 0;
};

template <class T>
Status count_bits_run(RunContext& c) {
  const int64_t count = c.args<CountArgs>().count, shards = std::min(cpu::shards_for_bytes(count * 2), std::max<int64_t>(count, 1));
  c.pool().parallel_for(shards, [&](int64_t s) {
    for (int64_t i = count * s / shards; i < count * (s + 1) / shards; ++i) {
      c.out<uint8_t>(0)[i] = static_cast<uint8_t>(std::popcount(c.in<T>(0)[i]));
    }
  });
  return {};
}

Status count_bits_prepare(PrepareContext& c) {
  c.args<CountArgs>()->count = c.input(0).shape.count();
  switch (dtype_size(c.input(0).dtype)) {
    case 1: return c.sync(count_bits_run<uint8_t>);
    case 2: return c.sync(count_bits_run<uint16_t>);
    case 4: return c.sync(count_bits_run<uint32_t>);
    default: return c.sync(count_bits_run<uint64_t>);
  }
}

constexpr const char* kCastable =
    "{bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, int16, complex64, complex128, qint8, quint8, "
    "qint16, quint16, qint32}";

}  // namespace

void register_bits(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("Bitcast")
              .input("input: T")
              .output("output: type")
              .attr((std::string("T: ") + kCastable).c_str())
              .attr((std::string("type: ") + kCastable).c_str())
              .shape(bitcast_shape)
              .no_gradient()
              .doc("The same bytes as elements of another type."));
  kernels.add({.op = "Bitcast", .types = {{"T", kPlain}, {"type", kPlain}}, .prepare = copy_prepare});
  ops.add(OpDef::make("Snapshot")
              .input("input: T")
              .output("output: T")
              .attr("T: type")
              .shape(unchanged_shape)
              .forwards()
              .no_gradient()
              .doc("Its input, unchanged."));
  kernels.add({.op = "Snapshot", .types = {{"T", kPlain}}, .prepare = pass_on});
  ops.add(OpDef::make("DeepCopy").input("x: T").output("y: T").attr("T: type").shape(unchanged_shape).no_gradient().doc("A copy of x."));
  kernels.add({.op = "DeepCopy", .types = {{"T", kPlain}}, .prepare = copy_prepare});
  ops.add(OpDef::make("Empty")
              .input("shape: int32", {.rank = 1})
              .output("output: dtype")
              .attr("dtype: type")
              .attr("init: bool = false")
              .shape(empty_shape)
              .no_gradient()
              .doc("A tensor of a shape. Its elements are zero, with init or without."));
  kernels.add({.op = "Empty", .types = {{"dtype", kPlain}}, .prepare = empty_prepare});
  ops.add(OpDef::make("ParallelConcat")
              .input("values: N * T")
              .output("output: T")
              .attr("N: int >= 1")
              .attr("T: type")
              .attr("shape: shape")
              .shape(parallel_concat_shape)
              .no_gradient()
              .doc("Values of one row each, one behind the other."));
  kernels.add({.op = "ParallelConcat", .types = {{"T", kPlain}}, .prepare = parallel_concat_prepare});
  ops.add(OpDef::make("PopulationCount")
              .input("x: T")
              .output("y: uint8")
              .attr(kAttrIntegers)
              .shape(unchanged_shape)
              .no_gradient()
              .doc("How many bits of each element are set."));
  kernels.add({.op = "PopulationCount", .types = {{"T", kIntegers}}, .prepare = count_bits_prepare});
}

}  // namespace dtg::ops
