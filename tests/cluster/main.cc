// The test program, and with "--serve CLUSTER JOB TASK [KEY]" the other processes of a cluster: a server that lives until
// its standard input ends, so that no test leaves one behind. With "--work TARGET" a worker that runs steps there, with
// "--meet CLUSTER TASK BARRIER" one that waits there for the others, with "--elastic CLUSTER TASK LEAST [same|data|through]" one of elastic
// training.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>

#include "cluster/server.h"
#include "elastic.h"
#include "session/runtime.h"
#include "steps.h"

namespace {

// With more words: a file with the job's key, and a folder where it keeps its state and makes a set of it often.
int serve(const char* cluster, const char* job, const char* task, const char* key, const char* state) {
  using namespace dtg;
  auto runtime = Runtime::create({.compute_threads = 2}).take();
  Server::Options options;
  options.cluster = ClusterSpec::parse(cluster).take();
  options.job = job;
  options.task = std::atoi(task);
  options.state_directory = state;
  options.set_bytes = 1 << 20;
  options.security.key_file = key;
  auto server = Server::start(runtime->host().take(), options, runtime);
  if (!server.ok()) {
    fprintf(stderr, "%s\n", server.status().message().c_str());
    return 1;
  }
  char byte;
  while (::read(0, &byte, 1) > 0) {
  }
  return server.value()->stop(5'000'000'000).ok() ? 0 : 1;
}

int work(const char* target) {
  using namespace dtg;
  auto runtime = Runtime::create({.compute_threads = 2}).take();
  const Steps steps(*runtime);
  auto session = Session::connect(runtime, target, steps.graph, {});
  if (!session.ok()) {
    fprintf(stderr, "%s\n", session.status().message().c_str());
    return 1;
  }
  pollfd input = {0, POLLIN, 0};
  while (::poll(&input, 1, 0) == 0) {
    if (!steps.run(*session.value(), steps.step, 10'000'000'000).ok()) return 1;
  }
  return 0;
}

// A worker with a server of its own, whose sessions see the ps only: waits at a barrier, and says whether it was let through.
int meet(const char* cluster, const char* task, const char* barrier) {
  using namespace dtg;
  auto runtime = Runtime::create({.compute_threads = 1}).take();
  Server::Options options;
  options.cluster = ClusterSpec::parse(cluster).take();
  options.job = "worker";
  options.task = std::atoi(task);
  options.filters = {"/job:ps"};
  auto server = Server::start(runtime->host().take(), options, runtime);
  Status status = server.status();
  if (status.ok()) {
    auto session = Session::connect(runtime, server.value()->target(), Graph::create(&runtime->ops()).take(), {});
    status = session.ok() ? session.value()->meet_workers(barrier, 300'000'000'000) : session.status();
  }
  if (!status.ok()) fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}

// Trains until its input ends, and then, where it is to be through, waits for the end of the job. What it misses because it was taken for
// gone, or lost a server, it leaves to those who were there.
int train(const char* cluster, const char* task, const char* least, const std::string& what) {
  using namespace dtg;
  ElasticWorker worker(cluster, std::atoi(task), std::atoi(least), what == "same", what == "data");
  Status status = worker.begin();
  pollfd input = {0, POLLIN, 0};
  bool is_over = false;
  // With data it is slow, now and then, so that it is killed anywhere.
  for (int made = 0; status.ok() && ::poll(&input, 1, is_over ? -1 : worker.dealt ? made % 7 : 0) == 0; ++made) {
    status = worker.dealt ? worker.train_on_data(&is_over) : worker.train();
    if (status.code() == Code::unavailable || status.code() == Code::aborted) status = worker.join();
  }
  if (status.ok() && what == "through") status = worker.session->end_job(60'000'000'000);
  if (!status.ok()) fprintf(stderr, "worker %s: %s\n", task, status.message().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc >= 5 && std::string(argv[1]) == "--serve")
    return serve(argv[2], argv[3], argv[4], argc > 5 ? argv[5] : "", argc > 6 ? argv[6] : "");
  if (argc == 3 && std::string(argv[1]) == "--work") return work(argv[2]);
  if (argc == 5 && std::string(argv[1]) == "--meet") return meet(argv[2], argv[3], argv[4]);
  if (argc >= 5 && std::string(argv[1]) == "--elastic") return train(argv[2], argv[3], argv[4], argc > 5 ? argv[5] : "");
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
