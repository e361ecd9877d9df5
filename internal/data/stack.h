// Elements stacked along a new first dimension, as windows and batches hand them out. Pure; any thread.
#pragma once

#include <algorithm>
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

// Whether a stage that hands out whole batches only has dropped all that it got.
class Remainder {
 public:
  void begin() { *this = {}; }
  void handed_out() { any_ = true; }
  void left(size_t elements) { left_ = std::max(left_, static_cast<int64_t>(elements)); }
  int64_t all() const { return any_ ? 0 : left_; }

 private:
  bool any_ = false;
  int64_t left_ = 0;
};

}  // namespace dtg
