// Strict training by servers: two parameter servers and two workers, each with a runtime of its own and sockets in between,
// against towers in one local session, bit for bit; with a worker that is replaced by another one on the way. One thread.
#include <sys/stat.h>

#include <memory>

#include "job.h"

namespace outside {
namespace {

constexpr int kSteps = 8;

// One copy of the computation: an embedding of ids[4], two layers, the loss against zero.
struct Copy {
  dtg_value ids{}, loss{};
};

// `home` is where it computes; variables on the servers, or all at home when there are none.
Copy add_copy(Program& p, const std::string& home, bool servers) {
  Copy copy;
  const int64_t count[] = {4}, out[] = {4, 1};
  p.on(home);
  OK(dtg_placeholder(p.graph, nullptr, DTG_I32, count, 1, &copy.ids));
  dtg_embedding embedding = DTG_EMBEDDING_INIT;
  embedding.rows = 6;
  embedding.width = 3;
  dtg_value x{}, zero{};
  if (servers) p.on("/job:ps/task:1");
  OK(dtg_nn_embedding(p.model, copy.ids, &embedding, &x));
  if (servers) p.off();
  for (const int64_t units : {5, 1}) {
    const int64_t dims[] = {units == 5 ? 3 : 5, units};
    dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
    spec.name = units == 5 ? "first" : "second";
    spec.dims = dims;
    spec.rank = 2;
    spec.initializer.kind = DTG_INIT_GLOROT_UNIFORM;
    dtg_variable kernel = DTG_VARIABLE_INIT;
    if (servers) p.on(units == 5 ? "/job:ps/task:0" : "/job:ps/task:1");
    OK(dtg_model_add_variable(p.model, &spec, &kernel));
    if (servers) p.off();
    OK(dtg_add2(p.graph, "MatMul", x, kernel.read, &x));
    OK(dtg_add1(p.graph, "Tanh", x, &x));
  }
  float zeros[4] = {};
  dtg_tensor* tensor = nullptr;
  OK(dtg_tensor_create(DTG_F32, out, 2, zeros, sizeof zeros, nullptr, nullptr, &tensor));
  OK(dtg_const(p.graph, tensor, &zero));
  dtg_tensor_release(tensor);
  OK(dtg_nn_mean_squared_error(p.model, zero, x, &copy.loss));
  p.off();
  return copy;
}

dtg_optimizer momentum() {
  dtg_optimizer optimizer = DTG_OPTIMIZER_INIT;
  optimizer.kind = DTG_OPT_MOMENTUM;
  optimizer.rate = 0.5;
  optimizer.momentum = 0.5;
  return optimizer;
}

// The values of these variables, bit for bit.
std::string bytes_of(dtg_session* session, dtg_model* model) {
  std::string all;
  for (const char* name : {"embedding/embeddings", "first", "second", "first/Momentum", "global_step"}) {
    dtg_variable variable = DTG_VARIABLE_INIT;
    OK(dtg_model_find_variable(model, name, DTG_STRLEN, &variable));
    all += std::string(name) + ":" + fetched(session, variable.read) + "\n";
  }
  return all;
}

std::string trained_by_towers() {
  Program p(nullptr);
  const Copy copies[2] = {add_copy(p, "", false), (dtg_error_release(dtg_model_next_tower(p.model)), add_copy(p, "", false))};
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

// One worker: its own graph, a session at its own server.
struct Worker {
  Worker(const Server& at, int32_t number) : program(at.runtime) {
    copy = add_copy(program, "/job:worker/task:" + std::to_string(number), true);
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
