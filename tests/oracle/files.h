// Reading vectors: JSON and safetensors, plain or gzip, found by folder. Plain functions of the calling thread; the
// oracle tools own them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace dtg::oracle {

using Json = nlohmann::json;

// Paths of the .json and .json.gz files right in `folder`, sorted.
std::vector<std::string> list_vectors(const std::string& folder);

// The file's name without folder, ".gz" and ".json".
std::string stem(const std::string& path);

// The bytes of a file, inflated when they are gzip; false when it cannot be read.
bool read_bytes(const std::string& path, std::string* bytes);

// The parsed file; a discarded value when it cannot be read or is no JSON.
Json read_json(const std::string& path);

// One entry of a safetensors file: its bytes point into `SafeTensors::bytes`.
struct StoredTensor {
  std::string dtype;
  std::vector<int64_t> shape;
  size_t begin = 0;
  size_t end = 0;
};

struct SafeTensors {
  std::string bytes;
  size_t data_start = 0;
  std::map<std::string, StoredTensor> entries;
};

// Reads `path`, or `path` + ".gz"; false when neither is a safetensors file.
bool read_safetensors(const std::string& path, SafeTensors* out);

}  // namespace dtg::oracle
