// The rules.
#include "ops/simplify.h"

#include <bit>
#include <vector>

namespace dtg::ops {
namespace {

bool same_type_and_shape(const Rewriter& r, uint32_t a, uint32_t b) {
  const ValueInfo &x = r.info(a), &y = r.info(b);
  return x.dtype == y.dtype && x.shape.complete() && x.shape == y.shape;
}

// All elements are the number; of types whose numbers are cheap to read.
bool is_all(const Tensor& tensor, double number, bool negative_zero) {
  if (!tensor.valid() || tensor.count() == 0 || tensor.count() > 64) return false;
  for (int64_t i = 0; i < tensor.count(); ++i) {
    switch (tensor.dtype()) {
      case DType::f32: {
        const float value = static_cast<const float*>(tensor.data())[i];
        if (std::bit_cast<uint32_t>(value) != std::bit_cast<uint32_t>(negative_zero ? -0.0f : static_cast<float>(number))) return false;
        break;
      }
      case DType::f64: {
        const double value = static_cast<const double*>(tensor.data())[i];
        if (std::bit_cast<uint64_t>(value) != std::bit_cast<uint64_t>(negative_zero ? -0.0 : number)) return false;
        break;
      }
      case DType::i32:
      case DType::i64:
        if (tensor.int_at(i) != static_cast<int64_t>(number)) return false;
        break;
      default: return false;
    }
  }
  return true;
}

bool forward_if_neutral(Rewriter& r, uint32_t n, size_t kept, double neutral, bool negative_zero) {
  const uint32_t value = r.operand(n, kept);
  if (!same_type_and_shape(r, value, r.result(n, 0))) return false;
  return is_all(r.known(r.operand(n, 1 - kept)), neutral, negative_zero) && r.forward(n, value);
}

bool times_one(Rewriter& r, uint32_t n) { return forward_if_neutral(r, n, 0, 1, false) || forward_if_neutral(r, n, 1, 1, false); }
bool over_one(Rewriter& r, uint32_t n) { return forward_if_neutral(r, n, 0, 1, false); }
bool minus_zero(Rewriter& r, uint32_t n) { return forward_if_neutral(r, n, 0, 0, false); }
// For floating numbers -0 is the neutral element: -0 + 0 is 0.
bool plus_zero(Rewriter& r, uint32_t n) { return forward_if_neutral(r, n, 0, 0, true) || forward_if_neutral(r, n, 1, 0, true); }

}  // namespace

RewriteFn simplify_binary(std::string_view op) {
  if (op == "Mul") return times_one;
  if (op == "RealDiv") return over_one;
  if (op == "Sub") return minus_zero;
  if (op == "AddV2" || op == "Add") return plus_zero;
  return nullptr;
}

bool simplify_identity(Rewriter& r, uint32_t n) { return r.info(r.result(n, 0)).dtype != DType::resource && r.forward(n, r.operand(n, 0)); }

bool simplify_reshape(Rewriter& r, uint32_t n) {
  if (same_type_and_shape(r, r.operand(n, 0), r.result(n, 0))) return r.forward(n, r.operand(n, 0));
  const uint32_t before = r.producer(r.operand(n, 0));
  if (before == Rewriter::kNobody || r.node(before).op != r.node(n).op) return false;
  // Only the target decides, where it has no -1 left to infer.
  if (!r.info(r.result(n, 0)).shape.complete() || !r.info(r.operand(before, 0)).shape.complete()) return false;
  const uint32_t operands[] = {r.operand(before, 0), r.operand(n, 1)};
  r.replace(n, *r.node(n).op, operands, r.attrs_for(*r.node(n).op, n), {});
  return true;
}

// What it asks for was known when shapes were.
bool simplify_ensured(Rewriter& r, uint32_t n) {
  return same_type_and_shape(r, r.operand(n, 0), r.result(n, 0)) && r.forward(n, r.operand(n, 0));
}

bool simplify_transpose(Rewriter& r, uint32_t n) {
  const Tensor perm = r.known(r.operand(n, 1));
  if (!perm.valid()) return false;
  bool still = true;
  for (int64_t i = 0; i < perm.count(); ++i) still &= perm.int_at(i) == i;
  const bool plain = r.info(r.result(n, 0)).dtype != DType::c64 && r.info(r.result(n, 0)).dtype != DType::c128;
  if (still && plain) return r.forward(n, r.operand(n, 0));
  const uint32_t before = r.producer(r.operand(n, 0));
  if (before == Rewriter::kNobody || r.node(before).op != r.node(n).op) return false;
  const Tensor first = r.known(r.operand(before, 1));
  if (!first.valid() || first.count() != perm.count()) return false;
  // Two that undo each other; conjugating twice does as well.
  for (int64_t i = 0; i < perm.count(); ++i) {
    const int64_t at = perm.int_at(i);
    if (at < 0 || at >= first.count() || first.int_at(at) != i) return false;
  }
  return r.forward(n, r.operand(before, 0));
}

}  // namespace dtg::ops
