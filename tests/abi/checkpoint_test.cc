// Checkpoints of training through the public headers: going on to the last bit from every step and with every optimizer, when sets are
// made and which are kept, damage, what does not fit, directories that are something else. One process, one thread; clusters are in
// checkpoint_cluster_test.cc.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "job.h"

namespace outside {
namespace {

namespace fs = std::filesystem;
using Values = std::map<std::string, std::string>;

constexpr int kSteps = 12;

struct Options {
  dtg_optimizer_kind kind = DTG_OPT_ADAM;
  int64_t units = 5;
  uint64_t seed = 5;
  int64_t batch = 4;
  int32_t keep = 0, shards = 0, partial = 0;
  int64_t every_steps = 0, every_ns = 0;
  bool adds_data = true;
};

// A model with dropout, its data in an order of its own each epoch, a session, and its checkpoints in a directory.
class Trainer {
 public:
  Trainer(const std::string& directory, const Options& options) {
    OK(dtg_graph_create(nullptr, &graph));
    OK(dtg_model_create(graph, options.seed, &model));
    build(options);
    read_data(options.batch);
    OK(dtg_session_connect(nullptr, "local", DTG_STRLEN, graph, nullptr, &session));
    dtg_checkpoint_options where = DTG_CHECKPOINT_OPTIONS_INIT;
    where.directory = directory.c_str();
    where.keep = options.keep;
    where.shards = options.shards;
    where.partial = options.partial;
    where.every_steps = options.every_steps;
    where.every_ns = options.every_ns;
    OK(dtg_checkpoint_open(model, session, &where, &checkpoint));
    if (options.adds_data) OK(dtg_checkpoint_add_data(checkpoint, "train", DTG_STRLEN, data));
  }
  ~Trainer() {
    dtg_error_release(dtg_checkpoint_wait(checkpoint, 0));
    dtg_checkpoint_release(checkpoint);
    dtg_session_release(session);
    dtg_dataset_release(data);
    dtg_model_release(model);
    dtg_graph_release(graph);
  }
  Trainer(const Trainer&) = delete;

  int64_t resume() {
    int64_t step = -1;
    OK(dtg_checkpoint_resume(checkpoint, &step, nullptr));
    return step;
  }
  std::string resume_report() {
    dtg_string* report = nullptr;
    OK(dtg_checkpoint_resume(checkpoint, nullptr, &report));
    return take(report);
  }
  static std::string take(dtg_string* text) {
    size_t length = 0;
    const char* const bytes = dtg_string_data(text, &length);
    const std::string out(bytes ? bytes : "", length);
    dtg_string_release(text);
    return out;
  }
  std::string status() {
    dtg_string* told = nullptr;
    OK(dtg_checkpoint_status(checkpoint, &told));
    return take(told);
  }
  void step() {
    dtg_tensor* batch[2] = {};
    int32_t more = 0;
    OK(dtg_dataset_next(data, batch, 2, &more));
    if (!more) {
      OK(dtg_dataset_restart(data));
      OK(dtg_dataset_next(data, batch, 2, &more));
    }
    const dtg_value feeds[] = {x, y};
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    args.feeds = feeds;
    args.feed_tensors = batch;
    args.num_feeds = 2;
    args.targets = &training.train;
    args.num_targets = 1;
    OK(dtg_session_run(session, &args));
    dtg_tensor_release(batch[0]);
    dtg_tensor_release(batch[1]);
  }
  Values values() {
    Values all;
    for (size_t i = 0; i < dtg_model_variable_count(model); ++i) {
      dtg_variable each = DTG_VARIABLE_INIT;
      OK(dtg_model_variable(model, i, &each));
      all[each.name] = fetched(session, each.read);
    }
    return all;
  }

  dtg_graph* graph = nullptr;
  dtg_model* model = nullptr;
  dtg_dataset* data = nullptr;
  dtg_session* session = nullptr;
  dtg_checkpoint* checkpoint = nullptr;
  dtg_value x{}, y{};
  dtg_training training = DTG_TRAINING_INIT;

