// Workers that wait for each other, and the end of a job whose workers are through at different times: servers with a runtime each and
// sockets in between, one thread per worker.
#include <sys/stat.h>

#include <atomic>
#include <thread>

#include "job.h"

namespace outside {
namespace {

constexpr int64_t kSecond = int64_t{1000} * 1000 * 1000;

// A worker whose program counts on the ps.
struct Counting {
  explicit Counting(const Server& at) : program(at.runtime) {
    dtg_value one{};
    program.on("/job:ps/task:0");
    OK(dtg_variable_f32(program.model, "count", 0, &count));
    OK(dtg_const_f32(program.graph, 1, &one));
    OK(dtg_add_assign_add_variable_op(program.graph, nullptr, count.handle, one, &step));
    program.off();
    OK(dtg_session_connect(at.runtime, dtg_server_target(at.server), DTG_STRLEN, program.graph, nullptr, &program.session));
  }
  dtg_session* session() const { return program.session; }
  Program program;
  dtg_variable count = DTG_VARIABLE_INIT;
  dtg_value step{};
};

class Barrier : public testing::Test {
 protected:
  void SetUp() override {
    before_ = dtg_live_handles();
    sockets_ = folder("barrier");
    ASSERT_EQ(mkdir(sockets_.c_str(), 0700), 0);
    const auto at = [&](const char* name) { return "unix:" + sockets_ + "/" + name; };
    OK(dtg_cluster_parse(("ps=" + at("p") + ";worker=" + at("w0") + "," + at("w1")).c_str(), DTG_STRLEN, &cluster_));
    ps_ = std::make_unique<Server>(cluster_, "ps", 0);
    for (int i : {0, 1}) servers_[i] = std::make_unique<Server>(cluster_, "worker", i);
    for (int i : {0, 1}) workers_[i] = std::make_unique<Counting>(*servers_[i]);
    dtg_value init{};
    OK(dtg_model_init(workers_[0]->program.model, &init));
    OK(dtg_run_target(workers_[0]->session(), init));
  }
  void TearDown() override {
    for (int i : {0, 1}) workers_[i] = nullptr;
    for (int i : {0, 1}) servers_[i] = nullptr;
    ps_ = nullptr;
    dtg_cluster_release(cluster_);
    EXPECT_EQ(dtg_live_handles(), before_);
    EXPECT_EQ(std::system(("rm -rf '" + sockets_ + "'").c_str()), 0);
  }

