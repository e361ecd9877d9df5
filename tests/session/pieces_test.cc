// Tensors in pieces: lists that are split and put together, and TensorArrays. Values, what is refused, gradients against differences, on
// the CPU and on an emulated accelerator. One thread.
#include <cmath>
#include <functional>

#include "control_fixture.h"

namespace dtg {
namespace {

using Vec = std::vector<double>;

class PiecesTest : public ControlTest, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    Session::Options options;
    if (GetParam()) options.devices.emu = 1;
    open(options);
    x = placeholder(f64, PartialShape(Shape::of({4, 2})));
  }

  static Tensor doubles(const Shape& shape, const Vec& values) { return Tensor::of<double>(shape, std::span<const double>(values)).take(); }
  Value op(const char* type, std::initializer_list<Value> inputs, std::initializer_list<Attr> attrs = {}) {
    return build->op(type, inputs, attrs);
  }
  Value longs_of(std::initializer_list<int64_t> values) { return build->ints(values, DType::i64); }
  Vec at(Value value, const Vec& point) {
    const Tensor got = fetch(value, {{x, doubles(Shape::of({4, 2}), point)}});
    return got.valid() ? Vec(got.as<double>(), got.as<double>() + got.count()) : Vec();
  }
  void refused(Value value, Code code, const char* says) {
    std::vector<Tensor> got;
    const Status status = run({{x, doubles(Shape::of({4, 2}), point_)}}, {value}, &got);
    EXPECT_EQ(status.code(), code) << says << ": " << status.message();
    EXPECT_NE(std::string(status.message()).find(says), std::string::npos) << status.message();
  }
  // Nodes that the graph itself refuses.
  void refused_at_once(const char* says) {
    EXPECT_EQ(build->status().code(), Code::invalid_argument);
    EXPECT_NE(std::string(build->status().message()).find(says), std::string::npos) << build->status().message();
    build = std::make_unique<Build>(*graph);
  }

  // Of the sum of the squares of `value`, times i + 1: it depends on x twice over, so that gradients of gradients are not zero.
  Value score(Value value, Value weights) {
    return op("Sum", {build->reshape(op("Mul", {op("Square", {value}), weights}), build->ints({-1})), build->integer(0)});
  }
  void expect_slope(Value y, Value slope) {
    ASSERT_TRUE(slope.valid());
    constexpr double kStep = 1e-5;
    const Vec got = at(slope, point_);
    ASSERT_EQ(got.size(), point_.size());
    for (size_t i = 0; i < point_.size(); ++i) {
      Vec up = point_, down = point_;
      up[i] += kStep;
      down[i] -= kStep;
      const double wanted = (at(y, up).at(0) - at(y, down).at(0)) / (2 * kStep);
      EXPECT_NEAR(got[i], wanted, 1e-6 * std::max(1.0, std::fabs(wanted))) << "element " << i;
    }
  }
  // The gradient, and that of the sum of its squares.
  void expect_gradients(Value value, Value weights) {
    const Value y = score(value, weights), slope = gradient(y, x);
    expect_slope(y, slope);
    const Value steep = score(slope, build->scalar(f64, 0.5));
    expect_slope(steep, gradient(steep, x));
  }
  Value weights(const Shape& shape) {
    Vec values;
    for (int64_t i = 0; i < shape.count(); ++i) values.push_back(0.25 * static_cast<double>(i + 1));
    return build->constant(doubles(shape, values));
  }

  // An array, and the flow behind what was last done to it.
  struct Array {
    Value handle, flow;
  };
  Array array(int64_t size, DType dtype, std::initializer_list<Attr> more = {}) {
    std::vector<Attr> attrs(more);
    attrs.push_back({"dtype", dtype});
    const Value inputs[] = {build->integer(size)};
    const Value handle = build->op("TensorArrayV3", inputs, attrs);
    return {handle, build->ok() ? handle.sibling(1) : Value()};
  }
  void write(Array& a, int64_t index, Value value) { a.flow = op("TensorArrayWriteV3", {a.handle, build->integer(index), value, a.flow}); }
  Value read(const Array& a, int64_t index, DType dtype) {
    return op("TensorArrayReadV3", {a.handle, build->integer(index), a.flow}, {{"dtype", dtype}});
  }

  const DType f64 = DType::f64;
  const Vec point_ = {0.5, -1, 2, 0.75, -0.25, 1.5, 1, -2};
  Value x;
};

INSTANTIATE_TEST_SUITE_P(Devices, PiecesTest, ::testing::Bool(), [](const auto& one) { return one.param ? "Emu" : "Cpu"; });

