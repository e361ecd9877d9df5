// A link by itself, over a channel in memory whose other end the test plays.
#include "cluster/link.h"

#include <gtest/gtest.h>

#include <new>

#include "manual_loop.h"
#include "net/memory_channel.h"

namespace dtg {
namespace {

// Nobody is left to hold the link when its end is told to who asked over it.
TEST(Link, ClosedOverADeadChannelByWhoIsLeftAlone) {
  for (const bool by_failing : {false, true}) {
    SteppedClock clock;
    ManualLoop loop(clock);
    auto in = make_ref<MemoryStream>(), out = make_ref<MemoryStream>();
    Ref<Link> link = make_ref<Link>(loop, memory_channel(loop, {}, in, out), Timing{}, nullptr);
    link->open();
    int told = 0;
    link->calls().start("greet", Deadline::after(clock, 1'000'000'000), [&](const Status& status, std::string_view) {
      EXPECT_EQ(status.code(), by_failing ? Code::aborted : Code::unavailable) << status.message();
      ++told;
      link = nullptr;
    });
    Link& bare = *link;
    out->close();
    if (by_failing) bare.fail(aborted("enough"));
    else bare.close(cancelled("enough"));
    loop.run();
    EXPECT_EQ(told, 1);
    EXPECT_FALSE(link);
  }
}

// A loop that has no memory for anything new, when told.
class ScarceLoop final : public ManualLoop {
 public:
  using ManualLoop::ManualLoop;
  void post(std::function<void()> fn) override {
    if (scarce) throw std::bad_alloc();
    ManualLoop::post(std::move(fn));
  }
  bool scarce = false;
};

class Ear final : public Link::Listener {
 public:
  Result<Channel::Landing> payload(const wire::Prefix&, std::string_view) override { return Channel::Landing{}; }
  Status message(const wire::Prefix&, std::string_view) override { return {}; }
  void lost(const Status& status) override { reason = status; }
  Status reason;
};

// A heartbeat that cannot be sent must not be the last: nobody would notice any more that the other end is dead.
TEST(Link, WithoutMemoryForAHeartbeatItEnds) {
  SteppedClock clock;
  ScarceLoop loop(clock);
  Ear ear;
  const Timing timing;
  auto in = make_ref<MemoryStream>(), out = make_ref<MemoryStream>();
  const auto link = make_ref<Link>(loop, memory_channel(loop, {}, in, out), timing, &ear);
  link->open();
  link->trust("somebody", timing.heartbeat_ns);
  loop.run_for(timing.heartbeat_ns / 2);
  loop.scarce = true;
  loop.run_for(timing.heartbeat_ns);
  EXPECT_FALSE(link->is_open());
  EXPECT_EQ(ear.reason.code(), Code::resource_exhausted) << ear.reason.message();
}

}  // namespace
}  // namespace dtg
