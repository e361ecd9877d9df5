// Reading a loss of the ABI, for the functions of dtg/losses.h and dtg/metrics.h. The thread that builds the model.
#pragma once

#include "base/status.h"
#include "dtg/losses.h"
#include "nn/loss.h"

namespace dtg::capi {

// NULL: all defaults. The names in it stay the caller's.
Result<Loss> read_loss(const Model& model, const dtg_loss* given);

}  // namespace dtg::capi
