// The dialogue up to hello and beyond, cut, flipped, stretched and inflated: the link is closed with a reason or waits
// no longer than its time, and what was reserved is given back.
#include <gtest/gtest.h>

#include "doorman.h"
#include "seconds.h"

namespace dtg {
namespace {

std::string hello() { return wire::make_frame(wire::Hello{.session = 1}, 1); }

std::string part(size_t graph_bytes) {
  return wire::make_head(wire::Kind::register_part, 2, wire::encode(wire::RegisterPart{.targets = {1, 2}}), graph_bytes) +
         std::string(graph_bytes, 'g');
}

std::string dialogue() { return hello() + part(100) + wire::make_frame(wire::RunPart{.part = 1, .sequence = 1}); }

TEST(Dialogue, Whole) {
  for (size_t piece : {1, 50, 100000}) {
    Doorman doorman;
    const std::string bytes = dialogue();
    for (size_t at = 0; at < bytes.size(); at += piece) doorman.hear(std::string_view(bytes).substr(at, piece));
    EXPECT_TRUE(doorman.known);
    EXPECT_EQ(doorman.frames, 2);
    EXPECT_EQ(doorman.losses, 0);
    EXPECT_EQ(doorman.budget.used(), 0);
  }
}

TEST(Dialogue, CutAtEveryByte) {
  const std::string bytes = dialogue();
  for (size_t length = 0; length < bytes.size(); ++length) {
    Doorman doorman;
    doorman.hear(std::string_view(bytes).substr(0, length));
    EXPECT_EQ(doorman.losses, 0) << length;
    // The peer is gone: seen at once. Another one is silent: closed in time.
    if (length % 2) {
      doorman.in->close();
      doorman.loop.run();
      EXPECT_EQ(doorman.reason.code(), Code::unavailable) << length;
    } else {
      doorman.loop.run_for(doorman.known ? 6 * kSecond : 3 * kSecond);
      EXPECT_EQ(doorman.reason.code(), doorman.known ? Code::unavailable : Code::deadline_exceeded) << length << doorman.reason.message();
    }
    EXPECT_EQ(doorman.losses, 1) << length;
    EXPECT_FALSE(doorman.reason.message().empty());
    EXPECT_EQ(doorman.budget.used(), 0) << length;
  }
}

TEST(Dialogue, EveryBitFlipped) {
  const std::string bytes = dialogue();
  const size_t payload = bytes.find(std::string(100, 'g'));
  int closed = 0;
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    if (bit / 8 >= payload && bit / 8 < payload + 100) continue;  // the graph is verified as a whole, later
    std::string bad = bytes;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    Doorman doorman;
    doorman.hear(bad);
    EXPECT_LT(doorman.frames + doorman.known, 3) << bit;
    closed += doorman.losses;
    // What still waits for bytes that a longer length promised runs out of time.
    doorman.loop.run_for(10 * kSecond);
    EXPECT_EQ(doorman.losses, 1) << bit;
    EXPECT_EQ(doorman.budget.used(), 0) << bit;
  }
  EXPECT_GT(closed, 1000);
}

TEST(Dialogue, ImpossibleLengths) {
  const std::string head = wire::encode(wire::RegisterPart{});
  for (uint64_t length : {uint64_t{1} << 60, UINT64_MAX, uint64_t{65} << 20}) {
    for (const std::string& before : {std::string(), hello()}) {
      Doorman doorman;
      doorman.hear(before + wire::make_head(wire::Kind::register_part, 1, head, length));
      EXPECT_EQ(doorman.losses, 1);
      EXPECT_EQ(doorman.reason.code(), Code::resource_exhausted) << doorman.reason.message();
      EXPECT_EQ(doorman.budget.used(), 0);
    }
  }
  // Allowed, but there is no memory for it.
  Doorman small(1 << 20);
  small.hear(hello() + part(2 << 20).substr(0, 1000));
  EXPECT_EQ(small.reason.code(), Code::resource_exhausted) << small.reason.message();
  EXPECT_EQ(small.budget.used(), 0);
}

// A byte now and then keeps no connection open: before hello its time runs out, whatever comes.
TEST(Dialogue, SlowSender) {
  const std::string bytes = hello();
  Doorman doorman;
  size_t said = 0;
  while (doorman.losses == 0 && said < bytes.size()) {
    doorman.hear(std::string_view(bytes).substr(said++, 1));
    doorman.loop.run_for(kSecond / 10);
  }
  EXPECT_EQ(doorman.reason.code(), Code::deadline_exceeded) << doorman.reason.message();
  EXPECT_LE(said, 31u);
}

TEST(Dialogue, NothingBeforeHello) {
  for (int kind = 1; kind <= wire::kKindMax; ++kind) {
    if (kind == int(wire::Kind::hello) || kind == int(wire::Kind::heartbeat) || kind == int(wire::Kind::goodbye)) continue;
    if (kind == int(wire::Kind::hello_reply) || kind == int(wire::Kind::register_reply) || kind == int(wire::Kind::reply))
      continue;  // to nobody's question
    if (kind == int(wire::Kind::inspect_reply) || kind == int(wire::Kind::arrive_reply)) continue;
    Doorman doorman;
    doorman.hear(wire::make_head(static_cast<wire::Kind>(kind), 1, "some header", 0));
    EXPECT_EQ(doorman.reason.code(), Code::unauthenticated) << kind << " " << doorman.reason.message();
    EXPECT_TRUE(doorman.out->read_all().empty());
  }
}

// What a peer says before hello is bounded whatever it says.
TEST(Dialogue, StrangersMaySayLittle) {
  Doorman doorman;
  for (int i = 0; i < 1000 && doorman.losses == 0; ++i) doorman.hear(wire::make_frame(wire::Heartbeat{1}));
  EXPECT_EQ(doorman.reason.code(), Code::resource_exhausted);
}

}  // namespace
}  // namespace dtg
