// Misuse, by table: every exported function with NULL, a closed handle and a handle of another type for each of its
// pointers. What may be NULL says so here; everything else must be refused with a message. A function that is
// missing from the table fails the test.
#include <fstream>
#include <functional>
#include <set>
#include <tuple>

#include "world.h"

namespace outside {
namespace {

template <class T>
constexpr bool is_handle = false;
#define HANDLE(type)                      \
  template <>                             \
  constexpr bool is_handle<type*> = true; \
  template <>                             \
  constexpr bool is_handle<const type*> = true;
HANDLE(dtg_runtime)
HANDLE(dtg_tensor)
HANDLE(dtg_graph)
HANDLE(dtg_session)
HANDLE(dtg_callable)
HANDLE(dtg_run)
HANDLE(dtg_cq)
HANDLE(dtg_error)
HANDLE(dtg_string)
HANDLE(dtg_model)
HANDLE(dtg_dataset)
HANDLE(dtg_weights)
HANDLE(dtg_event_writer)
HANDLE(dtg_cluster)
HANDLE(dtg_server)
HANDLE(dtg_checkpoint)
HANDLE(dtg_group)
HANDLE(dtg_collective)
HANDLE(dtg_cancellation)
HANDLE(dtg_strategy)
HANDLE(dtg_trainer)
HANDLE(dtg_coordinator)
HANDLE(dtg_closure)
HANDLE(dtg_remote_value)
HANDLE(dtg_mesh)
#undef HANDLE

void* closed_of(const Handles& h, const dtg_runtime*) { return h.runtime; }
void* closed_of(const Handles& h, const dtg_tensor*) { return h.tensor; }
void* closed_of(const Handles& h, const dtg_graph*) { return h.graph; }
void* closed_of(const Handles& h, const dtg_session*) { return h.session; }
void* closed_of(const Handles& h, const dtg_callable*) { return h.callable; }
void* closed_of(const Handles& h, const dtg_run*) { return h.run; }
void* closed_of(const Handles& h, const dtg_cq*) { return h.cq; }
void* closed_of(const Handles& h, const dtg_error*) { return h.error; }
void* closed_of(const Handles& h, const dtg_string*) { return h.string; }
void* closed_of(const Handles& h, const dtg_model*) { return h.model; }
void* closed_of(const Handles& h, const dtg_dataset*) { return h.dataset; }
void* closed_of(const Handles& h, const dtg_weights*) { return h.weights; }
void* closed_of(const Handles& h, const dtg_event_writer*) { return h.writer; }
void* closed_of(const Handles& h, const dtg_cluster*) { return h.cluster; }
void* closed_of(const Handles& h, const dtg_server*) { return h.server; }
void* closed_of(const Handles& h, const dtg_checkpoint*) { return h.checkpoint; }
void* closed_of(const Handles& h, const dtg_group*) { return h.group; }
void* closed_of(const Handles& h, const dtg_collective*) { return h.collective; }
void* closed_of(const Handles& h, const dtg_cancellation*) { return h.cancellation; }
void* closed_of(const Handles& h, const dtg_strategy*) { return h.strategy; }
void* closed_of(const Handles& h, const dtg_trainer*) { return h.trainer; }
void* closed_of(const Handles& h, const dtg_coordinator*) { return h.coordinator; }
void* closed_of(const Handles& h, const dtg_closure*) { return h.closure; }
void* closed_of(const Handles& h, const dtg_remote_value*) { return h.remote; }
void* closed_of(const Handles& h, const dtg_mesh*) { return h.mesh; }

// What a call may write a new handle into; emptied after every call.
struct Outs {
  dtg_runtime* runtime = nullptr;
  dtg_tensor* tensor = nullptr;
  dtg_graph* graph = nullptr;
  dtg_session* session = nullptr;
  dtg_callable* callable = nullptr;
  dtg_run* run = nullptr;
  dtg_cq* cq = nullptr;
  dtg_string* string = nullptr;
  dtg_model* model = nullptr;
  dtg_dataset* dataset = nullptr;
  dtg_dataset* dataset2 = nullptr;
  dtg_weights* weights = nullptr;
  dtg_event_writer* writer = nullptr;
  dtg_cluster* cluster = nullptr;
  dtg_server* server = nullptr;
  dtg_checkpoint* checkpoint = nullptr;
  dtg_function* function = nullptr;
  dtg_group* group = nullptr;
  dtg_collective* collective = nullptr;
  dtg_cancellation* cancellation = nullptr;
  dtg_strategy* strategy = nullptr;
  dtg_trainer* trainer = nullptr;
  dtg_coordinator* coordinator = nullptr;
  dtg_closure* closure = nullptr;
  dtg_remote_value* remote = nullptr;
  dtg_mesh* mesh = nullptr;
  DLManagedTensorVersioned* managed = nullptr;
  DLManagedTensor* unversioned = nullptr;
  dtg_task task = DTG_TASK_INIT;
  dtg_value value{}, values[4]{};
  dtg_gradient gradient{};
  dtg_variable variable = DTG_VARIABLE_INIT;
  dtg_training training = DTG_TRAINING_INIT;
  dtg_replicated replicated = DTG_REPLICATED_INIT;
  dtg_recurrent_result steps = DTG_RECURRENT_RESULT_INIT;
  dtg_attention_cache cache = DTG_ATTENTION_CACHE_INIT;
  dtg_metric_values measured = DTG_METRIC_VALUES_INIT;
  dtg_completion event{};
  const char* text = nullptr;
  size_t size = 0;
  int64_t dims[8]{};
  int32_t number = 0;
  dtg_per_replica spread{};
  dtg_strategy_info info = DTG_STRATEGY_INFO_INIT;
  dtg_fit_event told = DTG_FIT_EVENT_INIT;
  dtg_sharded sharded = DTG_SHARDED_INIT;
  dtg_mesh_step step = DTG_MESH_STEP_INIT;

  void empty() {
    Handles all{runtime,    tensor,       graph,    session, callable,    run,     cq,         nullptr,  string,
                model,      dataset,      weights,  writer,  cluster,     server,  checkpoint, function, group,
                collective, cancellation, strategy, trainer, coordinator, closure, remote,     mesh};
    all.release();
    dtg_dataset_release(dataset2);
    *this = Outs();
  }
};

class Misuse : public World {
 protected:
  enum class With { null, closed, foreign };

  // Calls fn(args...) with pointer number k replaced.
  template <class R, class... P>
  void row(const char* name, R (*fn)(P...) noexcept, std::set<size_t> may_be_null, std::tuple<std::type_identity_t<P>...> args) {
    seen_.insert(name);
    rows_.push_back([=, this] { each(name, fn, may_be_null, args, std::index_sequence_for<P...>()); });
  }

