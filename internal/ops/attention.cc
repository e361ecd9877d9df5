// DotProductAttention: the heads of attention in one pass, without the matrix of all scores. A task is one head of one example; it goes
// over its queries by strips and holds the scores of a strip, the gradient computes them anew. Tasks write to places of their own, so the
// bits are the same for any number of threads. Registered once by the runtime; kernels run on any thread.
#include <algorithm>
#include <cmath>

#include "base/interrupt.h"
#include "device/cpu/gemm.h"
#include "device/cpu/rows.h"
#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/all.h"

namespace dtg::ops {
namespace {

constexpr double kHidden = -1e9;  // the score of what may not be seen, as in Keras

// ---- shapes ------------------------------------------------------------------------------------------------

constexpr int kQuery = 0, kKey = 1, kValue = 2;

Status check_mask(InferContext& c, int at) {
  DTG_TRY(c.require_rank(at, 3));
  const PartialShape& mask = c.input(at);
  if (!mask.has_rank() || !c.input(kQuery).has_rank() || !c.input(kKey).has_rank()) return {};
  const int64_t full[] = {c.input(kQuery).dim(0), c.input(kQuery).dim(1), c.input(kKey).dim(1)};
  for (int d = 0; d < 3; ++d) {
    if (mask.dim(d) == 1 || mask.dim(d) < 0 || full[d] < 0 || mask.dim(d) == full[d]) continue;
    return c.error("the mask is %s; [batch, queries, keys] of query %s and key %s is needed, or dimensions of 1", mask.text().c_str(),
                   c.input(kQuery).text().c_str(), c.input(kKey).text().c_str());
  }
  return {};
}

// Query, key and value fit to each other, mask and lengths, which stand behind `first`, to them.
Status check_operands(InferContext& c, int first) {
  for (const char* list : {"masks", "counts"}) {
    if (c.integer(list) > 1) return c.error("%s is %lld; 0 or 1 is needed", list, static_cast<long long>(c.integer(list)));
  }
  auto same = [&](int a, int da, int b, int db, const char* what) -> Status {
    if (!c.input(a).has_rank() || !c.input(b).has_rank()) return {};
    const int64_t x = c.input(a).dim(da), y = c.input(b).dim(db);
    if (x < 0 || y < 0 || x == y) return {};
    return c.error("%s differs: input %d is %s and input %d is %s", what, a, c.input(a).text().c_str(), b, c.input(b).text().c_str());
  };
  for (const int i : {kKey, kValue}) {
    DTG_TRY(same(kQuery, 0, i, 0, "the batch"));
    DTG_TRY(same(kQuery, 2, i, 2, "the number of heads"));
  }
  DTG_TRY(same(kQuery, 3, kKey, 3, "the width of a head"));
  DTG_TRY(same(kKey, 1, kValue, 1, "the number of keys"));
  const int masks = static_cast<int>(c.integer("masks"));
  if (masks != 0) DTG_TRY(check_mask(c, first));
  if (c.integer("counts") == 0) return {};
  DTG_TRY(c.require_rank(first + masks, 1));
  return same(kQuery, 0, first + masks, 0, "the batch");
}

Status attention_shape(InferContext& c) {
  DTG_TRY(check_operands(c, 3));
  PartialShape out = c.input(kQuery).has_rank() ? c.input(kQuery) : PartialShape::of_rank(4);
  out.set_dim(3, c.input(kValue).has_rank() ? c.input(kValue).dim(3) : -1);
  c.output(0, out);
  return {};
}

Status attention_grad_shape(InferContext& c) {
  DTG_TRY(check_operands(c, 4));
  PartialShape out = c.input(kQuery).has_rank() ? c.input(kQuery) : PartialShape::of_rank(4);
  out.set_dim(3, c.input(kValue).has_rank() ? c.input(kValue).dim(3) : -1);
  auto merged = PartialShape::merge(out, c.input(3), "dy and the output");
  if (!merged.ok()) return c.error("%s", merged.status().message().c_str());
  for (int i = 0; i < 3; ++i) c.output(i, c.input(i));
  return {};
}

// ---- gradients ---------------------------------------------------------------------------------------------

// The operands behind the first `first`: mask and lengths, if any.
void append_rest(const GradContext& c, int first, std::vector<Value>* to) {
  for (int i = first; i < c.num_inputs(); ++i) to->push_back(c.input(i));
}

std::vector<Attr> settings_of(const GradContext& c) {
  return {{"causal", c.attr<bool>("causal")},
          {"scale", c.attr<double>("scale")},
          {"masks", c.attr<int64_t>("masks")},
          {"counts", c.attr<int64_t>("counts")}};
}

Status attention_grad(GradContext& c) {
  std::vector<Value> operands = {c.input(kQuery), c.input(kKey), c.input(kValue), c.dy()};
  append_rest(c, 3, &operands);
  const Value made = c.b().op("DotProductAttentionGrad", operands, settings_of(c));
  if (!c.b().ok()) return c.b().status();
  for (int i = 0; i < 3; ++i) c.dx(i, made.sibling(static_cast<uint32_t>(i)));
  return {};
}

// What the gradient computes, in ops that have gradients themselves: gradients of gradients are rare and need not be fast.
class Composed {
 public:
  explicit Composed(GradContext& c) : c_(c), b_(c.b()) {}

