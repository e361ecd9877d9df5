// Table: the columns of an in-memory data set, row i of every column being one element. Pipelines over a
// table pass row numbers around and touch the data once, when a batch is gathered. Immutable; shared by
// the stages of a pipeline; any thread may read.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ref.h"
#include "tensor/tensor.h"

namespace dtg {

// x / divisor for every uint8 x, as float division gives it. Most divisors are done by two exact
// products and a sum, which is several times faster; the table of results serves the others.
class ByteScale {
 public:
  explicit ByteScale(float divisor);
  void apply(const uint8_t* from, float* to, int64_t count) const;

 private:
  std::array<float, 256> results_;
  float high_ = 0;
  float low_ = 0;
  bool exact_ = false;
};

struct Column {
  Tensor values;                 // [rows, ...]
  DType dtype = DType::invalid;  // of what is gathered: that of values, or f32 where scale is set
  std::shared_ptr<const ByteScale> scale;
};

class Table : public RefCounted {
 public:
  // Refuses tensors that are scalars or differ in their first dimension.
  static Result<Ref<Table>> make(std::span<const Tensor> tensors);
  static Ref<Table> of(std::vector<Column> columns);

  int64_t rows() const { return columns_.empty() ? 0 : columns_[0].values.shape().dim(0); }
  const std::vector<Column>& columns() const { return columns_; }
  Shape row_shape(size_t column) const;
  // Row numbers must be in range. `to` has room for them; rows lie there one after the other.
  void gather(size_t column, std::span<const int64_t> rows, void* to) const;

 private:
  std::vector<Column> columns_;
};

}  // namespace dtg
