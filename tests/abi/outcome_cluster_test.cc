// What becomes of a run that nobody heard the end of: its number, asking, repeating it; and workers of bounded staleness, whose deadlines
// name who was waited for. Servers with a runtime each and sockets in between.
#include <sys/stat.h>

#include <chrono>
#include <string>
#include <thread>

#include "dtg/sugar_ops.h"
#include "job.h"

namespace outside {
namespace {

constexpr int64_t kMillisecond = 1000 * 1000;

class Outcome : public testing::Test {
 protected:
  void SetUp() override {
    before_ = dtg_live_handles();
    sockets_ = folder("outcome");
    ASSERT_EQ(mkdir(sockets_.c_str(), 0700), 0);
    const auto at = [&](const char* name) { return "unix:" + sockets_ + "/" + name; };
    OK(dtg_cluster_parse(("ps=" + at("p0") + "," + at("p1") + ";worker=" + at("w0") + "," + at("w1")).c_str(), DTG_STRLEN, &cluster_));
    for (int i : {0, 1}) ps_[i] = std::make_unique<Server>(cluster_, "ps", i);
    for (int i : {0, 1}) workers_[i] = std::make_unique<Server>(cluster_, "worker", i);
  }
  void TearDown() override {
    for (int i : {0, 1}) workers_[i] = nullptr;
    for (int i : {0, 1}) ps_[i] = nullptr;
    dtg_cluster_release(cluster_);
    EXPECT_EQ(dtg_live_handles(), before_);
    EXPECT_EQ(std::system(("rm -rf '" + sockets_ + "'").c_str()), 0);
  }
  static void connect(Program& program, const Server& at) {
    OK(dtg_session_connect(at.runtime, dtg_server_target(at.server), DTG_STRLEN, program.graph, nullptr, &program.session));
  }
  static float value(Program& program, const dtg_variable& variable) {
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    dtg_tensor* tensor = nullptr;
    args.fetches = &variable.read;
    args.fetched = &tensor;
    args.num_fetches = 1;
    OK(dtg_session_run(program.session, &args));
    const float found = tensor ? *static_cast<const float*>(dtg_tensor_data(tensor, nullptr)) : -1;
    dtg_tensor_release(tensor);
    return found;
  }
  static dtg_run_args ask(const dtg_value* target, uint64_t* write, int64_t timeout_ns = 0) {
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    args.targets = target;
    args.num_targets = 1;
    args.write = write;
    args.timeout_ns = timeout_ns;
    return args;
  }
  static dtg_outcome outcome(Program& program, uint64_t write) {
    dtg_outcome found = -1;
    OK(dtg_session_outcome(program.session, write, 0, &found));
    return found;
  }

