// A transformer over meshes of emulated devices against the same model of plain layers on one: losses of each step and what the weights and
// the optimizer's states become, for meshes of all shapes, micro-batches, optimizers and ways to keep their states; and how the pipeline
// orders its moves. Shapes come from a seeded generator.
#include "strategy/mesh.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "nn/losses.h"
#include "nn/norm.h"
#include "nn/scope.h"
#include "nn/wholes.h"
#include "session/fixture.h"
#include "strategy/tensor_parallel.h"
#include "strategy/towers.h"

namespace dtg {
namespace {

using Random = std::mt19937_64;
int64_t among(Random& random, int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); }

template <class T>
T good(Result<T> result) {
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? result.take() : T();
}

// How large the model is, and how it is cut.
struct Sizes {
  int64_t batch = 8, places = 5, letters = 11, width = 8, heads = 4, head = 3, inner = 10, blocks = 2;
  TableCut table = TableCut::rows;
  bool causal = true, use_bias = true;
};
struct Grid {
  int64_t data = 1, model = 1, pipe = 1, micro = 1;
  Mesh::Zero zero = Mesh::Zero::none;
};

// The plain layers, or those that are cut where there is a mesh.
struct Layers {
  Model& model;
  Mesh* mesh;
  const Sizes& sizes;

  Value embed(Value ids) {
    EmbeddingLayer layer;
    layer.rows = sizes.letters;
    layer.width = sizes.width;
    layer.table = Initializer::uniform(-1, 1);
    return good(mesh ? parallel_embedding(*mesh, ids, layer, sizes.table) : embedding(model, ids, layer));
  }
  Value block(Value x) {
    Build build(model.graph());
    AttentionLayer heads;
    heads.heads = sizes.heads;
    heads.key_width = sizes.head;
    heads.causal = sizes.causal;
    heads.use_bias = sizes.use_bias;
    const Value seen = good(layer_norm(model, x, {}));
    x = build.add(x, good(mesh ? parallel_attention(*mesh, seen, seen, {}, heads) : attention(model, seen, seen, {}, heads)));
    DenseLayer wide, narrow;
    wide.name = "wide";
    wide.units = sizes.inner;
    wide.activation = Activation::gelu;
    narrow.name = "narrow";
    narrow.units = sizes.width;
    narrow.use_bias = sizes.use_bias;
    const Value y = good(layer_norm(model, x, {}));
    const Value z =
        mesh ? good(row_dense(*mesh, good(column_dense(*mesh, y, wide)), narrow)) : good(dense(model, good(dense(model, y, wide)), narrow));
    const Value sum = build.add(x, z);
    EXPECT_TRUE(build.ok()) << build.status().message();
    return sum;
  }
  Value loss(Value x, Value labels) {
    Build build(model.graph());
    DenseLayer head;
    head.name = "head";
    head.units = sizes.letters;
    const Value y = good(layer_norm(model, x, {}));
    Value logits = mesh ? good(together(*mesh, good(column_dense(*mesh, y, head)), -1)) : good(dense(model, y, head));
    logits = build.reshape(logits, build.ints({-1, sizes.letters}));
    const Value flat = build.reshape(labels, build.ints({-1}));
    EXPECT_TRUE(build.ok()) << build.status().message();
    return good(sparse_softmax_cross_entropy(model.graph(), flat, logits));
  }
};

using Weights = std::map<std::string, std::vector<float>>;

class MeshTest : public SessionTest {
 protected:
  void SetUp() override {}

