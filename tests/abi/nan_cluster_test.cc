// A loss that is no finite number, in each way that several workers or towers train together: no weight changes, the error names the step
// and whose loss it was, nobody waits for it, and training goes on after it. Servers with a runtime each; one thread.
#include <sys/stat.h>

#include <cmath>
#include <limits>
#include <memory>

#include "job.h"

namespace outside {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// loss = mean((w x)^2), w = 2 at first and on the ps.
struct Learner {
  Learner(const Server& at, int32_t number, dtg_sync_mode mode, int32_t unchecked) : program(at.runtime) {
    const std::string here = "/job:worker/task:" + std::to_string(number);
    program.on("/job:ps/task:0");
    OK(dtg_variable_f32(program.model, "w", 2, &w));
    program.off();
    program.on(here);
    const int64_t dims[] = {1};
    dtg_value product{}, zero{};
    OK(dtg_placeholder(program.graph, "x", DTG_F32, dims, 1, &x));
    OK(dtg_add2(program.graph, "Mul", w.read, x, &product));
    OK(dtg_const_f32(program.graph, 0, &zero));
    OK(dtg_nn_mean_squared_error(program.model, zero, product, &loss));
    program.off();
    program.global_step("/job:ps/task:0");
    dtg_replication replication = DTG_REPLICATION_INIT;
    replication.mode = mode;
    replication.worker = number;
    replication.total = 2;
    dtg_optimizer sgd = DTG_OPTIMIZER_INIT;
    sgd.rate = 0.25;
    sgd.unchecked_loss = unchecked;
    OK(dtg_nn_minimize_replicated(program.model, loss, &sgd, &replication, &share));
    OK(dtg_session_connect(at.runtime, dtg_server_target(at.server), DTG_STRLEN, program.graph, nullptr, &program.session));
  }
  // Begins a step; its end comes through cq under `tag`.
  void train(float value, dtg_cq* cq, uint64_t tag) {
    const int64_t dims[] = {1};
    dtg_tensor* tensor = nullptr;
    OK(dtg_tensor_create(DTG_F32, dims, 1, &value, sizeof value, nullptr, nullptr, &tensor));
    start(program.session, share.train, {x}, {tensor}, cq, tag);
  }
  float weight() {
    float value = 0;
    OK(dtg_run_f32(program.session, w.read, dtg_value{}, &value));
    return value;
  }
  Program program;
  dtg_variable w = DTG_VARIABLE_INIT;
  dtg_value x{}, loss{};
  dtg_replicated share = DTG_REPLICATED_INIT;
};

class NaN : public testing::Test {
 protected:
  void begin(dtg_sync_mode mode, int32_t unchecked = 0) {
    before_ = dtg_live_handles();
    sockets_ = folder("nan");
    ASSERT_EQ(mkdir(sockets_.c_str(), 0700), 0);
    const auto at = [&](const char* name) { return "unix:" + sockets_ + "/" + name; };
    dtg_cluster* cluster = nullptr;
    OK(dtg_cluster_parse(("ps=" + at("p") + ";worker=" + at("w0") + "," + at("w1")).c_str(), DTG_STRLEN, &cluster));
    ps_ = std::make_unique<Server>(cluster, "ps", 0);
    for (int i : {0, 1}) servers_[i] = std::make_unique<Server>(cluster, "worker", i);
    dtg_cluster_release(cluster);
    for (int i : {0, 1}) learners_[i] = std::make_unique<Learner>(*servers_[i], i, mode, unchecked);
    Learner& chief = *learners_[0];
    dtg_value init{};
    OK(dtg_model_init(chief.program.model, &init));
    OK(dtg_run_target(chief.program.session, init));
    if (chief.share.chief_init.id) OK(dtg_run_target(chief.program.session, chief.share.chief_init));
    OK(dtg_cq_create(&cq_));
    OK(dtg_cq_create(&updates_));
    if (chief.share.update.id) OK(dtg_session_run_repeatedly(chief.program.session, &chief.share.update, 1, updates_, 7, &loop_));
    for (auto& learner : learners_) OK(dtg_run_target(learner->program.session, learner->share.local_init));
  }
  void end() {
    if (loop_) {
      dtg_run_cancel(loop_);
      wait_for(updates_, 1, DTG_CANCELLED);
      dtg_run_release(loop_);
    }
    for (auto& learner : learners_) learner = nullptr;
    dtg_cq_release(cq_);
    dtg_cq_release(updates_);
    for (auto& server : servers_) server = nullptr;
    ps_ = nullptr;
    EXPECT_EQ(dtg_live_handles(), before_);
    EXPECT_EQ(std::system(("rm -rf '" + sockets_ + "'").c_str()), 0);
  }
  // The ends of so many steps, by their tags; "" is a good one.
  std::vector<std::string> ends(int count) {
    std::vector<std::string> all(2, "no end");
    for (int i = 0; i < count; ++i) {
      dtg_completion done{};
      size_t there = 0;
      OK(dtg_cq_next(cq_, &done, 0, 1, kWaitNs, &there));
      if (there != 1) break;
      EXPECT_TRUE(!done.error || dtg_error_code(done.error) == DTG_INVALID_ARGUMENT) << text_of(done.error);
      all[done.tag] = done.error ? text_of(done.error) : "";
      dtg_error_release(done.error);
    }
    return all;
  }
  static void expect_named(const std::string& message, const char* what) {
    EXPECT_NE(message.find(what), std::string::npos) << message;
    EXPECT_NE(message.find("no weight was changed"), std::string::npos) << message;
  }

