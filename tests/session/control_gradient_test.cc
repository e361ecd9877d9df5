// Random programs of nested conditions, loops and lists: their values against an interpreter that walks the program itself, their gradients
// against differences of its answers, and gradients of gradients against differences of gradients. One thread.
#include <cmath>
#include <memory>
#include <random>

#include "control_fixture.h"

namespace dtg {
namespace {

using Vec = std::vector<double>;
constexpr int kWidth = 2;

// A program: statements that each add a value to those around, and the number of the one it gives.
struct Program;
struct Statement {
  enum Kind { add, sub, mul, tanh, sigmoid, when, loop, list, rows } kind = add;
  int a = 0, b = 0;       // operands
  int flag = 0, n = 0;    // which flag decides, which count
  bool by_round = false;  // the condition is the number of the round around it, being even
  std::shared_ptr<Program> yes, no;
};
struct Program {
  std::vector<Statement> statements;
  int result = 0;
};

constexpr int kFlags = 3, kCounts = 3;

class Drawing {
 public:
  explicit Drawing(uint32_t seed) : random_(seed) {}
  int below(int limit) { return static_cast<int>(random_() % static_cast<uint32_t>(limit)); }
  double real() { return (static_cast<double>(random_() % 2000) - 1000) / 1000; }

  // `around` values are there already; in a loop the last of them is the loop variable.
  std::shared_ptr<Program> program(int around, int depth, bool in_loop) {
    auto made = std::make_shared<Program>();
    const int count = 1 + below(4);
    for (int i = 0; i < count; ++i) {
      Statement s;
      const int pick = below(depth > 0 ? 10 : 5);
      constexpr Statement::Kind kDeep[] = {Statement::when, Statement::when, Statement::loop, Statement::list, Statement::rows};
      s.kind = pick < 5 ? static_cast<Statement::Kind>(pick) : kDeep[pick - 5];
      s.a = below(around + i);
      s.b = below(around + i);
      s.flag = below(kFlags);
      s.n = below(kCounts);
      s.by_round = in_loop && below(2) == 0;
      const bool repeats = s.kind >= Statement::loop;
      if (s.kind >= Statement::when) s.yes = program(around + i + (repeats ? 1 : 0), depth - 1, repeats || in_loop);
      if (s.kind == Statement::when) s.no = program(around + i, depth - 1, in_loop);
      made->statements.push_back(s);
    }
    made->result = around + count - 1;
    return made;
  }

 private:
  std::mt19937 random_;
};

struct Facts {
  std::vector<int32_t> flags, counts;
};

// What the program means.
Vec evaluate(const Program& program, std::vector<Vec> values, const Facts& facts, int round) {
  for (const Statement& s : program.statements) {
    const Vec &a = values[static_cast<size_t>(s.a)], &b = values[static_cast<size_t>(s.b)];
    Vec out(kWidth);
    for (int k = 0; k < kWidth; ++k) {
      const auto i = static_cast<size_t>(k);
      switch (s.kind) {
        case Statement::add: out[i] = a[i] + b[i]; break;
        case Statement::sub: out[i] = a[i] - b[i]; break;
        case Statement::mul: out[i] = a[i] * b[i]; break;
        case Statement::tanh: out[i] = std::tanh(a[i]); break;
        case Statement::sigmoid: out[i] = 1 / (1 + std::exp(-a[i])); break;
        default: break;
      }
    }
    if (s.kind == Statement::when) {
      const bool yes = s.by_round ? round % 2 == 0 : facts.flags[static_cast<size_t>(s.flag)] > 0;
      out = evaluate(yes ? *s.yes : *s.no, values, facts, round);
    } else if (s.kind >= Statement::loop) {
      Vec now = a, sum(kWidth, 0.0);
      for (int32_t r = 0; r < facts.counts[static_cast<size_t>(s.n)]; ++r) {
        std::vector<Vec> inside = values;
        inside.push_back(now);
        now = evaluate(*s.yes, std::move(inside), facts, r);
        const Vec& row = r % 2 == 0 ? a : b;
        for (size_t k = 0; s.kind == Statement::rows && k < now.size(); ++k) now[k] += row[k];
        // A bound, or products would leave every range.
        for (double& x : now) x = std::tanh(x);
        for (size_t k = 0; k < now.size(); ++k) sum[k] += now[k];
      }
      out = s.kind == Statement::loop ? now : sum;
    }
    values.push_back(out);
  }
  return values[static_cast<size_t>(program.result)];
}

class ControlGradientTest : public ControlTest {
 protected:
  // The same as nodes.
  Value emit(Build& b, const Program& program, Values values, Value round) {
    for (const Statement& s : program.statements) {
      const Value x = values[static_cast<size_t>(s.a)], y = values[static_cast<size_t>(s.b)];
      Value out;
      switch (s.kind) {
        case Statement::add: out = b.add(x, y); break;
        case Statement::sub: out = b.sub(x, y); break;
        case Statement::mul: out = b.mul(x, y); break;
        case Statement::tanh: out = b.op("Tanh", {x}); break;
        case Statement::sigmoid: out = b.op("Sigmoid", {x}); break;
        case Statement::when: out = emit_when(b, s, values, round); break;
        case Statement::loop:
        case Statement::list:
        case Statement::rows: out = emit_loop(b, s, values); break;
      }
      values.push_back(out);
    }
    return values[static_cast<size_t>(program.result)];
  }

