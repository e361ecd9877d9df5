// Strict replicas against towers and the joined batch, what happens to contributions of an older step, sync-replicas
// and async by hand-made gradients.
#include "strategy/replicas.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "by_hand.h"
#include "nn/norm.h"
#include "strategy/towers.h"

namespace dtg {
namespace {

constexpr int kWorkers = 3, kShard = 4, kSteps = 50;

enum class Net { dense, embedding, normed };

// The batch of a step as far as rows [from, from + count) go; a function of the step alone.
struct Batch {
  Batch(int step, int from, int count) {
    for (int row = from; row < from + count; ++row) {
      for (int k = 0; k < 3; ++k) x.push_back(std::sin(static_cast<float>(1 + step * 37 + row * 5 + k * 11)));
      y.push_back(std::cos(static_cast<float>(step * 13 + row * 3)));
      for (int k = 0; k < 2; ++k) ids.push_back((step + row * row + k * 4) % 6);  // some rows meet
    }
  }
  std::vector<float> x, y;
  std::vector<int32_t> ids;
};

// tanh(x w1 + b1) w2 against y, over variables on both parameter servers; the embedding adds rows to x, and the normalization has moving
// statistics.
struct Replica {
  Replica(ReplicaWorld& world, Net kind, int w, int number_of_rows) : net(kind), rows(number_of_rows) {
    world.graph().push_device(ReplicaWorld::worker(w));
    Build b(world.graph());
    x = world.placeholder(DType::f32, {rows, 3});
    y = world.placeholder(DType::f32, {rows, 1});
    Value input = x;
    if (net == Net::embedding) {
      ids = world.placeholder(DType::i32, {rows, 2});
      const Value table = world.variable("table", {6, 3}, 1).handle;
      world.graph().push_colocation(table.node());
      const Value found = b.op("ResourceGather", {table, ids}, {{"dtype", DType::f32}});
      EXPECT_TRUE(world.graph().pop_colocation().ok());
      input = b.add(x, b.sum(found, b.ints({1})));
    }
    const Value w1 = world.variable("w1", {3, 5}, 0).read, b1 = world.variable("b1", {5}, 0).read;
    const Value w2 = world.variable("w2", {5, 1}, 1).read;
    Value hidden = b.op("Tanh", {b.op("BiasAdd", {b.op("MatMul", {input, w1}), b1})});
    if (net == Net::normed) hidden = good(batch_norm(world.model(), hidden, {.momentum = 0.75}, {}));
    loss = good(mean_squared_error(world.graph(), y, b.op("MatMul", {hidden, w2})));
    EXPECT_TRUE(b.ok()) << b.status().message();
    EXPECT_TRUE(world.graph().pop_device().ok());
  }
  ReplicaWorld::Feeds feeds(int step, int from) const {
    const Batch batch(step, from, rows);
    ReplicaWorld::Feeds all = {{x, good(Tensor::of<float>(Shape::of({rows, 3}), std::span<const float>(batch.x)))},
                               {y, good(Tensor::of<float>(Shape::of({rows, 1}), std::span<const float>(batch.y)))}};
    if (net == Net::embedding) {
      all.push_back({ids, good(Tensor::of<int32_t>(Shape::of({rows, 2}), std::span<const int32_t>(batch.ids)))});
    }
    return all;
  }
  Net net;
  int rows;
  Value x, y, ids, loss;
};

// N workers of a strict cluster, or of an elastic one, in one graph.
struct Strict {
  Strict(Net net, const Optimizer& optimizer, int workers = kWorkers, SyncMode mode = SyncMode::strict) : world(workers) {
    for (int w = 0; w < workers; ++w) {
      if (w > 0) world.model().next_tower();
      replicas.emplace_back(world, net, w, kShard);
    }
    for (int w = 0; w < workers; ++w) {
      const Value loss = replicas[static_cast<size_t>(w)].loss;
      const Replication share{.mode = mode, .worker = w, .total = workers};
      if (net != Net::normed) {
        parts.push_back(good(minimize_replicated(world.model(), loss, optimizer, share)));
        continue;
      }
      // Here the workers are towers of one model, each with statistics of its own.
      const std::vector<VariableGradient> own = good(compute_gradients(world.model(), loss, static_cast<size_t>(w)));
      parts.push_back(good(apply_replicated(world.model(), own, optimizer, share)));
    }
    world.init();
    world.run({}, {}, {parts[0].chief_init});
    for (const Replicated& part : parts) world.run({}, {}, {part.local_init});
  }
  // Waits until all of worker w's contributions to a step have come (or have been taken). They come one by one, so to look at one
  // variable's alone would let a test cancel a run in the middle of it.
  bool contributed(int w) {
    const Value count = waiting(w);
    return world.reaches(count, contributions_);
  }
  bool taken(int w) { return world.reaches(waiting(w), 0); }
  // How many contributions of worker w wait, of all variables together.
  Value waiting(int w) {
    const std::string name = "waiting/" + std::to_string(w);
    const NodeId known = world.graph().find(name);
    if (known != kNoNode) return world.graph().value(known);
    Build b(world.graph());
    std::vector<Value> counts;
    for (const NamedVariable& variable : world.model().variables()) {
      const NodeId found = world.graph().find(variable.name + "/grad_accum/" + std::to_string(w));
      if (found == kNoNode) continue;
      const Value handle = world.graph().value(found);
      const bool rows = world.graph().node(found).op->name() == "SparseConditionalAccumulator";
      counts.push_back(b.op(rows ? "AccumulatorNumAccumulated" : "ResourceAccumulatorNumAccumulated", {handle}));
    }
    contributions_ = static_cast<int32_t>(counts.size());
    const Value count = b.op("AddN", counts, std::span<const Attr>(), name);
    EXPECT_TRUE(b.ok()) << b.status().message();
    return count;
  }
  Ref<AsyncRun> train(int w, int step) {
    const auto i = static_cast<size_t>(w);
    return world.start(replicas[i].feeds(step, w * kShard), parts[i].train, static_cast<uint64_t>(w));
  }
  void update() { world.start({}, parts[0].update, 99); }
  void join(std::initializer_list<int> tags) {
    for (const int tag : tags) {
      const Status status = world.wait(static_cast<uint64_t>(tag));
      ASSERT_TRUE(status.ok()) << tag << ": " << status.message();
    }
  }
  int32_t contributions_ = 0;  // of one worker to one step
  ReplicaWorld world;
  std::vector<Replica> replicas;
  std::vector<Replicated> parts;
};

using Bits = std::map<std::string, std::string>;

// `order` of arrival; with `eager` the update is there first and takes one after the other, otherwise it comes last.
Bits train_strictly(Net net, const Optimizer& optimizer, std::array<int, kWorkers> order, bool eager, int steps) {
  Strict s(net, optimizer);
  for (int step = 0; step < steps; ++step) {
    if (eager) s.update();
    for (const int w : order) {
      s.train(w, step);
      if (!eager && !s.contributed(w)) ADD_FAILURE() << "worker " << w << " has not contributed";
    }
    if (!eager) s.update();
    s.join({0, 1, 2, 99});
  }
  EXPECT_EQ(s.world.integer(s.parts[0].global_step), steps);
  return s.world.bits();
}

Bits train_towers(Net net, const Optimizer& optimizer, int steps, std::vector<int> members = {0, 1, 2}) {
  ReplicaWorld world(kWorkers);
  std::vector<Replica> towers;
  std::vector<Value> losses;
  for (int w = 0; w < kWorkers; ++w) {
    if (w > 0) world.model().next_tower();
    towers.emplace_back(world, net, w, kShard);
    if (std::ranges::find(members, w) != members.end()) losses.push_back(towers.back().loss);
  }
  const Training training = good(minimize_towers(world.model(), losses, optimizer));
  world.init();
  for (int step = 0; step < steps; ++step) {
    ReplicaWorld::Feeds feeds;
    for (const int w : members) {
      for (auto& feed : towers[static_cast<size_t>(w)].feeds(step, w * kShard)) feeds.push_back(std::move(feed));
    }
    world.run(feeds, {}, {training.train});
  }
  return world.bits();
}

// Steps of an elastic cluster that are made by these workers alone.
Bits train_elastically(Net net, const Optimizer& optimizer, std::vector<int> members, int steps) {
  Strict s(net, optimizer, kWorkers, SyncMode::elastic);
  for (int step = 0; step < steps; ++step) {
    for (const int w : members) {
      s.train(w, step);
      if (!s.contributed(w)) ADD_FAILURE() << "worker " << w << " has not contributed";
    }
    // The last one's arrival comes behind its contribution; that of the others is long over.
    s.world.start({}, s.parts[0].update, 99);
    s.join({99});
    for (const int w : members) s.join({w});
  }
  EXPECT_EQ(s.world.integer(s.parts[0].global_step), steps);
  Bits all = s.world.bits();
  std::array<double, kWorkers> wanted{}, counted{};
  for (const int w : members) wanted[static_cast<size_t>(w)] = steps;
  std::memcpy(counted.data(), all.at("sync/contributions").data(), sizeof counted);
  EXPECT_EQ(counted, wanted);
  all.erase("sync/contributions");
  return all;
}

Bits train_joined(Net net, const Optimizer& optimizer, int steps) {
  ReplicaWorld world(1);
  const Replica whole(world, net, 0, kWorkers * kShard);
  const Training training = good(minimize(world.model(), whole.loss, optimizer));
  world.init();
  for (int step = 0; step < steps; ++step) world.run(whole.feeds(step, 0), {}, {training.train});
  return world.bits();
}

double farthest(const Bits& a, const Bits& b) {
  double far = 0;
  for (const auto& [name, bytes] : a) {
    if (name == "global_step" || !b.contains(name)) continue;
    std::vector<float> left(bytes.size() / 4), right(left.size());
    std::memcpy(left.data(), bytes.data(), bytes.size());
    std::memcpy(right.data(), b.at(name).data(), bytes.size());
    for (size_t i = 0; i < left.size(); ++i) far = std::max(far, std::fabs(static_cast<double>(left[i]) - right[i]));
  }
  return far;
}

void expect_equal_bits(const Bits& a, const Bits& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, bytes] : a) EXPECT_TRUE(bytes == b.at(name)) << name;
}

