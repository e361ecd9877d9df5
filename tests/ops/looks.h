// Looks: how late a deadline may be told inside of a kernel. Each op of a table runs once on an input that takes it a while, under an
// interrupt that is never due but measures how much the thread computed from one look to the next. The longest such stretch is what a
// deadline in the midst of the kernel would come late by. Time of the thread, not of the clock, so that a loaded machine does not matter.
//
// Owner: the test that derives from it; used from one thread.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>
#include <functional>

#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg::looks {

inline double thread_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

class Watch final : public Interrupt {
 public:
  bool is_due() override {
    const double now = thread_ms();
    if (begun_ < 0) begun_ = now;
    else longest_ = std::max(longest_, now - last_);
    last_ = now;
    return false;
  }
  double longest() const { return longest_; }
  double whole() const { return last_ - begun_; }

 private:
  double begun_ = -1, last_ = 0, longest_ = 0;
};

using Dims = std::initializer_list<int64_t>;

// ---- what is fed ----

template <class T, class Value>
Tensor each(Dims dims, const Value& value) {
  const Shape shape = one_op::shape(dims);
  Tensor tensor = Tensor::allocate(dtype_of<T>, shape).take();
  for (int64_t i = 0; i < shape.count(); ++i) tensor.as<T>()[i] = static_cast<T>(value(i));
  return tensor;
}

// A number in [0, 1) that looks like any other.
inline double noise(int64_t i) {
  uint64_t x = static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15u + 0x632BE59BD9B4E019u;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9u;
  x ^= x >> 32;
  return static_cast<double>(x >> 11) * 0x1p-53;
}

inline Tensor floats(Dims dims) {
  return each<float>(dims, [](int64_t i) { return noise(i) - 0.5; });
}
inline Tensor whole(Dims dims, double below) {
  return each<int32_t>(dims, [below](int64_t i) { return noise(i) * below; });
}
inline Tensor rising(int64_t count, double below) {
  return each<int32_t>({count}, [&](int64_t i) { return static_cast<double>(i) / static_cast<double>(count) * below; });
}
inline Tensor dominant(int64_t n) {
  return each<float>({n, n}, [n](int64_t i) { return i / n == i % n ? static_cast<double>(n) : noise(std::min(i, i % n * n + i / n)); });
}
inline Tensor number(int32_t value) { return one_op::scalar<int32_t>(value); }
inline Tensor longs(Dims dims, const std::vector<int64_t>& values) { return one_op::values<int64_t>(dims, values); }
inline Tensor ints(const std::vector<int32_t>& values) { return one_op::values<int32_t>({static_cast<int64_t>(values.size())}, values); }

// ---- the table ----

struct Case {
  const char* op;
  std::function<std::vector<Tensor>()> inputs;
  std::vector<Attr> attrs;
};

inline constexpr int64_t kMany = 8'000'000;

class Looks : public testing::Test {
 protected:
  // A stretch that long is felt. Builds that are not optimised are judged by the share of the whole.
#ifdef NDEBUG
  static double allowed_ms(double) { return 50; }
#else
  static double allowed_ms(double whole) { return std::max(50.0, whole / 8); }
#endif

  // `share`: of the whole a stretch may be no more than that, if it is to be judged by that.
  void look(const std::vector<Case>& cases, double share = 0) {
    OneOp one({ops::register_all});
    ResourceStore store;
    one.use_store(&store);
    for (const Case& each : cases) {
      const std::vector<Tensor> inputs = each.inputs();
      double longest = 0, whole = 0;
      const auto allowed = [&] { return share > 0 ? std::max(5.0, whole * share) : allowed_ms(whole); };
      // What a stretch takes is the least that it ever took: pages that the system has to find, and neighbours, only add to it.
      for (int turn = 0; turn < 3 && (turn == 0 || longest > allowed()); ++turn) {
        Watch watch;
        OneOp::Options options;
        options.known = OneOp::Known::values;
        options.interrupt = &watch;
        const auto out = one.run(each.op, inputs, each.attrs, options);
        ASSERT_TRUE(out.ok()) << each.op << ": " << out.status().message();
        whole = watch.whole();
        longest = turn == 0 ? watch.longest() : std::min(longest, watch.longest());
      }
      std::printf("%-36s %8.0f ms, at most %6.1f ms without a look\n", each.op, whole, longest);
      EXPECT_LE(longest, allowed()) << each.op << " of " << whole << " ms";
    }
  }
};

}  // namespace dtg::looks
