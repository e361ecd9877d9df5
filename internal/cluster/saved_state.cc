// A variable is saved under its own name, where it has that alone; its device and container stand in the metadata.
#include "cluster/saved_state.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <map>
#include <set>
#include <sstream>

#include "exec/variable.h"

namespace dtg {
namespace {

constexpr std::string_view kVariable = "variable:", kFailed = "failed:", kRounds = "rounds:", kForgotten = "forgotten:";
// "yes": also writers that are not named. Whoever knows no names takes it that all may be forgotten, whatever it says.
constexpr const char *kDropped = "writers forgotten", *kSome = "those named";

std::string hex(uint64_t number) { return format("%016" PRIx64, number); }

Result<uint64_t> from_hex(const std::string& text) {
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    return data_loss("\"%s\" is not the number of a writer", text.c_str());
  return std::strtoull(text.c_str(), nullptr, 16);
}

// Names come from peers, and sets hold text: what is not plain is written in hex.
constexpr std::string_view kHex = "hex:";
std::string plain(const std::string& text) {
  const bool is_plain = !text.starts_with("__") && std::ranges::all_of(text, [](char c) { return c >= ' ' && c < 0x7f; });
  if (is_plain && !text.starts_with(kHex)) return text;
  std::string out(kHex);
  for (const char c : text) out += format("%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
  return out;
}
std::string from_plain(const std::string& text) {
  if (!text.starts_with(kHex)) return text;
  std::string out;
  for (size_t i = kHex.size(); i + 1 < text.size(); i += 2) out += static_cast<char>(std::strtoul(text.substr(i, 2).c_str(), nullptr, 16));
  return out;
}

// "3,?" where the second dimension is open, "?" where the rank is.
std::string shape_text(const PartialShape& shape) {
  if (!shape.has_rank()) return "?";
  std::string text = std::to_string(shape.rank());
  for (const int64_t dim : shape.dims()) text += " " + std::to_string(dim);
  return text;
}
Result<PartialShape> parse_shape(const std::string& text) {
  if (text == "?") return PartialShape::unknown();
  std::vector<int64_t> dims;
  const char* at = text.c_str();
  char* end = nullptr;
  const long rank = std::strtol(at, &end, 10);
  for (long i = 0; i < rank && i < kRankMax && *end; ++i) dims.push_back(std::strtoll(end, &end, 10));
  if (static_cast<long>(dims.size()) != rank) return data_loss("\"%s\" is not a shape", text.c_str());
  return PartialShape::make(dims);
}

constexpr int64_t kRowBytes = 100;  // of a writer's row in a manifest, about

// What the file format has no type for is saved as bytes, with "TYPE RANK DIMENSION..." in the metadata.
Result<Tensor> bytes_of(const Tensor& tensor) {
  DTG_ASSIGN(Tensor bytes, Tensor::allocate(DType::u8, Shape::of({tensor.bytes()})));
  if (tensor.bytes() > 0) std::memcpy(bytes.data(), tensor.data(), static_cast<size_t>(tensor.bytes()));
  return bytes;
}
Result<Tensor> from_bytes(const Tensor& bytes, const std::string& kind) {
  const DType dtype = dtype_from_name(kind.substr(0, kind.find(' ')));
  DTG_ASSIGN(const PartialShape open, parse_shape(kind.substr(std::min(kind.size(), kind.find(' ') + 1))));
  DTG_ASSIGN(const Shape shape, open.to_shape());
  DTG_ASSIGN(Tensor tensor, Tensor::allocate(dtype, shape));
  if (tensor.bytes() != bytes.bytes())
    return data_loss("a variable saved as bytes has %lld of them", static_cast<long long>(bytes.bytes()));
  if (tensor.bytes() > 0) std::memcpy(tensor.data(), bytes.data(), static_cast<size_t>(tensor.bytes()));
  return tensor;
}

std::string key_of(std::string_view what, const std::string& writer, uint64_t sequence, uint32_t phase) {
  return std::string(what) + writer + ":" + std::to_string(sequence) + ":" + std::to_string(phase);
}

void save_rows(const Ledger& ledger, SetExtras& extras) {
  const Ledger::Forgotten forgotten = ledger.forgotten();
  if (forgotten.others || !forgotten.writers.empty()) extras.metadata.emplace_back(kDropped, forgotten.others ? "yes" : kSome);
  for (const auto& [writer, below] : forgotten.writers)
    extras.metadata.emplace_back(std::string(kForgotten) + hex(writer), std::to_string(below));
  for (const Ledger::Writer& writer : ledger.list()) {
    const std::string name = hex(writer.number);
    for (const Ledger::Row& row : writer.rows) {
      extras.rows.push_back({name, static_cast<int64_t>(writer.forgotten), static_cast<int64_t>(row.sequence), row.phase, ""});
      if (!row.failure.ok()) {
        extras.metadata.emplace_back(key_of(kFailed, name, row.sequence, row.phase),
                                     std::to_string(static_cast<int>(row.failure.code())) + " " + plain(row.failure.message()));
      }
      if (row.rounds > 0) extras.metadata.emplace_back(key_of(kRounds, name, row.sequence, row.phase), std::to_string(row.rounds));
    }
  }
}

Status failure_of(const std::map<std::string, std::string>& metadata, const WriterRow& row) {
  const auto at = metadata.find(key_of(kFailed, row.writer, static_cast<uint64_t>(row.sequence), static_cast<uint32_t>(row.segment)));
  if (at == metadata.end()) return {};
  const std::string& text = at->second;
  const int code = std::atoi(text.c_str());
  return Status(code > 0 && code <= 16 ? static_cast<Code>(code) : Code::unknown,
                from_plain(text.substr(std::min(text.size(), text.find(' ') + 1))));
}

int64_t rounds_of(const std::map<std::string, std::string>& metadata, const WriterRow& row) {
  const auto at = metadata.find(key_of(kRounds, row.writer, static_cast<uint64_t>(row.sequence), static_cast<uint32_t>(row.segment)));
  return at == metadata.end() ? 0 : std::strtoll(at->second.c_str(), nullptr, 10);
}

Result<Ledger::Forgotten> forgotten_in(const std::map<std::string, std::string>& metadata) {
  Ledger::Forgotten forgotten;
  const auto dropped = metadata.find(kDropped);
  forgotten.others = dropped != metadata.end() && dropped->second != kSome;
  for (auto at = metadata.lower_bound(std::string(kForgotten)); at != metadata.end() && at->first.starts_with(kForgotten); ++at) {
    DTG_ASSIGN(const uint64_t writer, from_hex(at->first.substr(kForgotten.size())));
    forgotten.writers.emplace_back(writer, std::strtoull(at->second.c_str(), nullptr, 10));
  }
  return forgotten;
}

}  // namespace

Result<SavedState> take_state(const ResourceStore& store, const Ledger& ledger) {
  SavedState state;
  std::set<std::string> taken;
  for (const ResourceStore::Entry& entry : store.entries()) {
    auto* const variable = resource_cast<Variable>(static_cast<RefCounted*>(entry.resource.get()));
    if (!variable) continue;
    Variable::Version* version = nullptr;
    const auto pinned = variable->pin(&version, nullptr);
    if (pinned == Variable::Pinned::uninitialized) continue;
    if (pinned == Variable::Pinned::wait) return unavailable("save the variable \"%s\": it is being written", variable->name().c_str());
    Tensor tensor = version->tensor;
    variable->unpin(version);
    std::string kind;
    if (!tensor_file_dtype(tensor.dtype())) {
      kind = std::string(dtype_name(tensor.dtype())) + " " + shape_text(PartialShape(tensor.shape()));
      DTG_ASSIGN(tensor, bytes_of(tensor));
    }
    std::string name = plain(entry.name);
    for (int more = 2; !taken.insert(name).second; ++more) name = plain(entry.name) + "#" + std::to_string(more);
    state.extras.metadata.emplace_back(std::string(kVariable) + name, plain(entry.device) + "\n" + plain(entry.container) + "\n" +
                                                                          shape_text(variable->declared_shape()) + "\n" + kind + "\n" +
                                                                          plain(entry.name));
    state.bytes += tensor.bytes();
    state.tensors.push_back({std::move(name), tensor, TensorRole::variable, "", ""});
  }
  save_rows(ledger, state.extras);
  state.bytes += static_cast<int64_t>(state.extras.rows.size()) * kRowBytes;
  for (const auto& [key, text] : state.extras.metadata) state.bytes += static_cast<int64_t>(key.size() + text.size());
  return state;
}

Status put_state(const RestoredSet& set, ResourceStore& store, Ledger& ledger) {
  const std::map<std::string, std::string> metadata(set.manifest.metadata.begin(), set.manifest.metadata.end());
  for (const NamedTensor& saved : set.tensors) {
    const auto found = metadata.find(std::string(kVariable) + saved.name);
    std::vector<std::string> place;  // device, container, shape, kind, name
    if (found != metadata.end()) {
      std::istringstream lines(found->second);
      for (std::string line; std::getline(lines, line);) place.push_back(line);
    }
    if (place.size() != 5) return data_loss("the set does not say where the variable \"%s\" was", saved.name.c_str());
    const std::string name = from_plain(place[4]);
    DTG_ASSIGN(const PartialShape shape, parse_shape(place[2]));
    Tensor value = saved.tensor;
    if (!place[3].empty()) {
      DTG_ASSIGN(value, from_bytes(saved.tensor, place[3]));
    }
    DTG_ASSIGN(const Ref<Resource> made, store.find_or_create(from_plain(place[0]), from_plain(place[1]), name, Variable::kKind, [&] {
      return Ref<Resource>(make_ref<Variable>(name, value.dtype(), shape));
    }));
    auto& variable = static_cast<Variable&>(*made);
    if (variable.begin_assign(nullptr) != Variable::Writing::yes) return internal_error("restore \"%s\": it is in use", name.c_str());
    DTG_TRY(variable.end_assign(std::move(value)));
  }
  DTG_ASSIGN(const Ledger::Forgotten forgotten, forgotten_in(metadata));
  std::vector<Ledger::Writer> writers;
  for (const WriterRow& row : set.manifest.rows) {
    DTG_ASSIGN(const uint64_t number, from_hex(row.writer));
    if (writers.empty() || writers.back().number != number) writers.push_back({number, static_cast<uint64_t>(row.epoch), {}});
    writers.back().rows.push_back(
        {static_cast<uint64_t>(row.sequence), static_cast<uint32_t>(row.segment), failure_of(metadata, row), rounds_of(metadata, row)});
  }
  for (const Ledger::Writer& writer : writers) ledger.restore(writer);
  ledger.restore(forgotten);
  return {};
}

}  // namespace dtg
