// Reservation: what was reserved of a budget for the length of a scope. Internal to the rung; one thread.
#pragma once

#include "base/budget.h"

namespace dtg {

struct Reservation {
  MemoryBudget* budget = nullptr;  // null: nothing was reserved
  int64_t bytes = 0;

  Reservation() = default;
  Reservation(MemoryBudget* of, int64_t count) : budget(of), bytes(count) {}
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation() {
    if (budget) budget->release(bytes);
  }
};

}  // namespace dtg
