// Every differentiable op against central differences in float64 (in float32 where the op has no other), through the public C ABI
// only: the op table is walked, and an op without a recipe is a failure. One thread.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <memory>
#include <set>

#include <nlohmann/json.hpp>

#include <dtg/dtg.h>

#include "recipe.h"

namespace dtg::grads {
namespace {

// How far an input moves, and how far its gradient may be off, of max(1, |gradient|).
struct Precision {
  dtg_dtype dtype;
  double step, allowed;
};
constexpr Precision kDouble = {DTG_F64, 1e-5, 1e-6}, kSingle = {DTG_F32, 4e-3, 2e-3};

using Tensor = std::shared_ptr<dtg_tensor>;

// Reports a failed call; true when it went well.
bool good(dtg_error* error) {
  if (!error) return true;
  ADD_FAILURE() << dtg_code_name(dtg_error_code(error)) << ": " << dtg_error_message(error, nullptr);
  dtg_error_release(error);
  return false;
}

Tensor make(dtg_dtype dtype, const Dims& dims, const std::vector<double>& values) {
  dtg_tensor* tensor = nullptr;
  if (!good(dtg_tensor_allocate(dtype, dims.data(), dims.size(), &tensor))) return nullptr;
  char* at = static_cast<char*>(dtg_tensor_mutable_data(tensor));
  const auto put = [&at](auto value) {
    std::memcpy(at, &value, sizeof value);
    at += sizeof value;
  };
  for (double value : values) {
    if (dtype == DTG_F64) put(value);
    else if (dtype == DTG_F32) put(static_cast<float>(value));
    else if (dtype == DTG_I32) put(static_cast<int32_t>(value));
    else if (dtype == DTG_I64) put(static_cast<int64_t>(value));
    else put(static_cast<uint8_t>(value));
  }
  return {tensor, dtg_tensor_release};
}

std::vector<double> reals(const Tensor& tensor) {
  std::vector<double> list(static_cast<size_t>(dtg_tensor_count(tensor.get())));
  if (list.empty()) return list;
  const void* data = dtg_tensor_data(tensor.get(), nullptr);
  if (dtg_tensor_dtype(tensor.get()) == DTG_F64) {
    std::memcpy(list.data(), data, list.size() * sizeof(double));
  } else {
    std::vector<float> narrow(list.size());
    std::memcpy(narrow.data(), data, list.size() * sizeof(float));
    list.assign(narrow.begin(), narrow.end());
  }
  return list;
}

// Reals that repeat from run to run and keep their distance from 0, where many ops have a corner.
class Draws {
 public:
  double next(double low, double high) {
    for (;;) {
      state_ = state_ * 6364136223846793005u + 1442695040888963407u;
      const double value = low + (high - low) * static_cast<double>(state_ >> 11) * 0x1p-53;
      if (std::fabs(value) > 0.05) return value;
    }
  }

 private:
  uint64_t state_ = 20;
};

int64_t count_of(const Dims& dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return count;
}

// Whose gradient is an op without a gradient, in TensorFlow too: the second one is refused.
const std::set<std::string> kWithoutSecond = {"BlockLSTM", "BlockLSTMV2", "CropAndResize", "Dilation2D",    "GRUBlockCell",
                                              "Igamma",    "Igammac",     "LRN",           "LSTMBlockCell", "SparseFillEmptyRows"};

// One recipe as a graph with its session.
class Check {
 public:
  // Of the first order: the slopes of the outputs' weighted sum. Of the second: of the slopes of the weighted sum of their squares,
  // whose gradient comes back into the op's gradient by way of its outputs, too.
  enum Order { kFirst = 1, kSecond };
  Check(const Recipe& recipe, bool known_shapes, Order order = kFirst) : recipe_(recipe), known_shapes_(known_shapes), order_(order) {}

  void run() {
    dtg_graph* graph = nullptr;
    dtg_session* session = nullptr;
    if (!good(dtg_graph_create(nullptr, &graph))) return;
    graph_ = {graph, dtg_graph_release};
    if (!good(dtg_session_connect(nullptr, nullptr, 0, graph, nullptr, &session))) return;
    session_ = {session, dtg_session_release};
    if (!add_inputs() || !add_op() || !add_weights()) return;
    if (order_ == kSecond && !square_outputs()) return;
    if (differentiate() && (order_ == kFirst || look_at_slopes())) compare();
  }

 private:
  struct Moved {  // a real input
    size_t input;
    Dims dims;
    std::vector<double> values;
    dtg_value x{};       // what is differentiated: the value, or a variable's handle
    dtg_value fed{};     // the placeholder; a variable is assigned from it
    dtg_value assign{};  // invalid unless it is a variable
    dtg_value gradient{};
  };

