// Fits of several workers together: against one process with as many replicas, with workers that are lost at any step and come again,
// stops, checkpoints, and what does not fit. The workers are servers in this process, each with a runtime and a thread.
#include <filesystem>
#include <thread>

#include "job.h"
#include "strategy_world.h"

namespace outside {
namespace {

constexpr int64_t kRowsOfEach = 20, kBatchOfEach = 4;
constexpr int64_t kStepsOfAnEpoch = kRowsOfEach / kBatchOfEach;

// Row `row` of all: three numbers, and what is to be learnt of them.
void row_of(int64_t row, std::vector<float>& x, std::vector<float>& y) {
  uint64_t state = 11 + static_cast<uint64_t>(row) * 977;
  float sum = 0;
  for (int i = 0; i < 3; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    x.push_back(static_cast<float>(state >> 40) / float{1 << 24} - 0.5f);
    sum += x.back() * static_cast<float>(i + 1);
  }
  y.push_back(sum);
}

dtg_dataset* data_of(const std::vector<int64_t>& numbers, int64_t batch, bool shuffled) {
  std::vector<float> x, y;
  for (const int64_t number : numbers) row_of(number, x, y);
  const int64_t wide[] = {static_cast<int64_t>(numbers.size()), 3}, narrow[] = {wide[0], 1};
  dtg_tensor* tensors[2] = {};
  OK(dtg_tensor_create(DTG_F32, wide, 2, x.data(), x.size() * 4, nullptr, nullptr, &tensors[0]));
  OK(dtg_tensor_create(DTG_F32, narrow, 2, y.data(), y.size() * 4, nullptr, nullptr, &tensors[1]));
  dtg_dataset* data = nullptr;
  OK(dtg_dataset_tensors(nullptr, tensors, 2, &data));
  for (dtg_tensor* tensor : tensors) dtg_tensor_release(tensor);
  if (shuffled) OK(dtg_dataset_shuffle(data, 0, 5));
  OK(dtg_dataset_batch(data, batch, 0));
  return data;
}

// The rows of one worker of `workers`, as dtg_dataset_shard deals them.
dtg_dataset* data_of_worker(int rank, int workers, bool shuffled, int64_t first = 0, int64_t rows = kRowsOfEach) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < rows; ++i) numbers.push_back(first + i * workers + rank);
  return data_of(numbers, kBatchOfEach, shuffled);
}

// The network on each replica, its training by Adam, and a trainer.
struct Net {
  explicit Net(StrategyJob& of, bool together, const char* target) : job(of) {
    in[0] = job.placeholder(DTG_F32, {-1, 3});
    in[1] = job.placeholder(DTG_F32, {-1, 1});
    OK(dtg_strategy_enter(job.strategy));
    dtg_variable step = DTG_VARIABLE_INIT;
    OK(dtg_model_global_step(job.model, &step));
    std::vector<dtg_per_replica> shares(2);
    for (size_t i = 0; i < 2; ++i) OK(dtg_strategy_split(job.strategy, in[i], &shares[i]));
    const auto loss = job.run(
        [&](int32_t, const dtg_value* inputs, dtg_value* results) -> dtg_error* {
          dtg_dense hidden = DTG_DENSE_INIT, last = DTG_DENSE_INIT;
          hidden.units = 5;
          hidden.activation = DTG_ACT_TANH;
          last.units = 1;
          dtg_value y{};
          PASS(dtg_nn_dense(job.model, inputs[0], &hidden, &y));
          PASS(dtg_nn_dropout(job.model, y, 0.2, step.read, dtg_value{}, &y));
          PASS(dtg_nn_dense(job.model, y, &last, &y));
          dtg_metric what = DTG_METRIC_INIT;
          what.kind = DTG_METRIC_MEAN_ABSOLUTE_ERROR;
          PASS(dtg_nn_metric(job.model, &what, inputs[1], y, dtg_value{}, &metric));
          return dtg_nn_mean_squared_error(job.model, inputs[1], y, &results[0]);
        },
        shares, 1)[0];
    dtg_optimizer adam = DTG_OPTIMIZER_INIT;
    adam.kind = DTG_OPT_ADAM;
    adam.rate = 0.02;
    dtg_training training = DTG_TRAINING_INIT;
    OK(dtg_strategy_minimize(job.strategy, loss, DTG_REDUCE_MEAN, &adam, &training));
    dtg_value mean{};
    OK(dtg_strategy_reduce(job.strategy, DTG_REDUCE_MEAN, loss, DTG_NO_AXIS, &mean));
    OK(dtg_strategy_exit(job.strategy));
    dtg_session_options options = DTG_SESSION_OPTIONS_INIT;
    if (!job.runtime) options.emu_devices = 4;
    OK(dtg_session_connect(job.runtime, target, DTG_STRLEN, job.graph, &options, &job.session));
    dtg_trainer_options what = DTG_TRAINER_OPTIONS_INIT;
    what.session = job.session;
    what.feeds = in;
    what.num_feeds = 2;
    what.loss = mean;
    what.train = training.train;
    what.strategy = together ? job.strategy : nullptr;
    OK(dtg_trainer_create(job.model, &what, &trainer));
    OK(dtg_trainer_add_metric(trainer, "mae", DTG_STRLEN, &metric));
  }
  ~Net() { dtg_trainer_release(trainer); }
  Net(const Net&) = delete;

