// Trainers through the public headers: a fit is the loop by hand, to the bit; killed after any step it goes on to the same end; what it
// writes, when it stops, and what it refuses.
#include <dtg/dtg.h>
#include <dtg/sugar.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "job.h"

namespace {

using outside::folder;
using outside::refused;

constexpr int64_t kRows = 10, kBatch = 4, kBatches = 3;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Rows of three numbers, drawn by their number, and a class that hangs on them. The second half of the rows is other data.
dtg_dataset* rows(int64_t first, bool shuffled) {
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
  explicit Lab(bool has_trainer = true, const outside::Server* server = nullptr, dtg_code answer = DTG_OK) {
    const char* const target = server ? dtg_server_target(server->server) : "local";
    OK(dtg_graph_create(server ? server->runtime : nullptr, &graph));
    OK(dtg_model_create(graph, 3, &model));
    OK(dtg_session_connect(nullptr, target, DTG_STRLEN, graph, nullptr, &session));
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
    adam.rate = 0.05;
    if (!has_trainer) {
      OK(dtg_nn_minimize(model, loss, &adam, &by_hand));
      dtg_value init;
      OK(dtg_model_init(model, &init));
      OK(dtg_run_target(session, init));
      return;
    }
    dtg_trainer_options options = DTG_TRAINER_OPTIONS_INIT;
    options.session = session;
    options.feeds = feeds;
    options.num_feeds = 2;
    options.outputs = &logits;
    options.num_outputs = 1;
    options.loss = loss;
    options.optimizer = &adam;
    options.training = training;
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
  std::string summary() {
    dtg_string* told = nullptr;
    OK(dtg_trainer_summary(trainer, &told));
    std::string text = told ? dtg_string_data(told, nullptr) : "";
    dtg_string_release(told);
    return text;
  }
};

double value_of(const dtg_fit_event& event, const char* name) {
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

TEST_F(Trainer, IsTheLoopByHand) {
  Lab lab, hand(false);
  dtg_fit how = DTG_FIT_INIT;
  how.epochs = 3;
  OK(dtg_trainer_begin(lab.trainer, lab.train, lab.test, &how));
  const auto next = [&](dtg_fit_event_kind kind) {
    dtg_fit_event event = DTG_FIT_EVENT_INIT;
    OK(dtg_trainer_next(lab.trainer, &event));
    EXPECT_EQ(event.kind, kind);
    return event;
  };
  next(DTG_FIT_BEGIN);
  for (int64_t epoch = 1; epoch <= how.epochs; ++epoch) {
    next(DTG_FIT_EPOCH_BEGIN);
    if (epoch > 1) OK(dtg_dataset_restart(hand.train));
    hand.run({0}, {hand.accuracy.reset}, nullptr, false);
    double sum = 0;
    for (int64_t batch = 1; batch <= kBatches; ++batch) {
      dtg_tensor* tensors[2] = {};
      int32_t more = 0;
      OK(dtg_dataset_next(hand.train, tensors, 2, &more));
      ASSERT_EQ(more, 1);
      const double loss = hand.scalar(hand.loss, {hand.by_hand.train, hand.accuracy.update}, tensors, true);
      const int64_t count = dtg_tensor_dim(tensors[0], 0);
      sum += loss * static_cast<double>(count);
      for (dtg_tensor* tensor : tensors) dtg_tensor_release(tensor);
      const dtg_fit_event event = next(DTG_FIT_STEP);
      EXPECT_EQ(event.loss, loss);
      EXPECT_EQ(event.epoch, epoch);
      EXPECT_EQ(event.batch, batch);
      EXPECT_EQ(event.batches, kBatches);
      EXPECT_EQ(event.step, (epoch - 1) * kBatches + batch);
    }
    EXPECT_EQ(hand.bits(), lab.bits());
    const float accuracy = hand.scalar(hand.accuracy.result);
    next(DTG_FIT_VALIDATION);
    const dtg_fit_event end = next(DTG_FIT_EPOCH_END);
    EXPECT_EQ(end.loss, sum / kRows);
    EXPECT_EQ(value_of(end, "loss"), sum / kRows);
    EXPECT_EQ(value_of(end, "accuracy"), static_cast<double>(accuracy));
    EXPECT_EQ(value_of(end, "learning_rate"), static_cast<double>(0.05f));
    EXPECT_EQ(end.examples, kRows);
  }
  EXPECT_STREQ(next(DTG_FIT_DONE).text, "all epochs");
  dtg_fit_event event = DTG_FIT_EVENT_INIT;
  refused(dtg_trainer_next(lab.trainer, &event), DTG_FAILED_PRECONDITION, "a fit that is over");
}

// Validation, evaluation and prediction are runs without training, over all of the data.
TEST_F(Trainer, EvaluatesAndPredicts) {
  Lab lab, hand(false);
  double sum = 0, told = 0;
  std::string outputs;
  hand.run({0}, {hand.accuracy.reset}, nullptr, false);
  for (int32_t more = 1;;) {
    dtg_tensor* tensors[2] = {};
    OK(dtg_dataset_next(hand.test, tensors, 2, &more));
    if (!more) break;
    sum +=
        static_cast<double>(hand.scalar(hand.loss, {hand.accuracy.update}, tensors)) * static_cast<double>(dtg_tensor_dim(tensors[0], 0));
    outputs += hand.run(hand.logits, {}, tensors, false);
    for (dtg_tensor* tensor : tensors) dtg_tensor_release(tensor);
  }
  for (int round = 0; round < 2; ++round) {
    dtg_fit_event event = DTG_FIT_EVENT_INIT;
    OK(dtg_trainer_evaluate(lab.trainer, lab.test, 0, nullptr, &event));
    EXPECT_EQ(value_of(event, "loss"), sum / kRows);
    EXPECT_EQ(value_of(event, "accuracy"), static_cast<double>(hand.scalar(hand.accuracy.result)));
    dtg_tensor* predicted = nullptr;
    OK(dtg_trainer_predict(lab.trainer, lab.test, nullptr, &predicted, 1));
    EXPECT_EQ(dtg_tensor_dim(predicted, 0), kRows);
    EXPECT_EQ(dtg_tensor_dim(predicted, 1), 2);
    EXPECT_EQ(std::memcmp(dtg_tensor_data(predicted, nullptr), outputs.data(), outputs.size()), 0);
    dtg_tensor_release(predicted);
  }
  // Steps of one's own are those of the loop by hand too.
  dtg_tensor* tensors[2] = {};
  int32_t more = 0;
  OK(dtg_dataset_next(hand.train, tensors, 2, &more));
  for (int step = 0; step < 3; ++step) {
    OK(dtg_trainer_train_step(lab.trainer, tensors, 2, nullptr, &told));
    EXPECT_EQ(told, static_cast<double>(hand.scalar(hand.loss, {hand.by_hand.train}, tensors, true)));
  }
  EXPECT_EQ(hand.bits(), lab.bits());
  for (dtg_tensor* tensor : tensors) dtg_tensor_release(tensor);
}

// The rules and files that resuming must not disturb: a rate that falls, the best weights, a row per epoch.
struct Rules {
  dtg_early_stopping stopping = DTG_EARLY_STOPPING_INIT;
  dtg_plateau plateau = DTG_PLATEAU_INIT;
  dtg_fit how = DTG_FIT_INIT;
  explicit Rules(const std::string& directory) {
    stopping.patience = 2;
    stopping.restore_best = 1;
    stopping.monitor = "val_accuracy";
    plateau.monitor = "loss";
    plateau.patience = 1;
    plateau.min_delta = 0.2;
    plateau.factor = 0.5;
    how.epochs = 3;
    how.directory = directory.c_str();
    how.checkpoint_epochs = 100;
    how.best = "val_accuracy";
    how.early_stopping = &stopping;
    how.plateau = &plateau;
  }
};

// A writer that was given up may hold the directory for a moment.
void begin_when_free(Lab& lab, const dtg_fit& how) {
  for (int tries = 0; tries < 3000; ++tries) {
    dtg_error* const error = dtg_trainer_begin(lab.trainer, lab.train, lab.test, &how);
    const bool busy = dtg_error_code(error) == DTG_FAILED_PRECONDITION && tries < 2999;
    if (!busy) OK(error);
    if (!busy) return;
    dtg_error_release(error);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

TEST_F(Trainer, GoesOnAfterEveryStep) {
  std::string bits, history, table, best, last;
  int64_t steps = 0;
  for (int64_t killed = 0; killed == 0 || killed <= steps; ++killed) {
    remove();
    Rules rules(run_);
    rules.how.checkpoint_steps = killed;
    if (killed > 0) {
      Lab lab;
      OK(dtg_trainer_begin(lab.trainer, lab.train, lab.test, &rules.how));
      lab.pull([&](const dtg_fit_event& event) { return event.kind == DTG_FIT_CHECKPOINT && event.step == killed; });
    }
    Lab lab;
    begin_when_free(lab, rules.how);
    const dtg_fit_event end = lab.finish();
    const std::string told = lab.summary();
    const std::string rows = told.substr(told.find("\"history\""));
    if (killed == 0) {
      steps = end.step;
      EXPECT_EQ(steps, 3 * kBatches);
      bits = lab.bits();
      history = rows;
      table = file("metrics.csv");
      best = file("best.safetensors");
      last = file("model.safetensors");
      EXPECT_NE(table.find("learning_rate"), std::string::npos);
      continue;
    }
    EXPECT_EQ(end.step, steps) << killed;
    EXPECT_TRUE(lab.bits() == bits) << killed;
    EXPECT_EQ(rows, history) << killed;
    EXPECT_EQ(file("metrics.csv"), table) << killed;
    EXPECT_TRUE(file("model.safetensors") == last) << killed;
    EXPECT_TRUE(best.empty() || file("best.safetensors") == best) << killed;
  }
}

// A second fit in the directory of a finished one has nothing to do, unless there are more epochs.
TEST_F(Trainer, GoesOnWithMoreEpochs) {
  dtg_fit how = DTG_FIT_INIT;
  how.epochs = 2;
  how.directory = run_.c_str();
  {
    Lab lab;
    OK(dtg_trainer_fit(lab.trainer, lab.train, nullptr, &how, nullptr));
    OK(dtg_trainer_fit(lab.trainer, lab.train, nullptr, &how, nullptr));
    EXPECT_NE(lab.summary().find("\"resumed\":true"), std::string::npos);
  }
  Lab lab, straight;
  how.fresh = 1;
  refused(dtg_trainer_begin(lab.trainer, lab.train, nullptr, &how), DTG_ALREADY_EXISTS, "a directory that has a training");
  OK(dtg_trainer_begin(straight.trainer, straight.train, nullptr, nullptr));
  EXPECT_TRUE(lab.bits() == straight.bits()) << "it was restored all the same";
  how.fresh = 0;
  how.epochs = 3;
  OK(dtg_trainer_fit(lab.trainer, lab.train, nullptr, &how, nullptr));
  how.directory = nullptr;
  OK(dtg_trainer_fit(straight.trainer, straight.train, nullptr, &how, nullptr));
  EXPECT_TRUE(lab.bits() == straight.bits());
  EXPECT_NE(file("summary.json").find("\"outcome\":\"done\""), std::string::npos);
  dtg_string* report = nullptr;
  const std::string path = run_ + "/model.safetensors";
  dtg_restore part = DTG_RESTORE_INIT;
  part.partial = 1;
  OK(dtg_model_restore_from(lab.model, lab.session, path.c_str(), DTG_STRLEN, &part, &report));
  EXPECT_EQ(std::string(dtg_string_data(report, nullptr)).find("dense/kernel\""), std::string::npos) << dtg_string_data(report, nullptr);
  dtg_string_release(report);
  EXPECT_TRUE(lab.bits(false) == straight.bits(false));
}

// What callbacks are told, in order, and what they may do.
struct Heard {
  std::string kinds;
  Lab* lab = nullptr;
  int64_t stop_at = -1;
  dtg_error* fail = nullptr;
};
dtg_error* hear(void* user, dtg_trainer* trainer, const dtg_fit_event* event) {
  Heard& heard = *static_cast<Heard*>(user);
  heard.kinds += static_cast<char>('0' + event->kind);
  if (event->step == heard.stop_at) dtg_trainer_stop(trainer);
  if (event->kind == DTG_FIT_EPOCH_END) {
    dtg_tensor* out = nullptr;
    dtg_dataset* const other = rows(3, false);
    OK(dtg_trainer_predict(trainer, other, nullptr, &out, 1));
    dtg_fit_event result = DTG_FIT_EVENT_INIT;
    OK(dtg_trainer_evaluate(trainer, other, 1, nullptr, &result));
    refused(dtg_trainer_evaluate(trainer, heard.lab->train, 0, nullptr, &result), DTG_FAILED_PRECONDITION, "the fit's own data");
    dtg_dataset_release(other);
    dtg_tensor_release(out);
    return heard.fail;
  }
  if (event->kind == DTG_FIT_STEP) {
    dtg_fit_event result = DTG_FIT_EVENT_INIT;
    refused(dtg_trainer_evaluate(trainer, heard.lab->test, 0, nullptr, &result), DTG_FAILED_PRECONDITION, "in the middle of an epoch");
  }
  return nullptr;
}

TEST_F(Trainer, TellsItsCallbacks) {
  Lab lab;
  Heard heard;
  heard.lab = &lab;
  dtg_fit_callbacks callbacks = DTG_FIT_CALLBACKS_INIT;
  callbacks.user = &heard;
  callbacks.begin = callbacks.epoch_begin = callbacks.step = callbacks.validation = callbacks.rate = callbacks.epoch_end = hear;
  callbacks.checkpoint = callbacks.stopped = callbacks.done = hear;
  dtg_fit how = DTG_FIT_INIT;
  how.epochs = 3;
  how.validation_every = 2;
  how.checkpoint_epochs = 2;
  how.directory = run_.c_str();
  OK(dtg_trainer_fit(lab.trainer, lab.train, lab.test, &how, &callbacks));
  EXPECT_EQ(heard.kinds, "0"
                         "12225"
                         "122235"
                         "6"
                         "12225"
                         "6"
                         "8");
  // Asked to stop in the middle of an epoch, it saves, and goes on there.
  heard.kinds = "";
  heard.stop_at = 11;
  how.epochs = 4;
  OK(dtg_trainer_fit(lab.trainer, lab.train, lab.test, &how, &callbacks));
  EXPECT_EQ(heard.kinds, "0"
                         "122"
                         "7"
                         "6"
                         "8");
  heard.kinds = "";
  heard.stop_at = -1;
  OK(dtg_trainer_fit(lab.trainer, lab.train, lab.test, &how, &callbacks));
  EXPECT_EQ(heard.kinds, "0"
                         "1235"
                         "6"
                         "8");
  heard.fail = dtg_error_create(DTG_ABORTED, "enough of this", DTG_STRLEN);
  how.directory = nullptr;
  EXPECT_EQ(refused(dtg_trainer_fit(lab.trainer, lab.train, lab.test, &how, &callbacks), DTG_ABORTED, "a callback's error"),
            "enough of this");
}

// Epochs of so many steps go on in the data where the last one has ended, and begin it anew where it ends.
TEST_F(Trainer, CountsStepsOfAnEpoch) {
  Lab lab, hand(false);
  dtg_fit how = DTG_FIT_INIT;
  how.epochs = 2;
  how.steps_per_epoch = 3;
  OK(dtg_trainer_fit(lab.trainer, lab.train, nullptr, &how, nullptr));
  for (int step = 0; step < 6; ++step) {
    dtg_tensor* tensors[2] = {};
    int32_t more = 0;
    OK(dtg_dataset_next(hand.train, tensors, 2, &more));
    if (!more) {
      OK(dtg_dataset_restart(hand.train));
      OK(dtg_dataset_next(hand.train, tensors, 2, &more));
    }
    hand.run({0}, {hand.by_hand.train}, tensors, true);
    for (dtg_tensor* tensor : tensors) dtg_tensor_release(tensor);
  }
  EXPECT_TRUE(hand.bits() == lab.bits());
}

// The chief of a cluster fits a model that another task holds, to the bits of one process. Other workers are refused.
TEST_F(Trainer, FitsAtTheChiefOfACluster) {
  EXPECT_EQ(std::system(("mkdir -m 700 '" + run_ + "'").c_str()), 0);
  dtg_cluster* cluster = nullptr;
  const std::string at = "unix:" + run_ + "/";
  OK(dtg_cluster_parse(("ps=" + at + "p;worker=" + at + "a," + at + "b").c_str(), DTG_STRLEN, &cluster));
  {
    outside::Server ps(cluster, "ps", 0), chief(cluster, "worker", 0), other(cluster, "worker", 1);
    dtg_fit how = DTG_FIT_INIT;
    how.epochs = 2;
    const std::string directory = run_ + "/fit";
    how.directory = directory.c_str();
    Lab lab(true, &chief), alone, refused_one(true, &other, DTG_UNIMPLEMENTED);
    OK(dtg_trainer_fit(lab.trainer, lab.train, lab.test, &how, nullptr));
    how.directory = nullptr;
    OK(dtg_trainer_fit(alone.trainer, alone.train, alone.test, &how, nullptr));
    EXPECT_TRUE(lab.bits() == alone.bits());
  }
  dtg_cluster_release(cluster);
}

TEST_F(Trainer, EndsWhenItIsTold) {
  Lab lab;
  dtg_fit how = DTG_FIT_INIT;
  how.epochs = 1000000;
  how.time_limit_ns = 1;
  OK(dtg_trainer_begin(lab.trainer, lab.train, nullptr, &how));
  const dtg_fit_event stopped = lab.pull([](const dtg_fit_event& event) { return event.kind == DTG_FIT_STOPPED; });
  EXPECT_STREQ(stopped.text, "the time limit");
  lab.finish();
  how.time_limit_ns = 0;
  OK(dtg_cancellation_create(&how.cancellation));
  OK(dtg_trainer_begin(lab.trainer, lab.train, nullptr, &how));
  std::thread other([&] { dtg_cancellation_cancel(how.cancellation); });
  refused(dtg_trainer_fit(lab.trainer, lab.train, nullptr, &how, nullptr), DTG_CANCELLED, "a fit that is cancelled");
  other.join();
  dtg_fit_event event = DTG_FIT_EVENT_INIT;
  refused(dtg_trainer_next(lab.trainer, &event), DTG_CANCELLED, "the fit that was cancelled");
  EXPECT_NE(lab.summary().find("\"failed\""), std::string::npos);
  dtg_cancellation_release(how.cancellation);
  how.cancellation = nullptr;
  OK(dtg_trainer_begin(lab.trainer, lab.train, nullptr, &how));
  std::thread asks([&] { dtg_trainer_stop(lab.trainer); });
  lab.finish();
  asks.join();
}

}  // namespace
