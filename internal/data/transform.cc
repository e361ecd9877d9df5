// The stages that choose and order elements without looking into them: shuffle, shard, repeat, take, skip. Each owns
// its source and belongs to the thread of its pipeline; see dataset.h for what they do.
#include <algorithm>

#include "data/dataset.h"
#include "data/order.h"

namespace dtg {
namespace {

long long ll(int64_t value) { return static_cast<long long>(value); }

// The table and the spec are those of the source.
class Selection : public Dataset {
 public:
  explicit Selection(DatasetPtr source) : source_(std::move(source)) {
    if (source_->table()) {
      stand_on(source_->table());
    } else {
      spec_ = source_->spec();
    }
  }

  Dataset* source() const override { return source_.get(); }

 protected:
  const DatasetPtr source_;
};

class Shuffle final : public Selection {
 public:
  Shuffle(DatasetPtr source, int64_t buffer, uint64_t seed, bool reshuffle)
      : Selection(std::move(source)), capacity_(buffer == 0 ? INT64_MAX : buffer), seed_(seed), reshuffle_(reshuffle), order_(seed, 0) {}

  Status restart() override {
    DTG_TRY(source_->restart());
    buffer_.clear();
    exhausted_ = false;
    if (reshuffle_) ++epoch_;
    order_ = Order(seed_, epoch_);
    return {};
  }

  int64_t cardinality() const override { return source_->cardinality(); }

  Result<bool> pull(Item& item) override {
    while (!exhausted_ && static_cast<int64_t>(buffer_.size()) < capacity_) {
      Item fresh;
      DTG_ASSIGN(const bool more, source_->pull(fresh));
      if (more) buffer_.push_back(std::move(fresh));
      exhausted_ = !more;
    }
    if (buffer_.empty()) return false;
    Item& drawn = buffer_[order_.below(buffer_.size())];
    item = std::move(drawn);
    // The hole is filled by the last one, and the buffer topped up when the next element is asked for.
    if (&drawn != &buffer_.back()) drawn = std::move(buffer_.back());
    buffer_.pop_back();
    return true;
  }

  std::string stage() const override {
    return "shuffle(" + std::to_string(capacity_) + ", " + std::to_string(seed_) + (reshuffle_ ? ")" : ", once)");
  }
  int64_t epoch() const override { return static_cast<int64_t>(epoch_); }
  void set_epoch(int64_t epoch) override {
    epoch_ = static_cast<uint64_t>(epoch);
    order_ = Order(seed_, epoch_);
  }

 private:
  const int64_t capacity_;
  const uint64_t seed_;
  const bool reshuffle_;
  uint64_t epoch_ = 0;
  Order order_;
  std::vector<Item> buffer_;
  bool exhausted_ = false;
};

class Shard final : public Selection {
 public:
  Shard(DatasetPtr source, int64_t count, int64_t index, bool all_must_get)
      : Selection(std::move(source)), count_(count), index_(index), all_must_get_(all_must_get) {}

  Status restart() override {
    to_skip_ = -1;
    return source_->restart();
  }

  int64_t cardinality() const override {
    const int64_t all = source_->cardinality();
    if (all < 0) return all;
    return all > index_ ? (all - index_ - 1) / count_ + 1 : 0;
  }

  Result<bool> pull(Item& item) override {
    const bool first = to_skip_ < 0;
    if (first) to_skip_ = index_;
    for (; to_skip_ > 0; --to_skip_) {
      DTG_ASSIGN(const bool more, source_->pull(item));
      if (!more) return false;
    }
    DTG_ASSIGN(const bool more, source_->pull(item));
    if (more) to_skip_ = count_ - 1;
    if (more && first && all_must_get_) DTG_TRY(pass_the_others());
    return more;
  }
  std::string stage() const override { return "shard(" + std::to_string(count_) + ", " + std::to_string(index_) + ")"; }

 private:
  // Those behind us take theirs.
  Status pass_the_others() {
    Item unused;
    for (int64_t taken = index_ + 1; taken < count_; ++taken, --to_skip_) {
      DTG_ASSIGN(const bool more, source_->pull(unused));
      if (!more) {
        return invalid_argument("shard a data set for %lld workers: it has %lld elements, fewer than workers; use fewer workers, or "
                                "smaller batches",
                                ll(count_), ll(taken));
      }
    }
    return {};
  }

  const int64_t count_;
  const int64_t index_;
  const bool all_must_get_;
  int64_t to_skip_ = -1;  // negative before the first element of an epoch
};

class Repeat final : public Selection {
 public:
  Repeat(DatasetPtr source, int64_t count) : Selection(std::move(source)), count_(count) {}

  Status restart() override {
    done_ = 0;
    any_ = false;
    return source_->restart();
  }

  int64_t cardinality() const override {
    const int64_t one = source_->cardinality();
    if (one == 0 || count_ == 0) return 0;
    if (count_ < 0) return kInfinite;
    if (one < 0) return one;
    return one > INT64_MAX / count_ ? INT64_MAX : one * count_;
  }

