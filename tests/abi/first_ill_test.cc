// What made a loss no finite number is named: the first value that is not, with its op and where it was made; and nothing with an effect
// runs once more for that.
#include <cmath>
#include <limits>

#include "job.h"

namespace outside {
namespace {

// loss = mean(log(w x)^2) with w = 1: a negative x makes the logarithm no number.
struct Logarithm {
  Logarithm() : program(nullptr) {
    dtg_value product{}, zero{};
    const int64_t dims[] = {2};
    OK(dtg_variable_f32(program.model, "w", 1, &w));
    OK(dtg_placeholder(program.graph, "x", DTG_F32, dims, 1, &x));
    OK(dtg_add2(program.graph, "Mul", w.read, x, &product));
    OK(dtg_add1(program.graph, "Log", product, &logarithm));
    OK(dtg_const_f32(program.graph, 0, &zero));
    OK(dtg_nn_mean_squared_error(program.model, zero, logarithm, &loss));
    OK(dtg_nn_minimize(program.model, loss, nullptr, &training));
    connect();
  }
  void connect() {
    dtg_value init{};
    OK(dtg_model_init(program.model, &init));
    OK(dtg_session_connect(nullptr, nullptr, 0, program.graph, nullptr, &program.session));
    OK(dtg_run_target(program.session, init));
  }
  // A step on these; what it says.
  std::string fails(std::vector<float> values) {
    dtg_tensor* const tensor = vector_of(std::move(values));
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    args.feeds = &x;
    args.feed_tensors = &tensor;
    args.num_feeds = 1;
    args.targets = &training.train;
    args.num_targets = 1;
    const std::string message = refused(dtg_session_run(program.session, &args), DTG_INVALID_ARGUMENT, "a loss that is no number");
    dtg_tensor_release(tensor);
    return message;
  }
  float weight() {
    float value = 0;
    OK(dtg_run_f32(program.session, w.read, dtg_value{}, &value));
    return value;
  }
  Program program;
  dtg_variable w = DTG_VARIABLE_INIT;
  dtg_value x{}, logarithm{}, loss{};
  dtg_training training = DTG_TRAINING_INIT;
};

TEST(FirstIll, TheOpIsNamed) {
  Logarithm model;
  const std::string message = model.fails({1, -1});
  EXPECT_NE(message.find("the loss is nan at step 0"), std::string::npos) << message;
  EXPECT_EQ(message.find("go back to saved weights"), std::string::npos) << message;
  EXPECT_NE(message.find("the first value that is not finite is that of \"Log\" (Log"), std::string::npos) << message;
  EXPECT_NE(message.find("nan at element 1 of [2]"), std::string::npos) << message;
  EXPECT_EQ(model.weight(), 1);
  const std::string endless = model.fails({0, 1});
  EXPECT_NE(endless.find("the loss is inf"), std::string::npos) << endless;
  EXPECT_NE(endless.find("\"Log\""), std::string::npos) << endless;
  EXPECT_NE(endless.find("-inf at element 0 of [2]"), std::string::npos) << endless;
}

TEST(FirstIll, WhatWasFedIsNamed) {
  Logarithm model;
  const std::string message = model.fails({1, std::numeric_limits<float>::quiet_NaN()});
  EXPECT_NE(message.find("what was fed to \"x\" (Placeholder"), std::string::npos) << message;
  EXPECT_NE(message.find("is nan at element 1 of [2]"), std::string::npos) << message;
}

TEST(FirstIll, AnEmptyBatchIsTold) {
  Program program(nullptr);
  dtg_value x{}, y{}, answer{}, loss{}, init{};
  dtg_training training = DTG_TRAINING_INIT;
  const int64_t rows[] = {-1, 2}, numbers[] = {-1, 1}, sizes[][2] = {{0, 2}, {0, 1}};
  OK(dtg_placeholder(program.graph, "x", DTG_F32, rows, 2, &x));
  OK(dtg_placeholder(program.graph, "y", DTG_F32, numbers, 2, &y));
  dtg_dense layer = DTG_DENSE_INIT;
  layer.units = 1;
  OK(dtg_nn_dense(program.model, x, &layer, &answer));
  OK(dtg_nn_mean_squared_error(program.model, y, answer, &loss));
  OK(dtg_nn_minimize(program.model, loss, nullptr, &training));
  OK(dtg_model_init(program.model, &init));
  OK(dtg_session_connect(nullptr, nullptr, 0, program.graph, nullptr, &program.session));
  OK(dtg_run_target(program.session, init));
  dtg_tensor* tensors[2] = {};
  for (int i = 0; i < 2; ++i) OK(dtg_tensor_allocate(DTG_F32, sizes[i], 2, &tensors[i]));
  const dtg_value feeds[] = {x, y};
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.feeds = feeds;
  args.feed_tensors = tensors;
  args.num_feeds = 2;
  args.targets = &training.train;
  args.num_targets = 1;
  const std::string message = refused(dtg_session_run(program.session, &args), DTG_INVALID_ARGUMENT, "an empty batch");
  EXPECT_NE(message.find("the loss is nan at step 0"), std::string::npos) << message;
  EXPECT_NE(message.find("the batch is empty"), std::string::npos) << message;
  EXPECT_EQ(message.find("learning rate"), std::string::npos) << message;
  for (dtg_tensor* const tensor : tensors) dtg_tensor_release(tensor);
}

// Nobody waits for the run; its end is told when the search is over, and a second step is not kept from running meanwhile.
TEST(FirstIll, ARunThatNobodyWaitsForNamesItToo) {
  Logarithm model;
  dtg_cq* cq = nullptr;
  OK(dtg_cq_create(&cq));
  constexpr int kRuns = 40;
  for (int i = 0; i < kRuns; ++i) {
    dtg_tensor* const tensor = vector_of({1, i % 2 ? -1.0f : 0.5f});
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    args.feeds = &model.x;
    args.feed_tensors = &tensor;
    args.num_feeds = 1;
    args.targets = &model.training.train;
    args.num_targets = 1;
    OK(dtg_session_run_async(model.program.session, &args, cq, static_cast<uint64_t>(i), nullptr));
    dtg_tensor_release(tensor);
  }
  for (int i = 0; i < kRuns; ++i) {
    dtg_completion done{};
    size_t count = 0;
    OK(dtg_cq_next(cq, &done, 0, 1, kWaitNs, &count));
    ASSERT_EQ(count, 1u);
    if (done.tag % 2 == 0) {
      OK(done.error);
      continue;
    }
    const std::string message = refused(done.error, DTG_INVALID_ARGUMENT, "a loss that is no number");
    EXPECT_NE(message.find("the first value that is not finite is that of \"Log\" (Log"), std::string::npos) << message;
    EXPECT_NE(message.find("nan at element 1 of [2]"), std::string::npos) << message;
  }
  dtg_cq_release(cq);
}

TEST(FirstIll, AVariableIsNamed) {
  Logarithm model;
  dtg_value endless{}, assign{};
  OK(dtg_const_f32(model.program.graph, std::numeric_limits<float>::infinity(), &endless));
  OK(dtg_add_assign_variable_op(model.program.graph, nullptr, model.w.handle, endless, nullptr, &assign));
  OK(dtg_run_target(model.program.session, assign));
  const std::string message = model.fails({1, 1});
  EXPECT_NE(message.find("the first value that is not finite is that of \"w"), std::string::npos) << message;
  EXPECT_NE(message.find("ReadVariableOp"), std::string::npos) << message;
  EXPECT_NE(message.find("go back to saved weights"), std::string::npos) << message;
}

// What comes out of a queue comes out once, also where the step fails; what was made from it cannot be made again.
TEST(FirstIll, EffectsDoNotRunAgain) {
  Program p(nullptr);
  dtg_variable w = DTG_VARIABLE_INIT;
  dtg_value queue{}, element{}, zero{}, product{}, loss{}, put{}, size{}, bad{};
  const int64_t types[] = {DTG_F32};
  OK(dtg_variable_f32(p.model, "w", 1, &w));
  OK(dtg_add_fifo_queue_v2(p.graph, "q", types, 1, nullptr, &queue));
  OK(dtg_const_f32(p.graph, std::numeric_limits<float>::quiet_NaN(), &bad));
  OK(dtg_add_queue_enqueue_v2(p.graph, nullptr, queue, &bad, 1, nullptr, &put));
  OK(dtg_add_queue_dequeue_v2(p.graph, nullptr, queue, types, 1, nullptr, &element));
  OK(dtg_add_queue_size_v2(p.graph, nullptr, queue, &size));
  OK(dtg_add_ensure_shape(p.graph, nullptr, element, nullptr, 0, &element));
  OK(dtg_add2(p.graph, "Mul", w.read, element, &product));
  OK(dtg_const_f32(p.graph, 0, &zero));
  OK(dtg_nn_mean_squared_error(p.model, zero, product, &loss));
  dtg_training training = DTG_TRAINING_INIT;
  OK(dtg_nn_minimize(p.model, loss, nullptr, &training));
  dtg_value init{};
  OK(dtg_model_init(p.model, &init));
  OK(dtg_session_connect(nullptr, nullptr, 0, p.graph, nullptr, &p.session));
  OK(dtg_run_target(p.session, init));
  for (int i = 0; i < 3; ++i) OK(dtg_run_target(p.session, put));
  const std::string message = refused(dtg_run_target(p.session, training.train), DTG_INVALID_ARGUMENT, "a loss that is no number");
  EXPECT_NE(message.find("the loss is nan at step 0"), std::string::npos) << message;
  EXPECT_EQ(message.find("the first value"), std::string::npos) << message;
  dtg_tensor* left = nullptr;
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.fetches = &size;
  args.fetched = &left;
  args.num_fetches = 1;
  OK(dtg_session_run(p.session, &args));
  EXPECT_EQ(*static_cast<const int32_t*>(dtg_tensor_data(left, nullptr)), 2);
  dtg_tensor_release(left);
}

}  // namespace
}  // namespace outside
