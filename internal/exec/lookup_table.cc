// Entries of a table. What fails for a bad key changes nothing: all keys are looked at first. What is made aside, in import() and
// initialize(), takes its place when nothing can fail any more; insert() and remove() come to their end once they have begun.
#include "exec/lookup_table.h"

#include <cstring>
#include <new>

#include "base/watched.h"

namespace dtg {

// ---- rows and where they lie ----

LookupTable::Row::Row(std::string_view key, uint64_t value_bytes) : key_bytes_(key.size()), value_bytes_(value_bytes) {
  if (!key.empty()) std::memcpy(bytes(), key.data(), key.size());
}

Ref<LookupTable::Row> LookupTable::Row::make(std::string_view key, uint64_t value_bytes) {
  void* const memory = ::operator new(sizeof(Row) + key.size() + value_bytes);
  return Ref<Row>::adopt(::new (memory) Row(key, value_bytes));
}

Ref<LookupTable::Row> LookupTable::Contents::find(std::string_view key) const {
  const Shard& shard = shards_[shard_of(key)];
  const std::lock_guard hold(shard.mutex);
  const auto found = shard.slots.find(key);
  return found == shard.slots.end() ? nullptr : found->row;
}

// What goes is let go of when nobody can be held up by it.
void LookupTable::Contents::put(Ref<Row> row) {
  Shard& shard = shards_[shard_of(row->key())];
  const std::lock_guard hold(shard.mutex);
  const auto [at, fresh] = shard.slots.insert(Slot{row});
  if (fresh) size_.fetch_add(1, std::memory_order_relaxed);
  else std::swap(at->row, row);
}

void LookupTable::Contents::remove(std::string_view key) {
  Shard& shard = shards_[shard_of(key)];
  decltype(shard.slots)::node_type gone;
  const std::lock_guard hold(shard.mutex);
  const auto found = shard.slots.find(key);
  if (found == shard.slots.end()) return;
  gone = shard.slots.extract(found);
  size_.fetch_sub(1, std::memory_order_relaxed);
}

std::vector<Ref<LookupTable::Row>> LookupTable::Contents::all() const {
  std::vector<Ref<Row>> rows;
  rows.reserve(static_cast<size_t>(size()));
  for (const Shard& shard : shards_) {
    Interrupt::look();
    const std::lock_guard hold(shard.mutex);
    for (const Slot& slot : shard.slots) rows.push_back(slot.row);
  }
  return rows;
}

// ---- the table ----

LookupTable::LookupTable(std::string name, Spec spec)
    : Resource(std::move(name)), spec_(std::move(spec)), contents_(make_ref<Contents>()) {}

Ref<LookupTable::Contents> LookupTable::present() const {
  const std::lock_guard lock(word_);
  return contents_;
}

void LookupTable::destroy(const Status&) {
  Ref<Contents> other = make_ref<Contents>();
  const std::lock_guard lock(word_);
  std::swap(contents_, other);
}

int64_t LookupTable::size() const { return present()->size(); }

Status LookupTable::check_types(DType keys, DType values) const {
  const bool fits = (keys == DType::invalid || keys == spec_.keys) && (values == DType::invalid || values == spec_.values);
  if (fits) return {};
  return invalid_argument("the table \"%s\" maps %s to %s; the op is for %s to %s", name().c_str(), dtype_name(spec_.keys),
                          dtype_name(spec_.values), keys == DType::invalid ? "any" : dtype_name(keys),
                          values == DType::invalid ? "any" : dtype_name(values));
}

Status LookupTable::check_filled(const Contents& contents, const char* attempted) const {
  if (spec_.form != Form::fixed || contents.filled) return {};
  return failed_precondition("%s the table \"%s\": it has not been initialised; run its InitializeTableV2 first", attempted,
                             name().c_str());
}

Status LookupTable::check_mutable(const char* attempted) const {
  if (spec_.form != Form::fixed) return {};
  return unimplemented("%s the table \"%s\": it is filled once, by InitializeTableV2; use a MutableHashTableV2", attempted, name().c_str());
}

Status LookupTable::check_key(std::string_view key, const char* attempted) const {
  if (spec_.form != Form::dense || (key != spec_.empty && key != spec_.deleted)) return {};
  return invalid_argument("%s the table \"%s\": a key is its %s, which no entry may have", attempted, name().c_str(),
                          key == spec_.empty ? "empty_key" : "deleted_key");
}

Status LookupTable::check_keys(const Entries& entries, const char* attempted) const {
  if (spec_.form != Form::dense) return {};
  for (const int64_t i : watched(entries.count)) DTG_TRY(check_key(key_at(entries.keys, i), attempted));
  return {};
}

std::string_view LookupTable::key_at(const void* keys, int64_t i) const {
  if (spec_.keys == DType::string) return static_cast<const Text*>(keys)[i].view();
  const int64_t size = dtype_size(spec_.keys);
  return {static_cast<const char*>(keys) + i * size, static_cast<size_t>(size)};
}

// ---- values ----

Ref<LookupTable::Row> LookupTable::encoded(std::string_view key, const void* cells) const {
  if (spec_.values != DType::string) {
    Ref<Row> row = Row::make(key, static_cast<uint64_t>(width()));
    if (width() > 0) std::memcpy(row->value(), cells, static_cast<size_t>(width()));
    return row;
  }
  const auto* const texts = static_cast<const Text*>(cells);
  uint64_t bytes = static_cast<uint64_t>(elements()) * sizeof(uint64_t);
  for (int64_t k = 0; k < elements(); ++k) bytes += texts[k].view().size();
  Ref<Row> row = Row::make(key, bytes);
  char* lengths = row->value();
  char* to = lengths + static_cast<uint64_t>(elements()) * sizeof(uint64_t);
  for (int64_t k = 0; k < elements(); ++k, lengths += sizeof(uint64_t)) {
    const std::string_view text = texts[k].view();
    const uint64_t size = text.size();
    std::memcpy(lengths, &size, sizeof size);
    if (size > 0) std::memcpy(to, text.data(), size);
    to += size;
  }
  return row;
}

uint64_t LookupTable::text_bytes(const Row& row) const {
  return spec_.values == DType::string ? row.value_bytes() - static_cast<uint64_t>(elements()) * sizeof(uint64_t) : 0;
}

// A value as cells.
void LookupTable::load(const Row& row, TextSpace& space, char* to) const {
  if (spec_.values != DType::string) {
    if (width() > 0) std::memcpy(to, row.value(), static_cast<size_t>(width()));
    return;
  }
  const char* lengths = row.value();
  const char* text = lengths + static_cast<uint64_t>(elements()) * sizeof(uint64_t);
  for (int64_t k = 0; k < elements(); ++k, lengths += sizeof(uint64_t)) {
    uint64_t size = 0;
    std::memcpy(&size, lengths, sizeof size);
    const char* const from = space.here();
    space.put({text, size});
    reinterpret_cast<Text*>(to)[k] = space.since(from);
    text += size;
  }
}

// ---- operations ----

Status LookupTable::insert(const Entries& entries) {
  DTG_TRY(check_mutable("insert into"));
  DTG_TRY(check_keys(entries, "insert into"));
  const Ref<Contents> contents = present();
  for (int64_t i = 0; i < entries.count; ++i) contents->put(encoded(key_at(entries.keys, i), row_at(entries, i)));
  return {};
}

Status LookupTable::remove(const void* keys, int64_t count) {
  DTG_TRY(check_mutable("remove from"));
  DTG_TRY(check_keys({keys, nullptr, count}, "remove from"));
  const Ref<Contents> contents = present();
  for (int64_t i = 0; i < count; ++i) contents->remove(key_at(keys, i));
  return {};
}

Status LookupTable::import(const Entries& entries) {
  DTG_TRY(check_mutable("import into"));
  Ref<Contents> made = make_ref<Contents>();
  for (const int64_t i : watched(entries.count, 100)) {
    // What a dense table exported elsewhere may hold the keys of places without an entry.
    const std::string_view key = key_at(entries.keys, i);
    if (check_key(key, "import into").ok()) made->put(encoded(key, row_at(entries, i)));
  }
  const std::lock_guard lock(word_);
  std::swap(contents_, made);
  return {};
}

Status LookupTable::filled_again(int64_t there, int64_t given) const {
  if (given == there) return {};
  return failed_precondition("initialise the table \"%s\": it has %lld entries already, %lld were given", name().c_str(),
                             static_cast<long long>(there), static_cast<long long>(given));
}

Status LookupTable::initialize(const Entries& entries) {
  if (spec_.form != Form::fixed) {
    return invalid_argument("initialise the table \"%s\": it is mutable; insert or import instead", name().c_str());
  }
  if (const Ref<Contents> there = present(); there->filled) return filled_again(there->size(), entries.count);
  Ref<Contents> made = make_ref<Contents>();
  for (const int64_t i : watched(entries.count, 100)) {
    Ref<Row> row = encoded(key_at(entries.keys, i), row_at(entries, i));
    const Ref<Row> before = made->find(row->key());
    if (!before) {
      made->put(std::move(row));
    } else if (std::string_view(before->value(), before->value_bytes()) != std::string_view(row->value(), row->value_bytes())) {
      return invalid_argument("initialise the table \"%s\": entry %lld repeats a key with another value", name().c_str(),
                              static_cast<long long>(i));
    }
  }
  made->filled = true;
  Ref<Contents> first;  // who was meanwhile
  {
    const std::lock_guard lock(word_);
    if (contents_->filled) first = contents_;
    else std::swap(contents_, made);
  }
  return first ? filled_again(first->size(), entries.count) : Status();
}

// The values of keys in [from, to), whose bytes are leased together.
Status LookupTable::find_texts(RunContext& c, const Contents& contents, const void* keys, int64_t from, int64_t to, const Entries& defaults,
                               char* out) const {
  std::vector<Ref<Row>> rows(static_cast<size_t>(to - from));
  TextSpace space;
  for (int64_t i = from; i < to; ++i) {
    Ref<Row>& row = rows[static_cast<size_t>(i - from)];
    row = contents.find(key_at(keys, i));
    if (row) space.want(text_bytes(*row));
  }
  DTG_TRY(space.take(c));
  for (int64_t i = from; i < to; ++i) {
    char* const cells = out + i * width();
    if (const Ref<Row>& row = rows[static_cast<size_t>(i - from)]) load(*row, space, cells);
    else if (width() > 0) std::memcpy(cells, row_at(defaults, defaults.count == 1 ? 0 : i), static_cast<size_t>(width()));
  }
  return {};
}

Status LookupTable::find(RunContext& c, const void* keys, int64_t count, const void* defaults, bool one_default, void* out) const {
  constexpr int64_t kTogether = 4096;
  const Ref<Contents> contents = present();
  DTG_TRY(check_filled(*contents, "look into"));
  DTG_TRY(check_keys({keys, nullptr, count}, "look into"));
  const Entries others{nullptr, defaults, one_default ? 1 : count};
  auto* const to = static_cast<char*>(out);
  if (spec_.values == DType::string) {
    for (int64_t from = 0; from < count; from += kTogether) {
      DTG_TRY(find_texts(c, *contents, keys, from, std::min(count, from + kTogether), others, to));
      Interrupt::look();
    }
    return {};
  }
  for (const int64_t i : watched(count, 50)) {
    const Ref<Row> row = contents->find(key_at(keys, i));
    const void* const value = row ? row->value() : row_at(others, one_default ? 0 : i);
    if (width() > 0) std::memcpy(to + i * width(), value, static_cast<size_t>(width()));
  }
  return {};
}

Status LookupTable::write_all(RunContext& c, const std::vector<Ref<Row>>& rows, void* keys, void* values) const {
  const auto count = static_cast<int64_t>(rows.size());
  TextSpace space;
  for (const int64_t i : watched(count)) {
    const Row& row = *rows[static_cast<size_t>(i)];
    space.want(text_bytes(row) + (spec_.keys == DType::string ? row.key().size() : 0));
  }
  DTG_TRY(space.take(c));
  for (const int64_t i : watched(count, 20)) {
    const Row& row = *rows[static_cast<size_t>(i)];
    const std::string_view key = row.key();
    if (spec_.keys == DType::string) {
      const char* const from = space.here();
      space.put(key);
      static_cast<Text*>(keys)[i] = space.since(from);
    } else {
      std::memcpy(static_cast<char*>(keys) + static_cast<size_t>(i) * key.size(), key.data(), key.size());
    }
    load(row, space, static_cast<char*>(values) + i * width());
  }
  return {};
}

}  // namespace dtg