  void start(int devices) {
    Session::Options options;
    options.devices.emu = devices;
    open(options);
    model = make_ref<Model>(graph, 21);
  }
  void feeds(const Sizes& sizes, bool open_batch = false) {
    const int64_t rows = open_batch ? -1 : sizes.batch;
    const int64_t dims[] = {rows, sizes.places};
    ids = placeholder(DType::i32, good(PartialShape::make(dims)));
    labels = placeholder(DType::i32, good(PartialShape::make(dims)));
  }
  static Mesh::Options grid_of(const Grid& grid) {
    Mesh::Options options = {grid.data, grid.model, grid.pipe, {}, grid.zero};
    for (int64_t i = 0; i < grid.data * grid.model * grid.pipe; ++i) options.devices.push_back("/device:EMU:" + std::to_string(i));
    return options;
  }
  // Blocks are dealt out to the stages; the first one embeds, the last one has the loss.
  void build_all(Mesh& mesh, const Sizes& sizes, int64_t micro, bool forward_only = false) {
    const Value batch[] = {ids, labels};
    const Status begun = mesh.begin(batch, micro, forward_only);
    ASSERT_TRUE(begun.ok()) << begun.message();
    Layers layers{*model, &mesh, sizes};
    const int64_t stages = mesh.options().pipe;
    Mesh::Step step;
    while (good(mesh.next(&step))) {
      Value x = step.stage == 0 ? layers.embed(step.batch[0]) : step.inputs[0];
      const int64_t first = step.stage * sizes.blocks / stages, end = (step.stage + 1) * sizes.blocks / stages;
      for (int64_t b = first; b < end; ++b) {
        const std::string name = "block_" + std::to_string(b);
        const NameScope scope(*graph, name);
        x = layers.block(x);
      }
      if (step.stage + 1 == stages) x = layers.loss(x, step.batch[1]);
      const Status given = mesh.give({&x, 1});
      ASSERT_TRUE(given.ok()) << given.message();
    }
  }
  Value plain(const Sizes& sizes) {
    Layers layers{*model, nullptr, sizes};
    Value x = layers.embed(ids);
    for (int64_t b = 0; b < sizes.blocks; ++b) {
      const std::string name = "block_" + std::to_string(b);
      const NameScope scope(*graph, name);
      x = layers.block(x);
    }
    return layers.loss(x, labels);
  }
  // Losses of the steps, and all variables behind them as files know them.
  std::vector<float> train(const Training& training, Value loss, const Sizes& sizes, int steps, Weights* weights) {
    run_target(good(model->init_target()));
    Random random(5);
    std::vector<float> losses;
    for (int i = 0; i < steps; ++i) {
      std::vector<int32_t> x, y;
      for (int64_t k = 0; k < sizes.batch * sizes.places; ++k) {
        x.push_back(static_cast<int32_t>(among(random, 0, sizes.letters - 1)));
        y.push_back(static_cast<int32_t>((x.back() * 3 + 1) % sizes.letters));
      }
      const Shape shape = Shape::of({sizes.batch, sizes.places});
      std::vector<Tensor> out;
      const Status ran = run({{ids, good(Tensor::of<int32_t>(shape, x))}, {labels, good(Tensor::of<int32_t>(shape, y))}}, {loss}, &out,
                             {training.train}, int64_t{60} * 1'000'000'000);
      EXPECT_TRUE(ran.ok()) << ran.message();
      if (!ran.ok()) return losses;
      losses.push_back(out[0].as<float>()[0]);
    }
    for (const WholeVariable& whole : whole_variables(*model)) {
      std::vector<Tensor> parts;
      for (const NamedVariable* part : whole.parts) parts.push_back(fetch(part->read));
      const Tensor value = good(join_parts(whole, parts));
      if (value.dtype() == DType::f32) (*weights)[whole.name] = values(value);
      check_copies(whole);
    }
    return losses;
  }
  // Copies of one variable are equal to the bit.
  void check_copies(const WholeVariable& whole) {
    for (const NamedVariable* part : whole.parts) {
      for (size_t i = 1; i < part->copies.size(); ++i) {
        EXPECT_EQ(values(fetch(part->copies[i].read)), values(fetch(part->copies[0].read))) << part->name;
      }
    }
  }
  static double furthest(const std::vector<float>& a, const std::vector<float>& b) {
    double most = a.size() == b.size() ? 0 : 1e9;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) most = std::max(most, double{std::fabs(a[i] - b[i])});
    return most;
  }
  void compare(const Sizes& sizes, const Grid& grid, const Optimizer& optimizer, int steps = 4) {
    SCOPED_TRACE(testing::Message() << "mesh " << grid.data << "x" << grid.model << "x" << grid.pipe << ", " << grid.micro
                                    << " micro, zero " << static_cast<int>(grid.zero) << ", " << Optimizer::name_of(optimizer.kind)
                                    << ", heads " << sizes.heads << "x" << sizes.head << ", width " << sizes.width << ", inner "
                                    << sizes.inner << ", letters " << sizes.letters << ", blocks " << sizes.blocks << ", batch "
                                    << sizes.batch);
    Weights one, many;
    start(1);
    feeds(sizes);
    const Value loss = plain(sizes);
    const std::vector<float> wanted = train(good(minimize(*model, loss, optimizer)), loss, sizes, steps, &one);
    start(static_cast<int>(grid.data * grid.model * grid.pipe));
    feeds(sizes);
    const Ref<Mesh> mesh = good(Mesh::create(model, grid_of(grid)));
    build_all(*mesh, sizes, grid.micro);
    if (HasFatalFailure()) return;
    const Training training = good(mesh->minimize(optimizer));
    const std::vector<float> got = train(training, good(mesh->result(0)), sizes, steps, &many);
    EXPECT_EQ(wanted.size(), static_cast<size_t>(steps));
    EXPECT_LT(furthest(got, wanted), 1e-5);
    // Of a few rows, which are others in each step, it need not fall.
    EXPECT_TRUE(sizes.batch < 8 || wanted.back() < wanted.front());
    for (const auto& [name, values] : one) EXPECT_LT(furthest(many[name], values), 2e-4) << name;
  }
  static Optimizer momentum() {
    Optimizer optimizer = Optimizer::of(Optimizer::Kind::momentum);
    optimizer.rate = 0.1;
    optimizer.momentum = 0.9;
    return optimizer;
  }

