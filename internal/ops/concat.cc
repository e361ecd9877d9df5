// Joining tensors and taking them apart: Concat, ConcatV2, ConcatOffset, Split, SplitV, Pack, Unpack. In memory
// all of them are the same thing: rows of one whole tensor, each made of one piece per part.
#include "device/cpu/copy.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/known.h"

namespace dtg::ops {
namespace {

std::span<const Value> inputs_of(const GradContext& c, int first, int count) {
  return c.node().inputs.subspan(static_cast<size_t>(first), static_cast<size_t>(count));
}

// The gradients of all outputs, zeros where none arrived.
std::vector<Value> all_dy(GradContext& c) {
  std::vector<Value> dys;
  for (int o = 0; o < c.num_outputs(); ++o) dys.push_back(c.dy(o));
  return dys;
}

// Copies one part between its own memory and the rows of the whole.
void copy_part(Pool& pool, int64_t rows, int64_t piece, int64_t from_row, int64_t to_row, const char* from, char* to) {
  cpu::Walk walk(piece);
  walk.add(rows, from_row, to_row);
  walk.finish();
  cpu::copy_walk(pool, walk, from, to);
}

// ---- Concat, ConcatV2 --------------------------------------------------------------------------------------

// The joined shape of the inputs [first, first + count) of a node.
Status concat_shape_of(InferContext& c, int first, int axis_input) {
  DTG_TRY(c.require_rank(axis_input, 0));
  const int count = c.num_inputs() - 1;
  int rank = -1;
  for (int i = first; i < first + count; ++i) {
    if (!c.input(i).has_rank()) continue;
    DTG_TRY(c.require_rank_at_least(i, 1));
    if (rank >= 0 && c.input(i).rank() != rank) {
      return c.error("all inputs must have the same rank, but have shapes %s and %s", c.input(first).text().c_str(),
                     c.input(i).text().c_str());
    }
    rank = c.input(i).rank();
  }
  if (rank < 0) return {};
  const KnownIntegers known = known_integers(c, axis_input);
  if (!known.known) {
    c.output(0, PartialShape::of_rank(rank));
    return {};
  }
  const auto axis = resolve_axis(known.values[0], rank);
  if (!axis.ok()) return c.error("%s", axis.status().message().c_str());
  PartialShape out = PartialShape::of_rank(rank);
  int64_t total = 0;
  for (int i = first; i < first + count; ++i) {
    PartialShape in = c.input(i).has_rank() ? c.input(i) : PartialShape::of_rank(rank);
    const int64_t dim = in.dim(axis.value());
    if (total >= 0 && (dim < 0 || __builtin_add_overflow(total, dim, &total))) total = -1;
    in.set_dim(axis.value(), -1);
    auto merged = PartialShape::merge(out, in, "the inputs outside the axis");
    if (!merged.ok()) return c.error("%s", merged.status().message().c_str());
    out = merged.take();
  }
  out.set_dim(axis.value(), total);
  c.output(0, out);
  return {};
}

Status concat_shape(InferContext& c) { return concat_shape_of(c, 1, 0); }
Status concat_v2_shape(InferContext& c) { return concat_shape_of(c, 0, c.num_inputs() - 1); }

// The extents along the axis, when the graph knows all of them.
bool known_extents(GradContext& c, int first, int count, int axis_input, std::vector<int64_t>& extents, int64_t& axis) {
  const Tensor value = c.b().graph().constant_value(c.input(axis_input));
  if (!value.valid()) return false;
  axis = value.int_at(0);
  for (int i = first; i < first + count; ++i) {
    const PartialShape& in = c.input_info(i).shape;
    if (!in.has_rank()) return false;
    const auto at = resolve_axis(axis, in.rank());
    if (!at.ok() || in.dim(at.value()) < 0) return false;
    extents.push_back(in.dim(at.value()));
  }
  return true;
}

// d(values[i]) = the part of dy that values[i] became
Status concat_grad_of(GradContext& c, int first, int axis_input) {
  Build& b = c.b();
  const int count = c.num_inputs() - 1;
  const Value dy = c.dy();
  std::vector<int64_t> extents;
  int64_t axis = 0;
  if (known_extents(c, first, count, axis_input, extents, axis)) {
    const Value parts = b.op("SplitV", {dy, b.ints(extents, DType::i64), b.integer(axis)}, {{"num_split", count}});
    for (int i = 0; i < count && b.ok(); ++i) c.dx(first + i, parts.sibling(static_cast<uint32_t>(i)));
    return {};
  }
  const Value shapes = b.op("ShapeN", inputs_of(c, first, count));
  if (!b.ok()) return {};
  std::vector<Value> arguments = {b.cast(c.input(axis_input), DType::i32)};
  for (int i = 0; i < count; ++i) arguments.push_back(shapes.sibling(static_cast<uint32_t>(i)));
  const Value offsets = b.op("ConcatOffset", arguments);
  for (int i = 0; i < count && b.ok(); ++i) {
    const auto part = static_cast<uint32_t>(i);
    c.dx(first + i, b.op("Slice", {dy, offsets.sibling(part), shapes.sibling(part)}));
  }
  return {};
}

Status concat_grad(GradContext& c) { return concat_grad_of(c, 1, 0); }
Status concat_v2_grad(GradContext& c) { return concat_grad_of(c, 0, c.num_inputs() - 1); }

struct ConcatArgs {
  int first = 0;
  std::span<const Shape> shapes;
  int64_t size = 0;
  Integers axis;
  OutputSpec out;
};

Result<Shape> joined(std::span<const Shape> shapes, int axis) {
  int64_t dims[kRankMax];
  for (int i = 0; i < shapes[0].rank(); ++i) dims[i] = shapes[0].dim(i);
  for (const Shape& shape : shapes.subspan(1)) {
    for (int i = 0; i < shape.rank(); ++i) {
      if (i != axis && shape.dim(i) != dims[i]) {
        return invalid_argument("inputs of shapes %s and %s cannot be joined along axis %d", shapes[0].text().c_str(), shape.text().c_str(),
                                axis);
      }
    }
    if (__builtin_add_overflow(dims[axis], shape.dim(axis), &dims[axis])) return invalid_argument("the joined axis is too long");
  }
  return Shape::make({dims, static_cast<size_t>(shapes[0].rank())});
}

Status concat_run(RunContext& c) {
  const auto& a = c.args<ConcatArgs>();
  Integers::Buffer buffer;
  const int rank = a.shapes[0].rank();
  const auto axis = resolve_axis(a.axis.get(c, buffer)[0], rank);
  if (!axis.ok()) return c.error("%s", axis.status().message().c_str());
  const auto shape = joined(a.shapes, axis.value());
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  DTG_ASSIGN(char* out, a.out.memory(c, shape.value()));
  const int64_t rows = shape.value().count(0, axis.value());
  const int64_t row = shape.value().count(axis.value(), rank) * a.size;
  for (size_t i = 0; i < a.shapes.size(); ++i) {
    const int64_t piece = a.shapes[i].count(axis.value(), rank) * a.size;
    copy_part(c.pool(), rows, piece, piece, row, c.in<char>(a.first + static_cast<int>(i)), out);
    out += piece;
  }
  return {};
}

Status concat_prepare_of(PrepareContext& c, int first, int axis_input) {
  auto* a = c.args<ConcatArgs>();
  std::vector<Shape> shapes;
  for (int i = first; i < first + c.num_inputs() - 1; ++i) {
    shapes.push_back(c.input(i).shape);
    if (shapes.back().rank() == 0 || shapes.back().rank() != shapes[0].rank()) {
      return c.error("inputs of shapes %s and %s cannot be joined", shapes[0].text().c_str(), shapes.back().text().c_str());
    }
  }
  a->first = first;
  a->shapes = c.arena().copy(std::span<const Shape>(shapes));
  a->size = cell_bytes(c.input(first).dtype);
  DTG_TRY(a->axis.prepare(c, axis_input));
  a->out.prepare(c, 0);
  return c.sync(concat_run);
}

Status concat_prepare(PrepareContext& c) { return concat_prepare_of(c, 1, 0); }
Status concat_v2_prepare(PrepareContext& c) { return concat_prepare_of(c, 0, c.num_inputs() - 1); }

// ---- ConcatOffset ------------------------------------------------------------------------------------------

Status concat_offset_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 0));
  for (int i = 1; i < c.num_inputs(); ++i) {
    DTG_TRY(c.require_rank(i, 1));
    c.output(i - 1, c.input(i));
  }
  return {};
}

