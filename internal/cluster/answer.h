// Answer: what a question to another task ends with. Whoever asks goes on at once and is told; a host's thread inside a call waits
// for it in Awaited, until its deadline, and gives it up then.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/condition.h"
#include "base/status.h"

namespace dtg {

// Called once, on the loop's thread or by the call that asked; must not block.
using Done = std::function<void(Status)>;
template <class T>
using Answer = std::function<void(Result<T>)>;

// R is Status or a Result. The answer may come after nobody waits for it any more.
template <class R>
class Awaited final {
 public:
  std::function<void(R)> taker() {
    return [shared = shared_](R answer) { shared->told.change([&] { shared->answer = std::move(answer); }); };
  }
  // Whoever was asked answers by its deadline; this holds where it cannot, because its loop is gone.
  R wait(const Clock& clock, Deadline deadline) {
    const Deadline last{deadline.at_ns > INT64_MAX - kGraceNs ? INT64_MAX : deadline.at_ns + kGraceNs};
    if (shared_->told.wait(clock, last, [this] { return shared_->answer.has_value(); })) return std::move(*shared_->answer);
    return R(deadline_exceeded("no answer until the deadline passed"));
  }

 private:
  static constexpr int64_t kGraceNs = 50'000'000;
  struct Shared {
    Condition told;  // guards answer
    std::optional<R> answer;
  };
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace dtg
