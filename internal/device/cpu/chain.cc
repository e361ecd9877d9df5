// Planning and walking of chains. See chain.h.
#include "device/cpu/chain.h"

#include <algorithm>
#include <cstring>

namespace dtg::cpu {
namespace {

// Calls fn with an unsigned number as wide as an element.
template <class Fn>
void by_width(int64_t size, Fn fn) {
  switch (size) {
    case 1: return fn(uint8_t{});
    case 2: return fn(uint16_t{});
    case 4: return fn(uint32_t{});
    default: return fn(uint64_t{});
  }
}

// One value n times, a cache line at a time.
template <class W>
void spread(W* to, W value, int64_t n) {
  constexpr int64_t kTogether = 64 / sizeof(W);
  int64_t i = 0;
  if (n >= kTogether) {
    W line[kTogether];
    for (W& one : line) one = value;
    for (; i + kTogether <= n; i += kTogether) std::memcpy(to + i, line, sizeof line);
  }
  for (; i < n; ++i) to[i] = value;
}

// Strides of `shape` aligned to the right under `space`.
void broadcast_strides(const Shape& shape, const Shape& space, std::array<int64_t, kRankMax>& strides) {
  int64_t step = 1;
  for (int d = space.rank() - 1, s = shape.rank() - 1; d >= 0; --d, --s) {
    const int64_t dim = s >= 0 ? shape.dim(s) : 1;
    strides[static_cast<size_t>(d)] = dim == 1 ? 0 : step;
    step *= dim;
  }
}

// Leaves out dimensions of 1 and joins neighbours that every input walks as one.
void collapse(ChainLoop& loop, const Shape& space) {
  size_t rank = 0;
  for (size_t d = 0; d < static_cast<size_t>(space.rank()); ++d) {
    const int64_t dim = space.dim(static_cast<int>(d));
    if (dim == 1) continue;
    bool joins = rank > 0;
    for (int i = 0; i < loop.input_count; ++i) {
      const auto& strides = loop.inputs[static_cast<size_t>(i)].strides;
      joins = joins && strides[rank - 1] == strides[d] * dim;
    }
    if (!joins) ++rank;
    loop.dims[rank - 1] = joins ? loop.dims[rank - 1] * dim : dim;
    for (int i = 0; i < loop.input_count; ++i) {
      auto& strides = loop.inputs[static_cast<size_t>(i)].strides;
      strides[rank - 1] = strides[d];
    }
  }
  loop.rank = static_cast<int>(rank);
  loop.inner = rank > 0 ? loop.dims[rank - 1] : 1;
}

// Gives registers to the steps and takes them back.
class Registers {
 public:
  explicit Registers(const ChainLoop& loop, std::span<const int64_t> sizes) : sizes_(sizes) {
    for (int s = 0; s < loop.step_count; ++s) {
      const ChainStep& step = loop.steps[static_cast<size_t>(s)];
      for (size_t k = 0; k < static_cast<size_t>(step.arity); ++k) {
        if (step.operands[k] < 0) last_[static_cast<size_t>(-1 - step.operands[k])] = s;
      }
    }
  }
  // Where the result of step s goes: over an operand of the same size that nobody reads later, or to a free register.
  int result(int s, std::span<const int> producers) {
    for (int p : producers) {
      if (dies(p, s) && sizes_[static_cast<size_t>(p)] == sizes_[static_cast<size_t>(s)]) return hold(s, home_[static_cast<size_t>(p)]);
    }
    for (int r = 0; r < count_; ++r) {
      if (holder_[static_cast<size_t>(r)] < 0) return hold(s, r);
    }
    return hold(s, count_++);
  }
  // After step s: the registers of operands that nobody reads later.
  void release(int s, std::span<const int> producers) {
    for (int p : producers) {
      const auto home = static_cast<size_t>(home_[static_cast<size_t>(p)]);
      if (dies(p, s) && holder_[home] == p) holder_[home] = -1;
    }
  }
  int of(int step) const { return home_[static_cast<size_t>(step)]; }
  int count() const { return count_; }

