// Strict training by servers: two parameter servers and two workers, each with a runtime of its own and sockets in between,
// against towers in one local session, bit for bit; with a worker that is replaced by another one on the way. One thread.
#include <sys/stat.h>

#include <memory>

#include "world.h"

namespace outside {
namespace {

constexpr int64_t kWaitNs = int64_t{60} * 1000 * 1000 * 1000;
constexpr int kSteps = 8;

// One copy of the computation: an embedding of ids[4], two layers, the loss against zero.
struct Copy {
  dtg_value ids{}, loss{};
};

struct Program {
  explicit Program(dtg_runtime* runtime) {
    OK(dtg_graph_create(runtime, &graph));
    OK(dtg_model_create(graph, 5, &model));
  }
  ~Program() {
    dtg_session_release(session);
    dtg_model_release(model);
    dtg_graph_release(graph);
  }
  Program(const Program&) = delete;

  void on(const std::string& device) { OK(dtg_graph_push_device(graph, device.c_str(), DTG_STRLEN)); }
  void off() { OK(dtg_graph_pop_device(graph)); }

  // `home` is where it computes; variables on the servers, or all at home when there are none.
  Copy add(const std::string& home, bool servers) {
    Copy copy;
    const int64_t count[] = {4}, out[] = {4, 1};
    on(home);
    OK(dtg_placeholder(graph, nullptr, DTG_I32, count, 1, &copy.ids));
    dtg_embedding embedding = DTG_EMBEDDING_INIT;
    embedding.rows = 6;
    embedding.width = 3;
    dtg_value x{}, zero{};
    if (servers) on("/job:ps/task:1");
    OK(dtg_nn_embedding(model, copy.ids, &embedding, &x));
    if (servers) off();
    for (const int64_t units : {5, 1}) {
      const int64_t dims[] = {units == 5 ? 3 : 5, units};
      dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
      spec.name = units == 5 ? "first" : "second";
      spec.dims = dims;
      spec.rank = 2;
      spec.initializer.kind = DTG_INIT_GLOROT_UNIFORM;
      dtg_variable kernel = DTG_VARIABLE_INIT;
      if (servers) on(units == 5 ? "/job:ps/task:0" : "/job:ps/task:1");
      OK(dtg_model_add_variable(model, &spec, &kernel));
      if (servers) off();
      OK(dtg_add2(graph, "MatMul", x, kernel.read, &x));
      OK(dtg_add1(graph, "Tanh", x, &x));
    }
    float zeros[4] = {};
    dtg_tensor* tensor = nullptr;
    OK(dtg_tensor_create(DTG_F32, out, 2, zeros, sizeof zeros, nullptr, nullptr, &tensor));
    OK(dtg_const(graph, tensor, &zero));
    dtg_tensor_release(tensor);
    OK(dtg_nn_mean_squared_error(model, zero, x, &copy.loss));
    off();
    return copy;
  }
  void global_step(const std::string& device) {
    on(device);
    dtg_variable step = DTG_VARIABLE_INIT;
    OK(dtg_model_global_step(model, &step));
    off();
  }

