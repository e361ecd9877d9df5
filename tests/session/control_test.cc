// Functions, conditions and loops: what they compute, what they do to variables and queues, how they end, and what is refused. One thread
// but for those that cancel.
#include <thread>

#include "control_fixture.h"
#include "seconds.h"
#include "tensor/text.h"
#include "wire/graph_codec.h"

namespace dtg {
namespace {

Tensor integer(int32_t value) { return Tensor::scalar<int32_t>(value).take(); }
Tensor flag(bool value) { return Tensor::scalar<bool>(value).take(); }

TEST_F(ControlTest, IfTakesOneBranchAndWhatItCaptures) {
  const Value p = placeholder(DType::boolean, PartialShape::scalar());
  const Value x = placeholder(DType::f32, PartialShape(Shape::of({2}))), y = placeholder(DType::f32, PartialShape(Shape::of({2})));
  const Values out = when(
      *graph, p,
      [&](Build& b, const Values&) {
        return Values{b.mul(x, x), y};
      },
      [&](Build& b, const Values&) {
        return Values{b.add(y, y), b.neg(x)};
      });
  const Tensor tx = floats({2}, {1, 2}), ty = floats({2}, {3, 4});
  EXPECT_EQ(values(fetch(out[0], {{p, flag(true)}, {x, tx}, {y, ty}})), (std::vector<float>{1, 4}));
  EXPECT_EQ(values(fetch(out[0], {{p, flag(false)}, {x, tx}, {y, ty}})), (std::vector<float>{6, 8}));
  EXPECT_EQ(values(fetch(out[1], {{p, flag(true)}, {x, tx}, {y, ty}})), (std::vector<float>{3, 4}));
  EXPECT_EQ(values(fetch(out[1], {{p, flag(false)}, {x, tx}, {y, ty}})), (std::vector<float>{-1, -2}));
  EXPECT_TRUE(graph->info(out[0]).shape == PartialShape(Shape::of({2})));
}

TEST_F(ControlTest, WhileTurnsAsOftenAsDataSays) {
  const Value n = placeholder(DType::i32, PartialShape::scalar()), x = placeholder(DType::f32, PartialShape(Shape::of({2})));
  const Values out = loop(
      *graph, {build->integer(0), x},
      [&](Build& b, const Values& v) {
        return Values{b.op("Less", {v[0], n})};
      },
      [&](Build& b, const Values& v) {
        return Values{b.add(v[0], b.integer(1)), b.add(v[1], x)};
      });
  for (int32_t turns : {0, 1, 5, 1000}) {
    const Tensor got = fetch(out[1], {{n, integer(turns)}, {x, floats({2}, {1, 2})}});
    EXPECT_EQ(values(got), (std::vector<float>{float(turns + 1), float(2 * (turns + 1))})) << turns;
  }
}

// Two variables that change places, one that another becomes, and one that stays.
TEST_F(ControlTest, LoopVariablesMayChangePlaces) {
  const Value n = placeholder(DType::i32, PartialShape::scalar());
  const Value a = build->scalar(DType::f32, 1), b0 = build->scalar(DType::f32, 2), c0 = build->scalar(DType::f32, 5);
  const Values out = loop(
      *graph, {build->integer(0), build->op("Neg", {a}), build->op("Neg", {b0}), build->op("Neg", {c0})},
      [&](Build& b, const Values& v) {
        return Values{b.op("Less", {v[0], n})};
      },
      [&](Build& b, const Values& v) {
        return Values{b.add(v[0], b.integer(1)), v[2], v[1], v[3]};
      });
  EXPECT_EQ(values(fetch(out[1], {{n, integer(3)}})), (std::vector<float>{-2}));
  EXPECT_EQ(values(fetch(out[2], {{n, integer(3)}})), (std::vector<float>{-1}));
  EXPECT_EQ(values(fetch(out[3], {{n, integer(3)}})), (std::vector<float>{-5}));
  EXPECT_EQ(values(fetch(out[1], {{n, integer(0)}})), (std::vector<float>{-1}));
}

TEST_F(ControlTest, ShapesMayChangeWhereTheBodySaysSo) {
  const Value x = placeholder(DType::f32, PartialShape::vector(-1)), n = placeholder(DType::i32, PartialShape::scalar());
  const Values start = {build->integer(0), x};
  const Values out = loop(
      *graph, start,
      [&](Build& b, const Values& v) {
        return Values{b.op("Less", {v[0], n})};
      },
      [&](Build& b, const Values& v) {
        return Values{b.add(v[0], b.integer(1)), b.op("ConcatV2", {v[1], v[1], b.integer(0)})};
      });
  EXPECT_EQ(fetch(out[1], {{n, integer(3)}, {x, floats({2}, {1, 2})}}).shape(), Shape::of({16}));
  EXPECT_EQ(values(fetch(out[1], {{n, integer(1)}, {x, floats({2}, {1, 2})}})), (std::vector<float>{1, 2, 1, 2}));
  EXPECT_EQ(fetch(out[1], {{n, integer(0)}, {x, floats({2}, {1, 2})}}).shape(), Shape::of({2}));
}

TEST_F(ControlTest, AShapeThatDoesNotStayIsRefused) {
  const Value x = placeholder(DType::f32, PartialShape(Shape::of({2})));
  const Values start = {x};
  const Closure condition = made(function(*graph, start, [](Build& b, const Values&) { return Values{b.constant(flag(true))}; }));
  const Closure body = made(function(*graph, start, [](Build& b, const Values& v) {
    return Values{b.op("ConcatV2", {v[0], v[0], b.integer(0)})};
  }));
  const auto refused = add_while(*graph, start, condition, body);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::invalid_argument);
  EXPECT_NE(refused.status().message().find("declare a wider one"), std::string::npos) << refused.status().message();
}

// A vector counts as true where it has elements, so such a loop would have no end.
TEST_F(ControlTest, AConditionIsAScalar) {
  const Value x = placeholder(DType::f32, PartialShape(Shape::of({2}))), open = placeholder(DType::boolean, PartialShape::unknown());
  const Values start = {x};
  const auto same = [](Build& b, const Values& v) { return Values{b.add(v[0], v[0])}; };
  const Closure body = made(function(*graph, start, same));
  const Closure less = made(function(*graph, start, [](Build& b, const Values& v) {
    return Values{b.op("Less", {v[0], b.scalar(DType::f32, 3)})};
  }));
  const auto loop_refused = add_while(*graph, start, less, body);
  EXPECT_NE(loop_refused.status().message().find("the condition is bool[2]; one scalar decides"), std::string::npos)
      << loop_refused.status().message();
  const Closure yes = made(function(*graph, {}, [](Build&b, const Values&) { return Values{b.scalar(DType::f32, 1)}; })), no = yes;
  EXPECT_EQ(add_if(*graph, build->op("Less", {x, x}), yes, no).status().code(), Code::invalid_argument);
  EXPECT_TRUE(add_if(*graph, open, yes, no).ok());
}

TEST_F(ControlTest, TypesMustFit) {
  const Value p = placeholder(DType::boolean, PartialShape::scalar());
  const Closure one = made(function(*graph, {}, [](Build& b, const Values&) { return Values{b.scalar(DType::f32, 1)}; }));
  const Closure other = made(function(*graph, {}, [](Build& b, const Values&) { return Values{b.integer(1)}; }));
  const auto refused = add_if(*graph, p, one, other);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("(int32)"), std::string::npos) << refused.status().message();
}

