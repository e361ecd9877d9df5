// Hints for the ops that move elements: axes, indices, shapes.
#include <algorithm>
#include <numeric>

#include "random/hints.h"

namespace dtg::random {
namespace {

std::vector<int64_t> dims_of(const Shape& shape) { return {shape.dims().begin(), shape.dims().end()}; }

void add_n(Ask& a) {
  const int64_t count = a.w.draw.chance(15) ? 20 : a.w.draw.between(1, 5);
  a.set("N", count);
  const Port first = a.w.any(a.type("T"), 0, kRankMax);
  std::vector<Port> ports = {first};
  const bool repeats = a.w.draw.chance(50);
  while (static_cast<int64_t>(ports.size()) < count) {
    ports.push_back(repeats && a.w.draw.chance(40) ? a.w.draw.pick(ports) : a.w.wanted(a.type("T"), a.w.tensor(first).shape()));
  }
  if (repeats) a.w.count("repeated_input");
  a.puts("inputs", std::move(ports));
}

void reshape(Ask& a) {
  const Shape from = a.w.tensor(a.data("tensor")).shape();
  std::vector<int64_t> dims = dims_of(from);
  const int kind = static_cast<int>(a.w.draw.below(5));
  if (kind == 0) dims = {from.count()};
  if (kind == 1) dims = {-1};
  if (kind == 2) dims.insert(dims.begin() + a.w.draw.below(from.rank() + 1), 1);
  if (kind == 3) std::reverse(dims.begin(), dims.end());
  if (kind == 4 && !dims.empty()) dims[0] = -1;
  a.numbers("shape", dims);
}

void expand_dims(Ask& a) {
  const int rank = a.w.tensor(a.data("input", 0, 4)).shape().rank();
  a.numbers("dim", {a.w.draw.between(-rank - 1, rank)}, true);
}

void squeeze(Ask& a) {
  const Shape shape = a.w.tensor(a.data("input")).shape();
  std::vector<int64_t> list;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape.dim(i) == 1 && a.w.draw.chance(50)) list.push_back(i);
  }
  a.set("squeeze_dims", list);
}

void broadcast_to(Ask& a) {
  std::vector<int64_t> dims = dims_of(a.w.tensor(a.data("input", 0, 3)).shape());
  for (int64_t& dim : dims) dim = dim == 1 ? a.w.draw.between(0, 3) : dim;
  if (a.w.draw.chance(40)) dims.insert(dims.begin(), a.w.draw.between(1, 2));
  a.numbers("shape", dims);
}

void tile(Ask& a) {
  const int rank = a.w.tensor(a.data("input", 0, 4)).shape().rank();
  std::vector<int64_t> times;
  for (int i = 0; i < rank; ++i) times.push_back(a.w.draw.chance(50) ? 1 : a.w.draw.between(0, 3));
  a.numbers("multiples", times);
}

void pad(Ask& a) {
  const int rank = a.w.tensor(a.data("input", 0, 4)).shape().rank();
  std::vector<int64_t> widths;
  const bool none = a.w.draw.chance(25);
  for (int i = 0; i < 2 * rank; ++i) widths.push_back(none ? 0 : a.w.draw.below(3));
  a.numbers("paddings", widths, with_dims({rank, 2}));
}

void fill(Ask& a) {
  const Shape shape = a.w.shape(0, 3);
  a.numbers("dims", dims_of(shape));
}

void range(Ask& a) {
  a.numbers("start", {a.w.draw.between(-2, 3)}, true);
  a.numbers("limit", {a.w.draw.between(0, 6)}, true);
  a.numbers("delta", {a.w.draw.between(1, 2)}, true);
  if (!kIndex.has(a.type("Tidx"))) a.set("Tidx", DType::i32);
}

void slice(Ask& a) {
  const Shape shape = a.w.tensor(a.data("input", 0, 4)).shape();
  std::vector<int64_t> begin, size;
  const bool whole = a.w.draw.chance(15);
  for (int i = 0; i < shape.rank(); ++i) {
    begin.push_back(whole ? 0 : a.w.draw.below(shape.dim(i) + 1));
    size.push_back(a.w.draw.chance(25) ? -1 : whole ? shape.dim(i) : a.w.draw.below(shape.dim(i) - begin.back() + 1));
  }
  a.numbers("begin", begin);
  a.numbers("size", size);
}

