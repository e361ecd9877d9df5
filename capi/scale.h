// Whether predictions are on the scale that a loss or a metric takes them for. The thread that builds the model.
#pragma once

#include "capi/model.h"
#include "nn/loss.h"

namespace dtg::capi {

enum class Scale : uint8_t { probabilities, logits };

bool is_of_probabilities(Loss::Kind kind);
// A warning where what softmax or sigmoid made is taken for logits, or the bare sums of a layer for probabilities: such a model trains, and
// badly, without an error. Only what the graph shows is told. `what` names the loss or the metric.
void tell_scale(const ModelObject& model, Value predictions, Scale taken_for, const char* what);

// Losses over classes that exclude each other. Of one class alone such a loss is always 0, and what softmax makes of one unit always 1: a
// warning, as no weight moves, whatever is trained. `axis` is that of the classes, negative: from the end.
bool is_over_classes(Loss::Kind kind);
void tell_one_class(const ModelObject& model, Value predictions, int64_t axis, const char* what);
void tell_one_unit(const ModelObject& model, Value y, const char* what);

}  // namespace dtg::capi
