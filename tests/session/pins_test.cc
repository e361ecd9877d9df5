// Pins of variables come off once, however many writes follow one read and on whatever threads they run.
#include "exec/variable.h"
#include "fixture.h"

namespace dtg {
namespace {

class Pins : public SessionTest, public ::testing::WithParamInterface<bool> {};

TEST_P(Pins, TwoTowersOverOneRead) {
  constexpr int kTowers = 2, kSteps = 3000;
  Session::Options options;
  options.devices.cpu = 1 + kTowers;
  options.fusion = false;
  open(options, 4);
  graph->push_device("/device:CPU:0");
  const Value v = variable("v", Shape());
  run_target(assign(v, build->scalar(DType::f32, 1)));
  const Value r = read(v);
  ASSERT_TRUE(graph->pop_device().ok());
  std::vector<NodeId> pushes;
  for (int tower = 0; tower < kTowers; ++tower) {
    graph->push_device("/device:CPU:" + std::to_string(1 + tower));
    // With or without looking at what was read: the writes come after it either way.
    Value y = GetParam() ? build->neg(r) : build->scalar(DType::f32, 0.5);
    for (int i = 0; i < 4; ++i) y = build->op("Sin", {y});
    ASSERT_TRUE(graph->pop_device().ok());
    const Value inputs[] = {v, build->mul(y, build->scalar(DType::f32, 0))};
    pushes.push_back(build->node("AssignAddVariableOp", inputs));
  }
  for (int step = 0; step < kSteps; ++step) {
    std::vector<Tensor> out;
    const Status status = run({}, {}, &out, pushes);
    ASSERT_TRUE(status.ok()) << status.message();
    for (const auto& resource : session->store().list()) {
      const auto* const state = static_cast<const Variable*>(resource.get());
      ASSERT_TRUE(state->present());
      ASSERT_EQ(state->present()->pins, 0) << "after step " << step;
    }
  }
  EXPECT_EQ(*fetch(r).as<float>(), 1);
}

INSTANTIATE_TEST_SUITE_P(Looking, Pins, testing::Bool());

}  // namespace
}  // namespace dtg