struct ConcatOffsetArgs {
  int shapes = 0;
  int rank = 0;
  DType dtype = DType::i32;
};

Status concat_offset_run(RunContext& c) {
  const auto& a = c.args<ConcatOffsetArgs>();
  const auto axis = resolve_axis(*c.in<int32_t>(0), a.rank);
  if (!axis.ok()) return c.error("%s", axis.status().message().c_str());
  int64_t offset = 0;
  for (int i = 0; i < a.shapes; ++i) {
    for (int d = 0; d < a.rank; ++d) {
      const int64_t dim = integer_at(c.in<char>(i + 1), a.dtype, d);
      if (d != axis.value() && dim != integer_at(c.in<char>(1), a.dtype, d)) {
        return c.error("shapes 0 and %d differ in dimension %d, outside the axis %d", i, d, axis.value());
      }
      const int64_t value = d == axis.value() ? offset : 0;
      if (a.dtype == DType::i32) c.out<int32_t>(i)[d] = static_cast<int32_t>(value);
      else c.out<int64_t>(i)[d] = value;
    }
    // Wraps like the integers it is made of.
    offset =
        static_cast<int64_t>(static_cast<uint64_t>(offset) + static_cast<uint64_t>(integer_at(c.in<char>(i + 1), a.dtype, axis.value())));
  }
  return {};
}

