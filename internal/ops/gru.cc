// GRUBlockCell and its gradient: one step of a gated recurrent unit. Registered once by the runtime; kernels run on any thread.
#include <algorithm>

#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/cell.h"

namespace dtg::ops {
namespace {

// ---- shapes ------------------------------------------------------------------------------------------------

struct Sizes {
  int64_t batch = -1, in = -1, cell = -1;
};

Status same(InferContext& c, int64_t& known, int64_t dim, int input) {
  if (dim < 0) return {};
  if (known < 0) known = dim;
  if (known == dim) return {};
  return c.error("input %d, %s, has a dimension of %lld, where %lld fits the others", input,
                 c.node().op->inputs()[static_cast<size_t>(input)].name.c_str(), static_cast<long long>(dim),
                 static_cast<long long>(known));
}

int64_t dim_of(InferContext& c, int input, int axis) { return c.input(input).has_rank() ? c.input(input).dim(axis) : -1; }

// x, h_prev, w_ru, w_c, b_ru, b_c; and states from input 6 on.
Result<Sizes> checked(InferContext& c) {
  Sizes k;
  for (int i = 0; i < 4; ++i) DTG_TRY(c.require_rank(i, 2));
  for (int i = 4; i < 6; ++i) DTG_TRY(c.require_rank(i, 1));
  k.batch = dim_of(c, 0, 0), k.in = dim_of(c, 0, 1);
  DTG_TRY(same(c, k.batch, dim_of(c, 1, 0), 1));
  DTG_TRY(same(c, k.cell, dim_of(c, 1, 1), 1));
  DTG_TRY(same(c, k.cell, dim_of(c, 3, 1), 3));
  DTG_TRY(same(c, k.cell, dim_of(c, 5, 0), 5));
  int64_t gates = k.cell < 0 ? -1 : 2 * k.cell, rows = k.cell < 0 || k.in < 0 ? -1 : k.in + k.cell;
  DTG_TRY(same(c, gates, dim_of(c, 2, 1), 2));
  DTG_TRY(same(c, gates, dim_of(c, 4, 0), 4));
  DTG_TRY(same(c, rows, dim_of(c, 2, 0), 2));
  DTG_TRY(same(c, rows, dim_of(c, 3, 0), 3));
  for (int i = 6; i < c.num_inputs(); ++i) {
    DTG_TRY(c.require_rank(i, 2));
    DTG_TRY(same(c, k.batch, dim_of(c, i, 0), i));
    DTG_TRY(same(c, k.cell, dim_of(c, i, 1), i));
  }
  return k;
}

PartialShape matrix(int64_t rows, int64_t columns) {
  PartialShape shape = PartialShape::of_rank(2);
  shape.set_dim(0, rows);
  shape.set_dim(1, columns);
  return shape;
}

Status gru_shape(InferContext& c) {
  DTG_ASSIGN(const Sizes k, checked(c));
  for (int i = 0; i < 4; ++i) c.output(i, matrix(k.batch, k.cell));
  return {};
}

Status gru_grad_shape(InferContext& c) {
  DTG_ASSIGN(const Sizes k, checked(c));
  c.output(0, matrix(k.batch, k.in));
  for (int i = 1; i < 3; ++i) c.output(i, matrix(k.batch, k.cell));
  c.output(3, matrix(k.batch, k.cell < 0 ? -1 : 2 * k.cell));
  return {};
}

// ---- gradient ----------------------------------------------------------------------------------------------

// Through h; the weights' gradients are products of what went in and the gradients of the gates.
Status gru_grad(GradContext& c) {
  for (int i = 0; i < 3; ++i) {
    if (c.has_dy(i)) return unimplemented("gradient of GRUBlockCell: only through h, not through output %d", i);
  }
  Build& b = c.b();
  std::vector<Value> inputs;
  for (int i = 0; i < 6; ++i) inputs.push_back(c.input(i));
  for (int i = 0; i < 3; ++i) inputs.push_back(c.output(i));
  inputs.push_back(c.dy(3));
  const Value dx = b.op("GRUBlockCellGrad", inputs);
  if (!b.ok()) return {};
  const Value dc = dx.sibling(2), dru = dx.sibling(3), zero = b.ints({0});
  const auto beside_x = [&](Value v) { return b.op("ConcatV2", {c.input(0), v, b.integer(1)}); };
  c.dx(0, dx);
  c.dx(1, dx.sibling(1));
  c.dx(2, b.op("MatMul", {beside_x(c.input(1)), dru}, {{"transpose_a", true}}));
  c.dx(3, b.op("MatMul", {beside_x(b.mul(c.input(1), c.output(0))), dc}, {{"transpose_a", true}}));
  c.dx(4, b.sum(dru, zero));
  c.dx(5, b.sum(dc, zero));
  return {};
}

// ---- kernels -----------------------------------------------------------------------------------------------

struct GruArgs {
  int64_t batch = 0, in = 0, cell = 0;
  Curves curves;
  Product gates, fresh;  // from [x, h'] to r and u, and from [x, r h'] to c; or their turns in the gradient
};

struct GruMemory {
  float *rows, *gates, *both;
  char* gemm;
  GruMemory(const GruArgs& a, Parts& parts) {
    rows = parts.floats(a.batch * (a.in + a.cell));
    gates = parts.floats(a.batch * 2 * a.cell);
    both = parts.floats(a.batch * (a.in + a.cell));
    gemm = parts.bytes(std::max(a.gates.bytes(), a.fresh.bytes()));
  }
};

// r = s(..), u = s(..), c = tanh(..), h = (1 - u) c + u h'
Status gru_run(RunContext& c) {
  const auto& a = c.args<GruArgs>();
  Parts parts(c.workspace());
  const GruMemory m(a, parts);
  const float *x = c.in<float>(0), *before = c.in<float>(1), *bias = c.in<float>(4), *fresh_bias = c.in<float>(5);
  float *r = c.out<float>(0), *u = c.out<float>(1), *fresh = c.out<float>(2), *h = c.out<float>(3);
  if (a.batch * a.cell == 0) return {};
  side_by_side(x, a.in, before, a.cell, a.batch, m.rows);
  a.gates.run(c.pool(), m.rows, c.in<float>(2), m.gates, m.gemm);
  for_row_shards(c.pool(), a.batch, 2 * a.cell, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* gates = m.gates + row * 2 * a.cell;
      const int64_t at = row * a.cell;
      for (int64_t k = 0; k < a.cell; ++k) r[at + k] = gates[k] + bias[k], u[at + k] = gates[a.cell + k] + bias[a.cell + k];
      apply(a.curves.sigmoid, r + at, a.cell);
      apply(a.curves.sigmoid, u + at, a.cell);
      float* right = m.rows + row * (a.in + a.cell) + a.in;
      for (int64_t k = 0; k < a.cell; ++k) right[k] = before[at + k] * r[at + k];
    }
  });
  a.fresh.run(c.pool(), m.rows, c.in<float>(3), fresh, m.gemm);
  for_row_shards(c.pool(), a.batch, a.cell, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t at = row * a.cell;
      for (int64_t k = 0; k < a.cell; ++k) fresh[at + k] += fresh_bias[k];
      apply(a.curves.tanh, fresh + at, a.cell);
      for (int64_t k = 0; k < a.cell; ++k) h[at + k] = (1 - u[at + k]) * fresh[at + k] + u[at + k] * before[at + k];
    }
  });
  return {};
}

