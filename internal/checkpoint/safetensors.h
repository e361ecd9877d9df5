// Safetensors: named tensors in one file, in the format that the Rust, Python and JavaScript worlds read.
// Writing is atomic: readers find the old file or the new one, whole. Reading trusts nothing in the file.
// Pure functions over a Disk; any thread except the network loop.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/budget.h"
#include "base/disk.h"
#include "tensor/tensor.h"

namespace dtg {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

using TextPairs = std::vector<std::pair<std::string, std::string>>;

struct TensorFile {
  std::vector<NamedTensor> tensors;  // in order of name
  TextPairs metadata;                // the file's own words; our checksum is not among them

  const Tensor* find(std::string_view name) const;  // null if there is none
};

// What the header says about one tensor.
struct TensorEntry {
  std::string name;
  DType dtype = DType::invalid;
  Shape shape;
  int64_t begin = 0;  // bytes from the start of the data
  int64_t end = 0;
};

struct TensorFileHeader {
  std::vector<TensorEntry> entries;  // in order of name
  TextPairs metadata;
  bool has_checksum = false;
};

// The file is written beside its place under a name of its own, synced, and renamed: any number may save to one path, in any
// processes, and readers find a whole file. Links are followed, the mode of a file that is replaced is kept; FAILED_PRECONDITION where
// something else than a file stands there.
// A checksum over names, types, shapes, metadata and data goes into the metadata as "dtg.crc32c".
Status write_tensors(Disk& disk, const std::string& path, std::span<const NamedTensor> tensors, const TextPairs& metadata = {});

struct ReadTensorsOptions {
  // Reserved for the tensors' bytes while they are read; null for none. Who keeps the tensors keeps the
  // books from then on.
  MemoryBudget* budget = nullptr;
  // Refuse a file without our checksum, as files of other programs are.
  bool require_checksum = false;
};

// Everything in the file. Errors: NOT_FOUND and the like from the disk, DATA_LOSS for a file that is cut
// short, contradicts itself or fails its checksum, UNIMPLEMENTED for an element type unknown here.
Result<TensorFile> read_tensors(Disk& disk, const std::string& path, const ReadTensorsOptions& options = {});
// The header only, for looking into a file without reading it.
Result<TensorFileHeader> read_tensors_header(Disk& disk, const std::string& path);
// The same over an open file; `path` is for messages.
Result<TensorFile> read_tensors(FileReader& file, const std::string& path, const ReadTensorsOptions& options);

// The format's spelling ("F32", "BF16", ...), null for types it does not have.
const char* tensor_file_dtype(DType dtype);
// The other way; invalid for what is unknown here.
DType dtype_of_tensor_file(std::string_view name);

}  // namespace dtg