 private:
  bool dies(int producer, int s) const { return last_[static_cast<size_t>(producer)] == s; }
  int hold(int s, int r) {
    holder_[static_cast<size_t>(r)] = s;
    return home_[static_cast<size_t>(s)] = r;
  }

  std::span<const int64_t> sizes_;
  std::array<int, kChainSteps> last_{};    // the last step that reads a step
  std::array<int, kChainSteps> home_{};    // its register
  std::array<int, kChainSteps> holder_{};  // of a register: the step whose result it has, -1 none
  int count_ = 0;
};

}  // namespace

void plan_chain_inputs(ChainLoop& loop, std::span<const Shape> shapes, std::span<const int64_t> sizes, const Shape& space) {
  loop.input_count = static_cast<int>(shapes.size());
  loop.count = space.count();
  for (size_t i = 0; i < shapes.size(); ++i) {
    ChainInput& input = loop.inputs[i];
    input.size = sizes[i];
    input.kind = shapes[i].count() == loop.count ? ChainInput::Kind::dense
                 : shapes[i].count() == 1        ? ChainInput::Kind::scalar
                                                 : ChainInput::Kind::spread;
    broadcast_strides(shapes[i], space, input.strides);
  }
  if (loop.count == 0) return;
  collapse(loop, space);
  for (size_t i = 0; i < shapes.size(); ++i) {
    const auto& strides = loop.inputs[i].strides;
    loop.inputs[i].rows_alike =
        std::all_of(strides.begin(), strides.begin() + std::max(loop.rank - 1, 0), [](int64_t s) { return s == 0; });
  }
}

void plan_chain_registers(ChainLoop& loop, std::span<const int64_t> sizes) {
  Registers registers(loop, sizes);
  int64_t widest = 1;
  for (int i = 0; i < loop.input_count; ++i) widest = std::max(widest, loop.inputs[static_cast<size_t>(i)].size);
  for (int s = 0; s < loop.step_count; ++s) {
    ChainStep& step = loop.steps[static_cast<size_t>(s)];
    widest = std::max(widest, sizes[static_cast<size_t>(s)]);
    std::array<int, kElementOperands> producers{};
    size_t count = 0;
    for (size_t k = 0; k < static_cast<size_t>(step.arity); ++k) {
      if (step.operands[k] >= 0) continue;
      producers[count++] = -1 - step.operands[k];
      step.operands[k] = -1 - registers.of(-1 - step.operands[k]);
    }
    const std::span<const int> read(producers.data(), count);
    if (s + 1 < loop.step_count) step.out = registers.result(s, read);
    registers.release(s, read);
  }
  loop.block_bytes = widest * kChainBlock;
  loop.blocks = registers.count();
  for (int i = 0; i < loop.input_count; ++i) {
    ChainInput& input = loop.inputs[static_cast<size_t>(i)];
    if (input.kind != ChainInput::Kind::dense) input.stage = loop.blocks++;
  }
}

ChainLane::ChainLane(const ChainLoop& loop, const void* const* in, char* scratch) : loop_(loop), in_(in), scratch_(scratch) {
  for (size_t i = 0; i < static_cast<size_t>(loop.input_count); ++i) {
    const ChainInput& input = loop.inputs[i];
    if (input.kind != ChainInput::Kind::scalar) continue;
    const int64_t n = std::min(kChainBlock, loop.count);
    by_width(input.size, [&]<class W>(W one) {
      std::memcpy(&one, in[i], sizeof one);
      spread(reinterpret_cast<W*>(block(input.stage)), one, n);
    });
  }
}

// How many elements to do next: as much of a long row as fits, or whole short rows, so that the next block begins at the same
// place of its row.
int64_t ChainLane::block_at(int64_t from, int64_t n) const {
  if (loop_.rank <= 1) return std::min(n, kChainBlock);
  if (loop_.inner <= kChainBlock) return std::min(n, kChainBlock / loop_.inner * loop_.inner);
  return std::min({n, kChainBlock, loop_.inner - from % loop_.inner});
}

// Where row `row` begins in an input: the sum over all but the innermost dimension.
int64_t ChainLane::row_offset(const ChainInput& input, int64_t row) const {
  int64_t offset = 0;
  for (int d = loop_.rank - 2; d >= 0; --d) {
    const auto i = static_cast<size_t>(d);
    offset += row % loop_.dims[i] * input.strides[i];
    row /= loop_.dims[i];
  }
  return offset;
}

// n elements from `from` on, across rows.
template <class W>
void ChainLane::gather(const ChainInput& input, const W* base, W* to, int64_t from, int64_t n) const {
  const auto last = static_cast<size_t>(loop_.rank - 1);
  const int64_t inner = loop_.inner, stride = input.strides[last];
  // Consecutive rows usually differ in the dimension next to the innermost only.
  const int64_t step = loop_.rank > 1 ? input.strides[last - 1] : 0, turn = loop_.rank > 1 ? loop_.dims[last - 1] : 1;
  int64_t row = from / inner, place = from % inner, left = 0;
  const W* at = nullptr;
  for (int64_t done = 0; done < n; ++row, --left, at += step, place = 0) {
    if (left == 0) {
      at = base + row_offset(input, row);
      left = turn - row % turn;
    }
    const int64_t width = std::min(inner - place, n - done);
    if (stride == 0) spread(to + done, *at, width);
    else std::copy_n(at + place, width, to + done);
    done += width;
  }
}

const char* ChainLane::staged(int number, int64_t from, int64_t n) {
  const auto i = static_cast<size_t>(number);
  const ChainInput& input = loop_.inputs[i];
  const int64_t row = from / loop_.inner, phase = from % loop_.inner;
  const bool one_row = phase + n <= loop_.inner;
  const int64_t stride = input.strides[static_cast<size_t>(loop_.rank - 1)];
  const int64_t offset = one_row || !input.rows_alike ? row_offset(input, row) : 0;
  const char* const base = static_cast<const char*>(in_[i]);
  if (one_row && stride != 0) return base + (offset + phase) * input.size;
  char* const to = block(input.stage);
  Stage& stage = stages_[i];
  // The same elements again: one value for the rest of its row, or rows that are all alike.
  const bool constant = one_row && stride == 0;
  const Stage wanted = {offset, constant ? -1 : phase, n};
  const bool repeats = constant || input.rows_alike;
  if (repeats && stage.offset == wanted.offset && stage.phase == wanted.phase && stage.count >= n) return to;
  stage = repeats ? wanted : Stage();
  by_width(input.size, [&]<class W>(W) { gather(input, reinterpret_cast<const W*>(base), reinterpret_cast<W*>(to), from, n); });
  return to;
}

const char* ChainLane::operand(int number, int64_t from, int64_t n) {
  const ChainInput& input = loop_.inputs[static_cast<size_t>(number)];
  if (input.kind == ChainInput::Kind::dense) return static_cast<const char*>(in_[number]) + from * input.size;
  if (input.kind == ChainInput::Kind::scalar) return block(input.stage);
  return staged(number, from, n);
}

void ChainLane::compute(int64_t from, int64_t n, char* to, int64_t to_size) {
  for (const int64_t end = from + n; from < end;) {
    const int64_t count = block_at(from, end - from);
    for (int s = 0; s < loop_.step_count; ++s) {
      const ChainStep& step = loop_.steps[static_cast<size_t>(s)];
      const void* in[kElementOperands];
      for (size_t k = 0; k < static_cast<size_t>(step.arity); ++k) {
        in[k] = step.operands[k] < 0 ? block(-1 - step.operands[k]) : operand(step.operands[k], from, count);
      }
      step.block(in, step.out < 0 ? to : block(step.out), count);
    }
    from += count;
    to += count * to_size;
  }
}

}  // namespace dtg::cpu
