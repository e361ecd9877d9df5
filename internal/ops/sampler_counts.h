// ClassCounts: how often each class was a true one so far, beginning with 1 for each, for the sampler that learns. A tree of sums over a
// power of two leaves, of which only what was added is kept, in pages that are taken from the pool of the run that first adds something
// there: a sampler of very many classes takes memory for those that it has met, within the limit of the runtime.
//
// Any thread. Drawing and adding take no lock: a sum never shrinks, and a class is added to its leaf first and to the root last, so whoever
// has read a sum finds at least as much below. Runs at the same time draw from counts somewhere between.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <limits>
#include <mutex>

#include "base/spin_lock.h"
#include "base/watched.h"
#include "device/cpu/philox.h"
#include "exec/kernel.h"
#include "exec/memory_pool.h"
#include "exec/resource.h"

namespace dtg::ops {

class ClassCounts final : public RefCounted {
 public:
  // So many can be counted together.
  static constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

  static Result<Ref<ClassCounts>> make(int64_t range, MemoryPool& memory) {
    Ref<ClassCounts> counts = make_ref<ClassCounts>(range);
    DTG_ASSIGN(counts->index_, take(memory, (2 * counts->leaves_ / kPage + 1) * static_cast<int64_t>(sizeof(Cell))));
    counts->pages_ = static_cast<Cell*>(counts->index_->data());
    for (int64_t i = 0; i <= 2 * counts->leaves_ / kPage; ++i) new (counts->pages_ + i) Cell(nullptr);
    return counts;
  }
  explicit ClassCounts(int64_t range) : range_(range), leaves_(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(range)))) {}

  int64_t sample(cpu::PhiloxWords& words) const {
    int64_t rest = words.below(static_cast<uint32_t>(sum(1, 0, leaves_))), at = 1, first = 0;
    for (int64_t span = leaves_ / 2; span > 0; span /= 2) {
      at *= 2;
      const int64_t left = sum(at, first, span);
      if (rest >= left) rest -= left, ++at, first += span;
    }
    return first;
  }
  float probability(int64_t k) const {
    if (k < 0 || k >= range_) return 0.0f;
    return static_cast<float>(sum(leaves_ + k, k, 1)) / static_cast<float>(sum(1, 0, leaves_));
  }

  // Pages for all that add(k) writes to, so that adding cannot fail. Classes that there are not do not count.
  Status make_room(int64_t k, MemoryPool& memory) {
    if (k < 0 || k >= range_) return {};
    for (int64_t at = leaves_ + k; at > 0; at /= 2) {
      if (!pages_[at / kPage].load(std::memory_order_acquire)) DTG_TRY(add_page(at / kPage, memory));
    }
    return {};
  }
  // Behind make_room(k).
  void add(int64_t k) {
    if (k < 0 || k >= range_) return;
    if (added_.fetch_add(1, std::memory_order_relaxed) >= kMost - range_) {
      added_.fetch_sub(1, std::memory_order_relaxed);
      return;
    }
    for (int64_t at = leaves_ + k; at > 0; at /= 2) {
      pages_[at / kPage].load(std::memory_order_acquire)[at % kPage].fetch_add(1, std::memory_order_release);
    }
  }

 private:
  using Count = std::atomic<int32_t>;
  using Cell = std::atomic<Count*>;
  static constexpr int64_t kPage = 4096;

  // Of node `at`, below which there are `span` leaves from `first` on.
  int64_t sum(int64_t at, int64_t first, int64_t span) const {
    const Count* const page = pages_[at / kPage].load(std::memory_order_acquire);
    return std::clamp<int64_t>(range_ - first, 0, span) + (page ? page[at % kPage].load(std::memory_order_acquire) : 0);
  }

  static Result<Ref<Buffer>> take(MemoryPool& memory, int64_t bytes) {
    DTG_TRY(memory.check_growth(bytes, "the counts of classes"));
    return memory.take_buffer(bytes);
  }
  Status add_page(int64_t number, MemoryPool& memory) {
    DTG_ASSIGN(Ref<Buffer> buffer, take(memory, kPage * static_cast<int64_t>(sizeof(Count))));
    auto* const page = static_cast<Count*>(buffer->data());
    for (int64_t i = 0; i < kPage; ++i) new (page + i) Count(0);
    const std::lock_guard hold(mutex_);
    if (pages_[number].load(std::memory_order_relaxed)) return {};  // another run was first
    held_.push_back(std::move(buffer));
    pages_[number].store(page, std::memory_order_release);
    return {};
  }

  const int64_t range_, leaves_;
  std::atomic<int64_t> added_{0};
  Ref<Buffer> index_;
  Cell* pages_ = nullptr;
  std::mutex mutex_;  // guards held_, while a page comes
  std::vector<Ref<Buffer>> held_;
};

// What one node has learned, in the store. Whoever runs holds the counts themselves, so that those of a container that is reset go with the
// last run that draws from them.
class LearnedClasses final : public Resource {
 public:
  LearnedClasses(std::string name, int64_t range) : Resource(std::move(name)), range_(range) {}
  static constexpr std::string_view kKind = "class counts";
  const char* kind() const override { return kKind.data(); }
  void destroy(const Status&) override {
    Ref<ClassCounts> gone;
    const std::lock_guard lock(word_);
    gone = std::move(counts_);
  }

  Result<Ref<ClassCounts>> counts(MemoryPool& memory) {
    {
      const std::lock_guard lock(word_);
      if (counts_) return counts_;
    }
    DTG_ASSIGN(Ref<ClassCounts> made, ClassCounts::make(range_, memory));
    const std::lock_guard lock(word_);
    if (!counts_) counts_ = made;
    return counts_;
  }

 private:
  const int64_t range_;
  SpinLock word_;
  Ref<ClassCounts> counts_;
};

}  // namespace dtg::ops
