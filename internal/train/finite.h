// Whether weights, and what is fed, are numbers: looked at before weights are kept, since a gradient may be none where every loss was one.
// Pure; any thread.
#pragma once

#include <string_view>

#include "tensor/tensor.h"

namespace dtg {

bool is_finite(const Tensor& value);

// INVALID_ARGUMENT, which names the variable, the element and what to do, where one is NaN or infinite after that step.
Status check_finite(std::string_view variable, const Tensor& value, int64_t step);

}  // namespace dtg
