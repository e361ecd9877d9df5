// Elastic workers, with gradients by hand: whose contribution counts in which step, exactly.
#include <limits>

#include "by_hand.h"

namespace dtg {
namespace {

constexpr uint64_t kUpdate = 100;

struct Elastic : ByHand {
  explicit Elastic(int total, int min_workers = 0, int64_t elements = 0) : ByHand(SyncMode::elastic, total, 0, 0, min_workers, elements) {
    world.run({}, {}, {parts[0].chief_init});
    for (const Replicated& part : parts) world.run({}, {}, {part.local_init});
  }
  void update() { world.start({}, parts[0].update, kUpdate); }
  Status updated() { return world.wait(kUpdate); }
  // The step that worker w's next contribution is to.
  int64_t local_step(int w) { return world.integer(parts[static_cast<size_t>(w)].local_step); }
  int64_t steps() { return world.integer(parts[0].global_step); }
};

TEST(ElasticReplicas, AStepIsMadeWithWhoIsThere) {
  Elastic s(3);
  // Nobody has come but worker 0.
  s.update();
  s.train(0, 4, 0);
  ASSERT_TRUE(s.updated().ok());
  ASSERT_TRUE(s.world.wait(0).ok());
  s.expect_v(-4, 0);
  // Worker 1 has computed from the variables before that: it is told so, and what it brought is dropped.
  EXPECT_EQ(s.local_step(1), 0);
  s.train(1, 100, 100);
  ASSERT_TRUE(s.world.wait(1).ok());
  EXPECT_EQ(s.local_step(1), 1);
  s.expect_v(-4, 0);
  // From now on it is waited for.
  s.update();
  s.train(0, 1, 1);
  EXPECT_FALSE(s.world.has_ended(0));
  EXPECT_FALSE(s.world.has_ended(kUpdate));
  s.train(1, 3, 1);
  ASSERT_TRUE(s.updated().ok());
  ASSERT_TRUE(s.world.wait(0).ok());
  ASSERT_TRUE(s.world.wait(1).ok());
  s.expect_v(-6, -1);
  EXPECT_EQ(s.local_step(0), 2);
  EXPECT_EQ(s.local_step(1), 2);
  EXPECT_EQ(s.steps(), 2);
}

TEST(ElasticReplicas, WhoLeavesIsNotWaitedFor) {
  Elastic s(2);
  s.train(0, 2, 0);
  s.train(1, 4, 0);
  while (s.world.has_ended(0)) {
  }
  s.update();
  ASSERT_TRUE(s.updated().ok());
  ASSERT_TRUE(s.world.wait(0).ok());
  ASSERT_TRUE(s.world.wait(1).ok());
  s.expect_v(-3, 0);
  s.update();
  s.train(0, 1, 0);
  EXPECT_FALSE(s.world.has_ended(kUpdate));
  s.world.run({}, {}, {s.parts[1].leave});
  ASSERT_TRUE(s.updated().ok());
  ASSERT_TRUE(s.world.wait(0).ok());
  s.expect_v(-4, 0);
}

TEST(ElasticReplicas, NoStepIsMadeWithFewerThanTheLeast) {
  Elastic s(3, 2);
  s.update();
  s.train(0, 1, 0);
  EXPECT_FALSE(s.world.has_ended(kUpdate));
  s.train(2, 1, 2);
  ASSERT_TRUE(s.updated().ok());
  ASSERT_TRUE(s.world.wait(0).ok());
  ASSERT_TRUE(s.world.wait(2).ok());
  s.expect_v(-1, -1);
}

// An update that was cut short while it waited, and one that is asked for again after it: what was contributed is void.
TEST(ElasticReplicas, AfterResumeAllContributeAgain) {
  Elastic s(2, 2);
  const Ref<AsyncRun> update = s.world.start({}, s.parts[0].update, kUpdate);
  s.train(0, 8, 8);
  EXPECT_FALSE(s.world.has_ended(0));
  update->cancel();
  EXPECT_EQ(s.updated().code(), Code::cancelled);
  s.world.run({}, {}, {s.parts[0].resume});
  // It ends with the step that it began with.
  ASSERT_TRUE(s.world.wait(0).ok());
  EXPECT_EQ(s.local_step(0), 0);
  s.update();
  s.train(1, 2, 2);
  EXPECT_FALSE(s.world.has_ended(kUpdate));
  s.train(0, 4, 4);
  ASSERT_TRUE(s.updated().ok());
  s.expect_v(-3, -3);
  ASSERT_TRUE(s.world.wait(0).ok());
  ASSERT_TRUE(s.world.wait(1).ok());
}

// Where elements are dealt: epoch and number.
struct Dealt : Elastic {
  using Element = std::pair<int64_t, int64_t>;
  static constexpr uint64_t kDeal = 200;
  Dealt(int total, int64_t elements, int min_workers = 0) : Elastic(total, min_workers, elements) {}
  Element deal(int w, int64_t epoch = 0) {
    const Replicated& part = parts[static_cast<size_t>(w)];
    const Tensor got = world.run({{part.epoch_to_deal, good(Tensor::scalar<int64_t>(epoch))}}, {part.dealt}, {part.deal})[0];
    return {got.values<int64_t>()[0], got.values<int64_t>()[1]};
  }
  Ref<AsyncRun> ask(int w, int64_t epoch = 0) {
    const Replicated& part = parts[static_cast<size_t>(w)];
    return world.start({{part.epoch_to_deal, good(Tensor::scalar<int64_t>(epoch))}}, part.deal, kDeal + static_cast<uint64_t>(w));
  }
  std::vector<double> ledger() {
    const Tensor now = world.run({}, {world.model().find("sync/dealt")->read}, {})[0];
    return {now.values<double>().begin(), now.values<double>().end()};
  }
};

TEST(ElasticReplicas, EachElementIsInOneUpdateOfItsEpoch) {
  Dealt s(2, 3, 2);
  EXPECT_EQ(s.deal(0), Dealt::Element(0, 0));
  EXPECT_EQ(s.deal(1), Dealt::Element(0, 1));
  EXPECT_EQ(s.deal(1), Dealt::Element(0, 1)) << "it has contributed nothing";
  s.train(0, 1, 0);
  s.train(1, 1, 0);
  s.update();
  ASSERT_TRUE(s.updated().ok());
  ASSERT_TRUE(s.world.wait(0).ok());
  ASSERT_TRUE(s.world.wait(1).ok());
  EXPECT_EQ(s.ledger(), (std::vector<double>{1, 1, 0}));
  EXPECT_EQ(s.deal(0), Dealt::Element(0, 2));
  // There is none for worker 1, and the step does not wait for it.
  s.ask(1);
  s.update();
  s.train(0, 1, 0);
  ASSERT_TRUE(s.updated().ok());
  ASSERT_TRUE(s.world.wait(0).ok());
  ASSERT_TRUE(s.world.wait(Dealt::kDeal + 1).ok());
  EXPECT_EQ(s.ledger(), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(s.deal(0), Dealt::Element(1, -1)) << "the epoch is over";
  EXPECT_EQ(s.deal(1, -1), Dealt::Element(1, 0));
  EXPECT_EQ(s.deal(0, 1), Dealt::Element(1, 1));
  EXPECT_EQ(s.steps(), 2);
}

// What it brings is in an update already.
TEST(ElasticReplicas, AnElementDoesNotCountTwice) {
  Dealt s(2, 4);
  EXPECT_EQ(s.deal(0), Dealt::Element(0, 0));
  s.update();
  s.train(0, 1, 0);
  ASSERT_TRUE(s.updated().ok());
  ASSERT_TRUE(s.world.wait(0).ok());
  s.update();
  s.train(0, 1, 0);
  ASSERT_TRUE(s.world.wait(0).ok());
  EXPECT_FALSE(s.world.has_ended(kUpdate));
  EXPECT_EQ(s.local_step(0), 1) << "it is to contribute to the step with another";
  EXPECT_EQ(s.deal(0), Dealt::Element(0, 1));
  s.train(0, 2, 0);
  ASSERT_TRUE(s.updated().ok());
  ASSERT_TRUE(s.world.wait(0).ok());
  s.expect_v(-3, 0);
  EXPECT_EQ(s.ledger(), (std::vector<double>{1, 1, 0, 0}));
  // Who leaves gives back what it has.
  EXPECT_EQ(s.deal(1), Dealt::Element(0, 2));
  EXPECT_EQ(s.deal(0), Dealt::Element(0, 3));
  s.world.run({}, {}, {s.parts[1].leave});
  s.update();
  s.train(0, 1, 0);
  ASSERT_TRUE(s.updated().ok());
  ASSERT_TRUE(s.world.wait(0).ok());
  EXPECT_EQ(s.deal(0), Dealt::Element(0, 2));
}

// With least 2 and one element left, who has none is there all the same.
TEST(ElasticReplicas, TheLastElementsOfAnEpochNeedNotMany) {
  Dealt s(2, 1, 2);
  EXPECT_EQ(s.deal(1), Dealt::Element(0, 0));
  s.ask(0);
  s.update();
  s.train(1, 1, 1);
  ASSERT_TRUE(s.updated().ok());
  ASSERT_TRUE(s.world.wait(1).ok());
  ASSERT_TRUE(s.world.wait(Dealt::kDeal).ok());
  s.expect_v(-1, -1);
}

// A loss sum(v x), so that x is the gradient.
TEST(ElasticReplicas, OnlyTheWorkerWhoseLossIsNoNumberIsTold) {
  ReplicaWorld world(2);
  const NamedVariable v = world.variable("v", {2}, 0, Initializer::zeros());
  std::vector<Value> x;
  std::vector<Replicated> parts;
  for (int w = 0; w < 2; ++w) {
    world.graph().push_device(ReplicaWorld::worker(w));
    x.push_back(world.placeholder(DType::f32, {2}));
    Build build(world.graph());
    const Value loss = build.op("Sum", {build.mul(v.read, x.back()), build.ints({0})});
    parts.push_back(good(
        minimize_replicated(world.model(), loss, {.learning_rate = {}, .rate = 1}, {.mode = SyncMode::elastic, .worker = w, .total = 2})));
    ASSERT_TRUE(world.graph().pop_device().ok());
  }
  world.init();
  world.run({}, {}, {parts[0].chief_init});
  for (const Replicated& part : parts) world.run({}, {}, {part.local_init});
  const auto train = [&](size_t w, float a, float b) {
    world.start({{x[w], good(Tensor::of<float>(Shape::of({2}), std::array{a, b}))}}, parts[w].train, w);
  };
  // Worker 1 comes, too late for the first step, and is waited for from then on.
  world.start({}, parts[0].update, kUpdate);
  train(0, 4, 0);
  ASSERT_TRUE(world.wait(kUpdate).ok());
  ASSERT_TRUE(world.wait(0).ok());
  train(1, 100, 100);
  ASSERT_TRUE(world.wait(1).ok());
  world.start({}, parts[0].update, kUpdate);
  train(0, 1, 1);
  train(1, std::numeric_limits<float>::quiet_NaN(), 1);
  const Status ill = world.wait(1);
  EXPECT_EQ(ill.code(), Code::invalid_argument);
  EXPECT_NE(ill.message().find("the loss of worker 1 is nan at step 1"), std::string::npos) << ill.message();
  EXPECT_FALSE(world.has_ended(0));
  EXPECT_FALSE(world.has_ended(kUpdate));
  train(1, 3, 1);
  for (const uint64_t tag : {uint64_t{1}, uint64_t{0}, kUpdate}) ASSERT_TRUE(world.wait(tag).ok());
  const Tensor now = world.run({}, {v.read}, {})[0];
  EXPECT_EQ(now.values<float>()[0], -6);
  EXPECT_EQ(now.values<float>()[1], -1);
}

}  // namespace
}  // namespace dtg
