// What builds and trains without an error and is not what was meant: logits taken for probabilities and the other way round, and layers
// that are never switched off. The log tells of each, once; and says nothing of what is right. One thread.
#include <algorithm>

#include <dtg/sugar_ops.h>

#include "told.h"
#include "trainer_lab.h"

namespace {

using namespace fits;
using outside::Told;

bool tells(const std::string& text, const char* words) { return text.find(words) != std::string::npos; }

// A graph with rows of three numbers in, and what a layer of two units makes of them.
struct Net {
  Told told;
  dtg_graph* graph = nullptr;
  dtg_model* model = nullptr;
  dtg_session* session = nullptr;
  dtg_value x{}, labels{}, classes{}, training{};
  Net() {
    const int64_t rows[] = {-1, 3}, pairs[] = {-1, 2}, list[] = {-1};
    OK(dtg_graph_create(told.runtime, &graph));
    OK(dtg_model_create(graph, 1, &model));
    OK(dtg_session_connect(told.runtime, "local", DTG_STRLEN, graph, nullptr, &session));
    OK(dtg_placeholder(graph, "x", DTG_F32, rows, 2, &x));
    OK(dtg_placeholder(graph, "pairs", DTG_F32, pairs, 2, &labels));
    OK(dtg_placeholder(graph, "classes", DTG_I64, list, 1, &classes));
    OK(dtg_placeholder(graph, "training", DTG_BOOL, nullptr, 0, &training));
  }
  dtg_value dense(dtg_value from, dtg_activation activation) {
    dtg_dense layer = DTG_DENSE_INIT;
    layer.units = 2;
    layer.activation = activation;
    dtg_value out{};
    OK(dtg_nn_dense(model, from, &layer, &out));
    return out;
  }
  dtg_value step() {
    dtg_variable variable = DTG_VARIABLE_INIT;
    OK(dtg_model_global_step(model, &variable));
    return variable.read;
  }
  void loss(dtg_loss_kind kind, bool from_logits, dtg_value predictions, dtg_value* out = nullptr) {
    dtg_loss what = DTG_LOSS_INIT;
    what.kind = kind;
    what.from_logits = from_logits;
    dtg_value made{};
    OK(dtg_nn_loss(model, &what, kind == DTG_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY ? classes : labels, predictions, {}, &made));
    if (out) *out = made;
  }
  void metric(dtg_metric_kind kind, bool from_logits, double threshold, dtg_value predictions) {
    dtg_metric what = DTG_METRIC_INIT;
    what.kind = kind;
    what.from_logits = from_logits;
    what.threshold = threshold;
    dtg_metric_values made = DTG_METRIC_VALUES_INIT;
    OK(dtg_nn_metric(model, &what, labels, predictions, {}, &made));
  }
  dtg_trainer* trainer(dtg_value loss, dtg_value given, dtg_value fed) {
    const dtg_value feeds[] = {x, fed};
    dtg_trainer_options options = DTG_TRAINER_OPTIONS_INIT;
    dtg_optimizer sgd = DTG_OPTIMIZER_INIT;
    options.session = session;
    options.feeds = feeds;
    options.num_feeds = 2;
    options.loss = loss;
    options.training = given;
    options.optimizer = &sgd;
    dtg_trainer* trainer = nullptr;
    OK(dtg_trainer_create(model, &options, &trainer));
    return trainer;
  }
  void train(dtg_value loss, dtg_value given) { dtg_trainer_release(trainer(loss, given, labels)); }
  std::string end() {
    dtg_session_release(session);
    dtg_model_release(model);
    dtg_graph_release(graph);
    return told.end();
  }
};

TEST(Scale, OfProbabilitiesInPlaceOfLogitsIsTold) {
  Net net;
  dtg_value out{};
  OK(dtg_nn_sparse_softmax_cross_entropy(net.model, net.classes, net.dense(net.x, DTG_ACT_SOFTMAX), &out));
  OK(dtg_nn_softmax_cross_entropy(net.model, net.labels, net.dense(net.x, DTG_ACT_SOFTMAX), &out));
  OK(dtg_nn_sigmoid_cross_entropy(net.model, net.labels, net.dense(net.x, DTG_ACT_SIGMOID), &out));
  net.loss(DTG_LOSS_CATEGORICAL_CROSSENTROPY, true, net.dense(net.x, DTG_ACT_SOFTMAX));
  net.metric(DTG_METRIC_AUC, true, 0, net.dense(net.x, DTG_ACT_SIGMOID));
  const std::string all = net.end();
  EXPECT_TRUE(tells(all, "sparse softmax cross entropy: \"dense/Softmax:0\" is what softmax made, and is taken for logits")) << all;
  EXPECT_TRUE(tells(all, "\nmodel: softmax cross entropy: \"dense_1/Softmax:0\" is what softmax made")) << all;
  EXPECT_TRUE(tells(all, "sigmoid cross entropy: \"dense_2/Sigmoid:0\" is what sigmoid made")) << all;
  EXPECT_TRUE(tells(all, "categorical_crossentropy: \"dense_3/Softmax:0\" is what softmax made")) << all;
  EXPECT_TRUE(tells(all, "auc: \"dense_4/Sigmoid:0\" is what sigmoid made")) << all;
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 5) << all;
}

