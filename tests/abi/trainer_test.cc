// Trainers through the public headers: a fit is the loop by hand, to the bit; killed after any step it goes on to the same end; what it
// writes, when it stops, and what it refuses.
#include <thread>
#include <utility>

#include "trainer_lab.h"

namespace {

using namespace fits;

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
  how = DTG_FIT_INIT;
  EXPECT_EQ(refused_by_host(dtg_trainer_fit(lab.trainer, lab.train, lab.test, &how, &callbacks), DTG_ABORTED, "a callback's error"),
            "enough of this");
}

// Who calls in between is answered or refused; a fit, which is hours of work, never is.
TEST_F(Trainer, OutlivesWhoComesInBetween) {
  Lab lab;
  for (const bool pulled : {false, true}) {
    std::atomic<bool> over{false};
    std::atomic<int> told{0}, refusals{0};
    std::vector<std::thread> others;
    for (int which = 0; which < 2; ++which) {
      others.emplace_back([&, which] {
        while (!over) {
          dtg_string* text = nullptr;
          dtg_session* session = nullptr;
          dtg_error* error = which == 0 ? dtg_trainer_summary(lab.trainer, &text) : dtg_trainer_session(lab.trainer, &session);
          if (which == 0 && !error) ++told;
          if (which == 0 && error) {
            EXPECT_NE(std::string(dtg_error_message(error, nullptr)).find("none was begun"), std::string::npos);
          }
          if (which == 1 && error) ++refusals;
          dtg_error_release(error);
          dtg_string_release(text);
          dtg_session_release(session);
        }
      });
    }
    dtg_fit how = DTG_FIT_INIT;
    how.epochs = 400;
    // On a busy machine one fit may be over before both others have had a turn.
    do {
      if (!pulled) {
        OK(dtg_trainer_fit(lab.trainer, lab.train, nullptr, &how, nullptr));
        continue;
      }
      dtg_fit_event event = DTG_FIT_EVENT_INIT;
      OK(dtg_trainer_begin(lab.trainer, lab.train, nullptr, &how));
      while (event.kind != DTG_FIT_DONE && !HasFailure()) OK(dtg_trainer_next(lab.trainer, &event));
    } while (!HasFailure() && (told == 0 || refusals == 0));
    over = true;
    for (std::thread& other : others) other.join();
    EXPECT_GT(told, 0);
    EXPECT_GT(refusals, 0);
  }
}

// Two threads in one trainer are against the header, and each gets its own values or an error; a release takes nothing from who reads.
TEST_F(Trainer, AnEventIsTheThreadsThatWasGivenIt) {
  Lab lab;
  dtg_dataset* const data[] = {rows(0, false), rows(1000, false)};
  double expected[2] = {};
  dtg_fit_event event = DTG_FIT_EVENT_INIT;
  for (int which = 0; which < 2; ++which) {
    OK(dtg_trainer_evaluate(lab.trainer, data[which], 0, nullptr, &event));
    expected[which] = event.values[0];
  }
  ASSERT_NE(expected[0], expected[1]);
  std::vector<std::thread> threads;
  for (int which = 0; which < 2; ++which) {
    threads.emplace_back([&, which] {
      for (int i = 0; i < 500; ++i) {
        dtg_fit_event mine = DTG_FIT_EVENT_INIT;
        dtg_error* const error = dtg_trainer_evaluate(lab.trainer, data[which], 0, nullptr, &mine);
        std::this_thread::yield();
        if (!error) {
          EXPECT_EQ(mine.values[0], expected[which]);
        }
        dtg_error_release(error);
      }
    });
  }
  for (std::thread& each : threads) each.join();
  OK(dtg_trainer_evaluate(lab.trainer, data[0], 0, nullptr, &event));
  dtg_trainer_release(std::exchange(lab.trainer, nullptr));
  EXPECT_EQ(event.values[0], expected[0]);
  EXPECT_STREQ(event.names[0], "loss");
  for (dtg_dataset* const each : data) dtg_dataset_release(each);
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

// It is begun again until it finds the server that came back empty; from its first values, or from its newest checkpoint.
TEST_F(Trainer, GoesOnWhenAServerCameBackEmpty) {
  EXPECT_EQ(std::system(("mkdir -m 700 '" + run_ + "'").c_str()), 0);
  dtg_cluster* cluster = nullptr;
  const std::string at = "unix:" + run_ + "/";
  OK(dtg_cluster_parse(("ps=" + at + "p;worker=" + at + "a").c_str(), DTG_STRLEN, &cluster));
  {
    auto ps = std::make_unique<outside::Server>(cluster, "ps", 0);
    outside::Server chief(cluster, "worker", 0);
    dtg_fit how = DTG_FIT_INIT;
    const std::string directory = run_ + "/fit";
    how.directory = directory.c_str();
    Lab lab(true, &chief), alone;
    const auto begin_again = [&] {
      dtg_error* error = dtg_trainer_begin(lab.trainer, lab.train, lab.test, &how);
      int tries = 0;
      for (; error && dtg_error_code(error) == DTG_ABORTED && tries < 5; ++tries) {
        dtg_error_release(error);
        error = dtg_trainer_begin(lab.trainer, lab.train, lab.test, &how);
      }
      OK(error);
      return tries;
    };
    OK(dtg_trainer_begin(lab.trainer, lab.train, lab.test, &how));
    for (int epoch = 1; epoch <= 2; ++epoch) {
      ps.reset();
      ps = std::make_unique<outside::Server>(cluster, "ps", 0);
      how.epochs = epoch;
      EXPECT_GT(begin_again(), 0);
      lab.finish();
    }
    EXPECT_TRUE(lab.summary().find("\"resumed\":true") != std::string::npos) << lab.summary();
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
