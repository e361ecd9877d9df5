// Replicated training through the public headers: two strict workers and a chief in one session, against towers built by the
// same layers; waiting for variables that nobody initialised; shares that make no sense. One thread.
#include "world.h"

#include <cstring>

namespace outside {
namespace {

using Replicas = World;

constexpr int64_t kWaitNs = int64_t{20} * 1000 * 1000 * 1000;

// Two towers of x[4, 2] -> dense(3) -> dense(1) against zero.
struct Towers {
  Towers(dtg_graph* graph, dtg_model* model) {
    const int64_t dims[] = {4, 2}, out[] = {4, 1};
    dtg_value zero{};
    OK(dtg_placeholder(graph, nullptr, DTG_F32, out, 2, &zero));
    zeros = zero;
    for (int w = 0; w < 2; ++w) {
      OK(dtg_placeholder(graph, nullptr, DTG_F32, dims, 2, &x[w]));
      if (w > 0) OK(dtg_model_next_tower(model));
      dtg_value y = x[w];
      for (const int64_t units : {3, 1}) {
        dtg_dense layer = DTG_DENSE_INIT;
        layer.units = units;
        layer.activation = units == 3 ? DTG_ACT_TANH : DTG_ACT_NONE;
        OK(dtg_nn_dense(model, y, &layer, &y));
      }
      OK(dtg_nn_mean_squared_error(model, zero, y, &loss[w]));
    }
    EXPECT_EQ(dtg_model_variable_count(model), 4u);
  }
  dtg_value x[2]{}, zeros{}, loss[2]{};
};

dtg_tensor* filled(int64_t rows, int64_t columns, float seed) {
  float values[8] = {};
  for (int i = 0; i < 8; ++i) values[i] = seed * static_cast<float>(i % 3) - 0.25f * static_cast<float>(i);
  if (seed == 0) std::memset(values, 0, sizeof values);
  const int64_t dims[] = {rows, columns};
  dtg_tensor* tensor = nullptr;
  OK(dtg_tensor_create(DTG_F32, dims, 2, values, static_cast<size_t>(rows * columns) * 4, nullptr, nullptr, &tensor));
  return tensor;
}

// Runs `targets[0..n)` at once, each with the same feeds, and waits for all.
void run_together(dtg_session* session, std::vector<dtg_value> targets, const Towers& towers) {
  dtg_cq* cq = nullptr;
  OK(dtg_cq_create(&cq));
  const dtg_value feeds[] = {towers.x[0], towers.x[1], towers.zeros};
  dtg_tensor* tensors[] = {filled(4, 2, 0.5f), filled(4, 2, 0.125f), filled(4, 1, 0)};
  for (size_t i = 0; i < targets.size(); ++i) {
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    args.feeds = feeds;
    args.feed_tensors = tensors;
    args.num_feeds = 3;
    args.targets = &targets[i];
    args.num_targets = 1;
    args.timeout_ns = kWaitNs;
    OK(dtg_session_run_async(session, &args, cq, i, nullptr));
  }
  for (size_t ended = 0; ended < targets.size(); ++ended) {
    dtg_completion done{};
    size_t count = 0;
    OK(dtg_cq_next(cq, &done, 0, 1, kWaitNs, &count));
    ASSERT_EQ(count, 1u);
    OK(done.error);
  }
  for (dtg_tensor* tensor : tensors) dtg_tensor_release(tensor);
  dtg_cq_release(cq);
}

std::string bytes_of(dtg_session* session, dtg_value value) {
  dtg_tensor* fetched = nullptr;
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.fetches = &value;
  args.fetched = &fetched;
  args.num_fetches = 1;
  OK(dtg_session_run(session, &args));
  size_t size = 0;
  const auto* data = static_cast<const char*>(dtg_tensor_data(fetched, &size));
  const std::string bytes(data ? data : "", size);
  dtg_tensor_release(fetched);
  return bytes;
}

std::string all_bytes(dtg_session* session, dtg_model* model) {
  std::string bytes;
  for (size_t i = 0; i < dtg_model_variable_count(model); ++i) {
    dtg_variable variable = DTG_VARIABLE_INIT;
    OK(dtg_model_variable(model, i, &variable));
    bytes += std::string(variable.name) + ":" + bytes_of(session, variable.read) + "\n";
  }
  return bytes;
}

dtg_optimizer momentum() {
  dtg_optimizer optimizer = DTG_OPTIMIZER_INIT;
  optimizer.kind = DTG_OPT_MOMENTUM;
  optimizer.rate = 0.1;
  optimizer.momentum = 0.5;
  return optimizer;
}

std::string trained_by_towers(dtg_runtime* runtime, int steps) {
  dtg_graph* graph = nullptr;
  dtg_model* model = nullptr;
  dtg_session* session = nullptr;
  OK(dtg_graph_create(runtime, &graph));
  OK(dtg_model_create(graph, 5, &model));
  const Towers towers(graph, model);
  dtg_variable step = DTG_VARIABLE_INIT;
  OK(dtg_model_global_step(model, &step));
  dtg_training training = DTG_TRAINING_INIT;
  const dtg_optimizer optimizer = momentum();
  OK(dtg_nn_minimize_towers(model, towers.loss, 2, &optimizer, &training));
  dtg_value init{};
  OK(dtg_model_init(model, &init));
  OK(dtg_session_connect(runtime, nullptr, 0, graph, nullptr, &session));
  OK(dtg_run_target(session, init));
  for (int i = 0; i < steps; ++i) run_together(session, {training.train}, towers);
  const std::string bytes = all_bytes(session, model);
  dtg_session_release(session);
  dtg_model_release(model);
  dtg_graph_release(graph);
  return bytes;
}

TEST_F(Replicas, StrictWorkersAndTowersGiveEqualBits) {
  dtg_model* model = nullptr;
  OK(dtg_model_create(h.graph, 5, &model));
  const Towers towers(h.graph, model);
  const dtg_optimizer optimizer = momentum();
  dtg_replicated parts[2] = {DTG_REPLICATED_INIT, DTG_REPLICATED_INIT};
  for (int32_t w = 0; w < 2; ++w) {
    dtg_replication share = DTG_REPLICATION_INIT;
    share.mode = DTG_SYNC_STRICT;
    share.worker = w;
    share.total = 2;
    OK(dtg_nn_minimize_replicated(model, towers.loss[w], &optimizer, &share, &parts[w]));
  }
  EXPECT_NE(parts[0].update.id, 0u);
  EXPECT_EQ(parts[1].update.id, 0u);
  EXPECT_EQ(parts[1].chief_init.id, 0u);
  dtg_value init{};
  OK(dtg_model_init(model, &init));
  OK(dtg_run_target(h.session, init));
  OK(dtg_model_wait_ready(model, h.session, kWaitNs));
  for (const dtg_value target : {parts[0].chief_init, parts[0].local_init, parts[1].local_init}) OK(dtg_run_target(h.session, target));
  for (int i = 0; i < 5; ++i) {
    std::vector<dtg_value> targets = {parts[0].update, parts[0].train, parts[1].train};
    if (i % 2) std::swap(targets[0], targets[2]);
    run_together(h.session, targets, towers);
  }
  int64_t step = 0;
  std::memcpy(&step, bytes_of(h.session, parts[1].local_step).data(), sizeof step);
  EXPECT_EQ(step, 5);
  EXPECT_EQ(all_bytes(h.session, model), trained_by_towers(h.runtime, 5));
  dtg_model_release(model);
}

TEST_F(Replicas, WaitsForVariablesAndNamesThem) {
  dtg_model* model = nullptr;
  OK(dtg_model_create(h.graph, 5, &model));
  OK(dtg_model_wait_ready(model, h.session, 1));  // none, so all of them
  dtg_variable a = DTG_VARIABLE_INIT, b = DTG_VARIABLE_INIT;
  OK(dtg_variable_f32(model, "first", 1, &a));
  OK(dtg_variable_f32(model, "second", 1, &b));
  OK(dtg_run_target(h.session, a.assign));
  const std::string missing =
      refused(dtg_model_wait_ready(model, h.session, 30 * 1000 * 1000), DTG_DEADLINE_EXCEEDED, "a variable without value");
  EXPECT_NE(missing.find("\"second\""), std::string::npos) << missing;
  EXPECT_EQ(missing.find("\"first\""), std::string::npos) << missing;
  refused(dtg_model_wait_ready(model, h.session, -5), DTG_INVALID_ARGUMENT, "a negative timeout");
  OK(dtg_run_target(h.session, b.assign));
  OK(dtg_model_wait_ready(model, h.session, kWaitNs));
  dtg_model_release(model);
}

TEST_F(Replicas, SharesThatMakeNoSense) {
  dtg_model* model = nullptr;
  OK(dtg_model_create(h.graph, 5, &model));
  const Towers towers(h.graph, model);
  const auto refuse = [&](const char* what, auto&& change) {
    dtg_replication share = DTG_REPLICATION_INIT;
    change(share);
    dtg_replicated out = DTG_REPLICATED_INIT;
    refused(dtg_nn_minimize_replicated(model, towers.loss[0], nullptr, &share, &out), DTG_INVALID_ARGUMENT, what);
    EXPECT_EQ(out.train.id, 0u) << what;
  };
  refuse("a mode", [](auto& s) { s.mode = 5; });
  refuse("a negative mode", [](auto& s) { s.mode = -1; });
  refuse("worker 2 of 2", [](auto& s) { s.worker = 2, s.total = 2; });
  refuse("a negative worker", [](auto& s) { s.worker = -1; });
  refuse("a negative total", [](auto& s) { s.total = -2; });
  refuse("too many", [](auto& s) { s.total = INT32_MAX; });
  refuse("R of strict", [](auto& s) { s.mode = DTG_SYNC_STRICT, s.total = 2, s.to_aggregate = 1; });
  dtg_training training = DTG_TRAINING_INIT;
  refused(dtg_nn_minimize_towers(model, towers.loss, 0, nullptr, &training), DTG_INVALID_ARGUMENT, "no towers");
  OK(dtg_model_next_tower(model));
  dtg_variable other = DTG_VARIABLE_INIT;
  refused(dtg_variable_f32(model, "another", 1, &other), DTG_FAILED_PRECONDITION, "another variable");
  dtg_model_release(model);
}

}  // namespace
}  // namespace outside
