// Training under every strategy of one process, through the public header: against one process that cuts the batch into the same shards,
// for every optimizer, dense and row gradients, even and uneven batches. One thread.
#include "strategy_cases.h"

namespace outside {
namespace {

std::vector<Case> cases() {
  std::vector<Case> all;
  for (dtg_optimizer_kind kind = DTG_OPT_SGD; kind <= DTG_OPT_ADAFACTOR; ++kind) {
    for (const bool rows : {false, true}) {
      for (const bool uneven : {false, true}) all.push_back({kind, rows, uneven});
    }
  }
  all.push_back({DTG_OPT_MOMENTUM, false, false, 0.05});
  all.push_back({DTG_OPT_MOMENTUM, true, true, 0.05});
  all.push_back({DTG_OPT_ADAM, false, false, 0, 0.5});
  return all;
}

Bytes by_strategy(const Case& c, const dtg_strategy_options& options) {
  StrategyJob job(7, options);
  dtg_value in[3];
  placeholders(job, in);
  OK(dtg_strategy_enter(job.strategy));
  std::vector<dtg_per_replica> shares(3);
  for (int i = 0; i < 3; ++i) OK(dtg_strategy_split(job.strategy, in[i], &shares[static_cast<size_t>(i)]));
  const Network network = c.network();
  const auto loss = job.run(
      [&](int32_t, const dtg_value* inputs, dtg_value* results) { return network.add(job.model, job.graph, inputs, results); }, shares, 1);
  const dtg_optimizer settings = c.settings();
  dtg_training training = DTG_TRAINING_INIT;
  OK(dtg_strategy_minimize(job.strategy, loss[0], c.reduce(), &settings, &training));
  OK(dtg_strategy_exit(job.strategy));
  std::map<std::string, std::vector<dtg_value>> copies;
  for (const auto& [name, variable] : job.variables()) {
    if (name != "global_step") copies[name] = job.copies(variable.handle);
  }
  job.begin();
  for (int step = 0; step < kSteps; ++step) {
    Batch(step, c.batch()).feed(job, in, 0, c.batch());
    job.go({training.train});
  }
  Bytes all = job.all_bytes();
  for (const auto& [name, reads] : copies) {
    EXPECT_EQ(reads.size(), options.kind == DTG_STRATEGY_MIRRORED ? options.num_devices : 1u) << name;
    for (const dtg_value read : reads) EXPECT_EQ(job.bytes(read), all[name]) << c.name() << ": a copy of " << name << " went its own way";
  }
  return all;
}

Bytes by_one_process(const Case& c) {
  StrategyJob job;
  dtg_value in[3], loss{};
  placeholders(job, in);
  OK(Network{c.rows}.add(job.model, job.graph, in, &loss));
  const dtg_optimizer settings = c.settings();
  dtg_training training = DTG_TRAINING_INIT;
  OK(dtg_nn_minimize(job.model, loss, &settings, &training));
  job.begin();
  for (int step = 0; step < kSteps; ++step) {
    Batch(step, c.batch()).feed(job, in, 0, c.batch());
    job.go({training.train});
  }
  return job.all_bytes();
}

void expect_near(const Bytes& got, const Bytes& wanted, const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (const auto& [name, bytes] : wanted) {
    if (name == "global_step") {
      EXPECT_EQ(got.at(name), bytes) << what;
      continue;
    }
    ASSERT_EQ(got.at(name).size(), bytes.size()) << what << ", " << name;
    for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
      float a = 0, b = 0;
      std::memcpy(&a, got.at(name).data() + i, 4);
      std::memcpy(&b, bytes.data() + i, 4);
      EXPECT_NEAR(a, b, 2e-5 * std::max(1.0f, std::fabs(b))) << what << ", " << name << "[" << i / 4 << "]";
    }
  }
}

TEST(Strategy, TrainsLikeOneProcessWithTheSameShards) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name());
    const Bytes mirrored = by_strategy(c, options_of(DTG_STRATEGY_MIRRORED));
    const Bytes central = by_strategy(c, options_of(DTG_STRATEGY_CENTRAL_STORAGE));
    EXPECT_EQ(mirrored, central);
    dtg_strategy_options tree = options_of(DTG_STRATEGY_MIRRORED);
    tree.cross_device = DTG_REDUCE_HIERARCHICAL;
    const Bytes hierarchical = by_strategy(c, tree);
    const Bytes one = by_strategy(c, options_of(DTG_STRATEGY_ONE_DEVICE, 1));
    if (!c.uneven) {
      EXPECT_EQ(mirrored, by_towers(c, 4));
      EXPECT_EQ(one, by_towers(c, 1));
    }
    EXPECT_EQ(hierarchical, by_strategy(c, tree));
    if (c.dropped > 0) continue;  // one process alone has other layers that draw
    const Bytes alone = by_one_process(c);
    expect_near(mirrored, alone, "mirrored");
    expect_near(hierarchical, alone, "hierarchical");
    expect_near(one, alone, "one device");
  }
}

}  // namespace
}  // namespace outside
