// Reading and giving small integer values.
#include "graph/known.h"

namespace dtg {
namespace {

// Does the integer type hold the number?
bool fits(DType dtype, int64_t value) { return dtype == DType::i64 || (value >= INT32_MIN && value <= INT32_MAX); }

}  // namespace

std::optional<SmallInts> ValueContext::ints(int i) const {
  const Tensor tensor = input(i);
  if (!tensor.valid() || !kIndex.has(tensor.dtype()) || tensor.shape().rank() > 1 || tensor.count() > kElementsMax) return {};
  SmallInts ints{{}, tensor.shape().is_scalar()};
  ints.values.reserve(static_cast<size_t>(tensor.count()));
  for (int64_t k = 0; k < tensor.count(); ++k) ints.values.push_back(tensor.int_at(k));
  return ints;
}

void ValueContext::output(int o, const SmallInts& value) {
  const DType dtype = output_info(o).dtype;
  if (!kIndex.has(dtype) || static_cast<int64_t>(value.values.size()) > kElementsMax) return;
  for (int64_t number : value.values) {
    if (!fits(dtype, number)) return;
  }
  auto tensor = Tensor::ints(dtype, value.values);
  if (!tensor.ok()) return;
  output(o, value.scalar ? tensor.value().reshaped(Shape()) : tensor.take());
}

}  // namespace dtg
