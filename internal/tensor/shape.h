// Shape and PartialShape. A Shape is complete and proven sane: rank at most 8, no negative dimension, and
// an element count that fits; it can only be made by a factory that checks. A PartialShape is what graph
// building knows: some or all dimensions may be open. Values; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace dtg {

inline constexpr int kRankMax = 8;

class Shape {
 public:
  Shape() = default;  // a scalar
  // Refuses rank > 8, negative dimensions and element counts beyond 2^62.
  static Result<Shape> make(std::span<const int64_t> dims);
  // For dimensions that come from another Shape or are small constants; the product is still checked and
  // an impossible one becomes a scalar-free empty shape rather than an overflow.
  static Shape of(std::initializer_list<int64_t> dims);

  int rank() const { return rank_; }
  int64_t dim(int i) const { return dims_[static_cast<size_t>(i)]; }
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  int64_t count() const { return count_; }  // elements
  bool is_scalar() const { return rank_ == 0; }
  // Product of dims [from, to).
  int64_t count(int from, int to) const;
  bool operator==(const Shape& other) const;
  std::string text() const;  // "[2,3]"

 private:
  friend class PartialShape;
  std::array<int64_t, kRankMax> dims_{};
  int64_t count_ = 1;
  int8_t rank_ = 0;
};

class PartialShape {
 public:
  PartialShape() = default;          // unknown rank
  PartialShape(const Shape& shape);  // NOLINT: every Shape is a PartialShape
  // -1 is an open dimension.
  static Result<PartialShape> make(std::span<const int64_t> dims);
  static PartialShape unknown() { return {}; }
  static PartialShape scalar() { return of_rank(0); }
  static PartialShape of_rank(int rank);  // all dimensions open
  static PartialShape vector(int64_t dim);

  bool has_rank() const { return rank_ >= 0; }
  int rank() const { return rank_; }  // -1 when unknown
  int64_t dim(int i) const { return rank_ < 0 ? -1 : dims_[static_cast<size_t>(i)]; }
  // Sets a dimension of a shape with rank; negative = open.
  void set_dim(int i, int64_t value) { dims_[static_cast<size_t>(i)] = value < 0 ? -1 : value; }
  // Appends to a shape with rank < 8.
  Status append(int64_t dim);
  bool complete() const {
    for (int i = 0; i < rank_; ++i) {
      if (dims_[static_cast<size_t>(i)] < 0) return false;
    }
    return rank_ >= 0;
  }
  // The Shape, when complete and sane.
  Result<Shape> to_shape() const;
  // The same into one that is as it was made, where no product can be too large, as of most; false where that takes a closer look.
  bool to_small_shape(Shape& into) const {
    into.rank_ = rank_;
    into.count_ = 1;
    for (int i = 0; i < rank_; ++i) {
      const int64_t dim = dims_[static_cast<size_t>(i)];
      if (dim <= 0 || dim > kSmallDim || into.count_ > kSmallCount) return false;
      into.dims_[static_cast<size_t>(i)] = dim;
      into.count_ *= dim;
    }
    return rank_ >= 0;
  }
  // Could a value of that shape stand here?
  bool admits(const Shape& shape) const;
  // The meet of both, or an error when they contradict. `what` names the thing for the message.
  static Result<PartialShape> merge(const PartialShape& a, const PartialShape& b, const char* what);
  std::span<const int64_t> dims() const { return {dims_.data(), rank_ < 0 ? 0u : static_cast<size_t>(rank_)}; }
  bool operator==(const PartialShape& other) const;
  std::string text() const;  // "[?,3]" or "<unknown>"

 private:
  // A product of dimensions up to the first stays below 2^62 when the product before it is up to the second.
  static constexpr int64_t kSmallDim = int64_t{1} << 20, kSmallCount = int64_t{1} << 40;
  std::array<int64_t, kRankMax> dims_{};
  int8_t rank_ = -1;
};

}  // namespace dtg
