// Hints for linear algebra, folds over rows, searches and counts: squares, bands, ids, sizes that go together.
#include <algorithm>

#include "random/hints.h"

namespace dtg::random {
namespace {

std::vector<int64_t> dims_of(const Shape& shape) { return {shape.dims().begin(), shape.dims().end()}; }

Shape batch_and(Ask& a, std::vector<int64_t> last) {
  if (a.w.draw.chance(40)) last.insert(last.begin(), a.w.draw.between(0, 2));
  return with_dims(std::move(last));
}

// The first argument is a square matrix, or a batch of them.
void square(Ask& a) {
  const int64_t n = a.w.draw.between(1, 3);
  const ArgDef& arg = a.op.inputs()[0];
  a.put(arg.name, a.w.wanted(a.dtype(arg), batch_and(a, {n, n})));
}

void solve(Ask& a) {
  square(a);
  std::vector<int64_t> dims = dims_of(a.shape("matrix"));
  dims.back() = a.w.draw.between(1, 3);
  a.put("rhs", a.w.wanted(a.type("T"), with_dims(dims)));
}

void rectangle(Ask& a) { a.put("input", a.w.wanted(a.type("T"), batch_and(a, {a.w.draw.between(1, 3), a.w.draw.between(1, 3)}))); }

void diag_part(Ask& a) {
  const Shape half = a.w.shape(1, 2);
  std::vector<int64_t> dims = dims_of(half);
  for (int64_t dim : half.dims()) dims.push_back(dim);
  a.put("input", a.w.wanted(a.type("T"), with_dims(dims)));
}

// Diagonals 0 and 1 of matrices with a row more than that takes.
void matrix_diag(Ask& a) {
  const int64_t n = a.w.draw.between(1, 3);
  const bool two = a.w.draw.chance(50);
  a.put("diagonal", a.w.wanted(a.type("T"), batch_and(a, two ? std::vector<int64_t>{2, n} : std::vector<int64_t>{n})));
  a.numbers("k", two ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0});
  a.numbers("num_rows", {-1}, true);
  a.numbers("num_cols", {-1}, true);
  a.put("padding_value", a.w.wanted(a.type("T"), Shape()));
}

void matrix_diag_part(Ask& a) {
  rectangle(a);
  a.numbers("k", {0}, a.w.draw.chance(50));
  a.put("padding_value", a.w.wanted(a.type("T"), Shape()));
}

void matrix_set_diag(Ask& a) {
  rectangle(a);
  std::vector<int64_t> dims = dims_of(a.shape("input"));
  const int64_t last = dims.back();
  dims.pop_back();
  dims.back() = std::min(dims.back(), last);
  a.put("diagonal", a.w.wanted(a.type("T"), with_dims(dims)));
  if (a.op.inputs().size() > 2) a.numbers("k", {0}, true);
}

void einsum(Ask& a) {
  static const std::vector<std::string> equations = {"ij,jk->ik", "bij,bjk->bik", "ij,jk->ki", "ij,kj->", "...ij,...jk->...ik"};
  const std::string equation = a.w.draw.pick(equations);
  const int64_t i = a.w.draw.between(0, 3), j = a.w.draw.between(0, 3), k = a.w.draw.between(1, 3);
  std::vector<int64_t> x = {i, j}, y = {j, k};
  if (equation[0] == 'b') x.insert(x.begin(), 2), y.insert(y.begin(), 2);
  if (equation == "ij,kj->") y = {k, j};
  if (equation[0] == '.' && a.w.draw.chance(60)) x.insert(x.begin(), 2);
  a.set("equation", equation);
  a.set("N", int64_t{2});
  a.puts("inputs", {a.w.wanted(a.type("T"), with_dims(x)), a.w.wanted(a.type("T"), with_dims(y))});
}

void segments(Ask& a) {
  std::vector<int64_t> ids;
  const Shape shape = a.w.tensor(a.data("data", 1, 3)).shape();
  for (int64_t i = 0, id = 0; i < shape.dim(0); ++i) ids.push_back(id += a.w.draw.below(2));
  a.numbers("segment_ids", ids);
}

void unsorted_segments(Ask& a) {
  const Shape shape = a.w.tensor(a.data("data", 1, 3)).shape();
  const int64_t count = a.w.draw.between(1, 4);
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < shape.dim(0); ++i) ids.push_back(a.w.draw.between(-1, count - 1));
  a.numbers("segment_ids", ids);
  a.numbers("num_segments", {count}, true);
}

void partition(Ask& a) {
  const Shape shape = a.w.tensor(a.data("data", 1, 3)).shape();
  const int64_t parts = a.w.draw.between(1, 3);
  a.set("num_partitions", parts);
  a.numbers("partitions", indices(a.w.draw, shape.dim(0), parts));
}

