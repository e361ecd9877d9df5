// Lay out: the order that memory may rely on, and that no two values of a program share memory while both may be alive. The judge of the
// random programs knows the program alone: who is behind whom by segments, stops and events, and who reads what.
#include "plan/lay_out.h"

#include <map>
#include <random>
#include <set>

#include "passes_fixture.h"

namespace dtg {
namespace {

class LayOut : public PassesTest {
 protected:
  Value sin(Value x) { return build->op("Sin", {x}); }
};

TEST_F(LayOut, AChainTakesTwoBlocks) {
  context.fuse = false;
  const Value x = placeholder(Shape::of({8, 32})), w = placeholder(Shape::of({32, 32}));
  Value y = x;
  for (int i = 0; i < 50; ++i) y = build->op("MatMul", {y, w});
  // Of the last, the caller's own memory is written.
  EXPECT_EQ(plan({{feed(x), feed(w)}, {build->op("Sum", {y, build->ints({0, 1})})}, {}})->program().places.size(), 50u);
  EXPECT_LE(plan({{feed(x), feed(w)}, {y}, {}})->program().frame_bytes, 2 * 8 * 32 * 4 + 64 * 1024) << "scratch of the products is apart";
}

TEST_F(LayOut, AResultTakesThePlaceOfAnOperandThatDies) {
  context.fuse = false;
  const Value x = placeholder(Shape::of({1024}));
  const auto made = plan({{feed(x)}, {build->op("Sum", {sin(sin(sin(x))), build->ints({0})})}, {}});
  std::set<int64_t> offsets;
  for (const Place& place : made->program().places) offsets.insert(place.offset);
  EXPECT_EQ(made->program().places.size(), 3u);
  EXPECT_EQ(offsets.size(), 1u);
}

TEST_F(LayOut, ButNotOfOneThatIsReadTwice) {
  context.fuse = false;
  const Value x = placeholder(Shape::of({1024})), y = sin(x);
  const auto made = plan({{feed(x)}, {build->op("Sum", {build->mul(y, y), build->ints({0})})}, {}});
  std::set<int64_t> offsets;
  for (const Place& place : made->program().places) offsets.insert(place.offset);
  EXPECT_EQ(offsets.size(), 2u);
}

TEST_F(LayOut, WhatIsKeptHasMemoryOfItsOwn) {
  context.fuse = false;
  const Value x = placeholder(Shape::of({1024}));
  const Value list = build->op("EmptyTensorList", {build->ints({1024}), build->integer(-1)}, {{"element_dtype", DType::f32}});
  const Value kept = sin(x), fetched = sin(kept), again = sin(fetched);
  Value all = list;
  for (Value each : {kept, fetched, kept, x}) all = build->op("TensorListPushBack", {all, each});
  const Value count = build->op("TensorListLength", {all});
  const auto made = plan({{feed(x)}, {count, fetched, build->op("Sum", {again, build->ints({0})})}, {}});
  // Of what is fed and of what is fetched the memory is the caller's.
  ASSERT_EQ(made->program().lasting.size(), 1u);
  EXPECT_EQ(made->program().lasting[0].bytes, 4096);
  for (const Place& place : made->program().places) EXPECT_NE(place.slot, made->program().lasting[0].slot);
}

TEST_F(LayOut, ThePlanThatDoesNotFitNamesTheLargest) {
  MemoryBudget budget(5 << 20);
  context.budget = &budget;
  context.fuse = false;
  const Value x = placeholder(Shape::of({1 << 18}));
  std::vector<Value> all;
  for (int i = 0; i < 6; ++i) all.push_back(build->op("Softmax", {sin(x)}));
  const auto refused = try_plan({{feed(x)}, {build->op("Sum", {build->op("AddN", all), build->ints({0})})}, {}});
  context.budget = nullptr;
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::resource_exhausted);
  EXPECT_NE(refused.status().message().find("the largest is"), std::string::npos) << refused.status().message();
  EXPECT_NE(refused.status().message().find("1048576 bytes"), std::string::npos) << refused.status().message();
}

// Who surely runs before whom, from the program alone.
class Course {
 public:
  explicit Course(const Program& program) : program_(program) {
    for (const Chunk& chunk : program.segments) {
      begins_.push_back(count_);
      count_ += static_cast<uint32_t>(chunk.instructions.size()) + 1;  // and its end
    }
    after_.resize(count_, std::vector<bool>(count_));
    for (uint32_t s = 0; s < begins_.size(); ++s) add_segment(s);
    close();
  }
  uint32_t point(uint32_t segment, size_t instruction) const { return begins_[segment] + static_cast<uint32_t>(instruction); }
  bool before(uint32_t first, uint32_t then) const { return after_[first][then]; }

 private:
  uint32_t target(uint32_t waiter) const {
    if (waiter < begins_.size()) return begins_[waiter];
    const Stop& stop = program_.stops[waiter - begins_.size()];
    return point(stop.segment, stop.at);
  }
  void add_segment(uint32_t s) {
    const std::span<const Instruction> list = program_.segments[s].instructions;
    for (size_t i = 0; i < list.size(); ++i) {
      after_[point(s, i)][point(s, i + 1)] = true;
      if (list[i].event < 0) continue;
      for (uint32_t waiter : program_.after_event[static_cast<size_t>(list[i].event)]) after_[point(s, i)][target(waiter)] = true;
    }
    for (uint32_t waiter : program_.after_segment[s]) after_[point(s, list.size())][target(waiter)] = true;
  }
  void close() {
    for (uint32_t via = 0; via < count_; ++via) {
      for (uint32_t first = 0; first < count_; ++first) {
        if (!after_[first][via]) continue;
        for (uint32_t then = 0; then < count_; ++then) after_[first][then] = after_[first][then] || after_[via][then];
      }
    }
  }

