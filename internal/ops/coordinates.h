// Coordinates: tuples in the last dimension of an indices tensor that point at slices of another. What GatherNd, ScatterNd and
// the TensorScatter ops share. Pure; any thread.
#pragma once

#include <string>

#include "base/watched.h"
#include "ops/integers.h"
#include "ops/rows.h"

namespace dtg::ops {

// What to do with coordinates that point outside.
enum class BadIndices { refuse, ignore };

inline Result<BadIndices> policy_of(PrepareContext& c) {
  const auto& policy = c.attr<std::string>("bad_indices_policy");
  if (policy.empty() || policy == "DEFAULT" || policy == "ERROR") return BadIndices::refuse;
  if (policy == "IGNORE") return BadIndices::ignore;
  return c.error("bad_indices_policy is \"%s\"; it must be DEFAULT, ERROR or IGNORE", policy.c_str());
}

// Coordinates into the leading `depth` dimensions of a tensor.
struct Coordinates {
  Shape tensor;
  int64_t count = 0;  // how many tuples
  int depth = 0;      // length of a tuple
  DType dtype = DType::i32;

  int64_t columns() const { return tensor.count(depth, tensor.rank()); }
  // The row that tuple i points at, or -1.
  template <class I>
  int64_t row(const I* indices, int64_t i) const {
    int64_t at = 0;
    for (int k = 0; k < depth; ++k) {
      const auto index = static_cast<int64_t>(indices[i * depth + k]);
      if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(tensor.dim(k))) return -1;
      at = at * tensor.dim(k) + index;
    }
    return at;
  }
  template <class I>
  Status check(RunContext& c, const I* indices) const {
    for (const int64_t i : watched(count)) {
      if (row(indices, i) >= 0) continue;
      std::string tuple;
      for (int k = 0; k < depth; ++k) tuple += (k ? "," : "") + std::to_string(indices[i * depth + k]);
      return c.error("indices[%lld] = [%s] is outside shape %s", static_cast<long long>(i), tuple.c_str(), tensor.text().c_str());
    }
    return {};
  }
  // The same for indices of whatever type, one function for all of them.
  int64_t row_of_any(const void* indices, int64_t i) const {
    return with_indices(dtype, indices, [&](const auto* own) { return row(own, i); });
  }
  Status check_any(RunContext& c, const void* indices) const {
    return with_indices(dtype, indices, [&](const auto* own) { return check(c, own); });
  }
};

// The tuples of an indices input; the tensor comes later where its shape is an input.
inline Status prepare_coordinates(PrepareContext& c, int input, Coordinates& out) {
  const Shape& indices = c.input(input).shape;
  if (indices.rank() < 1) return c.error("the indices must have rank 1 or more, but are a scalar");
  const int64_t depth = indices.dim(indices.rank() - 1);
  if (depth > kRankMax) return c.error("the indices are tuples of %lld; at most %d make sense", static_cast<long long>(depth), kRankMax);
  out.depth = static_cast<int>(depth);
  out.count = indices.count(0, indices.rank() - 1);
  out.dtype = c.input(input).dtype;
  return {};
}

// updates = indices without their last dimension, then the dimensions of the tensor that are not indexed.
inline Status check_updates(const PartialShape& indices, const PartialShape& updates, const PartialShape& tensor) {
  const int64_t depth = indices.dim(indices.rank() - 1);
  if (depth < 0) return {};
  const int outer = indices.rank() - 1, inner = tensor.rank() - static_cast<int>(depth);
  bool fits = inner >= 0 && updates.rank() == outer + inner;
  const auto same = [](int64_t a, int64_t b) { return a < 0 || b < 0 || a == b; };
  for (int i = 0; fits && i < outer; ++i) fits = same(updates.dim(i), indices.dim(i));
  for (int i = 0; fits && i < inner; ++i) fits = same(updates.dim(outer + i), tensor.dim(static_cast<int>(depth) + i));
  if (fits) return {};
  return invalid_argument("updates of shape %s do not fit indices %s into shape %s", updates.text().c_str(), indices.text().c_str(),
                          tensor.text().c_str());
}

}  // namespace dtg::ops
