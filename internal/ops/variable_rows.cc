// Rows of a variable: gathering and scattering by index, without touching the rest. One view of the indices serves
// both the plain ops (an index names a row) and the Nd ones (the last dimension of the indices names a slice).
#include <algorithm>
#include <cstring>

#include "base/watched.h"
#include "exec/variable.h"
#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/variable.h"

namespace dtg::ops {
namespace {

// What prepare knows about the indices.
struct IndexArgs : UpdateArgs {
  DType dtype = DType::invalid;  // of the variable
  Shape indices;
  bool wide = false;  // int64
  bool nd = false;
  bool ignore_bad = false;  // an index out of range is skipped
  int batch = 0;            // ResourceGather: leading dimensions shared by variable and indices
};

void index_args(PrepareContext& c, IndexArgs* a, const char* dtype, bool nd) {
  a->dtype = c.attr<DType>(dtype);
  a->indices = c.input(1).shape;
  a->wide = c.input(1).dtype == DType::i64;
  a->nd = nd;
}

// The indices over a concrete value: `count` of them, each naming one of `rows` slices of `width` elements.
struct Rows {
  const void* data = nullptr;
  bool wide = false;
  int depth = 1;
  int64_t dims[kRankMax] = {};
  int64_t count = 0;
  int64_t rows = 1;
  int64_t width = 1;

