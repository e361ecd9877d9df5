// Softmax, LogSoftmax and the two cross entropies that start from logits. A row is one distribution over the
// last dimension; rows are independent, so they are the shards. Registered once by the runtime; kernels run
// on any thread.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "device/cpu/rows.h"
#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/all.h"

namespace dtg::ops {
namespace {

// ---- rows --------------------------------------------------------------------------------------------------

// Double rows keep double; the 16-bit types are computed in float.
template <class T>
struct RowMath {
  using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
};

// What a row comes down to: its largest element and the sum of exp(x - largest).
template <class Wide>
struct Row {
  Wide largest, sum;
};

// fn(i) for i in [0, n). Rows may be long, so the end of the run is seen between stretches.
template <class Fn>
void in_stretches(int64_t n, Fn&& fn) {
  constexpr int64_t kSteps = 4;
  look_in_stretches(0, n, kSteps, 1, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) fn(i);
  });
}

template <class T>
Row<typename RowMath<T>::Wide> row_sum(const T* x, int64_t n) {
  using Wide = typename RowMath<T>::Wide;
  Row<Wide> row{-std::numeric_limits<Wide>::infinity(), Wide(0)};
  in_stretches(n, [&](int64_t i) { row.largest = std::max(row.largest, static_cast<Wide>(x[i])); });
  in_stretches(n, [&](int64_t i) { row.sum += std::exp(static_cast<Wide>(x[i]) - row.largest); });
  return row;
}

template <class T>
void softmax_row(const T* x, T* y, int64_t n) {
  using Wide = typename RowMath<T>::Wide;
  const auto row = row_sum(x, n);
  in_stretches(n, [&](int64_t i) { y[i] = static_cast<T>(std::exp(static_cast<Wide>(x[i]) - row.largest) / row.sum); });
}

template <class T>
void log_softmax_row(const T* x, T* y, int64_t n) {
  using Wide = typename RowMath<T>::Wide;
  const auto row = row_sum(x, n);
  const Wide log_sum = std::log(row.sum);
  in_stretches(n, [&](int64_t i) { y[i] = static_cast<T>(static_cast<Wide>(x[i]) - row.largest - log_sum); });
}

// backprop = softmax before the labels are taken off; returns what the loss needs.
template <class T>
Row<typename RowMath<T>::Wide> probabilities(const T* x, T* backprop, int64_t n) {
  if constexpr (std::is_same_v<T, float>) {
    const cpu::RowSum row = cpu::softmax_row(x, backprop, n);
    return {row.largest, row.sum};
  } else {
    using Wide = typename RowMath<T>::Wide;
    const auto row = row_sum(x, n);
    in_stretches(n, [&](int64_t i) { backprop[i] = static_cast<T>(std::exp(static_cast<Wide>(x[i]) - row.largest) / row.sum); });
    return row;
  }
}

// ---- shapes ------------------------------------------------------------------------------------------------

Status softmax_shape(InferContext& c) {
  DTG_TRY(c.require_rank_at_least(0, 1));
  return c.same_as_input(0);
}

Status xent_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 2));
  DTG_TRY(c.require_rank(1, 2));
  auto both = broadcast_shapes(c.input(0), c.input(1));
  if (!both.ok()) return c.error("logits and labels: %s", both.status().message().c_str());
  PartialShape shape = both.take();
  if (!shape.has_rank()) shape = PartialShape::of_rank(2);
  c.output(0, PartialShape::vector(shape.dim(0)));
  c.output(1, shape);
  return {};
}

Status sparse_xent_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 2));
  DTG_TRY(c.require_rank(1, 1));
  PartialShape logits = c.input(0).has_rank() ? c.input(0) : PartialShape::of_rank(2);
  const int64_t rows = logits.dim(0), labels = c.input(1).has_rank() ? c.input(1).dim(0) : -1;
  if (rows >= 0 && labels >= 0 && rows != labels) {
    return c.error("logits %s have %lld rows, but there are %lld labels", c.input(0).text().c_str(), static_cast<long long>(rows),
                   static_cast<long long>(labels));
  }
  if (rows < 0) logits.set_dim(0, labels);
  c.output(0, PartialShape::vector(logits.dim(0)));
  c.output(1, logits);
  return {};
}

