// dtg_model_inside through the C ABI: layers in the bodies of loops and branches. They give what the same layers give beside each other in
// the graph, variables stay outside, gradients reach them, decoding with a cache in a loop gives what the whole sequence gives, and what a
// body cannot have is refused and leaves nothing behind.
#include <cmath>
#include <string>
#include <vector>

#include "world.h"

namespace outside {
namespace {

constexpr int64_t kWidth = 4;

class Inside : public testing::Test {
 protected:
  void SetUp() override {
    handles_ = dtg_live_handles();
    OK(dtg_graph_create(nullptr, &graph));
    OK(dtg_model_create(graph, 5, &model));
    const int64_t dims[] = {3, kWidth};
    OK(dtg_placeholder(graph, "x", DTG_F32, dims, 2, &x));
  }
  void TearDown() override {
    dtg_session_release(session);
    dtg_model_release(model);
    dtg_graph_release(graph);
    EXPECT_EQ(dtg_live_handles(), handles_);
  }
  void connect() {
    dtg_value init{};
    OK(dtg_model_init(model, &init));
    OK(dtg_session_connect(nullptr, "local", DTG_STRLEN, graph, nullptr, &session));
    OK(dtg_run_target(session, init));
  }
  static std::vector<float> numbers(size_t count) {
    std::vector<float> made(count);
    for (size_t i = 0; i < count; ++i) made[i] = std::sin(static_cast<float>(i * 7 + 1));
    return made;
  }
  // Floats of what is fetched, and `x` is fed.
  std::vector<std::vector<float>> run(const std::vector<dtg_value>& fetches, dtg_value target = {}) {
    const std::vector<float> given = numbers(3 * kWidth);
    const int64_t dims[] = {3, kWidth};
    dtg_tensor* fed = nullptr;
    OK(dtg_tensor_create(DTG_F32, dims, 2, const_cast<float*>(given.data()), given.size() * sizeof(float), nullptr, nullptr, &fed));
    const dtg_tensor* tensors[] = {fed};
    std::vector<dtg_tensor*> fetched(fetches.size());
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    args.feeds = &x;
    args.feed_tensors = tensors;
    args.num_feeds = 1;
    args.fetches = fetches.data();
    args.num_fetches = fetches.size();
    args.fetched = fetched.data();
    args.targets = &target;
    args.num_targets = target.id ? 1 : 0;
    OK(dtg_session_run(session, &args));
    std::vector<std::vector<float>> values;
    for (dtg_tensor* each : fetched) {
      size_t bytes = 0;
      const auto* data = static_cast<const float*>(dtg_tensor_data(each, &bytes));
      values.emplace_back(data, data + bytes / sizeof(float));
      dtg_tensor_release(each);
    }
    dtg_tensor_release(fed);
    return values;
  }
  // A loop of `rounds` over (count, values...), whose body is built by fn(inside, body, arguments).
  template <class Fn>
  std::vector<dtg_value> loop(const char* name, int64_t rounds, std::vector<dtg_value> values, Fn&& fn) {
    std::vector<dtg_value> start(1), outs(values.size() + 1);
    OK(dtg_const_of(graph, DTG_I64, nullptr, 0, &rounds, 8, &start[0]));
    start.insert(start.end(), values.begin(), values.end());
    dtg_function* parts[2] = {};
    for (int part = 0; part < 2; ++part) {
      dtg_graph* body = nullptr;
      OK(dtg_function_begin(graph, part == 0 ? "more" : name, DTG_STRLEN, &body));
      std::vector<dtg_value> arguments(start.size());
      for (size_t i = 0; i < start.size(); ++i) OK(dtg_function_add_argument_like(body, start[i], &arguments[i]));
      dtg_value number{};
      const int64_t edge = part == 0 ? 0 : 1;
      OK(dtg_const_of(body, DTG_I64, nullptr, 0, &edge, 8, &number));
      if (part == 0) {
        arguments.resize(1);
        OK(dtg_add2(body, "Greater", arguments[0], number, &arguments[0]));
      } else {
        dtg_model* inside = nullptr;
        OK(dtg_model_inside(model, body, &inside));
        OK(dtg_add2(body, "Sub", arguments[0], number, &arguments[0]));
        fn(inside, body, &arguments[1]);
        dtg_model_release(inside);
      }
      OK(dtg_function_end(body, arguments.data(), arguments.size(), nullptr, 0, &parts[part]));
      dtg_graph_release(body);
    }
    OK(dtg_graph_add_while(graph, start.data(), start.size(), parts[0], parts[1], outs.data()));
    for (dtg_function* each : parts) dtg_function_release(each);
    outs.erase(outs.begin());
    return outs;
  }
  static dtg_value dense(dtg_model* in, dtg_value from, const char* weights_of, const char* name = nullptr) {
    dtg_dense layer = DTG_DENSE_INIT;
    layer.units = kWidth;
    layer.activation = DTG_ACT_TANH;
    layer.weights_of = weights_of;
    layer.name = name;
    OK(dtg_nn_dense(in, from, &layer, &from));
    return from;
  }

