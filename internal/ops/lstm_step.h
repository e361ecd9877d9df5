// One step of a long short-term memory, forward and back, over rows of the batch: what lstm.cc runs over cells and sequences. Pure
// functions of floats; any thread.
#pragma once

#include <algorithm>
#include <array>

#include "ops/cell.h"

namespace dtg::ops {

// Sizes, and which quarter of a row of gates is which: input gate, new input, forget gate, output gate.
struct Cell {
  int64_t batch = 0, in = 0, cell = 0, steps = 1;
  std::array<int64_t, 4> quarter{0, 1, 2, 3};
  float forget_bias = 0, clip = 0;
  bool peephole = false;
  Curves curves;
  int64_t gates() const { return 4 * cell; }
  int64_t state() const { return batch * cell; }
};

enum Out : int { kI, kCs, kF, kO, kCi, kCo, kH };  // outputs of a step, in this order
inline constexpr int kOutputs = 7;

struct Peepholes {
  const float *i = nullptr, *f = nullptr, *o = nullptr;
};

struct StepIn {
  const float* gates;  // x w + h w, without bias
  const float* bias;
  const float* cs_prev;
  Peepholes peep;
};

// i = s(i + wci c'), f = s(f + wcf c' + forget_bias), g = tanh(g), c = g i + c' f, o = s(o + wco c), h = tanh(c) o, with c' the
// state before and c held within +-clip.
inline void step_rows(const Cell& d, const StepIn& in, float* const* out, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    const float* row = in.gates + r * d.gates();
    const auto gate = [&](int which, int64_t k) {
      const int64_t at = d.quarter[static_cast<size_t>(which)] * d.cell + k;
      return row[at] + in.bias[at];
    };
    const int64_t at = r * d.cell;
    float *i = out[kI] + at, *cs = out[kCs] + at, *f = out[kF] + at, *o = out[kO] + at, *ci = out[kCi] + at, *co = out[kCo] + at,
          *h = out[kH] + at;
    const float* before = in.cs_prev + at;
    for (int64_t k = 0; k < d.cell; ++k) {
      i[k] = gate(0, k) + (d.peephole ? in.peep.i[k] * before[k] : 0.0f);
      ci[k] = gate(1, k);
      f[k] = gate(2, k) + d.forget_bias + (d.peephole ? in.peep.f[k] * before[k] : 0.0f);
      o[k] = gate(3, k);
    }
    apply(d.curves.sigmoid, i, d.cell);
    apply(d.curves.tanh, ci, d.cell);
    apply(d.curves.sigmoid, f, d.cell);
    for (int64_t k = 0; k < d.cell; ++k) {
      cs[k] = ci[k] * i[k] + before[k] * f[k];
      if (d.clip > 0) cs[k] = std::clamp(cs[k], -d.clip, d.clip);
      if (d.peephole) o[k] += in.peep.o[k] * cs[k];
      co[k] = cs[k];
    }
    apply(d.curves.sigmoid, o, d.cell);
    apply(d.curves.tanh, co, d.cell);
    for (int64_t k = 0; k < d.cell; ++k) h[k] = co[k] * o[k];
  }
}

struct BackIn {
  const float *i, *cs, *f, *o, *ci, *co, *cs_prev;
  const float *dcs, *dh;
  Peepholes peep;
};

// do = o (1 - o) dh co, dc = dcs + (1 - co^2) dh o (+ do wco), dg = (1 - g^2) dc i, df = f (1 - f) dc c', di = i (1 - i) dc g, and to
// the state before: dc f (+ di wci + df wcf). The clip lets gradients through, as in TensorFlow.
inline void back_rows(const Cell& d, const BackIn& in, float* gates, float* cs_prev_grad, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    float* row = gates + r * d.gates();
    float *di = row + d.quarter[0] * d.cell, *dg = row + d.quarter[1] * d.cell, *df = row + d.quarter[2] * d.cell,
          *dout = row + d.quarter[3] * d.cell;
    for (int64_t k = 0; k < d.cell; ++k) {
      const int64_t at = r * d.cell + k;
      const float o = in.o[at], co = in.co[at], i = in.i[at], f = in.f[at], g = in.ci[at], before = in.cs_prev[at], dh = in.dh[at];
      dout[k] = o * (1 - o) * dh * co;
      const float dc = in.dcs[at] + (1 - co * co) * dh * o + (d.peephole ? dout[k] * in.peep.o[k] : 0.0f);
      dg[k] = (1 - g * g) * dc * i;
      df[k] = f * (1 - f) * dc * before;
      di[k] = i * (1 - i) * dc * g;
      cs_prev_grad[at] = dc * f + (d.peephole ? di[k] * in.peep.i[k] + df[k] * in.peep.f[k] : 0.0f);
    }
  }
}

// The peepholes' gradients gain what a step gives them.
inline void add_peepholes(const Cell& d, const BackIn& in, const float* gates, float* wci, float* wcf, float* wco) {
  if (!d.peephole) return;
  for (int64_t r = 0; r < d.batch; ++r) {
    const float* row = gates + r * d.gates();
    for (int64_t k = 0; k < d.cell; ++k) {
      const int64_t at = r * d.cell + k;
      wci[k] += row[d.quarter[0] * d.cell + k] * in.cs_prev[at];
      wcf[k] += row[d.quarter[2] * d.cell + k] * in.cs_prev[at];
      wco[k] += row[d.quarter[3] * d.cell + k] * in.cs[at];
    }
  }
}

}  // namespace dtg::ops
