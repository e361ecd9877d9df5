// Replicated training through the public headers: two strict workers and a chief in one session, against towers built by the
// same layers; waiting for variables that nobody initialised; shares that make no sense. One thread.
#include "world.h"

#include <cstdio>
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

// A worker of elastic training that is alone: a record's cell goes down by 1 when it is trained with.
struct Dealing {
  static constexpr int64_t kRecords = 7, kElements = 4;
  explicit Dealing(const Handles& h, int64_t elements = kElements) : session(h.session) {
    const int64_t dims[] = {kRecords}, axis = 0;
    dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
    dtg_value axes{}, product{}, loss{}, init{};
    OK(dtg_model_create(h.graph, 5, &model));
    spec.name = "cells";
    spec.dims = dims;
    spec.rank = 1;
    OK(dtg_model_add_variable(model, &spec, &cells));
    OK(dtg_placeholder(h.graph, nullptr, DTG_F32, dims, 1, &x));
    OK(dtg_const_i64s(h.graph, &axis, 1, &axes));
    OK(dtg_add2(h.graph, "Mul", cells.read, x, &product));
    OK(dtg_add2(h.graph, "Sum", product, axes, &loss));
    dtg_replication share = DTG_REPLICATION_INIT;
    share.mode = DTG_SYNC_ELASTIC;
    share.total = 3;
    share.elements = elements;
    dtg_optimizer optimizer = DTG_OPTIMIZER_INIT;
    optimizer.rate = 1;
    OK(dtg_nn_minimize_replicated(model, loss, &optimizer, &share, &added));
    OK(dtg_model_init(model, &init));
    for (const dtg_value target : {init, added.chief_init, added.local_init}) OK(dtg_run_target(session, target));
    OK(dtg_dataset_range(h.runtime, 0, kRecords, 1, &data));
    OK(dtg_dataset_shuffle(data, 0, 3));
    OK(dtg_dataset_batch(data, 2, 0));
  }
  ~Dealing() {
    dtg_dataset_release(data);
    dtg_model_release(model);
  }
  dtg_error* train(const dtg_tensor* records) {
    std::vector<float> values(kRecords);
    const auto* const numbers = static_cast<const int64_t*>(dtg_tensor_data(records, nullptr));
    for (int64_t i = 0; i < dtg_tensor_dim(records, 0); ++i) values[static_cast<size_t>(numbers[i])] = 1;
    const int64_t dims[] = {kRecords};
    dtg_tensor* fed = nullptr;
    OK(dtg_tensor_allocate(DTG_F32, dims, 1, &fed));
    std::memcpy(dtg_tensor_mutable_data(fed), values.data(), values.size() * sizeof(float));
    const dtg_tensor* const feed = fed;
    const dtg_value targets[] = {added.update, added.train};
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    args.feeds = &x;
    args.feed_tensors = &feed;
    args.num_feeds = 1;
    args.targets = targets;
    args.num_targets = 2;
    dtg_error* const error = dtg_session_run(session, &args);
    dtg_tensor_release(fed);
    return error;
  }
  dtg_session* const session;
  dtg_model* model = nullptr;
  dtg_variable cells = DTG_VARIABLE_INIT;
  dtg_value x{};
  dtg_replicated added = DTG_REPLICATED_INIT;
  dtg_dataset* data = nullptr;
};

TEST_F(Replicas, DealsEachElementOnceInAnEpoch) {
  Dealing job(h);
  int64_t epoch = 0, element = 0;
  refused(dtg_dataset_dealt(job.data, &epoch, &element), DTG_FAILED_PRECONDITION, "a data set that is not dealt");
  OK(dtg_dataset_deal(job.data, job.model, h.session, kWaitNs));
  refused(dtg_dataset_prefetch(job.data, 2), DTG_FAILED_PRECONDITION, "a transform of what is dealt");
  OK(dtg_dataset_dealt(job.data, &epoch, &element));
  EXPECT_EQ(epoch, -1);
  for (int64_t e = 0; e < 3; ++e) {
    for (int64_t i = 0;; ++i) {
      dtg_tensor *records = nullptr, *again = nullptr;
      int32_t more = 0;
      OK(dtg_dataset_next(job.data, &records, 1, &more));
      OK(dtg_dataset_dealt(job.data, &epoch, &element));
      if (!more) break;
      EXPECT_EQ(epoch, e);
      EXPECT_EQ(element, i);
      // It has not been trained with.
      OK(dtg_dataset_next(job.data, &again, 1, &more));
      OK(dtg_dataset_dealt(job.data, nullptr, &element));
      EXPECT_EQ(element, i);
      OK(job.train(again));
      dtg_tensor_release(records);
      dtg_tensor_release(again);
    }
    EXPECT_EQ(epoch, e + 1);
    EXPECT_EQ(element, -1);
    const std::string cells = bytes_of(h.session, job.cells.read);
    for (int64_t r = 0; r < Dealing::kRecords; ++r) {
      float cell = 0;
      std::memcpy(&cell, cells.data() + static_cast<size_t>(r) * sizeof cell, sizeof cell);
      EXPECT_EQ(cell, -static_cast<float>(e + 1)) << "record " << r;
    }
    OK(dtg_dataset_restart(job.data));
  }
}

// The place in the data is one with the weights.
TEST_F(Replicas, RestoredWeightsBringTheirPlaceInTheData) {
  Dealing job(h);
  const std::string path = folder("dealt") + ".safetensors";
  OK(dtg_dataset_deal(job.data, job.model, h.session, kWaitNs));
  int32_t more = 1;
  int made = 0;
  for (; more; ++made) {
    dtg_tensor* records = nullptr;
    OK(dtg_dataset_next(job.data, &records, 1, &more));
    if (more) OK(job.train(records));
    dtg_tensor_release(records);
    if (made == 1) OK(dtg_model_save(job.model, h.session, path.c_str(), DTG_STRLEN));
    if (made != 2) continue;
    OK(dtg_model_restore(job.model, h.session, path.c_str(), DTG_STRLEN));
    OK(dtg_model_recover(job.model, h.session, kWaitNs));
  }
  std::remove(path.c_str());
  EXPECT_EQ(made, 6) << "4 elements, one of them again, and the end";
  const float once[Dealing::kRecords] = {-1, -1, -1, -1, -1, -1, -1};
  EXPECT_EQ(bytes_of(h.session, job.cells.read), std::string(reinterpret_cast<const char*>(once), sizeof once));
}

TEST_F(Replicas, DealsOnlyWhatFits) {
  Dealing job(h, 5);
  const std::string other =
      refused(dtg_dataset_deal(job.data, job.model, h.session, 0), DTG_INVALID_ARGUMENT, "another number of elements");
  EXPECT_NE(other.find("by the replication an epoch has 5 elements, the data set has 4"), std::string::npos) << other;
  dtg_model* plain = nullptr;
  OK(dtg_model_create(h.graph, 5, &plain));
  refused(dtg_dataset_deal(job.data, plain, h.session, 0), DTG_FAILED_PRECONDITION, "a model that deals nothing");
  dtg_model_release(plain);
  dtg_tensor* records = nullptr;
  int32_t more = 0;
  OK(dtg_dataset_next(job.data, &records, 1, &more));
  // Nothing was dealt to it.
  refused(job.train(records), DTG_FAILED_PRECONDITION, "a step without an element");
  dtg_tensor_release(records);
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
  refuse("elements of strict", [](auto& s) { s.mode = DTG_SYNC_STRICT, s.elements = 3; });
  refuse("negative elements", [](auto& s) { s.mode = DTG_SYNC_ELASTIC, s.elements = -3; });
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