  bool add(const char* type, const std::vector<dtg_value>& inputs, const std::vector<dtg_attr>& attrs, dtg_value* out) {
    dtg_op_spec spec = DTG_OP_SPEC_INIT;
    spec.type = type;
    spec.inputs = inputs.data();
    spec.num_inputs = inputs.size();
    spec.attrs = attrs.data();
    spec.num_attrs = attrs.size();
    return good(dtg_graph_add_op(graph_.get(), &spec, out, 1));
  }

  static dtg_attr attr(const char* name, dtg_attr_kind kind) {
    dtg_attr made = DTG_ATTR_INIT;
    made.name = name;
    made.kind = kind;
    return made;
  }

  static dtg_attr type_attr(const char* name, dtg_dtype dtype) {
    dtg_attr made = attr(name, DTG_ATTR_TYPE);
    made.i = dtype;
    return made;
  }

  static dtg_attr shape_attr(const char* name, const Dims* dims) {
    dtg_attr made = attr(name, DTG_ATTR_SHAPE);
    made.count = dims ? dims->size() : DTG_STRLEN;
    if (dims) made.ints = dims->data();
    return made;
  }

  bool add_constant(const Tensor& tensor, dtg_value* out) {
    dtg_attr value = attr("value", DTG_ATTR_TENSOR);
    value.tensor = tensor.get();
    return tensor && add("Const", {}, {value, type_attr("dtype", dtg_tensor_dtype(tensor.get()))}, out);
  }

  bool add_real(size_t index, const Input& input) {
    Moved moved{index, input.dims, input.values, {}, {}, {}, {}};
    if (moved.values.empty()) {
      for (int64_t i = 0; i < count_of(input.dims); ++i) moved.values.push_back(draws_.next(input.low, input.high));
    }
    const Dims* shape = known_shapes_ ? &input.dims : nullptr;
    if (!add("Placeholder", {}, {type_attr("dtype", real_.dtype), shape_attr("shape", shape)}, &moved.fed)) return false;
    moved.x = moved.fed;
    if (input.kind == Input::kVariable) {
      if (!add("VarHandleOp", {}, {type_attr("dtype", real_.dtype), shape_attr("shape", shape)}, &moved.x)) return false;
      if (!add("AssignVariableOp", {moved.x, moved.fed}, {}, &moved.assign)) return false;
    }
    inputs_.push_back(moved.x);
    moved_.push_back(std::move(moved));
    return true;
  }

  bool add_inputs() {
    for (size_t i = 0; i < recipe_.inputs.size(); ++i) {
      const Input& input = recipe_.inputs[i];
      if (input.kind == Input::kReal || input.kind == Input::kVariable) {
        if (!add_real(i, input)) return false;
        continue;
      }
      const dtg_dtype dtype = input.kind == Input::kInt32 ? DTG_I32 : input.kind == Input::kInt64 ? DTG_I64 : DTG_BOOL;
      if (!add_constant(make(dtype, input.dims, input.values), &inputs_.emplace_back())) return false;
    }
    return true;
  }

  bool add_op() {
    std::vector<dtg_attr> attrs;
    for (const Setting& setting : recipe_.settings) {
      static constexpr dtg_attr_kind kinds[] = {DTG_ATTR_INT,    DTG_ATTR_LIST_INT, DTG_ATTR_FLOAT, DTG_ATTR_BOOL,
                                                DTG_ATTR_STRING, DTG_ATTR_TYPE,     DTG_ATTR_SHAPE};
      dtg_attr& made = attrs.emplace_back(attr(setting.name.c_str(), kinds[setting.kind]));
      if (!setting.ints.empty()) made.i = setting.ints[0];
      if (setting.kind == Setting::kF64) made.i = DTG_F64;
      made.f = setting.real;
      made.s = setting.text.c_str();
      made.ints = setting.ints.data();
      made.count = setting.ints.size();
    }
    dtg_value first{};
    size_t count = 0;
    if (!add(recipe_.op.c_str(), inputs_, attrs, &first)) return false;
    if (!good(dtg_value_num_outputs(graph_.get(), first, &count))) return false;
    for (size_t i = 0; i < count && (recipe_.outputs < 0 || i < static_cast<size_t>(recipe_.outputs)); ++i) {
      dtg_value value{};
      dtg_dtype dtype = 0;
      if (!good(dtg_value_output(graph_.get(), first, i, &value))) return false;
      if (!good(dtg_value_dtype(graph_.get(), value, &dtype))) return false;
      const bool wanted = recipe_.only.empty() || std::count(recipe_.only.begin(), recipe_.only.end(), i) > 0;
      if (dtype == real_.dtype && wanted) ys_.push_back(value);
    }
    return !ys_.empty();
  }

