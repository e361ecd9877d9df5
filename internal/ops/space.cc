// Blocks of an image moved to another dimension and back: SpaceToDepth, DepthToSpace, SpaceToBatch(ND), BatchToSpace(ND); and the two
// ops that translate axes and sizes from one data format to another. All but the last are strided copies. Registered once by the
// runtime; kernels run on any thread.
#include <algorithm>
#include <array>

#include "base/size.h"
#include "device/cpu/copy.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/integers.h"

namespace dtg::ops {
namespace {

int64_t stride_of(const Shape& shape, int i, int64_t size) { return shape.count(i + 1, shape.rank()) * size; }

// ---- SpaceToDepth, DepthToSpace ----------------------------------------------------------------------------

struct Axes {
  int channel, height, width;
};

Result<Axes> axes_of(const Node& node) {
  const std::string& format = node.attr<std::string>("data_format");
  if (format == "NHWC") return Axes{3, 1, 2};
  if (format == "NCHW") return Axes{1, 2, 3};
  return unimplemented("%s: data_format %s is not supported; use NHWC or NCHW", node.op->name().c_str(), format.c_str());
}

Status depth_shape(InferContext& c, bool to_depth) {
  DTG_TRY(c.require_rank(0, 4));
  DTG_ASSIGN(const Axes axes, axes_of(c.node()));
  const int64_t block = c.integer("block_size");
  if (block > (int64_t{1} << 30)) return c.error("block_size %lld is too large", static_cast<long long>(block));
  PartialShape out = c.input(0).has_rank() ? c.input(0) : PartialShape::of_rank(4);
  const auto divided = [&](int axis, int64_t by) -> Status {
    const int64_t dim = out.dim(axis);
    if (dim < 0) return {};
    if (dim % by != 0) {
      return c.error("dimension %d of %s is not a multiple of %lld", axis, c.input(0).text().c_str(), static_cast<long long>(by));
    }
    out.set_dim(axis, dim / by);
    return {};
  };
  const auto multiplied = [&](int axis, int64_t by) -> Status {
    if (out.dim(axis) < 0) return {};
    const Bytes product = Bytes::of(out.dim(axis), by);
    if (product.is_overflow()) return c.error("dimension %d of %s becomes too large", axis, c.input(0).text().c_str());
    out.set_dim(axis, product.value());
    return {};
  };
  for (int axis : {axes.height, axes.width}) DTG_TRY(to_depth ? divided(axis, block) : multiplied(axis, block));
  DTG_TRY(to_depth ? multiplied(axes.channel, block * block) : divided(axes.channel, block * block));
  c.output(0, out);
  return {};
}

Status to_depth_shape(InferContext& c) { return depth_shape(c, true); }
Status to_space_shape(InferContext& c) { return depth_shape(c, false); }

// Each undoes the other.
Status depth_grad(GradContext& c) {
  const char* other = c.node().op->name() == "SpaceToDepth" ? "DepthToSpace" : "SpaceToDepth";
  c.dx(0, c.b().op(other, {c.dy()}, {{"block_size", c.attr<int64_t>("block_size")}, {"data_format", c.attr<std::string>("data_format")}}));
  return {};
}

struct WalkArgs {
  cpu::Walk walk;
  bool empty = false;
};

Status walk_run(RunContext& c) {
  const auto& a = c.args<WalkArgs>();
  if (!a.empty) cpu::copy_walk(c.pool(), a.walk, c.in<char>(0), c.out<char>(0));
  return {};
}

// The pixel (y b + i, x b + j) of the large image is channels [(i b + j) C, (i b + j + 1) C) of pixel (y, x) of the deep one.
template <bool kToDepth>
Status depth_prepare(PrepareContext& c) {
  auto& a = *c.args<WalkArgs>();
  DTG_ASSIGN(const Axes axes, axes_of(c.node()));
  const int64_t block = c.integer("block_size"), size = dtype_size(c.input(0).dtype);
  const Shape& large = kToDepth ? c.input(0).shape : c.output(0).shape;
  const Shape& deep = kToDepth ? c.output(0).shape : c.input(0).shape;
  a.empty = large.count() == 0;
  a.walk = cpu::Walk(size);
  const auto add = [&](int64_t dim, int64_t large_step, int64_t deep_step) {
    a.walk.add(dim, kToDepth ? large_step : deep_step, kToDepth ? deep_step : large_step);
  };
  const int64_t ly = stride_of(large, axes.height, size), lx = stride_of(large, axes.width, size),
                lc = stride_of(large, axes.channel, size);
  const int64_t dy = stride_of(deep, axes.height, size), dx = stride_of(deep, axes.width, size), dc = stride_of(deep, axes.channel, size);
  const int64_t channels = large.dim(axes.channel);
  add(large.dim(0), stride_of(large, 0, size), stride_of(deep, 0, size));
  if (axes.channel == 1) add(channels, lc, dc);
  add(deep.dim(axes.height), ly * block, dy);
  add(block, ly, dc * channels * block);
  add(deep.dim(axes.width), lx * block, dx);
  add(block, lx, dc * channels);
  if (axes.channel == 3) add(channels, lc, dc);
  a.walk.finish();
  return c.sync(walk_run);
}

// ---- SpaceToBatchND, BatchToSpaceND ------------------------------------------------------------------------

constexpr int kBlocksMax = kRankMax - 1;

struct Blocks {
  int count = 0;  // dimensions with a block
  std::array<int64_t, kBlocksMax> size{}, before{}, after{};
};

// From what was given; messages without the node's name.
Result<Blocks> blocks_of(std::span<const int64_t> sizes, std::span<const int64_t> paddings, const char* what) {
  if (sizes.size() > static_cast<size_t>(kBlocksMax)) return invalid_argument("%zu block sizes are more than dimensions", sizes.size());
  if (paddings.size() != 2 * sizes.size()) {
    return invalid_argument("%s must have shape [%zu,2], one row for each block size, but has %zu elements", what, sizes.size(),
                            paddings.size());
  }
  Blocks blocks;
  blocks.count = static_cast<int>(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 1 || sizes[i] > INT32_MAX) {
      return invalid_argument("block size %zu is %lld; it must be at least 1", i, static_cast<long long>(sizes[i]));
    }
    const int64_t before = paddings[2 * i], after = paddings[2 * i + 1];
    if (before < 0 || after < 0 || before > INT32_MAX || after > INT32_MAX) {
      return invalid_argument("%s %zu are %lld and %lld; they must not be negative", what, i, static_cast<long long>(before),
                              static_cast<long long>(after));
    }
    blocks.size[i] = sizes[i], blocks.before[i] = before, blocks.after[i] = after;
  }
  return blocks;
}

Result<PartialShape> moved_shape(const PartialShape& in, const Blocks& blocks, bool to_batch) {
  if (!in.has_rank()) return PartialShape();
  if (in.rank() < 1 + blocks.count) {
    return invalid_argument("%d block sizes need an input of rank %d or more, but it has shape %s", blocks.count, blocks.count + 1,
                            in.text().c_str());
  }
  PartialShape out = in;
  Bytes times(1);
  for (int i = 0; i < blocks.count; ++i) {
    const auto at = static_cast<size_t>(i);
    times = times * blocks.size[at];
    const int64_t dim = in.dim(i + 1), extra = blocks.before[at] + blocks.after[at];
    if (dim < 0) continue;
    const Bytes whole = to_batch ? Bytes(dim) + Bytes(extra) : Bytes::of(dim, blocks.size[at]);
    if (whole.is_overflow()) return invalid_argument("dimension %d becomes too large", i + 1);
    if (to_batch && whole.value() % blocks.size[at] != 0) {
      return invalid_argument("dimension %d, %lld with its padding, is not a multiple of the block size %lld", i + 1,
                              static_cast<long long>(whole.value()), static_cast<long long>(blocks.size[at]));
    }
    if (!to_batch && whole.value() < extra) {
      return invalid_argument("dimension %d, %lld before cropping, is smaller than its crops %lld + %lld", i + 1,
                              static_cast<long long>(whole.value()), static_cast<long long>(blocks.before[at]),
                              static_cast<long long>(blocks.after[at]));
    }
    out.set_dim(i + 1, to_batch ? whole.value() / blocks.size[at] : whole.value() - extra);
  }
  if (times.is_overflow()) return invalid_argument("the product of the block sizes is too large");
  const int64_t batch = in.dim(0);
  if (batch < 0) return out;
  if (!to_batch && batch % times.value() != 0) {
    return invalid_argument("the batch of %lld is not a multiple of the product of the block sizes, %lld", static_cast<long long>(batch),
                            static_cast<long long>(times.value()));
  }
  const Bytes moved = to_batch ? times * batch : Bytes(batch / times.value());
  if (moved.is_overflow()) return invalid_argument("the batch becomes too large");
  out.set_dim(0, moved.value());
  return out;
}

bool is_to_batch(const Node& node) { return node.op->name().starts_with("SpaceToBatch"); }
const char* edges_name(bool to_batch) { return to_batch ? "paddings" : "crops"; }

Status moved_shape_of(InferContext& c, int edges, const KnownIntegers& sizes) {
  const bool to_batch = is_to_batch(c.node());
  const KnownIntegers paddings = known_integers(c, edges);
  if (!sizes.known || !paddings.known) {
    if (c.input(0).has_rank()) c.output(0, PartialShape::of_rank(c.input(0).rank()));
    return {};
  }
  auto blocks = blocks_of(sizes.span(), paddings.span(), edges_name(to_batch));
  if (!blocks.ok()) return c.error("%s", blocks.status().message().c_str());
  auto out = moved_shape(c.input(0), blocks.value(), to_batch);
  if (!out.ok()) return c.error("%s", out.status().message().c_str());
  c.output(0, out.take());
  return {};
}

Status edges_shape(InferContext& c, int edges, int64_t blocks) {
  DTG_TRY(c.require_rank(edges, 2));
  const PartialShape& shape = c.input(edges);
  if (!shape.has_rank()) return {};
  if ((shape.dim(1) >= 0 && shape.dim(1) != 2) || (blocks >= 0 && shape.dim(0) >= 0 && shape.dim(0) != blocks)) {
    return c.error("%s must have shape [%lld,2], but have %s", edges_name(is_to_batch(c.node())), static_cast<long long>(blocks),
                   shape.text().c_str());
  }
  return {};
}

Status nd_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 1));
  DTG_TRY(edges_shape(c, 2, c.input(1).has_rank() ? c.input(1).dim(0) : -1));
  return moved_shape_of(c, 2, known_integers(c, 1));
}

