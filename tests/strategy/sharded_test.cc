// Variables in shards against the same in one piece: first values of every initializer, type and cut, lookups of random shapes, training by
// every optimizer that goes element by element, to the bit; and what files make of them. Shapes come from a seeded generator.
#include "strategy/sharded.h"

#include <random>

#include "nn/optimizer.h"
#include "nn/scope.h"
#include "nn/wholes.h"
#include "replica_world.h"
#include "strategy/replicas.h"

namespace dtg {
namespace {

using Random = std::mt19937_64;

int64_t among(Random& random, int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); }

std::string bytes_of(const Tensor& value) { return {value.as<char>(), static_cast<size_t>(value.bytes())}; }

Partitioner fixed(int64_t shards, int64_t axis = 0) {
  Partitioner partitioner;
  partitioner.axis = axis;
  partitioner.num_shards = shards;
  return partitioner;
}

class Sharded : public testing::Test {
 protected:
  // The shards' values put together as a file would have them.
  static std::string whole_bits(ReplicaWorld& world, const std::string& name) {
    for (const WholeVariable& whole : whole_variables(world.model())) {
      if (whole.name != name) continue;
      std::vector<Value> reads;
      for (const NamedVariable* part : whole.parts) reads.push_back(part->read);
      const Tensor joined = good(join_parts(whole, world.run({}, reads, {})));
      EXPECT_EQ(joined.shape(), whole.shape);
      return bytes_of(joined);
    }
    ADD_FAILURE() << "no variable " << name;
    return "";
  }
};

TEST_F(Sharded, FirstValuesAreThoseOfTheWhole) {
  Random random(1);
  const Initializer kinds[] = {Initializer::zeros(),
                               Initializer::constant(3),
                               Initializer::uniform(-1, 2),
                               Initializer::normal(1, 2),
                               Initializer::truncated_normal(0, 1),
                               Initializer::glorot_uniform(),
                               Initializer::glorot_normal(),
                               Initializer::he_uniform(),
                               Initializer::he_normal(),
                               Initializer::orthogonal()};
  const DType types[] = {DType::f32, DType::f64, DType::f16, DType::bf16};
  ReplicaWorld one(1), cut(1);
  std::vector<std::string> names;
  for (int i = 0; i < 60; ++i) {
    std::vector<int64_t> dims(static_cast<size_t>(among(random, 2, 3)));
    for (int64_t& dim : dims) dim = among(random, 1, 9);
    const int64_t axis = among(random, 0, static_cast<int64_t>(dims.size()) - 1);
    const std::string name = "v" + std::to_string(i);
    const VariableSpec spec = {.name = name,
                               .dtype = types[among(random, 0, 3)],
                               .shape = good(Shape::make(dims)),
                               .initializer = kinds[static_cast<size_t>(among(random, 0, 9))]};
    names.push_back(good(one.model().add_variable(spec)).name);
    const ShardedVariable made = good(add_sharded(cut.model(), spec, fixed(among(random, 1, 6), axis)));
    EXPECT_EQ(made.name, names.back());
  }
  one.init();
  cut.init();
  auto bits = one.bits();
  for (const std::string& name : names) EXPECT_EQ(whole_bits(cut, name), bits[name]) << name;
}

// A table and a bias, one step after the other over the same ids.
struct Job {
  ReplicaWorld world{1};
  std::string table;
  Value ids, weights, rows;
  NodeId train = kNoNode;

