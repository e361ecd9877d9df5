// Shapes: checked construction, merging of partial ones, and printing. Pure functions; any thread.
#include "tensor/shape.h"

#include <algorithm>

namespace dtg {
namespace {

constexpr int64_t kElementsMax = int64_t{1} << 62;

std::string dims_text(std::span<const int64_t> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i) text += ',';
    text += dims[i] < 0 ? "?" : std::to_string(dims[i]);
  }
  return text + "]";
}
}  // namespace

Result<Shape> Shape::make(std::span<const int64_t> dims) {
  if (dims.size() > kRankMax) {
    return invalid_argument("shape %s: rank %zu, but at most %d is supported", dims_text(dims.first(kRankMax)).c_str(), dims.size(),
                            kRankMax);
  }
  Shape shape;
  shape.rank_ = static_cast<int8_t>(dims.size());
  bool empty = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) {
      return invalid_argument("shape %s: dimension %zu is negative; a tensor needs every dimension", dims_text(dims).c_str(), i);
    }
    shape.dims_[i] = dims[i];
    empty |= dims[i] == 0;
  }
  // The product is checked without the zeros too, so that reshaping an empty tensor cannot overflow.
  int64_t count = 1;
  for (int64_t dim : dims) {
    if (dim == 0) continue;
    if (dim > kElementsMax / count) {
      return invalid_argument("shape %s: more than 2^62 elements", dims_text(dims).c_str());
    }
    count *= dim;
  }
  shape.count_ = empty ? 0 : count;
  return shape;
}

Shape Shape::of(std::initializer_list<int64_t> dims) {
  auto made = make(std::span(dims.begin(), dims.size()));
  if (made.ok()) return made.take();
  Shape none;
  none.rank_ = 1;
  none.count_ = 0;
  return none;
}

int64_t Shape::count(int from, int to) const {
  int64_t product = 1;
  for (int i = from; i < to; ++i) product *= dim(i);
  return product;
}

bool Shape::operator==(const Shape& other) const { return std::ranges::equal(dims(), other.dims()); }
std::string Shape::text() const { return dims_text(dims()); }

PartialShape::PartialShape(const Shape& shape) : rank_(static_cast<int8_t>(shape.rank())) {
  std::ranges::copy(shape.dims(), dims_.begin());
}

Result<PartialShape> PartialShape::make(std::span<const int64_t> dims) {
  if (dims.size() > kRankMax) {
    return invalid_argument("partial shape of rank %zu: at most rank %d is supported", dims.size(), kRankMax);
  }
  PartialShape shape = of_rank(static_cast<int>(dims.size()));
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < -1) {
      return invalid_argument("partial shape %s: dimension %zu is %lld; use -1 for an open dimension", dims_text(dims).c_str(), i,
                              static_cast<long long>(dims[i]));
    }
    shape.dims_[i] = dims[i];
  }
  if (shape.complete()) DTG_TRY(shape.to_shape().status());
  return shape;
}

PartialShape PartialShape::of_rank(int rank) {
  PartialShape shape;
  shape.rank_ = static_cast<int8_t>(rank);
  shape.dims_.fill(-1);
  return shape;
}

PartialShape PartialShape::vector(int64_t dim) {
  PartialShape shape = of_rank(1);
  shape.set_dim(0, dim);
  return shape;
}

Status PartialShape::append(int64_t dim) {
  if (rank_ < 0) return internal_error("append a dimension to a shape of unknown rank");
  if (rank_ >= kRankMax)
    return invalid_argument("shape %s: no room for a further dimension, rank %d is the limit", text().c_str(), kRankMax);
  dims_[static_cast<size_t>(rank_++)] = dim < 0 ? -1 : dim;
  return {};
}

Result<Shape> PartialShape::to_shape() const {
  if (!complete()) return internal_error("shape %s is not complete", text().c_str());
  // Most are so small that no product can be too large, and the planner asks for each value several times.
  Shape shape;
  return to_small_shape(shape) ? Result<Shape>(shape) : Shape::make(dims());
}

bool PartialShape::admits(const Shape& shape) const {
  if (rank_ < 0) return true;
  if (rank_ != shape.rank()) return false;
  for (int i = 0; i < rank_; ++i) {
    if (dim(i) >= 0 && dim(i) != shape.dim(i)) return false;
  }
  return true;
}

Result<PartialShape> PartialShape::merge(const PartialShape& a, const PartialShape& b, const char* what) {
  if (!a.has_rank()) return b;
  if (!b.has_rank()) return a;
  bool fits = a.rank_ == b.rank_;
  PartialShape both = a;
  for (int i = 0; fits && i < a.rank_; ++i) {
    if (a.dim(i) < 0) both.set_dim(i, b.dim(i));
    else if (b.dim(i) >= 0 && b.dim(i) != a.dim(i)) fits = false;
  }
  if (!fits) return invalid_argument("%s: shapes %s and %s do not agree", what, a.text().c_str(), b.text().c_str());
  return both;
}

bool PartialShape::operator==(const PartialShape& other) const { return rank_ == other.rank_ && std::ranges::equal(dims(), other.dims()); }

std::string PartialShape::text() const { return rank_ < 0 ? "<unknown>" : dims_text(dims()); }

}  // namespace dtg
