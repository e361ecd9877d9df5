// dtg/layers.h through the C ABI: a small network of its layers learns, with moving statistics that a step moves and a run without training
// does not; weights that two calls share; what does not fit is refused by name.
#include <cmath>

#include "world.h"

namespace outside {
namespace {

// A model of its own with a local session.
struct Net {
  explicit Net(dtg_runtime* runtime) {
    OK(dtg_graph_create(runtime, &graph));
    OK(dtg_model_create(graph, 3, &model));
    OK(dtg_session_connect(runtime, "local", DTG_STRLEN, graph, nullptr, &session));
  }
  ~Net() {
    dtg_session_release(session);
    dtg_model_release(model);
    dtg_graph_release(graph);
  }
  dtg_graph* graph = nullptr;
  dtg_model* model = nullptr;
  dtg_session* session = nullptr;
};

class Layers : public World {
 protected:
  // A value in the graph of the handles.
  dtg_value input(const char* name, dtg_dtype dtype, std::vector<int64_t> dims) {
    dtg_value made{};
    OK(dtg_placeholder(h.graph, name, dtype, dims.data(), dims.size(), &made));
    return made;
  }
  // Floats of one fetch, or a target; what is 0 is not asked for.
  static std::vector<float> run(dtg_session* in, std::vector<dtg_value> feeds, std::vector<const dtg_tensor*> tensors, dtg_value fetch,
                                dtg_value target) {
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    dtg_tensor* fetched = nullptr;
    args.feeds = feeds.data();
    args.feed_tensors = tensors.data();
    args.num_feeds = feeds.size();
    args.fetches = &fetch;
    args.num_fetches = fetch.id ? 1 : 0;
    args.targets = &target;
    args.num_targets = target.id ? 1 : 0;
    args.fetched = &fetched;
    OK(dtg_session_run(in, &args));
    std::vector<float> values;
    size_t bytes = 0;
    if (fetched) {
      const auto* data = static_cast<const float*>(dtg_tensor_data(fetched, &bytes));
      values.assign(data, data + bytes / sizeof(float));
    }
    dtg_tensor_release(fetched);
    return values;
  }
};

TEST_F(Layers, ANetworkOfThemLearns) {
  const Net net(h.runtime);
  dtg_graph* const graph = net.graph;
  dtg_model* const model = net.model;
  dtg_session* const session = net.session;
  dtg_value x{}, labels{}, training{}, y{}, loss{}, init{};
  const int64_t shape[] = {-1, 6, 4}, rows[] = {-1};
  OK(dtg_placeholder(graph, "x", DTG_F32, shape, 3, &x));
  OK(dtg_placeholder(graph, "labels", DTG_I64, rows, 1, &labels));
  OK(dtg_placeholder(graph, "training", DTG_BOOL, nullptr, 0, &training));
  dtg_conv conv = DTG_CONV_INIT;
  conv.filters = 6;
  conv.causal = 1;
  OK(dtg_nn_conv1d(model, x, &conv, &y));
  dtg_batch_norm norm = DTG_BATCH_NORM_INIT;
  norm.training = training;
  norm.momentum = 0.5;
  OK(dtg_nn_batch_norm(model, y, &norm, &y));
  dtg_recurrent gru = DTG_RECURRENT_INIT;
  gru.kind = DTG_GRU;
  gru.direction = DTG_BOTH;
  gru.units = 5;
  dtg_recurrent_result steps = DTG_RECURRENT_RESULT_INIT;
  OK(dtg_nn_recurrent(model, y, &gru, &steps));
  EXPECT_EQ(steps.cell.id, 0u);
  dtg_attention heads = DTG_ATTENTION_INIT;
  heads.heads = heads.key_width = 2;
  OK(dtg_nn_attention(model, steps.outputs, steps.outputs, &heads, &y));
  OK(dtg_nn_layer_norm(model, y, nullptr, &y));
  OK(dtg_nn_global_avg_pool(model, y, 0, &y));
  dtg_dense dense = DTG_DENSE_INIT;
  dense.units = 2;
  OK(dtg_nn_dense(model, y, &dense, &y));
  OK(dtg_nn_sparse_softmax_cross_entropy(model, labels, y, &loss));
  dtg_optimizer adam = DTG_OPTIMIZER_INIT;
  adam.kind = DTG_OPT_ADAM;
  adam.rate = 0.02;
  dtg_training made = DTG_TRAINING_INIT;
  OK(dtg_nn_minimize(model, loss, &adam, &made));
  OK(dtg_model_init(model, &init));
  dtg_variable mean = DTG_VARIABLE_INIT;
  OK(dtg_model_find_variable(model, "batch_normalization/moving_mean", DTG_STRLEN, &mean));
  EXPECT_EQ(mean.trainable, 0);

  // Class 1: the last step is greater than the first.
  std::vector<float> numbers(16 * 6 * 4);
  std::vector<int64_t> classes(16);
  uint32_t state = 1;
  for (float& each : numbers) {
    state = state * 1664525 + 1013904223;
    each = static_cast<float>(state >> 8) / static_cast<float>(1 << 24) - 0.5f;
  }
  for (size_t i = 0; i < 16; ++i) classes[i] = numbers[i * 24 + 20] > numbers[i * 24];
  const int64_t dims[] = {16, 6, 4}, count[] = {16};
  dtg_tensor *given = nullptr, *wanted = nullptr, *on = nullptr, *off = nullptr;
  uint8_t yes = 1, no = 0;
  OK(dtg_tensor_create(DTG_F32, dims, 3, numbers.data(), numbers.size() * 4, nullptr, nullptr, &given));
  OK(dtg_tensor_create(DTG_I64, count, 1, classes.data(), classes.size() * 8, nullptr, nullptr, &wanted));
  OK(dtg_tensor_create(DTG_BOOL, nullptr, 0, &yes, 1, nullptr, nullptr, &on));
  OK(dtg_tensor_create(DTG_BOOL, nullptr, 0, &no, 1, nullptr, nullptr, &off));
  const auto run = [&](const dtg_tensor* mode, dtg_value fetch, dtg_value target) {
    return Layers::run(session, {x, labels, training}, {given, wanted, mode}, fetch, target);
  };
  run(on, {}, init);
  EXPECT_EQ(run(off, mean.read, {}), std::vector<float>(6, 0));
  const float first = run(on, loss, {})[0];
  EXPECT_EQ(run(off, mean.read, {}), std::vector<float>(6, 0)) << "a run that is no step";
  run(on, {}, made.train);
  const std::vector<float> moved = run(off, mean.read, {});
  EXPECT_NE(moved, std::vector<float>(6, 0));
  run(off, {}, made.train);
  EXPECT_EQ(run(off, mean.read, {}), moved) << "a step that is no training";
  for (int i = 0; i < 60; ++i) run(on, {}, made.train);
  const float last = run(off, loss, {})[0];
  EXPECT_TRUE(std::isfinite(last));
  EXPECT_LT(last, first / 2);
  for (dtg_tensor* each : {given, wanted, on, off}) dtg_tensor_release(each);
}

// Conditions and loops go into the file too, with variables or frozen; the switch of the normalization is one of the inputs.
TEST_F(Layers, AreServedFromAFile) {
  const Net net(h.runtime);
  dtg_graph* const graph = net.graph;
  dtg_model* const model = net.model;
  dtg_session* const session = net.session;
  dtg_value x{}, training{}, y{}, init{};
  const int64_t shape[] = {-1, 3, 2};
  OK(dtg_placeholder(graph, "x", DTG_F32, shape, 3, &x));
  OK(dtg_placeholder(graph, "training", DTG_BOOL, nullptr, 0, &training));
  dtg_batch_norm norm = DTG_BATCH_NORM_INIT;
  norm.training = training;
  OK(dtg_nn_batch_norm(model, x, &norm, &y));
  dtg_recurrent gru = DTG_RECURRENT_INIT;
  gru.kind = DTG_GRU;
  gru.units = 2;
  dtg_recurrent_result steps = DTG_RECURRENT_RESULT_INIT;
  OK(dtg_nn_recurrent(model, y, &gru, &steps));
  OK(dtg_model_init(model, &init));
  std::vector<float> numbers = {1, -2, 3, 0.5f, -1, 2, 0, 1, 4, -3, 2, 1};
  const int64_t dims[] = {2, 3, 2};
  uint8_t no = 0;
  dtg_tensor *given = nullptr, *off = nullptr;
  OK(dtg_tensor_create(DTG_F32, dims, 3, numbers.data(), numbers.size() * 4, nullptr, nullptr, &given));
  OK(dtg_tensor_create(DTG_BOOL, nullptr, 0, &no, 1, nullptr, nullptr, &off));
  run(session, {x, training}, {given, off}, {}, init);
  const std::vector<float> wanted = run(session, {x, training}, {given, off}, steps.hidden, {});
  ASSERT_EQ(wanted.size(), 4u);
  for (const int32_t freeze : {0, 1}) {
    SCOPED_TRACE(freeze ? "frozen" : "with variables");
    const std::string file = folder("served");
    const char* const in_names[] = {"x", "training"};
    const char* const out_names[] = {"state"};
    const dtg_value inputs[] = {x, training};
    dtg_export what = DTG_EXPORT_INIT;
    what.input_names = in_names;
    what.inputs = inputs;
    what.num_inputs = 2;
    what.output_names = out_names;
    what.outputs = &steps.hidden;
    what.num_outputs = 1;
    what.freeze = freeze;
    OK(dtg_model_export(model, session, &what, file.c_str(), DTG_STRLEN));
    dtg_session* served = nullptr;
    dtg_model* loaded = nullptr;
    OK(dtg_model_load(h.runtime, file.c_str(), DTG_STRLEN, &served, &loaded));
    if (!loaded) continue;
    dtg_value a{}, b{}, out{};
    OK(dtg_model_endpoint(loaded, "x", DTG_STRLEN, &a));
    OK(dtg_model_endpoint(loaded, "training", DTG_STRLEN, &b));
    OK(dtg_model_endpoint(loaded, "state", DTG_STRLEN, &out));
    EXPECT_EQ(run(served, {a, b}, {given, off}, out, {}), wanted);
    dtg_session_release(served);
    dtg_model_release(loaded);
    unlink(file.c_str());
  }
  for (dtg_tensor* each : {given, off}) dtg_tensor_release(each);
}

TEST_F(Layers, WeightsAreSharedByName) {
  const dtg_value x = input("sequence", DTG_F32, {2, 3, 4});
  const size_t before = dtg_model_variable_count(h.model);
  dtg_recurrent both = DTG_RECURRENT_INIT;
  both.units = 3;
  both.direction = DTG_BOTH;
  both.name = "pair";
  dtg_recurrent_result out = DTG_RECURRENT_RESULT_INIT;
  OK(dtg_nn_recurrent(h.model, x, &both, &out));
  EXPECT_EQ(dtg_model_variable_count(h.model), before + 6);
  both.weights_of = "pair";
  OK(dtg_nn_recurrent(h.model, x, &both, &out));
  dtg_attention heads = DTG_ATTENTION_INIT;
  heads.heads = heads.key_width = 2;
  heads.name = "look";
  dtg_value y{};
  OK(dtg_nn_attention(h.model, x, x, &heads, &y));
  const size_t made = dtg_model_variable_count(h.model);
  heads.weights_of = "look";
  OK(dtg_nn_attention(h.model, x, x, &heads, &y));
  EXPECT_EQ(dtg_model_variable_count(h.model), made);
  heads.weights_of = "nobody";
  refused(dtg_nn_attention(h.model, x, x, &heads, &y), DTG_NOT_FOUND, "no such layer");
}

// What is known of the steps is known behind the layers that go over them by a loop, or pad them: flatten asks for it.
TEST_F(Layers, StepsStayKnown) {
  dtg_value y = input("known", DTG_F32, {-1, 6, 4});
  dtg_conv conv = DTG_CONV_INIT;
  conv.filters = 3;
  conv.causal = 1;
  OK(dtg_nn_conv1d(h.model, y, &conv, &y));
  for (const dtg_recurrent_kind kind : {DTG_LSTM, DTG_GRU, DTG_SIMPLE_RNN}) {
    for (const dtg_direction direction : {DTG_FORWARD, DTG_BACKWARD, DTG_BOTH}) {
      dtg_recurrent layer = DTG_RECURRENT_INIT;
      layer.kind = kind;
      layer.direction = direction;
      layer.units = 5;
      dtg_recurrent_result steps = DTG_RECURRENT_RESULT_INIT;
      OK(dtg_nn_recurrent(h.model, y, &layer, &steps));
      dtg_value flat{};
      OK(dtg_nn_flatten(h.model, steps.outputs, &flat));
    }
  }
}

// Rows of length 1 and at right angles, also of a variable that is added by hand.
TEST_F(Layers, OrthogonalFirstValues) {
  const Net net(h.runtime);
  const int64_t dims[] = {3, 5};
  dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
  spec.name = "w";
  spec.dims = dims;
  spec.rank = 2;
  spec.initializer.kind = DTG_INIT_ORTHOGONAL + 1;
  dtg_variable w = DTG_VARIABLE_INIT;
  refused(dtg_model_add_variable(net.model, &spec, &w), DTG_INVALID_ARGUMENT, "a kind beyond the last");
  spec.initializer.kind = DTG_INIT_ORTHOGONAL;
  OK(dtg_model_add_variable(net.model, &spec, &w));
  run(net.session, {}, {}, {}, w.assign);
  const std::vector<float> data = run(net.session, {}, {}, w.read, {});
  ASSERT_EQ(data.size(), 15u);
  for (int i = 0; i < 9; ++i) {
    float product = 0;
    for (int k = 0; k < 5; ++k) product += data[static_cast<size_t>(i / 3 * 5 + k)] * data[static_cast<size_t>(i % 3 * 5 + k)];
    EXPECT_NEAR(product, i % 4 == 0 ? 1 : 0, 1e-4) << i;
  }
}

// Whatever is fetched of it: a length that is none of the sequence's is an error of the run.
TEST_F(Layers, LengthsAreThoseOfTheSequence) {
  const dtg_value x = input("sequence", DTG_F32, {2, 4, 3}), lengths = input("lengths", DTG_I64, {2});
  std::vector<dtg_value> fetches;
  for (const dtg_recurrent_kind kind : {DTG_LSTM, DTG_GRU, DTG_SIMPLE_RNN}) {
    for (const dtg_direction direction : {DTG_FORWARD, DTG_BACKWARD, DTG_BOTH}) {
      dtg_recurrent layer = DTG_RECURRENT_INIT;
      layer.kind = kind;
      layer.direction = direction;
      layer.units = 2;
      layer.lengths = lengths;
      dtg_recurrent_result out = DTG_RECURRENT_RESULT_INIT;
      OK(dtg_nn_recurrent(h.model, x, &layer, &out));
      fetches.push_back(out.outputs);
      fetches.push_back(out.hidden);
    }
  }
  dtg_attention heads = DTG_ATTENTION_INIT;
  heads.heads = heads.key_width = 2;
  heads.lengths = lengths;
  dtg_value look{}, init{};
  OK(dtg_nn_attention(h.model, x, x, &heads, &look));
  fetches.push_back(look);
  OK(dtg_model_init(h.model, &init));
  std::vector<float> numbers(24, 0.5f);
  const int64_t dims[] = {2, 4, 3}, two[] = {2};
  dtg_tensor* given = nullptr;
  OK(dtg_tensor_create(DTG_F32, dims, 3, numbers.data(), numbers.size() * 4, nullptr, nullptr, &given));
  const auto attempt = [&](dtg_value fetch, std::vector<int64_t> counts) {
    dtg_tensor *of = nullptr, *fetched = nullptr;
    OK(dtg_tensor_create(DTG_I64, two, 1, counts.data(), 16, nullptr, nullptr, &of));
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    const dtg_value feeds[] = {x, lengths};
    const dtg_tensor* tensors[] = {given, of};
    args.feeds = feeds;
    args.feed_tensors = tensors;
    args.num_feeds = 2;
    args.fetches = &fetch;
    args.num_fetches = 1;
    args.fetched = &fetched;
    dtg_error* const error = dtg_session_run(h.session, &args);
    dtg_tensor_release(of);
    dtg_tensor_release(fetched);
    return error;
  };
  run(h.session, {}, {}, {}, init);
  for (const dtg_value fetch : fetches) {
    OK(attempt(fetch, {4, 1}));
    OK(attempt(fetch, {0, 2}));
    for (const int64_t wrong : {5, 99, -1}) {
      const std::string message = refused(attempt(fetch, {wrong, 2}), DTG_INVALID_ARGUMENT, "a length");
      EXPECT_NE(message.find("lengths[0] is " + std::to_string(wrong) + ", and the sequences have 4 steps"), std::string::npos) << message;
    }
  }
  dtg_tensor_release(given);
}

// Errors that everybody meets in the first hour say what to do.
TEST_F(Layers, WhatIsFedIsToldWithAWayOut) {
  const dtg_value fixed = input("fixed", DTG_F32, {8, 3}), open = input("open", DTG_F32, {-1, 3}), real = input("real", DTG_F32, {-1});
  dtg_value loss{};
  const std::string labels =
      refused(dtg_nn_sparse_softmax_cross_entropy(h.model, real, open, &loss), DTG_INVALID_ARGUMENT, "labels of floating-point numbers");
  EXPECT_NE(labels.find("\"real:0\" of float32"), std::string::npos) << labels;
  EXPECT_NE(labels.find("int64"), std::string::npos) << labels;
  const dtg_value column = input("column", DTG_F32, {-1, 1});
  for (auto* const pairs : {dtg_nn_mean_squared_error, dtg_nn_sigmoid_cross_entropy}) {
    const std::string square = refused(pairs(h.model, real, column, &loss), DTG_INVALID_ARGUMENT, "a row against a column");
    EXPECT_NE(square.find("\"column:0\" of float32[?,1]"), std::string::npos) << square;
  }
  std::vector<float> numbers(12, 0.5f);
  const auto attempt = [&](dtg_value fed, std::vector<int64_t> dims) {
    dtg_tensor *given = nullptr, *fetched = nullptr;
    int64_t count = 1;
    for (const int64_t dim : dims) count *= dim;
    OK(dtg_tensor_create(DTG_F32, dims.data(), dims.size(), numbers.data(), static_cast<size_t>(count) * 4, nullptr, nullptr, &given));
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    args.feeds = args.fetches = &fed;
    args.feed_tensors = &given;
    args.num_feeds = args.num_fetches = 1;
    args.fetched = &fetched;
    const std::string message = refused(dtg_session_run(h.session, &args), DTG_INVALID_ARGUMENT, "another shape");
    dtg_tensor_release(given);
    return message;
  };
  EXPECT_NE(attempt(fixed, {4, 3}).find("first dimension is open (-1)"), std::string::npos);
  EXPECT_NE(attempt(open, {3}).find("as a batch of 1"), std::string::npos);
  for (const std::vector<int64_t>& other : {std::vector<int64_t>{4, 2}, {4}, {1, 4, 3}}) {
    EXPECT_TRUE(attempt(open, other).ends_with("was given")) << attempt(open, other);
  }
}

TEST_F(Layers, WhatDoesNotFitIsRefused) {
  const size_t before = dtg_model_variable_count(h.model);
  const dtg_value sequence = input("s", DTG_F32, {2, 3, 4}), image = input("i", DTG_F32, {2, 8, 8, 6}),
                  whole = input("w", DTG_I64, {2, 3, 4}), flag = input("f", DTG_F32, {}), open = input("o", DTG_F32, {2, -1, -1}),
                  wide = input("wide", DTG_F64, {2, 3, 4});
  dtg_value y{};
  dtg_recurrent_result out = DTG_RECURRENT_RESULT_INIT;
  const auto has = [](const std::string& message, const char* part) { EXPECT_NE(message.find(part), std::string::npos) << message; };
  dtg_batch_norm norm = DTG_BATCH_NORM_INIT;
  has(refused(dtg_nn_batch_norm(h.model, whole, &norm, &y), DTG_INVALID_ARGUMENT, "integers"), "cast");
  has(refused(dtg_nn_batch_norm(h.model, open, &norm, &y), DTG_INVALID_ARGUMENT, "open channels"), "known last dimension");
  norm.training = flag;
  has(refused(dtg_nn_batch_norm(h.model, image, &norm, &y), DTG_INVALID_ARGUMENT, "a float switch"), "bool scalar");
  norm = DTG_BATCH_NORM_INIT;
  norm.momentum = 2;
  has(refused(dtg_nn_batch_norm(h.model, image, &norm, &y), DTG_INVALID_ARGUMENT, "momentum"), "[0, 1]");
  norm.momentum = NAN;
  refused(dtg_nn_batch_norm(h.model, image, &norm, &y), DTG_INVALID_ARGUMENT, "NaN");
  dtg_norm groups = DTG_NORM_INIT;
  groups.groups = 4;
  has(refused(dtg_nn_group_norm(h.model, image, &groups, &y), DTG_INVALID_ARGUMENT, "6 into 4"), "equal groups");
  dtg_recurrent lstm = DTG_RECURRENT_INIT;
  has(refused(dtg_nn_recurrent(h.model, sequence, &lstm, &out), DTG_INVALID_ARGUMENT, "no units"), "at least 1");
  lstm.units = 2;
  has(refused(dtg_nn_recurrent(h.model, image, &lstm, &out), DTG_INVALID_ARGUMENT, "an image"), "rank");
  has(refused(dtg_nn_recurrent(h.model, wide, &lstm, &out), DTG_INVALID_ARGUMENT, "float64"), "float32 or float16");
  lstm.lengths = flag;
  has(refused(dtg_nn_recurrent(h.model, sequence, &lstm, &out), DTG_INVALID_ARGUMENT, "float lengths"), "lengths");
  lstm.lengths = {};
  lstm.hidden = sequence;
  has(refused(dtg_nn_recurrent(h.model, sequence, &lstm, &out), DTG_INVALID_ARGUMENT, "a state of rank 3"), "[batch,2]");
  lstm.hidden = {};
  lstm.kind = 7;
  refused(dtg_nn_recurrent(h.model, sequence, &lstm, &out), DTG_INVALID_ARGUMENT, "no such kind");
  dtg_attention heads = DTG_ATTENTION_INIT;
  has(refused(dtg_nn_attention(h.model, sequence, sequence, &heads, &y), DTG_INVALID_ARGUMENT, "no heads"), "at least 1");
  heads.heads = heads.key_width = 2;
  has(refused(dtg_nn_attention(h.model, sequence, wide, &heads, &y), DTG_INVALID_ARGUMENT, "two types"), "one type");
  heads.mask = flag;
  has(refused(dtg_nn_attention(h.model, sequence, sequence, &heads, &y), DTG_INVALID_ARGUMENT, "a float mask"), "bool");
  heads.mask = {};
  heads.heads = int64_t{1} << 62;
  heads.key_width = 8;
  refused(dtg_nn_attention(h.model, sequence, sequence, &heads, &y), DTG_INVALID_ARGUMENT, "too wide");
  dtg_conv conv = DTG_CONV_INIT;
  has(refused(dtg_nn_conv1d(h.model, sequence, &conv, &y), DTG_INVALID_ARGUMENT, "no filters"), "filters");
  conv.filters = 2;
  dtg_conv2d window = DTG_CONV2D_INIT;
  window.filters = 2;
  has(refused(dtg_nn_conv2d(h.model, sequence, &window, &y), DTG_INVALID_ARGUMENT, "a sequence as an image"), "; rank 4 and a known");
  conv.kernel[0] = 4;
  has(refused(dtg_nn_conv1d(h.model, sequence, &conv, &y), DTG_INVALID_ARGUMENT, "a window of 4 on 3"), "does not fit");
  conv.stride[1] = 2;
  has(refused(dtg_nn_depthwise_conv2d(h.model, image, &conv, &y), DTG_INVALID_ARGUMENT, "two strides"), "equal");
  conv = DTG_CONV_INIT;
  conv.filters = 2;
  conv.dilation[0] = 2;
  refused(dtg_nn_conv2d_transpose(h.model, image, &conv, &y), DTG_UNIMPLEMENTED, "dilated");
  refused(dtg_nn_up_sampling2d(h.model, image, 0, 1, 0, &y), DTG_INVALID_ARGUMENT, "no times as high");
  refused(dtg_nn_global_avg_pool(h.model, whole, 0, &y), DTG_INVALID_ARGUMENT, "integers");
  EXPECT_EQ(dtg_model_variable_count(h.model), before) << "what was refused leaves no variables";
}

}  // namespace
}  // namespace outside