  size_t before_ = 0;
  std::string sockets_;
  std::unique_ptr<Server> ps_, servers_[2];
  std::unique_ptr<Learner> learners_[2];
  dtg_cq *cq_ = nullptr, *updates_ = nullptr;
  dtg_run* loop_ = nullptr;
};

TEST_F(NaN, AsyncFailsTheStepOfThatWorkerOnly) {
  begin(DTG_SYNC_ASYNC);
  learners_[0]->train(1, cq_, 0);
  EXPECT_EQ(ends(1)[0], "");
  EXPECT_EQ(learners_[0]->weight(), 1);
  learners_[1]->train(kNaN, cq_, 1);
  expect_named(ends(1)[1], "the loss of worker 1 is nan at step 1");
  EXPECT_EQ(learners_[0]->weight(), 1);
  learners_[1]->train(1, cq_, 1);
  EXPECT_EQ(ends(1)[1], "");
  EXPECT_EQ(learners_[0]->weight(), 0.5f);
  end();
}

// All workers' steps fail, whoever is first, and then go on.
TEST_F(NaN, StrictFailsTheStepOfAll) {
  begin(DTG_SYNC_STRICT);
  float expected = 2;
  int64_t step = 0;
  for (int round = 0; round < 4; ++round) {
    const int ill = round % 2, first = round / 2;
    const float value = round < 2 ? kNaN : kInfinity;
    learners_[first]->train(first == ill ? value : 1, cq_, static_cast<uint64_t>(first));
    learners_[1 - first]->train(first == ill ? 1 : value, cq_, static_cast<uint64_t>(1 - first));
    const std::vector<std::string> told = ends(2);
    const std::string what =
        "the loss of worker " + std::to_string(ill) + (round < 2 ? " is nan" : " is inf") + " at step " + std::to_string(step);
    for (const std::string& message : told) expect_named(message, what.c_str());
    EXPECT_EQ(learners_[0]->weight(), expected);
    for (int i : {0, 1}) learners_[i]->train(1, cq_, static_cast<uint64_t>(i));
    EXPECT_EQ(ends(2), (std::vector<std::string>{"", ""}));
    expected *= 0.5f;
    ++step;
    EXPECT_EQ(learners_[0]->weight(), expected);
  }
  end();
}

// Both at once: one word is enough for each, and what is left of another goes with local_init.
TEST_F(NaN, StrictWhereAllAreIll) {
  begin(DTG_SYNC_STRICT);
  for (int i : {0, 1}) learners_[i]->train(kNaN, cq_, static_cast<uint64_t>(i));
  for (const std::string& message : ends(2)) expect_named(message, "nan at step 0");
  for (auto& learner : learners_) OK(dtg_run_target(learner->program.session, learner->share.local_init));
  for (int i : {0, 1}) learners_[i]->train(1, cq_, static_cast<uint64_t>(i));
  EXPECT_EQ(ends(2), (std::vector<std::string>{"", ""}));
  EXPECT_EQ(learners_[0]->weight(), 1);
  end();
}

TEST_F(NaN, SyncReplicasFailsTheStepOfThatWorker) {
  begin(DTG_SYNC_REPLICAS);
  learners_[1]->train(kNaN, cq_, 1);
  expect_named(ends(1)[1], "the loss of worker 1 is nan at step 0");
  EXPECT_EQ(learners_[0]->weight(), 2);
  // It brings another one, and the mean is that of two.
  for (int i : {0, 1}) learners_[i]->train(1, cq_, static_cast<uint64_t>(i));
  EXPECT_EQ(ends(2), (std::vector<std::string>{"", ""}));
  EXPECT_EQ(learners_[0]->weight(), 1);
  end();
}

// The other's step is made, and ends when this worker has brought another batch.
TEST_F(NaN, BoundedStalenessFailsTheStepOfThatWorkerOnly) {
  begin(DTG_SYNC_SSP);
  learners_[1]->train(kNaN, cq_, 1);
  expect_named(ends(1)[1], "the loss of worker 1 is nan at step 0");
  EXPECT_EQ(learners_[0]->weight(), 2);
  for (int i : {0, 1}) learners_[i]->train(1, cq_, static_cast<uint64_t>(i));
  EXPECT_EQ(ends(2), (std::vector<std::string>{"", ""}));
  EXPECT_LT(learners_[0]->weight(), 1);  // two steps, of the same weight or of each other's
  end();
}

TEST_F(NaN, WhoDoesNotWantTheCheckHasNone) {
  begin(DTG_SYNC_STRICT, 1);
  learners_[0]->train(1, cq_, 0);
  learners_[1]->train(kNaN, cq_, 1);
  EXPECT_EQ(ends(2), (std::vector<std::string>{"", ""}));
  EXPECT_TRUE(std::isnan(learners_[0]->weight()));
  end();
}

TEST(NaNTowers, TheTowerIsNamed) {
  Program p(nullptr);
  dtg_value xs[2], losses[2];
  for (int i : {0, 1}) {
    if (i) OK(dtg_model_next_tower(p.model));
    dtg_variable w = DTG_VARIABLE_INIT;
    dtg_value product{}, zero{};
    const int64_t dims[] = {1};
    OK(dtg_variable_f32(p.model, "w", 2, &w));
    OK(dtg_placeholder(p.graph, nullptr, DTG_F32, dims, 1, &xs[i]));
    OK(dtg_add2(p.graph, "Mul", w.read, xs[i], &product));
    OK(dtg_const_f32(p.graph, 0, &zero));
    OK(dtg_nn_mean_squared_error(p.model, zero, product, &losses[i]));
  }
  dtg_training training = DTG_TRAINING_INIT;
  OK(dtg_nn_minimize_towers(p.model, losses, 2, nullptr, &training));
  dtg_value init{};
  OK(dtg_model_init(p.model, &init));
  OK(dtg_session_connect(nullptr, nullptr, 0, p.graph, nullptr, &p.session));
  OK(dtg_run_target(p.session, init));
  dtg_tensor* const good = vector_of({1});
  dtg_tensor* const bad = vector_of({kNaN});
  const dtg_tensor* tensors[] = {good, bad};
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.feeds = xs;
  args.feed_tensors = tensors;
  args.num_feeds = 2;
  args.targets = &training.train;
  args.num_targets = 1;
  const std::string message = refused(dtg_session_run(p.session, &args), DTG_INVALID_ARGUMENT, "a tower whose loss is no number");
  EXPECT_NE(message.find("the loss of tower 1 is nan at step 0"), std::string::npos) << message;
  dtg_variable w = DTG_VARIABLE_INIT;
  float value = 0;
  OK(dtg_model_find_variable(p.model, "w", DTG_STRLEN, &w));
  OK(dtg_run_f32(p.session, w.read, dtg_value{}, &value));
  EXPECT_EQ(value, 2);
  dtg_tensor_release(good);
  dtg_tensor_release(bad);
}

}  // namespace
}  // namespace outside