Status four_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 4));
  DTG_TRY(edges_shape(c, 1, 2));
  KnownIntegers sizes;
  sizes.known = true, sizes.count = 2;
  sizes.values[0] = sizes.values[1] = c.integer("block_size");
  return moved_shape_of(c, 1, sizes);
}

Status nd_grad(GradContext& c) {
  const char* other = is_to_batch(c.node()) ? "BatchToSpaceND" : "SpaceToBatchND";
  c.dx(0, c.b().op(other, {c.dy(), c.input(1), c.input(2)}));
  return {};
}

Status four_grad(GradContext& c) {
  const char* other = is_to_batch(c.node()) ? "BatchToSpace" : "SpaceToBatch";
  c.dx(0, c.b().op(other, {c.dy(), c.input(1)}, {{"block_size", c.attr<int64_t>("block_size")}}));
  return {};
}

struct MoveArgs {
  Shape in;
  int64_t size = 0;
  bool to_batch = true;
  int64_t fixed = 0;  // block size from the attribute; 0: it is an input
  Integers sizes, edges;
  OutputSpec out;
};

// The pixels at one place of every block: they are the images [place * batch, (place + 1) * batch) of the batch side.
void copy_place(RunContext& c, const MoveArgs& a, const Blocks& blocks, const Shape& space, const Shape& batch, const int64_t* offset,
                int64_t place, char* out) {
  cpu::Walk walk(a.size);
  int64_t space_at = 0, batch_at = place * space.dim(0) * stride_of(batch, 0, a.size);
  const auto add = [&](int64_t dim, int64_t space_step, int64_t batch_step) {
    walk.add(dim, a.to_batch ? space_step : batch_step, a.to_batch ? batch_step : space_step);
  };
  add(space.dim(0), stride_of(space, 0, a.size), stride_of(batch, 0, a.size));
  for (int i = 0; i < blocks.count; ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t block = blocks.size[at], shift = blocks.before[at] - offset[i];  // position o of a block is pixel o * block - shift
    const int64_t first = shift > 0 ? (shift + block - 1) / block : 0, room = space.dim(i + 1) + shift;
    const int64_t last = std::min(room > 0 ? (room + block - 1) / block : 0, batch.dim(i + 1));
    if (last <= first) return;
    space_at += (first * block - shift) * stride_of(space, i + 1, a.size);
    batch_at += first * stride_of(batch, i + 1, a.size);
    add(last - first, block * stride_of(space, i + 1, a.size), stride_of(batch, i + 1, a.size));
  }
  for (int i = blocks.count + 1; i < space.rank(); ++i) add(space.dim(i), stride_of(space, i, a.size), stride_of(batch, i, a.size));
  walk.finish();
  cpu::copy_walk(c.pool(), walk, c.in<char>(0) + (a.to_batch ? space_at : batch_at), out + (a.to_batch ? batch_at : space_at));
}

