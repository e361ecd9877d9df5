// _ElementChain: seeded random chains against the same ops run one after the other, bit by bit: types that change on the way,
// broadcasting, closing reductions, outputs over inputs, any number of threads. And what prepare refuses.
#include "ops/chain.h"

#include <gtest/gtest.h>

#include <random>

#include "device/cpu/chain.h"
#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg {
namespace {

using Random = std::mt19937;

int below(Random& random, int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); }
const char* pick(Random& random, std::initializer_list<const char*> words) {
  return words.begin()[below(random, static_cast<int>(words.size()))];
}

OneOp make_ops() {
  return OneOp(
      {ops::register_chain, ops::register_unary, ops::register_binary, ops::register_compare, ops::register_cast, ops::register_reduce});
}

template <class T>
Tensor filled(Random& random, const Shape& shape, T (*make)(Random&)) {
  Tensor tensor = Tensor::allocate(dtype_of<T>, shape).take();
  for (int64_t i = 0; i < tensor.count(); ++i) tensor.as<T>()[i] = make(random);
  return tensor;
}

Tensor random_tensor(Random& random, DType dtype, const Shape& shape) {
  switch (dtype) {
    case DType::f64: return filled<double>(random, shape, [](Random& r) { return static_cast<double>(below(r, 4000)) / 1000 - 2; });
    case DType::f16: return filled<Half>(random, shape, [](Random& r) { return Half(static_cast<float>(below(r, 64)) / 16 - 2); });
    case DType::i32: return filled<int32_t>(random, shape, [](Random& r) { return below(r, 7) - 3; });
    case DType::boolean: return filled<bool>(random, shape, [](Random& r) { return below(r, 2) == 1; });
    default: return filled<float>(random, shape, [](Random& r) { return static_cast<float>(below(r, 4000)) / 1000 - 2; });
  }
}

// A shape that broadcasts to `space`.
Shape smaller(Random& random, const Shape& space) {
  std::vector<int64_t> dims;
  const int form = below(random, 4);
  for (int d = form == 0 ? below(random, space.rank() + 1) : 0; d < space.rank(); ++d) {
    dims.push_back(form != 1 && below(random, 3) == 0 ? 1 : space.dim(d));
  }
  return Shape::make(dims).take();
}

constexpr DType kTypes[] = {DType::f32, DType::f32, DType::f32, DType::f64, DType::f16, DType::i32, DType::boolean};

// A chain and the inputs it is run on.
struct Chain {
  std::vector<Tensor> inputs;
  std::vector<std::string> ops;
  std::vector<DType> types;
  std::vector<int64_t> operands;
  std::string reduce;
  std::vector<int64_t> axes;
  bool keep_dims = false;

  std::vector<Attr> attrs() const {
    std::vector<DType> in;
    for (const Tensor& input : inputs) in.push_back(input.dtype());
    return {{"ops", AttrValue(AttrValue::Variant(ops))},
            {"types", types},
            {"operands", operands},
            {"reduce", reduce},
            {"axes", axes},
            {"keep_dims", keep_dims},
            {"Tin", in},
            {"T", types.back()}};
  }
  void step(const char* op, DType type, std::initializer_list<int64_t> of) {
    ops.emplace_back(op);
    types.push_back(type);
    operands.insert(operands.end(), of);
  }
  DType type_of(int64_t operand) const {
    return operand >= 0 ? inputs[static_cast<size_t>(operand)].dtype() : types[static_cast<size_t>(-1 - operand)];
  }
  // An input or an earlier step of that type; the latest steps most of the time, so that chains are chains.
  int64_t any(Random& random, DType type, bool& found) const {
    const int64_t steps = static_cast<int64_t>(ops.size()), count = static_cast<int64_t>(inputs.size()) + steps;
    const int64_t start = below(random, 3) > 0 ? static_cast<int64_t>(inputs.size()) + std::max<int64_t>(steps - 2, 0) : below(random, 100);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = (start + i) % count,
                    operand = at < static_cast<int64_t>(inputs.size()) ? at : static_cast<int64_t>(inputs.size()) - 1 - at;
      if (type_of(operand) == type) return operand;
    }
    found = false;
    return 0;
  }
};

