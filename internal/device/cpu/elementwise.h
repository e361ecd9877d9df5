// Element-wise loops. Everything element-wise is written as a block function over contiguous operands; this
// file adds broadcasting and sharding on top, by bringing whatever is not contiguous into a small buffer
// that stays in the first-level cache. So each op has one inner loop, and the same one serves fused chains.
//
// All tables are constant; an ElementLoop belongs to a plan and is read-only while it runs.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/pool.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace dtg::cpu {

// n elements from each of the operands to `out`; an operand may be `out` itself. What an element becomes
// does not depend on its place in the block, so results are the same however the work is cut.
using BlockFn = void (*)(const void* const* in, void* out, int64_t n);

// The functions that have block loops: what each computes, and on which types, stands in the tables. Which op is which of
// them is for ops/ to say.
// clang-format off
enum class ElementFn : uint8_t {
  // of one operand
  neg, abs, sign, square, sqrt, rsqrt, reciprocal, relu, relu6, exp, expm1, log, log1p, tanh, sigmoid, softplus, elu, softsign,
  sin, cos, tan, asin, acos, atan, sinh, cosh, asinh, acosh, atanh, selu, invert, erf, erfc, floor, ceil, rint, round, is_nan,
  is_inf, is_finite,
  // of one operand, from the library of special functions
  lgamma, digamma, erfinv, ndtri, bessel_i0, bessel_i0e, bessel_i1, bessel_i1e, bessel_j0, bessel_j1, bessel_k0, bessel_k0e,
  bessel_k1, bessel_k1e, bessel_y0, bessel_y1,
  // of two
  add, sub, mul, real_div, div, div_no_nan, mul_no_nan, xdivy, xlogy, xlog1py, atan2, truncate_div, remainder, bitwise_and,
  bitwise_or, bitwise_xor, floor_div, floor_mod, maximum, minimum, squared_difference, pow, relu_grad, relu6_grad, softplus_grad,
  softsign_grad, selu_grad, elu_grad, tanh_grad, sigmoid_grad, sqrt_grad, rsqrt_grad, reciprocal_grad, left_shift, right_shift,
  next_after, igamma, igammac, igamma_grad_a, zeta, polygamma,
  // comparisons and logic, whose result is a bool; the choice by one
  equal, not_equal, less, less_equal, greater, greater_equal, logical_and, logical_or, logical_not, select,
  // of three
  clip, betainc,
};
// clang-format on

struct ElementBlock {
  ElementFn fn;
  DType dtype;  // of the operands: of both, or of those that are chosen from
  int arity;
  BlockFn block;
  bool heavy;  // worth sharding early: transcendental functions
};

// The best block for a function on this machine, or null. Vector code first, then the generic loops.
const ElementBlock* find_block(ElementFn fn, DType dtype);

// The tables behind it.
std::span<const ElementBlock> simd_blocks();
std::span<const ElementBlock> curve_blocks();
std::span<const ElementBlock> unary_blocks();
std::span<const ElementBlock> binary_blocks();
std::span<const ElementBlock> compare_blocks();
std::span<const ElementBlock> special_blocks();

// The conversion between two plain real types or bool, or null. Truncating casts of floats round to zero.
BlockFn find_cast(DType from, DType to, bool truncate);

inline constexpr int kElementOperands = 3;

// A broadcast element-wise loop, made by plan_elements.
struct ElementLoop {
  enum class Mode : uint8_t {
    flat,    // every operand is as large as the output, or one element
    rows,    // long rows: contiguous or constant along the innermost dimension
    chunks,  // short rows: several at a time are gathered into buffers
  };
  struct Operand {
    std::array<int64_t, kRankMax> strides{};  // in elements, over the collapsed dimensions; 0 = broadcast
    int64_t size = 0;                         // bytes of an element
    bool dense = false;                       // same elements as the output
    bool fixed = false;                       // chunks: every chunk sees the same elements
  };
  BlockFn block = nullptr;
  Mode mode = Mode::flat;
  int operands = 0;
  int rank = 0;
  int64_t count = 0;
  int64_t out_size = 0;
  int64_t shard = 0;                     // elements, or units of rows / chunks, per shard
  int64_t piece = 0;                     // rows: elements of a piece of a row; chunks: elements of a chunk
  std::array<int64_t, kRankMax> dims{};  // collapsed
  std::array<Operand, kElementOperands> in;
};

// `shapes[i]` must broadcast to `out`. `sizes[i]` are bytes per element.
ElementLoop plan_elements(BlockFn block, bool heavy, std::span<const Shape> shapes, std::span<const int64_t> sizes, const Shape& out,
                          int64_t out_size);
void run_elements(const ElementLoop& loop, Pool& pool, const void* const* in, void* out);

}  // namespace dtg::cpu
