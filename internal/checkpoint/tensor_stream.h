// What whole safetensors files and shards of sets have in common: laying tensors out, and reading them off a file from front to
// back. Internal to the rung. Pure functions over what they are given; any thread except the network loop.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/safetensors_header.h"

namespace dtg {

inline std::string_view bytes_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.bytes())};
}

// A file before it is written: what goes in front of the data, and the tensors in the order of the data.
struct TensorLayout {
  std::string head;
  std::vector<const NamedTensor*> order;
  int64_t data_bytes = 0;
};

// Refuses what the format cannot hold. `path` is for messages; the tensors must outlive the layout.
Result<TensorLayout> lay_out_tensors(const std::string& path, std::span<const NamedTensor> tensors, const TextPairs& metadata);

// Exactly `count` bytes or DATA_LOSS; `what` says inside of what the file ends.
Status read_exactly(FileReader& file, void* into, size_t count, const std::string& path, const char* what);

// The header off the front of a file; what follows is data.
Result<ParsedTensorHeader> read_tensor_header(FileReader& file, const std::string& path);

// A byte that is neither 0 nor 1 is not a bool to the compiler, and anything may follow from it.
Status check_booleans(const Tensor& tensor, const std::string& path, const std::string& name);

// Indices of the entries as their data lies in the file.
std::vector<size_t> order_in_file(std::span<const TensorEntry> entries);

}  // namespace dtg