Status move_run(RunContext& c) {
  const auto& a = c.args<MoveArgs>();
  Integers::Buffer size_buffer, edge_buffer;
  const int64_t fixed[] = {a.fixed, a.fixed};
  const auto blocks = blocks_of(a.fixed ? std::span<const int64_t>(fixed) : a.sizes.get(c, size_buffer), a.edges.get(c, edge_buffer),
                                edges_name(a.to_batch));
  if (!blocks.ok()) return c.error("%s", blocks.status().message().c_str());
  const auto moved = moved_shape(a.in, blocks.value(), a.to_batch);
  if (!moved.ok()) return c.error("%s", moved.status().message().c_str());
  const auto shape = moved.value().to_shape();
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  DTG_ASSIGN(char* out, a.out.memory(c, shape.value()));
  const Shape &space = a.to_batch ? a.in : shape.value(), &batch = a.to_batch ? shape.value() : a.in;
  if (shape.value().count() == 0) return {};
  if (batch.count() != space.count()) cpu::clear(c.pool(), out, shape.value().count() * a.size);
  if (a.in.count() == 0) return {};
  int64_t places = 1, offset[kBlocksMax] = {};
  for (int i = 0; i < blocks.value().count; ++i) places *= blocks.value().size[static_cast<size_t>(i)];
  for (int64_t place = 0; place < places; ++place) {
    copy_place(c, a, blocks.value(), space, batch, offset, place, out);
    for (int i = blocks.value().count; i-- > 0;) {
      if (++offset[i] < blocks.value().size[static_cast<size_t>(i)]) break;
      offset[i] = 0;
    }
  }
  return {};
}

