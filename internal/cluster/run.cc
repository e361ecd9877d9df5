// From the lease to the return of the frame.
#include "cluster/run.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/condition.h"
#include "tensor/text.h"

namespace dtg {
namespace {

// A caller who found all frames of the plan taken. Lives on its stack.
class FrameWait final : public Plan::FrameWaiter {
 public:
  bool granted(Frame& frame) override {
    granted_.change([&] { frame_ = &frame; });
    return true;
  }
  // The frame, or null when the deadline passed or the caller cancelled.
  Frame* until(const Clock& clock, Deadline deadline, Cancellation* cancellation) {
    return wait_for(granted_, clock, deadline, cancellation, [this] { return frame_ != nullptr; }) ? frame_ : nullptr;
  }

 private:
  Condition granted_;
  Frame* frame_ = nullptr;
};

// What fails for lack of memory is the end of the run, not of the process; frames and lists of runs stay whole.
template <class Fn>
Status contained(Fn&& fn) {
  try {
    return fn();
  } catch (const std::bad_alloc&) {
    return resource_exhausted("run: out of memory");
  }
}

// Memory from `begin` up to `end`.
struct Range {
  uintptr_t begin = UINTPTR_MAX;
  uintptr_t end = 0;
  explicit Range(const Tensor& tensor)
      : begin(reinterpret_cast<uintptr_t>(tensor.data())), end(begin + static_cast<uintptr_t>(tensor.bytes())) {}
  Range() = default;
  bool meets(const Range& other) const { return std::max(begin, other.begin) < std::min(end, other.end); }
  void include(const Range& other) {
    begin = std::min(begin, other.begin);
    end = std::max(end, other.end);
  }
};

}  // namespace

Status Run::execute() {
  if (caller_ == Caller::waits) return wait();
  start();
  return {};
}

// Everything on the way of a call of a quarter of a microsecond stands in one function.
[[gnu::flatten]] Status Run::wait() {
  DTG_ASSIGN(Frame * frame, plan_.lease(nullptr));
  if (!frame) {
    DTG_ASSIGN(frame, wait_for_frame());
  }
  Status status = contained([&] {
    DTG_TRY(begin(*frame));
    DTG_TRY(frame->run(edges_ ? &edges_->loop() : nullptr));
    return collect();
  });
  let_go();
  if (!status.ok()) frame->step().fail(status);
  plan_.give_back(*frame);
  return status;
}

Result<Frame*> Run::wait_for_frame() {
  FrameWait wait;
  DTG_ASSIGN(Frame * frame, plan_.lease(&wait));
  if (frame) return frame;
  if (Frame* granted = wait.until(clock_, deadline_, cancellation_)) return granted;
  if (!plan_.withdraw(&wait)) return wait.until(clock_, Deadline::never(), nullptr);
  if (cancellation_ && cancellation_->is_cancelled()) return cancellation_->status();
  return deadline_exceeded("run: other runs of the same plan took all its frames until the deadline passed").in_phase("run");
}

void Run::start() {
  Frame* frame = nullptr;
  Status status = contained([&]() -> Status {
    DTG_ASSIGN(frame, plan_.lease(this));
    return {};
  });
  if (!status.ok()) {
    leave();
    return ended(std::move(status));
  }
  if (!frame) return;
  const Ref<Plan> plan = Ref<Plan>::share(&plan_);  // this may go
  if (!launch(*frame, begins_)) plan->give_back(*frame);
}

bool Run::launch(Frame& frame, Begins begins) {
  // A frame that has started may be through, and this gone, before start() returns.
  Status status = contained([&]() -> Status {
    DTG_TRY(begin(frame));
    if (begins == Begins::here) frame.run_here(this, executor_);
    else if (begins == Begins::receiving) frame.receive_here(this, executor_);
    else frame.start(this, executor_);
    return {};
  });
  if (status.ok()) return true;
  let_go();
  frame.step().fail(status);
  ended(std::move(status));
  return false;
}

void Run::finished(Frame& frame) {
  Status status = frame.outcome();
  if (status.ok()) status = contained([this] { return collect(); });
  let_go();
  plan_.give_back(frame);
  ended(std::move(status));
}

void Run::stopped_waiting() {
  leave();
  ended(stop_cause());
}

Status Run::begin(Frame& frame) {
  const Status memory = frame.begin(sequence_, deadline_);
  DTG_TRY(publish(frame));
  DTG_TRY(memory);
  DTG_TRY(bind());
  if (cancellation_ && !cancellation_->add(*this)) return cancellation_->status();
  return begun();
}

// From here on stop() finds the frame.
Status Run::publish(Frame& frame) {
  if (caller_ == Caller::waits) {
    frame_ = &frame;
    return {};
  }
  const std::lock_guard lock(lock_);
  frame_ = &frame;
  return stop_cause_;
}

void Run::leave() {
  left();
  if (edges_) edges_->end();
}

// After this nobody reaches the frame through the run.
void Run::let_go() {
  if (cancellation_) cancellation_->remove(*this);
  leave();
  staged_.clear();
  if (caller_ == Caller::waits) {
    frame_ = nullptr;
  } else {
    {
      const std::lock_guard lock(lock_);
      frame_ = nullptr;
    }
    // Nobody aborts into a frame that serves another run.
    for (int inside = stopping_.load(); inside != 0; inside = stopping_.load()) stopping_.wait(inside);
  }
}

Status Run::stop_cause() {
  const std::lock_guard lock(lock_);
  return stop_cause_;
}

void Run::stop(const Status& cause) {
  Frame* frame = nullptr;
  {
    const std::lock_guard lock(lock_);
    if (!stop_cause_.ok()) return;
    stop_cause_ = cause;
    frame = frame_;
    if (frame) stopping_.fetch_add(1);
  }
  if (frame) {
    frame->step().abort(cause);
    stopping_.fetch_sub(1);
    stopping_.notify_all();
  } else if (plan_.withdraw(this)) {
    try {
      plan_.pool().submit(&stopped_task_);
    } catch (const std::bad_alloc&) {  // there is no thread, and none can be made
      stopped_waiting();
    }
  }
}

Status Run::bind() {
  for (size_t i = 0; i < feeds_.size(); ++i) frame_->bind(plan_.feeds()[i].slot, feeds_[i]->data());
  bool given = false;
  for (size_t i = 0; i < fetched_.size(); ++i) {
    const Fetch& fetch = plan_.fetches()[i];
    Tensor& tensor = fetched_[i];
    if (tensor.valid()) {
      if (tensor.dtype() == DType::string) return given_strings(i);
      given = given || fetched_.size() > 1 || meets_a_feed(tensor);
      if (tensor.dtype() != fetch.dtype || (!fetch.dynamic && !(tensor.shape() == fetch.shape))) {
        return invalid_argument("fetch \"%s\" into a given tensor: the value is %s%s, the tensor is %s", fetch_name(i).c_str(),
                                dtype_name(fetch.dtype), fetch.dynamic ? "" : fetch.shape.text().c_str(), tensor.text().c_str());
      }
    } else if (!fetch.dynamic && fetch.dtype != DType::string) {
      DTG_ASSIGN(tensor, plan_.fetch_tensor(i));
    }
    if (fetch.direct) frame_->bind(fetch.slot, tensor.data());
  }
  return given ? keep_apart() : Status();
}

Status Run::given_strings(size_t fetch) const {
  return invalid_argument("fetch \"%s\" into a given tensor: a tensor of strings never changes; ask for a new one",
                          fetch_name(fetch).c_str());
}

bool Run::meets_a_feed(const Tensor& tensor) const {
  const Range range(tensor);
  return std::ranges::any_of(feeds_, [&](const Tensor* feed) { return range.meets(Range(*feed)); });
}

// A kernel writes a fetched value while others still read what was fed. Where both are the same memory, the value goes into a
// buffer of our own first. Two values for one memory are a mistake.
Status Run::keep_apart() {
  Range fed, written;
  for (const Tensor* feed : feeds_) fed.include(Range(*feed));
  for (size_t i = 0; i < fetched_.size(); ++i) {
    if (!fetched_[i].valid()) continue;
    const Range range(fetched_[i]);
    for (size_t k = 0; range.meets(written) && k < i; ++k) {
      if (!fetched_[k].valid() || !range.meets(Range(fetched_[k]))) continue;
      return invalid_argument("fetch \"%s\" and \"%s\" into given tensors: they share memory; each value needs its own",
                              fetch_name(k).c_str(), fetch_name(i).c_str());
    }
    written.include(range);
    if (!range.meets(fed) || !meets_a_feed(fetched_[i])) continue;
    Staged& staged = staged_.emplace_back(Staged{i, {}});
    const Fetch& fetch = plan_.fetches()[i];
    if (!fetch.direct) continue;
    DTG_ASSIGN(staged.tensor, plan_.fetch_tensor(i));
    frame_->bind(fetch.slot, staged.tensor.data());
  }
  return {};
}

Run::Staged* Run::staged(size_t fetch) {
  const auto at = std::ranges::find(staged_, fetch, &Staged::fetch);
  return at == staged_.end() ? nullptr : &*at;
}

// What the kernels did not write where it belongs. Memory that was fed is overwritten last of all.
Status Run::collect() {
  for (size_t i = 0; i < fetched_.size(); ++i) {
    if (!plan_.fetches()[i].direct) DTG_TRY(collect_one(i));
  }
  for (const Staged& staged : staged_)
    std::memcpy(fetched_[staged.fetch].data(), staged.tensor.data(), static_cast<size_t>(staged.tensor.bytes()));
  return {};
}

Status Run::collect_one(size_t i) {
  const Fetch& fetch = plan_.fetches()[i];
  const Shape& shape = fetch.dynamic ? frame_->shape(fetch.slot) : fetch.shape;
  Tensor& tensor = fetched_[i];
  if (fetch.dtype == DType::string) {
    DTG_ASSIGN(tensor, copy_value(fetch.dtype, shape, frame_->data(fetch.slot)));
    return {};
  }
  if (!tensor.valid()) {
    DTG_ASSIGN(tensor, Tensor::allocate(fetch.dtype, shape));
  } else if (!(tensor.shape() == shape)) {
    return invalid_argument("fetch \"%s\" into a given tensor: the value has shape %s, the tensor is %s", fetch_name(i).c_str(),
                            shape.text().c_str(), tensor.text().c_str());
  }
  Staged* const kept = staged_.empty() ? nullptr : staged(i);
  if (kept) {
    DTG_ASSIGN(kept->tensor, Tensor::allocate(fetch.dtype, shape));
  }
  Tensor& into = kept ? kept->tensor : tensor;
  if (into.bytes() > 0) std::memcpy(into.data(), frame_->data(fetch.slot), static_cast<size_t>(into.bytes()));
  return {};
}

}  // namespace dtg
