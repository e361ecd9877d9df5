// Layers that make numbers of categories: by hashing, by a vocabulary, and back. They have no variables: a vocabulary is constants of the
// graph, so it goes wherever the graph goes, and nothing has to be initialized. Called by the thread that builds the model.
#pragma once

#include <string_view>

#include "nn/model.h"

namespace dtg {

// How the numbers come out: as they are, or as rows of float32 with a place for each category.
enum class CategoryOutput : int32_t { number, one_hot, multi_hot, count };

struct HashingLayer {
  std::string_view name = "hashing";
  int64_t bins = 0;
  const Tensor* mask = nullptr;  // a string or an int64: this one becomes 0, the others share 1 to bins - 1
  bool salted = false;
  uint64_t salt[2] = {0, 0};
  CategoryOutput output = CategoryOutput::number;
};

// x of strings or integers, of any shape: a bin for each.
Result<Value> hashing(Model& model, Value x, const HashingLayer& layer);

struct LookupLayer {
  std::string_view name = {};          // empty: after the vocabulary's type
  const Tensor* vocabulary = nullptr;  // string or int64 [tokens]
  const Tensor* mask = nullptr;        // a scalar of that type: it becomes 0
  const Tensor* unknown = nullptr;     // likewise: what stands for unknown numbers where the layer is inverted
  int64_t oov = 1;                     // numbers for what is not in the vocabulary; 0: that is an error of the run
  bool invert = false;
  CategoryOutput output = CategoryOutput::number;
};

// x of the vocabulary's type: a number for each; or inverted, x of numbers: a token for each.
Result<Value> lookup(Model& model, Value x, const LookupLayer& layer);

}  // namespace dtg
