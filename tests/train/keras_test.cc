// Fits beside those of real Keras (tests/nn/keras/make_fit.py): when training stops and which weights it keeps, how the rate falls, and the
// losses of sixty batches.
#include <cmath>

#include "nn/golden.h"
#include "nn/layers.h"
#include "nn/losses.h"
#include "train/course.h"

namespace dtg {
namespace {

Watch watch_of(const Answers& given) {
  return {"x", given["greater"].get<bool>() ? Better::greater : Better::less, given["min_delta"].get<double>()};
}

double value_in(const Answers& value) { return value.is_null() ? std::nan("") : value.get<double>(); }

TEST(KerasFit, StopsWhereKerasStops) {
  const Answers answers = golden("fit.json.gz");
  if (!answers.is_object()) GTEST_SKIP() << "DTG_SOURCE_DIR is not set";
  int stopped = 0;
  for (const Answers& given : answers["stopping"]) {
    EarlyStopping::Rule rule{
        .watch = watch_of(given), .patience = given["patience"], .restores = given["restores"], .from_epoch = given["from_epoch"]};
    if (!given["baseline"].is_null()) rule.baseline = given["baseline"].get<double>();
    int64_t last = -1, kept = -1, ended = -1;
    std::optional<EarlyStopping> stopping(rule);
    for (const Answers& value : given["values"]) {
      const auto verdict = stopping->epoch_ended(++last, value_in(value));
      if (verdict.keep && rule.restores) kept = last;
      // What a checkpoint keeps of it is all there is to it.
      const auto state = parse_json(stopping->state().text(), "a state");
      ASSERT_TRUE(state.ok());
      stopping.emplace(rule);
      stopping->set_state(state.value());
      if (!verdict.stop) continue;
      ended = last;
      break;
    }
    EXPECT_EQ(ended, given["stopped"].get<int64_t>()) << given.dump();
    EXPECT_EQ(kept, given["restored"].get<int64_t>()) << given.dump();
    EXPECT_TRUE(kept < 0 || stopping->best_epoch() == kept) << given.dump();
    stopped += ended >= 0;
  }
  EXPECT_GT(stopped, 100);
}

TEST(KerasFit, LowersTheRateWhereKerasDoes) {
  const Answers answers = golden("fit.json.gz");
  if (!answers.is_object()) GTEST_SKIP() << "DTG_SOURCE_DIR is not set";
  int fell = 0;
  for (const Answers& given : answers["plateau"]) {
    const Plateau::Rule rule{watch_of(given), given["factor"], given["patience"], given["cooldown"], given["least_rate"]};
    std::optional<Plateau> plateau(rule);
    float rate = given["rate"];
    for (size_t i = 0; i < given["values"].size(); ++i) {
      const auto lower = plateau->epoch_ended(value_in(given["values"][i]), rate);
      fell += lower.has_value();
      rate = lower.value_or(rate);
      const auto state = parse_json(plateau->state().text(), "a state");
      ASSERT_TRUE(state.ok());
      plateau.emplace(rule);
      plateau->set_state(state.value());
      ASSERT_EQ(rate, given["rates"][i].get<float>()) << "epoch " << i << " of " << given.dump();
    }
  }
  EXPECT_GT(fell, 100);
}

// Where Keras would take it for the best for ever.
TEST(KerasFit, TakesNothingForTheBestThatIsNoNumber) {
  const double no_number = std::nan("");
  EarlyStopping stopping({.watch = {"loss", Better::by_name, 0}, .patience = 2});
  EXPECT_FALSE(stopping.epoch_ended(0, no_number).stop);
  EXPECT_TRUE(stopping.epoch_ended(1, 7).keep);
  EXPECT_EQ(stopping.best(), 7);
  EXPECT_FALSE(stopping.epoch_ended(2, no_number).stop);
  EXPECT_TRUE(stopping.epoch_ended(3, no_number).stop);
  Plateau plateau({.watch = {"val_auc", Better::by_name, 0}, .factor = 0.5, .patience = 2});
  EXPECT_FALSE(plateau.epoch_ended(no_number, 1).has_value());
  EXPECT_FALSE(plateau.epoch_ended(0.25, 1).has_value());
  EXPECT_FALSE(plateau.epoch_ended(0.5, 1).has_value());
  EXPECT_FALSE(plateau.epoch_ended(0.25, 1).has_value());
  EXPECT_EQ(plateau.epoch_ended(no_number, 1).value_or(0), 0.5f);
}

TEST(KerasFit, ComesToTheLossesOfKeras) {
  const Answers answers = golden("fit.json.gz");
  if (!answers.is_object()) GTEST_SKIP() << "DTG_SOURCE_DIR is not set";
  const Answers& curve = answers["curve"];
  SmallModel small(3, 2);
  const Value x = small.placeholder("x", DType::f32, {-1, 12}), y = small.placeholder("y", DType::i64, {-1});
  const Value hidden = good(dense(small.model(), x, {.units = 10, .activation = Activation::relu}));
  const Value logits = good(dense(small.model(), hidden, {.units = 4}));
  const Value loss = good(sparse_softmax_cross_entropy(small.graph(), y, logits));
  const Measured accuracy = good(measure(small.model(), {.kind = Metric::Kind::sparse_categorical_accuracy}, y, logits, {}));
  Optimizer adam = Optimizer::of(Optimizer::Kind::adam);
  adam.rate = 0.01;
  const auto trainer =
      good(Trainer::create(Ref<Model>::share(&small.model()),
                           {.session = Ref<Session>::share(&small.session()), .feeds = {x, y}, .loss = loss, .optimizer = adam}));
  ASSERT_TRUE(trainer->add_metric("accuracy", accuracy).ok());
  ASSERT_TRUE(trainer->give_first_values().ok());
  std::vector<const NamedVariable*> weights;
  for (const NamedVariable& variable : small.model().variables()) {
    if (variable.trainable) weights.push_back(&variable);
  }
  ASSERT_EQ(weights.size(), curve["weights"].size());
  for (size_t i = 0; i < weights.size(); ++i) {
    const Tensor given = tensor_of(curve["weights"][i]);
    const Tensor* const fed[] = {&given};
    const Value feed[] = {small.graph().node(weights[i]->assign).inputs[1]};
    ASSERT_TRUE(small.session().run({.feeds = feed, .feed_tensors = fed, .fetches = {}, .targets = {&weights[i]->assign, 1}}, {}).ok());
  }
  const auto data_of = [&](const char* inputs, const char* labels) {
    const Tensor slices[] = {tensor_of(curve[inputs]), tensor_of(curve[labels])};
    return Reading(good(make_batch(good(make_slices(slices)), 16, false)));
  };
  Reading train = data_of("x", "y"), test = data_of("test_x", "test_y");
  auto course = good(Course::begin(trainer, {&train, {}}, {&test, {}}, {.epochs = 4}));
  const Answers& history = curve["history"];
  size_t step = 0, epoch = 0;
  for (Course::Event event; event.kind != Course::Kind::done;) {
    event = good(course->next());
    if (event.kind == Course::Kind::step) {
      EXPECT_NEAR(event.loss, curve["losses"][step].get<double>(), 1e-4) << "batch " << step;
      ++step;
    }
    if (event.kind != Course::Kind::epoch_end) continue;
    for (const char* name : {"loss", "accuracy", "val_loss", "val_accuracy"}) {
      ASSERT_NE(event.values->find(name), nullptr) << name;
      EXPECT_NEAR(*event.values->find(name), history[name][epoch].get<double>(), 1e-4) << name << " of epoch " << epoch;
    }
    ++epoch;
  }
  EXPECT_EQ(step, 60u);
  EXPECT_EQ(epoch, 4u);
  for (size_t i = 0; i < weights.size(); ++i) {
    Tensor value;
    ASSERT_TRUE(small.session().run({.feeds = {}, .feed_tensors = {}, .fetches = {&weights[i]->read, 1}, .targets = {}}, {&value, 1}).ok());
    expect_close(weights[i]->name, value, curve["after"][i], 1e-4);
  }
}

}  // namespace
}  // namespace dtg
