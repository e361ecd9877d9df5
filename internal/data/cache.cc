// The cache stage: keeps the elements of its source as they came, so that later epochs are read from memory. Its source is read through
// once, however many epochs that takes; it is begun anew only when a position is gone to. Belongs to the thread of its pipeline.
#include "base/reservation.h"
#include "data/dataset.h"
#include "data/position.h"

namespace dtg {
namespace {

class Cache final : public Dataset {
 public:
  Cache(DatasetPtr source, MemoryBudget* budget) : source_(std::move(source)), held_(budget, 0) {
    if (source_->table()) stand_on(source_->table());
    else spec_ = source_->spec();
  }

  Status restart() override {
    at_ = 0;
    return {};
  }
  Status forget() override {
    // First, for a thread below may still be filling.
    DTG_TRY(source_->restart());
    kept_.clear();
    if (held_.budget) held_.budget->release(held_.bytes);
    held_.bytes = 0;
    complete_ = begun_ = false;
    return {};
  }
  int64_t cardinality() const override { return complete_ ? static_cast<int64_t>(kept_.size()) : source_->cardinality(); }

  Result<bool> pull(Item& item) override {
    DTG_ASSIGN(const int64_t passed, skip(1));
    if (passed == 0) return false;
    item.row = kept_[at_ - 1].row;
    item.tensors = kept_[at_ - 1].tensors;
    return true;
  }
  Result<int64_t> skip(int64_t count) override {
    for (int64_t passed = 0; passed < count; ++passed, ++at_) {
      if (at_ < kept_.size()) continue;
      DTG_ASSIGN(const bool more, keep_one());
      if (!more) return passed;
    }
    return count;
  }

  Dataset* source() const override { return source_.get(); }
  // As they were when the first element was kept: those of now are of no use to who has to read them again.
  const std::vector<int64_t>* epochs_below() const override { return begun_ ? &epochs_ : nullptr; }
  std::string stage() const override { return "cache"; }

 private:
  Result<bool> keep_one() {
    if (complete_) return false;
    if (!begun_) {
      epochs_ = epochs_of(*source_);
      begun_ = true;
    }
    Item item;
    DTG_ASSIGN(const bool more, source_->pull(item));
    complete_ = !more;
    if (!more) return false;
    int64_t bytes = sizeof(Item);
    for (const Tensor& tensor : item.tensors) bytes += tensor.bytes();
    DTG_TRY(held_.grow(bytes, "a cached data set"));
    kept_.push_back(std::move(item));
    return true;
  }

  const DatasetPtr source_;
  Reservation held_;
  std::vector<Item> kept_;
  std::vector<int64_t> epochs_;
  size_t at_ = 0;
  bool begun_ = false;     // the source was asked
  bool complete_ = false;  // it has ended
};

}  // namespace

Result<DatasetPtr> make_cache(DatasetPtr source, MemoryBudget* budget) {
  if (source->cardinality() == Dataset::kInfinite) return invalid_argument("cache a data set: it never ends; cache it before repeat");
  return DatasetPtr(new Cache(std::move(source), budget));
}

}  // namespace dtg