  int64_t number(int64_t i) const { return wide ? static_cast<const int64_t*>(data)[i] : static_cast<const int32_t*>(data)[i]; }
  // -1 when it is out of range.
  int64_t row(int64_t i) const {
    int64_t at = 0;
    for (int d = 0; d < depth; ++d) {
      const int64_t index = number(i * depth + d);
      if (index < 0 || index >= dims[d]) return -1;
      at = at * dims[d] + index;
    }
    return at;
  }
};

Result<Rows> rows_of(const RunContext& c, const IndexArgs& a, const Shape& shape) {
  Rows rows;
  rows.data = c.in<void>(1);
  rows.wide = a.wide;
  const int from = a.batch;
  const int64_t last = a.nd && a.indices.rank() > 0 ? a.indices.dim(a.indices.rank() - 1) : 1;
  if ((a.nd && a.indices.rank() == 0) || from + last > shape.rank()) {
    return c.error("indices of shape %s do not fit a variable of shape %s", a.indices.text().c_str(), shape.text().c_str());
  }
  rows.depth = static_cast<int>(last);
  for (int d = 0; d < rows.depth; ++d) {
    rows.dims[d] = shape.dim(from + d);
    rows.rows *= rows.dims[d];
  }
  rows.width = shape.count(from + rows.depth, shape.rank());
  rows.count = a.nd ? a.indices.count(0, a.indices.rank() - 1) : a.indices.count();
  return rows;
}

// All of them are looked at before anything is written.
Status check_rows(const RunContext& c, const Rows& rows, bool ignore_bad) {
  if (ignore_bad) return {};
  for (const int64_t i : watched(rows.count, 2)) {
    if (rows.row(i) >= 0) continue;
    std::string text, limits;
    for (int d = 0; d < rows.depth; ++d) {
      const char* const comma = d > 0 ? ", " : "";
      text += format("%s%lld", comma, static_cast<long long>(rows.number(i * rows.depth + d)));
      limits += format("%s%lld", comma, static_cast<long long>(rows.dims[d]));
    }
    return c.error("indices[%lld] = [%s] is not inside [%s]", static_cast<long long>(i), text.c_str(), limits.c_str());
  }
  return {};
}

// --- ResourceGather, ResourceGatherNd ---

int batch_dims(int64_t attr, int indices_rank) { return static_cast<int>(attr < 0 && indices_rank >= 0 ? attr + indices_rank : attr); }

// prefix + the dimensions of `of` from `from` on.
Status append_tail(PartialShape* prefix, const PartialShape& of, int from) {
  for (int d = from; d < of.rank(); ++d) DTG_TRY(prefix->append(of.dim(d)));
  return {};
}

Status gather_shape(InferContext& c) {
  DTG_TRY(check_held(c, 0, "dtype"));
  const PartialShape& params = c.input(0);
  const PartialShape& indices = c.input(1);
  if (!params.has_rank() || !indices.has_rank()) return {};
  const int batch = batch_dims(c.integer("batch_dims"), indices.rank());
  if (batch < 0 || batch > indices.rank() || batch >= params.rank()) {
    return c.error("batch_dims %d does not fit a variable of shape %s and indices of shape %s", batch, params.text().c_str(),
                   indices.text().c_str());
  }
  for (int d = 0; d < batch; ++d) {
    if (params.dim(d) >= 0 && indices.dim(d) >= 0 && params.dim(d) != indices.dim(d)) {
      return c.error("the variable of shape %s and indices of shape %s differ in a batch dimension", params.text().c_str(),
                     indices.text().c_str());
    }
  }
  PartialShape out = indices;
  if (Status status = append_tail(&out, params, batch + 1); !status.ok()) return c.error("%s", status.message().c_str());
  c.output(0, out);
  return {};
}

Status gather_nd_shape(InferContext& c) {
  DTG_TRY(check_held(c, 0, "dtype"));
  const PartialShape& params = c.input(0);
  const PartialShape& indices = c.input(1);
  DTG_TRY(c.require_rank_at_least(1, 1));
  if (!params.has_rank() || !indices.has_rank()) return {};
  const int64_t depth = indices.dim(indices.rank() - 1);
  if (depth < 0) return {};
  if (depth > params.rank()) {
    return c.error("indices of depth %lld into a variable of shape %s", static_cast<long long>(depth), params.text().c_str());
  }
  PartialShape out = PartialShape::scalar();
  for (int d = 0; d + 1 < indices.rank(); ++d) DTG_TRY(out.append(indices.dim(d)));
  if (Status status = append_tail(&out, params, static_cast<int>(depth)); !status.ok()) {
    return c.error("%s", status.message().c_str());
  }
  c.output(0, out);
  return {};
}

struct GatherArgs : IndexArgs {
  Shape output;
  bool dynamic = false;
};

Result<Shape> gathered_shape(const GatherArgs& a, const Shape& params) {
  PartialShape out = PartialShape::scalar();
  const int outer = a.nd ? a.indices.rank() - 1 : a.indices.rank();
  for (int d = 0; d < outer; ++d) DTG_TRY(out.append(a.indices.dim(d)));
  const int from = a.nd ? static_cast<int>(a.indices.dim(outer)) : a.batch + 1;
  DTG_TRY(append_tail(&out, params, from));
  return out.to_shape();
}

constexpr int64_t kGatherShard = 1 << 18;  // bytes

Status gather_run(RunContext& c, Variable::Version& read) {
  const Tensor& value = read.tensor;
  const auto& a = c.args<GatherArgs>();
  DTG_TRY(check_tensor(c, value, a.dtype, nullptr));
  DTG_ASSIGN(const Rows rows, rows_of(c, a, value.shape()));
  DTG_ASSIGN(const Shape shape, gathered_shape(a, value.shape()));
  char* to = c.out<char>(0);
  if (a.dynamic) {
    DTG_ASSIGN(void* leased, c.lease_output(0, a.dtype, shape));
    to = static_cast<char*>(leased);
  } else if (!(shape == a.output)) {
    return c.error("the variable has shape %s, which gives %s; this graph was prepared for %s", value.shape().text().c_str(),
                   shape.text().c_str(), a.output.text().c_str());
  }
  DTG_TRY(check_rows(c, rows, false));
  const int64_t bytes = rows.width * dtype_size(a.dtype);
  if (bytes == 0 || rows.count == 0) return {};
  const int64_t batches = a.nd ? 1 : value.shape().count(0, a.batch), per_batch = rows.count / batches;
  const int64_t piece = std::max<int64_t>(1, kGatherShard / bytes);
  c.pool().parallel_for((rows.count + piece - 1) / piece, [&](int64_t shard) {
    for (int64_t i = shard * piece; i < std::min(rows.count, (shard + 1) * piece); ++i) {
      const int64_t row = i / per_batch * rows.rows + rows.row(i);
      std::memcpy(to + i * bytes, value.as<char>() + row * bytes, static_cast<size_t>(bytes));
    }
  });
  return {};
}

Status gather_prepare_as(PrepareContext& c, bool nd) {
  auto* const a = c.args<GatherArgs>();
  index_args(c, a, "dtype", nd);
  if (!nd) a->batch = batch_dims(c.integer("batch_dims"), a->indices.rank());
  a->dynamic = c.output(0).dynamic;
  if (!a->dynamic) a->output = c.output(0).shape;
  return prepare_read(c, 0, gather_run);
}
Status gather_prepare(PrepareContext& c) { return gather_prepare_as(c, false); }
Status gather_nd_prepare(PrepareContext& c) { return gather_prepare_as(c, true); }

// The gradient is rows of the variable: dy reshaped to [number of indices, rest of the shape].
Status gather_grad(GradContext& c) {
  Build& b = c.b();
  if (c.attr<int64_t>("batch_dims") != 0) {
    return unimplemented("the gradient of ResourceGather with batch_dims %lld; gather from ReadVariableOp with GatherV2",
                         static_cast<long long>(c.attr<int64_t>("batch_dims")));
  }
  const PartialShape& params = c.input_info(0).shape;
  const PartialShape& indices = c.input_info(1).shape;
  Value dense_shape, tail;
  if (params.complete()) {
    dense_shape = b.ints(params.dims());
    tail = b.ints(params.dims().subspan(1));
  } else {
    dense_shape = b.op("VariableShape", {c.input(0)});
    tail = b.op("StridedSlice", {dense_shape, b.ints({1}), b.ints({0}), b.ints({1})}, {{"end_mask", 1}});
  }
  Value flat = c.input(1);
  if (!indices.has_rank() || indices.rank() != 1) flat = b.reshape(flat, b.ints({-1}));
  const Value count = b.op("Size", {c.input(1)});
  const Value one = b.op("ExpandDims", {count, b.integer(0)});
  const Value values_shape = b.op("ConcatV2", {one, tail, b.integer(0)});
  c.dx_rows(0, b.reshape(c.dy(), values_shape), flat, dense_shape);
  return b.status();
}

Status gather_nd_grad(GradContext& c) {
  Build& b = c.b();
  const PartialShape& params = c.input_info(0).shape;
  const PartialShape& indices = c.input_info(1).shape;
  const Value dense_shape = params.complete() ? b.ints(params.dims()) : b.op("VariableShape", {c.input(0)});
  if (indices.rank() == 2 && indices.dim(1) == 1) {
    c.dx_rows(0, c.dy(), b.reshape(c.input(1), b.ints({-1})), dense_shape);
  } else {
    const DType index_type = c.input_info(1).dtype;
    c.dx(0, b.op("ScatterNd", {c.input(1), c.dy(), b.cast(dense_shape, index_type)}));
  }
  return b.status();
}

void register_gather_rows(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("ResourceGather")
              .input("resource: resource")
              .input("indices: Tindices")
              .output("output: dtype")
              .attr("batch_dims: int = 0")
              .attr("validate_indices: bool = true")
              .attr("dtype: type")
              .attr("Tindices: {int32, int64}")
              .shape(gather_shape)
              .gradient(gather_grad)
              .stateful()
              .access(Access::peek)
              .doc("Rows of a variable by index, without reading the rest."));
  kernels.add({.op = "ResourceGather", .types = {{"dtype", kPlain}}, .prepare = gather_prepare});
  ops.add(OpDef::make("ResourceGatherNd")
              .input("resource: resource")
              .input("indices: Tindices")
              .output("output: dtype")
              .attr("dtype: type")
              .attr("Tindices: {int32, int64}")
              .shape(gather_nd_shape)
              .gradient(gather_nd_grad)
              .stateful()
              .access(Access::peek)
              .doc("Slices of a variable; the last dimension of indices names a slice."));
  kernels.add({.op = "ResourceGatherNd", .types = {{"dtype", kPlain}}, .prepare = gather_nd_prepare});
}

// --- ResourceScatter..., ResourceScatterNd... ---

enum class Combine : uint8_t { add, sub, mul, div, min, max, update };

struct ScatterArgs : IndexArgs {
  Combine combine = Combine::update;
  Shape updates;
  bool scalar = false;  // one update for every element
};

template <class T>
T divided(T a, T b) {
  // The one quotient that does not fit wraps around.
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    if (b == -1) return static_cast<T>(0u - static_cast<std::make_unsigned_t<T>>(a));
  }
  return static_cast<T>(a / b);
}

