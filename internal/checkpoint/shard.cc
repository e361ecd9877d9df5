// Writes and reads shards piece by piece, hashing what passes. See shard.h for threads.
#include "checkpoint/shard.h"

#include <algorithm>

#include "base/crc32c.h"
#include "checkpoint/reservation.h"
#include "checkpoint/tensor_stream.h"

namespace dtg {
namespace {

// Small enough to be in the cache when it is hashed, large enough for a disk.
constexpr size_t kPiece = size_t{1} << 20;

// Appends to a file and hashes.
class HashingWriter {
 public:
  explicit HashingWriter(FileWriter& file) : file_(file) {}
  // Also gives the CRC-32C of these bytes alone.
  Status append(std::string_view bytes, uint32_t& crc) {
    while (!bytes.empty()) {
      const std::string_view piece = bytes.substr(0, kPiece);
      hash_.update(piece);
      crc = crc32c(piece, crc);
      DTG_TRY(file_.append(piece));
      bytes.remove_prefix(piece.size());
    }
    return {};
  }
  Sha256Digest finish() { return hash_.finish(); }

 private:
  FileWriter& file_;
  Sha256 hash_;
};

// Hands through what a file gives, and hashes it.
class HashingReader final : public FileReader {
 public:
  explicit HashingReader(FileReader& file) : file_(file) {}
  Result<size_t> read(void* into, size_t count) override {
    DTG_ASSIGN(const size_t got, file_.read(into, std::min(count, kPiece)));
    hash_.update({static_cast<const char*>(into), got});
    bytes_ += static_cast<int64_t>(got);
    return got;
  }
  int64_t bytes() const { return bytes_; }
  Sha256Digest finish() { return hash_.finish(); }

