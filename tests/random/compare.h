// Comparing tensors bit by bit, and showing what differs. Values; any thread.
#pragma once

#include <string>

#include "tensor/tensor.h"

namespace dtg::random {

// Where two tensors differ; empty when they are the same bits, NaN being NaN.
std::string difference(const Tensor& wanted, const Tensor& got);

}  // namespace dtg::random