TEST(Scale, OfLogitsInPlaceOfProbabilitiesIsTold) {
  const std::vector<dtg_loss_kind> losses = {DTG_LOSS_KL_DIVERGENCE,
                                             DTG_LOSS_BINARY_CROSSENTROPY,
                                             DTG_LOSS_CATEGORICAL_CROSSENTROPY,
                                             DTG_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY,
                                             DTG_LOSS_DICE,
                                             DTG_LOSS_TVERSKY};
  const std::vector<dtg_metric_kind> metrics = {DTG_METRIC_LOG_LOSS,  DTG_METRIC_AUC,    DTG_METRIC_BINARY_ACCURACY,
                                                DTG_METRIC_PRECISION, DTG_METRIC_RECALL, DTG_METRIC_FALSE_NEGATIVES};
  Net net;
  for (const dtg_loss_kind kind : losses) net.loss(kind, false, net.dense(net.x, DTG_ACT_NONE));
  for (const dtg_metric_kind kind : metrics) net.metric(kind, false, 0, net.dense(net.x, DTG_ACT_NONE));
  const std::string all = net.end();
  EXPECT_TRUE(tells(all, "binary_crossentropy: \"dense_1/BiasAdd:0\" is what a layer without an activation made")) << all;
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), static_cast<int64_t>(losses.size() + metrics.size())) << all;
}

TEST(Scale, ThatIsRightIsNotSpokenOf) {
  Net net;
  dtg_value out{};
  OK(dtg_nn_sparse_softmax_cross_entropy(net.model, net.classes, net.dense(net.x, DTG_ACT_NONE), &out));
  OK(dtg_nn_sigmoid_cross_entropy(net.model, net.labels, net.dense(net.x, DTG_ACT_NONE), &out));
  net.loss(DTG_LOSS_BINARY_CROSSENTROPY, true, net.dense(net.x, DTG_ACT_NONE));
  net.loss(DTG_LOSS_BINARY_CROSSENTROPY, false, net.dense(net.x, DTG_ACT_SIGMOID));
  net.loss(DTG_LOSS_MEAN_SQUARED_ERROR, false, net.dense(net.x, DTG_ACT_NONE));
  net.loss(DTG_LOSS_HINGE, false, net.dense(net.x, DTG_ACT_NONE));
  net.metric(DTG_METRIC_AUC, true, 0, net.dense(net.x, DTG_ACT_NONE));
  net.metric(DTG_METRIC_AUC, false, 0, net.dense(net.x, DTG_ACT_SIGMOID));
  net.metric(DTG_METRIC_BINARY_ACCURACY, false, 0.1, net.dense(net.x, DTG_ACT_NONE));
  net.metric(DTG_METRIC_CATEGORICAL_ACCURACY, false, 0, net.dense(net.x, DTG_ACT_NONE));
  EXPECT_EQ(net.end(), "");
}

TEST(Scale, ThatIsAnErrorIsNoWarningToo) {
  Net net;
  dtg_loss what = DTG_LOSS_INIT;
  dtg_value out{};
  what.kind = DTG_LOSS_KL_DIVERGENCE;
  what.from_logits = 1;
  const dtg_value chances = net.dense(net.x, DTG_ACT_SIGMOID);
  refused(dtg_nn_loss(net.model, &what, net.labels, chances, {}, &out), DTG_INVALID_ARGUMENT, "logits of a divergence");
  net.metric(DTG_METRIC_BINARY_ACCURACY, true, 0, chances);
  net.metric(DTG_METRIC_BINARY_ACCURACY, true, 0, net.dense(net.x, DTG_ACT_NONE));
  const std::string all = net.end();
  EXPECT_TRUE(tells(all, "binary_accuracy: \"dense/Sigmoid:0\" is what sigmoid made, and is taken for logits")) << all;
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 1) << all;
}

