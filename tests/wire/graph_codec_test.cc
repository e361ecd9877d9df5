// Graphs to bytes and back: nothing lost on the way, and nothing believed.
#include "wire/graph_codec.h"

#include <gtest/gtest.h>

#include "graph/build.h"
#include "ops/all.h"
#include "tensor/text.h"
#include "wire/flatbuffers_assert.h"

namespace dtg {
namespace {

class GraphCodec : public ::testing::Test {
 protected:
  GraphCodec() { ops::register_all(ops_, kernels_); }

  Ref<Graph> fresh() { return Graph::create(&ops_).take(); }

  // Names, devices, places, controls, colocation, and attributes of most kinds.
  Ref<Graph> sample() {
    Ref<Graph> graph = fresh();
    graph->push_device("/job:ps/task:0");
    const Attr handle[] = {{"dtype", DType::f32}, {"shape", Shape::of({2, 3})}, {"shared_name", "weights"}};
    const NodeId w = graph->add({.op = "VarHandleOp", .name = "w", .location = "model.c:17", .attrs = handle}).take();
    EXPECT_TRUE(graph->pop_device().ok());
    Build b(*graph);
    const float values[] = {1, -2, 3.5f, 0, 1e-30f, 6};
    const Value c = b.constant(Tensor::of<float>(Shape::of({2, 3}), values).take(), "c");
    const Value flags = b.constant(Tensor::of<bool>(Shape::of({2}), std::array<bool, 2>{true, false}).take(), "flags");
    const Value inputs[] = {graph->value(w), c};
    const NodeId colocate[] = {w};
    const NodeId controls[] = {flags.node()};
    EXPECT_TRUE(graph->add({.op = "AssignVariableOp", .name = "init", .inputs = inputs, .controls = controls, .colocate = colocate}).ok());
    const Value x =
        b.op("Placeholder", {}, {{"dtype", DType::f32}, {"shape", PartialShape::make(std::array<int64_t, 2>{-1, 2}).take()}}, "x");
    const Value read = b.op("ReadVariableOp", {graph->value(w)}, {{"dtype", DType::f32}}, "read");
    b.op("MatMul", {x, read}, {}, "y");
    b.op("ExpandDims", {x, b.integer(0)});
    EXPECT_TRUE(b.ok()) << b.status().message();
    return graph;
  }

  Status decode(std::string_view bytes, Ref<Graph>* out = nullptr) {
    Ref<Graph> graph = fresh();
    Status status = decode_graph(bytes, *graph, budget_);
    if (out) *out = graph;
    return status;
  }

