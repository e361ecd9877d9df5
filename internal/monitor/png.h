// Writing PNG, for images in event files. A pure function; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace dtg {

// Rows of 8-bit pixels with 1 (grey), 3 (RGB) or 4 (RGBA) channels, at most 2^14 pixels a side.
Result<std::string> encode_png(int64_t height, int64_t width, int64_t channels, std::span<const uint8_t> pixels);

}  // namespace dtg
