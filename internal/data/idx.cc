// Reading IDX files straight into a tensor; see idx.h.
#include "data/idx.h"

#include <bit>

#include "base/reservation.h"
#include "data/dataset.h"
#include "data/gzip.h"

namespace dtg {
namespace {

DType dtype_of_code(unsigned char code) {
  switch (code) {
    case 0x08: return DType::u8;
    case 0x09: return DType::i8;
    case 0x0b: return DType::i16;
    case 0x0c: return DType::i32;
    case 0x0d: return DType::f32;
    case 0x0e: return DType::f64;
    default: return DType::invalid;
  }
}

void to_host_order(char* data, int64_t bytes, int64_t size) {
  if (std::endian::native == std::endian::big || size == 1) return;
  for (int64_t at = 0; at < bytes; at += size) {
    for (int64_t i = 0; i < size / 2; ++i) std::swap(data[at + i], data[at + size - 1 - i]);
  }
}

}  // namespace

Result<Tensor> read_idx(FileReader& file, const std::string& path, int64_t bytes_max, MemoryBudget* budget) {
  unsigned char magic[4];
  DTG_TRY(read_fully(file, magic, sizeof magic, path, "the header"));
  const DType dtype = dtype_of_code(magic[2]);
  if (magic[0] != 0 || magic[1] != 0 || dtype == DType::invalid || magic[3] > kRankMax) {
    return data_loss("read \"%s\": it starts with bytes %02x %02x %02x %02x, which is no IDX header of a known type and "
                     "at most %d dimensions",
                     path.c_str(), magic[0], magic[1], magic[2], magic[3], kRankMax);
  }
  int64_t dims[kRankMax];
  for (int i = 0; i < magic[3]; ++i) {
    unsigned char word[4];
    DTG_TRY(read_fully(file, word, sizeof word, path, "the dimensions"));
    dims[i] = int64_t{word[0]} << 24 | int64_t{word[1]} << 16 | int64_t{word[2]} << 8 | int64_t{word[3]};
  }
  auto shape = Shape::make(std::span<const int64_t>(dims, magic[3]));
  if (!shape.ok()) return Status(Code::data_loss, "read \"" + path + "\": " + shape.status().message());
  const int64_t size = dtype_size(dtype);
  if (shape.value().count() > bytes_max / size) {
    return resource_exhausted("read \"%s\": its header announces %s%s, more than the %lld bytes allowed here", path.c_str(),
                              dtype_name(dtype), shape.value().text().c_str(), static_cast<long long>(bytes_max));
  }
  Reservation held(budget, 0);
  DTG_TRY(held.grow(shape.value().count() * size, path.c_str()));
  // Large blocks are mapped, not touched: a header that lies costs address space until the data ends.
  DTG_ASSIGN(Tensor tensor, Tensor::allocate(dtype, shape.value()));
  DTG_TRY(read_fully(file, tensor.data(), static_cast<size_t>(tensor.bytes()), path, "the data"));
  char beyond;
  DTG_ASSIGN(const size_t more, file.read(&beyond, 1));
  if (more != 0) return data_loss("read \"%s\": bytes follow the %s that the header announces", path.c_str(), tensor.text().c_str());
  to_host_order(tensor.as<char>(), tensor.bytes(), size);
  return tensor;
}

Result<Tensor> read_idx(Disk& disk, const std::string& path, int64_t bytes_max, MemoryBudget* budget) {
  DTG_ASSIGN(auto file, open_plain(disk, path));
  return read_idx(*file, path, bytes_max, budget);
}

Result<DatasetPtr> make_idx(Disk& disk, std::span<const std::string> paths, MemoryBudget* budget) {
  std::vector<Tensor> tensors;
  for (const std::string& path : paths) {
    DTG_ASSIGN(Tensor tensor, read_idx(disk, path, kIdxBytesMax, budget));
    tensors.push_back(std::move(tensor));
  }
  auto slices = make_slices(tensors);
  if (slices.ok() || paths.empty()) return slices;
  return slices.status().with_context("read \"" + paths[0] + "\" and its companions");
}

}  // namespace dtg
