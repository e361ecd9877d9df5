// What is trained and measured under a strategy beside plain losses: metrics of all replicas, gradients added up over steps, sampled
// losses, batch normalization, two strategies on one model; and what a run that failed leaves behind. Public headers only. One thread.
#include "strategy_world.h"

namespace outside {
namespace {

using Bytes = std::map<std::string, std::string>;
constexpr int64_t kRows = 10;

struct Job : StrategyJob {
  explicit Job(const dtg_strategy_options& options) : StrategyJob(7, options) { placeholders(*this, in); }
  dtg_per_replica share(int i) {
    dtg_per_replica out{};
    OK(dtg_strategy_split(strategy, in[i], &out));
    return out;
  }
  void feed(int step) { Batch(step, kRows).feed(*this, in, 0, kRows); }
  dtg_value in[3];
};

TEST(StrategyTraining, MetricsCountWhatAllReplicasSaw) {
  for (const dtg_strategy_kind kind : {DTG_STRATEGY_MIRRORED, DTG_STRATEGY_CENTRAL_STORAGE, DTG_STRATEGY_ONE_DEVICE}) {
    Job job(options_of(kind, kind == DTG_STRATEGY_ONE_DEVICE ? 1 : 3));
    dtg_metric_values seen = DTG_METRIC_VALUES_INIT;
    job.run(
        [&](int32_t, const dtg_value* own, dtg_value*) {
          dtg_metric mean = DTG_METRIC_INIT;
          mean.kind = DTG_METRIC_MEAN;
          return dtg_nn_metric(job.model, &mean, dtg_value{}, own[0], dtg_value{}, &seen);
        },
        {job.share(2)}, 0);
    job.begin();
    double sum = 0, count = 0;
    for (int step = 0; step < 3; ++step) {
      for (const float y : Batch(step, kRows).y) sum += static_cast<double>(y), ++count;
      job.feed(step);
      float got = 0;
      std::memcpy(&got, job.go({seen.update}, seen.result).data(), sizeof got);
      EXPECT_FLOAT_EQ(got, static_cast<float>(sum / count));
      EXPECT_EQ(job.number(seen.result), got);
    }
    job.go({seen.reset});
    EXPECT_EQ(job.number(seen.result), 0);
  }
}

dtg_optimizer adam(int64_t accumulated) {
  dtg_optimizer made = DTG_OPTIMIZER_INIT;
  made.kind = DTG_OPT_ADAM;
  made.rate = 0.1;
  made.clip_norm = 0.1;
  made.accumulation_steps = accumulated;
  return made;
}

// Four steps of a network over dense layers or a table.
Bytes accumulated(const dtg_strategy_options& options, bool rows) {
  Job job(options);
  const Network network{rows, double{kRows}};
  OK(dtg_strategy_enter(job.strategy));
  const auto loss =
      job.run([&](int32_t, const dtg_value* own, dtg_value* results) { return network.add(job.model, job.graph, own, results); },
              {job.share(0), job.share(1), job.share(2)}, 1);
  const dtg_optimizer settings = adam(2);
  dtg_training training = DTG_TRAINING_INIT;
  OK(dtg_strategy_minimize(job.strategy, loss[0], DTG_REDUCE_SUM, &settings, &training));
  OK(dtg_strategy_exit(job.strategy));
  std::map<std::string, std::vector<dtg_value>> copies;
  for (const auto& [name, variable] : job.variables()) {
    if (name != "global_step") copies[name] = job.copies(variable.handle);
  }
  job.begin();
  Bytes first = job.all_bytes();
  for (int step = 0; step < 4; ++step) {
    job.feed(step);
    job.go({training.train});
    const Bytes now = job.all_bytes();
    const std::string weights = rows ? "embedding/embeddings" : "dense/kernel";
    EXPECT_EQ(now.at(weights) == first.at(weights), step % 2 == 0) << step;
    first = now;
  }
  for (const auto& [name, reads] : copies) {
    for (const dtg_value read : reads) EXPECT_EQ(job.bytes(read), first[name]) << name;
  }
  return first;
}

TEST(StrategyTraining, GradientsAddUpOverSteps) {
  for (const bool rows : {false, true}) {
    const Bytes mirrored = accumulated(options_of(DTG_STRATEGY_MIRRORED, 3), rows);
    EXPECT_EQ(mirrored, accumulated(options_of(DTG_STRATEGY_CENTRAL_STORAGE, 3), rows));
    const Bytes one = accumulated(options_of(DTG_STRATEGY_ONE_DEVICE, 1), rows);
    ASSERT_EQ(one.size(), mirrored.size());
    EXPECT_EQ(one.at("global_step"), mirrored.at("global_step"));
  }
}

Bytes sampled(const dtg_strategy_options& options) {
  Job job(options);
  OK(dtg_strategy_enter(job.strategy));
  const auto loss = job.run(
      [&](int32_t, const dtg_value* own, dtg_value* results) {
        dtg_sampled_loss what = DTG_SAMPLED_LOSS_INIT;
        what.classes = 6;
        what.samples = 3;
        return dtg_nn_sampled_loss(job.model, &what, own[1], own[0], results);
      },
      {job.share(0), job.share(1)}, 1);
  dtg_training training = DTG_TRAINING_INIT;
  OK(dtg_strategy_minimize(job.strategy, loss[0], DTG_REDUCE_MEAN, nullptr, &training));
  OK(dtg_strategy_exit(job.strategy));
  job.begin();
  const Bytes before = job.all_bytes();
  job.feed(0);
  job.go({training.train});
  EXPECT_NE(job.all_bytes(), before);
  return job.all_bytes();
}

TEST(StrategyTraining, SampledLossesLookUpWhereTheTablesStand) {
  EXPECT_EQ(sampled(options_of(DTG_STRATEGY_CENTRAL_STORAGE, 2)), sampled(options_of(DTG_STRATEGY_MIRRORED, 2)));
}

// Two runs, of which the first is trained, by its results or by what is made of them.
Bytes normalized(bool distributed) {
  Job job(options_of(DTG_STRATEGY_MIRRORED, 2));
  OK(dtg_strategy_enter(job.strategy));
  const auto build = [&](int32_t, const dtg_value* own, dtg_value* results) -> dtg_error* {
    dtg_value y = own[0];
    dtg_dense one = DTG_DENSE_INIT;
    one.units = 1;
    PASS(dtg_nn_batch_norm(job.model, y, nullptr, &y));
    PASS(dtg_nn_dense(job.model, y, &one, &y));
    return dtg_nn_mean_squared_error(job.model, own[1], y, results);
  };
  const std::vector<dtg_per_replica> shares = {job.share(0), job.share(2)};
  dtg_per_replica loss = job.run(build, shares, 1)[0];
  job.run(build, shares, 1);
  if (distributed) {
    dtg_value values[2];
    size_t count = 0;
    OK(dtg_strategy_local_results(job.strategy, loss, values, 2, &count));
    for (dtg_value& value : values) OK(dtg_add1(job.graph, "Identity", value, &value));
    OK(dtg_strategy_distribute(job.strategy, values, 2, &loss));
  }
  const auto all = job.variables();
  const dtg_value first[] = {all.at("dense/kernel").handle};
  dtg_optimizer settings = DTG_OPTIMIZER_INIT;
  settings.variables = first;
  settings.num_variables = 1;
  dtg_training training = DTG_TRAINING_INIT;
  OK(dtg_strategy_minimize(job.strategy, loss, DTG_REDUCE_MEAN, &settings, &training));
  OK(dtg_strategy_exit(job.strategy));
  job.begin();
  const Bytes before = job.all_bytes();
  job.feed(0);
  job.go({training.train});
  const Bytes after = job.all_bytes();
  EXPECT_NE(after.at("batch_normalization/moving_mean"), before.at("batch_normalization/moving_mean"));
  EXPECT_EQ(after.at("batch_normalization_1/moving_mean"), before.at("batch_normalization_1/moving_mean"));
  return after;
}

TEST(StrategyTraining, StatisticsFollowTheRunThatTheLossesComeFrom) { EXPECT_EQ(normalized(true), normalized(false)); }

TEST(StrategyTraining, TwoStrategiesTrainTheirOwnVariablesOfOneModel) {
  Job job(options_of(DTG_STRATEGY_MIRRORED, 2));
  dtg_strategy_options second = options_of(DTG_STRATEGY_CENTRAL_STORAGE, 2);
  second.devices += 2;
  dtg_strategy* other = nullptr;
  OK(dtg_strategy_create(job.model, &second, &other));
  dtg_training trainings[2] = {DTG_TRAINING_INIT, DTG_TRAINING_INIT};
  dtg_per_replica losses[2];
  dtg_strategy* const each[] = {job.strategy, other};
  for (int s = 0; s < 2; ++s) {
    std::vector<dtg_per_replica> shares(3);
    for (int i = 0; i < 3; ++i) OK(dtg_strategy_split(each[s], job.in[i], &shares[static_cast<size_t>(i)]));
    ReplicaFn build = [&](int32_t, const dtg_value* own, dtg_value* out) { return Network{}.add(job.model, job.graph, own, out); };
    OK(dtg_strategy_run(each[s], call_replica, &build, shares.data(), 3, &losses[s], 1));
  }
  refused(dtg_strategy_minimize(other, losses[1], DTG_REDUCE_MEAN, nullptr, &trainings[1]), DTG_FAILED_PRECONDITION, "all variables");
  const auto all = job.variables();
  const char* const names[2][2] = {{"dense/kernel", "dense_1/kernel"}, {"dense_2/kernel", "dense_3/kernel"}};
  for (int s = 0; s < 2; ++s) {
    const dtg_value own[] = {all.at(names[s][0]).handle, all.at(names[s][1]).handle};
    dtg_optimizer settings = DTG_OPTIMIZER_INIT;
    settings.variables = own;
    settings.num_variables = 2;
    OK(dtg_strategy_minimize(each[s], losses[s], DTG_REDUCE_MEAN, &settings, &trainings[s]));
  }
  job.begin();
  for (int s = 0; s < 2; ++s) {
    const Bytes before = job.all_bytes();
    job.feed(s);
    job.go({trainings[s].train});
    const Bytes after = job.all_bytes();
    for (int k = 0; k < 2; ++k) {
      EXPECT_NE(after.at(names[s][k]), before.at(names[s][k]));
      EXPECT_EQ(after.at(names[1 - s][k]), before.at(names[1 - s][k]));
    }
  }
  dtg_strategy_release(other);
}

TEST(StrategyTraining, AFailedRunLeavesNoStaleTargetsAndNoOtherNames) {
  Job job(options_of(DTG_STRATEGY_MIRRORED, 2));
  dtg_dense units = DTG_DENSE_INIT;
  units.units = 2;
  bool fails = true;
  ReplicaFn build = [&](int32_t, const dtg_value* own, dtg_value* out) -> dtg_error* {
    dtg_value init{};
    dtg_variable step = DTG_VARIABLE_INIT;
    PASS(dtg_nn_dense(job.model, own[0], &units, out));
    PASS(dtg_model_global_step(job.model, &step));
    PASS(dtg_model_init(job.model, &init));
    return fails ? dtg_add1(job.graph, "NoSuchOp", own[0], out) : nullptr;
  };
  const dtg_per_replica share = job.share(0);
  dtg_per_replica made{};
  refused(dtg_strategy_run(job.strategy, call_replica, &build, &share, 1, &made, 1), DTG_NOT_FOUND, "a run that fails");
  fails = false;
  OK(dtg_strategy_run(job.strategy, call_replica, &build, &share, 1, &made, 1));
  job.begin();
  const Bytes all = job.all_bytes();  // all of them have values
  EXPECT_EQ(all.size(), 3u);
  EXPECT_EQ(all.count("global_step"), 1u);
}

TEST(StrategyTraining, AHookWhoseDeviceIsNoneIsNamed) {
  dtg_strategy_hooks hooks = DTG_STRATEGY_HOOKS_INIT;
  hooks.create_variable = [](void*, dtg_strategy*, dtg_variable_place* place) -> dtg_error* {
    static const char* const nowhere[] = {"/device:EMU:zero"};
    place->devices = nowhere;
    place->num_devices = 1;
    return nullptr;
  };
  dtg_strategy_options options = options_of(DTG_STRATEGY_CUSTOM, 2);
  options.hooks = &hooks;
  Job job(options);
  OK(dtg_strategy_enter(job.strategy));
  dtg_dense units = DTG_DENSE_INIT;
  units.units = 2;
  dtg_value y{};
  const std::string said = refused(dtg_nn_dense(job.model, job.in[0], &units, &y), DTG_INVALID_ARGUMENT, "a device that is none");
  EXPECT_NE(said.find("create_variable of the strategy"), said.npos) << said;
  OK(dtg_strategy_exit(job.strategy));
}

}  // namespace
}  // namespace outside