// Begin, end and strides for some leading dimensions; the number of elements that each takes.
std::vector<int64_t> stride(Ask& a, const Shape& shape, int count) {
  std::vector<int64_t> begin, end, step, sizes;
  for (int i = 0; i < count; ++i) {
    const int64_t dim = shape.dim(i);
    const int64_t from = a.w.draw.below(dim), to = a.w.draw.between(from, dim), by = a.w.draw.between(1, 2);
    const bool back = a.w.draw.chance(20) && from > 0;
    begin.push_back(from);
    end.push_back(back ? 0 : to);
    step.push_back(back ? -by : by);
    sizes.push_back(back ? (from + by - 1) / by : (to - from + by - 1) / by);
  }
  a.numbers("begin", begin);
  a.numbers("end", end);
  a.numbers("strides", step);
  return sizes;
}

void strided_slice(Ask& a) {
  const Shape shape = a.w.tensor(a.data("input", 1, 4)).shape();
  const int count = static_cast<int>(a.w.draw.between(1, shape.rank()));
  stride(a, shape, count);
  const int64_t all = (int64_t{1} << count) - 1;
  for (const char* mask : {"begin_mask", "end_mask", "shrink_axis_mask"}) a.set(mask, a.w.draw.chance(25) ? a.w.draw.below(all + 1) : 0);
  a.set("new_axis_mask", a.w.draw.chance(8) ? 1 : 0);
  a.set("ellipsis_mask", a.w.draw.chance(8) ? int64_t{1} << (count - 1) : 0);
}

void strided_slice_grad(Ask& a) {
  const Shape shape = a.w.shape(1, 3);
  a.numbers("shape", dims_of(shape));
  std::vector<int64_t> dims = stride(a, shape, shape.rank());
  for (const char* mask : {"begin_mask", "end_mask", "shrink_axis_mask", "new_axis_mask", "ellipsis_mask"}) a.set(mask, 0);
  a.put("dy", a.w.wanted(a.type("T"), with_dims(dims)));
}

void gather_v2(Ask& a) {
  const Shape shape = a.w.tensor(a.data("params", 1, 4)).shape();
  const int64_t axis = a.w.draw.below(shape.rank());
  a.set("batch_dims", 0);
  a.numbers("axis", {a.w.draw.chance(30) ? axis - shape.rank() : axis}, true);
  const Shape at = a.w.draw.chance(20) ? Shape() : a.w.shape(1, 2);
  a.numbers("indices", indices(a.w.draw, at.count(), shape.dim(static_cast<int>(axis))), at);
}

void gather(Ask& a) {
  const Shape shape = a.w.tensor(a.data("params", 1, 4)).shape();
  const Shape at = a.w.shape(0, 2);
  a.numbers("indices", indices(a.w.draw, at.count(), shape.dim(0)), at);
}

std::vector<int64_t> tuples(Draw& draw, int64_t rows, const Shape& shape, int64_t depth) {
  std::vector<int64_t> list;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t k = 0; k < depth; ++k) list.push_back(draw.below(shape.dim(static_cast<int>(k))));
  }
  return list;
}

void gather_nd(Ask& a) {
  const Shape shape = a.w.tensor(a.data("params", 1, 4)).shape();
  const int64_t depth = a.w.draw.between(1, shape.rank()), rows = a.w.draw.between(0, 3);
  a.numbers("indices", tuples(a.w.draw, rows, shape, depth), with_dims({rows, depth}));
  a.set("bad_indices_policy", std::string());
}

void scatter_nd(Ask& a) {
  const Shape shape = a.w.shape(1, 3);
  const int64_t depth = a.w.draw.between(1, shape.rank()), rows = a.w.draw.between(0, 3);
  a.numbers("indices", tuples(a.w.draw, rows, shape, depth), with_dims({rows, depth}));
  a.numbers("shape", dims_of(shape));
  std::vector<int64_t> dims = {rows};
  for (int i = static_cast<int>(depth); i < shape.rank(); ++i) dims.push_back(shape.dim(i));
  a.put("updates", a.w.wanted(a.type("T"), with_dims(dims)));
  a.set("bad_indices_policy", std::string());
}

void segment_sum(Ask& a) {
  std::vector<int64_t> ids;
  const Shape shape = a.w.tensor(a.data("data", 1, 3)).shape();
  for (int64_t i = 0, id = 0; i < shape.dim(0); ++i) ids.push_back(id += a.w.draw.below(2));
  a.numbers("segment_ids", ids);
}

void unsorted_segment_sum(Ask& a) {
  const Shape shape = a.w.tensor(a.data("data", 1, 3)).shape();
  const int64_t segments = a.w.draw.between(0, 4);
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < shape.dim(0); ++i) ids.push_back(a.w.draw.between(segments > 0 ? 0 : -1, segments - 1));
  a.numbers("segment_ids", ids);
  a.numbers("num_segments", {segments}, true);
}

