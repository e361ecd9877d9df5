// The optimizer ops: ResourceApply... and ResourceSparseApply.... All of them are one kernel over the rules of
// device/cpu/update.h; a table says which inputs are variables, which are scalars and where the gradient is.
#include <algorithm>
#include <string>

#include "device/cpu/update.h"
#include "exec/variable.h"
#include "graph/infer.h"
#include "ops/all.h"

namespace dtg::ops {
namespace {

using cpu::UpdateRule;

// One op. `inputs` is TensorFlow's order: "var:r" is a variable, "lr" a scalar of type T, "grad:g" the
// gradient, "indices:i" the rows it belongs to, "step:l" an int64 scalar. `scalars` are the rule's, in its
// order; a name that the op does not have is 0.
struct Entry {
  const char* op;
  UpdateRule rule;
  const char* inputs;
  const char* scalars;
  const char* option = nullptr;  // the boolean attribute that is the rule's option, with its default
  bool grad_at_build = false;    // the gradient's shape is held against the variable's when a node is built
  const char* doc = nullptr;
};

constexpr const char* kNumberType =
    "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, "
    "uint16, complex128, half, uint32, uint64}";
constexpr const char* kNesterov = "use_nesterov: bool = false";
constexpr const char* kSlots = "update_slots: bool = true";
constexpr const char* kLinear = "multiply_linear_by_lr: bool = false";

// clang-format off
constexpr Entry kEntries[] = {
    {"ResourceApplyGradientDescent", UpdateRule::gradient_descent,
     "var:r alpha delta:g",
     "alpha", nullptr, true,
     "var -= alpha * delta."},
    {"ResourceApplyProximalGradientDescent", UpdateRule::proximal_gradient_descent,
     "var:r alpha l1 l2 delta:g",
     "alpha l1 l2", nullptr, false,
     "A gradient step followed by soft thresholding with l1 and shrinking with l2."},
    {"ResourceSparseApplyProximalGradientDescent", UpdateRule::proximal_gradient_descent,
     "var:r alpha l1 l2 grad:g indices:i",
     "alpha l1 l2", nullptr, false,
     "ResourceApplyProximalGradientDescent for the rows named by indices."},
    {"ResourceApplyMomentum", UpdateRule::momentum,
     "var:r accum:r lr grad:g momentum",
     "lr momentum", kNesterov, false,
     "accum = accum * momentum + grad; var -= lr * accum, or with Nesterov's look ahead."},
    {"ResourceSparseApplyMomentum", UpdateRule::momentum,
     "var:r accum:r lr grad:g indices:i momentum",
     "lr momentum", kNesterov, false,
     "ResourceApplyMomentum for the rows named by indices."},
    {"ResourceApplyKerasMomentum", UpdateRule::keras_momentum,
     "var:r accum:r lr grad:g momentum",
     "lr momentum", kNesterov, false,
     "accum = accum * momentum - lr * grad; var += accum, or with Nesterov's look ahead."},
    {"ResourceSparseApplyKerasMomentum", UpdateRule::keras_momentum,
     "var:r accum:r lr grad:g indices:i momentum",
     "lr momentum", kNesterov, false,
     "ResourceApplyKerasMomentum for the rows named by indices."},
    {"ResourceApplyAdam", UpdateRule::adam,
     "var:r m:r v:r beta1_power beta2_power lr beta1 beta2 epsilon grad:g",
     "beta1_power beta2_power lr beta1 beta2 epsilon", kNesterov, false,
     "Adam: moving means of the gradient and of its square; var -= rate * m / (sqrt(v) + epsilon)."},
    {"_ResourceApplyAdamW", UpdateRule::adam_w,
     "var:r m:r v:r beta1_power beta2_power lr beta1 beta2 epsilon weight_decay grad:g",
     "beta1_power beta2_power lr beta1 beta2 epsilon weight_decay", nullptr, false,
     "Private: var -= lr * weight_decay * var, then Adam."},
    {"_ResourceSparseApplyAdamW", UpdateRule::adam_w,
     "var:r m:r v:r beta1_power beta2_power lr beta1 beta2 epsilon weight_decay grad:g indices:i",
     "beta1_power beta2_power lr beta1 beta2 epsilon weight_decay", nullptr, false,
     "Private: _ResourceApplyAdamW for the rows named by indices; the moving means of other rows stay (lazy Adam)."},
    {"ResourceApplyAdamWithAmsgrad", UpdateRule::adam_amsgrad,
     "var:r m:r v:r vhat:r beta1_power beta2_power lr beta1 beta2 epsilon grad:g",
     "beta1_power beta2_power lr beta1 beta2 epsilon", nullptr, false,
     "Adam with the largest v seen so far in the divisor."},
    {"ResourceApplyAdaMax", UpdateRule::ada_max,
     "var:r m:r v:r beta1_power lr beta1 beta2 epsilon grad:g",
     "beta1_power lr beta1 beta2 epsilon", nullptr, false,
     "Adam with the decayed largest gradient in place of the mean square."},
    {"ResourceApplyAdagrad", UpdateRule::adagrad,
     "var:r accum:r lr grad:g",
     "lr", kSlots, false,
     "accum += grad * grad; var -= lr * grad / sqrt(accum)."},
    {"ResourceSparseApplyAdagrad", UpdateRule::adagrad,
     "var:r accum:r lr grad:g indices:i",
     "lr", kSlots, false,
     "ResourceApplyAdagrad for the rows named by indices."},
    {"ResourceApplyAdagradV2", UpdateRule::adagrad_v2,
     "var:r accum:r lr epsilon grad:g",
     "lr epsilon", kSlots, false,
     "accum += grad * grad; var -= lr * grad / (sqrt(accum) + epsilon)."},
    {"ResourceSparseApplyAdagradV2", UpdateRule::adagrad_v2,
     "var:r accum:r lr epsilon grad:g indices:i",
     "lr epsilon", kSlots, false,
     "ResourceApplyAdagradV2 for the rows named by indices."},
    {"ResourceApplyAdagradDA", UpdateRule::adagrad_da,
     "var:r gradient_accumulator:r gradient_squared_accumulator:r grad:g lr l1 l2 global_step:l",
     "lr l1 l2 global_step", nullptr, false,
     "Adagrad by dual averaging."},
    {"ResourceSparseApplyAdagradDA", UpdateRule::adagrad_da,
     "var:r gradient_accumulator:r gradient_squared_accumulator:r grad:g indices:i lr l1 l2 global_step:l",
     "lr l1 l2 global_step", nullptr, false,
     "ResourceApplyAdagradDA for the rows named by indices."},
    {"ResourceApplyProximalAdagrad", UpdateRule::proximal_adagrad,
     "var:r accum:r lr l1 l2 grad:g",
     "lr l1 l2", nullptr, true,
     "Adagrad followed by soft thresholding with l1 and shrinking with l2."},
    {"ResourceSparseApplyProximalAdagrad", UpdateRule::proximal_adagrad,
     "var:r accum:r lr l1 l2 grad:g indices:i",
     "lr l1 l2", nullptr, false,
     "ResourceApplyProximalAdagrad for the rows named by indices."},
    {"ResourceApplyAdadelta", UpdateRule::adadelta,
     "var:r accum:r accum_update:r lr rho epsilon grad:g",
     "lr rho epsilon", nullptr, false,
     "Adadelta: steps scaled by the ratio of the moving means of past steps and gradients."},
    {"ResourceSparseApplyAdadelta", UpdateRule::adadelta,
     "var:r accum:r accum_update:r lr rho epsilon grad:g indices:i",
     "lr rho epsilon", nullptr, false,
     "ResourceApplyAdadelta for the rows named by indices."},
    {"ResourceApplyRMSProp", UpdateRule::rms_prop,
     "var:r ms:r mom:r lr rho momentum epsilon grad:g",
     "lr rho momentum epsilon", nullptr, false,
     "Steps divided by the root of the moving mean of the squared gradient, with momentum."},
    {"ResourceSparseApplyRMSProp", UpdateRule::rms_prop,
     "var:r ms:r mom:r lr rho momentum epsilon grad:g indices:i",
     "lr rho momentum epsilon", nullptr, false,
     "ResourceApplyRMSProp for the rows named by indices."},
    {"ResourceApplyCenteredRMSProp", UpdateRule::centered_rms_prop,
     "var:r mg:r ms:r mom:r lr rho momentum epsilon grad:g",
     "lr rho momentum epsilon", nullptr, false,
     "RMSProp with the variance of the gradient in place of its mean square."},
    {"ResourceSparseApplyCenteredRMSProp", UpdateRule::centered_rms_prop,
     "var:r mg:r ms:r mom:r lr rho momentum epsilon grad:g indices:i",
     "lr rho momentum epsilon", nullptr, false,
     "ResourceApplyCenteredRMSProp for the rows named by indices."},
    {"ResourceApplyAddSign", UpdateRule::add_sign,
     "var:r m:r lr alpha sign_decay beta grad:g",
     "lr alpha sign_decay beta", nullptr, false,
     "Larger steps where the gradient agrees with its moving mean."},
    {"ResourceApplyPowerSign", UpdateRule::power_sign,
     "var:r m:r lr logbase sign_decay beta grad:g",
     "lr logbase sign_decay beta", nullptr, false,
     "Exponentially larger steps where the gradient agrees with its moving mean."},
    {"ResourceApplyFtrl", UpdateRule::ftrl,
     "var:r accum:r linear:r grad:g lr l1 l2 lr_power",
     "lr l1 l2 - lr_power", kLinear, false,
     "Follow the regularised leader."},
    {"ResourceSparseApplyFtrl", UpdateRule::ftrl,
     "var:r accum:r linear:r grad:g indices:i lr l1 l2 lr_power",
     "lr l1 l2 - lr_power", kLinear, false,
     "ResourceApplyFtrl for the rows named by indices."},
    {"ResourceApplyFtrlV2", UpdateRule::ftrl,
     "var:r accum:r linear:r grad:g lr l1 l2 l2_shrinkage lr_power",
     "lr l1 l2 l2_shrinkage lr_power", kLinear, false,
     "ResourceApplyFtrl with l2 shrinkage of the gradient."},
    {"ResourceSparseApplyFtrlV2", UpdateRule::ftrl,
     "var:r accum:r linear:r grad:g indices:i lr l1 l2 l2_shrinkage lr_power",
     "lr l1 l2 l2_shrinkage lr_power", kLinear, false,
     "ResourceApplyFtrlV2 for the rows named by indices."},
    {"_ResourceApplyAverage", UpdateRule::average,
     "var:r mean:r momentum overwrite",
     "momentum overwrite", nullptr, false,
     "Private: mean = momentum * mean + (1 - momentum) * var; where overwrite is above 0 var is the mean then."},
};
// clang-format on

// Where the inputs of an op are, read from its definition: one parser for building and for running.
struct Places {
  int variables = 0;
  int grad = -1;
  int indices = -1;
};

Places places_of(const OpDef& op) {
  Places places;
  const auto inputs = op.inputs();
  for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
    const ArgDef& arg = inputs[static_cast<size_t>(i)];
    if (arg.dtype == DType::resource) ++places.variables;
    if (arg.name == "grad" || arg.name == "delta") places.grad = i;
    if (arg.name == "indices") places.indices = i;
  }
  return places;
}

// Splits off the next word of a list separated by blanks.
std::string_view next_word(std::string_view& list) {
  const size_t end = list.find(' ');
  const std::string_view word = list.substr(0, end);
  list = end == std::string_view::npos ? std::string_view() : list.substr(end + 1);
  return word;
}

Status same_shapes(InferContext& c, bool with_grad) {
  const Places places = places_of(*c.node().op);
  PartialShape all = c.input(0);
  for (int i = 1; i < places.variables + (with_grad ? 1 : 0); ++i) {
    const int input = i < places.variables ? i : places.grad;
    auto merged = PartialShape::merge(all, c.input(input), "variable, slots and gradient");
    if (!merged.ok()) return c.error("%s", merged.status().message().c_str());
    all = merged.take();
  }
  for (int i = 0; i < places.variables; ++i) {
    const DType held = c.held_dtype(i), own = c.attr<DType>("T");
    if (held != DType::invalid && held != own) {
      return c.error("variable %d holds %s, the op is for %s", i, dtype_name(held), dtype_name(own));
    }
  }
  return {};
}
Status slots_shape(InferContext& c) { return same_shapes(c, false); }
Status slots_and_grad_shape(InferContext& c) { return same_shapes(c, true); }

struct ApplyArgs : UpdateArgs {
  cpu::UpdateLoop loop;
  int scalars[cpu::kUpdateScalars] = {-1, -1, -1, -1, -1, -1, -1};  // inputs
  DType scalar_types[cpu::kUpdateScalars] = {};
  int grad = 0;  // -1: none
  int indices = -1;
  bool indices_wide = false;
  Shape grad_shape;
  int64_t rows = 0;  // of the gradient, for sparse ops
};

double scalar_at(const RunContext& c, int input, DType dtype) {
  switch (dtype) {
    case DType::f64: return *c.in<double>(input);
    case DType::f16: return *c.in<Half>(input);
    case DType::bf16: return *c.in<BFloat16>(input);
    case DType::i64: return static_cast<double>(*c.in<int64_t>(input));
    default: return *c.in<float>(input);
  }
}

cpu::UpdateLoop loop_of(const RunContext& c, const ApplyArgs& a) {
  cpu::UpdateLoop loop = a.loop;
  for (int k = 0; k < cpu::kUpdateScalars; ++k) {
    if (a.scalars[k] >= 0) loop.scalar[k] = scalar_at(c, a.scalars[k], a.scalar_types[k]);
  }
  return loop;
}

Status check_slots(const RunContext& c, const VariableUpdate& update) {
  for (int k = 1; k < update.count(); ++k) {
    if (update.tensor(k).shape() == update.tensor(0).shape()) continue;
    return c.error("the variable has shape %s, its slot %d %s", update.tensor(0).shape().text().c_str(), k,
                   update.tensor(k).shape().text().c_str());
  }
  return {};
}

cpu::UpdateMemory memory_of(const VariableUpdate& update) {
  cpu::UpdateMemory memory;
  for (int k = 0; k < update.count(); ++k) {
    memory.old[k] = update.old<char>(k);
    memory.data[k] = update.data<char>(k);
  }
  return memory;
}

constexpr int64_t kShard = 32768;  // elements

Status apply_dense(RunContext& c, VariableUpdate& update) {
  const auto& a = c.args<ApplyArgs>();
  DTG_TRY(check_slots(c, update));
  if (a.grad >= 0 && !(update.tensor(0).shape() == a.grad_shape)) {
    return c.error("the variable has shape %s, the gradient %s", update.tensor(0).shape().text().c_str(), a.grad_shape.text().c_str());
  }
  const cpu::UpdateLoop loop = loop_of(c, a);
  cpu::UpdateMemory memory = memory_of(update);
  if (a.grad >= 0) memory.grad = c.in<void>(a.grad);
  const int64_t count = update.tensor(0).shape().count();
  c.pool().parallel_for((count + kShard - 1) / kShard,
                        [&](int64_t shard) { cpu::update_elements(loop, memory, shard * kShard, std::min(count, (shard + 1) * kShard)); });
  return {};
}

int64_t index_at(const RunContext& c, const ApplyArgs& a, int64_t i) {
  return a.indices_wide ? c.in<int64_t>(a.indices)[i] : c.in<int32_t>(a.indices)[i];
}

// Checked as a whole before the first row is touched, so that an error leaves the variable as it was.
Status check_rows(const RunContext& c, const ApplyArgs& a, const Shape& shape) {
  bool fits = shape.rank() == a.grad_shape.rank() && shape.rank() > 0 && a.grad_shape.dim(0) == a.rows;
  for (int d = 1; fits && d < shape.rank(); ++d) fits = shape.dim(d) == a.grad_shape.dim(d);
  if (!fits) {
    return c.error("the variable has shape %s; a gradient of shape %s for %lld indices does not fit its rows", shape.text().c_str(),
                   a.grad_shape.text().c_str(), static_cast<long long>(a.rows));
  }
  for (int64_t i = 0; i < a.rows; ++i) {
    const int64_t row = index_at(c, a, i);
    if (row < 0 || row >= shape.dim(0)) {
      return c.error("indices[%lld] = %lld is not in [0, %lld)", static_cast<long long>(i), static_cast<long long>(row),
                     static_cast<long long>(shape.dim(0)));
    }
  }
  return {};
}

// Rows one after the other, because an index may come twice.
Status apply_sparse(RunContext& c, VariableUpdate& update) {
  const auto& a = c.args<ApplyArgs>();
  const Shape& shape = update.tensor(0).shape();
  DTG_TRY(check_slots(c, update));
  DTG_TRY(check_rows(c, a, shape));
  cpu::UpdateLoop loop = loop_of(c, a);
  const cpu::UpdateMemory memory = memory_of(update);
  const int64_t width = shape.count(1, shape.rank()), row_bytes = width * dtype_size(loop.dtype);
  // Rows of one element are a loop of their own in TensorFlow, which adds in another order.
  if (loop.rule == cpu::UpdateRule::ftrl && width == 1) loop.scalar[5] = 1;
  for (int64_t i = 0; i < a.rows; ++i) {
    const int64_t offset = index_at(c, a, i) * row_bytes;
    cpu::UpdateMemory row;
    for (int k = 0; k < update.count(); ++k) {
      // What a row has become is what the next gradient for it meets.
      row.old[k] = row.data[k] = static_cast<char*>(memory.data[k]) + offset;
    }
    row.grad = c.in<char>(a.grad) + i * row_bytes;
    cpu::update_elements(loop, row, 0, width);
  }
  return {};
}

Status prepare_apply(PrepareContext& c) {
  const OpDef& op = *c.node().op;
  const Entry* entry = nullptr;
  for (const Entry& each : kEntries) {
    if (op.name() == each.op) entry = &each;
  }
  if (!entry) return internal_error("no update rule for %s", op.name().c_str());
  const Places places = places_of(op);
  auto* const a = c.args<ApplyArgs>();
  a->loop.rule = entry->rule;
  a->loop.dtype = c.attr<DType>("T");
  a->loop.variables = places.variables;
  if (entry->option) {
    const std::string_view attr = entry->option;
    a->loop.option = c.boolean(attr.substr(0, attr.find(':')));
  }
  a->grad = places.grad;
  if (places.grad >= 0) a->grad_shape = c.input(places.grad).shape;
  a->indices = places.indices;
  a->rewrites = places.indices < 0;
  if (places.indices >= 0) {
    a->rows = c.input(places.indices).shape.count();
    a->indices_wide = c.input(places.indices).dtype == DType::i64;
  }
  std::string_view names = entry->scalars;
  for (int k = 0; !names.empty(); ++k) {
    const std::string_view name = next_word(names);
    for (int i = 0; i < c.num_inputs(); ++i) {
      if (op.inputs()[static_cast<size_t>(i)].name != name) continue;
      a->scalars[k] = i;
      a->scalar_types[k] = c.input(i).dtype;
    }
  }
  const UpdateFn body = places.indices < 0 ? apply_dense : apply_sparse;
  switch (places.variables) {
    case 1: return prepare_update(c, {0}, body);
    case 2: return prepare_update(c, {0, 1}, body);
    case 3: return prepare_update(c, {0, 1, 2}, body);
    default: return prepare_update(c, {0, 1, 2, 3}, body);
  }
}

OpDef define(const Entry& entry) {
  OpDef op = OpDef::make(entry.op);
  bool sparse = false;
  std::string_view inputs = entry.inputs;
  while (!inputs.empty()) {
    const std::string_view word = next_word(inputs);
    const size_t colon = word.find(':');
    const char kind = colon == std::string_view::npos ? 's' : word[colon + 1];
    const std::string name(word.substr(0, colon));
    sparse |= kind == 'i';
    switch (kind) {
      case 'r': std::move(op).input((name + ": resource").c_str()); break;
      case 'g': std::move(op).input((name + ": T").c_str()); break;
      case 'i': std::move(op).input((name + ": Tindices").c_str(), {.rank = 1}); break;
      case 'l': std::move(op).input((name + ": int64").c_str(), {.rank = 0}); break;
      default: std::move(op).input((name + ": T").c_str(), {.rank = 0}); break;
    }
  }
  std::move(op).attr(kNumberType);
  if (sparse) std::move(op).attr("Tindices: {int32, int64}");
  std::move(op).attr("use_locking: bool = false");
  if (entry.option) std::move(op).attr(entry.option);
  std::move(op).shape(entry.grad_at_build ? slots_and_grad_shape : slots_shape);
  std::move(op).no_gradient().stateful().access(Access::write).doc(entry.doc);
  return op;
}

}  // namespace

void register_optimizer(OpTable& ops, KernelTable& kernels) {
  for (const Entry& entry : kEntries) {
    ops.add(define(entry));
    kernels.add({.op = entry.op, .types = {{"T", kFloating}}, .prepare = prepare_apply});
  }
}

}  // namespace dtg::ops
