// Writes and parses manifests and receipts, and holds what was parsed to the rules: names that stay inside of the directory, each
// tensor once and in a shard that exists, sizes that fit. After this nothing in a manifest can contradict itself; whether the files
// agree with it is found out by who reads them (shard.cc). Any thread.
#include "checkpoint/manifest.h"

#include <algorithm>
#include <charconv>

#include "base/json.h"

namespace dtg {
namespace {

constexpr std::string_view kFront = "{\"sha256\":\"";
constexpr size_t kHashDigits = 64;
constexpr const char* kTensorRoles[] = {"variable", "slot", "step", "random", "data", "reply", "other"};

// ---- writing ----------------------------------------------------------------------------------------------------------------

void add_text(std::string& out, const char* key, std::string_view value) {
  out += std::string(",\"") + key + "\":";
  append_json_string(out, value);
}

void add_number(std::string& out, const char* key, int64_t value) { out += format(",\"%s\":%lld", key, static_cast<long long>(value)); }

void add_shard(std::string& out, const ManifestShard& shard) {
  out += "{\"file\":";
  append_json_string(out, shard.file);
  add_number(out, "bytes", shard.bytes);
  add_text(out, "sha256", shard.hash.hex());
}

void add_tensor(std::string& out, const ManifestTensor& tensor) {
  out += "{\"name\":";
  append_json_string(out, tensor.name);
  add_text(out, "dtype", tensor_file_dtype(tensor.dtype) ? tensor_file_dtype(tensor.dtype) : "");
  out += ",\"shape\":" + tensor.shape.text();
  add_number(out, "shard", tensor.shard);
  add_text(out, "crc32c", format("%08x", tensor.crc32c));
  add_text(out, "role", role_name(tensor.role));
  if (tensor.role == TensorRole::slot) {
    add_text(out, "of", tensor.of);
    add_text(out, "slot", tensor.slot);
  }
  out += "}";
}

void add_row(std::string& out, const WriterRow& row) {
  out += "{\"writer\":";
  append_json_string(out, row.writer);
  add_number(out, "epoch", row.epoch);
  add_number(out, "sequence", row.sequence);
  add_number(out, "segment", row.segment);
  add_text(out, "reply", row.reply);
  out += "}";
}

template <class Items, class Add>
void add_list(std::string& out, const char* key, const Items& items, Add add) {
  out += std::string(",\n\"") + key + "\":[";
  const char* between = "\n";
  for (const auto& item : items) {
    out += between;
    add(out, item);
    between = ",\n";
  }
  out += "]";
}

// ---- parsing ----------------------------------------------------------------------------------------------------------------

// What is wrong with one text, with its place in front.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  Status bad(const std::string& place, const std::string& problem) const {
    return data_loss("read \"%s\": %.300s %s; the file is damaged or not ours", path_.c_str(), place.c_str(), problem.c_str());
  }
  Status text(const Json& object, const char* key, const std::string& place, std::string& out) const {
    const Json* const found = object.find(key);
    if (!found || !found->string()) return bad(place, std::string("has no text \"") + key + "\"");
    out = *found->string();
    return {};
  }
  Status number(const Json& object, const char* key, const std::string& place, int64_t& out) const {
    const Json* const found = object.find(key);
    if (!found || !found->integer() || *found->integer() < 0) return bad(place, std::string("has no whole number \"") + key + "\"");
    out = *found->integer();
    return {};
  }
  Status hex(const Json& object, const char* key, const std::string& place, size_t digits, uint64_t& out) const {
    std::string found;
    DTG_TRY(text(object, key, place, found));
    const auto parsed = std::from_chars(found.data(), found.data() + found.size(), out, 16);
    const bool lower = found.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (found.size() != digits || !lower || parsed.ec != std::errc()) return bad(place, std::string("has a bad \"") + key + "\"");
    return {};
  }
  Result<const Json::Array*> list(const Json& object, const char* key, const std::string& place) const {
    const Json* const found = object.find(key);
    if (!found || !found->array()) return bad(place, std::string("has no list \"") + key + "\"");
    return found->array();
  }

 private:
  const std::string& path_;
};

