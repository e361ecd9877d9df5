// LookupTable: keys to values between steps, with TensorFlow's rules. One that is fixed is filled once, from tensors; the others grow
// and shrink. Elements come and go as cells (tensor/text.h), so keys and values may be strings. Entries have no order.
//
// Any thread. Entries lie in shards by the hash of their key, each with a mutex that is held for one entry at a time, so nobody waits for
// the whole of another's operation, and a map that grows moves a small part of a large table. So who reads while another writes may see
// some of that: each entry is the old one or the new one, never a mixture. What fills or replaces a whole table is made aside and takes the
// place of what was there as one; who is at work on that goes on there. Owner: the resource store and the plans bound to it.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/spin_lock.h"
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

  LookupTable(std::string name, Spec spec);
  const char* kind() const override { return kKind.data(); }
  void destroy(const Status& reason) override;

  const Spec& spec() const { return spec_; }
  Status check_types(DType keys, DType values) const;  // an invalid type is not asked for
  int64_t size() const;

  // Into `out` the value of each key, or its default: one for all, or one each. The bytes of strings are leased from the run.
  Status find(RunContext& c, const void* keys, int64_t count, const void* defaults, bool one_default, void* out) const;
  // Of a fixed one: once, or again with as many entries, which changes nothing.
  Status initialize(const Entries& entries);
  Status insert(const Entries& entries);
  Status remove(const void* keys, int64_t count);
  // Everything that was there goes.
  Status import(const Entries& entries);
  // All entries: `take` is told how many and says where keys and values go.
  template <class Take>
  Status export_all(RunContext& c, Take&& take) const {
    const Ref<Contents> contents = present();
    DTG_TRY(check_filled(*contents, "export"));
    const std::vector<Ref<Row>> rows = contents->all();
    void *keys = nullptr, *values = nullptr;
    DTG_TRY(take(static_cast<int64_t>(rows.size()), &keys, &values));
    return write_all(c, rows, keys, values);
  }

 private:
  // A key and its value, as bytes one behind the other; a value of strings begins with their lengths. Immutable, so who has taken one out
  // of its shard needs no lock.
  class Row final : public RefCounted {
   public:
    static Ref<Row> make(std::string_view key, uint64_t value_bytes);
    std::string_view key() const { return {bytes(), key_bytes_}; }
    char* value() { return bytes() + key_bytes_; }
    const char* value() const { return bytes() + key_bytes_; }
    uint64_t value_bytes() const { return value_bytes_; }
    static void operator delete(void* row) { ::operator delete(row); }

   private:
    Row(std::string_view key, uint64_t value_bytes);
    char* bytes() const { return const_cast<char*>(reinterpret_cast<const char*>(this + 1)); }
    const uint64_t key_bytes_, value_bytes_;
  };
  struct Slot {
    mutable Ref<Row> row;  // another one of the same key may take its place
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view key) const { return std::hash<std::string_view>()(key); }
    size_t operator()(const Slot& slot) const { return (*this)(slot.row->key()); }
  };
  struct Same {
    using is_transparent = void;
    static std::string_view key(std::string_view key) { return key; }
    static std::string_view key(const Slot& slot) { return slot.row->key(); }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return key(a) == key(b);
    }
  };
  class Contents final : public RefCounted {
   public:
    Ref<Row> find(std::string_view key) const;  // null: not there
    void put(Ref<Row> row);                     // in the place of one of the same key
    void remove(std::string_view key);
    std::vector<Ref<Row>> all() const;
    int64_t size() const { return size_.load(std::memory_order_relaxed); }

    bool filled = false;  // fixed: it has been; set before others see it

   private:
    static constexpr int kShardBits = 6;
    struct Shard {
      mutable std::mutex mutex;
      std::unordered_set<Slot, Hash, Same> slots;
    };
    // By the upper bits: the map takes the rest of a division.
    static size_t shard_of(std::string_view key) { return Hash()(key) >> (64 - kShardBits); }
    Shard shards_[1 << kShardBits];
    std::atomic<int64_t> size_{0};
  };

  Ref<Contents> present() const;
  std::string_view key_at(const void* keys, int64_t i) const;
  const void* row_at(const Entries& entries, int64_t i) const { return static_cast<const char*>(entries.values) + i * width(); }
  Status check_filled(const Contents& contents, const char* attempted) const;
  Status check_mutable(const char* attempted) const;
  Status check_key(std::string_view key, const char* attempted) const;
  Status check_keys(const Entries& entries, const char* attempted) const;
  Status filled_again(int64_t there, int64_t given) const;
  Ref<Row> encoded(std::string_view key, const void* cells) const;
  uint64_t text_bytes(const Row& row) const;
  void load(const Row& row, TextSpace& space, char* to) const;
  Status find_texts(RunContext& c, const Contents& contents, const void* keys, int64_t from, int64_t to, const Entries& defaults,
                    char* out) const;
  Status write_all(RunContext& c, const std::vector<Ref<Row>>& rows, void* keys, void* values) const;
  int64_t elements() const { return spec_.row.count(); }
  int64_t width() const { return elements() * cell_bytes(spec_.values); }

  const Spec spec_;
  mutable SpinLock word_;  // guards what follows, while it is looked at or replaced
  Ref<Contents> contents_;
};

}  // namespace dtg