void expect_any_order(Net net, const Optimizer& optimizer) {
  const Bits towers = train_towers(net, optimizer, kSteps);
  EXPECT_LT(farthest(towers, train_joined(net, optimizer, kSteps)), 1e-6);
  std::array<int, kWorkers> order = {0, 1, 2};
  bool eager = false;
  do {
    SCOPED_TRACE(::testing::Message() << order[0] << order[1] << order[2] << (eager ? " update first" : ""));
    expect_equal_bits(train_strictly(net, optimizer, order, eager, kSteps), towers);
    eager = !eager;
  } while (std::ranges::next_permutation(order).found);
}

TEST(StrictReplicas, DenseMomentumInAnyOrder) {
  expect_any_order(Net::dense, {.kind = Optimizer::Kind::momentum, .learning_rate = {}, .rate = 0.05, .momentum = 0.9});
}

TEST(StrictReplicas, RowsInAnyOrder) { expect_any_order(Net::embedding, {.learning_rate = {}, .rate = 0.1}); }

TEST(StrictReplicas, AdamWithRowsMatchesTowers) {
  const Optimizer adam{.kind = Optimizer::Kind::adam, .learning_rate = {}, .rate = 0.01};
  expect_equal_bits(train_strictly(Net::embedding, adam, {2, 0, 1}, true, 10), train_towers(Net::embedding, adam, 10));
}

