// Normalization: numbers that bring the features of a component to a common scale, found on the data that is trained on and then applied
// to whatever else goes through the model. As text they travel with the weights. Values; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/position.h"

namespace dtg {

// (x - shift[f]) / scale[f] for feature f, in float32. Features lie along the last dimension; where that is not known, or there is none,
// all elements are one feature.
struct Normalization {
  enum class Kind { standard, range };  // to mean 0 and deviation 1; to 0 at the least and 1 at the greatest
  std::vector<float> shift, scale;
  std::string kind;  // for people

  std::string text() const;
  // INVALID_ARGUMENT for what text() does not write.
  static Result<Normalization> parse(std::string_view text);
  void apply(const float* from, float* to, int64_t count) const;
};

// From one epoch; the data set stands afterwards where it stood. A feature that is everywhere the same keeps its scale.
Result<Normalization> fit_normalization(Reading& data, int component, Normalization::Kind kind);

// Component `component` as float32, normalized.
Result<DatasetPtr> make_normalize(DatasetPtr source, int component, Normalization normalization);  // in map.cc

}  // namespace dtg
