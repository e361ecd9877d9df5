// The rebatch stage, which cuts global batches into those of replicas, and the arithmetic of batch sizes per worker.
// See dataset.h for threads.
#include <algorithm>
#include <cstring>

#include "data/dataset.h"

namespace dtg {
namespace {

long long ll(int64_t value) { return static_cast<long long>(value); }

class Rebatch final : public Dataset {
 public:
  Rebatch(DatasetPtr source, int64_t parts) : source_(std::move(source)), parts_(parts), next_(parts) {
    spec_ = source_->spec();
    for (ComponentSpec& component : spec_) {
      if (component.shape.rank() > 0) component.shape.set_dim(0, -1);
    }
  }

  Status restart() override {
    next_ = parts_;
    return source_->restart();
  }

  int64_t cardinality() const override {
    const int64_t batches = source_->cardinality();
    if (batches < 0) return batches;
    return batches > INT64_MAX / parts_ ? kUnknown : batches * parts_;
  }

  Result<bool> pull(Item& item) override {
    if (next_ == parts_) {
      DTG_ASSIGN(const bool more, source_->next(batch_));
      if (!more) return false;
      DTG_TRY(count_rows());
      next_ = 0;
    }
    item.row = -1;
    item.tensors.clear();
    const int64_t each = rows_ / parts_ + (rows_ % parts_ != 0);
    const int64_t begin = each == 0 || next_ > rows_ / each ? rows_ : next_ * each;
    const int64_t end = std::min(rows_, begin + each);
    for (const Tensor& whole : batch_) {
      DTG_ASSIGN(Tensor part, rows_of(whole, begin, end));
      item.tensors.push_back(std::move(part));
    }
    ++next_;
    return true;
  }
  Dataset* source() const override { return source_.get(); }
  std::string stage() const override { return "rebatch(" + std::to_string(parts_) + ")"; }

 private:
  Status count_rows() {
    rows_ = -1;
    for (const Tensor& tensor : batch_) {
      if (tensor.shape().rank() == 0 || (rows_ >= 0 && tensor.shape().dim(0) != rows_) || dtype_size(tensor.dtype()) == 0) {
        return invalid_argument(
            "rebatch a data set: a component is %s; all must have numbers and the same first dimension, as behind a batch",
            tensor.text().c_str());
      }
      rows_ = tensor.shape().dim(0);
    }
    rows_ = std::max<int64_t>(rows_, 0);
    return {};
  }

  Result<Tensor> rows_of(const Tensor& whole, int64_t begin, int64_t end) const {
    std::vector<int64_t> dims(whole.shape().dims().begin(), whole.shape().dims().end());
    dims[0] = end - begin;
    DTG_ASSIGN(const Shape shape, Shape::make(dims));
    DTG_ASSIGN(Tensor part, Tensor::allocate(whole.dtype(), shape));
    const int64_t row = rows_ == 0 ? 0 : whole.bytes() / rows_;
    if (part.bytes() != 0) std::memcpy(part.data(), whole.as<char>() + begin * row, static_cast<size_t>(part.bytes()));
    return part;
  }

  const DatasetPtr source_;
  const int64_t parts_;
  Element batch_;
  int64_t rows_ = 0;  // of batch_
  int64_t next_;      // part of batch_; parts_ when it is used up
};

}  // namespace

Result<DatasetPtr> make_rebatch(DatasetPtr source, int64_t parts) {
  if (parts < 1) return invalid_argument("rebatch a data set: %lld parts; give 1 or more", ll(parts));
  return DatasetPtr(new Rebatch(std::move(source), parts));
}

Result<std::vector<int64_t>> batch_sizes(int64_t global_batch, int64_t workers, int64_t replicas, int64_t worker) {
  constexpr int64_t kPartsMax = 1 << 16;
  if (global_batch < 0 || workers < 1 || replicas < 1 || worker < 0 || worker >= workers || workers > kPartsMax / replicas) {
    return invalid_argument("batch sizes: %lld elements for %lld workers of %lld replicas, worker %lld; the worker must be one of them, "
                            "and there may be %lld replicas in all",
                            ll(global_batch), ll(workers), ll(replicas), ll(worker), ll(kPartsMax));
  }
  const int64_t parts = workers * replicas;
  std::vector<int64_t> sizes(static_cast<size_t>(parts), global_batch / parts);
  for (int64_t i = 0; i < global_batch % parts; ++i) ++sizes[static_cast<size_t>(i)];
  // Each worker begins where the one before has stopped, so that one step of all takes each size once.
  std::rotate(sizes.begin(), sizes.begin() + worker * replicas, sizes.end());
  return sizes;
}

}  // namespace dtg
