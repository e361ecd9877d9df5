// Reads NumPy's array files; see npy.h. The header is the text of a Python dictionary of three entries, of which this knows as much as
// NumPy writes.
#include "data/npy.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "base/json.h"
#include "base/reservation.h"
#include "data/gzip.h"
#include "data/zip.h"

namespace dtg {
namespace {

constexpr char kMagic[] = "\x93NUMPY";
constexpr size_t kMagicBytes = 6;
constexpr size_t kHeaderMax = size_t{1} << 16;

struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<int64_t> dims;
  bool has_descr = false, has_order = false, has_shape = false;
};

// Reads the dictionary from left to right. False stands for anything that NumPy would not write.
class HeaderText {
 public:
  explicit HeaderText(std::string_view text) : left_(text) {}

  bool read(Header& header) {
    if (!take('{')) return false;
    while (!take('}')) {
      std::string key;
      if (!read_text(key) || !take(':') || !read_value(key, header)) return false;
      if (!take(',') && !peek('}')) return false;
    }
    skip_space();
    return left_.empty() && header.has_descr && header.has_order && header.has_shape;
  }

 private:
  void skip_space() {
    while (!left_.empty() && (left_[0] == ' ' || left_[0] == '\n')) left_.remove_prefix(1);
  }
  bool peek(char what) {
    skip_space();
    return !left_.empty() && left_[0] == what;
  }
  bool take(char what) {
    const bool there = peek(what);
    if (there) left_.remove_prefix(1);
    return there;
  }

  bool read_text(std::string& text) {
    const char quote = peek('"') ? '"' : '\'';
    if (!take(quote)) return false;
    const size_t end = left_.find(quote);
    if (end == std::string_view::npos) return false;
    text = left_.substr(0, end);
    left_.remove_prefix(end + 1);
    return text.find('\\') == std::string::npos;
  }

  bool read_word(std::string_view word) {
    skip_space();
    if (left_.substr(0, word.size()) != word) return false;
    left_.remove_prefix(word.size());
    return true;
  }

  bool read_value(const std::string& key, Header& header) {
    if (key == "descr") {
      header.has_descr = true;
      if (!peek('[')) return read_text(header.descr);
      // A list of fields; its text is for the message, and nothing behind it matters.
      header.descr = left_.substr(0, std::min<size_t>(left_.size(), 80));
      header.has_order = header.has_shape = true;
      left_ = "}";
      return true;
    }
    if (key == "fortran_order") {
      header.has_order = true;
      header.fortran = read_word("True");
      return header.fortran || read_word("False");
    }
    header.has_shape = true;
    return key == "shape" && read_shape(header.dims);
  }

  bool read_shape(std::vector<int64_t>& dims) {
    if (!take('(')) return false;
    while (!take(')')) {
      int64_t dim = 0;
      skip_space();
      size_t digits = 0;
      for (; digits < left_.size() && left_[digits] >= '0' && left_[digits] <= '9'; ++digits) {
        if (__builtin_mul_overflow(dim, int64_t{10}, &dim) || __builtin_add_overflow(dim, int64_t{left_[digits] - '0'}, &dim)) return false;
      }
      if (digits == 0 || dims.size() > 64) return false;
      left_.remove_prefix(digits);
      if (!left_.empty() && left_[0] == 'L') left_.remove_prefix(1);  // a long of Python 2
      dims.push_back(dim);
      if (!take(',') && !peek(')')) return false;
    }
    return true;
  }