  // One more run of the op tells the shapes of its outputs, even where the graph does not know them.
  bool add_weights() {
    std::vector<Tensor> outputs;
    if (!evaluate(ys_, &outputs)) return false;
    for (const Tensor& output : outputs) {
      Dims dims;
      for (size_t i = 0; i < dtg_tensor_rank(output.get()); ++i) dims.push_back(dtg_tensor_dim(output.get(), i));
      std::vector<double>& values = weights_.emplace_back();
      for (int64_t i = 0; i < count_of(dims); ++i) values.push_back(draws_.next(-1, 1));
      if (!add_constant(make(real_.dtype, dims, values), &weight_values_.emplace_back())) return false;
    }
    return true;
  }

  // The gradient of w y^2 / 2 by y.
  bool square_outputs() {
    for (size_t i = 0; i < ys_.size(); ++i) {
      if (!add("Mul", {weight_values_[i], ys_[i]}, {}, &weight_values_[i])) return false;
    }
    return true;
  }

  // The gradients that were added become the outputs. False if there are none, or if an op on the way says that it has no gradient.
  bool look_at_slopes() {
    ys_.clear(), weights_.clear(), weight_values_.clear();
    for (Moved& moved : moved_) {
      if (moved.gradient.id) ys_.push_back(moved.gradient);
      moved.gradient = {};
    }
    return !ys_.empty() && add_weights() && differentiate();
  }

  bool differentiate() {
    std::vector<dtg_value> xs;
    for (const Moved& moved : moved_) xs.push_back(moved.x);
    std::vector<dtg_gradient> gradients(xs.size());
    dtg_error* error =
        dtg_graph_add_gradients(graph_.get(), ys_.data(), ys_.size(), xs.data(), xs.size(), weight_values_.data(), gradients.data());
    if (recipe_.op == "PreventGradient") {  // it exists to refuse
      EXPECT_EQ(dtg_error_code(error), DTG_FAILED_PRECONDITION);
      dtg_error_release(error);
      return false;
    }
    if (order_ == kSecond && dtg_error_code(error) == DTG_UNIMPLEMENTED) {
      EXPECT_TRUE(kWithoutSecond.contains(recipe_.op)) << dtg_error_message(error, nullptr);
      dtg_error_release(error);
      return false;
    }
    if (!good(error)) return false;
    for (size_t i = 0; i < xs.size(); ++i) {
      const dtg_gradient& gradient = gradients[i];
      if (gradient.dense.id == 0 && gradient.values.id == 0) continue;  // then the differences must be 0
      if (!good(dtg_graph_densify(graph_.get(), &gradient, &moved_[i].gradient))) return false;
    }
    return true;
  }

  bool assign_variables(const std::vector<dtg_value>& feeds, const std::vector<const dtg_tensor*>& tensors) {
    std::vector<dtg_value> targets;
    for (const Moved& moved : moved_) {
      if (moved.assign.id) targets.push_back(moved.assign);
    }
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    args.feeds = feeds.data();
    args.feed_tensors = tensors.data();
    args.num_feeds = feeds.size();
    args.targets = targets.data();
    args.num_targets = targets.size();
    return targets.empty() || good(dtg_session_run(session_.get(), &args));
  }

  // The values of `fetches` at the present point.
  bool evaluate(const std::vector<dtg_value>& fetches, std::vector<Tensor>* out) {
    std::vector<dtg_value> feeds;
    std::vector<Tensor> held;
    std::vector<const dtg_tensor*> tensors;
    for (const Moved& moved : moved_) {
      feeds.push_back(moved.fed);
      held.push_back(make(real_.dtype, moved.dims, moved.values));
      tensors.push_back(held.back().get());
    }
    if (!assign_variables(feeds, tensors)) return false;
    std::vector<dtg_tensor*> fetched(fetches.size());
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    args.feeds = feeds.data();
    args.feed_tensors = tensors.data();
    args.num_feeds = feeds.size();
    args.fetches = fetches.data();
    args.fetched = fetched.data();
    args.num_fetches = fetched.size();
    if (!good(dtg_session_run(session_.get(), &args))) return false;
    for (dtg_tensor* tensor : fetched) out->push_back({tensor, dtg_tensor_release});
    return true;
  }

  // The weighted sum of the outputs.
  bool total(double* sum) {
    std::vector<Tensor> outputs;
    if (!evaluate(ys_, &outputs)) return false;
    *sum = 0;
    for (size_t y = 0; y < outputs.size(); ++y) {
      const std::vector<double> values = reals(outputs[y]);
      for (size_t i = 0; i < values.size(); ++i) *sum += weights_[y][i] * values[i];
    }
    return true;
  }

