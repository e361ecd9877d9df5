// MatMul and the batched products, their gradients and CPU kernels, and the product the planner fuses with a
// bias and an activation. float32 goes through device/cpu/gemm; the other types through its plain product.
// Registered once by the runtime; kernels run on any thread.
#include <type_traits>

#include "device/cpu/gemm.h"
#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/all.h"

namespace dtg::ops {
namespace {

using cpu::GemmPlan;

constexpr DTypeSet kPlainTypes{DType::f64, DType::i8,  DType::i16, DType::i32, DType::i64, DType::u8,
                               DType::u16, DType::u32, DType::u64, DType::f16, DType::bf16};

// ---- shapes ------------------------------------------------------------------------------------------------

struct MatrixDims {
  int64_t rows, columns;
};

// Rows and columns of the last two dimensions of input i, as they enter the product.
MatrixDims matrix_dims(const PartialShape& shape, bool transposed) {
  if (!shape.has_rank()) return {-1, -1};
  const int64_t rows = shape.dim(shape.rank() - 2), columns = shape.dim(shape.rank() - 1);
  return transposed ? MatrixDims{columns, rows} : MatrixDims{rows, columns};
}

Status check_inner(InferContext& c, const MatrixDims& a, const MatrixDims& b) {
  if (a.columns < 0 || b.rows < 0 || a.columns == b.rows) return {};
  return c.error("the inner dimensions differ: %s has %lld and %s has %lld (after transposing)", c.input(0).text().c_str(),
                 static_cast<long long>(a.columns), c.input(1).text().c_str(), static_cast<long long>(b.rows));
}

Status matmul_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 2));
  DTG_TRY(c.require_rank(1, 2));
  const MatrixDims a = matrix_dims(c.input(0), c.boolean("transpose_a"));
  const MatrixDims b = matrix_dims(c.input(1), c.boolean("transpose_b"));
  DTG_TRY(check_inner(c, a, b));
  PartialShape out = PartialShape::of_rank(2);
  out.set_dim(0, a.rows);
  out.set_dim(1, b.columns);
  c.output(0, out);
  return {};
}

Status fused_matmul_shape(InferContext& c) {
  DTG_TRY(matmul_shape(c));
  DTG_TRY(c.require_rank(2, 1));
  return {};
}

PartialShape leading_dims(const PartialShape& shape) {
  if (!shape.has_rank()) return PartialShape::unknown();
  PartialShape lead = PartialShape::of_rank(shape.rank() - 2);
  for (int i = 0; i < lead.rank(); ++i) lead.set_dim(i, shape.dim(i));
  return lead;
}

Status batch_matmul_shape_of(InferContext& c, bool broadcasts) {
  DTG_TRY(c.require_rank_at_least(0, 2));
  DTG_TRY(c.require_rank_at_least(1, 2));
  const MatrixDims a = matrix_dims(c.input(0), c.boolean("adj_x"));
  const MatrixDims b = matrix_dims(c.input(1), c.boolean("adj_y"));
  DTG_TRY(check_inner(c, a, b));
  const PartialShape lead_x = leading_dims(c.input(0)), lead_y = leading_dims(c.input(1));
  auto lead = broadcasts ? broadcast_shapes(lead_x, lead_y) : PartialShape::merge(lead_x, lead_y, "batch dimensions");
  if (!lead.ok()) return c.error("%s", lead.status().message().c_str());
  PartialShape out = lead.value();
  if (!out.has_rank()) return {};
  DTG_TRY(out.append(a.rows));
  DTG_TRY(out.append(b.columns));
  c.output(0, out);
  return {};
}

Status batch_matmul_shape(InferContext& c) { return batch_matmul_shape_of(c, false); }
Status batch_matmul_v2_shape(InferContext& c) { return batch_matmul_shape_of(c, true); }

// ---- gradients ---------------------------------------------------------------------------------------------

// The four cases of d(op(A) op(B)), written for both families: `which` names the mark TensorFlow puts on the
// product that makes the gradient of that operand.
struct Products {
  Value da, db;
};

template <class Product>
Products product_gradients(bool ta, bool tb, Value a, Value b, Value dy, Product product) {
  if (!ta && !tb) return {product(dy, b, false, true, 0), product(a, dy, true, false, 1)};
  if (!ta) return {product(dy, b, false, false, 0), product(dy, a, true, false, 1)};
  if (!tb) return {product(b, dy, false, true, 0), product(a, dy, false, false, 1)};
  return {product(b, dy, true, true, 0), product(dy, a, true, true, 1)};
}

