// LastOut: waits until everybody who has one of its tickets has let go of it, from any threads and in whatever way.
//
// Owner: who waits. Tickets may outlive it.
#pragma once

#include <memory>

#include "base/condition.h"
#include "base/seams.h"

namespace dtg {

class LastOut final {
 public:
  // To be copied and handed on as one likes.
  std::shared_ptr<void> ticket() const {
    struct Ticket {
      explicit Ticket(std::shared_ptr<State> of) : state(std::move(of)) {
        state->changed.change([&] { ++state->tickets; });
      }
      ~Ticket() {
        state->changed.change([&] { --state->tickets; });
      }
      Ticket(const Ticket&) = delete;
      Ticket& operator=(const Ticket&) = delete;
      const std::shared_ptr<State> state;
    };
    return std::make_shared<Ticket>(state_);
  }
  // False: the deadline passed before.
  bool wait(const Clock& clock, Deadline deadline) const {
    return state_->changed.wait(clock, deadline, [this] { return state_->tickets == 0; });
  }

 private:
  struct State {
    Condition changed;
    size_t tickets = 0;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace dtg
