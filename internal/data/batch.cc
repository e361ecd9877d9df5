// The batch stage: stacks elements along a new first dimension. Rows of a table are gathered straight into the batch,
// converted on the way; other elements are copied. The memory of batches that nobody holds any more is used again,
// because fresh pages cost more than filling them. Belongs to the thread of its pipeline.
#include <algorithm>

#include "data/dataset.h"
#include "data/stack.h"

namespace dtg {
namespace {

// Buffers of one component that were given out; those held by nobody else are free.
class Recycled {
 public:
  Result<Tensor> tensor(DType dtype, const Shape& shape, int64_t bytes_full) {
    for (const Ref<Buffer>& buffer : buffers_) {
      if (buffer->ref_count() == 1 && buffer->bytes() >= bytes_full) return Tensor::wrap(buffer, 0, dtype, shape);
    }
    DTG_ASSIGN(auto fresh, Buffer::allocate(bytes_full));
    if (buffers_.size() == kBuffers) buffers_.erase(buffers_.begin());
    buffers_.push_back(fresh);
    return Tensor::wrap(std::move(fresh), 0, dtype, shape);
  }

 private:
  static constexpr size_t kBuffers = 16;  // as many as a prefetch and its reader may hold, within reason
  std::vector<Ref<Buffer>> buffers_;
};

// The shape of `count` elements stacked.
Result<Shape> stacked(int64_t count, const Shape& shape) {
  std::vector<int64_t> dims{count};
  dims.insert(dims.end(), shape.dims().begin(), shape.dims().end());
  return Shape::make(dims);
}

class Batch final : public Dataset {
 public:
  Batch(DatasetPtr source, int64_t size, bool drop_remainder)
      : source_(std::move(source)), size_(size), drop_remainder_(drop_remainder), recycled_(source_->spec().size()) {
    const int64_t all = source_->cardinality();
    most_ = all >= 0 ? std::clamp<int64_t>(all, 1, size) : size;
  }

  Status init() {
    DTG_ASSIGN(spec_, stacked_spec(source_->spec(), drop_remainder_ ? size_ : -1, "batch a data set"));
    return {};
  }

  Status restart() override {
    remainder_.begin();
    return source_->restart();
  }

  int64_t cardinality() const override { return batches_of(source_->cardinality(), size_, drop_remainder_); }

  Result<bool> pull(Item& item) override {
    item.row = -1;
    item.tensors.clear();
    DTG_ASSIGN(const bool more, source_->table() ? gather(item.tensors) : stack(item.tensors));
    if (more) remainder_.handed_out();
    return more;
  }

  Result<int64_t> skip(int64_t count) override {
    if (count > INT64_MAX / size_) return Dataset::skip(count);
    DTG_ASSIGN(const int64_t passed, source_->skip(count * size_));
    const int64_t batches = batches_of(passed, size_, drop_remainder_);
    if (batches > 0) remainder_.handed_out();
    else remainder_.left(static_cast<size_t>(passed));
    return batches;
  }
  int64_t dropped_all() const override { return remainder_.all(); }
  int64_t dropped() const override { return remainder_.last(); }
  Dataset* source() const override { return source_.get(); }
  int batch_rank() const override { return source_->batch_rank() + 1; }
  std::string stage() const override { return "batch(" + std::to_string(size_) + (drop_remainder_ ? ", whole)" : ")"); }

 private:
  bool is_too_few(int64_t count) {
    if (count >= (drop_remainder_ ? size_ : 1)) return false;
    remainder_.left(static_cast<size_t>(count));
    return true;
  }

  Result<bool> gather(Element& batch) {
    const Table& table = *source_->table();
    rows_.clear();
    Item item;
    while (static_cast<int64_t>(rows_.size()) < size_) {
      DTG_ASSIGN(const bool more, source_->pull(item));
      if (!more) break;
      rows_.push_back(item.row);
    }
    const auto count = static_cast<int64_t>(rows_.size());
    if (is_too_few(count)) return false;
    for (size_t i = 0; i < table.columns().size(); ++i) {
      DTG_ASSIGN(Tensor tensor, component(i, table.columns()[i].dtype, table.row_shape(i), count));
      table.gather(i, rows_, tensor.data());
      batch.push_back(std::move(tensor));
    }
    return true;
  }

  Result<bool> stack(Element& batch) {
    Element first;
    int64_t count = 0;
    Item item;
    for (; count < most_; ++count) {
      DTG_ASSIGN(const bool more, source_->pull(item));
      if (!more) break;
      if (count == 0) {
        first = item.tensors;
        DTG_TRY(begin(first, batch));
      }
      DTG_TRY(append(item.tensors, first, count, batch));
    }
    if (is_too_few(count)) {
      batch.clear();
      return false;
    }
    for (size_t i = 0; i < batch.size() && count < most_; ++i) {
      DTG_ASSIGN(const Shape shape, stacked(count, first[i].shape()));
      DTG_ASSIGN(batch[i], Tensor::wrap(batch[i].buffer(), 0, first[i].dtype(), shape));
    }
    return true;
  }

  Status begin(const Element& first, Element& batch) {
    recycled_.resize(std::max(recycled_.size(), first.size()));
    for (size_t i = 0; i < first.size(); ++i) {
      DTG_ASSIGN(Tensor tensor, component(i, first[i].dtype(), first[i].shape(), most_));
      batch.push_back(std::move(tensor));
    }
    return {};
  }

  Status append(const Element& element, const Element& first, int64_t at, Element& batch) {
    bool same = element.size() == first.size();
    for (size_t i = 0; same && i < element.size(); ++i) {
      same = element[i].dtype() == first[i].dtype() && element[i].shape() == first[i].shape();
      if (!same) {
        return invalid_argument("batch a data set: component %zu of element %lld is %s, that of the batch's first is %s; "
                                "elements of one batch must be alike",
                                i, static_cast<long long>(at), element[i].text().c_str(), first[i].text().c_str());
      }
      const int64_t bytes = element[i].bytes();
      if (bytes != 0) std::memcpy(batch[i].as<char>() + at * bytes, element[i].data(), static_cast<size_t>(bytes));
    }
    if (!same) {
      return invalid_argument("batch a data set: element %lld has %zu components, the batch's first has %zu", static_cast<long long>(at),
                              element.size(), first.size());
    }
    return {};
  }

  Result<Tensor> component(size_t i, DType dtype, const Shape& row, int64_t count) {
    DTG_ASSIGN(const Shape full, stacked(most_, row));
    DTG_ASSIGN(const Shape shape, stacked(count, row));
    if (full.count() > INT64_MAX / 16) {
      return resource_exhausted("batch a data set: %lld elements of %s%s do not fit any memory", static_cast<long long>(most_),
                                dtype_name(dtype), row.text().c_str());
    }
    return recycled_[i].tensor(dtype, shape, full.count() * dtype_size(dtype));
  }

  const DatasetPtr source_;
  const int64_t size_;
  int64_t most_ = 0;  // rows that a batch can have
  const bool drop_remainder_;
  Remainder remainder_;
  std::vector<int64_t> rows_;
  std::vector<Recycled> recycled_;
};

}  // namespace

Result<DatasetPtr> make_batch(DatasetPtr source, int64_t size, bool drop_remainder) {
  if (size < 1) return invalid_argument("batch a data set: %lld elements a batch; give 1 or more", static_cast<long long>(size));
  auto batch = std::make_unique<Batch>(std::move(source), size, drop_remainder);
  DTG_TRY(batch->init());
  return DatasetPtr(std::move(batch));
}

}  // namespace dtg
