// Seams: the outside world as one bundle that the runtime hands down: clock, randomness, disk, memory
// budget, log. Code below takes what it needs from here and never asks the system itself, so that tests
// and the simulator can stand in. The runtime owns the parts; the bundle only points.
#pragma once

#include "base/budget.h"
#include "base/clock.h"
#include "base/disk.h"
#include "base/log.h"
#include "base/random.h"

namespace dtg {

struct Seams {
  const Clock* clock = nullptr;
  const Random* random = nullptr;
  Disk* disk = nullptr;
  MemoryBudget* budget = nullptr;
  LogSink* log = nullptr;
};

}  // namespace dtg