// dA = dY op(B)^T, dB = op(A)^T dY.
Status matmul_grad(GradContext& c) {
  const Value dy = c.dy();
  const Products d = product_gradients(
      c.attr<bool>("transpose_a"), c.attr<bool>("transpose_b"), c.input(0), c.input(1), dy,
      [&](Value x, Value y, bool tx, bool ty, int which) {
        return c.b().op("MatMul", {x, y}, {{"transpose_a", tx}, {"transpose_b", ty}, {which == 0 ? "grad_a" : "grad_b", true}});
      });
  c.dx(0, d.da);
  c.dx(1, d.db);
  return {};
}

Products batch_products(GradContext& c) {
  return product_gradients(
      c.attr<bool>("adj_x"), c.attr<bool>("adj_y"), c.input(0), c.input(1), c.dy(), [&](Value x, Value y, bool tx, bool ty, int which) {
        return c.b().op("BatchMatMulV2", {x, y}, {{"adj_x", tx}, {"adj_y", ty}, {which == 0 ? "grad_x" : "grad_y", true}});
      });
}

Status batch_matmul_grad(GradContext& c) {
  const Products d = batch_products(c);
  c.dx(0, d.da);
  c.dx(1, d.db);
  return {};
}

// The shape of a value without its last two dimensions, as a vector.
Value batch_shape(Build& b, Value shape) {
  return b.op("StridedSlice", {shape, b.ints({0}), b.ints({-2}), b.ints({1})}, {{"begin_mask", 1}});
}

// As above, summed over the batch dimensions that were broadcast.
Status batch_matmul_v2_grad(GradContext& c) {
  const Products d = batch_products(c);
  const PartialShape& x = c.input_info(0).shape;
  const PartialShape& y = c.input_info(1).shape;
  const PartialShape lead_x = leading_dims(x), lead_y = leading_dims(y);
  if (x.complete() && y.complete() && lead_x == lead_y) {
    c.dx(0, d.da);
    c.dx(1, d.db);
    return {};
  }
  Build& b = c.b();
  const Value shape_x = b.shape(c.input(0)), shape_y = b.shape(c.input(1));
  const Value axes = b.op("BroadcastGradientArgs", {batch_shape(b, shape_x), batch_shape(b, shape_y)});
  c.dx(0, b.reshape(b.sum(d.da, axes), shape_x));
  c.dx(1, b.reshape(b.sum(d.db, axes.sibling(1)), shape_y));
  return {};
}

// ---- kernels -----------------------------------------------------------------------------------------------

// One product, or a batch of them; in and out are counted in elements.
struct ProductArgs {
  GemmPlan gemm;
  int64_t m = 0, n = 0, k = 0;
  bool ta = false, tb = false;
  std::span<const int64_t> x_offsets, y_offsets;  // of each product of the batch
  int64_t shards = 1;                             // of a batch, or of rows in the plain product
  bool bias = false, relu = false;
};

// A product of other types is slow work: a shard is worth it early.
constexpr int64_t kPlainShardSteps = 1 << 17;

int64_t shard_count(double steps, double per_shard, int64_t most) {
  return std::clamp<int64_t>(static_cast<int64_t>(steps / per_shard), 1, std::min<int64_t>(16, std::max<int64_t>(most, 1)));
}

Status matmul_run_f32(RunContext& c) {
  const auto& a = c.args<ProductArgs>();
  const float* bias = a.bias ? c.in<float>(2) : nullptr;
  cpu::gemm_run(a.gemm, c.pool(), c.in<float>(0), c.in<float>(1), bias, a.relu, c.out<float>(0), c.workspace());
  return {};
}

// Integers wrap around, so they are summed unsigned; 16-bit floats are summed as float.
template <class T>
using SumOf = std::conditional_t<std::is_same_v<T, double>, double, std::conditional_t<std::is_integral_v<T>, uint64_t, float>>;

template <class T>
Status plain_run(RunContext& c) {
  const auto& a = c.args<ProductArgs>();
  const int64_t batch = static_cast<int64_t>(a.x_offsets.size()), rows = batch * a.m;
  c.pool().parallel_for(a.shards, [&](int64_t shard) {
    int64_t row = rows * shard / a.shards;
    const int64_t end = rows * (shard + 1) / a.shards;
    while (row < end) {
      const int64_t i = row / a.m, from = row % a.m, to = std::min(a.m, from + end - row);
      cpu::rows_gemm<T, SumOf<T>>(a.m, a.n, a.k, a.ta, a.tb, c.in<T>(0) + a.x_offsets[i], c.in<T>(1) + a.y_offsets[i],
                                  c.out<T>(0) + i * a.m * a.n, from, to);
      row += to - from;
    }
  });
  return {};
}