template <Combine kCombine, class T>
T combined(T a, T b) {
  if constexpr (kCombine == Combine::update) {
    return b;
  } else if constexpr (kCombine == Combine::min) {
    return b < a ? b : a;
  } else if constexpr (kCombine == Combine::max) {
    return a < b ? b : a;
  } else if constexpr (kCombine == Combine::div) {
    return divided(a, b);
  } else if constexpr (std::is_integral_v<T>) {
    // 64 unsigned bits hold any product's low part without an overflow on the way.
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<T>(kCombine == Combine::add ? x + y : kCombine == Combine::sub ? x - y : x * y);
  } else {
    return static_cast<T>(kCombine == Combine::add ? a + b : kCombine == Combine::sub ? a - b : a * b);
  }
}

// Rows [from, to) of the variable, in the order of the indices.
template <Combine kCombine, class T>
void scatter_range(const Rows& rows, T* data, const T* updates, bool scalar, int64_t from, int64_t to) {
  for (int64_t i = 0; i < rows.count; ++i) {
    const int64_t row = rows.row(i);
    if (row < from || row >= to) continue;
    T* const at = data + row * rows.width;
    const T* const update = scalar ? updates : updates + i * rows.width;
    for (int64_t k = 0; k < rows.width; ++k) at[k] = combined<kCombine>(at[k], update[scalar ? 0 : k]);
  }
}

