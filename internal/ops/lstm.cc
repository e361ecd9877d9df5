// LSTMBlockCell, BlockLSTM, BlockLSTMV2 and their gradients: one step of a long short-term memory, or all steps of a sequence. The
// arithmetic is in float; 16-bit operands are widened. Registered once by the runtime; kernels run on any thread.
#include <algorithm>

#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/lstm_step.h"

namespace dtg::ops {
namespace {

// ---- shapes ------------------------------------------------------------------------------------------------

// Inputs named by position: what must agree with what. `x` is [batch, in], or [steps, batch, in].
struct Checked {
  int64_t steps = -1, batch = -1, in = -1, cell = -1;
};

Status same(InferContext& c, int64_t& known, int64_t dim, int input, const char* what) {
  if (dim < 0) return {};
  if (known < 0) known = dim;
  if (known == dim) return {};
  return c.error("input %d, %s, says %s is %lld, but it is %lld elsewhere", input,
                 c.node().op->inputs()[static_cast<size_t>(input)].name.c_str(), what, static_cast<long long>(dim),
                 static_cast<long long>(known));
}

int64_t dim_of(InferContext& c, int input, int axis) { return c.input(input).has_rank() ? c.input(input).dim(axis) : -1; }

// x at `x`, then cs_prev, h_prev, w, three peepholes and the bias.
Result<Checked> checked_inputs(InferContext& c, int x, bool sequence) {
  Checked k;
  const int rank = sequence ? 3 : 2;
  DTG_TRY(c.require_rank(x, rank));
  if (sequence) k.steps = dim_of(c, x, 0);
  k.batch = dim_of(c, x, rank - 2), k.in = dim_of(c, x, rank - 1);
  for (int i = x + 1; i <= x + 2; ++i) {
    DTG_TRY(c.require_rank(i, 2));
    DTG_TRY(same(c, k.batch, dim_of(c, i, 0), i, "the batch"));
    DTG_TRY(same(c, k.cell, dim_of(c, i, 1), i, "the size of the cell"));
  }
  DTG_TRY(c.require_rank(x + 3, 2));
  for (int i = x + 4; i <= x + 6; ++i) {
    DTG_TRY(c.require_rank(i, 1));
    DTG_TRY(same(c, k.cell, dim_of(c, i, 0), i, "the size of the cell"));
  }
  DTG_TRY(c.require_rank(x + 7, 1));
  if (k.cell < 0) return k;
  int64_t gates = 4 * k.cell, rows = k.in < 0 ? -1 : k.in + k.cell;
  DTG_TRY(same(c, rows, dim_of(c, x + 3, 0), x + 3, "the sum of input and cell"));
  DTG_TRY(same(c, gates, dim_of(c, x + 3, 1), x + 3, "the number of gates"));
  DTG_TRY(same(c, gates, dim_of(c, x + 7, 0), x + 7, "the number of gates"));
  return k;
}

PartialShape made(std::initializer_list<int64_t> dims) { return PartialShape::make({dims.begin(), dims.size()}).take(); }

// Inputs [from, to) are states of the cell, for every step of a sequence.
Status check_states(InferContext& c, Checked& k, int from, int to, bool sequence) {
  for (int i = from; i < to; ++i) {
    DTG_TRY(c.require_rank(i, sequence ? 3 : 2));
    if (sequence) DTG_TRY(same(c, k.steps, dim_of(c, i, 0), i, "the number of steps"));
    DTG_TRY(same(c, k.batch, dim_of(c, i, sequence ? 1 : 0), i, "the batch"));
    DTG_TRY(same(c, k.cell, dim_of(c, i, sequence ? 2 : 1), i, "the size of the cell"));
  }
  return {};
}

Status cell_shape(InferContext& c) {
  DTG_ASSIGN(const Checked k, checked_inputs(c, 0, false));
  for (int i = 0; i < kOutputs; ++i) c.output(i, made({k.batch, k.cell}));
  return {};
}

Status cell_grad_shape(InferContext& c) {
  DTG_ASSIGN(Checked k, checked_inputs(c, 0, false));
  DTG_TRY(check_states(c, k, 8, 16, false));
  c.output(0, made({k.batch, k.cell}));
  c.output(1, made({k.batch, k.cell < 0 ? -1 : 4 * k.cell}));
  for (int i = 2; i < 5; ++i) c.output(i, made({k.cell}));
  return {};
}

Status sequence_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 0));
  DTG_ASSIGN(const Checked k, checked_inputs(c, 1, true));
  for (int i = 0; i < kOutputs; ++i) c.output(i, made({k.steps, k.batch, k.cell}));
  return {};
}

