// Losses: what is asked of labels and predictions, which formula a kind is, and how many losses become one. Called by the thread that
// builds the model.
#include "nn/loss.h"

#include <cmath>
#include <string>

#include "nn/layer.h"
#include "nn/loss_parts.h"
#include "nn/scope.h"

namespace dtg {
namespace {

using Kind = Loss::Kind;

bool is_binary(Kind kind) { return kind == Kind::binary_crossentropy || kind == Kind::binary_focal_crossentropy; }
bool is_categorical(Kind kind) { return kind == Kind::categorical_crossentropy || kind == Kind::categorical_focal_crossentropy; }
bool is_overlap(Kind kind) { return kind == Kind::dice || kind == Kind::tversky; }
bool is_hinge(Kind kind) { return kind == Kind::hinge || kind == Kind::squared_hinge || kind == Kind::categorical_hinge; }
bool takes_logits(Kind kind) {
  return is_binary(kind) || is_categorical(kind) || kind == Kind::sparse_categorical_crossentropy || kind == Kind::ctc;
}

// Numbers that make no loss, and settings that the kind has no use for and that would be taken for done.
Status check_numbers(const Loss& loss) {
  const char* const what = loss_name(loss.kind);
  const bool smooths = is_binary(loss.kind) || is_categorical(loss.kind);
  if (!(loss.label_smoothing >= 0 && loss.label_smoothing <= 1)) {
    return invalid_argument("%s: a label smoothing of %g; it must be in [0, 1]", what, loss.label_smoothing);
  }
  if (loss.label_smoothing != 0 && !smooths) return invalid_argument("%s: labels are not smoothed; label_smoothing must be 0", what);
  if (loss.from_logits && !takes_logits(loss.kind)) {
    return invalid_argument("%s: there are no logits in it; from_logits must be 0", what);
  }
  if (loss.ignores_class && loss.kind != Kind::sparse_categorical_crossentropy) {
    return invalid_argument("%s: only sparse_categorical_crossentropy ignores a class; give sample weights of 0", what);
  }
  if (loss.per_example && !is_overlap(loss.kind)) return invalid_argument("%s: per_example is for dice and tversky", what);
  if (loss.lengths.valid() && loss.kind != Kind::ctc) return invalid_argument("%s: lengths are for ctc", what);
  if (loss.class_weights.valid() && loss.kind == Kind::ctc) {
    return invalid_argument("%s: a sequence of labels has no class; weigh the examples", what);
  }
  for (const double number : {loss.delta, loss.alpha, loss.beta, loss.gamma, loss.margin}) {
    if (!(number >= 0) || !std::isfinite(number))
      return invalid_argument("%s: a setting of %g; finite and not negative is needed", what, number);
  }
  return {};
}

// The dimension of the classes comes last.
Value axis_last(Build& build, Value x, int64_t axis) {
  const int rank = rank_of(build, x);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != axis) order.push_back(i);
  }
  order.push_back(axis);
  return build.op("Transpose", {x, build.ints(order)});
}

Status check_axis(const Model& model, const Loss& loss, Value predictions, int64_t* axis) {
  const int64_t rank = model.graph().info(predictions).shape.rank();
  *axis = loss.axis < 0 ? loss.axis + rank : loss.axis;
  if (rank == 0 && (is_overlap(loss.kind) || loss.kind == Kind::contrastive)) return {};
  if (*axis >= 0 && *axis < rank) return {};
  return invalid_argument("%s: axis %lld of predictions %s; it must be in [-%lld, %lld)", loss_name(loss.kind),
                          static_cast<long long>(loss.axis), described(model, predictions).c_str(), static_cast<long long>(rank),
                          static_cast<long long>(rank));
}

Value formula(Model& model, const LossInput& in, Value* mask) {
  const Kind kind = in.loss.kind;
  if (kind == Kind::ctc) return ctc_loss(model, in);
  if (kind == Kind::sparse_categorical_crossentropy) return sparse_loss(in, mask);
  if (is_binary(kind)) return binary_loss(in);
  if (is_categorical(kind)) return categorical_loss(in);
  if (is_overlap(kind)) return overlap_loss(in);
  return is_hinge(kind) ? hinge_loss(in) : distance_loss(in);
}