TEST_P(PiecesTest, ListsAreSplitAndPutTogether) {
  const Attr element{"element_dtype", f64};
  const Value any = build->integer(-1), none = longs_of({});
  const Value list = op("TensorListSplit", {x, any, longs_of({1, 0, 3})});
  const Value both = op("TensorListConcatLists", {list, op("TensorListSplit", {x, build->ints({-1, 2}), longs_of({4})})}, {element});
  const Value joined = op("TensorListConcatV2", {both, any, none}, {element});
  EXPECT_EQ(at(joined, point_), (Vec{0.5, -1, 2, 0.75, -0.25, 1.5, 1, -2, 0.5, -1, 2, 0.75, -0.25, 1.5, 1, -2}));
  const Tensor lengths = fetch(joined.sibling(1), {{x, doubles(Shape::of({4, 2}), point_)}});
  EXPECT_EQ(std::vector<int64_t>(lengths.as<int64_t>(), lengths.as<int64_t>() + lengths.count()), (std::vector<int64_t>{1, 0, 3, 4}));
  // What is not set is zeros, of as many rows as leading_dims say, or the element shape.
  const Value longer = op("TensorListResize", {list, build->integer(5)});
  const Value padded = op("TensorListConcatV2", {longer, any, longs_of({9, 9, 9, 1, 2})}, {element});
  EXPECT_EQ(at(padded, point_), (Vec{0.5, -1, 2, 0.75, -0.25, 1.5, 1, -2, 0, 0, 0, 0, 0, 0}));
  const Value alike = op("TensorListResize", {op("TensorListSplit", {x, any, longs_of({2, 2})}), build->integer(3)});
  EXPECT_EQ(at(op("TensorListConcatV2", {alike, build->ints({2, 2}), none}, {element}), point_).size(), 12u);
  EXPECT_EQ(at(op("TensorListConcat", {alike}, {element, {"element_shape", PartialShape(Shape::of({2, 2}))}}), point_).size(), 12u);
  const Value nothing = op("TensorListReserve", {build->ints({-1, 3}), build->integer(0)}, {element});
  EXPECT_TRUE(at(op("TensorListConcatV2", {nothing, any, none}, {element}), point_).empty());
  // Rows at places; the list grows.
  const Value rows = op("TensorListFromTensor", {x, any});
  const Value put =
      op("TensorListScatterIntoExistingList", {rows, op("Slice", {x, build->ints({0, 0}), build->ints({2, 2})}), build->ints({4, 1})});
  EXPECT_EQ(at(op("TensorListStack", {put, any}, {element}), point_), (Vec{0.5, -1, 2, 0.75, -0.25, 1.5, 1, -2, 0.5, -1}));
  const Value spread = op("TensorListScatter", {x, build->ints({3, 0, 4, 1}), build->ints({2})});
  EXPECT_EQ(at(op("TensorListStack", {spread, any}, {element}), point_), (Vec{2, 0.75, 1, -2, 0, 0, 0.5, -1, -0.25, 1.5}));

  refused(op("TensorListConcatV2", {longer, any, longs_of({1})}, {element}), Code::invalid_argument, "never set");
  refused(op("TensorListConcatV2", {list, build->ints({3, 2}), none}, {element}), Code::invalid_argument, "element_shape says");
  refused(op("TensorListLength", {op("TensorListSplit", {x, any, longs_of({1, 4})})}), Code::invalid_argument, "3 of 4 rows are left");
  refused(op("TensorListLength", {op("TensorListSplit", {x, any, longs_of({-1, 5})})}), Code::invalid_argument, "lengths[0] is -1");
  refused(op("TensorListLength", {op("TensorListSplit", {x, any, longs_of({1, 2})})}), Code::invalid_argument, "lengths say 3");
  op("TensorListSplit", {x, build->ints({-1, 3}), longs_of({4})});
  refused_at_once("TensorListSplit");
  op("TensorListConcatLists", {list, op("TensorListReserve", {any, build->integer(1)}, {{"element_dtype", DType::f32}})}, {element});
  refused_at_once("input_b holds float32");
}

TEST_P(PiecesTest, ListsOfPiecesHaveGradients) {
  const Attr element{"element_dtype", f64};
  const Value any = build->integer(-1), none = longs_of({});
  const Value list = op("TensorListSplit", {op("Tanh", {x}), any, longs_of({1, 3})});
  expect_gradients(op("TensorListConcatV2", {list, any, none}, {element}), weights(Shape::of({4, 2})));
  const Value last = op("TensorListGetItem", {list, build->integer(1), any}, {element});
  expect_gradients(last, weights(Shape::of({3, 2})));
  const Value rows = op("TensorListFromTensor", {x, any}), some = op("Sin", {op("Slice", {x, build->ints({0, 0}), build->ints({2, 2})})});
  const Value put = op("TensorListScatterIntoExistingList", {rows, some, build->ints({5, 1})});
  expect_gradients(op("TensorListStack", {put, build->ints({2})}, {element}), weights(Shape::of({6, 2})));
}

