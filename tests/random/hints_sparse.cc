// Hints for the ops on sparse tensors: entries inside of a shape, in order where that is asked for.
#include <algorithm>

#include "random/hints.h"

namespace dtg::random {
namespace {

using Longs = std::vector<int64_t>;

// Places of a shape, row after row of one list; sorted and different ones where it must be.
Longs places(Draw& draw, const Longs& dims, int64_t count, bool ordered) {
  std::vector<Longs> all;
  const bool bad = draw.chance(2);
  for (int64_t i = 0; i < count; ++i) {
    Longs place;
    for (const int64_t dim : dims) place.push_back(bad ? draw.between(-1, dim) : draw.below(std::max<int64_t>(dim, 1)));
    all.push_back(std::move(place));
  }
  if (ordered) {
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
  }
  Longs flat;
  for (const Longs& place : all) flat.insert(flat.end(), place.begin(), place.end());
  return flat;
}

Longs some_dims(Draw& draw, int rank) {
  Longs dims;
  for (int d = 0; d < rank; ++d) dims.push_back(draw.between(1, 4));
  return dims;
}

// The three inputs of a sparse tensor; how many entries it has.
int64_t entries(Ask& a, const char* indices, const char* values, const char* shape, const Longs& dims, bool ordered) {
  const auto rank = static_cast<int64_t>(dims.size());
  const Longs flat = places(a.w.draw, dims, a.w.draw.between(0, 6), ordered);
  const int64_t count = static_cast<int64_t>(flat.size()) / rank;
  a.numbers(indices, flat, with_dims({count, rank}));
  a.put(values, a.w.wanted(a.dtype(values), with_dims({count})));
  a.numbers(shape, dims);
  return count;
}

void reorder(Ask& a) {
  entries(a, "input_indices", "input_values", "input_shape", some_dims(a.w.draw, static_cast<int>(a.w.draw.between(1, 3))), false);
}

void reshape(Ask& a) {
  const Longs dims = some_dims(a.w.draw, 2);
  const int64_t count = a.w.draw.between(0, 5);
  a.numbers("input_indices", places(a.w.draw, dims, count, false), with_dims({count, 2}));
  a.numbers("input_shape", dims);
  a.numbers("new_shape", a.w.draw.chance(50) ? Longs{-1} : Longs{dims[1], -1, 1});
}

void fill_rows(Ask& a) {
  entries(a, "indices", "values", "dense_shape", some_dims(a.w.draw, 2), false);
  a.put("default_value", a.w.wanted(a.type("T"), Shape()));
}

void fill_rows_grad(Ask& a) {
  const int64_t filled = a.w.draw.between(1, 6), count = a.w.draw.below(filled + 1);
  a.numbers("reverse_index_map", indices(a.w.draw, count, filled), with_dims({count}));
  a.put("grad_values", a.w.wanted(a.type("T"), with_dims({filled})));
}

void to_dense(Ask& a) {
  const bool validate = a.w.draw.chance(60);
  a.set("validate_indices", validate);
  entries(a, "sparse_indices", "sparse_values", "output_shape", some_dims(a.w.draw, static_cast<int>(a.w.draw.between(1, 3))), validate);
  a.put("default_value", a.w.wanted(a.type("T"), Shape()));
}

void product(Ask& a) {
  const Longs dims = some_dims(a.w.draw, 2);
  const bool turned_a = a.w.draw.chance(40), turned_b = a.w.draw.chance(40);
  a.set("adjoint_a", turned_a);
  a.set("adjoint_b", turned_b);
  entries(a, "a_indices", "a_values", "a_shape", dims, false);
  const int64_t inner = dims[turned_a ? 0 : 1], columns = a.w.draw.between(0, 5);
  a.put("b", a.w.wanted(a.type("T"), turned_b ? with_dims({columns, inner}) : with_dims({inner, columns})));
}

// Indices into rows, and ids that do not fall.
void picks(Ask& a, const char* data, int64_t rows_max, int64_t segments_max) {
  const int64_t rows = std::max<int64_t>(a.shape(data).dim(0), 0);
  const int64_t count = rows > 0 ? a.w.draw.between(0, 6) : 0;
  a.numbers("indices", indices(a.w.draw, count, std::max<int64_t>(rows_max < 0 ? rows : rows_max, 1)), with_dims({count}));
  Longs ids = indices(a.w.draw, count, std::max<int64_t>(segments_max, 1));
  std::sort(ids.begin(), ids.end());
  a.numbers("segment_ids", ids, with_dims({count}));
}

void segments(Ask& a) {
  a.data("data", 1, 3);
  const int64_t most = a.w.draw.between(1, 4);
  picks(a, "data", -1, most);
  if (a.op.name().ends_with("WithNumSegments")) a.numbers("num_segments", {most}, true);
}

void segments_grad(Ask& a) {
  a.data("grad", 1, 3);
  const int64_t rows = a.w.draw.between(1, 5);
  picks(a, "grad", rows, a.shape("grad").dim(0));
  a.numbers("output_dim0", {rows}, true);
}

constexpr HintRow kRows[] = {
    {"SparseFillEmptyRows", fill_rows},
    {"SparseFillEmptyRowsGrad", fill_rows_grad},
    {"SparseReorder", reorder},
    {"SparseReshape", reshape},
    {"SparseSegmentMean", segments},
    {"SparseSegmentMeanGrad", segments_grad},
    {"SparseSegmentMeanWithNumSegments", segments},
    {"SparseSegmentSqrtN", segments},
    {"SparseSegmentSqrtNGrad", segments_grad},
    {"SparseSegmentSqrtNWithNumSegments", segments},
    {"SparseSegmentSum", segments},
    {"SparseSegmentSumGrad", segments_grad},
    {"SparseSegmentSumWithNumSegments", segments},
    {"SparseTensorDenseMatMul", product},
    {"SparseToDense", to_dense},
};

}  // namespace

std::span<const HintRow> sparse_hints() { return kRows; }

}  // namespace dtg::random