  dtg_graph* graph = nullptr;
  dtg_model* model = nullptr;
  dtg_session* session = nullptr;
  dtg_value x{};

 private:
  size_t handles_ = 0;
};

TEST_F(Inside, ALoopUsesALayerThatWasMadeOutside) {
  dtg_value y = dense(model, x, nullptr);
  for (int i = 1; i < 5; ++i) y = dense(model, y, "dense");
  const size_t count = dtg_model_variable_count(model);
  const std::vector<dtg_value> looped =
      loop("round", 5, {x}, [&](dtg_model* inside, dtg_graph*, dtg_value* values) { values[0] = dense(inside, values[0], "dense"); });
  EXPECT_EQ(dtg_model_variable_count(model), count);
  connect();
  const auto found = run({y, looped[0]});
  EXPECT_EQ(found[0], found[1]);
  EXPECT_NE(found[0][0], 0);
}

// Layers of a body's own: their variables are the model's, and train as those of the same layers outside.
TEST_F(Inside, VariablesOfABodyAreOutsideAndLearn) {
  const std::vector<dtg_value> looped =
      loop("cell", 4, {x}, [&](dtg_model* inside, dtg_graph*, dtg_value* values) { values[0] = dense(inside, values[0], nullptr); });
  dtg_variable kernel = DTG_VARIABLE_INIT;
  OK(dtg_model_find_variable(model, "cell/dense/kernel", DTG_STRLEN, &kernel));
  EXPECT_EQ(kernel.trainable, 1);
  dtg_value y = dense(model, x, "cell/dense");
  for (int i = 1; i < 4; ++i) y = dense(model, y, "cell/dense");
  dtg_value losses[2], zero{};
  OK(dtg_add1(graph, "ZerosLike", x, &zero));
  OK(dtg_nn_mean_squared_error(model, zero, looped[0], &losses[0]));
  OK(dtg_nn_mean_squared_error(model, zero, y, &losses[1]));
  dtg_gradient gradients[2];
  for (int i = 0; i < 2; ++i) OK(dtg_graph_add_gradients(graph, &losses[i], 1, &kernel.handle, 1, nullptr, &gradients[i]));
  dtg_training training = DTG_TRAINING_INIT;
  dtg_optimizer sgd = DTG_OPTIMIZER_INIT;
  sgd.rate = 0.5;
  OK(dtg_nn_minimize(model, losses[0], &sgd, &training));
  connect();
  const auto found = run({looped[0], y, gradients[0].dense, gradients[1].dense, losses[0]});
  EXPECT_EQ(found[0], found[1]);
  for (size_t i = 0; i < found[2].size(); ++i) EXPECT_NEAR(found[2][i], found[3][i], 1e-6) << i;
  float norm = 0;
  for (const float each : found[2]) norm += each * each;
  EXPECT_GT(norm, 1e-6);
  for (int i = 0; i < 20; ++i) run({}, training.train);
  EXPECT_LT(run({losses[0]})[0][0], found[4][0] * 0.5f);
}

// A body in a body, names after both, and values from around given to layers.
TEST_F(Inside, BodiesNestAndTakeWhatIsAround) {
  dtg_value yes{};
  const uint8_t one = 1;
  OK(dtg_const_of(graph, DTG_BOOL, nullptr, 0, &one, 1, &yes));
  const std::vector<dtg_value> looped = loop("outer", 2, {x}, [&](dtg_model* inside, dtg_graph* body, dtg_value* values) {
    dtg_function* branches[2] = {};
    for (int i = 0; i < 2; ++i) {
      dtg_graph* inner = nullptr;
      dtg_model* innermost = nullptr;
      OK(dtg_function_begin(body, i == 0 ? "then" : "else", DTG_STRLEN, &inner));
      OK(dtg_model_inside(inside, inner, &innermost));
      // `x` is of the graph around both bodies, the loop's value of the one around this.
      dtg_value from = dense(innermost, i == 0 ? x : values[0], nullptr), sum{};
      OK(dtg_add2(inner, "AddV2", from, values[0], &sum));
      OK(dtg_function_end(inner, &sum, 1, nullptr, 0, &branches[i]));
      dtg_model_release(innermost);
      dtg_graph_release(inner);
    }
    OK(dtg_graph_add_if(body, yes, branches[0], branches[1], &values[0], 1));
    for (dtg_function* each : branches) dtg_function_release(each);
  });
  dtg_variable variable = DTG_VARIABLE_INIT;
  OK(dtg_model_find_variable(model, "outer/else/dense/bias", DTG_STRLEN, &variable));
  const dtg_value once = dense(model, x, "outer/then/dense");
  connect();
  const auto found = run({looped[0], once});
  const std::vector<float> given = numbers(3 * kWidth);
  for (size_t i = 0; i < given.size(); ++i) EXPECT_NEAR(found[0][i], given[i] + 2 * found[1][i], 1e-6) << i;
}

// Step by step with a cache that goes from round to round, as the whole sequence at once with `causal`.
TEST_F(Inside, ALoopDecodesWithACache) {
  constexpr int64_t kPlaces = 6;
  const int64_t dims[] = {1, kPlaces, kWidth}, one[] = {1, 1, kWidth}, order[] = {kPlaces, 1, 1, kWidth}, places[] = {1, kPlaces, 2, 2};
  const std::vector<float> given = numbers(kPlaces * kWidth), zeros(kPlaces * 4);
  dtg_value sequence{}, whole{}, keys{}, position{}, results{};
  OK(dtg_const_of(graph, DTG_F32, dims, 3, given.data(), given.size() * 4, &sequence));
  dtg_attention layer = DTG_ATTENTION_INIT;
  layer.heads = layer.key_width = 2;
  layer.causal = 1;
  OK(dtg_nn_attention(model, sequence, sequence, &layer, &whole));
  layer.weights_of = "multi_head_attention";
  OK(dtg_const_of(graph, DTG_F32, places, 4, zeros.data(), zeros.size() * 4, &keys));
  const int32_t nought = 0;
  OK(dtg_const_of(graph, DTG_I32, nullptr, 0, &nought, 4, &position));
  OK(dtg_const_of(graph, DTG_F32, order, 4, zeros.data(), given.size() * 4, &results));
  const auto looped = loop("place", kPlaces, {keys, keys, position, results}, [&](dtg_model* inside, dtg_graph* body, dtg_value* values) {
    dtg_value shape{}, query{}, rows{}, flat{};
    OK(dtg_const_i64s(body, one, 3, &shape));
    const int64_t rows_of[] = {kPlaces, kWidth};
    OK(dtg_const_i64s(body, rows_of, 2, &rows));
    OK(dtg_add2(body, "Reshape", sequence, rows, &flat));
    const int64_t first = 0;
    dtg_value zero{};
    OK(dtg_const_of(body, DTG_I64, nullptr, 0, &first, 8, &zero));
    const dtg_value picked[] = {flat, values[2], zero};
    OK(dtg_addn(body, "GatherV2", picked, 3, &query));
    OK(dtg_add2(body, "Reshape", query, shape, &query));
    dtg_attention_cache cache = DTG_ATTENTION_CACHE_INIT;
    cache.keys = values[0];
    cache.values = values[1];
    cache.position = values[2];
    OK(dtg_nn_attention_step(inside, query, &layer, &cache, &query));
    values[0] = cache.keys;
    values[1] = cache.values;
    values[2] = cache.position;
    OK(dtg_add2(body, "Reshape", query, shape, &query));
    const int64_t update[] = {1, 1, 1, kWidth};
    OK(dtg_const_i64s(body, update, 4, &shape));
    OK(dtg_add2(body, "Reshape", query, shape, &query));
    // The cache stands one place further than what was written.
    dtg_value less{}, step{}, pair{};
    const int32_t back = 1;
    const int64_t column[] = {1, 1};
    OK(dtg_const_of(body, DTG_I32, nullptr, 0, &back, 4, &step));
    OK(dtg_add2(body, "Sub", values[2], step, &less));
    OK(dtg_const_i64s(body, column, 2, &pair));
    OK(dtg_add2(body, "Reshape", less, pair, &less));
    const dtg_value scattered[] = {values[3], less, query};
    OK(dtg_addn(body, "TensorScatterUpdate", scattered, 3, &values[3]));
  });
  connect();
  const auto found = run({whole, looped[3]});
  ASSERT_EQ(found[0].size(), found[1].size());
  for (size_t i = 0; i < found[0].size(); ++i) EXPECT_NEAR(found[0][i], found[1][i], 1e-6) << i;
}

// As layers outside: another number where the name is taken, and the scopes that are open around. Each can be found by its name.
TEST_F(Inside, FunctionsOfOneNameDoNotShareNames) {
  const auto one = [&] {
    loop("body", 1, {x}, [&](dtg_model* inside, dtg_graph*, dtg_value* values) {
      values[0] = dense(inside, dense(inside, values[0], nullptr), nullptr, "out");
    });
  };
  one();
  one();
  OK(dtg_graph_push_name_scope(graph, "encoder", DTG_STRLEN));
  one();
  OK(dtg_graph_pop_name_scope(graph));
  for (const char* name : {"body/dense", "body/out", "body_1/dense", "body_1/out", "encoder/body/dense", "encoder/body/out"}) {
    for (const char* part : {"/kernel", "/bias"}) {
      dtg_variable variable = DTG_VARIABLE_INIT;
      OK(dtg_model_find_variable(model, (std::string(name) + part).c_str(), DTG_STRLEN, &variable));
    }
    (void)dense(model, x, name);
  }
  EXPECT_EQ(dtg_model_variable_count(model), 12u);
}

// Functions, layers in them and layers outside may have names that come to the same.
TEST_F(Inside, NamesOfBodiesAndOfLayersOutsideDoNotMeet) {
  const auto cell = [&](const char* function, const char* layer) {
    loop(function, 1, {x}, [&](dtg_model* inside, dtg_graph*, dtg_value* values) { values[0] = dense(inside, values[0], nullptr, layer); });
  };
  cell("a", nullptr);
  (void)dense(model, x, nullptr, "a/dense");
  cell("a", "b/dense");
  cell("a/b", nullptr);
  cell("my étape/", "c");
  std::vector<std::string> names;
  for (size_t i = 0; i < dtg_model_variable_count(model); i += 2) {
    dtg_variable variable = DTG_VARIABLE_INIT;
    OK(dtg_model_variable(model, i, &variable));
    names.emplace_back(variable.name, variable.name_len);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"a/dense/kernel", "a/dense_1/kernel", "a_1/b/dense/kernel", "a/b/dense/kernel",
                                             "my___tape/c/kernel"}));
}