TEST_P(PiecesTest, ArraysAreWrittenAndRead) {
  Array a = array(2, f64);
  write(a, 1, x);
  write(a, 0, op("Neg", {x}));
  const Value size = op("TensorArraySizeV3", {a.handle, a.flow});
  const Value first = read(a, 0, f64), second = read(a, 1, f64);
  std::vector<Tensor> got;
  ASSERT_TRUE(run({{x, doubles(Shape::of({4, 2}), point_)}}, {first, second, size}, &got).ok());
  EXPECT_EQ(got[0].as<double>()[2], -2);
  EXPECT_EQ(got[1].as<double>()[2], 2);
  EXPECT_EQ(*got[2].as<int32_t>(), 2);
  // Each run has an array of its own.
  EXPECT_EQ(at(first, point_)[0], -0.5);
  EXPECT_EQ(at(first, point_)[0], -0.5);

  Array b = array(0, f64, {{"dynamic_size", true}, {"clear_after_read", false}});
  b.flow = op("TensorArrayScatterV3", {b.handle, build->ints({2, 0, 1, 3}), x, b.flow});
  const auto gather = [&](const Array& from, std::initializer_list<int64_t> places, PartialShape shape = {}) {
    return op("TensorArrayGatherV3", {from.handle, build->ints(places), from.flow}, {{"dtype", f64}, {"element_shape", shape}});
  };
  EXPECT_EQ(at(gather(b, {0, 1, 2, 2}), point_), (Vec{2, 0.75, -0.25, 1.5, 0.5, -1, 0.5, -1}));
  EXPECT_TRUE(at(gather(b, {}, PartialShape(Shape::of({2}))), point_).empty());
  refused(gather(b, {}), Code::unimplemented, "is not known");

  Array c = array(3, f64);
  c.flow = op("TensorArraySplitV3", {c.handle, x, longs_of({1, 0, 3}), c.flow});
  const Value all = op("TensorArrayConcatV3", {c.handle, c.flow}, {{"dtype", f64}});
  EXPECT_EQ(at(all, point_), point_);
  // Of a shape that is known, what nobody wrote is zeros.
  const Array d = array(2, f64, {{"element_shape", PartialShape(Shape::of({2}))}});
  EXPECT_EQ(at(read(d, 1, f64), point_), (Vec{0, 0}));
}

TEST_P(PiecesTest, ArraysRefuseWhatTensorFlowRefuses) {
  const Array empty = array(2, f64);
  refused(read(empty, 1, f64), Code::invalid_argument, "never written");
  Array a = array(1, f64);
  write(a, 0, x);
  refused(read(a, 3, f64), Code::invalid_argument, "read element 3");
  Array twice = a;
  write(twice, 0, x);
  refused(read(twice, 0, f64), Code::invalid_argument, "written already");
  Array beyond = a;
  write(beyond, 1, x);
  refused(read(beyond, 1, f64), Code::invalid_argument, "does not grow");
  const Value once = read(a, 0, f64);
  const NodeId after[] = {once.node()};
  const Value inputs[] = {a.handle, build->integer(0), a.flow};
  const Attr type{"dtype", f64};
  refused(build->op("TensorArrayReadV3", inputs, {&type, 1}, {}, after), Code::invalid_argument, "let go of");
  refused(op("TensorArraySizeV3", {array(-1, f64).handle, a.flow}), Code::invalid_argument, "an array of -1");
  refused(op("TensorArraySizeV3", {array(1 << 30, f64).handle, a.flow}), Code::resource_exhausted, "at most");
  Array cut = array(2, f64);
  cut.flow = op("TensorArraySplitV3", {cut.handle, x, longs_of({4}), cut.flow});
  refused(op("TensorArrayConcatV3", {cut.handle, cut.flow}, {{"dtype", f64}}), Code::invalid_argument, "1 elements for");
  Array fewer = array(2, f64, {{"dynamic_size", true}});
  fewer.flow = op("TensorArraySplitV3", {fewer.handle, x, longs_of({4}), fewer.flow});
  refused(op("TensorArraySizeV3", {fewer.handle, fewer.flow}), Code::invalid_argument, "all of them are to be written");
  Array uneven = array(2, f64);
  write(uneven, 0, x);
  write(uneven, 1, op("Transpose", {x, build->ints({1, 0})}));
  refused(op("TensorArrayGatherV3", {uneven.handle, build->ints({0, 1}), uneven.flow}, {{"dtype", f64}}), Code::invalid_argument,
          "has shape");
  const Array closed = array(1, f64);
  const Value handle[] = {closed.handle};
  const NodeId shut[] = {build->node("TensorArrayCloseV3", handle)};
  const Value asked[] = {closed.handle, closed.flow};
  refused(build->op("TensorArraySizeV3", asked, {}, {}, shut), Code::invalid_argument, "was closed");
  read(a, 0, DType::f32);
  refused_at_once("holds float64");
}

