// Between sparse and dense: SparseToDense, and the product of a sparse matrix with a dense one. Indices are data: each is checked
// before anything is written.
#include <algorithm>

#include "base/watched.h"
#include "device/cpu/copy.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/rows.h"

namespace dtg::ops {
namespace {

using Long = long long;

// ---- SparseToDense -----------------------------------------------------------------------------------------

// Indices are [n, rank], [n] for a vector, or a scalar for one entry of a vector.
Status to_dense_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 1));
  if (c.input(0).has_rank() && c.input(0).rank() > 2)
    return c.error("sparse_indices must have rank 2 or less, but have shape %s", c.input(0).text().c_str());
  if (c.input(2).has_rank() && c.input(2).rank() > 1)
    return c.error("sparse_values must be a scalar or a vector, but have shape %s", c.input(2).text().c_str());
  DTG_TRY(c.require_rank(3, 0));
  const KnownIntegers dims = known_integers(c, 1);
  for (int d = 0; d < dims.count; ++d) {
    if (dims.values[static_cast<size_t>(d)] < 0)
      return c.error("output_shape has %lld in dimension %d", static_cast<Long>(dims.values[static_cast<size_t>(d)]), d);
  }
  DTG_ASSIGN(PartialShape shape, c.shape_from_input(1));
  c.output(0, shape);
  return {};
}

// d(values) = dy at the indices; d(default) = the rest of dy
Status to_dense_grad(GradContext& c) {
  Build& b = c.b();
  const Value rank = b.op("Size", {c.input(1)}), minus = b.ints({-1});
  const Value rows = b.op("ConcatV2", {minus, b.reshape(rank, b.ints({1})), b.integer(0)});
  const Value picked = b.op("GatherNd", {c.dy(), b.reshape(c.input(0), rows)});
  const Value sum = b.sum(picked, b.ints({0}));
  const auto all = [&](Value x) { return b.sum(b.reshape(x, minus), b.ints({0})); };
  // A scalar value stands for each entry: no dimension is summed over where there is one per entry.
  const PartialShape& values = c.input_info(2).shape;
  const Value one = b.integer(1);
  if (values.has_rank()) c.dx(2, values.rank() == 0 ? sum : picked);
  else c.dx(2, b.sum(picked, b.op("Range", {b.op("Rank", {c.input(2)}), one, one})));
  c.dx(3, b.sub(all(c.dy()), sum));
  return {};
}

struct ToDenseArgs {
  int64_t count = 0, rank = 0;
  int64_t size = 0;
  DType index_dtype = DType::i64;
  bool validate = true, one_value = false;
  Integers dims;
  OutputSpec out;
};

// The place of entry i, or an error; `last` is the one before, for the order.
Result<int64_t> place_of(RunContext& c, const ToDenseArgs& a, const Shape& shape, int64_t i, int64_t last) {
  int64_t at = 0;
  for (int64_t d = 0; d < a.rank; ++d) {
    const int64_t index = integer_at(c.in<char>(0), a.index_dtype, i * a.rank + d), dim = shape.dim(static_cast<int>(d));
    if (index < 0 || index >= dim) {
      return c.error("entry %lld is at %lld in dimension %lld, not in [0, %lld)", static_cast<Long>(i), static_cast<Long>(index),
                     static_cast<Long>(d), static_cast<Long>(dim));
    }
    at = at * dim + index;
  }
  if (a.validate && at <= last) {
    return c.error("entry %lld %s; order them (SparseReorder), or set validate_indices to false", static_cast<Long>(i),
                   at == last ? "repeats the one before" : "is out of order");
  }
  return at;
}