  Value emit_when(Build& b, const Statement& s, const Values& values, Value round) {
    const Value number =
        s.by_round && round.valid() ? b.sub(b.integer(1), b.op("FloorMod", {round, b.integer(2)})) : flags_[static_cast<size_t>(s.flag)];
    const Value condition = b.op("Greater", {number, b.integer(0)});
    if (!b.ok()) return {};
    return when(
        b.graph(), condition, [&](Build& in, const Values&) { return Values{emit(in, *s.yes, values, round)}; },
        [&](Build& in, const Values&) { return Values{emit(in, *s.no, values, round)}; })[0];
  }

  // A list grows at its end; or one from around gives a row to each round, and each sets its element of another.
  Value emit_loop(Build& b, const Statement& s, const Values& values) {
    const Value start = values[static_cast<size_t>(s.a)], count = counts_[static_cast<size_t>(s.n)];
    const bool lists = s.kind == Statement::list, rows = s.kind == Statement::rows;
    const Value width = b.ints({kWidth});
    const Attr element{"element_dtype", DType::f64}, shape_type{"shape_type", DType::i32};
    Values variables = {b.integer(0), start};
    if (lists) variables.push_back(b.op("EmptyTensorList", {width, b.integer(-1)}, {element}));
    if (rows) variables.push_back(b.op("TensorListReserve", {width, count}, {element, shape_type}));
    const Value pair[] = {start, values[static_cast<size_t>(s.b)]};
    const Value given = rows ? b.op("TensorListFromTensor", {b.op("Pack", pair), width}, {element, shape_type}) : Value();
    if (!b.ok()) return {};
    const Values out = loop(
        b.graph(), variables,
        [&](Build& in, const Values& v) {
          return Values{in.op("Less", {v[0], count})};
        },
        [&](Build& in, const Values& v) {
          Values inside = values;
          inside.push_back(v[1]);
          Value sum = emit(in, *s.yes, inside, v[0]);
          if (rows) {
            const Value row = in.op("FloorMod", {v[0], in.integer(2)});
            sum = in.add(sum, in.op("TensorListGetItem", {given, row, in.ints({kWidth})}, {element}));
          }
          const Value next = in.op("Tanh", {sum});
          Values results = {in.add(v[0], in.integer(1)), next};
          if (lists) results.push_back(in.op("TensorListPushBack", {v[2], next}));
          if (rows) results.push_back(in.op("TensorListSetItem", {v[2], v[0], next}, {element}));
          return results;
        });
    if (!lists && !rows) return out[1];
    return b.sum(b.op("TensorListStack", {out[2], width}, {element}), b.ints({0}));
  }

  void prepare(Drawing& draw, int inputs) {
    flags_.clear();
    counts_.clear();
    inputs_.clear();
    feeds_.clear();
    for (int i = 0; i < kFlags; ++i) flags_.push_back(placeholder(DType::i32, PartialShape::scalar()));
    for (int i = 0; i < kCounts; ++i) counts_.push_back(placeholder(DType::i32, PartialShape::scalar()));
    for (int i = 0; i < inputs; ++i) {
      inputs_.push_back(placeholder(DType::f64, draw.below(4) == 0 ? PartialShape::vector(-1) : PartialShape(Shape::of({kWidth}))));
    }
  }

