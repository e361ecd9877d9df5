// What the families of losses have in common: a loss that is being built from checked labels and predictions, and the few formulas that
// several of them are made of. For the files of losses and metrics beside it; the thread that builds the model.
#pragma once

#include "nn/loss.h"

namespace dtg {

// Keras' epsilon: what keeps logarithms and quotients finite.
inline constexpr double kFuzz = 1e-7;

// Labels as predictions are typed, of equal rank (or one less where they are classes), the classes last.
struct LossInput {
  Build& build;
  const Loss& loss;
  Value labels, predictions;
};

using LossFormula = Value (*)(const LossInput& in);

// One loss per example; which function, by kind.
Value distance_loss(const LossInput& in);
Value hinge_loss(const LossInput& in);
Value binary_loss(const LossInput& in);
Value categorical_loss(const LossInput& in);
Value overlap_loss(const LossInput& in);
// `mask` is written where a class is ignored.
Value sparse_loss(const LossInput& in, Value* mask);
Value ctc_loss(Model& model, const LossInput& in);

// ---- formulas ----

int rank_of(const Build& build, Value x);
// All axes from `first` on; of a value whose rank the graph does not know they are asked for at run time.
Value axes_from(Build& build, Value x, int first);
Value last_axis(Build& build);
inline Value mean_last(Build& build, Value x) { return build.op("Mean", {x, last_axis(build)}); }
inline Value sum_last(Build& build, Value x) { return build.sum(x, last_axis(build)); }
inline Value square(Build& build, Value x) { return build.op("Square", {x}); }
// number - x.
inline Value rest_of(Build& build, double number, Value x) { return build.ok() ? build.sub(build.like(x, number), x) : Value(); }
inline Value times(Build& build, Value x, double number) { return build.ok() ? build.mul(x, build.like(x, number)) : Value(); }
inline Value plus(Build& build, Value x, double number) { return build.ok() ? build.add(x, build.like(x, number)) : Value(); }
inline Value at_least(Build& build, Value x, double number) {
  return build.ok() ? build.op("Maximum", {x, build.like(x, number)}) : Value();
}
Value clip(Build& build, Value x, double low, double high);
// max(x, 0) - x z + log(1 + exp(-|x|)) by element: nothing overflows for logits of either sign, and the gradient at 0 is that of the
// sigmoid.
Value sigmoid_entropy(Build& build, Value labels, Value logits);
// x[..., n] as a matrix of rows, and one value per row back as x[...].
Value as_rows(Build& build, Value x);
Value like_outer(Build& build, Value rows, Value x);

// Ranks that differ by one, where the last dimension of one is 1: Keras drops it, or gives it to the other where that is a vector.
void match_ranks(Build& build, Value* a, Value* b, bool expand_vectors = true);
// Weights that broadcast from the left: one per example counts for all that the example has.
Value weights_for(Build& build, Value weights, Value values);
// One weight per value from one per class.
Value weights_of_classes(Build& build, Value class_weights, Value labels, Value values, int64_t axis, Value mask);

// All losses as one, as Keras does it: what there is none of has the mean 0. `weights` may be invalid.
Value reduced_loss(Build& build, Value values, Value weights, Loss::Reduction reduction);

// The error of labels and predictions that were given in the other order; and that, where types or ranks say that they were.
Status looks_swapped(const Graph& graph, const char* what, Value labels, Value predictions);
Status check_order(const Graph& graph, const char* what, Value labels, Value predictions);
// Checks before anything is added: both are values of the graph, of known rank, numbers; predictions are floating-point.
Status check_pair(const Model& model, const char* what, Value labels, Value predictions);
// Labels are class numbers, without dimension `axis` of the predictions; negative: from the end.
Status check_classes(const Model& model, const char* what, Value labels, Value predictions, int64_t axis = -1);
// Scores of classes are more than one for each row: of one alone it is always the greatest. `scores` is what the message calls them.
Status check_choice(const Graph& graph, const char* what, const char* scores, Value predictions);
// After match_ranks: dimensions that are both known differ, and labels would be broadcast, which is never what is meant.
Status check_alike(const Model& model, const char* what, Value labels, Value predictions);
// The weights of classes are a vector, with one for each where their number is known; negative: it is not.
Status check_class_weights(const Model& model, const char* what, Value class_weights, int64_t classes);
// A vector of numbers or anything else that can be cast to weights.
Status check_weights(const Model& model, const char* what, Value weights);

}  // namespace dtg
