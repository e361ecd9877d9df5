// Entries of a table. What fails halfway, for a bad key or for lack of memory, changes nothing: all keys are looked at first.
#include "exec/lookup_table.h"

#include <cstring>

namespace dtg {

void LookupTable::destroy(const Status&) {
  const std::lock_guard hold(mutex_);
  clear();
  filled_ = false;
}

void LookupTable::clear() {
  rows_.clear();
  index_.clear();
  plain_.clear();
  texts_.clear();
}

Status LookupTable::check_types(DType keys, DType values) const {
  const bool fits = (keys == DType::invalid || keys == spec_.keys) && (values == DType::invalid || values == spec_.values);
  if (fits) return {};
  return invalid_argument("the table \"%s\" maps %s to %s; the op is for %s to %s", name().c_str(), dtype_name(spec_.keys),
                          dtype_name(spec_.values), keys == DType::invalid ? "any" : dtype_name(keys),
                          values == DType::invalid ? "any" : dtype_name(values));
}

Status LookupTable::check_filled(const char* attempted) const {
  if (spec_.form != Form::fixed || filled_) return {};
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
  for (int64_t i = 0; i < entries.count; ++i) DTG_TRY(check_key(key_at(entries.keys, i), attempted));
  return {};
}

std::string_view LookupTable::key_at(const void* keys, int64_t i) const {
  if (spec_.keys == DType::string) return static_cast<const Text*>(keys)[i].view();
  const int64_t size = dtype_size(spec_.keys);
  return {static_cast<const char*>(keys) + i * size, static_cast<size_t>(size)};
}

int64_t LookupTable::size() const {
  const std::lock_guard hold(mutex_);
  return static_cast<int64_t>(rows_.size());
}

// A row for a new key, with nothing in it yet.
size_t LookupTable::add_row(std::string_view key) {
  const size_t at = rows_.size();
  try {
    rows_.push_back(nullptr);
    if (spec_.values == DType::string) texts_.resize((at + 1) * static_cast<size_t>(spec_.row.count()));
    else plain_.resize((at + 1) * static_cast<size_t>(width()));
    rows_.back() = &index_.emplace(std::string(key), at).first->first;
  } catch (const std::bad_alloc&) {
    rows_.resize(at);
    throw;
  }
  return at;
}

void LookupTable::store(size_t at, const void* row) {
  const auto elements = static_cast<size_t>(spec_.row.count()), bytes = static_cast<size_t>(width());
  if (spec_.values == DType::string) {
    for (size_t i = 0; i < elements; ++i) texts_[at * elements + i] = static_cast<const Text*>(row)[i].view();
  } else if (bytes > 0) {
    std::memcpy(plain_.data() + at * bytes, row, bytes);
  }
}

bool LookupTable::same_row(size_t at, const void* row) const {
  const auto elements = static_cast<size_t>(spec_.row.count()), bytes = static_cast<size_t>(width());
  if (spec_.values != DType::string) return bytes == 0 || std::memcmp(plain_.data() + at * bytes, row, bytes) == 0;
  for (size_t i = 0; i < elements; ++i) {
    if (texts_[at * elements + i] != static_cast<const Text*>(row)[i].view()) return false;
  }
  return true;
}

void LookupTable::put(std::string_view key, const void* row) {
  const auto found = index_.find(key);
  store(found == index_.end() ? add_row(key) : found->second, row);
}

Status LookupTable::insert(const Entries& entries) {
  DTG_TRY(check_mutable("insert into"));
  const std::lock_guard hold(mutex_);
  DTG_TRY(check_keys(entries, "insert into"));
  for (int64_t i = 0; i < entries.count; ++i) put(key_at(entries.keys, i), static_cast<const char*>(entries.values) + i * width());
  return {};
}

Status LookupTable::import(const Entries& entries) {
  DTG_TRY(check_mutable("import into"));
  const std::lock_guard hold(mutex_);
  clear();
  for (int64_t i = 0; i < entries.count; ++i) {
    // What a dense table exported elsewhere may hold the keys of places without an entry.
    const std::string_view key = key_at(entries.keys, i);
    if (check_key(key, "import into").ok()) put(key, static_cast<const char*>(entries.values) + i * width());
  }
  return {};
}

Status LookupTable::initialize(const Entries& entries) {
  if (spec_.form != Form::fixed) {
    return invalid_argument("initialise the table \"%s\": it is mutable; insert or import instead", name().c_str());
  }
  const std::lock_guard hold(mutex_);
  if (filled_) {
    if (entries.count == static_cast<int64_t>(rows_.size())) return {};
    return failed_precondition("initialise the table \"%s\": it has %zu entries already, %lld were given", name().c_str(), rows_.size(),
                               static_cast<long long>(entries.count));
  }
  for (int64_t i = 0; i < entries.count; ++i) {
    const std::string_view key = key_at(entries.keys, i);
    const void* const row = static_cast<const char*>(entries.values) + i * width();
    const auto found = index_.find(key);
    if (found == index_.end()) {
      store(add_row(key), row);
    } else if (!same_row(found->second, row)) {
      clear();
      return invalid_argument("initialise the table \"%s\": entry %lld repeats a key with another value", name().c_str(),
                              static_cast<long long>(i));
    }
  }
  filled_ = true;
  return {};
}

Status LookupTable::remove(const void* keys, int64_t count) {
  DTG_TRY(check_mutable("remove from"));
  const std::lock_guard hold(mutex_);
  DTG_TRY(check_keys({keys, nullptr, count}, "remove from"));
  const auto elements = static_cast<size_t>(spec_.row.count()), bytes = static_cast<size_t>(width());
  for (int64_t i = 0; i < count; ++i) {
    const auto found = index_.find(key_at(keys, i));
    if (found == index_.end()) continue;
    const size_t at = found->second, last = rows_.size() - 1;
    if (at != last) {
      rows_[at] = rows_[last];
      index_.find(*rows_[at])->second = at;
      if (spec_.values != DType::string && bytes > 0) std::memcpy(plain_.data() + at * bytes, plain_.data() + last * bytes, bytes);
      for (size_t k = 0; k < elements && spec_.values == DType::string; ++k) texts_[at * elements + k].swap(texts_[last * elements + k]);
    }
    rows_.pop_back();
    if (spec_.values == DType::string) texts_.resize(last * elements);
    else plain_.resize(last * bytes);
    index_.erase(found);
  }
  return {};
}

uint64_t LookupTable::text_bytes(size_t at) const {
  uint64_t bytes = 0;
  const auto elements = static_cast<size_t>(spec_.row.count());
  for (size_t k = 0; k < elements && spec_.values == DType::string; ++k) bytes += texts_[at * elements + k].size();
  return bytes;
}

// Row `at` as cells.
void LookupTable::load(size_t at, TextSpace& space, char* to) const {
  const auto elements = static_cast<size_t>(spec_.row.count()), bytes = static_cast<size_t>(width());
  if (spec_.values != DType::string) {
    if (bytes > 0) std::memcpy(to, plain_.data() + at * bytes, bytes);
    return;
  }
  for (size_t k = 0; k < elements; ++k) {
    const char* const from = space.here();
    space.put(texts_[at * elements + k]);
    reinterpret_cast<Text*>(to)[k] = space.since(from);
  }
}

Status LookupTable::find(RunContext& c, const void* keys, int64_t count, const void* defaults, bool one_default, void* out) const {
  const std::lock_guard hold(mutex_);
  DTG_TRY(check_filled("look into"));
  DTG_TRY(check_keys({keys, nullptr, count}, "look into"));
  TextSpace space;
  for (int64_t i = 0; i < count && spec_.values == DType::string; ++i) {
    const auto found = index_.find(key_at(keys, i));
    if (found != index_.end()) space.want(text_bytes(found->second));
  }
  DTG_TRY(space.take(c));
  const int64_t bytes = width();
  for (int64_t i = 0; i < count; ++i) {
    char* const to = static_cast<char*>(out) + i * bytes;
    const auto found = index_.find(key_at(keys, i));
    if (found != index_.end()) load(found->second, space, to);
    else if (bytes > 0) std::memcpy(to, static_cast<const char*>(defaults) + (one_default ? 0 : i * bytes), static_cast<size_t>(bytes));
  }
  return {};
}

Status LookupTable::write_all(RunContext& c, void* keys, void* values) const {
  TextSpace space;
  for (size_t at = 0; at < rows_.size(); ++at) space.want(text_bytes(at) + (spec_.keys == DType::string ? rows_[at]->size() : 0));
  DTG_TRY(space.take(c));
  for (size_t at = 0; at < rows_.size(); ++at) {
    const std::string& key = *rows_[at];
    if (spec_.keys == DType::string) {
      const char* const from = space.here();
      space.put(key);
      static_cast<Text*>(keys)[at] = space.since(from);
    } else {
      std::memcpy(static_cast<char*>(keys) + at * key.size(), key.data(), key.size());
    }
    load(at, space, static_cast<char*>(values) + at * static_cast<size_t>(width()));
  }
  return {};
}

}  // namespace dtg