  Job(const Shape& shape, const std::vector<int64_t>& ids_dims, int64_t shards, const Optimizer& optimizer, bool dense) {
    Model& model = world.model();
    ids = world.placeholder(DType::i64, ids_dims);
    Build build(world.graph());
    const VariableSpec spec = {.name = "table", .shape = shape, .initializer = Initializer::uniform(-1, 1)};
    Value all;
    if (shards == 0) {
      const NamedVariable made = good(model.add_variable(spec));
      table = made.name;
      rows = build.op("ResourceGather", {made.handle, ids}, {{"dtype", DType::f32}});
      all = made.read;
    } else {
      const ShardedVariable made = good(add_sharded(model, spec, fixed(shards)));
      table = made.name;
      rows = good(sharded_lookup(model, made, ids));
      all = good(sharded_value(model, made));
    }
    const Value square = build.mul(rows, rows);
    Value loss = build.op("Sum", {build.reshape(square, build.ints({-1})), build.ints({0})});
    if (dense) loss = build.add(loss, build.op("Sum", {build.reshape(build.mul(all, all), build.ints({-1})), build.ints({0})}));
    EXPECT_TRUE(build.ok()) << build.status().message();
    train = good(minimize(model, loss, optimizer)).train;
    world.init();
  }
};

TEST_F(Sharded, LookupAndTrainingAreThoseOfOnePiece) {
  using Kind = Optimizer::Kind;
  const Kind kinds[] = {Kind::sgd,      Kind::momentum, Kind::adam,  Kind::adagrad, Kind::rms_prop, Kind::adam_w,
                        Kind::adadelta, Kind::adamax,   Kind::nadam, Kind::ftrl,    Kind::lion};
  Random random(2);
  for (size_t i = 0; i < 2 * std::size(kinds); ++i) {
    Optimizer optimizer = Optimizer::of(kinds[i / 2]);
    optimizer.rate = 0.05;
    const bool dense = i % 2 == 1;
    const int64_t rows = among(random, 1, 11), width = among(random, 1, 4);
    const Shape shape = Shape::of({rows, width});
    std::vector<int64_t> dims(static_cast<size_t>(among(random, 1, 2)));
    for (int64_t& dim : dims) dim = among(random, 1, 5);
    const int64_t shards = among(random, 1, rows);
    SCOPED_TRACE(std::string(Optimizer::name_of(kinds[i / 2])) + (dense ? " dense " : " rows ") + std::to_string(rows) + " rows in " +
                 std::to_string(shards));
    Job one(shape, dims, 0, optimizer, dense), cut(shape, dims, shards, optimizer, dense);
    for (int step = 0; step < 3; ++step) {
      std::vector<int64_t> picked(static_cast<size_t>(good(Shape::make(dims)).count()));
      for (int64_t& id : picked) id = among(random, 0, rows - 1);
      const Tensor fed = good(Tensor::of<int64_t>(good(Shape::make(dims)), picked));
      EXPECT_EQ(bytes_of(one.world.run({{one.ids, fed}}, {one.rows}, {})[0]), bytes_of(cut.world.run({{cut.ids, fed}}, {cut.rows}, {})[0]));
      one.world.run({{one.ids, fed}}, {}, {one.train});
      cut.world.run({{cut.ids, fed}}, {}, {cut.train});
    }
    // Weights, and what the optimizer keeps, under the names of one piece.
    for (const auto& [name, bits] : one.world.bits()) EXPECT_EQ(whole_bits(cut.world, name), bits) << name;
  }
}

TEST_F(Sharded, NoIdsNoRows) {
  Job cut(Shape::of({5, 3}), {-1}, 3, {}, false);
  const Tensor none = good(Tensor::of<int64_t>(Shape::of({0}), std::span<const int64_t>()));
  EXPECT_EQ(cut.world.run({{cut.ids, none}}, {cut.rows}, {})[0].shape(), Shape::of({0, 3}));
}

TEST_F(Sharded, WhatIsWrongIsSaid) {
  Job cut(Shape::of({5, 3}), {-1}, 3, {}, false);
  for (const int64_t id : {int64_t{-1}, int64_t{5}, int64_t{1} << 40, INT64_MIN}) {
    const Tensor fed = good(Tensor::of<int64_t>(Shape::of({1}), std::span(&id, 1)));
    const Value feeds[] = {cut.ids}, fetches[] = {cut.rows};
    const Tensor* const tensors[] = {&fed};
    Tensor out;
    const Status status = cut.world.session().run({.feeds = feeds, .feed_tensors = tensors, .fetches = fetches, .targets = {}}, {&out, 1});
    EXPECT_EQ(status.code(), Code::invalid_argument) << id << ": " << status.message();
  }
  Model& model = cut.world.model();
  const auto add = [&](std::vector<int64_t> dims, const Partitioner& how, std::string_view name = "w") {
    return add_sharded(model, {.name = name, .shape = good(Shape::make(dims))}, how).status().code();
  };
  EXPECT_EQ(add({}, fixed(2)), Code::invalid_argument);
  EXPECT_EQ(add({4}, fixed(2, 1)), Code::invalid_argument);
  EXPECT_EQ(add({4}, fixed(0)), Code::invalid_argument);
  EXPECT_EQ(add({0, 4}, fixed(2)), Code::invalid_argument);
  EXPECT_EQ(add({9000}, fixed(9000)), Code::invalid_argument);
  EXPECT_EQ(add({4}, fixed(2), ""), Code::invalid_argument);
  EXPECT_EQ(find_sharded(model, "nothing").status().code(), Code::not_found);
  EXPECT_EQ(find_sharded(model, "global_step").status().code(), Code::not_found);
  const ShardedVariable columns = good(add_sharded(model, {.name = "columns", .shape = Shape::of({2, 6})}, fixed(3, 1)));
  EXPECT_EQ(sharded_lookup(model, columns, cut.ids).status().code(), Code::invalid_argument);
  Build build(cut.world.graph());
  EXPECT_EQ(sharded_lookup(model, good(find_sharded(model, "table")), build.scalar(DType::f32, 1)).status().code(), Code::invalid_argument);
}

// The shards stand on one device after the other, as a device setter says, and each lookup where its shard stands.
TEST_F(Sharded, EachShardIsLookedUpWhereItStands) {
  ReplicaWorld world(1);
  Graph& graph = world.graph();
  const Value ids = world.placeholder(DType::i64, {-1});
  ShardedVariable made;
  made.shape = Shape::of({4, 2});
  for (int i = 0; i < 2; ++i) {
    graph.push_device(ReplicaWorld::ps(i));
    const NameScope scope(graph, "");
    const std::string name = "table/part_" + std::to_string(i);
    made.shards.push_back(good(world.model().add_variable(
        {.name = name, .shape = Shape::of({2, 2}), .initializer = Initializer::uniform(-1, 1), .part = {{}, made.shape, 0, i, 2, 2 * i}})));
    EXPECT_TRUE(graph.pop_device().ok());
  }
  made.name = made.shards[0].part.whole;
  EXPECT_EQ(made.name, "table");
  graph.push_device(ReplicaWorld::worker(0));
  const Value rows = good(sharded_lookup(world.model(), made, ids));
  EXPECT_TRUE(graph.pop_device().ok());
  int gathers = 0;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    if (node.op->name() != "ResourceGather") continue;
    ASSERT_EQ(node.colocate.size(), 1u);
    EXPECT_EQ(node.colocate[0], made.shards[static_cast<size_t>(gathers++)].handle.node());
  }
  EXPECT_EQ(gathers, 2);
  world.init();
  const std::vector<int64_t> picked = {3, 0, 2, 1, 3};
  const Tensor fed = good(Tensor::of<int64_t>(Shape::of({5}), picked));
  const Tensor got = world.run({{ids, fed}}, {rows}, {})[0];
  const std::string all = whole_bits(world, "table");
  for (size_t i = 0; i < picked.size(); ++i) {
    EXPECT_EQ(bytes_of(got).substr(i * 8, 8), all.substr(static_cast<size_t>(picked[i]) * 8, 8)) << i;
  }
}