  std::string_view left_;
};

DType dtype_of(std::string_view code) {
  static constexpr struct {
    const char* code;
    DType dtype;
  } kTypes[] = {{"b1", DType::boolean}, {"i1", DType::i8},  {"i2", DType::i16}, {"i4", DType::i32},  {"i8", DType::i64},
                {"u1", DType::u8},      {"u2", DType::u16}, {"u4", DType::u32}, {"u8", DType::u64},  {"f2", DType::f16},
                {"f4", DType::f32},     {"f8", DType::f64}, {"c8", DType::c64}, {"c16", DType::c128}};
  for (const auto& type : kTypes) {
    if (code == type.code) return type.dtype;
  }
  return DType::invalid;
}

// '<f4': the order of bytes, then the kind, then the size.
Result<DType> read_descr(const std::string& descr, const std::string& path) {
  const char order = descr.empty() ? ' ' : descr[0];
  const DType dtype = dtype_of(std::string_view(descr).substr(std::min<size_t>(1, descr.size())));
  const bool one_byte = dtype != DType::invalid && dtype_size(dtype) == 1;
  if (dtype != DType::invalid && (order == '<' || order == '=' || one_byte)) return dtype;
  if (dtype != DType::invalid && order == '>') {
    return unimplemented("read \"%s\": its numbers are big-endian (%s); save it as little-endian: a.astype(a.dtype.newbyteorder('<'))",
                         path.c_str(), descr.c_str());
  }
  const bool pickled = descr.size() > 1 && descr[1] == 'O';
  const bool dates = descr.size() > 1 && (descr[1] == 'M' || descr[1] == 'm');
  return unimplemented("read \"%s\": its type is %s, %s; bool, integers, float16 to float64 and complex numbers are possible", path.c_str(),
                       quoted(descr).c_str(),
                       pickled ? "Python objects, which would have to be run to be read"
                       : dates
                           ? "a date or time, which no tensor has: save a number, such as a.astype('M8[D]').astype('i8'), days since 1970"
                           : "which no tensor has");
}

Result<Header> read_header(FileReader& file, const std::string& path) {
  unsigned char start[kMagicBytes + 2];
  DTG_TRY(read_fully(file, start, sizeof start, path, "the header"));
  const int version = start[kMagicBytes];
  if (std::memcmp(start, kMagic, kMagicBytes) != 0 || version < 1 || version > 3) {
    return data_loss("read \"%s\": it starts with bytes %02x %02x %02x %02x, version %d, which is no NumPy array of version 1 to 3",
                     path.c_str(), start[0], start[1], start[2], start[3], version);
  }
  unsigned char length[4] = {};
  DTG_TRY(read_fully(file, length, version == 1 ? 2 : 4, path, "the header"));
  const size_t bytes = length[0] | size_t{length[1]} << 8 | size_t{length[2]} << 16 | size_t{length[3]} << 24;
  if (bytes > kHeaderMax)
    return data_loss("read \"%s\": its header announces %zu bytes of itself, at most %zu are read", path.c_str(), bytes, kHeaderMax);
  std::string text(bytes, '\0');
  DTG_TRY(read_fully(file, text.data(), bytes, path, "the header"));
  Header header;
  if (!HeaderText(text).read(header)) {
    return data_loss("read \"%s\": its header is %s, not a dictionary of descr, fortran_order and shape", path.c_str(),
                     quoted(text, 200).c_str());
  }
  return header;
}

// The first dimension of `from` is the one that goes fastest; in `to`, the last one.
void reorder(const char* from, char* to, std::span<const int64_t> dims, size_t size, int64_t count) {
  std::vector<int64_t> steps(dims.size()), at(dims.size());
  int64_t step = 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    steps[d] = step;
    step *= dims[d];
  }
  int64_t place = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + static_cast<size_t>(i) * size, from + static_cast<size_t>(place) * size, size);
    for (size_t d = dims.size(); d-- > 0;) {
      place += steps[d];
      if (++at[d] < dims[d]) break;
      place -= steps[d] * dims[d];
      at[d] = 0;
    }
  }
}

}  // namespace