template <bool kFour>
Status move_prepare(PrepareContext& c) {
  auto& a = *c.args<MoveArgs>();
  a.in = c.input(0).shape;
  a.size = dtype_size(c.input(0).dtype);
  a.to_batch = is_to_batch(c.node());
  a.out.prepare(c, 0);
  if (kFour) a.fixed = c.integer("block_size");
  else DTG_TRY(a.sizes.prepare(c, 1));
  DTG_TRY(a.edges.prepare(c, kFour ? 1 : 2));
  return c.sync(move_run);
}

// ---- DataFormatDimMap, DataFormatVecPermute ----------------------------------------------------------------

struct FormatArgs {
  int64_t count = 0;  // elements
  int axes = 0;
  std::array<int64_t, 5> to{};  // where axis i of the source format lies in the other
  // DataFormatVecPermute: rows of `columns` elements, and row r comes from row from[r]
  int64_t columns = 1, rows = 0;
  std::array<int64_t, 5> from{};
};

Status read_formats(const Node& node, FormatArgs& a, std::string* source, std::string* target) {
  *source = node.attr<std::string>("src_format"), *target = node.attr<std::string>("dst_format");
  if ((source->size() != 4 && source->size() != 5) || source->size() != target->size()) {
    return invalid_argument("%s: formats have 4 or 5 letters, both as many, but src_format is %s and dst_format %s",
                            node.op->name().c_str(), source->c_str(), target->c_str());
  }
  a.axes = static_cast<int>(source->size());
  for (size_t i = 0; i < source->size(); ++i) {
    const size_t place = target->find((*source)[i]);
    if (place == std::string::npos || source->find((*source)[i], i + 1) != std::string::npos) {
      return invalid_argument("%s: dst_format %s is not an order of the letters of src_format %s", node.op->name().c_str(), target->c_str(),
                              source->c_str());
    }
    a.to[i] = static_cast<int64_t>(place);
  }
  return {};
}