// dc = dh (1 - u) (1 - c^2), du = dh (h' - c) u (1 - u), [dx, d(r h')] = dc wc^T, dr = d(r h') h' r (1 - r), and
// [dx, dh'] += [dr, du] wru^T, dh' += d(r h') r + dh u.
Status gru_back_run(RunContext& c) {
  const auto& a = c.args<GruArgs>();
  Parts parts(c.workspace());
  const GruMemory m(a, parts);
  const float *before = c.in<float>(1), *r = c.in<float>(6), *u = c.in<float>(7), *fresh = c.in<float>(8), *dh = c.in<float>(9);
  float *dx = c.out<float>(0), *dbefore = c.out<float>(1), *dc = c.out<float>(2), *dru = c.out<float>(3);
  const int64_t width = a.in + a.cell;
  if (a.batch * a.cell == 0) {
    std::fill(dx, dx + a.batch * a.in, 0.0f);
    return {};
  }
  for (int64_t i = 0; i < a.batch * a.cell; ++i) dc[i] = dh[i] * (1 - u[i]) * (1 - fresh[i] * fresh[i]);
  a.fresh.run(c.pool(), dc, c.in<float>(3), m.rows, m.gemm);
  for (int64_t row = 0; row < a.batch; ++row) {
    for (int64_t k = 0; k < a.cell; ++k) {
      const int64_t i = row * a.cell + k;
      dru[row * 2 * a.cell + k] = m.rows[row * width + a.in + k] * before[i] * r[i] * (1 - r[i]);
      dru[row * 2 * a.cell + a.cell + k] = dh[i] * (before[i] - fresh[i]) * u[i] * (1 - u[i]);
    }
  }
  a.gates.run(c.pool(), dru, c.in<float>(2), m.both, m.gemm);
  for (int64_t row = 0; row < a.batch; ++row) {
    for (int64_t k = 0; k < a.in; ++k) dx[row * a.in + k] = m.both[row * width + k] + m.rows[row * width + k];
    for (int64_t k = 0; k < a.cell; ++k) {
      const int64_t i = row * a.cell + k, at = row * width + a.in + k;
      dbefore[i] = m.both[at] + m.rows[at] * r[i] + dh[i] * u[i];
    }
  }
  return {};
}

