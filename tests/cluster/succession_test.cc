// Which members of a group may go on: members that die, come back with no memory, are parted, whose words come late, twice or not at all.
// Never do two epochs live at once, each goes on with a quorum of the one before, and where nothing is wrong any more all come together.
// One thread, on a clock of its own; a seed is a run.
#include "cluster/succession.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "sanitized.h"

namespace dtg {
namespace {

constexpr int64_t kMs = 1'000'000;
using Members = std::vector<int>;

bool has(const Members& members, int member) { return std::ranges::find(members, member) != members.end(); }

bool is_quorum(const Members& of, const Members& by) {
  const auto count = static_cast<size_t>(std::ranges::count_if(of, [&](int member) { return has(by, member); }));
  return 2 * count > of.size() || (2 * count == of.size() && has(by, of[0]));
}

class World {
 public:
  struct Node final : Succession::Around {
    Node(World& w, int n) : world(w), number(n), succession(*this, w.size(), n) {}
    int64_t now_ns() override { return world.now; }
    bool is_linked(int member) override { return linked.contains(member); }
    uint64_t life(int member) override { return world.life(member); }
    Status unlinked(int) override { return unavailable("parted"); }
    void tell(int member, const wire::GroupWord& word) override { world.send(number, member, word); }
    void enter(const Succession::Set& epoch) override {
      in = epoch.number;
      members = epoch.members;
      going = true;
      forming = false;
      entered_at = world.now;
      world.entered(number, epoch);
    }
    void form(size_t least) {
      going = false;
      forming = true;
      until = world.now + 500 * kMs + static_cast<int64_t>(world.random() % 4000) * kMs;
      succession.begin(least);
    }
    World& world;
    const int number;
    Succession succession;
    std::set<int> linked;
    uint64_t in = 0;
    Members members;
    bool going = false, forming = false;
    int64_t until = 0, entered_at = 0;
  };
  struct Formed {
    Members members;
    std::vector<int> lives;  // of the members, when it came to be
    int generation = 0;
  };
  struct Word {
    int64_t at = 0;
    wire::GroupWord word;
  };

  World(int size, uint64_t seed) : random(seed), size_(size), lives_(static_cast<size_t>(size)) {
    for (int i = 0; i < size; ++i) nodes.push_back(std::make_unique<Node>(*this, i));
    for (int i = 0; i < size; ++i) link(i);
  }
  int size() const { return size_; }
  Node& at(int node) { return *nodes[static_cast<size_t>(node)]; }
  uint64_t life(int node) const { return static_cast<uint64_t>(lives_[static_cast<size_t>(node)]) + 1; }

  // ---- faults ----
  void cut(int a, int b) {
    parted.insert(std::minmax(a, b));
    drop(a, b);
  }
  void heal() {
    parted.clear();
    for (int i = 0; i < size_; ++i) link(i);
  }
  // Those on one side see each other only.
  void part(const Members& side) {
    for (int a = 0; a < size_; ++a) {
      for (int b = a + 1; b < size_; ++b) {
        if (has(side, a) != has(side, b)) cut(a, b);
      }
    }
  }
  void kill(int node) {
    for (int i = 0; i < size_; ++i) {
      if (i != node) drop(i, node);
    }
    nodes[static_cast<size_t>(node)] = nullptr;
    ++lives_[static_cast<size_t>(node)];
  }
  void revive(int node) {
    if (nodes[static_cast<size_t>(node)]) return;
    nodes[static_cast<size_t>(node)] = std::make_unique<Node>(*this, node);
    link(node);
    at(node).form(static_cast<size_t>(size_));
  }

  // ---- time ----
  void run(int64_t ns, int fault_every_ms = 0) {
    for (const int64_t end = now + ns; now < end && !testing::Test::HasFailure(); now += 5 * kMs) {
      deliver();
      for (int i = 0; i < size_; ++i) {
        if (nodes[static_cast<size_t>(i)] && now / kMs % 50 == i * 5) host(at(i));
      }
      if (fault_every_ms > 0 && random() % static_cast<unsigned>(fault_every_ms / 5) == 0) fault();
    }
  }

  std::mt19937_64 random;
  int64_t now = 0;
  std::vector<std::unique_ptr<Node>> nodes;
  std::map<std::pair<int, uint64_t>, Formed> formed;  // by generation and number
  size_t least = 0;
  bool lossy = false;
  bool all_again = false;  // every host wants everybody
  std::set<std::pair<int, int>> parted;

