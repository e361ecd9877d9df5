// Layout, checks before writing, and reading piece by piece. See tensor_stream.h for threads.
#include "checkpoint/tensor_stream.h"

#include <algorithm>

#include "base/crc32c.h"
#include "base/json.h"

namespace dtg {
namespace {

Status check_writable(const std::string& path, std::span<const NamedTensor> tensors, const TextPairs& metadata) {
  for (const NamedTensor& item : tensors) {
    if (item.tensor.valid() && !tensor_file_dtype(item.tensor.dtype())) {
      return unimplemented("write tensors to \"%s\": \"%.200s\" is %s, a type that the format does not have", path.c_str(),
                           item.name.c_str(), item.tensor.text().c_str());
    }
    const char* problem = nullptr;
    if (!item.tensor.valid()) problem = "is no tensor";
    if (item.name == "__metadata__") problem = "has the name that the format keeps for itself";
    if (!is_utf8(item.name)) problem = "has a name that is not UTF-8";
    if (problem) {
      return invalid_argument("write tensors to \"%s\": \"%.200s\" (%s) %s", path.c_str(), item.name.c_str(), item.tensor.text().c_str(),
                              problem);
    }
  }
  for (const auto& [key, value] : metadata) {
    if (key == "dtg.crc32c" || !is_utf8(key) || !is_utf8(value)) {
      return invalid_argument("write tensors to \"%s\": metadata \"%.200s\": keys and values must be UTF-8, and the key "
                              "\"dtg.crc32c\" is the file's own",
                              path.c_str(), key.c_str());
    }
  }
  return {};
}

template <class Item, class Name>
Status check_unique(const std::string& path, std::span<Item> sorted, Name name) {
  for (size_t i = 1; i < sorted.size(); ++i) {
    if (name(sorted[i - 1]) == name(sorted[i])) {
      return invalid_argument("write tensors to \"%s\": \"%.200s\" is given twice", path.c_str(), std::string(name(sorted[i])).c_str());
    }
  }
  return {};
}

// Wide elements first, so that each tensor lies on a multiple of its element size; then by name.
std::vector<const NamedTensor*> layout_order(std::span<const NamedTensor> tensors) {
  std::vector<const NamedTensor*> order;
  order.reserve(tensors.size());
  for (const NamedTensor& item : tensors) order.push_back(&item);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    const int64_t size_a = dtype_size(a->tensor.dtype()), size_b = dtype_size(b->tensor.dtype());
    return size_a != size_b ? size_a > size_b : a->name < b->name;
  });
  return order;
}

// Of a file that begins so, which is something else.
Status no_tensors(const std::string& path, std::string_view begin, uint64_t length) {
  constexpr const char* kWanted = "weights and models are files of safetensors, such as model.safetensors and model.dtg";
  const auto is_text = [](char c) { return (c >= ' ' && c <= '~') || c == '\n' || c == '\r' || c == '\t'; };
  const char* const looks = begin.starts_with("PK\x03\x04")       ? "a zip file, as those of PyTorch and Keras are"
                            : begin.starts_with("\x89HDF")        ? "an HDF5 file, as those of older Keras are"
                            : begin.starts_with("\x93NUMPY")      ? "an array of NumPy"
                            : begin.starts_with("\x1f\x8b")       ? "packed by gzip"
                            : std::ranges::all_of(begin, is_text) ? "text, as of a table"
                                                                  : nullptr;
  if (looks)
    return data_loss("read tensors from \"%s\": it begins with %s, so it is %s; %s", path.c_str(), quoted(begin).c_str(), looks, kWanted);
  return data_loss(
      "read tensors from \"%s\": a header of %llu bytes is announced, at most %llu are possible; the file is not safetensors; %s",
      path.c_str(), static_cast<unsigned long long>(length), static_cast<unsigned long long>(kTensorHeaderMax), kWanted);
}

}  // namespace

Result<TensorLayout> lay_out_tensors(const std::string& path, std::span<const NamedTensor> tensors, const TextPairs& metadata) {
  DTG_TRY(check_writable(path, tensors, metadata));
  TensorFileHeader header;
  header.metadata = metadata;
  std::sort(header.metadata.begin(), header.metadata.end());
  DTG_TRY(check_unique(path, std::span(header.metadata), [](const auto& pair) { return std::string_view(pair.first); }));
  std::vector<const NamedTensor*> order = layout_order(tensors);
  int64_t at = 0;
  for (const NamedTensor* item : order) {
    header.entries.push_back({item->name, item->tensor.dtype(), item->tensor.shape(), at, at + item->tensor.bytes()});
    at += item->tensor.bytes();
  }
  std::sort(header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  DTG_TRY(check_unique(path, std::span(header.entries), [](const auto& entry) { return std::string_view(entry.name); }));

  uint32_t checksum = tensor_header_checksum(header);
  for (const NamedTensor* item : order) checksum = crc32c(bytes_of(item->tensor), checksum);
  std::string head = write_tensor_header(header, checksum);
  if (head.size() - 8 > kTensorHeaderMax) {
    return invalid_argument("write tensors to \"%s\": the header would have %zu bytes, the format ends at %llu; use several "
                            "files",
                            path.c_str(), head.size() - 8, static_cast<unsigned long long>(kTensorHeaderMax));
  }
  return TensorLayout{std::move(head), std::move(order), at};
}

Status read_exactly(FileReader& file, void* into, size_t count, const std::string& path, const char* what) {
  auto* at = static_cast<char*>(into);
  for (size_t done = 0; done < count;) {
    DTG_ASSIGN(const size_t got, file.read(at + done, count - done));
    if (got == 0) {
      return data_loss("read tensors from \"%s\": the file ends inside %s, %zu bytes short; it was cut, or is not safetensors",
                       path.c_str(), what, count - done);
    }
    done += got;
  }
  return {};
}

Result<ParsedTensorHeader> read_tensor_header(FileReader& file, const std::string& path) {
  unsigned char prefix[8];
  DTG_TRY(read_exactly(file, prefix, sizeof prefix, path, "the length of the header"));
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | prefix[i];
  if (length > kTensorHeaderMax) return no_tensors(path, {reinterpret_cast<const char*>(prefix), sizeof prefix}, length);
  // Memory grows with what arrives, not with what is announced.
  std::string json;
  while (json.size() < length) {
    const size_t before = json.size();
    json.resize(std::min<size_t>(length, before + (size_t{1} << 16) + before));
    DTG_TRY(read_exactly(file, json.data() + before, json.size() - before, path, "the header"));
  }
  return parse_tensor_header(json, path);
}

Status check_booleans(const Tensor& tensor, const std::string& path, const std::string& name) {
  for (const char byte : bytes_of(tensor)) {
    if (byte != 0 && byte != 1) {
      return data_loss("read tensors from \"%s\": \"%.200s\" is of type BOOL but holds a byte that is neither 0 nor 1", path.c_str(),
                       name.c_str());
    }
  }
  return {};
}

std::vector<size_t> order_in_file(std::span<const TensorEntry> entries) {
  std::vector<size_t> order(entries.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&entries](size_t a, size_t b) {
    return entries[a].begin != entries[b].begin ? entries[a].begin < entries[b].begin : entries[a].end < entries[b].end;
  });
  return order;
}

}  // namespace dtg
