// Structs that cross the ABI: every size from 0 to sizeof + 64, with a zero and a non-zero tail; the pointers inside
// them; values of other graphs; handles released twice and in every order. Those of training stand in structs_training_test.cc.
#include <dtg/arrow.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "struct_sizes.h"

// The Arrow C data interface, as its specification says it; the header of the library only names the stream.
extern "C" {
struct ArrowSchema {
  const char *format, *name, *metadata;
  int64_t flags, n_children;
  ArrowSchema **children, *dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  int64_t length, null_count, offset, n_buffers, n_children;
  const void** buffers;
  ArrowArray **children, *dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};
struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema*);
  int (*get_next)(ArrowArrayStream*, ArrowArray*);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};
}

namespace outside {
namespace {

using Structs = World;

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

// One table of one column with the number 7, through the Arrow interface, as a library of another language would hand it over.
struct OneNumber {
  static int schema(ArrowArrayStream*, ArrowSchema* out) {
    static ArrowSchema column = {"l", "a", nullptr, 0, 0, nullptr, nullptr, nullptr, nullptr};
    static ArrowSchema* columns[] = {&column};
    *out = {"+s", "", nullptr, 0, 1, columns, nullptr, [](ArrowSchema* it) { it->release = nullptr; }, nullptr};
    return 0;
  }
  static int next(ArrowArrayStream* stream, ArrowArray* out) {
    static const int64_t seven = 7;
    static const void* none[] = {nullptr};
    static const void* buffers[] = {nullptr, &seven};
    static ArrowArray column;
    static ArrowArray* columns[] = {&column};
    *out = {};
    if (std::exchange(stream->private_data, nullptr) == nullptr) return 0;  // the end
    column = {1, 0, 0, 2, 0, buffers, nullptr, nullptr, nullptr, nullptr};
    *out = {1, 0, 0, 1, 1, none, columns, nullptr, [](ArrowArray* it) { it->release = nullptr; }, nullptr};
    return 0;
  }
  static ArrowArrayStream stream() {
    static int full;
    return {schema, next, [](ArrowArrayStream*) { return "no error"; }, [](ArrowArrayStream* it) { it->release = nullptr; }, &full};
  }
};

TEST_F(Structs, SourcesAndMapsOfEverySize) {
  const dtg_arrow_options arrow = DTG_ARROW_OPTIONS_INIT;
  each_size("dtg_arrow_options", arrow, [](auto* options) {
    ArrowArrayStream stream = OneNumber::stream();
    dtg_dataset* made = nullptr;
    dtg_error* const error = dtg_dataset_arrow(nullptr, &stream, options, &made);
    EXPECT_EQ(stream.release, nullptr);
    EXPECT_EQ(dtg_dataset_cardinality(made), error ? -2 : 1);
    dtg_dataset_release(made);
    return error;
  });
  const dtg_component number = {DTG_I64, 0, nullptr};
  dtg_host_source host = DTG_HOST_SOURCE_INIT;
  host.components = &number;
  host.num_components = 1;
  host.next = [](void*, dtg_tensor**, size_t, int32_t* more) -> dtg_error* { return *more = 0, nullptr; };
  each_size("dtg_host_source", host, [](auto* source) {
    dtg_dataset* made = nullptr;
    dtg_error* const error = dtg_dataset_host(nullptr, source, &made);
    dtg_dataset_release(made);
    return error;
  });
  dtg_graph* body = nullptr;
  dtg_function* same = nullptr;
  dtg_value argument{};
  OK(dtg_function_begin(h.graph, "same", DTG_STRLEN, &body));
  OK(dtg_dataset_add_arguments(h.dataset, body, &argument, 1));
  OK(dtg_function_end(body, &argument, 1, nullptr, 0, &same));
  const dtg_map_options options = DTG_MAP_OPTIONS_INIT;
  each_size("dtg_map_options", options, [&](auto* given) {
    dtg_dataset* numbers = nullptr;
    OK(dtg_dataset_range(nullptr, 0, 4, 1, &numbers));
    dtg_error* const error = dtg_dataset_map(numbers, same, given);
    dtg_dataset_release(numbers);
    return error;
  });
  dtg_function_release(same);
  dtg_graph_release(body);
}

TEST_F(Structs, PlansOfEverySize) {
  const dtg_value feeds[] = {v.x, v.y};
  const dtg_dtype types[] = {DTG_F32, DTG_F32};
  const int64_t two[] = {2};
  const int64_t* const dims[] = {two, two};
  const size_t ranks[] = {1, 1};
  dtg_plan_args plan = DTG_PLAN_ARGS_INIT;
  plan.feeds = feeds, plan.feed_dtypes = types, plan.feed_dims = dims, plan.feed_ranks = ranks, plan.num_feeds = 2;
  plan.fetches = &v.z, plan.num_fetches = 1;
  each_size("dtg_plan_args", plan, [&](auto* args) {
    dtg_string* text = nullptr;
    dtg_error* const error = dtg_session_plan_text(h.session, args, &text);
    dtg_string_release(text);
    return error;
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
  dtg_attention_cache kept = DTG_ATTENTION_CACHE_INIT;
  each_size("dtg_attention_cache", kept, [&](auto* cache) { return dtg_nn_attention_cache(h.model, sequence, &attention, 8, cache); });
  OK(dtg_nn_attention_cache(h.model, sequence, &attention, 8, &kept));
  each_size("dtg_attention_cache", kept, [&](auto* cache) { return dtg_nn_attention_step(h.model, sequence, &attention, cache, &out); });
  const dtg_position place = DTG_POSITION_INIT;
  each_size("dtg_position", place, [&](auto* layer) { return dtg_nn_position_embedding(h.model, sequence, layer, &out); });
  dtg_embedding_bag bag = DTG_EMBEDDING_BAG_INIT;
  bag.rows = bag.width = 3;
  dtg_value bags;
  const int64_t pairs[] = {2, 2};
  OK(dtg_placeholder(h.graph, "bags", DTG_I32, pairs, 2, &bags));
  each_size("dtg_embedding_bag", bag, [&](auto* layer) { return dtg_nn_embedding_bag(h.model, bags, layer, &out); });
  dtg_hashing hashing = DTG_HASHING_INIT;
  hashing.num_bins = 3;
  each_size("dtg_hashing", hashing, [&](auto* layer) { return dtg_nn_hashing(h.model, bags, layer, &out); });
  dtg_lookup lookup = DTG_LOOKUP_INIT;
  int64_t numbers[] = {4, 2};
  dtg_tensor* vocabulary = nullptr;
  OK(dtg_tensor_create(DTG_I64, pairs, 1, numbers, sizeof numbers, nullptr, nullptr, &vocabulary));
  lookup.vocabulary = vocabulary;
  each_size("dtg_lookup", lookup, [&](auto* layer) { return dtg_nn_lookup(h.model, bags, layer, &out); });
  dtg_tensor_release(vocabulary);
  dtg_conv windows = DTG_CONV_INIT;
  windows.filters = 2;
  each_size("dtg_conv", windows, [&](auto* layer) { return dtg_nn_conv1d(h.model, sequence, layer, &out); });
  const dtg_pool2d pool = DTG_POOL2D_INIT;
  each_size("dtg_pool2d", pool, [&](auto* layer) { return dtg_nn_max_pool2d(h.model, image, layer, &out); });
  dtg_embedding embedding = DTG_EMBEDDING_INIT;
  embedding.rows = embedding.width = 3;
  each_size("dtg_embedding", embedding, [&](auto* layer) { return dtg_nn_embedding(h.model, ids, layer, &out); });
}

TEST_F(Structs, ModelsAndTheirPartsOfEverySize) {
  dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
  const int64_t two[] = {2};
  spec.name = "t";  // as the tensor that is restored below
  spec.dims = two;
  spec.rank = 1;
  each_size("dtg_variable_spec", spec, [&](auto* given) { return dtg_model_add_variable(h.model, given, nullptr); });
  const dtg_variable variable = DTG_VARIABLE_INIT;
  each_size("dtg_variable", variable, [&](auto* answer) { return dtg_model_variable(h.model, 0, answer); });
  dtg_restore restore = DTG_RESTORE_INIT;
  restore.partial = 1;
  const std::string weights = folder("weights");
  OK(dtg_weights_save(h.weights, weights.c_str(), DTG_STRLEN));
  each_size("dtg_restore", restore, [&](auto* how) {
    dtg_string* report = nullptr;
    dtg_error* const error = dtg_model_restore_from(h.model, h.session, weights.c_str(), DTG_STRLEN, how, &report);
    dtg_string_release(report);
    return error;
  });
  std::remove(weights.c_str());
  dtg_value image;
  OK(dtg_placeholder(h.graph, "image", DTG_F32, nullptr, 0, &image));
  dtg_dataset* numbers = nullptr;
  OK(dtg_dataset_tensors(h.runtime, &h.tensor, 1, &numbers));
  dtg_split half = DTG_SPLIT_INIT;
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
