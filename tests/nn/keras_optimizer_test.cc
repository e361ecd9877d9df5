// Optimizers and schedules against real Keras and TensorFlow: settings, shapes and gradients that were drawn, dense and rows, over ten
// steps; variables, slots and averages in the end (keras/optimizers.json.gz, made by keras/make_optimizers.py beside it).
#include <zlib.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "nn/clipping.h"
#include "nn/optimizer.h"
#include "nn/schedule.h"
#include "small_model.h"

namespace dtg {
namespace {

using Json = nlohmann::json;
using Kind = Optimizer::Kind;

Json golden_optimizers() {
  const char* source = std::getenv("DTG_SOURCE_DIR");
  if (!source) return {};
  const gzFile file = gzopen((std::string(source) + "/tests/nn/keras/optimizers.json.gz").c_str(), "rb");
  if (!file) return {};
  std::string text, piece(1 << 16, 0);
  for (int got; (got = gzread(file, piece.data(), static_cast<unsigned>(piece.size()))) > 0;)
    text.append(piece, 0, static_cast<size_t>(got));
  gzclose(file);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

Tensor given_tensor(const Json& given) {
  const std::vector<int64_t> dims = given["shape"];
  const std::vector<float> values = given["values"];
  return good(Tensor::of<float>(good(Shape::make(dims)), std::span<const float>(values)));
}

constexpr const char* kKinds[] = {"sgd",    "momentum", "adam", "adagrad", "rms_prop", "adam_w", "adadelta",
                                  "adamax", "nadam",    "ftrl", "lion",    "lamb",     "lars",   "adafactor"};

template <class T>
void take(const Json& from, const char* name, T& into) {
  if (from.contains(name)) into = from[name].get<T>();
}

Optimizer optimizer_of(const Json& s) {
  const auto kind = std::ranges::find(kKinds, s["kind"].get<std::string>());
  EXPECT_NE(kind, std::end(kKinds)) << s["kind"];
  Optimizer o = Optimizer::of(static_cast<Kind>(kind - std::begin(kKinds)));
  for (const auto& [name, into] : std::initializer_list<std::pair<const char*, double*>>{{"rate", &o.rate},
                                                                                         {"momentum", &o.momentum},
                                                                                         {"beta1", &o.beta1},
                                                                                         {"beta2", &o.beta2},
                                                                                         {"epsilon", &o.epsilon},
                                                                                         {"decay", &o.decay},
                                                                                         {"initial_accumulator", &o.initial_accumulator},
                                                                                         {"l1", &o.l1},
                                                                                         {"l2", &o.l2},
                                                                                         {"l2_shrinkage", &o.l2_shrinkage},
                                                                                         {"ftrl_beta", &o.ftrl_beta},
                                                                                         {"rate_power", &o.rate_power},
                                                                                         {"trust", &o.trust},
                                                                                         {"epsilon2", &o.epsilon2},
                                                                                         {"clip_threshold", &o.clip_threshold},
                                                                                         {"clip_norm", &o.clip_norm},
                                                                                         {"clip_each_norm", &o.clip_each_norm},
                                                                                         {"clip_value", &o.clip_value},
                                                                                         {"ema_momentum", &o.ema_momentum},
                                                                                         {"weight_decay", &o.weight_decay}}) {
    take(s, name, *into);
  }
  for (const auto& [name, into] : std::initializer_list<std::pair<const char*, bool*>>{
           {"nesterov", &o.nesterov}, {"amsgrad", &o.amsgrad}, {"centered", &o.centered}, {"use_ema", &o.use_ema}}) {
    take(s, name, *into);
  }
  take(s, "ema_overwrite_every", o.ema_overwrite_every);
  take(s, "accumulation_steps", o.accumulation_steps);
  take(s, "undecayed_names", o.undecayed_names);
  return o;
}

// Variables with gradients that are fed.
class Steps {
 public:
  explicit Steps(const Json& given) : given_(given) {
    for (size_t i = 0; i < given["first"].size(); ++i) {
      const std::string name = "v" + std::to_string(i);
      const std::vector<int64_t> dims = given["first"][i]["shape"];
      variables_.push_back(small_.variable(name.c_str(), given["first"][i]["values"], dims));
      VariableGradient each{variables_.back(), {}};
      if (given["rows"]) {
        std::vector<int64_t> of_rows = dims;
        of_rows[0] = -1;
        each.gradient.values = small_.placeholder((name + "_values").c_str(), DType::f32, of_rows);
        each.gradient.indices = small_.placeholder((name + "_indices").c_str(), DType::i64, {-1});
        Build build(small_.graph());
        each.gradient.dense_shape = build.ints(dims, DType::i64);
      } else {
        each.gradient.dense = small_.placeholder((name + "_gradient").c_str(), DType::f32, dims);
      }
      gradients_.push_back(each);
    }
  }

  void check() {
    const Optimizer optimizer = optimizer_of(given_["settings"]);
    std::vector<VariableGradient> clipped = gradients_;
    ASSERT_TRUE(clip_gradients(small_.model(), optimizer, clipped, nullptr).ok());
    const NodeId train = good(apply_gradients(small_.model(), optimizer, clipped));
    small_.init();
    for (const Json& step : given_["gradients"]) run(step, train);
    for (size_t i = 0; i < variables_.size(); ++i) expect_near(variables_[i].name, variables_[i].read, given_["after"][i]);
    for (const auto& [name, value] : given_["slots"].items()) {
      const NamedVariable* const slot = small_.model().find(name);
      ASSERT_NE(slot, nullptr) << name;
      expect_near(name, slot->read, value);
    }
  }

 private:
  void run(const Json& step, NodeId train) {
    std::vector<Value> feeds;
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < step.size(); ++i) {
      const Gradient& g = gradients_[i].gradient;
      if (!g.is_rows()) {
        feeds.push_back(g.dense);
        tensors.push_back(given_tensor(step[i]));
        continue;
      }
      const std::vector<int64_t> indices = step[i]["indices"];
      feeds.push_back(g.values);
      tensors.push_back(given_tensor(step[i]["values"]));
      feeds.push_back(g.indices);
      tensors.push_back(good(Tensor::of<int64_t>(Shape::of({static_cast<int64_t>(indices.size())}), std::span<const int64_t>(indices))));
    }
    std::vector<const Tensor*> fed;
    for (const Tensor& tensor : tensors) fed.push_back(&tensor);
    const Status status = small_.session().run({.feeds = feeds, .feed_tensors = fed, .fetches = {}, .targets = {&train, 1}}, {});
    ASSERT_TRUE(status.ok()) << status.message();
  }

  // 1e-6 of the size of what is compared: ten steps of float32 on both sides, which round in other places.
  void expect_near(const std::string& what, Value value, const Json& expected) {
    const std::vector<float> wanted = expected["values"], have = small_.floats(value);
    ASSERT_EQ(have.size(), wanted.size()) << what;
    double size = 0;
    for (const float each : wanted) size = std::max<double>(size, std::abs(each));
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(have[i], wanted[i], 1e-6 * std::max(size, 1.0)) << what << ", element " << i;
  }

  SmallModel small_;
  const Json& given_;
  std::vector<NamedVariable> variables_;
  std::vector<VariableGradient> gradients_;
};

TEST(KerasOptimizers, MakeTheSameSteps) {
  const Json all = golden_optimizers();
  if (!all.is_object()) GTEST_SKIP() << "set DTG_SOURCE_DIR";
  ASSERT_GE(all["cases"].size(), 2 * std::size(kKinds));
  size_t number = 0;
  for (const Json& each : all["cases"]) {
    SCOPED_TRACE("case " + std::to_string(number++) + (each["rows"] ? ", rows: " : ": ") + each["settings"].dump());
    Steps(each).check();
    if (HasFatalFailure()) return;
  }
}

Schedule schedule_of(const Json& s) {
  constexpr const char* kNames[] = {"exponential_decay",  "inverse_time_decay", "polynomial_decay",
                                    "piecewise_constant", "cosine_decay",       "cosine_decay_restarts"};
  Schedule schedule;
  const auto kind = std::ranges::find(kNames, s["kind"].get<std::string>());
  EXPECT_NE(kind, std::end(kNames)) << s["kind"];
  schedule.kind = static_cast<Schedule::Kind>(kind - std::begin(kNames));
  for (const auto& [name, into] : std::initializer_list<std::pair<const char*, double*>>{{"rate", &schedule.rate},
                                                                                         {"steps", &schedule.steps},
                                                                                         {"decay_rate", &schedule.decay_rate},
                                                                                         {"end_rate", &schedule.end_rate},
                                                                                         {"power", &schedule.power},
                                                                                         {"alpha", &schedule.alpha},
                                                                                         {"warmup_target", &schedule.warmup_target},
                                                                                         {"warmup_steps", &schedule.warmup_steps},
                                                                                         {"t_mul", &schedule.t_mul},
                                                                                         {"m_mul", &schedule.m_mul}}) {
    take(s, name, *into);
  }
  take(s, "staircase", schedule.staircase);
  take(s, "cycle", schedule.cycle);
  take(s, "warms_up", schedule.warms_up);
  take(s, "boundaries", schedule.boundaries);
  if (s.contains("values")) schedule.values = s["values"].get<std::vector<double>>();
  return schedule;
}

TEST(KerasSchedules, GiveTheSameRates) {
  const Json all = golden_optimizers();
  if (!all.is_object()) GTEST_SKIP() << "set DTG_SOURCE_DIR";
  ASSERT_GE(all["schedules"].size(), 24u);
  for (const Json& each : all["schedules"]) {
    SCOPED_TRACE(each["settings"].dump());
    SmallModel small;
    const Value step = small.placeholder("step", DType::i64, {});
    const Value rate = good(add_schedule(small.graph(), step, schedule_of(each["settings"])));
    for (size_t i = 0; i < each["at"].size(); ++i) {
      const float found = small.fetch(rate, {step}, {good(Tensor::scalar<int64_t>(each["at"][i].get<int64_t>()))}).values<float>()[0];
      const float wanted = each["rates"][i];
      EXPECT_NEAR(found, wanted, 1e-6 * std::max(1.0f, std::abs(wanted))) << "step " << each["at"][i];
    }
  }
}

}  // namespace
}  // namespace dtg