 private:
  void build(const Options& options) {
    const int64_t wide[] = {-1, 3}, narrow[] = {-1, 1};
    dtg_variable count = DTG_VARIABLE_INIT;
    dtg_value always{}, out{}, loss{};
    OK(dtg_placeholder(graph, "x", DTG_F32, wide, 2, &x));
    OK(dtg_placeholder(graph, "y", DTG_F32, narrow, 2, &y));
    OK(dtg_model_global_step(model, &count));
    dtg_dense layer = DTG_DENSE_INIT;
    layer.units = options.units;
    layer.activation = DTG_ACT_TANH;
    OK(dtg_nn_dense(model, x, &layer, &out));
    OK(dtg_nn_dropout(model, out, 0.3, count.read, always, &out));
    layer.units = 1;
    OK(dtg_nn_dense(model, out, &layer, &out));
    OK(dtg_nn_mean_squared_error(model, y, out, &loss));
    dtg_optimizer optimizer = DTG_OPTIMIZER_INIT;
    optimizer.kind = options.kind;
    optimizer.rate = 0.05;
    optimizer.momentum = options.kind == DTG_OPT_MOMENTUM ? 0.5 : 0;
    OK(dtg_nn_minimize(model, loss, &optimizer, &training));
  }
  // 22 rows, so that epochs end in the middle of the steps.
  void read_data(int64_t batch) {
    float wide[66], narrow[22];
    for (int i = 0; i < 66; ++i) wide[i] = static_cast<float>(i * 37 % 11) / 11;
    for (int i = 0; i < 22; ++i) narrow[i] = wide[3 * i] - wide[3 * i + 1];
    const int64_t dims[2][2] = {{22, 3}, {22, 1}};
    dtg_tensor* columns[2] = {};
    OK(dtg_tensor_create(DTG_F32, dims[0], 2, wide, sizeof wide, nullptr, nullptr, &columns[0]));
    OK(dtg_tensor_create(DTG_F32, dims[1], 2, narrow, sizeof narrow, nullptr, nullptr, &columns[1]));
    OK(dtg_dataset_tensors(nullptr, columns, 2, &data));
    OK(dtg_dataset_shuffle(data, 0, 7));
    OK(dtg_dataset_batch(data, batch, 0));
    OK(dtg_dataset_prefetch(data, 2));
    dtg_tensor_release(columns[0]);
    dtg_tensor_release(columns[1]);
  }
};

class TrainingCheckpoint : public testing::Test {
 protected:
  void TearDown() override {
    fs::remove_all(place_);
    EXPECT_EQ(dtg_live_handles(), before_);
  }
  std::string fresh() { return place_ + "/" + std::to_string(++places_); }
  // A directory with sets of steps 1 to `steps`.
  std::string saved(int steps, const Options& options = {}) {
    const std::string directory = fresh();
    Trainer trainer(directory, options);
    EXPECT_EQ(trainer.resume(), 0);
    for (int step = 1; step <= steps; ++step) {
      trainer.step();
      OK(dtg_checkpoint_save(trainer.checkpoint, step, 0));
    }
    return directory;
  }
  static std::vector<std::string> sets(const std::string& directory) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("step-")) names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  static std::string shard_of(const std::string& directory, const std::string& set) {
    for (const auto& entry : fs::directory_iterator(directory + "/" + set)) {
      if (entry.path().extension() == ".safetensors") return entry.path();
    }
    return "";
  }
  // Changes one byte of the newest set's shard; gives the file's name.
  static std::string damage(const std::string& directory) {
    const std::string path = shard_of(directory, sets(directory).back());
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(-3, std::ios::end);
    const int byte = file.get();
    file.seekp(-3, std::ios::end);
    file.put(static_cast<char>(byte ^ 16));
    return fs::path(path).filename();
  }
  const std::string place_ = folder("checkpoints");
  const size_t before_ = dtg_live_handles();
  int places_ = 0;
};

TEST_F(TrainingCheckpoint, GoesOnToTheBitFromEveryStepWithEveryOptimizer) {
  for (dtg_optimizer_kind kind = DTG_OPT_SGD; kind <= DTG_OPT_RMSPROP; ++kind) {
    std::vector<Values> wanted;
    {
      Trainer whole(fresh(), {.kind = kind});
      EXPECT_EQ(whole.resume(), 0);
      for (int step = 0; step <= kSteps; ++step) {
        wanted.push_back(whole.values());
        if (step < kSteps) whole.step();
      }
    }
    EXPECT_NE(wanted.front(), wanted.back());
    for (int stop = 0; stop < kSteps; ++stop) {
      const std::string directory = fresh();
      {
        Trainer first(directory, {.kind = kind, .shards = stop % 3});
        EXPECT_EQ(first.resume(), 0);
        for (int step = 0; step < stop; ++step) first.step();
        OK(dtg_checkpoint_save(first.checkpoint, stop, 0));
      }
      Trainer second(directory, {.kind = kind});
      EXPECT_EQ(second.resume(), stop);
      for (int step = stop; step <= kSteps; ++step) {
        ASSERT_TRUE(second.values() == wanted[static_cast<size_t>(step)])
            << "optimizer " << kind << ", saved at " << stop << ", step " << step;
        if (step < kSteps) second.step();
      }
    }
  }
}

TEST_F(TrainingCheckpoint, SavesAtMultiplesAndKeepsTheNewest) {
  const std::string directory = fresh();
  {
    Trainer trainer(directory, {.keep = 2, .every_steps = 3});
    EXPECT_EQ(trainer.resume(), 0);
    std::vector<int> began;
    for (int step = 1; step <= 13; ++step) {
      trainer.step();
      int32_t now = 0;
      OK(dtg_checkpoint_reached(trainer.checkpoint, step, &now));
      if (now) began.push_back(step);
      OK(dtg_checkpoint_wait(trainer.checkpoint, 0));
    }
    EXPECT_EQ(began, (std::vector<int>{3, 6, 9, 12}));
    EXPECT_NE(trainer.status().find("\"saves\":4"), std::string::npos) << trainer.status();
  }
  const auto kept = sets(directory);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].substr(0, 17), "step-000000000009");
  EXPECT_EQ(kept[1].substr(0, 17), "step-000000000012");
  Trainer second(directory, {.keep = 2, .every_steps = 3});
  EXPECT_EQ(second.resume(), 12);
  int32_t now = 1;
  second.step();
  OK(dtg_checkpoint_reached(second.checkpoint, 13, &now));
  EXPECT_EQ(now, 0);  // at multiples of three, wherever it went on
}

