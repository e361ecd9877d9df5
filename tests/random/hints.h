// The hints, file by file: what an op asks of its inputs beyond its contract. Constant tables.
#pragma once

#include <span>

#include "random/ask.h"

namespace dtg::random {

struct HintRow {
  const char* op;
  Hint hint;
};

std::span<const HintRow> shape_hints();   // axes, indices, shapes
std::span<const HintRow> window_hints();  // products, convolutions, pooling, losses
std::span<const HintRow> image_hints();   // batch norm, volumes, resizing, blocks, recurrent cells
std::span<const HintRow> sparse_hints();  // sparse tensors
std::span<const HintRow> maths_hints();   // linear algebra, folds over rows, searches, counts
std::span<const HintRow> state_hints();   // variables, optimizers, queues

// Indices of that many elements into [0, limit).
std::vector<int64_t> indices(Draw& draw, int64_t count, int64_t limit);
std::vector<int64_t> axes(Draw& draw, int rank, bool several);
Shape with_dims(std::vector<int64_t> dims);

}  // namespace dtg::random