// The body is not finished when it would call itself, so there is nothing to call; and depth has an end.
TEST_F(ControlTest, FunctionsHaveADepthAndNoWayToThemselves) {
  Closure inner = made(function(*graph, {}, [](Build& b, const Values&) { return Values{b.scalar(DType::f32, 1)}; }));
  Status refused;
  for (int level = 0; level < 10'000 && refused.ok(); ++level) {
    auto graph_of = Graph::create_inside(graph).take();
    // Each stands in the outermost graph, so the call is written out.
    const Attr attrs[] = {{"Tout", std::vector<DType>{DType::f32}}, {"f", AttrValue(FunctionRef(inner.function))}};
    auto call = graph_of->add({.op = "PartitionedCall", .attrs = attrs});
    ASSERT_TRUE(call.ok()) << call.status().message();
    auto next = finish_function(graph_of, "level", {graph_of->value(call.value())});
    refused = next.status();
    if (next.ok()) inner = next.take();
  }
  EXPECT_EQ(refused.code(), Code::resource_exhausted) << refused.message();
  const Values out = made(add_call(*graph, {}, inner));
  EXPECT_EQ(values(fetch(out[0])), (std::vector<float>{1}));
}

// Many levels deep nobody looks what shapes become; a loop variable that stays has its shape all the same, after any number of rounds.
TEST_F(ControlTest, WhatALoopHandsOnKeepsItsShapeAtAnyDepth) {
  Closure deep = made(function(*graph, {build->integer(0)}, [](Build& b, const Values& v) { return Values{b.add(v[0], b.integer(1))}; }));
  for (int level = 0; level < 12; ++level) {
    deep = made(function(*graph, {build->integer(0)}, [&](Build& b, const Values& v) {
      const std::vector<DType> types = {DType::i32};
      return Values{b.op("PartitionedCall", {v[0]}, {{"Tout", types}, {"f", AttrValue(FunctionRef(deep.function))}})};
    }));
  }
  const Value x = placeholder(DType::f32, PartialShape::unknown());
  const Value limit = placeholder(DType::i32, PartialShape::scalar());
  const Values out = loop(
      *graph, {build->integer(0), x, limit},
      [](Build& b, const Values& v) {
        return Values{b.op("Less", {v[0], v[2]})};
      },
      [&](Build& b, const Values& v) {
        const std::vector<DType> types = {DType::i32};
        return Values{b.op("PartitionedCall", {v[0]}, {{"Tout", types}, {"f", AttrValue(FunctionRef(deep.function))}}), v[1], v[2]};
      });
  for (const int rounds : {0, 1, 3}) {
    const Tensor got = fetch(out[1], {{x, floats({2, 3}, {1, 2, 3, 4, 5, 6})}, {limit, integer(rounds)}});
    ASSERT_TRUE(got.valid());
    EXPECT_EQ(got.shape(), Shape::of({2, 3})) << rounds;
    EXPECT_EQ(values(got), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  }
}

// A loop that never ends, of small bodies and of bodies that keep a thread for long, is left 50 ms after its deadline at the latest.
// Whatever else a machine does makes one run late; none of many is in time only where the loop looks too seldom.
TEST_F(ControlTest, ALoopThatNeverEndsEndsWithItsDeadline) {
  const auto endless = [&](auto&& round) {
    return loop(
        *graph, {build->integer(0), build->op("Fill", std::vector<Value>{build->ints({700, 700}), build->scalar(DType::f32, 1)})},
        [](Build& b, const Values&) { return Values{b.constant(flag(true))}; },
        [&](Build& b, const Values& v) {
          return Values{b.add(v[0], b.integer(1)), round(b, v[1])};
        });
  };
  const Values small = endless([](Build&, Value v) { return v; });
  const Values large = endless([](Build& b, Value v) {
    const Value both[] = {v, v};
    return b.op("MatMul", both);
  });
  for (const Value value : {small[0], large[0]}) {
    double soonest = 1e9;
    for (int attempt = 0; attempt < 50 && soonest > 0.05; ++attempt) {
      std::vector<Tensor> got;
      const auto began = std::chrono::steady_clock::now();
      const Status status = run({}, {value}, &got, {}, kSecond / 20);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
      ASSERT_EQ(status.code(), Code::deadline_exceeded) << status.message();
      soonest = std::min(soonest, took.count() - 0.05);
    }
    EXPECT_LE(soonest, 0.05);
    EXPECT_EQ(values(fetch(build->scalar(DType::f32, 3))), (std::vector<float>{3}));
  }
}

// Which commit group a loop writes with is the planner's to say; a graph that says it could have one loop answer for another.
TEST_F(ControlTest, GroupsOfCommitsAreNotForGraphs) {
  const Value start[] = {build->integer(0)};
  const Attr attrs[] = {{OpDef::kCommitAttr, int64_t{3}}};
  for (const char* op : {"Identity", "While"}) {
    const auto refused = graph->add({.op = op, .inputs = start, .attrs = attrs});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.status().code(), Code::invalid_argument);
    EXPECT_NE(refused.status().message().find("is the planner's; leave it out"), std::string::npos) << refused.status().message();
  }
}

