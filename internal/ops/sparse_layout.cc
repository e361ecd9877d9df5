// How the entries of a sparse tensor lie: SparseReorder, SparseReshape, SparseFillEmptyRows and its gradient. An entry is a row of
// `indices` (int64) and an element of `values`; indices are data, so each is checked before it is used as an address.
#include <algorithm>
#include <numeric>

#include "base/watched.h"
#include "device/cpu/copy.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/rows.h"

namespace dtg::ops {
namespace {

using Long = long long;

// ---- SparseReorder -----------------------------------------------------------------------------------------

// indices [n, rank], values [n], shape [rank]
Status check_sparse(const InferContext& c, int indices, int values, int shape) {
  DTG_TRY(c.require_rank(indices, 2));
  DTG_TRY(c.require_rank(values, 1));
  DTG_TRY(c.require_rank(shape, 1));
  const auto dim = [&](int input, int d) { return c.input(input).has_rank() ? c.input(input).dim(d) : -1; };
  const int64_t count = dim(indices, 0), rank = dim(indices, 1), given = dim(values, 0), dims = dim(shape, 0);
  if (count >= 0 && given >= 0 && count != given) {
    return c.error("%lld rows of indices and %lld values: each value needs one row", static_cast<Long>(count), static_cast<Long>(given));
  }
  if (rank >= 0 && dims >= 0 && rank != dims) {
    return c.error("indices have %lld columns, the shape has %lld dimensions", static_cast<Long>(rank), static_cast<Long>(dims));
  }
  return {};
}

Status reorder_shape(InferContext& c) {
  DTG_TRY(check_sparse(c, 0, 1, 2));
  c.output(0, c.input(0).has_rank() ? c.input(0) : PartialShape::of_rank(2));
  c.output(1, c.input(1).has_rank() ? c.input(1) : PartialShape::of_rank(1));
  return {};
}

// The order that the entries got is found by ordering their numbers; d(values)[order[j]] = dy[j].
Status reorder_grad(GradContext& c) {
  Build& b = c.b();
  const Value count = b.op("Size", {c.input(1)}, {{"out_type", DType::i64}});
  const Value numbers = b.op("Range", {b.integer(0, DType::i64), count, b.integer(1, DType::i64)});
  const Value order = b.op("SparseReorder", {c.input(0), numbers, c.input(2)}).sibling(1);
  const Value places = b.op("ExpandDims", {order, b.integer(1)});
  c.dx(1, b.op("ScatterNd", {places, c.dy(1), b.shape(c.input(1), DType::i64)}));
  return {};
}

struct ReorderArgs {
  int64_t count = 0, rank = 0, size = 0;
};

Status reorder_run(RunContext& c) {
  const auto& a = c.args<ReorderArgs>();
  const auto* const indices = c.in<int64_t>(0);
  auto* const order = c.workspace<int64_t>();
  std::iota(order, order + a.count, int64_t{0});
  // Entries of one place keep their order: the number decides.
  const auto before = [&](int64_t x, int64_t y) {
    const int64_t *p = indices + x * a.rank, *q = indices + y * a.rank;
    for (int64_t d = 0; d < a.rank; ++d) {
      if (p[d] != q[d]) return p[d] < q[d];
    }
    return x < y;
  };
  if (!std::is_sorted(order, order + a.count, before)) std::sort(order, order + a.count, before);
  auto* const out = c.out<int64_t>(0);
  for (const int64_t i : watched(a.count, 20)) {
    std::copy_n(indices + order[i] * a.rank, a.rank, out + i * a.rank);
    cpu::copy_row(c.out<char>(1) + i * a.size, c.in<char>(1) + order[i] * a.size, a.size);
  }
  return {};
}

Status reorder_prepare(PrepareContext& c) {
  auto* const a = c.args<ReorderArgs>();
  *a = {c.input(0).shape.dim(0), c.input(0).shape.dim(1), cell_bytes(c.input(1).dtype)};
  c.workspace(Bytes::of(a->count, sizeof(int64_t)));
  return c.sync(reorder_run);
}

// ---- SparseReshape -----------------------------------------------------------------------------------------

Status reshape_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 2));
  DTG_TRY(c.require_rank(1, 1));
  DTG_TRY(c.require_rank(2, 1));
  const auto dim = [&](int input, int d) { return c.input(input).has_rank() ? c.input(input).dim(d) : -1; };
  if (dim(0, 1) >= 0 && dim(1, 0) >= 0 && dim(0, 1) != dim(1, 0)) {
    return c.error("indices have %lld columns, the shape has %lld dimensions", static_cast<Long>(dim(0, 1)), static_cast<Long>(dim(1, 0)));
  }
  PartialShape indices = PartialShape::of_rank(2);
  indices.set_dim(0, dim(0, 0));
  indices.set_dim(1, dim(2, 0));
  c.output(0, indices);
  c.output(1, PartialShape::vector(dim(2, 0)));
  return {};
}

