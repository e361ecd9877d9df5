// Distinct slices along an axis (UniqueV2, UniqueWithCountsV2) and what one vector has that another has not (ListDiff).
#include <algorithm>
#include <bit>
#include <limits>

#include "base/watched.h"
#include "device/cpu/copy.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/keys.h"

namespace dtg::ops {
namespace {

// A table of 32-bit numbers + 1, 0 where a slot is free; a power of two slots, at most half of them used.
int64_t slots_for(int64_t count) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count) * 2 + 2)); }

// ---- UniqueV2, UniqueWithCountsV2 --------------------------------------------------------------------------

Status unique_v2_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 1));
  const PartialShape& x = c.input(0);
  const KnownIntegers axis = known_integers(c, 1);
  PartialShape out = PartialShape::unknown();
  if (axis.known && axis.count == 0) {
    DTG_TRY(c.require_rank(0, 1));
    out = PartialShape::vector(-1);
  } else if (axis.known && axis.count > 1) {
    return c.error("the axis must be a vector of at most one element, but has %d", axis.count);
  } else if (x.has_rank()) {
    out = PartialShape::of_rank(x.rank());
    if (axis.known) {
      const auto at = resolve_axis(axis.values[0], x.rank());
      if (!at.ok()) return c.error("%s", at.status().message().c_str());
      for (int d = 0; d < x.rank(); ++d) out.set_dim(d, d == at.value() ? -1 : x.dim(d));
    }
  }
  c.output(0, out);
  for (int i = 1; i < c.num_outputs(); ++i) c.output(i, PartialShape::vector(-1));
  return {};
}

struct UniqueSlicesArgs {
  Shape in;
  Integers axis;
  DType dtype = DType::f32, index = DType::i32;
  OutputSpec values, numbers, counts;
};

// [outer, count, inner]: slice j is what has j in the middle.
template <class T>
struct SliceList {
  const T* data = nullptr;
  int64_t outer = 1, count = 0, inner = 1;

  const T* run(int64_t o, int64_t j) const { return data + (o * count + j) * inner; }
  // False: it holds a NaN and equals nothing.
  bool key(int64_t j, uint64_t& key) const {
    key = 0;
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) {
        uint64_t one = 0;
        if (!key_of(run(o, j)[i], one)) return false;
        key = (std::rotl(key, 23) ^ one) * 0x9FB21C651E98DF25u;
      }
    }
    return true;
  }
  bool equal(int64_t a, int64_t b) const {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) {
        uint64_t x = 0, y = 0;
        if (!key_of(run(o, a)[i], x) || !key_of(run(o, b)[i], y) || x != y) return false;
      }
    }
    return true;
  }
};

// Numbers the distinct slices in order of first occurrence; first[u] is where slice u stands first.
template <class T>
int64_t number_slices(const SliceList<T>& list, void* numbers, DType index, uint32_t* first, uint32_t* table, int64_t slots) {
  const int shift = 64 - std::countr_zero(static_cast<uint64_t>(slots));
  int64_t found = 0;
  std::fill_n(table, slots, 0u);
  for (const int64_t j : watched(list.count, 20 + 2 * list.outer * list.inner)) {
    uint64_t key = 0;
    int64_t number = -1;
    if (list.key(j, key)) {
      auto slot = static_cast<int64_t>(slot_of(key, shift));
      for (; table[slot] != 0; slot = (slot + 1) & (slots - 1)) {
        if (!list.equal(first[table[slot] - 1], j)) continue;
        number = table[slot] - 1;
        break;
      }
      if (number < 0) table[slot] = static_cast<uint32_t>(found + 1);
    }
    if (number < 0) {
      number = found++;
      first[number] = static_cast<uint32_t>(j);
    }
    store_index(numbers, index, j, number);
  }
  return found;
}

