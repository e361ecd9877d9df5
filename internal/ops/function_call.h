// What the kernels that call functions share: binding arguments and results of a body, and the calls under way, which their argument block
// keeps for the next run, so that a warm run allocates nothing. A call belongs to one run at a time; the list of spares to any thread.
#pragma once

#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "base/spin_lock.h"
#include "exec/body_run.h"
#include "ops/integers.h"

namespace dtg::ops {

// A call that an argument block keeps.
class SpareCall {
 public:
  virtual ~SpareCall() = default;

 private:
  friend class Spares;
  SpareCall* next_ = nullptr;
};

class Spares {
 public:
  Spares() = default;
  Spares(const Spares&) = delete;
  Spares& operator=(const Spares&) = delete;
  ~Spares() {
    while (first_) delete std::exchange(first_, first_->next_);
  }
  template <class Call>
  Call* take() {
    {
      const std::lock_guard lock(lock_);
      if (first_) return static_cast<Call*>(std::exchange(first_, first_->next_));
    }
    return new Call;
  }
  void give_back(SpareCall* call) {
    const std::lock_guard lock(lock_);
    call->next_ = first_;
    first_ = call;
  }

 private:
  SpinLock lock_;
  SpareCall* first_ = nullptr;
};

// A call that is under way must end whatever happens.
template <class Fn>
Status without_throwing(Fn&& fn) {
  try {
    return fn();
  } catch (const std::bad_alloc&) {
    return resource_exhausted("out of memory");
  }
}

void bind_argument(BodyRun& run, size_t i, const void* data);
// Where the body writes result r, if it can write where it is told: into output `out`.
Status bind_result(RunContext& c, BodyRun& run, size_t r, const OutputSpec& out);
// Result r is output `out` from now on.
Status give_result(RunContext& c, const BodyRun& run, size_t r, const OutputSpec& out);
// The cells point at bytes that go with the body; afterwards at copies that stay as long as the caller's run.
Status own_texts(RunContext& c, void* cells, int64_t count);
Shape result_shape(const BodyRun& run, size_t r);
const void* result_data(const BodyRun& run, size_t r);

}  // namespace dtg::ops