Status concat_offset_prepare(PrepareContext& c) {
  auto* a = c.args<ConcatOffsetArgs>();
  a->shapes = c.num_inputs() - 1;
  const int64_t rank = c.input(1).shape.count();
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (c.input(i).shape.count() == rank && rank <= Integers::kMax) continue;
    return c.error("shapes 0 and %d have %lld and %lld dimensions", i - 1, static_cast<long long>(rank),
                   static_cast<long long>(c.input(i).shape.count()));
  }
  a->rank = static_cast<int>(rank);
  a->dtype = c.input(1).dtype;
  return c.sync(concat_offset_run);
}

// ---- Split, SplitV -----------------------------------------------------------------------------------------

// All outputs like the value, with `extents[i]` (or, when empty, unknown) along the axis.
Status split_outputs(InferContext& c, int value, int axis_input, std::span<const int64_t> extents) {
  const PartialShape& in = c.input(value);
  DTG_TRY(c.require_rank(axis_input, 0));
  if (!in.has_rank()) return {};
  DTG_TRY(c.require_rank_at_least(value, 1));
  const KnownIntegers known = known_integers(c, axis_input);
  PartialShape out = known.known ? in : PartialShape::of_rank(in.rank());
  int axis = 0;
  if (known.known) {
    const auto at = resolve_axis(known.values[0], in.rank());
    if (!at.ok()) return c.error("%s", at.status().message().c_str());
    axis = at.value();
  }
  for (int o = 0; o < c.num_outputs(); ++o) {
    if (known.known) out.set_dim(axis, extents.empty() ? -1 : extents[static_cast<size_t>(o)]);
    c.output(o, out);
  }
  return {};
}

// The extent of the value along the axis, -1 when unknown.
int64_t split_extent(const InferContext& c, int value, int axis_input) {
  const KnownIntegers known = known_integers(c, axis_input);
  if (!known.known || !c.input(value).has_rank()) return -1;
  const auto at = resolve_axis(known.values[0], c.input(value).rank());
  return at.ok() ? c.input(value).dim(at.value()) : -1;
}

Status split_shape(InferContext& c) {
  const int64_t extent = split_extent(c, 1, 0), parts = c.num_outputs();
  if (extent >= 0 && extent % parts != 0) {
    return c.error("%lld does not divide into %lld equal parts", static_cast<long long>(extent), static_cast<long long>(parts));
  }
  const std::vector<int64_t> extents(static_cast<size_t>(parts), extent < 0 ? -1 : extent / parts);
  return split_outputs(c, 1, 0, extents);
}

