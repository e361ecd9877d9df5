// Models, data sets, weight files and event files through the public headers only: what a program does with
// them, and what they answer when it does it wrong.
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace {

#define OK(call)                                                      \
  do {                                                                \
    dtg_error* error_ = (call);                                       \
    ASSERT_EQ(error_, nullptr) << dtg_error_message(error_, nullptr); \
  } while (0)

// Code of a call that must fail, with a message.
dtg_code code_of(dtg_error* error) {
  const dtg_code code = dtg_error_code(error);
  EXPECT_TRUE(error == nullptr || std::string(dtg_error_message(error, nullptr)).size() > 8);
  dtg_error_release(error);
  return code;
}

std::string temporary(const char* name) {
  const char* folder = std::getenv("TMPDIR");
  return std::string(folder ? folder : "/tmp") + "/dtg-abi-" + std::to_string(static_cast<long>(getpid())) + "-" + name;
}

dtg_tensor* tensor_of(const std::vector<float>& values, std::vector<int64_t> dims) {
  dtg_tensor* tensor = nullptr;
  EXPECT_EQ(
      dtg_tensor_create(DTG_F32, dims.data(), dims.size(), const_cast<float*>(values.data()), values.size() * 4, nullptr, nullptr, &tensor),
      nullptr);
  return tensor;
}

std::vector<float> floats_of(const dtg_tensor* tensor) {
  const auto* data = static_cast<const float*>(dtg_tensor_data(tensor, nullptr));
  return {data, data + dtg_tensor_count(tensor)};
}

// Everything a test may open, released at its end; no test may leave a handle behind.
class Training : public testing::Test {
 protected:
  void SetUp() override {
    handles_ = dtg_live_handles();
    OK(dtg_graph_create(nullptr, &graph));
    OK(dtg_model_create(graph, 3, &model));
  }
  void TearDown() override {
    dtg_session_release(session);
    dtg_model_release(model);
    dtg_graph_release(graph);
    EXPECT_EQ(dtg_live_handles(), handles_);
  }
  // A dense layer on x[?, 2] with the optimizer's variables.
  void make_layer() {
    const int64_t dims[] = {-1, 2};
    OK(dtg_placeholder(graph, "x", DTG_F32, dims, 2, &x));
    dtg_dense layer = DTG_DENSE_INIT;
    layer.units = 3;
    OK(dtg_nn_dense(model, x, &layer, &y));
    dtg_value zero, loss;
    OK(dtg_add1(graph, "ZerosLike", y, &zero));
    OK(dtg_nn_mean_squared_error(model, zero, y, &loss));
    dtg_optimizer optimizer = DTG_OPTIMIZER_INIT;
    optimizer.kind = DTG_OPT_MOMENTUM;
    optimizer.momentum = 0.5;
    OK(dtg_nn_minimize(model, loss, &optimizer, &training));
  }
  void connect() {
    dtg_value init;
    OK(dtg_model_init(model, &init));
    OK(dtg_session_connect(nullptr, "local", DTG_STRLEN, graph, nullptr, &session));
    OK(dtg_run_target(session, init));
  }
  std::vector<float> read(const char* name) {
    dtg_variable variable = DTG_VARIABLE_INIT;
    EXPECT_EQ(dtg_model_find_variable(model, name, DTG_STRLEN, &variable), nullptr) << name;
    dtg_tensor* tensor = nullptr;
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    args.fetches = &variable.read;
    args.fetched = &tensor;
    args.num_fetches = 1;
    EXPECT_EQ(dtg_session_run(session, &args), nullptr);
    const auto values = floats_of(tensor);
    dtg_tensor_release(tensor);
    return values;
  }

  dtg_graph* graph = nullptr;
  dtg_model* model = nullptr;
  dtg_session* session = nullptr;
  dtg_value x = {0}, y = {0};
  dtg_training training = DTG_TRAINING_INIT;

 private:
  size_t handles_ = 0;
};

TEST_F(Training, ListsItsVariables) {
  make_layer();
  std::vector<std::string> names;
  for (size_t i = 0; i < dtg_model_variable_count(model); ++i) {
    dtg_variable variable = DTG_VARIABLE_INIT;
    OK(dtg_model_variable(model, i, &variable));
    names.emplace_back(variable.name, variable.name_len);
    if (i == 0) {
      EXPECT_EQ(variable.rank, 2u);
      EXPECT_EQ(variable.dims[0], 2);
      EXPECT_EQ(variable.dims[1], 3);
      EXPECT_EQ(variable.dtype, DTG_F32);
      EXPECT_EQ(variable.trainable, 1);
    }
  }
  EXPECT_EQ(names, (std::vector<std::string>{"dense/kernel", "dense/bias", "global_step", "dense/kernel/Momentum", "dense/bias/Momentum"}));
  dtg_variable variable = DTG_VARIABLE_INIT;
  EXPECT_EQ(code_of(dtg_model_variable(model, 99, &variable)), DTG_OUT_OF_RANGE);
  EXPECT_EQ(code_of(dtg_model_find_variable(model, "nobody", DTG_STRLEN, &variable)), DTG_NOT_FOUND);
}

TEST_F(Training, SavesAndRestores) {
  make_layer();
  connect();
  const std::string path = temporary("model.safetensors");
  const auto kernel = read("dense/kernel");
  OK(dtg_model_save(model, session, path.c_str(), DTG_STRLEN));

  dtg_tensor* batch = tensor_of({1, 2, 3, 4}, {2, 2});
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.feeds = &x;
  args.feed_tensors = &batch;
  args.num_feeds = 1;
  args.targets = &training.train;
  args.num_targets = 1;
  OK(dtg_session_run(session, &args));
  dtg_tensor_release(batch);
  EXPECT_NE(read("dense/kernel"), kernel);
  OK(dtg_model_restore(model, session, path.c_str(), DTG_STRLEN));
  EXPECT_EQ(read("dense/kernel"), kernel);
  EXPECT_EQ(read("dense/kernel/Momentum"), std::vector<float>(6, 0.0f));

  std::ofstream(path, std::ios::binary | std::ios::in).seekp(200).write("damage", 6);
  EXPECT_EQ(code_of(dtg_model_restore(model, session, path.c_str(), DTG_STRLEN)), DTG_DATA_LOSS);
  std::remove(path.c_str());
  EXPECT_EQ(code_of(dtg_model_restore(model, session, path.c_str(), DTG_STRLEN)), DTG_NOT_FOUND);
  EXPECT_EQ(read("dense/kernel"), kernel);
}

TEST_F(Training, AppliesGradientsOfOnesOwn) {
  dtg_variable w = DTG_VARIABLE_INIT;
  OK(dtg_variable_f32(model, "w", 2.0, &w));
  dtg_value loss, train;
  OK(dtg_add2(graph, "Mul", w.read, w.read, &loss));
  dtg_gradient gradient;
  OK(dtg_graph_add_gradients(graph, &loss, 1, &w.handle, 1, nullptr, &gradient));
  dtg_optimizer optimizer = DTG_OPTIMIZER_INIT;
  optimizer.rate = 0.25;
  OK(dtg_nn_apply_gradients(model, &optimizer, &w.handle, &gradient, 1, &train));
  connect();
  OK(dtg_run_target(session, train));
  EXPECT_EQ(read("w"), std::vector<float>{1.0f});
  EXPECT_EQ(code_of(dtg_nn_apply_gradients(model, &optimizer, &w.read, &gradient, 1, &train)), DTG_INVALID_ARGUMENT);
}

TEST_F(Training, RefusesMisuse) {
  const int64_t dims[] = {-1, 2};
  dtg_value out;
  OK(dtg_placeholder(graph, "x", DTG_F32, dims, 2, &x));
  dtg_dense layer = DTG_DENSE_INIT;
  layer.units = 3;
  EXPECT_EQ(code_of(dtg_nn_dense(nullptr, x, &layer, &out)), DTG_INVALID_ARGUMENT);
  EXPECT_EQ(code_of(dtg_nn_dense(model, x, nullptr, &out)), DTG_INVALID_ARGUMENT);
  EXPECT_EQ(code_of(dtg_nn_dense(model, x, &layer, nullptr)), DTG_INVALID_ARGUMENT);
  EXPECT_EQ(code_of(dtg_nn_dense(reinterpret_cast<dtg_model*>(graph), x, &layer, &out)), DTG_INVALID_ARGUMENT);
  EXPECT_EQ(code_of(dtg_nn_dense(model, {12345}, &layer, &out)), DTG_INVALID_ARGUMENT);
  layer.struct_size = 8;
  EXPECT_EQ(code_of(dtg_nn_dense(model, x, &layer, &out)), DTG_INVALID_ARGUMENT);
  layer = DTG_DENSE_INIT;
  layer.units = 3;
  layer.activation = 1000;
  EXPECT_EQ(code_of(dtg_nn_dense(model, x, &layer, &out)), DTG_INVALID_ARGUMENT);
  layer.activation = DTG_ACT_NONE;
  layer.kernel.kind = -4;
  EXPECT_EQ(code_of(dtg_nn_dense(model, x, &layer, &out)), DTG_INVALID_ARGUMENT);
  EXPECT_EQ(dtg_model_variable_count(model), 0u);
  // The kernel could be made, the stride is refused after it.
  const int64_t image[] = {-1, 8, 8, 1};
  OK(dtg_placeholder(graph, "image", DTG_F32, image, 4, &y));
  dtg_conv2d conv = DTG_CONV2D_INIT;
  conv.filters = 2;
  conv.stride_height = -1;
  EXPECT_EQ(code_of(dtg_nn_conv2d(model, y, &conv, &out)), DTG_INVALID_ARGUMENT);
  EXPECT_EQ(dtg_model_variable_count(model), 0u);
  EXPECT_EQ(code_of(dtg_nn_minimize(model, x, nullptr, nullptr)), DTG_INVALID_ARGUMENT);
  EXPECT_EQ(code_of(dtg_model_save(model, nullptr, "x", DTG_STRLEN)), DTG_INVALID_ARGUMENT);
  EXPECT_EQ(dtg_model_variable_count(nullptr), 0u);
  dtg_model_release(nullptr);
}

TEST(Datasets, FromTensorsToBatches) {
  const size_t handles = dtg_live_handles();
  dtg_tensor* columns[2] = {tensor_of({0, 10, 20, 30, 40}, {5}), tensor_of({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {5, 2})};
  dtg_dataset* data = nullptr;
  OK(dtg_dataset_tensors(nullptr, columns, 2, &data));
  dtg_tensor_release(columns[0]);
  dtg_tensor_release(columns[1]);
  OK(dtg_dataset_scale(data, 0, 10));
  OK(dtg_dataset_batch(data, 2, 0));
  OK(dtg_dataset_prefetch(data, 2));
  EXPECT_EQ(dtg_dataset_component_count(data), 2u);
  dtg_dtype dtype = 0;
  int64_t dims[8];
  int32_t rank = 0, more = 0;
  OK(dtg_dataset_component(data, 1, &dtype, dims, 8, &rank));
  EXPECT_EQ(dtype, DTG_F32);
  EXPECT_EQ(rank, 2);
  EXPECT_EQ(dims[0], -1);
  EXPECT_EQ(dims[1], 2);
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<float> seen;
    while (true) {
      dtg_tensor* batch[2] = {nullptr, nullptr};
      OK(dtg_dataset_next(data, batch, 2, &more));
      if (!more) break;
      const auto values = floats_of(batch[0]);
      seen.insert(seen.end(), values.begin(), values.end());
      dtg_tensor_release(batch[0]);
      dtg_tensor_release(batch[1]);
    }
    EXPECT_EQ(seen, (std::vector<float>{0, 1, 2, 3, 4}));
    OK(dtg_dataset_restart(data));
  }
  dtg_tensor* one[1] = {nullptr};
  EXPECT_EQ(code_of(dtg_dataset_next(data, one, 1, &more)), DTG_INVALID_ARGUMENT);
  EXPECT_EQ(code_of(dtg_dataset_scale(data, 7, 1)), DTG_OUT_OF_RANGE);
  dtg_dataset_release(data);
  EXPECT_EQ(dtg_live_handles(), handles);
}

TEST(Datasets, ShuffleShardAndRepeatFollowTheSeed) {
  std::vector<int64_t> orders[2], shard;
  for (auto& order : orders) {
    dtg_dataset* data = nullptr;
    OK(dtg_dataset_range(nullptr, 0, 20, 1, &data));
    OK(dtg_dataset_shuffle(data, 0, 42));
    OK(dtg_dataset_shard(data, 2, 1));
    OK(dtg_dataset_repeat(data, 2));
    EXPECT_EQ(dtg_dataset_cardinality(data), 20);
    int32_t more = 0;
    dtg_tensor* value = nullptr;
    while (true) {
      OK(dtg_dataset_next(data, &value, 1, &more));
      if (!more) break;
      order.push_back(*static_cast<const int64_t*>(dtg_tensor_data(value, nullptr)));
      dtg_tensor_release(value);
    }
    dtg_dataset_release(data);
  }
  EXPECT_EQ(orders[0].size(), 20u);
  EXPECT_EQ(orders[0], orders[1]);
  EXPECT_NE(std::vector<int64_t>(orders[0].begin(), orders[0].begin() + 10), std::vector<int64_t>(orders[0].begin() + 10, orders[0].end()));
}

TEST(Datasets, AFailedTransformBreaksThem) {
  dtg_dataset* data = nullptr;
  OK(dtg_dataset_range(nullptr, 0, 3, 1, &data));
  EXPECT_EQ(code_of(dtg_dataset_batch(data, 0, 0)), DTG_INVALID_ARGUMENT);
  int32_t more = 0;
  dtg_tensor* value = nullptr;
  EXPECT_EQ(code_of(dtg_dataset_next(data, &value, 1, &more)), DTG_INVALID_ARGUMENT);
  EXPECT_EQ(dtg_dataset_cardinality(data), -2);
  EXPECT_EQ(dtg_dataset_component_count(data), 0u);
  dtg_dataset_release(data);
  const char* paths[] = {"/nowhere/images.gz"};
  EXPECT_EQ(code_of(dtg_dataset_idx(nullptr, paths, 1, &data)), DTG_NOT_FOUND);
  EXPECT_EQ(code_of(dtg_dataset_csv(nullptr, "/nowhere/table.csv", DTG_STRLEN, nullptr, &data)), DTG_NOT_FOUND);
  EXPECT_EQ(code_of(dtg_dataset_next(nullptr, &value, 1, &more)), DTG_INVALID_ARGUMENT);
}

TEST(Weights, RoundTrip) {
  const size_t handles = dtg_live_handles();
  const std::string path = temporary("weights.safetensors");
  dtg_weights *out = nullptr, *in = nullptr;
  OK(dtg_weights_create(&out));
  dtg_tensor *a = tensor_of({1, 2, 3, 4}, {2, 2}), *b = tensor_of({5}, {});
  OK(dtg_weights_set(out, "b", DTG_STRLEN, b));
  OK(dtg_weights_set(out, "a", DTG_STRLEN, b));
  OK(dtg_weights_set(out, "a", DTG_STRLEN, a));
  OK(dtg_weights_set_metadata(out, "made by", DTG_STRLEN, "a test", DTG_STRLEN));
  OK(dtg_weights_save(out, path.c_str(), DTG_STRLEN));
  OK(dtg_weights_load(nullptr, path.c_str(), DTG_STRLEN, &in));
  EXPECT_EQ(dtg_weights_count(in), 2u);
  EXPECT_STREQ(dtg_weights_name(in, 0), "a");
  EXPECT_EQ(dtg_weights_name(in, 2), nullptr);
  EXPECT_STREQ(dtg_weights_metadata(in, "made by", DTG_STRLEN), "a test");
  EXPECT_EQ(dtg_weights_metadata(in, "other", DTG_STRLEN), nullptr);
  dtg_tensor* found = nullptr;
  OK(dtg_weights_get(in, "a", DTG_STRLEN, &found));
  EXPECT_EQ(floats_of(found), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(dtg_tensor_rank(found), 2u);
  EXPECT_EQ(code_of(dtg_weights_get(in, "c", DTG_STRLEN, &a)), DTG_NOT_FOUND);
  for (dtg_tensor* tensor : {a, b, found}) dtg_tensor_release(tensor);
  dtg_weights_release(out);
  dtg_weights_release(in);
  std::remove(path.c_str());
  EXPECT_EQ(code_of(dtg_weights_load(nullptr, path.c_str(), DTG_STRLEN, &in)), DTG_NOT_FOUND);
  EXPECT_EQ(dtg_live_handles(), handles);
}

TEST(Events, AreWritten) {
  const std::string folder = temporary("events");
  dtg_event_writer* writer = nullptr;
  OK(dtg_event_writer_open(folder.c_str(), DTG_STRLEN, nullptr, &writer));
  OK(dtg_event_writer_scalar(writer, "loss", DTG_STRLEN, 1, 0.5));
  OK(dtg_event_writer_text(writer, "note", DTG_STRLEN, 1, "**hello**", DTG_STRLEN));
  dtg_tensor* values = tensor_of({1, 2, 3}, {3});
  OK(dtg_event_writer_histogram(writer, "weights", DTG_STRLEN, 1, values));
  dtg_tensor_release(values);
  EXPECT_EQ(code_of(dtg_event_writer_scalar(writer, "", 0, 1, 0.5)), DTG_INVALID_ARGUMENT);
  EXPECT_EQ(code_of(dtg_event_writer_histogram(writer, "weights", DTG_STRLEN, 1, nullptr)), DTG_INVALID_ARGUMENT);
  OK(dtg_event_writer_flush(writer));
  OK(dtg_event_writer_close(writer));
  EXPECT_NE(code_of(dtg_event_writer_scalar(writer, "loss", DTG_STRLEN, 2, 0.5)), DTG_OK);
  dtg_event_writer_release(writer);
  EXPECT_EQ(std::system(("rm -r '" + folder + "'").c_str()), 0);
}

}  // namespace
