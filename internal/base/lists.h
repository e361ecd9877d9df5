// Lists: many lists of numbers in one array, made at once and read from then on. For walks over graphs, where a vector of vectors
// would cost an allocation per node. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace dtg {

class Lists {
 public:
  Lists() = default;
  // `each(add)` calls add(list, item) for everything that belongs in; it is called twice and must do the same both times. Items keep
  // their order.
  template <class Each>
  Lists(size_t count, Each&& each) : begin_(count + 2) {
    each([&](size_t list, uint32_t) { ++begin_[list + 2]; });
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    items_.resize(begin_.back());
    each([&](size_t list, uint32_t item) { items_[begin_[list + 1]++] = item; });
  }

  std::span<const uint32_t> operator[](size_t list) const { return {items_.data() + begin_[list], items_.data() + begin_[list + 1]}; }
  size_t count() const { return begin_.empty() ? 0 : begin_.size() - 2; }
  size_t bytes() const { return (begin_.size() + items_.size()) * sizeof(uint32_t); }

 private:
  std::vector<uint32_t> begin_;  // list k: from begin_[k] to begin_[k + 1]
  std::vector<uint32_t> items_;
};

}  // namespace dtg
