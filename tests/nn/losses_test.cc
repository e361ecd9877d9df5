// Losses against real Keras and TensorFlow: settings and shapes that were drawn, values, gradients (keras/losses.json.gz, made by
// keras/make_losses.py beside it); and what is refused.
#include "nn/losses.h"

#include "golden.h"
#include "graph/gradient.h"
#include "nn/loss.h"
#include "nn/loss_sampled.h"
#include "nn/optimizer.h"

namespace dtg {
namespace {

constexpr double kShare = 2e-6;

Loss::Kind kind_of(const std::string& name) {
  for (int32_t i = 0; i <= static_cast<int32_t>(Loss::Kind::contrastive); ++i) {
    if (name == loss_name(static_cast<Loss::Kind>(i))) return static_cast<Loss::Kind>(i);
  }
  ADD_FAILURE() << name;
  return {};
}

Loss settings_of(const Answers& given) {
  const Answers& s = given["settings"];
  Loss loss;
  loss.kind = kind_of(given["loss"]);
  const std::string reduction = s.value("reduction", "sum_over_batch_size");
  loss.reduction = reduction == "sum"                       ? Loss::Reduction::sum
                   : reduction == "none"                    ? Loss::Reduction::none
                   : reduction == "mean_with_sample_weight" ? Loss::Reduction::mean_with_sample_weight
                                                            : Loss::Reduction::sum_over_batch_size;
  loss.from_logits = s.value("from_logits", false);
  loss.label_smoothing = s.value("label_smoothing", 0.0);
  loss.delta = s.value("delta", 1.0);
  loss.alpha = s.value("alpha", loss.kind == Loss::Kind::tversky ? 0.5 : 0.25);
  loss.beta = s.value("beta", 0.5);
  loss.gamma = s.value("gamma", 2.0);
  loss.class_balancing = s.value("apply_class_balancing", false);
  loss.per_example = s.value("per_example", false);
  loss.axis = s.value("axis", -1);
  loss.ignores_class = s.contains("ignore_class");
  loss.ignore_class = s.value("ignore_class", 0);
  return loss;
}

// A model with placeholders for the tensors of a case.
class Case {
 public:
  Case(const Answers& given, bool open) : given_(given), open_(open) {}

  SmallModel small;

  // The last dimension decides ranks; all others may be open.
  Value feed(const std::string& name) {
    if (!given_.contains(name)) return {};
    Tensor value = tensor_of(given_[name]);
    std::vector<int64_t> dims(value.shape().dims().begin(), value.shape().dims().end());
    for (size_t i = 0; open_ && i + 1 < dims.size(); ++i) dims[i] = -1;
    const Value made = small.placeholder(name.c_str(), value.dtype(), dims);
    feeds_.push_back(made);
    tensors_.push_back(std::move(value));
    return made;
  }

  Tensor fetch(Value value) { return small.fetch(value, feeds_, tensors_); }

  // The value, and the gradients of sum(value * direction).
  void expect(Value value, std::span<const Value> sources, std::span<const Answers> gradients) {
    Build build(small.graph());
    const Value flat = build.reshape(build.mul(value, build.constant(tensor_of(given_["direction"]))), build.ints({-1}));
    const Value total = build.sum(flat, build.ints({0}));
    ASSERT_TRUE(build.ok()) << build.status().message();
    const std::vector<Gradient> found = good(add_gradients(small.graph(), {&total, 1}, sources, {}));
    ASSERT_EQ(found.size(), gradients.size());
    expect_close("value", fetch(value), given_["value"], kShare);
    for (size_t i = 0; i < found.size(); ++i) {
      Gradient each = found[i];
      ASSERT_TRUE(each.any());
      const Value dense = densify(build, each);
      expect_close("gradient " + std::to_string(i), fetch(dense), gradients[i], kShare);
    }
  }