// Softmax over one unit is 1 whatever the weights, and the loss of one class 0.
TEST(Units, ThatAreOneWhereClassesExcludeEachOtherAreTold) {
  Net net;
  dtg_dense one = DTG_DENSE_INIT;
  dtg_value y{}, out{};
  one.units = 1;
  one.activation = DTG_ACT_SOFTMAX;
  OK(dtg_nn_dense(net.model, net.x, &one, &y));
  one.activation = DTG_ACT_NONE;
  OK(dtg_nn_dense(net.model, net.x, &one, &y));
  OK(dtg_nn_activation(net.model, y, DTG_ACT_SOFTMAX, &out));
  const dtg_value given = net.labels;
  net.labels = y;  // of the shape of one class
  net.loss(DTG_LOSS_CATEGORICAL_CROSSENTROPY, true, y);
  net.loss(DTG_LOSS_CATEGORICAL_FOCAL_CROSSENTROPY, true, y);
  net.loss(DTG_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY, true, y);
  OK(dtg_nn_softmax_cross_entropy(net.model, y, y, &out));
  OK(dtg_nn_sparse_softmax_cross_entropy(net.model, net.classes, y, &out));
  // What is right.
  net.loss(DTG_LOSS_BINARY_CROSSENTROPY, true, y);
  OK(dtg_nn_sigmoid_cross_entropy(net.model, y, y, &out));
  net.labels = given;
  net.loss(DTG_LOSS_CATEGORICAL_CROSSENTROPY, false, net.dense(net.x, DTG_ACT_SOFTMAX));
  const std::string all = net.end();
  EXPECT_TRUE(tells(all, "model: dense layer: \"dense/Softmax:0\" of float32[?,1] is softmax over one unit, which is always 1")) << all;
  EXPECT_TRUE(tells(all, "activation: \"Softmax:0\" of float32[?,1] is softmax over one unit")) << all;
  for (const char* const loss : {"model: categorical_crossentropy", "categorical_focal_crossentropy", "sparse_categorical_crossentropy",
                                 "model: softmax cross entropy", "sparse softmax cross entropy"})
    EXPECT_TRUE(tells(all, (std::string(loss) + ": \"dense_1/BiasAdd:0\" of float32[?,1] has one class, of which the loss is").c_str()))
        << all;
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 7) << all;
}

// The run knows the placeholder, the trainer who feeds it.
TEST(Switches, ThatTheTrainerForgotAreNamedByTheirOption) {
  Lab lab(false);
  dtg_trainer_options what = lab.what();
  dtg_fit_event event = DTG_FIT_EVENT_INIT;
  what.training = {0};
  dtg_trainer* trainer = nullptr;
  OK(dtg_trainer_create(lab.model, &what, &trainer));
  dtg_tensor *x = nullptr, *y = nullptr;
  const int64_t rows[] = {2, 3}, two[] = {2};
  int64_t numbers[] = {0, 1};
  float values[6] = {};
  OK(dtg_tensor_create(DTG_F32, rows, 2, values, sizeof values, nullptr, nullptr, &x));
  OK(dtg_tensor_create(DTG_I64, two, 1, numbers, sizeof numbers, nullptr, nullptr, &y));
  const dtg_tensor* const both[] = {x, y};
  dtg_dataset* data = nullptr;
  OK(dtg_dataset_tensors(nullptr, both, 2, &data));
  OK(dtg_dataset_batch(data, 2, 0));
  const std::string why = refused(dtg_trainer_evaluate(trainer, data, 0, nullptr, &event), DTG_INVALID_ARGUMENT, "nothing feeds it");
  EXPECT_TRUE(tells(why, "placeholder \"training\" (bool[]) is needed but not fed: if it says whether the model is in training, give it as "
                         "the trainer's option `training`"))
      << why;
  dtg_dataset_release(data);
  dtg_tensor_release(x);
  dtg_tensor_release(y);
  dtg_trainer_release(trainer);
}

TEST(Data, OfTextsSayThatTheyAreLookedUpBefore) {
  const char* const words[] = {"a", "b"};
  const int64_t two = 2;
  dtg_tensor* texts = nullptr;
  OK(dtg_tensor_create_strings(&two, 1, words, nullptr, &texts));
  const dtg_tensor* const all[] = {texts};
  dtg_dataset* data = nullptr;
  const std::string why = refused(dtg_dataset_tensors(nullptr, all, 1, &data), DTG_UNIMPLEMENTED, "texts");
  EXPECT_TRUE(tells(why, "look the texts up before, by a run of the layer")) << why;
  dtg_tensor_release(texts);
}

