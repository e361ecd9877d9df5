// Interrupt: a run that is over while one of its kernels is at work. Whoever runs a kernel puts one up around it, for this thread; the
// pool looks at it before each shard, wherever the shard runs, and long shards look now and then (Lookout). A kernel leaves by an
// exception, which nobody but who put the interrupt up catches: what it was making is left as it is, so interrupts are for kernels that
// write nothing that outlives the run. Where none is up, nothing happens.
//
// Owner: who puts it up, on the stack. Any thread may ask it; each thread has its own present one.
//
//   const Interrupt::Scope scope(&interrupt);
//   try { kernel(); } catch (const Interrupted&) { ... }
//
//   Lookout lookout;  // in a loop of a kernel
//   for (...) { ...; lookout.after(steps); }
#pragma once

#include <cstdint>
#include <utility>

namespace dtg {

// What a kernel is left by. Not an error: why the run is over is known to it.
struct Interrupted final {};

class Interrupt {
 public:
  // Whether the run is over. From any thread that works for the kernel, several at a time.
  virtual bool is_due() = 0;

  // The one that is up for this thread; null: none.
  static Interrupt* present() { return present_; }
  // Leaves the kernel where it is due.
  static void look() {
    Interrupt* const interrupt = present_;
    if (interrupt && interrupt->is_due()) throw Interrupted();
  }

  // Puts one up, or none for null, until the end of the scope.
  class Scope {
   public:
    explicit Scope(Interrupt* interrupt) : before_(std::exchange(present_, interrupt)) {}
    ~Scope() { present_ = before_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Interrupt* const before_;
  };

 protected:
  ~Interrupt() = default;

 private:
  static constinit thread_local Interrupt* present_;
};

// Looks once in a while: a look costs some 30 ns, mostly for the clock.
class Lookout {
 public:
  // So many more steps were done, of about a nanosecond each.
  void after(int64_t steps) {
    left_ -= steps;
    if (left_ > 0) return;
    left_ = kSteps;
    Interrupt::look();
  }

 private:
  static constexpr int64_t kSteps = 100'000;
  int64_t left_ = kSteps;
};

// Calls fn(i) for i in [from, to), of so many steps each, and looks between them.
template <class Fn>
void look_between(int64_t from, int64_t to, int64_t steps, Fn&& fn) {
  Lookout lookout;
  for (int64_t i = from; i < to; ++i) {
    fn(i);
    lookout.after(steps);
  }
}

// Calls fn(begin, end) for one stretch of [from, to) after the other, of so many steps each number, and looks between them: for loops that
// the compiler is to make vectors of. A stretch has a multiple of `unit` numbers, but for the last.
template <class Fn>
void look_in_stretches(int64_t from, int64_t to, int64_t steps, int64_t unit, Fn&& fn) {
  constexpr int64_t kSteps = 200'000;
  const int64_t stretch = kSteps / (steps * unit) * unit + unit;
  while (to - from > stretch) {
    fn(from, from + stretch);
    from += stretch;
    Interrupt::look();
  }
  fn(from, to);
}

}  // namespace dtg