TEST_F(ControlTest, ErrorsNameNodeFunctionAndCall) {
  const Value x = placeholder(DType::i32, PartialShape::scalar());
  const Values out = made(add_call(*graph, {},
                                   made(function(
                                       *graph, {},
                                       [&](Build& b, const Values&) {
                                         const Value parts[] = {b.integer(1), x};
                                         return Values{b.op("FloorDiv", parts, {}, "divide")};
                                       },
                                       "share")),
                                   "outer"));
  std::vector<Tensor> got;
  const Status status = run({{x, integer(0)}}, {out[0]}, &got);
  ASSERT_FALSE(status.ok());
  for (const char* part : {"divide", "share", "outer"}) EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  EXPECT_EQ(fetch(out[0], {{x, integer(1)}}).as<int32_t>()[0], 1);
}

TEST_F(ControlTest, AListReadBeyondItsEndNamesTheWay) {
  const Value count = placeholder(DType::i32, PartialShape::scalar());
  const Value rows[] = {build->op("Fill", std::vector<Value>{build->ints({2, 3}), build->scalar(DType::f32, 1)}), build->ints({3})};
  const Value list = build->op("TensorListFromTensor", rows);
  const Values out = loop(
      *graph, {build->integer(0), build->op("Fill", std::vector<Value>{build->ints({3}), build->scalar(DType::f32, 0)})},
      [&](Build& b, const Values& v) {
        const Value both[] = {v[0], count};
        return Values{b.op("Less", both)};
      },
      [&](Build& b, const Values& v) {
        const Value asked[] = {list, v[0], b.ints({3})};
        const Attr type[] = {{"element_dtype", DType::f32}};
        return Values{b.add(v[0], b.integer(1)), b.add(v[1], b.op("TensorListGetItem", asked, type, "item"))};
      });
  for (int time = 0; time < 2; ++time) {
    std::vector<Tensor> got;
    const Status status = run({{count, integer(3)}}, {out[1]}, &got);
    EXPECT_EQ(status.code(), Code::invalid_argument) << status.message();
    for (const char* part : {"item", "in function \"body\", called by \""})
      EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
    EXPECT_EQ(values(fetch(out[1], {{count, integer(2)}})), (std::vector<float>{2, 2, 2}));
  }
}

