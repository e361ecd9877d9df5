// Writes and reads safetensors files: atomically, with a checksum of the data in the metadata. The header's rules are
// in safetensors_header.cc. See safetensors.h for threads.
#include "checkpoint/safetensors.h"

#include <algorithm>

#include "base/crc32c.h"
#include "checkpoint/reservation.h"
#include "checkpoint/safetensors_header.h"
#include "checkpoint/tensor_stream.h"

namespace dtg {
namespace {

Status write_whole(FileWriter& file, const TensorLayout& layout) {
  DTG_TRY(file.append(layout.head));
  for (const NamedTensor* item : layout.order) DTG_TRY(file.append(bytes_of(item->tensor)));
  DTG_TRY(file.sync());
  return file.close();
}

}  // namespace

const Tensor* TensorFile::find(std::string_view name) const {
  const auto at = std::lower_bound(tensors.begin(), tensors.end(), name,
                                   [](const NamedTensor& item, std::string_view wanted) { return item.name < wanted; });
  return at != tensors.end() && at->name == name ? &at->tensor : nullptr;
}

Status write_tensors(Disk& disk, const std::string& path, std::span<const NamedTensor> tensors, const TextPairs& metadata) {
  DTG_ASSIGN(const TensorLayout layout, lay_out_tensors(path, tensors, metadata));
  const std::string partial = path + ".partial";
  DTG_ASSIGN(auto file, disk.open_write(partial));
  Status status = write_whole(*file, layout);
  if (status.ok()) status = disk.rename(partial, path);
  if (status.ok()) return {};
  // The first failure is what the caller should hear; that the rest could not be removed adds nothing.
  static_cast<void>(disk.remove(partial).ok());
  return status.with_context("write tensors");
}

Result<TensorFile> read_tensors(FileReader& file, const std::string& path, const ReadTensorsOptions& options) {
  DTG_ASSIGN(ParsedTensorHeader parsed, read_tensor_header(file, path));
  if (options.require_checksum && !parsed.header.has_checksum) {
    return failed_precondition("read tensors from \"%s\": it has no checksum of ours, and one is required here", path.c_str());
  }
  if (options.budget) DTG_TRY(options.budget->reserve(parsed.data_bytes, path.c_str()));
  const Reservation reservation(options.budget, parsed.data_bytes);

  uint32_t checksum = tensor_header_checksum(parsed.header);
  std::vector<TensorEntry>& entries = parsed.header.entries;
  TensorFile result;
  result.metadata = std::move(parsed.header.metadata);
  result.tensors.resize(entries.size());
  for (const size_t i : order_in_file(entries)) {
    DTG_ASSIGN(Tensor tensor, Tensor::allocate(entries[i].dtype, entries[i].shape));
    DTG_TRY(read_exactly(file, tensor.data(), static_cast<size_t>(tensor.bytes()), path, entries[i].name.c_str()));
    if (entries[i].dtype == DType::boolean) DTG_TRY(check_booleans(tensor, path, entries[i].name));
    checksum = crc32c(bytes_of(tensor), checksum);
    result.tensors[i] = {std::move(entries[i].name), std::move(tensor)};
  }
  char beyond;
  DTG_ASSIGN(const size_t more, file.read(&beyond, 1));
  if (more != 0) {
    return data_loss("read tensors from \"%s\": bytes follow the last tensor; the file is damaged or two formats in one", path.c_str());
  }
  if (parsed.header.has_checksum && checksum != parsed.checksum) {
    return data_loss("read tensors from \"%s\": checksum %08x, the file says %08x; it was changed after it was written", path.c_str(),
                     checksum, parsed.checksum);
  }
  return result;
}

Result<TensorFile> read_tensors(Disk& disk, const std::string& path, const ReadTensorsOptions& options) {
  DTG_ASSIGN(auto file, disk.open_read(path));
  return read_tensors(*file, path, options);
}

Result<TensorFileHeader> read_tensors_header(Disk& disk, const std::string& path) {
  DTG_ASSIGN(auto file, disk.open_read(path));
  DTG_ASSIGN(ParsedTensorHeader parsed, read_tensor_header(*file, path));
  return std::move(parsed.header);
}

}  // namespace dtg
