// Layers that deal with places of a sequence: where each stands, as vectors that are added, and bags of rows of a table. Called by the
// thread that builds the model.
#pragma once

#include <string_view>

#include "nn/model.h"

namespace dtg {

struct PositionLayer {
  enum class Kind : int32_t { sine, learned };
  std::string_view name = "position_embedding";  // of a learned one
  Kind kind = Kind::sine;
  double wavelength = 10000;  // the longest of a sine
  int64_t longest = 0;        // places that a learned one has rows for
  Value start = {};           // int32 scalar: the place of the first step; invalid: 0
  Initializer table = Initializer::glorot_uniform();
  std::string_view weights_of = {};
};

// x[batch, steps, width] plus the vector of each step's place.
Result<Value> position_embedding(Model& model, Value x, const PositionLayer& layer);

struct EmbeddingBagLayer {
  enum class Combiner : int32_t { mean, sum, sqrtn };
  std::string_view name = "embedding_bag";
  int64_t rows = 0;
  int64_t width = 0;
  Combiner combiner = Combiner::mean;
  Value lengths = {};  // int32 or int64 [batch]: how many ids of each bag count; invalid: all
  Value weights = {};  // float32 like the ids: each row times this; invalid: 1
  Initializer table = Initializer::uniform(-0.05, 0.05);
  std::string_view weights_of = {};
};

// One row per bag of ids[batch, places]: the sum, mean or root-scaled sum of the rows that they name; an empty bag gives zeros.
Result<Value> embedding_bag(Model& model, Value ids, const EmbeddingBagLayer& layer);

}  // namespace dtg