  dtg_graph* graph = nullptr;
  dtg_model* model = nullptr;
  dtg_session* session = nullptr;
};

dtg_optimizer momentum() {
  dtg_optimizer optimizer = DTG_OPTIMIZER_INIT;
  optimizer.kind = DTG_OPT_MOMENTUM;
  optimizer.rate = 0.5;
  optimizer.momentum = 0.5;
  return optimizer;
}

// What copy w is given in a step.
dtg_tensor* ids_of(int step, int w) {
  int32_t ids[4];
  for (int i = 0; i < 4; ++i) ids[i] = (step + w * 2 + i * i) % 6;
  const int64_t dims[] = {4};
  dtg_tensor* tensor = nullptr;
  OK(dtg_tensor_create(DTG_I32, dims, 1, ids, sizeof ids, nullptr, nullptr, &tensor));
  return tensor;
}

// Starts a run of `target`; `cq` tells of its end.
void start(dtg_session* session, dtg_value target, std::vector<dtg_value> feeds, std::vector<dtg_tensor*> tensors, dtg_cq* cq, uint64_t tag,
           dtg_run** run = nullptr) {
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.feeds = feeds.data();
  args.feed_tensors = tensors.data();
  args.num_feeds = feeds.size();
  args.targets = &target;
  args.num_targets = 1;
  args.timeout_ns = kWaitNs;
  OK(dtg_session_run_async(session, &args, cq, tag, run));
  for (dtg_tensor* tensor : tensors) dtg_tensor_release(tensor);
}

void wait_for(dtg_cq* cq, int runs, dtg_code expected = DTG_OK) {
  for (int i = 0; i < runs; ++i) {
    dtg_completion done{};
    size_t count = 0;
    OK(dtg_cq_next(cq, &done, 0, 1, kWaitNs, &count));
    ASSERT_EQ(count, 1u) << "a run has not ended";
    if (expected != DTG_OK) refused(done.error, expected, "run " + std::to_string(done.tag));
    else OK(done.error);
  }
}

// The values of these variables, bit for bit.
std::string bytes_of(dtg_session* session, dtg_model* model) {
  std::string all;
  for (const char* name : {"embedding/embeddings", "first", "second", "first/Momentum", "global_step"}) {
    dtg_variable variable = DTG_VARIABLE_INIT;
    OK(dtg_model_find_variable(model, name, DTG_STRLEN, &variable));
    dtg_tensor* fetched = nullptr;
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    args.fetches = &variable.read;
    args.fetched = &fetched;
    args.num_fetches = 1;
    OK(dtg_session_run(session, &args));
    size_t size = 0;
    const auto* data = static_cast<const char*>(dtg_tensor_data(fetched, &size));
    all += std::string(name) + ":" + std::string(data ? data : "", size) + "\n";
    dtg_tensor_release(fetched);
  }
  return all;
}

std::string trained_by_towers() {
  Program p(nullptr);
  const Copy copies[2] = {p.add("", false), (dtg_error_release(dtg_model_next_tower(p.model)), p.add("", false))};
  p.global_step("");
  const dtg_value losses[] = {copies[0].loss, copies[1].loss};
  const dtg_optimizer optimizer = momentum();
  dtg_training training = DTG_TRAINING_INIT;
  OK(dtg_nn_minimize_towers(p.model, losses, 2, &optimizer, &training));
  dtg_value init{};
  OK(dtg_model_init(p.model, &init));
  OK(dtg_session_connect(nullptr, nullptr, 0, p.graph, nullptr, &p.session));
  OK(dtg_run_target(p.session, init));
  dtg_cq* cq = nullptr;
  OK(dtg_cq_create(&cq));
  for (int step = 0; step < kSteps; ++step) {
    start(p.session, training.train, {copies[0].ids, copies[1].ids}, {ids_of(step, 0), ids_of(step, 1)}, cq, 0);
    wait_for(cq, 1);
  }
  dtg_cq_release(cq);
  return bytes_of(p.session, p.model);
}

// A server with a runtime of its own.
struct Server {
  Server(const dtg_cluster* cluster, const char* job, int32_t task) {
    dtg_runtime_options options = DTG_RUNTIME_OPTIONS_INIT;
    options.compute_threads = 1;
    OK(dtg_runtime_create(&options, &runtime));
    dtg_server_options which = DTG_SERVER_OPTIONS_INIT;
    which.job = job;
    which.task = task;
    OK(dtg_server_start(runtime, cluster, &which, &server));
  }
  ~Server() {
    dtg_server_release(server);
    dtg_runtime_release(runtime);
  }
  Server(const Server&) = delete;
  dtg_runtime* runtime = nullptr;
  dtg_server* server = nullptr;
};

// One worker: its own graph, a session at its own server.
struct Worker {
  Worker(const Server& at, int32_t number) : program(at.runtime) {
    copy = program.add("/job:worker/task:" + std::to_string(number), true);
    program.global_step("/job:ps/task:0");
    dtg_replication replication = DTG_REPLICATION_INIT;
    replication.mode = DTG_SYNC_STRICT;
    replication.worker = number;
    replication.total = 2;
    const dtg_optimizer optimizer = momentum();
    OK(dtg_nn_minimize_replicated(program.model, copy.loss, &optimizer, &replication, &share));
    OK(dtg_session_connect(at.runtime, dtg_server_target(at.server), DTG_STRLEN, program.graph, nullptr, &program.session));
  }
  void join() {
    OK(dtg_model_wait_ready(program.model, program.session, kWaitNs));
    OK(dtg_run_target(program.session, share.local_init));
  }
  Program program;
  Copy copy;
  dtg_replicated share = DTG_REPLICATED_INIT;
};

TEST(ReplicasCluster, StrictWorkersOnServersGiveTheBitsOfTowers) {
  const size_t before = dtg_live_handles();
  const std::string sockets = folder("strict");
  ASSERT_EQ(mkdir(sockets.c_str(), 0700), 0);
  std::string wanted, found;
  {
    const auto at = [&](const char* name) { return "unix:" + sockets + "/" + name; };
    dtg_cluster* cluster = nullptr;
    OK(dtg_cluster_parse(("ps=" + at("p0") + "," + at("p1") + ";worker=" + at("w0") + "," + at("w1")).c_str(), DTG_STRLEN, &cluster));
    const Server p0(cluster, "ps", 0), p1(cluster, "ps", 1), s0(cluster, "worker", 0), s1(cluster, "worker", 1);
    dtg_cluster_release(cluster);
    Worker chief(s0, 0);
    auto other = std::make_unique<Worker>(s1, 1);
    refused(dtg_model_wait_ready(other->program.model, other->program.session, 20 * 1000 * 1000), DTG_DEADLINE_EXCEEDED, "too early");
    dtg_value init{};
    OK(dtg_model_init(chief.program.model, &init));
    OK(dtg_run_target(chief.program.session, init));
    OK(dtg_run_target(chief.program.session, chief.share.chief_init));
    chief.join();
    other->join();
    dtg_cq *cq = nullptr, *updates = nullptr;
    OK(dtg_cq_create(&cq));
    OK(dtg_cq_create(&updates));
    dtg_run* loop = nullptr;
    OK(dtg_session_run_repeatedly(chief.program.session, &chief.share.update, 1, updates, 7, &loop));
    for (int step = 0; step < kSteps; ++step) {
      const auto train = [&](Worker& worker, int w) {
        start(worker.program.session, worker.share.train, {worker.copy.ids}, {ids_of(step, w)}, cq, static_cast<uint64_t>(w));
      };
      if (step == 4) {  // another life of worker 1
        other.reset();
        other = std::make_unique<Worker>(s1, 1);
        other->join();
      }
      if (step % 2) train(*other, 1);
      train(chief, 0);
      if (step % 2 == 0) train(*other, 1);
      wait_for(cq, 2);
    }
    dtg_run_cancel(loop);
    wait_for(updates, 1, DTG_CANCELLED);
    dtg_run_release(loop);
    found = bytes_of(chief.program.session, chief.program.model);
    other.reset();
    dtg_cq_release(cq);
    dtg_cq_release(updates);
  }
  EXPECT_TRUE(found == trained_by_towers());
  EXPECT_GT(found.size(), 100u);
  EXPECT_EQ(dtg_live_handles(), before);
  ASSERT_EQ(std::system(("rm -rf '" + sockets + "'").c_str()), 0);
}

}  // namespace
}  // namespace outside
