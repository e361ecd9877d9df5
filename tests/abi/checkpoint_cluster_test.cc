// Checkpoints of a cluster through the public headers: two strict workers train over parameter servers, the chief saves, the whole job
// ends, and another one, with another number of parameter servers, goes on to the last bit, at every step and with every optimizer that
// keeps something. Who is not the chief is refused. One process; a runtime per task.
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <memory>

#include "job.h"

namespace outside {
namespace {

constexpr int kSteps = 4, kWorkers = 2;
using Values = std::map<std::string, std::string>;

Values variables_of(const Program& p) {
  Values values;
  for (size_t i = 0; i < dtg_model_variable_count(p.model); ++i) {
    dtg_variable each = DTG_VARIABLE_INIT;
    OK(dtg_model_variable(p.model, i, &each));
    values[each.name] = fetched(p.session, each.read);
  }
  return values;
}

// A directory for sockets, which nobody else may enter.
void make_private(const std::string& path) {
  std::filesystem::create_directories(path);
  ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
}

// The servers of one life of the job.
struct Job {
  Job(const std::string& sockets, int servers) : ps(servers) {
    std::string spec = "ps=";
    for (int i = 0; i < ps; ++i) spec += (i ? ",unix:" : "unix:") + sockets + "/p" + std::to_string(i);
    spec += ";worker=unix:" + sockets + "/w0,unix:" + sockets + "/w1";
    OK(dtg_cluster_parse(spec.c_str(), DTG_STRLEN, &cluster));
    for (int i = 0; i < ps; ++i) tasks.push_back(std::make_unique<Server>(cluster, "ps", i));
    for (int i = 0; i < kWorkers; ++i) workers.push_back(std::make_unique<Server>(cluster, "worker", i));
  }
  ~Job() { dtg_cluster_release(cluster); }
  Job(const Job&) = delete;
  const int ps;
  dtg_cluster* cluster = nullptr;
  std::vector<std::unique_ptr<Server>> tasks, workers;
};

// One worker: a table and two layers, dealt to the parameter servers in turn.
struct Worker {
  Worker(const Job& job, int32_t number, dtg_optimizer_kind kind, const std::string& directory) : program(job.workers[number]->runtime) {
    build(job, number);
    dtg_replication replication = DTG_REPLICATION_INIT;
    replication.mode = DTG_SYNC_STRICT;
    replication.worker = number;
    replication.total = kWorkers;
    dtg_optimizer optimizer = DTG_OPTIMIZER_INIT;
    optimizer.kind = kind;
    optimizer.rate = 0.1;
    optimizer.momentum = kind == DTG_OPT_MOMENTUM ? 0.5 : 0;
    OK(dtg_nn_minimize_replicated(program.model, loss, &optimizer, &replication, &share));
    const Server& at = *job.workers[number];
    OK(dtg_session_connect(at.runtime, dtg_server_target(at.server), DTG_STRLEN, program.graph, nullptr, &program.session));
    dtg_checkpoint_options options = DTG_CHECKPOINT_OPTIONS_INIT;
    options.directory = directory.c_str();
    options.shards = 2;
    OK(dtg_checkpoint_open(program.model, program.session, &options, &checkpoint));
  }
  ~Worker() { dtg_checkpoint_release(checkpoint); }
  Worker(const Worker&) = delete;
  void build(const Job& job, int32_t number) {
    const std::string home = "/job:worker/task:" + std::to_string(number);
    const auto on_ps = [&](int i) { program.on("/job:ps/task:" + std::to_string(i % job.ps)); };
    const int64_t count[] = {4};
    program.on(home);
    OK(dtg_placeholder(program.graph, "ids", DTG_I32, count, 1, &ids));
    program.off();
    dtg_embedding embedding = DTG_EMBEDDING_INIT;
    embedding.rows = 6;
    embedding.width = 3;
    dtg_value y{}, zero{};
    on_ps(0);
    OK(dtg_nn_embedding(program.model, ids, &embedding, &y));
    program.off();
    for (int layer = 1; layer <= 2; ++layer) {
      const int64_t dims[] = {layer == 1 ? 3 : 5, layer == 1 ? 5 : 1};
      dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
      spec.name = layer == 1 ? "first" : "second";
      spec.dims = dims;
      spec.rank = 2;
      spec.initializer.kind = DTG_INIT_GLOROT_UNIFORM;
      dtg_variable kernel = DTG_VARIABLE_INIT;
      on_ps(layer);
      OK(dtg_model_add_variable(program.model, &spec, &kernel));
      program.off();
      program.on(home);
      OK(dtg_add2(program.graph, "MatMul", y, kernel.read, &y));
      OK(dtg_add1(program.graph, "Tanh", y, &y));
      program.off();
    }
    program.on(home);
    OK(dtg_add1(program.graph, "ZerosLike", y, &zero));
    OK(dtg_nn_mean_squared_error(program.model, zero, y, &loss));
    program.off();
    program.global_step("/job:ps/task:0");
  }
  void join() {
    OK(dtg_model_wait_ready(program.model, program.session, kWaitNs));
    OK(dtg_run_target(program.session, share.local_init));
  }
  Program program;
  dtg_value ids{}, loss{};
  dtg_replicated share = DTG_REPLICATED_INIT;
  dtg_checkpoint* checkpoint = nullptr;
};

// One life: from where the directory says, to `until`; the values after each step, by step. Saves at its end.
void live(const std::string& place, int servers, dtg_optimizer_kind kind, int begin, int until, std::map<int, Values>& seen) {
  const std::string sockets = place + "/sockets", directory = place + "/sets";
  make_private(sockets);
  const Job job(sockets, servers);
  Worker chief(job, 0, kind, directory), other(job, 1, kind, directory);
  int64_t step = -1;
  OK(dtg_checkpoint_resume(chief.checkpoint, &step, nullptr));
  ASSERT_EQ(step, begin);
  OK(dtg_run_target(chief.program.session, chief.share.chief_init));
  chief.join();
  other.join();
  dtg_cq *cq = nullptr, *updates = nullptr;
  OK(dtg_cq_create(&cq));
  OK(dtg_cq_create(&updates));
  dtg_run* loop = nullptr;
  OK(dtg_session_run_repeatedly(chief.program.session, &chief.share.update, 1, updates, 7, &loop));
  seen[begin] = variables_of(chief.program);
  for (int at = begin; at < until && !testing::Test::HasFailure(); ++at) {
    start(chief.program.session, chief.share.train, {chief.ids}, {ids_of(at, 0)}, cq, 0);
    start(other.program.session, other.share.train, {other.ids}, {ids_of(at, 1)}, cq, 1);
    wait_for(cq, kWorkers);
    seen[at + 1] = variables_of(chief.program);
  }
  // While the update loop waits for what comes next.
  OK(dtg_checkpoint_save(chief.checkpoint, until, 0));
  dtg_run_cancel(loop);
  wait_for(updates, 1, DTG_CANCELLED);
  dtg_run_release(loop);
  dtg_cq_release(cq);
  dtg_cq_release(updates);
}

class ClusterCheckpoint : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(mkdir(place_.c_str(), 0700), 0); }
  void TearDown() override {
    std::filesystem::remove_all(place_);
    EXPECT_EQ(dtg_live_handles(), before_);
  }
  std::string fresh() { return place_ + "/" + std::to_string(++places_); }
  const std::string place_ = folder("sets");
  const size_t before_ = dtg_live_handles();
  int places_ = 0;
};