TEST_P(PiecesTest, ArraysHaveGradients) {
  const Attr keep{"clear_after_read", false}, type{"dtype", f64};
  // Elements that are read several times, by index and gathered; one that nobody reads.
  Array a = array(4, f64, {keep});
  a.flow = op("TensorArrayScatterV3", {a.handle, build->ints({2, 0, 1, 3}), op("Tanh", {x}), a.flow});
  const Value some = op("TensorArrayGatherV3", {a.handle, build->ints({2, 0, 2}), a.flow}, {type});
  const Value three[] = {read(a, 0, f64), read(a, 2, f64), read(a, 0, f64)};
  const Value rows = op("ConcatV2", {some, build->op("Pack", three), build->integer(0)});
  expect_gradients(rows, weights(Shape::of({6, 2})));
  // Two reverse passes have two arrays of gradients: the second finds nothing of the first.
  const Value y = score(rows, weights(Shape::of({6, 2})));
  const Value one = gradient(y, x), other = gradient(y, x);
  EXPECT_EQ(at(op("AddV2", {one, other}), point_), at(op("AddV2", {one, one}), point_));

  Array c = array(2, f64);
  c.flow = op("TensorArraySplitV3", {c.handle, op("Sin", {x}), longs_of({1, 3}), c.flow});
  expect_gradients(op("TensorArrayConcatV3", {c.handle, c.flow}, {type}), weights(Shape::of({4, 2})));
  Array d = array(2, f64);
  write(d, 0, x);
  write(d, 1, op("Square", {x}));
  expect_gradients(op("Mul", {read(d, 0, f64), read(d, 1, f64)}), weights(Shape::of({4, 2})));
  // Written one by one, put one behind the other: what cuts the gradients is itself put together in gradients of gradients.
  Array e = array(2, f64);
  write(e, 0, op("Sin", {x}));
  write(e, 1, op("Square", {x}));
  expect_gradients(op("TensorArrayConcatV3", {e.handle, e.flow}, {type}), weights(Shape::of({8, 2})));
}

// Gradients of several values at once meet in elements that have a dimension more.
TEST_P(PiecesTest, GradientsOfArraysMayBeWider) {
  Array a = array(2, f64);
  write(a, 0, x);
  write(a, 1, op("Transpose", {x, build->ints({1, 0})}));
  const auto wide = [&](std::initializer_list<int64_t> before) {
    const Value handle = op("TensorArrayGradWithShape", {a.handle, a.flow, build->ints(before)}, {{"source", std::string("pass")}});
    return Array{handle, build->ok() ? handle.sibling(1) : Value()};
  };
  Array g = wide({3});
  // What nobody wrote is zeros of 3 x 2 x 4.
  EXPECT_EQ(at(read(g, 1, f64), point_), Vec(24, 0.0));
  const Value three[] = {x, op("Neg", {x}), op("AddV2", {x, x})};
  write(g, 0, build->op("Pack", three));
  write(g, 0, build->op("Pack", three));
  const Vec sums = at(read(g, 0, f64), point_);
  ASSERT_EQ(sums.size(), 24u);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(sums[i], 2 * point_[i]);
    EXPECT_EQ(sums[8 + i], -2 * point_[i]);
    EXPECT_EQ(sums[16 + i], 4 * point_[i]);
  }
  // Elements of a shape that is known are known to be wider.
  const Array known = array(2, f64, {{"element_shape", PartialShape(Shape::of({2}))}});
  const Value of_known = op("TensorArrayGradWithShape", {known.handle, known.flow, build->ints({5, 1})}, {{"source", std::string("pass")}});
  const Value element = read({of_known, of_known.sibling(1)}, 0, f64);
  EXPECT_EQ(build->info(element).shape.text(), "[5,1,2]");
  EXPECT_EQ(at(element, point_), Vec(10, 0.0));

  Array narrow = wide({3});
  write(narrow, 0, x);
  refused(read(narrow, 0, f64), Code::invalid_argument, "add to element 0");
  Array other = wide({3});
  const Value again = op("TensorArrayGradWithShape", {a.handle, other.flow, build->ints({4})}, {{"source", std::string("pass")}});
  refused(read({again, again.sibling(1)}, 0, f64), Code::invalid_argument, "were made with");
  wide({-1});
  refused_at_once("shape_to_prepend[0] is -1");
}