template <class T>
Status write_slices(RunContext& c, const UniqueSlicesArgs& a, const SliceList<T>& list, int axis) {
  auto* const first = c.workspace<uint32_t>();
  DTG_ASSIGN(char* numbers, a.numbers.memory(c, Shape::of({list.count})));
  const int64_t found = number_slices(list, numbers, a.index, first, first + list.count, slots_for(list.count));
  int64_t dims[kRankMax];
  std::copy_n(a.in.dims().begin(), a.in.rank(), dims);
  dims[axis] = found;
  DTG_ASSIGN(const Shape shape, Shape::make({dims, static_cast<size_t>(a.in.rank())}));
  DTG_ASSIGN(char* values, a.values.memory(c, shape));
  T* to = reinterpret_cast<T*>(values);
  for (int64_t o = 0; o < list.outer; ++o) {
    for (const int64_t u : watched(found, 4 + list.inner)) {
      std::copy_n(list.run(o, first[u]), list.inner, to);
      to += list.inner;
    }
  }
  if (a.counts.dtype == DType::invalid) return {};
  DTG_ASSIGN(char* counts, a.counts.memory(c, Shape::of({found})));
  cpu::clear(c.pool(), counts, found * dtype_size(a.index));
  for (const int64_t j : watched(list.count)) {
    const int64_t u = integer_at(numbers, a.index, j);
    store_index(counts, a.index, u, integer_at(counts, a.index, u) + 1);
  }
  return {};
}

Status unique_v2_run(RunContext& c) {
  const auto& a = c.args<UniqueSlicesArgs>();
  Integers::Buffer buffer;
  const auto axis = a.axis.get(c, buffer);
  int at = 0;
  if (!axis.empty()) {
    const auto resolved = resolve_axis(axis[0], a.in.rank());
    if (!resolved.ok()) return c.error("%s", resolved.status().message().c_str());
    at = resolved.value();
  }
  return with_plain_type(a.dtype, [&](auto null) {
    using T = std::remove_const_t<std::remove_pointer_t<decltype(null)>>;
    const SliceList<T> list{c.in<T>(0), a.in.count(0, at), a.in.dim(at), a.in.count(at + 1, a.in.rank())};
    return write_slices(c, a, list, at);
  });
}

Status unique_v2_prepare(PrepareContext& c) {
  auto* a = c.args<UniqueSlicesArgs>();
  a->in = c.input(0).shape;
  DTG_TRY(a->axis.prepare(c, 1));
  if (a->axis.count() > 1) return c.error("the axis must be a vector of at most one element, but has %d", a->axis.count());
  if (a->axis.count() == 0 && a->in.rank() != 1) {
    return c.error("without an axis the input must be a vector, but has shape %s", a->in.text().c_str());
  }
  if (a->in.rank() == 0) return c.error("a scalar has no slices");
  a->dtype = c.input(0).dtype;
  a->index = c.output(1).dtype;
  int64_t longest = 0;
  for (int64_t dim : a->in.dims()) longest = std::max(longest, dim);
  if (longest >= std::numeric_limits<int32_t>::max()) return c.error("%lld slices are too many", static_cast<long long>(longest));
  a->values.prepare(c, 0);
  a->numbers.prepare(c, 1);
  if (c.num_outputs() > 2) a->counts.prepare(c, 2);
  c.workspace(Bytes::of(longest + slots_for(longest), sizeof(uint32_t)));
  return c.sync(unique_v2_run);
}

// ---- ListDiff ----------------------------------------------------------------------------------------------

Status list_diff_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 1));
  DTG_TRY(c.require_rank(1, 1));
  c.output(0, PartialShape::vector(-1));
  c.output(1, PartialShape::vector(-1));
  return {};
}

struct ListDiffArgs {
  int64_t count = 0, others = 0;
  DType dtype = DType::f32;
  OutputSpec values, places;
};

