// StepMembers: who takes part in a step of elastic training. Each worker leaves what it contributes where the variables are and then
// arrives here; the update of the step gathers those who have. It waits for every worker that has arrived once and is there, so nobody is
// left out because it is slow; who is gone is not waited for, and who has not arrived yet begins with the step that it arrives for. A
// worker waits until the step that it arrived for is made. One that comes too late, as it was taken for gone, is told at once where the
// others are.
//
// Which step it is the count of steps says, a variable beside this; what is here is who waits and who has arrived. A task that was started
// anew knows neither: then an update waits until the roll is settled, so that those who are on their way back are not left out.
//
// Where elements of data are dealt (exec/deal.h), a worker asks for one, has it until it is in an update or the worker is gone, and arrives
// with it. Nobody else gets it meanwhile, and one that is in an update, or that another worker has, does not count: so each is in one
// update of its epoch, whoever comes and goes. Who has to wait for an element, as the last of an epoch are with others, is not waited for.
//
// Any thread. Owner: the resource store and the plans bound to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/deal.h"
#include "exec/pending_op.h"
#include "exec/presence.h"
#include "exec/worker_place.h"

namespace dtg {

class StepMembers final : public WaitingResource {
 public:
  static constexpr std::string_view kKind = "step members";
  static constexpr int64_t kWorkersMost = 4096;

  using Element = Deal::Element;

  // Whoever waits on account of a step.
  class Wait : public PendingOp {
   public:
    enum class For : uint8_t { step, members, element };
    explicit Wait(For what) : what_(what) {}
    For what() const { return what_; }
    int64_t step = 0;
    Step* running = nullptr;  // hears what was waited for if its time is over

   private:
    const For what_;
  };
  // A worker whose contribution to `step` is where it belongs. Ends when that step is made, or is to be contributed to anew.
  class Arrival : public Wait {
   public:
    Arrival() : Wait(For::step) {}
    int64_t worker = 0;
    int64_t now = 0;  // the count of steps, looked at after it contributed
    uint64_t session = Presence::kOwn;
    Element element;   // that it is made of, where elements are dealt
    int64_t next = 0;  // answered: the step that is to be contributed to now
  };
  // The update of `step`: ends when all who are there have arrived, and so many at least.
  class Gathering : public Wait {
   public:
    Gathering() : Wait(For::members) {}
    int64_t least = 1;
    std::span<const double> times;  // what the ledger says; looked at as it begins
    // Answered: 1 for each worker whose contribution counts, and the elements that those are made of.
    std::vector<uint8_t> members;
    std::vector<int64_t> elements;
  };
  // A worker wants an element of an epoch: ends when there is one for it, or when that epoch is over.
  class Asking : public Wait {
   public:
    Asking() : Wait(For::element) {}
    int64_t worker = 0;
    uint64_t session = Presence::kOwn;
    int64_t epoch = Deal::kNone;  // none: whichever is now
    Element element;              // answered; no index: the epoch is over, and this one is now
  };

  // How a step begins.
  enum class Begin : uint8_t {
    next,   // the one before was made
    again,  // what was contributed is void: everybody contributes anew
    first,  // the same, and nobody took part before this
  };

  // `elements` of an epoch, where they are dealt; else 0.
  StepMembers(std::string name, int64_t workers, Ref<const Presence::Roll> roll, int64_t elements = 0);
  const char* kind() const override { return kKind.data(); }
  void destroy(const Status& reason) override;

  int64_t workers() const { return static_cast<int64_t>(members_.size()); }
  // "step 7: 0 arrived, 2 awaited".
  std::string text() const;
  int64_t elements() const { return deal_.elements(); }
  // Who had arrived is told. `times`: what the ledger says; not looked at for the next step, whose elements are known.
  void begin(int64_t step, Begin how, std::span<const double> times = {});
  // Before it is heard of as that worker, by a session of a task ("" where that speaks for none). FAILED_PRECONDITION: another task is it.
  Status claim(int64_t worker, uint64_t session, std::string_view task);
  // It is not waited for any more. What it has contributed counts.
  void leave(int64_t worker);
  // Somebody has gone. False: it was destroyed.
  bool review();

 private:
  static constexpr int64_t kNone = INT64_MIN;  // no step
  struct Member {
    bool counts = false;  // is waited for, as long as it is there
    bool came = false;    // since this task began
    uint64_t session = Presence::kOwn;
    int64_t arrived = kNone;  // the last step that it arrived for, unless that is void
    // That it has, so nobody else gets it: while this session is there, what it arrived with counts, or the update that took it is under
    // way.
    Element element;
    uint64_t holder = Presence::kOwn;
    bool in_update = false;
    int64_t taken_for = kNone;  // the step of that update
    bool left = false;          // since it arrived or was given an element
    int asks = 0;               // that wait
  };
  void enter(PendingOp& pending, PendingOpList& ended) override;
  void withdraw(PendingOp& pending, PendingOpList& ended) override;
  void arrive(Arrival& arrival, PendingOpList& ended);
  void gather(Gathering& gathering, PendingOpList& ended);
  void move_to(int64_t step, PendingOpList& ended);
  bool is_there(const Member& member) const { return member.counts && roll_->has(member.session); }
  bool has_arrived(const Member& member) const {
    return member.arrived != kNone && member.arrived == step_ && (!deal_.is_on() || member.element.any());
  }
  bool is_idle(const Member& member) const { return member.element.any() && !has_arrived(member) && !member.in_update; }
  // The others need not wait for it.
  bool is_missing(const Member& member) const { return is_there(member) && !has_arrived(member) && member.asks == 0; }
  int64_t count_arrived() const;
  bool is_complete(const Gathering& gathering) const;
  bool may_bring(const Member& own, const Arrival& arrival) const;
  void end_updates(bool made, PendingOpList& ended);
  void forget_arrival(Member& member, PendingOpList& ended);
  void told(std::span<const double> times, PendingOpList& ended);
  void give_back();
  bool deal_to(Asking& asking, bool& any_free);
  Element free_element() const;
  void serve(PendingOpList& ended);
  // "worker 2", "workers 1, 3 and 4": those of whom `is_it` is true.
  template <class Fn>
  std::string list(Fn&& is_it) const;
  Status lateness(const Gathering& gathering) const;
  Status lateness(const Arrival& arrival) const;
  Status lateness(const Asking& asking) const;
  Status lateness(const Wait& wait) const;
  PendingOpList& list_of(const Wait& wait);
  void end_wait(Wait& wait, PendingOpList& ended, Status status);

  const Ref<const Presence::Roll> roll_;
  std::vector<Member> members_;
  std::vector<WorkerPlace> places_;  // by worker
  int64_t step_ = kNone;             // that is contributed to
  bool fresh_ = false;               // there is no former life of this task in which somebody took part
  Deal deal_;
  bool set_back_ = false;  // the ledger was, since its epoch began: who had come further has to hear of it
  PendingOpList arrivals_, gatherings_, asks_;
  bool destroyed_ = false;
};

}  // namespace dtg
