// The stages that make one data set of several: zip, concatenate and interleave. Each owns its sources, begins an epoch of all of them with
// each of its own, and belongs to the thread of its pipeline.
#include <algorithm>

#include "data/dataset.h"

namespace dtg {
namespace {

long long ll(int64_t value) { return static_cast<long long>(value); }

class Combination : public Dataset {
 public:
  explicit Combination(std::vector<DatasetPtr> parts) : parts_(std::move(parts)) {}

  Status restart() override {
    begin();
    for (const DatasetPtr& part : parts_) DTG_TRY(part->restart());
    return {};
  }
  std::vector<Dataset*> sources() const override {
    std::vector<Dataset*> all;
    for (const DatasetPtr& part : parts_) all.push_back(part.get());
    return all;
  }
  int batch_rank() const override {
    int least = parts_[0]->batch_rank();
    for (const DatasetPtr& part : parts_) least = std::min(least, part->batch_rank());
    return least;
  }

 protected:
  virtual void begin() = 0;
  int64_t sum_of_cardinalities() const {
    int64_t all = 0;
    bool unknown = false;
    for (const DatasetPtr& part : parts_) {
      const int64_t here = part->cardinality();
      if (here == kInfinite) return kInfinite;
      unknown |= here == kUnknown;
      if (here >= 0) all = here > INT64_MAX - all ? INT64_MAX : all + here;
    }
    return unknown ? kUnknown : all;
  }
  const std::vector<DatasetPtr> parts_;
};

class Zip final : public Combination {
 public:
  explicit Zip(std::vector<DatasetPtr> parts) : Combination(std::move(parts)) {
    for (const DatasetPtr& part : parts_) spec_.insert(spec_.end(), part->spec().begin(), part->spec().end());
  }
  int64_t cardinality() const override {
    int64_t least = kInfinite;
    bool unknown = false;
    for (const DatasetPtr& part : parts_) {
      const int64_t here = part->cardinality();
      unknown |= here == kUnknown;
      if (here >= 0 && (least == kInfinite || here < least)) least = here;
    }
    return unknown && least != 0 ? kUnknown : least;
  }
  Result<bool> pull(Item& item) override {
    if (ended_) return false;
    item.row = -1;
    item.tensors.clear();
    Element element;
    for (const DatasetPtr& part : parts_) {
      DTG_ASSIGN(const bool more, part->next(element));
      if (!more) {
        ended_ = true;
        return false;
      }
      std::ranges::move(element, std::back_inserter(item.tensors));
    }
    return true;
  }
  // All go the same way; who passes over fewer ends it.
  Result<int64_t> skip(int64_t count) override {
    if (ended_) return int64_t{0};
    int64_t least = count;
    for (const DatasetPtr& part : parts_) {
      DTG_ASSIGN(const int64_t passed, part->skip(least));
      least = std::min(least, passed);
    }
    ended_ = least < count;
    return least;
  }
  std::string stage() const override { return "zip(" + std::to_string(parts_.size()) + ")"; }

