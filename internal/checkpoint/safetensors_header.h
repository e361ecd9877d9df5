// The JSON header of a safetensors file: parsing it into checked entries and writing it. Internal to the
// rung. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "checkpoint/safetensors.h"

namespace dtg {

// Larger ones are refused, as by the format's own library.
inline constexpr uint64_t kTensorHeaderMax = 100'000'000;

struct ParsedTensorHeader {
  TensorFileHeader header;
  int64_t data_bytes = 0;  // the entries cover [0, data_bytes) without hole or overlap
  uint32_t checksum = 0;   // if header.has_checksum
};

// `json` without the length in front of it.
Result<ParsedTensorHeader> parse_tensor_header(std::string_view json, const std::string& path);

// The header with its length in front, padded so that the data starts on 8 bytes.
std::string write_tensor_header(const TensorFileHeader& header, uint32_t checksum);

// Checksum of what the header means, whatever its spelling; the data's checksum continues it.
uint32_t tensor_header_checksum(const TensorFileHeader& header);

}  // namespace dtg