  Result<bool> pull(Item& item) override {
    while (count_ < 0 || done_ < count_) {
      DTG_ASSIGN(const bool more, source_->pull(item));
      if (more) {
        any_ = true;
        return true;
      }
      // An epoch without elements would repeat for ever.
      if (!any_) return false;
      if (count_ >= 0 && done_ + 1 == count_) break;
      DTG_TRY(source_->restart());
      ++done_;
      any_ = false;
    }
    return false;
  }

  // Whole epochs are passed over without looking at them.
  Result<int64_t> skip(int64_t count) override {
    const int64_t one = source_->cardinality();
    int64_t passed = 0;
    while (passed < count && (count_ < 0 || done_ < count_)) {
      const bool last = count_ >= 0 && done_ + 1 == count_;
      if (!any_ && one > 0 && !last && count - passed >= one) {
        passed += one;
      } else {
        DTG_ASSIGN(const int64_t here, source_->skip(count - passed));
        any_ = any_ || here > 0;
        passed += here;
        if (passed == count || !any_ || last) break;
      }
      DTG_TRY(source_->restart());
      ++done_;
      any_ = false;
    }
    return passed;
  }
  std::string stage() const override { return "repeat(" + std::to_string(count_) + ")"; }
  int64_t passes() const override { return count_ < 0 ? done_ : source_->passes(); }

 private:
  const int64_t count_;
  int64_t done_ = 0;
  bool any_ = false;  // elements in this epoch
};

class Take final : public Selection {
 public:
  Take(DatasetPtr source, int64_t count) : Selection(std::move(source)), count_(count) {}
  Status restart() override {
    taken_ = 0;
    return source_->restart();
  }
  int64_t cardinality() const override {
    const int64_t all = source_->cardinality();
    if (all == kInfinite || count_ == 0) return count_;
    return all == kUnknown ? kUnknown : std::min(all, count_);
  }
  Result<bool> pull(Item& item) override {
    if (taken_ >= count_) return false;
    DTG_ASSIGN(const bool more, source_->pull(item));
    if (more) ++taken_;
    return more;
  }
  Result<int64_t> skip(int64_t count) override {
    DTG_ASSIGN(const int64_t passed, source_->skip(std::min(count, count_ - taken_)));
    taken_ += passed;
    return passed;
  }
  std::string stage() const override { return "take(" + std::to_string(count_) + ")"; }

 private:
  const int64_t count_;
  int64_t taken_ = 0;
};

class Skip final : public Selection {
 public:
  Skip(DatasetPtr source, int64_t count) : Selection(std::move(source)), count_(count) {}
  Status restart() override {
    skipped_ = 0;
    return source_->restart();
  }
  int64_t cardinality() const override {
    const int64_t all = source_->cardinality();
    return all < 0 ? all : std::max<int64_t>(0, all - count_);
  }
  Result<bool> pull(Item& item) override {
    for (; skipped_ < count_; ++skipped_) {
      DTG_ASSIGN(const bool more, source_->pull(item));
      if (!more) return false;
    }
    return source_->pull(item);
  }
  std::string stage() const override { return "skip(" + std::to_string(count_) + ")"; }

 private:
  const int64_t count_;
  int64_t skipped_ = 0;
};

}  // namespace

Result<DatasetPtr> make_shuffle(DatasetPtr source, int64_t buffer, uint64_t seed, bool reshuffle) {
  if (buffer < 0) {
    return invalid_argument("shuffle a data set: a buffer of %lld elements; give a positive number, or 0 for the whole epoch", ll(buffer));
  }
  if (buffer == 0 && source->cardinality() == Dataset::kInfinite) {
    return invalid_argument("shuffle a data set: the whole epoch is asked for, but the data never ends; shuffle before repeat, "
                            "or give the size of a buffer");
  }
  return DatasetPtr(new Shuffle(std::move(source), buffer, seed, reshuffle));
}

static Result<DatasetPtr> shard(DatasetPtr source, int64_t count, int64_t index, bool all_must_get) {
  if (count < 1 || index < 0 || index >= count) {
    return invalid_argument("shard a data set: index %lld of %lld; the index must be 0 to count - 1", ll(index), ll(count));
  }
  return DatasetPtr(new Shard(std::move(source), count, index, all_must_get));
}

Result<DatasetPtr> make_shard(DatasetPtr source, int64_t count, int64_t index) { return shard(std::move(source), count, index, false); }

Result<DatasetPtr> make_auto_shard(DatasetPtr source, int64_t count, int64_t index) { return shard(std::move(source), count, index, true); }

Result<DatasetPtr> make_repeat(DatasetPtr source, int64_t count) { return DatasetPtr(new Repeat(std::move(source), count)); }

Result<DatasetPtr> make_take(DatasetPtr source, int64_t count) {
  if (count < 0) return invalid_argument("take from a data set: %lld elements; give 0 or more", ll(count));
  return DatasetPtr(new Take(std::move(source), count));
}

Result<DatasetPtr> make_skip(DatasetPtr source, int64_t count) {
  if (count < 0) return invalid_argument("skip in a data set: %lld elements; give 0 or more", ll(count));
  return DatasetPtr(new Skip(std::move(source), count));
}

}  // namespace dtg