// What fails in a body in a body leaves no name in the one around it either.
TEST_F(Inside, WhatFailsInANestedBodyLeavesNoNames) {
  loop("outer", 1, {x}, [&](dtg_model* inside, dtg_graph* body, dtg_value* values) {
    for (const int64_t units : {int64_t{-1}, kWidth}) {
      dtg_graph* inner = nullptr;
      dtg_model* innermost = nullptr;
      dtg_value made{};
      dtg_dense layer = DTG_DENSE_INIT;
      layer.units = units;
      OK(dtg_function_begin(body, "then", DTG_STRLEN, &inner));
      OK(dtg_model_inside(inside, inner, &innermost));
      dtg_batch_norm norm = DTG_BATCH_NORM_INIT;
      if (units < 0) refused(dtg_nn_batch_norm(innermost, values[0], &norm, &made), DTG_UNIMPLEMENTED, "dtg_nn_batch_norm");
      else OK(dtg_nn_dense(innermost, values[0], &layer, &made));
      dtg_model_release(innermost);
      dtg_graph_release(inner);
    }
  });
  dtg_variable variable = DTG_VARIABLE_INIT;
  OK(dtg_model_find_variable(model, "outer/then/dense/kernel", DTG_STRLEN, &variable));
}

// Tables stand anywhere and are read by the body; ids may be from around; a frozen export has them.
TEST_F(Inside, TablesAreLookedUpInBodies) {
  const int64_t three[] = {3};
  const int32_t numbers_of[] = {2, 0, 1};
  dtg_value ids{}, outside{};
  OK(dtg_const_of(graph, DTG_I32, three, 1, numbers_of, sizeof numbers_of, &ids));
  dtg_embedding layer = DTG_EMBEDDING_INIT;
  layer.rows = 3;
  layer.width = kWidth;
  OK(dtg_graph_push_device(graph, "/device:EMU:0", DTG_STRLEN));
  OK(dtg_nn_embedding(model, ids, &layer, &outside));
  OK(dtg_graph_pop_device(graph));
  layer.name = "cut";
  dtg_value cut{};
  dtg_partitioner two = DTG_PARTITIONER_INIT;
  two.num_shards = 2;
  OK(dtg_nn_sharded_embedding(model, ids, &layer, &two, &cut));
  layer.name = nullptr;
  const std::vector<dtg_value> looped = loop("round", 2, {x}, [&](dtg_model* inside, dtg_graph* body, dtg_value* values) {
    dtg_value rows{}, again{};
    layer.weights_of = "embedding";
    OK(dtg_nn_embedding(inside, ids, &layer, &rows));
    layer.weights_of = "cut";
    OK(dtg_nn_sharded_embedding(inside, ids, &layer, &two, &again));
    OK(dtg_add2(body, "AddV2", values[0], rows, &values[0]));
    OK(dtg_add2(body, "AddV2", values[0], again, &values[0]));
    dtg_optimizer sgd = DTG_OPTIMIZER_INIT;
    refused(dtg_nn_apply_gradients(inside, &sgd, nullptr, nullptr, 0, &again), DTG_FAILED_PRECONDITION, "dtg_nn_apply_gradients");
  });
  dtg_value init{};
  dtg_session_options emulated = DTG_SESSION_OPTIONS_INIT;
  emulated.emu_devices = 1;
  OK(dtg_model_init(model, &init));
  OK(dtg_session_connect(nullptr, "local", DTG_STRLEN, graph, &emulated, &session));
  OK(dtg_run_target(session, init));
  const auto found = run({outside, cut, looped[0]});
  const std::vector<float> given = numbers(3 * kWidth);
  for (size_t i = 0; i < given.size(); ++i) EXPECT_NEAR(found[2][i], given[i] + 2 * (found[0][i] + found[1][i]), 1e-6) << i;
}

