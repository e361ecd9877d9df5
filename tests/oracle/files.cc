// Folders, gzip, JSON and safetensors; see files.h.
#include "files.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include <zlib.h>

namespace dtg::oracle {
namespace {

bool ends_with(const std::string& text, const char* tail) {
  const size_t length = std::strlen(tail);
  return text.size() >= length && text.compare(text.size() - length, length, tail) == 0;
}

}  // namespace

std::vector<std::string> list_vectors(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string path = entry.path().string();
    if (ends_with(path, ".json") || ends_with(path, ".json.gz")) paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string stem(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  if (ends_with(name, ".gz")) name.resize(name.size() - 3);
  if (ends_with(name, ".json")) name.resize(name.size() - 5);
  return name;
}

bool read_bytes(const std::string& path, std::string* bytes) {
  // zlib hands plain files through as they are.
  const gzFile file = gzopen(path.c_str(), "rb");
  if (!file) return false;
  bytes->clear();
  std::vector<char> block(1 << 16);
  int got = 0;
  while ((got = gzread(file, block.data(), static_cast<unsigned>(block.size()))) > 0) {
    bytes->append(block.data(), static_cast<size_t>(got));
  }
  return gzclose(file) == Z_OK && got == 0;
}

Json read_json(const std::string& path) {
  std::string bytes;
  if (!read_bytes(path, &bytes)) return Json(Json::value_t::discarded);
  return Json::parse(bytes, nullptr, /*allow_exceptions=*/false);
}

bool read_safetensors(const std::string& path, SafeTensors* out) {
  if (!read_bytes(path, &out->bytes) && !read_bytes(path + ".gz", &out->bytes)) return false;
  uint64_t header_size = 0;
  if (out->bytes.size() < sizeof header_size) return false;
  std::memcpy(&header_size, out->bytes.data(), sizeof header_size);
  if (header_size > out->bytes.size() - sizeof header_size) return false;
  out->data_start = sizeof header_size + header_size;
  const Json header = Json::parse(out->bytes.begin() + sizeof header_size,
                                  out->bytes.begin() + static_cast<std::ptrdiff_t>(out->data_start), nullptr, false);
  if (!header.is_object()) return false;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    StoredTensor stored;
    stored.dtype = entry.value("dtype", "");
    stored.shape = entry.value("shape", std::vector<int64_t>());
    const auto range = entry.value("data_offsets", std::vector<size_t>());
    if (range.size() != 2 || range[0] > range[1] || range[1] > out->bytes.size() - out->data_start) return false;
    stored.begin = range[0];
    stored.end = range[1];
    out->entries[name] = std::move(stored);
  }
  return true;
}

}  // namespace dtg::oracle
