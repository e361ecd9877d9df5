// Parses and writes the header, and checks it: types known, shapes sane, sizes that agree with types and shapes, and
// ranges that tile the data exactly. After this nothing in the file can contradict itself. Pure functions; any thread.
#include "checkpoint/safetensors_header.h"

#include <algorithm>

#include "base/crc32c.h"
#include "base/json.h"

namespace dtg {
namespace {

constexpr std::string_view kMetadataKey = "__metadata__";
constexpr std::string_view kChecksumKey = "dtg.crc32c";

struct DTypeRow {
  DType dtype;
  const char* name;
};
constexpr DTypeRow kDTypes[] = {
    {DType::boolean, "BOOL"}, {DType::u8, "U8"},   {DType::i8, "I8"},   {DType::f8_e5m2, "F8_E5M2"},
    {DType::i16, "I16"},      {DType::u16, "U16"}, {DType::f16, "F16"}, {DType::bf16, "BF16"},
    {DType::i32, "I32"},      {DType::u32, "U32"}, {DType::f32, "F32"}, {DType::c64, "C64"},
    {DType::f64, "F64"},      {DType::i64, "I64"}, {DType::u64, "U64"}, {DType::f8_e4m3fn, "F8_E4M3"},
};

// DATA_LOSS with the file and the tensor in front.
Status bad_entry(const std::string& path, const std::string& name, const std::string& problem) {
  return data_loss("read tensors from \"%s\": entry \"%.200s\" %s; the file is damaged or not safetensors", path.c_str(), name.c_str(),
                   problem.c_str());
}

Status parse_dims(const Json* json, const std::string& path, const std::string& name, std::vector<int64_t>& dims) {
  const Json::Array* const items = json ? json->array() : nullptr;
  if (!items) return bad_entry(path, name, "has no list \"shape\"");
  for (const Json& item : *items) {
    const int64_t* const dim = item.integer();
    if (!dim || *dim < 0) return bad_entry(path, name, "has a dimension that is no whole number");
    dims.push_back(*dim);
  }
  return {};
}

Status parse_offsets(const Json* json, const std::string& path, TensorEntry& entry) {
  const Json::Array* const items = json ? json->array() : nullptr;
  if (!items || items->size() != 2 || !(*items)[0].integer() || !(*items)[1].integer()) {
    return bad_entry(path, entry.name, "has no pair of numbers \"data_offsets\"");
  }
  entry.begin = *(*items)[0].integer();
  entry.end = *(*items)[1].integer();
  if (entry.begin < 0 || entry.end < entry.begin) return bad_entry(path, entry.name, "has data_offsets that go backwards");
  return {};
}

Result<TensorEntry> parse_entry(const Json::Member& member, const std::string& path) {
  TensorEntry entry;
  entry.name = member.first;
  const Json* const dtype = member.second.find("dtype");
  if (!dtype || !dtype->string()) return bad_entry(path, entry.name, "has no \"dtype\"");
  std::vector<int64_t> dims;
  DTG_TRY(parse_dims(member.second.find("shape"), path, entry.name, dims));
  DTG_TRY(parse_offsets(member.second.find("data_offsets"), path, entry));
  entry.dtype = dtype_of_tensor_file(*dtype->string());
  if (entry.dtype == DType::invalid) {
    return unimplemented("read tensors from \"%s\": entry \"%.200s\" has elements of type \"%.40s\", which is not known here", path.c_str(),
                         entry.name.c_str(), dtype->string()->c_str());
  }
  auto shape = Shape::make(dims);
  if (!shape.ok()) return bad_entry(path, entry.name, "has an impossible shape: " + shape.status().message());
  entry.shape = shape.take();
  const int64_t size = dtype_size(entry.dtype);
  const int64_t bytes = entry.end - entry.begin;
  if (bytes % size != 0 || bytes / size != entry.shape.count()) {
    return bad_entry(path, entry.name,
                     format("has %lld bytes, but %s%s needs another number", static_cast<long long>(bytes), dtype_name(entry.dtype),
                            entry.shape.text().c_str()));
  }
  return entry;
}

Status parse_checksum(const std::string& text, const std::string& path, ParsedTensorHeader& parsed) {
  uint32_t value = 0;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && (c < 'a' || c > 'f')) return bad_entry(path, std::string(kChecksumKey), "is no hexadecimal number");
    value = value << 4 | static_cast<uint32_t>(digit ? c - '0' : c - 'a' + 10);
  }
  if (text.size() != 8) return bad_entry(path, std::string(kChecksumKey), "has not 8 digits");
  parsed.checksum = value;
  parsed.header.has_checksum = true;
  return {};
}

