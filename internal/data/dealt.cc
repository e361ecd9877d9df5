// Goes to the element that was dealt: mostly the one behind the last or a few further, at times back to one that another worker had.
#include "data/dealt.h"

#include <optional>
#include <utility>

#include "data/position.h"

namespace dtg {
namespace {

class DealtStage final : public Dealt {
 public:
  DealtStage(DatasetPtr source, Dealer dealer, std::string task)
      : dealer_(std::move(dealer)), task_(std::move(task)), source_(std::move(source)) {
    spec_ = source_.data().spec();
  }
  Status begin() {
    DTG_ASSIGN(first_, source_.position());
    begins_ = first_;
    return {};
  }

  Result<bool> pull(Item& item) override {
    if (over_) return false;
    asked_ = true;
    DTG_ASSIGN(const DealtElement given, ask());
    if (given.index < 0) {
      if (epoch_ < 0) epoch_ = given.epoch;
      last_ = given;
      over_ = true;
      return false;
    }
    DTG_TRY(go_to(given));
    item.row = -1;
    // Where it fails, nobody knows what the source has passed.
    at_.reset();
    DTG_ASSIGN(const bool more, source_.next(item.tensors));
    if (!more) return is_short(given);
    at_ = DealtElement{given.epoch, given.index + 1};
    epoch_ = given.epoch;
    last_ = given;
    return true;
  }

  Status restart() override {
    if (std::exchange(asked_, false) && epoch_ >= 0) ++epoch_;
    over_ = false;
    return {};
  }
  Result<int64_t> skip(int64_t count) override {
    if (count == 0) return 0;
    return unimplemented("pass over %lld elements of a data set that is dealt: which come next is not known before they are asked for",
                         static_cast<long long>(count));
  }
  int64_t cardinality() const override { return kUnknown; }
  std::string stage() const override { return "dealt(" + source_.text() + ")"; }
  int64_t epoch() const override { return epoch_ < 0 ? 0 : epoch_; }
  int batch_rank() const override { return source_.data().batch_rank(); }
  DealtElement last() const override { return last_; }

 private:
  // Where the weights, and the ledger with them, were set back to an earlier epoch, that one is gone on with.
  Result<DealtElement> ask() {
    constexpr int kSetBacksMost = 100;
    for (int i = 0; i < kSetBacksMost; ++i) {
      DTG_ASSIGN(const DealtElement given, dealer_(epoch_));
      if (given.epoch < 0 || given.epoch > kEpochsMost) {
        return data_loss("read a dealt data set: the ledger of the job is in epoch %lld, which cannot be right; restore a checkpoint",
                         static_cast<long long>(given.epoch));
      }
      if (given.index >= 0 || given.epoch >= epoch_) return given;
      epoch_ = given.epoch;
    }
    return aborted("read a dealt data set: the epoch was set back %d times while this worker asked; are weights restored again and again?",
                   kSetBacksMost)
        .at_task(task_)
        .in_phase("run");
  }
  static Status is_short(DealtElement wanted) {
    return data_loss("hand out element %lld of epoch %lld, which was dealt to this worker: the data set has fewer; is it the same for all?",
                     static_cast<long long>(wanted.index), static_cast<long long>(wanted.epoch));
  }
  // Its epoch begins where so many restarts lead from the first one.
  Status go_to(DealtElement wanted) {
    if (!at_ || wanted.epoch < at_->epoch) {
      at_.reset();
      DTG_TRY(source_.move_to(first_));
      at_ = DealtElement{0, 0};
      begins_ = first_;
    }
    if (wanted.epoch > at_->epoch) {
      DealtElement reached = *at_;
      at_.reset();
      for (; reached.epoch < wanted.epoch; ++reached.epoch) DTG_TRY(source_.restart());
      DTG_ASSIGN(begins_, source_.position());
      at_ = DealtElement{wanted.epoch, 0};
    }
    const int64_t further = wanted.index - at_->index;
    if (further == 0) return {};
    at_.reset();
    if (further < 0) {
      DTG_TRY(source_.move_to({wanted.index, begins_.epochs}));
    } else {
      DTG_ASSIGN(const int64_t passed, source_.data().skip(further));
      if (passed < further) return is_short(wanted);
    }
    at_ = wanted;
    return {};
  }

  static constexpr int64_t kEpochsMost = int64_t{1} << 20;  // going there takes as many restarts
  const Dealer dealer_;
  const std::string task_;
  Reading source_;
  DataPosition first_, begins_;     // of epoch 0, and of the epoch that the source stands in
  std::optional<DealtElement> at_;  // which element the source would hand out now; none: nobody can tell
  int64_t epoch_ = -1;              // whose elements are asked for
  bool over_ = false;
  bool asked_ = false;  // since it was restarted
  DealtElement last_;
};

}  // namespace

Result<std::unique_ptr<Dealt>> make_dealt(DatasetPtr source, Dealer dealer, std::string task) {
  const int64_t elements = source->cardinality();
  if (elements < 1) {
    return invalid_argument("deal a data set: %s; give one of which it is known how many elements an epoch has",
                            elements == 0                    ? "it has no elements"
                            : elements == Dataset::kInfinite ? "it has no end"
                                                             : "how many elements it has is not known before they are read");
  }
  auto dealt = std::make_unique<DealtStage>(std::move(source), std::move(dealer), std::move(task));
  DTG_TRY(dealt->begin());
  return std::unique_ptr<Dealt>(std::move(dealt));
}

}  // namespace dtg
