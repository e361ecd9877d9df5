// Answers that a program can act on: what is not there yet, which feed was wrong, who is away, where the key is. Public headers only.
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "world.h"

namespace outside {
namespace {

class Answers : public World {};

TEST_F(Answers, AnOpThatIsPlannedIsNotMistakenForAnother) {
  dtg_value out{};
  for (const char* op : {"PyFunc", "SaveV2", "IteratorGetNext", "NcclAllReduce"}) {
    const std::string message = refused(dtg_add1(h.graph, op, v.x, &out), DTG_UNIMPLEMENTED, op);
    EXPECT_EQ(message.find("did you mean"), std::string::npos) << message;
  }
  EXPECT_NE(refused(dtg_add1(h.graph, "MatMull", v.x, &out), DTG_NOT_FOUND, "MatMull").find("MatMul"), std::string::npos);
  EXPECT_NE(refused(dtg_add1(h.graph, "Quite_another", v.x, &out), DTG_NOT_FOUND, "Quite_another").find("dtg ops"), std::string::npos);
}

TEST_F(Answers, AWrongFeedIsNamed) {
  dtg_tensor* const wrong = vector_of({1, 2, 3});
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  const dtg_value feeds[] = {v.x, v.y};
  const dtg_tensor* tensors[] = {h.tensor, wrong};
  args.feeds = feeds;
  args.feed_tensors = tensors;
  args.num_feeds = 2;
  args.fetches = &v.z;
  args.num_fetches = 1;
  dtg_tensor* fetched = nullptr;
  args.fetched = &fetched;
  dtg_error* const error = dtg_session_run(h.session, &args);
  EXPECT_STREQ(dtg_error_node(error), "y");
  EXPECT_STREQ(dtg_error_phase(error), "feed");
  refused(error, DTG_INVALID_ARGUMENT, "a wrong shape");
  dtg_tensor_release(wrong);
}

// A parameter server and a worker of this process, and what a program makes of them.
struct Pair {
  std::string directory = folder("pair");
  dtg_cluster* cluster = nullptr;
  dtg_server *ps = nullptr, *worker = nullptr;
  dtg_graph* graph = nullptr;
  dtg_model* model = nullptr;
  dtg_session* session = nullptr;
  dtg_value init{};