// Every kind, over dense gradients and rows, alone and with what may stand around it: strict workers over two parameter servers leave the
// bits of towers, state and all, and towers what one worker makes of the joined batch.
struct KindCase {
  Optimizer::Kind kind;
  Net net;
  bool surrounded;
};

class EveryKind : public ::testing::TestWithParam<KindCase> {};

Optimizer optimizer_of(const KindCase& c) {
  Optimizer o = Optimizer::of(c.kind);
  o.rate = 0.02;
  o.momentum = 0.5;
  o.epsilon = std::max(o.epsilon, 1e-4);
  if (!c.surrounded) return o;
  o.weight_decay = 0.05;
  o.undecayed_names = {"b1"};
  o.use_ema = true;
  o.ema_momentum = 0.75;
  o.ema_overwrite_every = 4;
  o.lookahead_steps = 3;
  o.amsgrad = true;
  o.centered = true;
  o.clip_each_norm = 0.2;
  return o;
}

TEST_P(EveryKind, LeavesTheSameBitsByTowersAndStrictWorkers) {
  const KindCase c = GetParam();
  const Optimizer optimizer = optimizer_of(c);
  constexpr int kFew = 7;
  const Bits towers = train_towers(c.net, optimizer, kFew);
  expect_equal_bits(train_strictly(c.net, optimizer, {2, 0, 1}, true, kFew), towers);
  expect_equal_bits(train_strictly(c.net, optimizer, {1, 0, 2}, false, kFew), towers);
  expect_equal_bits(train_elastically(c.net, optimizer, {2, 0, 1}, kFew), towers);
  const Bits joined = train_joined(c.net, optimizer, kFew);
  EXPECT_EQ(joined.size(), towers.size());
  // Lion's steps are signs: where a mean is nothing but rounding, so is its sign.
  if (c.kind != Optimizer::Kind::lion) {
    EXPECT_LT(farthest(towers, joined), 2e-4);
  }
  if (c.surrounded) {
    ASSERT_TRUE(towers.contains("w1/ExponentialMovingAverage"));
    EXPECT_NE(towers.at("w1/ExponentialMovingAverage"), towers.at("w1"));
    EXPECT_TRUE(towers.contains("w1/Slow"));
  }
}

