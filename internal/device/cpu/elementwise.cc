// Broadcasting and sharding around the block functions. The plan collapses dimensions that all operands
// walk alike, which leaves one dimension in the common cases and rarely more than two.
#include "device/cpu/elementwise.h"

#include <algorithm>
#include <cstring>

namespace dtg::cpu {
namespace {

constexpr int64_t kBuffer = 512;        // elements gathered at a time
constexpr int64_t kLongRow = 256;       // from here on rows are worked on one by one
constexpr int64_t kCheapShard = 65536;  // elements; below one shard no thread is woken
constexpr int64_t kHeavyShard = 16384;

using Loop = ElementLoop;

// Buffers of one shard, on its stack.
struct Scratch {
  alignas(64) char bytes[kElementOperands][kBuffer * 8];
};

template <class W>
void fill_as(void* to, const void* value, int64_t n) {
  W one;
  std::memcpy(&one, value, sizeof(W));
  std::fill_n(static_cast<W*>(to), n, one);
}

void fill(void* to, const void* value, int64_t size, int64_t n) {
  switch (size) {
    case 1: return fill_as<uint8_t>(to, value, n);
    case 2: return fill_as<uint16_t>(to, value, n);
    case 4: return fill_as<uint32_t>(to, value, n);
    default: return fill_as<uint64_t>(to, value, n);
  }
}

const char* at(const void* base, int64_t index, int64_t size) { return static_cast<const char*>(base) + index * size; }

// Where a row starts in an operand: the sum over all but the innermost dimension.
int64_t row_offset(const Loop& loop, const Loop::Operand& operand, int64_t row) {
  int64_t offset = 0;
  for (int d = loop.rank - 2; d >= 0; --d) {
    const auto i = static_cast<size_t>(d);
    offset += row % loop.dims[i] * operand.strides[i];
    row /= loop.dims[i];
  }
  return offset;
}

// n elements starting at `row`, whole rows, into the buffer.
template <class W>
void gather_as(const Loop& loop, const Loop::Operand& operand, const W* base, W* to, int64_t row, int64_t n) {
  const auto last = static_cast<size_t>(loop.rank - 1);
  const int64_t inner = loop.dims[last], stride = operand.strides[last];
  // Consecutive rows usually differ in the dimension next to the innermost only.
  const int64_t step = loop.rank > 1 ? operand.strides[last - 1] : 0;
  const int64_t turn = loop.rank > 1 ? loop.dims[last - 1] : 1;
  int64_t left = 0;
  const W* from = nullptr;
  for (int64_t done = 0; done < n; done += inner, ++row, --left, from += step) {
    if (left == 0) {
      from = base + row_offset(loop, operand, row);
      left = turn - row % turn;
    }
    if (stride == 0) {
      std::fill_n(to + done, inner, *from);
    } else {
      for (int64_t i = 0; i < inner; ++i) to[done + i] = from[i * stride];
    }
  }
}

void gather(const Loop& loop, const Loop::Operand& operand, const void* base, void* to, int64_t row, int64_t n) {
  const auto as = [&]<class W>(W) { gather_as(loop, operand, static_cast<const W*>(base), static_cast<W*>(to), row, n); };
  switch (operand.size) {
    case 1: return as(uint8_t{});
    case 2: return as(uint16_t{});
    case 4: return as(uint32_t{});
    default: return as(uint64_t{});
  }
}

void flat_shard(const Loop& loop, const void* const* in, void* out, int64_t shard) {
  const int64_t begin = shard * loop.shard, end = std::min(loop.count, begin + loop.shard);
  Scratch scratch;
  bool filled = false;
  for (int k = 0; k < loop.operands; ++k) {
    const auto i = static_cast<size_t>(k);
    if (loop.in[i].dense) continue;
    filled = true;
    fill(scratch.bytes[i], in[i], loop.in[i].size, std::min(kBuffer, end - begin));
  }
  const int64_t step = filled ? kBuffer : end - begin;
  for (int64_t from = begin; from < end; from += step) {
    const void* operands[kElementOperands];
    for (size_t i = 0; i < static_cast<size_t>(loop.operands); ++i) {
      operands[i] = loop.in[i].dense ? at(in[i], from, loop.in[i].size) : scratch.bytes[i];
    }
    loop.block(operands, static_cast<char*>(out) + from * loop.out_size, std::min(step, end - from));
  }
}

// One piece of one row.
void row_piece(const Loop& loop, const void* const* in, void* out, int64_t unit) {
  const auto last = static_cast<size_t>(loop.rank - 1);
  const int64_t inner = loop.dims[last], pieces = (inner + loop.piece - 1) / loop.piece;
  const int64_t row = unit / pieces, begin = unit % pieces * loop.piece, n = std::min(loop.piece, inner - begin);
  Scratch scratch;
  const void* operands[kElementOperands];
  bool filled = false;
  for (size_t i = 0; i < static_cast<size_t>(loop.operands); ++i) {
    const Loop::Operand& operand = loop.in[i];
    operands[i] = at(in[i], row_offset(loop, operand, row) + begin * operand.strides[last], operand.size);
    if (operand.strides[last] != 0) continue;
    filled = true;
    fill(scratch.bytes[i], operands[i], operand.size, std::min(kBuffer, n));
    operands[i] = scratch.bytes[i];
  }
  char* to = static_cast<char*>(out) + (row * inner + begin) * loop.out_size;
  const int64_t step = filled ? kBuffer : n;
  for (int64_t from = 0; from < n; from += step) {
    loop.block(operands, to + from * loop.out_size, std::min(step, n - from));
    for (size_t i = 0; i < static_cast<size_t>(loop.operands); ++i) {
      if (loop.in[i].strides[last] != 0) operands[i] = at(operands[i], step, loop.in[i].size);
    }
  }
}

void chunk_shard(const Loop& loop, const void* const* in, void* out, int64_t shard) {
  const int64_t inner = loop.dims[static_cast<size_t>(loop.rank - 1)];
  const int64_t begin = shard * loop.shard * loop.piece;
  const int64_t end = std::min(loop.count, begin + loop.shard * loop.piece);
  Scratch scratch;
  for (int64_t from = begin; from < end; from += loop.piece) {
    const int64_t n = std::min(loop.piece, end - from);
    const void* operands[kElementOperands];
    for (size_t i = 0; i < static_cast<size_t>(loop.operands); ++i) {
      const Loop::Operand& operand = loop.in[i];
      operands[i] = operand.dense ? at(in[i], from, operand.size) : scratch.bytes[i];
      if (operand.dense || (operand.fixed && from != begin)) continue;
      gather(loop, operand, in[i], scratch.bytes[i], from / inner, n);
    }
    loop.block(operands, static_cast<char*>(out) + from * loop.out_size, n);
  }
}

// Strides of `shape` aligned to the right under `out`.
void broadcast_strides(const Shape& shape, const Shape& out, std::array<int64_t, kRankMax>& strides) {
  int64_t step = 1;
  for (int d = out.rank() - 1, s = shape.rank() - 1; d >= 0; --d, --s) {
    const int64_t dim = s >= 0 ? shape.dim(s) : 1;
    strides[static_cast<size_t>(d)] = dim == 1 ? 0 : step;
    step *= dim;
  }
}

// Leaves out dimensions of 1 and joins neighbours that every operand walks as one.
void collapse(Loop& loop, const Shape& out) {
  size_t rank = 0;
  for (size_t d = 0; d < static_cast<size_t>(out.rank()); ++d) {
    const int64_t dim = out.dim(static_cast<int>(d));
    if (dim == 1) continue;
    bool joins = rank > 0;
    for (const auto& operand : loop.in) joins = joins && operand.strides[rank - 1] == operand.strides[d] * dim;
    if (!joins) ++rank;
    loop.dims[rank - 1] = joins ? loop.dims[rank - 1] * dim : dim;
    for (auto& operand : loop.in) operand.strides[rank - 1] = operand.strides[d];
  }
  loop.rank = static_cast<int>(rank);
}

// Which row of the tables is for which function and type, as hundreds of ops ask for it when a process starts. Types after u64, of
// less than a byte or of eight bits with an exponent, have no block loops.
class BlockIndex {
 public:
  BlockIndex() {
    for (const auto table : {simd_blocks(), curve_blocks(), unary_blocks(), binary_blocks(), compare_blocks(), special_blocks()}) {
      for (const ElementBlock& row : table) {
        const ElementBlock*& place = rows_[static_cast<size_t>(row.fn)][static_cast<size_t>(row.dtype)];
        if (!place) place = &row;
      }
    }
  }
  const ElementBlock* find(ElementFn fn, DType dtype) const {
    return static_cast<size_t>(dtype) < kTypes ? rows_[static_cast<size_t>(fn)][static_cast<size_t>(dtype)] : nullptr;
  }