struct ReshapeArgs {
  int64_t count = 0, from_rank = 0, to_rank = 0;
};

// The product of dimensions that are data; an error where it does not fit.
Result<int64_t> product(RunContext& c, const int64_t* dims, int64_t rank, int64_t skip) {
  int64_t all = 1;
  for (int64_t d = 0; d < rank; ++d) {
    if (d == skip) continue;
    if (dims[d] < 0) return c.error("dimension %lld is %lld", static_cast<Long>(d), static_cast<Long>(dims[d]));
    if (__builtin_mul_overflow(all, dims[d], &all)) return c.error("the dimensions multiply to more than 63 bits hold");
  }
  return all;
}

// new_shape with its -1 filled in, into output 1.
Status resolve_shape(RunContext& c, const ReshapeArgs& a) {
  auto* const to = c.out<int64_t>(1);
  int64_t open = -1;
  for (int64_t d = 0; d < a.to_rank; ++d) {
    to[d] = c.in<int64_t>(2)[d];
    if (to[d] != -1) continue;
    if (open >= 0)
      return c.error("new_shape has -1 in dimensions %lld and %lld; only one can be inferred", static_cast<Long>(open),
                     static_cast<Long>(d));
    open = d;
  }
  DTG_ASSIGN(const int64_t total, product(c, c.in<int64_t>(1), a.from_rank, -1));
  DTG_ASSIGN(const int64_t known, product(c, to, a.to_rank, open));
  if (open >= 0) {
    if (known == 0) return c.error("new_shape has a -1 beside a 0, from which nothing can be inferred");
    if (total % known != 0) {
      return c.error("%lld places cannot be cut into rows of %lld", static_cast<Long>(total), static_cast<Long>(known));
    }
    to[open] = total / known;
  } else if (known != total) {
    return c.error("the shape has %lld places, new_shape has %lld", static_cast<Long>(total), static_cast<Long>(known));
  }
  return {};
}

Status reshape_run(RunContext& c) {
  const auto& a = c.args<ReshapeArgs>();
  DTG_TRY(resolve_shape(c, a));
  const auto *from = c.in<int64_t>(1), *to = c.out<int64_t>(1), *in = c.in<int64_t>(0);
  auto* out = c.out<int64_t>(0);
  for (int64_t i = 0; i < a.count; ++i, in += a.from_rank, out += a.to_rank) {
    int64_t at = 0;
    for (int64_t d = 0; d < a.from_rank; ++d) {
      if (in[d] < 0 || in[d] >= from[d]) {
        return c.error("entry %lld is at %lld in dimension %lld, not in [0, %lld)", static_cast<Long>(i), static_cast<Long>(in[d]),
                       static_cast<Long>(d), static_cast<Long>(from[d]));
      }
      at = at * from[d] + in[d];
    }
    for (int64_t d = a.to_rank; d-- > 0;) {
      out[d] = at % to[d];  // there is an entry, so no dimension is 0
      at /= to[d];
    }
  }
  return {};
}

Status reshape_prepare(PrepareContext& c) {
  auto* const a = c.args<ReshapeArgs>();
  *a = {c.input(0).shape.dim(0), c.input(0).shape.dim(1), c.input(2).shape.count()};
  return c.sync(reshape_run);
}

// ---- SparseFillEmptyRows -----------------------------------------------------------------------------------