Status format_shape(InferContext& c) {
  FormatArgs args;
  std::string source, target;
  DTG_TRY(read_formats(c.node(), args, &source, &target));
  return c.same_as_input(0);
}

template <class T>
Status dim_map_run(RunContext& c) {
  const auto& a = c.args<FormatArgs>();
  for (int64_t i = 0; i < a.count; ++i) {
    const T axis = c.in<T>(0)[i];
    if (axis < -a.axes || axis >= a.axes) {
      return c.error("axis %lld is not in [%d, %d)", static_cast<long long>(axis), -a.axes, a.axes);
    }
    c.out<T>(0)[i] = static_cast<T>(a.to[static_cast<size_t>(axis < 0 ? axis + a.axes : axis)]);
  }
  return {};
}

template <class T>
Status dim_map_prepare(PrepareContext& c) {
  auto& a = *c.args<FormatArgs>();
  std::string source, target;
  DTG_TRY(read_formats(c.node(), a, &source, &target));
  a.count = c.input(0).shape.count();
  return c.sync(dim_map_run<T>);
}

template <class T>
Status vec_permute_run(RunContext& c) {
  const auto& a = c.args<FormatArgs>();
  for (int64_t r = 0; r < a.rows; ++r) {
    const T* row = c.in<T>(0) + a.from[static_cast<size_t>(r)] * a.columns;
    std::copy(row, row + a.columns, c.out<T>(0) + r * a.columns);
  }
  return {};
}

// A vector with one entry per axis or per spatial axis, or as many pairs.
template <class T>
Status vec_permute_prepare(PrepareContext& c) {
  auto& a = *c.args<FormatArgs>();
  std::string source, target;
  DTG_TRY(read_formats(c.node(), a, &source, &target));
  const Shape& shape = c.input(0).shape;
  if (shape.rank() != 1 && shape.rank() != 2) return c.error("x must be a vector or a matrix, but has shape %s", shape.text().c_str());
  if (shape.rank() == 2 && shape.dim(1) != 2) return c.error("a matrix x must have 2 columns, but has shape %s", shape.text().c_str());
  a.rows = shape.dim(0);
  a.columns = shape.rank() == 2 ? 2 : 1;
  if (a.rows == a.axes - 2) {
    const auto is_outer = [](char letter) { return letter == 'N' || letter == 'C'; };
    std::erase_if(source, is_outer);
    std::erase_if(target, is_outer);
  }
  if (a.rows != static_cast<int64_t>(source.size())) {
    return c.error("x must have %d rows, or %d for the spatial dimensions, but has shape %s", a.axes, a.axes - 2, shape.text().c_str());
  }
  for (size_t r = 0; r < target.size(); ++r) a.from[r] = static_cast<int64_t>(source.find(target[r]));
  return c.sync(vec_permute_run<T>);
}

// ---- definitions -------------------------------------------------------------------------------------------