  std::vector<Feed> feeds(const std::vector<Vec>& at, const Facts& facts) {
    std::vector<Feed> all;
    for (size_t i = 0; i < flags_.size(); ++i) all.push_back({flags_[i], Tensor::scalar<int32_t>(facts.flags[i]).take()});
    for (size_t i = 0; i < counts_.size(); ++i) all.push_back({counts_[i], Tensor::scalar<int32_t>(facts.counts[i]).take()});
    for (size_t i = 0; i < inputs_.size(); ++i) {
      all.push_back({inputs_[i], Tensor::of<double>(Shape::of({kWidth}), std::span<const double>(at[i])).take()});
    }
    return all;
  }

  Vec numbers(Value value, const std::vector<Vec>& at, const Facts& facts) {
    const Tensor got = fetch(value, feeds(at, facts));
    return got.valid() ? Vec(got.as<double>(), got.as<double>() + got.count()) : Vec(kWidth, NAN);
  }

  Values flags_, counts_, inputs_, feeds_;
};

void expect_near(const Vec& got, const Vec& wanted, double allowed, const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], allowed * std::max(1.0, std::fabs(wanted[i]))) << what << " " << i;
}

TEST_F(ControlGradientTest, RandomProgramsAndTheirGradients) {
  constexpr int kInputs = 2;
  constexpr double kStep = 1e-5;
  const char* const wished = getenv("DTG_CONTROL_SEEDS");
  const int seeds = wished ? atoi(wished) : 150;
  for (int seed = 1; seed <= seeds && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    open({}, 2);
    Drawing draw(static_cast<uint32_t>(seed));
    const auto program = draw.program(kInputs, 1 + draw.below(2), false);
    prepare(draw, kInputs);
    const Value y = emit(*build, *program, inputs_, Value());
    ASSERT_TRUE(build->ok()) << build->status().message();
    const auto made = add_gradients(*graph, {&y, 1}, inputs_, {});
    ASSERT_TRUE(made.ok()) << made.status().message();
    // Where only one is asked for, the way back carries no others along.
    std::vector<Gradient> alone;
    for (const Value input : inputs_) {
      const auto one = add_gradients(*graph, {&y, 1}, {&input, 1}, {});
      ASSERT_TRUE(one.ok()) << one.status().message();
      alone.push_back(one.value()[0]);
    }
    for (int trial = 0; trial < 2; ++trial) {
      Facts facts;
      for (int i = 0; i < kFlags; ++i) facts.flags.push_back(draw.below(2));
      for (int i = 0; i < kCounts; ++i) facts.counts.push_back(draw.below(4));
      std::vector<Vec> at(kInputs, Vec(kWidth));
      for (Vec& x : at) {
        for (double& v : x) v = draw.real();
      }
      expect_near(numbers(y, at, facts), evaluate(*program, at, facts, 0), 1e-9, "value");
      // In one run with its gradients, which share the loops' rounds.
      Values both = {build->op("Identity", {y})};
      for (const Gradient& each : made.value()) {
        if (each.any()) both.push_back(build->op("Identity", {densify(*build, each)}));
      }
      std::vector<Tensor> together;
      const Status ran = run(feeds(at, facts), both, &together);
      ASSERT_TRUE(ran.ok()) << ran.message();
      expect_near(Vec(together[0].as<double>(), together[0].as<double>() + kWidth), evaluate(*program, at, facts, 0), 1e-9, "beside");
      for (size_t i = 0; i < kInputs; ++i) {
        Vec wanted(kWidth);
        for (size_t k = 0; k < kWidth; ++k) {
          std::vector<Vec> up = at, down = at;
          up[i][k] += kStep;
          down[i][k] -= kStep;
          const Vec above = evaluate(*program, up, facts, 0), below = evaluate(*program, down, facts, 0);
          for (size_t j = 0; j < kWidth; ++j) wanted[k] += (above[j] - below[j]) / (2 * kStep);
        }
        if (!made.value()[i].any()) {
          expect_near(Vec(kWidth, 0.0), wanted, 1e-6, "no gradient");
          continue;
        }
        const Vec given = numbers(build->op("Identity", {densify(*build, made.value()[i])}), at, facts);
        expect_near(given, wanted, 1e-5, "gradient");
        ASSERT_TRUE(alone[i].any());
        EXPECT_EQ(numbers(build->op("Identity", {densify(*build, alone[i])}), at, facts), given) << "alone";
      }
    }
  }
}