Status batch_run_f32(RunContext& c) {
  const auto& a = c.args<ProductArgs>();
  const int64_t batch = static_cast<int64_t>(a.x_offsets.size());
  if (a.shards == 1 && a.gemm.shards() > 1) {  // few large products: each is cut by itself
    for (int64_t i = 0; i < batch; ++i) {
      cpu::gemm_run(a.gemm, c.pool(), c.in<float>(0) + a.x_offsets[i], c.in<float>(1) + a.y_offsets[i], nullptr, false,
                    c.out<float>(0) + i * a.m * a.n, c.workspace());
    }
    return {};
  }
  c.pool().parallel_for(a.shards, [&](int64_t shard) {
    char* workspace = c.workspace() + shard * a.gemm.workspace().value();
    for (int64_t i = batch * shard / a.shards; i < batch * (shard + 1) / a.shards; ++i) {
      cpu::gemm_run_alone(a.gemm, c.in<float>(0) + a.x_offsets[i], c.in<float>(1) + a.y_offsets[i], nullptr, false,
                          c.out<float>(0) + i * a.m * a.n, workspace);
    }
  });
  return {};
}

Status pick_plain(PrepareContext& c, DType dtype) {
  switch (dtype) {
    case DType::f64: return c.sync(plain_run<double>);
    case DType::i8: return c.sync(plain_run<int8_t>);
    case DType::i16: return c.sync(plain_run<int16_t>);
    case DType::i32: return c.sync(plain_run<int32_t>);
    case DType::i64: return c.sync(plain_run<int64_t>);
    case DType::u8: return c.sync(plain_run<uint8_t>);
    case DType::u16: return c.sync(plain_run<uint16_t>);
    case DType::u32: return c.sync(plain_run<uint32_t>);
    case DType::u64: return c.sync(plain_run<uint64_t>);
    case DType::f16: return c.sync(plain_run<Half>);
    case DType::bf16: return c.sync(plain_run<BFloat16>);
    default: return c.error("no product for %s", dtype_name(dtype));
  }
}

void set_dims(ProductArgs& args, const Shape& x, const Shape& y, bool ta, bool tb) {
  args.ta = ta, args.tb = tb;
  args.m = x.dim(x.rank() - (ta ? 1 : 2));
  args.k = x.dim(x.rank() - (ta ? 2 : 1));
  args.n = y.dim(y.rank() - (tb ? 2 : 1));
}

double product_steps(const ProductArgs& args) {
  return static_cast<double>(args.m) * static_cast<double>(args.n) * static_cast<double>(args.k);
}

Status matmul_prepare(PrepareContext& c) {
  auto& args = *c.args<ProductArgs>();
  set_dims(args, c.input(0).shape, c.input(1).shape, c.boolean("transpose_a"), c.boolean("transpose_b"));
  const DType dtype = c.input(0).dtype;
  if (dtype == DType::f32) {
    args.gemm = cpu::gemm_plan(args.m, args.n, args.k, args.ta, args.tb);
    c.workspace(args.gemm.workspace());
    return c.sync(matmul_run_f32);
  }
  static constexpr int64_t kNoOffset[1] = {0};
  args.x_offsets = args.y_offsets = kNoOffset;
  args.shards = shard_count(product_steps(args), kPlainShardSteps, args.m);
  return pick_plain(c, dtype);
}

Status fused_matmul_prepare(PrepareContext& c) {
  if (c.input(2).shape.count() != c.output(0).shape.dim(1)) {
    return c.error("bias %s does not fit the product %s", c.input(2).shape.text().c_str(), c.output(0).shape.text().c_str());
  }
  auto& args = *c.args<ProductArgs>();
  args.bias = true;
  args.relu = c.attr<std::string>("activation") == "Relu";
  return matmul_prepare(c);
}

// Where each product of the batch finds its operand: leading dimensions of size 1 are repeated.
std::span<const int64_t> batch_offsets(Arena& arena, const Shape& shape, const Shape& out, int64_t matrix) {
  const int64_t batch = out.rank() == 2 ? 1 : out.count(0, out.rank() - 2);
  std::vector<int64_t> offsets(static_cast<size_t>(batch));
  for (int64_t i = 0; i < batch; ++i) {
    int64_t rest = i, stride = matrix, offset = 0;
    for (int d = out.rank() - 3; d >= 0; --d) {
      const int64_t index = rest % out.dim(d);
      rest /= out.dim(d);
      const int own = d - (out.rank() - shape.rank());
      if (own < 0) continue;
      if (shape.dim(own) != 1) offset += index * stride;
      stride *= shape.dim(own);
    }
    offsets[static_cast<size_t>(i)] = offset;
  }
  return arena.copy(std::span<const int64_t>(offsets));
}