TEST_F(ClusterCheckpoint, GoesOnToTheBitWithAnotherNumberOfServers) {
  for (const dtg_optimizer_kind kind : {DTG_OPT_SGD, DTG_OPT_MOMENTUM, DTG_OPT_ADAM}) {
    std::map<int, Values> wanted;
    live(fresh(), 2, kind, 0, kSteps, wanted);
    for (int stop = 0; stop < kSteps && !HasFailure(); ++stop) {
      const std::string place = fresh();
      std::map<int, Values> found;
      live(place, 1 + stop % 3, kind, 0, stop, found);
      live(place, 3 - stop % 3, kind, stop, kSteps, found);
      EXPECT_TRUE(found == wanted) << "optimizer " << kind << ", stopped after " << stop;
    }
  }
}

TEST_F(ClusterCheckpoint, TheChiefAlone) {
  const std::string sockets = fresh(), directory = fresh();
  make_private(sockets);
  const Job job(sockets, 1);
  Worker chief(job, 0, DTG_OPT_SGD, directory), other(job, 1, DTG_OPT_SGD, directory);
  refused(dtg_checkpoint_resume(other.checkpoint, nullptr, nullptr), DTG_PERMISSION_DENIED, "a worker that resumes");
  OK(dtg_checkpoint_resume(chief.checkpoint, nullptr, nullptr));
  OK(dtg_checkpoint_save(chief.checkpoint, 0, 0));
  const std::string message =
      refused(dtg_checkpoint_restore(other.checkpoint, nullptr, 0, nullptr, nullptr), DTG_PERMISSION_DENIED, "a worker");
  EXPECT_NE(message.find("worker"), std::string::npos) << message;
  refused(dtg_checkpoint_save(other.checkpoint, 0, 0), DTG_PERMISSION_DENIED, "a worker that saves");
  // A client of a cluster that has a chief is none.
  Program client(nullptr);
  const int64_t dims[] = {2};
  dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
  spec.name = "v";
  spec.dims = dims;
  spec.rank = 1;
  client.on("/job:ps/task:0");
  OK(dtg_model_add_variable(client.model, &spec, nullptr));
  client.off();
  OK(dtg_session_connect(nullptr, ("unix:" + sockets + "/p0").c_str(), DTG_STRLEN, client.graph, nullptr, &client.session));
  dtg_checkpoint_options options = DTG_CHECKPOINT_OPTIONS_INIT;
  options.directory = directory.c_str();
  dtg_checkpoint* mine = nullptr;
  OK(dtg_checkpoint_open(client.model, client.session, &options, &mine));
  refused(dtg_checkpoint_resume(mine, nullptr, nullptr), DTG_PERMISSION_DENIED, "a client");
  dtg_checkpoint_release(mine);
}

