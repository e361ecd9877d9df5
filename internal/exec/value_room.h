// ValueRoom: memory for values that outlive the run which makes them, as the elements of a growing list do, cut from blocks that several
// share: in a loop there are some in each round, and a buffer of its own for each would cost as much as what is done with it.
//
// Owner: a frame, or the lists of one family. It locks nothing.
#pragma once

#include <algorithm>
#include <utility>

#include "tensor/buffer.h"

namespace dtg {

class ValueRoom final {
 public:
  struct Piece {
    Ref<Buffer> block;  // null: there is no room
    int64_t offset = 0;
  };

  // From the block at hand, as far as that goes.
  Piece take(int64_t bytes) {
    bytes = align_up(bytes);
    if (!block_ || block_->bytes() - used_ < bytes) return {};
    return {block_, std::exchange(used_, used_ + bytes)};
  }
  // How large the next block is to be, when it begins with so many bytes: the first is as large as that, the next ones four times as large
  // as the one before, so that little is idle where there are few.
  int64_t next_block(int64_t bytes) const {
    return std::max(align_up(bytes), std::min(kBlockBytes, kBlockGrowth * (block_ ? block_->bytes() : 0)));
  }
  // A piece from the front of a new block, which is at hand from now on. The block that was is left in `block`.
  Piece take_from(Ref<Buffer>& block, int64_t bytes) {
    std::swap(block_, block);
    used_ = align_up(bytes);
    return {block_, 0};
  }

 private:
  static constexpr int64_t kBlockBytes = int64_t{60} << 10;  // below what blocks of middling size begin with
  static constexpr int64_t kBlockGrowth = 4;

  Ref<Buffer> block_;
  int64_t used_ = 0;
};

}  // namespace dtg