void pack(Ask& a) {
  const Port first = a.w.any(a.type("T"), 0, 3);
  const int rank = a.w.tensor(first).shape().rank();
  std::vector<Port> ports = {first};
  while (a.w.draw.chance(60)) ports.push_back(a.w.draw.chance(30) ? first : a.w.wanted(a.type("T"), a.w.tensor(first).shape()));
  a.set("N", static_cast<int64_t>(ports.size()));
  a.set("axis", a.w.draw.between(-rank - 1, rank));
  a.puts("values", std::move(ports));
}

void concat(Ask& a) {
  const Port first = a.w.any(a.type("T"), 1, 4);
  const std::vector<int64_t> dims = dims_of(a.w.tensor(first).shape());
  const int64_t axis = a.w.draw.below(static_cast<int64_t>(dims.size()));
  std::vector<Port> ports = {first};
  do {
    std::vector<int64_t> other = dims;
    if (a.w.draw.chance(40)) other[static_cast<size_t>(axis)] = a.w.draw.below(4);
    ports.push_back(a.w.draw.chance(20) ? first : a.w.wanted(a.type("T"), with_dims(other)));
  } while (a.w.draw.chance(50));
  a.set("N", static_cast<int64_t>(ports.size()));
  a.puts("values", std::move(ports));
  const char* arg = a.op.name() == "Concat" ? "concat_dim" : "axis";
  a.numbers(arg, {a.w.draw.chance(30) ? axis - static_cast<int64_t>(dims.size()) : axis}, true);
}

void concat_offset(Ask& a) {
  const Shape shape = a.w.shape(1, 3);
  const int64_t axis = a.w.draw.below(shape.rank()), count = a.w.draw.between(2, 3);
  a.set("N", count);
  a.numbers("concat_dim", {axis}, true);
  std::vector<Port> ports;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int64_t> dims = dims_of(shape);
    dims[static_cast<size_t>(axis)] = a.w.draw.below(4);
    ports.push_back(a.w.ints(a.dtype("shape"), dims, false));
  }
  a.puts("shape", std::move(ports));
}

void split(Ask& a) {
  const Shape shape = a.w.tensor(a.data("value", 1, 4)).shape();
  const int64_t axis = a.w.draw.below(shape.rank()), dim = shape.dim(static_cast<int>(axis));
  std::vector<int64_t> divisors = {1};
  for (int64_t d = 2; d <= 4; ++d) {
    if (dim % d == 0) divisors.push_back(d);
  }
  a.set("num_split", a.w.draw.pick(divisors));
  a.numbers("split_dim", {axis}, true);
}

void split_v(Ask& a) {
  const Shape shape = a.w.tensor(a.data("value", 1, 4)).shape();
  const int64_t axis = a.w.draw.below(shape.rank()), count = a.w.draw.between(1, 3);
  int64_t left = shape.dim(static_cast<int>(axis));
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < count; ++i) {
    sizes.push_back(i + 1 == count ? left : a.w.draw.below(left + 1));
    left -= sizes.back();
  }
  if (a.w.draw.chance(20)) sizes[0] = -1;
  a.set("num_split", count);
  a.numbers("size_splits", sizes);
  a.numbers("split_dim", {axis}, true);
}

void unpack(Ask& a) {
  const Shape shape = a.w.tensor(a.data("value", 1, 4)).shape();
  const int64_t axis = a.w.draw.below(shape.rank());
  a.set("axis", axis);
  a.set("num", shape.dim(static_cast<int>(axis)));
}

void one_hot(Ask& a) {
  const Shape shape = a.w.shape(0, 2);
  a.set("axis", -1);
  std::vector<int64_t> list;
  for (int64_t i = 0; i < shape.count(); ++i) list.push_back(a.w.draw.between(-1, 4));
  if (!kIndex.has(a.type("TI"))) a.set("TI", DType::i32);
  a.numbers("indices", list, shape);
  a.numbers("depth", {a.w.draw.between(0, 4)}, true);
}

void invert_permutation(Ask& a) {
  std::vector<int64_t> order;
  for (int i = 0; i < 4; ++i) order.insert(order.begin() + a.w.draw.below(i + 1), i);
  a.numbers("x", order);
}

void broadcast_shapes_of(Ask& a) {
  const Shape shape = a.w.shape(0, 3);
  std::vector<int64_t> other = dims_of(shape);
  for (int64_t& dim : other) dim = a.w.draw.chance(40) ? 1 : dim;
  a.numbers("s0", dims_of(shape));
  a.numbers("s1", other);
}

void select(Ask& a) {
  const Port t = a.data("t");
  const Shape shape = a.w.tensor(t).shape();
  a.put("e", a.w.wanted(a.type("T"), shape));
  Shape condition = shape;
  if (a.w.draw.chance(20)) condition = Shape();
  if (a.w.draw.chance(20) && shape.rank() > 0 && a.op.name() == "Select") condition = with_dims({shape.dim(0)});
  a.put("condition", a.w.wanted(DType::boolean, condition));
}