TEST_F(ClusterCheckpoint, AClientWhereThereIsNoChief) {
  const std::string sockets = fresh(), directory = fresh();
  make_private(sockets);
  dtg_cluster* cluster = nullptr;
  OK(dtg_cluster_parse(("ps=unix:" + sockets + "/p0").c_str(), DTG_STRLEN, &cluster));
  const Server ps(cluster, "ps", 0);
  dtg_cluster_release(cluster);
  for (int life = 0; life < 2; ++life) {
    Program client(nullptr);
    client.global_step("/job:ps/task:0");
    OK(dtg_session_connect(nullptr, ("unix:" + sockets + "/p0").c_str(), DTG_STRLEN, client.graph, nullptr, &client.session));
    dtg_checkpoint_options options = DTG_CHECKPOINT_OPTIONS_INIT;
    options.directory = directory.c_str();
    dtg_checkpoint* mine = nullptr;
    OK(dtg_checkpoint_open(client.model, client.session, &options, &mine));
    dtg_string* report = nullptr;
    OK(dtg_checkpoint_resume(mine, nullptr, &report));
    const std::string told = dtg_string_data(report, nullptr);
    EXPECT_NE(told.find(life ? "\"kept\"" : "\"started\""), std::string::npos) << told;
    dtg_string_release(report);
    OK(dtg_checkpoint_save(mine, 0, 0));
    dtg_checkpoint_release(mine);
  }
}

// As WHEN_SOMETHING_DIES.md says: a first call finds that the server is another one, and a next one restores the newest set.
TEST_F(ClusterCheckpoint, AResumeIsRepeatedUntilAServerThatCameBackEmptyIsThere) {
  const std::string sockets = fresh(), directory = fresh();
  make_private(sockets);
  dtg_cluster* cluster = nullptr;
  OK(dtg_cluster_parse(("ps=unix:" + sockets + "/p0").c_str(), DTG_STRLEN, &cluster));
  auto ps = std::make_unique<Server>(cluster, "ps", 0);
  Program client(nullptr);
  client.global_step("/job:ps/task:0");
  OK(dtg_session_connect(nullptr, ("unix:" + sockets + "/p0").c_str(), DTG_STRLEN, client.graph, nullptr, &client.session));
  dtg_checkpoint_options options = DTG_CHECKPOINT_OPTIONS_INIT;
  options.directory = directory.c_str();
  dtg_checkpoint* mine = nullptr;
  OK(dtg_checkpoint_open(client.model, client.session, &options, &mine));
  OK(dtg_checkpoint_resume(mine, nullptr, nullptr));
  OK(dtg_checkpoint_save(mine, 0, 0));
  ps.reset();
  ps = std::make_unique<Server>(cluster, "ps", 0);
  dtg_cluster_release(cluster);
  std::string told, failed;
  for (int tries = 0; tries < 5 && told.empty(); ++tries) {
    dtg_string* report = nullptr;
    dtg_error* const error = dtg_checkpoint_resume(mine, nullptr, &report);
    if (error) {
      failed += std::string(dtg_code_name(dtg_error_code(error))) + ": " + dtg_error_message(error, nullptr) + "\n";
      dtg_error_release(error);
      continue;
    }
    told = dtg_string_data(report, nullptr);
    dtg_string_release(report);
  }
  EXPECT_TRUE(failed.starts_with("ABORTED: ") && failed.find("was started anew") != std::string::npos) << failed;
  EXPECT_NE(told.find("\"restored\""), std::string::npos) << told << failed;
  dtg_checkpoint_release(mine);
}

}  // namespace
}  // namespace outside
