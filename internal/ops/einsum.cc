// Einsum of one or two operands. Labels are sorted into batches, free ones of each side, contracted ones and those that are
// summed on one side alone; each operand is brought into the order of a batch of matrices where it does not lie so already, the
// products are those of device/cpu/gemm, and the result goes out in the order of the equation.
#include <algorithm>

#include "device/cpu/copy.h"
#include "device/cpu/gemm.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/einsum.h"
#include "ops/integers.h"

namespace dtg::ops {
namespace {

// ---- shape -------------------------------------------------------------------------------------------------

Status einsum_shape(InferContext& c) {
  const auto equation = parse_equation(c.attr<std::string>("equation"), c.num_inputs());
  if (!equation.ok()) return c.error("%s", equation.status().message().c_str());
  std::vector<PartialShape> inputs;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (!c.input(i).has_rank()) return {};
    inputs.push_back(c.input(i));
  }
  const auto shapes = resolve_equation(equation.value(), inputs);
  if (!shapes.ok()) return c.error("%s", shapes.status().message().c_str());
  PartialShape out = PartialShape::of_rank(0);
  for (int id : shapes.value().output) DTG_TRY(in_op(c.node(), out.append(shapes.value().dim_of(id))));
  c.output(0, out);
  return {};
}

// ---- gradient ----------------------------------------------------------------------------------------------

std::string spelled(const std::string& labels) {
  const size_t dot = labels.find('.');
  return dot == std::string::npos ? labels : labels.substr(0, dot) + "..." + labels.substr(dot + 1);
}

Value einsum(Build& b, std::span<const Value> operands, const std::string& left, const std::string& right) {
  const Attr equation[] = {{"equation", left + "->" + spelled(right)}};
  return b.op("Einsum", operands, equation);
}
Value einsum(Build& b, Value x, const std::string& left, const std::string& right) {
  return left == right ? x : einsum(b, std::span(&x, 1), spelled(left), right);
}

// Ones in the extents of some letters of an operand.
Value ones_of(Build& b, Value x, const std::string& labels, const std::string& wanted) {
  const Value shape = b.shape(x);
  const size_t dot = labels.find('.');
  std::vector<Value> dims;
  for (char label : wanted) {
    const size_t at = labels.find(label);
    // Behind an ellipsis it is counted from the end.
    const int64_t place = at < dot ? static_cast<int64_t>(at) : static_cast<int64_t>(at) - static_cast<int64_t>(labels.size());
    dims.push_back(b.op("GatherV2", {shape, b.op("FloorMod", {b.integer(place), b.op("Size", {shape})}), b.integer(0)}));
  }
  return b.op("Fill", {b.op("Pack", dims), b.like(x, 1.0)});
}

// What flows to one operand: dy with the other operand gives all labels that they know; those that only this operand has were
// summed, so its gradient is the same along them; what was broadcast is summed; labels that stand twice go to the diagonal.
Value operand_grad(GradContext& c, const Equation& equation, size_t i) {
  Build& b = c.b();
  const std::string& own = equation.inputs[i];
  const std::string other = equation.inputs.size() > 1 ? equation.inputs[1 - i] : "";
  const Value x = c.input(static_cast<int>(i));
  std::string unique, kept, summed;
  for (char label : own) {
    if (label != '.' && unique.find(label) == std::string::npos) unique += label;
  }
  for (char label : unique) {
    (equation.output.find(label) != std::string::npos || other.find(label) != std::string::npos ? kept : summed) += label;
  }
  const bool open = own.find('.') != std::string::npos;
  const std::string ellipsis = open && (equation.output + other).find('.') != std::string::npos ? "." : "";
  Value g = c.dy();
  if (equation.inputs.size() > 1) {
    const Value pair[] = {g, c.input(static_cast<int>(1 - i))};
    g = einsum(b, pair, spelled(equation.output) + "," + spelled(other), ellipsis + kept);
  } else {
    g = einsum(b, g, equation.output, ellipsis + kept);
  }
  if (!summed.empty()) {
    const Value pair[] = {g, ones_of(b, x, own, summed)};
    g = einsum(b, pair, spelled(ellipsis + kept) + "," + summed, ellipsis + unique);
  }
  if (open) {
    // With the ellipsis in front, broadcasting is that of the shapes.
    const Value like = einsum(b, x, own, "." + unique), shape = b.shape(like);
    const PartialShape &from = b.info(g).shape, &to = b.info(like).shape;
    if (!from.complete() || !to.complete() || !(from == to)) {
      const Value whole = b.op("BroadcastArgs", {b.shape(g), shape});
      const Value spread = b.op("BroadcastTo", {g, whole});
      g = b.reshape(b.sum(spread, b.op("BroadcastGradientArgs", {shape, whole})), shape);
    }
  }
  return einsum(b, g, (open ? "." : "") + unique, own);
}

Status einsum_grad(GradContext& c) {
  DTG_ASSIGN(const Equation equation, parse_equation(c.attr<std::string>("equation"), c.num_inputs()));
  for (int i = 0; i < c.num_inputs(); ++i) c.dx(i, operand_grad(c, equation, static_cast<size_t>(i)));
  return {};
}

// ---- kernel ------------------------------------------------------------------------------------------------

// An operand, brought into order: `walk` packs it unless it lies so already; then each `summed` elements become one.
struct Packed {
  cpu::Walk walk;
  bool direct = false, transposed = false;
  int64_t count = 0, summed = 1, kept = 0;
  int64_t offset = 0;  // in the workspace
};

struct EinsumArgs {
  int operands = 0;
  int64_t batch = 1, m = 1, n = 1, k = 1;
  Packed in[2];
  cpu::Walk out_walk;
  bool out_direct = false, out_sparse = false;
  int64_t out_count = 0, out_offset = 0, size = 0;
  cpu::GemmPlan gemm;
  int64_t gemm_offset = 0, shards = 1;
};

// Integers wrap around, 16-bit floats are summed as float.
template <class T>
using EinsumSum = std::conditional_t<std::is_same_v<T, double>, double, std::conditional_t<std::is_integral_v<T>, uint64_t, float>>;

template <class T>
const T* pack_operand(RunContext& c, const Packed& p, int i) {
  if (p.direct) return c.in<T>(i);
  T* const to = reinterpret_cast<T*>(c.workspace() + p.offset);
  if (p.count == 0) {  // sums of nothing
    std::fill_n(to, p.kept, T(0));
    return to;
  }
  cpu::copy_walk(c.pool(), p.walk, c.in<T>(i), to);
  if (p.summed == 1) return to;
  for (int64_t o = 0; o < p.count / p.summed; ++o) {
    EinsumSum<T> sum{};
    for (int64_t s = 0; s < p.summed; ++s) sum += static_cast<EinsumSum<T>>(to[o * p.summed + s]);
    to[o] = static_cast<T>(sum);
  }
  return to;
}

void multiply(RunContext& c, const EinsumArgs& a, const float* x, const float* y, float* to) {
  char* const scratch = c.workspace() + a.gemm_offset;
  if (a.shards == 1) {
    for (int64_t i = 0; i < a.batch; ++i) {
      cpu::gemm_run(a.gemm, c.pool(), x + i * a.m * a.k, y + i * a.k * a.n, nullptr, false, to + i * a.m * a.n, scratch);
    }
    return;
  }
  c.pool().parallel_for(a.shards, [&](int64_t s) {
    for (int64_t i = a.batch * s / a.shards; i < a.batch * (s + 1) / a.shards; ++i) {
      cpu::gemm_run_alone(a.gemm, x + i * a.m * a.k, y + i * a.k * a.n, nullptr, false, to + i * a.m * a.n,
                          scratch + s * a.gemm.workspace().value());
    }
  });
}

template <class T>
void multiply(RunContext& c, const EinsumArgs& a, const T* x, const T* y, T* to) {
  const int64_t rows = a.batch * a.m,
                shards = std::clamp<int64_t>(rows * a.n * a.k >> 17, 1, std::min<int64_t>(16, std::max<int64_t>(rows, 1)));
  c.pool().parallel_for(shards, [&](int64_t s) {
    for (int64_t row = rows * s / shards, end = rows * (s + 1) / shards; row < end;) {
      const int64_t i = row / a.m, from = row % a.m, until = std::min(a.m, from + end - row);
      cpu::rows_gemm<T, EinsumSum<T>>(a.m, a.n, a.k, a.in[0].transposed, a.in[1].transposed, x + i * a.m * a.k, y + i * a.k * a.n,
                                      to + i * a.m * a.n, from, until);
      row += until - from;
    }
  });
}

template <class T>
Status einsum_run(RunContext& c) {
  const auto& a = c.args<EinsumArgs>();
  if (a.out_count == 0) return {};
  T* const out = c.out<T>(0);
  const T* result = pack_operand<T>(c, a.in[0], 0);
  const int64_t count = a.batch * a.m * a.n;
  if (a.operands > 1) {
    T* const to = a.out_direct ? out : reinterpret_cast<T*>(c.workspace() + a.out_offset);
    const T* const y = pack_operand<T>(c, a.in[1], 1);
    // Nothing to sum: zeros.
    if (a.k == 0) std::fill_n(to, count, T(0));
    else multiply(c, a, result, y, to);
    result = to;
  }
  if (result == out) return {};
  if (a.out_sparse) cpu::clear(c.pool(), out, a.out_count * a.size);
  if (count > 0) cpu::copy_walk(c.pool(), a.out_walk, result, out);
  return {};
}

// A label in an operand, with the stride of all dimensions it stands for; 0 where it is broadcast.
struct Stride {
  int id;
  int64_t dim, stride;
};

std::vector<Stride> strides_of(const std::vector<int>& ids, const Shape& shape, const EinsumShapes& all, int64_t size) {
  std::vector<Stride> strides;
  for (size_t d = 0; d < ids.size(); ++d) {
    const int at = static_cast<int>(d);
    const int64_t whole = all.dim_of(ids[d]), step = shape.dim(at) == whole ? shape.count(at + 1, shape.rank()) * size : 0;
    const auto there = std::ranges::find_if(strides, [&](const Stride& s) { return s.id == ids[d]; });
    if (there == strides.end()) strides.push_back({ids[d], whole, step});
    else there->stride += step;
  }
  return strides;
}

bool contains(const std::vector<int>& ids, int id) { return std::ranges::find(ids, id) != ids.end(); }

// Do the labels in that order lie one behind the other?
bool lies_so(const std::vector<Stride>& order, int64_t size) {
  int64_t expected = size;
  for (size_t i = order.size(); i-- > 0; expected *= order[i].dim) {
    if (order[i].dim != 1 && order[i].stride != expected) return false;
  }
  return true;
}

Packed packing(const std::vector<Stride>& order, const std::vector<Stride>& other_order, int64_t summed, int64_t kept, int64_t size) {
  Packed p;
  p.walk = cpu::Walk(size);
  p.count = 1;
  p.summed = summed;
  for (const Stride& s : order) p.count *= s.dim;
  p.kept = kept;
  p.direct = summed == 1 && lies_so(order, size);
  if (!p.direct && summed == 1 && lies_so(other_order, size)) p.direct = p.transposed = true;
  int64_t to = size * p.count;
  for (const Stride& s : order) {
    to = s.dim == 0 ? 0 : to / s.dim;
    p.walk.add(s.dim, s.stride, to);
  }
  p.walk.finish();
  return p;
}

int64_t product_of(const std::vector<Stride>& group) {
  int64_t product = 1;
  for (const Stride& s : group) product *= s.dim;
  return product;
}

std::vector<Stride> joined(std::initializer_list<std::vector<Stride>> groups) {
  std::vector<Stride> all;
  for (const auto& group : groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

// The labels of one operand by what becomes of them; batches and free ones in the order of the output.
struct Groups {
  std::vector<Stride> batch, free, contracted, summed;
};

Groups sort_labels(const EinsumShapes& shapes, size_t o, const std::vector<Stride>& strides, std::span<const int> contracted) {
  Groups g;
  const std::vector<int> none;
  const std::vector<int>& other = shapes.inputs.size() > 1 ? shapes.inputs[1 - o] : none;
  const auto find = [&](int id) { return std::ranges::find_if(strides, [id](const Stride& s) { return s.id == id; }); };
  std::vector<int> seen;
  for (int id : shapes.output) {
    const auto at = find(id);
    if (at == strides.end() || contains(seen, id)) continue;
    seen.push_back(id);
    (contains(other, id) ? g.batch : g.free).push_back(*at);
  }
  for (int id : contracted) g.contracted.push_back(*find(id));
  for (const Stride& s : strides) {
    if (!contains(shapes.output, s.id) && !contains(other, s.id)) g.summed.push_back(s);
  }
  return g;
}

// Where each element of the result goes.
void plan_output(EinsumArgs& a, const EinsumShapes& shapes, const Shape& out, const std::vector<Stride>& result) {
  const std::vector<Stride> places = strides_of(shapes.output, out, shapes, a.size);
  std::vector<Stride> order;
  for (const Stride& s : result) order.push_back(*std::ranges::find_if(places, [&](const Stride& p) { return p.id == s.id; }));
  a.out_sparse = places.size() != shapes.output.size();
  a.out_direct = !a.out_sparse && lies_so(order, a.size);
  a.out_walk = cpu::Walk(a.size);
  int64_t from = a.size * product_of(order);
  for (const Stride& s : order) {
    from = s.dim == 0 ? 0 : from / s.dim;
    a.out_walk.add(s.dim, from, s.stride);
  }
  a.out_walk.finish();
}

void plan_workspace(PrepareContext& c, EinsumArgs& a) {
  int64_t bytes = 0;
  const auto reserve = [&](int64_t own) {
    const int64_t at = bytes;
    bytes += (own + 63) / 64 * 64;
    return at;
  };
  for (int i = 0; i < a.operands; ++i) {
    if (!a.in[i].direct) a.in[i].offset = reserve(std::max(a.in[i].count, a.in[i].kept) * a.size);
  }
  if (a.operands > 1 && !a.out_direct) a.out_offset = reserve(a.batch * a.m * a.n * a.size);
  a.gemm_offset = bytes;
  Bytes all(bytes);
  if (a.operands > 1 && c.input(0).dtype == DType::f32 && a.k > 0) {
    a.shards = a.batch < 4 ? 1 : std::min<int64_t>(16, a.batch);
    a.gemm = cpu::gemm_plan(a.m, a.n, a.k, a.in[0].transposed, a.in[1].transposed, a.shards == 1);
    all = all + a.gemm.workspace() * a.shards;
  }
  c.workspace(all);
}

// Once for all types, of `size` bytes, as each would be a copy of it.
Status prepare_einsum(PrepareContext& c, int64_t size, SyncFn run) {
  auto* a = c.args<EinsumArgs>();
  DTG_ASSIGN(const Equation equation, parse_equation(c.attr<std::string>("equation"), c.num_inputs()));
  std::vector<PartialShape> inputs;
  for (int i = 0; i < c.num_inputs(); ++i) inputs.push_back(PartialShape(c.input(i).shape));
  const auto resolved = resolve_equation(equation, inputs);
  if (!resolved.ok()) return c.error("%s", resolved.status().message().c_str());
  const EinsumShapes& shapes = resolved.value();
  a->operands = c.num_inputs();
  a->size = size;
  a->out_count = c.output(0).shape.count();
  std::vector<int> contracted;
  for (const EinsumLabel& label : shapes.labels) {
    if (a->operands > 1 && contains(shapes.inputs[0], label.id) && contains(shapes.inputs[1], label.id) &&
        !contains(shapes.output, label.id)) {
      contracted.push_back(label.id);
    }
  }
  const Groups x = sort_labels(shapes, 0, strides_of(shapes.inputs[0], c.input(0).shape, shapes, a->size), contracted);
  a->batch = product_of(x.batch), a->m = product_of(x.free), a->k = product_of(x.contracted);
  a->in[0] = packing(joined({x.batch, x.free, x.contracted, x.summed}), joined({x.batch, x.contracted, x.free, x.summed}),
                     product_of(x.summed), a->batch * a->m * a->k, a->size);
  std::vector<Stride> result = joined({x.batch, x.free});
  if (a->operands > 1) {
    const Groups y = sort_labels(shapes, 1, strides_of(shapes.inputs[1], c.input(1).shape, shapes, a->size), contracted);
    a->n = product_of(y.free);
    a->in[1] = packing(joined({y.batch, y.contracted, y.free, y.summed}), joined({y.batch, y.free, y.contracted, y.summed}),
                       product_of(y.summed), a->batch * a->k * a->n, a->size);
    result = joined({x.batch, x.free, y.free});
  }
  plan_output(*a, shapes, c.output(0).shape, result);
  plan_workspace(c, *a);
  return c.sync(run);
}

template <class T>
Status einsum_prepare(PrepareContext& c) {
  return prepare_einsum(c, sizeof(T), einsum_run<T>);
}

template <class... T>
void add_einsum_kernels(KernelTable& kernels) {
  (kernels.add({.op = "Einsum", .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = einsum_prepare<T>}), ...);
}

}  // namespace

void register_einsum(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("Einsum")
              .input("inputs: N * T")
              .output("output: T")
              .attr("equation: string")
              .attr("N: int >= 1")
              .attr("T: type")
              .shape(einsum_shape)
              .gradient(einsum_grad)
              .doc("Sums of products over labelled dimensions, as in \"ij,jk->ik\"; an ellipsis broadcasts."));
  add_einsum_kernels<float, double, int32_t, int64_t, Half, BFloat16>(kernels);
}

}  // namespace dtg::ops
