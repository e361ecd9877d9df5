// LookupTable: keys to values between steps, with TensorFlow's rules. One that is fixed is filled once, from tensors; the others grow
// and shrink. Elements come and go as cells (tensor/text.h), so keys and values may be strings. Entries keep the order in which they
// came, but one that is removed leaves its place to the last.
//
// Any thread; a mutex keeps each operation whole. Owner: the resource store and the plans bound to it.
#pragma once

#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "exec/resource.h"
#include "exec/text_space.h"

namespace dtg {

class LookupTable final : public Resource {
 public:
  static constexpr std::string_view kKind = "table";

  enum class Form : uint8_t { fixed, growing, dense };
  struct Spec {
    Form form = Form::growing;
    DType keys = DType::invalid, values = DType::invalid;
    Shape row;                   // of one value
    std::string empty, deleted;  // dense: keys that no entry may have, as bytes
    bool operator==(const Spec&) const = default;
  };
  // Keys and values as an op has them: so many keys, and that many rows.
  struct Entries {
    const void* keys = nullptr;
    const void* values = nullptr;
    int64_t count = 0;
  };

  LookupTable(std::string name, Spec spec) : Resource(std::move(name)), spec_(std::move(spec)) {}
  const char* kind() const override { return kKind.data(); }
  void destroy(const Status& reason) override;

  const Spec& spec() const { return spec_; }
  Status check_types(DType keys, DType values) const;  // an invalid type is not asked for
  int64_t size() const;

  // Into `out` the value of each key, or its default: one for all, or one each. The bytes of strings are leased from the run.
  Status find(RunContext& c, const void* keys, int64_t count, const void* defaults, bool one_default, void* out) const;
  // Of a fixed one: once, or again with as many entries.
  Status initialize(const Entries& entries);
  Status insert(const Entries& entries);
  Status remove(const void* keys, int64_t count);
  // Everything that was there goes.
  Status import(const Entries& entries);
  // All entries: `take` is told how many and says where keys and values go.
  template <class Take>
  Status export_all(RunContext& c, Take&& take) const {
    const std::lock_guard hold(mutex_);
    DTG_TRY(check_filled("export"));
    void *keys = nullptr, *values = nullptr;
    DTG_TRY(take(static_cast<int64_t>(rows_.size()), &keys, &values));
    return write_all(c, keys, values);
  }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view key) const { return std::hash<std::string_view>()(key); }
  };
  using Index = std::unordered_map<std::string, size_t, Hash, std::equal_to<>>;

  std::string_view key_at(const void* keys, int64_t i) const;
  Status check_filled(const char* attempted) const;
  Status check_mutable(const char* attempted) const;
  Status check_key(std::string_view key, const char* attempted) const;
  Status check_keys(const Entries& entries, const char* attempted) const;
  void put(std::string_view key, const void* row);
  size_t add_row(std::string_view key);
  void store(size_t at, const void* row);
  bool same_row(size_t at, const void* row) const;
  void clear();
  void load(size_t at, TextSpace& space, char* to) const;
  uint64_t text_bytes(size_t at) const;
  Status write_all(RunContext& c, void* keys, void* values) const;
  int64_t width() const { return spec_.row.count() * cell_bytes(spec_.values); }

  const Spec spec_;
  mutable std::mutex mutex_;
  Index index_;
  std::vector<const std::string*> rows_;  // keys, in order; they lie in the index
  std::vector<char> plain_;               // values that are no strings
  std::vector<std::string> texts_;        // those that are
  bool filled_ = false;                   // fixed: it has been
};

}  // namespace dtg
