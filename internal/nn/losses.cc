// Adds the nodes of losses and metrics. Called by the thread that builds the graph.
#include "nn/losses.h"

#include "nn/layer.h"
#include "nn/loss_parts.h"
#include "nn/scope.h"

namespace dtg {
namespace {

constexpr const char* kSparse = "SparseSoftmaxCrossEntropyWithLogits";

Value mean(Build& build, Value x) { return build.op("Mean", {x, axes_from(build, x, 0)}); }

Status check_both(Graph& graph, Value a, Value b, const char* what) {
  DTG_TRY(graph.check(a).with_context(what));
  return graph.check(b).with_context(what);
}

// Numbers of one type are compared. A column of predictions and a row of labels would become a square of differences, and a loss that falls
// and teaches nothing.
Status check_ranks(const Graph& graph, Value labels, Value predictions, const char* what) {
  const PartialShape &l = graph.info(labels).shape, &p = graph.info(predictions).shape;
  const bool typed = graph.info(labels).dtype == graph.info(predictions).dtype;
  const bool ranked = l.rank() < 1 || p.rank() < 1 || l.rank() == p.rank();
  if (ranked && typed) return {};
  const std::string cast = format("Cast the labels to %s", dtype_name(graph.info(predictions).dtype));
  const std::string advice = ranked ? cast
                                    : "each would be compared with every other one, so Reshape one of them to the shape of the other" +
                                          (typed ? "" : ", and " + cast);
  return invalid_argument("%s: the labels are %s and the predictions %s; %s", what, described(graph, labels).c_str(),
                          described(graph, predictions).c_str(), advice.c_str());
}

Result<Value> done(const Build& build, Value value, const char* what) {
  DTG_TRY(build.status().with_context(what));
  return value;
}

// A label that is no class would count as a wrong prediction for ever; as an index it is an error with its place.
Value checked(Build& build, Value labels, Value logits) {
  const PartialShape& shape = build.info(logits).shape;
  const int64_t classes = shape.rank() > 0 ? shape.dim(shape.rank() - 1) : -1;
  if (!build.ok() || classes < 0) return labels;
  const Value all = build.op("Range", {build.integer(0, DType::i64), build.integer(classes, DType::i64), build.integer(1, DType::i64)});
  return build.op("GatherV2", {all, labels, build.integer(0)});
}

// A row has one label, also where the labels are a column; any other number of them is an error when it is seen, as one label would be
// compared with all rows.
Value is_correct(Build& build, Value labels, Value logits) {
  const int rank = rank_of(build, logits);
  if (rank > 0 && rank_of(build, labels) == rank)
    labels = build.op("Squeeze", {labels}, {{"squeeze_dims", std::vector<int64_t>{rank - 1}}});
  const Value best = build.op("ArgMax", {logits, build.integer(-1)}, {{"output_type", DType::i64}});
  const Value wanted = checked(build, build.cast(labels, DType::i64), logits);
  return build.op("Equal", {best, build.reshape(wanted, build.op("Shape", {best}))});
}

Status check_numbered(const Graph& graph, Value labels, Value logits, const char* what) {
  const PartialShape &l = graph.info(labels).shape, &p = graph.info(logits).shape;
  DTG_TRY(check_choice(graph, what, "logits", logits));
  if (!l.has_rank() || !p.has_rank() || p.rank() == 0) return {};
  bool alike = l.rank() == p.rank() - 1 || (l.rank() == p.rank() && l.dim(l.rank() - 1) == 1);
  for (int i = 0; alike && i + 1 < p.rank(); ++i) alike = l.dim(i) < 0 || p.dim(i) < 0 || l.dim(i) == p.dim(i);
  if (alike) return {};
  return invalid_argument(
      "%s: the labels are %s and the logits %s; labels are numbers of classes, with all dimensions of the logits but the last", what,
      described(graph, labels).c_str(), described(graph, logits).c_str());
}

// Labels have the dimensions of the logits, or all but the last. What is not known of them is not compared.
Status check_outer(const Graph& graph, Value labels, Value logits, bool classes, const char* what) {
  const PartialShape &l = graph.info(labels).shape, &p = graph.info(logits).shape;
  if (!l.has_rank() || p.rank() <= 2) return {};
  bool alike = l.rank() == p.rank() - (classes ? 1 : 0);
  for (int i = 0; alike && i + 1 < p.rank(); ++i) alike = l.dim(i) < 0 || p.dim(i) < 0 || l.dim(i) == p.dim(i);
  if (alike) return {};
  return invalid_argument("%s: the labels are %s and the logits %s; labels have %s", what, described(graph, labels).c_str(),
                          described(graph, logits).c_str(), classes ? "all dimensions of the logits but the last" : "the same dimensions");
}

// Labels that are distributions: numbers of classes look like others of them, and a cast would make them no distributions.
Status check_shares(const Graph& graph, Value labels, Value logits, const char* what) {
  const ValueInfo& l = graph.info(labels);
  const PartialShape& p = graph.info(logits).shape;
  const bool ranked = l.shape.has_rank() && p.has_rank() && p.rank() > 1;
  const bool numbers = ranked && (l.shape.rank() + 1 == p.rank() || (l.shape.rank() == p.rank() && l.shape.dim(p.rank() - 1) == 1 &&
                                                                     p.dim(p.rank() - 1) > 1 && dtype_is_integer(l.dtype)));
  if (dtype_is_floating(l.dtype) && !numbers) return {};
  const char* const sparse = "labels that are numbers of classes go, as int32 or int64, to the sparse softmax cross entropy";
  const std::string shares = ranked && !numbers ? format("cast labels that are shares of the classes, such as one-hot ones, to %s; ",
                                                         dtype_name(graph.info(logits).dtype))
                                                : "";
  return invalid_argument("%s: the labels are %s and the logits %s; a share of each class for each row is needed: %s%s", what,
                          described(graph, labels).c_str(), described(graph, logits).c_str(), shares.c_str(), sparse);
}

// Both take logits and labels and give one loss per example.
Result<Value> softmax_loss(Graph& graph, const char* op, Value labels, Value logits, const char* what) {
  DTG_TRY(check_outer(graph, labels, logits, op == kSparse, what));
  const NameScope scope(graph, "softmax_cross_entropy");
  Build build(graph);
  // The op takes a matrix of logits; of more dimensions each but the last counts as examples, as Keras has it.
  if (graph.info(logits).shape.rank() > 2) {
    labels = graph.info(labels).shape.rank() == graph.info(logits).shape.rank() ? as_rows(build, labels)
                                                                                : build.reshape(labels, build.ints({-1}));
    logits = as_rows(build, logits);
  }
  return done(build, mean(build, build.op(op, {logits, labels})), what);
}

}  // namespace

Result<Value> sparse_softmax_cross_entropy(Graph& graph, Value labels, Value logits) {
  constexpr const char* kWhat = "sparse softmax cross entropy";
  DTG_TRY(check_both(graph, labels, logits, kWhat));
  DTG_TRY(check_order(graph, kWhat, labels, logits));
  const PartialShape &l = graph.info(labels).shape, &p = graph.info(logits).shape;
  const bool alike = l.has_rank() && p.has_rank() && l.rank() == p.rank() && l.rank() > 1;
  const bool column = alike && l.dim(l.rank() - 1) == 1;
  if (const DType dtype = graph.info(labels).dtype; dtype_is_floating(dtype) || dtype == DType::boolean) {
    return invalid_argument("%s: the labels are %s; they are numbers of classes here, so feed or cast them as int32 or int64%s", kWhat,
                            described(graph, labels).c_str(),
                            alike && !column ? ". For labels that are distributions use the softmax cross entropy" : "");
  }
  if (alike && !column && l.dim(l.rank() - 1) >= 0) {
    return invalid_argument("%s: the labels are %s and the logits %s; one class for each row of the logits is needed. For labels that are "
                            "distributions use the softmax cross entropy, with labels of a floating-point type",
                            kWhat, described(graph, labels).c_str(), described(graph, logits).c_str());
  }
  if (column) {
    Build build(graph);
    labels = build.op("Squeeze", {labels}, {{"squeeze_dims", std::vector<int64_t>{-1}}});
    DTG_TRY(build.status().with_context(kWhat));
  }
  return softmax_loss(graph, kSparse, labels, logits, kWhat);
}

Result<Value> softmax_cross_entropy(Graph& graph, Value labels, Value logits) {
  constexpr const char* kWhat = "softmax cross entropy";
  DTG_TRY(check_both(graph, labels, logits, kWhat));
  DTG_TRY(check_order(graph, kWhat, labels, logits));
  DTG_TRY(check_shares(graph, labels, logits, kWhat));
  return softmax_loss(graph, "SoftmaxCrossEntropyWithLogits", labels, logits, kWhat);
}

Result<Value> sigmoid_cross_entropy(Graph& graph, Value labels, Value logits) {
  constexpr const char* kWhat = "sigmoid cross entropy";
  DTG_TRY(check_both(graph, labels, logits, kWhat));
  DTG_TRY(check_ranks(graph, labels, logits, kWhat));
  const NameScope scope(graph, "sigmoid_cross_entropy");
  Build build(graph);
  return done(build, mean(build, sigmoid_entropy(build, labels, logits)), kWhat);
}

Result<Value> mean_squared_error(Graph& graph, Value labels, Value predictions) {
  constexpr const char* kWhat = "mean squared error";
  DTG_TRY(check_both(graph, labels, predictions, kWhat));
  DTG_TRY(check_ranks(graph, labels, predictions, kWhat));
  const NameScope scope(graph, "mean_squared_error");
  Build build(graph);
  return done(build, mean(build, build.op("SquaredDifference", {predictions, labels})), kWhat);
}

Result<Value> accuracy(Graph& graph, Value labels, Value logits) {
  DTG_TRY(check_both(graph, labels, logits, "accuracy"));
  DTG_TRY(check_order(graph, "accuracy", labels, logits));
  DTG_TRY(check_numbered(graph, labels, logits, "accuracy"));
  const NameScope scope(graph, "accuracy");
  Build build(graph);
  return done(build, mean(build, build.cast(is_correct(build, labels, logits), DType::f32)), "accuracy");
}

Result<Value> correct_count(Graph& graph, Value labels, Value logits) {
  DTG_TRY(check_both(graph, labels, logits, "count of correct predictions"));
  DTG_TRY(check_order(graph, "count of correct predictions", labels, logits));
  DTG_TRY(check_numbered(graph, labels, logits, "count of correct predictions"));
  const NameScope scope(graph, "correct");
  Build build(graph);
  const Value ones = build.cast(is_correct(build, labels, logits), DType::i64);
  return done(build, build.sum(ones, axes_from(build, ones, 0)), "count of correct predictions");
}

}  // namespace dtg
