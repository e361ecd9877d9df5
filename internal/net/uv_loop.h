// UvLoop: the loop of a process that is not simulated: a thread of its own on libuv's poll. We read and write the
// sockets ourselves, because a write that libuv has taken cannot be taken back from a peer that stopped reading,
// and because libuv's writes raise SIGPIPE. Started and stopped by its owner, from any thread but its own.
//
// Being the loop is a turn that one thread has at a time. Its own thread gives the turn up while it sleeps; whoever posts then
// may take it and do at once what would otherwise wait for a wake-up.
#pragma once

#include <memory>

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
  bool is_current() const override;

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
  explicit UvLoop(const Clock& clock);
  void rearm() override;
  std::unique_ptr<State> state_;
};

}  // namespace dtg