TEST_F(Inside, BatchNormalizationOfABodyDoesNotTrain) {
  dtg_batch_norm norm = DTG_BATCH_NORM_INIT;
  dtg_value never{}, y{};
  const uint8_t no = 0;
  OK(dtg_placeholder(graph, "training", DTG_BOOL, nullptr, 0, &norm.training));
  OK(dtg_nn_batch_norm(model, x, &norm, &y));
  OK(dtg_const_of(graph, DTG_BOOL, nullptr, 0, &no, 1, &never));
  norm.weights_of = "batch_normalization";
  const size_t count = dtg_model_variable_count(model);
  const std::vector<dtg_value> looped = loop("round", 1, {x}, [&](dtg_model* inside, dtg_graph*, dtg_value* values) {
    dtg_value made{};
    refused(dtg_nn_batch_norm(inside, values[0], &norm, &made), DTG_UNIMPLEMENTED, "dtg_nn_batch_norm");
    norm.weights_of = nullptr;  // nor with variables of its own, of which none is left
    refused(dtg_nn_batch_norm(inside, values[0], &norm, &made), DTG_UNIMPLEMENTED, "dtg_nn_batch_norm");
    EXPECT_EQ(dtg_model_variable_count(model), count);
    norm.weights_of = "batch_normalization";
    norm.training = never;
    OK(dtg_nn_batch_norm(inside, values[0], &norm, &values[0]));
  });
  connect();
  const std::vector<float> given = numbers(3 * kWidth), found = run({looped[0]})[0];
  for (size_t i = 0; i < given.size(); ++i) EXPECT_NEAR(found[i], given[i] / std::sqrt(1.001f), 1e-6) << i;
}

