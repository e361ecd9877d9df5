// The Ftrl ops against TensorFlow, element by element (keras/ftrl.json.gz, made by keras/make_ftrl.py beside it). Where the learning rate
// is small, what is added to `linear` is thousands of times what is left of it, so another order of the same additions shows.
#include <bit>
#include <cmath>
#include <limits>

#include "golden.h"

namespace dtg {
namespace {

float number(const Answers& bits) { return std::bit_cast<float>(bits.get<uint32_t>()); }
std::vector<float> numbers(const Answers& bits) {
  std::vector<float> list;
  for (const Answers& each : bits) list.push_back(number(each));
  return list;
}

class FtrlCase {
 public:
  explicit FtrlCase(const Answers& given) : given_(given), build_(small_.graph()) {}

  void check() {
    std::vector<Value> inputs, reads;
    std::vector<NodeId> assigns;
    const char* const names[] = {"var", "accum", "linear"};
    for (int i = 0; i < 3; ++i) {
      const Value first = matrix(given_["before"][static_cast<size_t>(i)]);
      inputs.push_back(
          build_.op("VarHandleOp", std::span<const Value>(),
                    std::vector<Attr>{{"dtype", DType::f32}, {"shape", small_.graph().info(first).shape}, {"shared_name", names[i]}}));
      assigns.push_back(build_.node("AssignVariableOp", std::vector<Value>{inputs.back(), first}));
    }
    inputs.push_back(matrix(given_["grad"]));
    if (!given_["rows"].is_null()) inputs.push_back(build_.ints(given_["rows"].get<std::vector<int64_t>>()));
    const Answers& settings = given_["settings"];
    for (const char* name : {"lr", "l1", "l2", "l2_shrinkage", "lr_power"}) {
      if (settings.contains(name)) inputs.push_back(build_.constant(Tensor::scalar<float>(number(settings[name])).take()));
    }
    const std::string op = given_["op"];
    const NodeId update =
        build_.node(op, inputs, std::vector<Attr>{{"multiply_linear_by_lr", given_["multiply_linear_by_lr"].get<bool>()}}, {}, assigns);
    for (int i = 0; i < 3; ++i) {
      const Value handle = inputs[static_cast<size_t>(i)];
      const NodeId controls[] = {update};
      reads.push_back(build_.op("ReadVariableOp", std::vector<Value>{handle}, std::vector<Attr>{{"dtype", DType::f32}}, {}, controls));
    }
    ASSERT_TRUE(build_.ok()) << build_.status().message();
    std::vector<Tensor> after(3);
    const Status status = small_.session().run({.feeds = {}, .feed_tensors = {}, .fetches = reads, .targets = {}}, after);
    ASSERT_TRUE(status.ok()) << status.message();
    for (size_t i = 0; i < 3; ++i) compare(names[i], after[i], numbers(given_["after"][i]));
  }

 private:
  Value matrix(const Answers& bits) {
    const std::vector<float> values = numbers(bits);
    constexpr int64_t kWidth = 3;
    const Shape shape = Shape::of({static_cast<int64_t>(values.size()) / kWidth, kWidth});
    return build_.constant(Tensor::of<float>(shape, values).take());
  }

  // Roots are exact but for their last bit, and then each addition has the bits of TensorFlow's. Powers are each C library's own.
  bool is_exact() const { return number(given_["settings"]["lr_power"]) == -0.5f; }

  // The largest that goes into it: two powers of the accumulator, of which the difference counts.
  double largest_term(std::string_view name, size_t i) const {
    const double before = std::abs(numbers(given_["before"][0])[i]);
    if (name != "linear") return before;
    const double power = number(given_["settings"]["lr_power"]), rate = number(given_["settings"]["lr"]);
    const double term = std::pow(numbers(given_["after"][1])[i], -power) * before;
    return given_["multiply_linear_by_lr"].get<bool>() ? term : term / rate;
  }

  void compare(const char* name, const Tensor& have, const std::vector<float>& want) const {
    ASSERT_EQ(have.count(), static_cast<int64_t>(want.size()));
    constexpr double kRounding = std::numeric_limits<float>::epsilon();
    for (size_t i = 0; i < want.size(); ++i) {
      const float got = have.as<float>()[i];
      if (is_exact()) EXPECT_EQ(got, want[i]) << name << ", element " << i;
      else
        EXPECT_NEAR(got, want[i], 4 * kRounding * std::max<double>(largest_term(name, i), std::abs(want[i]))) << name << ", element " << i;
    }
  }

  SmallModel small_;
  const Answers& given_;
  Build build_;
};

TEST(Ftrl, AddsAsTensorFlowDoes) {
  const Answers all = golden("ftrl.json.gz");
  if (!all.is_object()) GTEST_SKIP() << "set DTG_SOURCE_DIR";
  ASSERT_EQ(all["cases"].size(), 96u);
  for (const Answers& each : all["cases"]) {
    SCOPED_TRACE(each["op"].get<std::string>() + " " + each["settings"].dump());
    FtrlCase(each).check();
  }
}

}  // namespace
}  // namespace dtg
