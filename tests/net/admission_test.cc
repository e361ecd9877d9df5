// Who is let in, by number and by pace, on a clock that the test moves.
#include "net/admission.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace dtg {
namespace {

// A connection that the test sees from the other end.
struct Guest {
  Guest(Admission& admission, const std::string& host, int64_t now_ns = 0, bool crowded = false) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    here = ends[0];
    there = ends[1];
    auto let_in = admission.admit(host, here, crowded, now_ns);
    status = let_in.status();
    if (status.ok()) ticket = let_in.take();
  }
  ~Guest() {
    ticket.drop();
    ::close(here);
    ::close(there);
  }
  bool sent_away() const {
    char byte;
    return ::recv(there, &byte, 1, MSG_DONTWAIT) == 0;
  }
  bool admitted() const { return status.ok() && !sent_away(); }

  int here = -1, there = -1;
  Status status;
  Admission::Ticket ticket;
};
using Guests = std::vector<std::unique_ptr<Guest>>;

size_t present(const Guests& guests) {
  return static_cast<size_t>(std::ranges::count_if(guests, [](const auto& guest) { return guest->admitted(); }));
}

TEST(Admission, TheOldestStrangerOfAHostMakesRoom) {
  auto admission = make_ref<Admission>(AcceptLimits());
  Guest other(*admission, "b");
  Guests guests;
  for (int i = 0; i < 64; ++i) guests.push_back(std::make_unique<Guest>(*admission, "a"));
  EXPECT_EQ(present(guests), 64u);
  for (size_t i = 0; i < 64; ++i) {
    guests.push_back(std::make_unique<Guest>(*admission, "a"));
    EXPECT_TRUE(guests.back()->admitted());
    EXPECT_TRUE(guests[i]->sent_away());
    EXPECT_EQ(present(guests), 64u);
  }
  EXPECT_TRUE(other.admitted());
  // Who had to go does not come back by speaking.
  EXPECT_FALSE(guests[0]->ticket.begin_handshake(0).ok());
  EXPECT_TRUE(guests[127]->ticket.begin_handshake(0).ok());
  EXPECT_EQ(admission->connections(), 129u);
  guests.clear();
  EXPECT_EQ(admission->connections(), 1u);
}

TEST(Admission, ManyHostsOfStrangersTogether) {
  auto admission = make_ref<Admission>(AcceptLimits());
  Guests guests;
  for (int i = 0; i < 1000; ++i) guests.push_back(std::make_unique<Guest>(*admission, std::to_string(i)));
  EXPECT_EQ(present(guests), 256u);
  for (size_t i = 744; i < 1000; ++i) EXPECT_TRUE(guests[i]->admitted());
}

TEST(Admission, HandshakesMakeRoomForHandshakes) {
  AcceptLimits limits;
  limits.handshakes = 20;
  auto admission = make_ref<Admission>(limits);
  Guests guests;
  const auto greet = [&](const std::string& host) {
    guests.push_back(std::make_unique<Guest>(*admission, host));
    EXPECT_TRUE(guests.back()->ticket.begin_handshake(0).ok());
  };
  for (int i = 0; i < 16; ++i) greet("a");
  EXPECT_EQ(present(guests), 16u);
  greet("a");
  EXPECT_TRUE(guests[0]->sent_away());
  EXPECT_EQ(present(guests), 16u);
  // The proven are counted no more.
  guests[1]->ticket.proven();
  greet("a");
  EXPECT_EQ(present(guests), 17u);
  for (int i = 0; i < 10; ++i) greet(std::to_string(i));
  EXPECT_EQ(present(guests), 21u);
  EXPECT_TRUE(guests[1]->admitted());
}

// A hundred hosts that begin handshakes as fast as they may take the places of each other, and not of one who comes alone.
TEST(Admission, CrowdsMakeRoomBeforeWhoComesAlone) {
  auto admission = make_ref<Admission>(AcceptLimits());
  Guest alone(*admission, "alone"), silent(*admission, "silent");
  ASSERT_TRUE(alone.ticket.begin_handshake(0).ok());
  Guests crowd;
  for (int i = 0; i < 2000; ++i) {
    crowd.push_back(std::make_unique<Guest>(*admission, "crowd " + std::to_string(i % 100)));
    EXPECT_TRUE(crowd.back()->admitted());
    EXPECT_TRUE(i % 2 == 0 || crowd.back()->ticket.begin_handshake(0).ok());
    if (crowd.size() > 700) crowd.erase(crowd.begin(), crowd.begin() + 100);
  }
  EXPECT_TRUE(alone.admitted());
  EXPECT_TRUE(silent.admitted());
}