Status fill_shape(InferContext& c) {
  DTG_TRY(check_sparse(c, 0, 1, 2));
  DTG_TRY(c.require_rank(3, 0));
  PartialShape indices = PartialShape::of_rank(2);
  if (c.input(0).has_rank()) indices.set_dim(1, c.input(0).dim(1));
  c.output(0, indices);
  c.output(1, PartialShape::vector(-1));
  const KnownIntegers shape = known_integers(c, 2);
  if (shape.known && shape.count == 0) return c.error("dense_shape is empty: there is no dimension of rows");
  if (shape.known && shape.values[0] < 0) return c.error("dense_shape has %lld rows", static_cast<Long>(shape.values[0]));
  c.output(2, PartialShape::vector(shape.known ? shape.values[0] : -1));
  c.output(3, PartialShape::vector(c.input(0).has_rank() ? c.input(0).dim(0) : -1));
  return {};
}

// d(values), d(default_value) = SparseFillEmptyRowsGrad(reverse_index_map, dy of the values)
Status fill_grad(GradContext& c) {
  const Value both = c.b().op("SparseFillEmptyRowsGrad", {c.output(3), c.dy(1)});
  c.dx(1, both);
  c.dx(3, both.sibling(1));
  return {};
}

struct FillArgs {
  int64_t count = 0, rank = 0, size = 0;
  OutputSpec indices, values, empty;
};

// How many entries each row has, into next[row + 1].
Status count_rows(RunContext& c, const FillArgs& a, int64_t rows, int64_t* next) {
  std::fill_n(next, rows + 1, 0);
  for (const int64_t i : watched(a.count, 20)) {
    const int64_t row = c.in<int64_t>(0)[i * a.rank];
    if (row < 0 || row >= rows) {
      return c.error("entry %lld is in row %lld, not in [0, %lld)", static_cast<Long>(i), static_cast<Long>(row), static_cast<Long>(rows));
    }
    ++next[row + 1];
  }
  return {};
}

Status fill_run(RunContext& c) {
  const auto& a = c.args<FillArgs>();
  const int64_t rows = c.in<int64_t>(2)[0];
  if (rows < 0 || rows > INT64_MAX / 64) return c.error("dense_shape has %lld rows", static_cast<Long>(rows));
  if (rows == 0 && a.count > 0) return c.error("dense_shape has no rows, but there are %lld entries", static_cast<Long>(a.count));
  DTG_ASSIGN(char* block, c.slots().lease_block((rows + 1) * static_cast<int64_t>(sizeof(int64_t)), "the rows of a sparse tensor"));
  auto* const next = reinterpret_cast<int64_t*>(block);
  DTG_TRY(count_rows(c, a, rows, next));
  DTG_ASSIGN(char* flags, a.empty.memory(c, Shape::of({rows})));
  // From counts to where the next entry of each row goes; an empty row has one entry, of its own.
  for (int64_t row = 0; row < rows; ++row) {
    flags[row] = next[row + 1] == 0;
    next[row + 1] = next[row] + std::max<int64_t>(next[row + 1], 1);
  }
  const int64_t total = next[rows];
  DTG_ASSIGN(char* places, a.indices.memory(c, Shape::of({total, a.rank})));
  DTG_ASSIGN(char* values, a.values.memory(c, Shape::of({total})));
  auto* const out = reinterpret_cast<int64_t*>(places);
  for (int64_t row = 0; row < rows; ++row) {
    if (!flags[row]) continue;
    std::fill_n(out + next[row] * a.rank, a.rank, 0);
    out[next[row] * a.rank] = row;
    cpu::copy_row(values + next[row] * a.size, c.in<char>(3), a.size);
  }
  for (const int64_t i : watched(a.count, 20)) {
    const auto* const place = c.in<int64_t>(0) + i * a.rank;
    const int64_t to = next[place[0]]++;
    std::copy_n(place, a.rank, out + to * a.rank);
    cpu::copy_row(values + to * a.size, c.in<char>(1) + i * a.size, a.size);
    c.out<int64_t>(3)[i] = to;
  }
  return {};
}

Status fill_prepare(PrepareContext& c) {
  auto* const a = c.args<FillArgs>();
  a->count = c.input(0).shape.dim(0);
  a->rank = c.input(0).shape.dim(1);
  a->size = cell_bytes(c.input(1).dtype);
  if (a->rank == 0) return c.error("indices have no columns: there is no dimension of rows");
  a->indices.prepare(c, 0);
  a->values.prepare(c, 1);
  a->empty.prepare(c, 2);
  return c.sync(fill_run);
}