// ---- gradients ---------------------------------------------------------------------------------------------

Value sum_last(Build& b, Value x) { return b.sum(x, b.ints({-1}), true); }

// dx = (dy - sum(dy * y)) * y.
Status softmax_grad(GradContext& c) {
  Build& b = c.b();
  const Value dy = c.dy(), y = c.output(0);
  c.dx(0, b.mul(b.sub(dy, sum_last(b, b.mul(dy, y))), y));
  return {};
}

// dx = dy - sum(dy) * exp(y).
Status log_softmax_grad(GradContext& c) {
  Build& b = c.b();
  const Value dy = c.dy();
  c.dx(0, b.sub(dy, b.mul(sum_last(b, dy), b.op("Exp", {c.output(0)}))));
  return {};
}

Value scale_rows(Build& b, Value per_row, Value matrix) { return b.mul(b.op("ExpandDims", {per_row, b.integer(-1)}), matrix); }

// dlogits = dloss * backprop, and through the second output (dbackprop - sum(dbackprop * p)) * p.
Value logits_gradient(GradContext& c) {
  Build& b = c.b();
  const Value first = scale_rows(b, c.dy(0), c.output(1));
  if (!c.has_dy(1)) return first;
  const Value p = b.op("Softmax", {c.input(0)});
  const Value dot = b.op("BatchMatMulV2", {b.op("ExpandDims", {c.dy(1), b.integer(1)}), b.op("ExpandDims", {p, b.integer(2)})});
  const Value squeezed = b.op("Squeeze", {dot}, {{"squeeze_dims", std::vector<int64_t>{1}}});
  return b.add(first, b.mul(b.sub(c.dy(1), squeezed), p));
}

// A batch of one that stands for all rows takes the sum of their gradients.
void answer(GradContext& c, int i, Value value) {
  const PartialShape& own = c.input_info(i).shape;
  const PartialShape& other = c.input_info(1 - i).shape;
  const auto stretched = [&](int d) {
    const int64_t mine = own.has_rank() ? own.dim(d) : -1, theirs = other.has_rank() ? other.dim(d) : -1;
    return mine <= 1 && theirs != 1;  // or may be, when the graph does not know
  };
  if (stretched(0) || stretched(1)) return c.dx_unbroadcast(i, value, 1 - i);
  c.dx(i, value);
}

// dlabels = -dloss * log_softmax(logits). As in TensorFlow nothing comes to the labels by way of backprop.
Status xent_grad(GradContext& c) {
  Build& b = c.b();
  answer(c, 0, logits_gradient(c));
  answer(c, 1, scale_rows(b, c.dy(0), b.neg(b.op("LogSoftmax", {c.input(0)}))));
  return {};
}

Status sparse_xent_grad(GradContext& c) {
  c.dx(0, logits_gradient(c));
  return {};
}

// ---- kernels -----------------------------------------------------------------------------------------------

struct RowsArgs {
  int64_t rows = 0, classes = 0, shards = 1;
  // How far from row to row and class to class in logits and labels; 0 repeats.
  int64_t logits_row = 0, logits_class = 1, labels_row = 0, labels_class = 1;
};

void set_rows(RowsArgs& args, const Shape& shape) {
  args.classes = shape.dim(shape.rank() - 1);
  args.rows = shape.count(0, shape.rank() - 1);
  args.shards = std::clamp<int64_t>(args.rows * args.classes / 8192, 1, std::min<int64_t>(16, std::max<int64_t>(args.rows, 1)));
}

template <class Fn>
void for_rows(RunContext& c, const RowsArgs& a, Fn fn) {
  c.pool().parallel_for(
      a.shards, [&](int64_t shard) { look_between(a.rows * shard / a.shards, a.rows * (shard + 1) / a.shards, 10 + 4 * a.classes, fn); });
}