Status batch_matmul_prepare(PrepareContext& c) {
  auto& args = *c.args<ProductArgs>();
  const Shape& x = c.input(0).shape;
  const Shape& y = c.input(1).shape;
  set_dims(args, x, y, c.boolean("adj_x"), c.boolean("adj_y"));
  args.x_offsets = batch_offsets(c.arena(), x, c.output(0).shape, args.m * args.k);
  args.y_offsets = batch_offsets(c.arena(), y, c.output(0).shape, args.k * args.n);
  const auto batch = static_cast<int64_t>(args.x_offsets.size());
  const double steps = product_steps(args) * static_cast<double>(batch);
  if (c.output(0).shape.count() == 0) args.x_offsets = args.y_offsets = {};
  if (c.input(0).dtype != DType::f32) {
    args.shards = shard_count(steps, kPlainShardSteps, batch * args.m);
    return pick_plain(c, c.input(0).dtype);
  }
  args.shards = batch < 4 ? 1 : shard_count(steps, 4 << 20, batch);
  args.gemm = cpu::gemm_plan(args.m, args.n, args.k, args.ta, args.tb, batch < 4);
  c.workspace(args.gemm.workspace() * args.shards);
  return c.sync(batch_run_f32);
}

void register_batch(OpTable& ops, KernelTable& kernels) {
  constexpr const char* kTypes =
      "T: {bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}";
  const auto define = [&](const char* name, ShapeFn shape, GradFn grad, const char* doc) {
    ops.add(OpDef::make(name)
                .input("x: T", {.rank_min = 2})
                .input("y: T", {.rank_min = 2})
                .output("output: T")
                .attr(kTypes)
                .attr("adj_x: bool = false")
                .attr("adj_y: bool = false")
                .attr("grad_x: bool = false")
                .attr("grad_y: bool = false")
                .shape(shape)
                .gradient(grad)
                .doc(doc));
    kernels.add({.op = name, .types = {{"T", kPlainTypes | DTypeSet{DType::f32}}}, .prepare = batch_matmul_prepare});
  };
  define("BatchMatMul", batch_matmul_shape, batch_matmul_grad, "Matrix products over equal leading dimensions.");
  define("BatchMatMulV2", batch_matmul_v2_shape, batch_matmul_v2_grad, "Matrix products over leading dimensions, which broadcast.");
  constexpr const char* kIn =
      "{bfloat16, half, float, double, uint8, int8, int16, int32, int64, uint16, uint32, uint64, complex64, complex128}";
  ops.add(OpDef::make("BatchMatMulV3")
              .input("x: Ta", {.rank_min = 2})
              .input("y: Tb", {.rank_min = 2})
              .output("output: Tout")
              .attr((std::string("Ta: ") + kIn).c_str())
              .attr((std::string("Tb: ") + kIn).c_str())
              .attr("Tout: {bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, "
                    "complex128}")
              .attr("adj_x: bool = false")
              .attr("adj_y: bool = false")
              .attr("grad_x: bool = false")
              .attr("grad_y: bool = false")
              .shape(batch_matmul_v2_shape)
              .gradient(batch_matmul_v2_grad)
              .doc("Like BatchMatMulV2, with a type for each operand and the result; kernels exist where all three agree."));
  for (int n = 1; n < 32; ++n) {
    const auto dtype = static_cast<DType>(n);
    if (!kPlainTypes.has(dtype) && dtype != DType::f32) continue;
    const DTypeSet one{dtype};
    kernels.add({.op = "BatchMatMulV3", .types = {{"Ta", one}, {"Tb", one}, {"Tout", one}}, .prepare = batch_matmul_prepare});
  }
}

}  // namespace

void register_matmul(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("MatMul")
              .input("a: T", {.rank = 2})
              .input("b: T", {.rank = 2})
              .output("product: T")
              .attr("transpose_a: bool = false")
              .attr("transpose_b: bool = false")
              .attr("T: {bfloat16, half, float, double, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}")
              .attr("grad_a: bool = false")
              .attr("grad_b: bool = false")
              .shape(matmul_shape)
              .gradient(matmul_grad)
              .doc("Product of two matrices, each transposed first on request."));
  kernels.add({.op = "MatMul", .types = {{"T", kPlainTypes | DTypeSet{DType::f32}}}, .prepare = matmul_prepare});
  register_batch(ops, kernels);
  ops.add(OpDef::make("_FusedMatMul")
              .input("a: T", {.rank = 2})
              .input("b: T", {.rank = 2})
              .input("bias: T", {.rank = 1})
              .output("product: T")
              .attr("transpose_a: bool = false")
              .attr("transpose_b: bool = false")
              .attr("T: {float}")
              .attr("activation: {'','Relu'} = ''")
              .shape(fused_matmul_shape)
              .no_gradient()
              .doc("MatMul, BiasAdd and an activation in one pass. Made by the planner."));
  kernels.add({.op = "_FusedMatMul", .types = {{"T", DTypeSet{DType::f32}}}, .prepare = fused_matmul_prepare});
}

}  // namespace dtg::ops