// An endless wait would be taken for a slow one.
TEST(Data, OfWhichAFilterKeepsNothingEndInAnError) {
  dtg_dataset* data = nullptr;
  OK(dtg_dataset_range(nullptr, 0, 7, 1, &data));
  OK(dtg_dataset_repeat(data, -1));
  OK(dtg_dataset_shuffle(data, 3, 1));
  int64_t asked = 0;
  const dtg_predicate_fn none = [](void* user, dtg_tensor* const*, size_t, int32_t* keeps) -> dtg_error* {
    *keeps = ++*static_cast<int64_t*>(user) == 40;
    return nullptr;
  };
  OK(dtg_dataset_filter_host(data, none, &asked, nullptr));
  dtg_tensor* kept = nullptr;
  int32_t more = 0;
  OK(dtg_dataset_next(data, &kept, 1, &more));  // of the sixth pass
  EXPECT_EQ(more, 1);
  dtg_tensor_release(kept);
  const std::string why = refused(dtg_dataset_next(data, &kept, 1, &more), DTG_FAILED_PRECONDITION, "a filter that keeps nothing");
  EXPECT_TRUE(tells(why, "of 10 whole passes over it the filter has kept nothing")) << why;
  EXPECT_LT(asked, 140);
  dtg_dataset_release(data);
}

// Whoever forgets a switch would evaluate, predict and export with dropout.
TEST(Switches, ThatNobodyGaveAreTold) {
  Net net;
  dtg_value h = net.dense(net.x, DTG_ACT_RELU), loss{};
  dtg_batch_norm norm = DTG_BATCH_NORM_INIT;
  OK(dtg_nn_dropout(net.model, h, 0.5, net.step(), {}, &h));
  OK(dtg_nn_batch_norm(net.model, h, &norm, &h));
  OK(dtg_nn_noise(net.model, h, DTG_GAUSSIAN_NOISE, 0.1, net.step(), net.training, &h));
  net.loss(DTG_LOSS_MEAN_SQUARED_ERROR, false, h, &loss);
  net.train(loss, net.training);
  const std::string all = net.end();
  EXPECT_TRUE(tells(all, "trainer: layers that nothing switches off do in evaluate, predict and model.dtg what is for training alone: "
                         "\"dropout\", \"batch_normalization\"; give"))
      << all;
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 1) << all;
}

TEST(Switches, ThatTheTrainerHasNotAreTold) {
  for (const bool given : {false, true}) {
    Net net;
    dtg_value h = net.dense(net.x, DTG_ACT_RELU), loss{}, on{}, yes{};
    uint8_t one = 1;
    dtg_tensor* tensor = nullptr;
    OK(dtg_tensor_create(DTG_BOOL, nullptr, 0, &one, 1, nullptr, nullptr, &tensor));
    OK(dtg_const(net.graph, tensor, &yes));
    dtg_tensor_release(tensor);
    OK(dtg_add_placeholder_with_default(net.graph, "on", yes, nullptr, 0, &on));
    OK(dtg_nn_dropout(net.model, h, 0.5, net.step(), on, &h));
    net.loss(DTG_LOSS_MEAN_SQUARED_ERROR, false, h, &loss);
    net.train(loss, given ? on : dtg_value{});
    const std::string all = net.end();
    if (given) EXPECT_EQ(all, "");
    else
      EXPECT_TRUE(tells(all,
                        "turned on and off by another switch than the trainer's, which turns them neither on in steps nor off elsewhere: "
                        "\"dropout\"; give the trainer the same"))
          << all;
  }
}