std::vector<KindCase> every_kind() {
  std::vector<KindCase> cases;
  for (int kind = 0; Optimizer::name_of(static_cast<Optimizer::Kind>(kind)); ++kind) {
    for (const Net net : {Net::dense, Net::embedding}) {
      for (const bool surrounded : {false, true}) cases.push_back({static_cast<Optimizer::Kind>(kind), net, surrounded});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, EveryKind, ::testing::ValuesIn(every_kind()), [](const auto& one) {
  return std::string(Optimizer::name_of(one.param.kind)) + (one.param.net == Net::dense ? "Dense" : "Rows") +
         (one.param.surrounded ? "Surrounded" : "");
});

TEST(Accumulation, IsNotOfReplicas) {
  ReplicaWorld world(1);
  const Replica replica(world, Net::dense, 0, kShard);
  for (const SyncMode mode : {SyncMode::async, SyncMode::strict}) {
    const auto refused = minimize_replicated(world.model(), replica.loss, {.learning_rate = {}, .accumulation_steps = 2}, {.mode = mode});
    EXPECT_EQ(refused.status().code(), Code::unimplemented) << refused.status().message();
  }
}

// What follows the batches does so by the mean over workers, once a step, in whatever order they come.
TEST(StrictReplicas, MovingStatisticsMatchTowers) {
  const Optimizer momentum{.kind = Optimizer::Kind::momentum, .learning_rate = {}, .rate = 0.05, .momentum = 0.9, .clip_norm = 0.5};
  const Bits towers = train_towers(Net::normed, momentum, 10);
  const std::string zeros(5 * sizeof(float), 0);
  ASSERT_TRUE(towers.contains("batch_normalization/moving_mean"));
  EXPECT_NE(towers.at("batch_normalization/moving_mean"), zeros);
  EXPECT_FALSE(towers.contains("batch_normalization/moving_mean/Momentum")) << "it is no weight";
  expect_equal_bits(train_strictly(Net::normed, momentum, {2, 0, 1}, true, 10), towers);
  expect_equal_bits(train_strictly(Net::normed, momentum, {1, 2, 0}, false, 10), towers);
}

TEST(StrictReplicas, ClippedRowsMatchTowers) {
  const Optimizer clipped{.kind = Optimizer::Kind::adagrad, .learning_rate = {}, .rate = 0.1, .clip_norm = 0.05};
  const Bits towers = train_towers(Net::embedding, clipped, 10);
  expect_equal_bits(train_strictly(Net::embedding, clipped, {2, 1, 0}, false, 10), towers);
  EXPECT_LT(farthest(towers, train_joined(Net::embedding, clipped, 10)), 1e-6);
}

// Of three workers those that are there make the step, and who is not adds nothing to it.
TEST(ElasticReplicas, FewerMembersMatchFewerTowers) {
  const Optimizer adam{.kind = Optimizer::Kind::adam, .learning_rate = {}, .rate = 0.01, .clip_norm = 0.5};
  for (const Net net : {Net::dense, Net::embedding}) {
    for (const std::vector<int>& members : {std::vector{0}, {1, 2}, {0, 2}, {2, 1, 0}}) {
      std::vector<int> sorted = members;
      std::ranges::sort(sorted);
      SCOPED_TRACE(::testing::Message() << (net == Net::dense ? "dense" : "rows") << ", " << members.size() << " from " << members[0]);
      expect_equal_bits(train_elastically(net, adam, members, 6), train_towers(net, adam, 6, sorted));
    }
  }
}

const Optimizer kPlain{.kind = Optimizer::Kind::momentum, .learning_rate = {}, .rate = 0.1, .momentum = 0.5};

void step_of_both(Strict& s, int step) {
  s.train(0, step);
  s.train(1, step);
  s.update();
  s.join({0, 1, 99});
}

Bits undisturbed(int steps) {
  Strict s(Net::embedding, kPlain, 2);
  for (int step = 0; step < steps; ++step) step_of_both(s, step);
  return s.world.bits();
}

// A contribution from variables of an older step counts nowhere.
TEST(StrictReplicas, DropsAStaleContribution) {
  Strict s(Net::embedding, kPlain, 2);
  step_of_both(s, 0);
  step_of_both(s, 1);
  ReplicaWorld::Feeds feeds = s.replicas[1].feeds(77, 0);
  feeds.push_back({s.parts[1].local_step, good(Tensor::scalar<int64_t>(1))});
  const Ref<AsyncRun> stale = s.world.start(feeds, s.parts[1].train, 1);
  s.train(0, 2);
  s.update();
  // Worker 0 is in, worker 1's was dropped, so the update waits for it, and the stale step for a token.
  ASSERT_TRUE(s.taken(0));
  EXPECT_EQ(s.world.integer(s.parts[0].global_step), 2);
  stale->cancel();
  EXPECT_EQ(s.world.wait(1).code(), Code::cancelled);
  s.world.run({}, {}, {s.parts[1].local_init});
  s.train(1, 2);
  s.join({0, 1, 99});
  expect_equal_bits(s.world.bits(), undisturbed(3));
}

// Who has waited too long for a step learns whom it waited for, also where those who wait with it have given up a moment before.
TEST(StrictReplicas, LatenessNamesWhoHasNotContributed) {
  Strict s(Net::embedding, kPlain, 3);
  const auto late = [&](int w, int step) {
    const ReplicaWorld::Feeds feeds = s.replicas[static_cast<size_t>(w)].feeds(step, w * kShard);
    std::vector<Value> fed;
    std::vector<const Tensor*> tensors;
    for (const auto& [value, tensor] : feeds) fed.push_back(value), tensors.push_back(&tensor);
    const NodeId train = s.parts[static_cast<size_t>(w)].train;
    const Status status = s.world.session().run(
        {.feeds = fed, .feed_tensors = tensors, .fetches = {}, .targets = {&train, 1}, .timeout_ns = 300'000'000}, {});
    EXPECT_EQ(status.code(), Code::deadline_exceeded);
    return status.message();
  };
  const auto says = [](const std::string& text, const char* words) { return text.find(words) != std::string::npos; };
  std::string why = late(0, 0);
  EXPECT_TRUE(says(why, "worker 0 has contributed to its step, which waits for workers 1 and 2 of 3")) << why;
  why = late(2, 0);
  EXPECT_TRUE(says(why, "worker 2 has contributed to its step, which waits for worker 1 of 3")) << why;
  why = late(1, 0);
  EXPECT_TRUE(says(why, "worker 1 has contributed to its step, as all 3 have, and no update was made of it; does the chief run `update`?"))
      << why;
}

// It died after its contribution, the update went on without it, and its token was never fetched.
TEST(StrictReplicas, ARestartedWorkerJoinsAfterTheUpdate) {
  Strict s(Net::embedding, kPlain, 2);
  step_of_both(s, 0);
  const Ref<AsyncRun> doomed = s.train(1, 1);
  ASSERT_TRUE(s.contributed(1));
  doomed->cancel();
  EXPECT_EQ(s.world.wait(1).code(), Code::cancelled);
  s.train(0, 1);
  s.update();
  s.join({0, 99});
  s.world.run({}, {}, {s.parts[1].local_init});
  EXPECT_EQ(s.world.integer(s.parts[1].local_step), 2);
  step_of_both(s, 2);
  expect_equal_bits(s.world.bits(), undisturbed(3));
}

// It died after its contribution and sends the same once more.
TEST(StrictReplicas, ARestartedWorkerRepeatsItsStep) {
  Strict s(Net::embedding, kPlain, 2);
  step_of_both(s, 0);
  const Ref<AsyncRun> doomed = s.train(1, 1);
  ASSERT_TRUE(s.contributed(1));
  doomed->cancel();
  EXPECT_EQ(s.world.wait(1).code(), Code::cancelled);
  s.world.run({}, {}, {s.parts[1].local_init});
  step_of_both(s, 1);
  step_of_both(s, 2);
  expect_equal_bits(s.world.bits(), undisturbed(3));
}

// The chief died with half of the contributions taken.
TEST(StrictReplicas, ResumesAfterAFailedUpdate) {
  Strict s(Net::embedding, kPlain, 2);
  step_of_both(s, 0);
  s.train(0, 1);
  const Ref<AsyncRun> doomed = s.world.start({}, s.parts[0].update, 99);
  ASSERT_TRUE(s.taken(0));
  doomed->cancel();
  EXPECT_EQ(s.world.wait(99).code(), Code::cancelled);
  s.world.run({}, {}, {s.parts[0].resume});
  s.join({0});  // its token says: step 1 again
  EXPECT_EQ(s.world.integer(s.parts[0].local_step), 1);
  s.world.run({}, {}, {s.parts[1].local_init});
  step_of_both(s, 1);
  step_of_both(s, 2);
  expect_equal_bits(s.world.bits(), undisturbed(3));
}

TEST(SyncReplicas, TakesTheMeanOfAllThatIsThere) {
  ByHand s(SyncMode::replicas, 3, 2);
  s.world.run({}, {}, {s.parts[0].chief_init});
  for (const Replicated& part : s.parts) s.world.run({}, {}, {part.local_init});
  // Two tokens of the start let two go on at once; the third waits.
  s.train(0, 1, 2);
  ASSERT_TRUE(s.world.wait(0).ok());
  s.train(1, 2, 4);
  ASSERT_TRUE(s.world.wait(1).ok());
  s.train(2, 6, 0);
  Build b(s.world.graph());
  const Value count = b.op("ResourceAccumulatorNumAccumulated", {s.world.graph().parse_value("v/grad_accum").take()});
  ASSERT_TRUE(s.world.reaches(count, 3));
  s.world.run({}, {}, {s.parts[0].update});
  ASSERT_TRUE(s.world.wait(2).ok());
  s.expect_v(-3, -2);
  EXPECT_EQ(s.world.integer(s.parts[2].local_step), 1);
  EXPECT_EQ(s.world.integer(s.parts[0].local_step), 0);
  // Worker 0 still works on step 0: dropped, and it gets a token of step 1.
  s.train(0, 100, 100);
  ASSERT_TRUE(s.world.wait(0).ok());
  EXPECT_EQ(s.world.run({}, {count}, {})[0].values<int32_t>()[0], 0);
  EXPECT_EQ(s.world.integer(s.parts[0].local_step), 1);
  s.expect_v(-3, -2);
}

TEST(AsyncReplicas, AppliesAtOnceAndTellsStaleness) {
  ByHand s(SyncMode::async, 2, 0);
  EXPECT_EQ(s.parts[0].update, kNoNode);
  EXPECT_EQ(s.parts[0].chief_init, kNoNode);
  const int64_t read = s.world.integer(s.parts[0].local_step);
  const auto other = s.world.run(s.feeds(1, 1, 1), {s.parts[1].local_step, s.parts[1].next_step}, {s.parts[1].train});
  EXPECT_EQ(other[1].values<int64_t>()[0] - 1 - other[0].values<int64_t>()[0], 0);
  const auto late = s.world.run(s.feeds(0, 2, 3), {s.parts[0].next_step}, {s.parts[0].train});
  EXPECT_EQ(late[0].values<int64_t>()[0] - 1 - read, 1);
  s.expect_v(-3, -4);
  EXPECT_EQ(s.world.integer(s.parts[0].global_step), 2);
}

TEST(Replicas, StandWhereTheirStateStands) {
  Strict s(Net::embedding, kPlain, 2);
  const auto device = [&](const char* name) {
    const NodeId node = s.world.graph().find(name);
    return node == kNoNode ? std::string("none") : std::string(s.world.graph().node(node).device);
  };
  EXPECT_EQ(device("b1/grad_accum/1"), ReplicaWorld::ps(0));
  EXPECT_EQ(device("w2/grad_accum/0"), ReplicaWorld::ps(1));
  EXPECT_EQ(device("sync/local_step"), ReplicaWorld::worker(0));
  EXPECT_EQ(device("sync/local_step_1"), ReplicaWorld::worker(1));
}

// What a replica device setter does: variables go to the parameter server, all else to the worker.
class ToTheServer final : public DeviceFunction {
 public:
  Result<std::string> place(const OpDef& op, std::string_view, std::span<const Attr>) override {
    return op.name() == "VarHandleOp" ? ReplicaWorld::ps(1) : ReplicaWorld::worker(0);
  }
};

TEST(Replicas, FollowADeviceFunction) {
  ReplicaWorld world(1);
  world.graph().push_device_function(make_ref<ToTheServer>());
  const Replica replica(world, Net::embedding, 0, kShard);
  for (const SyncMode mode : {SyncMode::strict, SyncMode::replicas}) {
    SCOPED_TRACE(static_cast<int>(mode));
    const Replicated part = good(minimize_replicated(world.model(), replica.loss, kPlain, {.mode = mode}));
    for (NodeId id = 0; id < world.graph().node_count(); ++id) {
      const Node& node = world.graph().node(id);
      for (const Value input : node.inputs) {
        if (world.graph().info(input).dtype != DType::resource) continue;
        EXPECT_EQ(node.device, world.graph().node(input.node()).device) << node.name;
      }
    }
    world.init();
    world.run({}, {}, {part.chief_init});
    world.run({}, {}, {part.local_init});
    world.start(replica.feeds(0, 0), part.train, 0);
    world.start({}, part.update, 1);
    EXPECT_TRUE(world.wait(0).ok());
    EXPECT_TRUE(world.wait(1).ok());
  }
  EXPECT_EQ(world.graph().node(world.graph().find("sync/local_step")).device, ReplicaWorld::worker(0));
  EXPECT_EQ(world.graph().node(world.graph().find("w1")).device, ReplicaWorld::ps(1));
}

TEST(Replicas, TellsWhichVariablesAreReady) {
  ReplicaWorld world(1);
  const NamedVariable a = world.variable("a", {2}, 0), b = world.variable("b", {2}, 1);
  const std::vector<Value> flags = good(ready_flags(world.model()));
  ASSERT_EQ(flags.size(), 2u);
  world.run({}, {}, {b.assign});
  EXPECT_FALSE(world.run({}, {flags[0]}, {})[0].values<bool>()[0]);
  EXPECT_TRUE(world.run({}, {flags[1]}, {})[0].values<bool>()[0]);
  EXPECT_EQ(good(ready_flags(world.model())), flags);
}

TEST(Replicas, SaysWhatIsWrong) {
  ReplicaWorld world(1);
  const Replica replica(world, Net::dense, 0, kShard);
  const auto refused = [&](const Replication& replication) {
    return minimize_replicated(world.model(), replica.loss, {}, replication).status().code();
  };
  EXPECT_EQ(refused({.mode = static_cast<SyncMode>(5)}), Code::invalid_argument);
  EXPECT_EQ(refused({.mode = SyncMode::elastic, .total = 2, .min_workers = -1}), Code::invalid_argument);
  EXPECT_EQ(refused({.mode = SyncMode::elastic, .total = 2, .min_workers = 3}), Code::invalid_argument);
  EXPECT_EQ(refused({.mode = SyncMode::strict, .total = 2, .min_workers = 1}), Code::invalid_argument);
  EXPECT_EQ(refused({.mode = SyncMode::elastic, .total = 2, .to_aggregate = 2}), Code::invalid_argument);
  EXPECT_EQ(refused({.mode = SyncMode::ssp, .staleness = -1}), Code::invalid_argument);
  EXPECT_EQ(refused({.mode = SyncMode::async, .staleness = 1}), Code::invalid_argument);
  EXPECT_EQ(refused({.worker = 2, .total = 2}), Code::invalid_argument);
  EXPECT_EQ(refused({.worker = -1}), Code::invalid_argument);
  EXPECT_EQ(refused({.total = 0}), Code::invalid_argument);
  EXPECT_EQ(refused({.mode = SyncMode::strict, .total = 2, .to_aggregate = 1}), Code::invalid_argument);
  EXPECT_FALSE(minimize_towers(world.model(), {}, {}).ok());
  // A loss of many numbers.
  Build build(world.graph());
  const Value twice = build.op("Pack", {replica.loss, replica.loss}, {{"N", 2}});
  ASSERT_TRUE(build.ok());
  for (const Status& status :
       {minimize_replicated(world.model(), twice, {}, {}).status(), minimize_towers(world.model(), {&twice, 1}, {}).status()}) {
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_NE(status.message().find("reduce it first"), std::string::npos) << status.message();
  }
  world.model().next_tower();
  auto other = world.model().add_variable({.name = "w1", .shape = Shape::of({2, 2})});
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.status().code(), Code::failed_precondition);
}

}  // namespace
}  // namespace dtg