  template <class R, class... P, size_t... I>
  void each(const char* name, R (*fn)(P...) noexcept, const std::set<size_t>& may_be_null, std::tuple<P...> args,
            std::index_sequence<I...>) {
    (replace<I>(name, fn, may_be_null, args), ...);
  }

  template <size_t K, class R, class... P>
  void replace(const char* name, R (*fn)(P...) noexcept, const std::set<size_t>& may_be_null, std::tuple<P...> args) {
    using T = std::tuple_element_t<K, std::tuple<P...>>;
    if constexpr (std::is_pointer_v<T>) {
      const std::string what = std::string(name) + " with pointer " + std::to_string(K);
      std::get<K>(args) = nullptr;
      call(what + " NULL", fn, may_be_null.contains(K), args, With::null);
      if constexpr (is_handle<T>) {
        std::get<K>(args) = static_cast<T>(closed_of(closed, static_cast<T>(nullptr)));
        call(what + " closed", fn, false, args, With::closed);
        void* const foreign =
            std::is_same_v<std::remove_const_t<std::remove_pointer_t<T>>, dtg_tensor> ? static_cast<void*>(h.graph) : h.tensor;
        std::get<K>(args) = static_cast<T>(foreign);
        call(what + " of another type", fn, false, args, With::foreign);
      }
    }
  }

  template <class R, class... P>
  void call(const std::string& what, R (*fn)(P...) noexcept, bool allowed, const std::tuple<P...>& args, With with) {
    const size_t handles = dtg_live_handles();
    if constexpr (std::is_same_v<R, dtg_error*> && sizeof...(P) != 1) {
      check(what, std::apply(fn, args), allowed, with);
    } else if constexpr (std::is_same_v<R, dtg_error*>) {
      dtg_error* const answer = std::apply(fn, args);
      // dtg_error_retain answers NULL for what is no error.
      if (what.starts_with("dtg_error_retain")) EXPECT_EQ(answer, nullptr) << what;
      else check(what, answer, allowed, with);
    } else if constexpr (std::is_void_v<R>) {
      std::apply(fn, args);
    } else if constexpr (is_handle<R>) {
      EXPECT_EQ(std::apply(fn, args), nullptr) << what;
    } else {
      (void)std::apply(fn, args);
    }
    outs.empty();
    EXPECT_EQ(dtg_live_handles(), handles) << what;
  }

  void check(const std::string& what, dtg_error* error, bool allowed, With with) {
    if (allowed) {
      // The rest of the row need not make sense, but it is not the NULL that is refused.
      EXPECT_EQ(text_of(error).find("NULL"), std::string::npos) << what << ": " << text_of(error);
      dtg_error_release(error);
      return;
    }
    const std::string message = refused(error, DTG_INVALID_ARGUMENT, what);
    const char* const expected = with == With::null ? "NULL" : "open";
    EXPECT_NE(message.find(expected), std::string::npos) << what << ": " << message;
  }

  void base_rows();
  void tensor_rows();
  void graph_rows();
  void function_rows();
  void session_rows();
  void model_rows();
  void layer_rows();
  void data_rows();
  void map_rows();
  void file_rows();
  void cluster_rows();
  void group_rows();
  void strategy_rows();
  void trainer_rows();
  void coordinator_rows();
  void sharded_rows();
  void mesh_rows();