  StrategyJob& job;
  dtg_value in[2];
  dtg_metric_values metric = DTG_METRIC_VALUES_INIT;
  dtg_trainer* trainer = nullptr;
};

struct Worker {
  Worker(const dtg_cluster* cluster, int number) : rank(number), at(cluster, "worker", number) {
    dtg_group_options joins = DTG_GROUP_OPTIONS_INIT;
    joins.default_timeout_ns = kWaitNs;
    OK(dtg_group_join(at.server, &joins, &group));
    dtg_strategy_options options = DTG_STRATEGY_OPTIONS_INIT;
    options.kind = DTG_STRATEGY_MULTI_WORKER_MIRRORED;
    options.group = group;
    job = std::make_unique<StrategyJob>(7, options, at.runtime);
    net = std::make_unique<Net>(*job, true, dtg_server_target(at.server));
  }
  ~Worker() {
    net.reset();
    job.reset();
    dtg_group_release(group);
  }
  Worker(const Worker&) = delete;
  const int rank;
  Server at;
  dtg_group* group = nullptr;
  std::unique_ptr<StrategyJob> job;
  std::unique_ptr<Net> net;
};

// What a fit came to.
struct Came {
  std::map<std::string, std::string> weights;
  std::string summary;
  std::vector<double> losses, errors, val_losses;  // of epochs
  int64_t steps = 0;
  std::string why;
};

// Pulls the fit to its end, or until `until` says so, which is then told by false.
bool pull(Net& net, dtg_dataset* train, dtg_dataset* test, const dtg_fit& how, Came& came,
          const std::function<bool(const dtg_fit_event&)>& until = nullptr) {
  OK(dtg_trainer_begin(net.trainer, train, test, &how));
  dtg_fit_event event = DTG_FIT_EVENT_INIT;
  while (event.kind != DTG_FIT_DONE && !testing::Test::HasFailure()) {
    OK(dtg_trainer_next(net.trainer, &event));
    if (until && until(event)) return false;
    if (event.kind == DTG_FIT_STOPPED) came.why = event.text;
    if (event.kind != DTG_FIT_EPOCH_END) continue;
    came.losses.push_back(event.loss);
    for (size_t i = 0; i < event.num_values; ++i) {
      const std::string name = event.names[i];
      if (name == "mae") came.errors.push_back(event.values[i]);
      if (name == "val_loss") came.val_losses.push_back(event.values[i]);
    }
  }
  came.steps = event.step;
  for (auto& [name, bytes] : net.job.all_bytes()) {
    if (name.find("mean_absolute_error") == name.npos) came.weights[name] = bytes;
  }
  return true;
}