TEST_F(TrainingCheckpoint, SavesWhenTimeHasPassed) {
  const std::string directory = fresh();
  Trainer trainer(directory, {.every_ns = 1});
  EXPECT_EQ(trainer.resume(), 0);
  int32_t began = 0;
  trainer.step();
  OK(dtg_checkpoint_reached(trainer.checkpoint, 1, &began));
  EXPECT_EQ(began, 1);
  Trainer other(fresh(), {.every_ns = INT64_C(3600) * 1000 * 1000 * 1000});
  EXPECT_EQ(other.resume(), 0);
  OK(dtg_checkpoint_reached(other.checkpoint, 1, &began));
  EXPECT_EQ(began, 0);
}

TEST_F(TrainingCheckpoint, PassesADamagedSetOverAndPutsItAside) {
  const std::string directory = saved(3);
  const std::string damaged = damage(directory), name = sets(directory).back();
  Trainer trainer(directory, {});
  const std::string report = trainer.resume_report();
  EXPECT_NE(report.find("\"step\":2"), std::string::npos) << report;
  EXPECT_NE(report.find(damaged), std::string::npos) << report;
  // Its size is right, so it would stand for the newest.
  OK(dtg_checkpoint_save(trainer.checkpoint, 2, 0));
  EXPECT_TRUE(fs::exists(directory + "/damaged-" + name));
  OK(dtg_checkpoint_restore(trainer.checkpoint, nullptr, 0, nullptr, nullptr));
  // One that is cut short, or lost its manifest, is found without reading it.
  const std::string torn = saved(2);
  fs::remove(torn + "/" + sets(torn).back() + "/manifest.json");
  EXPECT_EQ(Trainer(torn, {}).resume(), 1);
  const std::string cut = saved(2);
  fs::resize_file(shard_of(cut, sets(cut).back()), 100);
  EXPECT_EQ(Trainer(cut, {}).resume(), 1);
  // Where none is whole, nothing begins anew by itself.
  const std::string lost = saved(1);
  const std::string file = damage(lost);
  Trainer last(lost, {});
  const std::string message = refused(dtg_checkpoint_resume(last.checkpoint, nullptr, nullptr), DTG_DATA_LOSS, "a damaged set alone");
  EXPECT_NE(message.find(file), std::string::npos) << message;
  for (const char* way_out : {"none of its 1 checkpoints is whole", "dtg checkpoint verify", "move the directory away"}) {
    EXPECT_NE(message.find(way_out), std::string::npos) << message;
  }
}