 private:
  void link(int node) {
    for (int other = 0; other < size_; ++other) {
      if (other == node || !nodes[static_cast<size_t>(other)] || !nodes[static_cast<size_t>(node)]) continue;
      if (parted.contains(std::minmax(node, other)) || at(node).linked.contains(other)) continue;
      at(node).linked.insert(other);
      at(other).linked.insert(node);
      at(node).succession.link_up(other);
      at(other).succession.link_up(node);
    }
  }
  // Each end hears of it.
  void drop(int a, int b) {
    flying_.erase({a, b});
    flying_.erase({b, a});
    for (const auto& [self, other] : {std::pair(a, b), std::pair(b, a)}) {
      if (!nodes[static_cast<size_t>(self)] || at(self).linked.erase(other) == 0) continue;
      if (has(at(self).members, other)) at(self).going = false;
      at(self).succession.link_down(other);
    }
  }
  void send(int from, int to, const wire::GroupWord& word) {
    if (!at(from).linked.contains(to)) return;
    std::deque<Word>& words = flying_[{from, to}];
    if (lossy && random() % 40 == 0) return;
    const int64_t late =
        lossy && random() % 10 == 0 ? static_cast<int64_t>(random() % 700) * kMs : static_cast<int64_t>(random() % 8) * kMs;
    for (int times = lossy && random() % 20 == 0 ? 2 : 1; times > 0; --times) words.push_back({now + late, word});
  }
  void deliver() {
    for (bool more = true; more;) {
      more = false;
      for (int from = 0; from < size_; ++from) {
        for (int to = 0; to < size_; ++to) {
          const auto words = flying_.find({from, to});
          if (words == flying_.end() || words->second.empty() || words->second.front().at > now) continue;
          const wire::GroupWord word = words->second.front().word;
          words->second.pop_front();
          more = true;
          Node& node = at(to);
          const bool leaves = static_cast<GroupVerb>(word.verb) == GroupVerb::leave;
          if (leaves && node.in == word.epoch) node.going = false;
          if (!leaves) node.succession.word(from, word);
        }
      }
    }
  }
  // What a member's program does: forms anew after an end, and after a call that does not end.
  void host(Node& node) {
    const auto gone = [&](int each) { return !nodes[static_cast<size_t>(each)] || !at(each).going || at(each).in != node.in; };
    const bool stuck = node.going && now - node.entered_at > 3'000 * kMs && std::ranges::any_of(node.members, gone);
    if (stuck) node.going = false;
    if (all_again && node.going && node.members.size() < nodes.size()) node.going = false;
    if (node.forming && now > node.until) {
      node.forming = false;
      node.succession.give_up();
    }
    if (!node.going && !node.forming) {
      const bool fresh = node.in == 0;
      node.form(fresh || all_again ? nodes.size() : 1 + random() % (least + 1));
    } else {
      node.succession.tick();
    }
  }
  void fault() {
    const int node = static_cast<int>(random() % nodes.size());
    switch (random() % 8) {
      case 0:
        if (nodes[static_cast<size_t>(node)]) kill(node);
        break;
      case 1:
      case 5: revive(node); break;
      case 2: {
        Members side;
        for (int i = 0; i < size_; ++i) {
          if (random() % 2 == 0) side.push_back(i);
        }
        part(side);
        break;
      }
      case 4:
        if (const int other = static_cast<int>(random() % nodes.size()); other != node) cut(node, other);
        break;
      default: heal();
    }
  }

  // ---- what must hold ----
  void entered(int node, const Succession::Set& epoch) {
    const bool all = epoch.members.size() == nodes.size();
    const auto same = formed.find({generation_, epoch.number});
    const bool known = same != formed.end() && same->second.members == epoch.members &&
                       same->second.lives[static_cast<size_t>(node)] == lives_[static_cast<size_t>(node)];
    if (known) return check_alive();
    // All together owe nothing to what was before; a number may come again where all who knew of it have died.
    if (all) ++generation_;
    ASSERT_TRUE(all || same == formed.end()) << "epoch " << epoch.number << " twice, of other members";
    formed[{generation_, epoch.number}] = {epoch.members, lives_, generation_};
    for (auto at = formed.begin(); std::next(at) != formed.end(); ++at) {
      const auto next = std::next(at);
      if (at->second.generation != next->second.generation) continue;
      ASSERT_TRUE(is_quorum(at->second.members, next->second.members))
          << "epoch " << next->first.second << " is no quorum of epoch " << at->first.second;
    }
    check_alive();
  }
  // An epoch lives while none of its members has been started anew, or promised to go on to another.
  void check_alive() {
    int alive = 0;
    for (const auto& entry : formed) {
      const auto& each = entry.second;
      alive += std::ranges::all_of(each.members, [&](int member) {
        return lives_[static_cast<size_t>(member)] == each.lives[static_cast<size_t>(member)] && nodes[static_cast<size_t>(member)] &&
               at(member).succession.promised().number == entry.first.second;
      });
    }
    ASSERT_LE(alive, 1);
  }