template <class T, bool kLog>
Status softmax_run(RunContext& c) {
  const auto& a = c.args<RowsArgs>();
  const T* x = c.in<T>(0);
  T* y = c.out<T>(0);
  if (a.classes == 0) return {};
  if constexpr (std::is_same_v<T, float>) {
    c.pool().parallel_for(a.shards, [&](int64_t shard) {
      look_in_stretches(a.rows * shard / a.shards, a.rows * (shard + 1) / a.shards, 10 + 4 * a.classes, 1, [&](int64_t from, int64_t to) {
        (kLog ? cpu::log_softmax_rows : cpu::softmax_rows)(x + from * a.classes, y + from * a.classes, to - from, a.classes);
      });
    });
  } else {
    for_rows(c, a, [&](int64_t row) { (kLog ? log_softmax_row<T> : softmax_row<T>)(x + row * a.classes, y + row * a.classes, a.classes); });
  }
  return {};
}

// loss = sum(labels * (log(sum(exp(x - max))) - (x - max))); a zero label does not hide an infinite logit.
template <class T>
Status xent_run(RunContext& c) {
  using Wide = typename RowMath<T>::Wide;
  const auto& a = c.args<RowsArgs>();
  const T* logits = c.in<T>(0);
  const T* labels = c.in<T>(1);
  T* loss = c.out<T>(0);
  T* backprop = c.out<T>(1);
  for_rows(c, a, [&](int64_t row) {
    const T* x = logits + row * a.logits_row;
    const T* label = labels + row * a.labels_row;
    T* g = backprop + row * a.classes;
    if (a.logits_class == 0) {  // one logit stands for every class: write the row out first
      std::fill(g, g + a.classes, x[0]);
      x = g;
    }
    const T kept = x[0];
    const auto row_of = [&](int64_t i) { return a.logits_class == 0 ? static_cast<Wide>(kept) : static_cast<Wide>(x[i]); };
    const Row<Wide> p = probabilities(x, g, a.classes);
    const Wide log_sum = std::log(p.sum);
    Wide total = 0;
    in_stretches(a.classes, [&](int64_t i) {
      const Wide weight = static_cast<Wide>(label[i * a.labels_class]);
      total += weight * (log_sum - (row_of(i) - p.largest));
      g[i] = static_cast<T>(static_cast<Wide>(g[i]) - weight);
    });
    loss[row] = static_cast<T>(total);
  });
  return {};
}

template <class T, class Label>
Status sparse_xent_run(RunContext& c) {
  using Wide = typename RowMath<T>::Wide;
  const auto& a = c.args<RowsArgs>();
  const T* logits = c.in<T>(0);
  const Label* labels = c.in<Label>(1);
  T* loss = c.out<T>(0);
  T* backprop = c.out<T>(1);
  for (int64_t row = 0; row < a.rows; ++row) {
    if (labels[row] >= 0 && labels[row] < a.classes) continue;
    const char* const advice = labels[row] == -1          ? "; -1 is a name that was missing where a table was read: drop such rows there"
                               : labels[row] == a.classes ? "; labels that count from 1 need 1 subtracted, or the last layer one unit more"
                                                          : "; give the last layer as many units as there are classes";
    return c.error("label %lld of row %lld is outside the %lld classes, which are numbered from 0 to %lld%s",
                   static_cast<long long>(labels[row]), static_cast<long long>(row), static_cast<long long>(a.classes),
                   static_cast<long long>(a.classes - 1), advice);
  }
  for_rows(c, a, [&](int64_t row) {
    const T* x = logits + row * a.classes;
    T* g = backprop + row * a.classes;
    const auto label = static_cast<int64_t>(labels[row]);
    // Read before the row is overwritten: backprop may lie over the logits.
    const Wide own = static_cast<Wide>(x[label]);
    const Row<Wide> p = probabilities(x, g, a.classes);
    loss[row] = static_cast<T>(std::log(p.sum) - (own - p.largest));
    g[label] = static_cast<T>(static_cast<Wide>(g[label]) - Wide(1));
  });
  return {};
}