Status to_dense_run(RunContext& c) {
  const auto& a = c.args<ToDenseArgs>();
  Integers::Buffer buffer;
  const auto made = Shape::make(a.dims.get(c, buffer));
  if (!made.ok()) return c.error("%s", made.status().message().c_str());
  const Shape& shape = made.value();
  int64_t last = -1;
  for (const int64_t i : watched(a.count, 10)) {
    DTG_ASSIGN(last, place_of(c, a, shape, i, last));
  }
  DTG_ASSIGN(char* out, a.out.memory(c, shape));
  cpu::fill(c.pool(), out, shape.count(), a.size, c.in<char>(3));
  for (const int64_t i : watched(a.count, 10 + a.size / 8)) {
    DTG_ASSIGN(const int64_t at, place_of(c, a, shape, i, -1));
    cpu::copy_row(out + at * a.size, c.in<char>(2) + (a.one_value ? 0 : i) * a.size, a.size);
  }
  return {};
}

Status to_dense_prepare(PrepareContext& c) {
  auto* const a = c.args<ToDenseArgs>();
  const Shape &indices = c.input(0).shape, &values = c.input(2).shape;
  a->count = indices.rank() == 0 ? 1 : indices.dim(0);
  a->rank = indices.rank() == 2 ? indices.dim(1) : 1;
  if (a->rank != c.input(1).shape.count()) {
    return c.error("sparse_indices %s name places of rank %lld, output_shape has %lld dimensions", indices.text().c_str(),
                   static_cast<Long>(a->rank), static_cast<Long>(c.input(1).shape.count()));
  }
  a->one_value = values.rank() == 0;
  if (!a->one_value && values.count() != a->count) {
    return c.error("%lld indices and %lld sparse_values", static_cast<Long>(a->count), static_cast<Long>(values.count()));
  }
  a->size = cell_bytes(c.input(2).dtype);
  a->index_dtype = c.input(0).dtype;
  a->validate = c.boolean("validate_indices");
  DTG_TRY(a->dims.prepare(c, 1));
  a->out.prepare(c, 0);
  return c.sync(to_dense_run);
}

// ---- SparseTensorDenseMatMul -------------------------------------------------------------------------------

// Rows and columns of a as it is used; -1 where the values of a_shape are not known.
struct Matrix {
  int64_t rows = -1, columns = -1;
};

Matrix used_matrix(const Node& node, const KnownIntegers& shape) {
  if (!shape.known || shape.count != 2) return {};
  const bool turned = node.attr<bool>("adjoint_a");
  return {shape.values[turned ? 1 : 0], shape.values[turned ? 0 : 1]};
}

Status product_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 2));
  DTG_TRY(c.require_rank(1, 1));
  DTG_TRY(c.require_rank(2, 1));
  DTG_TRY(c.require_rank(3, 2));
  const auto dim = [&](int input, int d) { return c.input(input).has_rank() ? c.input(input).dim(d) : -1; };
  if (dim(0, 1) >= 0 && dim(0, 1) != 2) return c.error("a_indices must have 2 columns, but have shape %s", c.input(0).text().c_str());
  if (dim(2, 0) >= 0 && dim(2, 0) != 2) return c.error("a_shape must have 2 entries, but has %lld", static_cast<Long>(dim(2, 0)));
  if (dim(0, 0) >= 0 && dim(1, 0) >= 0 && dim(0, 0) != dim(1, 0)) {
    return c.error("%lld rows of a_indices and %lld a_values", static_cast<Long>(dim(0, 0)), static_cast<Long>(dim(1, 0)));
  }
  const Matrix a = used_matrix(c.node(), known_integers(c, 2));
  const bool turned = c.boolean("adjoint_b");
  const int64_t inner = dim(3, turned ? 1 : 0);
  if (a.columns >= 0 && inner >= 0 && a.columns != inner) {
    return c.error("a has %lld columns, b has %lld rows", static_cast<Long>(a.columns), static_cast<Long>(inner));
  }
  PartialShape out = PartialShape::of_rank(2);
  out.set_dim(0, a.rows);
  out.set_dim(1, dim(3, turned ? 0 : 1));
  c.output(0, out);
  return {};
}

