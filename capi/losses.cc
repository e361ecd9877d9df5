// dtg/losses.h. Each function reads its struct, fills in the defaults and calls its namesake in internal/nn. One thread at a time uses a
// model.
#include "capi/losses.h"

#include "capi/guard.h"
#include "capi/model.h"
#include "capi/nn.h"
#include "capi/scale.h"
#include "nn/loss_sampled.h"

namespace dtg::capi {

Result<Loss> read_loss(const Model& model, const dtg_loss* given) {
  dtg_loss c = DTG_LOSS_INIT;
  if (given) DTG_TRY(read_struct(given, sizeof(dtg_loss), "dtg_loss", &c));
  Loss loss;
  DTG_ASSIGN(loss.kind, read_enum(c.kind, Loss::Kind::contrastive, "kind of loss"));
  DTG_ASSIGN(loss.reduction, read_enum(c.reduction, Loss::Reduction::mean_with_sample_weight, "reduction of a loss"));
  loss.name = text(c.name, c.name_len);
  loss.from_logits = c.from_logits != 0;
  loss.class_balancing = c.class_balancing != 0;
  loss.per_example = c.per_example != 0;
  loss.ignores_class = c.ignores_class != 0;
  loss.ignore_class = c.ignore_class;
  loss.axis = number_or(c.axis, loss.axis);
  loss.label_smoothing = c.label_smoothing;
  loss.delta = real_or(c.delta, loss.delta);
  loss.alpha = real_or(c.alpha, loss.kind == Loss::Kind::tversky ? 0.5 : loss.alpha);
  loss.beta = real_or(c.beta, loss.beta);
  loss.gamma = real_or(c.gamma, loss.gamma);
  loss.margin = real_or(c.margin, loss.margin);
  loss.class_weights = here(model, c.class_weights);
  loss.lengths = here(model, c.lengths);
  return loss;
}

namespace {

Result<Value> add_sampled(Model& model, const dtg_sampled_loss* given, Value labels, Value x) {
  dtg_sampled_loss c = DTG_SAMPLED_LOSS_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_sampled_loss), "dtg_sampled_loss", &c));
  SampledLoss loss;
  loss.name = text(c.name, c.name_len);
  DTG_ASSIGN(loss.kind, read_enum(c.kind, SampledLoss::Kind::sampled_softmax, "kind of sampled loss"));
  DTG_ASSIGN(loss.reduction, read_enum(c.reduction, Loss::Reduction::none, "reduction of a sampled loss"));
  DTG_ASSIGN(loss.candidates, read_enum(c.candidates, SampledLoss::Candidates::uniform, "candidates"));
  loss.classes = c.classes;
  loss.samples = c.samples;
  loss.keep_hits = c.keep_hits != 0;
  DTG_ASSIGN(loss.weights, read_initializer(c.weights, loss.weights));
  DTG_ASSIGN(loss.biases, read_initializer(c.biases, loss.biases));
  loss.weights_of = text(c.weights_of, c.weights_of_len);
  loss.sampled = here(model, c.sampled);
  loss.true_expected = here(model, c.true_expected);
  loss.sampled_expected = here(model, c.sampled_expected);
  return sampled_loss(model, loss, labels, x);
}

}  // namespace
}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_nn_loss(dtg_model* model, const dtg_loss* what, dtg_value labels, dtg_value predictions, dtg_value sample_weights,
                       dtg_value* out) noexcept {
  return value_of_model(model, out, [&](ModelObject& object) -> Result<Value> {
    DTG_ASSIGN(const Loss settings, read_loss(*object.model, what));
    const Value scores = here(*object.model, predictions);
    DTG_ASSIGN(const Value made, loss(*object.model, settings, here(*object.model, labels), scores, here(*object.model, sample_weights)));
    const char* const name = loss_name(settings.kind);
    if (is_of_probabilities(settings.kind)) tell_scale(object, scores, settings.from_logits ? Scale::logits : Scale::probabilities, name);
    if (is_over_classes(settings.kind)) tell_one_class(object, scores, settings.axis, name);
    return made;
  });
}

dtg_error* dtg_nn_triplet_loss(dtg_model* model, dtg_value anchor, dtg_value positive, dtg_value negative, double margin,
                               dtg_value* out) noexcept {
  return value_of_model(model, out,
                        [&](Model& m) { return triplet(m, here(m, anchor), here(m, positive), here(m, negative), real_or(margin, 1)); });
}

dtg_error* dtg_nn_sampled_loss(dtg_model* model, const dtg_sampled_loss* what, dtg_value labels, dtg_value x, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return add_sampled(m, what, here(m, labels), here(m, x)); });
}

dtg_error* dtg_nn_regularize(dtg_model* model, dtg_value base, const dtg_value* handles, size_t num_handles, double l1, double l2,
                             dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) -> Result<Value> {
    DTG_TRY(require_array(handles, num_handles, "handles"));
    std::vector<Value> list;
    for (size_t i = 0; i < num_handles; ++i) list.push_back(value_of(handles[i]));
    return regularize(m, here(m, base), list, l1, l2);
  });
}

}  // extern "C"