TEST_F(TrainingCheckpoint, NamesWhatDoesNotFitAndAssignsNothing) {
  const std::string directory = saved(2, {.kind = DTG_OPT_MOMENTUM});
  // Other optimizer, other shape.
  Trainer other(directory, {.kind = DTG_OPT_ADAM, .units = 6});
  dtg_value init{};
  OK(dtg_model_init(other.model, &init));
  OK(dtg_run_target(other.session, init));
  const Values before = other.values();
  const std::string message =
      refused(dtg_checkpoint_restore(other.checkpoint, nullptr, 0, nullptr, nullptr), DTG_FAILED_PRECONDITION, "misfit");
  for (const char* name : {"\"dense/kernel\" is float32[3,5] there and float32[3,6] here", "\"dense/bias/Adam\"", "\"dense/bias/Momentum\"",
                           "\"beta1_power\"", "Nothing was assigned"}) {
    EXPECT_NE(message.find(name), std::string::npos) << name << " in " << message;
  }
  EXPECT_EQ(other.values(), before);
  // What fits, on request.
  Trainer partial(directory, {.kind = DTG_OPT_ADAM, .units = 6, .batch = 8, .partial = 1});
  OK(dtg_model_init(partial.model, &init));
  OK(dtg_run_target(partial.session, init));
  dtg_string* report = nullptr;
  OK(dtg_checkpoint_restore(partial.checkpoint, nullptr, 0, nullptr, &report));
  const std::string told = Trainer::take(report);
  EXPECT_NE(told.find("\"variables\":2"), std::string::npos) << told;  // the second bias and the count
  EXPECT_NE(told.find("the place of the data set"), std::string::npos) << told;
  Values after = partial.values();
  EXPECT_EQ(after["dense/kernel"], before.at("dense/kernel"));
  EXPECT_NE(after["global_step"], before.at("global_step"));
}

TEST_F(TrainingCheckpoint, HoldsTheDataToWhatItWas) {
  const std::string directory = saved(1);
  std::string message;
  {
    Trainer other(directory, {.batch = 8});
    message = refused(dtg_checkpoint_resume(other.checkpoint, nullptr, nullptr), DTG_FAILED_PRECONDITION, "another batch");
  }
  EXPECT_NE(message.find("batch(4)"), std::string::npos) << message;
  EXPECT_NE(message.find("batch(8)"), std::string::npos) << message;
  const std::string report = Trainer(directory, {.seed = 6}).resume_report();
  EXPECT_NE(report.find("the seed 5"), std::string::npos) << report;
}

TEST_F(TrainingCheckpoint, TakesASetByItsName) {
  const std::string directory = saved(3);
  const auto names = sets(directory);
  Trainer trainer(directory, {});
  int64_t step = 0;
  OK(dtg_checkpoint_restore(trainer.checkpoint, names[0].c_str(), DTG_STRLEN, &step, nullptr));
  EXPECT_EQ(step, 1);
  // What is there would be taken for newer than what comes now.
  refused(dtg_checkpoint_save(trainer.checkpoint, 1, 0), DTG_FAILED_PRECONDITION, "an earlier step");
  refused(dtg_checkpoint_restore(trainer.checkpoint, "../1", DTG_STRLEN, nullptr, nullptr), DTG_INVALID_ARGUMENT, "a path");
  refused(dtg_checkpoint_restore(trainer.checkpoint, "step-000000000007-0000000000000001", DTG_STRLEN, nullptr, nullptr), DTG_NOT_FOUND,
          "a set that is not there");
  Trainer nobody(fresh(), {});
  refused(dtg_checkpoint_restore(nobody.checkpoint, nullptr, 0, nullptr, nullptr), DTG_NOT_FOUND, "no directory");
}

TEST_F(TrainingCheckpoint, KeepsWhatIsFurther) {
  const std::string directory = saved(2);
  Trainer trainer(directory, {});
  EXPECT_EQ(trainer.resume(), 2);
  trainer.step();
  const Values values = trainer.values();
  const std::string report = trainer.resume_report();
  EXPECT_NE(report.find("\"outcome\":\"kept\""), std::string::npos) << report;
  EXPECT_EQ(trainer.values(), values);
}

