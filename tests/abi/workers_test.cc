// MultiWorkerMirrored, through the public headers: workers with a server each, in this process, in a thread of their own. Training is that
// of Mirrored with as many replicas and of one process with the same shards, to the bit; values, writes and metrics over all workers; a
// loss that is no number, a worker that goes and comes back.
#include <atomic>
#include <barrier>
#include <thread>

#include "job.h"
#include "strategy_cases.h"

namespace outside {
namespace {

// One worker's graph, with a strategy over the devices of all of them.
struct Worker {
  Worker(const dtg_cluster* cluster, int number, int of_each, dtg_strategy_options options, uint64_t seed)
      : rank(number), replicas(of_each), at(cluster, "worker", number, nullptr, of_each > 1 ? of_each : 0) {
    dtg_group_options joins = DTG_GROUP_OPTIONS_INIT;
    joins.key = 4;
    joins.default_timeout_ns = kWaitNs;
    OK(dtg_group_join(at.server, &joins, &group));
    options.kind = DTG_STRATEGY_MULTI_WORKER_MIRRORED;
    options.group = group;
    options.devices = of_each > 1 ? kDevices : nullptr;
    options.num_devices = of_each > 1 ? static_cast<size_t>(of_each) : 0;
    job = std::make_unique<StrategyJob>(seed, options, at.runtime);
  }
  ~Worker() {
    job.reset();
    dtg_group_release(group);
  }
  Worker(const Worker&) = delete;
  void begin() { job->begin(dtg_server_target(at.server)); }
  void meet() { OK(dtg_group_barrier(group, kWaitNs)); }