Status sequence_grad_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 0));
  DTG_ASSIGN(Checked k, checked_inputs(c, 1, true));
  DTG_TRY(check_states(c, k, 9, 18, true));
  c.output(0, made({k.steps, k.batch, k.in}));
  for (int i = 1; i < 3; ++i) c.output(i, made({k.batch, k.cell}));
  c.output(3, made({k.cell < 0 || k.in < 0 ? -1 : k.in + k.cell, k.cell < 0 ? -1 : 4 * k.cell}));
  for (int i = 4; i < 7; ++i) c.output(i, made({k.cell}));
  c.output(7, made({k.cell < 0 ? -1 : 4 * k.cell}));
  return {};
}

// ---- gradients ---------------------------------------------------------------------------------------------

// Through the state and the output of the cell; what the gates are is nobody's loss.
Status cell_grad(GradContext& c) {
  for (int i : {kI, kF, kO, kCi, kCo}) {
    if (c.has_dy(i)) return unimplemented("gradient of LSTMBlockCell: only through cs and h, not through output %d", i);
  }
  Build& b = c.b();
  std::vector<Value> inputs;
  for (int i = 0; i < 8; ++i) inputs.push_back(c.input(i));
  for (int i = 0; i < 6; ++i) inputs.push_back(c.output(i));
  inputs.push_back(c.dy(kCs));
  inputs.push_back(c.dy(kH));
  const Attr attrs[] = {{"use_peephole", c.attr<bool>("use_peephole")}};
  const Value grad = b.op("LSTMBlockCellGrad", inputs, attrs);
  if (!b.ok()) return {};
  const Value gates = grad.sibling(1), one = b.ints({1}), zero = b.ints({0});
  const Value both = b.op("MatMul", {gates, c.input(3)}, {{"transpose_b", true}});  // [batch, in + cell]
  const Value in = b.op("StridedSlice", {b.shape(c.input(0)), one, b.ints({2}), one});
  const Value split = b.op("ConcatV2", {zero, in, b.integer(0)});
  const Value rest = b.ints({-1, -1}), left = b.op("ConcatV2", {b.ints({-1}), in, b.integer(0)});
  c.dx(0, b.op("Slice", {both, b.ints({0, 0}), left}));
  c.dx(1, grad);
  c.dx(2, b.op("Slice", {both, split, rest}));
  const Value rows = b.op("ConcatV2", {c.input(0), c.input(2), b.integer(1)});
  c.dx(3, b.op("MatMul", {rows, gates}, {{"transpose_a", true}}));
  for (int i = 0; i < 3; ++i) c.dx(4 + i, grad.sibling(static_cast<uint32_t>(2 + i)));
  c.dx(7, b.sum(gates, zero));
  return {};
}

// As in TensorFlow, gradients of the gates are passed over.
Status sequence_grad(GradContext& c) {
  Build& b = c.b();
  std::vector<Value> inputs;
  for (int i = 0; i < 9; ++i) inputs.push_back(c.input(i));
  for (int i = 0; i < kOutputs; ++i) inputs.push_back(c.output(i));
  inputs.push_back(c.dy(kCs));
  inputs.push_back(c.dy(kH));
  const Attr attrs[] = {{"use_peephole", c.attr<bool>("use_peephole")}};
  const Value grad = b.op(c.node().op->name() == "BlockLSTM" ? "BlockLSTMGrad" : "BlockLSTMGradV2", inputs, attrs);
  if (!b.ok()) return {};
  for (int i = 0; i < 8; ++i) c.dx(1 + i, grad.sibling(static_cast<uint32_t>(i)));
  return {};
}

// ---- kernels -----------------------------------------------------------------------------------------------

struct LstmArgs {
  Cell cell;
  Product products[3];
  bool widens = false;
};

