// FlatMap: from 64-bit numbers to small plain values, in one array with linear probing. For the planner and the graph, which ask
// hundreds of thousands of times; nothing is ever taken out. One thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace dtg {

template <class T>
class FlatMap {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  // Null when there is none. Valid until the next emplace().
  const T* find(uint64_t key) const {
    if (entries_.empty()) return nullptr;
    const Entry& entry = entries_[place_of(key)];
    return entry.used ? &entry.value : nullptr;
  }

  // What is there, and whether it is `value`, put there now.
  std::pair<T*, bool> emplace(uint64_t key, T value) {
    if (2 * (count_ + 1) > entries_.size()) grow(entries_.empty() ? kFirst : 2 * entries_.size());
    Entry& entry = entries_[place_of(key)];
    if (entry.used) return {&entry.value, false};
    entry = {key, value, true};
    ++count_;
    return {&entry.value, true};
  }

  void reserve(size_t count) {
    size_t size = kFirst;
    while (size < 2 * count) size *= 2;
    if (size > entries_.size()) grow(size);
  }

 private:
  static constexpr size_t kFirst = 16;  // most plans are of bodies, and small
  struct Entry {
    uint64_t key = 0;
    T value = {};
    bool used = false;
  };

  // Where the key is, or would be.
  size_t place_of(uint64_t key) const {
    // The upper bits of the product depend on all of the key.
    size_t at = (key ^ key >> 32) * 0x9e3779b97f4a7c15ull >> shift_;
    while (entries_[at].used && entries_[at].key != key) at = (at + 1) & (entries_.size() - 1);
    return at;
  }

  void grow(size_t size) {
    std::vector<Entry> old(size);
    old.swap(entries_);
    shift_ = 64 - std::countr_zero(size);
    for (const Entry& entry : old) {
      if (entry.used) entries_[place_of(entry.key)] = entry;
    }
  }

  std::vector<Entry> entries_;  // none, or a power of two
  size_t count_ = 0;
  int shift_ = 0;
};

}  // namespace dtg