// A name that cannot leave the directory: letters, digits, '.', '_' and '-', not hidden, of a tensor file.
bool is_shard_name(std::string_view name) {
  if (name.size() > 128 || name.empty() || name[0] == '.' || !name.ends_with(".safetensors")) return false;
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  });
}

Status parse_shard(const Reader& reader, const Json& json, const std::string& place, ManifestShard& shard) {
  std::string hash;
  DTG_TRY(reader.text(json, "file", place, shard.file));
  if (!is_shard_name(shard.file))
    return reader.bad(place, "names the file \"" + shard.file.substr(0, 100) + "\", which no shard is called");
  DTG_TRY(reader.number(json, "bytes", place, shard.bytes));
  DTG_TRY(reader.text(json, "sha256", place, hash));
  const auto digest = Sha256Digest::of_hex(hash);
  if (!digest) return reader.bad(place, "has a bad \"sha256\"");
  shard.hash = *digest;
  return {};
}

Status parse_shape(const Reader& reader, const Json& json, const std::string& place, ManifestTensor& tensor) {
  DTG_ASSIGN(const Json::Array* const items, reader.list(json, "shape", place));
  std::vector<int64_t> dims;
  for (const Json& item : *items) {
    if (!item.integer() || dims.size() >= 64) return reader.bad(place, "has a shape that is none");
    dims.push_back(*item.integer());
  }
  auto shape = Shape::make(dims);
  if (!shape.ok()) return reader.bad(place, "has an impossible shape: " + shape.status().message());
  tensor.shape = shape.take();
  int64_t bytes = 0;
  if (__builtin_mul_overflow(tensor.shape.count(), dtype_size(tensor.dtype), &bytes)) return reader.bad(place, "is larger than any file");
  return {};
}

Status parse_role(const Reader& reader, const Json& json, const std::string& place, ManifestTensor& tensor) {
  std::string role;
  DTG_TRY(reader.text(json, "role", place, role));
  const auto* const at = std::ranges::find(kTensorRoles, std::string_view(role));
  // A role of later days is a tensor that nobody here knows what to do with, and no reason to refuse the others.
  tensor.role = at == std::end(kTensorRoles) ? TensorRole::other : static_cast<TensorRole>(at - kTensorRoles);
  if (tensor.role != TensorRole::slot) return {};
  DTG_TRY(reader.text(json, "of", place, tensor.of));
  return reader.text(json, "slot", place, tensor.slot);
}

Status parse_tensor(const Reader& reader, const Json& json, const std::string& place, ManifestTensor& tensor) {
  std::string dtype;
  int64_t shard = 0;
  uint64_t crc = 0;
  DTG_TRY(reader.text(json, "name", place, tensor.name));
  DTG_TRY(reader.text(json, "dtype", place, dtype));
  tensor.dtype = dtype_of_tensor_file(dtype);
  if (tensor.dtype == DType::invalid) return reader.bad(place, "has elements of the unknown type \"" + dtype.substr(0, 40) + "\"");
  DTG_TRY(parse_shape(reader, json, place, tensor));
  DTG_TRY(reader.number(json, "shard", place, shard));
  if (shard >= static_cast<int64_t>(kShardsMax)) return reader.bad(place, "is in a shard that cannot be");
  tensor.shard = static_cast<int32_t>(shard);
  DTG_TRY(reader.hex(json, "crc32c", place, 8, crc));
  tensor.crc32c = static_cast<uint32_t>(crc);
  return parse_role(reader, json, place, tensor);
}

Status parse_row(const Reader& reader, const Json& json, const std::string& place, WriterRow& row) {
  DTG_TRY(reader.text(json, "writer", place, row.writer));
  DTG_TRY(reader.number(json, "epoch", place, row.epoch));
  DTG_TRY(reader.number(json, "sequence", place, row.sequence));
  DTG_TRY(reader.number(json, "segment", place, row.segment));
  return reader.text(json, "reply", place, row.reply);
}

template <class Item, class Parse>
Status parse_list(const Reader& reader, const Json& json, const char* key, Parse parse, std::vector<Item>& out) {
  DTG_ASSIGN(const Json::Array* const items, reader.list(json, key, "it"));
  for (const Json& item : *items) {
    const std::string place = format("\"%s\" %zu", key, out.size());
    if (!item.object()) return reader.bad(place, "is no object");
    DTG_TRY(parse(reader, item, place, out.emplace_back()));
  }
  return {};
}

