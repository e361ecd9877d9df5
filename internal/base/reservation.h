// Reservation: what was reserved of a memory budget for the length of a scope. One thread.
#pragma once

#include "base/budget.h"

namespace dtg {

struct Reservation {
  MemoryBudget* budget = nullptr;  // null: nothing is reserved
  int64_t bytes = 0;

  Reservation() = default;
  // Of what is reserved already.
  Reservation(MemoryBudget* of, int64_t count) : budget(of), bytes(count) {}
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation() {
    if (budget) budget->release(bytes);
  }

  // Reserves that much more. `what` names the thing in an error.
  Status grow(int64_t more, const char* what) {
    if (!budget) return {};
    DTG_TRY(budget->reserve(more, what));
    bytes += more;
    return {};
  }
};

}  // namespace dtg
