// Splitting a data set in two that have no row in common: one to train on and one that is held out, by a share or as one of k folds,
// also class by class. Functions over a pipeline; the thread that uses it.
#pragma once

#include <cstdint>
#include <vector>

#include "data/position.h"

namespace dtg {

struct SplitOptions {
  double fraction = 0.2;  // of the rows, held out; not looked at with folds
  uint64_t seed = 0;
  int folds = 0;     // 0: by the fraction
  int fold = 0;      // the one that is held out
  int classes = -1;  // the component with the classes, each of which is split alike; negative: none
};

struct Split {
  DatasetPtr train, held_out;
};

// One epoch of `data` is walked through, and the data set stands afterwards where it stood. Its elements must be rows of tensors or files,
// each at most once. Equal seeds give equal splits; within both the order stays that of the data.
Result<Split> split_rows(Reading& data, const SplitOptions& options);

}  // namespace dtg
