// A link by itself, over a channel in memory whose other end the test plays.
#include "cluster/link.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace dtg
