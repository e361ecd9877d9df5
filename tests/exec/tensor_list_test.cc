// TensorList against vectors: any of the lists that came from one another is changed and looked at, in any order. One thread.
#include "exec/tensor_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "exec/memory_pool.h"
#include "scratch.h"

namespace dtg {
namespace {

using Item = TensorList::Item;

struct Pair {
  Ref<TensorList> list;
  std::vector<float> model;
};

class Lists {
 public:
  explicit Lists(uint32_t seed) : random_(seed) {
    pairs_.push_back({make_ref<TensorList>(DType::f32, PartialShape::unknown(), std::vector<Item>()), {}});
  }

  void step() {
    const Pair& from = pick();
    const auto size = static_cast<uint32_t>(from.model.size());
    Pair made = from;
    switch (size == 0 ? 0 : draw(4)) {
      case 0:
      case 1:
        made.model.push_back(++last_);
        made.list = from.list->pushed(pushed_item(*from.list, last_));
        break;
      case 2: {
        Item popped;
        made.list = from.list->popped(&popped);
        EXPECT_EQ(first(popped), made.model.back());
        made.model.pop_back();
        held_.push_back({popped, first(popped)});
        break;
      }
      default: {
        const uint32_t at = draw(size);
        made.model[at] = ++last_;
        made.list = from.list->with(at, pushed_item(*from.list, last_));
      }
    }
    pairs_.push_back(std::move(made));
    if (pairs_.size() > 12) pairs_.erase(pairs_.begin() + draw(static_cast<uint32_t>(pairs_.size())));
  }

  void check() {
    const Pair& pair = pick();
    ASSERT_EQ(pair.list->size(), static_cast<int64_t>(pair.model.size()));
    const std::vector<Item> items = pair.list->items();
    for (size_t i = 0; i < items.size(); ++i) ASSERT_EQ(first(items[i]), pair.model[i]) << i;
    for (const auto& [item, value] : held_) ASSERT_EQ(first(item), value);
  }

 private:
  uint32_t draw(uint32_t below) { return random_() % below; }
  const Pair& pick() { return draw(3) ? pairs_.back() : pairs_[draw(static_cast<uint32_t>(pairs_.size()))]; }
  // Of the length that the value says, so that an overrun hits a neighbour.
  Item pushed_item(const TensorList& list, float value) {
    const int64_t length = 1 + static_cast<int64_t>(value) % 3000;
    Item item;
    item.tensor = list.room(*pool_, Shape::of({length})).take();
    std::fill_n(item.tensor.as<float>(), length, value);
    return item;
  }
  static float first(const Item& item) {
    const auto all = item.tensor.values<float>();
    EXPECT_EQ(std::ranges::count(all, all[0]), static_cast<int64_t>(all.size()));
    return all[0];
  }

  std::mt19937 random_;
  const Ref<MemoryPool> pool_ = make_ref<MemoryPool>(nullptr);
  float last_ = 0;
  std::vector<Pair> pairs_;
  std::vector<std::pair<Item, float>> held_;
};

TEST(TensorList, IsAValueWhateverIsDoneWithItsLike) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Lists lists(seed);
    for (int i = 0; i < 400; ++i) {
      lists.step();
      lists.check();
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// As many as a loop has rounds lie in few blocks, and of a list with one element no more is held than that.
// A loop can make a list in a list in a list, as deep as it has rounds; to let go of it takes no stack. So do lists of which each has
// several, others' too.
TEST(TensorList, IsLetGoOfHoweverDeepItIs) {
  const auto empty = [] { return make_ref<TensorList>(DType::variant, PartialShape::unknown(), std::vector<Item>()); };
  Ref<TensorList> deep = empty(), shared = empty();
  for (int level = 0; level < 300000; ++level) {
    Ref<TensorList> next = empty()->pushed({{}, deep});
    if (level % 3 == 0) next = next->pushed({{}, shared})->pushed({{}, empty()});
    if (level % 5 == 0) next = next->with(0, {{}, deep});
    deep = std::move(next);
  }
  const Ref<TensorList> kept = deep->at(0).list;
  deep = nullptr;
  EXPECT_GE(kept->size(), 1);
  EXPECT_EQ(shared->size(), 0);
}

// Lists that would hold themselves, by way of the newer one that has the element: what they hold goes when nobody has them.
TEST(TensorList, WhatWouldHoldItselfIsKeptApart) {
  const Tensor tensor = Tensor::scalar(1.0f).take();
  const auto empty = [] { return make_ref<TensorList>(DType::variant, PartialShape::unknown(), std::vector<Item>()); };
  const auto pushed = [](const Ref<TensorList>& list, const Ref<TensorList>& element) {
    const Item item{{}, element};
    return (list->leads_back(item) ? list->apart() : list)->pushed(item);
  };
  {
    const auto leaf = make_ref<TensorList>(DType::f32, PartialShape::unknown(), std::vector<Item>{{tensor, {}}});
    Ref<TensorList> self = pushed(empty(), leaf), a = pushed(empty(), leaf), b = pushed(empty(), leaf);
    EXPECT_FALSE(self->leads_back({{}, leaf}));
    EXPECT_TRUE(self->leads_back({{}, self}));
    for (int round = 0; round < 20; ++round) {
      const Ref<TensorList> before = self;
      self = pushed(self, self);
      EXPECT_EQ(self->size(), before->size() + 1);
      EXPECT_EQ(before->size(), round + 1);
      EXPECT_EQ(self->at(round + 1).list->size(), round + 1);
      const Ref<TensorList> of_a = pushed(a, b);
      b = pushed(b, a);
      a = of_a;
    }
    Item last;
    const Ref<TensorList> shorter = self->popped(&last);
    self = pushed(shorter, self);
  }
  EXPECT_EQ(tensor.buffer()->ref_count(), 1);
}

TEST(TensorList, ElementsThatArePushedShareBlocks) {
  const auto pool = make_ref<MemoryPool>(nullptr);
  auto list = make_ref<TensorList>(DType::f32, PartialShape::unknown(), std::vector<Item>());
  const Shape shape = Shape::of({256});
  std::vector<const Buffer*> blocks;
  for (int i = 0; i < 1000; ++i) {
    Item item;
    item.tensor = list->room(*pool, shape).take();
    if (blocks.empty() || blocks.back() != item.tensor.buffer().get()) blocks.push_back(item.tensor.buffer().get());
    list = list->pushed(std::move(item));
    if (i == 0) {
      EXPECT_EQ(pool->held_bytes(), 1024);
    }
  }
  EXPECT_LE(blocks.size(), 25u);
  EXPECT_LE(pool->held_bytes(), 1000 * 1024 * 11 / 10);
  list = nullptr;
  pool->trim(0);
  EXPECT_EQ(pool->held_bytes(), 0);
}

TEST(TensorList, AnElementThatCannotBeIsRefused) {
  const auto pool = make_ref<MemoryPool>(nullptr);
  const auto list = make_ref<TensorList>(DType::f64, PartialShape::unknown(), std::vector<Item>());
  EXPECT_EQ(list->room(*pool, Shape::of({int64_t{1} << 61})).status().code(), Code::resource_exhausted);
}

}  // namespace
}  // namespace dtg
