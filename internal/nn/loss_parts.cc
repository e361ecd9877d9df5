// The checks and formulas that losses and metrics share. Called by the thread that builds the model.
#include "nn/loss_parts.h"

#include <algorithm>
#include <string>

#include "nn/layer.h"

namespace dtg {
namespace {

bool is_number(DType dtype) { return dtype != DType::string && dtype != DType::resource && dtype != DType::invalid; }

Value dropped(Build& build, Value x) { return build.op("Squeeze", {x}, {{"squeeze_dims", std::vector<int64_t>{-1}}}); }
Value expanded(Build& build, Value x) { return build.op("ExpandDims", {x, build.integer(-1)}); }

bool ends_in_one(const Build& build, Value x) {
  const PartialShape& shape = build.info(x).shape;
  return shape.rank() > 0 && shape.dim(shape.rank() - 1) == 1;
}

}  // namespace

int rank_of(const Build& build, Value x) { return build.info(x).shape.rank(); }

Value axes_from(Build& build, Value x, int first) {
  if (!build.ok()) return {};
  if (!build.info(x).shape.has_rank()) return build.op("Range", {build.integer(first), build.op("Rank", {x}), build.integer(1)});
  std::vector<int64_t> axes;
  for (int i = first; i < rank_of(build, x); ++i) axes.push_back(i);
  return build.ints(axes);
}

Value last_axis(Build& build) { return build.ints({-1}); }

Value clip(Build& build, Value x, double low, double high) {
  return build.ok() ? build.op("ClipByValue", {x, build.like(x, low), build.like(x, high)}) : Value();
}

Value as_rows(Build& build, Value x) {
  const int rank = rank_of(build, x);
  if (!build.ok() || rank == 2) return x;
  const int64_t width = build.info(x).shape.dim(rank - 1);
  if (width >= 0) return build.reshape(x, build.ints({-1, width}));
  const Value last = build.op("StridedSlice", {build.shape(x), build.ints({-1}), build.ints({0}), build.ints({1})}, {{"end_mask", 1}});
  return build.reshape(x, build.op("ConcatV2", {build.ints({-1}), last, build.integer(0)}));
}

Value like_outer(Build& build, Value rows, Value x) {
  const PartialShape whole = build.info(x).shape;
  if (!build.ok() || whole.rank() == 2) return rows;
  const Value outer = build.op("StridedSlice", {build.shape(x), build.ints({0}), build.ints({-1}), build.ints({1})}, {{"begin_mask", 1}});
  PartialShape shape = PartialShape::of_rank(whole.rank() - 1);
  for (int i = 0; i + 1 < whole.rank(); ++i) shape.set_dim(i, whole.dim(i));
  return shaped(build, build.reshape(rows, outer), shape);
}

void match_ranks(Build& build, Value* a, Value* b, bool expand_vectors) {
  const int rank_a = rank_of(build, *a), rank_b = rank_of(build, *b);
  Value* const longer = rank_a == rank_b + 1 ? a : rank_b == rank_a + 1 ? b : nullptr;
  if (!longer || !ends_in_one(build, *longer)) return;
  Value* const other = longer == a ? b : a;
  if (rank_of(build, *other) == 1 && expand_vectors) {
    *other = expanded(build, *other);
  } else {
    *longer = dropped(build, *longer);
  }
}

namespace {

// One for all is broadcast; any other number is that of the examples.
Status check_count(const Build& build, Value weights, Value values) {
  const PartialShape &w = build.info(weights).shape, &v = build.info(values).shape;
  for (int i = 0; i < std::min(w.rank(), v.rank()); ++i) {
    if (w.dim(i) < 0 || v.dim(i) < 0 || w.dim(i) == 1 || w.dim(i) == v.dim(i)) continue;
    return invalid_argument("the sample weights are %s and the losses %s; one weight per loss, or per example, is needed",
                            described(build.graph(), weights).c_str(), v.text().c_str());
  }
  return {};
}

}  // namespace

Value weights_for(Build& build, Value weights, Value values) {
  if (!build.ok()) return {};
  const Value given = weights;
  weights = build.cast(weights, build.info(values).dtype);
  const int rank = rank_of(build, values);
  if (rank_of(build, weights) == rank + 1 && ends_in_one(build, weights)) weights = dropped(build, weights);
  if (Status counted = check_count(build, given, values); !counted.ok() && build.ok()) build.fail(std::move(counted));
  while (build.ok() && rank_of(build, weights) > 0 && rank_of(build, weights) < rank) weights = expanded(build, weights);
  if (build.ok() && rank_of(build, weights) > rank && rank > 0) {
    build.fail(
        invalid_argument("the sample weights are of rank %d and the losses of rank %d; one weight per loss, or per example, is needed",
                         rank_of(build, weights), rank));
  }
  return weights;
}

Value weights_of_classes(Build& build, Value class_weights, Value labels, Value values, int64_t axis, Value mask) {
  if (!build.ok()) return {};
  if (rank_of(build, labels) > rank_of(build, values)) {
    const int64_t place = axis < 0 ? axis + rank_of(build, labels) : axis;
    const bool one = place >= 0 && place < rank_of(build, labels) && build.info(labels).shape.dim(static_cast<int>(place)) == 1;
    labels = one ? build.op("Squeeze", {labels}, {{"squeeze_dims", std::vector<int64_t>{place}}})
                 : build.op("ArgMax", {labels, build.integer(axis)}, {{"output_type", DType::i64}});
  }
  if (!build.ok()) return {};
  if (rank_of(build, labels) != rank_of(build, values)) {
    build.fail(invalid_argument("weights of classes need one class per loss; the labels are of rank %d and the losses of rank %d",
                                rank_of(build, labels), rank_of(build, values)));
    return {};
  }
  const bool floating = dtype_is_floating(build.info(labels).dtype);
  Value classes = build.cast(floating ? build.op("Round", {labels}) : labels, DType::i64);
  // An ignored class has no weight to look up.
  if (mask.valid()) classes = build.mul(classes, build.cast(mask, DType::i64));
  return build.op("GatherV2", {build.cast(class_weights, build.info(values).dtype), classes, build.integer(0)}, {}, "class_weights");
}

Value reduced_loss(Build& build, Value values, Value weights, Loss::Reduction reduction) {
  if (reduction == Loss::Reduction::none || !build.ok()) return values;
  const DType dtype = build.info(values).dtype;
  if (rank_of(build, values) == 0) return values;
  const Value sum = build.sum(values, axes_from(build, values, 0));
  if (reduction == Loss::Reduction::sum) return sum;
  const bool by_weights = reduction == Loss::Reduction::mean_with_sample_weight && weights.valid();
  const Value over = by_weights ? build.sum(weights, axes_from(build, weights, 0)) : build.cast(build.op("Size", {values}), dtype);
  return build.op("DivNoNan", {sum, over});
}

Status looks_swapped(const Graph& graph, const char* what, Value labels, Value predictions) {
  return invalid_argument("%s: labels and logits look swapped: the labels, which come first, are %s, and the predictions %s", what,
                          described(graph, labels).c_str(), described(graph, predictions).c_str());
}

Status check_order(const Graph& graph, const char* what, Value labels, Value predictions) {
  const ValueInfo& l = graph.info(labels);
  const ValueInfo& p = graph.info(predictions);
  const bool by_type = dtype_is_floating(l.dtype) && !dtype_is_floating(p.dtype);
  const bool by_rank = l.shape.has_rank() && p.shape.has_rank() && l.shape.rank() == p.shape.rank() + 1;
  return by_type || by_rank ? looks_swapped(graph, what, labels, predictions) : Status();
}

Status check_pair(const Model& model, const char* what, Value labels, Value predictions) {
  DTG_TRY(model.graph().check(labels).with_context(std::string(what) + ", labels"));
  DTG_TRY(model.graph().check(predictions).with_context(std::string(what) + ", predictions"));
  const ValueInfo& l = model.graph().info(labels);
  const ValueInfo& p = model.graph().info(predictions);
  if (!is_number(l.dtype) || !is_number(p.dtype)) {
    return invalid_argument("%s: the labels are %s and the predictions %s; numbers are needed", what, described(model, labels).c_str(),
                            described(model, predictions).c_str());
  }
  if (!dtype_is_floating(p.dtype)) {
    if (dtype_is_floating(l.dtype)) return looks_swapped(model.graph(), what, labels, predictions);
    return invalid_argument("%s: the predictions are %s; a floating-point type is needed", what, described(model, predictions).c_str());
  }
  if (!l.shape.has_rank() || !p.shape.has_rank()) {
    return invalid_argument(
        "%s: the labels are %s and the predictions %s; known ranks are needed (EnsureShape says what the graph cannot see)", what,
        described(model, labels).c_str(), described(model, predictions).c_str());
  }
  return {};
}

Status check_classes(const Model& model, const char* what, Value labels, Value predictions, int64_t axis) {
  DTG_TRY(check_order(model.graph(), what, labels, predictions));
  const ValueInfo& l = model.graph().info(labels);
  const ValueInfo& p = model.graph().info(predictions);
  if (axis < 0) axis += p.shape.rank();
  bool alike = l.shape.rank() + 1 == p.shape.rank();
  for (int i = 0; alike && i < l.shape.rank(); ++i) {
    const int64_t rows = l.shape.dim(i), places = p.shape.dim(i < axis ? i : i + 1);
    alike = rows < 0 || places < 0 || rows == places;
  }
  if (!alike) {
    const bool distributions = l.shape.rank() == p.shape.rank();
    return invalid_argument("%s: the labels are %s and the predictions %s; one class for each row of the predictions is needed%s", what,
                            described(model, labels).c_str(), described(model, predictions).c_str(),
                            distributions ? ". For labels that are distributions use categorical_crossentropy" : "");
  }
  if (dtype_is_floating(l.dtype) || l.dtype == DType::boolean) {
    return invalid_argument("%s: the labels are %s; they are numbers of classes here, so cast them to int32 or int64", what,
                            described(model, labels).c_str());
  }
  return {};
}

Status check_choice(const Graph& graph, const char* what, const char* scores, Value predictions) {
  const PartialShape& shape = graph.info(predictions).shape;
  if (!shape.has_rank() || shape.rank() == 0 || shape.dim(shape.rank() - 1) != 1) return {};
  return invalid_argument("%s: the %s are %s: one number for each row, where each class has its own; for two classes told by one number "
                          "use the metric binary_accuracy",
                          what, scores, described(graph, predictions).c_str());
}

Status check_class_weights(const Model& model, const char* what, Value class_weights, int64_t classes) {
  const PartialShape& shape = model.graph().info(class_weights).shape;
  if (shape.rank() != 1) {
    return invalid_argument("%s: the class weights are %s; a vector is needed, with one for each class", what,
                            described(model, class_weights).c_str());
  }
  if (classes < 0 || shape.dim(0) < 0 || shape.dim(0) == classes) return {};
  return invalid_argument("%s: the class weights are %s, and there are %lld classes; one weight for each class is needed", what,
                          described(model, class_weights).c_str(), static_cast<long long>(classes));
}

Status check_alike(const Model& model, const char* what, Value labels, Value predictions) {
  const PartialShape& a = model.graph().info(labels).shape;
  const PartialShape& b = model.graph().info(predictions).shape;
  bool alike = a.rank() == b.rank();
  for (int i = 0; alike && i < a.rank(); ++i) alike = a.dim(i) < 0 || b.dim(i) < 0 || a.dim(i) == b.dim(i);
  if (alike) return {};
  const bool numbers = a.rank() + 1 == b.rank();
  return invalid_argument("%s: the labels are %s and the predictions %s; equal shapes are needed%s", what, described(model, labels).c_str(),
                          described(model, predictions).c_str(),
                          numbers ? ". For labels that are numbers of classes use sparse_categorical_crossentropy" : "");
}

Status check_weights(const Model& model, const char* what, Value weights) {
  DTG_TRY(model.graph().check(weights).with_context(std::string(what) + ", weights"));
  const ValueInfo& info = model.graph().info(weights);
  if (is_number(info.dtype) && info.shape.has_rank()) return {};
  return invalid_argument("%s: the weights are %s; numbers of a known rank are needed", what, described(model, weights).c_str());
}

}  // namespace dtg