 private:
  void begin() override { ended_ = false; }
  bool ended_ = false;
};

// What is common to elements of several sources: same types, and the sizes that they share.
Status join_specs(const std::vector<DatasetPtr>& parts, const char* what, std::vector<ComponentSpec>& spec) {
  spec = parts[0]->spec();
  for (size_t p = 1; p < parts.size(); ++p) {
    const std::vector<ComponentSpec>& other = parts[p]->spec();
    if (other.size() != spec.size()) {
      return invalid_argument("%s data sets: the elements of number %zu have %zu components, those of number 0 have %zu", what, p,
                              other.size(), spec.size());
    }
    for (size_t i = 0; i < spec.size(); ++i) {
      PartialShape& mine = spec[i].shape;
      const PartialShape& theirs = other[i].shape;
      if (spec[i].dtype != other[i].dtype) {
        return invalid_argument("%s data sets: component %zu of number %zu is %s, that of number 0 is %s; cast one of them", what, i, p,
                                dtype_name(other[i].dtype), dtype_name(spec[i].dtype));
      }
      if (!mine.has_rank() || !theirs.has_rank() || mine.rank() != theirs.rank()) {
        mine = PartialShape();
        continue;
      }
      for (int d = 0; d < mine.rank(); ++d) {
        if (mine.dim(d) != theirs.dim(d)) mine.set_dim(d, -1);
      }
    }
  }
  return {};
}

class Concatenation final : public Combination {
 public:
  explicit Concatenation(std::vector<DatasetPtr> parts) : Combination(std::move(parts)) {}
  Status init() { return join_specs(parts_, "concatenate", spec_); }
  int64_t cardinality() const override { return sum_of_cardinalities(); }
  Result<bool> pull(Item& item) override {
    item.row = -1;
    for (; at_ < parts_.size(); ++at_) {
      DTG_ASSIGN(const bool more, parts_[at_]->next(item.tensors));
      if (more) return true;
    }
    return false;
  }
  Result<int64_t> skip(int64_t count) override {
    int64_t passed = 0;
    while (at_ < parts_.size()) {
      DTG_ASSIGN(const int64_t here, parts_[at_]->skip(count - passed));
      passed += here;
      if (passed == count) break;
      ++at_;
    }
    return passed;
  }
  std::string stage() const override { return "concatenate(" + std::to_string(parts_.size()) + ")"; }

 private:
  void begin() override { at_ = 0; }
  size_t at_ = 0;
};

class Interleaving final : public Combination {
 public:
  Interleaving(std::vector<DatasetPtr> parts, int64_t block) : Combination(std::move(parts)), block_(block), ended_(parts_.size()) {}
  Status init() { return join_specs(parts_, "interleave", spec_); }
  int64_t cardinality() const override { return sum_of_cardinalities(); }
  Result<bool> pull(Item& item) override {
    item.row = -1;
    for (size_t over = 0; over <= parts_.size();) {
      if (!ended_[at_]) {
        DTG_ASSIGN(const bool more, parts_[at_]->next(item.tensors));
        if (more) {
          if (++taken_ == block_) turn();
          return true;
        }
        ended_[at_] = true;
      }
      turn();
      ++over;
    }
    return false;
  }
  Result<int64_t> skip(int64_t count) override {
    int64_t passed = 0;
    size_t over = 0;
    while (passed < count && over <= parts_.size()) {
      const int64_t wanted = std::min(count - passed, block_ - taken_);
      int64_t here = 0;
      if (!ended_[at_]) {
        DTG_ASSIGN(here, parts_[at_]->skip(wanted));
        ended_[at_] = here < wanted;
      }
      passed += here;
      taken_ += here;
      over = here > 0 ? 0 : over + 1;
      if (taken_ == block_ || ended_[at_]) turn();
    }
    return passed;
  }
  std::string stage() const override { return "interleave(" + std::to_string(parts_.size()) + ", " + std::to_string(block_) + ")"; }

 private:
  void turn() {
    at_ = (at_ + 1) % parts_.size();
    taken_ = 0;
  }
  void begin() override {
    at_ = 0;
    taken_ = 0;
    ended_.assign(parts_.size(), false);
  }
  const int64_t block_;
  std::vector<bool> ended_;
  size_t at_ = 0;
  int64_t taken_ = 0;  // of the block
};

}  // namespace

Result<DatasetPtr> make_zip(std::vector<DatasetPtr> parts) {
  if (parts.empty()) return invalid_argument("zip data sets: none given");
  return DatasetPtr(new Zip(std::move(parts)));
}

Result<DatasetPtr> make_concatenate(std::vector<DatasetPtr> parts) {
  if (parts.empty()) return invalid_argument("concatenate data sets: none given");
  auto made = std::make_unique<Concatenation>(std::move(parts));
  DTG_TRY(made->init());
  return DatasetPtr(std::move(made));
}

Result<DatasetPtr> make_interleave(std::vector<DatasetPtr> parts, int64_t block) {
  if (parts.empty()) return invalid_argument("interleave data sets: none given");
  if (block < 1) return invalid_argument("interleave data sets: %lld elements of each in turn; give 1 or more", ll(block));
  auto made = std::make_unique<Interleaving>(std::move(parts), block);
  DTG_TRY(made->init());
  return DatasetPtr(std::move(made));
}

}  // namespace dtg
