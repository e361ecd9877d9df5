// ByHand: workers that train a variable together with gradients that a test gives. One thread.
#pragma once

#include <array>
#include <vector>

#include "replica_world.h"
#include "strategy/replicas.h"

namespace dtg {

// v, and gradients for it by hand.
struct ByHand {
  ByHand(SyncMode mode, int total, int to_aggregate, int staleness = 0, int min_workers = 0, int64_t elements = 0) : world(total) {
    v = world.variable("v", {2}, 0, Initializer::zeros());
    for (int w = 0; w < total; ++w) {
      world.graph().push_device(ReplicaWorld::worker(w));
      gradients.push_back(world.placeholder(DType::f32, {2}));
      const VariableGradient given{v, {.dense = gradients.back(), .values = {}, .indices = {}, .dense_shape = {}}};
      const Replication share{.mode = mode,
                              .worker = w,
                              .total = total,
                              .to_aggregate = to_aggregate,
                              .staleness = staleness,
                              .min_workers = min_workers,
                              .elements = elements};
      parts.push_back(good(apply_replicated(world.model(), {&given, 1}, {.learning_rate = {}, .rate = 1}, share)));
      EXPECT_TRUE(world.graph().pop_device().ok());
    }
    world.init();
  }
  ReplicaWorld::Feeds feeds(int w, float a, float b) const {
    return {{gradients[static_cast<size_t>(w)], good(Tensor::of<float>(Shape::of({2}), std::array{a, b}))}};
  }
  void train(int w, float a, float b) { world.start(feeds(w, a, b), parts[static_cast<size_t>(w)].train, static_cast<uint64_t>(w)); }
  // Waits until worker w has counted so many steps; for so many looks, where it is not to happen.
  bool applied(int w, int64_t steps, int looks = 1 << 20) {
    const Value clocks = world.graph().parse_value("sync/clocks/Read").take();
    for (int i = 0; i < looks; ++i) {
      if (world.run({}, {clocks}, {})[0].values<int64_t>()[w] == steps) return true;
    }
    return false;
  }
  void expect_v(float a, float b) {
    const Tensor value = world.run({}, {v.read}, {})[0];
    EXPECT_EQ(value.values<float>()[0], a);
    EXPECT_EQ(value.values<float>()[1], b);
  }
  ReplicaWorld world;
  NamedVariable v;
  std::vector<Value> gradients;
  std::vector<Replicated> parts;
};

}  // namespace dtg