Result<Tensor> read_npy(FileReader& file, const std::string& path, int64_t bytes_max, MemoryBudget* budget) {
  static_assert(std::endian::native == std::endian::little);
  DTG_ASSIGN(const Header header, read_header(file, path));
  DTG_ASSIGN(const DType dtype, read_descr(header.descr, path));
  auto shape = Shape::make(header.dims);
  if (!shape.ok()) return Status(Code::data_loss, "read \"" + path + "\": " + shape.status().message());
  const int64_t size = dtype_size(dtype);
  if (shape.value().count() > bytes_max / size) {
    return resource_exhausted("read \"%s\": its header announces %s%s, more than the %lld bytes allowed here", path.c_str(),
                              dtype_name(dtype), shape.value().text().c_str(), static_cast<long long>(bytes_max));
  }
  const int64_t bytes = shape.value().count() * size;
  const bool turned = header.fortran && header.dims.size() > 1;
  Reservation held(budget, 0);
  DTG_TRY(held.grow(turned ? 2 * bytes : bytes, path.c_str()));
  // Large blocks are mapped, not touched: a header that lies costs address space until the data ends.
  DTG_ASSIGN(Tensor tensor, Tensor::allocate(dtype, shape.value()));
  DTG_TRY(read_fully(file, tensor.data(), static_cast<size_t>(bytes), path, "the data"));
  char beyond;
  DTG_ASSIGN(const size_t more, file.read(&beyond, 1));
  if (more != 0) return data_loss("read \"%s\": bytes follow the %s that the header announces", path.c_str(), tensor.text().c_str());
  if (dtype == DType::boolean) {
    for (int64_t i = 0; i < bytes; ++i) tensor.as<uint8_t>()[i] = tensor.as<uint8_t>()[i] != 0;
  }
  if (!turned) return tensor;
  DTG_ASSIGN(Tensor straight, Tensor::allocate(dtype, shape.value()));
  reorder(tensor.as<char>(), straight.as<char>(), header.dims, static_cast<size_t>(size), straight.count());
  return straight;
}

Result<DatasetPtr> make_npy(Disk& disk, std::span<const std::string> paths, MemoryBudget* budget) {
  std::vector<Tensor> tensors;
  for (const std::string& path : paths) {
    DTG_ASSIGN(auto file, open_plain(disk, path));
    DTG_ASSIGN(Tensor tensor, read_npy(*file, path, kNpyBytesMax, budget));
    tensors.push_back(std::move(tensor));
  }
  auto slices = make_slices(tensors);
  if (slices.ok() || paths.empty()) return slices;
  return slices.status().with_context("read \"" + paths[0] + "\" and its companions");
}

Result<std::vector<Tensor>> parse_npz(std::string_view bytes, const std::string& path, std::span<const std::string> names,
                                      int64_t bytes_max, MemoryBudget* budget) {
  DTG_ASSIGN(const ZipArchive archive, ZipArchive::open(bytes, path));
  const auto array_name = [](const ZipEntry& entry) -> std::optional<std::string_view> {
    const std::string_view name = entry.name;
    if (name.size() < 4 || name.substr(name.size() - 4) != ".npy") return std::nullopt;
    return name.substr(0, name.size() - 4);
  };
  std::vector<std::string> wanted(names.begin(), names.end());
  std::string known;
  for (const ZipEntry& entry : archive.entries()) {
    const auto name = array_name(entry);
    if (!name) continue;
    if (names.empty()) wanted.emplace_back(*name);
    if (known.size() < 400) known += (known.empty() ? "" : ", ") + std::string(name->substr(0, 100));
  }
  std::vector<Tensor> tensors;
  for (const std::string& name : wanted) {
    const ZipEntry* found = nullptr;
    for (const ZipEntry& entry : archive.entries()) {
      if (array_name(entry) != std::string_view(name)) continue;
      if (found) return data_loss("read \"%s\": it holds two arrays \"%.100s\"", path.c_str(), name.c_str());
      found = &entry;
    }
    if (!found) return not_found("read \"%s\": no array \"%.100s\"; it holds %s", path.c_str(), name.c_str(), known.c_str());
    DTG_ASSIGN(auto file, archive.read(*found));
    DTG_ASSIGN(Tensor tensor, read_npy(*file, path + "/" + found->name, bytes_max, budget));
    tensors.push_back(std::move(tensor));
  }
  if (tensors.empty()) return data_loss("read \"%s\": it holds no array", path.c_str());
  return tensors;
}

Result<DatasetPtr> make_npz(Disk& disk, const std::string& path, std::span<const std::string> names, MemoryBudget* budget) {
  DTG_ASSIGN(auto file, disk.open_read(path));
  Reservation held(budget, 0);
  DTG_ASSIGN(const std::string bytes, read_all(*file, path, kNpyBytesMax, held));
  DTG_ASSIGN(const std::vector<Tensor> tensors, parse_npz(bytes, path, names, kNpyBytesMax, budget));
  auto slices = make_slices(tensors);
  return slices.ok() ? std::move(slices) : slices.status().with_context("read \"" + path + "\"");
}

}  // namespace dtg
