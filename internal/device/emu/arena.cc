// First fit, with a list of idle blocks in front of it.
#include "device/emu/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace dtg {
namespace {

// As floats these bytes are numbers that no test expects, and as indices they are out of every range.
constexpr int kSpoilt = 0xF3;

}  // namespace

Result<Ref<EmuArena>> EmuArena::create(const std::string& device, int64_t limit) {
  limit = align_up(limit) + (4096 - align_up(limit) % 4096) % 4096;
  Ref<EmuArena> arena = Ref<EmuArena>::adopt(new EmuArena(device, limit));
  void* const base = mmap(nullptr, static_cast<size_t>(limit), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    return resource_exhausted("make %s: the system gives no %lld bytes of address space for its memory", device.c_str(),
                              static_cast<long long>(limit));
  }
  arena->base_ = static_cast<char*>(base);
  return arena;
}

EmuArena::~EmuArena() {
  if (base_) munmap(base_, static_cast<size_t>(limit_));
}

int64_t EmuArena::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

Result<char*> EmuArena::take(int64_t bytes, const char* what) {
  const int64_t whole = align_up(std::max<int64_t>(bytes, 1));
  const std::lock_guard lock(mutex_);
  int64_t offset = whole > limit_ ? -1 : take_idle(whole);
  if (offset < 0 && whole <= limit_) offset = take_free(whole);
  if (offset < 0 && whole <= limit_ && !idle_.empty()) {
    merge_idle();
    offset = take_free(whole);
  }
  if (offset < 0) {
    return resource_exhausted("%s has no %lld bytes left for %s: it has %lld, of which %lld are in use; use smaller shapes, or give the "
                              "device more memory",
                              device_.c_str(), static_cast<long long>(bytes), what, static_cast<long long>(limit_),
                              static_cast<long long>(used_));
  }
  used_ += whole;
  return base_ + offset;
}

int64_t EmuArena::take_idle(int64_t bytes) {
  const auto at = std::ranges::find(idle_, bytes, &Idle::bytes);
  if (at == idle_.end()) return -1;
  const int64_t offset = at->offset;
  *at = idle_.back();
  idle_.pop_back();
  return offset;
}

// A block that is cut needs an entry of its own, which is made first: without memory for it nothing has changed.
int64_t EmuArena::take_free(int64_t bytes) {
  const auto at = std::ranges::find_if(free_, [&](const auto& block) { return block.second >= bytes; });
  if (at == free_.end()) return -1;
  const int64_t offset = at->first, rest = at->second - bytes;
  blocks_.emplace(offset, bytes);
  auto entry = free_.extract(at);
  if (rest > 0) {
    entry.key() = offset + bytes;
    entry.mapped() = rest;
    free_.insert(std::move(entry));
  }
  return offset;
}

void EmuArena::give_back(char* block) {
  const std::lock_guard lock(mutex_);
  const int64_t offset = block - base_, bytes = blocks_.at(offset);
  used_ -= bytes;
  if (idle_.size() == kIdle) merge_idle();
  idle_.push_back({offset, bytes, false});
}

// The entry moves from one map to the other, so that giving back needs no memory.
void EmuArena::merge(Blocks::node_type entry) {
  auto next = free_.lower_bound(entry.key());
  if (next != free_.end() && entry.key() + entry.mapped() == next->first) {
    entry.mapped() += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == entry.key()) {
      before->second += entry.mapped();
      return;
    }
  }
  free_.insert(std::move(entry));
}

void EmuArena::merge_idle() {
  for (const Idle& idle : idle_) merge(blocks_.extract(idle.offset));
  idle_.clear();
}

void EmuArena::open() {
  mprotect(base_, static_cast<size_t>(limit_), PROT_READ | PROT_WRITE);
  const std::lock_guard lock(mutex_);
  for (Idle& idle : idle_) {
    if (!idle.spoilt) std::memset(base_ + idle.offset, kSpoilt, static_cast<size_t>(idle.bytes));
    idle.spoilt = true;
  }
}

void EmuArena::close() { mprotect(base_, static_cast<size_t>(limit_), PROT_NONE); }

}  // namespace dtg