TEST_F(ControlTest, BodiesReadAndWriteVariablesInOrder) {
  const Value handle = variable("v", Shape());
  run_target(assign(handle, build->scalar(DType::f32, 1)));
  const Value n = placeholder(DType::i32, PartialShape::scalar());
  const Value before = build->op("Identity", {read(handle)});
  const Values out = loop(
      *graph, {build->integer(0)},
      [&](Build& b, const Values& v) {
        return Values{b.op("Less", {v[0], n})};
      },
      [&](Build& b, const Values& v) {
        const Value twice[] = {handle, b.op("ReadVariableOp", {handle}, {{"dtype", DType::f32}})};
        b.node("AssignAddVariableOp", twice);
        return Values{b.add(v[0], b.integer(1))};
      });
  const Value after = read(handle);
  std::vector<Tensor> got;
  const Status status = run({{n, integer(5)}}, {before, out[0], after}, &got);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(values(got[0]), (std::vector<float>{1}));
  EXPECT_EQ(values(got[2]), (std::vector<float>{32}));
}

// The body waits for a queue that the same run fills later: no thread is held, and the order of the two is that of the data.
TEST_F(ControlTest, ABodyMayWait) {
  open({}, 1);
  const Value queue =
      build->op("FIFOQueueV2", {},
                {{"component_types", std::vector<DType>{DType::f32}}, {"shapes", std::vector<PartialShape>{PartialShape::scalar()}}});
  const Values out = loop(
      *graph, {build->integer(0), build->scalar(DType::f32, 0)},
      [](Build& b, const Values& v) {
        return Values{b.op("Less", {v[0], b.integer(3)})};
      },
      [&](Build& b, const Values& v) {
        const Value taken = b.op("QueueDequeueV2", {queue}, {{"component_types", std::vector<DType>{DType::f32}}});
        return Values{b.add(v[0], b.integer(1)), b.add(v[1], taken)};
      });
  std::vector<NodeId> targets;
  for (float value : {1.f, 2.f, 4.f}) {
    const Value inputs[] = {queue, build->scalar(DType::f32, value)};
    targets.push_back(build->node("QueueEnqueueV2", inputs));
  }
  std::vector<Tensor> got;
  const Status status = run({}, {out[1]}, &got, targets, 20 * kSecond);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(values(got[0]), (std::vector<float>{7}));
  // Nothing comes any more: the abort reaches into the body.
  EXPECT_EQ(run({}, {out[1]}, &got, {}, kSecond / 20).code(), Code::deadline_exceeded);
}

