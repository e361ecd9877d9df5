// A link by itself, over a channel in memory whose other end the test plays.
#include "cluster/link.h"

#include <gtest/gtest.h>

#include <new>

#include "base/last_out.h"
#include "cluster/group.h"
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
      EXPECT_EQ(status.code(), by_failing ? Code::aborted : Code::cancelled) << status.message();
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

// A link that knows who is at its other end, which is the test: what it writes into `in` is heard.
template <class L>
struct Trusting {
  Trusting() {
    link->open();
    link->trust("somebody", timing.heartbeat_ns);
  }
  // An open link and its channel hold each other.
  ~Trusting() {
    link->close(cancelled("the test is over"));
    loop.run();
  }
  SteppedClock clock;
  L loop{clock};
  Ear ear;
  const Timing timing;
  const Ref<MemoryStream> in = make_ref<MemoryStream>(), out = make_ref<MemoryStream>();
  const Ref<Link> link = make_ref<Link>(loop, memory_channel(loop, {}, in, out), timing, &ear);
};

// A heartbeat that cannot be sent must not be the last: nobody would notice any more that the other end is dead.
TEST(Link, WithoutMemoryForAHeartbeatItEnds) {
  Trusting<ScarceLoop> lab;
  auto& [clock, loop, ear, timing, in, out, link] = lab;
  loop.run_for(timing.heartbeat_ns / 2);
  loop.scarce = true;
  loop.run_for(timing.heartbeat_ns);
  EXPECT_FALSE(link->is_open());
  EXPECT_EQ(ear.reason.code(), Code::resource_exhausted) << ear.reason.message();
}

// A bit of a header's length was flipped on the way, so that the link waits for what nobody sends, and takes the heartbeats for it.
TEST(Link, ALengthThatWasDamagedEndsIt) {
  for (const uint32_t bytes : {uint32_t{1} << 9, uint32_t{1} << 19}) {
    Trusting<ManualLoop> lab;
    auto& [clock, loop, ear, timing, in, out, link] = lab;
    std::string damaged = wire::make_frame(wire::Heartbeat{1});
    damaged[8 + (bytes >= 1 << 16 ? 2 : 1)] ^= static_cast<char>(bytes >> (bytes >= 1 << 16 ? 16 : 8));
    in->write(damaged);
    const int64_t most_ns = timing.dead_ns + int64_t{bytes} * 16'000 + 4 * timing.heartbeat_ns;
    int64_t lasted_ns = 0;
    // Too few for the length to be reached meanwhile.
    for (; link->is_open() && lasted_ns < most_ns; lasted_ns += timing.heartbeat_ns) {
      if (bytes >= 1 << 16) in->write(wire::make_frame(wire::Heartbeat{2}));
      else in->write(std::string_view("x"));
      loop.run_for(timing.heartbeat_ns);
    }
    EXPECT_FALSE(link->is_open()) << bytes;
    EXPECT_GE(lasted_ns, timing.dead_ns) << bytes;
    EXPECT_EQ(ear.reason.code(), Code::unavailable);
    EXPECT_NE(ear.reason.message().find("came in parts"), std::string::npos) << ear.reason.message();
  }
}