// In a body an array is written and read, and so are the gradients of what was written, once for each reverse pass.
TEST_P(PiecesTest, ArraysInLoops) {
  const Array a = array(0, f64, {{"dynamic_size", true}});
  const Body more = [](Build& b, const Values& v) { return Values{b.op("Less", {v[0], b.integer(3)})}; };
  const Values out = loop(*graph, {build->integer(0), a.flow, x}, more, [&](Build& b, const Values& v) {
    const Value flow = b.op("TensorArrayWriteV3", {a.handle, v[0], v[2], v[1]});
    return Values{b.add(v[0], b.integer(1)), flow, b.op("Mul", {v[2], b.op("Sin", {v[2]})})};
  });
  const Array written{a.handle, out[1]};
  EXPECT_EQ(at(read(written, 0, f64), point_), point_);
  expect_gradients(read(written, 2, f64), weights(Shape::of({4, 2})));
  // Read in another loop, and in a branch of a third, beside what is read outside.
  const Array b = array(3, f64, {{"clear_after_read", false}});
  const Value rows[] = {x, op("Square", {x}), op("Tanh", {x})};
  const Array kept{b.handle, op("TensorArrayScatterV3", {b.handle, build->ints({0, 1, 2}), build->op("Pack", rows), b.flow})};
  const Values sums = loop(*graph, {build->integer(0), x}, more, [&](Build& c, const Values& v) {
    const Value one = c.op("TensorArrayReadV3", {kept.handle, v[0], kept.flow}, {{"dtype", f64}});
    const Values branch = when(
        c.graph(), c.op("Greater", {v[0], c.integer(0)}),
        [&](Build& d, const Values&) {
          const Value other = d.op("TensorArrayReadV3", {kept.handle, d.op("Sub", {v[0], d.integer(1)}), kept.flow}, {{"dtype", f64}});
          return Values{d.op("Mul", {other, v[1]})};
        },
        [&](Build& d, const Values&) { return Values{d.op("Sin", {v[1]})}; });
    return Values{c.add(v[0], c.integer(1)), c.op("Tanh", {c.op("AddV2", {c.op("Mul", {one, v[1]}), branch[0]})})};
  });
  const Value all = op("AddV2", {sums[1], op("TensorArrayReadV3", {kept.handle, build->integer(1), kept.flow}, {{"dtype", f64}})});
  expect_gradients(all, weights(Shape::of({4, 2})));
  const Value y = score(all, weights(Shape::of({4, 2}))), one = gradient(y, x), other = gradient(y, x);
  const Vec sums_of_two = at(op("AddV2", {one, other}), point_), twice = at(op("AddV2", {one, one}), point_);
  ASSERT_EQ(sums_of_two.size(), twice.size());
  for (size_t i = 0; i < twice.size(); ++i) EXPECT_NEAR(sums_of_two[i], twice[i], 1e-12 * std::max(1.0, std::fabs(twice[i])));
}

// A loop that is differentiated twice is still one loop: it writes once.
TEST_P(PiecesTest, LoopsThatWriteAreDifferentiatedTwice) {
  const Value counter = op("VarHandleOp", {}, {{"dtype", f64}, {"shape", PartialShape(Shape())}, {"shared_name", std::string("rounds")}});
  const NodeId clear = build->node("AssignVariableOp", std::vector<Value>{counter, build->scalar(f64, 0)});
  const Value count = op("ReadVariableOp", {counter}, {{"dtype", f64}});
  const Ref<Graph> body = Graph::create_inside(graph).take(), condition = Graph::create_inside(graph).take();
  const Value start[] = {build->integer(0), x};
  Values inside, asked;
  for (const Value value : start) {
    inside.push_back(body->add_argument(graph->info(value)).take());
    asked.push_back(condition->add_argument(graph->info(value)).take());
  }
  Build b(*body), c(*condition);
  const NodeId add = b.node("AssignAddVariableOp", std::vector<Value>{counter, b.scalar(f64, 1)});
  Closure round = finish_function(body, "round", {b.add(inside[0], b.integer(1)), b.op("Sin", {inside[1]})}, {add}).take();
  Closure more = finish_function(condition, "more", {c.op("Less", {asked[0], c.integer(3)})}).take();
  const Value end = made(add_while(*graph, start, std::move(more), std::move(round)))[1];
  const Value steep = score(gradient(score(end, build->scalar(f64, 1)), x), build->scalar(f64, 0.5));
  std::vector<Tensor> got;
  ASSERT_TRUE(run({}, {}, &got, {clear}).ok());
  const Value slope = gradient(steep, x);
  ASSERT_TRUE(run({{x, doubles(Shape::of({4, 2}), point_)}}, {slope, end, steep}, &got).ok());
  EXPECT_EQ(fetch(count).as<double>()[0], 3);
  expect_slope(steep, slope);
}