// The operands from x on, as floats.
template <class T>
struct Operands {
  const float *x, *cs_prev, *h_prev, *w, *bias;
  Peepholes peep;
  Operands(RunContext* c, const Cell& d, int first, Parts& parts) {
    const int64_t counts[] = {
        d.steps * d.batch * d.in, d.state(), d.state(), (d.in + d.cell) * d.gates(), d.cell, d.cell, d.cell, d.gates()};
    const float** const places[] = {&x, &cs_prev, &h_prev, &w, &peep.i, &peep.f, &peep.o, &bias};
    for (int i = 0; i < 8; ++i) {
      float* buffer = std::is_same_v<T, float> ? nullptr : parts.floats(counts[i]);
      if (c) *places[i] = float_input<T>(*c, first + i, counts[i], buffer);
    }
  }
};

// Steps forward: gates of all steps from x at once, then step by step from h.
template <class T>
struct ForwardMemory {
  Operands<T> in;
  float *outs[kOutputs], *gates, *from_h;
  char* gemm;
  ForwardMemory(RunContext* c, const LstmArgs& a, int first, Parts& parts) : in(c, a.cell, first, parts) {
    const Cell& d = a.cell;
    for (int i = 0; i < kOutputs; ++i) {
      float* buffer = std::is_same_v<T, float> ? nullptr : parts.floats(d.steps * d.state());
      outs[i] = c ? float_output<T>(*c, i, buffer) : nullptr;
    }
    gates = parts.floats(d.steps * d.batch * d.gates());
    from_h = parts.floats(d.batch * d.gates());
    gemm = parts.bytes(std::max(a.products[0].bytes(), a.products[1].bytes()));
  }
};

template <class T>
void run_forward(RunContext& c, const LstmArgs& a, int first, int64_t steps) {
  Parts parts(c.workspace());
  const ForwardMemory<T> m(&c, a, first, parts);
  const Cell& d = a.cell;
  const int64_t state = d.state();
  if (d.steps * state > 0) a.products[0].run(c.pool(), m.in.x, m.in.w, m.gates, m.gemm);
  for (int64_t t = 0; t < steps && state > 0; ++t) {
    float* gates = m.gates + t * d.batch * d.gates();
    a.products[1].run(c.pool(), t == 0 ? m.in.h_prev : m.outs[kH] + (t - 1) * state, m.in.w + d.in * d.gates(), m.from_h, m.gemm);
    float* outs[kOutputs];
    for (int i = 0; i < kOutputs; ++i) outs[i] = m.outs[i] + t * state;
    const StepIn in{gates, m.in.bias, t == 0 ? m.in.cs_prev : m.outs[kCs] + (t - 1) * state, m.in.peep};
    for_row_shards(c.pool(), d.batch, d.gates(), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin * d.gates(); k < end * d.gates(); ++k) gates[k] += m.from_h[k];
      step_rows(d, in, outs, begin, end);
    });
  }
  for (int i = 0; i < kOutputs; ++i) {
    std::fill(m.outs[i] + steps * state, m.outs[i] + d.steps * state, 0.0f);
    finish_output<T>(c, i, d.steps * state, m.outs[i]);
  }
}

// How many steps are taken; the rest are zeros.
Status read_steps(RunContext& c, const Cell& d, int64_t* steps) {
  *steps = *c.in<int64_t>(0);
  if (*steps >= 0 && *steps <= d.steps) return {};
  return c.error("seq_len_max is %lld, not in [0, %lld]", static_cast<long long>(*steps), static_cast<long long>(d.steps));
}

template <class T>
Status cell_run(RunContext& c) {
  run_forward<T>(c, c.args<LstmArgs>(), 0, 1);
  return {};
}

template <class T>
Status sequence_run(RunContext& c) {
  int64_t steps = 0;
  DTG_TRY(read_steps(c, c.args<LstmArgs>().cell, &steps));
  run_forward<T>(c, c.args<LstmArgs>(), 1, steps);
  return {};
}

// The states that a gradient looks at, as floats: i, cs, f, o, ci, co, (h,) cs_grad, h_grad.
template <class T>
struct States {
  const float* at[9];
  States(RunContext* c, const Cell& d, int first, int count, Parts& parts) {
    for (int i = 0; i < count; ++i) {
      float* buffer = std::is_same_v<T, float> ? nullptr : parts.floats(d.steps * d.state());
      if (c) at[i] = float_input<T>(*c, first + i, d.steps * d.state(), buffer);
    }
  }
};