void grow(Random& random, Chain& chain) {
  const DType type = kTypes[below(random, std::size(kTypes))];
  bool found = true;
  const int64_t a = chain.any(random, type, found), b = chain.any(random, type, found);
  bool asked = true;
  const int64_t condition = chain.any(random, DType::boolean, asked);
  if (!found) return;
  const int kind = below(random, 10);
  if (kind == 0) {
    const DType to = kTypes[below(random, std::size(kTypes))];
    if (to != type) chain.step("Cast", to, {a});
  } else if (kind == 1 && asked) {
    chain.step("SelectV2", type, {condition, a, b});
  } else if (type == DType::boolean) {
    if (kind < 4) chain.step("LogicalNot", type, {a});
    else chain.step(pick(random, {"LogicalAnd", "LogicalOr", "Equal"}), type, {a, b});
  } else if (kind == 2) {
    chain.step(pick(random, {"Less", "GreaterEqual", "NotEqual"}), DType::boolean, {a, b});
  } else if (kind < 6) {
    chain.step(
        type == DType::i32 ? pick(random, {"Neg", "Abs", "Square"}) : pick(random, {"Tanh", "Neg", "Sigmoid", "Abs", "Relu", "Rsqrt"}),
        type, {a});
  } else {
    chain.step(pick(random, {"AddV2", "Sub", "Mul", "Maximum", "SquaredDifference"}), type, {a, b});
  }
}

// Ends in float32 values of the whole space, which input 0 has.
Chain random_chain(Random& random, const Shape& space, int steps) {
  Chain chain;
  chain.inputs.push_back(random_tensor(random, DType::f32, space));
  for (int i = below(random, 6); i > 0; --i) {
    chain.inputs.push_back(random_tensor(random, kTypes[below(random, std::size(kTypes))], smaller(random, space)));
  }
  while (static_cast<int>(chain.ops.size()) < steps - 2) grow(random, chain);
  if (!chain.ops.empty() && chain.types.back() != DType::f32) chain.step("Cast", DType::f32, {-static_cast<int64_t>(chain.ops.size())});
  chain.step("AddV2", DType::f32, {chain.ops.empty() ? 0 : -static_cast<int64_t>(chain.ops.size()), 0});
  return chain;
}

// The ops one after the other.
Result<Tensor> unfused(OneOp& one, const Chain& chain) {
  DTG_ASSIGN(Ref<Graph> graph, one.graph());
  Build build(*graph);
  std::vector<Value> inputs, steps;
  for (const Tensor& tensor : chain.inputs) {
    DTG_ASSIGN(Value value, one.input(*graph, tensor, OneOp::Known::values));
    inputs.push_back(value);
  }
  size_t at = 0;
  for (size_t s = 0; s < chain.ops.size(); ++s) {
    std::vector<Value> of;
    for (int k = one.kernels().element_arity(chain.ops[s]); k > 0; --k, ++at) {
      const int64_t operand = chain.operands[at];
      of.push_back(operand >= 0 ? inputs[static_cast<size_t>(operand)] : steps[static_cast<size_t>(-1 - operand)]);
    }
    std::vector<Attr> attrs;
    if (chain.ops[s] == "Cast") attrs.push_back({"DstT", chain.types[s]});
    DTG_ASSIGN(const NodeId id, graph->add({.op = chain.ops[s], .inputs = of, .attrs = attrs}));
    steps.push_back(graph->value(id));
  }
  Value last = steps.back();
  if (!chain.reduce.empty()) {
    std::vector<int32_t> axes(chain.axes.begin(), chain.axes.end());
    const Tensor tensor = one_op::values<int32_t>({static_cast<int64_t>(axes.size())}, axes);
    DTG_ASSIGN(const Value given, one.input(*graph, tensor, OneOp::Known::values));
    const Value of[] = {last, given};
    const Attr attrs[] = {{"keep_dims", chain.keep_dims}};
    DTG_ASSIGN(const NodeId id, graph->add({.op = chain.reduce, .inputs = of, .attrs = attrs}));
    last = graph->value(id);
  }
  const Value fetches[] = {last};
  DTG_ASSIGN(auto values, one.evaluate(*graph, fetches, {}));
  return values[0];
}

Result<Tensor> fused(OneOp& one, const Chain& chain, OneOp::Options options = {}) {
  DTG_ASSIGN(auto values, one.run("_ElementChain", chain.inputs, chain.attrs(), options));
  return values[0];
}

std::string text_of(const Chain& chain) {
  std::string text;
  for (const Tensor& input : chain.inputs) text += std::string(dtype_name(input.dtype())) + input.shape().text() + " ";
  size_t at = 0;
  for (const std::string& op : chain.ops) {
    text += "; " + op;
    const int arity = op == "SelectV2" ? 3
                      : (op == "Cast" || op == "LogicalNot" || op == "Neg" || op == "Abs" || op == "Tanh" || op == "Square" ||
                         op == "Sigmoid" || op == "Relu" || op == "Rsqrt")
                          ? 1
                          : 2;
    for (int k = 0; k < arity; ++k) text += " " + std::to_string(chain.operands[at++]);
  }
  text += " " + chain.reduce;
  for (int64_t axis : chain.axes) text += " " + std::to_string(axis);
  return text;
}

