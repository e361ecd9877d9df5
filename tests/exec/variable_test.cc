// Variable: pins keep what they saw, writers are alone and in order, memory is used again.
#include "exec/variable.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace dtg {
namespace {

Ref<Variable> variable_of(std::vector<float> values) {
  const Shape shape = Shape::of({static_cast<int64_t>(values.size())});
  auto variable = make_ref<Variable>("v", DType::f32, shape);
  EXPECT_EQ(variable->begin_assign(nullptr), Variable::Writing::yes);
  auto fresh = variable->spare(shape);
  EXPECT_TRUE(fresh.ok());
  std::copy(values.begin(), values.end(), fresh.value().as<float>());
  EXPECT_TRUE(variable->end_assign(fresh.take()).ok());
  return variable;
}

float first(Variable& variable) {
  Variable::Version* version = nullptr;
  EXPECT_EQ(variable.pin(&version, nullptr), Variable::Pinned::yes);
  const float value = version->tensor.as<float>()[0];
  variable.unpin(version);
  return value;
}

void add_one(Variable& variable) {
  Variable::Version* version = nullptr;
  ASSERT_EQ(variable.begin_update(&version, nullptr), Variable::Writing::yes);
  version->tensor.as<float>()[0] += 1;
  variable.end_update(version, true);
}

struct Called : Variable::Turn {
  Called() {
    ready = [](Turn* turn) { ++static_cast<Called*>(turn)->calls; };
  }
  int calls = 0;
};

TEST(Variable, HasNoValueUntilAssigned) {
  Variable variable("v", DType::f32, PartialShape::unknown());
  Variable::Version* version = nullptr;
  EXPECT_FALSE(variable.initialized());
  EXPECT_EQ(variable.pin(&version, nullptr), Variable::Pinned::uninitialized);
  EXPECT_EQ(variable.begin_update(&version, nullptr), Variable::Writing::uninitialized);
  EXPECT_EQ(variable.begin_assign(nullptr), Variable::Writing::yes);
  variable.cancel_assign();
  EXPECT_FALSE(variable.initialized());
  EXPECT_EQ(variable.version(), 0);
}

// A reader that hands on what it has pinned: meanwhile there may be a newer version, and somebody who writes that one in place.
TEST(Variable, WhatIsPinnedCanBePinnedAgain) {
  auto variable = variable_of({1});
  Variable::Version *seen = nullptr, *writing = nullptr, *other = nullptr;
  ASSERT_EQ(variable->pin(&seen, nullptr), Variable::Pinned::yes);
  add_one(*variable);
  ASSERT_EQ(variable->begin_update(&writing, nullptr), Variable::Writing::yes);
  EXPECT_EQ(variable->pin(&other, nullptr), Variable::Pinned::wait);
  variable->pin_again(seen);
  variable->unpin(seen);
  variable->end_update(writing, true);
  add_one(*variable);
  EXPECT_EQ(seen->tensor.as<float>()[0], 1);
  EXPECT_EQ(first(*variable), 3);
  variable->unpin(seen);
}

TEST(Variable, AnUpdateIsInPlaceUnlessSomebodyReads) {
  auto variable = variable_of({1, 2});
  Variable::Version* seen = nullptr;
  ASSERT_EQ(variable->pin(&seen, nullptr), Variable::Pinned::yes);
  const void* const address = seen->tensor.data();
  add_one(*variable);
  EXPECT_EQ(seen->tensor.as<float>()[0], 1);  // the snapshot
  EXPECT_EQ(first(*variable), 2);
  variable->unpin(seen);
  add_one(*variable);
  add_one(*variable);
  EXPECT_EQ(first(*variable), 4);
  EXPECT_EQ(variable->version(), 4);
  // The retired memory is what the next pinned update writes to.
  ASSERT_EQ(variable->pin(&seen, nullptr), Variable::Pinned::yes);
  add_one(*variable);
  variable->unpin(seen);
  ASSERT_EQ(variable->pin(&seen, nullptr), Variable::Pinned::yes);
  EXPECT_EQ(seen->tensor.data(), address);
  variable->unpin(seen);
}

TEST(Variable, AFailedUpdateOfACopyChangesNothing) {
  auto variable = variable_of({1});
  Variable::Version *seen = nullptr, *written = nullptr;
  ASSERT_EQ(variable->pin(&seen, nullptr), Variable::Pinned::yes);
  ASSERT_EQ(variable->begin_update(&written, nullptr), Variable::Writing::yes);
  written->tensor.as<float>()[0] = 99;
  variable->end_update(written, false);
  variable->unpin(seen);
  EXPECT_EQ(first(*variable), 1);
  EXPECT_EQ(variable->version(), 1);
}

TEST(Variable, WritersQueueInOrderAndReadersGoFirst) {
  auto variable = variable_of({1});
  Variable::Version *written = nullptr, *seen = nullptr;
  ASSERT_EQ(variable->begin_update(&written, nullptr), Variable::Writing::yes);
  Called reader, second, third;
  EXPECT_EQ(variable->pin(&seen, &reader), Variable::Pinned::wait);
  EXPECT_EQ(variable->begin_update(&written, &second), Variable::Writing::wait);
  EXPECT_EQ(variable->begin_assign(&third), Variable::Writing::wait);
  variable->end_update(written, true);
  EXPECT_EQ(reader.calls, 1);
  EXPECT_EQ(second.calls, 1);
  EXPECT_EQ(third.calls, 0);
  EXPECT_EQ(variable->pin(&seen, &reader), Variable::Pinned::yes);
  // The right is kept for the second writer; a stranger does not get in between.
  EXPECT_EQ(variable->begin_assign(nullptr), Variable::Writing::wait);
  EXPECT_EQ(variable->begin_update(&written, &second), Variable::Writing::yes);
  variable->unpin(seen);
  variable->end_update(written, true);
  EXPECT_EQ(third.calls, 1);
  variable->abandon(&third);
  EXPECT_EQ(variable->begin_assign(nullptr), Variable::Writing::yes);
  variable->cancel_assign();
}

TEST(Variable, DestroyWaitsForTheWriterAndKeepsPinnedValues) {
  auto variable = variable_of({1});
  Variable::Version *seen = nullptr, *written = nullptr;
  ASSERT_EQ(variable->pin(&seen, nullptr), Variable::Pinned::yes);
  ASSERT_EQ(variable->begin_update(&written, nullptr), Variable::Writing::yes);
  variable->destroy(cancelled("gone"));
  EXPECT_FALSE(variable->initialized());
  written->tensor.as<float>()[0] = 7;
  variable->end_update(written, true);
  EXPECT_FALSE(variable->initialized());
  EXPECT_EQ(seen->tensor.as<float>()[0], 1);
  variable->unpin(seen);
  Variable::Version* none = nullptr;
  EXPECT_EQ(variable->pin(&none, nullptr), Variable::Pinned::uninitialized);
}

TEST(Variable, AttachingNarrowsTheShapeForEverybody) {
  Variable variable("v", DType::f32, PartialShape::unknown());
  EXPECT_TRUE(variable.attach(DType::f32, Shape::of({2})).ok());
  const Status other = variable.attach(DType::f32, Shape::of({3}));
  EXPECT_EQ(other.code(), Code::invalid_argument);
  EXPECT_NE(other.message().find("float32[2] there and float32[3] here"), std::string::npos) << other.message();
  EXPECT_EQ(variable.attach(DType::f64, Shape::of({2})).code(), Code::invalid_argument);
  ASSERT_EQ(variable.begin_assign(nullptr), Variable::Writing::yes);
  EXPECT_EQ(variable.end_assign(variable.spare(Shape::of({3})).take()).code(), Code::invalid_argument);
  EXPECT_FALSE(variable.initialized());
  ASSERT_EQ(variable.begin_assign(nullptr), Variable::Writing::yes);
  EXPECT_TRUE(variable.end_assign(variable.spare(Shape::of({2})).take()).ok());
  EXPECT_TRUE(variable.initialized());
}

TEST(Variable, NoUpdateIsLostAndNoReadIsTorn) {
  constexpr int kEach = 3000, kCount = 64;
  auto variable = variable_of(std::vector<float>(kCount, 0.0f));
  std::atomic<int> torn{0};
  const auto write = [&] {
    for (int i = 0; i < kEach;) {
      Variable::Version* version = nullptr;
      if (variable->begin_update(&version, nullptr) != Variable::Writing::yes) continue;
      for (int k = 0; k < kCount; ++k) version->tensor.as<float>()[k] += 1;
      variable->end_update(version, true);
      ++i;
    }
  };
  const auto read = [&] {
    for (int i = 0; i < kEach;) {
      Variable::Version* version = nullptr;
      if (variable->pin(&version, nullptr) != Variable::Pinned::yes) continue;
      const float* const values = version->tensor.as<float>();
      for (int k = 1; k < kCount; ++k) torn += values[k] != values[0] ? 1 : 0;
      variable->unpin(version);
      ++i;
    }
  };
  std::thread threads[] = {std::thread(write), std::thread(write), std::thread(read)};
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(first(*variable), 2.0f * kEach);
  EXPECT_EQ(variable->version(), 2 * kEach + 1);
}

// Many that may only give a first value, at once: one of them does, and the others learn that there is one.
TEST(Variable, OneFirstValue) {
  constexpr int kThreads = 4, kRounds = 500;
  std::vector<Ref<Variable>> variables;
  for (int i = 0; i < kRounds; ++i) variables.push_back(make_ref<Variable>("v", DType::f32, Shape::of({1})));
  std::atomic<int> given{0}, refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (const Ref<Variable>& variable : variables) {
        Variable::Writing outcome = Variable::Writing::wait;
        while (outcome == Variable::Writing::wait) outcome = variable->begin_assign(nullptr, false);
        if (outcome == Variable::Writing::has_value) {
          ++refused;
          continue;
        }
        auto fresh = variable->spare(Shape::of({1}));
        fresh.value().as<float>()[0] = static_cast<float>(t);
        given += variable->end_assign(fresh.take()).ok() ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(given, kRounds);
  EXPECT_EQ(refused, kRounds * (kThreads - 1));
  for (const Ref<Variable>& variable : variables) EXPECT_EQ(variable->version(), 1);
}

// Who may not replace waits for its turn like others, and the right to write goes on when it is refused.
TEST(Variable, ARefusedAssignPassesTheTurnOn) {
  const auto variable = make_ref<Variable>("v", DType::f32, Shape::of({1}));
  ASSERT_EQ(variable->begin_assign(nullptr), Variable::Writing::yes);
  Called second, third;
  EXPECT_EQ(variable->begin_assign(&second, false), Variable::Writing::wait);
  EXPECT_EQ(variable->begin_assign(&third), Variable::Writing::wait);
  ASSERT_TRUE(variable->end_assign(variable->spare(Shape::of({1})).take()).ok());
  EXPECT_EQ(second.calls, 1);
  EXPECT_EQ(variable->begin_assign(&second, false), Variable::Writing::has_value);
  EXPECT_EQ(third.calls, 1);
  EXPECT_EQ(variable->begin_assign(&third, true), Variable::Writing::yes);
  variable->cancel_assign();
  // A value that was destroyed is none.
  variable->destroy({});
  EXPECT_EQ(variable->begin_assign(nullptr, false), Variable::Writing::yes);
  variable->cancel_assign();
}

}  // namespace
}  // namespace dtg