 private:
  const Answers& given_;
  const bool open_;
  std::vector<Value> feeds_;
  std::vector<Tensor> tensors_;
};

class Losses : public ::testing::TestWithParam<bool> {};

TEST_P(Losses, AreThoseOfKeras) {
  const Answers all = golden("losses.json.gz");
  if (!all.is_object()) GTEST_SKIP() << "set DTG_SOURCE_DIR";
  ASSERT_GT(all["losses"].size(), 200u);
  size_t number = 0;
  for (const Answers& each : all["losses"]) {
    SCOPED_TRACE("case " + std::to_string(number++) + ": " + std::string(each["loss"]) + " " + each["settings"].dump());
    Case one(each, GetParam());
    Loss settings = settings_of(each);
    const Value labels = one.feed("labels"), predictions = one.feed("predictions"), weights = one.feed("weights");
    settings.class_weights = one.feed("class_weights");
    settings.lengths = one.feed("lengths");
    const Value value = good(loss(one.small.model(), settings, labels, predictions, weights));
    ASSERT_TRUE(value.valid());
    one.expect(value, {&predictions, 1}, {&each["gradient"], 1});
  }
}

// Rows of one table looked up once: values and gradients of weights, biases and inputs.
TEST_P(Losses, OverSampledClassesAreThoseOfTensorFlow) {
  const Answers all = golden("losses.json.gz");
  if (!all.is_object()) GTEST_SKIP() << "set DTG_SOURCE_DIR";
  ASSERT_GT(all["candidates"].size(), 10u);
  for (const Answers& each : all["candidates"]) {
    SCOPED_TRACE(each["settings"].dump());
    Case one(each, GetParam());
    SampledLoss settings;
    settings.kind = each["kind"] == "nce" ? SampledLoss::Kind::nce : SampledLoss::Kind::sampled_softmax;
    settings.reduction = Loss::Reduction::none;
    settings.classes = each["settings"]["classes"];
    settings.samples = each["settings"]["samples"];
    settings.keep_hits = !each["settings"]["remove_accidental_hits"].get<bool>();
    settings.sampled = one.feed("sampled");
    settings.true_expected = one.feed("true_expected");
    settings.sampled_expected = one.feed("sampled_expected");
    const Value labels = one.feed("labels"), inputs = one.feed("inputs");
    Model& model = one.small.model();
    const Value value = good(sampled_loss(model, settings, labels, inputs));
    ASSERT_EQ(model.variables().size(), 2u);
    const char* const names[] = {"weights", "biases"};
    for (size_t i = 0; i < 2; ++i) {
      const NodeId target[] = {model.variables()[i].assign};
      const Value first = one.small.graph().node(target[0]).inputs[1];
      const Tensor tensor = tensor_of(each[names[i]]);
      const Tensor* const given = &tensor;
      ASSERT_TRUE(one.small.session().run({.feeds = {&first, 1}, .feed_tensors = {&given, 1}, .fetches = {}, .targets = target}, {}).ok());
    }
    const Value sources[] = {model.variables()[0].handle, model.variables()[1].handle, inputs};
    const std::vector<Answers> gradients = each["gradients"];
    one.expect(value, sources, gradients);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Losses, ::testing::Bool(), [](const auto& one) { return one.param ? "Open" : "Known"; });

// The gradient of a table is rows, so a step over many classes touches few of them; and it learns which class it is.
TEST(SampledLosses, LearnWithRows) {
  for (const SampledLoss::Kind kind : {SampledLoss::Kind::nce, SampledLoss::Kind::sampled_softmax}) {
    SmallModel small;
    Build build(small.graph());
    const Value x = build.constant(good(Tensor::of<float>(Shape::of({2, 2}), std::vector<float>{1, 0, 0, 1})));
    const Value labels = build.ints({3, 40});
    const Value out = good(sampled_loss(small.model(), {.kind = kind, .classes = 50, .samples = 8}, labels, x));
    const Training training = good(minimize(small.model(), out, {.kind = Optimizer::Kind::sgd, .rate = 0.5}));
    EXPECT_TRUE(training.gradients.at(0).gradient.indices.valid());
    small.init();
    const float before = small.floats(out).at(0);
    for (int i = 0; i < 60; ++i) small.step(training.train);
    EXPECT_LT(small.floats(out).at(0), before / 4);
    // The row of class 3 points at the first input, that of class 40 at the second.
    const std::vector<float> table = small.floats(small.model().variables()[0].read);
    EXPECT_GT(table[3 * 2], table[3 * 2 + 1] + 1);
    EXPECT_GT(table[40 * 2 + 1], table[40 * 2] + 1);
  }
}

// Classes are drawn from seed, layer and step alone: again for the same step, by another session too, and others for another step.
TEST(SampledLosses, DrawTheSameForTheSameStep) {
  const auto losses = [](int warm, SampledLoss::Candidates candidates) {
    SmallModel small;
    Build build(small.graph());
    const Value x = build.constant(good(Tensor::of<float>(Shape::of({2, 2}), std::vector<float>{1, 0, 0, 1})));
    const SampledLoss what{.candidates = candidates, .classes = 5000, .samples = 8};
    const Value out = good(sampled_loss(small.model(), what, build.ints({3, 40}), x));
    const NamedVariable step = good(small.model().global_step());
    const Value one[] = {step.handle, build.integer(1, DType::i64)};
    const NodeId count = build.node("AssignAddVariableOp", one);
    small.init();
    std::vector<float> all;
    for (int i = 0; i < 3; ++i) {
      for (int k = 0; k < warm; ++k) small.floats(out);  // a run that was made again
      all.push_back(small.floats(out).at(0));
      small.step(count);
    }
    EXPECT_NE(all[0], all[1]);
    EXPECT_NE(all[1], all[2]);
    return all;
  };
  for (const auto candidates : {SampledLoss::Candidates::log_uniform, SampledLoss::Candidates::uniform}) {
    EXPECT_EQ(losses(0, candidates), losses(2, candidates));
  }
}

TEST(Losses, OfPairsAndTriplesAreWhatTheirFormulasSay) {
  SmallModel small;
  Build build(small.graph());
  const auto vector = [&](std::vector<float> values) {
    return build.constant(good(Tensor::of<float>(Shape::of({static_cast<int64_t>(values.size())}), values)));
  };
  const Value same = vector({1, 0, 0}), distance = vector({0.5f, 0.25f, 3});
  const Value pairs = good(loss(small.model(), {.kind = Loss::Kind::contrastive, .reduction = Loss::Reduction::none}, same, distance, {}));
  EXPECT_EQ(small.floats(pairs), (std::vector<float>{0.25f, 0.5625f, 0}));
  const Value anchor = vector({0, 0}), near = vector({1, 0}), far = vector({0, 1.25f});
  EXPECT_EQ(small.floats(good(triplet(small.model(), anchor, near, far, 1))), std::vector<float>{1 - 1.5625f + 1});
  EXPECT_EQ(small.floats(good(triplet(small.model(), near, near, far, 1))), std::vector<float>{0});
}

TEST(Losses, PenaltiesAreOverKernelsOrWhatIsNamed) {
  SmallModel small;
  const NamedVariable kernel = small.variable("kernel", {1, -2, 3, -4}, {2, 2}), bias = small.variable("bias", {10, -20});
  Build build(small.graph());
  const Value zero = build.scalar(DType::f32, 0.5);
  const Value all = good(regularize(small.model(), zero, {}, 0.5, 0.25));
  const Value one = good(regularize(small.model(), zero, {&bias.handle, 1}, 0, 0.01));
  small.init();
  EXPECT_EQ(small.floats(all), std::vector<float>{0.5f + 5 + 7.5f});
  EXPECT_EQ(small.floats(one), std::vector<float>{0.5f + 5});
  EXPECT_EQ(regularize(small.model(), zero, {&zero, 1}, 1, 0).status().code(), Code::invalid_argument);
  const Value twice[] = {kernel.handle, kernel.handle};
  EXPECT_EQ(regularize(small.model(), zero, twice, -1, 0).status().code(), Code::invalid_argument);
}

// Of characters in a text, say: each dimension but the classes counts as examples.
TEST(Losses, OfMoreDimensionsAreThoseOfTheirRows) {
  SmallModel small;
  Graph& graph = small.graph();
  Build build(graph);
  const std::vector<float> numbers = {1, 2, 0, -1, 0.5f, 3, 2, 2, 1, 0, 0, 4};
  const std::vector<int64_t> classes = {1, 2, 0, 2};
  const auto logits = [&](std::vector<int64_t> dims) { return build.constant(good(Tensor::of<float>(good(Shape::make(dims)), numbers))); };
  const auto labels = [&](std::vector<int64_t> dims) {
    return build.constant(good(Tensor::of<int64_t>(good(Shape::make(dims)), classes)));
  };
  const auto value = [&](Result<Value> loss) { return small.floats(good(std::move(loss)))[0]; };
  const float rows = value(sparse_softmax_cross_entropy(graph, labels({4}), logits({4, 3})));
  EXPECT_EQ(value(sparse_softmax_cross_entropy(graph, labels({2, 2}), logits({2, 2, 3}))), rows);
  const Value likely = build.op("OneHot", {labels({2, 2}), build.integer(3), build.scalar(DType::f32, 1), build.scalar(DType::f32, 0)});
  EXPECT_NEAR(value(softmax_cross_entropy(graph, likely, logits({2, 2, 3}))), rows, 1e-6);
  for (const std::vector<int64_t>& wrong : {std::vector<int64_t>{4}, {4, 1}, {1, 4}}) {
    const Status refused = sparse_softmax_cross_entropy(graph, labels(wrong), logits({2, 2, 3})).status();
    EXPECT_EQ(refused.code(), Code::invalid_argument);
    EXPECT_NE(refused.message().find("all dimensions of the logits but the last"), std::string::npos) << refused.message();
  }
}

// Keras: no losses have the mean 0, and no gradient is anything else. What is not reduced has no elements.
TEST(Losses, OverNoExamplesAreNothing) {
  SmallModel small;
  Build build(small.graph());
  const Value labels = small.placeholder("labels", DType::i32, {-1, 2}), numbers = small.placeholder("numbers", DType::i32, {-1});
  const Value said = small.placeholder("said", DType::f32, {-1, 3, 4}), x = small.placeholder("x", DType::f32, {-1, 2});
  const std::vector<Value> feeds = {labels, numbers, said, x};
  const std::vector<Tensor> none = {good(Tensor::of<int32_t>(Shape::of({0, 2}), std::vector<int32_t>())),
                                    good(Tensor::of<int32_t>(Shape::of({0}), std::vector<int32_t>())),
                                    good(Tensor::of<float>(Shape::of({0, 3, 4}), std::vector<float>())),
                                    good(Tensor::of<float>(Shape::of({0, 2}), std::vector<float>()))};
  const auto expect_nothing = [&](Value value, std::vector<float> wanted) {
    const Tensor made = small.fetch(value, feeds, none);
    ASSERT_TRUE(made.valid());
    ASSERT_EQ(made.count(), static_cast<int64_t>(wanted.size()));
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(made.as<float>()[i], wanted[i]);
  };
  for (const auto how : {Loss::Reduction::sum_over_batch_size, Loss::Reduction::sum, Loss::Reduction::none}) {
    const std::vector<float> wanted(how == Loss::Reduction::none ? 0 : 1, 0.0f);
    const Loss ctc{.kind = Loss::Kind::ctc, .reduction = how};
    expect_nothing(good(loss(small.model(), ctc, labels, said, {})), wanted);
    const SampledLoss::Kind kinds[] = {SampledLoss::Kind::nce, SampledLoss::Kind::sampled_softmax};
    for (const auto kind : kinds) {
      const SampledLoss sampled{.kind = kind, .reduction = how, .classes = 6, .samples = 3};
      const Value value = good(sampled_loss(small.model(), sampled, numbers, x));
      small.init();
      expect_nothing(value, wanted);
    }
  }
}

// Classes along another axis: as if they had been moved to the end first.
TEST(Losses, TakeTheClassesAlongAnyAxis) {
  SmallModel small;
  Build build(small.graph());
  const std::vector<float> values = {0.1f, 2, -1, 0.5f, 1.5f, 0, -0.25f, 0.75f, 3, -2, 1, 0.3f};
  const Value last = build.constant(good(Tensor::of<float>(Shape::of({2, 2, 3}), values)));
  const Value middle = build.op("Transpose", {last, build.ints({0, 2, 1})});
  const Value labels = build.constant(good(Tensor::of<int32_t>(Shape::of({2, 2}), std::vector<int32_t>{0, 2, 1, 0})));
  const Value column = build.op("ExpandDims", {labels, build.integer(1)}), by_class = build.ints({3, 1, 2});
  for (const bool ignores : {false, true}) {
    Loss settings{.kind = Loss::Kind::sparse_categorical_crossentropy, .reduction = Loss::Reduction::none, .from_logits = true};
    settings.ignores_class = ignores;
    settings.ignore_class = 2;
    settings.class_weights = by_class;
    const std::vector<float> wanted = small.floats(good(loss(small.model(), settings, labels, last, {})));
    settings.axis = 1;
    EXPECT_EQ(small.floats(good(loss(small.model(), settings, labels, middle, {}))), wanted);
    EXPECT_EQ(small.floats(good(loss(small.model(), settings, column, middle, {}))), wanted);
    settings.axis = -2;
    EXPECT_EQ(small.floats(good(loss(small.model(), settings, labels, middle, {}))), wanted);
    // Two classes are not three.
    const Status status = loss(small.model(), settings, labels, last, {}).status();
    EXPECT_EQ(status.code(), Code::invalid_argument) << status.message();
  }
}

// Each message says what stands there and what to do.
TEST(Losses, RefuseWhatCannotBeMeant) {
  SmallModel small;
  const Value logits = small.placeholder("logits", DType::f32, {-1, 3}), numbers = small.placeholder("numbers", DType::i32, {-1});
  const Value wide = small.placeholder("wide", DType::f32, {-1, 4}), words = small.placeholder("words", DType::string, {-1});
  const Value floats = small.placeholder("floats", DType::f32, {-1}), deep = small.placeholder("deep", DType::f32, {-1, 3, 3});
  const auto refused = [&](const Loss& what, Value labels, Value predictions, Value weights, const char* says) {
    const Status status = loss(small.model(), what, labels, predictions, weights).status();
    EXPECT_EQ(status.code(), Code::invalid_argument) << says;
    EXPECT_NE(std::string(status.message()).find(says), std::string::npos) << status.message();
  };
  const Loss sparse{.kind = Loss::Kind::sparse_categorical_crossentropy, .from_logits = true};
  const Loss categorical{.kind = Loss::Kind::categorical_crossentropy, .from_logits = true};
  refused(sparse, logits, numbers, {}, "labels and logits look swapped");
  refused(sparse, logits, floats, {}, "labels and logits look swapped");
  refused(categorical, logits, numbers, {}, "labels and logits look swapped");
  refused(sparse, floats, logits, {}, "cast them to int32 or int64");
  refused(sparse, logits, logits, {}, "use categorical_crossentropy");
  refused(categorical, numbers, logits, {}, "use sparse_categorical_crossentropy");
  refused(categorical, wide, logits, {}, "equal shapes are needed");
  refused({}, words, floats, {}, "numbers are needed");
  refused({}, logits, logits, deep, "one weight per loss");
  refused({.from_logits = true}, logits, logits, {}, "no logits");
  refused({.label_smoothing = 0.1}, logits, logits, {}, "label_smoothing must be 0");
  refused({.kind = Loss::Kind::binary_crossentropy, .label_smoothing = 2}, logits, logits, {}, "in [0, 1]");
  refused({.ignores_class = true}, logits, logits, {}, "sample weights of 0");
  refused({.axis = 2}, logits, logits, {}, "axis 2");
  refused({.kind = Loss::Kind::ctc}, logits, deep, {}, "ctc");
  EXPECT_NE(std::string(sparse_softmax_cross_entropy(small.graph(), logits, numbers).status().message()).find("look swapped"),
            std::string::npos);
  EXPECT_NE(std::string(sparse_softmax_cross_entropy(small.graph(), logits, floats).status().message()).find("look swapped"),
            std::string::npos);
  EXPECT_NE(std::string(accuracy(small.graph(), logits, numbers).status().message()).find("look swapped"), std::string::npos);
  // Labels as a column are one for each row; a number for each row tells no classes apart.
  const Value column = small.placeholder("column", DType::i64, {-1, 1}), lone = small.placeholder("lone", DType::f32, {-1, 1});
  const Value three = small.placeholder("three", DType::i64, {-1}), rows = small.placeholder("rows", DType::f32, {-1, 3});
  const Tensor some = good(Tensor::of<float>(Shape::of({4, 3}), std::span<const float>({9, 0, 0, 0, 9, 0, 0, 0, 9, 9, 0, 0})));
  const Tensor right = good(Tensor::of<int64_t>(Shape::of({4, 1}), std::span<const int64_t>({0, 1, 2, 1})));
  EXPECT_EQ(small.fetch(good(accuracy(small.graph(), column, rows)), {column, rows}, {right, some}).values<float>()[0], 0.75f);
  EXPECT_EQ(small.fetch(good(correct_count(small.graph(), column, rows)), {column, rows}, {right, some}).int_at(0), 3);
  EXPECT_NE(accuracy(small.graph(), column, lone).status().message().find("use the metric binary_accuracy"), std::string::npos);
  EXPECT_NE(correct_count(small.graph(), rows, rows).status().message().find("numbers of classes"), std::string::npos);
  // One label is not compared with all rows.
  const Value share = good(accuracy(small.graph(), three, rows));
  const Tensor one = good(Tensor::of<int64_t>(Shape::of({1}), std::span<const int64_t>({0})));
  const Value feeds[] = {three, rows};
  const Tensor* const given[] = {&one, &some};
  Tensor fetched;
  EXPECT_EQ(small.session().run({.feeds = feeds, .feed_tensors = given, .fetches = {&share, 1}, .targets = {}}, {&fetched, 1}).code(),
            Code::invalid_argument);
  // That CTC takes logits may be said.
  const Value text = small.placeholder("text", DType::i32, {-1, 2});
  EXPECT_TRUE(loss(small.model(), {.kind = Loss::Kind::ctc, .from_logits = true}, text, deep, {}).ok());
  EXPECT_TRUE(small.model().variables().empty());
}

// What is one for each class, or for each example, where the graph shows how many those are.
TEST(Losses, RefuseAnotherNumberOfWeights) {
  SmallModel small;
  Build build(small.graph());
  const Value logits = small.placeholder("logits", DType::f32, {4, 3}), numbers = small.placeholder("numbers", DType::i32, {4});
  const Value shares = small.placeholder("shares", DType::f32, {-1, 3}), open = small.placeholder("open", DType::f32, {-1, -1});
  const Value any = small.placeholder("any", DType::f32, {-1});
  const auto by_class = [&](int64_t count) {
    return build.constant(good(Tensor::of<float>(Shape::of({count}), std::vector<float>(static_cast<size_t>(count), 1))));
  };
  for (const bool sparse : {true, false}) {
    Loss what{.kind = sparse ? Loss::Kind::sparse_categorical_crossentropy : Loss::Kind::categorical_crossentropy, .from_logits = true};
    const Value labels = sparse ? numbers : shares;
    for (const int64_t count : {1, 2, 4, 5}) {
      what.class_weights = by_class(count);
      const Status status = loss(small.model(), what, labels, logits, {}).status();
      EXPECT_EQ(status.code(), Code::invalid_argument) << count;
      const std::string says = "float32[" + std::to_string(count) + "], and there are 3 classes; one weight for each class is needed";
      EXPECT_NE(status.message().find(says), std::string::npos) << status.message();
    }
    what.class_weights = build.scalar(DType::f32, 1);
    EXPECT_NE(loss(small.model(), what, labels, logits, {}).status().message().find("a vector is needed"), std::string::npos);
    what.class_weights = by_class(3);
    EXPECT_TRUE(loss(small.model(), what, labels, logits, {}).ok());
    what.class_weights = any;
    EXPECT_TRUE(loss(small.model(), what, labels, logits, {}).ok());
    what.class_weights = by_class(5);
    EXPECT_EQ(loss(small.model(), what, labels, open, {}).ok(), sparse);
    const Status status = loss(small.model(), {.kind = what.kind, .from_logits = true}, labels, logits, by_class(2)).status();
    EXPECT_NE(status.message().find("of float32[2] and the losses [4]; one weight per loss, or per example"), std::string::npos)
        << status.message();
  }
}

// Each of the two says where the labels of the other go.
TEST(Losses, OfSoftmaxTellLabelsApart) {
  SmallModel small;
  Graph& graph = small.graph();
  const Value logits = small.placeholder("logits", DType::f32, {-1, 3}), numbers = small.placeholder("numbers", DType::i64, {-1});
  const Value column = small.placeholder("column", DType::i64, {-1, 1}), hot = small.placeholder("hot", DType::i32, {-1, 3});
  const Value floats = small.placeholder("floats", DType::f32, {-1}), shares = small.placeholder("shares", DType::f32, {-1, 3});
  const auto says = [](const Result<Value>& made, const char* words) {
    EXPECT_EQ(made.status().code(), Code::invalid_argument) << words;
    EXPECT_NE(made.status().message().find(words), std::string::npos) << made.status().message();
  };
  for (const Value wrong : {numbers, column, floats}) {
    const auto made = softmax_cross_entropy(graph, wrong, logits);
    says(made, "labels that are numbers of classes go, as int32 or int64, to the sparse softmax cross entropy");
    EXPECT_EQ(made.status().message().find("ast"), std::string::npos) << made.status().message();
  }
  says(softmax_cross_entropy(graph, hot, logits), "cast labels that are shares of the classes, such as one-hot ones, to float32");
  says(sparse_softmax_cross_entropy(graph, shares, logits), "For labels that are distributions use the softmax cross entropy");
  says(sparse_softmax_cross_entropy(graph, hot, logits), "For labels that are distributions use the softmax cross entropy");
  // A column is one class for each row, as for the loss and the accuracy.
  const Tensor given = good(Tensor::of<float>(Shape::of({2, 3}), std::span<const float>({1, 2, 3, 0, 5, 1})));
  const Tensor row = good(Tensor::of<int64_t>(Shape::of({2}), std::span<const int64_t>({2, 0})));
  const Tensor pile = good(Tensor::of<int64_t>(Shape::of({2, 1}), std::span<const int64_t>({2, 0})));
  const Value by_row = good(sparse_softmax_cross_entropy(graph, numbers, logits));
  const Value by_column = good(sparse_softmax_cross_entropy(graph, column, logits));
  EXPECT_EQ(small.fetch(by_column, {column, logits}, {pile, given}).values<float>()[0],
            small.fetch(by_row, {numbers, logits}, {row, given}).values<float>()[0]);
}

}  // namespace
}  // namespace dtg