template <class T>
struct CellBackMemory {
  Operands<T> in;
  States<T> states;
  float* outs[5];
  CellBackMemory(RunContext* c, const Cell& d, Parts& parts) : in(c, d, 0, parts), states(c, d, 8, 8, parts) {
    const int64_t counts[] = {d.state(), d.batch * d.gates(), d.cell, d.cell, d.cell};
    for (int i = 0; i < 5; ++i) {
      float* buffer = std::is_same_v<T, float> ? nullptr : parts.floats(counts[i]);
      outs[i] = c ? float_output<T>(*c, i, buffer) : nullptr;
    }
  }
};

template <class T>
Status cell_back_run(RunContext& c) {
  const Cell& d = c.args<LstmArgs>().cell;
  Parts parts(c.workspace());
  const CellBackMemory<T> m(&c, d, parts);
  const auto& s = m.states.at;
  const BackIn in{s[0], s[1], s[2], s[3], s[4], s[5], m.in.cs_prev, s[6], s[7], m.in.peep};
  for_row_shards(c.pool(), d.batch, d.gates(), [&](int64_t begin, int64_t end) { back_rows(d, in, m.outs[1], m.outs[0], begin, end); });
  for (int i = 2; i < 5; ++i) std::fill(m.outs[i], m.outs[i] + d.cell, 0.0f);
  add_peepholes(d, in, m.outs[1], m.outs[2], m.outs[3], m.outs[4]);
  const int64_t counts[] = {d.state(), d.batch * d.gates(), d.cell, d.cell, d.cell};
  for (int i = 0; i < 5; ++i) finish_output<T>(c, i, counts[i], m.outs[i]);
  return {};
}

// All steps back. Gates' gradients of all steps are kept, so that those of x and w are one product each.
template <class T>
struct BackMemory {
  Operands<T> in;
  States<T> states;
  float *outs[8], *gates, *rows, *dcs, *dh, *carried;
  char* gemm;
  BackMemory(RunContext* c, const LstmArgs& a, Parts& parts) : in(c, a.cell, 1, parts), states(c, a.cell, 9, 9, parts) {
    const Cell& d = a.cell;
    for (int i = 0; i < 8; ++i) {
      float* buffer = std::is_same_v<T, float> ? nullptr : parts.floats(count(d, i));
      outs[i] = c ? float_output<T>(*c, i, buffer) : nullptr;
    }
    gates = parts.floats(d.steps * d.batch * d.gates());
    rows = parts.floats(d.steps * d.batch * (d.in + d.cell));
    dcs = parts.floats(d.state()), dh = parts.floats(d.state()), carried = parts.floats(d.state());
    gemm = parts.bytes(std::max({a.products[0].bytes(), a.products[1].bytes(), a.products[2].bytes()}));
  }
  static int64_t count(const Cell& d, int output) {
    const int64_t counts[] = {
        d.steps * d.batch * d.in, d.state(), d.state(), (d.in + d.cell) * d.gates(), d.cell, d.cell, d.cell, d.gates()};
    return counts[output];
  }
};

enum Grad : int { kX, kCsPrev, kHPrev, kW, kWci, kWcf, kWco, kB };

// One step back: from outs[kCsPrev] and outs[kHPrev], which hold what came from the step after, to the same of the step before.
template <class T>
void step_back(RunContext& c, const LstmArgs& a, const BackMemory<T>& m, int64_t t) {
  const Cell& d = a.cell;
  const int64_t state = d.state(), at = t * state;
  const auto& s = m.states.at;
  const float* before = t == 0 ? m.in.cs_prev : s[1] + at - state;
  for (int64_t k = 0; k < state; ++k) {
    m.dcs[k] = s[7][at + k] + m.outs[kCsPrev][k];
    m.dh[k] = s[8][at + k] + m.outs[kHPrev][k];
  }
  const BackIn in{s[0] + at, s[1] + at, s[2] + at, s[3] + at, s[4] + at, s[5] + at, before, m.dcs, m.dh, m.in.peep};
  float* gates = m.gates + t * d.batch * d.gates();
  for_row_shards(c.pool(), d.batch, d.gates(), [&](int64_t begin, int64_t end) { back_rows(d, in, gates, m.outs[kCsPrev], begin, end); });
  add_peepholes(d, in, gates, m.outs[kWci], m.outs[kWcf], m.outs[kWco]);
  a.products[1].run(c.pool(), gates, m.in.w + d.in * d.gates(), m.outs[kHPrev], m.gemm);
  const float* h_before = t == 0 ? m.in.h_prev : s[6] + at - state;
  side_by_side(m.in.x + t * d.batch * d.in, d.in, h_before, d.cell, d.batch, m.rows + t * d.batch * (d.in + d.cell));
}

