// Recurrent layers with the formulas, variables and defaults of tf.keras: LSTM, GRU (reset after the product) and the plain one. Called by
// the thread that builds the model.
#pragma once

#include <string_view>

#include "nn/model.h"

namespace dtg {

struct RecurrentLayer {
  enum class Kind : int32_t { lstm, gru, simple };
  enum class Direction : int32_t { forward, backward, both };
  std::string_view name = {};  // empty: from the kind
  Kind kind = Kind::lstm;
  Direction direction = Direction::forward;
  int64_t units = 0;
  bool use_bias = true;
  bool forget_bias = true;  // lstm: the forget gate's bias begins at 1
  Initializer kernel = Initializer::glorot_uniform();
  Initializer recurrent = Initializer::orthogonal();
  Initializer bias = Initializer::zeros();
  std::string_view weights_of = {};
  // int32 or int64 of [batch]: how many steps of each example count; invalid: all.
  Value lengths = {};
  // [batch, units] each; invalid: zeros. With both directions neither may be given.
  Value hidden = {};
  Value cell = {};  // lstm
};

struct Recurrent {
  // [batch, time, units], of both directions [batch, time, 2 units], in the order of the input. Beyond an example's length its last output,
  // with both directions or backward zeros.
  Value outputs;
  Value hidden;  // after each example's last step (backward: its first): [batch, units], or [batch, 2 units]
  Value cell;    // lstm, likewise
};

// x[batch, time, in].
Result<Recurrent> recurrent(Model& model, Value x, const RecurrentLayer& layer);

}  // namespace dtg
