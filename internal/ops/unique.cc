// Ops whose output shape depends on the data: Where, Unique, UniqueWithCounts. They count first and lease exactly
// what they need.
#include <algorithm>
#include <bit>
#include <limits>

#include "base/watched.h"
#include "device/cpu/copy.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/keys.h"

namespace dtg::ops {
namespace {

template <class T>
bool is_set(T value) {
  if constexpr (std::is_arithmetic_v<T>) return value != T(0);
  else return float(value) != 0.0f;
}

// ---- Where -------------------------------------------------------------------------------------------------

Status where_shape(InferContext& c) {
  PartialShape out = PartialShape::of_rank(2);
  if (c.input(0).has_rank()) out.set_dim(1, c.input(0).rank());
  c.output(0, out);
  return {};
}

struct WhereArgs {
  Shape in;
  DType dtype = DType::boolean;
  OutputSpec out;
};

template <class T>
Status write_where(RunContext& c, const WhereArgs& a, const T* in) {
  int64_t found = 0;
  constexpr int64_t kBlock = 1 << 16;
  for (int64_t from = 0; from < a.in.count(); from += kBlock) {
    Interrupt::look();
    for (int64_t i = from; i < std::min(a.in.count(), from + kBlock); ++i) found += is_set(in[i]);
  }
  DTG_ASSIGN(char* memory, a.out.memory(c, Shape::of({found, a.in.rank()})));
  auto* out = reinterpret_cast<int64_t*>(memory);
  int64_t at[kRankMax] = {};
  for (const int64_t i : watched(a.in.count())) {
    if (is_set(in[i])) out = std::copy_n(at, a.in.rank(), out);
    for (int d = a.in.rank() - 1; d >= 0 && ++at[d] == a.in.dim(d); --d) at[d] = 0;
  }
  return {};
}

Status where_run(RunContext& c) {
  const auto& a = c.args<WhereArgs>();
  return with_plain_type(a.dtype,
                         [&](auto null) { return write_where(c, a, c.in<std::remove_const_t<std::remove_pointer_t<decltype(null)>>>(0)); });
}

Status where_prepare(PrepareContext& c) {
  auto* a = c.args<WhereArgs>();
  a->in = c.input(0).shape;
  if (a->in.rank() < 1) return c.error("the input must have rank 1 or more, but is a scalar");
  a->dtype = c.input(0).dtype;
  a->out.prepare(c, 0);
  return c.sync(where_run);
}

// ---- Unique, UniqueWithCounts ------------------------------------------------------------------------------

Status unique_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 1));
  c.output(0, PartialShape::vector(-1));
  c.output(1, PartialShape::vector(c.input(0).has_rank() ? c.input(0).dim(0) : -1));
  if (c.num_outputs() > 2) c.output(2, PartialShape::vector(-1));
  return {};
}

Status unique_with_counts_shape(InferContext& c) {
  if (c.input(0).has_rank() && c.input(0).rank() != 1) return {};  // run says what is wrong
  return unique_shape(c);
}

struct UniqueArgs {
  int64_t count = 0;
  DType dtype = DType::f32, index_dtype = DType::i32;
  int64_t slots = 0;  // of the hash table, a power of two
  OutputSpec values, counts;
};

// Numbers the distinct values in order of first occurrence; first[u] is where value u stands first.
template <class T>
int64_t number_values(const UniqueArgs& a, const T* in, void* index, uint32_t* first, uint32_t* table) {
  const int shift = 64 - std::countr_zero(static_cast<uint64_t>(a.slots));
  const auto mask = static_cast<uint64_t>(a.slots - 1);
  int64_t found = 0;
  for (const int64_t i : watched(a.count, 20)) {
    uint64_t key = 0, other = 0;
    int64_t number = -1;
    if (key_of(in[i], key)) {
      uint64_t slot = (key * 0x9E3779B97F4A7C15u) >> shift & mask;
      for (; table[slot] != 0; slot = (slot + 1) & mask) {
        key_of(in[first[table[slot] - 1]], other);
        if (other != key) continue;
        number = table[slot] - 1;
        break;
      }
      if (number < 0) table[slot] = static_cast<uint32_t>(found + 1);
    }
    if (number < 0) {
      number = found++;
      first[number] = static_cast<uint32_t>(i);
    }
    store_index(index, a.index_dtype, i, number);
  }
  return found;
}

