// World: one of every object of the ABI, made with the public headers only, plus a closed handle of every type.
// Each test owns its own; one thread. At its end every handle must be gone.
#pragma once

#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace outside {

inline std::string text_of(dtg_error* error) { return dtg_error_message(error, nullptr); }

#define OK(call)                                                      \
  do {                                                                \
    dtg_error* error_ = (call);                                       \
    EXPECT_EQ(error_, nullptr) << dtg_error_message(error_, nullptr); \
    dtg_error_release(error_);                                        \
  } while (0)

// What was not there, or not in time, is told with a task, the own or that of the other end, and a phase: dtg/error.h.
inline void expect_whereabouts(const dtg_error* error) {
  const dtg_code code = dtg_error_code(error);
  if (code != DTG_DEADLINE_EXCEEDED && code != DTG_ABORTED && code != DTG_UNAVAILABLE) return;
  const std::string who = std::string(dtg_error_task(error)) + dtg_error_peer(error);
  EXPECT_NE(who, "") << "neither task nor peer: " << dtg_error_message(error, nullptr);
  EXPECT_STRNE(dtg_error_phase(error), "") << "no phase: " << dtg_error_message(error, nullptr);
}

// Takes the error over; the call must have failed with this code, which a function of the host gave, and say something.
// `origin` receives where and when it failed, as "TASK, PEER, PHASE".
inline std::string refused_by_host(dtg_error* error, dtg_code code, const std::string& what, std::string* origin = nullptr) {
  EXPECT_NE(error, nullptr) << what << " was accepted";
  if (!error) return "";
  const std::string message = text_of(error);
  EXPECT_EQ(dtg_error_code(error), code) << what << ": " << message;
  EXPECT_GT(message.size(), 12u) << what;
  if (origin) *origin = std::string(dtg_error_task(error)) + ", " + dtg_error_peer(error) + ", " + dtg_error_phase(error);
  dtg_error_release(error);
  return message;
}

// The same of an error of the library's own.
inline std::string refused(dtg_error* error, dtg_code code, const std::string& what, std::string* origin = nullptr) {
  expect_whereabouts(error);
  return refused_by_host(error, code, what, origin);
}

inline std::string folder(const char* name) {
  const char* base = std::getenv("TMPDIR");
  return std::string(base ? base : "/tmp") + "/dtg-abi-" + std::to_string(static_cast<long>(getpid())) + "-" + name;
}

inline dtg_tensor* vector_of(std::vector<float> values) {
  const int64_t dims[] = {static_cast<int64_t>(values.size())};
  dtg_tensor* tensor = nullptr;
  OK(dtg_tensor_create(DTG_F32, dims, 1, values.data(), values.size() * sizeof(float), nullptr, nullptr, &tensor));
  return tensor;
}

// One handle of each type.
struct Handles {
  dtg_runtime* runtime = nullptr;
  dtg_tensor* tensor = nullptr;
  dtg_graph* graph = nullptr;
  dtg_session* session = nullptr;
  dtg_callable* callable = nullptr;
  dtg_run* run = nullptr;
  dtg_cq* cq = nullptr;
  dtg_error* error = nullptr;
  dtg_string* string = nullptr;
  dtg_model* model = nullptr;
  dtg_dataset* dataset = nullptr;
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

  void release() {
    dtg_mesh_release(mesh);
    dtg_remote_value_release(remote);
    dtg_closure_release(closure);
    dtg_coordinator_release(coordinator);
    dtg_trainer_release(trainer);
    dtg_strategy_release(strategy);
    dtg_cancellation_release(cancellation);
    dtg_collective_release(collective);
    dtg_group_release(group);
    dtg_checkpoint_release(checkpoint);
    dtg_runtime_release(runtime);
    dtg_tensor_release(tensor);
    dtg_graph_release(graph);
    dtg_session_release(session);
    dtg_callable_release(callable);
    dtg_run_release(run);
    dtg_cq_release(cq);
    dtg_error_release(error);
    dtg_string_release(string);
    dtg_model_release(model);
    dtg_dataset_release(dataset);
    dtg_weights_release(weights);
    dtg_event_writer_release(writer);
    dtg_cluster_release(cluster);
    dtg_server_release(server);
    dtg_function_release(function);
  }
};

// A server that is alone in its cluster, and its group; the folder of its socket is made here and removed with the events.
inline void serve(Handles& h, const std::string& directory) {
  ::mkdir(directory.c_str(), 0700);
  dtg_cluster* alone = nullptr;
  OK(dtg_cluster_parse(("worker=unix:" + directory + "/w").c_str(), DTG_STRLEN, &alone));
  OK(dtg_server_start(h.runtime, alone, nullptr, &h.server));
  dtg_cluster_release(alone);
  OK(dtg_group_join(h.server, nullptr, &h.group));
  OK(dtg_group_start(h.group, DTG_BARRIER, nullptr, nullptr, nullptr, h.cq, 8, &h.collective));
  dtg_completion done;
  size_t count = 0;
  OK(dtg_cq_next(h.cq, &done, 0, 1, DTG_INFINITE, &count));
  OK(done.error);
}

