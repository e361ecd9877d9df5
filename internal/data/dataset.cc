// What all stages of a pipeline share: turning items (row numbers or tensors) into elements; and the two simplest
// sources, slices of tensors and ranges. See dataset.h for threads.
#include "data/dataset.h"

#include <algorithm>

namespace dtg {

void Dataset::stand_on(Ref<Table> table) {
  table_ = std::move(table);
  spec_.clear();
  for (size_t i = 0; i < table_->columns().size(); ++i) {
    spec_.push_back({table_->columns()[i].dtype, table_->row_shape(i)});
  }
}

Status Dataset::materialize(Item& item, Element& element) const {
  if (item.row < 0) {
    element = std::move(item.tensors);
    return {};
  }
  element.clear();
  for (size_t i = 0; i < table_->columns().size(); ++i) {
    DTG_ASSIGN(Tensor tensor, Tensor::allocate(table_->columns()[i].dtype, table_->row_shape(i)));
    table_->gather(i, std::span<const int64_t>(&item.row, 1), tensor.data());
    element.push_back(std::move(tensor));
  }
  return {};
}

Result<bool> Dataset::next(Element& element) {
  // First of all, so that a batch can use the memory of the one before, while it is in the cache.
  element.clear();
  DTG_ASSIGN(const bool more, pull(item_));
  if (!more) return false;
  DTG_TRY(materialize(item_, element));
  return true;
}

Result<int64_t> Dataset::skip(int64_t count) {
  Item item;
  for (int64_t passed = 0; passed < count; ++passed) {
    DTG_ASSIGN(const bool more, pull(item));
    if (!more) return passed;
  }
  return count;
}

std::string Dataset::spec_text() const {
  std::string text;
  for (const ComponentSpec& component : spec_) text += " " + std::string(dtype_name(component.dtype)) + component.shape.text();
  return text;
}

namespace {

class Slices final : public Dataset {
 public:
  explicit Slices(Ref<Table> table) { stand_on(std::move(table)); }
  Status restart() override {
    at_ = 0;
    return {};
  }
  int64_t cardinality() const override { return table()->rows(); }
  Result<bool> pull(Item& item) override {
    if (at_ >= table()->rows()) return false;
    item.row = at_++;
    return true;
  }
  Result<int64_t> skip(int64_t count) override {
    const int64_t passed = std::min(count, table()->rows() - at_);
    at_ += passed;
    return passed;
  }
  std::string stage() const override { return std::to_string(table()->rows()) + " of" + spec_text(); }

 private:
  int64_t at_ = 0;
};

class Range final : public Dataset {
 public:
  Range(int64_t start, int64_t step, int64_t count) : start_(start), step_(step), count_(count) {
    spec_.push_back({DType::i64, PartialShape::scalar()});
  }
  Status restart() override {
    at_ = 0;
    return {};
  }
  int64_t cardinality() const override { return count_; }
  Result<bool> pull(Item& item) override {
    if (at_ >= count_) return false;
    DTG_ASSIGN(Tensor value, Tensor::scalar<int64_t>(start_ + at_ * step_));
    ++at_;
    item.row = -1;
    item.tensors.clear();
    item.tensors.push_back(std::move(value));
    return true;
  }
  Result<int64_t> skip(int64_t count) override {
    const int64_t passed = std::min(count, count_ - at_);
    at_ += passed;
    return passed;
  }
  std::string stage() const override {
    return "range(" + std::to_string(start_) + ", " + std::to_string(step_) + ", " + std::to_string(count_) + ")";
  }

 private:
  const int64_t start_;
  const int64_t step_;
  const int64_t count_;
  int64_t at_ = 0;
};

}  // namespace

Result<DatasetPtr> make_slices(std::span<const Tensor> tensors) {
  DTG_ASSIGN(auto table, Table::make(tensors));
  return DatasetPtr(new Slices(std::move(table)));
}

Result<DatasetPtr> make_range(int64_t start, int64_t stop, int64_t step) {
  if (step == 0)
    return invalid_argument("make a range from %lld to %lld: the step is 0", static_cast<long long>(start), static_cast<long long>(stop));
  const bool empty = step > 0 ? start >= stop : start <= stop;
  // Unsigned, because the distance of two int64 need not fit one.
  const uint64_t distance =
      step > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start) : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  const uint64_t count = empty ? 0 : (distance - 1) / stride + 1;
  if (count > static_cast<uint64_t>(INT64_MAX)) {
    return invalid_argument("make a range from %lld to %lld: more than 2^63 elements", static_cast<long long>(start),
                            static_cast<long long>(stop));
  }
  return DatasetPtr(new Range(start, step, static_cast<int64_t>(count)));
}

}  // namespace dtg