template <class T>
Status write_unique(RunContext& c, const UniqueArgs& a, const T* in) {
  auto* first = c.workspace<uint32_t>();
  uint32_t* table = first + a.count;
  std::fill_n(table, a.slots, 0u);
  const int64_t found = number_values(a, in, c.out<char>(1), first, table);
  DTG_ASSIGN(char* values, a.values.memory(c, Shape::of({found})));
  for (const int64_t u : watched(found)) reinterpret_cast<T*>(values)[u] = in[first[u]];
  if (a.counts.dtype == DType::invalid) return {};
  DTG_ASSIGN(char* counts, a.counts.memory(c, Shape::of({found})));
  cpu::clear(c.pool(), counts, found * dtype_size(a.index_dtype));
  for (const int64_t i : watched(a.count)) {
    const int64_t u = integer_at(c.out<char>(1), a.index_dtype, i);
    store_index(counts, a.index_dtype, u, integer_at(counts, a.index_dtype, u) + 1);
  }
  return {};
}

Status unique_run(RunContext& c) {
  const auto& a = c.args<UniqueArgs>();
  return with_plain_type(
      a.dtype, [&](auto null) { return write_unique(c, a, c.in<std::remove_const_t<std::remove_pointer_t<decltype(null)>>>(0)); });
}

Status unique_prepare(PrepareContext& c) {
  auto* a = c.args<UniqueArgs>();
  if (c.input(0).shape.rank() != 1) return c.error("the input must be a vector, but has shape %s", c.input(0).shape.text().c_str());
  a->count = c.input(0).shape.count();
  if (a->count >= std::numeric_limits<int32_t>::max()) return c.error("%lld values are too many", static_cast<long long>(a->count));
  a->dtype = c.input(0).dtype;
  a->index_dtype = c.output(1).dtype;
  a->slots = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(a->count) * 2 + 2));
  a->values.prepare(c, 0);
  if (c.num_outputs() > 2) a->counts.prepare(c, 2);
  c.workspace(Bytes::of(a->count + a->slots, sizeof(uint32_t)));
  return c.sync(unique_run);
}

constexpr DTypeSet kComparable = kReal | DTypeSet{DType::boolean};

}  // namespace

void register_unique(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("Where")
              .input("input: T")
              .output("index: int64")
              .attr("T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, "
                    "uint16, complex128, half, uint32, uint64, bool} = bool")
              .shape(where_shape)
              .no_gradient()
              .doc("The coordinates of the elements that are true, or not zero, in order."));
  kernels.add({.op = "Where", .types = {{"T", kComparable}}, .prepare = where_prepare});
  ops.add(OpDef::make("Unique")
              .input("x: T")
              .output("y: T")
              .output("idx: out_idx")
              .attr("T: type")
              .attr("out_idx: {int32, int64} = int32")
              .shape(unique_shape)
              .no_gradient()
              .doc("The distinct values of x in order of first occurrence, and for each element which one it is."));
  kernels.add({.op = "Unique", .types = {{"T", kComparable}}, .prepare = unique_prepare});
  ops.add(OpDef::make("UniqueWithCounts")
              .input("x: T")
              .output("y: T")
              .output("idx: out_idx")
              .output("count: out_idx")
              .attr("T: type")
              .attr("out_idx: {int32, int64} = int32")
              .shape(unique_with_counts_shape)
              .no_gradient()
              .doc("Unique, and how often each value occurs."));
  kernels.add({.op = "UniqueWithCounts", .types = {{"T", kComparable}}, .prepare = unique_prepare});
}

}  // namespace dtg::ops
