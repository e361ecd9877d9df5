// The test program, and with "--serve CLUSTER JOB TASK [STATE]" the other processes of a cluster: a server that lives until its standard
// input ends, so that no test leaves one behind.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "cluster/server.h"
#include "session/runtime.h"

namespace {

int serve(const char* cluster, const char* job, const char* task, const char* state) {
  using namespace dtg;
  auto runtime = Runtime::create({.compute_threads = 2}).take();
  Server::Options options;
  options.cluster = ClusterSpec::parse(cluster).take();
  options.job = job;
  options.task = std::atoi(task);
  options.state_directory = state;
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

}  // namespace

int main(int argc, char** argv) {
  if (argc >= 5 && std::string(argv[1]) == "--serve") return serve(argv[2], argv[3], argv[4], argc > 6 ? argv[6] : "");
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