class TrainerOfWorkers : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = folder("trainer-workers");
    ::mkdir(directory_.c_str(), 0700);
  }
  void TearDown() override {
    dtg_cluster_release(cluster_);
    std::error_code failed;
    std::filesystem::remove_all(directory_, failed);
  }
  void of(int count) {
    dtg_cluster_release(std::exchange(cluster_, nullptr));
    std::string spec = "worker=";
    for (int i = 0; i < count; ++i) spec += (i ? ",unix:" : "unix:") + directory_ + "/w" + std::to_string(i);
    OK(dtg_cluster_parse(spec.c_str(), DTG_STRLEN, &cluster_));
    count_ = count;
  }
  void all(const std::function<void(int)>& body) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count_; ++i) threads.emplace_back([&, i] { body(i); });
    for (std::thread& thread : threads) thread.join();
  }
  // Fits of all, undisturbed.
  std::vector<Came> fit(const dtg_fit& how, bool shuffled, bool validates = false) {
    std::vector<Came> came(static_cast<size_t>(count_));
    all([&](int rank) {
      Worker worker(cluster_, rank);
      dtg_dataset* const train = data_of_worker(rank, count_, shuffled);
      dtg_dataset* const test = validates ? data_of_worker(rank, count_, false, 1000, 8) : nullptr;
      pull(*worker.net, train, test, how, came[static_cast<size_t>(rank)]);
      dtg_dataset_release(train);
      dtg_dataset_release(test);
    });
    for (const Came& each : came) {
      EXPECT_EQ(each.weights, came[0].weights);
      EXPECT_EQ(each.losses, came[0].losses);
      EXPECT_EQ(each.errors, came[0].errors);
      EXPECT_EQ(each.val_losses, came[0].val_losses);
    }
    return came;
  }

  std::string directory_;
  dtg_cluster* cluster_ = nullptr;
  int count_ = 0;
};

dtg_fit epochs(int64_t count) {
  dtg_fit how = DTG_FIT_INIT;
  how.epochs = count;
  return how;
}

TEST_F(TrainerOfWorkers, HaveTheBitsOfOneProcessWithAsManyReplicas) {
  for (const int workers : {2, 3}) {
    of(workers);
    const std::vector<Came> together = fit(epochs(3), false, true);
    StrategyJob job(7, options_of(DTG_STRATEGY_MIRRORED, static_cast<size_t>(workers)));
    Net net(job, false, "local");
    // Each batch is the workers' batches, one behind the other.
    const auto joined = [&](int64_t first, int64_t rows) {
      std::vector<int64_t> numbers;
      for (int64_t begin = 0; begin < rows; begin += kBatchOfEach) {
        for (int rank = 0; rank < workers; ++rank) {
          for (int64_t i = begin; i < begin + kBatchOfEach; ++i) numbers.push_back(first + i * workers + rank);
        }
      }
      return data_of(numbers, kBatchOfEach * workers, false);
    };
    dtg_dataset *const train = joined(0, kRowsOfEach), *const test = joined(1000, 8);
    Came alone;
    pull(net, train, test, epochs(3), alone);
    EXPECT_EQ(together[0].weights, alone.weights);
    EXPECT_EQ(together[0].losses, alone.losses);
    EXPECT_EQ(together[0].val_losses, alone.val_losses);
    EXPECT_EQ(together[0].steps, 3 * kStepsOfAnEpoch);
    dtg_dataset_release(train);
    dtg_dataset_release(test);
  }
}

// Each worker is lost once at each of some steps; a new one of the same task comes, and the weights are those of an undisturbed fit.
TEST_F(TrainerOfWorkers, WhoIsLostComesAgainAndNoBitIsLost) {
  of(2);
  dtg_fit how = epochs(2);
  dtg_early_stopping stopping = DTG_EARLY_STOPPING_INIT;
  stopping.patience = 5;
  stopping.restore_best = 1;
  how.early_stopping = &stopping;
  const std::vector<Came> wanted = fit(how, true, true);
  for (int lost = 0; lost < 2; ++lost) {
    const std::pair<dtg_fit_event_kind, int64_t> places[] = {{DTG_FIT_BEGIN, 0},
                                                             {DTG_FIT_STEP, 1},
                                                             {DTG_FIT_STEP, kStepsOfAnEpoch - 1},
                                                             {DTG_FIT_STEP, kStepsOfAnEpoch},
                                                             {DTG_FIT_VALIDATION, kStepsOfAnEpoch},
                                                             {DTG_FIT_EPOCH_END, kStepsOfAnEpoch},
                                                             {DTG_FIT_STEP, 2 * kStepsOfAnEpoch - 2}};
    for (const auto& place : places) {
      const dtg_fit_event_kind kind = place.first;
      const int64_t at = place.second;
      SCOPED_TRACE("worker " + std::to_string(lost) + " is lost behind event " + std::to_string(kind) + " after step " +
                   std::to_string(at));
      std::vector<Came> came(2);
      all([&](int rank) {
        bool over = false;
        for (int life = 0; !over && !HasFailure(); ++life) {
          Worker worker(cluster_, rank);
          dtg_dataset *const train = data_of_worker(rank, 2, true), *const test = data_of_worker(rank, 2, false, 1000, 8);
          const bool to_be_lost = rank == lost && life == 0;
          const auto until = [&](const dtg_fit_event& event) { return to_be_lost && event.kind == kind && event.step == at; };
          Came& mine = came[static_cast<size_t>(rank)];
          mine = {};
          over = pull(*worker.net, train, test, how, mine, until);
          dtg_dataset_release(train);
          dtg_dataset_release(test);
        }
      });
      for (const Came& each : came) {
        EXPECT_EQ(each.weights, wanted[0].weights);
        EXPECT_EQ(each.steps, 2 * kStepsOfAnEpoch);
      }
      // What every worker decides by is the same, whoever was there for it.
      EXPECT_EQ(came[0].losses.back(), came[1].losses.back());
    }
  }
}