template <bool kBack>
Status gru_prepare(PrepareContext& c) {
  auto& a = *c.args<GruArgs>();
  a.batch = c.input(0).shape.dim(0), a.in = c.input(0).shape.dim(1), a.cell = c.input(1).shape.dim(1);
  const int64_t rows = a.in + a.cell;
  a.gates.set(a.batch, kBack ? rows : 2 * a.cell, kBack ? 2 * a.cell : rows, false, kBack);
  a.fresh.set(a.batch, kBack ? rows : a.cell, kBack ? a.cell : rows, false, kBack);
  Parts parts;
  const GruMemory m(a, parts);
  c.workspace(parts.used());
  return c.sync(kBack ? gru_back_run : gru_run);
}

OpDef&& gru_def(OpDef&& def) {
  for (const char* name : {"x: T", "h_prev: T", "w_ru: T", "w_c: T"}) std::move(def).input(name, {.rank = 2});
  return std::move(def).input("b_ru: T", {.rank = 1}).input("b_c: T", {.rank = 1}).attr("T: {float}");
}

}  // namespace

void register_gru(OpTable& ops, KernelTable& kernels) {
  OpDef forward = gru_def(OpDef::make("GRUBlockCell"));
  for (const char* name : {"r: T", "u: T", "c: T", "h: T"}) std::move(forward).output(name);
  ops.add(std::move(forward).shape(gru_shape).gradient(gru_grad).doc("One step of a gated recurrent unit: gates, new state and output."));
  OpDef back = gru_def(OpDef::make("GRUBlockCellGrad"));
  for (const char* name : {"r: T", "u: T", "c: T", "d_h: T"}) std::move(back).input(name, {.rank = 2});
  for (const char* name : {"d_x: T", "d_h_prev: T", "d_c_bar: T", "d_r_bar_u_bar: T"}) std::move(back).output(name);
  ops.add(std::move(back)
              .shape(gru_grad_shape)
              .gradient(nullptr)
              .doc("Gradients of GRUBlockCell: by its input, the state before and the gates."));
  kernels.add({.op = "GRUBlockCell", .types = {{"T", DTypeSet{DType::f32}}}, .prepare = gru_prepare<false>});
  kernels.add({.op = "GRUBlockCellGrad", .types = {{"T", DTypeSet{DType::f32}}}, .prepare = gru_prepare<true>});
}

void register_rnn(OpTable& ops, KernelTable& kernels) {
  register_lstm(ops, kernels);
  register_gru(ops, kernels);
}

}  // namespace dtg::ops
