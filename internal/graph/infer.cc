// The checks and shape functions that several op families share. Pure functions of their InferContext; any thread.
#include "graph/infer.h"

#include <cstdarg>
#include <cstdio>

namespace dtg {

Status InferContext::error(const char* format, ...) const {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return invalid_argument("%s: %s", node_.op->name().c_str(), text);
}

Status InferContext::same_as_input(int i) {
  for (int o = 0; o < num_outputs(); ++o) {
    if (is_holder(input_dtype(i))) output_held(o, held_dtype(i), input(i));
    else output(o, input(i));
  }
  return {};
}

Status InferContext::broadcast(int a, int b) {
  auto both = broadcast_shapes(input(a), input(b));
  if (!both.ok()) return error("%s", both.status().message().c_str());
  output(0, both.take());
  return {};
}

Status InferContext::require_rank(int i, int rank) const {
  if (!input(i).has_rank() || input(i).rank() == rank) return {};
  return error("input %d must have rank %d, but has shape %s", i, rank, input(i).text().c_str());
}

Status InferContext::require_rank_at_least(int i, int rank) const {
  if (!input(i).has_rank() || input(i).rank() >= rank) return {};
  return error("input %d must have rank %d or more, but has shape %s", i, rank, input(i).text().c_str());
}

Result<PartialShape> InferContext::shape_from_input(int i) const {
  DTG_TRY(require_rank(i, 1));
  const Tensor known = constant(i);
  if (!known.valid()) {
    const int64_t rank = input(i).has_rank() ? input(i).dim(0) : -1;
    if (rank > kRankMax) return error("a shape of rank %lld: at most %d is supported", static_cast<long long>(rank), kRankMax);
    return rank < 0 ? PartialShape::unknown() : PartialShape::of_rank(static_cast<int>(rank));
  }
  std::vector<int64_t> dims(static_cast<size_t>(known.count()));
  for (size_t k = 0; k < dims.size(); ++k) dims[k] = known.int_at(static_cast<int64_t>(k));
  auto shape = PartialShape::make(dims);
  if (!shape.ok()) return error("%s", shape.status().message().c_str());
  return shape;
}

Result<PartialShape> broadcast_shapes(const PartialShape& a, const PartialShape& b) {
  if (!a.has_rank() || !b.has_rank()) return PartialShape::unknown();
  const int rank = std::max(a.rank(), b.rank());
  PartialShape both = PartialShape::of_rank(rank);
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    const int64_t da = ia < 0 ? 1 : a.dim(ia), db = ib < 0 ? 1 : b.dim(ib);
    if (da == 1) both.set_dim(i, db);
    else if (db == 1) both.set_dim(i, da);
    else if (da < 0) both.set_dim(i, db);
    else if (db < 0 || da == db) both.set_dim(i, da);
    else
      return invalid_argument("shapes %s and %s do not broadcast: dimension %d is %lld and %lld", a.text().c_str(), b.text().c_str(), i,
                              static_cast<long long>(da), static_cast<long long>(db));
  }
  return both;
}

Status unchanged_shape(InferContext& c) { return c.same_as_input(0); }
Status broadcast_shape(InferContext& c) { return c.broadcast(0, 1); }
Status scalar_shape(InferContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.output(i, PartialShape::scalar());
  return {};
}
Status no_outputs(InferContext&) { return {}; }
Status unknown_shape(InferContext&) { return {}; }

}  // namespace dtg