  dtg_server* start(const char* job) {
    dtg_server_options options = DTG_SERVER_OPTIONS_INIT;
    options.job = job;
    options.job_len = DTG_STRLEN;
    dtg_server* server = nullptr;
    OK(dtg_server_start(nullptr, cluster, &options, &server));
    return server;
  }
  void stop_ps() {
    OK(dtg_server_stop(ps, 5'000'000'000));
    dtg_server_release(ps);
    ps = nullptr;
  }
  Pair() {
    ::mkdir(directory.c_str(), 0700);
    OK(dtg_cluster_parse(("ps=unix:" + directory + "/p;worker=unix:" + directory + "/w").c_str(), DTG_STRLEN, &cluster));
    ps = start("ps");
    worker = start("worker");
    OK(dtg_graph_create(nullptr, &graph));
    OK(dtg_model_create(graph, 1, &model));
    OK(dtg_graph_push_device(graph, "/job:ps", DTG_STRLEN));
    dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
    spec.name = "w";
    OK(dtg_model_add_variable(model, &spec, nullptr));
    OK(dtg_graph_pop_device(graph));
    OK(dtg_model_init(model, &init));
    OK(dtg_session_connect(nullptr, dtg_server_target(worker), DTG_STRLEN, graph, nullptr, &session));
  }
  ~Pair() {
    dtg_session_release(session);
    dtg_model_release(model);
    dtg_graph_release(graph);
    dtg_server_release(worker);
    dtg_server_release(ps);
    dtg_cluster_release(cluster);
    for (const char* name : {"/p", "/w", "/p.lock", "/w.lock"}) ::unlink((directory + name).c_str());
    ::rmdir(directory.c_str());
  }
};

TEST_F(Answers, WhoWaitsForVariablesWaitsForTheirServerToo) {
  Pair pair;
  OK(dtg_run_target(pair.session, pair.init));
  pair.stop_ps();
  std::thread again([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    pair.ps = pair.start("ps");
    OK(dtg_run_target(pair.session, pair.init));
  });
  OK(dtg_model_wait_ready(pair.model, pair.session, 60'000'000'000));
  again.join();
}

// Where and when, of calls that have nothing to do with runs.
TEST_F(Answers, WhatIsLateTellsItsPhase) {
  const std::string ps = "/job:ps/replica:0/task:0", worker = "/job:worker/replica:0/task:0";
  Pair pair;
  std::string origin;
  refused(dtg_model_wait_ready(pair.model, pair.session, 100'000'000), DTG_DEADLINE_EXCEEDED, "nobody initialises", &origin);
  EXPECT_EQ(origin, worker + ", , wait");
  refused(dtg_server_join(pair.ps, 0), DTG_DEADLINE_EXCEEDED, "a server that runs", &origin);
  EXPECT_EQ(origin, ps + ", , end");
  pair.stop_ps();
  refused(dtg_session_barrier(pair.session, "alone", DTG_STRLEN, 300'000'000), DTG_UNAVAILABLE, "attendance is at the ps", &origin);
  EXPECT_NE(origin.find(ps), std::string::npos) << origin;
  dtg_outcome outcome = 0;
  refused(dtg_session_outcome(pair.session, 1, 300'000'000, &outcome), DTG_UNAVAILABLE, "an outcome at the ps", &origin);
  EXPECT_NE(origin.find(ps), std::string::npos) << origin;
  OK(dtg_server_stop(pair.worker, 5'000'000'000));
  refused(dtg_run_target(pair.session, pair.init), DTG_UNAVAILABLE, "a session of a server that was stopped", &origin);
  EXPECT_EQ(origin, worker + ", , run");
  refused(dtg_session_barrier(pair.session, "alone", DTG_STRLEN, 300'000'000), DTG_UNAVAILABLE, "its barrier", &origin);
  EXPECT_EQ(origin, worker + ", , meet");
}

TEST_F(Answers, WhoIsAwayIsNamed) {
  Pair pair;
  OK(dtg_run_target(pair.session, pair.init));
  pair.stop_ps();
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.targets = &pair.init;
  args.num_targets = 1;
  args.timeout_ns = 500'000'000;
  dtg_error* const error = dtg_session_run(pair.session, &args);
  EXPECT_NE(std::string(dtg_error_peer(error)).find("/job:ps"), std::string::npos) << text_of(error);
  EXPECT_NE(std::string(dtg_error_task(error)).find("/job:worker"), std::string::npos) << text_of(error);
  EXPECT_STRNE(dtg_error_phase(error), "") << text_of(error);
  dtg_error_release(error);
  // A run gives a task that keeps nothing a second to come back; then the wait knows who is away.
  dtg_error* const late = dtg_model_wait_ready(pair.model, pair.session, 3'000'000'000);
  EXPECT_NE(text_of(late).find("/job:ps"), std::string::npos) << text_of(late);
  expect_whereabouts(late);
  dtg_error_release(late);
}

// The clock may say so before the call that starts the run has returned: with several callers its thread is awake.
TEST_F(Answers, ARunMayBeLateBeforeItHasBegun) {
  Pair pair;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&pair] {
      dtg_cq* queue = nullptr;
      OK(dtg_cq_create(&queue));
      dtg_run_args args = DTG_RUN_ARGS_INIT;
      args.targets = &pair.init;
      args.num_targets = 1;
      for (uint64_t i = 0; i < 1000; ++i) {
        args.timeout_ns = 1 + static_cast<int64_t>(i % 50) * 1000;
        dtg_run* run = nullptr;
        OK(dtg_session_run_async(pair.session, &args, queue, i, &run));
        dtg_completion done{};
        size_t count = 0;
        OK(dtg_cq_next(queue, &done, sizeof done, 1, 20'000'000'000, &count));
        EXPECT_EQ(count, 1u);
        EXPECT_EQ(done.tag, i);
        dtg_error_release(done.error);
        dtg_run_release(run);
      }
      dtg_cq_release(queue);
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST_F(Answers, TheKeyMayBeNamedByTheEnvironment) {
  const std::string key = folder("key");
  OK(dtg_keygen(key.c_str(), DTG_STRLEN));
  dtg_cluster* cluster = nullptr;
  OK(dtg_cluster_parse("worker=0.0.0.0:0", DTG_STRLEN, &cluster));
  // An address that other machines can reach needs a key that somebody names.
  const auto start = [&](const char* file) {
    dtg_server_options options = DTG_SERVER_OPTIONS_INIT;
    options.key_file = file;
    options.key_file_len = DTG_STRLEN;
    dtg_server* server = nullptr;
    dtg_error* const error = dtg_server_start(nullptr, cluster, &options, &server);
    dtg_server_release(server);
    return error;
  };
  ::unsetenv("DTG_KEY_FILE");
  refused(start(nullptr), DTG_FAILED_PRECONDITION, "no key");
  ::setenv("DTG_KEY_FILE", key.c_str(), 1);
  OK(start(nullptr));
  ::setenv("DTG_KEY_FILE", "/nowhere/key", 1);
  EXPECT_NE(refused(start(nullptr), DTG_NOT_FOUND, "a key that is not there").find("/nowhere/key"), std::string::npos);
  OK(start(key.c_str()));  // what the program says goes before
  ::unsetenv("DTG_KEY_FILE");
  dtg_cluster_release(cluster);
  ::unlink(key.c_str());
}

// `dtg run --state` tells it to tasks that know nothing of it; only those that keep variables for others, and only where the program is
// silent.
TEST_F(Answers, TheStateDirectoryMayBeNamedByTheEnvironment) {
  const std::string own = folder("own"), state = own + "/state", at = "ps=unix:" + own + "/ps;worker=unix:" + own + "/worker";
  ASSERT_EQ(::mkdir(own.c_str(), 0700), 0);
  dtg_cluster* cluster = nullptr;
  OK(dtg_cluster_parse(at.c_str(), DTG_STRLEN, &cluster));
  const auto commits = [&](const char* job, dtg_durability durability) {
    dtg_server_options options = DTG_SERVER_OPTIONS_INIT;
    options.job = job;
    options.job_len = DTG_STRLEN;
    options.durability = durability;
    dtg_server* server = nullptr;
    OK(dtg_server_start(nullptr, cluster, &options, &server));
    dtg_string* told = nullptr;
    OK(dtg_server_status(server, &told));
    const std::string text = dtg_string_data(told, nullptr);
    dtg_string_release(told);
    dtg_server_release(server);
    return text.find("\"on_disk\"") != std::string::npos;
  };
  ::setenv("DTG_STATE_DIR", state.c_str(), 1);
  ::setenv("DTG_DURABILITY", "wal", 1);
  EXPECT_TRUE(commits("ps", DTG_DURABILITY_DEFAULT));
  EXPECT_FALSE(commits("ps", DTG_DURABILITY_MEMORY));
  EXPECT_FALSE(commits("worker", DTG_DURABILITY_DEFAULT));
  ::setenv("DTG_DURABILITY", "memory", 1);
  EXPECT_FALSE(commits("ps", DTG_DURABILITY_DEFAULT));
  ::setenv("DTG_DURABILITY", "paper", 1);
  dtg_server_options options = DTG_SERVER_OPTIONS_INIT;
  options.job = "ps";
  options.job_len = 2;
  dtg_server* server = nullptr;
  EXPECT_NE(refused(dtg_server_start(nullptr, cluster, &options, &server), DTG_INVALID_ARGUMENT, "paper").find("memory, wal or wal-async"),
            std::string::npos);
  ::unsetenv("DTG_STATE_DIR");
  ::unsetenv("DTG_DURABILITY");
  dtg_cluster_release(cluster);
  std::filesystem::remove_all(own);
}

}  // namespace
}  // namespace outside
