// Owner: what finds out that two threads are inside a "single" object at the same time. The header says that one thread at a time
// uses such an object; a host that does otherwise gets an error with the names of both threads instead of a torn list. Part of each
// such object; any thread may ask to enter. One atomic instruction on the way in, one on the way out.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/status.h"

namespace dtg::capi {

// The number of the thread that asks, as the kernel counts them.
int32_t this_thread();

class Owner {
 public:
  // Readers may be inside together; who changes the object is inside alone. So is who glances, but for a moment only and without a
  // function of the host: who comes meanwhile is not refused, but waits.
  enum class Use : uint8_t { read, change, glance };

  // The time that a thread spends inside.
  class Turn {
   public:
    Turn(Owner& owner, Use use) : owner_(owner), use_(use), other_(owner.enter(use)) {}
    // Waits for whoever is inside: for a call that goes on with what was begun long before, and must not be the one that is refused. Not
    // where `refuses` says that another such call is inside.
    Turn(Owner& owner, Use use, const std::atomic<bool>& refuses) : owner_(owner), use_(use), other_(owner.enter_after(use, refuses)) {}
    ~Turn() {
      if (other_ == 0) owner_.leave(use_);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    bool inside() const { return other_ == 0; }
    // Ok where it is inside; else FAILED_PRECONDITION. `noun` is what the object is called.
    Status status(const char* noun) const { return other_ == 0 ? Status() : refused(noun); }

   private:
    Status refused(const char* noun) const;
    Owner& owner_;
    const Use use_;
    const int32_t other_;  // the thread that is inside; 0: we are
  };

  // The time that who is inside, to change the object, lets a function of the host use it. Where another thread took the turn
  // meanwhile, which the header forbids, it is waited for.
  class Loan {
   public:
    explicit Loan(Owner& owner) : owner_(owner) { owner_.leave(Use::change); }
    ~Loan() { owner_.await(Use::change); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

   private:
    Owner& owner_;
  };

 private:
  static constexpr uint64_t kChanging = uint64_t{1} << 31, kAwaited = uint64_t{1} << 30, kGlancing = uint64_t{1} << 29;
  static constexpr uint64_t kReaders = kGlancing - 1;
  int32_t enter(Use use);
  static uint64_t inside_by(Use use);
  int32_t enter_after(Use use, const std::atomic<bool>& refuses);
  void await(Use use);
  void leave(Use use);

  // The thread that came in last, and below it kChanging, with kGlancing for who glances, or the number of readers, and kAwaited while
  // somebody waits for all of them to leave, and until he is inside; 0 when nobody is inside or waits.
  std::atomic<uint64_t> inside_{0};
};

}  // namespace dtg::capi
