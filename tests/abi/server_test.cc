// Servers through the C ABI: one that is alone, what a session at it sees, how it ends; and what is refused.
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <condition_variable>
#include <fstream>
#include <iterator>
#include <mutex>
#include <set>
#include <thread>

#include "world.h"

namespace outside {
namespace {

class Server : public World {};

TEST_F(Server, ASessionAtItSharesItsVariables) {
  const char* const target = dtg_server_target(h.server);
  ASSERT_NE(target, nullptr);
  dtg_graph* graph = nullptr;
  dtg_model* model = nullptr;
  dtg_session *first = nullptr, *second = nullptr;
  OK(dtg_graph_create(h.runtime, &graph));
  OK(dtg_model_create(graph, 1, &model));
  dtg_variable w = DTG_VARIABLE_INIT;
  OK(dtg_variable_f32(model, "w", 3, &w));
  OK(dtg_session_connect(nullptr, target, DTG_STRLEN, graph, nullptr, &first));
  ASSERT_EQ(dtg_session_device_count(first), 1u);
  EXPECT_STREQ(dtg_session_device_name(first, 0), "/job:worker/replica:0/task:0/device:CPU:0");
  OK(dtg_run_target(first, w.assign));
  OK(dtg_session_connect(nullptr, target, DTG_STRLEN, graph, nullptr, &second));
  dtg_session_release(first);
  float value = 0;
  OK(dtg_run_f32(second, w.read, dtg_value{0}, &value));
  EXPECT_EQ(value, 3);
  dtg_string* status = nullptr;
  OK(dtg_server_status(h.server, &status));
  EXPECT_NE(std::string(dtg_string_data(status, nullptr)).find("\"variables\":{\"count\":1,\"bytes\":4}"), std::string::npos)
      << dtg_string_data(status, nullptr);
  dtg_string_release(status);
  dtg_session_release(second);
  dtg_model_release(model);
  dtg_graph_release(graph);
}

// What a host hears of a server, in its own log: that it serves, that the frames are readable, who looked at it, that it stops.
TEST_F(Server, TheLogHearsOfComingAndGoing) {
  struct Heard {
    std::mutex mutex;
    std::string info, warnings;
    int freed = 0;
  } heard;
  dtg_runtime_options options = DTG_RUNTIME_OPTIONS_INIT;
  options.log_level = DTG_LOG_INFO;
  options.log_user = &heard;
  options.log = [](void* user, dtg_log_level level, const char* component, const char* message) {
    auto& all = *static_cast<Heard*>(user);
    const std::lock_guard lock(all.mutex);
    (level == DTG_LOG_INFO ? all.info : all.warnings) += std::string(component) + ": " + message + "\n";
  };
  options.log_user_free = [](void* user) { ++static_cast<Heard*>(user)->freed; };
  dtg_runtime* runtime = nullptr;
  dtg_cluster* cluster = nullptr;
  dtg_server* server = nullptr;
  dtg_string* status = nullptr;
  dtg_server_options place = DTG_SERVER_OPTIONS_INIT;
  place.security = DTG_SECURITY_CLEAR_FRAMES;
  dtg_session_options how = DTG_SESSION_OPTIONS_INIT;
  how.security = DTG_SECURITY_CLEAR_FRAMES;
  OK(dtg_runtime_create(&options, &runtime));
  OK(dtg_cluster_parse("worker=127.0.0.1:0", DTG_STRLEN, &cluster));
  OK(dtg_server_start(runtime, cluster, &place, &server));
  const std::string target = dtg_server_target(server);
  OK(dtg_cluster_status(runtime, target.c_str(), DTG_STRLEN, &how, &status));
  OK(dtg_server_stop(server, 0));
  dtg_string_release(status);
  dtg_server_release(server);
  dtg_cluster_release(cluster);
  dtg_runtime_release(runtime);
  EXPECT_NE(heard.warnings.find("cluster: /job:worker/replica:0/task:0 serves at " + target), std::string::npos) << heard.warnings;
  EXPECT_NE(heard.warnings.find("in the clear"), std::string::npos) << heard.warnings;
  EXPECT_NE(heard.info.find("has connected, tcp, clear"), std::string::npos) << heard.info;
  EXPECT_NE(heard.info.find("task:0 stops: "), std::string::npos) << heard.info;
  EXPECT_EQ(heard.freed, 1) << "the runtime has let go of the log";
}

// A log that waits holds up nobody: it is called on a thread of its own, neither the host's nor the one that serves, and the server
// answers meanwhile. What was said comes in order, all of it, before the log is let go of.
TEST_F(Server, ALogThatWaitsHoldsUpNobody) {
  struct Slow {
    std::mutex mutex;
    std::condition_variable changed;
    std::set<std::thread::id> threads;
    std::vector<std::string> lines;
    bool waiting = false, answered = false, freed = false;
  } slow;
  dtg_runtime_options options = DTG_RUNTIME_OPTIONS_INIT;
  options.log_level = DTG_LOG_INFO;
  options.log_user = &slow;
  options.log = [](void* user, dtg_log_level, const char*, const char* message) {
    auto& all = *static_cast<Slow*>(user);
    std::unique_lock lock(all.mutex);
    all.threads.insert(std::this_thread::get_id());
    all.lines.emplace_back(message);
    if (all.lines.back().find("has connected") == std::string::npos) return;
    all.waiting = true;
    all.changed.notify_all();
    EXPECT_TRUE(all.changed.wait_for(lock, std::chrono::seconds(20), [&] { return all.answered; }));
  };
  options.log_user_free = [](void* user) { static_cast<Slow*>(user)->freed = true; };
  const std::string place = folder("slow");
  ASSERT_EQ(::mkdir(place.c_str(), 0700), 0);
  dtg_runtime* runtime = nullptr;
  dtg_cluster* cluster = nullptr;
  dtg_server* server = nullptr;
  OK(dtg_runtime_create(&options, &runtime));
  OK(dtg_cluster_parse(("worker=unix:" + place + "/w").c_str(), DTG_STRLEN, &cluster));
  OK(dtg_server_start(runtime, cluster, nullptr, &server));
  const std::string target = dtg_server_target(server);
  const auto ask = [&] {
    dtg_string* status = nullptr;
    OK(dtg_cluster_status(runtime, target.c_str(), DTG_STRLEN, nullptr, &status));
    dtg_string_release(status);
  };
  ask();
  {
    std::unique_lock lock(slow.mutex);
    EXPECT_TRUE(slow.changed.wait_for(lock, std::chrono::seconds(20), [&] { return slow.waiting; }));
  }
  ask();  // while the log waits
  {
    const std::lock_guard lock(slow.mutex);
    slow.answered = true;
  }
  slow.changed.notify_all();
  OK(dtg_server_stop(server, 0));
  dtg_server_release(server);
  dtg_cluster_release(cluster);
  dtg_runtime_release(runtime);
  EXPECT_TRUE(slow.freed);
  EXPECT_EQ(slow.threads.size(), 1u);
  EXPECT_EQ(slow.threads.count(std::this_thread::get_id()), 0u);
  ASSERT_FALSE(slow.lines.empty());
  EXPECT_NE(slow.lines.front().find("serves at"), std::string::npos) << slow.lines.front();
  ::rmdir(place.c_str());
}

TEST_F(Server, JoinEndsWithStop) {
  refused(dtg_server_join(h.server, 0), DTG_DEADLINE_EXCEEDED, "join a server that runs");
  refused(dtg_server_join(h.server, -7), DTG_INVALID_ARGUMENT, "join for a negative time");
  OK(dtg_server_stop(h.server, 0));
  OK(dtg_server_stop(h.server, 0));
  OK(dtg_server_join(h.server, DTG_INFINITE));
}

// The longest times there are mean for ever, and are no less than others by being multiplied.
TEST_F(Server, TimesMayBeAsLongAsThereAre) {
  const auto server = [&](int64_t heartbeat_ns, int64_t dead_ns) {
    const char* const address = "worker=127.0.0.1:0";
    dtg_cluster* cluster = nullptr;
    OK(dtg_cluster_parse(address, DTG_STRLEN, &cluster));
    dtg_server_options options = DTG_SERVER_OPTIONS_INIT;
    options.heartbeat_ns = heartbeat_ns;
    options.dead_ns = dead_ns;
    dtg_server* made = nullptr;
    dtg_error* const error = dtg_server_start(h.runtime, cluster, &options, &made);
    dtg_cluster_release(cluster);
    if (!error) OK(dtg_server_stop(made, INT64_MAX));
    if (!error) OK(dtg_server_join(made, INT64_MAX));
    dtg_server_release(made);
    return error;
  };
  OK(server(INT64_MAX, INT64_MAX));
  OK(server(0, INT64_MAX));
  const std::string why = refused(server(INT64_MAX, 0), DTG_INVALID_ARGUMENT, "a peer that is silent for long is dead after 5 s");
  EXPECT_NE(why.find("less than two heartbeats"), std::string::npos) << why;
}

TEST_F(Server, KeysAreMadeOnceForTheirOwnerAlone) {
  char directory[] = "/tmp/dtg-key-XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  const std::string path = std::string(directory) + "/job.key", again = path + "2";
  OK(dtg_keygen(path.c_str(), DTG_STRLEN));
  OK(dtg_keygen(again.data(), again.size()));
  struct stat info = {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(info.st_size, 32);
  std::ifstream one(path, std::ios::binary), two(again, std::ios::binary);
  const std::string first((std::istreambuf_iterator<char>(one)), {}), second((std::istreambuf_iterator<char>(two)), {});
  EXPECT_NE(first, second);
  refused(dtg_keygen(path.c_str(), DTG_STRLEN), DTG_ALREADY_EXISTS, "a key file that is there");
  refused(dtg_keygen("/nowhere/job.key", DTG_STRLEN), DTG_FAILED_PRECONDITION, "a folder that is not there");
  refused(dtg_keygen("", 0), DTG_INVALID_ARGUMENT, "no path");
  unlink(path.c_str());
  unlink(again.c_str());
  rmdir(directory);
}

TEST_F(Server, WhatCannotStartSaysWhy) {
  dtg_server* server = nullptr;
  dtg_server_options options = DTG_SERVER_OPTIONS_INIT;
  options.job = "worker";
  options.task = 5;
  refused(dtg_server_start(h.runtime, h.cluster, &options, &server), DTG_INVALID_ARGUMENT, "a task that is not in the cluster");
  dtg_cluster* open = nullptr;
  OK(dtg_cluster_parse("ps=0.0.0.0:0", DTG_STRLEN, &open));
  const std::string message =
      refused(dtg_server_start(h.runtime, open, nullptr, &server), DTG_FAILED_PRECONDITION, "an open address without a key");
  EXPECT_NE(message.find("dtg keygen"), std::string::npos) << message;
  dtg_server_options bad = DTG_SERVER_OPTIONS_INIT;
  bad.heartbeat_ns = -1;
  refused(dtg_server_start(h.runtime, open, &bad, &server), DTG_INVALID_ARGUMENT, "a negative heartbeat");
  bad.heartbeat_ns = 0;
  bad.no_shared_memory = 2;
  refused(dtg_server_start(h.runtime, open, &bad, &server), DTG_INVALID_ARGUMENT, "more than a yes");
  bad.no_shared_memory = 0;
  bad.security = 9;
  refused(dtg_server_start(h.runtime, open, &bad, &server), DTG_INVALID_ARGUMENT, "an unknown security");
  const char* const filters[] = {"/job:/nonsense:"};
  bad.security = DTG_SECURITY_TLS;
  bad.device_filters = filters;
  bad.num_device_filters = 1;
  refused(dtg_server_start(h.runtime, open, &bad, &server), DTG_INVALID_ARGUMENT, "a filter that cannot be read");
  dtg_cluster_release(open);
}

// Threads cannot be made where a limit on processes is reached; here their stacks do not fit into the address space.
TEST_F(Server, AThreadThatCannotBeMadeIsAnError) {
  dtg_runtime* runtime = nullptr;
  dtg_graph* graph = nullptr;
  dtg_session* session = nullptr;
  dtg_server* server = nullptr;
  dtg_run* run = nullptr;
  dtg_value two, four;
  OK(dtg_runtime_create(nullptr, &runtime));
  OK(dtg_graph_create(runtime, &graph));
  OK(dtg_const_f32(graph, 2, &two));
  OK(dtg_add2(graph, "Mul", two, two, &four));
  OK(dtg_session_connect(runtime, nullptr, 0, graph, nullptr, &session));
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.fetches = &four;
  args.num_fetches = 1;
  args.timeout_ns = 20'000'000'000;
  dtg_cluster* open = nullptr;
  OK(dtg_cluster_parse("ps=0.0.0.0:0", DTG_STRLEN, &open));
  pthread_attr_t before, huge;
  pthread_getattr_default_np(&before);
  pthread_attr_init(&huge);
  pthread_attr_setstacksize(&huge, size_t{1} << 48);
  pthread_setattr_default_np(&huge);
  refused(dtg_server_start(runtime, open, nullptr, &server), DTG_RESOURCE_EXHAUSTED, "a server without a loop");
  refused(dtg_session_run_async(session, &args, h.cq, 3, &run), DTG_RESOURCE_EXHAUSTED, "a run without a timer");
  float value = 0;
  OK(dtg_run_f32(session, four, dtg_value{0}, &value));
  EXPECT_EQ(value, 4);
  pthread_setattr_default_np(&before);
  pthread_attr_destroy(&before);
  pthread_attr_destroy(&huge);
  // Nothing of it stays.
  OK(dtg_session_run_async(session, &args, h.cq, 4, &run));
  dtg_completion done{};
  size_t count = 0;
  OK(dtg_cq_next(h.cq, &done, sizeof done, 1, 20'000'000'000, &count));
  EXPECT_EQ(done.tag, 4u);
  dtg_run_release(run);
  refused(dtg_server_start(runtime, open, nullptr, &server), DTG_FAILED_PRECONDITION, "an open address without a key");
  dtg_cluster_release(open);
  dtg_session_release(session);
  dtg_graph_release(graph);
  dtg_runtime_release(runtime);
}

TEST_F(Server, LocalSessionsHaveNoCluster) {
  dtg_string* text = nullptr;
  refused(dtg_session_end_job(h.session, 0), DTG_FAILED_PRECONDITION, "end the job of a local session");
  refused(dtg_session_cluster_status(h.session, 0, &text), DTG_FAILED_PRECONDITION, "the cluster of a local session");
}

TEST_F(Server, RepeatedRunsEndWhenCancelled) {
  dtg_graph* graph = nullptr;
  dtg_model* model = nullptr;
  dtg_session* session = nullptr;
  OK(dtg_graph_create(h.runtime, &graph));
  OK(dtg_model_create(graph, 1, &model));
  dtg_variable count = DTG_VARIABLE_INIT;
  OK(dtg_variable_f32(model, "count", 0, &count));
  dtg_value one, more;
  OK(dtg_const_f32(graph, 1, &one));
  OK(dtg_add2(graph, "AssignAddVariableOp", count.handle, one, &more));
  OK(dtg_session_connect(h.runtime, nullptr, 0, graph, nullptr, &session));
  OK(dtg_run_target(session, count.assign));
  dtg_run* loop = nullptr;
  OK(dtg_session_run_repeatedly(session, &more, 1, h.cq, 11, &loop));
  float seen = 0;
  while (seen < 100) OK(dtg_run_f32(session, count.read, dtg_value{0}, &seen));
  dtg_run_cancel(loop);
  dtg_completion done;
  size_t got = 0;
  OK(dtg_cq_next(h.cq, &done, 0, 1, DTG_INFINITE, &got));
  ASSERT_EQ(got, 1u);
  EXPECT_EQ(done.tag, 11u);
  refused(done.error, DTG_CANCELLED, "a repeated run");
  dtg_run_release(loop);
  dtg_session_release(session);
  dtg_model_release(model);
  dtg_graph_release(graph);
}

}  // namespace
}  // namespace outside
