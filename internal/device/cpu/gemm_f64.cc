// The product of gemm_f64.h, once per instruction set. A stretch of a panel of B is copied so that its steps lie one behind the other,
// and every block of rows passes over it; A is read in place, one value for a vector.
#include "device/cpu/gemm_f64.h"

#include <algorithm>

#include "base/interrupt.h"
#include "device/cpu/gemm.h"
#include "device/cpu/targets.h"

// Not SSE4: what machines before AVX2 gain by it is not worth the size.
#define HWY_DISABLED_TARGETS (DTG_SCALABLE_TARGETS | HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/gemm_f64.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// Loops over registers must be unrolled whole, or the registers become memory.
#undef DTG_UNROLL
#if defined(__clang__)
#define DTG_UNROLL _Pragma("clang loop unroll(full)")
#else
#define DTG_UNROLL _Pragma("GCC unroll 16")
#endif

HWY_BEFORE_NAMESPACE();
namespace dtg::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<double, 8>;
using V = hn::Vec<D>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));
constexpr int64_t kWidth = 2 * kLanes;  // of a panel
constexpr int64_t kDepth = 256;         // steps of a stretch: the panel stays in the first-level cache
constexpr int kRows = 6;

struct Operands {
  const double* a;
  int64_t row, step;  // of A: from row to row, from step to step
  double* c;
  int64_t columns, c_stride;
  int64_t depth;
  bool more;  // added to what is there
};

// R rows of one panel.
template <int R>
void block(const Operands& o, const double* HWY_RESTRICT panel) {
  const D d;
  V sums[R][2];
  DTG_UNROLL
  for (int r = 0; r < R; ++r) sums[r][0] = sums[r][1] = hn::Zero(d);
  const double* a = o.a;
  for (int64_t p = 0; p < o.depth; ++p, a += o.step, panel += kWidth) {
    const V left = hn::Load(d, panel), right = hn::Load(d, panel + kLanes);
    DTG_UNROLL
    for (int r = 0; r < R; ++r) {
      const V value = hn::Set(d, a[r * o.row]);
      sums[r][0] = hn::MulAdd(value, left, sums[r][0]);
      sums[r][1] = hn::MulAdd(value, right, sums[r][1]);
    }
  }
  HWY_ALIGN double part[kWidth];
  for (int r = 0; r < R; ++r) {
    hn::Store(sums[r][0], d, part);
    hn::Store(sums[r][1], d, part + kLanes);
    double* const to = o.c + r * o.c_stride;
    for (int64_t j = 0; j < o.columns; ++j) to[j] = o.more ? to[j] + part[j] : part[j];
  }
}

using BlockFn = void (*)(const Operands&, const double*);
constexpr BlockFn kBlocks[kRows] = {block<1>, block<2>, block<3>, block<4>, block<5>, block<6>};

// panel[p * kWidth + j] = b[p * step + j * column], zeros beyond the columns.
void pack(const double* b, int64_t step, int64_t column, int64_t depth, int64_t columns, double* panel) {
  for (int64_t p = 0; p < depth; ++p, b += step, panel += kWidth) {
    for (int64_t j = 0; j < columns; ++j) panel[j] = b[j * column];
    std::fill(panel + columns, panel + kWidth, 0.0);
  }
}

void product(const DoubleProduct& g, int64_t row_begin, int64_t row_end) {
  HWY_ALIGN double panel[kDepth * kWidth];
  Lookout lookout;
  const int64_t b_step = g.transpose_b ? 1 : g.n, b_column = g.transpose_b ? g.k : 1;
  int64_t from = 0;
  do {  // once even for k = 0, which stores zeros
    Operands o = {.row = g.transpose_a ? 1 : g.k,
                  .step = g.transpose_a ? g.m : 1,
                  .c_stride = g.n,
                  .depth = std::min(kDepth, g.k - from),
                  .more = from > 0};
    for (int64_t column = 0; column < g.n; column += kWidth) {
      o.columns = std::min(kWidth, g.n - column);
      pack(g.b + from * b_step + column * b_column, b_step, b_column, o.depth, o.columns, panel);
      for (int64_t row = row_begin; row < row_end;) {
        const int64_t rows = std::min<int64_t>(kRows, row_end - row);
        o.a = g.a + row * o.row + from * o.step;
        o.c = g.c + row * g.n + column;
        kBlocks[rows - 1](o, panel);
        lookout.after(rows * o.depth);
        row += rows;
      }
    }
    from += kDepth;
  } while (from < g.k);
}

}  // namespace HWY_NAMESPACE
}  // namespace dtg::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dtg::cpu {

HWY_EXPORT(product);

void gemm_f64(const DoubleProduct& g, int64_t row_begin, int64_t row_end) {
  // Too few rows to pay for a copy of B.
  if (g.m < 4 && !g.transpose_b) {
    return plain_gemm<double, double>(g.m, g.n, g.k, g.transpose_a, false, g.a, g.b, g.c, row_begin, row_end);
  }
  HWY_DYNAMIC_DISPATCH(product)(g, row_begin, row_end);
}

}  // namespace dtg::cpu
#endif
