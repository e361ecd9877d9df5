// Accumulators: sums under a lock. What a take gets is moved out, so that dividing and copying happen outside.
#include "exec/accumulator.h"

#include <algorithm>
#include <cstring>

#include "device/cpu/update.h"

namespace dtg {
namespace {

// sum += gradient, elements [0, count).
void add_elements(DType dtype, void* sum, const void* gradient, int64_t count) {
  cpu::UpdateLoop loop;
  loop.rule = cpu::UpdateRule::add;
  loop.dtype = dtype;
  cpu::UpdateMemory memory;
  memory.old[0] = memory.data[0] = sum;
  memory.grad = gradient;
  cpu::update_elements(loop, memory, 0, count);
}

template <class T>
void divide_as(const void* sum, void* out, int64_t count, int64_t divisor) {
  const T by = static_cast<T>(static_cast<float>(divisor));
  for (int64_t i = 0; i < count; ++i) static_cast<T*>(out)[i] = static_cast<T>(static_cast<const T*>(sum)[i] / by);
}

// [first, rest of `of`].
Result<Shape> with_first(int64_t first, const Shape& of) {
  PartialShape shape = PartialShape::vector(first);
  for (int d = 1; d < of.rank(); ++d) DTG_TRY(shape.append(of.dim(d)));
  return shape.to_shape();
}

}  // namespace

void divide_elements(DType dtype, const void* sum, void* out, int64_t count, int64_t divisor) {
  switch (dtype) {
    case DType::f64: return divide_as<double>(sum, out, count, divisor);
    case DType::f16: return divide_as<Half>(sum, out, count, divisor);
    case DType::bf16: return divide_as<BFloat16>(sum, out, count, divisor);
    default: return divide_as<float>(sum, out, count, divisor);
  }
}

void Accumulator::set_global_step(int64_t step) {
  std::lock_guard hold(mutex_);
  global_step_ = step;
  if (spec_.reduction == Reduction::last && count_ > 0 && newest_ < step) drop();
}

bool Accumulator::close_step(int64_t step, bool wanted, Taken& taken) {
  std::lock_guard hold(mutex_);
  const bool there = count_ > 0 && newest_ == step;
  if (there && wanted) {
    hand_over(taken);
    count_ = 0;
  } else if (count_ > 0 && newest_ <= step) {
    drop();
  }
  global_step_ = step + 1;
  return there || !wanted;
}

void Accumulator::drop() {
  clear();
  count_ = 0;
}

void Accumulator::make_room(int64_t local_step) {
  if (spec_.reduction == Reduction::last && count_ > 0) drop();
  newest_ = local_step;
}

int64_t Accumulator::count() const {
  std::lock_guard hold(mutex_);
  return count_;
}

int64_t Accumulator::global_step() const {
  std::lock_guard hold(mutex_);
  return global_step_;
}

void Accumulator::added(PendingOpList& ended) {
  ++count_;
  serve(ended);
}

void Accumulator::enter(PendingOp& pending, PendingOpList& ended) {
  auto& take = static_cast<Take&>(pending);
  if (take.count <= 0) {
    return end(take, ended,
               invalid_argument("take from the %s \"%s\": num_required is %lld, at least 1 is needed", kind(), name().c_str(),
                                static_cast<long long>(take.count)));
  }
  wait(take, takers_);
  serve(ended);
}

void Accumulator::withdraw(PendingOp& pending, PendingOpList& ended) {
  end(pending, takers_, ended, {});
  serve(ended);
}

void Accumulator::serve(PendingOpList& ended) {
  while (!takers_.empty()) {
    auto& take = static_cast<Take&>(*takers_.first());
    if (count_ < take.count) return;
    take.count = count_;
    hand_over(take);
    count_ = 0;
    ++global_step_;
    end(take, takers_, ended, {});
  }
}

void Accumulator::destroy(const Status& reason) {
  PendingOpList ended;
  {
    std::lock_guard hold(mutex_);
    drop();
    while (!takers_.empty()) end(*takers_.first(), takers_, ended, reason);
  }
  settle(ended);
}

Status DenseAccumulator::apply(int64_t local_step, const Shape& shape, const void* gradient) {
  PendingOpList ended;
  {
    std::lock_guard hold(mutex_);
    if (stale(local_step)) return {};
    const bool fits = count_ > 0 ? sum_.shape() == shape : spec_.shape.admits(shape);
    if (!fits) {
      return invalid_argument("apply a gradient of shape %s to the accumulator \"%s\" of shape %s", shape.text().c_str(), name().c_str(),
                              (count_ > 0 ? PartialShape(sum_.shape()) : spec_.shape).text().c_str());
    }
    make_room(local_step);
    if (count_ > 0) {
      add_elements(spec_.dtype, sum_.data(), gradient, shape.count());
    } else {
      if (spare_.valid() && spare_.shape() == shape) {
        sum_ = std::exchange(spare_, Tensor());
      } else {
        DTG_ASSIGN(sum_, Tensor::allocate(spec_.dtype, shape));
      }
      if (sum_.bytes() > 0) std::memcpy(sum_.data(), gradient, static_cast<size_t>(sum_.bytes()));
    }
    added(ended);
  }
  settle(ended);
  return {};
}

void DenseAccumulator::hand_over(Taken& taken) { taken.sum = std::exchange(sum_, Tensor()); }

void DenseAccumulator::recycle(Tensor sum) {
  std::lock_guard hold(mutex_);
  spare_ = std::move(sum);
}

Status SparseAccumulator::check(std::span<const int64_t> indices, const Shape& values_shape, std::span<const int64_t> dense_shape) const {
  const auto refuse = [&](const std::string& why) {
    return invalid_argument("apply a gradient to the sparse accumulator \"%s\": %s", name().c_str(), why.c_str());
  };
  if (values_shape.rank() == 0 || values_shape.dim(0) != static_cast<int64_t>(indices.size())) {
    return refuse(format("values of shape %s for %zu indices", values_shape.text().c_str(), indices.size()));
  }
  PartialShape known = spec_.shape;
  if (!dense_shape.empty()) {
    DTG_ASSIGN(const PartialShape given, PartialShape::make(dense_shape));
    auto merged = PartialShape::merge(known, given, "the shape of the gradient and of the accumulator");
    if (!merged.ok()) return refuse(merged.status().message());
    known = merged.take();
  }
  const int rank = values_shape.rank();
  const bool first = count_ == 0;
  bool fits = (!known.has_rank() || known.rank() == rank) && (first || values_.shape().rank() == rank);
  for (int d = 1; fits && d < rank; ++d) {
    fits = (known.dim(d) < 0 || known.dim(d) == values_shape.dim(d)) && (first || values_.shape().dim(d) == values_shape.dim(d));
  }
  if (!fits) {
    return refuse(format("values of shape %s do not fit rows of %s", values_shape.text().c_str(),
                         (known.has_rank() || first ? known : PartialShape(values_.shape())).text().c_str()));
  }
  const int64_t limit = known.dim(0) < 0 ? INT64_MAX : known.dim(0);
  for (const int64_t index : indices) {
    if (index >= 0 && index < limit) continue;
    return refuse(format("index %lld is not inside %s", static_cast<long long>(index), known.text().c_str()));
  }
  return {};
}

// Room for all rows of the gradient, should they all be new.
Status SparseAccumulator::reserve(const Shape& values_shape) {
  const int64_t used = static_cast<int64_t>(rows_.size()), need = used + values_shape.dim(0);
  const bool same_rows = values_.valid() && with_first(0, values_.shape()).take() == with_first(0, values_shape).take();
  if (same_rows && values_.shape().dim(0) >= need) return {};
  DTG_ASSIGN(const Shape shape, with_first(std::max(need, used * 2), values_shape));
  DTG_ASSIGN(Tensor larger, Tensor::allocate(spec_.dtype, shape));
  if (used > 0 && values_.bytes() > 0) {
    std::memcpy(larger.data(), values_.data(), static_cast<size_t>(values_.bytes() / values_.shape().dim(0) * used));
  }
  values_ = std::move(larger);
  return {};
}

Status SparseAccumulator::apply(int64_t local_step, std::span<const int64_t> indices, const Shape& values_shape, const void* values,
                                std::span<const int64_t> dense_shape) {
  PendingOpList ended;
  {
    std::lock_guard hold(mutex_);
    if (stale(local_step)) return {};
    DTG_TRY(check(indices, values_shape, dense_shape));
    make_room(local_step);
    DTG_TRY(reserve(values_shape));
    const int64_t width = values_shape.count(1, values_shape.rank()), bytes = width * dtype_size(spec_.dtype);
    const char* from = static_cast<const char*>(values);
    for (const int64_t index : indices) {
      const auto [found, fresh] = rows_.try_emplace(index, Row{static_cast<int64_t>(rows_.size())});
      Row& row = found->second;
      char* const to = values_.as<char>() + row.place * bytes;
      if (!fresh) {
        add_elements(spec_.dtype, to, from, width);
      } else if (bytes > 0) {
        std::memcpy(to, from, static_cast<size_t>(bytes));
      }
      if (row.last != count_) ++row.touched;
      row.last = count_;
      from += bytes;
    }
    added(ended);
  }
  settle(ended);
  return {};
}

void SparseAccumulator::hand_over(Taken& taken) {
  taken.rows.reserve(rows_.size());
  for (const auto& [index, row] : rows_) taken.rows.push_back({index, row.place, row.touched});
  std::sort(taken.rows.begin(), taken.rows.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
  taken.sum = std::exchange(values_, Tensor());
  rows_.clear();
}

void SparseAccumulator::clear() {
  rows_.clear();
  values_ = Tensor();
}

Result<Tensor> SparseAccumulator::values_of(const Taken& taken) const {
  DTG_ASSIGN(const Shape shape, with_first(static_cast<int64_t>(taken.rows.size()), taken.sum.shape()));
  DTG_ASSIGN(Tensor values, Tensor::allocate(spec_.dtype, shape));
  const int64_t width = shape.count(1, shape.rank()), bytes = width * dtype_size(spec_.dtype);
  char* to = values.as<char>();
  for (const Taken::Row& row : taken.rows) {
    divide_elements(spec_.dtype, taken.sum.as<char>() + row.place * bytes, to, width, spec_.reduction == Reduction::mean ? row.count : 1);
    to += bytes;
  }
  return values;
}

std::vector<int64_t> SparseAccumulator::dense_shape_of(const Taken& taken) const {
  std::vector<int64_t> dims(taken.sum.shape().dims().begin(), taken.sum.shape().dims().end());
  if (!dims.empty()) dims[0] = spec_.shape.dim(0);
  return dims;
}

}  // namespace dtg
