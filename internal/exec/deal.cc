// What is open, and what is over.
#include "exec/deal.h"

#include <algorithm>

namespace dtg {

void Deal::told(std::span<const double> times) {
  if (times.size() != static_cast<size_t>(elements_)) return;
  // What is no number of times is open in no epoch.
  constexpr double kTimesMost = static_cast<double>(int64_t{1} << 53);
  times_.resize(times.size());
  for (size_t i = 0; i < times.size(); ++i)
    times_[i] = times[i] >= 0 && times[i] < kTimesMost ? static_cast<int64_t>(times[i]) : int64_t{1} << 60;
  known_ = true;
  look();
}

void Deal::look() {
  if (times_.empty()) return;
  const auto lowest = std::ranges::min_element(times_);
  epoch_ = *lowest;
  first_open_ = lowest - times_.begin();
}

void Deal::made(Element element) {
  if (!is_open(element)) return;
  ++times_[static_cast<size_t>(element.index)];
  while (first_open_ < elements() && times_[static_cast<size_t>(first_open_)] != epoch_) ++first_open_;
  if (first_open_ == elements()) look();
}

Deal::Element Deal::first_but(std::span<const int64_t> held) const {
  if (!known_) return {};
  for (int64_t index = first_open_; index < elements(); ++index) {
    if (times_[static_cast<size_t>(index)] == epoch_ && !std::ranges::binary_search(held, index)) return {epoch_, index};
  }
  return {};
}

}  // namespace dtg