Status parse_metadata(const Reader& reader, const Json& json, TextPairs& metadata) {
  const Json* const found = json.find("metadata");
  if (!found || !found->object()) return reader.bad("it", "has no object \"metadata\"");
  for (const Json::Member& member : *found->object()) {
    if (!member.second.string()) return reader.bad("\"metadata\"", "holds something else than texts");
    metadata.emplace_back(member.first, *member.second.string());
  }
  return {};
}

// The rules between the parts.
Status check(const Reader& reader, const Manifest& manifest) {
  if (manifest.shards.empty() || manifest.shards.size() > kShardsMax) {
    return reader.bad("it", format("has %zu shards; 1 to %zu are possible", manifest.shards.size(), kShardsMax));
  }
  std::vector<std::string_view> files;
  std::vector<int64_t> room;
  int64_t all = 0;
  for (const ManifestShard& shard : manifest.shards) {
    if (__builtin_add_overflow(all, shard.bytes, &all)) return reader.bad("it", "is larger than any disk");
    files.push_back(shard.file);
    room.push_back(shard.bytes);
  }
  std::ranges::sort(files);
  const auto twice = std::ranges::adjacent_find(files);
  if (twice != files.end()) return reader.bad("file \"" + std::string(*twice) + "\"", "is in it twice");
  for (size_t i = 0; i < manifest.tensors.size(); ++i) {
    const ManifestTensor& tensor = manifest.tensors[i];
    const std::string place = "tensor \"" + tensor.name.substr(0, 200) + "\"";
    if (i > 0 && !(manifest.tensors[i - 1].name < tensor.name)) return reader.bad(place, "is in it twice, or not in its order");
    const auto shard = static_cast<size_t>(tensor.shard);
    if (shard >= room.size()) return reader.bad(place, format("is in shard %zu of %zu", shard, room.size()));
    room[shard] -= tensor.bytes();
    if (room[shard] < 0) return reader.bad(place, "does not fit into its shard");
  }
  return {};
}

Result<Json> parse_object(std::string_view text, const std::string& path, const char* what) {
  auto json = parse_json(text, what, {.bytes_max = static_cast<size_t>(kManifestBytesMax), .values_max = size_t{1} << 24, .depth_max = 8});
  if (!json.ok()) return Status(Code::data_loss, "read \"" + path + "\": " + json.status().message());
  if (!json.value().object()) return data_loss("read \"%s\": it is no object", path.c_str());
  return json;
}

Status check_hash(std::string_view text, const Reader& reader) {
  if (!text.starts_with(kFront) || text.size() < kFront.size() + kHashDigits) return reader.bad("it", "does not begin as a manifest");
  const std::string_view said = text.substr(kFront.size(), kHashDigits);
  Sha256 hash;
  hash.update(kFront);
  hash.update(std::string(kHashDigits, '0'));
  hash.update(text.substr(kFront.size() + kHashDigits));
  if (hash.finish().hex() != said) return reader.bad("it", "has another hash than it says");
  return {};
}

}  // namespace

std::string SetId::name() const {
  return format("step-%012lld-%016llx", static_cast<long long>(step), static_cast<unsigned long long>(save));
}

bool SetId::parse(std::string_view text, SetId& id) {
  constexpr std::string_view kStep = "step-";
  const size_t dash = text.find('-', kStep.size());
  if (!text.starts_with(kStep) || dash == std::string_view::npos) return false;
  const char* const end = text.data() + text.size();
  const auto step = std::from_chars(text.data() + kStep.size(), text.data() + dash, id.step);
  const auto save = std::from_chars(text.data() + dash + 1, end, id.save, 16);
  // Another spelling of the same numbers would be found here and missed when opened.
  return step.ec == std::errc() && save.ec == std::errc() && id.step >= 0 && id.name() == text;
}

const char* role_name(TensorRole role) { return kTensorRoles[static_cast<size_t>(role)]; }