void check(OneOp& one, const Chain& chain) {
  const auto want = unfused(one, chain);
  ASSERT_TRUE(want.ok()) << want.status().message() << text_of(chain);
  for (int threads : {1, 3}) {
    const auto got = fused(one, chain, {.known = OneOp::Known::shapes, .threads = threads});
    ASSERT_TRUE(got.ok()) << got.status().message() << text_of(chain);
    ASSERT_TRUE(one_op::bit_equal(want.value(), got.value())) << text_of(chain);
  }
}

const Shape kSpaces[] = {
    Shape(),
    Shape::of({1}),
    Shape::of({7}),
    Shape::of({5000}),
    Shape::of({30, 40}),
    Shape::of({3, 2500}),
    Shape::of({300, 7}),
    Shape::of({2, 3, 4, 5}),
    Shape::of({1, 6, 1, 50}),
    Shape::of({4, 3, 1100}),
    Shape::of({200, 700}),
    Shape::of({2, 1, 3, 1, 5, 1, 4, 2}),
    Shape::of({0, 4}),
    Shape::of({1030, 3, 2}),
    Shape::of({1, 1}),
};

TEST(Chain, HasTheBitsOfTheOpsOneByOne) {
  OneOp one = make_ops();
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const Shape& space = kSpaces[seed % std::size(kSpaces)];
    check(one, random_chain(random, space, 2 + below(random, seed % 5 == 0 ? ops::kChainStepsMax - 2 : 12)));
    if (HasFatalFailure()) return;
  }
}

TEST(Chain, ClosingReductionsHaveTheBitsOfTheOp) {
  OneOp one = make_ops();
  const Shape spaces[] = {Shape::of({1000, 10}),   Shape::of({70, 1024}), Shape::of({3, 5000}),  Shape::of({2, 70000}),
                          Shape::of({300, 300}),   Shape::of({40, 2100}), Shape::of({8, 9, 10}), Shape::of({200000}),
                          Shape::of({20, 3, 50}),  Shape::of({1, 64, 1}), Shape::of({2000, 3}),  Shape::of({3, 600, 5}),
                          Shape::of({2, 50, 2050})};
  int reduced = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    Random random(seed);
    const Shape& space = spaces[seed % std::size(spaces)];
    Chain chain = random_chain(random, space, 2 + below(random, 5));
    chain.reduce = pick(random, {"Sum", "Mean", "Max"});
    chain.keep_dims = below(random, 2) == 0;
    if (below(random, 4) == 0) chain.step("Cast", DType::f64, {-static_cast<int64_t>(chain.ops.size())});
    const uint32_t mask = 1u + static_cast<uint32_t>(below(random, (1 << space.rank()) - 1));
    for (int d = 0; d < space.rank(); ++d) {
      if (mask >> d & 1u) chain.axes.push_back(d);
    }
    if (!ops::chain_can_reduce(chain.reduce, chain.types.back(), space, mask)) {
      EXPECT_FALSE(fused(one, chain).ok()) << text_of(chain);
      continue;
    }
    ++reduced;
    check(one, chain);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(reduced, 200);
}

TEST(Chain, MayLieOverAnInput) {
  OneOp one = make_ops();
  for (uint32_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    const Chain chain = random_chain(random, kSpaces[seed % std::size(kSpaces)], 3 + below(random, 12));
    const auto want = fused(one, chain);
    ASSERT_TRUE(want.ok()) << want.status().message();
    for (int over = 0; over < static_cast<int>(chain.inputs.size()); ++over) {
      const auto got = fused(one, chain, {.threads = 2, .in_place = true, .over = over});
      ASSERT_TRUE(got.ok() && one_op::bit_equal(want.value(), got.value())) << text_of(chain) << " over " << over;
    }
  }
}

TEST(Chain, RegistersAreUsedAgain) {
  std::vector<cpu::ChainInput> inputs(cpu::kChainInputs);
  std::vector<cpu::ChainStep> steps(cpu::kChainSteps);
  cpu::ChainLoop loop{.inputs = inputs, .steps = steps};
  const Shape shapes[] = {Shape::of({100}), Shape::of({1})};
  const int64_t sizes[] = {4, 4};
  cpu::plan_chain_inputs(loop, shapes, sizes, shapes[0]);
  std::vector<int64_t> widths;
  for (int s = 0; s < cpu::kChainSteps; ++s) {
    loop.steps[static_cast<size_t>(s)] = {.arity = 2, .operands = {s == 0 ? 0 : -s, 1}};
    widths.push_back(4);
  }
  loop.step_count = cpu::kChainSteps;
  plan_chain_registers(loop, widths);
  EXPECT_EQ(loop.blocks, 2);  // one register, and the scalar spread
  // A result that is read at the very end keeps its register.
  loop.steps[1].operands = {0, 1};
  for (int s = 0; s < cpu::kChainSteps; ++s) loop.steps[static_cast<size_t>(s)].operands = {s == 0 ? 0 : -s, 1};
  loop.steps[cpu::kChainSteps - 1].operands = {-(cpu::kChainSteps - 1), -1};
  plan_chain_registers(loop, widths);
  EXPECT_EQ(loop.blocks, 3);
}