// Fills in the one -1 and checks the sum. `extents` holds what was asked for.
Status resolve_split(std::span<int64_t> extents, int64_t whole) {
  int64_t sum = 0;
  size_t open = extents.size();
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == -1 && open == extents.size()) {
      open = i;
    } else if (extents[i] < 0) {
      return invalid_argument("part %zu has size %lld; only one may be -1, and none less", i, static_cast<long long>(extents[i]));
    } else if (__builtin_add_overflow(sum, extents[i], &sum)) {
      return invalid_argument("the sizes of the parts add up to too much");
    }
  }
  if (open < extents.size()) extents[open] = whole - sum;
  if (open < extents.size() ? sum > whole : sum != whole) {
    return invalid_argument("the sizes of the parts add up to %lld, but there are %lld", static_cast<long long>(sum),
                            static_cast<long long>(whole));
  }
  return {};
}

Status split_v_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 1));
  if (c.input(1).has_rank() && c.input(1).dim(0) >= 0 && c.input(1).dim(0) != c.num_outputs()) {
    return c.error("%lld sizes for %d parts", static_cast<long long>(c.input(1).dim(0)), c.num_outputs());
  }
  const Tensor sizes = c.constant(1);
  std::vector<int64_t> extents;
  for (int64_t i = 0; sizes.valid() && i < sizes.count(); ++i) extents.push_back(integer_at(sizes.data(), sizes.dtype(), i));
  const int64_t whole = split_extent(c, 0, 2);
  if (sizes.valid() && whole >= 0) {
    const Status status = resolve_split(extents, whole);
    if (!status.ok()) return c.error("%s", status.message().c_str());
  }
  return split_outputs(c, 0, 2, extents);
}

// d(value) = the parts' gradients, joined again
Status split_grad_of(GradContext& c, int value, int axis_input) {
  std::vector<Value> dys = all_dy(c);
  if (dys.size() > 1) {
    dys.push_back(c.input(axis_input));
    dys = {c.b().op("ConcatV2", dys)};
  }
  c.dx(value, dys[0]);
  return {};
}
Status split_grad(GradContext& c) { return split_grad_of(c, 1, 0); }
Status split_v_grad(GradContext& c) { return split_grad_of(c, 0, 2); }

struct SplitArgs {
  Shape in;
  int value = 0;
  int sizes = -1;  // input with the parts' sizes; -1: equal parts
  DType sizes_dtype = DType::i64;
  int64_t size = 0;
  Integers axis;
  std::span<OutputSpec> outs;
};

Status split_run(RunContext& c) {
  const auto& a = c.args<SplitArgs>();
  Integers::Buffer buffer;
  const auto axis = resolve_axis(a.axis.get(c, buffer)[0], a.in.rank());
  if (!axis.ok()) return c.error("%s", axis.status().message().c_str());
  const int64_t whole = a.in.dim(axis.value());
  const auto parts = static_cast<int64_t>(a.outs.size());
  auto* extents = c.workspace<int64_t>();
  for (int64_t o = 0; o < parts; ++o) extents[o] = a.sizes < 0 ? whole / parts : integer_at(c.in<char>(a.sizes), a.sizes_dtype, o);
  const Status status = resolve_split({extents, a.outs.size()}, whole);
  if (!status.ok()) return c.error("%s", status.message().c_str());
  const int64_t rows = a.in.count(0, axis.value());
  const int64_t below = a.in.count(axis.value() + 1, a.in.rank()) * a.size;
  const char* in = c.in<char>(a.value);
  int64_t dims[kRankMax];
  for (int i = 0; i < a.in.rank(); ++i) dims[i] = a.in.dim(i);
  for (int64_t o = 0; o < parts; ++o) {
    dims[axis.value()] = extents[o];
    DTG_ASSIGN(const Shape shape, Shape::make({dims, static_cast<size_t>(a.in.rank())}));
    DTG_ASSIGN(char* out, a.outs[static_cast<size_t>(o)].memory(c, shape));
    copy_part(c.pool(), rows, extents[o] * below, whole * below, extents[o] * below, in, out);
    in += extents[o] * below;
  }
  return {};
}

