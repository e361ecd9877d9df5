// Writes and reads safetensors files: atomically, with a checksum of the data in the metadata. The header's rules are
// in safetensors_header.cc. See safetensors.h for threads.
#include "checkpoint/safetensors.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>

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

// Where a file goes: behind links, and in the place of nothing but a regular file.
struct TargetFile {
  std::string path;
  bool is_there = false;
};

Result<TargetFile> place_of(Disk& disk, const std::string& path) {
  TargetFile place;
  DTG_ASSIGN(place.path, disk.follow(path));
  DTG_ASSIGN(place.is_there, disk.exists(place.path));
  if (!place.is_there) return place;
  DTG_ASSIGN(const FileStat found, disk.look_up(place.path));
  if (found.kind == FileStat::Kind::file) return place;
  return failed_precondition("write tensors to \"%s\": %s stands there, which a file of weights must not replace; name another file",
                             path.c_str(), found.kind == FileStat::Kind::directory ? "a directory" : "a pipe, device or socket");
}

// Why no file can be made there, in terms of the path that the caller knows. Some folders that are there, as those of /proc, say that
// they are not when a file is to be made in them.
Status no_room_beside(Disk& disk, const std::string& path, const Status& why) {
  const std::string folder = parent_directory(path);
  bool is_there = false;
  if (why.code() == Code::not_found) {
    DTG_ASSIGN(is_there, disk.exists(folder));
  }
  if (is_there && disk.list(folder).status().code() == Code::failed_precondition) {
    return failed_precondition("write tensors to \"%s\": \"%s\" is no folder; name a file in one", path.c_str(), folder.c_str());
  }
  if (why.code() == Code::not_found && !is_there) {
    return not_found("write tensors to \"%s\": there is no folder \"%s\"; make it first, or name a file in one that is there", path.c_str(),
                     folder.c_str());
  }
  if (why.code() == Code::permission_denied || is_there) {
    return permission_denied("write tensors to \"%s\": no file may be made in the folder \"%s\" (%s); name another one, or ask for "
                             "the right to write there",
                             path.c_str(), folder.c_str(), why.message().substr(why.message().rfind(": ") + 2).c_str());
  }
  return why.with_context("write tensors");
}

// A new file beside that place, of a name that nobody else has: whoever saves there at the same time has its own.
Result<std::unique_ptr<FileWriter>> open_beside(Disk& disk, const std::string& path, std::string* partial) {
  static constinit std::atomic<uint32_t> number{0};
  for (;;) {
    *partial = path + format(".partial-%ld-%u", static_cast<long>(getpid()), number.fetch_add(1, std::memory_order_relaxed));
    auto file = disk.open_new(*partial);
    if (file.ok()) return file;
    if (file.status().code() != Code::already_exists) return no_room_beside(disk, path, file.status());
  }
}

}  // namespace

const Tensor* TensorFile::find(std::string_view name) const {
  const auto at = std::lower_bound(tensors.begin(), tensors.end(), name,
                                   [](const NamedTensor& item, std::string_view wanted) { return item.name < wanted; });
  return at != tensors.end() && at->name == name ? &at->tensor : nullptr;
}

Status write_tensors(Disk& disk, const std::string& path, std::span<const NamedTensor> tensors, const TextPairs& metadata) {
  DTG_ASSIGN(const TensorLayout layout, lay_out_tensors(path, tensors, metadata));
  DTG_ASSIGN(const TargetFile place, place_of(disk, path));
  std::string partial;
  DTG_ASSIGN(auto file, open_beside(disk, place.path, &partial));
  Status status = write_whole(*file, layout);
  if (status.ok() && place.is_there) status = disk.take_rights(place.path, partial);
  if (status.ok()) status = disk.rename(partial, place.path);
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
