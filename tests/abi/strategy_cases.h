// Cases of training under a strategy, and the same by one process that cuts the batch into the same shards: for the tests that compare.
// Public headers only. One thread, but by workers, which have one each.
#pragma once

#include <array>

#include "strategy_world.h"

namespace outside {

inline constexpr int kSteps = 3;
using Bytes = std::map<std::string, std::string>;

struct Case {
  dtg_optimizer_kind optimizer;
  bool rows, uneven;
  double clip = 0;
  double dropped = 0;
  std::string name() const {
    static const char* const names[] = {"sgd",    "momentum", "adam", "adagrad", "rmsprop", "adamw", "adadelta",
                                        "adamax", "nadam",    "ftrl", "lion",    "lamb",    "lars",  "adafactor"};
    return std::string(names[optimizer]) + (rows ? " rows" : " dense") + (uneven ? " uneven" : " even") + (clip > 0 ? " clipped" : "") +
           (dropped > 0 ? " with dropout" : "");
  }
  int64_t batch() const { return uneven ? 10 : 8; }
  dtg_optimizer settings() const {
    dtg_optimizer made = DTG_OPTIMIZER_INIT;
    made.kind = optimizer;
    made.rate = 0.1;
    made.momentum = optimizer == DTG_OPT_MOMENTUM || optimizer == DTG_OPT_RMSPROP || optimizer == DTG_OPT_LARS ? 0.5 : 0;
    made.clip_norm = clip;
    return made;
  }
  // Means over shares are right for equal shares; others are weighted by their rows.
  Network network() const { return {rows, uneven ? 10.0 : 0.0, dropped}; }
  dtg_reduction reduce() const { return uneven ? DTG_REDUCE_SUM : DTG_REDUCE_MEAN; }
};

// One device, no strategy, the shards of the batch fed one by one.
inline Bytes by_towers(const Case& c, int64_t shards) {
  StrategyJob job;
  std::vector<std::array<dtg_value, 3>> in(static_cast<size_t>(shards));
  std::vector<dtg_value> losses(in.size());
  const Network network = c.network();
  for (size_t s = 0; s < in.size(); ++s) {
    placeholders(job, in[s].data());
    if (s > 0) OK(dtg_model_next_tower(job.model));
    OK(network.add(job.model, job.graph, in[s].data(), &losses[s]));
  }
  const dtg_optimizer settings = c.settings();
  dtg_training training = DTG_TRAINING_INIT;
  OK(dtg_nn_minimize_towers(job.model, losses.data(), losses.size(), &settings, &training));
  job.begin();
  for (int step = 0; step < kSteps; ++step) {
    const Batch batch(step, c.batch());
    const int64_t each = c.batch() / shards, more = c.batch() % shards;
    int64_t begin = 0;
    for (int64_t s = 0; s < shards; ++s) {
      const int64_t end = begin + each + (s < more ? 1 : 0);
      batch.feed(job, in[static_cast<size_t>(s)].data(), begin, end);
      begin = end;
    }
    job.go({training.train});
  }
  return job.all_bytes();
}

}  // namespace outside
