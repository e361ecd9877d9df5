// Gradients of the linear algebra family, as compositions of products, solves and diagonals: TensorFlow's formulas.
#include <algorithm>

#include "ops/linalg.h"

namespace dtg::ops {
namespace {

// Products of matrices, either of them transposed first.
Value product(Build& b, Value x, Value y, bool adjoint_x = false, bool adjoint_y = false) {
  return b.op("BatchMatMulV2", {x, y}, {{"adj_x", adjoint_x}, {"adj_y", adjoint_y}});
}
Value diagonal_of(Build& b, Value x) { return b.op("MatrixDiagPart", {x}); }
Value band(Build& b, Value x, int64_t lower, int64_t upper) {
  return b.op("MatrixBandPart", {x, b.integer(lower, DType::i64), b.integer(upper, DType::i64)});
}
Value half_of(Build& b, Value x) { return b.mul(x, b.like(x, 0.5)); }

// The last two dimensions exchanged.
Value transposed(Build& b, Value x) {
  const int rank = b.info(x).shape.rank();
  if (rank >= 0) {
    std::vector<int64_t> order;
    for (int d = 0; d + 2 < rank; ++d) order.push_back(d);
    order.push_back(rank - 1), order.push_back(rank - 2);
    return b.op("Transpose", {x, b.ints(order)});
  }
  const Value count = b.op("Rank", {x}), one = b.integer(1), two = b.integer(2), list = b.ints({1});
  const Value outer = b.op("Range", {b.integer(0), b.sub(count, two), one});
  const Value ends[] = {outer, b.reshape(b.sub(count, one), list), b.reshape(b.sub(count, two), list), b.integer(0)};
  return b.op("Transpose", {x, b.op("ConcatV2", ends)});
}

// x / (x^2 + tiny): 1 / x that stays finite.
Value safe_reciprocal(Build& b, Value x) { return b.div(x, b.add(b.mul(x, x), b.like(x, 1e-20))); }

// 1 / (v_j - v_i), and 0 on the diagonal
Value inverse_gaps(Build& b, Value v) {
  const Value gaps = b.sub(b.op("ExpandDims", {v, b.integer(-2)}), b.op("ExpandDims", {v, b.integer(-1)}));
  return b.op("MatrixSetDiag", {safe_reciprocal(b, gaps), b.zeros_like(v)});
}

// One number per matrix, broadcast over it.
Value per_matrix(Build& b, Value x) { return b.op("ExpandDims", {b.op("ExpandDims", {x, b.integer(-1)}), b.integer(-1)}); }

// Columns [from, to) of each matrix; a negative end means all the rest.
Value columns(Build& b, Value x, Value from, Value to, bool to_end) {
  const Value begin = b.op("Pack", {b.integer(0), from}), end = b.op("Pack", {b.integer(0), to});
  return b.op("StridedSlice", {x, begin, end, b.ints({1, 1})}, {{"ellipsis_mask", 1}, {"end_mask", to_end ? 2 : 0}});
}

// Dimension -2 of x as a scalar.
Value row_count(Build& b, Value x) {
  return b.op("StridedSlice", {b.shape(x), b.ints({-2}), b.ints({-1}), b.ints({1})}, {{"shrink_axis_mask", 1}});
}

// x r^-1 with r upper triangular
Value solve_right(Build& b, Value x, Value r) {
  return transposed(b, b.op("MatrixTriangularSolve", {r, transposed(b, x)}, {{"lower", false}, {"adjoint", false}}));
}

// For matrices with at least as many rows as columns.
Value tall_qr_grad(Build& b, Value q, Value r, Value dq, Value dr) {
  const Value qdq = product(b, q, dq, true), rdr = product(b, r, dr, false, true);
  const Value skew = b.add(b.sub(qdq, transposed(b, qdq)), b.sub(rdr, transposed(b, rdr)));
  const Value inside = product(b, q, b.add(dr, solve_right(b, band(b, skew, -1, 0), r)));
  return b.add(inside, solve_right(b, b.sub(dq, product(b, q, qdq)), r));
}

}  // namespace

// With L^-1 and the lower half P of L^T dL: dA = sym(L^-T P L^-1)
Status cholesky_grad(GradContext& c) {
  Build& b = c.b();
  const Value l = c.output(0);
  const Value unit = b.op("MatrixDiag", {b.op("OnesLike", {diagonal_of(b, l)})});
  const Value inverse = b.op("MatrixTriangularSolve", {l, unit}, {{"lower", true}, {"adjoint", false}});
  Value middle = product(b, l, c.dy(), true);
  middle = band(b, b.op("MatrixSetDiag", {middle, half_of(b, diagonal_of(b, middle))}), -1, 0);
  const Value whole = product(b, product(b, inverse, middle, true), inverse);
  c.dx(0, half_of(b, b.add(whole, transposed(b, whole))));
  return {};
}

// dA = -Y^T dY Y^T; of the adjoint inverse -Y dY^T Y
Status matrix_inverse_grad(GradContext& c) {
  Build& b = c.b();
  const bool adjoint = c.attr<bool>("adjoint");
  const Value y = c.output(0);
  c.dx(0, b.neg(product(b, y, product(b, c.dy(), y, adjoint, !adjoint), !adjoint)));
  return {};
}

// dA = dy det(A) A^-T
Status matrix_determinant_grad(GradContext& c) {
  Build& b = c.b();
  const Value inverse = b.op("MatrixInverse", {c.input(0)}, {{"adjoint", true}});
  c.dx(0, b.mul(per_matrix(b, b.mul(c.dy(), c.output(0))), inverse));
  return {};
}

// dA = d(log |det A|) A^-T; the sign has none
Status log_matrix_determinant_grad(GradContext& c) {
  Build& b = c.b();
  c.dx(0, b.mul(per_matrix(b, c.dy(1)), b.op("MatrixInverse", {c.input(0)}, {{"adjoint", true}})));
  return {};
}

// A X = B: dB = A^-T dX, dA = -dB X^T; of A^T X = B: dA = -X dB^T
Status matrix_solve_grad(GradContext& c) {
  Build& b = c.b();
  const bool adjoint = c.attr<bool>("adjoint");
  const Value x = c.output(0), rhs = b.op("MatrixSolve", {c.input(0), c.dy()}, {{"adjoint", !adjoint}});
  c.dx(0, b.neg(adjoint ? product(b, x, rhs, false, true) : product(b, rhs, x, false, true)));
  c.dx(1, rhs);
  return {};
}

// The same for triangles: nothing flows to the other half. Where batches were broadcast their gradients are added.
Status matrix_triangular_solve_grad(GradContext& c) {
  Build& b = c.b();
  const bool adjoint = c.attr<bool>("adjoint"), lower = c.attr<bool>("lower");
  const Value x = c.output(0);
  const Value rhs = b.op("MatrixTriangularSolve", {c.input(0), c.dy()}, {{"lower", lower}, {"adjoint", !adjoint}});
  const Value da = b.neg(adjoint ? product(b, x, rhs, false, true) : product(b, rhs, x, false, true));
  const Value values[] = {lower ? band(b, da, -1, 0) : band(b, da, 0, -1), rhs};
  for (int i = 0; i < 2; ++i) {
    const PartialShape &own = c.input_info(i).shape, &from = b.info(values[i]).shape;
    if (own.complete() && from.complete() && own == from) {
      c.dx(i, values[i]);
      continue;
    }
    const Value shape = b.shape(c.input(i));
    const Value axes = b.op("BroadcastGradientArgs", {shape, b.shape(values[i])});
    c.dx(i, b.reshape(b.sum(values[i], axes), shape));
  }
  return {};
}

// A = V diag(e) V^T; only the lower triangle of A is looked at, so the gradient is folded onto it.
Status self_adjoint_eig_grad(GradContext& c) {
  Build& b = c.b();
  Value v = c.output(1), middle = b.op("MatrixDiag", {c.dy(0)});
  if (c.attr<bool>("compute_v")) {
    middle = b.add(middle, b.mul(inverse_gaps(b, c.output(0)), product(b, v, c.dy(1), true)));
  } else {
    const Value values = b.op("SelfAdjointEigV2", {c.input(0)}, {{"compute_v", true}});
    if (!b.ok()) return b.status();
    v = values.sibling(1);
  }
  const Value whole = product(b, v, product(b, middle, v, false, true));
  const Value folded = band(b, b.add(whole, transposed(b, whole)), -1, 0);
  c.dx(0, b.op("MatrixSetDiag", {folded, half_of(b, diagonal_of(b, folded))}));
  return {};
}

// A wide matrix is [X Y] with Q R = X and Y = Q V: what flows to V goes on to Q and Y. Of a tall one Y is empty.
Status qr_grad(GradContext& c) {
  Build& b = c.b();
  const PartialShape& a = c.input_info(0).shape;
  const int64_t rows = a.has_rank() ? a.dim(a.rank() - 2) : -1, width = a.has_rank() ? a.dim(a.rank() - 1) : -1;
  const bool known = rows >= 0 && width >= 0;
  if (c.attr<bool>("full_matrices") && (!known || rows > width)) {
    return unimplemented("the gradient of Qr with full_matrices, where there may be more rows than columns");
  }
  const Value q = c.output(0), r = c.output(1), dq = c.dy(0), dr = c.dy(1);
  if (known && rows >= width) {
    c.dx(0, tall_qr_grad(b, q, r, dq, dr));
    return {};
  }
  const Value m = known ? b.integer(rows) : row_count(b, c.input(0)), zero = b.integer(0);
  const auto left = [&](Value x) { return columns(b, x, zero, m, false); };
  const auto right = [&](Value x) { return columns(b, x, m, zero, true); };
  const Value dv = right(dr), y = right(c.input(0));
  const Value dx = tall_qr_grad(b, q, left(r), b.add(dq, product(b, y, dv, false, true)), left(dr));
  c.dx(0, b.op("ConcatV2", {dx, product(b, q, dv), b.integer(-1)}));
  return {};
}

namespace {

// U diag(s) V^T of matrices with at most as many rows as columns, with what flows to each.
struct Factors {
  Value s, u, v, ds, du, dv;
  int64_t rows = 0, columns = 0;
  bool full = false;
};

Value wide_svd_grad(Build& b, const Factors& f) {
  const auto part = [&](Value x, int64_t from, int64_t to) { return columns(b, x, b.integer(from), b.integer(to), false); };
  const Value s = b.op("MatrixDiag", {f.s}), gaps = inverse_gaps(b, b.op("Square", {f.s}));
  const Value v1 = f.columns == f.rows ? f.v : part(f.v, 0, f.rows), dv1 = f.columns == f.rows ? f.dv : part(f.dv, 0, f.rows);
  const Value fu = b.mul(gaps, product(b, f.u, f.du, true)), fv = b.mul(gaps, product(b, v1, dv1, true));
  const Value symmetric = b.add(product(b, b.add(fu, transposed(b, fu)), s), product(b, s, b.add(fv, transposed(b, fv))));
  const Value inside = product(b, f.u, product(b, b.add(b.op("MatrixDiag", {f.ds}), symmetric), v1, false, true));
  if (f.rows == f.columns) return inside;
  const Value dv1t = transposed(b, dv1);
  Value outside = b.sub(dv1t, product(b, product(b, dv1t, v1), v1, false, true));
  if (f.full) {
    const Value v2 = part(f.v, f.rows, f.columns), dv2 = part(f.dv, f.rows, f.columns);
    outside = b.sub(outside, product(b, product(b, v1, dv2, true), v2, false, true));
  }
  return b.add(inside, product(b, product(b, f.u, b.op("MatrixDiag", {safe_reciprocal(b, f.s)})), outside));
}

}  // namespace

// The gradient of a tall matrix is that of its transpose, transposed.
Status svd_grad(GradContext& c) {
  Build& b = c.b();
  if (!c.attr<bool>("compute_uv")) {
    const Value s = b.op("Svd", {c.input(0)}, {{"compute_uv", true}, {"full_matrices", false}});
    if (!b.ok()) return b.status();
    c.dx(0, product(b, s.sibling(1), product(b, b.op("MatrixDiag", {c.dy(0)}), s.sibling(2), false, true)));
    return {};
  }
  const PartialShape& a = c.input_info(0).shape;
  Factors f{c.output(0), c.output(1), c.output(2), c.dy(0), c.dy(1), c.dy(2), -1, -1, c.attr<bool>("full_matrices")};
  if (a.has_rank()) f.rows = a.dim(a.rank() - 2), f.columns = a.dim(a.rank() - 1);
  if (f.rows < 0 || f.columns < 0) return unimplemented("the gradient of Svd for matrices whose size is not known");
  const bool tall = f.rows > f.columns;
  if (tall) {
    std::swap(f.u, f.v);
    std::swap(f.du, f.dv);
    std::swap(f.rows, f.columns);
  }
  if (f.full && f.columns - f.rows > 1) {
    return unimplemented("the gradient of Svd with full_matrices where rows and columns differ by more than one");
  }
  const Value dx = wide_svd_grad(b, f);
  c.dx(0, tall ? transposed(b, dx) : dx);
  return {};
}

}  // namespace dtg::ops
