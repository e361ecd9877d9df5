// Structs that cross the ABI: every size from 0 to sizeof + 64, with a zero and a non-zero tail; the pointers inside
// them; values of other graphs; handles released twice and in every order.
#include <algorithm>
#include <cstring>

#include "world.h"

namespace outside {
namespace {

using Structs = World;

// Calls fn with a copy of `good` that claims each size. Sizes that this library knows, or with nothing new in them,
// are accepted; `accepted` tells of a call whether that was so.
template <class T, class Fn>
void each_size(const char* what, const T& good, Fn&& fn) {
  constexpr size_t most = sizeof(T) + 64;
  for (size_t size = 0; size <= most; ++size) {
    for (bool zero : {true, false}) {
      alignas(T) unsigned char bytes[most + 8] = {};
      std::memcpy(bytes, &good, sizeof(T));
      std::memcpy(bytes, &size, sizeof size);
      if (!zero && size > sizeof(T)) bytes[size - 1] = 1;
      dtg_error* const error = fn(reinterpret_cast<T*>(bytes));
      const std::string name = std::string(what) + " of size " + std::to_string(size) + (zero ? "" : ", tail not zero");
      if (size < sizeof(T) || (!zero && size > sizeof(T))) {
        EXPECT_NE(refused(error, DTG_INVALID_ARGUMENT, name).find(what), std::string::npos) << name;
      } else {
        EXPECT_EQ(error, nullptr) << name << ": " << text_of(error);
        dtg_error_release(error);
      }
      // The host's bytes after the struct are its own.
      for (size_t i = most; i < sizeof bytes; ++i) EXPECT_EQ(bytes[i], 0) << name;
    }
  }
}

TEST_F(Structs, OptionsOfEverySize) {
  const dtg_runtime_options runtime = DTG_RUNTIME_OPTIONS_INIT;
  each_size("dtg_runtime_options", runtime, [](auto* options) {
    dtg_runtime* made = nullptr;
    dtg_error* const error = dtg_runtime_create(options, &made);
    dtg_runtime_release(made);
    return error;
  });
  const dtg_session_options session = DTG_SESSION_OPTIONS_INIT;
  each_size("dtg_session_options", session, [this](auto* options) {
    dtg_session* made = nullptr;
    dtg_error* const error = dtg_session_connect(nullptr, nullptr, 0, h.graph, options, &made);
    dtg_session_release(made);
    return error;
  });
  const dtg_csv_options csv = DTG_CSV_OPTIONS_INIT;
  const std::string path = folder("rows.csv");
  ASSERT_EQ(std::system(("printf 'a,b\\n1,2\\n' > '" + path + "'").c_str()), 0);
  each_size("dtg_csv_options", csv, [&](auto* options) {
    dtg_dataset* made = nullptr;
    dtg_error* const error = dtg_dataset_csv(nullptr, path.c_str(), DTG_STRLEN, options, &made);
    dtg_dataset_release(made);
    return error;
  });
  const dtg_json_lines_options lines = DTG_JSON_LINES_OPTIONS_INIT;
  const std::string objects = folder("rows.jsonl");
  ASSERT_EQ(std::system(("printf '{\"a\": 1}\\n' > '" + objects + "'").c_str()), 0);
  each_size("dtg_json_lines_options", lines, [&](auto* options) {
    dtg_dataset* made = nullptr;
    dtg_error* const error = dtg_dataset_json_lines(nullptr, objects.c_str(), DTG_STRLEN, options, &made);
    dtg_dataset_release(made);
    return error;
  });
  dtg_checkpoint_options sets = DTG_CHECKPOINT_OPTIONS_INIT;
  const std::string directory = folder("sets");
  sets.directory = directory.c_str();
  each_size("dtg_checkpoint_options", sets, [this](auto* options) {
    dtg_checkpoint* made = nullptr;
    dtg_error* const error = dtg_checkpoint_open(h.model, h.session, options, &made);
    dtg_checkpoint_release(made);
    return error;
  });
  dtg_group_options group = DTG_GROUP_OPTIONS_INIT;
  group.name = "sizes";
  each_size("dtg_group_options", group, [this](auto* options) {
    dtg_group* made = nullptr;
    dtg_error* const error = dtg_group_join(h.server, options, &made);
    dtg_group_release(made);
    return error;
  });
  const dtg_collective_args collective = DTG_COLLECTIVE_ARGS_INIT;
  each_size("dtg_collective_args", collective, [this](auto* args) {
    dtg_tensor* made = nullptr;
    dtg_error* const error = dtg_group_all_reduce(h.group, h.tensor, args, &made);
    dtg_tensor_release(made);
    return error;
  });
  const dtg_event_writer_options events = DTG_EVENT_WRITER_OPTIONS_INIT;
  each_size("dtg_event_writer_options", events, [&](auto* options) {
    dtg_event_writer* made = nullptr;
    dtg_error* const error = dtg_event_writer_open((path + ".events").c_str(), DTG_STRLEN, options, &made);
    dtg_event_writer_release(made);
    return error;
  });
  ASSERT_EQ(std::system(("rm -rf '" + path + "' '" + path + ".events'").c_str()), 0);
}

TEST_F(Structs, RunsAndNodesOfEverySize) {
  dtg_run_args run = DTG_RUN_ARGS_INIT;
  const dtg_value feeds[] = {v.x, v.y};
  const dtg_tensor* tensors[] = {h.tensor, h.tensor};
  run.feeds = feeds;
  run.feed_tensors = tensors;
  run.num_feeds = 2;
  run.fetches = &v.z;
  run.num_fetches = 1;
  each_size("dtg_run_args", run, [&](dtg_run_args* args) {
    dtg_tensor* fetched = nullptr;
    args->fetched = &fetched;
    dtg_error* const error = dtg_session_run(h.session, args);
    dtg_tensor_release(fetched);
    return error;
  });
  dtg_op_spec spec = DTG_OP_SPEC_INIT;
  spec.type = "NoOp";
  each_size("dtg_op_spec", spec, [&](auto* given) {
    dtg_value out;
    return dtg_graph_add_op(h.graph, given, &out, 1);
  });
  dtg_attr attr = DTG_ATTR_INIT;
  attr.name = "dtype";
  attr.kind = DTG_ATTR_TYPE;
  attr.i = DTG_F32;
  each_size("dtg_attr", attr, [&](auto* given) {
    dtg_op_spec placeholder = DTG_OP_SPEC_INIT;
    placeholder.type = "Placeholder";
    placeholder.attrs = given;
    placeholder.num_attrs = 1;
    placeholder.attr_stride = sizeof(dtg_attr) + 64;
    dtg_value out;
    return dtg_graph_add_op(h.graph, &placeholder, &out, 1);
  });
}

TEST_F(Structs, LayersOfEverySize) {
  dtg_value image, ids;
  const int64_t dims[] = {2, 8, 8, 1}, rows[] = {2};
  OK(dtg_placeholder(h.graph, "image", DTG_F32, dims, 4, &image));
  OK(dtg_placeholder(h.graph, "ids", DTG_I64, rows, 1, &ids));
  dtg_value out;
  dtg_dense dense = DTG_DENSE_INIT;
  dense.units = 2;
  each_size("dtg_dense", dense, [&](auto* layer) { return dtg_nn_dense(h.model, image, layer, &out); });
  dtg_conv2d conv = DTG_CONV2D_INIT;
  conv.filters = 2;
  each_size("dtg_conv2d", conv, [&](auto* layer) { return dtg_nn_conv2d(h.model, image, layer, &out); });
  dtg_value sequence;
  const int64_t steps[] = {2, 5, 4};
  OK(dtg_placeholder(h.graph, "sequence", DTG_F32, steps, 3, &sequence));
  const dtg_batch_norm batch = DTG_BATCH_NORM_INIT;
  each_size("dtg_batch_norm", batch, [&](auto* layer) { return dtg_nn_batch_norm(h.model, image, layer, &out); });
  dtg_norm norm = DTG_NORM_INIT;
  norm.groups = 1;
  each_size("dtg_norm", norm, [&](auto* layer) { return dtg_nn_layer_norm(h.model, image, layer, &out); });
  dtg_recurrent recurrent = DTG_RECURRENT_INIT;
  recurrent.units = 2;
  dtg_recurrent_result result = DTG_RECURRENT_RESULT_INIT;
  each_size("dtg_recurrent", recurrent, [&](auto* layer) { return dtg_nn_recurrent(h.model, sequence, layer, &result); });
  each_size("dtg_recurrent_result", result, [&](auto* given) { return dtg_nn_recurrent(h.model, sequence, &recurrent, given); });
  const dtg_value none = {0};
  const dtg_loss loss = DTG_LOSS_INIT;
  each_size("dtg_loss", loss, [&](auto* given) { return dtg_nn_loss(h.model, given, image, image, none, &out); });
  dtg_sampled_loss sampled = DTG_SAMPLED_LOSS_INIT;
  sampled.classes = sampled.samples = 2;
  dtg_value rows_of_two;
  const int64_t matrix[] = {2, 2};
  OK(dtg_placeholder(h.graph, "rows", DTG_F32, matrix, 2, &rows_of_two));
  each_size("dtg_sampled_loss", sampled, [&](auto* given) { return dtg_nn_sampled_loss(h.model, given, ids, rows_of_two, &out); });
  const dtg_metric metric = DTG_METRIC_INIT;
  dtg_metric_values measured = DTG_METRIC_VALUES_INIT;
  each_size("dtg_metric", metric, [&](auto* given) { return dtg_nn_metric(h.model, given, none, image, none, &measured); });
  each_size("dtg_metric_values", measured, [&](auto* given) { return dtg_nn_metric(h.model, &metric, none, image, none, given); });
  dtg_attention attention = DTG_ATTENTION_INIT;
  attention.heads = attention.key_width = 2;
  each_size("dtg_attention", attention, [&](auto* layer) { return dtg_nn_attention(h.model, sequence, sequence, layer, &out); });
  dtg_conv windows = DTG_CONV_INIT;
  windows.filters = 2;
  each_size("dtg_conv", windows, [&](auto* layer) { return dtg_nn_conv1d(h.model, sequence, layer, &out); });
  const dtg_pool2d pool = DTG_POOL2D_INIT;
  each_size("dtg_pool2d", pool, [&](auto* layer) { return dtg_nn_max_pool2d(h.model, image, layer, &out); });
  dtg_embedding embedding = DTG_EMBEDDING_INIT;
  embedding.rows = embedding.width = 3;
  each_size("dtg_embedding", embedding, [&](auto* layer) { return dtg_nn_embedding(h.model, ids, layer, &out); });
  dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
  spec.name = "weights";
  each_size("dtg_variable_spec", spec, [&](auto* given) { return dtg_model_add_variable(h.model, given, nullptr); });
  const dtg_split split = DTG_SPLIT_INIT;
  dtg_dataset* numbers = nullptr;
  const dtg_tensor* const column = h.tensor;
  OK(dtg_dataset_tensors(h.runtime, &column, 1, &numbers));
  dtg_split half = split;
  half.fraction = 0.5;
  each_size("dtg_split", half, [&](auto* given) {
    dtg_dataset *train = nullptr, *held_out = nullptr;
    dtg_error* const error = dtg_dataset_split(numbers, given, &train, &held_out);
    dtg_dataset_release(train);
    dtg_dataset_release(held_out);
    return error;
  });
  dtg_dataset_release(numbers);
  dtg_export exported = DTG_EXPORT_INIT;
  const char* const names[] = {"image"};
  const char* const answers[] = {"same"};
  exported.input_names = names, exported.inputs = &image, exported.num_inputs = 1;
  exported.output_names = answers, exported.outputs = &image, exported.num_outputs = 1;
  const std::string file = folder("exported");
  each_size("dtg_export", exported, [&](auto* given) { return dtg_model_export(h.model, h.session, given, file.c_str(), DTG_STRLEN); });
  std::remove(file.c_str());
  const dtg_variable variable = DTG_VARIABLE_INIT;
  each_size("dtg_variable", variable, [&](auto* answer) { return dtg_model_variable(h.model, 0, answer); });
}

TEST_F(Structs, TasksOfEverySize) {
  const dtg_task task = DTG_TASK_INIT;
  each_size("dtg_task", task, [](auto* self) {
    dtg_cluster* none = nullptr;
    return dtg_cluster_from_tf_config("{}", DTG_STRLEN, &none, self);
  });
  each_size("dtg_task", task, [](auto* asked) {
    dtg_string* target = nullptr;
    dtg_error* const error = dtg_cluster_target(nullptr, asked, &target);
    dtg_string_release(target);
    return error;
  });
}

TEST_F(Structs, ServersOfEverySize) {
  const std::string directory = folder("sizes");
  ASSERT_EQ(::mkdir(directory.c_str(), 0700), 0);
  dtg_cluster* cluster = nullptr;
  OK(dtg_cluster_parse(("worker=unix:" + directory + "/w").c_str(), DTG_STRLEN, &cluster));
  const dtg_server_options options = DTG_SERVER_OPTIONS_INIT;
  each_size("dtg_server_options", options, [&](auto* given) {
    dtg_server* server = nullptr;
    dtg_error* const error = dtg_server_start(h.runtime, cluster, given, &server);
    dtg_server_release(server);
    return error;
  });
  dtg_cluster_release(cluster);
  ASSERT_EQ(std::system(("rm -rf '" + directory + "'").c_str()), 0);
}

TEST_F(Structs, DeviceSettersOfEverySize) {
  dtg_device_setter good = DTG_DEVICE_SETTER_INIT;
  good.ps_tasks = 2;
  each_size("dtg_device_setter", good, [this](auto* setter) {
    dtg_error* const error = dtg_graph_push_device_setter(h.graph, setter);
    if (!error) OK(dtg_graph_pop_device(h.graph));
    return error;
  });
  const auto refuse = [&](const char* what, auto&& change) {
    dtg_device_setter setter = good;
    change(setter);
    refused(dtg_graph_push_device_setter(h.graph, &setter), DTG_INVALID_ARGUMENT, what);
    refused(dtg_graph_pop_device(h.graph), DTG_FAILED_PRECONDITION, what);
  };
  refuse("tasks below zero", [](auto& s) { s.ps_tasks = -1; });
  refuse("more tasks than a cluster may have", [](auto& s) { s.ps_tasks = INT32_MAX; });
  refuse("a strategy that is none", [](auto& s) { s.strategy = 2; });
  refuse("a reserved field", [](auto& s) { s.reserved = 1; });
  refuse("a device that is none", [](auto& s) { s.ps_device = "/foo:1"; });
  refuse("a worker that is none", [](auto& s) { s.worker_device = "/foo:1"; });
  refuse("ops without their names", [](auto& s) { s.num_ps_ops = 1; });
  refuse("a closed cluster", [this](auto& s) { s.cluster = closed.cluster; });
  refuse("a cluster, but no job", [this](auto& s) { s.cluster = h.cluster, s.ps_device = "/device:CPU:0"; });
}

TEST_F(Structs, OptimizersOfEverySize) {
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

TEST_F(Structs, PointersInsideOptimizers) {
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

TEST_F(Structs, StrategiesOfEverySize) {
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

TEST_F(Structs, CoordinatorsAndPartitionersOfEverySize) {
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

TEST_F(Structs, TrainersAndFitsOfEverySize) {
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
  no_fit("a directory without a name", [](auto& f, auto&, auto&) { f.directory = ""; });
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

TEST_F(Structs, PointersInsideRunArguments) {
  const dtg_value feeds[] = {v.x, v.y};
  const dtg_tensor* tensors[] = {h.tensor, h.tensor};
  dtg_tensor* fetched[] = {nullptr};
  dtg_run_args good = DTG_RUN_ARGS_INIT;
  good.feeds = feeds;
  good.feed_tensors = tensors;
  good.num_feeds = 2;
  good.fetches = &v.z;
  good.fetched = fetched;
  good.num_fetches = 1;
  const auto refuse = [&](const char* what, auto&& change) {
    dtg_run_args args = good;
    change(args);
    refused(dtg_session_run(h.session, &args), DTG_INVALID_ARGUMENT, what);
    EXPECT_EQ(fetched[0], nullptr) << what;
  };
  refuse("feeds", [](auto& a) { a.feeds = nullptr; });
  refuse("feed_tensors", [](auto& a) { a.feed_tensors = nullptr; });
  refuse("fetches", [](auto& a) { a.fetches = nullptr; });
  refuse("fetched", [](auto& a) { a.fetched = nullptr; });
  refuse("targets", [](auto& a) { a.num_targets = 1; });
  refuse("a count without end", [](auto& a) { a.num_feeds = SIZE_MAX; });
  refuse("nothing", [](auto& a) { a.num_fetches = 0; });
  refuse("a negative timeout", [](auto& a) { a.timeout_ns = -1; });
  const dtg_tensor* holes[] = {h.tensor, nullptr};
  refuse("a missing tensor", [&](auto& a) { a.feed_tensors = holes; });
  const dtg_tensor* stale[] = {h.tensor, closed.tensor};
  refuse("a closed tensor", [&](auto& a) { a.feed_tensors = stale; });
  const dtg_value twice[] = {v.x, v.x};
  refuse("fed twice", [&](auto& a) { a.feeds = twice; });
  dtg_tensor* wrong = vector_of({1, 2, 3});
  dtg_tensor* into[] = {wrong};
  refuse("a target of another shape", [&](auto& a) { a.fetched = into; });
  dtg_tensor_release(wrong);
  OK(dtg_session_run(h.session, &good));
  dtg_tensor_release(fetched[0]);
}

TEST_F(Structs, PointersInsideSpecsAndAttributes) {
  const auto refuse = [&](const char* what, auto&& change) {
    dtg_op_spec spec = DTG_OP_SPEC_INIT;
    spec.type = "NoOp";
    dtg_attr attr = DTG_ATTR_INIT;
    attr.name = "a";
    change(spec, attr);
    const size_t nodes = dtg_graph_node_count(h.graph);
    dtg_value out;
    refused(dtg_graph_add_op(h.graph, &spec, &out, 1), DTG_INVALID_ARGUMENT, what);
    EXPECT_EQ(dtg_graph_node_count(h.graph), nodes) << what;
  };
  refuse("type", [](auto& s, auto&) { s.type = nullptr; });
  refuse("inputs", [](auto& s, auto&) { s.num_inputs = 1; });
  refuse("controls", [](auto& s, auto&) { s.num_controls = 1; });
  refuse("colocate", [](auto& s, auto&) { s.num_colocate = 1; });
  refuse("attrs", [](auto& s, auto&) { s.num_attrs = 1; });
  refuse("inputs without end", [](auto& s, auto&) { s.num_inputs = SIZE_MAX; });
  refuse("a stride of 3", [](auto& s, auto& a) { s.attrs = &a, s.num_attrs = 1, s.attr_stride = 3; });
  refuse("the name of an attribute", [](auto& s, auto& a) { s.attrs = &a, s.num_attrs = 1, a.name = nullptr; });
  for (int32_t kind = DTG_ATTR_SHAPE; kind <= DTG_ATTR_LIST_STRING + 1; ++kind) {
    refuse("an attribute without its value", [kind](auto& s, auto& a) { s.attrs = &a, s.num_attrs = 1, a.kind = kind, a.count = 1; });
  }
  refuse("a closed tensor",
         [this](auto& s, auto& a) { s.attrs = &a, s.num_attrs = 1, a.kind = DTG_ATTR_TENSOR, a.tensor = closed.tensor; });
}

TEST_F(Structs, ValuesOfAnotherGraph) {
  Handles other;
  Values theirs;
  const std::string events = folder("other");
  build(other, theirs, events);
  for (const dtg_value stranger : {theirs.z, dtg_value{0}, dtg_value{UINT64_MAX}}) {
    dtg_value out;
    dtg_gradient gradient{};
    const char* text = nullptr;
    size_t size = 0;
    int32_t rank = 0;
    refused(dtg_value_name(h.graph, stranger, &text, nullptr), DTG_INVALID_ARGUMENT, "name");
    refused(dtg_value_op(h.graph, stranger, &text, nullptr), DTG_INVALID_ARGUMENT, "op");
    refused(dtg_value_device(h.graph, stranger, &text, nullptr), DTG_INVALID_ARGUMENT, "device");
    refused(dtg_value_num_outputs(h.graph, stranger, &size), DTG_INVALID_ARGUMENT, "num_outputs");
    refused(dtg_value_output(h.graph, stranger, 0, &out), DTG_INVALID_ARGUMENT, "output");
    refused(dtg_value_dtype(h.graph, stranger, &rank), DTG_INVALID_ARGUMENT, "dtype");
    refused(dtg_value_shape(h.graph, stranger, nullptr, 0, &rank), DTG_INVALID_ARGUMENT, "shape");
    refused(dtg_graph_push_controls(h.graph, &stranger, 1), DTG_INVALID_ARGUMENT, "controls");
    refused(dtg_graph_push_colocation(h.graph, stranger), DTG_INVALID_ARGUMENT, "colocation");
    refused(dtg_graph_add_gradients(h.graph, &stranger, 1, &v.x, 1, nullptr, &gradient), DTG_INVALID_ARGUMENT, "ys");
    refused(dtg_graph_add_gradients(h.graph, &v.z, 1, &stranger, 1, nullptr, &gradient), DTG_INVALID_ARGUMENT, "xs");
    refused(dtg_add1(h.graph, "Neg", stranger, &out), DTG_INVALID_ARGUMENT, "input");
    refused(dtg_run_target(h.session, stranger), DTG_INVALID_ARGUMENT, "target");
    refused(dtg_nn_activation(h.model, stranger, DTG_ACT_RELU, &out), DTG_INVALID_ARGUMENT, "activation");
    refused(dtg_nn_flatten(h.model, stranger, &out), DTG_INVALID_ARGUMENT, "flatten");
    refused(dtg_nn_accuracy(h.model, stranger, v.z, &out), DTG_INVALID_ARGUMENT, "accuracy");
    refused(dtg_nn_mean_squared_error(h.model, v.z, stranger, &out), DTG_INVALID_ARGUMENT, "error");
    dtg_training training = DTG_TRAINING_INIT;
    refused(dtg_nn_minimize(h.model, stranger, nullptr, &training), DTG_INVALID_ARGUMENT, "minimize");
    const dtg_replication replication = DTG_REPLICATION_INIT;
    dtg_replicated replicated = DTG_REPLICATED_INIT;
    refused(dtg_nn_minimize_replicated(h.model, stranger, nullptr, &replication, &replicated), DTG_INVALID_ARGUMENT, "replicated");
    refused(dtg_nn_minimize_towers(h.model, &stranger, 1, nullptr, &training), DTG_INVALID_ARGUMENT, "towers");
    dtg_all_reduce how = DTG_ALL_REDUCE_INIT;
    refused(dtg_nn_minimize_all_reduce(h.model, v.z, nullptr, &how, &training), DTG_INVALID_ARGUMENT, "a group of nobody");
    how.group_size = 1;
    refused(dtg_nn_minimize_all_reduce(h.model, stranger, nullptr, &how, &training), DTG_INVALID_ARGUMENT, "all-reduce");
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    dtg_tensor* fetched = nullptr;
    args.fetches = &stranger;
    args.fetched = &fetched;
    args.num_fetches = 1;
    refused(dtg_session_run(h.session, &args), DTG_INVALID_ARGUMENT, "fetch");
    dtg_callable* callable = nullptr;
    refused(dtg_session_prepare(h.session, &args, &callable), DTG_INVALID_ARGUMENT, "prepare");
  }
  other.release();
  ASSERT_EQ(std::system(("rm -rf '" + events + "'").c_str()), 0);
}

TEST(Releases, EveryOrderOfTheFirstFive) {
  const size_t before = dtg_live_handles();
  const std::string events = folder("orders");
  int order[] = {0, 1, 2, 3, 4};
  do {
    Handles h;
    Values v;
    build(h, v, events);
    for (int each : order) {
      switch (each) {
        case 0: dtg_runtime_release(std::exchange(h.runtime, nullptr)); break;
        case 1: dtg_graph_release(std::exchange(h.graph, nullptr)); break;
        case 2: dtg_session_release(std::exchange(h.session, nullptr)); break;
        case 3: dtg_callable_release(std::exchange(h.callable, nullptr)); break;
        default: dtg_run_release(std::exchange(h.run, nullptr)); break;
      }
    }
    h.release();
    EXPECT_EQ(dtg_live_handles(), before);
  } while (std::next_permutation(std::begin(order), std::end(order)));
  ASSERT_EQ(std::system(("rm -rf '" + events + "'").c_str()), 0);
}

TEST_F(Structs, ReleasedTwiceAndRetained) {
  const size_t handles = dtg_live_handles();
  for (int i = 0; i < 3; ++i) closed.release();
  EXPECT_EQ(dtg_live_handles(), handles);
  // Of another type: nothing happens to it.
  dtg_graph_release(reinterpret_cast<dtg_graph*>(h.tensor));
  EXPECT_EQ(dtg_tensor_count(h.tensor), 2);
  EXPECT_EQ(dtg_tensor_retain(h.tensor), h.tensor);
  dtg_tensor_release(h.tensor);
  EXPECT_EQ(dtg_tensor_count(h.tensor), 2);
  EXPECT_EQ(dtg_tensor_retain(closed.tensor), nullptr);
  // A pointer into a handle is none.
  EXPECT_EQ(dtg_tensor_count(reinterpret_cast<dtg_tensor*>(reinterpret_cast<char*>(h.tensor) + 8)), 0);
}

}  // namespace
}  // namespace outside
