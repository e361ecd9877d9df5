// What TensorFlow has and this library not yet: families of ops, for an answer that helps more than the nearest name. Pure; any thread.
#pragma once

#include <string_view>

#include "base/status.h"

namespace dtg {

// The error for an op that is not there: UNIMPLEMENTED with what it belongs to, where that is known; else NOT_FOUND, with the nearest name
// that there is (may be empty).
Status no_such_op(std::string_view op, std::string_view nearest);

}  // namespace dtg