const ManifestTensor* Manifest::find(std::string_view name) const {
  const auto at = std::ranges::lower_bound(tensors, name, {}, [](const ManifestTensor& tensor) { return std::string_view(tensor.name); });
  return at != tensors.end() && at->name == name ? &*at : nullptr;
}

int64_t Manifest::data_bytes() const {
  int64_t bytes = 0;
  for (const ManifestTensor& tensor : tensors) bytes += tensor.bytes();
  return bytes;
}

Result<std::string> manifest_text(const Manifest& manifest) {
  for (const auto& [key, value] : manifest.metadata) {
    if (!is_utf8(key) || !is_utf8(value)) return invalid_argument("describe a set: metadata \"%.200s\" is not UTF-8", key.c_str());
  }
  for (const WriterRow& row : manifest.rows) {
    if (!is_utf8(row.writer) || !is_utf8(row.reply))
      return invalid_argument("describe a set: writer \"%.200s\" is not UTF-8", row.writer.c_str());
  }
  std::string text = std::string(kFront) + std::string(kHashDigits, '0');
  text += "\",\n\"format\":\"dtg checkpoint\",\"version\":1";
  add_number(text, "step", manifest.id.step);
  add_text(text, "save", format("%016llx", static_cast<unsigned long long>(manifest.id.save)));
  add_list(text, "shards", manifest.shards, [](std::string& out, const ManifestShard& shard) {
    add_shard(out, shard);
    out += "}";
  });
  add_list(text, "tensors", manifest.tensors, add_tensor);
  add_list(text, "rows", manifest.rows, add_row);
  text += ",\n\"metadata\":{";
  for (size_t i = 0; i < manifest.metadata.size(); ++i) {
    text += i > 0 ? ",\n" : "\n";
    append_json_string(text, manifest.metadata[i].first);
    text += ":";
    append_json_string(text, manifest.metadata[i].second);
  }
  text += "}}\n";
  text.replace(kFront.size(), kHashDigits, sha256(text).hex());
  const auto parsed = parse_manifest(text, "the new manifest");
  if (!parsed.ok()) return invalid_argument("describe a set: %s", parsed.status().message().c_str());
  return text;
}

Result<Manifest> parse_manifest(std::string_view text, const std::string& path) {
  const Reader reader(path);
  DTG_TRY(check_hash(text, reader));
  DTG_ASSIGN(const Json json, parse_object(text, path, "the manifest"));
  Manifest manifest;
  std::string kind;
  int64_t version = 0;
  DTG_TRY(reader.text(json, "format", "it", kind));
  if (kind != "dtg checkpoint") return reader.bad("it", "is the manifest of something else");
  DTG_TRY(reader.number(json, "version", "it", version));
  if (version != 1) {
    return unimplemented("read \"%s\": it is of version %lld, and this release reads version 1; use the dtg that wrote it", path.c_str(),
                         static_cast<long long>(version));
  }
  DTG_TRY(reader.number(json, "step", "it", manifest.id.step));
  DTG_TRY(reader.hex(json, "save", "it", 16, manifest.id.save));
  DTG_TRY(parse_list(reader, json, "shards", parse_shard, manifest.shards));
  DTG_TRY(parse_list(reader, json, "tensors", parse_tensor, manifest.tensors));
  DTG_TRY(parse_list(reader, json, "rows", parse_row, manifest.rows));
  DTG_TRY(parse_metadata(reader, json, manifest.metadata));
  DTG_TRY(check(reader, manifest));
  return manifest;
}

std::string receipt_text(const ShardReceipt& receipt) {
  std::string text;
  add_shard(text, receipt.shard);
  add_list(text, "tensors", receipt.tensors, add_tensor);
  return text + "}\n";
}

Result<ShardReceipt> parse_receipt(std::string_view text, const std::string& from) {
  const Reader reader(from);
  DTG_ASSIGN(const Json json, parse_object(text, from, "the receipt"));
  ShardReceipt receipt;
  DTG_TRY(parse_shard(reader, json, "it", receipt.shard));
  DTG_TRY(parse_list(reader, json, "tensors", parse_tensor, receipt.tensors));
  return receipt;
}

}  // namespace dtg