  // The gradients of query, key and value, from `own`: query, key, value and dy.
  std::vector<Value> gradients(const std::vector<Value>& own) {
    const Value q = b_.mul(turned(own[0]), b_.like(own[0], c_.attr<double>("scale")));
    const Value k = turned(own[1]), v = turned(own[2]), dy = turned(own[3]);
    Value scores = product(q, k, false, true);
    const Value seen = seen_of(scores);
    if (seen.valid()) scores = b_.op("SelectV2", {seen, scores, b_.like(scores, kHidden)});
    const Value p = b_.op("Softmax", {scores});
    const Value dp = product(dy, v, false, true);
    Value ds = b_.mul(p, b_.sub(dp, b_.sum(b_.mul(p, dp), b_.ints({-1}), true)));
    if (seen.valid()) ds = b_.op("SelectV2", {seen, ds, b_.like(ds, 0)});
    const Value dq = b_.mul(product(ds, k, false, false), b_.like(own[0], c_.attr<double>("scale")));
    return {turned(dq), turned(product(ds, q, true, false)), turned(product(p, dy, true, false))};
  }

 private:
  Value turned(Value x) { return b_.op("Transpose", {x, b_.ints({0, 2, 1, 3})}); }
  Value product(Value x, Value y, bool tx, bool ty) { return b_.op("BatchMatMulV2", {x, y}, {{"adj_x", tx}, {"adj_y", ty}}); }
  Value counted(Value x, int64_t axis) {
    const Value below = b_.op("StridedSlice", {b_.shape(x), b_.ints({axis}), b_.ints({axis + 1}), b_.ints({1})}, {{"shrink_axis_mask", 1}});
    return b_.op("Range", {b_.integer(0), below, b_.integer(1)});
  }
  Value both(Value a, Value b) { return a.valid() ? b_.op("LogicalAnd", {a, b}) : b; }
  Value seen_of(Value scores) {
    Value seen;
    int at = 4;
    if (c_.attr<int64_t>("masks") != 0) seen = b_.op("ExpandDims", {c_.input(at++), b_.integer(1)});
    if (c_.attr<int64_t>("counts") != 0)
      seen = both(seen, b_.op("Less", {counted(scores, 3), b_.reshape(c_.input(at), b_.ints({-1, 1, 1, 1}))}));
    if (c_.attr<bool>("causal"))
      seen = both(seen, b_.op("LessEqual", {counted(scores, 3), b_.op("ExpandDims", {counted(scores, 2), b_.integer(1)})}));
    return seen;
  }