// The data sets follow what stays, wherever they stand: behind the newest set by as many steps as were made since, and at it.
TEST_F(TrainingCheckpoint, TheDataFollowsWhatIsKept) {
  const auto next = [](const Trainer& trainer) {
    dtg_tensor* batch[2] = {};
    int32_t more = 0;
    OK(dtg_dataset_next(trainer.data, batch, 2, &more));
    size_t bytes = 0;
    const char* const at = static_cast<const char*>(dtg_tensor_data(batch[0], &bytes));
    const std::string row(at ? at : "", bytes);
    dtg_tensor_release(batch[0]);
    dtg_tensor_release(batch[1]);
    return row;
  };
  std::vector<std::string> batches;
  {
    Trainer straight(fresh(), {});
    for (int i = 0; i < 5; ++i) batches.push_back(next(straight));
  }
  for (int beyond = 0; beyond < 3; ++beyond) {
    Trainer trainer(saved(2), {});
    EXPECT_EQ(trainer.resume(), 2);
    for (int i = 0; i < beyond; ++i) trainer.step();
    OK(dtg_dataset_restart(trainer.data));
    const std::string report = trainer.resume_report();
    EXPECT_NE(report.find("\"outcome\":\"kept\""), std::string::npos) << report;
    EXPECT_EQ(next(trainer), batches[static_cast<size_t>(2 + beyond)]) << beyond << report;
    EXPECT_EQ(report.find("beyond its place there") != std::string::npos, beyond > 0) << report;
  }
}

TEST_F(TrainingCheckpoint, TwoDoNotSaveIntoOneDirectory) {
  const std::string directory = saved(1);
  Trainer first(directory, {});
  EXPECT_EQ(first.resume(), 1);
  Trainer second(directory, {});
  refused(dtg_checkpoint_resume(second.checkpoint, nullptr, nullptr), DTG_FAILED_PRECONDITION, "a directory in use");
  refused(dtg_checkpoint_save(second.checkpoint, 1, 0), DTG_FAILED_PRECONDITION, "a directory in use");
  // Looking is free.
  OK(dtg_checkpoint_restore(second.checkpoint, nullptr, 0, nullptr, nullptr));
}

TEST_F(TrainingCheckpoint, DirectoriesThatAreSomethingElse) {
  fs::create_directories(place_);
  const std::string file = place_ + "/file";
  std::ofstream(file) << "no directory";
  Trainer on_file(file, {});
  refused(dtg_checkpoint_resume(on_file.checkpoint, nullptr, nullptr), DTG_FAILED_PRECONDITION, "a file");
  dtg_checkpoint_options empty = DTG_CHECKPOINT_OPTIONS_INIT;
  dtg_checkpoint* none = nullptr;
  refused(dtg_checkpoint_open(on_file.model, on_file.session, &empty, &none), DTG_INVALID_ARGUMENT, "no directory");
  empty.directory = "";
  refused(dtg_checkpoint_open(on_file.model, on_file.session, &empty, &none), DTG_INVALID_ARGUMENT, "an empty name");
  // A link in a set's place, or a shard's, is not followed; one that leads to the directory is the user's own.
  const std::string directory = saved(2);
  const std::string newest = sets(directory).back();
  fs::rename(directory + "/" + newest, place_ + "/elsewhere");
  fs::create_directory_symlink(place_ + "/elsewhere", directory + "/" + newest);
  EXPECT_EQ(Trainer(directory, {}).resume(), 1);
  const std::string other = saved(2);
  const std::string shard = shard_of(other, sets(other).back());
  fs::rename(shard, place_ + "/shard");
  fs::create_symlink(place_ + "/shard", shard);
  EXPECT_EQ(Trainer(other, {}).resume(), 1);
  fs::create_directory_symlink(saved(2), place_ + "/link");
  EXPECT_EQ(Trainer(place_ + "/link", {}).resume(), 2);
}