 private:
  FileReader& file_;
  Sha256 hash_;
  int64_t bytes_ = 0;
};

Status too_full(Disk& disk, const std::string& directory, int64_t needed, const std::string& why) {
  const auto free = disk.free_bytes(directory);
  return resource_exhausted(
      "save a shard in \"%s\": %lld bytes are needed, %lld are free%s%s; make room, keep fewer sets, or save elsewhere", directory.c_str(),
      static_cast<long long>(needed), free.ok() ? static_cast<long long>(free.value()) : -1LL, why.empty() ? "" : ": ", why.c_str());
}

Status check_room(Disk& disk, const std::string& directory, int64_t needed) {
  const auto free = disk.free_bytes(directory);
  // A file system that cannot say is found out by writing.
  return free.ok() && free.value() < needed ? too_full(disk, directory, needed, "") : Status();
}

Status write_file(FileWriter& file, const TensorLayout& layout, int64_t bytes, ShardReceipt& receipt) {
  DTG_TRY(file.reserve(bytes));
  HashingWriter writer(file);
  uint32_t ignored = 0;
  DTG_TRY(writer.append(layout.head, ignored));
  for (const NamedTensor* item : layout.order) {
    const auto row = std::ranges::lower_bound(receipt.tensors, item->name, {}, &ManifestTensor::name);
    DTG_TRY(writer.append(bytes_of(item->tensor), row->crc32c));
  }
  receipt.shard.bytes = bytes;
  receipt.shard.hash = writer.finish();
  DTG_TRY(file.sync());
  return file.close();
}

// The tensors that the manifest sees in the shard, against those that the file says it has.
Status check_entries(const std::string& path, const Manifest& manifest, size_t index, const std::vector<TensorEntry>& entries,
                     std::vector<const ManifestTensor*>& rows) {
  for (const ManifestTensor& tensor : manifest.tensors) {
    if (static_cast<size_t>(tensor.shard) == index) rows.push_back(&tensor);
  }
  for (size_t i = 0; i < std::max(rows.size(), entries.size()); ++i) {
    const bool missing = i == entries.size() || (i < rows.size() && rows[i]->name < entries[i].name);
    if (missing) return data_loss("read \"%s\": tensor \"%.200s\" of the manifest is not in it", path.c_str(), rows[i]->name.c_str());
    if (i == rows.size() || rows[i]->name != entries[i].name) {
      return data_loss("read \"%s\": it has a tensor \"%.200s\", of which the manifest knows nothing", path.c_str(),
                       entries[i].name.c_str());
    }
    if (rows[i]->dtype != entries[i].dtype || !(rows[i]->shape == entries[i].shape)) {
      return data_loss("read \"%s\": tensor \"%.200s\" is %s%s, the manifest says %s%s", path.c_str(), entries[i].name.c_str(),
                       dtype_name(entries[i].dtype), entries[i].shape.text().c_str(), dtype_name(rows[i]->dtype),
                       rows[i]->shape.text().c_str());
    }
  }
  return {};
}

// The bytes of one tensor: into `tensor` where it is valid, else only past the hash.
Status read_tensor(HashingReader& file, const std::string& path, const ManifestTensor& row, Tensor& tensor, std::vector<char>& bounce) {
  const int64_t begin = file.bytes();
  uint32_t crc = 0;
  for (int64_t at = 0; at < row.bytes();) {
    const auto count = static_cast<size_t>(std::min<int64_t>(row.bytes() - at, kPiece));
    if (!tensor.valid()) bounce.resize(kPiece);
    char* const into = tensor.valid() ? tensor.as<char>() + at : bounce.data();
    DTG_TRY(read_exactly(file, into, count, path, row.name.c_str()));
    crc = crc32c({into, count}, crc);
    at += static_cast<int64_t>(count);
  }
  if (crc != row.crc32c) {
    return data_loss(
        "read \"%s\": tensor \"%.200s\" (bytes %lld to %lld of the file) is not what was saved: checksum %08x, the manifest says %08x",
        path.c_str(), row.name.c_str(), static_cast<long long>(begin), static_cast<long long>(file.bytes()), crc, row.crc32c);
  }
  return tensor.valid() && row.dtype == DType::boolean ? check_booleans(tensor, path, row.name) : Status();
}

}  // namespace

Result<ShardReceipt> write_shard(Disk& disk, const Random& random, const std::string& directory, const SetId& id, const ShardPlace& place,
                                 std::span<const ShardTensor> tensors) {
  if (place.shards < 1 || place.shards > static_cast<int>(kShardsMax) || place.shard < 0 || place.shard >= place.shards) {
    return invalid_argument("save shard %d of %d in \"%s\": shards count from 0, and there are 1 to %zu", place.shard, place.shards,
                            directory.c_str(), kShardsMax);
  }
  ShardReceipt receipt;
  receipt.shard.file = format("shard-%05d-of-%05d-%08x.safetensors", place.shard + 1, place.shards, static_cast<uint32_t>(random.u64()));
  const std::string path = directory + "/" + receipt.shard.file;
  std::vector<NamedTensor> named;
  for (const ShardTensor& item : tensors) {
    named.push_back({item.name, item.tensor});
    receipt.tensors.push_back({item.name, item.tensor.dtype(), item.tensor.shape(), place.shard, 0, item.role, item.of, item.slot});
  }
  std::ranges::sort(receipt.tensors, {}, &ManifestTensor::name);
  const TextPairs metadata = {{"dtg.set", id.name()}, {"dtg.shard", format("%d of %d", place.shard + 1, place.shards)}};
  DTG_ASSIGN(const TensorLayout layout, lay_out_tensors(path, named, metadata));
  const int64_t bytes = static_cast<int64_t>(layout.head.size()) + layout.data_bytes;
  DTG_TRY(check_room(disk, directory, bytes));
  DTG_ASSIGN(auto file, disk.open_new(path));
  const Status status = write_file(*file, layout, bytes, receipt);
  if (status.ok()) return receipt;
  static_cast<void>(file->close().ok());
  // Asked before the file goes, which makes room.
  const Status answer =
      status.code() == Code::resource_exhausted ? too_full(disk, directory, bytes, status.message()) : status.with_context("save a shard");
  static_cast<void>(disk.remove(path).ok());
  return answer;
}

Status read_shard(FileReader& file, const std::string& path, const Manifest& manifest, size_t index, const Wanted& wanted,
                  MemoryBudget* budget, std::vector<NamedTensor>& out) {
  HashingReader reader(file);
  int64_t data_bytes = 0;
  for (const ManifestTensor& tensor : manifest.tensors) data_bytes += static_cast<size_t>(tensor.shard) == index ? tensor.bytes() : 0;
  // What is not data is the header, and a parsed header is larger than its text.
  const int64_t header = manifest_memory(std::min<int64_t>(manifest.shards[index].bytes - data_bytes, kTensorHeaderMax));
  if (budget) DTG_TRY(budget->reserve(header, path.c_str()));
  const Reservation reservation(budget, header);
  const auto read = read_tensor_header(reader, path);
  // The manifest knows all types of the set, so an unknown one is damage.
  if (read.status().code() == Code::unimplemented) return data_loss("%s", read.status().message().c_str());
  DTG_TRY(read.status());
  const ParsedTensorHeader& parsed = read.value();
  std::vector<const ManifestTensor*> rows;
  DTG_TRY(check_entries(path, manifest, index, parsed.header.entries, rows));
  std::vector<char> bounce;
  for (const size_t i : order_in_file(parsed.header.entries)) {
    Tensor tensor;
    if (!wanted || wanted(*rows[i])) {
      DTG_ASSIGN(tensor, Tensor::allocate(rows[i]->dtype, rows[i]->shape));
    }
    DTG_TRY(read_tensor(reader, path, *rows[i], tensor, bounce));
    if (tensor.valid()) out.push_back({rows[i]->name, std::move(tensor)});
  }
  char beyond = 0;
  DTG_ASSIGN(const size_t more, reader.read(&beyond, 1));
  if (more != 0) return data_loss("read \"%s\": bytes follow the last tensor", path.c_str());
  if (reader.finish() != manifest.shards[index].hash) {
    return data_loss(
        "read \"%s\": its header is not what was saved: the tensors are whole, but the hash of the file is not that of the manifest",
        path.c_str());
  }
  return {};
}

}  // namespace dtg