  Ref<Model> model;
  Value ids, labels;
};

TEST_F(MeshTest, TrainsATransformerOnTwoByTwoByTwo) { compare({}, {2, 2, 2, 2}, momentum()); }

TEST_F(MeshTest, EachAxisByItself) {
  for (const Grid& grid : {Grid{2, 1, 1, 1}, Grid{1, 2, 1, 1}, Grid{1, 1, 2, 4}, Grid{1, 1, 1, 4}, Grid{1, 4, 1, 1}, Grid{1, 1, 2, 1}}) {
    compare({}, grid, momentum());
  }
}

TEST_F(MeshTest, StatesOfOptimizersOnOneRank) {
  Optimizer adam = Optimizer::of(Optimizer::Kind::adam_w);
  adam.rate = 0.02;
  adam.epsilon = 1e-3;
  adam.clip_norm = 1;
  for (const Mesh::Zero zero : {Mesh::Zero::none, Mesh::Zero::states, Mesh::Zero::gradients}) {
    compare({}, {2, 1, 2, 2, zero}, adam);
    compare({}, {2, 2, 1, 1, zero}, momentum());
  }
}

// With ZeRO each rank keeps states of some variables only, of about half the bytes, and each variable's are beside one copy of it.
TEST_F(MeshTest, StatesAreShared) {
  for (const Mesh::Zero zero : {Mesh::Zero::none, Mesh::Zero::states}) {
    start(2);
    const Sizes sizes;
    feeds(sizes);
    const Ref<Mesh> mesh = good(Mesh::create(model, grid_of({2, 1, 1, 1, zero})));
    build_all(*mesh, sizes, 1);
    (void)good(mesh->minimize(momentum()));
    std::map<std::string, int64_t> bytes;
    for (const NamedVariable& variable : model->variables()) {
      if (variable.slot.empty()) continue;
      EXPECT_EQ(variable.copies.size(), zero == Mesh::Zero::none ? 2u : 0u) << variable.name;
      const auto count = [&](Value handle) {
        const Node& node = graph->node(handle.node());
        const std::string device(node.colocate.empty() ? node.device : graph->node(node.colocate[0]).device);
        bytes[device] += variable.shape.count();
      };
      if (variable.copies.empty()) count(variable.handle);
      for (const VariableCopy& copy : variable.copies) count(copy.handle);
    }
    ASSERT_EQ(bytes.size(), 2u);
    const int64_t a = bytes.begin()->second, b = bytes.rbegin()->second;
    EXPECT_LT(std::abs(a - b), (a + b) / 5);
  }
}

TEST_F(MeshTest, ShapesByChance) {
  Random random(11);
  for (int i = 0; i < 8; ++i) {
    Grid grid;
    grid.data = among(random, 1, 2);
    grid.model = among(random, 1, 3);
    grid.pipe = among(random, 1, 8 / (grid.data * grid.model) >= 2 ? 2 : 1);
    grid.micro = among(random, 1, 3);
    grid.zero = static_cast<Mesh::Zero>(among(random, 0, 2));
    Sizes sizes;
    sizes.batch = grid.data * grid.micro * among(random, 1, 3);
    sizes.places = among(random, 1, 5);
    sizes.letters = among(random, 4, 12);
    sizes.heads = among(random, grid.model, 5);
    sizes.head = among(random, 1, 4);
    sizes.width = among(random, 4, 9);
    sizes.inner = among(random, grid.model, 11);
    sizes.blocks = among(random, 1, 3);
    sizes.table = among(random, 0, 1) ? TableCut::rows : TableCut::columns;
    sizes.causal = among(random, 0, 1) == 1;
    sizes.use_bias = among(random, 0, 1) == 1;
    compare(sizes, grid, momentum(), 3);
  }
}

// A second build, of the ways forward only, is over the same variables.
TEST_F(MeshTest, EvaluatesWithTheSameWeights) {
  start(4);
  const Sizes sizes;
  feeds(sizes);
  const Ref<Mesh> mesh = good(Mesh::create(model, grid_of({1, 2, 2, 2})));
  build_all(*mesh, sizes, 2);
  const Value loss = good(mesh->result(0));
  const size_t variables = model->variables().size();
  build_all(*mesh, sizes, 4, true);
  EXPECT_EQ(model->variables().size(), variables);
  EXPECT_EQ(mesh->minimize(momentum()).status().code(), Code::failed_precondition);
  const Value again = good(mesh->result(0));
  run_target(good(model->init_target()));
  const std::vector<int32_t> x(static_cast<size_t>(sizes.batch * sizes.places), 3);
  const Tensor fed = good(Tensor::of<int32_t>(Shape::of({sizes.batch, sizes.places}), x));
  std::vector<Tensor> out;
  ASSERT_TRUE(run({{ids, fed}, {labels, fed}}, {loss, again}, &out).ok());
  EXPECT_NEAR(out[0].as<float>()[0], out[1].as<float>()[0], 1e-6);
}

// Each forward comes after the way back that makes room for it, whatever the executor would like.
TEST_F(MeshTest, AStageHoldsNoMoreThanItsPlaceFromTheEnd) {
  start(2);
  Sizes sizes;
  sizes.batch = 6;
  feeds(sizes);
  const Ref<Mesh> mesh = good(Mesh::create(model, grid_of({1, 1, 2, 6})));
  build_all(*mesh, sizes, 6);
  // Which inputs of stages are behind a way back, by control.
  int waiting = 0, all = 0;
  for (NodeId id = 0; id < graph->node_count(); ++id) {
    const Node& node = graph->node(id);
    if (!node.name.starts_with("stage_input")) continue;
    ++all;
    for (const NodeId before : node.controls) waiting += graph->node(before).name.find("backward") != std::string_view::npos ? 1 : 0;
  }
  // Stage 0: 2 values, 2 in flight; stage 1: 3 values, 1 in flight.
  EXPECT_EQ(all, 6 * 2 + 6 * 3);
  EXPECT_EQ(waiting, 4 * 2 + 5 * 3);
}

TEST(Pipeline, MovesAreOneForwardOneBackward) {
  for (int64_t stages = 1; stages <= 5; ++stages) {
    for (int64_t micro = 1; micro <= 7; ++micro) {
      const auto moves = pipeline_moves(stages, micro, false);
      ASSERT_EQ(moves.size(), static_cast<size_t>(2 * stages * micro));
      std::set<std::pair<int64_t, int64_t>> forward, backward;
      std::vector<int64_t> held(static_cast<size_t>(stages), 0), most(held);
      for (const PipelineMove& move : moves) {
        const auto s = static_cast<size_t>(move.stage);
        if (!move.backward) {
          EXPECT_TRUE(move.stage == 0 || forward.contains({move.stage - 1, move.micro}));
          const int64_t before = pipeline_waits_for(stages, move.stage, move.micro);
          EXPECT_TRUE(before < 0 || backward.contains({move.stage, before}));
          EXPECT_TRUE(forward.insert({move.stage, move.micro}).second);
          most[s] = std::max(most[s], ++held[s]);
        } else {
          EXPECT_TRUE(forward.contains({move.stage, move.micro}));
          EXPECT_TRUE(move.stage + 1 == stages || backward.contains({move.stage + 1, move.micro}));
          EXPECT_TRUE(backward.insert({move.stage, move.micro}).second);
          --held[s];
        }
      }
      for (int64_t s = 0; s < stages; ++s) EXPECT_EQ(most[static_cast<size_t>(s)], std::min(micro, stages - s));
      EXPECT_EQ(pipeline_moves(stages, micro, true).size(), static_cast<size_t>(stages * micro));
    }
  }
}

// --- misuse ---

TEST_F(MeshTest, WhatIsWrongIsSaid) {
  start(4);
  const auto create = [&](Mesh::Options options) { return Mesh::create(model, std::move(options)).status().code(); };
  EXPECT_EQ(create({0, 1, 1, {}}), Code::invalid_argument);
  EXPECT_EQ(create({2, 1, 1, {"/device:EMU:0"}}), Code::invalid_argument);
  EXPECT_EQ(create({2, 1, 1, {"/device:EMU:0", "/device:EMU:0"}}), Code::invalid_argument);
  EXPECT_EQ(create({1, 1, 1, {"nonsense:::"}}), Code::invalid_argument);
  EXPECT_EQ(create({int64_t{1} << 40, int64_t{1} << 40, 1, {}}), Code::invalid_argument);
  const Ref<Mesh> mesh = good(Mesh::create(model, grid_of({2, 2, 1, 1})));
  Sizes sizes;
  sizes.batch = 7;
  feeds(sizes);
  const Value batch[] = {ids};
  EXPECT_EQ(mesh->begin(batch, 1, false).code(), Code::invalid_argument);  // 7 rows for 2 ranks
  EXPECT_EQ(mesh->begin(batch, 0, false).code(), Code::invalid_argument);
  Mesh::Step step;
  EXPECT_EQ(mesh->next(&step).status().code(), Code::failed_precondition);
  EXPECT_EQ(mesh->give(batch).code(), Code::failed_precondition);
  EXPECT_EQ(mesh->minimize({}).status().code(), Code::failed_precondition);
  DenseLayer layer;
  layer.units = 1;
  EXPECT_EQ(column_dense(*mesh, ids, layer).status().code(), Code::failed_precondition);
  sizes.batch = 8;
  feeds(sizes);
  const Value even[] = {ids};
  ASSERT_TRUE(mesh->begin(even, 1, false).ok());
  ASSERT_TRUE(good(mesh->next(&step)));
  EXPECT_EQ(mesh->next(&step).status().code(), Code::failed_precondition);
  EXPECT_EQ(mesh->begin(even, 1, false).code(), Code::failed_precondition);
  const Value x = build->cast(step.batch[0], DType::f32);
  EXPECT_EQ(column_dense(*mesh, x, layer).status().code(), Code::invalid_argument);  // 1 unit for 2 devices
  EXPECT_EQ(row_dense(*mesh, {&x, 1}, layer).status().code(), Code::invalid_argument);
  layer.units = 4;
  layer.activation = Activation::softmax;
  EXPECT_EQ(column_dense(*mesh, x, layer).status().code(), Code::invalid_argument);
  EXPECT_EQ(mesh->give({&x, 1}).code(), Code::invalid_argument);  // no scalar
  EXPECT_EQ(model->variables().size(), 0u);
  EXPECT_FALSE(model->policy());
}

// Moving statistics go to the mean over all micro-batches, as with towers over the same rows.
TEST_F(MeshTest, FollowsTheBatches) {
  const auto numbers = [](int64_t count) {
    std::vector<float> all;
    for (int64_t i = 0; i < count; ++i) all.push_back(static_cast<float>((i * i * 7) % 13) / 3);
    return all;
  };
  const auto net = [&](Value x) {
    DenseLayer layer;
    layer.units = 3;
    const Value y = good(batch_norm(*model, good(dense(*model, x, layer)), {}, {}));
    return build->op("Mean", {build->mul(y, y), build->ints({0, 1})});
  };
  std::map<std::string, std::vector<float>> wanted;
  for (const bool meshed : {false, true}) {
    start(2);
    const Value x = placeholder(DType::f32, good(PartialShape::make(std::vector<int64_t>{8, 2})));
    NodeId step = kNoNode;
    if (meshed) {
      const Ref<Mesh> mesh = good(Mesh::create(model, grid_of({2, 1, 1, 2})));
      ASSERT_TRUE(mesh->begin({&x, 1}, 2, false).ok());
      Mesh::Step at;
      while (good(mesh->next(&at))) {
        const Value loss = net(at.batch[0]);
        const Status given = mesh->give({&loss, 1});
        ASSERT_TRUE(given.ok()) << given.message();
      }
      step = good(mesh->minimize(momentum())).train;
    } else {
      const Value first = build->op("Split", {build->integer(0), x}, {{"num_split", int64_t{4}}});
      std::vector<Value> losses;
      for (uint32_t k = 0; k < 4; ++k) {
        if (k > 0) model->next_tower();
        losses.push_back(net(first.sibling(k)));
      }
      step = good(minimize_towers(*model, losses, momentum())).train;
    }
    run_target(good(model->init_target()));
    std::vector<Tensor> none;
    for (int i = 0; i < 2; ++i) {
      const Status ran = run({{x, floats({8, 2}, numbers(16))}}, {}, &none, {step});
      ASSERT_TRUE(ran.ok()) << ran.message();
    }
    for (const NamedVariable& variable : model->variables()) {
      if (variable.dtype != DType::f32) continue;
      const std::vector<float> got = values(fetch(variable.read));
      if (meshed) EXPECT_LT(furthest(got, wanted[variable.name]), 1e-6) << variable.name;
      else wanted[variable.name] = got;
    }
  }
}

// Stages that are not built alike.
TEST_F(MeshTest, MicroBatchesAreBuiltAlike) {
  for (const bool more : {false, true}) {
    start(1);
    feeds({});
    const Ref<Mesh> mesh = good(Mesh::create(model, grid_of({1, 1, 1, 2})));
    const Value batch[] = {ids};
    ASSERT_TRUE(mesh->begin(batch, 2, false).ok());
    Mesh::Step step;
    Status status;
    for (int k = 0; k < 2; ++k) {
      ASSERT_TRUE(good(mesh->next(&step)));
      const Value x = build->cast(step.batch[0], DType::f32);
      DenseLayer layer;
      layer.units = 2;
      Value y = good(dense(*model, x, layer));
      if ((k == 0) != more) y = good(dense(*model, y, layer));
      const Value loss = build->sum(y, build->ints({0, 1}));
      status = mesh->give({&loss, 1});
      ASSERT_TRUE(k > 0 || status.ok()) << status.message();
    }
    EXPECT_EQ(status.code(), Code::failed_precondition) << status.message();
    EXPECT_EQ(model->variables().size(), 0u);
  }
}

}  // namespace
}  // namespace dtg