// An array that a body makes lives as long as a round of it, and so do its gradients.
TEST_P(PiecesTest, ArraysMadeInBodiesHaveGradients) {
  const Body more = [](Build& b, const Values& v) { return Values{b.op("Less", {v[0], b.integer(3)})}; };
  const Attr type{"dtype", f64}, keep{"clear_after_read", false};
  const Values out = loop(*graph, {build->integer(0), x}, more, [&](Build& b, const Values& v) {
    // As many elements as rounds so far, of shapes that nobody declares; one is read twice, one not at all.
    const Value made = b.op("TensorArrayV3", {b.add(v[0], b.integer(2))}, {type, keep});
    Value flow = b.op("TensorArrayWriteV3", {made, b.integer(0), v[1], made.sibling(1)});
    flow = b.op("TensorArrayWriteV3", {made, b.integer(1), b.op("Tanh", {v[1]}), flow});
    const Value first = b.op("TensorArrayReadV3", {made, b.integer(0), flow}, {type});
    const Value again = b.op("TensorArrayReadV3", {made, b.integer(0), flow}, {type});
    return Values{b.add(v[0], b.integer(1)), b.op("Mul", {b.op("Sin", {first}), again})};
  });
  expect_gradients(out[1], weights(Shape::of({4, 2})));
  // Two passes know nothing of each other.
  const Value y = score(out[1], weights(Shape::of({4, 2}))), one = gradient(y, x), other = gradient(y, x);
  EXPECT_EQ(at(op("AddV2", {one, other}), point_), at(op("AddV2", {one, one}), point_));
}

// Cut, gathered, put together again; in a branch; and handed to a loop inside, which writes to it and reads it.
TEST_P(PiecesTest, ArraysMadeInBodiesAreHandedOn) {
  const Attr type{"dtype", f64}, keep{"clear_after_read", false};
  const Body more = [](Build& b, const Values& v) { return Values{b.op("Less", {v[0], b.integer(2)})}; };
  const Values out = loop(*graph, {build->integer(0), x}, more, [&](Build& b, const Values& v) {
    const Value cut = b.op("TensorArrayV3", {b.integer(2)}, {type, keep});
    const Value pieces = b.op("TensorArraySplitV3", {cut, b.op("Sin", {v[1]}), b.ints({1, 3}, DType::i64), cut.sibling(1)});
    const Value longer = b.op("TensorArrayReadV3", {cut, b.integer(1), pieces}, {type});
    const Value whole = b.op("Mul", {b.op("TensorArrayConcatV3", {cut, pieces}, {type}), v[1]});
    const Value grown = b.op("TensorArrayV3", {b.integer(0)}, {type, keep, {"dynamic_size", true}});
    const Values inside = loop(b.graph(), {b.integer(0), grown.sibling(1), whole}, more, [&](Build& c, const Values& w) {
      const Value flow = c.op("TensorArrayWriteV3", {grown, w[0], c.op("Square", {w[2]}), w[1]});
      return Values{c.add(w[0], c.integer(1)), flow, c.op("Tanh", {c.op("TensorArrayReadV3", {grown, w[0], flow}, {type})})};
    });
    const Values branch = when(
        b.graph(), b.op("Greater", {v[0], b.integer(0)}),
        [&](Build& d, const Values&) {
          const Value own = d.op("TensorArrayV3", {d.integer(4)}, {type});
          const Value flow = d.op("TensorArrayScatterV3", {own, d.ints({3, 1, 0, 2}), v[1], own.sibling(1)});
          return Values{d.op("TensorArrayGatherV3", {own, d.ints({0, 1, 2, 3}), flow}, {type})};
        },
        [&](Build& d, const Values&) {
          return Values{d.op("TensorArrayReadV3", {grown, d.integer(1), inside[1]}, {type})};
        });
    const Value sum = b.op("Sum", {longer, b.ints({0})});
    return Values{b.add(v[0], b.integer(1)), b.op("AddV2", {b.op("AddV2", {b.op("Mul", {inside[2], branch[0]}), v[1]}), sum})};
  });
  expect_gradients(out[1], weights(Shape::of({4, 2})));
}