  const Program& program_;
  std::vector<uint32_t> begins_;
  uint32_t count_ = 0;
  std::vector<std::vector<bool>> after_;
};

// Each value that lies in the run's block: where, made by whom, read by whom.
class Lives {
 public:
  Lives(const Ir& ir, const Program& program) : course_(program) {
    for (const Place& place : program.places) {
      Life& life = lives_[place.slot];
      life.offset = place.offset;
      for (const IrValue& value : ir.values) {
        if (value.slot == place.slot)
          life.bytes = std::max(life.bytes, value.info->shape.to_shape().value().count() * dtype_size(value.info->dtype));
      }
      EXPECT_LE(life.offset + life.bytes, program.frame_bytes);
      EXPECT_EQ(life.offset % 64, 0);
    }
    for (const Fetch& fetch : program.fetches) {
      if (const auto life = lives_.find(fetch.slot); life != lives_.end()) life->second.kept = true;
    }
    for (uint32_t s = 0; s < program.segments.size(); ++s) {
      const auto list = program.segments[s].instructions;
      for (size_t i = 0; i < list.size(); ++i) note(list[i], course_.point(s, i));
    }
  }
  void check() const {
    for (auto a = lives_.begin(); a != lives_.end(); ++a) {
      for (auto b = std::next(a); b != lives_.end(); ++b) {
        if (a->second.offset + a->second.bytes <= b->second.offset || b->second.offset + b->second.bytes <= a->second.offset) continue;
        ++shared_;
        EXPECT_TRUE(over_before(a->second, b->second) || over_before(b->second, a->second))
            << "slots " << a->first << " and " << b->first << " share memory";
      }
    }
  }
  int shared() const { return shared_; }

 private:
  struct Life {
    int64_t offset = 0, bytes = 0;
    uint32_t made = kNone;
    std::vector<uint32_t> read;
    bool kept = false;
  };
  void note(const Instruction& instruction, uint32_t point) {
    for (uint32_t o = 0; o < instruction.outputs(); ++o) {
      if (const auto life = lives_.find(instruction.out[o]); life != lives_.end()) life->second.made = point;
    }
    for (uint32_t i = 0; i < instruction.inputs(); ++i) {
      if (const auto life = lives_.find(instruction.in[i]); life != lives_.end()) life->second.read.push_back(point);
    }
  }
  // One that is written over another lies where that lies, and is made where that is read last, once.
  bool over_before(const Life& x, const Life& y) const {
    if (x.kept) return false;
    const bool in_place = x.offset == y.offset && std::ranges::count(x.read, y.made) == 1;
    const auto before = [&](uint32_t point) { return course_.before(point, y.made) || (in_place && point == y.made); };
    return before(x.made) && std::ranges::all_of(x.read, before);
  }

  const Course course_;
  std::map<uint32_t, Life> lives_;  // by slot
  mutable int shared_ = 0;
};

TEST_F(LayOut, NoRandomProgramSharesWhatMayBeAliveAtOnce) {
  class Judge final : public Watched {
   public:
    using Watched::Watched;
    void looked(const Ir& ir, const Program& program) override {
      const SegmentOrder order(ir);
      EXPECT_EQ(std::set<uint32_t>(order.walk().begin(), order.walk().end()).size(), ir.segments.size());
      for (uint32_t s = 0; s < ir.segments.size(); ++s) {
        for (uint32_t before : ir.segments[s].after) EXPECT_FALSE(order.ended(s, before));
        for (uint32_t event : ir.segments[s].events) EXPECT_TRUE(order.happened(event, s));
      }
      const Lives lives(ir, program);
      lives.check();
      shared += lives.shared();
      segments += static_cast<int>(program.segments.size());
    }
    int shared = 0, segments = 0;
  };
  Judge judge(*this);
  std::mt19937 random(20261126);
  const auto pick = [&](size_t below) { return static_cast<size_t>(random() % below); };
  for (int round = 0; round < 300 && !HasFailure(); ++round) {
    SCOPED_TRACE(round);
    context.fuse = round % 2 == 0;
    const Value x = placeholder(Shape::of({4, 4}));
    std::vector<Value> values{x};
    for (size_t left = 5 + pick(40); left > 0; --left) {
      static constexpr const char* kOps[] = {"Sin", "Neg", "AddV2", "Mul", "MatMul", "Softmax"};
      const size_t op = pick(std::size(kOps));
      // Mostly of what is new, so that old values die.
      const auto operand = [&] { return values[values.size() - 1 - pick(std::min<size_t>(values.size(), pick(4) ? 4 : 40))]; };
      const int device = static_cast<int>(pick(4) ? pick(2) : pick(kDevices));
      values.push_back(op == 2 || op == 3 || op == 4 ? on(device, kOps[op], {operand(), operand()}) : on(device, kOps[op], {operand()}));
    }
    std::vector<Value> fetches{values.back()};
    for (size_t more = pick(3); more > 0; --more) fetches.push_back(values[1 + pick(values.size() - 1)]);
    plan({{feed(x)}, std::move(fetches), {}}, &judge);
  }
  EXPECT_GE(judge.segments, 600) << "most programs had more than one";
  EXPECT_GE(judge.shared, 1000) << "and memory was used again";
}

}  // namespace
}  // namespace dtg
