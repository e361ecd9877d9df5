// MemoryFile: bytes as a file, handed out in small uneven pieces as a slow disk would.
#pragma once

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/disk.h"

namespace dtg {

class MemoryFile final : public FileReader {
 public:
  explicit MemoryFile(std::string_view bytes) : left_(bytes) {}
  Result<size_t> read(void* into, size_t count) override {
    const size_t given = std::min({count, left_.size(), piece_});
    if (given != 0) std::memcpy(into, left_.data(), given);
    left_.remove_prefix(given);
    piece_ = piece_ % 4093 + 61;
    return given;
  }

 private:
  std::string_view left_;
  size_t piece_ = 1;
};

}  // namespace dtg