  size_t before_ = 0;
  std::string sockets_;
  dtg_cluster* cluster_ = nullptr;
  std::unique_ptr<Server> ps_, servers_[2];
  std::unique_ptr<Counting> workers_[2];
};

// Nobody is let through a round before both have come to it.
TEST_F(Barrier, RoundByRound) {
  constexpr int kRounds = 20;
  std::atomic<int> begun[2] = {0, 0};
  const auto work = [&](int me) {
    for (int round = 1; round <= kRounds; ++round) {
      begun[me] = round;
      OK(dtg_session_barrier(workers_[me]->session(), "round", DTG_STRLEN, kWaitNs));
      EXPECT_GE(begun[1 - me].load(), round);
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
}

// The times are long enough for news to come before they are over, also where the machine is busy.
TEST_F(Barrier, WhoDoesNotComeIsNamed) {
  std::string origin;
  const std::string message = refused(dtg_session_barrier(workers_[0]->session(), "lonely", DTG_STRLEN, 7 * kSecond), DTG_DEADLINE_EXCEEDED,
                                      "a barrier alone", &origin);
  EXPECT_EQ(origin, "/job:ps/replica:0/task:0, /job:worker/replica:0/task:1, meet");
  EXPECT_NE(message.find("\"lonely\""), std::string::npos) << message;
  EXPECT_NE(message.find("/job:worker/replica:0/task:1"), std::string::npos) << message;
  EXPECT_EQ(message.find("/job:worker/replica:0/task:0"), std::string::npos) << message;
  const std::string working = refused(dtg_session_end_job(workers_[0]->session(), 7 * kSecond), DTG_DEADLINE_EXCEEDED, "an end too early");
  EXPECT_NE(working.find("/job:worker/replica:0/task:1"), std::string::npos) << working;
  refused(dtg_server_join(ps_->server, 0), DTG_DEADLINE_EXCEEDED, "the ps after that");
  refused(dtg_session_end_job_now(workers_[1]->session(), kWaitNs), DTG_PERMISSION_DENIED, "an end by worker 1");
  refused(dtg_session_barrier(workers_[0]->session(), "", 0, kSecond), DTG_INVALID_ARGUMENT, "no name");
  const std::string endless(201, 'x');
  refused(dtg_session_barrier(workers_[0]->session(), endless.c_str(), DTG_STRLEN, kSecond), DTG_INVALID_ARGUMENT, "a long name");
}

// The chief is through; the other one trains on as long as it likes, without an error, and then the job is over for all.
TEST_F(Barrier, TheEndWaitsForTheSlower) {
  std::atomic<bool> ended{false};
  std::thread chief([&] {
    OK(dtg_session_end_job(workers_[0]->session(), kWaitNs));
    ended = true;
  });
  // The chief waits there: the ps says so.
  std::string state;
  for (int i = 0; i < 6000 && state.find("\"barriers\":[{\"name\":\"\"") == std::string::npos; ++i) {
    dtg_string* text = nullptr;
    OK(dtg_server_status(ps_->server, &text));
    state = dtg_string_data(text, nullptr);
    dtg_string_release(text);
    usleep(10'000);
  }
  EXPECT_NE(state.find("\"barriers\":[{\"name\":\"\",\"arrived\":[\"/job:worker/replica:0/task:0\"]"), std::string::npos) << state;
  for (int i = 0; i < 50; ++i) OK(dtg_run_target(workers_[1]->session(), workers_[1]->step));
  float count = 0;
  OK(dtg_run_f32(workers_[1]->session(), workers_[1]->count.read, dtg_value{}, &count));
  EXPECT_EQ(count, 50);
  EXPECT_FALSE(ended.load());
  OK(dtg_session_end_job(workers_[1]->session(), kWaitNs));
  chief.join();
  EXPECT_TRUE(ended.load());
  OK(dtg_server_join(ps_->server, kWaitNs));
  OK(dtg_server_join(servers_[1]->server, kWaitNs));
}

TEST_F(Barrier, TheEndAtOnceAsksNobody) {
  OK(dtg_session_end_job_now(workers_[0]->session(), kWaitNs));
  OK(dtg_server_join(ps_->server, kWaitNs));
  OK(dtg_server_join(servers_[1]->server, kWaitNs));
  // Who hears of the end at the barrier of the end is through as well.
  dtg_error* const error = dtg_session_end_job(workers_[1]->session(), kWaitNs);
  OK(error);
}

// What is hidden by filters, and who is no worker.
TEST_F(Barrier, AClientIsNoWorker) {
  dtg_graph* graph = nullptr;
  dtg_session* client = nullptr;
  OK(dtg_graph_create(ps_->runtime, &graph));
  dtg_runtime* runtime = nullptr;
  OK(dtg_runtime_create(nullptr, &runtime));
  dtg_graph* own = nullptr;
  OK(dtg_graph_create(runtime, &own));
  OK(dtg_session_connect(runtime, dtg_server_target(ps_->server), DTG_STRLEN, own, nullptr, &client));
  refused(dtg_session_barrier(client, "b", DTG_STRLEN, kWaitNs), DTG_PERMISSION_DENIED, "a client at a barrier");
  refused(dtg_session_end_job(client, kWaitNs), DTG_PERMISSION_DENIED, "a client at the end");
  dtg_session_release(client);
  dtg_graph_release(own);
  dtg_graph_release(graph);
  dtg_runtime_release(runtime);
}

}  // namespace
}  // namespace outside
