// The words of dtg/strategy.h one by one: reduce, gather, split, merge calls, aggregation and synchronization of variables, saving,
// contexts and other misuse, custom strategies. Numbers are those that TensorFlow documents, or worked out by hand. One thread.
#include "strategy_world.h"

namespace outside {
namespace {

using Floats = std::vector<float>;

dtg_value constant(dtg_graph* graph, float value) {
  dtg_value out{};
  OK(dtg_const_f32(graph, value, &out));
  return out;
}

// 1, 2, 3, ... by replica.
dtg_per_replica counted(StrategyJob& job) {
  return job.run(
      [&](int32_t r, const dtg_value*, dtg_value* results) { return dtg_const_f32(job.graph, static_cast<float>(r + 1), &results[0]); }, {},
      1)[0];
}

dtg_value reduced(StrategyJob& job, dtg_reduction op, dtg_per_replica value, int32_t axis = DTG_NO_AXIS) {
  dtg_value out{};
  OK(dtg_strategy_reduce(job.strategy, op, value, axis, &out));
  return out;
}

TEST(StrategyWords, ReduceGatherAndSplit) {
  for (const dtg_cross_device cross : {DTG_REDUCE_TO_ONE_DEVICE, DTG_REDUCE_HIERARCHICAL}) {
    dtg_strategy_options options = options_of(DTG_STRATEGY_MIRRORED);
    options.cross_device = cross;
    StrategyJob job(1, options);
    const dtg_value batch = job.placeholder(DTG_F32, {-1, 2});
    const dtg_per_replica numbers = counted(job);
    dtg_per_replica shares{};
    OK(dtg_strategy_split(job.strategy, batch, &shares));
    const dtg_value sum = reduced(job, DTG_REDUCE_SUM, numbers), mean = reduced(job, DTG_REDUCE_MEAN, numbers);
    const dtg_value weighed = reduced(job, DTG_REDUCE_MEAN, shares, 0), columns = reduced(job, DTG_REDUCE_SUM, shares, -2);
    dtg_value all{}, locals[4]{};
    OK(dtg_strategy_gather(job.strategy, shares, 0, &all));
    size_t count = 0;
    OK(dtg_strategy_local_results(job.strategy, shares, locals, 4, &count));
    ASSERT_EQ(count, 4u);
    job.begin();
    EXPECT_EQ(job.number(sum), 10.0f);
    EXPECT_EQ(job.number(mean), 2.5f);
    const Floats rows = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};  // 6 rows: 2, 2, 1, 1
    const auto read = [&](dtg_value value) {
      job.feed(batch, DTG_F32, {6, 2}, rows.data());
      return job.floats(value);
    };
    EXPECT_EQ(read(locals[0]), (Floats{1, 2, 3, 4}));
    EXPECT_EQ(read(locals[1]), (Floats{5, 6, 7, 8}));
    EXPECT_EQ(read(locals[3]), (Floats{11, 12}));
    EXPECT_EQ(read(all), rows);
    EXPECT_EQ(read(columns), (Floats{36, 42}));
    EXPECT_EQ(read(weighed), (Floats{6, 7}));
  }
}

// As TensorFlow's true division: integers have a mean that is none.
TEST(StrategyWords, ReduceIntegersToAMeanAlongAnAxis) {
  StrategyJob job(1, options_of(DTG_STRATEGY_MIRRORED));
  const auto mean_of = [&](dtg_dtype dtype) {
    const dtg_value batch = job.placeholder(dtype, {-1});
    dtg_per_replica shares{};
    OK(dtg_strategy_split(job.strategy, batch, &shares));
    return std::pair(batch, reduced(job, DTG_REDUCE_MEAN, shares, 0));
  };
  const auto [longs, mean] = mean_of(DTG_I64);
  const auto [bytes, small] = mean_of(DTG_U8);
  job.begin();
  const int64_t numbers[] = {1, 2, 3, 4, 5, (int64_t{1} << 40) + 6};
  job.feed(longs, DTG_I64, {6}, numbers);
  const std::string read = job.bytes(mean);
  double got = 0;
  ASSERT_EQ(read.size(), sizeof got);
  std::memcpy(&got, read.data(), sizeof got);
  EXPECT_EQ(got, (1099511627776.0 + 21) / 6);
  const uint8_t few[] = {1, 2, 3, 4, 5, 7};
  job.feed(bytes, DTG_U8, {6}, few);
  EXPECT_EQ(job.number(small), 22.0f / 6);
}

TEST(StrategyWords, ARunIsNotGivenUpFromWhatItCalls) {
  StrategyJob job(1, options_of(DTG_STRATEGY_MIRRORED, 2));
  const auto merge = [](void* user, dtg_strategy* s, const dtg_per_replica*, size_t, dtg_per_replica*, size_t) -> dtg_error* {
    dtg_per_replica out{};
    refused(dtg_strategy_abandon_run(s), DTG_FAILED_PRECONDITION, "abandon in a merge");
    refused(dtg_strategy_end_replica(s, nullptr, 0, &out), DTG_FAILED_PRECONDITION, "end a replica in a merge");
    ++*static_cast<int*>(user);
    return nullptr;
  };
  const auto then = [](void* user, dtg_strategy* s, int32_t, const dtg_value*, size_t, dtg_value*, size_t) -> dtg_error* {
    refused(dtg_strategy_abandon_run(s), DTG_FAILED_PRECONDITION, "abandon behind a merge");
    ++*static_cast<int*>(user);
    return nullptr;
  };
  int calls = 0;
  job.run([&](int32_t, const dtg_value*,
              dtg_value*) { return dtg_strategy_merge_call(job.strategy, nullptr, 0, merge, &calls, 0, then, &calls); },
          {}, 0);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(counted(job).id != 0, true);
}

TEST(StrategyWords, MergeCallRunsOnceAndEachReplicaGoesOn) {
  StrategyJob job(1, options_of(DTG_STRATEGY_MIRRORED, 3));
  struct Merging {
    dtg_graph* graph = nullptr;
    int merges = 0, goes = 0;
    static dtg_error* merge(void* user, dtg_strategy* s, const dtg_per_replica* values, size_t, dtg_per_replica* results, size_t) {
      ++static_cast<Merging*>(user)->merges;
      dtg_value sum{};
      dtg_strategy_info info = DTG_STRATEGY_INFO_INIT;
      PASS(dtg_strategy_describe(s, &info));
      EXPECT_EQ(info.context, 1);
      PASS(dtg_strategy_reduce(s, DTG_REDUCE_SUM, values[0], DTG_NO_AXIS, &sum));
      return dtg_strategy_broadcast(s, sum, &results[0]);
    }
    static dtg_error* then(void* user, dtg_strategy* s, int32_t replica, const dtg_value* inputs, size_t, dtg_value* results, size_t) {
      ++static_cast<Merging*>(user)->goes;
      dtg_strategy_info info = DTG_STRATEGY_INFO_INIT;
      PASS(dtg_strategy_describe(s, &info));
      EXPECT_EQ(info.context, 2);
      EXPECT_EQ(info.replica, replica);
      dtg_value scale{};
      PASS(dtg_const_f32(static_cast<Merging*>(user)->graph, static_cast<float>(replica), &scale));
      return dtg_add2(static_cast<Merging*>(user)->graph, "Mul", inputs[0], scale, &results[0]);
    }
  } merging;
  merging.graph = job.graph;
  const auto made = job.run(
      [&](int32_t r, const dtg_value*, dtg_value*) -> dtg_error* {
        dtg_value own{};
        PASS(dtg_const_f32(job.graph, static_cast<float>(r + 1), &own));
        return dtg_strategy_merge_call(job.strategy, &own, 1, Merging::merge, &merging, 1, Merging::then, &merging);
      },
      {}, 1);
  EXPECT_EQ(merging.merges, 1);
  EXPECT_EQ(merging.goes, 3);
  dtg_value locals[3]{};
  size_t count = 0;
  OK(dtg_strategy_local_results(job.strategy, made[0], locals, 3, &count));
  job.begin();
  EXPECT_EQ(job.number(locals[0]), 0.0f);
  EXPECT_EQ(job.number(locals[1]), 6.0f);
  EXPECT_EQ(job.number(locals[2]), 12.0f);
}

dtg_variable added(dtg_model* model, const char* name, dtg_variable_sync sync, dtg_variable_aggregation aggregation) {
  dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
  dtg_variable out = DTG_VARIABLE_INIT;
  spec.name = name;
  spec.not_trainable = 1;
  spec.synchronization = sync;
  spec.aggregation = aggregation;
  spec.initializer.kind = DTG_INIT_CONSTANT;
  spec.initializer.a = 4;
  OK(dtg_model_add_variable(model, &spec, &out));
  return out;
}

TEST(StrategyWords, AggregationOfWritesInReplicas) {
  const struct {
    dtg_variable_aggregation how;
    float wanted;  // 1, 2, 3, 4 added to 4
  } rows[] = {{DTG_AGGREGATION_SUM, 14}, {DTG_AGGREGATION_MEAN, 6.5f}, {DTG_AGGREGATION_ONLY_FIRST_REPLICA, 5}};
  for (const auto& row : rows) {
    StrategyJob job(1, options_of(DTG_STRATEGY_MIRRORED));
    OK(dtg_strategy_enter(job.strategy));
    const dtg_variable variable = added(job.model, "count", DTG_VARIABLE_ON_WRITE, row.how);
    job.run(
        [&](int32_t r, const dtg_value*, dtg_value*) -> dtg_error* {
          dtg_value own{}, target{};
          PASS(dtg_const_f32(job.graph, static_cast<float>(r + 1), &own));
          PASS(dtg_strategy_assign(job.strategy, variable.handle, DTG_ASSIGN_ADD, own, &target));
          EXPECT_EQ(target.id, 0u);
          return nullptr;
        },
        {}, 0);
    dtg_value updates{};
    OK(dtg_strategy_updates(job.strategy, &updates));
    const auto copies = job.copies(variable.handle);
    ASSERT_EQ(copies.size(), 4u);
    job.begin();
    job.go({updates});
    for (const dtg_value copy : copies) EXPECT_EQ(job.number(copy), row.wanted);
  }
}

TEST(StrategyWords, WhatIsSynchronisedOnReadIsCombinedThere) {
  const struct {
    dtg_variable_aggregation how;
    float first, after, assigned;
  } rows[] = {{DTG_AGGREGATION_SUM, 4, 14, 20}, {DTG_AGGREGATION_MEAN, 4, 6.5f, 20}, {DTG_AGGREGATION_ONLY_FIRST_REPLICA, 4, 5, 20}};
  for (const auto& row : rows) {
    StrategyJob job(1, options_of(DTG_STRATEGY_MIRRORED));
    OK(dtg_strategy_enter(job.strategy));
    const dtg_variable variable = added(job.model, "seen", DTG_VARIABLE_ON_READ, row.how);
    job.run(
        [&](int32_t r, const dtg_value*, dtg_value*) -> dtg_error* {
          dtg_value own{}, target{};
          PASS(dtg_const_f32(job.graph, static_cast<float>(r + 1), &own));
          PASS(dtg_strategy_assign(job.strategy, variable.handle, DTG_ASSIGN_ADD, own, &target));
          EXPECT_NE(target.id, 0u);
          return nullptr;
        },
        {}, 0);
    dtg_value updates{}, set{};
    OK(dtg_strategy_updates(job.strategy, &updates));
    OK(dtg_strategy_assign(job.strategy, variable.handle, DTG_ASSIGN_SET, constant(job.graph, 20), &set));
    if (row.how == DTG_AGGREGATION_SUM) {
      refused(dtg_strategy_assign(job.strategy, variable.handle, DTG_ASSIGN_ADD, constant(job.graph, 1), nullptr), DTG_FAILED_PRECONDITION,
              "adding to a sum from outside");
    }
    job.begin();
    EXPECT_EQ(job.number(variable.read), row.first);
    job.go({updates});
    EXPECT_EQ(job.number(variable.read), row.after);
    job.go({set});
    EXPECT_EQ(job.number(variable.read), row.assigned);
  }
}

TEST(StrategyWords, AMirroredModelIsSavedOnceAndRestoredToAllCopies) {
  const std::string path = folder("mirrored.safetensors");
  Floats kernel;
  for (const bool saving : {true, false}) {
    StrategyJob job(saving ? 1 : 2, options_of(DTG_STRATEGY_MIRRORED));
    OK(dtg_strategy_enter(job.strategy));
    dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
    dtg_variable variable = DTG_VARIABLE_INIT;
    const int64_t dims[] = {3};
    spec.name = "w";
    spec.dims = dims;
    spec.rank = 1;
    spec.initializer.kind = DTG_INIT_UNIFORM;
    spec.initializer.b = 1;
    OK(dtg_model_add_variable(job.model, &spec, &variable));
    const dtg_variable count = added(job.model, "seen", DTG_VARIABLE_ON_READ, DTG_AGGREGATION_SUM);
    const auto copies = job.copies(variable.handle);
    EXPECT_EQ(dtg_model_variable_count(job.model), 2u);
    job.begin();
    if (saving) {
      kernel = job.floats(variable.read);
      OK(dtg_model_save(job.model, job.session, path.c_str(), DTG_STRLEN));
      continue;
    }
    EXPECT_NE(job.floats(variable.read), kernel);
    OK(dtg_model_restore(job.model, job.session, path.c_str(), DTG_STRLEN));
    for (const dtg_value copy : copies) EXPECT_EQ(job.floats(copy), kernel);
    EXPECT_EQ(job.number(count.read), 4.0f);
  }
  std::remove(path.c_str());
}

TEST(StrategyWords, MovingStatisticsFollowTheMeanOverReplicas) {
  StrategyJob job(1, options_of(DTG_STRATEGY_MIRRORED, 2));
  OK(dtg_strategy_enter(job.strategy));
  const dtg_value x = job.placeholder(DTG_F32, {4, 1});
  dtg_per_replica shares{};
  OK(dtg_strategy_split(job.strategy, x, &shares));
  const auto loss = job.run(
      [&](int32_t, const dtg_value* in, dtg_value* results) -> dtg_error* {
        dtg_batch_norm norm = DTG_BATCH_NORM_INIT;
        dtg_dense last = DTG_DENSE_INIT;
        dtg_value y{};
        last.units = 1;
        norm.momentum = 0.5;
        PASS(dtg_nn_batch_norm(job.model, in[0], &norm, &y));
        PASS(dtg_nn_dense(job.model, y, &last, &y));
        return dtg_nn_mean_squared_error(job.model, in[0], y, &results[0]);
      },
      {shares}, 1);
  dtg_training training = DTG_TRAINING_INIT;
  OK(dtg_strategy_minimize(job.strategy, loss[0], DTG_REDUCE_MEAN, nullptr, &training));
  const auto variables = job.variables();
  const auto means = job.copies(variables.at("batch_normalization/moving_mean").handle);
  const auto variances = job.copies(variables.at("batch_normalization/moving_variance").handle);
  job.begin();
  const float batch[] = {1, 3, 10, 20};  // means 2 and 15, variances 1 and 25
  job.feed(x, DTG_F32, {4, 1}, batch);
  job.go({training.train});
  ASSERT_EQ(means.size(), 2u);
  for (const dtg_value mean : means) EXPECT_FLOAT_EQ(job.number(mean), 0.5f * 8.5f);
  for (const dtg_value variance : variances) EXPECT_FLOAT_EQ(job.number(variance), 0.5f + 0.5f * 13.0f);
}

TEST(StrategyWords, RunsCanBeBuiltStepByStep) {
  StrategyJob job(1, options_of(DTG_STRATEGY_CENTRAL_STORAGE, 2));
  dtg_per_replica made{};
  for (int32_t r = 0; r < 2; ++r) {
    OK(dtg_strategy_begin_replica(job.strategy, r));
    const dtg_value own = constant(job.graph, static_cast<float>(r + 1));
    OK(dtg_strategy_end_replica(job.strategy, &own, 1, &made));
    EXPECT_EQ(made.id != 0, r == 1);
  }
  const dtg_value sum = reduced(job, DTG_REDUCE_SUM, made);
  OK(dtg_strategy_begin_replica(job.strategy, 0));
  refused(dtg_strategy_begin_replica(job.strategy, 1), DTG_FAILED_PRECONDITION, "the next before the end of the last");
  OK(dtg_strategy_abandon_run(job.strategy));
  job.begin();
  EXPECT_EQ(job.number(sum), 3.0f);
}

TEST(StrategyWords, MisuseSaysWhereItBelongs) {
  StrategyJob job(1, options_of(DTG_STRATEGY_MIRRORED, 2)), other(1, options_of(DTG_STRATEGY_MIRRORED, 2));
  const dtg_per_replica numbers = counted(job), foreign = counted(other);
  const dtg_value plain = constant(job.graph, 1);
  dtg_value out{};
  const auto says = [](dtg_error* error, dtg_code code, const char* words) {
    const std::string message = refused(error, code, words);
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  const auto inside = [&](const std::function<dtg_error*()>& call) {
    ReplicaFn fn = [&](int32_t, const dtg_value*, dtg_value*) { return call(); };
    return dtg_strategy_run(job.strategy, call_replica, &fn, nullptr, 0, nullptr, 0);
  };
  says(inside([&] { return dtg_strategy_reduce(job.strategy, DTG_REDUCE_SUM, numbers, DTG_NO_AXIS, &out); }), DTG_FAILED_PRECONDITION,
       "cross-replica context");
  says(inside([&] { return dtg_strategy_gather(job.strategy, numbers, 0, &out); }), DTG_FAILED_PRECONDITION, "cross-replica context");
  says(inside([&] { return dtg_strategy_enter(job.strategy); }), DTG_FAILED_PRECONDITION, "cross-replica context");
  says(inside([&] { return inside([] { return static_cast<dtg_error*>(nullptr); }); }), DTG_FAILED_PRECONDITION, "cross-replica context");
  says(inside([&] { return dtg_error_create(DTG_DATA_LOSS, "the host's own", DTG_STRLEN); }), DTG_DATA_LOSS, "the host's own");
  const auto nothing = [](void*, dtg_strategy*, const dtg_per_replica*, size_t, dtg_per_replica*, size_t) -> dtg_error* { return nullptr; };
  const auto then = [](void*, dtg_strategy*, int32_t, const dtg_value*, size_t, dtg_value*, size_t) -> dtg_error* { return nullptr; };
  says(dtg_strategy_merge_call(job.strategy, nullptr, 0, nothing, nullptr, 0, then, nullptr), DTG_FAILED_PRECONDITION, "replica context");
  says(inside([&]() -> dtg_error* {
         dtg_strategy_info info = DTG_STRATEGY_INFO_INIT;
         PASS(dtg_strategy_describe(job.strategy, &info));
         return info.replica == 1 ? nullptr : dtg_strategy_merge_call(job.strategy, nullptr, 0, nothing, nullptr, 0, then, nullptr);
       }),
       DTG_FAILED_PRECONDITION, "not all replicas");
  says(dtg_strategy_local(job.strategy, numbers, &out), DTG_FAILED_PRECONDITION, "replica context");
  says(dtg_strategy_reduce(job.strategy, DTG_REDUCE_SUM, foreign, DTG_NO_AXIS, &out), DTG_INVALID_ARGUMENT, "cannot be mixed");
  says(dtg_strategy_reduce(job.strategy, DTG_REDUCE_SUM, dtg_per_replica{plain.id}, DTG_NO_AXIS, &out), DTG_INVALID_ARGUMENT,
       "not per replica");
  says(dtg_strategy_reduce(job.strategy, DTG_REDUCE_SUM, dtg_per_replica{}, DTG_NO_AXIS, &out), DTG_INVALID_ARGUMENT, "no value");
  says(dtg_strategy_distribute(job.strategy, &plain, 1, nullptr), DTG_INVALID_ARGUMENT, "NULL");
  says(dtg_strategy_exit(job.strategy), DTG_FAILED_PRECONDITION, "not open");
  OK(dtg_strategy_enter(job.strategy));
  const dtg_variable none = added(job.model, "none", DTG_VARIABLE_ON_WRITE, DTG_AGGREGATION_NONE);
  says(inside([&] { return dtg_strategy_assign(job.strategy, none.handle, DTG_ASSIGN_SET, plain, nullptr); }), DTG_FAILED_PRECONDITION,
       "aggregation");
  dtg_strategy* second = nullptr;
  const dtg_strategy_options options = options_of(DTG_STRATEGY_ONE_DEVICE, 1);
  OK(dtg_strategy_create(job.model, &options, &second));
  says(dtg_strategy_enter(second), DTG_FAILED_PRECONDITION, "cannot be mixed");
  says(dtg_strategy_assign(second, none.handle, DTG_ASSIGN_SET, plain, nullptr), DTG_FAILED_PRECONDITION, "cannot be mixed");
  OK(dtg_strategy_exit(job.strategy));
  dtg_strategy_release(second);
  // A weight that was made outside.
  dtg_dense layer = DTG_DENSE_INIT;
  dtg_value y{};
  layer.units = 1;
  OK(dtg_nn_dense(job.model, job.placeholder(DTG_F32, {2, 2}), &layer, &y));
  dtg_training training = DTG_TRAINING_INIT;
  says(dtg_strategy_minimize(job.strategy, numbers, DTG_REDUCE_MEAN, nullptr, &training), DTG_FAILED_PRECONDITION,
       "not created in the scope");
  // Replicas that differ.
  const auto differ = [&](int32_t units_of_1) {
    ReplicaFn fn = [&](int32_t r, const dtg_value*, dtg_value*) -> dtg_error* {
      dtg_dense own = DTG_DENSE_INIT;
      own.units = r == 0 ? 2 : units_of_1;
      dtg_value x{};
      const int64_t dims[] = {2, 2};
      PASS(dtg_placeholder(job.graph, nullptr, DTG_F32, dims, 2, &x));
      return own.units == 0 ? nullptr : dtg_nn_dense(job.model, x, &own, &x);
    };
    return dtg_strategy_run(job.strategy, call_replica, &fn, nullptr, 0, nullptr, 0);
  };
  const size_t before = dtg_model_variable_count(job.model);
  says(differ(3), DTG_FAILED_PRECONDITION, "same layers");
  says(differ(0), DTG_FAILED_PRECONDITION, "same layers");
  EXPECT_EQ(dtg_model_variable_count(job.model), before);
}

TEST(StrategyWords, OptionsThatMakeNoSense) {
  StrategyJob job;
  const auto says = [&](const dtg_strategy_options& options, dtg_code code, const char* words) {
    dtg_strategy* made = nullptr;
    const std::string message = refused(dtg_strategy_create(job.model, &options, &made), code, words);
    EXPECT_NE(message.find(words), std::string::npos) << message;
    EXPECT_EQ(made, nullptr);
  };
  const char* const twice[] = {"/device:CPU:0", "CPU:0"};
  dtg_strategy_options options = options_of(DTG_STRATEGY_MIRRORED, 2);
  options.devices = twice;
  says(options, DTG_INVALID_ARGUMENT, "twice");
  says(options_of(DTG_STRATEGY_MIRRORED, 0), DTG_INVALID_ARGUMENT, "devices");
  says(options_of(DTG_STRATEGY_ONE_DEVICE, 2), DTG_INVALID_ARGUMENT, "one device");
  says(options_of(DTG_STRATEGY_MULTI_WORKER_MIRRORED), DTG_INVALID_ARGUMENT, "group of its workers");
  says(options_of(17), DTG_INVALID_ARGUMENT, "17");
  options = options_of(DTG_STRATEGY_MIRRORED);
  options.replicas_in_sync = 8;
  says(options, DTG_INVALID_ARGUMENT, "custom strategies");
  options = options_of(DTG_STRATEGY_MIRRORED);
  options.variable_device = "/device:CPU:0";
  says(options, DTG_INVALID_ARGUMENT, "central storage");
}

// A worker alone trains through parameter-server words: async, in one process.
TEST(StrategyWords, ParameterServerIsReplicasUnderTheSameWords) {
  dtg_replication share = DTG_REPLICATION_INIT;
  dtg_strategy_options options = DTG_STRATEGY_OPTIONS_INIT;
  options.kind = DTG_STRATEGY_PARAMETER_SERVER;
  options.replication = &share;
  StrategyJob job(1, options);
  dtg_strategy_info info = DTG_STRATEGY_INFO_INIT;
  OK(dtg_strategy_describe(job.strategy, &info));
  EXPECT_EQ(info.num_replicas, 1);
  EXPECT_EQ(info.between_graph, 1);
  EXPECT_EQ(info.should_init, 1);
  dtg_replicated replicated = DTG_REPLICATED_INIT;
  refused(dtg_strategy_replicated(job.strategy, &replicated), DTG_FAILED_PRECONDITION, "before minimize");
  dtg_value in[3];
  placeholders(job, in);
  const auto loss =
      job.run([&](int32_t, const dtg_value*, dtg_value* results) { return Network{}.add(job.model, job.graph, in, results); }, {}, 1);
  dtg_training training = DTG_TRAINING_INIT;
  OK(dtg_strategy_minimize(job.strategy, loss[0], DTG_REDUCE_MEAN, nullptr, &training));
  OK(dtg_strategy_replicated(job.strategy, &replicated));
  EXPECT_EQ(replicated.train.id, training.train.id);
  dtg_variable step = DTG_VARIABLE_INIT;
  OK(dtg_model_global_step(job.model, &step));
  job.begin();
  Batch(0, 4).feed(job, in, 0, 4);
  job.go({training.train});
  int64_t count = 0;
  const std::string read = job.bytes(step.read);
  ASSERT_EQ(read.size(), sizeof count);
  std::memcpy(&count, read.data(), sizeof count);
  EXPECT_EQ(count, 1);
}

// A strategy that does everything in its own way, and is counted doing it.
struct Custom {
  dtg_graph* graph = nullptr;
  int variables = 0, begins = 0, ends = 0, reduces = 0, batches = 0, writes = 0;

  static Custom& of(void* user) { return *static_cast<Custom*>(user); }
  static dtg_error* create_variable(void* user, dtg_strategy*, dtg_variable_place* place) {
    static const char* const one[] = {"/device:CPU:0"};
    ++of(user).variables;
    if (std::strstr(place->name, "bias")) {
      place->devices = one;
      place->num_devices = 1;
    }
    return nullptr;
  }
  static dtg_error* begin(void* user, dtg_strategy*, int32_t) {
    ++of(user).begins;
    return dtg_graph_push_name_scope(of(user).graph, "custom", DTG_STRLEN);
  }
  static dtg_error* end(void* user, dtg_strategy*, int32_t) {
    ++of(user).ends;
    return dtg_graph_pop_name_scope(of(user).graph);
  }
  // From the last to the first.
  dtg_error* add_up(dtg_reduction op, const dtg_value* parts, size_t count, dtg_value* out) const {
    *out = parts[count - 1];
    for (size_t i = count - 1; i-- > 0;) PASS(dtg_add2(graph, "AddV2", *out, parts[i], out));
    if (op == DTG_REDUCE_SUM) return nullptr;
    dtg_value divisor{};
    PASS(dtg_const_f32(graph, static_cast<float>(count), &divisor));
    return dtg_add2(graph, "RealDiv", *out, divisor, out);
  }
  static dtg_error* reduce_to(void* user, dtg_strategy*, dtg_reduction op, const dtg_value* parts, size_t count, dtg_value* out) {
    ++of(user).reduces;
    return of(user).add_up(op, parts, count, out);
  }
  static dtg_error* batch(void* user, dtg_strategy*, dtg_reduction op, const dtg_value* parts, size_t variables, size_t count,
                          dtg_value* outs) {
    ++of(user).batches;
    for (size_t v = 0; v < variables; ++v) PASS(of(user).add_up(op, parts + v * count, count, &outs[v]));
    return nullptr;
  }
  static dtg_error* around_write(void* user, dtg_strategy*, const char*, int32_t) {
    ++of(user).writes;
    return nullptr;
  }
};

TEST(StrategyWords, ACustomStrategyIsAskedAtEveryStep) {
  Custom custom;
  dtg_strategy_hooks hooks = DTG_STRATEGY_HOOKS_INIT;
  hooks.create_variable = Custom::create_variable;
  hooks.begin_replica = Custom::begin;
  hooks.end_replica = Custom::end;
  hooks.reduce_to = Custom::reduce_to;
  hooks.batch_reduce_to = Custom::batch;
  hooks.begin_update = Custom::around_write;
  dtg_strategy_options options = options_of(DTG_STRATEGY_CUSTOM, 3);
  options.hooks = &hooks;
  options.user = &custom;
  options.replicas_in_sync = 6;
  StrategyJob job(7, options);
  custom.graph = job.graph;
  dtg_value in[3];
  placeholders(job, in);
  OK(dtg_strategy_enter(job.strategy));
  std::vector<dtg_per_replica> shares(3);
  for (int i = 0; i < 3; ++i) OK(dtg_strategy_split(job.strategy, in[i], &shares[static_cast<size_t>(i)]));
  const auto loss =
      job.run([&](int32_t, const dtg_value* inputs, dtg_value* results) { return Network{}.add(job.model, job.graph, inputs, results); },
              shares, 1);
  dtg_training training = DTG_TRAINING_INIT;
  OK(dtg_strategy_minimize(job.strategy, loss[0], DTG_REDUCE_MEAN, nullptr, &training));
  const dtg_value mean = reduced(job, DTG_REDUCE_MEAN, loss[0]);
  const auto variables = job.variables();
  EXPECT_EQ(job.copies(variables.at("custom/dense/kernel").handle).size(), 3u);
  EXPECT_EQ(job.copies(variables.at("custom/dense/bias").handle).size(), 1u);
  dtg_strategy_info info = DTG_STRATEGY_INFO_INIT;
  OK(dtg_strategy_describe(job.strategy, &info));
  EXPECT_EQ(info.num_replicas_in_sync, 6);
  EXPECT_EQ(custom.variables, 4);
  EXPECT_EQ(custom.begins, 3);
  EXPECT_EQ(custom.ends, 3);
  EXPECT_EQ(custom.batches, 1);
  EXPECT_EQ(custom.reduces, 1);
  EXPECT_EQ(custom.writes, 4);  // by copies(): three copies of one variable, one of the other
  job.begin();
  float before = 0, after = 0;
  for (int step = 0; step < 20; ++step) {
    const Batch batch(0, 9);
    batch.feed(job, in, 0, 9);
    const std::string read = job.go({training.train}, mean);
    ASSERT_EQ(read.size(), 4u);
    std::memcpy(step == 0 ? &before : &after, read.data(), 4);
  }
  EXPECT_LT(after, before);
}

}  // namespace
}  // namespace outside