// A variable is the same one by whichever handle: what a call does to one that another call handed on comes before what was made after it,
// also where it waits meanwhile.
TEST_F(ControlTest, HandlesThatCallsHandOnAreTheVariables) {
  open({}, 1);
  const Value a = variable("a", Shape()), b = variable("b", Shape()), which = placeholder(DType::boolean, PartialShape::scalar());
  const Attr type{"dtype", DType::f32}, component{"component_types", std::vector<DType>{DType::f32}};
  const Value queue = build->op("FIFOQueueV2", {}, {component, {"shapes", std::vector<PartialShape>{PartialShape::scalar()}}});
  const auto give = [](Value handle) { return [handle](Build&, const Values&) { return Values{handle}; }; };
  const auto add_what_comes = [&](Build& inside, Value handle) {
    const Value both[] = {handle, inside.op("QueueDequeueV2", {queue}, {component})};
    inside.node("AssignAddVariableOp", both);
    return Values{inside.integer(0)};
  };
  const auto call = [&](const Body& body) { return made(add_call(*graph, {}, made(function(*graph, {}, body)))); };
  const Value ten[] = {queue, build->scalar(DType::f32, 10)};
  struct Case {
    const char* name;
    Body body;
  };
  const Value chosen = when(*graph, which, give(a), give(b))[0], returned = call(give(a))[0];
  const Case cases[] = {
      {"chosen outside", [&](Build& inside, const Values&) { return add_what_comes(inside, chosen); }},
      {"chosen inside",
       [&](Build& inside, const Values&) { return add_what_comes(inside, when(inside.graph(), which, give(a), give(b))[0]); }},
      {"handed back", [&](Build& inside, const Values&) { return add_what_comes(inside, returned); }},
  };
  for (const Case& each : cases) {
    run_target(assign(a, build->scalar(DType::f32, 1)));
    run_target(assign(b, build->scalar(DType::f32, 2)));
    const Value before = build->op("Identity", {read(a)}), done = call(each.body)[0], after = read(a), other = read(b);
    const NodeId put = build->node("QueueEnqueueV2", ten);
    std::vector<Tensor> got;
    const Status status = run({{which, Tensor::scalar<bool>(true).take()}}, {before, after, other, done}, &got, {put}, 20 * kSecond);
    ASSERT_TRUE(status.ok()) << each.name << ": " << status.message();
    EXPECT_EQ(values(got[0]), (std::vector<float>{1})) << each.name;
    EXPECT_EQ(values(got[1]), (std::vector<float>{11})) << each.name;
    EXPECT_EQ(values(got[2]), (std::vector<float>{2})) << each.name;
  }
}

// What is known of a variable's shape differs by handle; it is one variable all the same, so a read sees nothing of what is written after
// it.
TEST_F(ControlTest, VariablesAreTheSameHoweverMuchHandlesTell) {
  const Value known = variable("v", Shape::of({2})), other = variable("w", Shape::of({3}));
  const Attr type{"dtype", DType::f32}, name{"shared_name", "v"};
  const Value open = build->op("VarHandleOp", {}, {type, {"shape", PartialShape::unknown()}, name});
  const Value which = placeholder(DType::boolean, PartialShape::scalar());
  const auto give = [](Value handle) { return [handle](Build&, const Values&) { return Values{handle}; }; };
  const Value chosen = when(*graph, which, give(known), give(other))[0];
  const Value tens = build->constant(floats({2}, {10, 10}));
  for (const Value handle : {open, chosen}) {
    run_target(assign(known, build->constant(floats({2}, {1, 2}))));
    const Body body = [&](Build& inside, const Values&) {
      const Value before = inside.op("ReadVariableOp", {handle}, {type});
      const Value both[] = {known, tens};
      inside.node("AssignVariableOp", both);
      return Values{inside.op("Sum", {before, inside.integer(0)})};
    };
    const Value sum = made(add_call(*graph, {}, made(function(*graph, {}, body))))[0];
    std::vector<Tensor> got;
    const Status status = run({{which, flag(true)}}, {sum}, &got);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(*got[0].as<float>(), 3);
    EXPECT_EQ(values(fetch(read(known))), (std::vector<float>{10, 10}));
  }
}