  const int size_;
  int generation_ = 0;
  std::vector<int> lives_;
  std::map<std::pair<int, int>, std::deque<Word>> flying_;  // one way of a link: in order
};

Members everybody(int size) {
  Members all;
  for (int i = 0; i < size; ++i) all.push_back(i);
  return all;
}

void expect_all_in(World& world, const Members& members) {
  for (const int member : members) {
    EXPECT_TRUE(world.at(member).going) << member;
    EXPECT_EQ(world.at(member).members, members) << member;
    EXPECT_EQ(world.at(member).in, world.at(members[0]).in) << member;
  }
}

// {0..4} -> {2,3,4} -> {2,3}; then 0 and 1 come back and see 4 only.
TEST(Succession, WhoKnowsOfALaterEpochKeepsTheOthersFromGoingOnAside) {
  World world(5, 1);
  world.run(1'000 * kMs);
  expect_all_in(world, everybody(5));
  world.part({0, 1});
  world.run(3'000 * kMs);
  expect_all_in(world, {2, 3, 4});
  world.part({2, 3});
  world.run(3'000 * kMs);
  expect_all_in(world, {2, 3});
  const uint64_t epoch = world.at(2).in;
  world.heal();
  world.part({2, 3});
  world.run(6'000 * kMs);
  for (const int member : {0, 1, 4}) EXPECT_FALSE(world.at(member).going) << member;
  EXPECT_NE(world.at(0).succession.hindrance(), "");
  world.all_again = true;
  world.heal();
  world.run(6'000 * kMs);
  expect_all_in(world, everybody(5));
  EXPECT_GT(world.at(0).in, epoch);
}

// What it promised, and was in, it has forgotten.
TEST(Succession, WhoWasStartedAnewCountsForNothing) {
  World world(5, 2);
  world.run(1'000 * kMs);
  world.part({0, 1});
  world.run(3'000 * kMs);
  world.part({2, 3});
  world.run(3'000 * kMs);
  expect_all_in(world, {2, 3});
  world.kill(4);
  world.heal();
  world.part({2, 3});
  world.revive(4);
  world.run(6'000 * kMs);
  for (const int member : {0, 1, 4}) EXPECT_FALSE(world.at(member).going) << member;
}

TEST(Succession, OfTwoHalvesTheOneWithTheLowestGoesOn) {
  World world(4, 3);
  world.run(1'000 * kMs);
  world.part({0, 1});
  world.run(3'000 * kMs);
  expect_all_in(world, {0, 1});
  EXPECT_FALSE(world.at(2).going);
  world.kill(1);
  world.run(3'000 * kMs);
  expect_all_in(world, {0});
  world.heal();
  world.all_again = true;
  world.revive(1);
  world.run(10'000 * kMs);
  expect_all_in(world, everybody(4));
}

// A member by itself; the test is the others.
struct Alone final : Succession::Around {
  int64_t now_ns() override { return 0; }
  bool is_linked(int member) override { return !away.contains(member); }
  uint64_t life(int member) override { return lives.contains(member) ? lives[member] : 1; }
  Status unlinked(int) override { return unavailable("away"); }
  void tell(int, const wire::GroupWord& word) override {
    if (static_cast<GroupVerb>(word.verb) == GroupVerb::promise) promises.push_back(word.epoch);
  }
  void enter(const Succession::Set& epoch) override { in = epoch.number; }
  std::set<int> away;
  std::map<int, uint64_t> lives;
  std::vector<uint64_t> promises;
  uint64_t in = 0;
};

wire::GroupWord proposal(uint64_t number, std::vector<uint32_t> members, wire::GroupSet base, std::vector<uint32_t> counted) {
  wire::GroupWord word;
  word.verb = static_cast<uint8_t>(GroupVerb::propose);
  word.epoch = number;
  word.ranks = std::move(members);
  word.sets = {std::move(base), {0, std::move(counted)}};
  return word;
}

// A follower, word by word.
TEST(Succession, AFollowerLooksForItself) {
  Alone alone;
  Succession four(alone, 5, 4);
  const wire::GroupSet none{}, first{1, {0, 1, 2, 3, 4}};
  four.begin(1);
  four.word(0, proposal(1, {0, 1, 4}, none, {}));  // nobody has been in an epoch
  EXPECT_TRUE(alone.promises.empty());
  four.word(0, proposal(1, {0, 1, 2, 3, 4}, none, {}));
  EXPECT_EQ(alone.promises, std::vector<uint64_t>{1});
  wire::GroupWord commit;
  commit.verb = static_cast<uint8_t>(GroupVerb::commit);
  commit.epoch = 1;
  four.word(0, commit);
  EXPECT_EQ(alone.in, 1u);
  alone.promises.clear();

  four.begin(1);
  for (const int away : {2, 3}) alone.away.insert(away), four.link_down(away);
  four.word(0, proposal(2, {0, 4}, first, {0, 4}));        // no majority
  four.word(0, proposal(2, {0, 1, 4}, first, {0, 1}));     // it has been there all the time
  four.word(0, proposal(1, {0, 1, 4}, first, {0, 1, 4}));  // an old number
  four.word(1, proposal(2, {0, 1, 4}, first, {0, 1, 4}));  // not whom it follows
  EXPECT_TRUE(alone.promises.empty());
  four.word(0, proposal(2, {0, 1, 4}, first, {0, 1, 4}));
  EXPECT_EQ(alone.promises, std::vector<uint64_t>{2});
  four.word(0, proposal(2, {0, 1, 4}, first, {0, 1, 4}));  // a number is given once
  EXPECT_EQ(alone.promises, std::vector<uint64_t>{2});

  // Epoch 2 may have come to be without it: the others could be in it.
  alone.away = {0, 1};
  four.link_down(0);
  four.link_down(1);
  four.word(2, proposal(3, {2, 3, 4}, first, {2, 3, 4}));
  EXPECT_EQ(alone.promises, std::vector<uint64_t>{2});
  four.word(0, commit);
  EXPECT_EQ(alone.in, 1u);
  // Unless a later one did.
  const wire::GroupSet later{3, {2, 3}};
  four.word(2, proposal(2, {2, 3, 4}, later, {2, 3, 4}));  // a number that was promised
  EXPECT_EQ(alone.promises, std::vector<uint64_t>{2});
  four.word(2, proposal(4, {2, 3, 4}, later, {2, 3, 4}));
  EXPECT_EQ(alone.promises, (std::vector<uint64_t>{2, 4}));
}

// Of a member that has joined anew, some may still be linked to the life before.
TEST(Succession, AFollowerPromisesToTheLivesThatAreMeant) {
  Alone alone;
  Succession two(alone, 3, 2);
  two.begin(0);
  wire::GroupWord meant = proposal(1, {0, 1, 2}, {}, {});
  meant.lives = {1, 7, 1};
  two.word(0, meant);
  EXPECT_TRUE(alone.promises.empty());
  alone.lives[1] = 7;
  two.link_up(1);
  EXPECT_EQ(alone.promises, std::vector<uint64_t>{1});

  meant.epoch = 2;
  meant.lives = {1, 7, 3};  // another life of its own
  two.word(0, meant);
  meant.lives = {1, 7};
  two.word(0, meant);
  EXPECT_EQ(alone.promises, std::vector<uint64_t>{1});
  meant.lives = {0, 0, 0};
  two.word(0, meant);
  EXPECT_EQ(alone.promises, (std::vector<uint64_t>{1, 2}));
  meant.epoch = 3;
  meant.lives.clear();
  two.word(0, meant);
  EXPECT_EQ(alone.promises, (std::vector<uint64_t>{1, 2, 3}));
}

TEST(Succession, NumbersGoOnBehindThoseOfTheLifeBefore) {
  Alone alone;
  Succession one(alone, 2, 1);
  one.begin_behind(5);
  one.begin(0);
  one.word(0, proposal(5, {0, 1}, {}, {}));
  EXPECT_TRUE(alone.promises.empty());
  one.word(0, proposal(6, {0, 1}, {}, {}));
  EXPECT_EQ(alone.promises, std::vector<uint64_t>{6});
}

TEST(Succession, NeverTwoAtOnceAndAlwaysOneInTheEnd) {
  constexpr uint64_t kSeeds = DTG_SANITIZED ? 36 : 100;
  size_t epochs = 0;
  for (uint64_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const int size = 2 + static_cast<int>(seed % 6);
    World world(size, seed);
    world.least = static_cast<size_t>(size) / 2;
    world.run(500 * kMs);
    world.lossy = seed % 3 != 0;
    world.run(60'000 * kMs, 300 + static_cast<int>(seed % 5) * 400);
    world.lossy = false;
    world.all_again = true;
    for (int i = 0; i < size; ++i) world.revive(i);
    world.heal();
    world.run(30'000 * kMs);
    expect_all_in(world, everybody(size));
    epochs += world.formed.size();
  }
  EXPECT_GT(epochs, 6 * kSeeds);
}

}  // namespace
}  // namespace dtg