// d(b) = a^T dy, and d(a)[r, k] = dy[r, :] . b[k, :], for the entries that are there
Status product_grad(GradContext& c) {
  Build& b = c.b();
  const bool turned_a = c.attr<bool>("adjoint_a"), turned_b = c.attr<bool>("adjoint_b");
  const Value indices = c.input(0), dy = c.dy(), swap = b.ints({1, 0});
  Value db = b.op("SparseTensorDenseMatMul", {indices, c.input(1), c.input(2), dy}, {{"adjoint_a", !turned_a}});
  if (turned_b) db = b.op("Transpose", {db, swap});
  c.dx(3, db);
  const auto column = [&](int64_t k) {
    return b.op("StridedSlice", {indices, b.ints({0, k}), b.ints({0, k + 1}), b.ints({1, 1})},
                {{"begin_mask", 1}, {"end_mask", 1}, {"shrink_axis_mask", 2}});
  };
  const Value rows = column(turned_a ? 1 : 0), columns = column(turned_a ? 0 : 1);
  const Value right = turned_b ? b.op("Transpose", {c.input(3), swap}) : c.input(3);
  const Value zero = b.integer(0);
  c.dx(1, b.sum(b.mul(b.op("GatherV2", {dy, rows, zero}), b.op("GatherV2", {right, columns, zero})), b.ints({1})));
  return {};
}

struct ProductArgs {
  int64_t count = 0;                       // entries of a
  int64_t inner = 0, columns = 0;          // of b as it is used
  int64_t row_stride = 0, col_stride = 0;  // of b as it lies
  bool turned = false;                     // a
  DType index_dtype = DType::i64;
  Integers shape;
  OutputSpec out;
};

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

Status check_entries(RunContext& c, const ProductArgs& a, int64_t rows) {
  for (const int64_t i : watched(a.count)) {
    const int64_t row = integer_at(c.in<char>(0), a.index_dtype, 2 * i + a.turned);
    const int64_t column = integer_at(c.in<char>(0), a.index_dtype, 2 * i + !a.turned);
    if (row >= 0 && row < rows && column >= 0 && column < a.inner) continue;
    return c.error("entry %lld of a is at [%lld, %lld] of a matrix of %lld by %lld", static_cast<Long>(i), static_cast<Long>(row),
                   static_cast<Long>(column), static_cast<Long>(rows), static_cast<Long>(a.inner));
  }
  return {};
}

// out[row] += value * b[column], entry after entry; columns of the result side by side.
template <class T>
void add_products(RunContext& c, const ProductArgs& a, Wide<T>* out) {
  const int64_t wanted = cpu::shards_for_bytes(a.count * a.columns * static_cast<int64_t>(sizeof(T)));
  const int64_t shards = std::clamp<int64_t>(a.columns / 32, 1, wanted);
  c.pool().parallel_for(shards, [&](int64_t s) {
    const int64_t begin = a.columns * s / shards, end = a.columns * (s + 1) / shards;
    for (const int64_t i : watched(a.count, 10 + end - begin)) {
      const int64_t row = integer_at(c.in<char>(0), a.index_dtype, 2 * i + a.turned);
      const int64_t column = integer_at(c.in<char>(0), a.index_dtype, 2 * i + !a.turned);
      const auto value = static_cast<Wide<T>>(c.in<T>(1)[i]);
      const T* const b = c.in<T>(3) + column * a.row_stride;
      Wide<T>* const sums = out + row * a.columns;
      for (int64_t k = begin; k < end; ++k) {
        if constexpr (std::is_integral_v<T>)
          sums[k] = sum_of<T>(sums[k], static_cast<T>(static_cast<uint64_t>(value) * static_cast<uint64_t>(b[k * a.col_stride])));
        else sums[k] += value * static_cast<Wide<T>>(b[k * a.col_stride]);
      }
    }
  });
}

