// A graph, three devices without kernels that run, and the passes of the planner one after another, for tests that look at the Ir between
// them. When a test fails, the Ir before and after each pass is printed. Owner: one test; one thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "exec/resource.h"
#include "graph/build.h"
#include "ops/all.h"
#include "plan/explain.h"
#include "plan/passes.h"
#include "plan/plan.h"

namespace dtg {

class PassesTest : public ::testing::Test {
 protected:
  static constexpr int kDevices = 3;

  PassesTest() : pool_({.threads = 1}) {
    ops::register_all(ops_, kernels_);
    graph = Graph::create(&ops_).take();
    build = std::make_unique<Build>(*graph);
    context.kernels = &kernels_;
    context.ops = &ops_;
    context.pool = &pool_;
    context.store = &store_;
    context.clock = &system_clock();
    use_devices(false);
  }

  void TearDown() override {
    if (HasFailure()) ADD_FAILURE() << history_;
  }

  // Forgets what was placed before.
  void use_devices(bool soft) {
    std::vector<Device> devices;
    for (int i = 0; i < kDevices; ++i) {
      Device& device = devices.emplace_back();
      device.text = "/job:local/replica:0/task:0/device:CPU:" + std::to_string(i);
      device.name = DeviceName::parse(device.text).take();
      device.type = "CPU";
    }
    placer_ = std::make_unique<Placer>(std::move(devices), &kernels_, soft);
    context.placer = placer_.get();
  }

  // Runs all passes up to and with the one of that name.
  Result<std::unique_ptr<Ir>> try_passes(std::string_view last, PlanRequest request) {
    EXPECT_TRUE(build->ok()) << build->status().message();
    requests_.push_back(std::move(request));
    auto ir = std::make_unique<Ir>();
    ir->graph = graph.get();
    ir->request = &requests_.back();
    context.placer->update(*graph, graph->node_count());
    for (const std::span<const Pass> passes : {front_passes(), back_passes()}) {
      const auto end = std::ranges::find(passes, last, &Pass::name);
      const size_t count = static_cast<size_t>(end - passes.begin()) + (end == passes.end() ? 0 : 1);
      DTG_TRY(run_passes(context, passes.first(count), *ir, note, this));
      if (end != passes.end()) break;
    }
    return ir;
  }
  std::unique_ptr<Ir> passes(std::string_view last, PlanRequest request) {
    auto ir = try_passes(last, std::move(request));
    EXPECT_TRUE(ir.ok()) << ir.status().message();
    return ir.ok() ? ir.take() : std::make_unique<Ir>();
  }
  std::unique_ptr<Ir> passes(std::string_view last, std::vector<Value> fetches, std::vector<NodeId> targets = {},
                             std::vector<FeedSpec> feeds = {}) {
    return passes(last, {std::move(feeds), std::move(fetches), std::move(targets)});
  }
  // Feeds for placeholders of complete shapes.
  FeedSpec feed(Value value) const { return {value, graph->info(value).dtype, graph->info(value).shape.to_shape().value()}; }

  Value placeholder(PartialShape shape, DType dtype = DType::f32) {
    return build->op("Placeholder", std::span<const Value>(), std::vector<Attr>{{"dtype", dtype}, {"shape", std::move(shape)}});
  }
  Value variable(const char* name, const Shape& shape = Shape()) {
    return build->op("VarHandleOp", std::span<const Value>(),
                     std::vector<Attr>{{"dtype", DType::f32}, {"shape", PartialShape(shape)}, {"shared_name", name}});
  }
  Value read(Value handle) { return build->op("ReadVariableOp", {handle}, {{"dtype", DType::f32}}); }
  NodeId node(std::string_view op, std::vector<Value> inputs, std::vector<NodeId> controls = {}) {
    return build->node(op, inputs, {}, {}, controls);
  }
  Value on(int device, std::string_view op, std::initializer_list<Value> inputs) {
    graph->push_device("/device:CPU:" + std::to_string(device));
    const Value value = build->op(op, inputs);
    EXPECT_TRUE(graph->pop_device().ok());
    return value;
  }
  Tensor zeros(const Shape& shape, DType dtype = DType::f32) const {
    Tensor tensor = Tensor::allocate(dtype, shape).take();
    std::memset(tensor.data(), 0, static_cast<size_t>(tensor.bytes()));
    return tensor;
  }

  // The number of a node of the graph in the Ir, dead or not; kNone when it is not there.
  uint32_t at(const Ir& ir, NodeId id) const {
    for (uint32_t n = 0; n < ir.nodes.size(); ++n) {
      if (ir.nodes[n].node->id == id) return n;
    }
    return kNone;
  }
  uint32_t at(const Ir& ir, Value value) const { return at(ir, value.node()); }
  const IrNode& node_of(const Ir& ir, NodeId id) const { return ir.nodes[at(ir, id)]; }
  const IrNode& node_of(const Ir& ir, Value value) const { return ir.nodes[at(ir, value)]; }
  const IrValue& value_of(const Ir& ir, Value value) const { return ir.values[node_of(ir, value).outputs[value.output()]]; }
  bool is_live(const Ir& ir, NodeId id) const { return at(ir, id) != kNone && !node_of(ir, id).dead; }
  bool is_live(const Ir& ir, Value value) const { return is_live(ir, value.node()); }
  // Live nodes that compute.
  static std::vector<uint32_t> live(const Ir& ir, std::string_view op = {}) {
    std::vector<uint32_t> found;
    for (uint32_t n = 0; n < ir.nodes.size(); ++n) {
      if (!ir.nodes[n].dead && !ir.nodes[n].barrier && (op.empty() || ir.nodes[n].node->op->name() == op)) found.push_back(n);
    }
    return found;
  }

  // A plan, and what it was made from as long as it is made.
  class Watched : public Plan::Observer {
   public:
    explicit Watched(PassesTest& test) : test_(test) {}
    void passed(const Pass& pass, const Ir& ir) override { note(&test_, pass, ir); }
    void made(const Ir& ir, const Program& program) override {
      if (ir.nodes.size() <= 1000) test_.history_ += "---- the program\n" + program_text(ir, program);
      looked(ir, program);
    }
    virtual void looked(const Ir&, const Program&) {}

   private:
    PassesTest& test_;
  };
  Result<Ref<Plan>> try_plan(PlanRequest request, Watched* watched = nullptr) {
    EXPECT_TRUE(build->ok()) << build->status().message();
    Watched nobody(*this);
    return Plan::make(context, graph, std::move(request), watched ? watched : &nobody);
  }
  Ref<Plan> plan(PlanRequest request, Watched* watched = nullptr) {
    auto made = try_plan(std::move(request), watched);
    if (!made.ok()) throw std::runtime_error(made.status().message());
    return made.take();
  }

  PlanContext context;
  Ref<Graph> graph;
  std::unique_ptr<Build> build;
  // For ops and kernels of a test's own, before its first graph uses them.
  OpTable ops_;
  KernelTable kernels_;

 private:
  static void note(void* self, const Pass& pass, const Ir& ir) {
    // A plan of thousands of nodes is not for people to read.
    if (ir.nodes.size() > 1000) return;
    static_cast<PassesTest*>(self)->history_ += std::string("---- after ") + pass.name + "\n" + ir.text();
  }

  Pool pool_;
  ResourceStore store_;
  std::unique_ptr<Placer> placer_;
  std::deque<PlanRequest> requests_;
  std::string history_;
};

}  // namespace dtg