// Two strict workers over shards on a parameter server: the bits of one piece there, whose rows nobody else has.
TEST_F(Sharded, StrictWorkersMakeTheBitsOfOnePiece) {
  const auto trained = [](int64_t shards) {
    ReplicaWorld world(2);
    Graph& graph = world.graph();
    Build build(graph);
    std::vector<Value> ids, losses;
    for (int w = 0; w < 2; ++w) {
      if (w > 0) world.model().next_tower();
      graph.push_device(ReplicaWorld::worker(w));
      ids.push_back(world.placeholder(DType::i64, {4}));
      graph.push_device(ReplicaWorld::ps(1));
      const VariableSpec spec = {.name = "table", .shape = Shape::of({6, 3}), .initializer = Initializer::uniform(-1, 1)};
      const ShardedVariable table = shards > 0 ? good(add_sharded(world.model(), spec, fixed(shards)))
                                               : ShardedVariable{.shards = {good(world.model().add_variable(spec))}};
      EXPECT_TRUE(graph.pop_device().ok());
      Value rows;
      if (shards > 0) {
        rows = good(sharded_lookup(world.model(), table, ids.back()));
      } else {
        graph.push_colocation(table.shards[0].handle.node());
        rows = build.op("ResourceGather", {table.shards[0].handle, ids.back()}, {{"dtype", DType::f32}});
        EXPECT_TRUE(graph.pop_colocation().ok());
      }
      losses.push_back(build.op("Mean", {build.mul(rows, rows), build.ints({0, 1})}));
      EXPECT_TRUE(graph.pop_device().ok());
    }
    Optimizer momentum = Optimizer::of(Optimizer::Kind::momentum);
    momentum.rate = 0.3;
    momentum.momentum = 0.9;
    std::vector<Replicated> parts;
    for (int w = 0; w < 2; ++w) {
      const Replication share{.mode = SyncMode::strict, .worker = w, .total = 2};
      parts.push_back(good(minimize_replicated(world.model(), losses[static_cast<size_t>(w)], momentum, share)));
    }
    world.init();
    world.run({}, {}, {parts[0].chief_init});
    for (const Replicated& part : parts) world.run({}, {}, {part.local_init});
    for (int step = 0; step < 4; ++step) {
      std::vector<Ref<AsyncRun>> runs;
      for (int w = 0; w < 2; ++w) {
        const std::vector<int64_t> picked = {step, (step + w) % 6, 5 - step, w};
        const Tensor fed = good(Tensor::of<int64_t>(Shape::of({4}), picked));
        runs.push_back(
            world.start({{ids[static_cast<size_t>(w)], fed}}, parts[static_cast<size_t>(w)].train, static_cast<uint64_t>(w + 1)));
      }
      world.run({}, {}, {parts[0].update});
      for (uint64_t w = 1; w <= 2; ++w) EXPECT_TRUE(world.wait(w).ok());
    }
    return std::pair(whole_bits(world, "table"), whole_bits(world, "table/Momentum"));
  };
  const auto one = trained(0);
  EXPECT_EQ(trained(1), one);
  EXPECT_EQ(trained(4), one);
}

