// Metrics against real Keras after one to five batches, with weights and without (keras/losses.json.gz, made by keras/make_losses.py beside
// it); state that adds up over towers and batches; what is refused.
#include "nn/metric.h"

#include "golden.h"

namespace dtg {
namespace {

Metric settings_of(const Answers& given) {
  using Average = Metric::Average;
  const Answers& s = given["settings"];
  const std::string kind = given["metric"], average = s.value("average", "none"), summation = s.value("summation", "interpolation");
  Metric metric;
  for (int32_t i = 0; i <= static_cast<int32_t>(Metric::Kind::confusion_matrix); ++i) {
    if (kind == metric_name(static_cast<Metric::Kind>(i))) metric.kind = static_cast<Metric::Kind>(i);
  }
  EXPECT_EQ(metric_name(metric.kind), kind);
  metric.from_logits = s.value("from_logits", false);
  metric.threshold = s.value("threshold", -1.0);
  metric.k = s.value("k", 5);
  metric.classes = s.value("classes", 0);
  metric.thresholds = s.value("thresholds", 200);
  metric.curve = s.value("curve", "ROC") == "PR" ? Metric::Curve::pr : Metric::Curve::roc;
  metric.summation = summation == "minoring"   ? Metric::Summation::minoring
                     : summation == "majoring" ? Metric::Summation::majoring
                                               : Metric::Summation::interpolation;
  metric.average = average == "none"                            ? Average::none
                   : average == "micro"                         ? Average::micro
                   : average == "macro" || average == "uniform" ? Average::uniform
                                                                : Average::weighted;
  metric.ignores_class = s.contains("ignore_class");
  metric.ignore_class = s.value("ignore_class", 0);
  return metric;
}

// Placeholders for the tensors of a batch, whose number of examples is open.
class Batches {
 public:
  explicit Batches(SmallModel& small) : small_(small) {}

  Value placeholder(const Answers& batch, const char* name) {
    if (!batch.contains(name)) return {};
    const Tensor value = tensor_of(batch[name]);
    std::vector<int64_t> dims(value.shape().dims().begin(), value.shape().dims().end());
    if (!dims.empty()) dims[0] = -1;
    names_.push_back(name);
    places_.push_back(small_.placeholder(name, value.dtype(), dims));
    return places_.back();
  }

  // The result, with the batch in it.
  Tensor add(const Answers& batch, const Measured& metric) {
    std::vector<Tensor> tensors;
    std::vector<const Tensor*> given;
    for (const std::string& name : names_) tensors.push_back(tensor_of(batch[name]));
    for (const Tensor& tensor : tensors) given.push_back(&tensor);
    const NodeId targets[] = {metric.update};
    Tensor result;
    const Status status =
        small_.session().run({.feeds = places_, .feed_tensors = given, .fetches = {&metric.result, 1}, .targets = targets}, {&result, 1});
    EXPECT_TRUE(status.ok()) << status.message();
    return result;
  }

