// MultiWorkerMirrored, through the public headers: workers with a server each, in this process, in a thread of their own. Training is that
// of Mirrored with as many replicas and of one process with the same shards, to the bit; values, writes and metrics over all workers; a
// loss that is no number, a worker that goes and comes back.
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
  void all(int of_each, const dtg_strategy_options& options, const std::function<void(Worker&)>& body) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count_; ++i) {
      threads.emplace_back([&, i] {
        Worker worker(cluster_, i, of_each, options, 7 + static_cast<uint64_t>(i));  // the others' seeds do not count
        body(worker);
        worker.meet();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  // What all workers have come to; it is the same.
  Bytes trained(const Case& c, int of_each, const dtg_strategy_options& options) {
    std::vector<Bytes> found(static_cast<size_t>(count_));
    all(of_each, options, [&](Worker& worker) {
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
    });
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
  return {{DTG_OPT_MOMENTUM, false, false, 0.05}, {DTG_OPT_ADAM, true, false}, {DTG_OPT_SGD, true, true}, {DTG_OPT_ADAM, false, true}};
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

}  // namespace
}  // namespace outside