// One that nobody feeds ends the first step, so it need not be spoken of. Neither do constants, which are meant; what is worked out of the
// trainer's switch; a share of 0; and layers that this trainer does not need.
TEST(Switches, ThatAreMeantAreNotSpokenOf) {
  for (const bool given : {false, true}) {
    Net net;
    dtg_value h = net.dense(net.x, DTG_ACT_RELU), loss{}, unused{}, off{}, derived{};
    const dtg_value step = net.step();
    uint8_t no = 0;
    dtg_tensor* tensor = nullptr;
    OK(dtg_tensor_create(DTG_BOOL, nullptr, 0, &no, 1, nullptr, nullptr, &tensor));
    OK(dtg_const(net.graph, tensor, &off));
    dtg_tensor_release(tensor);
    OK(dtg_add1(net.graph, "Identity", net.training, &derived));
    dtg_batch_norm frozen = DTG_BATCH_NORM_INIT;
    frozen.training = off;
    OK(dtg_nn_batch_norm(net.model, h, &frozen, &h));
    OK(dtg_nn_dropout(net.model, h, 0.5, step, given ? derived : net.training, &h));
    OK(dtg_nn_dropout(net.model, h, 0, step, {}, &h));
    OK(dtg_nn_dropout(net.model, h, 0.5, step, {}, &unused));
    net.loss(DTG_LOSS_MEAN_SQUARED_ERROR, false, h, &loss);
    net.train(loss, given ? net.training : dtg_value{});
    EXPECT_EQ(net.end(), "");
  }
}

// A model that is exported from a loop of the host's own.
TEST(Switches, ThatNobodyGaveAreToldAtExport) {
  Net net;
  dtg_value h = net.dense(net.x, DTG_ACT_RELU), init{};
  dtg_batch_norm norm = DTG_BATCH_NORM_INIT;
  OK(dtg_nn_batch_norm(net.model, h, &norm, &h));
  OK(dtg_model_init(net.model, &init));
  OK(dtg_run_target(net.session, init));
  const char* const names[] = {"x", "y"};
  dtg_export what = DTG_EXPORT_INIT;
  what.input_names = names;
  what.inputs = &net.x;
  what.num_inputs = 1;
  what.output_names = names + 1;
  what.outputs = &h;
  what.num_outputs = 1;
  const std::string path = folder("switches.dtg");
  OK(dtg_model_export(net.model, net.session, &what, path.c_str(), DTG_STRLEN));
  std::remove(path.c_str());
  const std::string all = net.end();
  EXPECT_TRUE(tells(all, "model: export: layers that nothing switches off do in ") && tells(all, "alone: \"batch_normalization\"")) << all;
}

// Who waits long says for what before its time is over, once.
TEST(Waiting, ForVariablesIsTold) {
  Net net;
  net.dense(net.x, DTG_ACT_NONE);
  refused(dtg_model_wait_ready(net.model, net.session, 5'500'000'000), DTG_DEADLINE_EXCEEDED, "nobody initialises");
  const std::string all = net.end();
  EXPECT_TRUE(tells(all, "session: waiting for the variables of the model: without a value are \"dense/kernel\", \"dense/bias\"; does the "
                         "chief run, and has it initialised them?"))
      << all;
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 1) << all;
}

// Each worker would have variables of its own, and all but the chief would wait for them.
TEST(Setters, OfWorkersWithoutAParameterServerAreTold) {
  for (const bool several : {true, false}) {
    Net net;
    const char* const list = several ? "worker=a:1,b:2" : "worker=a:1";
    dtg_cluster* cluster = nullptr;
    OK(dtg_cluster_parse(list, DTG_STRLEN, &cluster));
    dtg_device_setter setter = DTG_DEVICE_SETTER_INIT;
    setter.cluster = cluster;
    OK(dtg_graph_push_device_setter(net.graph, &setter));
    OK(dtg_graph_pop_device(net.graph));
    dtg_cluster_release(cluster);
    const std::string all = net.end();
    EXPECT_EQ(tells(all, "graph: a device setter changes nothing: the cluster has 2 workers, and no parameter server"), several) << all;
  }
}

// A label is one number, and many write its placeholder as a column.
TEST(Shapes, OfLabelsThatAreAColumnOnOneSideAreTold) {
  Net net;
  const int64_t column[] = {-1, 1};
  dtg_value y{}, loss{}, h = net.dense(net.x, DTG_ACT_NONE);
  OK(dtg_placeholder(net.graph, "y", DTG_I64, column, 2, &y));
  net.loss(DTG_LOSS_MEAN_SQUARED_ERROR, false, h, &loss);
  dtg_trainer* const trainer = net.trainer(loss, {}, y);
  dtg_dataset* const data = rows(0, false);
  const std::string why = refused(dtg_trainer_begin(trainer, data, nullptr, nullptr), DTG_INVALID_ARGUMENT, "a column");
  EXPECT_TRUE(tells(why,
                    "component 1 of the data set is int64[?], and \"y:0\" which it is fed to is int64[?,1]; it has one number for each "
                    "example: leave the last dimension of 1 out of the placeholder"))
      << why;
  dtg_dataset_release(data);
  dtg_trainer_release(trainer);
  net.end();
}

}  // namespace
