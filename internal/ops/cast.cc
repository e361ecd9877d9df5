// Cast: between all plain real types and bool. Gradients flow between floating-point types only.
#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/element.h"
#include "ops/known.h"

namespace dtg::ops {
namespace {

// dx = dy in x's type
Status cast_grad(GradContext& c) {
  const DType from = c.input_info(0).dtype, to = c.output_info(0).dtype;
  const auto flows = [](DType dtype) { return dtype_is_floating(dtype) || dtype_is_complex(dtype); };
  if (flows(from) && flows(to)) c.dx(0, c.b().cast(c.dy(), from));
  return {};
}

Status cast_prepare(PrepareContext& c) {
  const DType from = c.input(0).dtype, to = c.output(0).dtype;
  if (from == to) {
    c.alias(0, 0);
    return {};
  }
  const cpu::BlockFn block = cpu::find_cast(from, to, c.boolean("Truncate"));
  if (!block) return c.error("no conversion from %s to %s", dtype_name(from), dtype_name(to));
  const Shape& shape = c.input(0).shape;
  const int64_t size = dtype_size(from);
  c.args<ElementArgs>()->loop = cpu::plan_elements(block, false, {&shape, 1}, {&size, 1}, shape, dtype_size(to));
  if (size == dtype_size(to)) c.may_overwrite(0, 0);
  return c.sync(element_run);
}

constexpr DTypeSet kCastable = dtg::kReal | DTypeSet{DType::boolean};

}  // namespace

void register_cast(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("Cast")
              .input("x: SrcT")
              .output("y: DstT")
              .attr("SrcT: type")
              .attr("DstT: type")
              .attr("Truncate: bool = false")
              .shape(unchanged_shape)
              .forwards()
              .value(cast_value)
              .gradient(cast_grad)
              .doc("x in another type; floats lose their fraction on the way to integers."));
  kernels.add({.op = "Cast", .types = {{"SrcT", kCastable}, {"DstT", kCastable}}, .prepare = cast_prepare});
  // For chains: those that do not truncate.
  for (uint32_t from = 1; from < 32; ++from) {
    for (uint32_t to = 1; to < 32; ++to) {
      const auto a = static_cast<DType>(from), b = static_cast<DType>(to);
      if (a == b || !kCastable.has(a) || !kCastable.has(b)) continue;
      kernels.add_element({.op = "Cast", .arity = 1, .in = {a}, .out = b, .block = cpu::find_cast(a, b, false)});
    }
  }
}

}  // namespace dtg::ops