Status fill_grad_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 1));
  DTG_TRY(c.require_rank(1, 1));
  c.output(0, PartialShape::vector(c.input(0).has_rank() ? c.input(0).dim(0) : -1));
  c.output(1, PartialShape::scalar());
  return {};
}

struct FillGradArgs {
  int64_t count = 0, filled = 0;
};

// What no entry came from was the default value.
template <class T>
Status fill_grad_run(RunContext& c) {
  const auto& a = c.args<FillGradArgs>();
  auto* const seen = c.workspace<bool>();
  std::fill_n(seen, a.filled, false);
  for (const int64_t i : watched(a.count, 20)) {
    const int64_t from = c.in<int64_t>(0)[i];
    if (from < 0 || from >= a.filled) {
      return c.error("reverse_index_map has %lld at %lld, not in [0, %lld)", static_cast<Long>(from), static_cast<Long>(i),
                     static_cast<Long>(a.filled));
    }
    seen[from] = true;
    c.out<T>(0)[i] = c.in<T>(1)[from];
  }
  T rest = T();
  for (int64_t i = 0; i < a.filled; ++i) {
    if (!seen[i]) rest = sum_of<T>(rest, c.in<T>(1)[i]);
  }
  *c.out<T>(1) = rest;
  return {};
}

template <class T>
Status fill_grad_prepare(PrepareContext& c) {
  *c.args<FillGradArgs>() = {c.input(0).shape.count(), c.input(1).shape.count()};
  c.workspace(c.input(1).shape.count());
  return c.sync(fill_grad_run<T>);
}

template <class... T>
void add_fill_grads(KernelTable& kernels) {
  (kernels.add({.op = "SparseFillEmptyRowsGrad", .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = fill_grad_prepare<T>}), ...);
}

void register_fill(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("SparseFillEmptyRows")
              .input("indices: int64", {.rank = 2})
              .input("values: T", {.rank = 1})
              .input("dense_shape: int64", {.rank = 1})
              .input("default_value: T", {.rank = 0})
              .output("output_indices: int64")
              .output("output_values: T")
              .output("empty_row_indicator: bool")
              .output("reverse_index_map: int64")
              .attr("T: type")
              .shape(fill_shape)
              .gradient(fill_grad)
              .doc("A sparse tensor with an entry of the default value in the first column of each row that has none."));
  kernels.add({.op = "SparseFillEmptyRows", .types = {{"T", kPlain | DTypeSet{DType::string}}}, .prepare = fill_prepare});
  ops.add(OpDef::make("SparseFillEmptyRowsGrad")
              .input("reverse_index_map: int64", {.rank = 1})
              .input("grad_values: T", {.rank = 1})
              .output("d_values: T")
              .output("d_default_value: T")
              .attr("T: type")
              .shape(fill_grad_shape)
              .gradient(nullptr)
              .doc("The gradient of SparseFillEmptyRows."));
  add_fill_grads<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(kernels);
}

}  // namespace

void register_sparse_layout(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("SparseReorder")
              .input("input_indices: int64", {.rank = 2})
              .input("input_values: T", {.rank = 1})
              .input("input_shape: int64", {.rank = 1})
              .output("output_indices: int64")
              .output("output_values: T")
              .attr("T: type")
              .shape(reorder_shape)
              .gradient(reorder_grad)
              .doc("The entries of a sparse tensor in row-major order; those of one place keep theirs."));
  kernels.add({.op = "SparseReorder", .types = {{"T", kPlain | DTypeSet{DType::string}}}, .prepare = reorder_prepare});
  ops.add(OpDef::make("SparseReshape")
              .input("input_indices: int64", {.rank = 2})
              .input("input_shape: int64", {.rank = 1})
              .input("new_shape: int64", {.rank = 1})
              .output("output_indices: int64")
              .output("output_shape: int64")
              .shape(reshape_shape)
              .no_gradient()
              .doc("Where the entries of a sparse tensor are under another shape of as many places; one -1 is inferred."));
  kernels.add({.op = "SparseReshape", .prepare = reshape_prepare});
  register_fill(ops, kernels);
}

}  // namespace dtg::ops
