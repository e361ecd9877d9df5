// Parking and taking of fetched buffers.
#include "plan/fetch_pool.h"

namespace dtg {

class FetchPool::Recycled final : public Buffer {
 public:
  Recycled(void* block, int64_t bytes)
      : Buffer(
            block, bytes, Placement::heap, [](void* data, size_t size, void*) { release_block(data, static_cast<int64_t>(size)); },
            nullptr) {}
  void leave(FetchPool* pool) {
    revive();
    pool_ = Ref<FetchPool>::share(pool);
  }

 protected:
  void last_release() override {
    // Once parked, another thread may take this buffer out again, so nothing of it is touched after.
    const Ref<FetchPool> pool = std::move(pool_);
    for (auto& cell : pool->cells_) {
      Recycled* none = nullptr;
      if (cell.compare_exchange_strong(none, this, std::memory_order_acq_rel)) return;
    }
    delete this;
  }

 private:
  friend class FetchPool;
  Ref<FetchPool> pool_;
};

FetchPool::~FetchPool() {
  for (auto& cell : cells_) delete cell.load();
}

Result<Ref<Buffer>> FetchPool::take() {
  for (auto& cell : cells_) {
    if (!cell.load(std::memory_order_relaxed)) continue;
    if (Recycled* parked = cell.exchange(nullptr, std::memory_order_acq_rel)) {
      parked->leave(this);
      return Ref<Buffer>::adopt(parked);
    }
  }
  void* const block = allocate_block(bytes_);
  if (!block) return resource_exhausted("allocate %lld bytes for a fetched value", static_cast<long long>(bytes_));
  auto* fresh = new Recycled(block, bytes_);
  fresh->leave(this);
  return Ref<Buffer>::adopt(fresh);
}

}  // namespace dtg
