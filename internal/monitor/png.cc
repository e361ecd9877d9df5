// Writes a minimal PNG: header, one compressed data chunk of unfiltered rows, end. zlib compresses. A pure function;
// any thread.
#include "monitor/png.h"

#include <zlib.h>

namespace dtg {
namespace {

constexpr int64_t kSideMax = int64_t{1} << 14;

void append_u32(std::string& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xffu);
}

void append_chunk(std::string& out, const char* type, const std::string& data) {
  append_u32(out, static_cast<uint32_t>(data.size()));
  const size_t start = out.size();
  out.append(type, 4);
  out += data;
  const auto* const checked = reinterpret_cast<const Bytef*>(out.data() + start);
  append_u32(out, static_cast<uint32_t>(crc32_z(0, checked, out.size() - start)));
}

}  // namespace

Result<std::string> encode_png(int64_t height, int64_t width, int64_t channels, std::span<const uint8_t> pixels) {
  if (height < 1 || width < 1 || height > kSideMax || width > kSideMax) {
    return invalid_argument("encode an image of %lld x %lld pixels: each side must be 1 to %lld", static_cast<long long>(height),
                            static_cast<long long>(width), static_cast<long long>(kSideMax));
  }
  if (channels != 1 && channels != 3 && channels != 4) {
    return invalid_argument("encode an image of %lld channels: 1 (grey), 3 (RGB) or 4 (RGBA) are possible",
                            static_cast<long long>(channels));
  }
  const auto row_bytes = static_cast<size_t>(width * channels);
  const auto rows = static_cast<size_t>(height);
  if (pixels.size() != row_bytes * rows) {
    return invalid_argument("encode an image: %zu bytes of pixels given, %lld x %lld x %lld need %zu", pixels.size(),
                            static_cast<long long>(height), static_cast<long long>(width), static_cast<long long>(channels),
                            row_bytes * rows);
  }
  std::string raw;
  raw.reserve((row_bytes + 1) * rows);
  for (size_t row = 0; row < rows; ++row) {
    raw += '\0';  // no filter
    raw.append(reinterpret_cast<const char*>(pixels.data() + row * row_bytes), row_bytes);
  }
  uLongf packed_size = compressBound(raw.size());
  std::string packed(packed_size, '\0');
  const int code = compress2(reinterpret_cast<Bytef*>(packed.data()), &packed_size, reinterpret_cast<const Bytef*>(raw.data()), raw.size(),
                             Z_BEST_SPEED);
  if (code != Z_OK) return internal_error("encode an image: zlib answered %d", code);
  packed.resize(packed_size);

  std::string header;
  append_u32(header, static_cast<uint32_t>(width));
  append_u32(header, static_cast<uint32_t>(height));
  header += '\x08';                                                  // bits per channel
  header += channels == 1 ? '\0' : channels == 3 ? '\x02' : '\x06';  // colour type
  header.append(3, '\0');                                            // compression, filter, no interlace
  std::string png = "\x89PNG\r\n\x1a\n";
  append_chunk(png, "IHDR", header);
  append_chunk(png, "IDAT", packed);
  append_chunk(png, "IEND", "");
  return png;
}

}  // namespace dtg