  void compare() {
    for (Moved& moved : moved_) {
      // TensorFlow's second gradient by labels leaves out what comes by way of the first one, and its recorded values say so.
      bool stays = order_ == kSecond && recipe_.op == "SoftmaxCrossEntropyWithLogits" && moved.input == 1;
      for (size_t input : recipe_.unmoved) stays |= input == moved.input;
      std::vector<double> wanted(moved.values.size());
      for (size_t i = 0; i < wanted.size() && !stays; ++i) {
        const double value = moved.values[i];
        double above = 0, below = 0;
        moved.values[i] = value + real_.step;
        if (!total(&above)) return;
        moved.values[i] = value - real_.step;
        if (!total(&below)) return;
        moved.values[i] = value;
        wanted[i] = (above - below) / (2 * real_.step);
      }
      if (!stays) compare_one(moved, wanted);
    }
  }

  void compare_one(const Moved& moved, const std::vector<double>& wanted) {
    std::vector<double> got(wanted.size());
    std::vector<Tensor> fetched;
    dtg_value dense = moved.gradient;
    if (dense.id) {
      // A gradient may be a value that is fed, which a run does not fetch.
      if (!add("Identity", {dense}, {}, &dense) || !evaluate({dense}, &fetched)) return;
      got = reals(fetched[0]);
    }
    ASSERT_EQ(got.size(), wanted.size()) << recipe_.op << ", input " << moved.input;
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], wanted[i], allowed() * std::max(1.0, std::fabs(wanted[i])))
          << recipe_.op << ", input " << moved.input << ", element " << i << (known_shapes_ ? "" : ", shapes unknown");
    }
  }

  double allowed() const { return real_.allowed * (order_ == kSecond ? 10 : 1); }

  const Recipe& recipe_;
  const bool known_shapes_;
  const Order order_;
  const Precision real_ = recipe_.single ? kSingle : kDouble;
  Draws draws_;
  std::shared_ptr<dtg_graph> graph_;
  std::shared_ptr<dtg_session> session_;
  std::vector<dtg_value> inputs_, ys_, weight_values_;
  std::deque<Moved> moved_;
  std::vector<std::vector<double>> weights_;
};

std::set<std::string> differentiable_ops() {
  std::set<std::string> names;
  dtg_string* text = nullptr;
  if (!good(dtg_ops_json(nullptr, &text))) return names;
  const auto list = nlohmann::json::parse(dtg_string_data(text, nullptr), nullptr, /*allow_exceptions=*/false);
  dtg_string_release(text);
  for (const auto& op : list) {
    // What calls functions or handles lists is differentiated as a whole in tests/session/control_gradient_test.cc.
    const auto is_other = [](const auto& arg) { return arg.at("type") == "variant"; };
    const auto is_function = [](const auto& attr) { return attr.at("kind") == "func" || attr.at("kind") == "list(func)"; };
    if (std::ranges::any_of(op.at("inputs"), is_other) || std::ranges::any_of(op.at("outputs"), is_other)) continue;
    if (std::ranges::any_of(op.at("attributes"), is_function)) continue;
    if (op.at("differentiable")) names.insert(op.at("name").get<std::string>());
  }
  return names;
}

TEST(Gradients, EveryDifferentiableOpHasARecipe) {
  std::set<std::string> without = differentiable_ops();
  EXPECT_GE(without.size(), 100u);
  for (const Recipe& recipe : recipes()) without.erase(recipe.op);
  without.erase("Conj");  // of complex numbers only, which have no differences here
  // Arrays of a run are differentiated as a whole in tests/session/pieces_test.cc.
  std::erase_if(without, [](const std::string& op) { return op.starts_with("TensorArray"); });
  // Steps: what passes for their gradient is not a slope; tests/ops/fake_quant_test.cc, and the oracle's vectors.
  std::erase_if(without, [](const std::string& op) { return op.starts_with("FakeQuant") || op.starts_with("QuantizeAndDequantize"); });
  // Its data may be of any number and types: tests/session/print_test.cc.
  without.erase("Print");
  for (const std::string& op : without) ADD_FAILURE() << op << " is differentiable; give it a recipe in recipes.cc";
}

class OpGradient : public testing::TestWithParam<size_t> {};

TEST_P(OpGradient, EqualsDifferences) {
  const Recipe& recipe = recipes()[GetParam()];
  SCOPED_TRACE(recipe.op);
  Check(recipe, /*known_shapes=*/true).run();
  if (!recipe.needs_shapes) Check(recipe, /*known_shapes=*/false).run();
}

TEST_P(OpGradient, OfTheGradientEqualsDifferencesOrIsRefused) {
  const Recipe& recipe = recipes()[GetParam()];
  SCOPED_TRACE(recipe.op);
  Check(recipe, /*known_shapes=*/true, Check::kSecond).run();
}

INSTANTIATE_TEST_SUITE_P(All, OpGradient, testing::Range(size_t{0}, recipes().size()),
                         [](const auto& at) { return recipes()[at.param].op + "_" + std::to_string(at.param); });

}  // namespace
}  // namespace dtg::grads
