// Pieces of a long vector, for kernels whose elements have nothing to do with each other: they run side by side, and the pool looks at
// the interrupt between them (base/interrupt.h). Called by the thread that runs the kernel.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/pool.h"

namespace dtg::ops {

// Calls fn(from, to) for pieces of [0, count); a short one is one piece.
template <class Fn>
void in_pieces(Pool& pool, int64_t count, Fn&& fn) {
  constexpr int64_t kPiece = 1 << 16;
  pool.parallel_for((count + kPiece - 1) / kPiece, [&](int64_t piece) { fn(piece * kPiece, std::min(count, (piece + 1) * kPiece)); });
}

}  // namespace dtg::ops
