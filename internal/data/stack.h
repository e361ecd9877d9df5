// Elements stacked along a new first dimension, as windows and batches hand them out. Pure; any thread.
#pragma once

#include <atomic>
#include <optional>
#include <span>

#include "data/dataset.h"

namespace dtg {

// One or more elements with as many components each. Without `padding` the tensors of a component must be of one shape; with it, of one
// rank: each is made as long as the longest along every dimension, with that value. `what` begins the errors.
Result<Element> stack_elements(std::span<const Element> elements, std::optional<double> padding, const char* what);
// Whether a component of that type can be padded with it.
Status check_padding(std::span<const ComponentSpec> spec, double padding, const char* what);
// The spec of stacked elements; the first dimension is `size`, or -1.
Result<std::vector<ComponentSpec>> stacked_spec(std::span<const ComponentSpec> spec, int64_t size, const char* what);

// So many batches are made of so many elements (negative where that is not known, and so is the answer).
int64_t batches_of(int64_t elements, int64_t size, bool drop_remainder);

// Whether a stage that hands out whole batches only has dropped all that it got. A second thread may ask, as where of data sets that are
// zipped one has ended and another is still read ahead.
class Remainder {
 public:
  void begin() { any_ = false, left_ = 0; }
  void handed_out() { any_.store(true, std::memory_order_relaxed); }
  void left(size_t elements) {
    if (elements > 0) left_.store(static_cast<int64_t>(elements), std::memory_order_relaxed);
  }
  // At the end of the data, whatever came before.
  int64_t last() const { return left_.load(std::memory_order_relaxed); }
  int64_t all() const { return any_.load(std::memory_order_relaxed) ? 0 : left_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> any_{false};
  std::atomic<int64_t> left_{0};
};

}  // namespace dtg
