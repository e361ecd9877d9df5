// A small net with its data and a trainer of it, for the tests of fits; and the fixture that gives each of them a directory. One thread.
#pragma once

#include <dtg/dtg.h>
#include <dtg/sugar.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>

#include "job.h"

namespace fits {

using outside::folder;
using outside::refused;
using outside::refused_by_host;

inline constexpr int64_t kRows = 10, kBatch = 4, kBatches = 3;

inline std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Rows of three numbers, drawn by their number, and a class that hangs on them. The second half of the rows is other data.
inline dtg_dataset* rows(int64_t first, bool shuffled) {
  std::vector<float> x;
  std::vector<int64_t> y;
  uint64_t state = 7 + static_cast<uint64_t>(first);
  for (int64_t i = 0; i < kRows * 3; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    x.push_back(static_cast<float>(state >> 40) / float{1 << 24} - 0.5f);
    if (i % 3 == 2) y.push_back(x[x.size() - 1] > x[x.size() - 2] ? 1 : 0);
  }
  const int64_t dims[] = {kRows, 3};
  dtg_tensor* tensors[2] = {};
  OK(dtg_tensor_create(DTG_F32, dims, 2, x.data(), x.size() * 4, nullptr, nullptr, &tensors[0]));
  OK(dtg_tensor_create(DTG_I64, dims, 1, y.data(), y.size() * 8, nullptr, nullptr, &tensors[1]));
  dtg_dataset* data = nullptr;
  OK(dtg_dataset_tensors(nullptr, tensors, 2, &data));
  for (dtg_tensor* tensor : tensors) dtg_tensor_release(tensor);
  if (shuffled) OK(dtg_dataset_shuffle(data, 0, 5));
  OK(dtg_dataset_batch(data, kBatch, 0));
  return data;
}

// A small net with a dropout, its metric, its data, and a trainer of it unless the training is to be made by hand.
struct Lab {
  dtg_graph* graph = nullptr;
  dtg_model* model = nullptr;
  dtg_session* session = nullptr;
  dtg_dataset *train = rows(0, true), *test = rows(1000, false);
  dtg_trainer* trainer = nullptr;
  dtg_value feeds[2], training{}, logits{}, loss{};
  dtg_metric_values accuracy = DTG_METRIC_VALUES_INIT;
  dtg_training by_hand = DTG_TRAINING_INIT;

  // `server`: of the task that the session speaks for; the model is on the ps then.
  explicit Lab(bool has_trainer = true, const outside::Server* server = nullptr, dtg_code answer = DTG_OK, bool scheduled = false,
               float rate = 0.05f, dtg_runtime* runtime = nullptr) {
    const char* const target = server ? dtg_server_target(server->server) : "local";
    OK(dtg_graph_create(server ? server->runtime : runtime, &graph));
    OK(dtg_model_create(graph, 3, &model));
    OK(dtg_session_connect(runtime, target, DTG_STRLEN, graph, nullptr, &session));
    if (server) OK(dtg_graph_push_device(graph, "/job:ps/task:0", DTG_STRLEN));
    const int64_t dims[] = {-1, 3};
    OK(dtg_placeholder(graph, "x", DTG_F32, dims, 2, &feeds[0]));
    OK(dtg_placeholder(graph, "y", DTG_I64, dims, 1, &feeds[1]));
    OK(dtg_placeholder(graph, "training", DTG_BOOL, nullptr, 0, &training));
    dtg_dense hidden = DTG_DENSE_INIT, classes = DTG_DENSE_INIT;
    hidden.units = 6;
    hidden.activation = DTG_ACT_RELU;
    classes.units = 2;
    dtg_variable step = DTG_VARIABLE_INIT;
    dtg_value layer;
    OK(dtg_model_global_step(model, &step));
    OK(dtg_nn_dense(model, feeds[0], &hidden, &layer));
    OK(dtg_nn_dropout(model, layer, 0.3, step.read, training, &layer));
    OK(dtg_nn_dense(model, layer, &classes, &logits));
    OK(dtg_nn_sparse_softmax_cross_entropy(model, feeds[1], logits, &loss));
    dtg_metric metric = DTG_METRIC_INIT;
    metric.kind = DTG_METRIC_SPARSE_CATEGORICAL_ACCURACY;
    OK(dtg_nn_metric(model, &metric, feeds[1], logits, {0}, &accuracy));
    dtg_optimizer adam = DTG_OPTIMIZER_INIT;
    adam.kind = DTG_OPT_ADAM;
    if (scheduled) adam.learning_rate = constant(rate);
    else adam.rate = static_cast<double>(rate);
    if (!has_trainer) {
      OK(dtg_nn_minimize(model, loss, &adam, &by_hand));
      dtg_value init;
      OK(dtg_model_init(model, &init));
      OK(dtg_run_target(session, init));
      return;
    }
    dtg_trainer_options options = what();
    options.optimizer = &adam;
    if (answer != DTG_OK) refused(dtg_trainer_create(model, &options, &trainer), answer, "a trainer");
    if (answer != DTG_OK) return;
    OK(dtg_trainer_create(model, &options, &trainer));
    OK(dtg_trainer_add_metric(trainer, "accuracy", DTG_STRLEN, &accuracy));
  }
  ~Lab() {
    dtg_trainer_release(trainer);
    dtg_session_release(session);
    dtg_dataset_release(train);
    dtg_dataset_release(test);
    dtg_model_release(model);
    dtg_graph_release(graph);
  }
  Lab(const Lab&) = delete;

