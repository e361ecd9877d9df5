// What a host sees of the library's memory: after it dropped what it had, the system has it back. Public headers only.
#include <fstream>
#include <thread>

#include "../sanitized.h"
#include "world.h"

namespace outside {
namespace {

constexpr bool kSanitized = DTG_SANITIZED;

// MiB that the process has.
long resident() {
  std::ifstream statm("/proc/self/statm");
  long all = 0, pages = 0;
  statm >> all >> pages;
  return pages * sysconf(_SC_PAGESIZE) / (1 << 20);
}

std::vector<dtg_tensor*> tensors(size_t count, int64_t elements) {
  std::vector<dtg_tensor*> list(count);
  for (dtg_tensor*& tensor : list) {
    OK(dtg_tensor_allocate(DTG_F32, &elements, 1, &tensor));
    auto* const data = static_cast<float*>(dtg_tensor_mutable_data(tensor));
    for (int64_t i = 0; i < elements; i += 512) data[i] = 1;
  }
  return list;
}

void release(const std::vector<dtg_tensor*>& list) {
  for (dtg_tensor* tensor : list) dtg_tensor_release(tensor);
}

TEST(Memory, OfDroppedTensorsGoesBackToTheSystem) {
  if (kSanitized) GTEST_SKIP() << "the sanitizers keep freed memory themselves";
  release(tensors(1, 10));
  const long before = resident();
  for (const int64_t elements : {int64_t{250'000}, int64_t{30'000}, int64_t{1'000'000}}) {
    const auto list = tensors(static_cast<size_t>(100'000'000 / elements), elements);
    const long full = resident() - before;
    EXPECT_GT(full, 300) << elements;
    std::thread([&] { release(list); }).join();  // as a garbage collector does
    EXPECT_LT(resident() - before, full / 5) << elements;
  }
}

// One of a thousand lives on, far from its like, whichever thread dropped the others.
TEST(Memory, OfSmallTensorsGoesBackToo) {
  if (kSanitized) GTEST_SKIP() << "the sanitizers keep freed memory themselves";
  release(tensors(1, 10));
  const long before = resident();
  for (const int64_t elements : {int64_t{1'000}, int64_t{4'000}, int64_t{15'000}}) {
    for (const bool elsewhere : {false, true}) {
      auto list = tensors(static_cast<size_t>(100'000'000 / elements), elements);
      std::vector<dtg_tensor*> kept;
      for (size_t i = 0; i < list.size(); i += 1000) kept.push_back(std::exchange(list[i], nullptr));
      const long full = resident() - before;
      EXPECT_GT(full, 300) << elements;
      if (elsewhere) std::thread([&] { release(list); }).join();
      else release(list);
      EXPECT_LT(resident() - before, full / 4) << elements << (elsewhere ? " by another thread" : "");
      release(kept);
    }
  }
}

TEST(Memory, OfSmallTensorsGoesBackWhenItIsTrimmed) {
  if (kSanitized) GTEST_SKIP() << "the sanitizers keep freed memory themselves";
  release(tensors(1, 10));
  OK(dtg_runtime_trim(nullptr));  // what lies idle after other tests would be used again, and not be seen to grow
  const long before = resident();
  const auto list = tensors(50'000, 1'000);
  const long full = resident() - before;
  EXPECT_GT(full, 150);
  release(list);
  OK(dtg_runtime_trim(nullptr));
  EXPECT_LT(resident() - before, full / 4);
}

}  // namespace
}  // namespace outside
