// A data set of which somebody else says which element comes next: what is handed out is what a walk through that epoch finds there.
#include "data/dealt.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>
#include <random>
#include <utility>

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

// Gives the answers in their order, and notes which epochs were asked for.
Dealer in_turn(std::deque<DealtElement>& answers, std::vector<int64_t>& asked) {
  return [&](int64_t epoch) -> Result<DealtElement> {
    asked.push_back(epoch);
    const DealtElement next = answers.front();
    answers.pop_front();
    return next;
  };
}

TEST(Dealt, TheDealerSaysWhenAnEpochIsOver) {
  std::deque<DealtElement> answers = {{2, 1}, {2, 6}, {3, -1}, {3, 0}, {5, -1}, {5, 2}};
  std::vector<int64_t> asked;
  const auto dealt = make_dealt(numbers(), in_turn(answers, asked)).take();
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

TEST(Dealt, GoesBackWithALedgerThatWasSetBack) {
  std::deque<DealtElement> answers = {{5, 1}, {3, -1}, {3, 2}, {3, -1}, {2, -1}, {2, 0}};
  std::vector<int64_t> asked;
  const auto dealt = make_dealt(numbers(), in_turn(answers, asked)).take();
  Element element;
  EXPECT_TRUE(dealt->next(element).take());
  EXPECT_TRUE(dealt->next(element).take()) << "of epoch 3, without a word";
  EXPECT_EQ(dealt->last().epoch, 3);
  EXPECT_TRUE(dealt->restart().ok());
  EXPECT_TRUE(dealt->restart().ok()) << "twice is once, as nothing was asked for";
  EXPECT_TRUE(dealt->next(element).take());
  EXPECT_EQ(asked, (std::vector<int64_t>{-1, 5, 3, 4, 3, 2}));
  const auto endless = make_dealt(numbers(), [](int64_t epoch) -> Result<DealtElement> {
                         return DealtElement{epoch < 0 ? 1000 : epoch - 1, epoch < 0 ? 0 : -1};
                       }).take();
  EXPECT_TRUE(endless->next(element).take());
  EXPECT_EQ(endless->next(element).status().code(), Code::aborted);
}

// Numbers; the third is passed, and lost, when it is asked for the first time.
class FailsOnce final : public Dataset {
 public:
  FailsOnce() { spec_.push_back({DType::i64, PartialShape::of_rank(1)}); }
  Status restart() override {
    at_ = 0;
    return {};
  }
  int64_t cardinality() const override { return 8; }
  Result<bool> pull(Item& item) override {
    if (at_ == 8) return false;
    const int64_t number = at_++;
    if (number == 2 && !std::exchange(failed_, true)) return unavailable("once");
    item.row = -1;
    DTG_ASSIGN(Tensor one, Tensor::of<int64_t>(Shape::of({1}), std::array<int64_t, 1>{number}));
    item.tensors = {std::move(one)};
    return true;
  }

 private:
  int64_t at_ = 0;
  bool failed_ = false;
};

TEST(Dealt, AfterAFailureTheElementIsTheSame) {
  DealtElement given{0, 0};
  const auto dealt = make_dealt(DatasetPtr(new FailsOnce), [&](int64_t) -> Result<DealtElement> { return given; }).take();
  Element element;
  for (; given.index < 2; ++given.index) ASSERT_TRUE(dealt->next(element).take());
  EXPECT_EQ(dealt->next(element).status().code(), Code::unavailable);
  const auto again = dealt->next(element);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(values(element), std::vector<int64_t>{2});
}

TEST(Dealt, SaysWhatIsWrongWithTheData) {
  const Dealer none = [](int64_t) -> Result<DealtElement> { return DealtElement{0, 8}; };
  EXPECT_EQ(make_dealt(make_repeat(numbers(), -1).take(), none).status().code(), Code::invalid_argument);
  EXPECT_EQ(make_dealt(make_take(numbers(), 0).take(), none).status().message(),
            "deal a data set: it has no elements; give one of which it is known how many elements an epoch has");
  const auto dealt = make_dealt(numbers(), none).take();
  Element element;
  EXPECT_EQ(dealt->next(element).status().code(), Code::data_loss);
  const auto endless = make_dealt(numbers(), [](int64_t) -> Result<DealtElement> { return DealtElement{int64_t{1} << 60, 0}; }).take();
  EXPECT_EQ(endless->next(element).status().code(), Code::data_loss) << "and not so many restarts";
  const auto fails = make_dealt(numbers(), [](int64_t) -> Result<DealtElement> { return unavailable("gone"); }).take();
  EXPECT_EQ(fails->next(element).status().code(), Code::unavailable);
}

}  // namespace
}  // namespace dtg
