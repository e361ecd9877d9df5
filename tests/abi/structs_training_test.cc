// The structs of training that cross the ABI, of every size, and the pointers and numbers inside them: optimizers, strategies, meshes,
// coordinators, variables in shards, trainers and fits. The others stand in structs_test.cc.
#include <dtg/mesh.h>
#include <dtg/sharded.h>

#include "struct_sizes.h"

namespace outside {
namespace {

using TrainingStructs = World;

TEST_F(TrainingStructs, OptimizersOfEverySize) {
  dtg_model* model = nullptr;
  OK(dtg_model_create(h.graph, 1, &model));
  dtg_variable w = DTG_VARIABLE_INIT;
  OK(dtg_variable_f32(model, "w", 1, &w));
  dtg_value loss;
  OK(dtg_add1(h.graph, "Square", w.read, &loss));
  const dtg_optimizer optimizer = DTG_OPTIMIZER_INIT;
  dtg_training training = DTG_TRAINING_INIT;
  each_size("dtg_optimizer", optimizer, [&](auto* given) { return dtg_nn_minimize(model, loss, given, &training); });
  each_size("dtg_training", training, [&](auto* answer) { return dtg_nn_minimize(model, loss, nullptr, answer); });
  dtg_replication replication = DTG_REPLICATION_INIT;
  replication.mode = DTG_SYNC_STRICT;
  dtg_replicated replicated = DTG_REPLICATED_INIT;
  each_size("dtg_replication", replication,
            [&](auto* given) { return dtg_nn_minimize_replicated(model, loss, nullptr, given, &replicated); });
  dtg_all_reduce how = DTG_ALL_REDUCE_INIT;
  how.group_size = 2;
  each_size("dtg_all_reduce", how, [&](auto* given) { return dtg_nn_minimize_all_reduce(model, loss, nullptr, given, &training); });
  each_size("dtg_replicated", replicated,
            [&](auto* answer) { return dtg_nn_minimize_replicated(model, loss, nullptr, &replication, answer); });
  dtg_model_release(model);
}

TEST_F(TrainingStructs, PointersInsideOptimizers) {
  dtg_model* model = nullptr;
  OK(dtg_model_create(h.graph, 1, &model));
  dtg_variable w = DTG_VARIABLE_INIT;
  OK(dtg_variable_f32(model, "w", 1, &w));
  dtg_value loss;
  OK(dtg_add1(h.graph, "Square", w.read, &loss));
  dtg_training training = DTG_TRAINING_INIT;
  const auto refuse = [&](const char* what, auto&& change) {
    dtg_optimizer optimizer = DTG_OPTIMIZER_INIT;
    change(optimizer);
    refused(dtg_nn_minimize(model, loss, &optimizer, &training), DTG_INVALID_ARGUMENT, what);
  };
  refuse("a kind that is none", [](auto& o) { o.kind = DTG_OPT_ADAFACTOR + 1; });
  refuse("variables without a list", [](auto& o) { o.num_variables = 1; });
  refuse("exempt variables without a list", [](auto& o) { o.num_undecayed = SIZE_MAX; });
  refuse("what is no variable", [&](auto& o) { o.variables = &loss, o.num_variables = 1; });
  refuse("what is no variable, exempt", [&](auto& o) { o.undecayed = &w.read, o.num_undecayed = 1; });
  refuse("two ways of clipping", [](auto& o) { o.clip_value = o.clip_norm = 1; });
  refuse("a clip below zero", [](auto& o) { o.clip_each_norm = -1; });
  refuse("a count below zero", [](auto& o) { o.accumulation_steps = -1; });
  refuse("a momentum above one", [](auto& o) { o.use_ema = 1, o.ema_momentum = 1.5; });
  refuse("a momentum of steps above one", [](auto& o) { o.kind = DTG_OPT_MOMENTUM, o.momentum = 2; });
  refuse("the momentum of no mean", [](auto& o) { o.ema_momentum = 0.9; });
  refuse("steps of no mean", [](auto& o) { o.ema_overwrite_every = 5; });
  refuse("the share of no slow copy", [](auto& o) { o.lookahead_share = 0.5; });
  refuse("two rates", [&](auto& o) { o.rate = 0.1, o.learning_rate = loss; });
  refuse("the trust of another kind", [](auto& o) { o.trust = 0.1; });
  refuse("accumulators of another kind", [](auto& o) { o.kind = DTG_OPT_ADAM, o.initial_accumulator = 0.1; });
  dtg_optimizer words = DTG_OPTIMIZER_INIT;
  words.undecayed_names = "w, LayerNorm,bias";
  const std::string why = refused(dtg_nn_minimize(model, loss, &words, &training), DTG_INVALID_ARGUMENT, "words of no variable");
  EXPECT_NE(why.find("undecayed_names: \"LayerNorm\" is in the name of no trainable variable"), std::string::npos) << why;
  EXPECT_NE(why.find("there is w"), std::string::npos) << why;
  refuse("a power that is none", [](auto& o) { o.kind = DTG_OPT_FTRL, o.rate_power = 1; });
  dtg_optimizer optimizer = DTG_OPTIMIZER_INIT;
  optimizer.kind = DTG_OPT_ADAM;
  optimizer.lazy = optimizer.amsgrad = 1;
  refused(dtg_nn_minimize(model, loss, &optimizer, &training), DTG_UNIMPLEMENTED, "lazy and amsgrad");
  dtg_schedule good = DTG_SCHEDULE_INIT;
  good.rate = good.steps = 1;
  dtg_value step, rate;
  OK(dtg_const_f32(h.graph, 1, &step));
  each_size("dtg_schedule", good, [&](auto* given) { return dtg_nn_schedule(model, step, given, &rate); });
  const auto refuse_schedule = [&](const char* what, auto&& change) {
    dtg_schedule schedule = good;
    change(schedule);
    refused(dtg_nn_schedule(model, step, &schedule, &rate), DTG_INVALID_ARGUMENT, what);
  };
  const int64_t falling[] = {3, 2};
  const double rates[] = {3, 2, 1};
  refuse_schedule("a kind that is none", [](auto& s) { s.kind = DTG_SCHEDULE_COSINE_DECAY_RESTARTS + 1; });
  refuse_schedule("no steps", [](auto& s) { s.steps = 0; });
  refuse_schedule("periods that shrink", [](auto& s) { s.kind = DTG_SCHEDULE_COSINE_DECAY_RESTARTS, s.t_mul = 0.5; });
  refuse_schedule("values that are missing", [](auto& s) { s.kind = DTG_SCHEDULE_PIECEWISE_CONSTANT; });
  refuse_schedule("boundaries that fall", [&](auto& s) {
    s.kind = DTG_SCHEDULE_PIECEWISE_CONSTANT, s.boundaries = falling, s.values = rates, s.num_boundaries = 2;
  });
  dtg_model_release(model);
}

TEST_F(TrainingStructs, StrategiesOfEverySize) {
  const char* const device = "/device:CPU:0";
  dtg_strategy_options options = DTG_STRATEGY_OPTIONS_INIT;
  options.kind = DTG_STRATEGY_CUSTOM;
  options.devices = &device;
  options.num_devices = 1;
  const auto create = [&](const dtg_strategy_options* given) {
    dtg_strategy* made = nullptr;
    dtg_error* const error = dtg_strategy_create(h.model, given, &made);
    dtg_strategy_release(made);
    return error;
  };
  each_size("dtg_strategy_options", options, create);
  const dtg_strategy_hooks hooks = DTG_STRATEGY_HOOKS_INIT;
  each_size("dtg_strategy_hooks", hooks, [&](auto* given) {
    options.hooks = given;
    return create(&options);
  });
  const dtg_strategy_info info = DTG_STRATEGY_INFO_INIT;
  each_size("dtg_strategy_info", info, [&](auto* answer) { return dtg_strategy_describe(h.strategy, answer); });
  const auto refuse = [&](const char* what, auto&& change) {
    dtg_strategy_options given = DTG_STRATEGY_OPTIONS_INIT;
    given.devices = &device;
    given.num_devices = 1;
    change(given);
    refused(create(&given), DTG_INVALID_ARGUMENT, what);
  };
  const char* const hole = nullptr;
  const char* const none = "/foo:1";
  const char* const other = "/job:worker/task:7";
  refuse("devices", [](auto& o) { o.devices = nullptr; });
  refuse("devices without end", [](auto& o) { o.num_devices = SIZE_MAX; });
  refuse("a missing device", [&](auto& o) { o.devices = &hole; });
  refuse("a device that is none", [&](auto& o) { o.devices = &none; });
  refuse("hooks without a custom strategy", [&](auto& o) { o.hooks = &hooks; });
  refuse("a group of a mirrored strategy", [&](auto& o) { o.kind = DTG_STRATEGY_MIRRORED, o.group = h.group; });
  const auto of_workers = [](auto& o) { o.kind = DTG_STRATEGY_MULTI_WORKER_MIRRORED; };
  refuse("workers without a group", of_workers);
  refuse("a group that is none", [&](auto& o) { of_workers(o), o.group = reinterpret_cast<dtg_group*>(h.graph); });
  refuse("packs of less than nothing", [&](auto& o) { of_workers(o), o.group = h.group, o.pack_bytes = -1; });
  refuse("a negative timeout", [&](auto& o) { of_workers(o), o.group = h.group, o.timeout_ns = -1; });
  refuse("an algorithm that is none", [&](auto& o) { of_workers(o), o.group = h.group, o.algorithm = 4; });
  refuse("a device of another worker", [&](auto& o) { of_workers(o), o.group = h.group, o.devices = &other; });
}

TEST_F(TrainingStructs, CoordinatorsAndPartitionersOfEverySize) {
  dtg_coordinator_options options = DTG_COORDINATOR_OPTIONS_INIT;
  // The session is local, which is looked at when the struct has been read.
  each_size("dtg_coordinator_options", options, [this](auto* given) {
    dtg_coordinator* made = nullptr;
    dtg_error* const error = dtg_coordinator_create(h.session, given, &made);
    if (dtg_error_code(error) != DTG_FAILED_PRECONDITION) return error;
    dtg_error_release(error);
    return static_cast<dtg_error*>(nullptr);
  });
  const dtg_schedule_options how = DTG_SCHEDULE_OPTIONS_INIT;
  each_size("dtg_schedule_options", how,
            [this](auto* given) { return dtg_coordinator_schedule(h.coordinator, h.closure, nullptr, 0, given, nullptr); });
  dtg_partitioner cuts = DTG_PARTITIONER_INIT;
  cuts.num_shards = 3;
  const int64_t dims[] = {8, 4};
  int64_t shards = 0;
  each_size("dtg_partitioner", cuts, [&](auto* given) { return dtg_partitioner_shards(given, DTG_F32, dims, 2, &shards); });
  EXPECT_EQ(shards, 3);
  const auto wrong = [&](const char* what, auto&& change) {
    dtg_partitioner given = cuts;
    change(given);
    refused(dtg_partitioner_shards(&given, DTG_F32, dims, 2, &shards), DTG_INVALID_ARGUMENT, what);
  };
  wrong("a kind that is none", [](auto& p) { p.kind = 3; });
  wrong("an axis that is none", [](auto& p) { p.axis = 2; });
  wrong("no shards", [](auto& p) { p.num_shards = 0; });
  wrong("a size of nothing", [](auto& p) { p.kind = DTG_PARTITIONER_MAX_SIZE; });
}

TEST_F(TrainingStructs, MeshesAndShardsOfEverySize) {
  const char* const device = "/device:CPU:0";
  dtg_mesh_options grid = DTG_MESH_OPTIONS_INIT;
  grid.devices = &device;
  grid.num_devices = 1;
  each_size("dtg_mesh_options", grid, [&](auto* given) {
    dtg_mesh* made = nullptr;
    dtg_error* const error = dtg_mesh_create(h.model, given, &made);
    dtg_mesh_release(made);
    return error;
  });
  dtg_value batch{};
  const int64_t dims[] = {2, 3};
  OK(dtg_placeholder(h.graph, "batch", DTG_F32, dims, 2, &batch));
  const dtg_mesh_step step = DTG_MESH_STEP_INIT;
  each_size("dtg_mesh_step", step, [&](auto* answer) {
    int32_t more = 0;
    OK(dtg_mesh_begin(h.mesh, &batch, 1, 1, 1));
    dtg_error* const error = dtg_mesh_next(h.mesh, answer, &more);
    EXPECT_EQ(answer->num_batch, error ? 0u : 1u);
    OK(dtg_mesh_abandon(h.mesh));
    return error;
  });
  dtg_variable_spec table = DTG_VARIABLE_SPEC_INIT;
  table.name = "table";
  table.dtype = DTG_F32;
  table.dims = dims;
  table.rank = 2;
  dtg_partitioner halves = DTG_PARTITIONER_INIT;
  halves.num_shards = 2;
  OK(dtg_model_add_sharded_variable(h.model, &table, &halves, nullptr));
  const dtg_sharded sharded = DTG_SHARDED_INIT;
  each_size("dtg_sharded", sharded, [&](auto* answer) { return dtg_model_find_sharded_variable(h.model, "table", DTG_STRLEN, answer); });
}

TEST_F(TrainingStructs, PlacesOfVariables) {
  dtg_strategy_hooks hooks = DTG_STRATEGY_HOOKS_INIT;
  int asked = 0;
  hooks.create_variable = [](void* user, dtg_strategy*, dtg_variable_place* place) -> dtg_error* {
    says_its_size("dtg_variable_place", *place);
    ++*static_cast<int*>(user);
    return nullptr;
  };
  const char* const device = "/device:CPU:0";
  dtg_strategy_options options = DTG_STRATEGY_OPTIONS_INIT;
  options.kind = DTG_STRATEGY_CUSTOM;
  options.devices = &device;
  options.num_devices = 1;
  options.hooks = &hooks;
  options.user = &asked;
  dtg_strategy* strategy = nullptr;
  OK(dtg_strategy_create(h.model, &options, &strategy));
  OK(dtg_strategy_enter(strategy));
  dtg_variable w = DTG_VARIABLE_INIT;
  OK(dtg_variable_f32(h.model, "placed", 1, &w));
  OK(dtg_strategy_exit(strategy));
  EXPECT_EQ(asked, 1);
  dtg_strategy_release(strategy);
}

TEST_F(TrainingStructs, TrainersAndFitsOfEverySize) {
  dtg_value loss{};
  OK(dtg_graph_find(h.graph, "loss", DTG_STRLEN, &loss));
  dtg_trainer_options options = DTG_TRAINER_OPTIONS_INIT;
  options.session = h.session;
  options.feeds = &v.x;
  options.num_feeds = 1;
  options.train = v.z;
  options.loss = loss;
  const auto create = [&](const dtg_trainer_options* given) {
    dtg_trainer* made = nullptr;
    dtg_error* const error = dtg_trainer_create(h.model, given, &made);
    dtg_trainer_release(made);
    return error;
  };
  each_size("dtg_trainer_options", options, create);
  const auto wrong = [&](const char* what, auto&& change) {
    dtg_trainer_options given = options;
    change(given);
    refused(create(&given), DTG_INVALID_ARGUMENT, what);
  };
  wrong("no feeds", [](auto& o) { o.num_feeds = 0; });
  wrong("feeds without a list", [](auto& o) { o.feeds = nullptr; });
  wrong("feeds without end", [](auto& o) { o.num_feeds = SIZE_MAX; });
  wrong("more inputs than feeds", [](auto& o) { o.num_inputs = 2; });
  wrong("a loss that is none", [](auto& o) { o.loss = {}; });
  wrong("a loss that is no scalar", [this](auto& o) { o.loss = v.z; });
  wrong("a switch that is no bool", [this](auto& o) { o.training = v.x; });
  wrong("an output that is none", [](auto& o) { o.num_outputs = 1; });
  // Data of two numbers for the feed x, and what a fit of it refuses.
  dtg_dataset* data = nullptr;
  OK(dtg_dataset_tensors(nullptr, &h.tensor, 1, &data));
  OK(dtg_dataset_batch(data, 2, 0));
  dtg_fit fit = DTG_FIT_INIT;
  const auto begin = [&](const dtg_fit* how) { return dtg_trainer_begin(h.trainer, data, nullptr, how); };
  each_size("dtg_fit", fit, begin);
  const dtg_early_stopping stopping = DTG_EARLY_STOPPING_INIT;
  each_size("dtg_early_stopping", stopping, [&](auto* given) {
    fit.early_stopping = given;
    return begin(&fit);
  });
  fit.early_stopping = nullptr;
  dtg_fit_event event = DTG_FIT_EVENT_INIT;
  each_size("dtg_fit_event", event, [&](auto* given) {
    OK(begin(&fit));
    return dtg_trainer_next(h.trainer, given);
  });
  const auto no_fit = [&](const char* what, auto&& change) {
    dtg_fit given = DTG_FIT_INIT;
    dtg_early_stopping rule = DTG_EARLY_STOPPING_INIT;
    dtg_plateau plateau = DTG_PLATEAU_INIT;
    change(given, rule, plateau);
    refused(begin(&given), DTG_INVALID_ARGUMENT, what);
  };
  no_fit("less than no epochs", [](auto& f, auto&, auto&) { f.epochs = -1; });
  no_fit("steps below 0", [](auto& f, auto&, auto&) { f.steps_per_epoch = -1; });
  no_fit("a time below 0", [](auto& f, auto&, auto&) { f.time_limit_ns = -1; });
  no_fit("what needs a directory, of which \"\" is none", [](auto& f, auto&, auto&) { f.directory = "", f.keep = 1; });
  no_fit("the best of a fit without a directory", [](auto& f, auto&, auto&) { f.best = "loss"; });
  no_fit("a value that is not told", [](auto& f, auto& s, auto&) { f.early_stopping = &s, s.monitor = "val_loss"; });
  no_fit("patience below 0", [](auto& f, auto& s, auto&) { f.early_stopping = &s, s.patience = -1; });
  no_fit("better in no way", [](auto& f, auto& s, auto&) { f.early_stopping = &s, s.better = 3; });
  no_fit("a factor of 1", [](auto& f, auto&, auto& p) { f.plateau = &p, p.factor = 1; });
  no_fit("a rate that is not the trainer's", [](auto& f, auto&, auto& p) { f.plateau = &p; });
  refused(dtg_trainer_begin(h.trainer, h.dataset, nullptr, nullptr), DTG_INVALID_ARGUMENT, "data of another type");
  refused(dtg_trainer_begin(h.trainer, data, data, nullptr), DTG_INVALID_ARGUMENT, "one data set for both");
  OK(dtg_dataset_repeat(data, -1));
  refused(begin(nullptr), DTG_INVALID_ARGUMENT, "data without end");
  refused(dtg_trainer_evaluate(h.trainer, data, 0, nullptr, &event), DTG_INVALID_ARGUMENT, "an evaluation without end");
  refused(dtg_trainer_evaluate(h.trainer, data, -1, nullptr, &event), DTG_INVALID_ARGUMENT, "steps below 0");
  refused(dtg_trainer_predict(h.trainer, data, nullptr, nullptr, 0), DTG_FAILED_PRECONDITION, "no outputs");
  refused(dtg_trainer_next(h.trainer, &event), DTG_FAILED_PRECONDITION, "no fit");
  dtg_dataset_release(data);
  dtg_metric_values metric{sizeof(dtg_metric_values), v.z, v.z, loss};
  refused(dtg_trainer_add_metric(h.trainer, "a b", DTG_STRLEN, &metric), DTG_INVALID_ARGUMENT, "a name with a space");
  refused(dtg_trainer_add_metric(h.trainer, "val_x", DTG_STRLEN, &metric), DTG_ALREADY_EXISTS, "the name of a validation");
  OK(dtg_trainer_add_metric(h.trainer, "m", DTG_STRLEN, &metric));
  refused(dtg_trainer_add_metric(h.trainer, "m", DTG_STRLEN, &metric), DTG_ALREADY_EXISTS, "a name twice");
  metric.result = v.z;
  refused(dtg_trainer_add_metric(h.trainer, "n", DTG_STRLEN, &metric), DTG_INVALID_ARGUMENT, "a result that is no scalar");
  metric.update = {};
  refused(dtg_trainer_add_metric(h.trainer, "n", DTG_STRLEN, &metric), DTG_INVALID_ARGUMENT, "an update that is none");
}

// A fit of a trainer whose learning rate is its own: what a plateau lowers, and what callbacks are told of.
TEST_F(TrainingStructs, PlateausAndCallbacksOfEverySize) {
  dtg_model* model = nullptr;
  OK(dtg_model_create(h.graph, 1, &model));
  dtg_variable w = DTG_VARIABLE_INIT;
  OK(dtg_variable_f32(model, "w", 1, &w));
  dtg_trainer_options options = DTG_TRAINER_OPTIONS_INIT;
  options.session = h.session;
  options.feeds = &v.x;
  options.num_feeds = 1;
  OK(dtg_add1(h.graph, "Square", w.read, &options.loss));
  dtg_trainer* trainer = nullptr;
  OK(dtg_trainer_create(model, &options, &trainer));
  dtg_dataset* data = nullptr;
  OK(dtg_dataset_tensors(nullptr, &h.tensor, 1, &data));
  OK(dtg_dataset_batch(data, 2, 1));
  dtg_fit fit = DTG_FIT_INIT;
  const dtg_plateau plateau = DTG_PLATEAU_INIT;
  each_size("dtg_plateau", plateau, [&](auto* given) {
    fit.plateau = given;
    return dtg_trainer_begin(trainer, data, nullptr, &fit);
  });
  int done = 0;
  dtg_fit_callbacks callbacks = DTG_FIT_CALLBACKS_INIT;
  callbacks.user = &done;
  callbacks.done = [](void* user, dtg_trainer*, const dtg_fit_event*) -> dtg_error* { return ++*static_cast<int*>(user), nullptr; };
  each_size("dtg_fit_callbacks", callbacks, [&](auto* given) { return dtg_trainer_fit(trainer, data, nullptr, nullptr, given); });
  EXPECT_EQ(done, 66);  // the size of today twice, and 64 with a tail of zeros
  dtg_dataset_release(data);
  dtg_trainer_release(trainer);
  dtg_model_release(model);
}

}  // namespace
}  // namespace outside