Status split_prepare_of(PrepareContext& c, int value, int axis_input, int sizes) {
  auto* a = c.args<SplitArgs>();
  a->in = c.input(value).shape;
  a->value = value;
  a->sizes = sizes;
  if (sizes >= 0) a->sizes_dtype = c.input(sizes).dtype;
  a->size = cell_bytes(c.input(value).dtype);
  DTG_TRY(a->axis.prepare(c, axis_input));
  std::vector<OutputSpec> outs(static_cast<size_t>(c.num_outputs()));
  for (int o = 0; o < c.num_outputs(); ++o) outs[static_cast<size_t>(o)].prepare(c, o);
  a->outs = c.arena().copy(std::span<const OutputSpec>(outs));
  c.workspace(Bytes::of(c.num_outputs(), sizeof(int64_t)));
  return c.sync(split_run);
}
Status split_prepare(PrepareContext& c) { return split_prepare_of(c, 1, 0, -1); }
Status split_v_prepare(PrepareContext& c) { return split_prepare_of(c, 0, 2, 1); }

// ---- Pack, Unpack ------------------------------------------------------------------------------------------

Status pack_shape(InferContext& c) {
  PartialShape part = PartialShape::unknown();
  for (int i = 0; i < c.num_inputs(); ++i) {
    auto merged = PartialShape::merge(part, c.input(i), "the parts");
    if (!merged.ok()) return c.error("%s", merged.status().message().c_str());
    part = merged.take();
  }
  if (!part.has_rank()) return {};
  const auto axis = resolve_axis(c.integer("axis"), part.rank() + 1);
  if (!axis.ok()) return c.error("%s", axis.status().message().c_str());
  PartialShape out = PartialShape::of_rank(0);
  for (int i = 0; i <= part.rank(); ++i) {
    if (i == axis.value()) DTG_TRY(in_op(c.node(), out.append(c.num_inputs())));
    if (i < part.rank()) DTG_TRY(in_op(c.node(), out.append(part.dim(i))));
  }
  c.output(0, out);
  return {};
}

// d(values[i]) = slice i of dy along the axis
Status pack_grad(GradContext& c) {
  const Value parts = c.b().op("Unpack", {c.dy()}, {{"num", c.num_inputs()}, {"axis", c.attr<int64_t>("axis")}});
  for (int i = 0; i < c.num_inputs() && c.b().ok(); ++i) c.dx(i, parts.sibling(static_cast<uint32_t>(i)));
  return {};
}

Status unpack_shape(InferContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return {};
  DTG_TRY(c.require_rank_at_least(0, 1));
  const auto axis = resolve_axis(c.integer("axis"), in.rank());
  if (!axis.ok()) return c.error("%s", axis.status().message().c_str());
  const int64_t extent = in.dim(axis.value());
  if (extent >= 0 && extent != c.num_outputs()) {
    return c.error("axis %d has %lld slices, but num is %d", axis.value(), static_cast<long long>(extent), c.num_outputs());
  }
  PartialShape out = PartialShape::of_rank(0);
  for (int i = 0; i < in.rank(); ++i) {
    if (i != axis.value()) DTG_TRY(out.append(in.dim(i)));
  }
  for (int o = 0; o < c.num_outputs(); ++o) c.output(o, out);
  return {};
}

// d(value) = the slices' gradients, stacked again
Status unpack_grad(GradContext& c) {
  if (c.num_outputs() > 0) c.dx(0, c.b().op("Pack", all_dy(c), std::initializer_list<Attr>{{"axis", c.attr<int64_t>("axis")}}));
  return {};
}

struct PackArgs {
  int parts = 0;
  int64_t rows = 0, piece = 0;
};

Status pack_run(RunContext& c) {
  const auto& a = c.args<PackArgs>();
  for (int i = 0; i < a.parts; ++i) {
    copy_part(c.pool(), a.rows, a.piece, a.piece, a.piece * a.parts, c.in<char>(i), c.out<char>(0) + i * a.piece);
  }
  return {};
}

Status unpack_run(RunContext& c) {
  const auto& a = c.args<PackArgs>();
  for (int i = 0; i < a.parts; ++i) {
    copy_part(c.pool(), a.rows, a.piece, a.piece * a.parts, a.piece, c.in<char>(0) + i * a.piece, c.out<char>(i));
  }
  return {};
}