template <class T, bool kLog>
Status softmax_prepare(PrepareContext& c) {
  set_rows(*c.args<RowsArgs>(), c.input(0).shape);
  // In place only where a row is read before it is written.
  if (std::is_same_v<T, float>) c.may_overwrite(0, 0);
  return c.sync(softmax_run<T, kLog>);
}

template <class T>
Status xent_prepare(PrepareContext& c) {
  auto& args = *c.args<RowsArgs>();
  set_rows(args, c.output(1).shape);
  const Shape& logits = c.input(0).shape;
  const Shape& labels = c.input(1).shape;
  if (args.classes == 0 && args.rows > 0)
    return c.error("there must be at least one class, but logits have shape %s", logits.text().c_str());
  args.logits_row = logits.dim(0) == 1 ? 0 : logits.dim(1);
  args.logits_class = logits.dim(1) == 1 && args.classes != 1 ? 0 : 1;
  args.labels_row = labels.dim(0) == 1 ? 0 : labels.dim(1);
  args.labels_class = labels.dim(1) == 1 && args.classes != 1 ? 0 : 1;
  return c.sync(xent_run<T>);
}

template <class T>
Status sparse_xent_prepare(PrepareContext& c) {
  auto& args = *c.args<RowsArgs>();
  set_rows(args, c.input(0).shape);
  if (args.classes == 0 && args.rows > 0) {
    return c.error("there must be at least one class, but logits have shape %s", c.input(0).shape.text().c_str());
  }
  c.may_overwrite(0, 1);
  return c.sync(c.input(1).dtype == DType::i32 ? sparse_xent_run<T, int32_t> : sparse_xent_run<T, int64_t>);
}

template <class T>
void add_kernels(KernelTable& kernels) {
  const KernelRow::TypeClause type{"T", DTypeSet{dtype_of<T>}};
  kernels.add({.op = "Softmax", .types = {type}, .prepare = softmax_prepare<T, false>});
  kernels.add({.op = "LogSoftmax", .types = {type}, .prepare = softmax_prepare<T, true>});
  kernels.add({.op = "SoftmaxCrossEntropyWithLogits", .types = {type}, .prepare = xent_prepare<T>});
  kernels.add({.op = "SparseSoftmaxCrossEntropyWithLogits", .types = {type}, .prepare = sparse_xent_prepare<T>});
}

}  // namespace

void register_softmax(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("Softmax")
              .input("logits: T", {.rank_min = 1})
              .output("softmax: T")
              .attr("T: {half, bfloat16, float, double}")
              .shape(softmax_shape)
              .gradient(softmax_grad)
              .doc("exp(x) over the sum of exp(x) along the last dimension."));
  ops.add(OpDef::make("LogSoftmax")
              .input("logits: T", {.rank_min = 1})
              .output("logsoftmax: T")
              .attr("T: {half, bfloat16, float, double}")
              .shape(softmax_shape)
              .gradient(log_softmax_grad)
              .doc("x minus the logarithm of the sum of exp(x) along the last dimension."));
  ops.add(OpDef::make("SoftmaxCrossEntropyWithLogits")
              .input("features: T", {.rank = 2})
              .input("labels: T", {.rank = 2})
              .output("loss: T")
              .output("backprop: T")
              .attr("T: {half, bfloat16, float, double}")
              .shape(xent_shape)
              .gradient(xent_grad)
              .doc("Cross entropy of each row of labels under the softmax of the row of logits, and its gradient."));
  ops.add(OpDef::make("SparseSoftmaxCrossEntropyWithLogits")
              .input("features: T", {.rank = 2})
              .input("labels: Tlabels", {.rank = 1})
              .output("loss: T")
              .output("backprop: T")
              .attr("T: {half, bfloat16, float, double}")
              .attr("Tlabels: {int32, int64} = int64")
              .shape(sparse_xent_shape)
              .gradient(sparse_xent_grad)
              .doc("Cross entropy of one class index per row under the softmax of the row of logits, and its gradient."));
  add_kernels<float>(kernels);
  add_kernels<double>(kernels);
  add_kernels<Half>(kernels);
  add_kernels<BFloat16>(kernels);
}

}  // namespace dtg::ops
