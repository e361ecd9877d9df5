// Queue: two lists of waiting operations over one list of elements. Only the first of each list is ever tried, and
// both are tried until neither moves, which is what makes the order of results the order of arrival.
#include "exec/queue.h"

#include <algorithm>
#include <cstring>

#include "tensor/text.h"

namespace dtg {

Result<Tuple> tuple_row(const Tuple& batch, int64_t row) {
  Tuple tuple;
  tuple.reserve(batch.size());
  for (const Tensor& component : batch) {
    DTG_ASSIGN(const Shape shape, Shape::make(component.shape().dims().subspan(1)));
    DTG_ASSIGN(Tensor element, rows_of(component, row * shape.count(), shape));
    tuple.push_back(std::move(element));
  }
  return tuple;
}

namespace {

// The smallest shape that holds component k of all rows, behind the number of rows.
Result<Shape> stacked_shape(size_t k, std::span<const PartialShape> shapes, const std::deque<Tuple>& rows) {
  PartialShape whole = PartialShape::vector(static_cast<int64_t>(rows.size()));
  const int rank = rows.empty() ? shapes[k].rank() : rows.front()[k].shape().rank();
  for (int d = 0; d < rank; ++d) {
    int64_t dim = rows.empty() ? std::max<int64_t>(0, shapes[k].dim(d)) : 0;
    for (const Tuple& row : rows) dim = std::max(dim, row[k].shape().dim(d));
    DTG_TRY(whole.append(dim));
  }
  return whole.to_shape();
}

// One element into its place of the batch; dims are those of a place.
void place_element(const Tensor& element, std::span<const int64_t> dims, char* to) {
  const Shape& shape = element.shape();
  const int last = shape.rank() - 1;
  const int64_t size = cell_bytes(element.dtype()), run = last < 0 ? size : shape.dim(last) * size, bytes = shape.count() * size;
  for (int64_t row = 0; row * run < bytes; ++row) {
    int64_t offset = 0, rest = row, stride = last < 0 ? 0 : dims[static_cast<size_t>(last)];
    for (int d = last - 1; d >= 0; --d) {
      offset += rest % shape.dim(d) * stride;
      rest /= shape.dim(d);
      stride *= dims[static_cast<size_t>(d)];
    }
    std::memcpy(to + offset * size, element.as<char>() + row * run, static_cast<size_t>(run));
  }
}

// Component k of all rows, of strings; what smaller elements leave open is empty.
Result<Tensor> stack_texts(size_t k, const Shape& shape, const std::deque<Tuple>& rows) {
  std::vector<Text> cells(static_cast<size_t>(shape.count()));
  const size_t width = rows.empty() ? 0 : cells.size() / rows.size();
  for (size_t i = 0; i < rows.size(); ++i)
    place_element(rows[i][k], shape.dims().subspan(1), reinterpret_cast<char*>(cells.data() + i * width));
  return make_texts(shape, cells);
}

}  // namespace

Result<Tuple> stack_tuples(std::span<const DType> dtypes, std::span<const PartialShape> shapes, const std::deque<Tuple>& rows) {
  Tuple batch;
  for (size_t k = 0; k < dtypes.size(); ++k) {
    DTG_ASSIGN(const Shape shape, stacked_shape(k, shapes, rows));
    if (dtypes[k] == DType::string) {
      DTG_ASSIGN(Tensor texts, stack_texts(k, shape, rows));
      batch.push_back(std::move(texts));
      continue;
    }
    DTG_ASSIGN(Tensor tensor, Tensor::allocate(dtypes[k], shape));
    const auto dims = shape.dims().subspan(1);
    const int64_t bytes = rows.empty() ? 0 : tensor.bytes() / static_cast<int64_t>(rows.size());
    char* to = tensor.as<char>();
    for (const Tuple& row : rows) {
      if (row[k].bytes() < bytes) std::memset(to, 0, static_cast<size_t>(bytes));
      place_element(row[k], dims, to);
      to += bytes;
    }
    batch.push_back(std::move(tensor));
  }
  return batch;
}

int64_t Queue::size() const {
  std::lock_guard hold(mutex_);
  return static_cast<int64_t>(elements_.size());
}

bool Queue::closed() const {
  std::lock_guard hold(mutex_);
  return closed_;
}

Status Queue::check_tuple(std::span<const DType> dtypes, std::span<const Shape> shapes, bool many) const {
  if (dtypes.size() != spec_.dtypes.size()) {
    return invalid_argument("enqueue to \"%s\": its tuples have %zu components, %zu were given", name().c_str(), spec_.dtypes.size(),
                            dtypes.size());
  }
  for (size_t k = 0; k < dtypes.size(); ++k) {
    if (dtypes[k] != spec_.dtypes[k]) {
      return invalid_argument("enqueue to \"%s\": component %zu is %s, not %s", name().c_str(), k, dtype_name(spec_.dtypes[k]),
                              dtype_name(dtypes[k]));
    }
    if (many && (shapes[k].rank() == 0 || shapes[k].dim(0) != shapes[0].dim(0))) {
      return invalid_argument("enqueue many to \"%s\": component %zu of shape %s; all need the same first dimension", name().c_str(), k,
                              shapes[k].text().c_str());
    }
    if (spec_.shapes.empty()) continue;
    DTG_ASSIGN(const Shape element, Shape::make(shapes[k].dims().subspan(many ? 1 : 0)));
    if (!spec_.shapes[k].admits(element)) {
      return invalid_argument("enqueue to \"%s\": component %zu has elements of shape %s, not %s", name().c_str(), k,
                              spec_.shapes[k].text().c_str(), element.text().c_str());
    }
  }
  return {};
}

Status Queue::check_count(int64_t count) const {
  if (count < 0) {
    return invalid_argument("dequeue %lld elements from \"%s\": a count is not negative", static_cast<long long>(count), name().c_str());
  }
  bool stackable = !spec_.shapes.empty();
  for (const PartialShape& shape : spec_.shapes) stackable &= spec_.padding ? shape.has_rank() : shape.complete();
  if (stackable) return {};
  return invalid_argument("dequeue many from \"%s\": only a queue that was made with complete shapes can stack elements", name().c_str());
}

void Queue::enter(PendingOp& pending, PendingOpList& ended) {
  auto& op = static_cast<Operation&>(pending);
  switch (op.verb_) {
    case Verb::close_and_cancel:
      closed_ = true;
      cancel_all(putters_, cancelled("the queue \"%s\" was closed and what waited cancelled", name().c_str()), ended);
      end(op, ended, {});
      break;
    case Verb::enqueue_many:
      if (op.tuple.empty() || op.tuple[0].shape().dim(0) == 0) return end(op, ended, {});
      [[fallthrough]];
    case Verb::enqueue:
    case Verb::close: wait(op, putters_); break;
    case Verb::dequeue_many:
    case Verb::dequeue_up_to:
      if (op.count == 0) {
        auto none = stack_tuples(spec_.dtypes, spec_.shapes, {});
        if (none.ok()) op.tuple = none.take();
        return end(op, ended, none.status());
      }
      [[fallthrough]];
    case Verb::dequeue: wait(op, takers_); break;
  }
  serve(ended);
}

void Queue::withdraw(PendingOp& pending, PendingOpList& ended) {
  auto& op = static_cast<Operation&>(pending);
  op.withdrawn();
  give_back(op);
  end(op, op.verb_ <= Verb::enqueue_many || op.verb_ == Verb::close ? putters_ : takers_, ended, {});
  serve(ended);
}

void Queue::serve(PendingOpList& ended) {
  for (bool moved = true; moved;) {
    moved = serve_list(putters_, ended);
    moved |= serve_list(takers_, ended);
  }
}

// Ends operations from the front until one has to wait. True when anything moved.
bool Queue::serve_list(PendingOpList& list, PendingOpList& ended) {
  bool moved = false;
  while (!list.empty()) {
    auto& op = static_cast<Operation&>(*list.first());
    Status status;
    const Progress progress = attempt_one(op, &status);
    moved |= progress != Progress::none;
    if (progress != Progress::ended) break;
    end(op, list, ended, std::move(status));
  }
  return moved;
}

Queue::Progress Queue::attempt_one(Operation& op, Status* status) {
  switch (op.verb_) {
    case Verb::enqueue:
    case Verb::enqueue_many: return put(op, status);
    case Verb::dequeue: return take(op, status);
    case Verb::dequeue_many:
    case Verb::dequeue_up_to: return take_many(op, status);
    default: return close(status);
  }
}

Queue::Progress Queue::close(Status* status) {
  if (closed_) *status = cancelled("close the queue \"%s\": it is closed already", name().c_str());
  closed_ = true;
  return Progress::ended;
}

Queue::Progress Queue::put(Operation& op, Status* status) {
  if (closed_) {
    *status = cancelled("enqueue to \"%s\": the queue is closed", name().c_str());
    return Progress::ended;
  }
  const bool many = op.verb_ == Verb::enqueue_many;
  const int64_t count = many ? op.tuple[0].shape().dim(0) : 1;
  const int64_t before = op.moved_;
  while (op.moved_ < count && !full()) {
    if (many) {
      auto row = tuple_row(op.tuple, op.moved_);
      if (!row.ok()) {
        *status = row.status();
        return Progress::ended;
      }
      add(row.take());
    } else {
      add(std::move(op.tuple));
    }
    ++op.moved_;
  }
  if (op.moved_ == count) return Progress::ended;
  return op.moved_ > before ? Progress::some : Progress::none;
}

Status Queue::exhausted(int64_t requested) const {
  return out_of_range("the queue \"%s\" is closed and has too few elements (requested %lld, there are %zu)", name().c_str(),
                      static_cast<long long>(requested), elements_.size());
}

void Queue::add(Tuple tuple) {
  if (spec_.order != Order::priority) return elements_.push_back(std::move(tuple));
  const auto later = [](const Tuple& a, const Tuple& b) { return *a[0].as<int64_t>() < *b[0].as<int64_t>(); };
  const auto at = std::upper_bound(elements_.begin(), elements_.end(), tuple, later);
  elements_.insert(at, std::move(tuple));
}

Tuple Queue::next() {
  if (spec_.order == Order::shuffled) {
    const cpu::Philox::Block drawn = draw_.next();
    const uint64_t number = uint64_t{drawn[1]} << 32 | drawn[0];
    std::swap(elements_.front(), elements_[number % elements_.size()]);
  }
  Tuple tuple = std::move(elements_.front());
  elements_.pop_front();
  return tuple;
}

int64_t Queue::available() const { return static_cast<int64_t>(elements_.size()) - (closed_ ? 0 : spec_.reserve); }

Queue::Progress Queue::take(Operation& op, Status* status) {
  if (available() <= 0) {
    if (!closed_) return Progress::none;
    *status = exhausted(1);
    return Progress::ended;
  }
  op.tuple = next();
  return Progress::ended;
}

Queue::Progress Queue::take_many(Operation& op, Status* status) {
  int64_t missing = op.count - op.moved_;
  if (closed_ && static_cast<int64_t>(elements_.size()) < missing) {
    // What was collected goes back: to those behind, or, should fewer do, to be taken as the rest.
    give_back(op);
    // (TensorFlow's queue by priority loses what is left here; this one hands it out like the others.)
    const bool small = op.verb_ == Verb::dequeue_up_to;
    if (!small || elements_.empty()) {
      // Elements that enqueues still bring could be part of a small batch.
      if (small && !putters_.empty()) return Progress::some;
      *status = exhausted(op.count);
      return Progress::ended;
    }
    op.count = missing = static_cast<int64_t>(elements_.size());
  }
  // A batch by priority is sorted as a whole, so it is taken as a whole.
  if (spec_.order == Order::priority && available() < missing) return Progress::none;
  Progress progress = Progress::none;
  for (; missing > 0 && available() > 0; --missing) {
    op.taken_.push_back(next());
    ++op.moved_;
    progress = Progress::some;
  }
  if (missing > 0) return progress;
  auto batch = stack_tuples(spec_.dtypes, spec_.shapes, op.taken_);
  *status = batch.status();
  if (batch.ok()) op.tuple = batch.take();
  op.taken_.clear();
  return Progress::ended;
}

// To the front, in the order in which they came out. A queue that is full by now is over-full for a moment.
void Queue::give_back(Operation& op) {
  while (!op.taken_.empty()) {
    elements_.push_front(std::move(op.taken_.back()));
    op.taken_.pop_back();
  }
  if (op.verb_ == Verb::dequeue_many || op.verb_ == Verb::dequeue_up_to) op.moved_ = 0;
}

void Queue::cancel_all(PendingOpList& list, const Status& cause, PendingOpList& ended) {
  while (!list.empty()) end(*list.first(), list, ended, cause);
}

void Queue::destroy(const Status& reason) {
  PendingOpList ended;
  {
    std::lock_guard hold(mutex_);
    closed_ = true;
    elements_.clear();
    cancel_all(putters_, reason, ended);
    cancel_all(takers_, reason, ended);
  }
  settle(ended);
}

}  // namespace dtg
