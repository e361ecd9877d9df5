// TextSpace: memory for the bytes of strings that a kernel makes. It is leased by the run, and stays until that ends, as whatever moves
// strings moves cells that point there (tensor/text.h). Used inside one kernel call, on its thread.
#pragma once

#include "exec/kernel.h"
#include "tensor/text.h"

namespace dtg {

// Bytes of results, asked for at once and handed out one after the other.
class TextSpace {
 public:
  // Adds up what will be put; an overflow is remembered.
  void want(uint64_t bytes) {
    overflow_ |= __builtin_add_overflow(wanted_, static_cast<int64_t>(bytes), &wanted_) || bytes > INT64_MAX / 2;
  }
  Status take(RunContext& c) {
    if (overflow_) return resource_exhausted("%s: the strings together are larger than any memory", c.node().op->name().c_str());
    if (wanted_ == 0) return {};
    DTG_ASSIGN(at_, c.slots().lease_block(wanted_, "the bytes of strings"));
    return {};
  }
  // The next `bytes`, to be written by the caller.
  char* next(uint64_t bytes) {
    char* const here = at_;
    at_ += bytes;
    return here;
  }
  // Copies a piece; pieces that are put one after the other lie together.
  void put(std::string_view piece) {
    if (!piece.empty()) __builtin_memcpy(next(piece.size()), piece.data(), piece.size());
  }
  char* here() const { return at_; }
  // What was put since `from`.
  Text since(const char* from) const { return std::string_view(from, static_cast<size_t>(at_ - from)); }

 private:
  int64_t wanted_ = 0;
  bool overflow_ = false;
  char* at_ = nullptr;
};

}  // namespace dtg