// One who says whole first words as fast as it can uses up its own pace and its own places.
TEST(Admission, AStormOfFirstWordsIsItsOwn) {
  auto admission = make_ref<Admission>(AcceptLimits());
  Guests storm;
  int begun = 0;
  for (int i = 0; i < 20'000; ++i) {
    const int64_t now_ns = int64_t{i} * 100'000;  // two seconds
    storm.push_back(std::make_unique<Guest>(*admission, "storm", now_ns));
    begun += storm.back()->ticket.begin_handshake(now_ns).ok();
    if (storm.size() > 100) storm.erase(storm.begin());
    if (i % 500 != 0) continue;
    Guest other(*admission, "other", now_ns);
    EXPECT_TRUE(other.ticket.begin_handshake(now_ns).ok()) << i;
    EXPECT_TRUE(other.admitted());
  }
  EXPECT_GE(begun, 590);
  EXPECT_LE(begun, 600);
}

TEST(Admission, NobodyProvenMakesRoom) {
  AcceptLimits limits;
  limits.connections = 8;
  auto admission = make_ref<Admission>(limits);
  Guests proven;
  for (int i = 0; i < 6; ++i) {
    proven.push_back(std::make_unique<Guest>(*admission, i < 3 ? "" : "a"));
    proven.back()->ticket.proven();
  }
  const Guest local(*admission, "");
  Guest stranger(*admission, "a");
  // A stranger before this user's own process; then that, though it said nothing either.
  Guest next(*admission, "");
  EXPECT_TRUE(stranger.sent_away());
  stranger.ticket.drop();
  EXPECT_TRUE(local.admitted());
  Guest last(*admission, "");
  EXPECT_TRUE(local.sent_away());
  next.ticket.proven();
  last.ticket.proven();
  EXPECT_EQ(Guest(*admission, "").status.code(), Code::resource_exhausted);
  EXPECT_EQ(present(proven), 6u);
  EXPECT_FALSE(admission->make_room());
}

TEST(Admission, WhereDescriptorsAreScarce) {
  auto admission = make_ref<Admission>(AcceptLimits());
  {
    // 50 descriptors of 64 are taken, whichever number comes next: 20 by the host, 30 here, with one gap.
    std::vector<Admission::Ticket> tickets;
    for (int socket = 20; socket < 50; ++socket) tickets.push_back(admission->admit("", socket, false, 0).take());
    EXPECT_TRUE(admission->crowded(50, 64));
    EXPECT_FALSE(admission->crowded(50, 67));
    tickets[3].drop();
    EXPECT_TRUE(admission->crowded(23, 64));
    EXPECT_FALSE(admission->crowded(23, 66));
    EXPECT_FALSE(admission->crowded(50, SIZE_MAX));
  }
  EXPECT_EQ(Guest(*admission, "a", 0, true).status.code(), Code::resource_exhausted);
  const Guest first(*admission, "a");
  EXPECT_TRUE(Guest(*admission, "a", 0, true).admitted());
  EXPECT_TRUE(first.sent_away());
}

TEST(Admission, TicketsMove) {
  auto admission = make_ref<Admission>(AcceptLimits());
  Guest guest(*admission, "a");
  Admission::Ticket moved = std::move(guest.ticket);
  moved.drop();
  moved.drop();
  EXPECT_EQ(admission->connections(), 0u);
}

TEST(Admission, PaceOfOneHost) {
  auto admission = make_ref<Admission>(AcceptLimits());
  const auto come = [&](int64_t now_ns) {  // speaks, and goes at once
    auto ticket = admission->admit("a", -1, false, now_ns);
    return ticket.ok() && ticket.value().begin_handshake(now_ns).ok();
  };
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(come(0)) << i;
  EXPECT_FALSE(come(0));
  EXPECT_FALSE(come(4'000'000));
  EXPECT_TRUE(come(6'000'000));  // 200 a second: one each 5 ms
  EXPECT_FALSE(come(6'000'000));
  int let_in = 0;
  for (int i = 0; i < 10000; ++i) let_in += come(1'000'000'000 + i * 100'000);  // a storm of one second
  EXPECT_GE(let_in, 350);
  EXPECT_LE(let_in, 400);
  // The silent use up no pace.
  for (int i = 0; i < 10000; ++i) EXPECT_TRUE(admission->admit("b", -1, false, 0).ok());
  EXPECT_TRUE(admission->admit("b", -1, false, 0).value().begin_handshake(0).ok());
}

TEST(Admission, ManyHostsAreForgotten) {
  auto admission = make_ref<Admission>(AcceptLimits());
  int64_t now = 0;
  for (int i = 0; i < 100000; ++i) (void)admission->admit(std::to_string(i), -1, false, now += 1'000'000).ok();
  EXPECT_LE(admission->hosts(), 8192u);
}

}  // namespace
}  // namespace dtg