  OpTable ops_;
  KernelTable kernels_;
  MemoryBudget budget_{int64_t{1} << 30};
};

TEST_F(GraphCodec, KeepsEverything) {
  const Ref<Graph> graph = sample();
  const std::string bytes = encode_graph(*graph).take();
  Ref<Graph> copy;
  const Status decoded = decode(bytes, &copy);
  ASSERT_TRUE(decoded.ok()) << decoded.message();
  ASSERT_EQ(copy->node_count(), graph->node_count());
  for (NodeId id = 0; id < graph->node_count(); ++id) {
    const Node &a = graph->node(id), &b = copy->node(id);
    EXPECT_EQ(a.op, b.op);
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.device, b.device);
    EXPECT_EQ(a.location, b.location);
    EXPECT_TRUE(std::ranges::equal(a.controls, b.controls));
    EXPECT_TRUE(std::ranges::equal(a.colocate, b.colocate));
    ASSERT_EQ(a.inputs.size(), b.inputs.size());
    for (size_t i = 0; i < a.inputs.size(); ++i) EXPECT_EQ(graph->value_name(a.inputs[i]), copy->value_name(b.inputs[i]));
    ASSERT_EQ(a.attrs.size(), b.attrs.size());
    for (size_t i = 0; i < a.outputs.size(); ++i) EXPECT_EQ(a.outputs[i].shape, b.outputs[i].shape);
  }
  const Tensor& c = copy->node(copy->find("c")).attr<Tensor>("value");
  EXPECT_EQ(c.shape(), Shape::of({2, 3}));
  EXPECT_EQ(c.values<float>()[4], 1e-30f);
  EXPECT_EQ(copy->node(copy->find("w")).device, "/job:ps/task:0");
  // Written again, the copy gives the same bytes.
  EXPECT_EQ(encode_graph(*copy).take(), bytes);
  EXPECT_EQ(budget_.used(), 0);
}

// Their lengths are foreign; the checksum is made right again, so that what lies in front of them does not catch the lie.
TEST_F(GraphCodec, StringsAndLiesAboutThem) {
  const std::vector<Text> list = {std::string_view("one"), std::string_view(""), std::string_view("a\0b", 3)};
  const Ref<Graph> graph = fresh();
  Build b(*graph);
  b.constant(make_texts(Shape::of({3, 1}), list).take(), "words");
  b.constant(make_texts(Shape::of({0, 2}), {}).take(), "none");
  const std::string bytes = encode_graph(*graph).take();
  Ref<Graph> copy;
  const Status decoded = decode(bytes, &copy);
  ASSERT_TRUE(decoded.ok()) << decoded.message();
  const Tensor& words = copy->node(copy->find("words")).attr<Tensor>("value");
  EXPECT_EQ(words.text(), "string[3,1]");
  EXPECT_TRUE(same_texts(texts_of(words), list));
  EXPECT_EQ(copy->node(copy->find("none")).attr<Tensor>("value").text(), "string[0,2]");
  EXPECT_EQ(encode_graph(*copy).take(), bytes);
  const size_t lengths = bytes.find(std::string("\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\3", 17));
  ASSERT_NE(lengths, std::string::npos);
  for (size_t at = lengths; at < lengths + 24; ++at) {
    for (const char lie : {'\1', '\2', '\4', '\x7f', '\xff'}) {
      std::string changed = bytes;
      changed[at] = lie;
      seal_graph(changed);
      EXPECT_FALSE(decode(changed).ok()) << at - lengths;
    }
  }
  EXPECT_EQ(budget_.used(), 0);
}

TEST_F(GraphCodec, EmptyGraph) {
  const std::string bytes = encode_graph(*fresh()).take();
  EXPECT_TRUE(decode(bytes).ok());
}

TEST_F(GraphCodec, CutAtEveryByte) {
  const std::string bytes = encode_graph(*sample()).take();
  for (size_t length = 0; length < bytes.size(); ++length) {
    const std::string cut = bytes.substr(0, length);
    EXPECT_FALSE(decode(cut).ok()) << length;
  }
  EXPECT_EQ(wire::failed_assertions(), 0);
}

TEST_F(GraphCodec, EveryBitFlipped) {
  std::string bytes = encode_graph(*sample()).take();
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    EXPECT_EQ(decode(bytes).code(), Code::data_loss) << bit;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
  }
  EXPECT_TRUE(decode(bytes).ok());
}

// With a checksum that fits, a flipped bit in a weight is a graph too; what is promised is that nothing breaks and
// nothing leaks.
TEST_F(GraphCodec, EveryBitFlippedAndSealed) {
  const std::string original = encode_graph(*sample()).take();
  int refused = 0;
  for (size_t bit = 0; bit < original.size() * 8; ++bit) {
    std::string bytes = original;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    seal_graph(bytes);
    Ref<Graph> graph;
    const Status status = decode(bytes, &graph);
    if (status.ok()) {
      EXPECT_TRUE(encode_graph(*graph).ok());
    } else {
      ++refused;
      EXPECT_FALSE(status.message().empty());
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_EQ(budget_.used(), 0);
  EXPECT_EQ(wire::failed_assertions(), 0);
}

TEST_F(GraphCodec, BadlyAlignedBytes) {
  const std::string bytes = encode_graph(*sample()).take();
  for (size_t shift = 1; shift < 16; ++shift) {
    const std::string moved = std::string(shift, 'x') + bytes;
    EXPECT_TRUE(decode(std::string_view(moved).substr(shift)).ok()) << shift;
  }
}

TEST_F(GraphCodec, RefusesWhatIsTooMuch) {
  const Ref<Graph> graph = sample();
  const std::string bytes = encode_graph(*graph).take();
  MemoryBudget poor(100);
  EXPECT_EQ(decode_graph(bytes, *fresh(), poor).code(), Code::resource_exhausted);
  wire::Limits limits;
  limits.graph_nodes = 3;
  EXPECT_EQ(decode_graph(bytes, *fresh(), budget_, limits).code(), Code::resource_exhausted);
  EXPECT_EQ(encode_graph(*graph, limits).status().code(), Code::resource_exhausted);
  limits = {};
  limits.graph_bytes = 64;
  EXPECT_EQ(decode_graph(bytes, *fresh(), budget_, limits).code(), Code::resource_exhausted);
  EXPECT_EQ(encode_graph(*graph, limits).status().code(), Code::resource_exhausted);
  limits = {};
  limits.name_bytes = 3;
  EXPECT_EQ(encode_graph(*graph, limits).status().code(), Code::invalid_argument);
  EXPECT_EQ(decode_graph(bytes, *graph, budget_).code(), Code::failed_precondition);
  EXPECT_EQ(decode("").code(), Code::data_loss);
  EXPECT_EQ(decode(std::string(1000, '\0')).code(), Code::data_loss);
}

}  // namespace
}  // namespace dtg
