// A variable is saved under its own name, where it has that alone; its device and container stand in the metadata.
#include "cluster/saved_state.h"

#include <algorithm>
#include <cinttypes>
#include <set>

#include "exec/variable.h"

namespace dtg {
namespace {

constexpr std::string_view kVariable = "variable:", kFailed = "failed:";

std::string hex(uint64_t number) { return format("%016" PRIx64, number); }

Result<uint64_t> from_hex(const std::string& text) {
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    return data_loss("\"%s\" is not the number of a writer", text.c_str());
  return std::strtoull(text.c_str(), nullptr, 16);
}

std::string failed_key(const std::string& writer, uint64_t sequence, uint32_t phase) {
  return std::string(kFailed) + writer + ":" + std::to_string(sequence) + ":" + std::to_string(phase);
}

const std::string* find(const TextPairs& pairs, const std::string& key) {
  const auto at = std::ranges::find(pairs, key, &TextPairs::value_type::first);
  return at == pairs.end() ? nullptr : &at->second;
}

void save_rows(const Ledger& ledger, SetExtras& extras) {
  for (const Ledger::Writer& writer : ledger.list()) {
    const std::string name = hex(writer.number);
    for (const Ledger::Row& row : writer.rows) {
      extras.rows.push_back({name, static_cast<int64_t>(writer.forgotten), static_cast<int64_t>(row.sequence), row.phase, ""});
      if (!row.failure.ok()) {
        extras.metadata.emplace_back(failed_key(name, row.sequence, row.phase),
                                     std::to_string(static_cast<int>(row.failure.code())) + " " + row.failure.message());
      }
    }
  }
}

Status failure_of(const TextPairs& metadata, const WriterRow& row) {
  const std::string* const text = find(metadata, failed_key(row.writer, static_cast<uint64_t>(row.sequence), static_cast<uint32_t>(row.segment)));
  if (!text) return {};
  const int code = std::atoi(text->c_str());
  return Status(code > 0 && code <= 16 ? static_cast<Code>(code) : Code::unknown, text->substr(std::min(text->size(), text->find(' ') + 1)));
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
    const Tensor tensor = version->tensor;
    variable->unpin(version);
    std::string name = entry.name;
    for (int more = 2; !taken.insert(name).second; ++more) name = entry.name + "#" + std::to_string(more);
    state.extras.metadata.emplace_back(std::string(kVariable) + name, entry.device + "\n" + entry.container + "\n" + entry.name);
    state.bytes += tensor.bytes();
    state.tensors.push_back({std::move(name), tensor, TensorRole::variable, "", ""});
  }
  save_rows(ledger, state.extras);
  return state;
}

Status put_state(const RestoredSet& set, ResourceStore& store, Ledger& ledger) {
  for (const NamedTensor& saved : set.tensors) {
    const std::string* const place = find(set.manifest.metadata, std::string(kVariable) + saved.name);
    const size_t first = place ? place->find('\n') : std::string::npos;
    const size_t second = first == std::string::npos ? first : place->find('\n', first + 1);
    if (second == std::string::npos) return data_loss("the set does not say where the variable \"%s\" was", saved.name.c_str());
    const std::string name = place->substr(second + 1);
    DTG_ASSIGN(const Ref<Resource> made,
               store.find_or_create(place->substr(0, first), place->substr(first + 1, second - first - 1), name, Variable::kKind, [&] {
                 return Ref<Resource>(make_ref<Variable>(name, saved.tensor.dtype(), PartialShape(saved.tensor.shape())));
               }));
    auto& variable = static_cast<Variable&>(*made);
    if (variable.begin_assign(nullptr) != Variable::Writing::yes) return internal_error("restore \"%s\": it is in use", name.c_str());
    DTG_TRY(variable.end_assign(saved.tensor));
  }
  std::vector<Ledger::Writer> writers;
  for (const WriterRow& row : set.manifest.rows) {
    DTG_ASSIGN(const uint64_t number, from_hex(row.writer));
    if (writers.empty() || writers.back().number != number) writers.push_back({number, static_cast<uint64_t>(row.epoch), {}});
    writers.back().rows.push_back(
        {static_cast<uint64_t>(row.sequence), static_cast<uint32_t>(row.segment), failure_of(set.manifest.metadata, row)});
  }
  for (const Ledger::Writer& writer : writers) ledger.restore(writer);
  return {};
}

}  // namespace dtg