TEST_F(TrainingCheckpoint, WhatCannotBeWrittenEndsNoTraining) {
  const std::string directory = fresh();
  Trainer trainer(directory, {.every_steps = 1});
  EXPECT_EQ(trainer.resume(), 0);
  fs::permissions(directory, fs::perms::owner_read | fs::perms::owner_exec);
  const bool root = ::access(directory.c_str(), W_OK) == 0;
  if (root) fs::remove_all(directory), std::ofstream(directory) << "in the way";
  trainer.step();
  int32_t began = 0;
  OK(dtg_checkpoint_reached(trainer.checkpoint, 1, &began));
  EXPECT_EQ(began, 1);
  dtg_error* const error = dtg_checkpoint_wait(trainer.checkpoint, 0);
  EXPECT_NE(error, nullptr);
  EXPECT_NE(text_of(error).find(directory), std::string::npos) << text_of(error);
  dtg_error_release(error);
  EXPECT_NE(trainer.status().find("\"failures\":1"), std::string::npos) << trainer.status();
  trainer.step();
  if (root) fs::remove(directory), fs::create_directory(directory);
  else fs::permissions(directory, fs::perms::owner_all);
  OK(dtg_checkpoint_reached(trainer.checkpoint, 2, &began));
  OK(dtg_checkpoint_wait(trainer.checkpoint, 0));
  EXPECT_EQ(sets(directory).size(), 1u);
}

TEST_F(TrainingCheckpoint, ReshardedSetsRestoreToo) {
  const std::string directory = saved(2);
  dtg_string* path = nullptr;
  OK(dtg_checkpoint_reshard(nullptr, directory.c_str(), DTG_STRLEN, directory.c_str(), DTG_STRLEN, 4, &path));
  EXPECT_NE(Trainer::take(path).find("step-000000000002"), std::string::npos);
  Trainer resharded(directory, {});
  EXPECT_EQ(resharded.resume(), 2);
  Trainer straight(fresh(), {});
  EXPECT_EQ(straight.resume(), 0);
  for (int step = 0; step < 2; ++step) straight.step();
  EXPECT_EQ(resharded.values(), straight.values());
}

TEST_F(TrainingCheckpoint, DataThatWereForgottenAreTold) {
  const std::string directory = fresh();
  {
    Trainer trainer(directory, {});
    EXPECT_EQ(trainer.resume(), 0);
    trainer.step();
    OK(dtg_checkpoint_save(trainer.checkpoint, 1, 0));
  }
  EXPECT_EQ(Trainer(directory, {}).resume_report().find("none of that name was added"), std::string::npos);
  Trainer without(directory, {.adds_data = false});
  const std::string report = without.resume_report();
  EXPECT_NE(report.find("the place of a data set \\\"train\\\", and none of that name was added"), std::string::npos) << report;
}

TEST_F(TrainingCheckpoint, ArgumentsOutOfRange) {
  Trainer trainer(fresh(), {});
  dtg_checkpoint_options options = DTG_CHECKPOINT_OPTIONS_INIT;
  dtg_checkpoint* none = nullptr;
  options.directory = "x";
  for (auto* field : {&options.keep, &options.shards}) {
    *field = -1;
    refused(dtg_checkpoint_open(trainer.model, trainer.session, &options, &none), DTG_INVALID_ARGUMENT, "a negative count");
    *field = 0;
  }
  for (auto* field : {&options.every_steps, &options.every_ns}) {
    *field = -1;
    refused(dtg_checkpoint_open(trainer.model, trainer.session, &options, &none), DTG_INVALID_ARGUMENT, "a negative interval");
    *field = 0;
  }
  Trainer other(fresh(), {});
  refused(dtg_checkpoint_open(trainer.model, other.session, &options, &none), DTG_INVALID_ARGUMENT, "another graph's session");
  refused(dtg_checkpoint_add_data(trainer.checkpoint, "train", DTG_STRLEN, trainer.data), DTG_ALREADY_EXISTS, "a name twice");
  refused(dtg_checkpoint_add_data(trainer.checkpoint, "a:b", DTG_STRLEN, trainer.data), DTG_INVALID_ARGUMENT, "an odd name");
  refused(dtg_checkpoint_reached(trainer.checkpoint, -1, nullptr), DTG_INVALID_ARGUMENT, "a negative step");
  refused(dtg_checkpoint_save(trainer.checkpoint, 1, -1), DTG_INVALID_ARGUMENT, "a negative timeout");
  refused(dtg_checkpoint_wait(trainer.checkpoint, -1), DTG_INVALID_ARGUMENT, "a negative timeout");
  refused(dtg_checkpoint_save(trainer.checkpoint, 1, 0), DTG_FAILED_PRECONDITION, "variables without values");
  OK(dtg_checkpoint_wait(trainer.checkpoint, 0));
  EXPECT_EQ(other.resume(), 0);
  refused(dtg_dataset_shuffle(other.data, -1, 0), DTG_INVALID_ARGUMENT, "a transform that fails");
  refused(dtg_checkpoint_save(other.checkpoint, 1, 0), DTG_FAILED_PRECONDITION, "a data set that is no more");
  refused(dtg_checkpoint_restore(other.checkpoint, nullptr, 0, nullptr, nullptr), DTG_NOT_FOUND, "no set");
}

