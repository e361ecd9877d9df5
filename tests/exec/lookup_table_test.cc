// LookupTable under several threads: nobody waits for the whole of another's operation, entries are whole, and what fills or replaces a
// table does so as one.
#include "exec/lookup_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "exec/memory_pool.h"

namespace dtg {
namespace {

using Entries = LookupTable::Entries;

// What a kernel is run with.
struct Call {
  Ref<MemoryPool> memory = make_ref<MemoryPool>(nullptr);
  Pool pool{Pool::Options{.threads = 1}};
  Slots slots{1, 0, false, *memory};
  Step step{1, Deadline::never()};
  RunContext context{slots, nullptr, step, pool};
};

Ref<LookupTable> table_of(LookupTable::Form form = LookupTable::Form::growing, const Shape& row = Shape()) {
  return make_ref<LookupTable>("t", LookupTable::Spec{.form = form, .keys = DType::i64, .values = DType::i64, .row = row});
}
std::vector<int64_t> up_to(int64_t count) {
  std::vector<int64_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}
Entries both(const std::vector<int64_t>& keys) { return {keys.data(), keys.data(), static_cast<int64_t>(keys.size())}; }

int64_t find(const LookupTable& table, int64_t key) {
  Call call;
  int64_t none = -1, value = -2;
  EXPECT_TRUE(table.find(call.context, &key, 1, &none, true, &value).ok());
  return value;
}

// Sizes that another thread sees while `work` is done.
template <class Work>
std::vector<int64_t> sizes_during(const LookupTable& table, const Work& work) {
  std::atomic<bool> over{false};
  std::thread worker([&] {
    work();
    over = true;
  });
  std::vector<int64_t> seen;
  while (!over) {
    const int64_t size = table.size();
    EXPECT_TRUE(find(table, size) >= -1);
    if (seen.empty() || seen.back() != size) seen.push_back(size);
  }
  worker.join();
  return seen;
}

TEST(LookupTable, NobodyWaitsForALongInsertOrRemoval) {
  const Ref<LookupTable> table = table_of();
  const std::vector<int64_t> keys = up_to(1'000'000);
  const auto growing = sizes_during(*table, [&] { EXPECT_TRUE(table->insert(both(keys)).ok()); });
  EXPECT_GT(growing.size(), 10u);
  EXPECT_TRUE(std::ranges::is_sorted(growing));
  EXPECT_EQ(table->size(), 1'000'000);
  EXPECT_EQ(find(*table, 777), 777);
  const auto shrinking = sizes_during(*table, [&] { EXPECT_TRUE(table->remove(keys.data(), 1'000'000).ok()); });
  EXPECT_GT(shrinking.size(), 10u);
  EXPECT_EQ(table->size(), 0);
  EXPECT_EQ(find(*table, 777), -1);
}

TEST(LookupTable, ImportsAndFillsAsOne) {
  const Ref<LookupTable> table = table_of();
  const std::vector<int64_t> few = up_to(10), many = up_to(300'000);
  ASSERT_TRUE(table->insert(both(few)).ok());
  for (const int64_t size : sizes_during(*table, [&] { EXPECT_TRUE(table->import(both(many)).ok()); })) {
    EXPECT_TRUE(size == 10 || size == 300'000) << size;
  }
  for (const int64_t size : sizes_during(*table, [&] { EXPECT_TRUE(table->import(both(few)).ok()); })) {
    EXPECT_TRUE(size == 10 || size == 300'000) << size;
  }
  EXPECT_EQ(table->size(), 10);

  const Ref<LookupTable> fixed = table_of(LookupTable::Form::fixed);
  const std::vector<int64_t> twice = {1, 2, 1}, others = {1, 2, 3};
  EXPECT_EQ(fixed->initialize({twice.data(), others.data(), 3}).code(), Code::invalid_argument);
  Call call;
  int64_t key = 1, none = -1, value = 0;
  EXPECT_EQ(fixed->find(call.context, &key, 1, &none, true, &value).code(), Code::failed_precondition);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { EXPECT_TRUE(fixed->initialize(both(many)).ok()); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fixed->size(), 300'000);
  EXPECT_TRUE(fixed->initialize(both(many)).ok());
  EXPECT_EQ(fixed->initialize(both(few)).code(), Code::failed_precondition);
}

// Two write the same keys, another one takes them out, and all that is read was written as one.
TEST(LookupTable, ValuesAreWhole) {
  constexpr int64_t kKeys = 50, kWidth = 40;
  const Ref<LookupTable> table = table_of(LookupTable::Form::growing, Shape::of({kWidth}));
  const std::vector<int64_t> keys = up_to(kKeys);
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int64_t t = 1; t <= 2; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t round = 0; !over; ++round) {
        const std::vector<int64_t> rows(kKeys * kWidth, round * 2 + t);
        EXPECT_TRUE(table->insert({keys.data(), rows.data(), kKeys}).ok());
      }
    });
  }
  threads.emplace_back([&] {
    while (!over) EXPECT_TRUE(table->remove(keys.data(), kKeys / 2).ok());
  });
  int64_t found = 0;
  for (int round = 0; round < 2000 || (found == 0 && round < 100'000); ++round) {
    Call call;
    std::vector<int64_t> none(kWidth, -1), rows(kKeys * kWidth);
    ASSERT_TRUE(table->find(call.context, keys.data(), kKeys, none.data(), true, rows.data()).ok());
    for (int64_t k = 0; k < kKeys; ++k) {
      const int64_t* const row = rows.data() + k * kWidth;
      ASSERT_TRUE(std::all_of(row, row + kWidth, [&](int64_t value) { return value == row[0]; })) << k;
      found += row[0] >= 0;
    }
    const Status exported = table->export_all(call.context, [&](int64_t count, void** to_keys, void** to_values) {
      EXPECT_LE(count, kKeys);
      none.resize(static_cast<size_t>(count));
      rows.resize(static_cast<size_t>(count * kWidth));
      *to_keys = none.data();
      *to_values = rows.data();
      return Status();
    });
    ASSERT_TRUE(exported.ok());
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(found, 0);
  EXPECT_LE(table->size(), kKeys);
}

}  // namespace
}  // namespace dtg