TEST_F(ControlGradientTest, GradientsOfGradients) {
  constexpr int kInputs = 1;
  constexpr double kStep = 1e-5;
  for (int seed = 1; seed <= 25 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    open({}, 2);
    Drawing draw(static_cast<uint32_t>(1000 + seed));
    const auto program = draw.program(kInputs, 1, false);
    prepare(draw, kInputs);
    const Value y = emit(*build, *program, inputs_, Value());
    ASSERT_TRUE(build->ok()) << build->status().message();
    const Value first = gradient(y, inputs_[0]);
    if (!first.valid()) continue;
    const Value second = gradient(first, inputs_[0]);
    const Facts facts{{1, 0, 1}, {2, 0, 3}};
    std::vector<Vec> at(kInputs, Vec(kWidth));
    for (double& v : at[0]) v = draw.real();
    Vec wanted(kWidth);
    for (size_t k = 0; k < kWidth; ++k) {
      std::vector<Vec> up = at, down = at;
      up[0][k] += kStep;
      down[0][k] -= kStep;
      const Value dense = build->op("Identity", {first});
      const Vec above = numbers(dense, up, facts), below = numbers(dense, down, facts);
      for (size_t j = 0; j < kWidth; ++j) wanted[k] += (above[j] - below[j]) / (2 * kStep);
    }
    if (!second.valid()) expect_near(Vec(kWidth, 0.0), wanted, 1e-6, "no second gradient");
    else expect_near(numbers(build->op("Identity", {second}), at, facts), wanted, 1e-5, "second gradient");
  }
}

// Through the variable that a body reads, summed over the rounds.
// Where what a loop would give a gradient to has none that anybody wants, there is nothing to do.
TEST_F(ControlGradientTest, OfALoopThatCarriesNothingWanted) {
  const Value x = placeholder(DType::f32, PartialShape::scalar()), y = placeholder(DType::f32, PartialShape::scalar());
  const Values out = loop(
      *graph, {build->op("Cast", {x}, {{"DstT", DType::i32}}), build->scalar(DType::f32, 1)},
      [](Build& b, const Values& v) {
        return Values{b.op("Less", {v[0], b.integer(3)})};
      },
      [&](Build& b, const Values& v) {
        return Values{b.add(v[0], b.integer(1)), b.op("Mul", {v[1], y})};
      });
  const auto made = add_gradients(*graph, {&out[1], 1}, {&x, 1}, {});
  ASSERT_TRUE(made.ok()) << made.status().message();
  if (made.value()[0].any()) {
    EXPECT_EQ(values(fetch(made.value()[0].dense, {{x, floats({}, {1})}, {y, floats({}, {2})}})), std::vector<float>{0});
  }
}

TEST_F(ControlGradientTest, OfVariablesThatBodiesRead) {
  const Value handle = variable("w", Shape::of({2}));
  run_target(assign(handle, build->constant(floats({2}, {2, 3}))));
  const Value x = placeholder(DType::f32, PartialShape(Shape::of({2}))), n = placeholder(DType::i32, PartialShape::scalar());
  const Values out = loop(
      *graph, {build->integer(0), x},
      [&](Build& b, const Values& v) {
        return Values{b.op("Less", {v[0], n})};
      },
      [&](Build& b, const Values& v) {
        return Values{b.add(v[0], b.integer(1)), b.mul(v[1], b.op("ReadVariableOp", {handle}, {{"dtype", DType::f32}}))};
      });
  const Value dw = gradient(out[1], handle);
  ASSERT_TRUE(dw.valid());
  // y = x w^n: dy/dw = n x w^(n-1)
  const auto at = [&](int32_t turns) { return values(fetch(dw, {{n, Tensor::scalar<int32_t>(turns).take()}, {x, floats({2}, {1, 10})}})); };
  EXPECT_EQ(at(3), (std::vector<float>{12, 270}));
  EXPECT_EQ(at(1), (std::vector<float>{1, 10}));
  EXPECT_EQ(at(0), (std::vector<float>{0, 0}));
}

