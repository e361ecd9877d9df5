// Metrics of a confusion matrix: rows are what is right, columns what was said. Called by the thread that builds the model.
#include "nn/layer.h"
#include "nn/metric_parts.h"

namespace dtg {
namespace {

// Numbers of classes in a row, from them or from scores.
Result<Value> classes_of(Tally& t, Value x, const char* what) {
  Build& b = t.b;
  if (!dtype_is_floating(b.info(x).dtype)) return b.reshape(b.cast(x, DType::i64), b.ints({-1}));
  const PartialShape& shape = b.info(x).shape;
  const int rank = shape.rank();
  if (rank < 1 || (shape.dim(rank - 1) >= 0 && shape.dim(rank - 1) != t.metric.classes)) {
    return invalid_argument("the %s are %s; numbers of classes, or scores [..., %lld], are needed", what, described(t.model(), x).c_str(),
                            static_cast<long long>(t.metric.classes));
  }
  return b.reshape(b.op("ArgMax", {x, b.integer(-1)}, {{"output_type", DType::i64}}), b.ints({-1}));
}

// The share that what is right and what was said have in common, of each class that was there or said, and their mean.
Value mean_iou(Build& b, Value matrix) {
  const Value diagonal = b.op("MatrixDiagPart", {matrix});
  const Value there = b.sum(matrix, b.ints({1})), said = b.sum(matrix, b.ints({0}));
  const Value either = b.sub(b.add(there, said), diagonal);
  if (!b.ok()) return {};
  const Value counts = b.cast(b.op("NotEqual", {either, b.zeros_like(either)}), DType::f64);
  return b.op("DivNoNan", {sum_last(b, b.op("DivNoNan", {diagonal, either})), sum_last(b, counts)});
}

}  // namespace

Result<Measured> matrix_metric(Tally& t) {
  Build& b = t.b;
  const int64_t n = t.metric.classes;
  if (n < 1 || n > 32768) return invalid_argument("%lld classes; 1 to 32768 are needed", static_cast<long long>(n));
  const Value shaped_like = t.labels;
  DTG_ASSIGN(const Value labels, classes_of(t, t.labels, "labels"));
  DTG_ASSIGN(const Value said, classes_of(t, t.predictions, "predictions"));
  DTG_TRY(b.status());
  const Value zero = b.integer(0, DType::i64), end = b.integer(n, DType::i64);
  const auto inside = [&](Value x) { return b.op("LogicalAnd", {b.op("GreaterEqual", {x, zero}), b.op("Less", {x, end})}); };
  Value counts = b.op("LogicalAnd", {inside(labels), inside(said)});
  if (t.metric.ignores_class)
    counts = b.op("LogicalAnd", {counts, b.op("NotEqual", {labels, b.integer(t.metric.ignore_class, DType::i64)})});
  Value weights = t.wide(counts);
  if (t.weights.valid()) {
    const bool scores = dtype_is_floating(b.info(shaped_like).dtype);
    Value mine = t.weights;
    if (!scores && rank_of(b, shaped_like) > rank_of(b, mine) && rank_of(b, mine) > 0) {
      mine = b.op("BroadcastTo", {weights_for(b, mine, t.wide(shaped_like)), b.shape(shaped_like)});
    }
    if (rank_of(b, mine) > 0) mine = b.reshape(mine, b.ints({-1}));
    weights = b.mul(weights, t.wide(mine));
  }
  // What does not count adds 0 to the first cell.
  const Value cell = b.add(b.mul(labels, end), said);
  const Value place = b.op("SelectV2", {counts, cell, b.zeros_like(cell)});
  const Value added = b.op("UnsortedSegmentSum", {weights, place, b.integer(n * n)});
  const size_t matrix = t.add("total_confusion_matrix", Shape::of({n, n}), b.reshape(added, b.ints({n, n})));
  return t.finish([&] { return t.metric.kind == Metric::Kind::mean_iou ? mean_iou(b, t.total(matrix)) : t.total(matrix); });
}

}  // namespace dtg
