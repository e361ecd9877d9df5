// FetchPool: recycled memory for one fetch of a plan. A buffer in use holds the pool; when its last holder
// lets go it parks in a cell and is taken again by a later run. A few cells, no lock. Any thread.
#pragma once

#include <atomic>

#include "base/ref.h"
#include "tensor/buffer.h"

namespace dtg {

class FetchPool : public RefCounted {
 public:
  explicit FetchPool(int64_t bytes) : bytes_(bytes) {}
  ~FetchPool() override;
  Result<Ref<Buffer>> take();

 private:
  class Recycled;
  static constexpr int kCells = 4;
  const int64_t bytes_;
  std::atomic<Recycled*> cells_[kCells] = {};
};

}  // namespace dtg