Status prepare_pack(PrepareContext& c, int parts, const PrepareContext::Operand& whole, SyncFn run) {
  auto* a = c.args<PackArgs>();
  DTG_ASSIGN(const int axis, resolve_axis(c.integer("axis"), whole.shape.rank()));
  a->parts = parts;
  a->rows = whole.shape.count(0, axis);
  a->piece = whole.shape.count(axis + 1, whole.shape.rank()) * cell_bytes(whole.dtype);
  return c.sync(run);
}
Status pack_prepare(PrepareContext& c) { return prepare_pack(c, c.num_inputs(), c.output(0), pack_run); }
Status unpack_prepare(PrepareContext& c) { return prepare_pack(c, c.num_outputs(), c.input(0), unpack_run); }

void register_pack(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("Pack")
              .input("values: N * T")
              .output("output: T")
              .attr("N: int >= 1")
              .attr("T: type")
              .attr("axis: int = 0")
              .shape(pack_shape)
              .value(pack_value)
              .gradient(pack_grad)
              .doc("Stacks tensors of one shape along a new axis."));
  kernels.add({.op = "Pack", .types = {{"T", kMovable}}, .prepare = pack_prepare});
  ops.add(OpDef::make("Unpack")
              .input("value: T")
              .output("output: num * T")
              .attr("num: int >= 0")
              .attr("T: type")
              .attr("axis: int = 0")
              .shape(unpack_shape)
              .gradient(unpack_grad)
              .doc("The slices of a tensor along an axis."));
  kernels.add({.op = "Unpack", .types = {{"T", kMovable}}, .prepare = unpack_prepare});
}

void register_split(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("Split")
              .input("split_dim: int32", {.rank = 0})
              .input("value: T")
              .output("output: num_split * T")
              .attr("num_split: int >= 1")
              .attr("T: type")
              .shape(split_shape)
              .gradient(split_grad)
              .doc("Equal parts of a tensor along an axis."));
  kernels.add({.op = "Split", .types = {{"T", kMovable}}, .prepare = split_prepare});
  ops.add(OpDef::make("SplitV")
              .input("value: T")
              .input("size_splits: Tlen", {.rank = 1})
              .input("split_dim: int32", {.rank = 0})
              .output("output: num_split * T")
              .attr("num_split: int >= 1")
              .attr("T: type")
              .attr("Tlen: {int8, int32, int64} = int64")
              .shape(split_v_shape)
              .gradient(split_v_grad)
              .doc("Parts of given sizes of a tensor along an axis; one size may be -1."));
  kernels.add({.op = "SplitV", .types = {{"T", kMovable}}, .prepare = split_v_prepare});
}

}  // namespace

void register_concat(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("Concat")
              .input("concat_dim: int32", {.rank = 0})
              .input("values: N * T")
              .output("output: T")
              .attr("N: int >= 2")
              .attr("T: type")
              .shape(concat_shape)
              .gradient(concat_grad)
              .doc("Joins tensors along an axis (the form with the axis first)."));
  kernels.add({.op = "Concat", .types = {{"T", kMovable}}, .prepare = concat_prepare});
  ops.add(OpDef::make("ConcatV2")
              .input("values: N * T")
              .input("axis: Tidx", {.rank = 0})
              .output("output: T")
              .attr("N: int >= 2")
              .attr("T: type")
              .attr("Tidx: {int32, int64} = int32")
              .shape(concat_v2_shape)
              .value(concat_value)
              .gradient(concat_v2_grad)
              .doc("Joins tensors along an axis."));
  kernels.add({.op = "ConcatV2", .types = {{"T", kMovable}}, .prepare = concat_v2_prepare});
  ops.add(OpDef::make("ConcatOffset")
              .input("concat_dim: int32", {.rank = 0})
              .input("shape: N * shape_type")
              .output("offset: N * shape_type")
              .attr("N: int >= 2")
              .attr("shape_type: {int32, int64} = int32")
              .shape(concat_offset_shape)
              .no_gradient()
              .doc("Where each part of a concatenation starts."));
  kernels.add({.op = "ConcatOffset", .types = {{"shape_type", kIndex}}, .prepare = concat_offset_prepare});
  register_split(ops, kernels);
  register_pack(ops, kernels);
}

}  // namespace dtg::ops