  const int rank, replicas;
  Server at;
  dtg_group* group = nullptr;
  std::unique_ptr<StrategyJob> job;
};

// Which rows of the batch a worker is given: those of its replicas.
int64_t row_of(int64_t rows, int64_t shards, int64_t shard) { return rows / shards * shard + std::min(rows % shards, shard); }

struct Model {
  explicit Model(Worker& of, const Case& what) : worker(of), c(what) {
    StrategyJob& job = *worker.job;
    placeholders(job, in);
    OK(dtg_strategy_enter(job.strategy));
    std::vector<dtg_per_replica> shares(3);
    for (int i = 0; i < 3; ++i) OK(dtg_strategy_split(job.strategy, in[i], &shares[static_cast<size_t>(i)]));
    const Network network = c.network();
    loss = job.run([&](int32_t, const dtg_value* inputs, dtg_value* results) { return network.add(job.model, job.graph, inputs, results); },
                   shares, 1)[0];
    const dtg_optimizer settings = c.settings();
    OK(dtg_strategy_minimize(job.strategy, loss, c.reduce(), &settings, &training));
    OK(dtg_strategy_level(job.strategy, &level));
    OK(dtg_strategy_exit(job.strategy));
  }
  dtg_error* step(int number, int workers, bool bad = false) {
    Batch batch(number, c.batch());
    const int64_t shards = int64_t{workers} * worker.replicas, first = int64_t{worker.rank} * worker.replicas;
    const int64_t begin = row_of(c.batch(), shards, first), end = row_of(c.batch(), shards, first + worker.replicas);
    if (bad) batch.y[static_cast<size_t>(begin)] = NAN;
    batch.feed(*worker.job, in, begin, end);
    return worker.job->try_go({training.train});
  }
  Worker& worker;
  const Case c;
  dtg_value in[3], level{};
  dtg_per_replica loss{};
  dtg_training training = DTG_TRAINING_INIT;
};

class Workers : public ::testing::Test {
 protected:
  // A folder and a cluster of so many.
  void SetUp() override {
    directory_ = folder("workers");
    ::mkdir(directory_.c_str(), 0700);
  }
  void TearDown() override {
    dtg_cluster_release(cluster_);
    ::rmdir(directory_.c_str());
  }
  void of(int count) {
    dtg_cluster_release(cluster_);
    std::string spec = "worker=";
    for (int i = 0; i < count; ++i) spec += (i ? ",unix:" : "unix:") + directory_ + "/w" + std::to_string(i);
    OK(dtg_cluster_parse(spec.c_str(), DTG_STRLEN, &cluster_));
    count_ = count;
  }
  void all(int of_each, const dtg_strategy_options& options, const std::function<void(Worker&)>& body, bool one_seed = false) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count_; ++i) {
      threads.emplace_back([&, i] {
        Worker worker(cluster_, i, of_each, options,
                      7 + static_cast<uint64_t>(one_seed ? 0 : i));  // the others' seeds count only where layers draw
        body(worker);
        worker.meet();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  // What all workers have come to; it is the same.
  Bytes trained(const Case& c, int of_each, const dtg_strategy_options& options) {
    std::vector<Bytes> found(static_cast<size_t>(count_));
    all(
        of_each, options,
        [&](Worker& worker) {
          Model model(worker, c);
          std::map<std::string, std::vector<dtg_value>> copies;
          for (const auto& [name, variable] : worker.job->variables()) {
            if (name != "global_step") copies[name] = worker.job->copies(variable.handle);
          }
          worker.begin();
          for (int step = 0; step < kSteps; ++step) OK(model.step(step, count_));
          Bytes& mine = found[static_cast<size_t>(worker.rank)];
          mine = worker.job->all_bytes();
          for (const auto& [name, reads] : copies) {
            EXPECT_EQ(reads.size(), static_cast<size_t>(of_each)) << name;
            for (const dtg_value read : reads) EXPECT_EQ(worker.job->bytes(read), mine[name]) << name;
          }
        },
        c.dropped > 0);
    for (const Bytes& each : found) EXPECT_EQ(each, found[0]) << c.name();
    return found[0];
  }

  std::string directory_;
  dtg_cluster* cluster_ = nullptr;
  int count_ = 0;
};

Bytes mirrored(const Case& c, dtg_cross_device cross) {
  dtg_strategy_options options = options_of(DTG_STRATEGY_MIRRORED);
  options.cross_device = cross;
  StrategyJob job(7, options);
  dtg_value in[3];
  placeholders(job, in);
  OK(dtg_strategy_enter(job.strategy));
  std::vector<dtg_per_replica> shares(3);
  for (int i = 0; i < 3; ++i) OK(dtg_strategy_split(job.strategy, in[i], &shares[static_cast<size_t>(i)]));
  const auto loss =
      job.run([&](int32_t, const dtg_value* inputs, dtg_value* results) { return c.network().add(job.model, job.graph, inputs, results); },
              shares, 1);
  const dtg_optimizer settings = c.settings();
  dtg_training training = DTG_TRAINING_INIT;
  OK(dtg_strategy_minimize(job.strategy, loss[0], c.reduce(), &settings, &training));
  OK(dtg_strategy_exit(job.strategy));
  job.begin();
  for (int step = 0; step < kSteps; ++step) {
    Batch(step, c.batch()).feed(job, in, 0, c.batch());
    job.go({training.train});
  }
  return job.all_bytes();
}

std::vector<Case> cases() {
  return {{DTG_OPT_MOMENTUM, false, false, 0.05}, {DTG_OPT_ADAM, true, false},       {DTG_OPT_SGD, true, true}, {DTG_OPT_ADAM, false, true},
          {DTG_OPT_SGD, false, false, 0, 0.5},    {DTG_OPT_ADAM, true, true, 0, 0.3}};
}

TEST_F(Workers, TrainLikeMirroredAndOneProcessWithTheSameShards) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name());
    const Bytes wanted = mirrored(c, DTG_REDUCE_TO_ONE_DEVICE);
    if (!c.uneven) {
      EXPECT_EQ(by_towers(c, 4), wanted);
    }
    dtg_strategy_options options = DTG_STRATEGY_OPTIONS_INIT;
    options.algorithm = DTG_ALGORITHM_RING;
    options.pack_bytes = 40;  // some together, some alone
    of(4);
    EXPECT_EQ(trained(c, 1, options), wanted);
    of(2);
    EXPECT_EQ(trained(c, 2, options), wanted);
    options.cross_device = DTG_REDUCE_HIERARCHICAL;
    EXPECT_EQ(trained(c, 2, options), mirrored(c, DTG_REDUCE_HIERARCHICAL));
  }
}

dtg_variable counter(StrategyJob& job, const char* name, dtg_variable_sync sync, dtg_variable_aggregation aggregation) {
  dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
  dtg_variable out = DTG_VARIABLE_INIT;
  spec.name = name;
  spec.not_trainable = 1;
  spec.synchronization = sync;
  spec.aggregation = aggregation;
  spec.initializer.kind = DTG_INIT_CONSTANT;
  spec.initializer.a = 4;
  OK(dtg_model_add_variable(job.model, &spec, &out));
  return out;
}

// Two workers of one or two replicas, whose values are 1, 2, .. by replica.
void say_words(Worker& w) {
  StrategyJob& job = *w.job;
  const int n = 2 * w.replicas;
  dtg_strategy_info info = DTG_STRATEGY_INFO_INIT;
  OK(dtg_strategy_describe(job.strategy, &info));
  EXPECT_EQ(info.num_replicas, w.replicas);
  EXPECT_EQ(info.num_replicas_in_sync, n);
  EXPECT_EQ(info.between_graph, 1);
  EXPECT_EQ(info.should_init, w.rank == 0);
  EXPECT_EQ(info.should_checkpoint, w.rank == 0);
  OK(dtg_strategy_enter(job.strategy));
  const dtg_variable_aggregation hows[] = {DTG_AGGREGATION_SUM, DTG_AGGREGATION_MEAN, DTG_AGGREGATION_ONLY_FIRST_REPLICA};
  std::vector<dtg_variable> written, seen;
  for (const auto how : hows) {
    written.push_back(counter(job, "written", DTG_VARIABLE_ON_WRITE, how));
    seen.push_back(counter(job, "seen", DTG_VARIABLE_ON_READ, how));
  }
  dtg_metric_values metric = DTG_METRIC_VALUES_INIT;
  const dtg_per_replica value = job.run(
      [&](int32_t r, const dtg_value*, dtg_value* results) -> dtg_error* {
        dtg_metric added = DTG_METRIC_INIT;
        added.kind = DTG_METRIC_SUM;
        PASS(dtg_const_f32(job.graph, static_cast<float>(w.rank * w.replicas + r + 1), &results[0]));
        PASS(dtg_nn_metric(job.model, &added, dtg_value{}, results[0], dtg_value{}, &metric));
        for (const auto& each : written) PASS(dtg_strategy_assign(job.strategy, each.handle, DTG_ASSIGN_ADD, results[0], nullptr));
        for (const auto& each : seen) PASS(dtg_strategy_assign(job.strategy, each.handle, DTG_ASSIGN_ADD, results[0], nullptr));
        return nullptr;
      },
      {}, 1)[0];
  dtg_value updates{}, sum{}, mean{}, rows{}, columns{}, weighed{}, twenty{}, set{};
  OK(dtg_strategy_updates(job.strategy, &updates));
  OK(dtg_strategy_reduce(job.strategy, DTG_REDUCE_SUM, value, DTG_NO_AXIS, &sum));
  OK(dtg_strategy_reduce(job.strategy, DTG_REDUCE_MEAN, value, DTG_NO_AXIS, &mean));
  // Rank 0 has 2 rows, rank 1 has 3.
  const dtg_value batch = job.placeholder(DTG_F32, {-1, 2});
  dtg_per_replica shares{};
  OK(dtg_strategy_split(job.strategy, batch, &shares));
  OK(dtg_strategy_gather(job.strategy, shares, 0, &rows));
  OK(dtg_strategy_reduce(job.strategy, DTG_REDUCE_MEAN, shares, 0, &weighed));
  const dtg_value wide = job.placeholder(DTG_F32, {2, -1});
  std::vector<dtg_value> same(static_cast<size_t>(w.replicas), wide);
  dtg_per_replica wides{};
  OK(dtg_strategy_distribute(job.strategy, same.data(), same.size(), &wides));
  OK(dtg_strategy_gather(job.strategy, wides, -1, &columns));
  OK(dtg_const_f32(job.graph, 20, &twenty));
  OK(dtg_strategy_assign(job.strategy, seen[0].handle, DTG_ASSIGN_SET, twenty, &set));
  OK(dtg_strategy_exit(job.strategy));
  w.begin();
  const auto total = static_cast<float>(n * (n + 1) / 2);
  EXPECT_EQ(job.number(sum), total);
  EXPECT_EQ(job.number(mean), total / static_cast<float>(n));
  const float mine[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const auto feed = [&] { job.feed(batch, DTG_F32, {2 + w.rank, 2}, mine + 4 * w.rank); };
  feed();
  EXPECT_EQ(job.floats(rows), std::vector<float>(mine, mine + 10));
  feed();
  EXPECT_EQ(job.floats(weighed), (std::vector<float>{5, 6}));
  const float wide_of[2][4] = {{1, 2, 3, 4}, {5, 6, 0, 0}};
  job.feed(wide, DTG_F32, {2, 2 - w.rank}, wide_of[w.rank]);
  const std::vector<float> twice = {1, 2, 1, 2, 5, 5, 3, 4, 3, 4, 6, 6}, once = {1, 2, 5, 3, 4, 6};
  EXPECT_EQ(job.floats(columns), w.replicas == 2 ? twice : once);
  const float added[] = {total, total / static_cast<float>(n), 1};
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(job.number(seen[i].read), 4) << i;
  job.go({updates});
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(job.number(written[i].read), 4 + added[i]) << i;
    EXPECT_EQ(job.number(seen[i].read), 4 + added[i]) << i;
  }
  job.go({set});
  EXPECT_EQ(job.number(seen[0].read), 20);
  for (int i = 0; i < 2; ++i) job.go({metric.update});
  EXPECT_EQ(job.number(metric.result), 2 * total);
}

TEST_F(Workers, ValuesAndWritesOverAllOfThem) {
  of(2);
  const dtg_strategy_options options = DTG_STRATEGY_OPTIONS_INIT;
  all(1, options, say_words);
  all(2, options, say_words);
}

// Of each type, with bytes of which every one counts: gathered they are the same, and added up they wrap around.
void say_types(Worker& w) {
  StrategyJob& job = *w.job;
  constexpr dtg_dtype kTypes[] = {DTG_BOOL, DTG_I8,  DTG_U8,  DTG_I16, DTG_U16, DTG_I32,
                                  DTG_U32,  DTG_I64, DTG_U64, DTG_F16, DTG_F32, DTG_F64};
  struct Made {
    dtg_value in, rows, sum;
  };
  std::vector<Made> made;
  const auto is_whole = [](dtg_dtype type) { return type != DTG_BOOL && type != DTG_F16 && type != DTG_F32 && type != DTG_F64; };
  OK(dtg_strategy_enter(job.strategy));
  for (const dtg_dtype type : kTypes) {
    Made& each = made.emplace_back();
    each.in = job.placeholder(type, {3});
    dtg_per_replica value{};
    const std::vector<dtg_value> same(static_cast<size_t>(w.replicas), each.in);
    OK(dtg_strategy_distribute(job.strategy, same.data(), same.size(), &value));
    OK(dtg_strategy_gather(job.strategy, value, 0, &each.rows));
    if (is_whole(type)) OK(dtg_strategy_reduce(job.strategy, DTG_REDUCE_SUM, value, DTG_NO_AXIS, &each.sum));
  }
  OK(dtg_strategy_exit(job.strategy));
  w.begin();
  for (size_t t = 0; t < std::size(kTypes); ++t) {
    const size_t width = dtg_dtype_size(kTypes[t]);
    const auto bytes_of = [&](int rank) {
      std::string bytes(3 * width, 0);
      for (size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<char>(kTypes[t] == DTG_BOOL ? (rank + static_cast<int>(i)) & 1 : 61 * (rank + 1) + 7 * static_cast<int>(i));
      return bytes;
    };
    std::string rows, sum;
    for (int rank = 0; rank < 2; ++rank) {
      for (int r = 0; r < w.replicas; ++r) rows += bytes_of(rank);
    }
    for (size_t i = 0; i < 3; ++i) {
      uint64_t total = 0;
      for (size_t part = i; part * width < rows.size(); part += 3) {
        uint64_t number = 0;
        std::memcpy(&number, rows.data() + part * width, width);
        total += number;
      }
      sum.append(reinterpret_cast<const char*>(&total), width);
    }
    const std::string mine = bytes_of(w.rank);
    job.feed(made[t].in, kTypes[t], {3}, mine.data());
    EXPECT_EQ(job.bytes(made[t].rows), rows) << "type " << kTypes[t];
    if (!is_whole(kTypes[t])) continue;
    job.feed(made[t].in, kTypes[t], {3}, mine.data());
    EXPECT_EQ(job.bytes(made[t].sum), sum) << "type " << kTypes[t];
  }
}

TEST_F(Workers, EveryTypeIsGatheredAndWholeNumbersAddUp) {
  of(2);
  const dtg_strategy_options options = DTG_STRATEGY_OPTIONS_INIT;
  all(1, options, say_types);
  all(2, options, say_types);
}

TEST_F(Workers, ADeviceThatTheServerDoesNotHaveIsRefusedAtOnce) {
  of(1);
  all(2, DTG_STRATEGY_OPTIONS_INIT, [](Worker& w) {
    for (const char* device : {"/device:EMU:2", "/job:worker/task:0/device:CPU:1", "GPU:0"}) {
      dtg_strategy_options options = options_of(DTG_STRATEGY_MULTI_WORKER_MIRRORED);
      const char* const devices[] = {"/device:EMU:0", device};
      options.group = w.group;
      options.devices = devices;
      options.num_devices = 2;
      dtg_strategy* strategy = nullptr;
      const std::string why = refused(dtg_strategy_create(w.job->model, &options, &strategy), DTG_INVALID_ARGUMENT, device);
      EXPECT_NE(why.find(device), why.npos) << why;
      EXPECT_NE(why.find("/device:EMU:1"), why.npos) << why;
    }
  });
}

// The others could not fit with it.
TEST_F(Workers, AFitOverAllOfThemIsRefusedAtOnce) {
  of(2);
  all(1, DTG_STRATEGY_OPTIONS_INIT, [](Worker& w) {
    Model model(w, {DTG_OPT_SGD, false, false});
    w.begin();
    dtg_value loss{};
    size_t count = 0;
    OK(dtg_strategy_local_results(w.job->strategy, model.loss, &loss, 1, &count));
    dtg_trainer_options options = DTG_TRAINER_OPTIONS_INIT;
    options.session = w.job->session;
    options.feeds = model.in;
    options.num_feeds = 3;
    options.loss = loss;
    options.train = model.training.train;
    dtg_trainer* trainer = nullptr;
    const std::string why = refused(dtg_trainer_create(w.job->model, &options, &trainer), DTG_UNIMPLEMENTED, "a fit");
    EXPECT_NE(why.find(w.rank == 0 ? "reduces with other workers" : "a worker's"), why.npos) << why;
  });
}

// Worker 1 has made another strategy before the one that it runs, so both wait. The run's first call may come late, so it gets more time.
TEST_F(Workers, OtherNumbersOfStrategiesAreSaid) {
  of(2);
  dtg_strategy_options options = DTG_STRATEGY_OPTIONS_INIT;
  std::barrier through(2);
  std::atomic<bool> said = false;
  const auto work = [&](int rank) {
    Worker w(cluster_, rank, 1, options, 7);
    dtg_strategy_options again = options_of(DTG_STRATEGY_MULTI_WORKER_MIRRORED, 0);
    again.devices = nullptr;
    again.group = w.group;
    dtg_strategy* second = nullptr;
    if (rank == 1) OK(dtg_strategy_create(w.job->model, &again, &second));
    dtg_value one{}, sum{};
    dtg_per_replica value{};
    OK(dtg_const_f32(w.job->graph, 1, &one));
    OK(dtg_strategy_distribute(second ? second : w.job->strategy, &one, 1, &value));
    OK(dtg_strategy_reduce(second ? second : w.job->strategy, DTG_REDUCE_SUM, value, DTG_NO_AXIS, &sum));
    OK(dtg_session_connect(w.at.runtime, dtg_server_target(w.at.server), DTG_STRLEN, w.job->graph, nullptr, &w.job->session));
    for (int64_t ms = 250; !said && ms < 20'000; ms *= 2) {
      through.arrive_and_wait();
      dtg_run_args args = DTG_RUN_ARGS_INIT;
      dtg_tensor* fetched = nullptr;
      args.fetches = &sum;
      args.fetched = &fetched;
      args.num_fetches = 1;
      args.timeout_ns = rank == 1 ? ms * 1'000'000 : kWaitNs;
      const std::string why = refused(dtg_session_run(w.job->session, &args), DTG_DEADLINE_EXCEEDED, "another strategy");
      const bool both =
          why.find(
              "rank 0 (/job:worker/replica:0/task:0) has called all_reduce(float32[], sum, for the sum over 1 replica of each worker) of instance 1 ") !=
          why.npos;
      if (rank == 0 && both && why.find("check that all have made the same strategies") != why.npos) said = true;
      through.arrive_and_wait();
      if (!said) OK(dtg_group_reform(w.group, 0, kWaitNs));
    }
    EXPECT_TRUE(said);
    through.arrive_and_wait();
    dtg_strategy_release(second);
  };
  std::thread other(work, 1);
  work(0);
  other.join();
}

// Tensors of one shape, which mean a sum to one worker and a mean to the other, or come from other numbers of replicas.
TEST_F(Workers, ThoseThatMeanOtherThingsHearIt) {
  of(2);
  const auto heard = [&](int replicas, const std::function<void(Worker&)>& step) {
    std::barrier through(2);
    const auto work = [&](int rank) {
      dtg_strategy_options options = DTG_STRATEGY_OPTIONS_INIT;
      options.cross_device = DTG_REDUCE_HIERARCHICAL;
      Worker w(cluster_, rank, rank == 1 ? replicas : 1, options, 7);
      step(w);
      through.arrive_and_wait();
    };
    std::thread other(work, 1);
    work(0);
    other.join();
  };
  const auto add_up = [](Worker& w, dtg_reduction reduce, const char* odd) {
    std::vector<dtg_value> ones(static_cast<size_t>(w.replicas));
    for (dtg_value& one : ones) OK(dtg_const_f32(w.job->graph, 1, &one));
    dtg_per_replica value{};
    dtg_value sum{};
    OK(dtg_strategy_distribute(w.job->strategy, ones.data(), ones.size(), &value));
    OK(dtg_strategy_reduce(w.job->strategy, reduce, value, DTG_NO_AXIS, &sum));
    OK(dtg_session_connect(w.at.runtime, dtg_server_target(w.at.server), DTG_STRLEN, w.job->graph, nullptr, &w.job->session));
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    dtg_tensor* fetched = nullptr;
    args.fetches = &sum;
    args.fetched = &fetched;
    args.num_fetches = 1;
    args.timeout_ns = kWaitNs;
    const std::string why = refused(dtg_session_run(w.job->session, &args), DTG_INVALID_ARGUMENT, odd);
    EXPECT_NE(why.find(odd), why.npos) << why;
  };
  heard(1, [&](Worker& w) { add_up(w, w.rank == 1 ? DTG_REDUCE_MEAN : DTG_REDUCE_SUM, "for the mean over 1 replica of each worker"); });
  heard(2, [&](Worker& w) { add_up(w, DTG_REDUCE_SUM, "for the sum over 2 replicas of each worker"); });
  heard(1, [&](Worker& w) {
    Model model(w, {DTG_OPT_SGD, false, w.rank == 1});  // uneven shares are summed
    w.begin();
    const std::string why = refused(model.step(0, 2), DTG_INVALID_ARGUMENT, "gradients");
    EXPECT_NE(why.find("for the sum over 1 replica of each worker of the gradients of"), why.npos) << why;
  });
}

// An epoch that has ended is none to make a strategy in, whoever ended it.
TEST_F(Workers, NoStrategyIsMadeInAnEndedEpoch) {
  of(2);
  const dtg_strategy_options options = DTG_STRATEGY_OPTIONS_INIT;
  std::barrier through(2);
  const auto work = [&](int rank) {
    Worker worker(cluster_, rank, 1, options, 7);
    dtg_strategy_options again = options_of(DTG_STRATEGY_MULTI_WORKER_MIRRORED);
    again.group = worker.group;
    dtg_strategy* strategy = nullptr;
    OK(dtg_group_barrier(worker.group, kWaitNs));
    if (worker.rank == 1) {
      OK(dtg_group_leave(worker.group));
      refused(dtg_group_barrier(worker.group, kWaitNs), DTG_CANCELLED, "after leaving");
    } else {
      refused(dtg_group_barrier(worker.group, kWaitNs), DTG_UNAVAILABLE, "without a member");
    }
    const std::string why = refused(dtg_strategy_create(worker.job->model, &again, &strategy), DTG_FAILED_PRECONDITION, "an ended epoch");
    EXPECT_NE(why.find(worker.rank == 1 ? "has left" : "task:1"), why.npos) << why;
    EXPECT_EQ(strategy, nullptr);
    dtg_strategy_release(strategy);
    through.arrive_and_wait();
  };
  std::thread other(work, 1);
  work(0);
  other.join();
}

// Worker 1 meets a loss that is no number, and later goes in the middle of a step and comes back as another process would: with no values.
TEST_F(Workers, NoStepIsLostOrHalfMade) {
  constexpr int kAll = 3;
  const Case c{DTG_OPT_ADAM, false, true};
  const dtg_strategy_options options = DTG_STRATEGY_OPTIONS_INIT;
  of(kAll);
  const Bytes wanted = trained(c, 1, options);
  std::vector<Bytes> found(kAll);
  std::barrier through(kAll);
  const auto work = [&](int rank, bool again) {
    Worker w(cluster_, rank, 1, options, 7 + static_cast<uint64_t>(rank));
    Model model(w, c);
    w.begin();
    if (!again) {
      // Whoever fails first ends what others have under way, so all are through with their first values before.
      through.arrive_and_wait();
      const std::string ended = refused(model.step(0, kAll, rank == 1), rank == 1 ? DTG_INVALID_ARGUMENT : DTG_ABORTED, "a bad loss");
      EXPECT_NE(ended.find(rank == 1 ? "tower 1" : "task:1"), ended.npos) << ended;
      OK(dtg_group_reform(w.group, 0, kWaitNs));
      for (int step = 0; step < 2; ++step) OK(model.step(step, kAll));
      through.arrive_and_wait();
      if (rank == 1) return;
      const Bytes before = w.job->all_bytes();
      const std::string lost = refused(model.step(2, kAll), DTG_UNAVAILABLE, "a step without a worker");
      EXPECT_NE(lost.find("/job:worker/replica:0/task:1"), lost.npos) << lost;
      EXPECT_EQ(w.job->all_bytes(), before);
      OK(dtg_group_reform(w.group, 0, kWaitNs));
      w.job->go({model.level});
    }
    dtg_variable step = DTG_VARIABLE_INIT;
    OK(dtg_model_global_step(w.job->model, &step));
    int64_t made = 0;
    std::memcpy(&made, w.job->bytes(step.read).data(), sizeof made);
    EXPECT_EQ(made, 2);
    for (; made < kSteps; ++made) OK(model.step(static_cast<int>(made), kAll));
    found[static_cast<size_t>(rank)] = w.job->all_bytes();
    w.meet();
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kAll; ++rank) {
    threads.emplace_back([&, rank] {
      work(rank, false);
      if (rank == 1) work(rank, true);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Bytes& each : found) EXPECT_EQ(each, wanted);
}

// A call as the strategy's own of that instance.
dtg_value reduction_of_one(StrategyJob& job, int32_t instance) {
  dtg_tensor* const one = vector_of({0.5f});
  dtg_value inputs[4], out{};
  OK(dtg_const(job.graph, one, &inputs[0]));
  dtg_tensor_release(one);
  const int32_t keys[] = {2, 4, instance};
  for (int i = 0; i < 3; ++i) OK(dtg_const_of(job.graph, DTG_I32, nullptr, 0, &keys[i], sizeof keys[i], &inputs[i + 1]));
  dtg_attr attrs[2] = {DTG_ATTR_INIT, DTG_ATTR_INIT};
  const char* const values[2][2] = {{"merge_op", "Add"}, {"final_op", "Id"}};
  for (int i = 0; i < 2; ++i) attrs[i].name = values[i][0], attrs[i].kind = DTG_ATTR_STRING, attrs[i].s = values[i][1];
  dtg_op_spec spec = DTG_OP_SPEC_INIT;
  spec.type = "CollectiveReduceV2";
  spec.inputs = inputs;
  spec.num_inputs = 4;
  spec.attrs = attrs;
  spec.num_attrs = 2;
  OK(dtg_graph_add_op(job.graph, &spec, &out, 1));
  return out;
}

// Worker 1 takes part in the first of a step's four collectives only, that of the last bias, and goes: worker 0 applies none of them.
TEST_F(Workers, AStepIsAppliedWhenAllOfItHasCome) {
  dtg_strategy_options options = DTG_STRATEGY_OPTIONS_INIT;
  options.pack_bytes = 1;
  of(2);
  const auto work = [&](int rank) {
    Worker w(cluster_, rank, 1, options, 7);
    Model model(w, {DTG_OPT_SGD, false, true});
    const dtg_value first = reduction_of_one(*w.job, 1);
    w.begin();
    w.meet();
    if (rank == 1) {
      OK(w.job->try_go({}, first));
      OK(dtg_group_leave(w.group));
      return;
    }
    const Bytes before = w.job->all_bytes();
    refused(model.step(0, 2), DTG_UNAVAILABLE, "a step of which a part has come");
    EXPECT_EQ(w.job->all_bytes(), before);
  };
  std::thread other([&] { work(1); });
  work(0);
  other.join();
}

}  // namespace
}  // namespace outside
