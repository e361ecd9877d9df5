// Variable: the bookkeeping of versions, pins and turns. Everything between lock() and unlock() is a handful of
// assignments; memory is allocated and freed, and waiters are called, outside of it.
#include "exec/variable.h"

#include <cstring>
#include <new>

#include "base/size.h"

namespace dtg {

Variable::Variable(std::string name, DType dtype, PartialShape shape, Placement placement, DeviceMemory* memory)
    : Resource(std::move(name)),
      dtype_(dtype),
      shape_(std::move(shape)),
      placement_(placement),
      memory_(Ref<DeviceMemory>::share(memory)) {}

Variable::~Variable() {
  delete current_;
  delete next_;
  for (Version* version : spare_) delete version;
}

void Variable::lock() const { word_.lock(); }

void Variable::unlock() const { word_.unlock(); }

void Variable::destroy(const Status&) {
  lock();
  Version* unused = nullptr;
  if (writing_) {
    // The writer's memory is not taken from under it. Those who wait for a turn find no value then.
    doomed_ = true;
  } else if (current_) {
    if (current_->pins == 0) unused = current_;
    current_ = nullptr;
  }
  Version* const kept[2] = {spare_[0], spare_[1]};
  spare_[0] = spare_[1] = nullptr;
  unlock();
  delete unused;
  for (Version* version : kept) delete version;
}

PartialShape Variable::declared_shape() const {
  lock();
  const PartialShape shape = shape_;
  unlock();
  return shape;
}

Status Variable::attach(DType dtype, const PartialShape& shape, bool narrow) {
  lock();
  auto merged = PartialShape::merge(shape_, shape, "");
  bool fits = dtype == dtype_ && merged.ok() && (!current_ || merged.value().admits(current_->tensor.shape()));
  fits = fits && (narrow || merged.value() == shape_);
  if (fits) shape_ = merged.value();
  const PartialShape here = current_ ? PartialShape(current_->tensor.shape()) : shape_;
  unlock();
  if (fits) return {};
  return invalid_argument(
      "attach to the variable \"%s\": it is %s%s there and %s%s here; all tasks of a job build the same "
      "variables in the same order. Where these are to be two, give one another name, shared_name or container, or destroy "
      "the old one",
      name().c_str(), dtype_name(dtype_), here.text().c_str(), dtype_name(dtype), shape.text().c_str());
}

bool Variable::initialized() const {
  lock();
  const bool has_value = current_ && !doomed_;
  unlock();
  return has_value;
}

int64_t Variable::bytes() const {
  lock();
  const int64_t bytes = current_ && !doomed_ ? current_->tensor.bytes() : 0;
  unlock();
  return bytes;
}

void Variable::queue(Turn* turn, bool writer) {
  turn->writer = writer;
  turn->next = nullptr;
  (last_ ? last_->next : first_) = turn;
  last_ = turn;
}

Variable::Pinned Variable::pin(Version** version, Turn* turn) {
  lock();
  Pinned outcome = Pinned::yes;
  if (in_place_) {
    if (turn) queue(turn, false);
    outcome = Pinned::wait;
  } else if (!current_ || doomed_) {
    outcome = Pinned::uninitialized;
  } else {
    ++current_->pins;
    *version = current_;
  }
  unlock();
  return outcome;
}

void Variable::pin_again(Version* version) {
  lock();
  ++version->pins;
  unlock();
}

void Variable::unpin(Version* version) {
  Version* unused = nullptr;
  lock();
  if (--version->pins == 0 && version != current_) unused = retire(version);
  unlock();
  delete unused;
}

// Keeps a version nobody needs for the next writer, or gives it back to be deleted once unlocked.
Variable::Version* Variable::retire(Version* version) {
  for (Version*& place : spare_) {
    if (!place) {
      place = version;
      return nullptr;
    }
  }
  // Memory of a shape that is out of use would stay for ever otherwise.
  for (Version*& place : spare_) {
    if (place->tensor.valid() && version->tensor.valid() && !(place->tensor.shape() == version->tensor.shape())) {
      return std::exchange(place, version);
    }
  }
  return version;
}

// With a shape: a version whose memory fits it and has no other holder. Without: a shell, or any version.
Variable::Version* Variable::take_spare(const Shape* shape) {
  for (Version*& place : spare_) {
    if (!place) continue;
    const Tensor& tensor = place->tensor;
    const bool fits = shape ? tensor.valid() && tensor.shape() == *shape && tensor.buffer()->ref_count() == 1 : !tensor.valid();
    if (fits) return std::exchange(place, nullptr);
  }
  return nullptr;
}

// Locked: the right to write is the caller's, or its turn is queued.
bool Variable::enter(Turn* turn) {
  if (!writing_) {
    writing_ = true;
    return true;
  }
  if (turn && granted_ == turn) {
    granted_ = nullptr;
    return true;
  }
  if (turn) queue(turn, true);
  return false;
}

Result<Tensor> Variable::fresh_tensor(const Shape& shape) const {
  if (!memory_) return Tensor::allocate(dtype_, shape, placement_);
  const Bytes bytes = Bytes::of(shape.count(), dtype_size(dtype_));
  if (bytes.is_overflow()) return resource_exhausted("a value of %s is larger than any memory", name().c_str());
  DTG_ASSIGN(Ref<Buffer> buffer, memory_->take_buffer(bytes.value(), format("the variable \"%s\"", name().c_str()).c_str()));
  return Tensor::over(std::move(buffer), dtype_, shape);
}

// Null without memory: whoever has the right to write gives it back then.
Variable::Version* Variable::fresh_version(const Shape& shape) {
  try {
    auto fresh = fresh_tensor(shape);
    return fresh.ok() ? new Version{fresh.take()} : nullptr;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

Variable::Writing Variable::begin_update(Version** version, Turn* turn, bool copy) {
  lock();
  if (!enter(turn)) {
    unlock();
    return Writing::wait;
  }
  if (!current_ || doomed_) {
    finish_write(false, nullptr);
    return Writing::uninitialized;
  }
  const Tensor& present = current_->tensor;
  if (current_->pins == 0 && present.buffer()->ref_count() == 1) {
    in_place_ = true;
    *version = current_;
    unlock();
    return Writing::yes;
  }
  next_ = take_spare(&present.shape());
  unlock();
  // The right to write keeps current_ and next_ as they are from here on.
  if (!next_) next_ = fresh_version(present.shape());
  if (!next_) {
    lock();
    finish_write(false, nullptr);
    return Writing::no_memory;
  }
  if (copy && present.bytes() > 0) {
    std::memcpy(next_->tensor.data(), present.data(), static_cast<size_t>(present.bytes()));
  }
  *version = next_;
  return Writing::yes;
}

Variable::Writing Variable::begin_assign(Turn* turn, bool replace) {
  lock();
  if (!enter(turn)) {
    unlock();
    return Writing::wait;
  }
  // Nobody else can give it a value as long as the right to write is taken, so what is found here holds when the value is set.
  if (!replace && current_ && !doomed_) {
    finish_write(false, nullptr);
    return Writing::has_value;
  }
  unlock();
  return Writing::yes;
}

void Variable::end_update(Version*, bool changed) {
  lock();
  Version* unused = nullptr;
  if (!in_place_ && changed) std::swap(current_, next_);
  if (next_ && next_->pins == 0) unused = retire(next_);
  next_ = nullptr;
  in_place_ = false;
  finish_write(changed, unused);
}

Status Variable::end_assign(Tensor fresh) {
  lock();
  Version* shell = take_spare(nullptr);
  unlock();
  if (!shell) shell = new (std::nothrow) Version;
  if (!shell) {
    cancel_assign();
    return resource_exhausted("assign to the variable \"%s\": out of memory", name().c_str());
  }
  const Shape shape = fresh.shape();
  const DType dtype = fresh.dtype();
  shell->tensor = std::move(fresh);
  lock();
  const bool fits = dtype == dtype_ && shape_.admits(shape);
  Version* unused = shell;
  if (fits) {
    Version* const before = std::exchange(current_, shell);
    unused = before && before->pins == 0 ? retire(before) : nullptr;
  }
  finish_write(fits, unused);
  if (fits) return {};
  return invalid_argument("assign %s%s to the variable \"%s\" of %s%s", dtype_name(dtype), shape.text().c_str(), name().c_str(),
                          dtype_name(dtype_), declared_shape().text().c_str());
}

void Variable::cancel_assign() {
  lock();
  finish_write(false, nullptr);
}

void Variable::abandon(Turn* turn) {
  lock();
  if (granted_ != turn) {
    unlock();
    return;
  }
  granted_ = nullptr;
  finish_write(false, nullptr);
}

// Called locked; unlocks. Readers at the head of the queue are called first, so that they can pin before the next
// writer works in place; then the first writer, for whom the right to write stays taken.
void Variable::finish_write(bool changed, Version* unused) {
  Version* doomed = nullptr;
  if (changed) version_.fetch_add(1, std::memory_order_acq_rel);
  if (doomed_) {
    if (current_ && current_->pins == 0) doomed = current_;
    current_ = nullptr;
    doomed_ = false;
  }
  writing_ = false;
  Turn* called = first_;
  Turn* last = nullptr;
  while (first_ && !writing_) {
    writing_ = first_->writer;
    last = first_;
    first_ = first_->next;
  }
  if (writing_) granted_ = last;
  if (!first_) last_ = nullptr;
  if (last) last->next = nullptr;
  unlock();
  delete unused;
  delete doomed;
  while (called && last) {
    Turn* const next = called->next;
    called->ready(called);
    called = next;
  }
}

Result<Tensor> Variable::spare(const Shape& shape) {
  lock();
  Version* const fitting = take_spare(&shape);
  unlock();
  if (!fitting) return fresh_tensor(shape);
  Tensor tensor = std::exchange(fitting->tensor, Tensor());
  lock();
  Version* const unused = retire(fitting);  // a shell now, for end_assign
  unlock();
  delete unused;
  return tensor;
}

Status no_value(const Variable& variable, const char* attempted) {
  return failed_precondition("%s the variable \"%s\" of type %s: it has no value; run its initializer (or restore a "
                             "checkpoint) before; an initializer is of the variables that were there when it was taken",
                             attempted, variable.name().c_str(), dtype_name(variable.dtype()));
}

}  // namespace dtg
