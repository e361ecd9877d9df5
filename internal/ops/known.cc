// Value functions: small integer arithmetic on shapes, sizes and axes. They must give what the kernels give, or nothing.
#include "ops/known.h"

#include <algorithm>

namespace dtg::ops {
namespace {

using Fold = bool (*)(int64_t a, int64_t b, int64_t* result);

bool add(int64_t a, int64_t b, int64_t* result) { return !__builtin_add_overflow(a, b, result); }
bool subtract(int64_t a, int64_t b, int64_t* result) { return !__builtin_sub_overflow(a, b, result); }
bool multiply(int64_t a, int64_t b, int64_t* result) { return !__builtin_mul_overflow(a, b, result); }
bool larger(int64_t a, int64_t b, int64_t* result) {
  *result = std::max(a, b);
  return true;
}
bool smaller(int64_t a, int64_t b, int64_t* result) {
  *result = std::min(a, b);
  return true;
}
bool floor_divide(int64_t a, int64_t b, int64_t* result) {
  if (b <= 0) return false;
  *result = a / b - (a % b < 0 ? 1 : 0);
  return true;
}

template <Fold kFold>
void arithmetic(ValueContext& c) {
  const auto a = c.ints(0), b = a ? c.ints(1) : std::nullopt;
  if (!a || !b) return;
  if (!a->scalar && !b->scalar && a->values.size() != b->values.size()) return;
  const size_t count = a->scalar ? b->values.size() : a->values.size();
  SmallInts result{{}, a->scalar && b->scalar};
  for (size_t i = 0; i < count; ++i) {
    int64_t one = 0;
    if (!kFold(a->values[a->scalar ? 0 : i], b->values[b->scalar ? 0 : i], &one)) return;
    result.values.push_back(one);
  }
  c.output(0, result);
}

}  // namespace

ValueFn arithmetic_value(std::string_view op) {
  if (op == "AddV2" || op == "Add") return arithmetic<add>;
  if (op == "Sub") return arithmetic<subtract>;
  if (op == "Mul") return arithmetic<multiply>;
  if (op == "Maximum") return arithmetic<larger>;
  if (op == "Minimum") return arithmetic<smaller>;
  if (op == "FloorDiv") return arithmetic<floor_divide>;
  return nullptr;
}

void const_value(ValueContext& c) { c.output(0, c.node().attr<Tensor>("value")); }

void first_value(ValueContext& c) { c.output(0, c.input(0)); }

void cast_value(ValueContext& c) {
  if (const auto ints = c.ints(0)) c.output(0, *ints);
}

void shape_value(ValueContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    const ValueInfo& info = c.input_info(i);
    if (info.dtype != DType::resource && info.shape.complete())
      c.output(i, SmallInts{{info.shape.dims().begin(), info.shape.dims().end()}, false});
  }
}

void size_value(ValueContext& c) {
  const ValueInfo& info = c.input_info(0);
  if (info.dtype == DType::resource || !info.shape.complete()) return;
  if (const auto shape = info.shape.to_shape(); shape.ok()) c.output(0, SmallInts{{shape.value().count()}, true});
}

void rank_value(ValueContext& c) {
  const ValueInfo& info = c.input_info(0);
  if (info.dtype != DType::resource && info.shape.has_rank()) c.output(0, SmallInts{{info.shape.rank()}, true});
}

void reshape_value(ValueContext& c) {
  const Tensor value = c.input(0);
  const PartialShape& to = c.output_info(0).shape;
  if (!value.valid() || !kIndex.has(value.dtype()) || value.count() > ValueContext::kElementsMax || !to.complete()) return;
  const auto shape = to.to_shape();
  if (shape.ok() && shape.value().count() == value.count()) c.output(0, value.reshaped(shape.value()));
}

void pack_value(ValueContext& c) {
  if (c.num_inputs() > ValueContext::kElementsMax) return;
  SmallInts all;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const auto one = c.ints(i);
    if (!one || !one->scalar) return;
    all.values.push_back(one->values[0]);
  }
  c.output(0, all);
}

void concat_value(ValueContext& c) {
  // Only vectors are known here, which have no other axis; another number is an error that the kernel reports.
  const auto axis = c.ints(c.num_inputs() - 1);
  if (!axis || axis->values.size() != 1 || (axis->values[0] != 0 && axis->values[0] != -1)) return;
  SmallInts all;
  for (int i = 0; i + 1 < c.num_inputs(); ++i) {
    const auto one = c.ints(i);
    if (!one || one->scalar) return;
    all.values.insert(all.values.end(), one->values.begin(), one->values.end());
    if (static_cast<int64_t>(all.values.size()) > ValueContext::kElementsMax) return;
  }
  c.output(0, all);
}

void slice_value(ValueContext& c) {
  const auto from = c.ints(0), begin = c.ints(1), size = c.ints(2);
  if (!from || !begin || !size || from->scalar || begin->values.size() != 1 || size->values.size() != 1) return;
  const auto count = static_cast<int64_t>(from->values.size());
  const int64_t first = begin->values[0];
  if (first < 0 || first > count) return;
  const int64_t length = size->values[0] == -1 ? count - first : size->values[0];
  if (length < 0 || length > count - first) return;
  c.output(0, SmallInts{{from->values.begin() + first, from->values.begin() + first + length}, false});
}

void strided_slice_value(ValueContext& c) {
  const auto from = c.ints(0), begin = c.ints(1), end = c.ints(2), stride = c.ints(3);
  if (!from || !begin || !end || !stride || from->scalar) return;
  if (begin->values.size() != 1 || end->values.size() != 1 || stride->values.size() != 1 || stride->values[0] != 1) return;
  const Node& node = c.node();
  if (node.attr<int64_t>("ellipsis_mask") || node.attr<int64_t>("new_axis_mask")) return;
  const auto count = static_cast<int64_t>(from->values.size());
  // Far away numbers are clamped before they are added to, as the kernel does.
  const auto clamp = [&](int64_t i) { return i < 0 ? std::max<int64_t>(i, -count - 1) + count : i; };
  if (node.attr<int64_t>("shrink_axis_mask") & 1) {
    const int64_t at = clamp(begin->values[0]);
    if (at >= 0 && at < count) c.output(0, SmallInts{{from->values[static_cast<size_t>(at)]}, true});
    return;
  }
  int64_t first = node.attr<int64_t>("begin_mask") & 1 ? 0 : std::clamp<int64_t>(clamp(begin->values[0]), 0, count);
  const int64_t last = node.attr<int64_t>("end_mask") & 1 ? count : std::clamp<int64_t>(clamp(end->values[0]), 0, count);
  first = std::min(first, last);
  c.output(0, SmallInts{{from->values.begin() + first, from->values.begin() + last}, false});
}

}  // namespace dtg::ops
