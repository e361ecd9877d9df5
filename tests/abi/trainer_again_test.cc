// Fits that are changed, refused or left in the middle, through the public headers: what goes on with another rule than before, what
// others may do meanwhile, and what an end by an error leaves behind.
#include <atomic>
#include <filesystem>
#include <thread>

#include "trainer_lab.h"

namespace {

using namespace fits;

// Rules by which nothing gets better after the first epoch.
struct Stubborn {
  dtg_early_stopping stopping = DTG_EARLY_STOPPING_INIT;
  dtg_plateau plateau = DTG_PLATEAU_INIT;
  dtg_fit how = DTG_FIT_INIT;
  explicit Stubborn(int64_t epochs, const std::string& directory = "") {
    stopping.monitor = plateau.monitor = "loss";
    stopping.patience = 100;
    stopping.min_delta = plateau.min_delta = 1000;
    plateau.patience = 1;
    plateau.factor = 0.5;
    how.epochs = epochs;
    if (!directory.empty()) how.directory = directory.c_str();
  }
};

void fit(Lab& lab, const dtg_fit& how) { OK(dtg_trainer_fit(lab.trainer, lab.train, lab.test, &how, nullptr)); }
void begin(Lab& lab, const dtg_fit& how) { OK(dtg_trainer_begin(lab.trainer, lab.train, lab.test, &how)); }
bool tells(Lab& lab, const char* words) { return lab.summary().find(words) != std::string::npos; }

TEST_F(Trainer, RestoresTheBestOfAModelThatGrows) {
  Lab lab;
  Stubborn rules(3, run_);
  rules.stopping.restore_best = 1;
  rules.how.early_stopping = &rules.stopping;
  begin(lab, rules.how);
  lab.pull(DTG_FIT_EPOCH_END, 1);
  const std::string best = lab.bits(false);
  lab.pull(DTG_FIT_EPOCH_END, 2);
  const size_t had = dtg_model_variable_count(lab.model);
  dtg_dense more = DTG_DENSE_INIT;
  more.units = 64;
  dtg_value unused;
  OK(dtg_nn_dense(lab.model, lab.feeds[0], &more, &unused));
  for (size_t i = had; i < dtg_model_variable_count(lab.model); ++i) {
    dtg_variable added = DTG_VARIABLE_INIT;
    OK(dtg_model_variable(lab.model, i, &added));
    OK(dtg_run_target(lab.session, added.assign));
  }
  EXPECT_STREQ(lab.finish().text, "all epochs");
  EXPECT_EQ(lab.bits(false).substr(0, best.size()), best);
  EXPECT_GT(dtg_model_variable_count(lab.model), had);
}

TEST_F(Trainer, GoesOnFromAScheduleWithARate) {
  dtg_fit how = DTG_FIT_INIT;
  how.directory = run_.c_str();
  Lab scheduled(true, nullptr, DTG_OK, true), plain, straight;
  fit(scheduled, how);
  how.epochs = 2;
  begin(plain, how);
  EXPECT_EQ(plain.pull(DTG_FIT_EPOCH_END).learning_rate, static_cast<double>(0.05f));
  plain.finish();
  how.directory = nullptr;
  fit(straight, how);
  EXPECT_TRUE(plain.bits(false) == straight.bits(false));
}

TEST_F(Trainer, BeginsRulesAnewThatWatchAnotherValue) {
  Stubborn rules(2, run_);
  Lab first, second, third;
  fit(first, rules.how);
  rules.how.best = "loss";
  rules.how.best_better = rules.stopping.better = rules.plateau.better = DTG_BETTER_GREATER;
  rules.how.early_stopping = &rules.stopping;
  rules.how.plateau = &rules.plateau;
  rules.how.epochs = 3;
  fit(second, rules.how);
  EXPECT_FALSE(file("best.safetensors").empty()) << "asked for only by who goes on";
  EXPECT_TRUE(tells(second, "\"best_epoch\":3")) << second.summary();
  // The other way round the first epoch would never be improved on.
  rules.how.best_better = rules.stopping.better = rules.plateau.better = DTG_BETTER_LESS;
  rules.how.epochs = 5;
  begin(third, rules.how);
  EXPECT_EQ(third.pull(DTG_FIT_EPOCH_END, 4).learning_rate, static_cast<double>(0.05f));
  EXPECT_EQ(third.pull(DTG_FIT_RATE, 5).learning_rate, static_cast<double>(0.025f));
  EXPECT_EQ(third.pull(DTG_FIT_EPOCH_END, 5).learning_rate, static_cast<double>(0.05f)) << "of the epoch's steps";
  third.finish();
  EXPECT_TRUE(tells(third, "\"best_epoch\":4")) << third.summary();
}

TEST_F(Trainer, GoesOnWhereItHadEndedEarly) {
  Stubborn rules(9, run_);
  rules.stopping.patience = 1;
  rules.how.early_stopping = &rules.stopping;
  const auto ends_at = [&](int64_t epochs) {
    Lab lab;
    fit(lab, rules.how);
    EXPECT_TRUE(tells(lab, ("\"epochs\":" + std::to_string(epochs)).c_str())) << lab.summary();
  };
  ends_at(2);
  ends_at(2);
  rules.stopping.patience = 2;
  ends_at(3);
  rules.how.early_stopping = nullptr;
  rules.how.epochs = 4;
  ends_at(4);
}

TEST_F(Trainer, RestoresOnlyWhatItHasKept) {
  Stubborn rules(2, run_);
  rules.how.early_stopping = &rules.stopping;
  Lab first, second;
  fit(first, rules.how);
  rules.stopping.restore_best = 1;
  rules.how.epochs = 4;
  begin(second, rules.how);
  second.pull(DTG_FIT_EPOCH_END, 3);
  const std::string best = second.bits(false);
  second.finish();
  EXPECT_TRUE(second.bits(false) == best);
  EXPECT_TRUE(tells(second, "\"best_epoch\":3")) << second.summary();
}

TEST_F(Trainer, IsNotAloneOnItsModel) {
  Lab lab;
  dtg_trainer *none = nullptr, *others[2] = {};
  dtg_trainer_options what = lab.what();
  what.loss = lab.constant(1);
  refused(dtg_trainer_create(lab.model, &what, &none), DTG_INVALID_ARGUMENT, "a loss of nothing");
  what = lab.what();
  for (dtg_trainer*& other : others) OK(dtg_trainer_create(lab.model, &what, &other));
  begin(lab, dtg_fit DTG_FIT_INIT);
  lab.finish();
  for (dtg_trainer* other : others) {
    const std::string before = lab.bits(false);
    OK(dtg_trainer_fit(other, lab.train, nullptr, nullptr, nullptr));
    EXPECT_FALSE(lab.bits(false) == before);
    dtg_trainer_release(other);
  }
}

// What a function of the host does in the middle of a fit.
struct Inside {
  Lab& lab;
  dtg_fit how;
};
dtg_error* intrude(void* user, dtg_trainer* trainer, const dtg_fit_event* event) {
  Inside& inside = *static_cast<Inside*>(user);
  if (event->step != 2) return nullptr;
  refused(dtg_trainer_fit(trainer, inside.lab.test, nullptr, nullptr, nullptr), DTG_FAILED_PRECONDITION, "a fit in a fit");
  refused(dtg_trainer_begin(trainer, inside.lab.test, nullptr, nullptr), DTG_FAILED_PRECONDITION, "a beginning in a fit");
  dtg_fit_event stolen = DTG_FIT_EVENT_INIT;
  refused(dtg_trainer_next(trainer, &stolen), DTG_FAILED_PRECONDITION, "an event of the fit that tells one");
  refused(dtg_trainer_give_up(trainer), DTG_FAILED_PRECONDITION, "the end of the fit that tells one");
  return dtg_error_create(DTG_ABORTED, "enough of this", DTG_STRLEN);
}

TEST_F(Trainer, IsOverWhenACallbackSaysSo) {
  Lab lab, other;
  dtg_fit how = DTG_FIT_INIT;
  how.epochs = 2;
  how.directory = run_.c_str();
  Inside inside{lab, how};
  dtg_fit_callbacks callbacks = DTG_FIT_CALLBACKS_INIT;
  callbacks.user = &inside;
  callbacks.step = intrude;
  EXPECT_EQ(refused_by_host(dtg_trainer_fit(lab.trainer, lab.train, lab.test, &how, &callbacks), DTG_ABORTED, "a callback"),
            "enough of this");
  EXPECT_TRUE(tells(lab, "\"failed\"")) << lab.summary();
  dtg_fit_event event = DTG_FIT_EVENT_INIT;
  EXPECT_EQ(refused_by_host(dtg_trainer_next(lab.trainer, &event), DTG_ABORTED, "the next call"), "enough of this");
  OK(dtg_dataset_restart(lab.train));
  OK(dtg_trainer_evaluate(lab.trainer, lab.test, 0, nullptr, &event));
  // The directory is free, as after an end in good order.
  fit(other, how);
  how.epochs = 3;
  fit(lab, how);
}

TEST_F(Trainer, CountsForItselfInTheMiddleOfAnEpoch) {
  Lab lab, straight;
  dtg_dataset* const other = rows(3, false);
  dtg_tensor* batch[2] = {};
  int32_t more = 0;
  OK(dtg_dataset_next(other, batch, 2, &more));
  const auto alone = [&] {
    dtg_fit_event event = DTG_FIT_EVENT_INIT;
    refused(dtg_trainer_evaluate(lab.trainer, other, 0, nullptr, &event), DTG_FAILED_PRECONDITION, "an evaluation");
    refused(dtg_trainer_train_step(lab.trainer, batch, 2, nullptr, nullptr), DTG_FAILED_PRECONDITION, "a step");
  };
  dtg_fit how = DTG_FIT_INIT;
  how.epochs = 2;
  how.directory = run_.c_str();
  begin(lab, how);
  lab.pull([](const dtg_fit_event& event) { return event.step == 2; });
  dtg_trainer_stop(lab.trainer);
  lab.pull(DTG_FIT_STOPPED);
  alone();
  lab.finish();
  begin(lab, how);
  lab.pull(DTG_FIT_BEGIN);
  alone();
  lab.finish();
  how.directory = nullptr;
  fit(straight, how);
  const auto history = [](const std::string& told) { return told.substr(told.find("\"history\"")); };
  EXPECT_EQ(history(lab.summary()), history(straight.summary()));
  for (dtg_tensor* tensor : batch) dtg_tensor_release(tensor);
  dtg_dataset_release(other);
}

// Asked as soon as the directory is taken, which is in the middle of the beginning.
TEST_F(Trainer, StopsThatJustBegins) {
  Lab lab;
  dtg_fit how = DTG_FIT_INIT;
  how.directory = run_.c_str();
  std::atomic<bool> begun{false};
  std::thread asks([&] {
    while (!begun && !std::ifstream(run_ + "/checkpoints/.lock").good()) std::this_thread::yield();
    dtg_trainer_stop(lab.trainer);
  });
  begin(lab, how);
  begun = true;
  asks.join();
  EXPECT_EQ(lab.pull(DTG_FIT_STOPPED).step, 0);
  lab.finish();
}

TEST_F(Trainer, KeepsItsDataToItself) {
  Lab lab, other;
  begin(lab, dtg_fit DTG_FIT_INIT);
  lab.pull(DTG_FIT_STEP);
  dtg_tensor* tensors[2] = {};
  int32_t more = 0;
  int64_t place[8];
  size_t numbers = 0;
  dtg_fit_event event = DTG_FIT_EVENT_INIT;
  for (dtg_dataset* data : {lab.train, lab.test}) {
    refused(dtg_dataset_next(data, tensors, 2, &more), DTG_FAILED_PRECONDITION, "an element");
    refused(dtg_dataset_restart(data), DTG_FAILED_PRECONDITION, "a restart");
    refused(dtg_dataset_batch(data, 2, 0), DTG_FAILED_PRECONDITION, "a transform");
    refused(dtg_trainer_evaluate(other.trainer, data, 0, nullptr, &event), DTG_FAILED_PRECONDITION, "another trainer's evaluation");
    refused(dtg_trainer_begin(other.trainer, data, nullptr, nullptr), DTG_FAILED_PRECONDITION, "another trainer's fit");
    OK(dtg_dataset_position(data, place, 8, &numbers));
  }
  lab.finish();
  OK(dtg_dataset_restart(lab.train));
  OK(dtg_trainer_fit(other.trainer, lab.train, lab.test, nullptr, nullptr));
  // Nor does it stay the fit's that was given up, or could not begin.
  begin(lab, dtg_fit DTG_FIT_INIT);
  refused(dtg_trainer_begin(lab.trainer, lab.train, lab.train, nullptr), DTG_INVALID_ARGUMENT, "one data set");
  dtg_trainer_release(lab.trainer);
  lab.trainer = nullptr;
  OK(dtg_dataset_restart(lab.train));
}

TEST_F(Trainer, ChangesNothingWhereItCannotBegin) {
  Stubborn rules(3, run_);
  rules.how.plateau = &rules.plateau;
  rules.how.checkpoint_ns = INT64_MAX;
  Lab first, second;
  begin(first, rules.how);
  int checkpoints = 0;
  first.pull([&](const dtg_fit_event& event) { return checkpoints += event.kind == DTG_FIT_CHECKPOINT, event.kind == DTG_FIT_DONE; });
  EXPECT_EQ(checkpoints, 3) << "by epochs; no time is that long";
  OK(dtg_dataset_shuffle(second.train, 0, 1));
  refused(dtg_trainer_begin(second.trainer, second.train, second.test, &rules.how), DTG_FAILED_PRECONDITION, "other data");
  begin(second, dtg_fit DTG_FIT_INIT);
  EXPECT_EQ(second.pull(DTG_FIT_EPOCH_END).learning_rate, static_cast<double>(0.05f));
}

TEST_F(Trainer, WritesItsWeightsWhereNoCheckpointCanBe) {
  Lab lab;
  dtg_fit how = DTG_FIT_INIT;
  how.directory = run_.c_str();
  begin(lab, how);
  lab.pull(DTG_FIT_EPOCH_END);
  EXPECT_EQ(std::system(("rm -rf '" + run_ + "/checkpoints' && touch '" + run_ + "/checkpoints'").c_str()), 0);
  lab.pull(DTG_FIT_CHECKPOINT);
  dtg_fit_event event = DTG_FIT_EVENT_INIT;
  dtg_error* const error = dtg_trainer_next(lab.trainer, &event);
  EXPECT_NE(error, nullptr);
  dtg_error_release(error);
  EXPECT_FALSE(file("model.safetensors").empty());
  EXPECT_NE(file("summary.json").find("\"failed\""), std::string::npos) << file("summary.json");
}

TEST_F(Trainer, RefusesWhatCannotBe) {
  Lab lab;
  dtg_trainer* other = nullptr;
  dtg_variable bias = DTG_VARIABLE_INIT;
  dtg_trainer_options what = lab.what();
  const int64_t two[] = {2};
  OK(dtg_placeholder(lab.graph, "flags", DTG_BOOL, two, 1, &what.training));
  refused(dtg_trainer_create(lab.model, &what, &other), DTG_INVALID_ARGUMENT, "two flags");
  what.training = lab.training;
  what.outputs = &bias.read;
  OK(dtg_model_variable(lab.model, 2, &bias));
  OK(dtg_trainer_create(lab.model, &what, &other));
  refused(dtg_trainer_add_metric(other, "m\xff", DTG_STRLEN, &lab.accuracy), DTG_INVALID_ARGUMENT, "a name that is no text");
  dtg_tensor* out = nullptr;
  EXPECT_NE(refused(dtg_trainer_predict(other, lab.test, nullptr, &out, 1), DTG_INVALID_ARGUMENT, "a bias").find("row"), std::string::npos);
  dtg_trainer_release(other);
  OK(dtg_dataset_skip(lab.test, kRows));
  const std::string why = refused(dtg_trainer_fit(lab.trainer, lab.train, lab.test, nullptr, nullptr), DTG_FAILED_PRECONDITION, "no data");
  EXPECT_NE(why.find("validation"), std::string::npos) << why;
}

// The rest of a fit goes on to the same bits with other data to validate with, with some where there was none, and with none.
TEST_F(Trainer, GoesOnWithOtherValidation) {
  Lab straight;
  dtg_fit how = DTG_FIT_INIT;
  how.epochs = 4;
  OK(dtg_trainer_fit(straight.trainer, straight.train, nullptr, &how, nullptr));
  how.directory = run_.c_str();
  int64_t epochs = 0;
  const auto fits_to = [&](bool validates, bool shuffles, const char* column) {
    Lab lab;
    if (shuffles) OK(dtg_dataset_shuffle(lab.test, 0, 3));
    how.epochs = ++epochs;
    OK(dtg_trainer_fit(lab.trainer, lab.train, validates ? lab.test : nullptr, &how, nullptr));
    EXPECT_EQ(lab.summary().find(column) != std::string::npos, epochs > 1) << epochs << lab.summary();
    EXPECT_TRUE(epochs < 4 || lab.bits() == straight.bits());
  };
  fits_to(false, false, "val_loss");
  fits_to(true, false, "val_loss");
  fits_to(true, true, "val_loss");
  fits_to(false, false, "val_loss");
}

TEST_F(Trainer, TakesTheRateThatIsSaidAnew) {
  Stubborn rules(2, run_);
  rules.how.plateau = &rules.plateau;
  Lab first, same, other(true, nullptr, DTG_OK, false, 0.2f), again(true, nullptr, DTG_OK, false, 0.2f);
  const auto rate_of = [&](Lab& lab, int64_t epochs) {
    rules.how.epochs = epochs;
    begin(lab, rules.how);
    const double rate = lab.pull(DTG_FIT_STEP).learning_rate;
    lab.finish();
    return static_cast<float>(rate);
  };
  EXPECT_EQ(rate_of(first, 2), 0.05f);
  EXPECT_EQ(rate_of(same, 3), 0.025f) << "it fell after the second epoch";
  EXPECT_EQ(rate_of(other, 4), 0.2f);
  EXPECT_LT(rate_of(again, 5), 0.2f) << "it fell again";
}

TEST_F(Trainer, EndsAtOnceWhereMoreIsOver) {
  dtg_fit how = DTG_FIT_INIT;
  how.epochs = 3;
  how.directory = run_.c_str();
  how.checkpoint_steps = 7;  // in the third epoch
  how.checkpoint_epochs = 100;
  std::string bits;
  {
    Lab lab;
    begin(lab, how);
    lab.pull([](const dtg_fit_event& event) { return event.kind == DTG_FIT_CHECKPOINT && event.step == 7; });
    bits = lab.bits();
    OK(dtg_trainer_give_up(lab.trainer));
  }
  for (const int64_t epochs : {1, 2}) {
    Lab lab;
    how.epochs = epochs;
    begin(lab, how);
    lab.pull(DTG_FIT_BEGIN);
    dtg_fit_event event = DTG_FIT_EVENT_INIT;
    OK(dtg_trainer_next(lab.trainer, &event));
    EXPECT_EQ(event.kind, DTG_FIT_DONE);
    EXPECT_EQ(event.step, 7);
    EXPECT_TRUE(lab.bits() == bits);
    EXPECT_FALSE(file("model.safetensors").empty());
    EXPECT_TRUE(tells(lab, "\"epochs\":2")) << lab.summary();
  }
  Lab lab, straight;
  how.epochs = 3;
  fit(lab, how);
  how = DTG_FIT_INIT;
  how.epochs = 3;
  fit(straight, how);
  EXPECT_TRUE(lab.bits() == straight.bits());
}

TEST_F(Trainer, SavesAtMultiplesExactly) {
  Lab lab;
  dtg_fit how = DTG_FIT_INIT;
  how.epochs = 8;
  how.directory = run_.c_str();
  how.checkpoint_steps = 2;
  how.checkpoint_epochs = 100;
  std::vector<int64_t> steps, wanted;
  for (int64_t step = 2; step <= 8 * kBatches; step += 2) wanted.push_back(step);
  begin(lab, how);
  lab.pull([&](const dtg_fit_event& event) {
    if (event.kind == DTG_FIT_CHECKPOINT && event.batch > 0) steps.push_back(event.step);
    return event.kind == DTG_FIT_DONE;
  });
  EXPECT_EQ(steps, wanted);
}

// A row that cannot be read costs its own epoch's values, and is told.
TEST_F(Trainer, KeepsTheRowsThatCanBeRead) {
  dtg_fit how = DTG_FIT_INIT;
  how.directory = run_.c_str();
  how.epochs = 3;
  how.best = "loss";
  {
    Lab lab;
    fit(lab, how);
    EXPECT_TRUE(tells(lab, R"("monitor":"loss")")) << lab.summary();
  }
  std::string rows = text_of(run_ + "/metrics.jsonl");
  const size_t second = rows.find('\n') + 1;
  rows.replace(second, 4, "????");
  std::ofstream(run_ + "/metrics.jsonl") << rows;
  std::string said;
  dtg_runtime_options options = DTG_RUNTIME_OPTIONS_INIT;
  options.log_user = &said;
  options.log = [](void* into, dtg_log_level, const char*, const char* text) { static_cast<std::string*>(into)->append(text) += "\n"; };
  dtg_runtime* runtime = nullptr;
  OK(dtg_runtime_create(&options, &runtime));
  how.epochs = 4;
  {
    Lab lab(true, nullptr, DTG_OK, false, 0.05f, runtime);
    fit(lab, how);
    const std::string told = lab.summary();
    for (const int epoch : {1, 3, 4}) EXPECT_NE(told.find("{\"epoch\":" + std::to_string(epoch) + ",\"step\""), std::string::npos) << told;
    EXPECT_EQ(told.find("{\"epoch\":2,\"step\""), std::string::npos) << told;
    for (const char* part : {"\"validation\":", "\"files\":"}) EXPECT_NE(told.find(part), std::string::npos) << told;
  }
  dtg_runtime_release(runtime);
  EXPECT_NE(said.find("1 lines of"), std::string::npos) << said;
}

// Somebody who may write into the directory must not lead a fit's files elsewhere.
TEST_F(Trainer, FollowsNoLinkOfADraft) {
  std::filesystem::create_directories(run_);
  const std::string victim = run_ + ".victim";
  std::ofstream(victim) << "mine";
  const char* const drafts[] = {"metrics.jsonl.new", "metrics.csv.new", "summary.json.new", "report.html.new"};
  for (const char* draft : drafts) std::filesystem::create_symlink(victim, run_ + "/" + draft);
  dtg_fit how = DTG_FIT_INIT;
  how.directory = run_.c_str();
  Lab lab;
  fit(lab, how);
  EXPECT_EQ(text_of(victim), "mine");
  for (const char* file : {"metrics.jsonl", "metrics.csv", "summary.json", "report.html"}) {
    EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(run_ + "/" + file))) << file;
  }
  std::filesystem::remove(victim);
}

TEST_F(Trainer, IsGivenUp) {
  Lab lab, other;
  OK(dtg_trainer_give_up(lab.trainer));
  dtg_fit how = DTG_FIT_INIT;
  how.epochs = 2;
  how.directory = run_.c_str();
  begin(lab, how);
  lab.pull([](const dtg_fit_event& event) { return event.step == 2; });
  OK(dtg_trainer_give_up(lab.trainer));
  OK(dtg_trainer_give_up(lab.trainer));
  dtg_fit_event event = DTG_FIT_EVENT_INIT;
  EXPECT_NE(refused(dtg_trainer_next(lab.trainer, &event), DTG_CANCELLED, "a fit that is over").find("given up"), std::string::npos);
  OK(dtg_trainer_evaluate(lab.trainer, lab.test, 0, nullptr, &event));
  OK(dtg_dataset_restart(lab.train));
  fit(other, how);
  EXPECT_TRUE(tells(other, "\"done\""));
  OK(dtg_trainer_give_up(other.trainer));
  EXPECT_TRUE(tells(other, "\"done\"")) << "it was over";
}

}  // namespace
