// What was read from a variable is the value from before the update, whatever op hands it on: fetched beside the update it must not
// show the update. And sums whose operands are one value several times.
#include "fixture.h"

namespace dtg {
namespace {

class Aliases : public SessionTest {
 protected:
  void SetUp() override {
    Session::Options options;
    options.fusion = false;  // every node stands for itself
    open(options);
  }

  // Makes `count` ones into a variable, fetches what `make` hands on beside an update, and expects the old value.
  template <class Make>
  void expect_old_value(const std::string& name, DType dtype, Make&& make) {
    SCOPED_TRACE(name);
    const Value v = build->op("VarHandleOp", std::span<const Value>(),
                              std::vector<Attr>{{"dtype", dtype}, {"shape", PartialShape(Shape::of({1}))}, {"shared_name", name}});
    const Tensor old = Tensor::allocate(dtype, Shape::of({1})).take(), next = Tensor::allocate(dtype, Shape::of({1})).take();
    set(old, 1);
    set(next, 0);
    run_target(assign(v, build->constant(old)));
    const Value r = build->op("ReadVariableOp", {v}, {{"dtype", dtype}});
    const Value handed_on = make(r);
    const NodeId update = assign(v, build->op("Identity", {build->constant(next)}));
    const Value copy = build->op("Pack", std::vector<Value>{handed_on});
    for (int round = 0; round < 3; ++round) {
      std::vector<Tensor> out;
      const Status status = run({}, {handed_on, copy, handed_on}, &out, {update});
      ASSERT_TRUE(status.ok()) << status.message();
      for (const Tensor& tensor : out) EXPECT_EQ(get(tensor), round == 0 ? 1 : 0);
    }
  }

 private:
  static void set(const Tensor& tensor, float value) {
    if (tensor.dtype() == DType::boolean) *tensor.as<bool>() = value != 0;
    else *tensor.as<float>() = value;
  }
  static float get(const Tensor& tensor) { return tensor.dtype() == DType::boolean ? *tensor.as<bool>() : *tensor.as<float>(); }
};

TEST_F(Aliases, ReductionsThatReduceNothing) {
  for (const char* op : {"Sum", "Mean", "Max", "Min", "Prod"}) {
    expect_old_value(std::string(op) + "_axis", DType::f32, [&](Value r) { return build->op(op, {r, build->ints({0})}); });
    expect_old_value(std::string(op) + "_none", DType::f32, [&](Value r) {
      return build->op(op, {r, build->ints(std::span<const int64_t>())});
    });
  }
  for (const char* op : {"All", "Any"}) {
    expect_old_value(std::string(op) + "_axis", DType::boolean, [&](Value r) { return build->op(op, {r, build->ints({0})}); });
  }
}

TEST_F(Aliases, WhatLeavesItsInputAsItIs) {
  const Tensor nothing = Tensor::ints(DType::i32, std::vector<int64_t>{0, 0}).take().reshaped(Shape::of({1, 2}));
  expect_old_value("pad", DType::f32, [&](Value r) {
    return build->op("PadV2", {r, build->constant(nothing), build->scalar(DType::f32, 7)});
  });
  expect_old_value("default", DType::f32, [&](Value r) {
    return build->op("PlaceholderWithDefault", {r}, {{"dtype", DType::f32}, {"shape", PartialShape(Shape::of({1}))}});
  });
  expect_old_value("identity", DType::f32, [&](Value r) { return build->op("Identity", {r}); });
  expect_old_value("reshape", DType::f32, [&](Value r) { return build->reshape(r, build->ints({1, 1})); });
  expect_old_value("stop", DType::f32, [&](Value r) { return build->op("StopGradient", {r}); });
  expect_old_value("stacked", DType::f32, [&](Value r) {
    return build->op("Identity", {build->reshape(build->sum(build->op("Identity", {r}), build->ints({0})), build->ints({1}))});
  });
}

TEST_F(Aliases, AnOperandThatComesTwiceIsNotWrittenOver) {
  for (const size_t count : {2u, 8u, 9u, 17u, 40u}) {
    const Value x = placeholder(DType::f32, Shape::of({3}));
    const Value once = build->op("Sin", {x});
    std::vector<Value> operands(count, once);
    operands[count / 2] = build->neg(once);
    const Value sum = build->op("AddN", std::span<const Value>(operands));
    const std::vector<float> got = values(fetch(build->op("Identity", {sum}), {{x, floats({3}, {0.5f, 1, 2})}}));
    const std::vector<float> sine = values(fetch(once, {{x, floats({3}, {0.5f, 1, 2})}}));
    for (size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(got[i], sine[i] * static_cast<float>(count - 2), 1e-5 * static_cast<double>(count)) << count << " operands";
  }
}

}  // namespace
}  // namespace dtg
