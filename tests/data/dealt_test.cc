// A data set of which somebody else says which element comes next: what is handed out is what a walk through that epoch finds there.
#include "data/dealt.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>

namespace dtg {
namespace {

DatasetPtr numbers() { return make_batch(make_shuffle(make_range(0, 23, 1).take(), 0, 7).take(), 3, false).take(); }

std::vector<int64_t> values(const Element& element) {
  const auto all = element[0].values<int64_t>();
  return {all.begin(), all.end()};
}

// By epoch and number.
std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> walk(int64_t epochs) {
  std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> all;
  const DatasetPtr data = numbers();
  Element element;
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    for (int64_t index = 0; data->next(element).take(); ++index) all[{epoch, index}] = values(element);
    EXPECT_TRUE(data->restart().ok());
  }
  return all;
}

TEST(Dealt, AnElementIsThatOfItsEpochWhateverCameBefore) {
  const auto all = walk(4);
  ASSERT_EQ(all.size(), 32u);
  EXPECT_NE(all.at({0, 0}), all.at({1, 0}));
  std::mt19937 random(3);
  DealtElement given;
  const auto dealt = make_dealt(numbers(), [&](int64_t) -> Result<DealtElement> { return given; }).take();
  Element element;
  for (int i = 0; i < 300; ++i) {
    given = {std::uniform_int_distribution<int64_t>(0, 3)(random), std::uniform_int_distribution<int64_t>(0, 7)(random)};
    ASSERT_TRUE(dealt->next(element).take());
    ASSERT_EQ(values(element), all.at({given.epoch, given.index})) << given.epoch << ", " << given.index;
    ASSERT_EQ(dealt->last().index, given.index);
  }
}

TEST(Dealt, TheDealerSaysWhenAnEpochIsOver) {
  std::deque<DealtElement> answers = {{2, 1}, {2, 6}, {3, -1}, {3, 0}, {5, -1}, {5, 2}};
  std::vector<int64_t> asked;
  const auto dealt = make_dealt(numbers(), [&](int64_t epoch) -> Result<DealtElement> {
                       asked.push_back(epoch);
                       const DealtElement next = answers.front();
                       answers.pop_front();
                       return next;
                     }).take();
  Element element;
  EXPECT_TRUE(dealt->restart().ok()) << "nothing has begun";
  EXPECT_TRUE(dealt->next(element).take());
  EXPECT_TRUE(dealt->next(element).take());
  EXPECT_FALSE(dealt->next(element).take());
  EXPECT_FALSE(dealt->next(element).take()) << "again and again";
  EXPECT_EQ(dealt->last().epoch, 3);
  EXPECT_TRUE(dealt->restart().ok());
  EXPECT_TRUE(dealt->next(element).take());
  EXPECT_TRUE(dealt->restart().ok());
  EXPECT_FALSE(dealt->next(element).take()) << "it was away for an epoch";
  EXPECT_TRUE(dealt->restart().ok());
  EXPECT_TRUE(dealt->next(element).take());
  EXPECT_EQ(asked, (std::vector<int64_t>{-1, 2, 2, 3, 4, 5}));
  EXPECT_EQ(dealt->skip(1).status().code(), Code::unimplemented);
}

TEST(Dealt, SaysWhatIsWrongWithTheData) {
  const Dealer none = [](int64_t) -> Result<DealtElement> { return DealtElement{0, 8}; };
  EXPECT_EQ(make_dealt(make_repeat(numbers(), -1).take(), none).status().code(), Code::invalid_argument);
  EXPECT_EQ(make_dealt(make_take(numbers(), 0).take(), none).status().message(),
            "deal a data set: it has no elements; give one of which it is known how many elements an epoch has");
  const auto dealt = make_dealt(numbers(), none).take();
  Element element;
  EXPECT_EQ(dealt->next(element).status().code(), Code::data_loss);
  const auto fails = make_dealt(numbers(), [](int64_t) -> Result<DealtElement> { return unavailable("gone"); }).take();
  EXPECT_EQ(fails->next(element).status().code(), Code::unavailable);
}

}  // namespace
}  // namespace dtg