// Labels and predictions as the formulas want them.
Status prepare(Model& model, Build& build, const Loss& loss, Value* labels, Value* predictions) {
  const char* const what = loss_name(loss.kind);
  DTG_TRY(check_pair(model, what, *labels, *predictions));
  int64_t axis = 0;
  DTG_TRY(check_axis(model, loss, *predictions, &axis));
  const int rank = rank_of(build, *predictions);
  if (loss.kind == Kind::ctc) return {};
  const bool classes = loss.kind == Kind::sparse_categorical_crossentropy;
  if (classes) {
    const PartialShape& shape = build.info(*labels).shape;
    const bool column = shape.rank() == rank && rank > 0 && shape.dim(static_cast<int>(axis)) == 1;
    if (column) *labels = build.op("Squeeze", {*labels}, {{"squeeze_dims", std::vector<int64_t>{axis}}});
    DTG_TRY(check_classes(model, what, *labels, *predictions, axis));
    *labels = build.cast(*labels, DType::i64);
  } else {
    match_ranks(build, labels, predictions);
    if (build.ok()) DTG_TRY(check_alike(model, what, *labels, *predictions));
    *labels = build.cast(*labels, build.info(*predictions).dtype);
  }
  if (axis != rank - 1 && !is_overlap(loss.kind) && loss.kind != Kind::contrastive && rank > 1) {
    *predictions = axis_last(build, *predictions, axis);
    if (!classes) *labels = axis_last(build, *labels, axis);
  }
  return build.status();
}

// How many classes the labels are of, as weights_of_classes tells a label's; -1: the graph does not show it.
int64_t count_classes(const Model& model, const Loss& loss, Value labels, Value predictions) {
  const PartialShape &l = model.graph().info(labels).shape, &p = model.graph().info(predictions).shape;
  const auto size = [&](const PartialShape& shape) {
    const int64_t axis = loss.axis < 0 ? loss.axis + shape.rank() : loss.axis;
    return axis >= 0 && axis < shape.rank() ? shape.dim(static_cast<int>(axis)) : 1;
  };
  if (loss.kind == Kind::sparse_categorical_crossentropy) return size(p);
  if (l.rank() == p.rank() && size(p) != 1) return size(l) < 0 ? size(p) : size(l);
  return -1;
}

// What a mask leaves counts for what it takes away, so that a mean is over what is left.
Value masked(Build& build, Value mask, Value values, Loss::Reduction reduction) {
  const DType dtype = build.info(values).dtype;
  const Value ones = build.cast(mask, dtype);
  if (reduction != Loss::Reduction::sum_over_batch_size) return ones;
  const Value total = build.cast(build.op("Size", {mask}), dtype);
  const Value scale = build.op("DivNoNan", {total, build.sum(ones, axes_from(build, ones, 0))});
  return build.mul(ones, scale);
}

}  // namespace

const char* loss_name(Kind kind) {
  static constexpr const char* kNames[] = {"mean_squared_error",
                                           "mean_absolute_error",
                                           "mean_absolute_percentage_error",
                                           "mean_squared_logarithmic_error",
                                           "huber",
                                           "log_cosh",
                                           "cosine_similarity",
                                           "kl_divergence",
                                           "poisson",
                                           "hinge",
                                           "squared_hinge",
                                           "categorical_hinge",
                                           "binary_crossentropy",
                                           "binary_focal_crossentropy",
                                           "categorical_crossentropy",
                                           "categorical_focal_crossentropy",
                                           "sparse_categorical_crossentropy",
                                           "ctc",
                                           "dice",
                                           "tversky",
                                           "contrastive"};
  return kNames[static_cast<size_t>(kind)];
}

Result<LossValues> loss_values(Model& model, const Loss& loss, Value labels, Value predictions) {
  DTG_TRY(check_numbers(loss));
  Build build(model.graph());
  DTG_TRY(prepare(model, build, loss, &labels, &predictions));
  LossValues made;
  made.values = formula(model, {build, loss, labels, predictions}, &made.mask);
  DTG_TRY(build.status().with_context(loss_name(loss.kind)));
  return made;
}