// What is long in coming over a slow line is not damaged.
TEST(Link, AHeaderMayTakeItsTime) {
  Trusting<ManualLoop> lab;
  auto& [clock, loop, ear, timing, in, out, link] = lab;
  const std::string frame = wire::make_head(wire::Kind::inspect_reply, 7, std::string(900'000, 'x'), 0);
  constexpr size_t kPart = 8'000;  // ten times a second
  for (size_t at = 0; at < frame.size(); at += kPart) {
    in->write(std::string_view(frame).substr(at, kPart));
    loop.run_for(100'000'000);
    ASSERT_TRUE(link->is_open()) << at << ": " << ear.reason.message();
  }
}

// What was sent before a last word arrives before it, however slowly the other end reads, and the link ends when that has closed.
TEST(Link, ALastWordComesBehindWhatWasSent) {
  for (const bool closes : {true, false}) {
    SteppedClock clock;
    ManualLoop loop(clock);
    Ear ear;
    const Timing timing;
    const auto in = make_ref<MemoryStream>(), out = make_ref<MemoryStream>(1000);
    const Ref<Link> link = make_ref<Link>(loop, memory_channel(loop, {}, in, out), timing, &ear);
    link->open();
    link->trust("somebody", timing.heartbeat_ns);
    const std::string values(100'000, 'x');
    auto frame = std::make_unique<OutFrame>();
    frame->head = wire::make_head(wire::Kind::group_data, 0, wire::encode(wire::GroupData{}), values.size());
    frame->payload = values.data();
    frame->payload_bytes = values.size();
    frame->data = true;
    const size_t data_bytes = frame->head.size() + values.size();
    link->channel().queue(std::move(frame));
    link->channel().push();
    wire::GroupWord word;
    word.verb = static_cast<uint8_t>(GroupVerb::leave);
    word.status = cancelled("it was enough");
    const LastOut last_out;
    link->part(word, word.status, timing.dead_ns, last_out.ticket());
    in->write(wire::make_frame(wire::Heartbeat{1}));
    std::string got;
    for (int i = 0; i < 1000 && got.size() < data_bytes + wire::make_frame(word).size(); ++i) {
      loop.run();
      char part[300];
      const iovec into{part, sizeof part};
      got.append(part, out->read(&into, 1));
    }
    ASSERT_EQ(got.size(), data_bytes + wire::make_frame(word).size());
    EXPECT_EQ(got.substr(data_bytes), wire::make_frame(word));
    EXPECT_TRUE(link->is_open());
    EXPECT_FALSE(last_out.wait(clock, Deadline{0}));
    if (closes) in->close();
    else loop.run_for(timing.dead_ns);
    loop.run();
    EXPECT_FALSE(link->is_open());
    EXPECT_TRUE(last_out.wait(clock, Deadline{0}));
  }
}

// Each waits for the other to close, so the first that hears it closes.
TEST(Link, TwoThatPartAtOnceDoNotWaitForEachOther) {
  class Parts final : public Link::Listener {
   public:
    Result<Channel::Landing> payload(const wire::Prefix&, std::string_view) override { return Channel::Landing{}; }
    Status message(const wire::Prefix&, std::string_view) override { return ++heard, Status(); }
    bool parts(const wire::Prefix& prefix, std::string_view) override { return prefix.kind == wire::Kind::goodbye; }
    void lost(const Status&) override { ++ended; }
    int heard = 0, ended = 0;
  } ears[2];
  SteppedClock clock;
  ManualLoop loop(clock);
  const Timing timing;
  const auto there = make_ref<MemoryStream>(), back = make_ref<MemoryStream>();
  const Ref<Link> links[] = {make_ref<Link>(loop, memory_channel(loop, {}, there, back), timing, &ears[0]),
                             make_ref<Link>(loop, memory_channel(loop, {}, back, there), timing, &ears[1])};
  const LastOut last_out;
  for (const Ref<Link>& link : links) {
    link->open();
    link->trust("somebody", timing.heartbeat_ns);
  }
  for (const Ref<Link>& link : links) {
    link->send(wire::GroupWord{});
    link->part(wire::Goodbye{}, cancelled("it was enough"), timing.dead_ns, last_out.ticket());
  }
  const int64_t began_ns = clock.monotonic_ns();
  loop.run();
  EXPECT_EQ(clock.monotonic_ns(), began_ns);
  EXPECT_TRUE(last_out.wait(clock, Deadline{0}));
  for (const Parts& ear : ears) EXPECT_EQ(ear.ended, 1);
  for (const Ref<Link>& link : links) {
    EXPECT_FALSE(link->is_open());
    EXPECT_EQ(link->reason().code(), Code::cancelled) << link->reason().message();
  }
}

// Nothing can be written any more, but what the other end had said before it went is heard.
TEST(Link, WhatWasSaidBeforeTheEndIsHeard) {
  class Words final : public Link::Listener {
   public:
    Result<Channel::Landing> payload(const wire::Prefix&, std::string_view) override { return Channel::Landing{}; }
    Status message(const wire::Prefix&, std::string_view) override { return ++count, Status(); }
    void lost(const Status& status) override { reason = status; }
    int count = 0;
    Status reason;
  } words;
  SteppedClock clock;
  ManualLoop loop(clock);
  const Timing timing;
  const auto in = make_ref<MemoryStream>(), out = make_ref<MemoryStream>();
  const Ref<Link> link = make_ref<Link>(loop, memory_channel(loop, {}, in, out), timing, &words);
  link->open();
  link->trust("somebody", timing.heartbeat_ns);
  loop.run();
  for (int i = 0; i < 3; ++i) in->write(wire::make_frame(wire::GroupWord{}));
  out->close();
  // Written before what came in is read.
  link->send(wire::Heartbeat{1});
  link->channel().push();
  EXPECT_TRUE(link->is_open());
  loop.run();
  EXPECT_FALSE(link->is_open());
  EXPECT_EQ(words.count, 3);
  EXPECT_EQ(words.reason.code(), Code::unavailable) << words.reason.message();
}

}  // namespace
}  // namespace dtg