TEST(DatasetPosition, IsFoundAgainInEveryPipeline) {
  const size_t before = dtg_live_handles();
  for (int shape = 0; shape < 12; ++shape) {
    const auto make = [&] {
      dtg_dataset* data = nullptr;
      OK(dtg_dataset_range(nullptr, 0, 23, 1, &data));
      if (shape % 2) OK(dtg_dataset_shuffle(data, shape % 4 == 1 ? 0 : 5, 3));
      if (shape % 3 == 1) OK(dtg_dataset_shard(data, 2, 1));
      if (shape % 4 >= 2) OK(dtg_dataset_repeat(data, 3));
      if (shape % 3 == 2) OK(dtg_dataset_batch(data, 4, shape % 2));
      if (shape >= 6) OK(dtg_dataset_prefetch(data, 2));
      return data;
    };
    const auto next = [](dtg_dataset* data) {
      dtg_tensor* tensor = nullptr;
      int32_t more = 0;
      OK(dtg_dataset_next(data, &tensor, 1, &more));
      size_t size = 0;
      const auto* bytes = more ? static_cast<const char*>(dtg_tensor_data(tensor, &size)) : nullptr;
      const std::string out(bytes ? bytes : "", size);
      dtg_tensor_release(tensor);
      if (!more) OK(dtg_dataset_restart(data));
      return out;
    };
    dtg_dataset *whole = make(), *other = make();
    for (int at = 0; at < 90; ++at) {
      int64_t numbers[16];
      size_t count = 0;
      OK(dtg_dataset_position(whole, numbers, 16, &count));
      ASSERT_LE(count, 16u);
      OK(dtg_dataset_move_to(other, numbers, count));
      const std::string element = next(whole);
      ASSERT_EQ(next(other), element) << "pipeline " << shape << ", element " << at;
      ASSERT_EQ(next(other), next(whole)) << "pipeline " << shape << ", behind element " << at;
    }
    dtg_dataset_release(whole);
    dtg_dataset_release(other);
  }
  EXPECT_EQ(dtg_live_handles(), before);
}

TEST(DatasetPosition, RefusesWhatIsNone) {
  dtg_dataset* data = nullptr;
  OK(dtg_dataset_range(nullptr, 0, 5, 1, &data));
  OK(dtg_dataset_shuffle(data, 0, 1));
  int64_t numbers[3] = {2, 0, 0};
  size_t count = 0;
  refused(dtg_dataset_move_to(data, numbers, 1), DTG_INVALID_ARGUMENT, "too few numbers");
  refused(dtg_dataset_move_to(data, numbers, 0), DTG_INVALID_ARGUMENT, "none");
  numbers[1] = -1;
  refused(dtg_dataset_move_to(data, numbers, 3), DTG_INVALID_ARGUMENT, "a negative epoch");
  numbers[1] = 0;
  numbers[0] = INT64_MAX;
  refused(dtg_dataset_move_to(data, numbers, 3), DTG_INVALID_ARGUMENT, "years away");
  numbers[0] = 6;
  refused(dtg_dataset_move_to(data, numbers, 3), DTG_DATA_LOSS, "beyond the end");
  refused(dtg_dataset_position(data, numbers, 3, &count), DTG_FAILED_PRECONDITION, "nobody knows");
  numbers[0] = 5;
  OK(dtg_dataset_move_to(data, numbers, 3));
  OK(dtg_dataset_restart(data));
  dtg_tensor* tensor = nullptr;
  int32_t more = 0;
  OK(dtg_dataset_next(data, &tensor, 1, &more));
  dtg_tensor_release(tensor);
  OK(dtg_dataset_batch(data, 2, 0));
  refused(dtg_dataset_position(data, numbers, 3, &count), DTG_FAILED_PRECONDITION, "made longer on the way");
  dtg_dataset_release(data);
}

}  // namespace
}  // namespace outside
