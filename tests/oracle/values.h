// Tensors of the vectors: from JSON to dtg_tensor and back, and comparison under their tolerances. The oracle tools own
// them; one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <dtg/dtg.h>

#include "files.h"

namespace dtg::oracle {

// A counted tensor of the ABI.
using Tensor = std::shared_ptr<dtg_tensor>;
Tensor adopt(dtg_tensor* tensor);

// True for {"dtype", "shape", "data"}.
bool is_tensor(const Json& value);

// The element types that every op of the spine must compute on where TensorFlow does.
bool is_core_dtype(const std::string& name);

// A tensor of that JSON. Null with the reason in `why` when its type has no plain memory.
Tensor make_tensor(const Json& value, std::string* why);
// The same from raw little-endian elements.
Tensor make_tensor(dtg_dtype dtype, const std::vector<int64_t>& shape, const void* data, size_t nbytes, std::string* why);
// A scalar of a floating-point type.
Tensor make_scalar(dtg_dtype dtype, double value);

// A number of JSON, where "nan", "inf" and "-inf" are strings.
double number(const Json& value);

std::vector<int64_t> shape_of(const Tensor& tensor);
// The elements as doubles; what does not fit a double (large int64) is rounded.
std::vector<double> elements(const Tensor& tensor);

// |got - want| <= atol + rtol * |want|; integers and bools must be equal.
struct Tolerance {
  double rtol = 0;
  double atol = 0;
};

// "" when `got` is `want` within the tolerance, else the first difference in words.
std::string difference(const Json& want, const Tensor& got, Tolerance tolerance);

// A tolerance relative to the largest element: tol * max(1, max |want|).
Tolerance scaled_tolerance(const Json& want, double tol);

// The dense form of an {"indexed_slices": true, ...} object; anything else comes back as it is.
Json densified(const Json& gradient);

}  // namespace dtg::oracle