TEST_F(Inside, RefusesWhatABodyCannotHave) {
  dtg_graph *body = nullptr, *strange = nullptr;
  dtg_model *inside = nullptr, *other = nullptr;
  dtg_function* function = nullptr;
  dtg_value argument{}, y{};
  refused(dtg_model_inside(model, graph, &inside), DTG_INVALID_ARGUMENT, "dtg_model_inside");
  refused(dtg_model_inside(model, nullptr, &inside), DTG_INVALID_ARGUMENT, "dtg_model_inside");
  refused(dtg_model_inside(nullptr, graph, &inside), DTG_INVALID_ARGUMENT, "dtg_model_inside");
  OK(dtg_graph_create(nullptr, &strange));
  OK(dtg_function_begin(strange, "strange", DTG_STRLEN, &body));
  refused(dtg_model_inside(model, body, &inside), DTG_INVALID_ARGUMENT, "dtg_model_inside");
  dtg_graph_release(body);
  dtg_graph_release(strange);
  OK(dtg_function_begin(graph, "body", DTG_STRLEN, &body));
  refused(dtg_model_inside(model, body, nullptr), DTG_INVALID_ARGUMENT, "dtg_model_inside");
  OK(dtg_function_add_argument_like(body, x, &argument));
  OK(dtg_model_inside(model, body, &inside));
  y = dense(inside, argument, nullptr);
  EXPECT_EQ(dtg_model_variable_count(inside), 2u);
  dtg_variable first = DTG_VARIABLE_INIT;
  OK(dtg_model_variable(inside, 1, &first));
  EXPECT_EQ(std::string(first.name, first.name_len), "body/dense/bias");
  const dtg_checkpoint_options folder = DTG_CHECKPOINT_OPTIONS_INIT;
  dtg_checkpoint* checkpoint = nullptr;
  OK(dtg_session_connect(nullptr, "local", DTG_STRLEN, graph, nullptr, &session));
  refused(dtg_checkpoint_open(inside, session, &folder, &checkpoint), DTG_FAILED_PRECONDITION, "dtg_checkpoint_open");
  dtg_session* of_body = nullptr;
  refused(dtg_session_connect(nullptr, "local", DTG_STRLEN, body, nullptr, &of_body), DTG_INVALID_ARGUMENT, "dtg_session_connect");
  dtg_training training = DTG_TRAINING_INIT;
  refused(dtg_nn_minimize(inside, y, nullptr, &training), DTG_FAILED_PRECONDITION, "dtg_nn_minimize");
  refused(dtg_model_init(inside, &y), DTG_FAILED_PRECONDITION, "dtg_model_init");
  refused(dtg_model_inside(inside, body, &other), DTG_INVALID_ARGUMENT, "dtg_model_inside");
  // A layer that fails leaves no name behind.
  dtg_dense layer = DTG_DENSE_INIT;
  layer.units = -1;
  refused(dtg_nn_dense(inside, argument, &layer, &y), DTG_INVALID_ARGUMENT, "dtg_nn_dense");
  y = dense(inside, argument, nullptr);
  dtg_variable second = DTG_VARIABLE_INIT;
  OK(dtg_model_find_variable(inside, "body/dense_1/kernel", DTG_STRLEN, &second));
  EXPECT_EQ(std::string(second.name, second.name_len), "body/dense_1/kernel");
  OK(dtg_function_end(body, &y, 1, nullptr, 0, &function));
  refused(dtg_nn_dense(inside, argument, &layer, &y), DTG_FAILED_PRECONDITION, "dtg_nn_dense");
  refused(dtg_model_inside(model, body, &other), DTG_FAILED_PRECONDITION, "dtg_model_inside");
  dtg_function_release(function);
  dtg_model_release(inside);
  dtg_graph_release(body);
}

}  // namespace
}  // namespace outside