TEST_F(Sharded, WholesAreCutAndJoinedAlongAnyAxis) {
  Random random(3);
  for (int i = 0; i < 200; ++i) {
    std::vector<int64_t> dims(static_cast<size_t>(among(random, 1, 4)));
    for (int64_t& dim : dims) dim = among(random, 1, 6);
    const int64_t axis = among(random, 0, static_cast<int64_t>(dims.size()) - 1);
    const int64_t rows = dims[static_cast<size_t>(axis)], shards = among(random, 1, rows);
    WholeVariable whole{"w", DType::i32, good(Shape::make(dims))};
    std::vector<NamedVariable> parts(static_cast<size_t>(shards));
    for (int64_t k = 0; k < shards; ++k) {
      const ShardRows at = good(shard_rows(rows, shards, k));
      dims[static_cast<size_t>(axis)] = at.count;
      auto& part = parts[static_cast<size_t>(k)];
      part.shape = good(Shape::make(dims));
      part.part = {"w", whole.shape, static_cast<int32_t>(axis), static_cast<int32_t>(k), static_cast<int32_t>(shards), at.first};
    }
    for (const NamedVariable& part : parts) whole.parts.push_back(&part);
    std::vector<int32_t> numbers(static_cast<size_t>(whole.shape.count()));
    for (size_t n = 0; n < numbers.size(); ++n) numbers[n] = static_cast<int32_t>(n);
    const Tensor all = good(Tensor::of<int32_t>(whole.shape, numbers));
    const std::vector<Tensor> cut = good(cut_parts(whole, all));
    EXPECT_EQ(bytes_of(good(join_parts(whole, cut))), bytes_of(all));
    // Independently: the element of the first part that comes last along the axis.
    const int64_t inner = whole.shape.count(static_cast<int>(axis) + 1, whole.shape.rank());
    EXPECT_EQ(cut[0].as<int32_t>()[(cut[0].shape().dim(static_cast<int>(axis)) - 1) * inner],
              (cut[0].shape().dim(static_cast<int>(axis)) - 1) * inner);
    EXPECT_TRUE(shards == 1 || cut[1].as<int32_t>()[0] == parts[1].part.first * inner);
  }
}

}  // namespace
}  // namespace dtg