// Is there an equal value among those of y that the table names?
template <class T>
bool is_among(const T* y, const uint32_t* table, int64_t slots, T value, int64_t* free_slot) {
  const int shift = 64 - std::countr_zero(static_cast<uint64_t>(slots));
  uint64_t key = 0, other = 0;
  *free_slot = -1;
  if (!key_of(value, key)) return false;
  auto slot = static_cast<int64_t>(slot_of(key, shift));
  for (; table[slot] != 0; slot = (slot + 1) & (slots - 1)) {
    key_of(y[table[slot] - 1], other);
    if (other == key) return true;
  }
  *free_slot = slot;
  return false;
}

template <class T>
Status write_difference(RunContext& c, const ListDiffArgs& a, const T* x, const T* y) {
  auto* const kept = c.workspace<uint32_t>();
  uint32_t* const table = kept + a.count;
  const int64_t slots = slots_for(a.others);
  std::fill_n(table, slots, 0u);
  int64_t slot = 0, found = 0;
  for (const int64_t i : watched(a.others, 20)) {
    if (!is_among(y, table, slots, y[i], &slot) && slot >= 0) table[slot] = static_cast<uint32_t>(i + 1);
  }
  for (const int64_t i : watched(a.count, 20)) {
    if (!is_among(y, table, slots, x[i], &slot)) kept[found++] = static_cast<uint32_t>(i);
  }
  DTG_ASSIGN(char* values, a.values.memory(c, Shape::of({found})));
  DTG_ASSIGN(char* places, a.places.memory(c, Shape::of({found})));
  for (const int64_t i : watched(found)) {
    reinterpret_cast<T*>(values)[i] = x[kept[i]];
    store_index(places, a.places.dtype, i, kept[i]);
  }
  return {};
}

Status list_diff_run(RunContext& c) {
  const auto& a = c.args<ListDiffArgs>();
  return with_plain_type(a.dtype, [&](auto null) {
    using T = std::remove_const_t<std::remove_pointer_t<decltype(null)>>;
    return write_difference(c, a, c.in<T>(0), c.in<T>(1));
  });
}

Status list_diff_prepare(PrepareContext& c) {
  auto* a = c.args<ListDiffArgs>();
  a->count = c.input(0).shape.count();
  a->others = c.input(1).shape.count();
  if (std::max(a->count, a->others) >= std::numeric_limits<int32_t>::max()) return c.error("the lists are too long");
  a->dtype = c.input(0).dtype;
  a->values.prepare(c, 0);
  a->places.prepare(c, 1);
  c.workspace(Bytes::of(a->count + slots_for(a->others), sizeof(uint32_t)));
  return c.sync(list_diff_run);
}

constexpr DTypeSet kComparable = dtg::kReal | DTypeSet{DType::boolean};

}  // namespace

void register_unique_slices(OpTable& ops, KernelTable& kernels) {
  for (const char* name : {"UniqueV2", "UniqueWithCountsV2"}) {
    OpDef def = OpDef::make(name).input("x: T").input("axis: Taxis", {.rank = 1}).output("y: T").output("idx: out_idx");
    const bool counts = std::string_view(name) == "UniqueWithCountsV2";
    if (counts) std::move(def).output("count: out_idx");
    std::move(def).attr("T: type").attr("Taxis: {int32, int64} = int64").attr("out_idx: {int32, int64} = int32");
    std::move(def).shape(unique_v2_shape).no_gradient();
    std::move(def).doc(counts ? "UniqueV2, and how often each slice occurs."
                              : "The distinct slices along an axis in order of first occurrence, and for each slice which one it is.");
    ops.add(std::move(def));
    kernels.add({.op = name, .types = {{"T", kComparable}}, .prepare = unique_v2_prepare});
  }
  ops.add(OpDef::make("ListDiff")
              .input("x: T", {.rank = 1})
              .input("y: T", {.rank = 1})
              .output("out: T")
              .output("idx: out_idx")
              .attr("T: type")
              .attr("out_idx: {int32, int64} = int32")
              .shape(list_diff_shape)
              .no_gradient()
              .doc("The values of x that are not in y, in their order, and where they stand."));
  kernels.add({.op = "ListDiff", .types = {{"T", kComparable}}, .prepare = list_diff_prepare});
}

}  // namespace dtg::ops