// A call hands one of two variables back, of which one branch reads its own meanwhile; a loop hands on one that no round reads.
// A variable's handle goes through a call, or is chosen by one, and another call reads it: in a function, in a branch, in a loop. The way
// back goes through the same, and so does the way back of that.
TEST_F(ControlGradientTest, OfVariablesThatCallsChooseForCalls) {
  const Value a = variable("a", Shape()), b = variable("b", Shape());
  run_target(assign(a, build->scalar(DType::f32, 3)));
  run_target(assign(b, build->scalar(DType::f32, 5)));
  const Value which = placeholder(DType::boolean, PartialShape::scalar()), x = placeholder(DType::f32, PartialShape::scalar());
  const Value turns = placeholder(DType::i32, PartialShape::scalar());
  const auto give = [](Value handle) { return [handle](Build&, const Values&) { return Values{handle}; }; };
  const auto call = [](Graph& in, const Body& body) { return made(add_call(in, {}, made(function(in, {}, body))))[0]; };
  // v² x, where v is whichever variable it is; without a choice a, or -x.
  const auto inside = [&](Build& in, Value at, bool chosen) {
    const Value handle = chosen ? when(in.graph(), which, give(a), give(b))[0] : call(in.graph(), give(a));
    const auto use = [handle, at](Build& deep, const Values&) {
      const Value v = deep.op("ReadVariableOp", {handle}, {{"dtype", DType::f32}});
      return Values{deep.mul(deep.mul(v, v), at)};
    };
    const auto turn = [at](Build& deep, const Values&) { return Values{deep.neg(at)}; };
    return chosen ? call(in.graph(), use) : when(in.graph(), which, use, turn)[0];
  };
  const auto in_loop = [&](bool chosen) {
    return loop(
        *graph, {build->integer(0), x},
        [&](Build& in, const Values& v) {
          return Values{in.op("Less", {v[0], turns})};
        },
        [&](Build& in, const Values& v) {
          return Values{in.add(v[0], in.integer(1)), inside(in, v[1], chosen)};
        })[1];
  };
  for (const bool chosen : {false, true}) {
    const Body body = [&](Build& in, const Values&) { return Values{inside(in, x, chosen)}; };
    const Value always = call(*graph, body), looped = in_loop(chosen);
    const Value sometimes = when(*graph, which, body, [&](Build&, const Values&) { return Values{x}; })[0];
    for (const Value y : {always, sometimes, looped}) {
      for (const bool yes : {true, false}) {
        SCOPED_TRACE(testing::Message() << chosen << (y == always ? " called" : y == looped ? " looped" : " in a branch") << yes);
        const Value da = gradient(y, a), db = chosen ? gradient(y, b) : da, dx = gradient(y, x), dda = gradient(da, a);
        const std::vector<Feed> fed = {
            {which, Tensor::scalar<bool>(yes).take()}, {x, Tensor::scalar<float>(2).take()}, {turns, Tensor::scalar<int32_t>(1).take()}};
        std::vector<Tensor> got;
        const Status status = run(fed, {y, da, db, dx, dda}, &got);
        ASSERT_TRUE(status.ok()) << status.message();
        const bool plain = !yes && y == sometimes;  // x itself
        const float v = yes ? 3 : 5, sign = plain ? 1 : -1;
        const bool of_a = yes, of_b = chosen && !yes && !plain;
        const float wanted[] = {of_a || of_b ? v * v * 2 : sign * 2, of_a ? 2 * v * 2 : 0,
                                of_a && !chosen ? 2 * v * 2
                                : of_b          ? 2 * v * 2
                                                : 0,
                                of_a || of_b ? v * v : sign, of_a ? 4.f : 0};
        for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(values(got[i]), (std::vector<float>{wanted[i]})) << i;
      }
    }
  }
}