template <class T>
Status sequence_back_run(RunContext& c) {
  const auto& a = c.args<LstmArgs>();
  const Cell& d = a.cell;
  int64_t steps = 0;
  DTG_TRY(read_steps(c, d, &steps));
  Parts parts(c.workspace());
  const BackMemory<T> m(&c, a, parts);
  for (int i = 0; i < 8; ++i) std::fill(m.outs[i], m.outs[i] + BackMemory<T>::count(d, i), 0.0f);
  const int64_t rows = d.steps * d.batch;
  if (steps > 0 && d.state() > 0) {
    // Steps that were not taken count as rows of zeros.
    std::fill(m.gates + steps * d.batch * d.gates(), m.gates + rows * d.gates(), 0.0f);
    std::fill(m.rows + steps * d.batch * (d.in + d.cell), m.rows + rows * (d.in + d.cell), 0.0f);
    for (int64_t t = steps; t-- > 0;) step_back(c, a, m, t);
    if (d.in > 0) a.products[0].run(c.pool(), m.gates, m.in.w, m.outs[kX], m.gemm);
    a.products[2].run(c.pool(), m.rows, m.gates, m.outs[kW], m.gemm);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t k = 0; k < d.gates(); ++k) m.outs[kB][k] += m.gates[r * d.gates() + k];
    }
  }
  for (int i = 0; i < 8; ++i) finish_output<T>(c, i, BackMemory<T>::count(d, i), m.outs[i]);
  return {};
}

// Sizes from the inputs: x at `x`, the states after it.
void set_cell(PrepareContext& c, int x, bool second_layout) {
  Cell& d = c.args<LstmArgs>()->cell;
  const Shape& shape = c.input(x).shape;
  const int rank = shape.rank();
  d.steps = rank == 3 ? shape.dim(0) : 1;
  d.batch = shape.dim(rank - 2), d.in = shape.dim(rank - 1), d.cell = c.input(x + 1).shape.dim(1);
  if (second_layout) d.quarter = {0, 2, 1, 3};
  d.peephole = c.boolean("use_peephole");
  if (c.node().find_attr("cell_clip")) d.clip = static_cast<float>(c.attr<double>("cell_clip"));
  if (c.node().find_attr("forget_bias")) d.forget_bias = static_cast<float>(c.attr<double>("forget_bias"));
}

template <class T, int kFirst, bool kSecondLayout>
Status forward_prepare(PrepareContext& c) {
  set_cell(c, kFirst, kSecondLayout);
  auto& a = *c.args<LstmArgs>();
  const Cell& d = a.cell;
  a.products[0].set(d.steps * d.batch, d.gates(), d.in, false, false);
  a.products[1].set(d.batch, d.gates(), d.cell, false, false);
  Parts parts;
  const ForwardMemory<T> m(nullptr, a, kFirst, parts);
  c.workspace(parts.used());
  return c.sync(kFirst == 0 ? cell_run<T> : sequence_run<T>);
}

template <class T>
Status cell_back_prepare(PrepareContext& c) {
  set_cell(c, 0, false);
  Parts parts;
  const CellBackMemory<T> m(nullptr, c.args<LstmArgs>()->cell, parts);
  c.workspace(parts.used());
  return c.sync(cell_back_run<T>);
}

template <class T, bool kSecondLayout>
Status sequence_back_prepare(PrepareContext& c) {
  set_cell(c, 1, kSecondLayout);
  auto& a = *c.args<LstmArgs>();
  const Cell& d = a.cell;
  a.products[0].set(d.steps * d.batch, d.in, d.gates(), false, true);
  a.products[1].set(d.batch, d.cell, d.gates(), false, true);
  a.products[2].set(d.in + d.cell, d.gates(), d.steps * d.batch, true, false);
  Parts parts;
  const BackMemory<T> m(nullptr, a, parts);
  c.workspace(parts.used());
  return c.sync(sequence_back_run<T>);
}

// ---- definitions -------------------------------------------------------------------------------------------

OpDef&& operands(OpDef&& def, bool sequence) {
  if (sequence) std::move(def).input("seq_len_max: int64", {.rank = 0});
  std::move(def).input("x: T", {.rank = sequence ? 3 : 2}).input("cs_prev: T", {.rank = 2}).input("h_prev: T", {.rank = 2});
  std::move(def).input("w: T", {.rank = 2});
  for (const char* name : {"wci: T", "wcf: T", "wco: T", "b: T"}) std::move(def).input(name, {.rank = 1});
  return std::move(def);
}