template <class T>
Status product_run(RunContext& c) {
  const auto& a = c.args<ProductArgs>();
  Integers::Buffer buffer;
  const auto dims = a.shape.get(c, buffer);
  const int64_t rows = dims[a.turned ? 1 : 0], columns = dims[a.turned ? 0 : 1];
  if (rows < 0 || columns != a.inner) {
    return c.error("a is a matrix of %lld by %lld, b has %lld rows", static_cast<Long>(rows), static_cast<Long>(columns),
                   static_cast<Long>(a.inner));
  }
  DTG_TRY(check_entries(c, a, rows));
  const int64_t wanted[] = {rows, a.columns};
  const auto shape = Shape::make(wanted);
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  DTG_ASSIGN(char* out, a.out.memory(c, shape.value()));
  const int64_t elements = shape.value().count(), bytes = elements * static_cast<int64_t>(sizeof(Wide<T>));
  char* sums = out;
  if constexpr (!std::is_same_v<T, Wide<T>>) {
    DTG_ASSIGN(sums, c.slots().lease_block(bytes, "sums of a product"));
  }
  cpu::clear(c.pool(), sums, bytes);
  add_products<T>(c, a, reinterpret_cast<Wide<T>*>(sums));
  if constexpr (!std::is_same_v<T, Wide<T>>) {
    for (int64_t i = 0; i < elements; ++i) reinterpret_cast<T*>(out)[i] = T(reinterpret_cast<const Wide<T>*>(sums)[i]);
  }
  return {};
}

template <class T>
Status product_prepare(PrepareContext& c) {
  auto* const a = c.args<ProductArgs>();
  const Shape& b = c.input(3).shape;
  const bool turned = c.boolean("adjoint_b");
  a->count = c.input(1).shape.count();
  a->turned = c.boolean("adjoint_a");
  a->inner = b.dim(turned ? 1 : 0);
  a->columns = b.dim(turned ? 0 : 1);
  a->row_stride = turned ? 1 : b.dim(1);
  a->col_stride = turned ? b.dim(1) : 1;
  a->index_dtype = c.input(0).dtype;
  DTG_TRY(a->shape.prepare(c, 2));
  a->out.prepare(c, 0);
  return c.sync(product_run<T>);
}

template <class... T>
void add_products_of(KernelTable& kernels) {
  (kernels.add({.op = "SparseTensorDenseMatMul", .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = product_prepare<T>}), ...);
}

}  // namespace

void register_sparse_dense(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("SparseToDense")
              .input("sparse_indices: Tindices")
              .input("output_shape: Tindices", {.rank = 1})
              .input("sparse_values: T")
              .input("default_value: T", {.rank = 0})
              .output("dense: T")
              .attr("validate_indices: bool = true")
              .attr("T: type")
              .attr("Tindices: {int32, int64}")
              .shape(to_dense_shape)
              .gradient(to_dense_grad)
              .doc("A tensor of the default value with the values at the indices, which are in order and do not repeat unless "
                   "validate_indices is false."));
  kernels.add({.op = "SparseToDense", .types = {{"T", kPlain | DTypeSet{DType::string}}}, .prepare = to_dense_prepare});
  ops.add(OpDef::make("SparseTensorDenseMatMul")
              .input("a_indices: Tindices", {.rank = 2})
              .input("a_values: T", {.rank = 1})
              .input("a_shape: int64", {.rank = 1})
              .input("b: T", {.rank = 2})
              .output("product: T")
              .attr("T: type")
              .attr("Tindices: {int32, int64} = int64")
              .attr("adjoint_a: bool = false")
              .attr("adjoint_b: bool = false")
              .shape(product_shape)
              .gradient(product_grad)
              .doc("The product of a sparse matrix with a dense one, each transposed before where its adjoint is asked for."));
  add_products_of<float, double, int32_t, BFloat16, Half>(kernels);
}

}  // namespace dtg::ops
