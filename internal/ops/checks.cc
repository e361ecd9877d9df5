// Ops that refuse: CheckNumerics and CheckNumericsV2 want finite numbers, Assert wants a condition to hold. They change nothing.
#include <atomic>
#include <cmath>
#include <cstring>

#include "base/json.h"
#include "base/status.h"
#include "device/cpu/copy.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/type_lists.h"
#include "tensor/text.h"

namespace dtg::ops {
namespace {

// ---- CheckNumerics -----------------------------------------------------------------------------------------

// dx = dy, which must be finite too
Status check_numerics_grad(GradContext& c) {
  const std::string message = "Not a number (NaN) or infinity (Inf) values detected in gradient. " + c.attr<std::string>("message");
  c.dx(0, c.b().op(c.node().op->name(), {c.dy()}, {{"message", message}}));
  return {};
}

struct CheckArgs {
  int64_t count = 0, bytes = 0;
};

constexpr int64_t kCheckShard = 65536;

// Which of them are there: 1 a NaN, 2 infinity, 4 minus infinity.
template <class T>
unsigned trouble_in(const T* in, int64_t begin, int64_t end) {
  unsigned found = 0;
  for (int64_t i = begin; i < end; ++i) {
    const auto value = static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(in[i]);
    if (std::isfinite(value)) continue;
    found |= std::isnan(value) ? 1u : value > 0 ? 2u : 4u;
  }
  return found;
}

template <class T>
Status check_numerics_run(RunContext& c) {
  const auto& a = c.args<CheckArgs>();
  std::atomic<unsigned> found{0};
  c.pool().parallel_for((a.count + kCheckShard - 1) / kCheckShard, [&](int64_t s) {
    const unsigned own = trouble_in(c.in<T>(0), s * kCheckShard, std::min(a.count, (s + 1) * kCheckShard));
    if (own != 0) found.fetch_or(own, std::memory_order_relaxed);
  });
  if (const unsigned all = found.load(std::memory_order_relaxed)) {
    return c.error("%s : Tensor had%s%s%s values", c.node().attr<std::string>("message").c_str(), all & 1u ? " NaN" : "",
                   all & 2u ? " Inf" : "", all & 4u ? " -Inf" : "");
  }
  if (a.bytes > 0 && c.in<T>(0) != c.out<T>(0)) std::memcpy(c.out<char>(0), c.in<char>(0), static_cast<size_t>(a.bytes));
  return {};
}

template <class T>
Status check_numerics_prepare(PrepareContext& c) {
  *c.args<CheckArgs>() = {c.input(0).shape.count(), c.input(0).bytes()};
  c.may_overwrite(0, 0);
  return c.sync(check_numerics_run<T>);
}

template <class... T>
void add_check_kernels(KernelTable& kernels) {
  for (const char* name : {"CheckNumerics", "CheckNumericsV2"}) {
    (kernels.add({.op = name, .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = check_numerics_prepare<T>}), ...);
  }
}

// ---- Assert ------------------------------------------------------------------------------------------------

Status assert_shape(InferContext& c) { return c.require_rank(0, 0); }

struct Shown {
  DType dtype = DType::invalid;
  int64_t count = 0;
};
struct AssertArgs {
  std::span<const Shown> data;
  int64_t summarize = 3;
};

// In quotes, with what is no text of one line spelled out; the beginning of what is long.
std::string text_shown(std::string_view text) {
  constexpr size_t kShown = 256;
  std::string shown;
  append_json_string(shown, text.substr(0, kShown));
  return text.size() > kShown ? shown + "..." : shown;
}

std::string element_text(const void* data, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::f32: return format("%g", static_cast<double>(static_cast<const float*>(data)[i]));
    case DType::f64: return format("%g", static_cast<const double*>(data)[i]);
    case DType::f16: return format("%g", static_cast<double>(float(static_cast<const Half*>(data)[i])));
    case DType::bf16: return format("%g", static_cast<double>(float(static_cast<const BFloat16*>(data)[i])));
    case DType::boolean: return static_cast<const bool*>(data)[i] ? "true" : "false";
    case DType::string: return text_shown(static_cast<const Text*>(data)[i].view());
    default: break;
  }
  return dtype_is_integer(dtype) ? std::to_string(integer_at(data, dtype, i)) : std::string("?");
}

// Text is made only when the condition fails.
Status assert_run(RunContext& c) {
  if (*c.in<bool>(0)) return {};
  const auto& a = c.args<AssertArgs>();
  std::string text;
  for (size_t k = 0; k < a.data.size(); ++k) {
    const Shown& shown = a.data[k];
    text += " [";
    for (int64_t i = 0; i < shown.count; ++i) {
      if (a.summarize >= 0 && i >= a.summarize) {
        text += " ...";
        break;
      }
      text += (i > 0 ? " " : "") + element_text(c.in<void>(static_cast<int>(k) + 1), shown.dtype, i);
    }
    text += "]";
  }
  return c.error("assertion failed:%s", text.c_str());
}

Status assert_prepare(PrepareContext& c) {
  auto* a = c.args<AssertArgs>();
  a->summarize = c.integer("summarize");
  if (c.input(0).shape.rank() != 0) return c.error("the condition must be a scalar, but has shape %s", c.input(0).shape.text().c_str());
  std::vector<Shown> data;
  for (int i = 1; i < c.num_inputs(); ++i) data.push_back({c.input(i).dtype, c.input(i).shape.count()});
  a->data = c.arena().copy(std::span<const Shown>(data));
  return c.sync(assert_run);
}

}  // namespace

void register_checks(OpTable& ops, KernelTable& kernels) {
  for (const char* name : {"CheckNumerics", "CheckNumericsV2"}) {
    ops.add(OpDef::make(name)
                .input("tensor: T")
                .output("output: T")
                .attr(kAttrFloats)
                .attr("message: string")
                .shape(unchanged_shape)
                .gradient(check_numerics_grad)
                .doc("Its input; an error with the message where an element is NaN or infinite."));
  }
  add_check_kernels<Half, BFloat16, float, double>(kernels);
  ops.add(OpDef::make("Assert")
              .input("condition: bool")
              .input("data: T")
              .attr("T: list(type) >= 1")
              .attr("summarize: int = 3")
              .shape(assert_shape)
              .stateful()
              .no_gradient()
              .doc("An error that shows the data, unless the condition holds."));
  kernels.add({.op = "Assert", .prepare = assert_prepare});
}

}  // namespace dtg::ops