OpDef&& states(OpDef&& def, std::initializer_list<const char*> names, int rank) {
  for (const char* name : names) std::move(def).input(name, {.rank = rank});
  return std::move(def);
}

OpDef&& made_by_step(OpDef&& def) {
  for (const char* name : {"i: T", "cs: T", "f: T", "o: T", "ci: T", "co: T", "h: T"}) std::move(def).output(name);
  return std::move(def);
}

constexpr const char* kType = "T: {half, float}";

void register_cell(OpTable& ops) {
  ops.add(made_by_step(operands(OpDef::make("LSTMBlockCell"), false))
              .attr("forget_bias: float = 1.0")
              .attr("cell_clip: float = 3.0")
              .attr("use_peephole: bool = false")
              .attr(kType)
              .shape(cell_shape)
              .gradient(cell_grad)
              .doc("One step of a long short-term memory: gates, state and output."));
  ops.add(states(operands(OpDef::make("LSTMBlockCellGrad"), false),
                 {"i: T", "cs: T", "f: T", "o: T", "ci: T", "co: T", "cs_grad: T", "h_grad: T"}, 2)
              .output("cs_prev_grad: T")
              .output("dicfo: T")
              .output("wci_grad: T")
              .output("wcf_grad: T")
              .output("wco_grad: T")
              .attr("use_peephole: bool")
              .attr(kType)
              .shape(cell_grad_shape)
              .gradient(nullptr)
              .doc("Gradients of LSTMBlockCell: by the state before, the gates and the peepholes."));
}

void register_sequence(OpTable& ops, bool second) {
  OpDef def = made_by_step(operands(OpDef::make(second ? "BlockLSTMV2" : "BlockLSTM"), true));
  if (!second) std::move(def).attr("forget_bias: float = 1.0");
  ops.add(std::move(def)
              .attr(second ? "cell_clip: float = 0.0" : "cell_clip: float = 3.0")
              .attr("use_peephole: bool = false")
              .attr(kType)
              .shape(sequence_shape)
              .gradient(sequence_grad)
              .doc("A long short-term memory over the steps of a sequence; its gradient is that through cs and h."));
  OpDef grad = states(operands(OpDef::make(second ? "BlockLSTMGradV2" : "BlockLSTMGrad"), true),
                      {"i: T", "cs: T", "f: T", "o: T", "ci: T", "co: T", "h: T", "cs_grad: T", "h_grad: T"}, 3);
  for (const char* name :
       {"x_grad: T", "cs_prev_grad: T", "h_prev_grad: T", "w_grad: T", "wci_grad: T", "wcf_grad: T", "wco_grad: T", "b_grad: T"}) {
    std::move(grad).output(name);
  }
  ops.add(std::move(grad)
              .attr("use_peephole: bool")
              .attr(kType)
              .shape(sequence_grad_shape)
              .gradient(nullptr)
              .doc("Gradients of a long short-term memory over a sequence."));
}

template <class T>
void add_kernels(KernelTable& kernels) {
  const KernelRow::TypeClause type{"T", DTypeSet{dtype_of<T>}};
  kernels.add({.op = "LSTMBlockCell", .types = {type}, .prepare = forward_prepare<T, 0, false>});
  kernels.add({.op = "BlockLSTM", .types = {type}, .prepare = forward_prepare<T, 1, false>});
  kernels.add({.op = "BlockLSTMV2", .types = {type}, .prepare = forward_prepare<T, 1, true>});
  kernels.add({.op = "LSTMBlockCellGrad", .types = {type}, .prepare = cell_back_prepare<T>});
  kernels.add({.op = "BlockLSTMGrad", .types = {type}, .prepare = sequence_back_prepare<T, false>});
  kernels.add({.op = "BlockLSTMGradV2", .types = {type}, .prepare = sequence_back_prepare<T, true>});
}

}  // namespace

void register_lstm(OpTable& ops, KernelTable& kernels) {
  register_cell(ops);
  register_sequence(ops, false);
  register_sequence(ops, true);
  add_kernels<float>(kernels);
  add_kernels<Half>(kernels);
}

}  // namespace dtg::ops
