// UvLoop: the loop of a process that is not simulated: a thread of its own on libuv's poll. We read and write the
// sockets ourselves, because a write that libuv has taken cannot be taken back from a peer that stopped reading,
// and because libuv's writes raise SIGPIPE. Started and stopped by its owner, from any thread but its own.
//
// Being the loop is a turn that one thread has at a time. Its own thread gives the turn up while it sleeps; whoever posts then
// may take it and do at once what would otherwise wait for a wake-up. Whoever waits for what comes over the network may be the loop
// meanwhile (poll()): it takes turn after turn and sleeps nowhere, and the loop's own thread stands aside until it is through, and a
// moment longer, as the next one is near. Where nobody does, the loop's own thread polls for a moment before it sleeps. Both only as long
// as there is a CPU that nobody else wants, and as what comes is mostly near.
#pragma once

#include <memory>

#include "base/free_cpu.h"
#include "base/status.h"
#include "net/loop.h"

namespace dtg {

class UvLoop final : public Loop {
 public:
  static Result<std::unique_ptr<UvLoop>> start(const Clock& clock);
  // Closes what is open, drops what is posted, and waits for the thread.
  ~UvLoop() override;

  void post(std::function<void()> fn) override;
  void post_now(std::function<void()> fn) override;
  void defer(Pool::Task* task, Pool& pool) override;
  bool is_current() const override;
  bool poll(Holds holds, const void* what) override;
  // Whether there is a CPU to poll on; for tests to say.
  FreeCpu& free_cpu();

  // A socket that is watched. Loop thread only.
  class Watch {
   public:
    virtual ~Watch() = default;
    virtual void ready(bool readable, bool writable) = 0;
  };
  struct Poll;
  Result<Poll*> watch(int descriptor, Watch* watch);
  void want(Poll* poll, bool readable, bool writable);
  // After it, `watch` is not called any more; the descriptor may be closed.
  void unwatch(Poll* poll);

 private:
  struct State;
  class Patience;
  explicit UvLoop(const Clock& clock);
  void rearm() override;
  std::unique_ptr<State> state_;
};

}  // namespace dtg