// Functions are written once, and read again they do the same, extensions of gradients too.
TEST_F(ControlTest, FunctionsAndGradientsSurviveAsBytes) {
  const Value n = placeholder(DType::i32, PartialShape::scalar()), x = placeholder(DType::f32, PartialShape(Shape::of({2})));
  const Values out = loop(
      *graph, {build->integer(0), x},
      [&](Build& b, const Values& v) {
        return Values{b.op("Less", {v[0], n})};
      },
      [&](Build& b, const Values& v) {
        const Value half = b.op("Greater", {v[0], b.integer(1)});
        const Values one = when(
            b.graph(), half, [&](Build& in, const Values&) { return Values{in.mul(v[1], x)}; },
            [&](Build& in, const Values&) { return Values{in.add(v[1], x)}; });
        return Values{b.add(v[0], b.integer(1)), one[0]};
      });
  const Value y = build->op("Identity", {out[1]}), dx = build->op("Identity", {gradient(out[1], x)});
  const auto bytes = encode_graph(*graph);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const Tensor count = integer(4), at = floats({2}, {2, 3});
  const std::vector<float> want_y = values(fetch(y, {{n, count}, {x, at}})), want_dx = values(fetch(dx, {{n, count}, {x, at}}));
  auto other = Graph::create(&runtime->ops()).take();
  MemoryBudget budget(int64_t{1} << 30);
  const Status read = decode_graph(bytes.value(), *other, budget);
  ASSERT_TRUE(read.ok()) << read.message();
  const auto there = [&](Value value) { return Value(other->tag(), value.node(), value.output()); };
  auto again = Session::connect(runtime, "local", other, {});
  ASSERT_TRUE(again.ok());
  const Value feeds[] = {there(n), there(x)}, fetches[] = {there(y), there(dx)};
  const Tensor* const fed[] = {&count, &at};
  std::vector<Tensor> got(2);
  const Status ran = again.value()->run({feeds, fed, fetches, {}, 0}, got);
  ASSERT_TRUE(ran.ok()) << ran.message();
  EXPECT_EQ(values(got[0]), want_y);
  EXPECT_EQ(values(got[1]), want_dx);
}

TEST_F(ControlTest, ListsGrowInLoops) {
  const Value n = placeholder(DType::i32, PartialShape::scalar());
  const Value list = build->op("EmptyTensorList", {build->ints({2}), build->integer(-1)}, {{"element_dtype", DType::f32}});
  const Value x = placeholder(DType::f32, PartialShape(Shape::of({2})));
  const Values out = loop(
      *graph, {build->integer(0), list, x},
      [&](Build& b, const Values& v) {
        return Values{b.op("Less", {v[0], n})};
      },
      [&](Build& b, const Values& v) {
        return Values{b.add(v[0], b.integer(1)), b.op("TensorListPushBack", {v[1], v[2]}), b.add(v[2], v[2])};
      });
  const Value stack = build->op("TensorListStack", {out[1], build->ints({2})}, {{"element_dtype", DType::f32}});
  EXPECT_EQ(values(fetch(stack, {{n, integer(3)}, {x, floats({2}, {1, 3})}})), (std::vector<float>{1, 3, 2, 6, 4, 12}));
  const Value item = build->op("TensorListGetItem", {out[1], build->integer(7), build->ints({2})}, {{"element_dtype", DType::f32}});
  std::vector<Tensor> got;
  EXPECT_EQ(run({{n, integer(3)}, {x, floats({2}, {1, 3})}}, {item}, &got).code(), Code::invalid_argument);
}