  size_t before_ = 0;
  std::string sockets_;
  dtg_cluster* cluster_ = nullptr;
  std::unique_ptr<Server> ps_[2], workers_[2];
};

// Two variables that a step counts on two servers, and the same where a token comes first, or last.
struct Counts {
  explicit Counts(const Server& at) : program(at.runtime) {
    dtg_value one{}, adds[2]{};
    OK(dtg_const_f32(program.graph, 1, &one));
    for (int i : {0, 1}) {
      program.on("/job:ps/task:" + std::to_string(i));
      OK(dtg_variable_f32(program.model, i ? "b" : "a", 0, &counts[i]));
      OK(dtg_add_assign_add_variable_op(program.graph, nullptr, counts[i].handle, one, &adds[i]));
      program.off();
    }
    OK(dtg_graph_push_controls(program.graph, adds, 2));
    OK(dtg_add_no_op(program.graph, "step", &step));
    OK(dtg_graph_pop_controls(program.graph));
    program.on("/job:ps/task:0");
    const int64_t types[] = {DTG_F32};
    OK(dtg_add_fifo_queue_v2(program.graph, "tokens", types, 1, nullptr, &queue));
    dtg_value token{};
    OK(dtg_add_queue_dequeue_v2(program.graph, "first", queue, types, 1, nullptr, &token));
    OK(dtg_graph_push_controls(program.graph, &token, 1));
    OK(dtg_add_assign_add_variable_op(program.graph, "after_token", counts[0].handle, one, &after_token));
    OK(dtg_graph_pop_controls(program.graph));
    OK(dtg_graph_push_controls(program.graph, adds, 1));
    OK(dtg_add_queue_dequeue_v2(program.graph, "last", queue, types, 1, nullptr, &before_token));
    OK(dtg_graph_pop_controls(program.graph));
    program.off();
    OK(dtg_model_init(program.model, &init));
    OK(dtg_session_connect(at.runtime, dtg_server_target(at.server), DTG_STRLEN, program.graph, nullptr, &program.session));
    OK(dtg_run_target(program.session, init));
  }
  Program program;
  dtg_variable counts[2] = {DTG_VARIABLE_INIT, DTG_VARIABLE_INIT};
  dtg_value step{}, init{}, queue{}, after_token{}, before_token{};
};

TEST_F(Outcome, ARunThatIsRepeatedUnderItsNumberUpdatesOnce) {
  Counts job(*workers_[0]);
  uint64_t write = 0;
  dtg_run_args args = ask(&job.step, &write);
  OK(dtg_session_run(job.program.session, &args));
  ASSERT_NE(write, 0u);
  EXPECT_EQ(outcome(job.program, write), DTG_OUTCOME_UPDATED);
  for (int again = 0; again < 3; ++again) OK(dtg_session_run(job.program.session, &args));
  EXPECT_EQ(value(job.program, job.counts[0]), 1);
  EXPECT_EQ(value(job.program, job.counts[1]), 1);
  // The same without waiting for it.
  dtg_cq* cq = nullptr;
  OK(dtg_cq_create(&cq));
  OK(dtg_session_run_async(job.program.session, &args, cq, 1, nullptr));
  wait_for(cq, 1);
  EXPECT_EQ(value(job.program, job.counts[0]), 1);
  uint64_t other = 0;
  dtg_run_args fresh = ask(&job.step, &other);
  OK(dtg_session_run_async(job.program.session, &fresh, cq, 2, nullptr));
  EXPECT_NE(other, 0u);
  EXPECT_NE(other, write);
  wait_for(cq, 1);
  OK(dtg_session_run(job.program.session, &fresh));
  EXPECT_EQ(value(job.program, job.counts[0]), 2);
  EXPECT_EQ(value(job.program, job.counts[1]), 2);
  dtg_cq_release(cq);
}

TEST_F(Outcome, IsToldOfARunWhoseDeadlinePassedBeforeAndAfterItsUpdate) {
  Counts job(*workers_[0]);
  uint64_t before = 0, after = 0;
  dtg_run_args waits_first = ask(&job.after_token, &before, 200 * kMillisecond);
  refused(dtg_session_run(job.program.session, &waits_first), DTG_DEADLINE_EXCEEDED, "its outcome is unknown: write");
  ASSERT_NE(before, 0u);
  EXPECT_EQ(outcome(job.program, before), DTG_OUTCOME_NOTHING);
  dtg_run_args waits_last = ask(&job.before_token, &after, 200 * kMillisecond);
  refused(dtg_session_run(job.program.session, &waits_last), DTG_DEADLINE_EXCEEDED,
          ("outcome is unknown: write " + std::to_string(after)).c_str());
  EXPECT_EQ(outcome(job.program, after), DTG_OUTCOME_UPDATED);
  EXPECT_EQ(value(job.program, job.counts[0]), 1);
  // It takes from a queue, which cannot be taken back.
  refused(dtg_session_run(job.program.session, &waits_last), DTG_FAILED_PRECONDITION, "queues");
}

// What is put, or taken, or accumulated, is no update of a variable and stays done all the same.
struct Puts {
  explicit Puts(const Server& at) : program(at.runtime) {
    program.on("/job:ps/task:0");
    const int64_t types[] = {DTG_I64};
    const int64_t cells[] = {1, 2, 3}, three[] = {3};
    dtg_value batch{}, one{}, gradient{}, tokens{}, small{}, sums{};
    OK(dtg_const_of(program.graph, DTG_I64, three, 1, cells, sizeof cells, &batch));
    OK(dtg_const_of(program.graph, DTG_I64, nullptr, 0, cells, sizeof cells[0], &one));
    OK(dtg_const_f32(program.graph, 1, &gradient));
    OK(dtg_add_fifo_queue_v2(program.graph, "tokens", types, 1, nullptr, &tokens));
    dtg_fifo_queue_v2_options room = DTG_FIFO_QUEUE_V2_OPTIONS_INIT;
    room.capacity = 2;
    OK(dtg_add_fifo_queue_v2(program.graph, "small", types, 1, &room, &small));
    OK(dtg_add_fifo_queue_v2(program.graph, "never", types, 1, nullptr, &never));
    OK(dtg_add_queue_enqueue_v2(program.graph, "put", tokens, &one, 1, nullptr, &put));
    OK(dtg_add_queue_dequeue_v2(program.graph, "take", tokens, types, 1, nullptr, &take));
    OK(dtg_add_queue_enqueue_many_v2(program.graph, "put_many", small, &batch, 1, nullptr, &put_many));
    OK(dtg_add_queue_dequeue_v2(program.graph, "wait", never, types, 1, nullptr, &wait));
    OK(dtg_add_resource_conditional_accumulator(program.graph, "sums", DTG_F32, nullptr, 0, nullptr, &sums));
    OK(dtg_add_resource_accumulator_apply_gradient(program.graph, "apply", sums, one, gradient, &apply));
    program.off();
    OK(dtg_session_connect(at.runtime, dtg_server_target(at.server), DTG_STRLEN, program.graph, nullptr, &program.session));
  }
  Program program;
  dtg_value never{}, put{}, take{}, put_many{}, wait{}, apply{};
};

TEST_F(Outcome, IsToldOfARunThatPutOrTookSomething) {
  Puts job(*workers_[0]);
  const struct {
    const char* what;
    dtg_value target;
    dtg_outcome expected;
  } cases[] = {{"nothing", job.wait, DTG_OUTCOME_NOTHING},
               {"put", job.put, DTG_OUTCOME_UPDATED},
               {"taken", job.take, DTG_OUTCOME_UPDATED},
               {"nothing to take", job.take, DTG_OUTCOME_NOTHING},
               {"two of three put", job.put_many, DTG_OUTCOME_UPDATED},
               {"no room for any", job.put_many, DTG_OUTCOME_NOTHING},
               {"accumulated", job.apply, DTG_OUTCOME_UPDATED}};
  for (const auto& each : cases) {
    const dtg_value targets[] = {each.target, job.wait};
    uint64_t write = 0;
    dtg_run_args args = ask(targets, &write, 300 * kMillisecond);
    args.num_targets = 2;
    refused(dtg_session_run(job.program.session, &args), DTG_DEADLINE_EXCEEDED, "its outcome is unknown");
    EXPECT_EQ(outcome(job.program, write), each.expected) << each.what;
  }
}

TEST_F(Outcome, NumbersThatAreNobodys) {
  Counts job(*workers_[0]);
  dtg_outcome found = 0;
  refused(dtg_session_outcome(job.program.session, 0, 0, &found), DTG_INVALID_ARGUMENT, "no such run");
  refused(dtg_session_outcome(job.program.session, 1u << 30, 0, &found), DTG_INVALID_ARGUMENT, "no such run");
  uint64_t write = 1u << 30;
  dtg_run_args args = ask(&job.step, &write);
  refused(dtg_session_run(job.program.session, &args), DTG_INVALID_ARGUMENT, "no such run");
  EXPECT_EQ(value(job.program, job.counts[0]), 0);
  // Of another session: it has made none of that number, and what the other has done is not its own.
  Program other(workers_[1]->runtime);
  connect(other, *workers_[1]);
  refused(dtg_session_outcome(other.session, 1u << 20, 0, &found), DTG_INVALID_ARGUMENT, "no such run");
}

std::string status(const Server& server) {
  dtg_string* text = nullptr;
  OK(dtg_server_status(server.server, &text));
  const std::string found = dtg_string_data(text, nullptr);
  dtg_string_release(text);
  return found;
}

// A number that nobody has any more is not remembered.
TEST_F(Outcome, OfASessionThatIsClosedNothingIsKept) {
  const char* const none = R"("writers":0,"rows":0)";
  for (int i = 0; i < 2; ++i) {
    Counts job(*workers_[0]);
    OK(dtg_run_target(job.program.session, job.step));
    for (const auto& ps : ps_) EXPECT_NE(status(*ps).find(R"("writers":1)"), std::string::npos) << status(*ps);
    OK(dtg_session_close(job.program.session, kWaitNs));
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(kWaitNs);
  for (const auto& ps : ps_) {
    while (status(*ps).find(none) == std::string::npos && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_NE(status(*ps).find(none), std::string::npos) << status(*ps);
  }
}

// A worker of bounded staleness: each step takes 1 from v.
struct Bounded {
  Bounded(const Server& at, int32_t worker, int32_t staleness) : program(at.runtime) {
    dtg_value one{}, loss{};
    program.on("/job:ps/task:1");
    OK(dtg_variable_f32(program.model, "v", 0, &v));
    program.off();
    program.global_step("/job:ps/task:0");
    program.on("/job:worker/task:" + std::to_string(worker));
    OK(dtg_const_f32(program.graph, 1, &one));
    OK(dtg_add2(program.graph, "Mul", v.read, one, &loss));
    program.off();
    dtg_replication replication = DTG_REPLICATION_INIT;
    replication.mode = DTG_SYNC_SSP;
    replication.worker = worker;
    replication.total = 2;
    replication.staleness = staleness;
    dtg_optimizer optimizer = DTG_OPTIMIZER_INIT;
    optimizer.rate = 1;
    OK(dtg_nn_minimize_replicated(program.model, loss, &optimizer, &replication, &share));
    OK(dtg_session_connect(at.runtime, dtg_server_target(at.server), DTG_STRLEN, program.graph, nullptr, &program.session));
    dtg_value init{};
    OK(dtg_model_init(program.model, &init));
    if (worker == 0) OK(dtg_run_target(program.session, init));
    OK(dtg_model_wait_ready(program.model, program.session, kWaitNs));
    OK(dtg_run_target(program.session, share.local_init));
  }
  Program program;
  dtg_variable v = DTG_VARIABLE_INIT;
  dtg_replicated share = DTG_REPLICATED_INIT;
};

TEST_F(Outcome, OfAStepThatWaitedForASlowWorker) {
  Bounded fast(*workers_[0], 0, 0);
  auto slow = std::make_unique<Bounded>(*workers_[1], 1, 0);
  uint64_t write = 0;
  dtg_run_args args = ask(&fast.share.train, &write, 500 * kMillisecond);
  dtg_error* error = dtg_session_run(fast.program.session, &args);
  EXPECT_EQ(dtg_error_code(error), DTG_DEADLINE_EXCEEDED);
  const std::string said = dtg_error_message(error, nullptr);
  dtg_error_release(error);
  EXPECT_NE(said.find("worker 0 at clock 1 waits for worker 1 at clock 0"), std::string::npos) << said;
  EXPECT_NE(said.find("which may be repeated"), std::string::npos) << said;
  EXPECT_EQ(outcome(fast.program, write), DTG_OUTCOME_UPDATED);
  EXPECT_EQ(value(fast.program, fast.v), -1);
  // Repeated it goes on waiting, and ends when the other has made its step.
  dtg_cq* cq = nullptr;
  OK(dtg_cq_create(&cq));
  args.timeout_ns = kWaitNs;
  OK(dtg_session_run_async(fast.program.session, &args, cq, 1, nullptr));
  OK(dtg_run_target(slow->program.session, slow->share.train));
  wait_for(cq, 1);
  EXPECT_EQ(value(fast.program, fast.v), -2);
  // Whose session is over is not waited for.
  OK(dtg_session_run_async(fast.program.session, &args, cq, 2, nullptr));
  wait_for(cq, 1);
  write = 0;
  OK(dtg_session_run_async(fast.program.session, &args, cq, 3, nullptr));
  slow = nullptr;
  wait_for(cq, 1);
  EXPECT_EQ(value(fast.program, fast.v), -3);
  dtg_cq_release(cq);
}

}  // namespace
}  // namespace outside
