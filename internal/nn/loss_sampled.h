// Losses over few classes that are drawn in each step, in place of very many: the last layer and its loss in one. For the thread that
// builds the model.
#pragma once

#include <string_view>

#include "nn/loss.h"

namespace dtg {

struct SampledLoss {
  enum class Kind : int32_t { nce, sampled_softmax };
  enum class Candidates : int32_t { log_uniform, uniform };
  std::string_view name = {};
  Kind kind = Kind::nce;
  Loss::Reduction reduction = Loss::Reduction::sum_over_batch_size;
  Candidates candidates = Candidates::log_uniform;
  int64_t classes = 0;
  int64_t samples = 0;
  bool keep_hits = false;
  Initializer weights = {Initializer::Kind::glorot_uniform};
  Initializer biases = {};
  std::string_view weights_of = {};
  Value sampled, true_expected, sampled_expected;  // classes that were drawn elsewhere; invalid: drawn here
};

// Of labels[batch] or [batch, trues] and x[batch, width], with the variables "weights" and "biases".
Result<Value> sampled_loss(Model& model, const SampledLoss& loss, Value labels, Value x);

}  // namespace dtg