// Gradients that a body asks for itself are those of the round, also where the array is not.
TEST_P(PiecesTest, GradientsOfArraysInsideBodies) {
  const Attr type{"dtype", f64}, keep{"clear_after_read", false};
  const Body more = [](Build& b, const Values& v) { return Values{b.op("Less", {v[0], b.integer(3)})}; };
  const Array a = array(0, f64, {{"dynamic_size", true}, keep});
  const auto body = [&](bool own) {
    return [&, own](Build& b, const Values& v) {
      Value handle, before;
      if (own) {
        handle = b.op("TensorArrayV3", {b.integer(3)}, {type, keep});
        before = handle.sibling(1);
      } else {
        handle = a.handle;
        before = v[2];
      }
      const Value flow = b.op("TensorArrayWriteV3", {handle, v[0], b.op("Square", {v[1]}), before});
      const Value cubes = b.op("Mul", {b.op("TensorArrayReadV3", {handle, v[0], flow}, {type}), v[1]});
      // 3 v^2, whatever other rounds did.
      auto slope = add_gradients(b.graph(), {&cubes, 1}, {&v[1], 1}, {});
      EXPECT_TRUE(slope.ok()) << slope.status().message();
      const Value thirds = b.op("Mul", {slope.ok() ? slope.value()[0].dense : cubes, b.scalar(f64, 0.25)});
      return Values{b.add(v[0], b.integer(1)), thirds, own ? v[2] : flow};
    };
  };
  for (const bool own : {true, false}) {
    const Values out = loop(*graph, {build->integer(0), op("Mul", {x, build->scalar(f64, 0.5)}), a.flow}, more, body(own));
    const Vec got = at(out[1], point_);
    ASSERT_EQ(got.size(), point_.size());
    for (size_t i = 0; i < got.size(); ++i) {
      double wanted = 0.5 * point_[i];
      for (int round = 0; round < 3; ++round) wanted = 0.75 * wanted * wanted;
      EXPECT_NEAR(got[i], wanted, 1e-12 * std::max(1.0, std::fabs(wanted))) << "element " << i;
    }
    if (own) expect_gradients(out[1], weights(Shape::of({4, 2})));
  }
}

// A call that hands an array back hands back the one that it was given, where that can be told.
TEST_P(PiecesTest, ArraysThatCallsHandBack) {
  const Attr type{"dtype", f64}, keep{"clear_after_read", false};
  const Body more = [](Build& b, const Values& v) { return Values{b.op("Less", {v[0], b.integer(2)})}; };
  const auto with = [&](bool same) {
    return loop(*graph, {build->integer(0), same ? x : op("Tanh", {x})}, more, [&, same](Build& b, const Values& v) {
      const Value one = b.op("TensorArrayV3", {b.integer(2)}, {type, keep}), two = b.op("TensorArrayV3", {b.integer(2)}, {type, keep});
      const Value flow = b.op("TensorArrayWriteV3", {one, b.integer(0), b.op("Sin", {v[1]}), one.sibling(1)});
      const Value other = b.op("TensorArrayWriteV3", {two, b.integer(0), v[1], two.sibling(1)});
      const auto branch = [&](Value given) {
        return [&, given](Build& d, const Values&) {
          const Value next = d.op("TensorArrayWriteV3", {one, d.integer(1), d.op("Square", {v[1]}), flow});
          return Values{given, d.op("AddV2", {next, other})};
        };
      };
      const Values back = when(b.graph(), b.op("Greater", {v[0], b.integer(0)}), branch(one), branch(same ? one : two));
      const Value after = b.op("Identity", {back[1]});
      const Value read = b.op("TensorArrayReadV3", {back[0], b.integer(0), after}, {type});
      return Values{b.add(v[0], b.integer(1)), b.op("Mul", {read, b.op("TensorArrayReadV3", {one, b.integer(1), after}, {type})})};
    });
  };
  expect_gradients(with(true)[1], weights(Shape::of({4, 2})));
  // One array or the other, as the round says.
  expect_gradients(with(false)[1], weights(Shape::of({4, 2})));
}

