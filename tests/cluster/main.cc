// The test program, and with "--serve CLUSTER JOB TASK" the other processes of a cluster: a server that lives until
// its standard input ends, so that no test leaves one behind. With "--work TARGET" a worker that runs steps there.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>

#include "cluster/server.h"
#include "session/runtime.h"
#include "steps.h"

namespace {

// With a fourth word, a folder: it keeps its state there, and makes a set of it often.
int serve(const char* cluster, const char* job, const char* task, const char* state) {
  using namespace dtg;
  auto runtime = Runtime::create({.compute_threads = 2}).take();
  Server::Options options;
  options.cluster = ClusterSpec::parse(cluster).take();
  options.job = job;
  options.task = std::atoi(task);
  options.state_directory = state;
  options.set_bytes = 1 << 20;
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

}  // namespace

int main(int argc, char** argv) {
  if ((argc == 5 || argc == 6) && std::string(argv[1]) == "--serve") return serve(argv[2], argv[3], argv[4], argc == 6 ? argv[5] : "");
  if (argc == 3 && std::string(argv[1]) == "--work") return work(argv[2]);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