TEST_F(ControlGradientTest, OfVariablesThatCallsHandBack) {
  const Value a = variable("a", Shape()), b = variable("b", Shape()), which = placeholder(DType::boolean, PartialShape::scalar());
  run_target(assign(a, build->scalar(DType::f32, 3)));
  run_target(assign(b, build->scalar(DType::f32, 5)));
  const auto square_of = [](Build& in, Value handle) {
    const Value read = in.op("ReadVariableOp", {handle}, {{"dtype", DType::f32}});
    return in.mul(read, read);
  };
  const auto give = [&](Value handle, bool reads) {
    return [&, handle, reads](Build& in, const Values&) {
      return Values{handle, reads ? square_of(in, handle) : in.scalar(DType::f32, 0)};
    };
  };
  const auto expect = [&](Value y, float of_a, float of_b, bool yes) {
    const Value handles[] = {a, b};
    const float wanted[] = {of_a, of_b};
    for (int i = 0; i < 2; ++i) {
      const Value dy = gradient(y, handles[i]);
      ASSERT_TRUE(dy.valid());
      EXPECT_EQ(values(fetch(dy, {{which, Tensor::scalar<bool>(yes).take()}})), (std::vector<float>{wanted[i]})) << i << " " << yes;
    }
  };
  const Values silent = when(*graph, which, give(a, false), give(b, false));
  const Value y = square_of(*build, silent[0]);
  expect(y, 6, 0, true);
  expect(y, 0, 10, false);
  const Values one = when(*graph, which, give(a, true), give(b, false));
  const Value z = build->add(square_of(*build, one[0]), one[1]);
  expect(z, 12, 0, true);
  expect(z, 0, 10, false);
  const Values back = made(add_call(*graph, {}, made(function(*graph, {}, give(a, false)))));
  const Values turned = loop(
      *graph, {build->integer(0), back[0]},
      [](Build& in, const Values& v) {
        return Values{in.op("Less", {v[0], in.integer(2)})};
      },
      [](Build& in, const Values& v) {
        return Values{in.add(v[0], in.integer(1)), v[1]};
      });
  const Value w = gradient(square_of(*build, turned[1]), a);
  ASSERT_TRUE(w.valid());
  EXPECT_EQ(values(fetch(w)), (std::vector<float>{6}));
}

// Of lists in a list, those that nobody asks for have the gradient 0.
TEST_F(ControlGradientTest, OfAListOfListsOfWhichOneIsRead) {
  const Value x = placeholder(DType::f32, PartialShape::scalar());
  const auto empty = [&](DType of) {
    return build->op("EmptyTensorList", {build->integer(-1), build->integer(-1)}, {{"element_dtype", of}});
  };
  const auto of_one = [&](double factor) {
    return build->op("TensorListPushBack", {empty(DType::f32), build->mul(x, build->scalar(DType::f32, factor))},
                     {{"element_dtype", DType::f32}});
  };
  Value all = empty(DType::variant);
  for (const double factor : {2.0, 3.0}) all = build->op("TensorListPushBack", {all, of_one(factor)}, {{"element_dtype", DType::variant}});
  const Value inner = build->op("TensorListGetItem", {all, build->integer(1), build->integer(-1)}, {{"element_dtype", DType::variant}});
  const Value y = build->op("TensorListGetItem", {inner, build->integer(0), build->integer(-1)}, {{"element_dtype", DType::f32}});
  ASSERT_TRUE(build->ok()) << build->status().message();
  auto gradients = add_gradients(*graph, {&y, 1}, {&x, 1}, {});
  ASSERT_TRUE(gradients.ok()) << gradients.status().message();
  EXPECT_EQ(values(fetch(gradients.value()[0].dense, {{x, Tensor::scalar<float>(5).take()}})), std::vector<float>{3});
}

// A read in a function that nobody needs is no use of the variable, so the call has no state and no gradient for it.
TEST_F(ControlGradientTest, OfFunctionsWithReadsThatNobodyNeeds) {
  const Value x = placeholder(DType::f32, PartialShape::vector(-1)), p = placeholder(DType::boolean, PartialShape::scalar());
  const Value a = build->op("VarHandleOp", {}, {{"dtype", DType::f32}, {"shape", Shape()}, {"shared_name", std::string("unread")}});
  const auto square = [&](bool reads) {
    return [=](Build& b, const Values&) {
      if (reads) (void)b.op("ReadVariableOp", {a}, {{"dtype", DType::f32}});
      return Values{b.op("Mul", {x, x})};
    };
  };
  const Value y = when(*graph, p, square(true), square(false))[0];
  const Value loss = build->op("Sum", {y, build->integer(0)});
  auto gradients = add_gradients(*graph, {&loss, 1}, {&x, 1}, {});
  ASSERT_TRUE(gradients.ok()) << gradients.status().message();
  for (const bool yes : {true, false}) {
    EXPECT_EQ(values(fetch(gradients.value()[0].dense, {{x, floats({1}, {5})}, {p, Tensor::scalar(yes).take()}})), std::vector<float>{10});
  }
}

}  // namespace
}  // namespace dtg