// What one call chose, what it chose of arrays that the function is given, and what is written to it; the gradients are chosen alike.
TEST_P(PiecesTest, ArraysThatCallsChoose) {
  const Attr type{"dtype", f64}, keep{"clear_after_read", false};
  const Body more = [](Build& b, const Values& v) { return Values{b.op("Less", {v[0], b.integer(4)})}; };
  const auto give = [](Value value) { return [value](Build&, const Values&) { return Values{value}; }; };
  const Array a = array(5, f64, {keep}), b = array(5, f64, {keep});
  // Each round writes to one of two arrays of the graph, reads what it wrote, and leaves it for who reads afterwards.
  const Values out = loop(*graph, {build->integer(0), a.flow, b.flow, x}, more, [&](Build& c, const Values& v) {
    const Value odd = c.op("Greater", {c.op("FloorMod", {v[0], c.integer(2)}), c.integer(0)});
    const Value one = when(c.graph(), odd, give(a.handle), give(b.handle))[0];
    const Value flow = c.op("TensorArrayWriteV3", {one, v[0], c.op("Sin", {v[3]}), c.op("AddV2", {v[1], v[2]})});
    const Value back = c.op("TensorArrayReadV3", {one, v[0], flow}, {type});
    return Values{c.add(v[0], c.integer(1)), flow, flow, c.op("Mul", {back, v[3]})};
  });
  const Array odd{a.handle, out[1]}, even{b.handle, out[2]};
  const Value left = op("Mul", {read(odd, 3, f64), read(even, 2, f64)});
  expect_gradients(op("AddV2", {left, out[3]}), weights(Shape::of({4, 2})));
  // At the top, where a run knows the array that it has.
  const Value first = op("Greater", {op("Sum", {build->reshape(x, build->ints({-1})), build->integer(0)}), build->scalar(f64, 0)});
  const Value top = when(*graph, first, give(a.handle), give(b.handle))[0];
  Array chosen{top, op("AddV2", {a.flow, b.flow})};
  write(chosen, 4, op("Tanh", {x}));
  expect_gradients(op("Mul", {read(chosen, 4, f64), x}), weights(Shape::of({4, 2})));
}

// Arrays of gradients that a program asks for by itself, in a function that is given the array.
TEST_P(PiecesTest, GradientsAskedForInFunctions) {
  const Attr type{"dtype", f64}, keep{"clear_after_read", false};
  const Body more = [](Build& b, const Values& v) { return Values{b.op("Less", {v[0], b.integer(2)})}; };
  const Array a = array(3, f64, {keep});
  for (const bool wide : {false, true}) {
    const Attr source{"source", std::string(wide ? "wide" : "mine")};
    const auto ask = [&](Build& b, Value flow) {
      return wide ? b.op("TensorArrayGradWithShape", {a.handle, flow, b.ints({2})}, {source})
                  : b.op("TensorArrayGradV3", {a.handle, flow}, {source});
    };
    // Written in a loop, read in a branch of another function.
    const Values out = loop(*graph, {build->integer(0), a.flow, op("Tanh", {x})}, more, [&](Build& b, const Values& v) {
      const Value own = ask(b, v[1]);
      Value item = b.op("Sin", {v[2]});
      const Value two[] = {item, b.op("Square", {v[2]})};
      if (wide) item = b.op("Pack", two);
      const Value flow = b.op("TensorArrayWriteV3", {own, v[0], item, own.sibling(1)});
      return Values{b.add(v[0], b.integer(1)), flow, b.op("Mul", {v[2], v[2]})};
    });
    const Values got = when(
        *graph, op("Greater", {out[0], build->integer(1)}),
        [&](Build& b, const Values&) {
          const Value own = ask(b, out[1]);
          const Value one = b.op("TensorArrayReadV3", {own, b.integer(1), own.sibling(1)}, {type});
          return Values{wide ? b.op("Sum", {one, b.integer(0)}) : one};
        },
        [&](Build&, const Values&) { return Values{x}; });
    expect_gradients(got[0], weights(Shape::of({4, 2})));
  }
  // How wide must be known where gradients of such arrays are made.
  const Value width = op("Shape", {op("Unique", {op("Shape", {x})})});
  const Values unknown = loop(*graph, {build->integer(0), a.flow, x}, more, [&](Build& b, const Values& v) {
    const Value own = b.op("TensorArrayGradWithShape", {a.handle, v[1], width}, {{"source", std::string("open")}});
    const Value two[] = {v[2], v[2]};
    const Value flow = b.op("TensorArrayWriteV3", {own, v[0], b.op("Pack", two), own.sibling(1)});
    const Value sum = b.op("Sum", {b.op("TensorArrayReadV3", {own, v[0], flow}, {type}), b.integer(0)});
    return Values{b.add(v[0], b.integer(1)), flow, sum};
  });
  EXPECT_EQ(at(unknown[2], point_).size(), 8u);
  const auto refused = add_gradients(*graph, {&unknown[2], 1}, {&x, 1}, {});
  EXPECT_EQ(refused.status().code(), Code::unimplemented) << refused.status().message();
  EXPECT_NE(std::string(refused.status().message()).find("make it a constant"), std::string::npos) << refused.status().message();
}

}  // namespace
}  // namespace dtg