  // A trainer of it by SGD.
  dtg_trainer_options what() const {
    dtg_trainer_options options = DTG_TRAINER_OPTIONS_INIT;
    options.session = session;
    options.feeds = feeds;
    options.num_feeds = 2;
    options.outputs = &logits;
    options.num_outputs = 1;
    options.loss = loss;
    options.training = training;
    return options;
  }
  dtg_value constant(float number) const {
    dtg_value value;
    dtg_tensor* tensor = nullptr;
    OK(dtg_tensor_create(DTG_F32, nullptr, 0, &number, sizeof number, nullptr, nullptr, &tensor));
    OK(dtg_const(graph, tensor, &value));
    dtg_tensor_release(tensor);
    return value;
  }
  // One run; what it fetches as bytes.
  std::string run(dtg_value fetch, const std::vector<dtg_value>& targets, dtg_tensor* const* batch, bool trains) {
    const int64_t none = 0;
    uint8_t flag = trains ? 1 : 0;
    dtg_tensor *yes = nullptr, *fetched = nullptr;
    OK(dtg_tensor_create(DTG_BOOL, &none, 0, &flag, 1, nullptr, nullptr, &yes));
    const dtg_value fed[] = {feeds[0], feeds[1], training};
    const dtg_tensor* tensors[] = {batch ? batch[0] : nullptr, batch ? batch[1] : nullptr, yes};
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    args.feeds = fed;
    args.feed_tensors = tensors;
    args.num_feeds = batch ? 3 : 0;
    args.fetches = &fetch;
    args.fetched = &fetched;
    args.num_fetches = fetch.id ? 1 : 0;
    args.targets = targets.data();
    args.num_targets = targets.size();
    OK(dtg_session_run(session, &args));
    std::string bytes;
    if (fetched)
      bytes.assign(static_cast<const char*>(dtg_tensor_data(fetched, nullptr)),
                   dtg_tensor_count(fetched) * dtg_dtype_size(dtg_tensor_dtype(fetched)));
    dtg_tensor_release(fetched);
    dtg_tensor_release(yes);
    return bytes;
  }
  float scalar(dtg_value fetch, const std::vector<dtg_value>& targets = {}, dtg_tensor* const* batch = nullptr, bool trains = false) {
    float value = 0;
    const std::string bytes = run(fetch, targets, batch, trains);
    EXPECT_EQ(bytes.size(), sizeof value);
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  // The bits of every variable; what a metric counts is left out, as an evaluation may have come last.
  std::string bits(bool all = true) {
    std::string told;
    for (size_t i = 0; i < dtg_model_variable_count(model); ++i) {
      dtg_variable variable = DTG_VARIABLE_INIT;
      OK(dtg_model_variable(model, i, &variable));
      if (std::strstr(variable.name, "accuracy") || (!all && !variable.trainable)) continue;
      told += std::string(variable.name) + "=" + run(variable.read, {}, nullptr, false);
    }
    return told;
  }
  // Pulls until an event says so; what it was.
  dtg_fit_event pull(const std::function<bool(const dtg_fit_event&)>& enough) {
    dtg_fit_event event = DTG_FIT_EVENT_INIT;
    do {
      dtg_error* const error = dtg_trainer_next(trainer, &event);
      EXPECT_EQ(error, nullptr) << dtg_error_message(error, nullptr);
      if (error) return dtg_error_release(error), event;
    } while (!enough(event));
    return event;
  }
  dtg_fit_event finish() {
    return pull([](const dtg_fit_event& event) { return event.kind == DTG_FIT_DONE; });
  }
  dtg_fit_event pull(dtg_fit_event_kind kind, int64_t epoch = 0) {
    return pull([&](const dtg_fit_event& event) { return event.kind == kind && (epoch == 0 || event.epoch == epoch); });
  }
  std::string summary() {
    dtg_string* told = nullptr;
    OK(dtg_trainer_summary(trainer, &told));
    std::string text = told ? dtg_string_data(told, nullptr) : "";
    dtg_string_release(told);
    return text;
  }
};

inline double value_of(const dtg_fit_event& event, const char* name) {
  for (size_t i = 0; i < event.num_values; ++i) {
    if (std::strcmp(event.names[i], name) == 0) return event.values[i];
  }
  ADD_FAILURE() << name << " is not told";
  return -1;
}

class Trainer : public testing::Test {
 protected:
  void SetUp() override {
    handles_ = dtg_live_handles();
    run_ = folder("run");
    remove();
  }
  void TearDown() override {
    remove();
    EXPECT_EQ(dtg_live_handles(), handles_);
  }
  void remove() { EXPECT_EQ(std::system(("rm -rf '" + run_ + "'").c_str()), 0); }
  std::string file(const char* name) const { return text_of(run_ + "/" + name); }
  std::string run_;

 private:
  size_t handles_ = 0;
};

}  // namespace fits
