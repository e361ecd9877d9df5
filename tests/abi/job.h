// A job inside one test, with the public headers only: servers with a runtime each, programs that build a graph of their own
// and meet at them, and runs that are started together and waited for. One thread.
#pragma once

#include "world.h"

namespace outside {

constexpr int64_t kWaitNs = int64_t{60} * 1000 * 1000 * 1000;

// A graph, its model, and the session that runs it once it is connected.
struct Program {
  explicit Program(dtg_runtime* runtime) {
    OK(dtg_graph_create(runtime, &graph));
    OK(dtg_model_create(graph, 5, &model));
  }
  ~Program() {
    dtg_session_release(session);
    dtg_model_release(model);
    dtg_graph_release(graph);
  }
  Program(const Program&) = delete;

  void on(const std::string& device) { OK(dtg_graph_push_device(graph, device.c_str(), DTG_STRLEN)); }
  void off() { OK(dtg_graph_pop_device(graph)); }
  void global_step(const std::string& device) {
    on(device);
    dtg_variable step = DTG_VARIABLE_INIT;
    OK(dtg_model_global_step(model, &step));
    off();
  }

  dtg_graph* graph = nullptr;
  dtg_model* model = nullptr;
  dtg_session* session = nullptr;
};

// A server with a runtime of its own; `server` stays null where somebody else has its address.
struct Server {
  Server(const dtg_cluster* cluster, const char* job, int32_t task, const char* key_file = nullptr, int32_t emu_devices = 0,
         int32_t no_shared_memory = 0) {
    dtg_runtime_options options = DTG_RUNTIME_OPTIONS_INIT;
    options.compute_threads = 1;
    OK(dtg_runtime_create(&options, &runtime));
    dtg_server_options which = DTG_SERVER_OPTIONS_INIT;
    which.job = job;
    which.task = task;
    which.key_file = key_file;
    which.emu_devices = emu_devices;
    which.no_shared_memory = no_shared_memory;
    dtg_error* const error = dtg_server_start(runtime, cluster, &which, &server);
    if (dtg_error_code(error) == DTG_ALREADY_EXISTS) dtg_error_release(error);
    else OK(error);
  }
  ~Server() {
    dtg_server_release(server);
    dtg_runtime_release(runtime);
  }
  Server(const Server&) = delete;
  dtg_runtime* runtime = nullptr;
  dtg_server* server = nullptr;
};

// The row numbers that copy w of a program is given in a step.
inline dtg_tensor* ids_of(int step, int w) {
  int32_t ids[4];
  for (int i = 0; i < 4; ++i) ids[i] = (step + w * 2 + i * i) % 6;
  const int64_t dims[] = {4};
  dtg_tensor* tensor = nullptr;
  OK(dtg_tensor_create(DTG_I32, dims, 1, ids, sizeof ids, nullptr, nullptr, &tensor));
  return tensor;
}

// Starts a run of `target` and takes the tensors over; `cq` tells of its end.
inline void start(dtg_session* session, dtg_value target, std::vector<dtg_value> feeds, std::vector<dtg_tensor*> tensors, dtg_cq* cq,
                  uint64_t tag) {
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.feeds = feeds.data();
  args.feed_tensors = tensors.data();
  args.num_feeds = feeds.size();
  args.targets = &target;
  args.num_targets = 1;
  args.timeout_ns = kWaitNs;
  OK(dtg_session_run_async(session, &args, cq, tag, nullptr));
  for (dtg_tensor* tensor : tensors) dtg_tensor_release(tensor);
}

inline void wait_for(dtg_cq* cq, int runs, dtg_code expected = DTG_OK) {
  for (int i = 0; i < runs; ++i) {
    dtg_completion done{};
    size_t count = 0;
    OK(dtg_cq_next(cq, &done, 0, 1, kWaitNs, &count));
    ASSERT_EQ(count, 1u) << "a run has not ended";
    if (expected != DTG_OK) refused(done.error, expected, "run " + std::to_string(done.tag));
    else OK(done.error);
  }
}

// The bytes of one value.
inline std::string fetched(dtg_session* session, dtg_value value, const dtg_value* fed = nullptr, dtg_tensor* with = nullptr) {
  dtg_tensor* tensor = nullptr;
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.feeds = fed;
  args.feed_tensors = &with;
  args.num_feeds = fed ? 1 : 0;
  args.fetches = &value;
  args.fetched = &tensor;
  args.num_fetches = 1;
  OK(dtg_session_run(session, &args));
  size_t size = 0;
  const auto* data = static_cast<const char*>(dtg_tensor_data(tensor, &size));
  const std::string bytes(data ? data : "", data ? size : 0);
  dtg_tensor_release(tensor);
  return bytes;
}

}  // namespace outside