  GradContext& c_;
  Build& b_;
};

Status attention_grad_grad(GradContext& c) {
  Build& b = c.b();
  // Names of their own: one value may be query and key at once.
  std::vector<Value> own, weights;
  for (int i = 0; i < 4; ++i) own.push_back(b.op("Identity", {c.input(i)}));
  const std::vector<Value> made = Composed(c).gradients(own);
  for (int i = 0; i < 3; ++i) weights.push_back(c.dy(i));
  DTG_TRY(b.status());
  DTG_ASSIGN(const std::vector<Gradient> all, add_inner_gradients(b.graph(), made, own, weights));
  for (int i = 0; i < 4; ++i) {
    if (all[static_cast<size_t>(i)].any()) c.dx(i, densify(b, all[static_cast<size_t>(i)]));
  }
  return {};
}

// ---- kernels -----------------------------------------------------------------------------------------------

struct AttentionArgs {
  int64_t batch = 0, queries = 0, keys = 0, heads = 0, width = 0, values = 0;
  int64_t strip = 1;           // queries at a time
  int64_t shards = 1;          // of the batch * heads tasks
  int64_t mask_steps[3] = {};  // from one example, query, key to the next
  int64_t shard_bytes = 0;
  double scale = 1;
  int mask = -1, lengths = -1;  // inputs
  bool causal = false;
};

template <class T>
void multiply(T* c, const T* a, const T* b, int64_t m, int64_t n, int64_t k, bool ta, bool tb, void* workspace) {
  if constexpr (std::is_same_v<T, float>) {
    if (m == 0 || n == 0) return;
    cpu::gemm_run_alone(cpu::gemm_plan(m, n, k, ta, tb, false), a, b, nullptr, false, c, workspace);
  } else {
    cpu::rows_gemm<T, T>(m, n, k, ta, tb, a, b, c, 0, m);
  }
}

template <class T>
void softmax(T* row, int64_t n) {
  if constexpr (std::is_same_v<T, float>) {
    cpu::softmax_row(row, row, n);
  } else {
    const T largest = *std::max_element(row, row + n);
    T sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += row[i] = std::exp(row[i] - largest);
    for (int64_t i = 0; i < n; ++i) row[i] /= sum;
  }
}

// One head of one example, with the shard's memory.
template <class T>
class Head {
 public:
  Head(const RunContext& c, const AttentionArgs& a, int64_t task, char* memory)
      : a_(a), example_(task / a.heads), head_(task % a.heads), next_(memory) {
    k_ = take(a.keys * a.width);
    v_ = take(a.keys * a.values);
    q_ = take(a.strip * a.width);
    s_ = take(a.strip * a.keys);
    o_ = take(a.strip * a.values);
    gather(c.in<T>(kKey), 0, a.keys, a.keys, a.width, 1, k_);
    gather(c.in<T>(kValue), 0, a.keys, a.keys, a.values, 1, v_);
    mask_ = a.mask < 0 ? nullptr : c.in<uint8_t>(a.mask) + example_ * a.mask_steps[0];
    length_ = a.lengths < 0 ? a.keys : c.in<int32_t>(a.lengths)[example_];
  }

  void forward(const T* query, T* out) {
    for (int64_t from = 0; from < a_.queries; from += a_.strip) {
      const int64_t rows = std::min(a_.strip, a_.queries - from), n = weigh(query, from, rows);
      multiply(o_, s_, v_, rows, a_.values, n, false, false, next_);
      scatter(o_, from, rows, a_.queries, a_.values, out);
      lookout_.after(2 * rows * n * (a_.width + a_.values));
    }
  }

  // d scores = p (dp - sum(p dp)), dp = dy v'; the other three are products of it and of p.
  void backward(const T* query, const T* dy, T* dq, T* dk, T* dv) {
    T* const dp = take(a_.strip * a_.keys);
    T* const part = take(std::max(a_.keys, a_.strip) * std::max(a_.width, a_.values));
    T* const dk_all = take(a_.keys * a_.width);
    T* const dv_all = take(a_.keys * a_.values);
    std::fill_n(dk_all, a_.keys * a_.width, T(0));
    std::fill_n(dv_all, a_.keys * a_.values, T(0));
    for (int64_t from = 0; from < a_.queries; from += a_.strip) {
      const int64_t rows = std::min(a_.strip, a_.queries - from), n = weigh(query, from, rows);
      gather(dy, from, rows, a_.queries, a_.values, 1, o_);
      multiply(part, s_, o_, n, a_.values, rows, true, false, next_);
      add(part, n * a_.values, dv_all);
      multiply(dp, o_, v_, rows, n, a_.values, false, true, next_);
      for (int64_t r = 0; r < rows; ++r) slope(s_ + r * n, dp + r * n, from + r, n);
      multiply(part, dp, q_, n, a_.width, rows, true, false, next_);  // q_ is scaled already
      add(part, n * a_.width, dk_all);
      multiply(part, dp, k_, rows, a_.width, n, false, false, next_);
      for (int64_t i = 0; i < rows * a_.width; ++i) part[i] *= static_cast<T>(a_.scale);
      scatter(part, from, rows, a_.queries, a_.width, dq);
      lookout_.after(5 * rows * n * (a_.width + a_.values));
    }
    scatter(dk_all, 0, a_.keys, a_.keys, a_.width, dk);
    scatter(dv_all, 0, a_.keys, a_.keys, a_.values, dv);
  }

