// Watched: numbers to loop over in a kernel, with a look at the interrupt (base/interrupt.h) now and then. On the stack of the loop.
#pragma once

#include <algorithm>

#include "base/interrupt.h"

namespace dtg {

// for (const int64_t i : watched(from, to, steps)): the numbers in [from, to), with a look between them now and then; a turn takes so many
// steps. For loops that no vector runs through anyway.
class Watched {
 public:
  Watched(int64_t from, int64_t to, int64_t steps) : from_(from), to_(to), steps_(steps) {}
  class Iterator {
   public:
    Iterator(int64_t at, int64_t steps) : at_(at), steps_(steps) {}
    int64_t operator*() const { return at_; }
    Iterator& operator++() {
      ++at_;
      lookout_.after(steps_);
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at_ < other.at_; }

   private:
    int64_t at_;
    const int64_t steps_;
    Lookout lookout_;
  };
  Iterator begin() const { return {from_, steps_}; }
  Iterator end() const { return {to_, steps_}; }

 private:
  const int64_t from_, to_, steps_;
};
inline Watched watched(int64_t from, int64_t to, int64_t steps) { return {from, to, steps}; }
inline Watched watched(int64_t count, int64_t steps = 4) { return {0, count, steps}; }

// std::fill for what may be long.
template <class T>
void watched_fill(T* from, T* to, T value) {
  look_in_stretches(0, to - from, 1, 1, [&](int64_t begin, int64_t end) { std::fill(from + begin, from + end, value); });
}

}  // namespace dtg