// An older list is still what it was, whichever of its changes are looked at first.
TEST_F(ControlTest, ListsAreValues) {
  const DType f32 = DType::f32;
  const Value a = build->op("TensorListFromTensor", {build->constant(floats({3}, {1, 2, 3})), build->ints({})});
  const Value b = build->op("TensorListSetItem", {a, build->integer(1), build->scalar(f32, 9)});
  const Value c = build->op("TensorListPopBack", {b, build->ints({})}, {{"element_dtype", f32}});
  const Value d = build->op("TensorListPushBack", {a, build->scalar(f32, 7)});
  const auto stack = [&](Value list) { return build->op("TensorListStack", {list, build->ints({})}, {{"element_dtype", f32}}); };
  std::vector<Tensor> got;
  const Status status = run({}, {stack(c), stack(a), stack(d), stack(b)}, &got);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(values(got[0]), (std::vector<float>{1, 9}));
  EXPECT_EQ(values(got[1]), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(values(got[2]), (std::vector<float>{1, 2, 3, 7}));
  EXPECT_EQ(values(got[3]), (std::vector<float>{1, 9, 3}));
}

// What comes out of a list is the element itself, so whoever works in the place of an operand must not do it there.
TEST_F(ControlTest, AnElementIsNotWrittenTo) {
  const DType f32 = DType::f32;
  const Value n = placeholder(DType::i32, PartialShape::scalar()), x = placeholder(f32, PartialShape(Shape::of({2})));
  const auto get = [](Build& b, Value list, int32_t at) {
    return b.op("TensorListGetItem", {list, b.integer(at), b.ints({2})}, {{"element_dtype", DType::f32}});
  };
  const Value none = build->op("EmptyTensorList", {build->ints({2}), build->integer(-1)}, {{"element_dtype", f32}});
  const Value list = build->op("TensorListPushBack", {build->op("TensorListPushBack", {none, x}), build->add(x, x)});
  // The element as it is, what is computed of it, and, after both, the list.
  const Value first = get(*build, list, 0), negative = build->neg(first), twice = build->add(negative, negative);
  const Value popped = build->op("TensorListPopBack", {list, build->ints({2})}, {{"element_dtype", f32}}).sibling(1);
  const Value stack = build->op("TensorListStack", {list, build->ints({2})}, {{"element_dtype", f32}});
  // A loop whose variable becomes an element, and one whose element is worked on in every round.
  const Values out = loop(
      *graph, {build->integer(0), x, x, list},
      [&](Build& b, const Values& v) {
        return Values{b.op("Less", {v[0], n})};
      },
      [&](Build& b, const Values& v) {
        return Values{b.add(v[0], b.integer(1)), get(b, v[3], 1), b.add(v[2], b.neg(get(b, v[3], 0))), v[3]};
      });
  for (int32_t rounds : {3, 0, 4}) {
    std::vector<Tensor> got;
    const Status status = run({{n, integer(rounds)}, {x, floats({2}, {1, 3})}}, {first, twice, popped, stack, out[1], out[2]}, &got);
    ASSERT_TRUE(status.ok()) << status.message();
    const float r = static_cast<float>(rounds);
    EXPECT_EQ(values(got[0]), (std::vector<float>{1, 3}));
    EXPECT_EQ(values(got[1]), (std::vector<float>{-2, -6}));
    EXPECT_EQ(values(got[2]), (std::vector<float>{2, 6}));
    EXPECT_EQ(values(got[3]), (std::vector<float>{1, 3, 2, 6}));
    EXPECT_EQ(values(got[4]), rounds ? (std::vector<float>{2, 6}) : (std::vector<float>{1, 3}));
    EXPECT_EQ(values(got[5]), (std::vector<float>{1 - r, 3 - 3 * r}));
  }
}

// What is put into a list may be the operand itself, so nothing may be written in its place, and each round has its own.
TEST_F(ControlTest, WhatBecameAnElementIsNotWrittenTo) {
  const DType f32 = DType::f32;
  const Value n = placeholder(DType::i32, PartialShape::scalar()), x = placeholder(f32, PartialShape(Shape::of({2})));
  const auto push = [](Build& b, Value list, Value v) { return b.op("TensorListPushBack", {list, v}); };
  const auto stack = [](Build& b, Value list) { return b.op("TensorListStack", {list, b.ints({2})}, {{"element_dtype", DType::f32}}); };
  const Value none = build->op("EmptyTensorList", {build->ints({2}), build->integer(-1)}, {{"element_dtype", f32}});
  const Value some = build->op("TensorListReserve", {build->ints({2}), build->integer(1)}, {{"element_dtype", f32}});
  // Put in three times, fetched, and worked on; and one that is not fetched.
  const Value v = build->add(x, x), w = build->mul(x, x);
  const Value list = push(*build, push(*build, push(*build, none, v), w), v);
  const Value item = build->op("TensorListSetItem", {some, build->integer(0), w});
  const Value after = build->neg(build->neg(build->neg(build->add(v, w)))), of_w = build->neg(build->neg(w));
  // In a loop, the result of a round among them.
  const Values out = loop(
      *graph, {build->integer(0), x, none},
      [&](Build& b, const Values& in) {
        return Values{b.op("Less", {in[0], n})};
      },
      [&](Build& b, const Values& in) {
        const Value twice = b.add(in[1], in[1]), next = b.add(in[1], x), lost = b.neg(b.neg(b.neg(twice)));
        const Value both = push(b, push(b, in[2], twice), next);
        return Values{b.add(in[0], b.integer(1)), b.add(b.sub(next, lost), lost), both};
      });
  const Tensor fed = floats({2}, {1, 3});
  for (int32_t rounds : {3, 0, 40}) {
    std::vector<Tensor> got;
    const Status status = run({{n, integer(rounds)}, {x, fed}},
                              {v, stack(*build, list), stack(*build, item), after, of_w, out[1], stack(*build, out[2])}, &got);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(values(got[0]), (std::vector<float>{2, 6}));
    EXPECT_EQ(values(got[1]), (std::vector<float>{2, 6, 1, 9, 2, 6}));
    EXPECT_EQ(values(got[2]), (std::vector<float>{1, 9}));
    EXPECT_EQ(values(got[3]), (std::vector<float>{-3, -15}));
    EXPECT_EQ(values(got[4]), (std::vector<float>{1, 9}));
    std::vector<float> elements;
    for (int round = 0; round < rounds; ++round) {
      const auto r = static_cast<float>(round + 1);
      for (float each : {2 * r, 6 * r, r + 1, 3 * (r + 1)}) elements.push_back(each);
    }
    const auto last = static_cast<float>(rounds + 1);
    EXPECT_EQ(values(got[5]), (std::vector<float>{last, 3 * last}));
    EXPECT_EQ(values(got[6]), elements);
  }
}

// What a round makes of strings outlives the round; what a branch makes outlives the branch.
TEST_F(ControlTest, StringsOutliveTheirBody) {
  const Value n = placeholder(DType::i32, PartialShape::scalar());
  const Text words[] = {std::string_view("a word longer than any small string is"), std::string_view("b")};
  const Tensor given = make_texts(Shape::of({2}), words).take();
  const Value x = placeholder(DType::string, PartialShape(Shape::of({2})));
  const Body less = [&](Build& b, const Values& v) { return Values{b.op("Less", {v[0], n})}; };
  const auto doubled = [](Build& b, Value text) { return b.op("StringJoin", {text, text}); };
  const Values twice = loop(*graph, {build->integer(0), x}, less, [&](Build& b, const Values& v) {
    return Values{b.add(v[0], b.integer(1)), doubled(b, v[1])};
  });
  // One whose shape changes, and a list of what it was.
  const Value list = build->op("EmptyTensorList", {build->integer(-1), build->integer(-1)}, {{"element_dtype", DType::string}});
  const Value open = placeholder(DType::string, PartialShape::vector(-1));
  const Values longer = loop(*graph, {build->integer(0), open, list}, less, [&](Build& b, const Values& v) {
    const Value next = b.op("ConcatV2", {v[1], doubled(b, v[1]), b.integer(0)});
    return Values{b.add(v[0], b.integer(1)), next, b.op("TensorListPushBack", {v[2], doubled(b, v[1])})};
  });
  const Value first =
      build->op("TensorListGetItem", {longer[2], build->integer(0), build->integer(-1)}, {{"element_dtype", DType::string}});
  const Values either = when(
      *graph, build->op("Greater", {n, build->integer(0)}), [&](Build& b, const Values&) { return Values{doubled(b, twice[1])}; },
      [&](Build&, const Values&) { return Values{x}; });
  const auto text = [](const Tensor& tensor, size_t i) { return std::string(texts_of(tensor)[i].view()); };
  const auto times = [](const std::string& word, int count) {
    std::string all;
    while (count-- > 0) all += word;
    return all;
  };
  const std::string word(words[0].view());
  for (int32_t rounds : {0, 1, 3, 5}) {
    std::vector<Tensor> got;
    const std::vector<Value> fetches =
        rounds > 0 ? std::vector<Value>{twice[1], longer[1], either[0], first} : std::vector<Value>{twice[1], longer[1], either[0]};
    const Status status = run({{n, integer(rounds)}, {x, given}, {open, given}}, fetches, &got);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(text(got[0], 0), times(word, 1 << rounds));
    EXPECT_EQ(text(got[0], 1), times("b", 1 << rounds));
    ASSERT_EQ(got[1].shape(), Shape::of({int64_t{2} << rounds}));
    EXPECT_EQ(text(got[1], got[1].shape().dim(0) - 2), times(word, 1 << rounds));
    EXPECT_EQ(text(got[2], 0), times(word, rounds > 0 ? 2 << rounds : 1));
    if (rounds > 0) {
      EXPECT_EQ(text(got[3], 0), times(word, 2));
    }
  }
}

}  // namespace
}  // namespace dtg
