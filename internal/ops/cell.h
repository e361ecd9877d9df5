// What the recurrent cells share: float copies of 16-bit operands in the workspace, rows set side by side, and products whose plans
// are made in prepare. Parts of a kernel's argument block; read-only once prepared.
#pragma once

#include <algorithm>
#include <type_traits>

#include "device/cpu/elementwise.h"
#include "device/cpu/gemm.h"
#include "exec/kernel.h"
#include "tensor/buffer.h"

namespace dtg::ops {

// Hands out parts of the workspace: the same calls in prepare, where only the size counts, and in run.
class Parts {
 public:
  Parts() = default;
  explicit Parts(char* memory) : memory_(memory) {}
  float* floats(int64_t count) { return reinterpret_cast<float*>(bytes(Bytes::of(count, 4))); }
  char* bytes(Bytes count) {
    char* at = memory_ ? memory_ + used_.value() : nullptr;
    used_ = used_ + count.aligned(kBlockAlign);
    return at;
  }
  Bytes used() const { return used_; }

 private:
  char* memory_ = nullptr;
  Bytes used_;
};

// A product C = op(A) op(B) with its plan.
struct Product {
  cpu::GemmPlan plan;
  void set(int64_t m, int64_t n, int64_t k, bool turn_a, bool turn_b) { plan = cpu::gemm_plan(m, n, k, turn_a, turn_b); }
  Bytes bytes() const { return plan.workspace(); }
  void run(Pool& pool, const float* a, const float* b, float* c, char* workspace) const {
    cpu::gemm_run(plan, pool, a, b, nullptr, false, c, workspace);
  }
};

// Input i as floats: where it lies, or widened into the workspace.
template <class T>
const float* float_input(RunContext& c, int i, int64_t count, float* buffer) {
  if constexpr (std::is_same_v<T, float>) {
    return c.in<float>(i);
  } else {
    for (int64_t k = 0; k < count; ++k) buffer[k] = static_cast<float>(c.in<T>(i)[k]);
    return buffer;
  }
}

// Where output i is to be made as floats, and what brings it home.
template <class T>
float* float_output(RunContext& c, int i, float* buffer) {
  if constexpr (std::is_same_v<T, float>) return c.out<float>(i);
  else return buffer;
}
template <class T>
void finish_output(RunContext& c, int i, int64_t count, const float* buffer) {
  if constexpr (!std::is_same_v<T, float>) {
    for (int64_t k = 0; k < count; ++k) c.out<T>(i)[k] = static_cast<T>(buffer[k]);
  }
}

// out[r] = [a[r], b[r]]
inline void side_by_side(const float* a, int64_t a_columns, const float* b, int64_t b_columns, int64_t rows, float* out) {
  for (int64_t r = 0; r < rows; ++r) {
    std::copy(a + r * a_columns, a + (r + 1) * a_columns, out + r * (a_columns + b_columns));
    std::copy(b + r * b_columns, b + (r + 1) * b_columns, out + r * (a_columns + b_columns) + a_columns);
  }
}

// The two curves that gates bend by, found when a plan is made.
struct Curves {
  cpu::BlockFn sigmoid = cpu::find_block(cpu::ElementFn::sigmoid, DType::f32)->block;
  cpu::BlockFn tanh = cpu::find_block(cpu::ElementFn::tanh, DType::f32)->block;
};

inline void apply(cpu::BlockFn fn, float* x, int64_t n) {
  const void* in[] = {x};
  fn(in, x, n);
}

// fn(first row, last row), in shards that depend on the sizes alone.
template <class Fn>
void for_row_shards(Pool& pool, int64_t rows, int64_t columns, Fn fn) {
  const int64_t shards = std::clamp<int64_t>(rows * columns / 8192, 1, std::clamp<int64_t>(rows, 1, 16));
  pool.parallel_for(shards, [&](int64_t shard) { fn(rows * shard / shards, rows * (shard + 1) / shards); });
}

}  // namespace dtg::ops