TEST_F(TrainerOfWorkers, AStopOfOneIsAStopOfAll) {
  of(2);
  std::vector<Came> came(2);
  all([&](int rank) {
    Worker worker(cluster_, rank);
    dtg_dataset* const train = data_of_worker(rank, 2, false);
    pull(*worker.net, train, nullptr, epochs(1000), came[static_cast<size_t>(rank)], [&](const dtg_fit_event& event) {
      if (rank == 1 && event.kind == DTG_FIT_STEP && event.step == 7) dtg_trainer_stop(worker.net->trainer);
      return false;
    });
    dtg_dataset_release(train);
  });
  EXPECT_EQ(came[0].steps, came[1].steps);
  EXPECT_GE(came[0].steps, 8);
  EXPECT_LE(came[0].steps, 10);
  EXPECT_EQ(came[0].weights, came[1].weights);
  EXPECT_EQ(came[1].why, "asked to");
  EXPECT_EQ(came[0].why, "another worker was asked to");
}

// All are started again; the first one's directory says where they go on, and the others are given no directory at all.
TEST_F(TrainerOfWorkers, AllGoOnFromTheFirstOnesCheckpoint) {
  of(2);
  const std::vector<Came> wanted = fit(epochs(4), true);
  const std::string run = directory_ + "/run";
  dtg_fit how = epochs(2);
  how.directory = run.c_str();
  fit(how, true);
  how.epochs = 4;
  const std::vector<Came> came = fit(how, true);
  EXPECT_EQ(came[0].weights, wanted[0].weights);
  EXPECT_EQ(came[0].losses, std::vector<double>(wanted[0].losses.begin() + 2, wanted[0].losses.end()));
  EXPECT_TRUE(std::filesystem::exists(run + "/summary.json"));
}

TEST_F(TrainerOfWorkers, OthersFitsAndUnknownLengthsAreSaid) {
  of(2);
  all([&](int rank) {
    Worker worker(cluster_, rank);
    dtg_dataset *const train = data_of_worker(rank, 2, false), *const endless = data_of_worker(rank, 2, false);
    dtg_fit how = epochs(2 + rank);
    const std::string other =
        refused(dtg_trainer_begin(worker.net->trainer, train, nullptr, &how), DTG_FAILED_PRECONDITION, "other epochs");
    EXPECT_NE(other.find("worker 1 asks for another fit than worker 0"), other.npos) << other;
    OK(dtg_dataset_repeat(endless, -1));
    how = epochs(1);
    refused(dtg_trainer_begin(worker.net->trainer, endless, nullptr, &how), DTG_INVALID_ARGUMENT, "no steps are said");
    // Who has more rows than another leaves them.
    dtg_dataset* const uneven = data_of_worker(rank, 2, false, 0, kRowsOfEach + 8 * rank);
    Came came;
    pull(*worker.net, uneven, nullptr, how, came);
    EXPECT_EQ(came.steps, kStepsOfAnEpoch);
    dtg_dataset_release(train);
    dtg_dataset_release(endless);
    dtg_dataset_release(uneven);
  });
}

}  // namespace
}  // namespace outside