 private:
  T* take(int64_t count) {
    T* const at = reinterpret_cast<T*>(next_);
    next_ += (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return at;
  }

  // Rows of this head out of [batch, places, heads, width], and back.
  void gather(const T* x, int64_t from, int64_t rows, int64_t places, int64_t width, T factor, T* to) const {
    const T* at = x + ((example_ * places + from) * a_.heads + head_) * width;
    for (int64_t r = 0; r < rows; ++r, at += a_.heads * width, to += width) {
      for (int64_t i = 0; i < width; ++i) to[i] = at[i] * factor;
    }
  }
  void scatter(const T* from_rows, int64_t from, int64_t rows, int64_t places, int64_t width, T* x) const {
    T* at = x + ((example_ * places + from) * a_.heads + head_) * width;
    for (int64_t r = 0; r < rows; ++r, at += a_.heads * width, from_rows += width) std::copy_n(from_rows, width, at);
  }
  static void add(const T* part, int64_t count, T* to) {
    for (int64_t i = 0; i < count; ++i) to[i] += part[i];
  }

  bool hidden(int64_t query, int64_t key) const {
    if (key >= length_ || (a_.causal && key > query)) return true;
    return mask_ && !mask_[query * a_.mask_steps[1] + key * a_.mask_steps[2]];
  }
  // s_[rows, n]: how much each query takes of each key; keys from n on have no weight. Where each query of the strip sees a key, those
  // that the last one does not see need no score.
  int64_t weigh(const T* query, int64_t from, int64_t rows) {
    int64_t n = a_.keys;
    if (!mask_ && length_ > 0) n = std::min(length_, a_.causal ? std::min(n, from + rows) : n);
    gather(query, from, rows, a_.queries, a_.width, static_cast<T>(a_.scale), q_);
    multiply(s_, q_, k_, rows, n, a_.width, false, true, next_);
    for (int64_t r = 0; r < rows; ++r) {
      T* const row = s_ + r * n;
      for (int64_t j = mask_ ? 0 : first_hidden(from + r, n); j < n; ++j) {
        if (hidden(from + r, j)) row[j] = static_cast<T>(kHidden);
      }
      softmax(row, n);
    }
    return n;
  }
  // Without a mask a query sees the keys before this one.
  int64_t first_hidden(int64_t query, int64_t n) const { return std::min({n, length_, a_.causal ? query + 1 : n}); }

  void slope(const T* p, T* dp, int64_t query, int64_t n) const {
    T sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += p[j] * dp[j];
    for (int64_t j = 0; j < n; ++j) dp[j] = p[j] * (dp[j] - sum);
    for (int64_t j = mask_ ? 0 : first_hidden(query, n); j < n; ++j) {
      if (hidden(query, j)) dp[j] = 0;
    }
  }

  const AttentionArgs& a_;
  const int64_t example_, head_;
  char* next_;  // of the shard's memory: what is free, in the end for products
  T *k_, *v_, *q_, *s_, *o_;
  const uint8_t* mask_;
  int64_t length_;
  Lookout lookout_;
};

Status check_lengths(const RunContext& c, const AttentionArgs& a) {
  for (int64_t i = 0; a.lengths >= 0 && i < a.batch; ++i) {
    const int32_t length = c.in<int32_t>(a.lengths)[i];
    if (length < 0 || length > a.keys) {
      return c.error("lengths[%lld] is %d; 0 to %lld keys are there", static_cast<long long>(i), length, static_cast<long long>(a.keys));
    }
  }
  return {};
}

template <class T, bool backward>
Status attention_run(RunContext& c) {
  const auto& a = c.args<AttentionArgs>();
  DTG_TRY(check_lengths(c, a));
  const int64_t tasks = a.batch * a.heads;
  c.pool().parallel_for(a.shards, [&](int64_t shard) {
    char* const memory = c.workspace() + shard * a.shard_bytes;
    for (int64_t task = tasks * shard / a.shards; task < tasks * (shard + 1) / a.shards; ++task) {
      Head<T> head(c, a, task, memory);
      if constexpr (backward) head.backward(c.in<T>(kQuery), c.in<T>(3), c.out<T>(0), c.out<T>(1), c.out<T>(2));
      else head.forward(c.in<T>(kQuery), c.out<T>(0));
    }
  });
  return {};
}

// A product wants no more than the larger of its operands packed, in whole panels; so this holds for strips and lengths of any size.
Bytes product_bytes(const AttentionArgs& a) {
  constexpr int64_t kPanel = 64;
  const Bytes other = std::max(Bytes(std::max({a.width, a.values, a.strip})).aligned(kPanel), Bytes(kPanel));
  return other.is_overflow() ? other : (Bytes(a.keys).aligned(kPanel) + Bytes(kPanel)) * other.value() * int64_t{sizeof(float)};
}

Bytes shard_bytes(const AttentionArgs& a, bool backward, int64_t size) {
  const auto place = [&](int64_t rows, int64_t columns) { return (Bytes::of(rows, columns) * size).aligned(64); };
  Bytes bytes = place(a.keys, a.width) + place(a.keys, a.values) + place(a.strip, a.width) + place(a.strip, a.keys) +
                place(a.strip, a.values) + product_bytes(a);
  if (backward) {
    bytes = bytes + place(a.strip, a.keys) + place(std::max(a.keys, a.strip), std::max(a.width, a.values)) + place(a.keys, a.width) +
            place(a.keys, a.values);
  }
  return bytes;
}

constexpr int64_t kStripScores = 1 << 16, kStripLeast = 8, kStripMost = 64, kShardsMost = 16, kShardSteps = 1 << 18;

template <bool backward>
Status attention_prepare(PrepareContext& c) {
  auto& a = *c.args<AttentionArgs>();
  const Shape &q = c.input(kQuery).shape, &v = c.input(kValue).shape;
  a.batch = q.dim(0), a.queries = q.dim(1), a.heads = q.dim(2), a.width = q.dim(3);
  a.keys = v.dim(1), a.values = v.dim(3);
  a.scale = c.attr<double>("scale");
  a.causal = c.boolean("causal");
  constexpr int kFirst = backward ? 4 : 3;
  if (c.integer("masks") != 0) {
    a.mask = kFirst;
    const Shape& mask = c.input(kFirst).shape;
    const int64_t strides[] = {mask.dim(1) * mask.dim(2), mask.dim(2), 1};
    for (int d = 0; d < 3; ++d) a.mask_steps[d] = mask.dim(d) == 1 ? 0 : strides[d];
  }
  if (c.integer("counts") != 0) a.lengths = kFirst + static_cast<int>(c.integer("masks"));
  a.strip = std::clamp(kStripScores / std::max<int64_t>(a.keys, 1), kStripLeast, kStripMost);
  a.strip = std::min(a.strip, std::max<int64_t>(a.queries, 1));
  const double steps = static_cast<double>(q.count()) * static_cast<double>(a.keys);
  a.shards = std::clamp<int64_t>(static_cast<int64_t>(std::min(steps / kShardSteps, 1e6)), 1, kShardsMost);
  a.shards = std::min(a.shards, std::max<int64_t>(a.batch * a.heads, 1));
  const bool wide = c.input(kQuery).dtype == DType::f64;
  const Bytes bytes = shard_bytes(a, backward, wide ? 8 : 4);
  a.shard_bytes = bytes.value();
  c.workspace(bytes * a.shards);
  return c.sync(wide ? attention_run<double, backward> : attention_run<float, backward>);
}

OpDef with_settings(OpDef&& def) {
  return std::move(def)
      .input("mask: masks * bool")
      .input("lengths: counts * int32")
      .attr("causal: bool = false")
      .attr("scale: float = 1.0")
      .attr("masks: int >= 0 = 0")
      .attr("counts: int >= 0 = 0")
      .attr("T: {float, double}");
}

OpDef with_operands(const char* name) {
  return OpDef::make(name).input("query: T", {.rank = 4}).input("key: T", {.rank = 4}).input("value: T", {.rank = 4});
}

}  // namespace

void register_attention(OpTable& ops, KernelTable& kernels) {
  ops.add(
      with_settings(with_operands("DotProductAttention"))
          .output("output: T")
          .shape(attention_shape)
          .gradient(attention_grad)
          .doc("softmax(scale query key') value for each head of [batch, places, heads, width]; what mask, lengths or causal hide has no "
               "weight. Holds a few rows of the scores at a time."));
  ops.add(with_settings(with_operands("DotProductAttentionGrad").input("dy: T", {.rank = 4}))
              .output("query_grad: T")
              .output("key_grad: T")
              .output("value_grad: T")
              .shape(attention_grad_shape)
              .gradient(attention_grad_grad)
              .doc("The gradients of DotProductAttention."));
  kernels.add({.op = "DotProductAttention", .types = {{"T", DTypeSet{DType::f32, DType::f64}}}, .prepare = attention_prepare<false>});
  kernels.add({.op = "DotProductAttentionGrad", .types = {{"T", DTypeSet{DType::f32, DType::f64}}}, .prepare = attention_prepare<true>});
}

}  // namespace dtg::ops