Status parse_metadata(const Json& json, const std::string& path, ParsedTensorHeader& parsed) {
  const Json::Object* const members = json.object();
  if (!members) return bad_entry(path, std::string(kMetadataKey), "is no object");
  for (const Json::Member& member : *members) {
    const std::string* const text = member.second.string();
    if (!text) return bad_entry(path, std::string(kMetadataKey), "holds something else than strings");
    if (member.first == kChecksumKey) {
      DTG_TRY(parse_checksum(*text, path, parsed));
    } else {
      parsed.header.metadata.emplace_back(member.first, *text);
    }
  }
  return {};
}

// Ranges must tile the data: sorted by offset, each begins where the one before ended.
Status check_coverage(const std::vector<TensorEntry>& entries, const std::string& path, int64_t& data_bytes) {
  std::vector<const TensorEntry*> order;
  order.reserve(entries.size());
  for (const TensorEntry& entry : entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(),
            [](const auto* a, const auto* b) { return a->begin != b->begin ? a->begin < b->begin : a->end < b->end; });
  data_bytes = 0;
  for (const TensorEntry* entry : order) {
    if (entry->begin != data_bytes) {
      return bad_entry(path, entry->name,
                       format("begins at byte %lld, the data before it ends at %lld", static_cast<long long>(entry->begin),
                              static_cast<long long>(data_bytes)));
    }
    data_bytes = entry->end;
  }
  return {};
}

void append_pair(std::string& out, std::string_view key, std::string_view value) {
  append_json_string(out, key);
  out += ':';
  append_json_string(out, value);
}

}  // namespace

const char* tensor_file_dtype(DType dtype) {
  for (const DTypeRow& row : kDTypes) {
    if (row.dtype == dtype) return row.name;
  }
  return nullptr;
}

DType dtype_of_tensor_file(std::string_view name) {
  for (const DTypeRow& row : kDTypes) {
    if (name == row.name) return row.dtype;
  }
  return DType::invalid;
}

Result<ParsedTensorHeader> parse_tensor_header(std::string_view json, const std::string& path) {
  // Padding may follow the object, nothing may precede it: a file that starts otherwise is another format
  // and perhaps both.
  if (json.empty() || json[0] != '{') {
    return data_loss("read tensors from \"%s\": the header does not start with '{'; the file is not safetensors", path.c_str());
  }
  auto root = parse_json(json, "the header", {.bytes_max = kTensorHeaderMax, .values_max = size_t{1} << 22, .depth_max = 8});
  if (!root.ok()) {
    return data_loss("read tensors from \"%s\": %s; the file is damaged or not safetensors", path.c_str(), root.status().message().c_str());
  }
  ParsedTensorHeader parsed;
  for (const Json::Member& member : *root.value().object()) {
    if (member.first == kMetadataKey) {
      DTG_TRY(parse_metadata(member.second, path, parsed));
      continue;
    }
    DTG_ASSIGN(TensorEntry entry, parse_entry(member, path));
    parsed.header.entries.push_back(std::move(entry));
  }
  DTG_TRY(check_coverage(parsed.header.entries, path, parsed.data_bytes));
  std::sort(parsed.header.entries.begin(), parsed.header.entries.end(),
            [](const TensorEntry& a, const TensorEntry& b) { return a.name < b.name; });
  return parsed;
}

std::string write_tensor_header(const TensorFileHeader& header, uint32_t checksum) {
  std::string json = "{";
  append_json_string(json, kMetadataKey);
  json += ":{";
  append_pair(json, kChecksumKey, format("%08x", checksum));
  for (const auto& [key, value] : header.metadata) {
    json += ',';
    append_pair(json, key, value);
  }
  json += '}';
  for (const TensorEntry& entry : header.entries) {
    json += ',';
    append_json_string(json, entry.name);
    json += format(":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%lld,%lld]}", tensor_file_dtype(entry.dtype),
                   entry.shape.text().c_str(), static_cast<long long>(entry.begin), static_cast<long long>(entry.end));
  }
  json += '}';
  json.append((8 - json.size() % 8) % 8, ' ');
  std::string out;
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>(uint64_t{json.size()} >> shift & 0xffu);
  return out + json;
}

uint32_t tensor_header_checksum(const TensorFileHeader& header) {
  // Lengths keep neighbours apart: ("ab", "c") and ("a", "bc") must differ.
  std::string meaning;
  const auto add = [&meaning](std::string_view text) { meaning += std::to_string(text.size()) + ':' + std::string(text); };
  std::vector<std::pair<std::string_view, std::string_view>> metadata(header.metadata.begin(), header.metadata.end());
  std::sort(metadata.begin(), metadata.end());
  for (const auto& [key, value] : metadata) {
    add(key);
    add(value);
  }
  for (const TensorEntry& entry : header.entries) {
    add(entry.name);
    add(tensor_file_dtype(entry.dtype));
    add(entry.shape.text());
    add(std::to_string(entry.begin));
  }
  return crc32c(meaning);
}

}  // namespace dtg