// Shards own rows of the variable, so that equal indices add up in their order whatever the threads do.
template <Combine kCombine, class T>
void scatter_as(RunContext& c, const Rows& rows, const ScatterArgs& a, void* data) {
  constexpr int64_t kElements = 65536, kShards = 16;
  const int64_t shards = rows.count * rows.width < kElements ? 1 : std::min(kShards, rows.rows);
  const int64_t piece = (rows.rows + shards - 1) / shards;
  c.pool().parallel_for(shards, [&](int64_t shard) {
    scatter_range<kCombine>(rows, static_cast<T*>(data), c.in<T>(2), a.scalar, shard * piece, std::min(rows.rows, (shard + 1) * piece));
  });
}

template <class T>
Status scatter_numbers(RunContext& c, const Rows& rows, const ScatterArgs& a, void* data) {
  switch (a.combine) {
    case Combine::add: scatter_as<Combine::add, T>(c, rows, a, data); break;
    case Combine::sub: scatter_as<Combine::sub, T>(c, rows, a, data); break;
    case Combine::mul: scatter_as<Combine::mul, T>(c, rows, a, data); break;
    case Combine::min: scatter_as<Combine::min, T>(c, rows, a, data); break;
    case Combine::max: scatter_as<Combine::max, T>(c, rows, a, data); break;
    case Combine::div:
      if constexpr (std::is_integral_v<T>) {
        const T* const updates = c.in<T>(2);
        if (std::find(updates, updates + a.updates.count(), T(0)) != updates + a.updates.count()) {
          return c.error("division by zero in the updates");
        }
      }
      scatter_as<Combine::div, T>(c, rows, a, data);
      break;
    case Combine::update: break;
  }
  return {};
}

struct Bytes16 {
  uint64_t half[2];
};

Status scatter_any(RunContext& c, const Rows& rows, const ScatterArgs& a, void* data) {
  if (a.combine == Combine::update) {
    switch (dtype_size(a.dtype)) {
      case 1: scatter_as<Combine::update, uint8_t>(c, rows, a, data); break;
      case 2: scatter_as<Combine::update, uint16_t>(c, rows, a, data); break;
      case 4: scatter_as<Combine::update, uint32_t>(c, rows, a, data); break;
      case 8: scatter_as<Combine::update, uint64_t>(c, rows, a, data); break;
      default: scatter_as<Combine::update, Bytes16>(c, rows, a, data); break;
    }
    return {};
  }
  switch (a.dtype) {
    case DType::f64: return scatter_numbers<double>(c, rows, a, data);
    case DType::f16: return scatter_numbers<Half>(c, rows, a, data);
    case DType::bf16: return scatter_numbers<BFloat16>(c, rows, a, data);
    case DType::i8: return scatter_numbers<int8_t>(c, rows, a, data);
    case DType::i16: return scatter_numbers<int16_t>(c, rows, a, data);
    case DType::i32: return scatter_numbers<int32_t>(c, rows, a, data);
    case DType::i64: return scatter_numbers<int64_t>(c, rows, a, data);
    case DType::u8: return scatter_numbers<uint8_t>(c, rows, a, data);
    case DType::u16: return scatter_numbers<uint16_t>(c, rows, a, data);
    case DType::u32: return scatter_numbers<uint32_t>(c, rows, a, data);
    case DType::u64: return scatter_numbers<uint64_t>(c, rows, a, data);
    default: return scatter_numbers<float>(c, rows, a, data);
  }
}

Status scatter_run(RunContext& c, VariableUpdate& update) {
  const auto& a = c.args<ScatterArgs>();
  const Tensor& tensor = update.tensor(0);
  DTG_TRY(check_tensor(c, tensor, a.dtype, nullptr));
  DTG_ASSIGN(const Rows rows, rows_of(c, a, tensor.shape()));
  if (!a.scalar && a.updates.count() != rows.count * rows.width) {
    return c.error("updates of shape %s for indices of shape %s and a variable of shape %s", a.updates.text().c_str(),
                   a.indices.text().c_str(), tensor.shape().text().c_str());
  }
  DTG_TRY(check_rows(c, rows, a.ignore_bad));
  if (rows.count == 0 || rows.width == 0) return {};
  return scatter_any(c, rows, a, update.data<void>(0));
}

