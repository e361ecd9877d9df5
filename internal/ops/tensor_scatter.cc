// A tensor with updates written, added or compared at coordinates: the TensorScatter ops and ScatterNdNonAliasingAdd. Equal
// coordinates are taken in their order. The result may lie over the tensor.
#include "device/cpu/copy.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/coordinates.h"
#include "ops/rows.h"
#include "ops/type_lists.h"

namespace dtg::ops {
namespace {

Status tensor_scatter_shape(InferContext& c) {
  const PartialShape &tensor = c.input(0), &indices = c.input(1), &updates = c.input(2);
  DTG_TRY(c.require_rank_at_least(0, 1));
  DTG_TRY(c.require_rank_at_least(1, 1));
  // Tuples longer than the shape are left to run.
  if (tensor.has_rank() && indices.has_rank() && updates.has_rank() && indices.dim(indices.rank() - 1) <= tensor.rank()) {
    const Status status = check_updates(indices, updates, tensor);
    if (!status.ok()) return c.error("%s", status.message().c_str());
  }
  c.output(0, tensor);
  return {};
}

// ---- gradients ---------------------------------------------------------------------------------------------

const std::string& policy_attr(const GradContext& c) { return c.attr<std::string>("bad_indices_policy"); }

Value picked(GradContext& c, Value from) { return c.b().op("GatherNd", {from, c.input(1)}, {{"bad_indices_policy", policy_attr(c)}}); }

// d(tensor) = dy with zeros at the coordinates, d(updates) = dy there
Status scatter_update_grad(GradContext& c) {
  Build& b = c.b();
  const Value arguments[] = {c.dy(), c.input(1), b.zeros_like(c.input(2))};
  const Attr policy[] = {{"bad_indices_policy", policy_attr(c)}};
  c.dx(0, b.op("TensorScatterUpdate", arguments, policy));
  c.dx(2, picked(c, c.dy()));
  return {};
}
// d(tensor) = dy, d(updates) = dy at the coordinates
Status scatter_add_grad(GradContext& c) {
  c.dx(0, c.dy());
  c.dx(2, picked(c, c.dy()));
  return {};
}
Status scatter_sub_grad(GradContext& c) {
  c.dx(0, c.dy());
  c.dx(2, c.b().neg(picked(c, c.dy())));
  return {};
}
// dy goes in equal parts to whoever equals the extreme: the element itself and the updates for it
Status scatter_extreme_grad(GradContext& c) {
  Build& b = c.b();
  const Value x = c.input(0), updates = c.input(2), y = c.output(0), dy = c.dy();
  const DType dtype = b.info(dy).dtype;
  const Value stayed = b.cast(b.op("Equal", {x, y}), dtype);
  const Value won = b.cast(b.op("Equal", {updates, picked(c, y)}), dtype);
  const Value shape = b.shape(x, c.input_info(1).dtype);
  const Value count = b.add(stayed, b.op("ScatterNd", {c.input(1), won, shape}, {{"bad_indices_policy", policy_attr(c)}}));
  c.dx(0, b.div(b.mul(dy, stayed), count));
  c.dx(2, b.mul(picked(c, b.div(dy, count)), won));
  return {};
}

// ---- kernel ------------------------------------------------------------------------------------------------

struct TensorScatterArgs {
  Coordinates at;
  BadIndices policy = BadIndices::refuse;
  Shape indices, updates;
  int64_t bytes = 0;
};

template <class T>
T difference_of(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  else if constexpr (std::is_floating_point_v<T>) return a - b;
  else return T(float(a) - float(b));
}

// What becomes of an element and its update.
struct PutUpdate {
  template <class T>
  static T of(T, T b) {
    return b;
  }
};
struct AddUpdate {
  template <class T>
  static T of(T a, T b) {
    return sum_of<T>(a, b);
  }
};
struct SubUpdate {
  template <class T>
  static T of(T a, T b) {
    return difference_of<T>(a, b);
  }
};
struct MaxUpdate {
  template <class T>
  static T of(T a, T b) {
    return a < b ? b : a;
  }
};
struct MinUpdate {
  template <class T>
  static T of(T a, T b) {
    return b < a ? b : a;
  }
};

template <class T, class Fold>
Status tensor_scatter_run(RunContext& c) {
  const auto& a = c.args<TensorScatterArgs>();
  const void* const indices = c.in<void>(1);
  if (a.policy == BadIndices::refuse) DTG_TRY(a.at.check_any(c, indices));
  T* const out = c.out<T>(0);
  if (c.in<T>(0) != out) {
    Lookout lookout;
    cpu::copy_row(c.out<char>(0), c.in<char>(0), a.bytes, lookout);
  }
  fold_rows(
      c.pool(), out, c.in<T>(2), a.at.count, a.at.columns(), [&](int64_t i) { return a.at.row_of_any(indices, i); },
      [](T x, T y) { return Fold::template of<T>(x, y); });
  return {};
}

// Once for all types, as each would be a copy of it.
Status prepare_scatter(PrepareContext& c, SyncFn run) {
  auto* a = c.args<TensorScatterArgs>();
  DTG_ASSIGN(a->policy, policy_of(c));
  DTG_TRY(prepare_coordinates(c, 1, a->at));
  a->at.tensor = c.input(0).shape;
  a->bytes = c.input(0).bytes();
  const Status fits = check_updates(c.input(1).shape, c.input(2).shape, c.input(0).shape);
  if (!fits.ok()) return c.error("%s", fits.message().c_str());
  c.may_overwrite(0, 0);
  return c.sync(run);
}

template <class T, class Fold>
Status tensor_scatter_prepare(PrepareContext& c) {
  return prepare_scatter(c, tensor_scatter_run<T, Fold>);
}

struct Wide {
  uint64_t half[2];
};

// Moving needs to know the size only.
Status put_prepare(PrepareContext& c) {
  switch (dtype_size(c.input(0).dtype)) {
    case 1: return tensor_scatter_prepare<uint8_t, PutUpdate>(c);
    case 2: return tensor_scatter_prepare<uint16_t, PutUpdate>(c);
    case 4: return tensor_scatter_prepare<uint32_t, PutUpdate>(c);
    case 8: return tensor_scatter_prepare<uint64_t, PutUpdate>(c);
    default: return tensor_scatter_prepare<Wide, PutUpdate>(c);
  }
}

template <class T>
void add_tensor_scatter(KernelTable& kernels) {
  const DTypeSet own{dtype_of<T>};
  kernels.add({.op = "TensorScatterAdd", .types = {{"T", own}}, .prepare = tensor_scatter_prepare<T, AddUpdate>});
  kernels.add({.op = "ScatterNdNonAliasingAdd", .types = {{"T", own}}, .prepare = tensor_scatter_prepare<T, AddUpdate>});
  if constexpr (!std::is_same_v<T, bool>) {
    kernels.add({.op = "TensorScatterSub", .types = {{"T", own}}, .prepare = tensor_scatter_prepare<T, SubUpdate>});
    kernels.add({.op = "TensorScatterMax", .types = {{"T", own}}, .prepare = tensor_scatter_prepare<T, MaxUpdate>});
    kernels.add({.op = "TensorScatterMin", .types = {{"T", own}}, .prepare = tensor_scatter_prepare<T, MinUpdate>});
  }
}

template <class... T>
void add_all_tensor_scatters(KernelTable& kernels) {
  (add_tensor_scatter<T>(kernels), ...);
}

}  // namespace

void register_tensor_scatter(OpTable& ops, KernelTable& kernels) {
  struct Row {
    const char* name;
    GradFn gradient;
    const char* doc;
  };
  for (const Row& row :
       {Row{"TensorScatterUpdate", scatter_update_grad, "The tensor with the updates in place of what is at the coordinates."},
        Row{"TensorScatterAdd", scatter_add_grad, "The tensor with the updates added at the coordinates."},
        Row{"TensorScatterSub", scatter_sub_grad, "The tensor with the updates subtracted at the coordinates."},
        Row{"TensorScatterMax", scatter_extreme_grad, "The larger of what is at the coordinates and the updates for it."},
        Row{"TensorScatterMin", scatter_extreme_grad, "The smaller of what is at the coordinates and the updates for it."}}) {
    const bool put = row.gradient == scatter_update_grad;
    ops.add(OpDef::make(row.name)
                .input("tensor: T", {.rank_min = 1})
                .input("indices: Tindices", {.rank_min = 1})
                .input("updates: T")
                .output("output: T")
                .attr("T: type")
                .attr(put ? "Tindices: {int16, int32, int64}" : "Tindices: {int32, int64}")
                .attr("bad_indices_policy: string = ''")
                .shape(tensor_scatter_shape)
                .gradient(row.gradient)
                .doc(row.doc));
  }
  ops.add(OpDef::make("ScatterNdNonAliasingAdd")
              .input("input: T", {.rank_min = 1})
              .input("indices: Tindices", {.rank_min = 1})
              .input("updates: T")
              .output("output: T")
              .attr("T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, "
                    "uint16, complex128, half, uint32, uint64, bool}")
              .attr("Tindices: {int32, int64}")
              .attr("bad_indices_policy: string = ''")
              .shape(tensor_scatter_shape)
              .gradient(scatter_add_grad)
              .doc("The input with the updates added at the coordinates."));
  kernels.add({.op = "TensorScatterUpdate", .types = {{"T", kPlain}}, .prepare = put_prepare});
  add_all_tensor_scatters<float, double, int32_t, int64_t, uint8_t, int8_t, int16_t, uint16_t, uint32_t, uint64_t, Half, BFloat16, bool>(
      kernels);
}

}  // namespace dtg::ops