  Outs outs;
  std::set<std::string> seen_;
  std::vector<std::function<void()>> rows_;
  // What the rows point to.
  const dtg_function* functions[2]{};
  uint64_t block[16]{};  // stands for a struct of DLPack that is never looked into
  float two[2] = {1, 2};
  int64_t dims[1] = {2};
  const char* words[2] = {"a", "b"};
  size_t lengths[2] = {1, 1};
  dtg_op_spec spec = DTG_OP_SPEC_INIT;
  dtg_run_args asked = DTG_RUN_ARGS_INIT;
  dtg_value feeds[2]{}, none[1]{};
  const dtg_tensor* tensors[2]{};
  dtg_tensor* fetched[1] = {nullptr};
  const char* names[1] = {"c"};
  dtg_gradient gradient{};
  dtg_replication replication = DTG_REPLICATION_INIT;
  dtg_all_reduce all_reduce{sizeof(dtg_all_reduce), 0, 1, 0, 0, 0, 0};
  dtg_schedule schedule = DTG_SCHEDULE_INIT;
  dtg_strategy_options strategy = DTG_STRATEGY_OPTIONS_INIT;
  dtg_trainer_options trains = DTG_TRAINER_OPTIONS_INIT;
  dtg_partitioner cuts = DTG_PARTITIONER_INIT;
  dtg_mesh_options grid = DTG_MESH_OPTIONS_INIT;
  const int64_t sizes[1] = {1};
  const char* device = "/device:CPU:0";
  dtg_variable_spec variable = DTG_VARIABLE_SPEC_INIT;
  dtg_dense dense = DTG_DENSE_INIT;
  dtg_conv2d conv = DTG_CONV2D_INIT;
  dtg_embedding embedding = DTG_EMBEDDING_INIT;
  dtg_recurrent recurrent = DTG_RECURRENT_INIT;
  dtg_sampled_loss sampled = DTG_SAMPLED_LOSS_INIT;
  dtg_attention attention = DTG_ATTENTION_INIT;
  dtg_embedding_bag bag = DTG_EMBEDDING_BAG_INIT;
  dtg_hashing hashing = DTG_HASHING_INIT;
  dtg_lookup lookup = DTG_LOOKUP_INIT;
  dtg_conv windows = DTG_CONV_INIT;
  dtg_export serving = DTG_EXPORT_INIT;
  dtg_device_setter setter = DTG_DEVICE_SETTER_INIT;
  dtg_host_source source = DTG_HOST_SOURCE_INIT;
  std::string bytes;
  std::string file = folder("file");
  std::string sets = folder("sets");
  dtg_checkpoint_options kept = DTG_CHECKPOINT_OPTIONS_INIT;
};

using S = std::set<size_t>;
#define ROW(fn, may_be_null, ...) row(#fn, fn, may_be_null, {__VA_ARGS__})

void Misuse::base_rows() {
  seen_.insert({"dtg_abi_version", "dtg_version", "dtg_live_handles", "dtg_dtype_size", "dtg_dtype_name", "dtg_code_name"});
  ROW(dtg_has_feature, {}, "cpu");
  ROW(dtg_dtype_from_name, {}, "float32");
  ROW(dtg_error_code, {}, h.error);
  ROW(dtg_error_message, {}, h.error, &outs.size);
  ROW(dtg_error_node, {}, h.error);
  ROW(dtg_error_task, {}, h.error);
  ROW(dtg_error_peer, {}, h.error);
  ROW(dtg_error_phase, {}, h.error);
  ROW(dtg_error_create, {1}, DTG_UNKNOWN, "words", DTG_STRLEN);
  ROW(dtg_error_retain, {}, h.error);
  ROW(dtg_error_release, {}, h.error);
  ROW(dtg_string_data, {}, h.string, &outs.size);
  ROW(dtg_string_release, {}, h.string);
  ROW(dtg_runtime_create, {0}, nullptr, &outs.runtime);
  ROW(dtg_runtime_threads, {}, h.runtime);
  ROW(dtg_runtime_retain, {}, h.runtime);
  ROW(dtg_runtime_release, {}, h.runtime);
  ROW(dtg_ops_json, {0}, h.runtime, &outs.string);
  ROW(dtg_runtime_metrics, {0}, h.runtime, &outs.string);
  ROW(dtg_runtime_trim, {0}, h.runtime);
  ROW(dtg_runtime_trace_start, {0}, h.runtime);
  ROW(dtg_runtime_trace_stop, {0}, h.runtime, &outs.string);
}

void Misuse::tensor_rows() {
  ROW(dtg_tensor_create, (S{5, 6}), DTG_F32, dims, 1, two, sizeof two, nullptr, nullptr, &outs.tensor);
  ROW(dtg_tensor_allocate, {}, DTG_F32, dims, 1, &outs.tensor);
  ROW(dtg_tensor_create_strings, (S{3}), dims, 1, words, lengths, &outs.tensor);
  ROW(dtg_tensor_create_packed_strings, {}, dims, 1, block, 2, lengths, &outs.tensor);
  ROW(dtg_tensor_string, {}, h.tensor, 0, &outs.size);
  ROW(dtg_tensor_data, {}, h.tensor, &outs.size);
  ROW(dtg_tensor_mutable_data, {}, h.tensor);
  ROW(dtg_tensor_dtype, {}, h.tensor);
  ROW(dtg_tensor_rank, {}, h.tensor);
  ROW(dtg_tensor_dim, {}, h.tensor, 0);
  ROW(dtg_tensor_count, {}, h.tensor);
  ROW(dtg_tensor_from_dlpack, {}, reinterpret_cast<DLManagedTensorVersioned*>(block), &outs.tensor);
  ROW(dtg_tensor_from_dlpack_unversioned, {}, reinterpret_cast<DLManagedTensor*>(block), &outs.tensor);
  ROW(dtg_tensor_to_dlpack, {}, h.tensor, 0, &outs.managed);
  ROW(dtg_tensor_to_dlpack_unversioned, {}, h.tensor, &outs.unversioned);
  ROW(dtg_tensor_retain, {}, h.tensor);
  ROW(dtg_tensor_release, {}, h.tensor);
}

void Misuse::graph_rows() {
  spec.type = "NoOp";
  size_t length = 0;
  const char* const serialised = dtg_string_data(h.string, &length);
  bytes.assign(serialised, length);
  gradient.dense = v.z;
  ROW(dtg_graph_create, {0}, h.runtime, &outs.graph);
  ROW(dtg_graph_retain, {}, h.graph);
  ROW(dtg_graph_release, {}, h.graph);
  ROW(dtg_graph_add_op, {}, h.graph, &spec, outs.values, 1);
  ROW(dtg_graph_node_count, {}, h.graph);
  ROW(dtg_graph_node_at, {}, h.graph, 0, &outs.value);
  ROW(dtg_graph_find, {}, h.graph, "x", DTG_STRLEN, &outs.value);
  ROW(dtg_value_name, {3}, h.graph, v.z, &outs.text, &outs.size);
  ROW(dtg_value_op, {3}, h.graph, v.z, &outs.text, &outs.size);
  ROW(dtg_value_device, {3}, h.graph, v.z, &outs.text, &outs.size);
  ROW(dtg_value_num_outputs, {}, h.graph, v.z, &outs.size);
  ROW(dtg_value_output, {}, h.graph, v.z, 0, &outs.value);
  ROW(dtg_value_dtype, {}, h.graph, v.z, &outs.number);
  ROW(dtg_value_shape, {}, h.graph, v.z, outs.dims, 8, &outs.number);
  ROW(dtg_graph_push_name_scope, {1}, h.graph, "scope", DTG_STRLEN);
  ROW(dtg_graph_pop_name_scope, {}, h.graph);
  ROW(dtg_graph_push_device, {1}, h.graph, "/device:CPU:0", DTG_STRLEN);
  ROW(dtg_graph_pop_device, {}, h.graph);
  ROW(dtg_graph_push_device_setter, {}, h.graph, &setter);
  ROW(dtg_graph_push_controls, {}, h.graph, &v.z, 1);
  ROW(dtg_graph_pop_controls, {}, h.graph);
  ROW(dtg_graph_push_recompute, {}, h.graph);
  ROW(dtg_graph_pop_recompute, {}, h.graph);
  ROW(dtg_graph_push_colocation, {}, h.graph, v.z);
  ROW(dtg_graph_pop_colocation, {}, h.graph);
  ROW(dtg_graph_add_gradients, {5}, h.graph, &v.z, 1, &v.x, 1, nullptr, &outs.gradient);
  ROW(dtg_graph_densify, {}, h.graph, &gradient, &outs.value);
  ROW(dtg_graph_serialize, {}, h.graph, &outs.string);
  ROW(dtg_graph_import, {}, h.graph, bytes.data(), bytes.size());
}

void Misuse::function_rows() {
  functions[0] = functions[1] = h.function;
  ROW(dtg_function_begin, {1}, h.graph, "body", DTG_STRLEN, &outs.graph);
  ROW(dtg_function_add_argument, {2}, h.graph, DTG_F32, nullptr, 0, &outs.value);
  ROW(dtg_function_add_argument_like, {}, h.graph, v.z, &outs.value);
  ROW(dtg_function_end, (S{1, 3}), h.graph, &v.z, 1, nullptr, 0, &outs.function);
  ROW(dtg_function_retain, {}, h.function);
  ROW(dtg_function_release, {}, h.function);
  ROW(dtg_function_captures, {}, h.function, outs.values, 4, &outs.size);
  ROW(dtg_graph_add_if, {}, h.graph, v.z, h.function, h.function, outs.values, 1);
  ROW(dtg_graph_add_case, {}, h.graph, v.z, functions, 2, outs.values, 1);
  ROW(dtg_graph_add_while, {}, h.graph, &v.z, 1, h.function, h.function, outs.values);
  ROW(dtg_graph_add_call, {}, h.graph, h.function, &v.z, 1, outs.values, 1);
}

void Misuse::session_rows() {
  dtg_plan_args planned = DTG_PLAN_ARGS_INIT;
  const dtg_dtype dtypes[] = {DTG_F32, DTG_F32};
  const int64_t* const no_dims[] = {nullptr, nullptr};
  const size_t ranks[] = {0, 0};
  feeds[0] = v.x;
  feeds[1] = v.y;
  tensors[0] = tensors[1] = h.tensor;
  asked.feeds = feeds;
  asked.feed_tensors = tensors;
  asked.num_feeds = 2;
  asked.fetches = &v.z;
  asked.num_fetches = 1;
  ROW(dtg_session_connect, (S{0, 1, 4}), h.runtime, nullptr, 0, h.graph, nullptr, &outs.session);
  ROW(dtg_session_run, {}, h.session, &asked);
  ROW(dtg_session_prepare, {}, h.session, &asked, &outs.callable);
  planned.feeds = feeds;
  planned.feed_dtypes = dtypes;
  planned.feed_dims = no_dims;
  planned.feed_ranks = ranks;
  planned.num_feeds = 2;
  planned.fetches = &v.z;
  planned.num_fetches = 1;
  ROW(dtg_session_plan_text, {}, h.session, &planned, &outs.string);
  ROW(dtg_session_run_async, {4}, h.session, &asked, h.cq, 1, &outs.run);
  ROW(dtg_session_run_if_brief, {}, h.session, &asked, &outs.number);
  ROW(dtg_callable_run, {}, h.callable, tensors, 2, fetched, 1, 0);
  ROW(dtg_callable_run_cancellable, {6}, h.callable, tensors, 2, &outs.tensor, 1, 0, h.cancellation);
  ROW(dtg_callable_retain, {}, h.callable);
  ROW(dtg_callable_release, {}, h.callable);
  ROW(dtg_session_device_count, {}, h.session);
  ROW(dtg_session_device_name, {}, h.session, 0);
  ROW(dtg_session_reset, {}, h.session, names, 1);
  ROW(dtg_session_close, {}, h.session, 0);
  ROW(dtg_session_retain, {}, h.session);
  ROW(dtg_session_release, {}, h.session);
  ROW(dtg_cancellation_create, {}, &outs.cancellation);
  ROW(dtg_cancellation_cancel, {}, h.cancellation);
  ROW(dtg_cancellation_retain, {}, h.cancellation);
  ROW(dtg_cancellation_release, {}, h.cancellation);
  ROW(dtg_run_cancel, {}, h.run);
  ROW(dtg_run_take_result, {}, h.run, 0, &outs.tensor);
  ROW(dtg_run_retain, {}, h.run);
  ROW(dtg_run_release, {}, h.run);
  ROW(dtg_cq_create, {}, &outs.cq);
  ROW(dtg_cq_next, {}, h.cq, &outs.event, 0, 1, 0, &outs.size);
  ROW(dtg_cq_fd, {}, h.cq);
  ROW(dtg_cq_retain, {}, h.cq);
  ROW(dtg_cq_release, {}, h.cq);
}

void Misuse::model_rows() {
  variable.name = "v";
  ROW(dtg_model_create, {}, h.graph, 1, &outs.model);
  ROW(dtg_model_inside, {}, h.model, h.graph, &outs.model);
  ROW(dtg_model_retain, {}, h.model);
  ROW(dtg_model_release, {}, h.model);
  ROW(dtg_model_add_variable, {2}, h.model, &variable, &outs.variable);
  ROW(dtg_model_variable_count, {}, h.model);
  ROW(dtg_model_variable, {}, h.model, 0, &outs.variable);
  ROW(dtg_model_find_variable, {}, h.model, "v", DTG_STRLEN, &outs.variable);
  ROW(dtg_model_global_step, {}, h.model, &outs.variable);
  ROW(dtg_model_init, {}, h.model, &outs.value);
  ROW(dtg_model_set_metadata, {}, h.model, "k", DTG_STRLEN, "v", DTG_STRLEN);
  ROW(dtg_model_metadata, {}, h.model, "k", DTG_STRLEN, &outs.string);
  ROW(dtg_model_save, {}, h.model, h.session, file.c_str(), DTG_STRLEN);
  ROW(dtg_model_restore, {}, h.model, h.session, file.c_str(), DTG_STRLEN);
  ROW(dtg_model_restore_from, (S{4, 5}), h.model, h.session, file.c_str(), DTG_STRLEN, nullptr, &outs.string);
  ROW(dtg_model_import, {}, h.graph, 1, &outs.model);
  ROW(dtg_model_export, {}, h.model, h.session, &serving, file.c_str(), DTG_STRLEN);
  ROW(dtg_model_load, (S{0, 3}), h.runtime, "nowhere", DTG_STRLEN, &outs.session, &outs.model);
  ROW(dtg_model_endpoint, {}, h.model, "x", DTG_STRLEN, &outs.value);
  ROW(dtg_model_set_classes, {1}, h.model, nullptr, 0, names, 1);
  ROW(dtg_model_classes, {1}, h.model, nullptr, 0, &outs.tensor);
  ROW(dtg_model_endpoints, {}, h.model, &outs.string);
  ROW(dtg_model_graph, {}, h.model, &outs.graph);
  ROW(dtg_nn_minimize, {2}, h.model, v.z, nullptr, &outs.training);
  ROW(dtg_nn_apply_gradients, {1}, h.model, nullptr, &v.z, &gradient, 1, &outs.value);
  ROW(dtg_nn_minimize_replicated, {2}, h.model, v.z, nullptr, &replication, &outs.replicated);
  ROW(dtg_dataset_deal, {}, h.dataset, h.model, h.session, 0);
  ROW(dtg_dataset_dealt, (S{1, 2}), h.dataset, &outs.dims[0], &outs.dims[1]);
  ROW(dtg_nn_apply_replicated, {4}, h.model, &v.z, &gradient, 1, nullptr, &replication, &outs.replicated);
  ROW(dtg_nn_minimize_towers, {3}, h.model, &v.z, 1, nullptr, &outs.training);
  ROW(dtg_nn_minimize_all_reduce, {2}, h.model, v.z, nullptr, &all_reduce, &outs.training);
  ROW(dtg_model_next_tower, {}, h.model);
  ROW(dtg_model_wait_ready, {}, h.model, h.session, 1);
  ROW(dtg_model_recover, {}, h.model, h.session, 1);
  ROW(dtg_nn_exponential_decay, {}, h.model, v.z, 0.1, 10, 0.5, 0, &outs.value);
  ROW(dtg_nn_cosine_decay, {}, h.model, v.z, 0.1, 10, 0, 0, &outs.value);
  schedule.rate = schedule.steps = 1;
  ROW(dtg_nn_schedule, {}, h.model, v.z, &schedule, &outs.value);
}

void Misuse::layer_rows() {
  dense.units = conv.filters = embedding.rows = embedding.width = 2;
  ROW(dtg_nn_dense, {}, h.model, v.x, &dense, &outs.value);
  ROW(dtg_nn_conv2d, {}, h.model, v.x, &conv, &outs.value);
  ROW(dtg_nn_max_pool2d, {2}, h.model, v.x, nullptr, &outs.value);
  ROW(dtg_nn_avg_pool2d, {2}, h.model, v.x, nullptr, &outs.value);
  ROW(dtg_nn_flatten, {}, h.model, v.x, &outs.value);
  ROW(dtg_nn_dropout, {}, h.model, v.x, 0.5, v.x, none[0], &outs.value);
  ROW(dtg_nn_embedding, {}, h.model, v.x, &embedding, &outs.value);
  recurrent.units = attention.heads = attention.key_width = windows.filters = 2;
  ROW(dtg_nn_batch_norm, {2}, h.model, v.x, nullptr, &outs.value);
  ROW(dtg_nn_layer_norm, {2}, h.model, v.x, nullptr, &outs.value);
  ROW(dtg_nn_rms_norm, {2}, h.model, v.x, nullptr, &outs.value);
  ROW(dtg_nn_group_norm, {2}, h.model, v.x, nullptr, &outs.value);
  ROW(dtg_nn_recurrent, {}, h.model, v.x, &recurrent, &outs.steps);
  ROW(dtg_nn_attention, {}, h.model, v.x, v.x, &attention, &outs.value);
  ROW(dtg_nn_attention_cache, {}, h.model, v.x, &attention, 0, &outs.cache);
  ROW(dtg_nn_attention_step, {}, h.model, v.x, &attention, &outs.cache, &outs.value);
  bag.rows = bag.width = 2;
  ROW(dtg_nn_position_embedding, {2}, h.model, v.x, nullptr, &outs.value);
  ROW(dtg_nn_embedding_bag, {}, h.model, v.y, &bag, &outs.value);
  hashing.num_bins = 2;
  lookup.vocabulary = h.tensor;
  ROW(dtg_nn_hashing, {}, h.model, v.y, &hashing, &outs.value);
  ROW(dtg_nn_lookup, {}, h.model, v.y, &lookup, &outs.value);
  ROW(dtg_nn_noise, {}, h.model, v.x, DTG_GAUSSIAN_NOISE, 0.5, none[0], none[0], &outs.value);
  ROW(dtg_nn_adaptive_pool, {}, h.model, v.x, &sizes[0], 1, 0, &outs.value);
  ROW(dtg_nn_conv1d, {}, h.model, v.x, &windows, &outs.value);
  ROW(dtg_nn_conv3d, {}, h.model, v.x, &windows, &outs.value);
  ROW(dtg_nn_conv2d_transpose, {}, h.model, v.x, &windows, &outs.value);
  ROW(dtg_nn_depthwise_conv2d, {}, h.model, v.x, &windows, &outs.value);
  ROW(dtg_nn_separable_conv2d, {}, h.model, v.x, &windows, &outs.value);
  ROW(dtg_nn_global_avg_pool, {}, h.model, v.x, 0, &outs.value);
  ROW(dtg_nn_global_max_pool, {}, h.model, v.x, 0, &outs.value);
  ROW(dtg_nn_up_sampling2d, {}, h.model, v.x, 2, 2, 0, &outs.value);
  sampled.classes = sampled.samples = 2;
  ROW(dtg_nn_loss, {1}, h.model, nullptr, v.x, v.y, none[0], &outs.value);
  ROW(dtg_nn_triplet_loss, {}, h.model, v.x, v.x, v.x, 1, &outs.value);
  ROW(dtg_nn_sampled_loss, {}, h.model, &sampled, v.x, v.x, &outs.value);
  ROW(dtg_nn_regularize, {2}, h.model, v.z, nullptr, 0, 0.1, 0.1, &outs.value);
  ROW(dtg_nn_metric, {1}, h.model, nullptr, none[0], v.x, none[0], &outs.measured);
  ROW(dtg_nn_normalize, {}, h.model, v.x, "{\"shift\": [0], \"scale\": [1]}", DTG_STRLEN, &outs.value);
  ROW(dtg_nn_activation, {}, h.model, v.x, DTG_ACT_RELU, &outs.value);
  ROW(dtg_nn_sparse_softmax_cross_entropy, {}, h.model, v.x, v.y, &outs.value);
  ROW(dtg_nn_softmax_cross_entropy, {}, h.model, v.x, v.y, &outs.value);
  ROW(dtg_nn_sigmoid_cross_entropy, {}, h.model, v.x, v.y, &outs.value);
  ROW(dtg_nn_mean_squared_error, {}, h.model, v.x, v.y, &outs.value);
  ROW(dtg_nn_accuracy, {}, h.model, v.x, v.y, &outs.value);
  ROW(dtg_nn_correct_count, {}, h.model, v.x, v.y, &outs.value);
}

void Misuse::data_rows() {
  ROW(dtg_dataset_tensors, {0}, h.runtime, tensors, 1, &outs.dataset);
  ROW(dtg_dataset_range, {0}, h.runtime, 0, 3, 1, &outs.dataset);
  ROW(dtg_dataset_idx, {0}, h.runtime, names, 1, &outs.dataset);
  ROW(dtg_dataset_csv, (S{0, 3}), h.runtime, "nowhere", DTG_STRLEN, nullptr, &outs.dataset);
  ROW(dtg_dataset_npy, {0}, h.runtime, names, 1, &outs.dataset);
  ROW(dtg_dataset_npz, (S{0}), h.runtime, "nowhere", DTG_STRLEN, names, 1, &outs.dataset);
  ROW(dtg_dataset_tfrecord, (S{0}), h.runtime, names, 1, "[{\"name\": \"x\", \"dtype\": \"int64\"}]", DTG_STRLEN, &outs.dataset);
  ROW(dtg_dataset_json_lines, (S{0, 3}), h.runtime, "nowhere", DTG_STRLEN, nullptr, &outs.dataset);
  ROW(dtg_dataset_bad_rows, (S{2}), h.dataset, &outs.dims[0], &outs.string);
  ROW(dtg_dataset_retain, {}, h.dataset);
  ROW(dtg_dataset_release, {}, h.dataset);
  ROW(dtg_dataset_shuffle, {}, h.dataset, 0, 1);
  ROW(dtg_dataset_shuffle_once, {}, h.dataset, 0, 1);
  ROW(dtg_dataset_batch, {}, h.dataset, 2, 0);
  ROW(dtg_dataset_shard, {}, h.dataset, 2, 0);
  ROW(dtg_dataset_auto_shard, {}, h.dataset, 2, 0);
  ROW(dtg_dataset_rebatch, {}, h.dataset, 2);
  ROW(dtg_batch_sizes, {}, 8, 2, 1, 0, outs.dims, 8, &outs.size);
  ROW(dtg_dataset_repeat, {}, h.dataset, 2);
  ROW(dtg_dataset_take, {}, h.dataset, 2);
  ROW(dtg_dataset_skip, {}, h.dataset, 2);
  ROW(dtg_dataset_scale, {}, h.dataset, 0, 2);
  ROW(dtg_dataset_normalize, {}, h.dataset, 0, "{\"shift\": [0], \"scale\": [1]}", DTG_STRLEN);
  static const int64_t four[] = {4, 4};
  dtg_dataset* spare[1] = {};
  ASSERT_EQ(dtg_dataset_range(h.runtime, 0, 3, 1, &spare[0]), nullptr);
  ROW(dtg_dataset_cache, {}, h.dataset);
  ROW(dtg_dataset_window, {}, h.dataset, 2, 1, 1, 0);
  ROW(dtg_dataset_padded_batch, {}, h.dataset, 2, 0, 0.0);
  ROW(dtg_dataset_bucket_batch, {}, h.dataset, 0, four, 1, four, 2, 0, 0.0);
  ROW(dtg_dataset_zip, {}, h.dataset, spare, 1);
  ROW(dtg_dataset_concatenate, {}, h.dataset, spare, 1);
  ROW(dtg_dataset_interleave, {}, h.dataset, spare, 1, 1);
  dtg_dataset_release(spare[0]);
  ROW(dtg_dataset_split, {1}, h.dataset, nullptr, &outs.dataset, &outs.dataset2);
  ROW(dtg_dataset_fit_normalization, {}, h.dataset, 0, DTG_NORMALIZE_STANDARD, &outs.string);
  ROW(dtg_dataset_cast, {}, h.dataset, 0, DTG_F32);
  ROW(dtg_dataset_prefetch, {}, h.dataset, 2);
  ROW(dtg_dataset_next, {}, h.dataset, fetched, 1, &outs.number);
  ROW(dtg_dataset_restart, {}, h.dataset);
  ROW(dtg_dataset_position, {}, h.dataset, outs.dims, 8, &outs.size);
  ROW(dtg_dataset_move_to, {}, h.dataset, dims, 1);
  ROW(dtg_dataset_schema, {}, h.dataset, &outs.string);
  ROW(dtg_dataset_cardinality, {}, h.dataset);
  ROW(dtg_dataset_component_count, {}, h.dataset);
  ROW(dtg_dataset_component, {2}, h.dataset, 0, nullptr, outs.dims, 8, &outs.number);
}

void Misuse::map_rows() {
  static const dtg_component no_type{-1, 0, nullptr};
  static const auto nothing = [](void*, dtg_tensor* const*, size_t, dtg_tensor**, size_t) -> dtg_error* { return nullptr; };
  static const auto all = [](void*, dtg_tensor* const*, size_t, int32_t* keep) -> dtg_error* {
    *keep = 1;
    return nullptr;
  };
  static const dtg_component number{DTG_I64, 0, nullptr};
  source.components = &number;
  source.num_components = 1;
  source.next = [](void*, dtg_tensor**, size_t, int32_t*) -> dtg_error* { return nullptr; };
  ROW(dtg_dataset_add_arguments, {}, h.dataset, h.graph, outs.values, 1);
  ROW(dtg_dataset_map, {2}, h.dataset, h.function, nullptr);
  ROW(dtg_dataset_filter, {2}, h.dataset, h.function, nullptr);
  ROW(dtg_dataset_map_host, (S{2, 3}), h.dataset, nothing, nullptr, nullptr, &no_type, 1);
  ROW(dtg_dataset_filter_host, (S{2, 3}), h.dataset, all, nullptr, nullptr);
  ROW(dtg_dataset_host, {0}, h.runtime, &source, &outs.dataset);
  ROW(dtg_dataset_arrow, (S{0, 2}), h.runtime, reinterpret_cast<ArrowArrayStream*>(block), nullptr, &outs.dataset);
}

void Misuse::file_rows() {
  ROW(dtg_weights_create, {}, &outs.weights);
  ROW(dtg_weights_load, {0}, h.runtime, file.c_str(), DTG_STRLEN, &outs.weights);
  ROW(dtg_weights_save, {}, h.weights, file.c_str(), DTG_STRLEN);
  ROW(dtg_weights_set, {}, h.weights, "t", DTG_STRLEN, h.tensor);
  ROW(dtg_weights_get, {}, h.weights, "t", DTG_STRLEN, &outs.tensor);
  ROW(dtg_weights_count, {}, h.weights);
  ROW(dtg_weights_name, {}, h.weights, 0);
  ROW(dtg_weights_set_metadata, {}, h.weights, "k", DTG_STRLEN, "v", DTG_STRLEN);
  ROW(dtg_weights_metadata, {}, h.weights, "k", DTG_STRLEN);
  ROW(dtg_weights_retain, {}, h.weights);
  ROW(dtg_weights_release, {}, h.weights);
  ROW(dtg_event_writer_open, {2}, file.c_str(), DTG_STRLEN, nullptr, &outs.writer);
  ROW(dtg_event_writer_scalar, {}, h.writer, "t", DTG_STRLEN, 1, 2);
  ROW(dtg_event_writer_histogram, {}, h.writer, "t", DTG_STRLEN, 1, h.tensor);
  ROW(dtg_event_writer_text, {}, h.writer, "t", DTG_STRLEN, 1, "text", DTG_STRLEN);
  ROW(dtg_event_writer_flush, {}, h.writer);
  ROW(dtg_event_writer_close, {}, h.writer);
  ROW(dtg_event_writer_retain, {}, h.writer);
  ROW(dtg_event_writer_release, {}, h.writer);
  kept.directory = sets.c_str();
  ROW(dtg_checkpoint_open, {}, h.model, h.session, &kept, &outs.checkpoint);
  ROW(dtg_checkpoint_retain, {}, h.checkpoint);
  ROW(dtg_checkpoint_release, {}, h.checkpoint);
  ROW(dtg_checkpoint_add_data, {}, h.checkpoint, "more", DTG_STRLEN, h.dataset);
  ROW(dtg_checkpoint_resume, (S{1, 2}), h.checkpoint, dims, &outs.string);
  ROW(dtg_checkpoint_restore, (S{1, 3, 4}), h.checkpoint, "step-000000000001-0000000000000001", DTG_STRLEN, dims, &outs.string);
  ROW(dtg_checkpoint_reached, {2}, h.checkpoint, 1, &outs.number);
  ROW(dtg_checkpoint_save, {}, h.checkpoint, 1, 0);
  ROW(dtg_checkpoint_begin_save, {}, h.checkpoint, 1, 0);
  ROW(dtg_checkpoint_wait, {}, h.checkpoint, 0);
  ROW(dtg_checkpoint_status, {}, h.checkpoint, &outs.string);
  ROW(dtg_checkpoint_list, {0}, h.runtime, file.c_str(), DTG_STRLEN, &outs.string);
  ROW(dtg_checkpoint_describe, {0}, h.runtime, file.c_str(), DTG_STRLEN, &outs.string);
  ROW(dtg_checkpoint_verify, {0}, h.runtime, file.c_str(), DTG_STRLEN, &outs.string);
  ROW(dtg_checkpoint_reshard, {0}, h.runtime, file.c_str(), DTG_STRLEN, file.c_str(), DTG_STRLEN, 2, &outs.string);
}

void Misuse::cluster_rows() {
  ROW(dtg_cluster_parse, {}, "ps=unix:/p", DTG_STRLEN, &outs.cluster);
  ROW(dtg_cluster_from_tf_config, {0}, "{}", DTG_STRLEN, &outs.cluster, &outs.task);
  ROW(dtg_cluster_target, {0}, h.cluster, &outs.task, &outs.string);
  ROW(dtg_cluster_json, {}, h.cluster, &outs.string);
  ROW(dtg_cluster_job_count, {}, h.cluster);
  ROW(dtg_cluster_job, {}, h.cluster, 0);
  ROW(dtg_cluster_task_count, {}, h.cluster, "ps");
  ROW(dtg_cluster_task_index, {}, h.cluster, "ps", 0);
  ROW(dtg_cluster_address, {}, h.cluster, "ps", 0);
  ROW(dtg_cluster_retain, {}, h.cluster);
  ROW(dtg_cluster_release, {}, h.cluster);
  ROW(dtg_keygen, {}, file.c_str(), DTG_STRLEN);
  ROW(dtg_server_start, (S{0, 2}), h.runtime, h.cluster, nullptr, &outs.server);
  ROW(dtg_server_target, {}, h.server);
  ROW(dtg_server_join, {}, h.server, 0);
  ROW(dtg_server_stop, {}, h.server, 0);
  ROW(dtg_server_status, {}, h.server, &outs.string);
  ROW(dtg_server_retain, {}, h.server);
  ROW(dtg_server_release, {}, h.server);
  ROW(dtg_session_end_job, {}, h.session, 0);
  ROW(dtg_session_end_job_now, {}, h.session, 0);
  ROW(dtg_session_barrier, {}, h.session, "b", DTG_STRLEN, 0);
  ROW(dtg_session_outcome, {}, h.session, 1, 0, &outs.number);
  ROW(dtg_session_cluster_status, {}, h.session, 0, &outs.string);
  ROW(dtg_cluster_status, (S{0, 3}), h.runtime, "no address", DTG_STRLEN, nullptr, &outs.string);
  ROW(dtg_session_run_repeatedly, (S{3, 5}), h.session, &v.z, 1, h.cq, 1, &outs.run);
}

void Misuse::group_rows() {
  ROW(dtg_group_join, {1}, h.server, nullptr, &outs.group);
  ROW(dtg_group_reform, {}, h.group, 0, 0);
  ROW(dtg_group_leave, {}, h.group);
  ROW(dtg_group_rank, {}, h.group);
  ROW(dtg_group_size, {}, h.group);
  ROW(dtg_group_epoch, {}, h.group);
  ROW(dtg_group_member, {}, h.group, 0);
  ROW(dtg_group_retain, {}, h.group);
  ROW(dtg_group_release, {}, h.group);
  ROW(dtg_group_all_reduce, {2}, h.group, h.tensor, nullptr, &outs.tensor);
  ROW(dtg_group_all_gather, {2}, h.group, h.tensor, nullptr, &outs.tensor);
  ROW(dtg_group_reduce_scatter, {2}, h.group, h.tensor, nullptr, &outs.tensor);
  ROW(dtg_group_broadcast, {2}, h.group, h.tensor, nullptr, &outs.tensor);
  ROW(dtg_group_all_to_all, {2}, h.group, h.tensor, nullptr, &outs.tensor);
  ROW(dtg_group_barrier, {}, h.group, 0);
  ROW(dtg_group_start, (S{3, 4, 7}), h.group, DTG_ALL_REDUCE, h.tensor, nullptr, nullptr, h.cq, 1, &outs.collective);
  ROW(dtg_collective_cancel, {}, h.collective);
  ROW(dtg_collective_take_result, {}, h.collective, &outs.tensor);
  ROW(dtg_collective_retain, {}, h.collective);
  ROW(dtg_collective_release, {}, h.collective);
}

dtg_error* builds_nothing(void*, dtg_strategy*, int32_t, const dtg_value*, size_t, dtg_value*, size_t) { return nullptr; }
dtg_error* merges_nothing(void*, dtg_strategy*, const dtg_per_replica*, size_t, dtg_per_replica*, size_t) { return nullptr; }
dtg_error* writes_nothing(void*, dtg_strategy*, int32_t, const dtg_variable*, const dtg_value*, size_t, dtg_value*) { return nullptr; }

void Misuse::strategy_rows() {
  strategy.devices = &device;
  strategy.num_devices = 1;
  const dtg_per_replica nothing{};
  ROW(dtg_strategy_create, {}, h.model, &strategy, &outs.strategy);
  ROW(dtg_strategy_retain, {}, h.strategy);
  ROW(dtg_strategy_release, {}, h.strategy);
  ROW(dtg_strategy_describe, {}, h.strategy, &outs.info);
  ROW(dtg_strategy_enter, {}, h.strategy);
  ROW(dtg_strategy_exit, {}, h.strategy);
  ROW(dtg_strategy_run, (S{2, 3, 5}), h.strategy, builds_nothing, nullptr, nullptr, 0, nullptr, 0);
  ROW(dtg_strategy_begin_replica, {}, h.strategy, 0);
  ROW(dtg_strategy_end_replica, {}, h.strategy, &v.z, 1, &outs.spread);
  ROW(dtg_strategy_abandon_run, {}, h.strategy);
  ROW(dtg_strategy_merge_call, (S{1, 4, 7}), h.strategy, nullptr, 0, merges_nothing, nullptr, 0, builds_nothing, nullptr);
  ROW(dtg_strategy_reduce, {}, h.strategy, DTG_REDUCE_SUM, nothing, DTG_NO_AXIS, &outs.value);
  ROW(dtg_strategy_gather, {}, h.strategy, nothing, 0, &outs.value);
  ROW(dtg_strategy_distribute, {}, h.strategy, &v.z, 1, &outs.spread);
  ROW(dtg_strategy_broadcast, {}, h.strategy, v.z, &outs.spread);
  ROW(dtg_strategy_split, {}, h.strategy, v.z, &outs.spread);
  ROW(dtg_strategy_local, {}, h.strategy, nothing, &outs.value);
  ROW(dtg_strategy_local_results, (S{2}), h.strategy, nothing, nullptr, 0, &outs.size);
  ROW(dtg_strategy_minimize, {3}, h.strategy, nothing, DTG_REDUCE_MEAN, nullptr, &outs.training);
  ROW(dtg_strategy_replicated, {}, h.strategy, &outs.replicated);
  ROW(dtg_strategy_assign, {4}, h.strategy, v.z, DTG_ASSIGN_SET, v.z, &outs.value);
  ROW(dtg_strategy_updates, {}, h.strategy, &outs.value);
  ROW(dtg_strategy_level, {}, h.strategy, &outs.value);
  ROW(dtg_strategy_update, (S{3, 4}), h.strategy, v.z, writes_nothing, nullptr, nullptr, 0, &outs.value);
}

void Misuse::trainer_rows() {
  trains.feeds = &v.x;
  trains.num_feeds = 1;
  ROW(dtg_trainer_create, {}, h.model, &trains, &outs.trainer);
  ROW(dtg_trainer_retain, {}, h.trainer);
  ROW(dtg_trainer_release, {}, h.trainer);
  ROW(dtg_trainer_session, {}, h.trainer, &outs.session);
  ROW(dtg_trainer_add_metric, {}, h.trainer, "m", DTG_STRLEN, &outs.measured);
  ROW(dtg_trainer_begin, (S{2, 3}), h.trainer, h.dataset, nullptr, nullptr);
  ROW(dtg_trainer_next, {}, h.trainer, &outs.told);
  ROW(dtg_trainer_give_up, {}, h.trainer);
  ROW(dtg_trainer_fit, (S{2, 3, 4}), h.trainer, h.dataset, nullptr, nullptr, nullptr);
  ROW(dtg_trainer_stop, {}, h.trainer);
  ROW(dtg_trainer_summary, {}, h.trainer, &outs.string);
  ROW(dtg_trainer_train_step, (S{3, 4}), h.trainer, tensors, 1, nullptr, nullptr);
  ROW(dtg_trainer_evaluate, {3}, h.trainer, h.dataset, 0, nullptr, &outs.told);
  ROW(dtg_trainer_export, {}, h.trainer, file.c_str(), DTG_STRLEN);
  ROW(dtg_trainer_predict, {2}, h.trainer, h.dataset, nullptr, fetched, 1);
}

void Misuse::coordinator_rows() {
  ROW(dtg_coordinator_create, {1}, h.session, nullptr, &outs.coordinator);
  ROW(dtg_coordinator_retain, {}, h.coordinator);
  ROW(dtg_coordinator_release, {}, h.coordinator);
  ROW(dtg_coordinator_prepare, {}, h.coordinator, &asked, v.x, &outs.closure);
  ROW(dtg_closure_retain, {}, h.closure);
  ROW(dtg_closure_release, {}, h.closure);
  ROW(dtg_coordinator_create_per_worker, {}, h.coordinator, h.closure, tensors, 1);
  ROW(dtg_coordinator_schedule, (S{2, 4, 5}), h.coordinator, h.closure, tensors, 0, nullptr, &outs.remote);
  ROW(dtg_coordinator_join, {2}, h.coordinator, 1, nullptr);
  ROW(dtg_coordinator_done, {}, h.coordinator, &outs.number);
  ROW(dtg_coordinator_cancel, {}, h.coordinator);
  ROW(dtg_coordinator_status, {}, h.coordinator, &outs.string);
  ROW(dtg_remote_value_fetch, {4}, h.remote, &outs.tensor, 1, 1, nullptr);
  ROW(dtg_remote_value_retain, {}, h.remote);
  ROW(dtg_remote_value_release, {}, h.remote);
  ROW(dtg_partitioner_shards, {}, &cuts, DTG_F32, outs.dims, 1, &outs.dims[1]);
  ROW(dtg_shard_rows, {}, 4, 2, 1, &outs.dims[0], &outs.dims[1]);
}

void Misuse::sharded_rows() {
  ROW(dtg_model_add_sharded_variable, {3}, h.model, &variable, &cuts, &outs.sharded);
  ROW(dtg_model_find_sharded_variable, {}, h.model, "w", DTG_STRLEN, &outs.sharded);
  ROW(dtg_sharded_shard, {}, h.model, "w", DTG_STRLEN, 0, &outs.variable);
  ROW(dtg_nn_sharded_value, {}, h.model, "w", DTG_STRLEN, &outs.value);
  ROW(dtg_nn_sharded_lookup, {}, h.model, "w", DTG_STRLEN, v.x, &outs.value);
  ROW(dtg_nn_sharded_embedding, {}, h.model, v.x, &embedding, &cuts, &outs.value);
}

void Misuse::mesh_rows() {
  grid.devices = &device;
  grid.num_devices = 1;
  ROW(dtg_mesh_create, {}, h.model, &grid, &outs.mesh);
  ROW(dtg_mesh_retain, {}, h.mesh);
  ROW(dtg_mesh_release, {}, h.mesh);
  ROW(dtg_mesh_begin, {}, h.mesh, &v.z, 1, 1, 0);
  ROW(dtg_mesh_next, {}, h.mesh, &outs.step, &outs.number);
  ROW(dtg_mesh_give, {}, h.mesh, &v.z, 1);
  ROW(dtg_mesh_abandon, {}, h.mesh);
  ROW(dtg_mesh_result, {}, h.mesh, 0, &outs.value);
  ROW(dtg_mesh_minimize, {1}, h.mesh, nullptr, &outs.training);
  ROW(dtg_mesh_column_dense, {}, h.mesh, v.x, &dense, &outs.value, 1);
  ROW(dtg_mesh_row_dense, {}, h.mesh, &v.x, 1, &dense, &outs.value);
  ROW(dtg_mesh_together, {}, h.mesh, &v.x, 1, 0, &outs.value);
  ROW(dtg_mesh_embedding, {}, h.mesh, v.x, &embedding, DTG_CUT_ROWS, &outs.value);
  ROW(dtg_mesh_attention, {}, h.mesh, v.x, v.x, &attention, &outs.value);
}

TEST_F(Misuse, EveryPointerOfEveryFunction) {
  base_rows();
  tensor_rows();
  graph_rows();
  function_rows();
  session_rows();
  model_rows();
  layer_rows();
  data_rows();
  map_rows();
  file_rows();
  cluster_rows();
  group_rows();
  strategy_rows();
  trainer_rows();
  coordinator_rows();
  sharded_rows();
  mesh_rows();
  for (const auto& row : rows_) row();
  const char* const build = std::getenv("DTG_BUILD_DIR");
  if (!build) return;
  std::ifstream symbols(std::string(build) + "/generated/dtg.symbols");
  int exported = 0;
  for (std::string name; std::getline(symbols, name);) {
    if (!name.starts_with("dtg_")) continue;
    ++exported;
    EXPECT_TRUE(seen_.contains(name)) << name << " is exported, but has no row in this table";
  }
  EXPECT_GT(exported, 100);
  const int gone = std::system(("rm -rf '" + file + "'").c_str());
  EXPECT_EQ(gone, 0);
}

}  // namespace
}  // namespace outside