 private:
  static constexpr size_t kFunctions = static_cast<size_t>(ElementFn::betainc) + 1, kTypes = static_cast<size_t>(DType::u64) + 1;
  std::array<std::array<const ElementBlock*, kTypes>, kFunctions> rows_ = {};
};

}  // namespace

const ElementBlock* find_block(ElementFn fn, DType dtype) {
  static const BlockIndex index;
  return index.find(fn, dtype);
}

ElementLoop plan_elements(BlockFn block, bool heavy, std::span<const Shape> shapes, std::span<const int64_t> sizes, const Shape& out,
                          int64_t out_size) {
  Loop loop;
  loop.block = block;
  loop.operands = static_cast<int>(shapes.size());
  loop.count = out.count();
  loop.out_size = out_size;
  const int64_t shard = heavy ? kHeavyShard : kCheapShard;
  for (size_t i = 0; i < shapes.size(); ++i) {
    broadcast_strides(shapes[i], out, loop.in[i].strides);
    loop.in[i].size = sizes[i];
    loop.in[i].dense = shapes[i].count() == loop.count;
  }
  if (loop.count == 0) return loop;
  collapse(loop, out);
  bool flat = true;
  for (size_t i = 0; i < shapes.size(); ++i) flat = flat && (loop.in[i].dense || shapes[i].count() == 1);
  if (flat) {
    loop.shard = shard;
    return loop;
  }
  const int64_t inner = loop.dims[static_cast<size_t>(loop.rank - 1)];
  if (inner >= kLongRow) {
    loop.mode = Loop::Mode::rows;
    loop.piece = std::min(inner, shard);
    loop.shard = std::max<int64_t>(1, shard / inner);
    return loop;
  }
  loop.mode = Loop::Mode::chunks;
  loop.piece = kBuffer / inner * inner;
  loop.shard = std::max<int64_t>(1, shard / loop.piece);
  for (auto& operand : loop.in) {
    operand.fixed = std::all_of(operand.strides.begin(), operand.strides.begin() + loop.rank - 1, [](int64_t s) { return s == 0; });
  }
  return loop;
}

void run_elements(const ElementLoop& loop, Pool& pool, const void* const* in, void* out) {
  if (loop.count == 0) return;
  const auto shards = [&](int64_t units) { return (units + loop.shard - 1) / loop.shard; };
  if (loop.mode == Loop::Mode::flat) {
    pool.parallel_for(shards(loop.count), [&](int64_t shard) { flat_shard(loop, in, out, shard); });
  } else if (loop.mode == Loop::Mode::rows) {
    const int64_t inner = loop.dims[static_cast<size_t>(loop.rank - 1)];
    const int64_t units = loop.count / inner * ((inner + loop.piece - 1) / loop.piece);
    pool.parallel_for(shards(units), [&](int64_t shard) {
      const int64_t end = std::min(units, (shard + 1) * loop.shard);
      for (int64_t unit = shard * loop.shard; unit < end; ++unit) row_piece(loop, in, out, unit);
    });
  } else {
    const int64_t chunks = (loop.count + loop.piece - 1) / loop.piece;
    pool.parallel_for(shards(chunks), [&](int64_t shard) { chunk_shard(loop, in, out, shard); });
  }
}

}  // namespace dtg::cpu