 private:
  SmallModel& small_;
  std::vector<std::string> names_;
  std::vector<Value> places_;
};

TEST(Metrics, AreThoseOfKerasAfterEachBatch) {
  const Answers all = golden("losses.json.gz");
  if (!all.is_object()) GTEST_SKIP() << "set DTG_SOURCE_DIR";
  ASSERT_GT(all["metrics"].size(), 100u);
  size_t number = 0;
  for (const Answers& each : all["metrics"]) {
    SCOPED_TRACE("case " + std::to_string(number++) + ": " + std::string(each["metric"]) + " " + each["settings"].dump());
    SmallModel small;
    Batches batches(small);
    const Answers& rows = each["batches"];
    const Value labels = batches.placeholder(rows[0], "labels"), predictions = batches.placeholder(rows[0], "predictions");
    const Value weights = batches.placeholder(rows[0], "weights");
    const Measured metric = good(measure(small.model(), settings_of(each), labels, predictions, weights));
    ASSERT_TRUE(metric.result.valid());
    // Twice, to see that what was there is gone.
    for (int round = 0; round < 2; ++round) {
      small.step(metric.reset);
      for (const Answers& row : rows) {
        expect_close("result", batches.add(row, metric), row["result"], 2e-6, /*least=*/1);  // Keras adds up in float32
      }
    }
    for (const NamedVariable& variable : small.model().variables()) EXPECT_FALSE(variable.trainable);
  }
}

// Two towers add to the same state, and the result is that of one batch of both.
TEST(Metrics, OfTowersAddUp) {
  const auto area = [](bool towers) {
    SmallModel small;
    Build build(small.graph());
    const auto part = [&](std::vector<float> values) {
      return build.constant(good(Tensor::of<float>(Shape::of({static_cast<int64_t>(values.size())}), values)));
    };
    const std::vector<float> labels{0, 1, 1, 0, 1, 0, 1}, scores{0.1f, 0.8f, 0.4f, 0.5f, 0.7f, 0.2f, 0.3f};
    const Metric metric{.kind = Metric::Kind::auc};
    std::vector<Measured> made;
    if (towers) {
      made.push_back(
          good(measure(small.model(), metric, part({labels.begin(), labels.begin() + 3}), part({scores.begin(), scores.begin() + 3}), {})));
      small.model().next_tower();
      made.push_back(
          good(measure(small.model(), metric, part({labels.begin() + 3, labels.end()}), part({scores.begin() + 3, scores.end()}), {})));
    } else {
      made.push_back(good(measure(small.model(), metric, part(labels), part(scores), {})));
    }
    EXPECT_EQ(small.model().variables().size(), 2u);
    small.init();
    std::vector<NodeId> updates;
    for (const Measured& each : made) updates.push_back(each.update);
    EXPECT_TRUE(small.session().run({.feeds = {}, .feed_tensors = {}, .fetches = {}, .targets = updates}, {}).ok());
    return small.floats(made[0].result);
  };
  EXPECT_EQ(area(true), area(false));
}

// Float32 stops counting at 2^24.
TEST(Metrics, CountFurtherThanFloats) {
  SmallModel small;
  Build build(small.graph());
  const Value big = build.scalar(DType::f32, 16777216);
  const Value values = build.op("Pack", std::array{big, build.scalar(DType::f32, 1)});
  const Measured sum = good(measure(small.model(), {.kind = Metric::Kind::sum}, {}, values, {}));
  small.init();
  small.step(sum.update);
  small.step(sum.update);
  EXPECT_EQ(small.floats(sum.result), std::vector<float>{33554434.0f});
}

// The mean of any loss, where an ignored class is left out of the count.
TEST(Metrics, OfLossesLeaveOutWhatIsIgnored) {
  SmallModel small;
  Build build(small.graph());
  const Value logits = build.constant(good(Tensor::of<float>(Shape::of({3, 2}), std::vector<float>{0, 0, 3, 1, 0, 0})));
  Metric metric{.kind = Metric::Kind::loss};
  metric.loss = {.kind = Loss::Kind::sparse_categorical_crossentropy, .from_logits = true, .ignores_class = true, .ignore_class = 9};
  const Measured mean = good(measure(small.model(), metric, build.ints({0, 9, 1}), logits, {}));
  small.init();
  small.step(mean.update);
  EXPECT_NEAR(small.floats(mean.result).at(0), std::log(2.0), 1e-6);
}

// Logits are compared with the logit of the threshold, which is 0 where nothing is said.
TEST(Metrics, OfLogitsDecideAsThoseOfProbabilities) {
  using Kind = Metric::Kind;
  SmallModel small;
  Build build(small.graph());
  const Value logits = build.constant(good(Tensor::of<float>(Shape::of({6, 1}), std::vector<float>{-2, -0.1f, 0.1f, 0.4f, 1, 3})));
  const Value labels = build.constant(good(Tensor::of<float>(Shape::of({6, 1}), std::vector<float>{1, 0, 1, 0, 1, 1})));
  const Value chances = build.op("Sigmoid", {logits});
  for (const double threshold : {-1.0, 0.3, 0.7, 1.0}) {
    for (const Kind kind : {Kind::binary_accuracy, Kind::precision, Kind::recall, Kind::true_positives, Kind::false_positives,
                            Kind::true_negatives, Kind::false_negatives, Kind::f1_score}) {
      if (kind == Kind::f1_score && threshold < 0) continue;
      const Metric of_chances{.kind = kind, .threshold = threshold}, of_logits{.kind = kind, .from_logits = true, .threshold = threshold};
      const Measured wanted = good(measure(small.model(), of_chances, labels, chances, {}));
      const Measured made = good(measure(small.model(), of_logits, labels, logits, {}));
      small.init();
      small.step(wanted.update);
      small.step(made.update);
      EXPECT_EQ(small.floats(made.result), small.floats(wanted.result)) << metric_name(kind) << " " << threshold;
    }
  }
}

TEST(Metrics, RefuseWhatCannotBeMeant) {
  SmallModel small;
  const Value logits = small.placeholder("logits", DType::f32, {-1, 3}), numbers = small.placeholder("numbers", DType::i32, {-1});
  const Value flat = small.placeholder("flat", DType::f32, {-1});
  const auto refused = [&](const Metric& what, Value labels, Value predictions, const char* says) {
    const Model::Mark before = small.model().mark();
    const Status status = measure(small.model(), what, labels, predictions, {}).status();
    EXPECT_EQ(status.code(), Code::invalid_argument) << says;
    EXPECT_NE(std::string(status.message()).find(says), std::string::npos) << status.message();
    small.model().go_back(before);
  };
  refused({.kind = Metric::Kind::sparse_categorical_accuracy}, logits, numbers, "look swapped");
  refused({.kind = Metric::Kind::categorical_accuracy}, numbers, logits, "sparse_categorical_accuracy");
  refused({.kind = Metric::Kind::auc}, {}, logits, "labels are needed");
  refused({}, numbers, logits, "no labels");
  refused({.kind = Metric::Kind::auc, .thresholds = 2}, flat, flat, "thresholds");
  refused({.kind = Metric::Kind::accuracy, .from_logits = true}, flat, flat, "from_logits must be 0");
  refused({.kind = Metric::Kind::loss, .from_logits = true}, flat, flat, "from_logits must be 0, and stand in the loss");
  refused({.kind = Metric::Kind::f1_score, .from_logits = true}, logits, logits, "from_logits must be 0, unless a threshold decides");
  refused({.kind = Metric::Kind::precision, .threshold = 2}, flat, flat, "threshold of 2");
  refused({.kind = Metric::Kind::precision}, flat, logits, "equal shapes");
  // Labels of one shape with the predictions, or of one dimension less that is 1: no label is compared with several predictions.
  const Value pairs = small.placeholder("pairs", DType::f32, {-1, 2}), column = small.placeholder("column", DType::f32, {-1, 1});
  for (const Metric::Kind kind : {Metric::Kind::root_mean_squared_error, Metric::Kind::mean_squared_error, Metric::Kind::binary_accuracy,
                                  Metric::Kind::accuracy, Metric::Kind::precision}) {
    refused({.kind = kind}, pairs, logits, "equal shapes");
    EXPECT_TRUE(measure(small.model(), {.kind = kind}, flat, column, {}).ok()) << metric_name(kind);
  }
  refused({.kind = Metric::Kind::r2_score}, column, pairs, "equal shapes");
  // The greatest of one number is that number.
  const Value whole = small.placeholder("whole", DType::i32, {-1, 1});
  for (const Metric::Kind kind : {Metric::Kind::sparse_categorical_accuracy, Metric::Kind::sparse_top_k_categorical_accuracy})
    refused({.kind = kind}, whole, column, "use the metric binary_accuracy");
  for (const Metric::Kind kind : {Metric::Kind::categorical_accuracy, Metric::Kind::top_k_categorical_accuracy})
    refused({.kind = kind}, column, column, "use the metric binary_accuracy");
  refused({.kind = Metric::Kind::root_mean_squared_error}, flat, logits, "equal shapes");
  refused({.kind = Metric::Kind::f1_score}, flat, flat, "classes known");
  refused({.kind = Metric::Kind::r2_score}, flat, flat, "reshape both to [-1, 1]");
  refused({.kind = Metric::Kind::mean_iou}, numbers, numbers, "0 classes");
  refused({.kind = Metric::Kind::confusion_matrix, .classes = 4}, numbers, logits, "scores [..., 4]");
}

}  // namespace
}  // namespace dtg
