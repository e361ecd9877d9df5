// Reading a partitioner of the host, for whoever cuts variables. The thread that builds the model.
#pragma once

#include "base/status.h"
#include "dtg/coordinator.h"
#include "strategy/partitioner.h"

namespace dtg::capi {

Result<Partitioner> read_partitioner(const dtg_partitioner* given);

}  // namespace dtg::capi
