// A number, spread over dimensions whose product is far beyond the memory limit; then perhaps an element-wise op, and something
// that makes it small again, so that only what is between is too large.
#include "random/huge.h"

namespace dtg::random {
namespace {

// Powers of two with small factors, so that counts and bytes meet the limits of 32, 62, 63 and 64 bits from both sides.
std::vector<int64_t> dims_for(Draw& draw, int64_t element) {
  for (;;) {
    std::vector<int64_t> dims(static_cast<size_t>(draw.between(1, 4)));
    __int128 bytes = element;
    int64_t left = draw.chance(50) ? draw.between(60, 63) : draw.between(28, 60);
    for (size_t i = 0; i < dims.size(); ++i) {
      const int64_t exponent = i + 1 == dims.size() ? left : draw.below(left + 1);
      dims[i] = (int64_t{1} << std::min<int64_t>(exponent, 62)) + (draw.chance(10) ? draw.below(3) : 0);
      left -= exponent;
      bytes *= dims[i];
    }
    if (bytes > 2 * __int128{kMemoryLimit}) return dims;
  }
}

Port spread(Workshop& w, DType dtype, const std::vector<int64_t>& dims) {
  const Port number = w.source(w.random_tensor(dtype, Shape()), false);
  const Port sizes = w.ints(DType::i64, dims, false);
  if (number.node < 0 || sizes.node < 0) return {};
  const int64_t kind = w.draw.below(3);
  if (kind == 0) return {w.add_untried({"BroadcastTo", -1, {number, sizes}, {}, {}}), 0};
  if (kind == 1) return {w.add_untried({"Fill", -1, {sizes, number}, {}, {}}), 0};
  const Port ones = w.ints(DType::i64, std::vector<int64_t>(dims.size(), 1), false);
  if (ones.node < 0) return {};
  const int small = w.add({"Reshape", -1, {number, ones}, {}, {}});
  return small < 0 ? Port() : Port{w.add_untried({"Tile", -1, {{small, 0}, sizes}, {}, {}}), 0};
}

// One element of it, or one number for all of them.
Port made_small(Workshop& w, Port value, size_t rank) {
  std::vector<int64_t> zeros(rank, 0), ones(rank, 1), axes(rank);
  for (size_t i = 0; i < rank; ++i) axes[i] = static_cast<int64_t>(i);
  const int64_t kind = w.draw.below(4);
  if (kind == 0) return value;
  if (kind == 1) {
    const Port begin = w.ints(DType::i64, zeros, false), size = w.ints(DType::i64, ones, false);
    return begin.node < 0 || size.node < 0 ? Port() : Port{w.add_untried({"Slice", -1, {value, begin, size}, {}, {}}), 0};
  }
  const Port all = w.ints(DType::i64, axes, false);
  return all.node < 0 ? Port() : Port{w.add_untried({kind == 2 ? "Max" : "Sum", -1, {value, all}, {}, {}}), 0};
}

}  // namespace

void add_huge(Workshop& w) {
  static constexpr DType kTypes[] = {DType::f32, DType::f32, DType::f64, DType::i64, DType::i8, DType::bf16};
  const DType dtype = kTypes[w.draw.below(6)];
  const size_t first = w.scene.nodes.size();
  const std::vector<int64_t> dims = dims_for(w.draw, dtype_size(dtype));
  Port value = spread(w, dtype, dims);
  if (value.node >= 0 && w.draw.chance(40)) value = {w.add_untried({w.draw.chance(50) ? "Neg" : "Square", -1, {value}, {}, {}}), 0};
  if (value.node >= 0) value = made_small(w, value, dims.size());
  if (value.node < 0) return;
  RunRecord run;
  run.nodes = static_cast<int>(w.scene.nodes.size());
  run.fetches.push_back(value);
  for (size_t n = first; n < w.scene.nodes.size(); ++n) {
    const auto node = static_cast<int>(n);
    if (w.fed(node)) run.feeds.emplace_back(Port{node, 0}, w.defaults[node]);
  }
  w.scene.runs.push_back(std::move(run));
  w.count("huge");
}

}  // namespace dtg::random