void stitch(Ask& a) {
  const int64_t n = a.w.draw.between(1, 3), m = a.w.draw.between(0, 2), row = a.w.draw.between(1, 3);
  a.set("N", int64_t{2});
  a.puts("indices", {a.w.ints(DType::i32, indices(a.w.draw, n, n + m), false), a.w.ints(DType::i32, indices(a.w.draw, m, n + m), false)});
  a.puts("data", {a.w.wanted(a.type("T"), with_dims({n, row})), a.w.wanted(a.type("T"), with_dims({m, row}))});
}

void tensor_scatter(Ask& a) {
  const std::string& first = a.op.inputs()[0].name;
  const Shape shape = a.w.tensor(a.data(first, 1, 3)).shape();
  const int64_t rows = shape.dim(0) > 0 ? a.w.draw.between(0, 3) : 0;
  a.numbers("indices", indices(a.w.draw, rows, shape.dim(0)), with_dims({rows, 1}));
  std::vector<int64_t> dims = dims_of(shape);
  dims[0] = rows;
  a.put("updates", a.w.wanted(a.type("T"), with_dims(dims)));
  a.set("bad_indices_policy", std::string());
}

// The rows [from, from + 1) of the first dimension.
void first_row(Ask& a, const Shape& shape) {
  const int64_t from = a.w.draw.below(shape.dim(0));
  a.numbers("begin", {from});
  a.numbers("end", {from + 1});
  a.numbers("strides", {1});
  for (const char* mask : {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) a.set(mask, int64_t{0});
  std::vector<int64_t> dims = dims_of(shape);
  dims[0] = 1;
  a.put("value", a.w.wanted(a.type("T"), with_dims(dims)));
}
void strided_update(Ask& a) { first_row(a, a.w.tensor(a.data("input", 1, 3)).shape()); }
void strided_assign(Ask& a) {
  Resident& resident = a.w.variable_of_rank(a.type("T"), 1);
  a.use("ref", resident, true);
  first_row(a, resident.shape);
}

void reverse_sequence(Ask& a) {
  const Shape shape = a.w.tensor(a.data("input", 2, 4)).shape();
  a.set("batch_dim", int64_t{0});
  a.set("seq_dim", int64_t{1});
  a.numbers("seq_lengths", indices(a.w.draw, shape.dim(0), shape.dim(1) + 1));
}

void roll(Ask& a) {
  const int rank = a.w.tensor(a.data("input", 1, 4)).shape().rank();
  a.numbers("shift", {a.w.draw.between(-5, 5), a.w.draw.between(-5, 5)});
  a.numbers("axis", {a.w.draw.between(-rank, rank - 1), a.w.draw.below(rank)});
}

void cross(Ask& a) {
  const Shape shape = batch_and(a, {3});
  for (const char* arg : {"a", "b"}) a.put(arg, a.w.wanted(a.type("T"), shape));
}

void same_shapes(Ask& a) {
  const Shape shape = a.w.tensor(a.data("x", 0, 3)).shape();
  a.put("y", a.w.wanted(a.type("T"), shape));
}

void unique_v2(Ask& a) {
  const int rank = a.w.tensor(a.data("x", 1, 3)).shape().rank();
  a.numbers("axis", rank == 1 && a.w.draw.chance(30) ? std::vector<int64_t>{} : std::vector<int64_t>{a.w.draw.between(-rank, rank - 1)});
}

void sorted_row(Ask& a) {
  const int64_t rows = a.w.draw.between(1, 2);
  a.put("sorted_inputs", a.w.wanted(a.type("T"), with_dims({rows, 4})));
  a.put("values", a.w.wanted(a.type("T"), with_dims({rows, 2})));
}

void bucketize(Ask& a) {
  a.set("boundaries", AttrValue::Variant(std::vector<double>{-1, 0.5, 2}));
  a.data("input");
}

void bincount(Ask& a) {
  const std::string& values = a.op.inputs()[0].name;
  const int64_t count = a.w.draw.between(0, 5);
  a.numbers(values, indices(a.w.draw, count, 4));
  a.numbers("size", {a.w.draw.between(0, 4)}, true);
  a.put("weights", a.w.wanted(a.type("T"), with_dims({a.w.draw.chance(50) ? count : 0})));
}

void histogram(Ask& a) {
  if (!kIndex.has(a.type("T"))) a.set("T", DType::i32);
  a.data("values");
  a.numbers("value_range", {a.w.draw.between(-4, 0), a.w.draw.between(1, 4)});
  a.numbers("nbins", {a.w.draw.between(1, 4)}, true);
}

void unravel(Ask& a) {
  a.numbers("dims", {2, 3});
  a.numbers("indices", indices(a.w.draw, 3, 6));
}

void in_top_k(Ask& a) {
  const int64_t rows = a.w.draw.between(0, 3), classes = a.w.draw.between(1, 4);
  a.put("predictions", a.w.wanted(DType::f32, with_dims({rows, classes})));
  a.numbers("targets", indices(a.w.draw, rows, classes));
  if (a.op.inputs().size() > 2) a.numbers("k", {a.w.draw.between(0, 3)}, true);
}

void lin_space(Ask& a) {
  for (const char* arg : {"start", "stop"}) a.put(arg, a.w.wanted(a.type("T"), Shape()));
  a.numbers("num", {a.w.draw.between(1, 5)}, true);
}

void parallel_concat(Ask& a) {
  const Shape row = with_dims({1, a.w.draw.between(0, 3)});
  a.set("N", int64_t{2});
  a.set("shape", PartialShape(with_dims({2, row.dim(1)})));
  a.puts("values", {a.w.wanted(a.type("T"), row), a.w.wanted(a.type("T"), row)});
}

void accumulate_n(Ask& a) {
  const Shape shape = a.w.shape(0, 3);
  a.set("N", int64_t{2});
  a.set("shape", PartialShape(shape));
  a.puts("inputs", {a.w.wanted(a.type("T"), shape), a.w.wanted(a.type("T"), shape)});
}

void check(Ask& a) {
  const bool holds[] = {!a.w.draw.chance(2)};
  a.put("condition", a.w.source(Tensor::of<bool>(Shape(), std::span<const bool>(holds)).take(), true));
  const DType dtype = a.w.draw.chance(50) ? DType::f32 : DType::i32;
  a.set("T", std::vector<DType>{dtype});
  a.puts("data", {a.w.any(dtype, 0, 2)});
}

void hits(Ask& a) {
  a.set("num_true", int64_t{2});
  a.numbers("true_classes", indices(a.w.draw, 4, 6), with_dims({2, 2}));
  a.numbers("sampled_candidates", indices(a.w.draw, 3, 6));
}

void stateless_multinomial(Ask& a) {
  a.put("logits", a.w.wanted(a.type("T"), with_dims({a.w.draw.between(0, 2), a.w.draw.between(1, 4)})));
  a.numbers("num_samples", {a.w.draw.between(0, 4)}, true);
  a.numbers("seed", {a.w.draw.below(100), a.w.draw.below(100)});
}

void stateless_shuffle(Ask& a) {
  a.data("value", 0, 3);
  a.put("key", a.w.source(a.w.random_tensor(DType::u64, with_dims({1})), true));
  a.put("counter", a.w.source(a.w.random_tensor(DType::u64, with_dims({2})), true));
  a.numbers("alg", {1}, true);
}

void whole_numbers(Ask& a) { a.set("T", a.w.draw.chance(50) ? DType::i32 : DType::i64); }

void per_channel(Ask& a) {
  const Shape shape = a.w.tensor(a.data("inputs", 1, 3)).shape();
  if (a.op.inputs()[0].name == "gradients") a.put("gradients", a.w.wanted(DType::f32, shape));
  const Shape channels = with_dims({shape.dim(shape.rank() - 1)});
  for (const char* bound : {"min", "max"}) a.put(bound, a.w.wanted(DType::f32, channels));
  a.set("num_bits", a.w.draw.between(2, 8));
}

// Query, key and value of [batch, places, heads, width] that fit, and any of mask and lengths.
void attention(Ask& a) {
  auto& draw = a.w.draw;
  const int64_t batch = draw.between(0, 2), queries = draw.between(0, 3), keys = draw.between(0, 4), heads = draw.between(1, 2);
  const int64_t width = draw.between(1, 3), values = draw.between(1, 3);
  const DType dtype = a.type("T");
  a.put("query", a.w.wanted(dtype, with_dims({batch, queries, heads, width})));
  a.put("key", a.w.wanted(dtype, with_dims({batch, keys, heads, width})));
  a.put("value", a.w.wanted(dtype, with_dims({batch, keys, heads, values})));
  if (a.op.inputs().size() > 5) a.put("dy", a.w.wanted(dtype, with_dims({batch, queries, heads, values})));
  const bool masked = draw.chance(40), counted = draw.chance(40);
  a.set("masks", int64_t{masked});
  a.set("counts", int64_t{counted});
  std::vector<Port> mask;
  if (masked) mask.push_back(a.w.wanted(DType::boolean, with_dims({draw.chance(50) ? 1 : batch, draw.chance(50) ? 1 : queries, keys})));
  a.puts("mask", mask);
  if (counted) a.numbers("lengths", indices(draw, batch, keys + 1));
  else a.puts("lengths", {});
}

// A range for all of it, as scalars.
void one_range(Ask& a) {
  a.set("axis", int64_t{-1});
  const bool gradient = a.op.inputs()[0].name == "gradients";
  if (!gradient) a.set("num_bits", a.w.draw.between(2, 8));
  const Shape shape = a.w.tensor(a.data("input", 0, 3)).shape();
  if (gradient) a.put("gradients", a.w.wanted(a.type("T"), shape));
  for (const auto& [bound, value] : {std::pair("input_min", -1.5), std::pair("input_max", 2.0)}) {
    const float narrow[] = {static_cast<float>(value)};
    const double wide[] = {value};
    a.put(bound, a.w.source(a.type("T") == DType::f64 ? Tensor::of<double>(Shape(), std::span<const double>(wide)).take()
                                                      : Tensor::of<float>(Shape(), std::span<const float>(narrow)).take(),
                            true));
  }
}

void dense_sets(Ask& a) {
  static const std::vector<std::string> operations = {"a-b", "b-a", "intersection", "union"};
  const int64_t rows = a.w.draw.between(0, 3);
  a.set("T", DType::i32);
  a.set("set_operation", a.w.draw.pick(operations));
  for (const char* set : {"set1", "set2"}) a.put(set, a.w.wanted(DType::i32, with_dims({rows, a.w.draw.between(1, 3)})));
}

constexpr HintRow kRows[] = {
    {"AccumulateNV2", accumulate_n},
    {"ApproximateEqual", same_shapes},
    {"Assert", check},
    {"Bincount", bincount},
    {"Bucketize", bucketize},
    {"Cholesky", square},
    {"ComputeAccidentalHits", hits},
    {"Cross", cross},
    {"DenseBincount", bincount},
    {"DenseToDenseSetOperation", dense_sets},
    {"DiagPart", diag_part},
    {"DotProductAttention", attention},
    {"DotProductAttentionGrad", attention},
    {"DynamicPartition", partition},
    {"DynamicStitch", stitch},
    {"Einsum", einsum},
    {"FakeQuantWithMinMaxVarsPerChannel", per_channel},
    {"FakeQuantWithMinMaxVarsPerChannelGradient", per_channel},
    {"HistogramFixedWidth", histogram},
    {"InTopK", in_top_k},
    {"InTopKV2", in_top_k},
    {"LinSpace", lin_space},
    {"LogMatrixDeterminant", square},
    {"LowerBound", sorted_row},
    {"MatrixDeterminant", square},
    {"MatrixDiagPartV2", matrix_diag_part},
    {"MatrixDiagPartV3", matrix_diag_part},
    {"MatrixDiagV2", matrix_diag},
    {"MatrixDiagV3", matrix_diag},
    {"MatrixInverse", square},
    {"MatrixSetDiag", matrix_set_diag},
    {"MatrixSetDiagV2", matrix_set_diag},
    {"MatrixSetDiagV3", matrix_set_diag},
    {"MatrixSolve", solve},
    {"MatrixTriangularSolve", solve},
    {"ParallelConcat", parallel_concat},
    {"ParallelDynamicStitch", stitch},
    {"Qr", rectangle},
    {"QuantizeAndDequantizeV2", one_range},
    {"QuantizeAndDequantizeV4", one_range},
    {"QuantizeAndDequantizeV4Grad", one_range},
    {"ResourceStridedSliceAssign", strided_assign},
    {"ReverseSequence", reverse_sequence},
    {"Roll", roll},
    {"ScatterNdNonAliasingAdd", tensor_scatter},
    {"SegmentMax", segments},
    {"SegmentMean", segments},
    {"SegmentMin", segments},
    {"SegmentProd", segments},
    {"SelfAdjointEigV2", square},
    {"StatelessMultinomial", stateless_multinomial},
    {"StatelessShuffle", stateless_shuffle},
    {"Svd", rectangle},
    {"TensorScatterAdd", tensor_scatter},
    {"TensorScatterMax", tensor_scatter},
    {"TensorScatterMin", tensor_scatter},
    {"TensorScatterSub", tensor_scatter},
    {"TensorScatterUpdate", tensor_scatter},
    {"TensorStridedSliceUpdate", strided_update},
    {"TruncateDiv", whole_numbers},
    {"UniqueV2", unique_v2},
    {"UniqueWithCountsV2", unique_v2},
    {"UnravelIndex", unravel},
    {"UnsortedSegmentMax", unsorted_segments},
    {"UnsortedSegmentMin", unsorted_segments},
    {"UnsortedSegmentProd", unsorted_segments},
    {"UpperBound", sorted_row},
};

}  // namespace

std::span<const HintRow> maths_hints() { return kRows; }

}  // namespace dtg::random