Result<Value> loss(Model& model, const Loss& loss, Value labels, Value predictions, Value weights) {
  const char* const what = loss_name(loss.kind);
  DTG_TRY(check_pair(model, what, labels, predictions));
  if (weights.valid()) DTG_TRY(check_weights(model, what, weights));
  if (loss.class_weights.valid()) DTG_TRY(check_weights(model, what, loss.class_weights));
  const NameScope scope(model.graph(), loss.name.empty() ? std::string_view(what) : loss.name);
  DTG_ASSIGN(const LossValues made, loss_values(model, loss, labels, predictions));
  Build build(model.graph());
  Value values = made.values, factor;
  const auto weigh = [&](Value by) { factor = factor.valid() ? build.mul(factor, by) : by; };
  if (weights.valid()) weigh(weights_for(build, weights, values));
  if (loss.class_weights.valid()) {
    DTG_TRY(check_class_weights(model, what, loss.class_weights, count_classes(model, loss, labels, predictions)));
    weigh(weights_of_classes(build, loss.class_weights, labels, values, loss.axis, made.mask));
  }
  if (made.mask.valid()) weigh(masked(build, made.mask, values, loss.reduction));
  if (factor.valid()) values = build.op("Mul", {values, factor}, {}, "one_weight_for_each_example");
  const Value out = reduced_loss(build, values, factor, loss.reduction);
  DTG_TRY(build.status().with_context(what));
  return out;
}

Result<Value> regularize(Model& model, Value base, std::span<const Value> handles, double l1, double l2) {
  constexpr const char* kWhat = "regularize";
  DTG_TRY(model.graph().check(base).with_context(kWhat));
  const ValueInfo info = model.graph().info(base);
  if (!dtype_is_floating(info.dtype))
    return invalid_argument("%s: the loss is %s; a floating-point value is needed", kWhat, described(model, base).c_str());
  if (!(l1 >= 0) || !(l2 >= 0) || !std::isfinite(l1) || !std::isfinite(l2)) {
    return invalid_argument("%s: l1 is %g and l2 is %g; finite and not negative is needed", kWhat, l1, l2);
  }
  std::vector<NamedVariable> chosen;
  for (const NamedVariable& variable : model.variables()) {
    if (handles.empty() && variable.trainable && variable.shape.rank() > 1) chosen.push_back(model.here(variable));
    for (const Value handle : handles) {
      if (variable.has_handle(handle)) chosen.push_back(model.here(variable));
    }
  }
  if (!handles.empty() && chosen.size() != handles.size())
    return invalid_argument("%s: a handle is no variable of the model, or twice there", kWhat);
  if (chosen.empty())
    return failed_precondition("%s: the model has no trainable variable of rank 2 or more; name variables, or make layers first", kWhat);
  const NameScope scope(model.graph(), kWhat);
  Build build(model.graph());
  for (const NamedVariable& variable : chosen) {
    const Value v = variable.read, axes = axes_from(build, v, 0);
    if (!dtype_is_floating(variable.dtype))
      return invalid_argument("%s: \"%s\" is %s", kWhat, variable.name.c_str(), dtype_name(variable.dtype));
    if (l1 != 0) base = build.add(base, build.cast(times(build, build.sum(build.op("Abs", {v}), axes), l1), info.dtype));
    if (l2 != 0) base = build.add(base, build.cast(times(build, build.sum(square(build, v), axes), l2), info.dtype));
  }
  DTG_TRY(build.status().with_context(kWhat));
  return base;
}

Result<Value> triplet(Model& model, Value anchor, Value positive, Value negative, double margin) {
  constexpr const char* kWhat = "triplet";
  DTG_TRY(check_pair(model, kWhat, positive, anchor));
  DTG_TRY(check_pair(model, kWhat, negative, anchor));
  DTG_TRY(check_alike(model, kWhat, positive, anchor));
  DTG_TRY(check_alike(model, kWhat, negative, anchor));
  if (model.graph().info(anchor).shape.rank() < 1)
    return invalid_argument("%s: the anchor is %s; a last dimension is needed", kWhat, described(model, anchor).c_str());
  if (!(margin >= 0) || !std::isfinite(margin))
    return invalid_argument("%s: a margin of %g; finite and not negative is needed", kWhat, margin);
  const NameScope scope(model.graph(), kWhat);
  Build build(model.graph());
  const auto distance = [&](Value x) { return sum_last(build, square(build, build.sub(anchor, x))); };
  const Value values = at_least(build, plus(build, build.sub(distance(positive), distance(negative)), margin), 0);
  const Value out = reduced_loss(build, values, {}, Loss::Reduction::sum_over_batch_size);
  DTG_TRY(build.status().with_context(kWhat));
  return out;
}

}  // namespace dtg