void register_depth(OpTable& ops, KernelTable& kernels) {
  for (const bool to_depth : {true, false}) {
    const char* name = to_depth ? "SpaceToDepth" : "DepthToSpace";
    ops.add(OpDef::make(name)
                .input("input: T", {.rank = 4})
                .output("output: T")
                .attr("T: type")
                .attr("block_size: int >= 2")
                .attr("data_format: {'NHWC','NCHW','NCHW_VECT_C'} = 'NHWC'")
                .shape(to_depth ? to_depth_shape : to_space_shape)
                .gradient(depth_grad)
                .doc(to_depth ? "Blocks of pixels laid out along the channels." : "Channels laid out as blocks of pixels."));
    kernels.add({.op = name, .types = {{"T", kPlain}}, .prepare = to_depth ? depth_prepare<true> : depth_prepare<false>});
  }
}

void register_batch(OpTable& ops, KernelTable& kernels) {
  constexpr const char* kThere = "The image padded, cut into blocks, and the pixels at each place of the blocks made images of the batch.";
  constexpr const char* kBack = "Images of the batch laid out as the pixels of blocks, and the result cropped.";
  for (const bool to_batch : {true, false}) {
    const char* name = to_batch ? "SpaceToBatchND" : "BatchToSpaceND";
    ops.add(OpDef::make(name)
                .input("input: T", {.rank_min = 1})
                .input("block_shape: Tblock_shape", {.rank = 1})
                .input(to_batch ? "paddings: Tpaddings" : "crops: Tcrops", {.rank = 2})
                .output("output: T")
                .attr("T: type")
                .attr("Tblock_shape: {int32, int64} = int32")
                .attr(to_batch ? "Tpaddings: {int32, int64} = int32" : "Tcrops: {int32, int64} = int32")
                .shape(nd_shape)
                .gradient(nd_grad)
                .doc(to_batch ? kThere : kBack));
    kernels.add({.op = name, .types = {{"T", kPlain}}, .prepare = move_prepare<false>});
    const char* four = to_batch ? "SpaceToBatch" : "BatchToSpace";
    ops.add(OpDef::make(four)
                .input("input: T", {.rank = 4})
                .input(to_batch ? "paddings: Tpaddings" : "crops: Tidx", {.rank = 2})
                .output("output: T")
                .attr("T: type")
                .attr(to_batch ? "Tpaddings: {int32, int64} = int32" : "Tidx: {int32, int64} = int32")
                .attr("block_size: int >= 2")
                .shape(four_shape)
                .gradient(four_grad)
                .doc(to_batch ? kThere : kBack));
    kernels.add({.op = four, .types = {{"T", kPlain}}, .prepare = move_prepare<true>});
  }
}

}  // namespace

void register_space(OpTable& ops, KernelTable& kernels) {
  register_depth(ops, kernels);
  register_batch(ops, kernels);
  for (const bool map : {true, false}) {
    ops.add(OpDef::make(map ? "DataFormatDimMap" : "DataFormatVecPermute")
                .input("x: T")
                .output("y: T")
                .attr("T: {int32, int64} = int32")
                .attr("src_format: string = 'NHWC'")
                .attr("dst_format: string = 'NCHW'")
                .shape(format_shape)
                .no_gradient()
                .doc(map ? "Axes of one data format as axes of another." : "One entry per axis, in the order of another data format."));
  }
  kernels.add({.op = "DataFormatDimMap", .types = {{"T", DTypeSet{DType::i32}}}, .prepare = dim_map_prepare<int32_t>});
  kernels.add({.op = "DataFormatDimMap", .types = {{"T", DTypeSet{DType::i64}}}, .prepare = dim_map_prepare<int64_t>});
  kernels.add({.op = "DataFormatVecPermute", .types = {{"T", DTypeSet{DType::i32}}}, .prepare = vec_permute_prepare<int32_t>});
  kernels.add({.op = "DataFormatVecPermute", .types = {{"T", DTypeSet{DType::i64}}}, .prepare = vec_permute_prepare<int64_t>});
}

}  // namespace dtg::ops
