// Who is let in, by number and by pace, on a clock that the test moves.
#include "net/admission.h"

#include <gtest/gtest.h>

#include <vector>

namespace dtg {
namespace {

TEST(Admission, StrangersOfOneHostAreFew) {
  AcceptLimits limits;
  auto admission = make_ref<Admission>(limits);
  std::vector<Admission::Ticket> tickets;
  const auto come = [&](const std::string& host) {
    auto ticket = admission->admit(host, 0);
    if (ticket.ok()) tickets.push_back(ticket.take());
    return ticket.status().code();
  };
  for (int i = 0; i < 16; ++i) EXPECT_EQ(come("a"), Code::ok);
  EXPECT_EQ(come("a"), Code::resource_exhausted);
  EXPECT_EQ(come("b"), Code::ok);
  // Who has shaken hands makes room for another handshake, up to 64 that have not said hello.
  for (size_t i = 0; i < 48; ++i) {
    tickets[i < 16 ? i : i + 1].shook_hands();
    EXPECT_EQ(come("a"), Code::ok);
  }
  for (Admission::Ticket& ticket : tickets) ticket.shook_hands();
  EXPECT_EQ(come("a"), Code::resource_exhausted);
  tickets[0].known();
  EXPECT_EQ(come("a"), Code::ok);
  EXPECT_EQ(admission->connections(), 66u);
  tickets.clear();
  EXPECT_EQ(admission->connections(), 0u);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(come("a"), Code::ok);
}

TEST(Admission, HandshakesAndConnectionsInAll) {
  AcceptLimits limits;
  limits.handshakes = 5;
  limits.connections = 8;
  auto admission = make_ref<Admission>(limits);
  std::vector<Admission::Ticket> tickets;
  for (int i = 0; i < 5; ++i) tickets.push_back(admission->admit(std::to_string(i), 0).take());
  EXPECT_EQ(admission->admit("x", 0).status().code(), Code::resource_exhausted);
  for (auto& ticket : tickets) ticket.known();
  for (int i = 0; i < 3; ++i) tickets.push_back(admission->admit("", 0).take());  // this user's own count too
  EXPECT_EQ(admission->admit("", 0).status().code(), Code::resource_exhausted);
  EXPECT_EQ(admission->admit("y", 0).status().code(), Code::resource_exhausted);
  Admission::Ticket moved = std::move(tickets[0]);
  moved.drop();
  moved.drop();
  EXPECT_EQ(admission->connections(), 7u);
  EXPECT_TRUE(admission->admit("y", 0).ok());
}

TEST(Admission, PaceOfOneHost) {
  auto admission = make_ref<Admission>(AcceptLimits());
  const auto come = [&](int64_t now_ns) { return admission->admit("a", now_ns).ok(); };  // and goes at once
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(come(0)) << i;
  EXPECT_FALSE(come(0));
  EXPECT_FALSE(come(4'000'000));
  EXPECT_TRUE(come(6'000'000));  // 200 a second: one each 5 ms
  EXPECT_FALSE(come(6'000'000));
  int let_in = 0;
  for (int i = 0; i < 10000; ++i) let_in += come(1'000'000'000 + i * 100'000);  // a storm of one second
  EXPECT_GE(let_in, 350);
  EXPECT_LE(let_in, 400);
}

TEST(Admission, ManyHostsAreForgotten) {
  auto admission = make_ref<Admission>(AcceptLimits());
  int64_t now = 0;
  for (int i = 0; i < 100000; ++i) (void)admission->admit(std::to_string(i), now += 1'000'000).ok();
  EXPECT_LE(admission->hosts(), 8192u);
}

}  // namespace
}  // namespace dtg