// The declared shape is the value's, with some dimensions left open.
void declared(Ask& a) {
  PartialShape shape = a.w.tensor(a.data("input")).shape();
  for (int i = 0; i < shape.rank(); ++i) {
    if (a.w.draw.chance(30)) shape.set_dim(i, -1);
  }
  a.set("shape", a.w.draw.chance(20) ? PartialShape::unknown() : shape);
}

void identity_n(Ask& a) {
  std::vector<Port> ports;
  std::vector<DType> types;
  for (int64_t count = a.w.draw.between(1, 3); count > 0; --count) {
    types.push_back(a.w.draw.chance(70) ? DType::f32 : DType::i32);
    ports.push_back(a.w.any(types.back(), 0, kRankMax));
  }
  a.set("T", types);
  a.puts("input", std::move(ports));
}

void random_old(Ask& a) {
  const Shape shape = a.w.shape(0, 3);
  a.numbers("shape", dims_of(shape));
  a.numbers("seed", {a.w.draw.below(100), a.w.draw.below(100)});
  if (a.op.find_attr("dtype") && a.op.name().ends_with("Int")) {
    a.set("dtype", a.w.draw.chance(50) ? DType::i32 : DType::i64);
    a.numbers("minval", {a.w.draw.below(5)}, true);
    a.numbers("maxval", {a.w.draw.between(6, 50)}, true);
  }
}

void random_new(Ask& a) {
  const Shape shape = a.w.shape(0, 3);
  a.numbers("shape", dims_of(shape));
  a.put("key", a.w.source(a.w.random_tensor(DType::u64, with_dims({1})), true));
  a.put("counter", a.w.source(a.w.random_tensor(DType::u64, with_dims({2})), true));
  a.numbers("alg", {a.w.draw.chance(60) ? 1 : a.w.draw.between(1, 3)}, true);
  if (a.op.name() == "StatelessRandomUniformIntV2") {
    a.set("dtype", a.w.draw.chance(50) ? DType::i32 : DType::i64);
    a.numbers("minval", {a.w.draw.below(5)}, true);
    a.numbers("maxval", {a.w.draw.between(6, 50)}, true);
  }
}

void random_key(Ask& a) { a.numbers("seed", {a.w.draw.below(100), a.w.draw.below(100)}); }

void unique(Ask& a) { a.data("x", 1, 1); }

constexpr HintRow kRows[] = {
    {"AddN", add_n},
    {"BroadcastArgs", broadcast_shapes_of},
    {"BroadcastGradientArgs", broadcast_shapes_of},
    {"BroadcastTo", broadcast_to},
    {"Concat", concat},
    {"ConcatOffset", concat_offset},
    {"ConcatV2", concat},
    {"EnsureShape", declared},
    {"ExpandDims", expand_dims},
    {"Fill", fill},
    {"Gather", gather},
    {"GatherNd", gather_nd},
    {"GatherV2", gather_v2},
    {"IdentityN", identity_n},
    {"InvertPermutation", invert_permutation},
    {"OneHot", one_hot},
    {"Pack", pack},
    {"Pad", pad},
    {"PadV2", pad},
    {"PlaceholderWithDefault", declared},
    {"Range", range},
    {"Reshape", reshape},
    {"ScatterNd", scatter_nd},
    {"SegmentSum", segment_sum},
    {"Select", select},
    {"SelectV2", select},
    {"Slice", slice},
    {"Split", split},
    {"SplitV", split_v},
    {"Squeeze", squeeze},
    {"StatelessRandomGetKeyCounter", random_key},
    {"StatelessRandomGetKeyCounterAlg", random_key},
    {"StatelessRandomNormal", random_old},
    {"StatelessRandomNormalV2", random_new},
    {"StatelessRandomUniform", random_old},
    {"StatelessRandomUniformFullIntV2", random_new},
    {"StatelessRandomUniformInt", random_old},
    {"StatelessRandomUniformIntV2", random_new},
    {"StatelessRandomUniformV2", random_new},
    {"StatelessTruncatedNormal", random_old},
    {"StatelessTruncatedNormalV2", random_new},
    {"StridedSlice", strided_slice},
    {"StridedSliceGrad", strided_slice_grad},
    {"Tile", tile},
    {"Unique", unique},
    {"UniqueWithCounts", unique},
    {"Unpack", unpack},
    {"UnsortedSegmentSum", unsorted_segment_sum},
};

}  // namespace

std::span<const HintRow> shape_hints() { return kRows; }

}  // namespace dtg::random