Combine combine_of(std::string_view op) {
  const auto ends = [&](std::string_view word) { return op.ends_with(word); };
  if (ends("Add")) return Combine::add;
  if (ends("Sub")) return Combine::sub;
  if (ends("Mul")) return Combine::mul;
  if (ends("Div")) return Combine::div;
  if (ends("Min")) return Combine::min;
  return ends("Max") ? Combine::max : Combine::update;
}

Status scatter_prepare_as(PrepareContext& c, bool nd) {
  auto* const a = c.args<ScatterArgs>();
  index_args(c, a, nd ? "T" : "dtype", nd);
  a->combine = combine_of(c.node().op->name());
  a->updates = c.input(2).shape;
  a->scalar = !nd && a->updates.is_scalar();
  a->ignore_bad = nd && c.attr<std::string>("bad_indices_policy") == "IGNORE";
  return prepare_update(c, {0}, scatter_run);
}
Status scatter_prepare(PrepareContext& c) { return scatter_prepare_as(c, false); }
Status scatter_nd_prepare(PrepareContext& c) { return scatter_prepare_as(c, true); }

// The updates must be a slice of the variable for each index.
Status updates_fit(InferContext& c, int outer, int from) {
  const PartialShape& params = c.input(0);
  const PartialShape& indices = c.input(1);
  PartialShape want = PartialShape::scalar();
  Status status;
  for (int d = 0; d < outer && status.ok(); ++d) status = want.append(indices.dim(d));
  if (status.ok()) status = append_tail(&want, params, from);
  if (!status.ok()) return c.error("%s", status.message().c_str());
  const auto merged = PartialShape::merge(want, c.input(2), "updates");
  if (merged.ok()) return {};
  return c.error("updates of shape %s, but indices of shape %s into a variable of shape %s need %s", c.input(2).text().c_str(),
                 indices.text().c_str(), params.text().c_str(), want.text().c_str());
}

Status scatter_shape(InferContext& c) {
  DTG_TRY(check_held(c, 0, "dtype"));
  if (!c.input(0).has_rank() || !c.input(1).has_rank() || !c.input(2).has_rank() || c.input(2).rank() == 0) return {};
  if (c.input(0).rank() == 0) return c.error("the variable is a scalar and has no rows");
  return updates_fit(c, c.input(1).rank(), 1);
}

Status scatter_nd_shape(InferContext& c) {
  DTG_TRY(check_held(c, 0, "T"));
  if (!c.input(0).has_rank() || !c.input(1).has_rank() || c.input(1).rank() == 0) return {};
  const int outer = c.input(1).rank() - 1;
  const int64_t depth = c.input(1).dim(outer);
  // A depth beyond the rank is found when it runs, as TensorFlow does.
  if (depth < 0 || depth > c.input(0).rank()) return {};
  return updates_fit(c, outer, static_cast<int>(depth));
}

void register_scatter_rows(OpTable& ops, KernelTable& kernels, const char* name, bool nd) {
  const bool update = combine_of(name) == Combine::update;
  OpDef op = OpDef::make(name);
  std::move(op).input(nd ? "ref: resource" : "resource: resource").input("indices: Tindices");
  std::move(op).input(nd ? "updates: T" : "updates: dtype");
  if (nd) {
    std::move(op).attr("T: type").attr("Tindices: {int32, int64}");
    std::move(op).attr("use_locking: bool = true").attr("bad_indices_policy: string = ''");
  } else {
    std::move(op).attr("dtype: type").attr("Tindices: {int32, int64}");
  }
  std::move(op).shape(nd ? scatter_nd_shape : scatter_shape).no_gradient().stateful().access(Access::write);
  std::move(op).doc("Combines rows of a variable, named by indices, with updates; equal indices in their order.");
  ops.add(std::move(op));
  kernels.add({.op = name, .types = {{nd ? "T" : "dtype", update ? kPlain : kReal}}, .prepare = nd ? scatter_nd_prepare : scatter_prepare});
}

}  // namespace

void register_variable_rows(OpTable& ops, KernelTable& kernels) {
  register_gather_rows(ops, kernels);
  for (const char* name : {"ResourceScatterAdd", "ResourceScatterSub", "ResourceScatterMul", "ResourceScatterDiv", "ResourceScatterMin",
                           "ResourceScatterMax", "ResourceScatterUpdate"}) {
    register_scatter_rows(ops, kernels, name, false);
  }
  for (const char* name :
       {"ResourceScatterNdAdd", "ResourceScatterNdSub", "ResourceScatterNdMin", "ResourceScatterNdMax", "ResourceScatterNdUpdate"}) {
    register_scatter_rows(ops, kernels, name, true);
  }
}

}  // namespace dtg::ops