// A coordinator that is a client of that server, from a runtime of its own, and a closure that has ended.
inline void coordinate(Handles& h) {
  dtg_runtime_options options = DTG_RUNTIME_OPTIONS_INIT;
  options.compute_threads = 1;
  dtg_runtime* runtime = nullptr;
  dtg_graph* graph = nullptr;
  dtg_session* session = nullptr;
  dtg_value one{};
  OK(dtg_runtime_create(&options, &runtime));
  OK(dtg_graph_create(runtime, &graph));
  OK(dtg_const_f32(graph, 1, &one));
  OK(dtg_session_connect(runtime, dtg_server_target(h.server), DTG_STRLEN, graph, nullptr, &session));
  OK(dtg_coordinator_create(session, nullptr, &h.coordinator));
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.fetches = &one;
  args.num_fetches = 1;
  OK(dtg_coordinator_prepare(h.coordinator, &args, {}, &h.closure));
  OK(dtg_coordinator_schedule(h.coordinator, h.closure, nullptr, 0, nullptr, &h.remote));
  OK(dtg_coordinator_join(h.coordinator, 0, nullptr));
  dtg_session_release(session);
  dtg_graph_release(graph);
  dtg_runtime_release(runtime);
}

// The graph of every test: z = x * y, both float vectors of 2 that must be fed.
struct Values {
  dtg_value x{}, y{}, z{};
};

inline void build(Handles& h, Values& v, const std::string& events) {
  dtg_runtime_options options = DTG_RUNTIME_OPTIONS_INIT;
  options.compute_threads = 2;
  OK(dtg_runtime_create(&options, &h.runtime));
  OK(dtg_graph_create(h.runtime, &h.graph));
  h.tensor = vector_of({2, 3});
  const int64_t dims[] = {2};
  OK(dtg_placeholder(h.graph, "x", DTG_F32, dims, 1, &v.x));
  OK(dtg_placeholder(h.graph, "y", DTG_F32, dims, 1, &v.y));
  OK(dtg_add2(h.graph, "Mul", v.x, v.y, &v.z));
  OK(dtg_session_connect(h.runtime, nullptr, 0, h.graph, nullptr, &h.session));
  OK(dtg_cq_create(&h.cq));
  OK(dtg_cancellation_create(&h.cancellation));
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  const dtg_value feeds[] = {v.x, v.y};
  const dtg_tensor* tensors[] = {h.tensor, h.tensor};
  args.feeds = feeds;
  args.feed_tensors = tensors;
  args.num_feeds = 2;
  args.fetches = &v.z;
  args.num_fetches = 1;
  OK(dtg_session_prepare(h.session, &args, &h.callable));
  OK(dtg_session_run_async(h.session, &args, h.cq, 7, &h.run));
  dtg_completion done;
  size_t count = 0;
  OK(dtg_cq_next(h.cq, &done, 0, 1, DTG_INFINITE, &count));
  EXPECT_EQ(count, 1u);
  OK(done.error);
  h.error = dtg_graph_find(h.graph, "nobody", DTG_STRLEN, &v.x);
  OK(dtg_graph_serialize(h.graph, &h.string));
  OK(dtg_model_create(h.graph, 1, &h.model));
  const char* const device = "/device:CPU:0";
  dtg_strategy_options one = DTG_STRATEGY_OPTIONS_INIT;
  one.devices = &device;
  one.num_devices = 1;
  OK(dtg_strategy_create(h.model, &one, &h.strategy));
  dtg_mesh_options grid = DTG_MESH_OPTIONS_INIT;
  grid.devices = &device;
  grid.num_devices = 1;
  OK(dtg_mesh_create(h.model, &grid, &h.mesh));
  OK(dtg_dataset_range(h.runtime, 0, 10, 1, &h.dataset));
  dtg_trainer_options trains = DTG_TRAINER_OPTIONS_INIT;
  trains.session = h.session;
  trains.feeds = &v.x;
  trains.num_feeds = 1;
  trains.train = v.z;
  OK(dtg_placeholder(h.graph, "loss", DTG_F32, nullptr, 0, &trains.loss));
  OK(dtg_trainer_create(h.model, &trains, &h.trainer));
  OK(dtg_weights_create(&h.weights));
  OK(dtg_weights_set(h.weights, "t", DTG_STRLEN, h.tensor));
  OK(dtg_event_writer_open(events.c_str(), DTG_STRLEN, nullptr, &h.writer));
  OK(dtg_cluster_parse("ps=unix:/p;worker=2@unix:/w", DTG_STRLEN, &h.cluster));
  serve(h, events + "/job");
  coordinate(h);
  dtg_checkpoint_options sets = DTG_CHECKPOINT_OPTIONS_INIT;
  const std::string directory = events + "/sets";
  sets.directory = directory.c_str();
  OK(dtg_checkpoint_open(h.model, h.session, &sets, &h.checkpoint));
  dtg_graph* body = nullptr;
  OK(dtg_function_begin(h.graph, "twice", DTG_STRLEN, &body));
  dtg_value argument{}, twice{};
  OK(dtg_function_add_argument_like(body, v.z, &argument));
  OK(dtg_add2(body, "AddV2", argument, argument, &twice));
  OK(dtg_function_end(body, &twice, 1, nullptr, 0, &h.function));
  dtg_graph_release(body);
}

class World : public testing::Test {
 protected:
  void SetUp() override {
    before_ = dtg_live_handles();
    events_ = folder("events");
    Values ignored;
    build(closed, ignored, events_);
    closed.release();
    ASSERT_EQ(dtg_live_handles(), before_);
    build(h, v, events_);
  }
  void TearDown() override {
    h.release();
    EXPECT_EQ(dtg_live_handles(), before_) << "handles were leaked";
    const int gone = std::system(("rm -rf '" + events_ + "'").c_str());
    EXPECT_EQ(gone, 0);
  }

  Handles h;
  Handles closed;  // every one of them released
  Values v;

 private:
  size_t before_ = 0;
  std::string events_;
};

}  // namespace outside