std::string refusal(OneOp& one, const Chain& chain) {
  const auto got = fused(one, chain);
  return got.ok() ? "" : got.status().message();
}

TEST(Chain, RefusesWhatItCannotRun) {
  OneOp one = make_ops();
  const Tensor x = one_op::values<float>({4}, {1, 2, 3, 4});
  Chain chain{.inputs = {x}};
  for (int s = 0; s < ops::kChainStepsMax; ++s) chain.step("Neg", DType::f32, {s == 0 ? 0 : -s});
  EXPECT_EQ(refusal(one, chain), "");
  chain.step("Neg", DType::f32, {0});
  EXPECT_NE(refusal(one, chain).find("65 ops are too many; at most 64"), std::string::npos);
  Chain wide{.inputs = std::vector<Tensor>(ops::kChainInputsMax + 1, x)};
  wide.step("Neg", DType::f32, {0});
  EXPECT_NE(refusal(one, wide).find("33 inputs are too many; at most 32"), std::string::npos);
  const auto single = [&](const char* op, DType type, std::initializer_list<int64_t> of) {
    Chain one_step{.inputs = {x}};
    one_step.step(op, type, of);
    return refusal(one, one_step);
  };
  EXPECT_NE(single("MatMul", DType::f32, {0, 0}).find("no element-wise MatMul"), std::string::npos);
  EXPECT_NE(single("Neg", DType::f64, {0}).find("no element-wise Neg from float32 to float64"), std::string::npos);
  EXPECT_NE(single("Neg", DType::f32, {1}).find("there is no 1"), std::string::npos);
  EXPECT_NE(single("Neg", DType::f32, {-1}).find("there is no -1"), std::string::npos);
  EXPECT_NE(single("AddV2", DType::f32, {0}).find("no element-wise AddV2 with the operands left"), std::string::npos);
  EXPECT_NE(single("Neg", DType::f32, {0, 0}).find("2 operands, but the ops take 1"), std::string::npos);
}

TEST(Chain, KnowsWhatMayCloseIt) {
  const Shape space = Shape::of({8, 9, 10});
  EXPECT_TRUE(ops::chain_can_reduce("Sum", DType::f32, space, 0b100));
  EXPECT_TRUE(ops::chain_can_reduce("Mean", DType::f64, space, 0b011));
  EXPECT_TRUE(ops::chain_can_reduce("Max", DType::f32, space, 0b111));
  EXPECT_TRUE(ops::chain_can_reduce("Sum", DType::i32, space, 0b010));
  EXPECT_FALSE(ops::chain_can_reduce("Sum", DType::f32, space, 0b101));  // two passes
  EXPECT_FALSE(ops::chain_can_reduce("Sum", DType::f16, space, 0b100));  // accumulated in float32
  EXPECT_FALSE(ops::chain_can_reduce("Prod", DType::f32, space, 0b100));
  EXPECT_FALSE(ops::chain_can_reduce("Sum", DType::f32, Shape::of({4, 1}), 0b10));  // nothing to reduce
  EXPECT_FALSE(ops::chain_can_reduce("Sum", DType::f32, Shape::of({4, 0}), 0b10));
}

// Rows for what changes the type are there, and none for integers that an op may refuse.
TEST(Chain, FindsElementRowsByType) {
  OneOp one = make_ops();
  const KernelTable& table = one.kernels();
  const auto has = [&](const char* op, std::initializer_list<DType> in, DType out) {
    return table.find_element(op, std::span<const DType>(in.begin(), in.size()), out) != nullptr;
  };
  EXPECT_TRUE(has("Cast", {DType::i64}, DType::bf16));
  EXPECT_TRUE(has("Less", {DType::f32, DType::f32}, DType::boolean));
  EXPECT_TRUE(has("IsNan", {DType::f64}, DType::boolean));
  EXPECT_TRUE(has("SelectV2", {DType::boolean, DType::u8, DType::u8}, DType::u8));
  EXPECT_TRUE(has("FloorDiv", {DType::f32, DType::f32}, DType::f32));
  EXPECT_FALSE(has("FloorDiv", {DType::i32, DType::i32}, DType::i32));
  EXPECT_FALSE(has("Select", {DType::boolean, DType::f32, DType::f32}, DType::f32));
  EXPECT_FALSE(has("Less", {DType::f32, DType::f32}, DType::f32));
  EXPECT_EQ(table.element_arity("SelectV2"), 3);
  EXPECT_EQ(table.element_arity("MatMul"), 0);
}

}  // namespace
}  // namespace dtg
