// What the host says of a fit (dtg_fit), as the options that train/ takes, checked. Pure; the thread of the call.
#pragma once

#include "dtg/trainer.h"

#include "train/course.h"

namespace dtg::capi {

// `validated`: there is a data set to validate with, so that is what is watched where nothing is said.
Result<Course::Options> read_fit(const dtg_fit* given, bool validated);

}  // namespace dtg::capi
