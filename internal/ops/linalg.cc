// Dense linear algebra on batches of matrices, in float and double: Cholesky, MatrixInverse, MatrixDeterminant,
// LogMatrixDeterminant, MatrixSolve, MatrixTriangularSolve, SelfAdjointEigV2, Qr and Svd. One matrix is the work of one thread,
// so the bits do not depend on how many there are. The decompositions are Eigen's. Cholesky, LU and the triangular solves work in the
// output or in the workspace; beyond some hundred columns Eigen takes blocks for its products from malloc. Eigenvalues, Qr and Svd always
// keep their state in its own matrices.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/interrupt.h"

// Eigen has no place where one could ask whether to go on; but it asserts something at every step, before each block that it works on and
// in front of each piece of a product that it packs. In this file an assertion is where a run that is over leaves Eigen: its matrices are
// freed on the way, as after any exception. Other files see Eigen's assertions as they are, and instantiate none of what is used here.
namespace dtg::ops {
consteval int64_t eigen_steps(std::string_view condition) {
  const auto says = [condition](std::string_view words) { return condition.find(words) != std::string_view::npos; };
  // Of every single element; and the only one in a destructor, which must not throw.
  if (says("row < rows()") || says("index < size()") || says("comma initializer")) return 0;
  // Packing a piece of a product comes with some milliseconds of work, most others with little.
  return says("PanelMode") ? 1'000'000 : 1'000;
}
inline constinit thread_local Lookout eigen_lookout;
template <int64_t kSteps>
void eigen_goes_on() {
  if constexpr (kSteps > 0) eigen_lookout.after(kSteps);
}
}  // namespace dtg::ops
#define eigen_assert(condition) ::dtg::ops::eigen_goes_on<::dtg::ops::eigen_steps(#condition)>()
#define EIGEN_MPL2_ONLY
#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>
#include <Eigen/SVD>

#include "device/cpu/copy.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/linalg.h"

namespace dtg::ops {
namespace {

template <class T>
using Rows = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
// Reflections go by columns, as Eigen's do inside of the eigenvalues: by rows, all of that would be compiled once more.
template <class T>
using Columns = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
template <class T>
using Square = Eigen::Map<Rows<T>>;
template <class T>
using ConstSquare = Eigen::Map<const Rows<T>>;

// ---- shapes ------------------------------------------------------------------------------------------------

PartialShape batch_of(const PartialShape& in) {
  PartialShape out = PartialShape::of_rank(in.rank() - 2);
  for (int d = 0; d + 2 < in.rank(); ++d) out.set_dim(d, in.dim(d));
  return out;
}

// Rank 2 or more with two equal dimensions at the end; `side` is theirs, -1 where it is not known.
Status require_square(InferContext& c, int i, int64_t* side) {
  DTG_TRY(c.require_rank_at_least(i, 2));
  const PartialShape& in = c.input(i);
  *side = -1;
  if (!in.has_rank()) return {};
  const int64_t rows = in.dim(in.rank() - 2), columns = in.dim(in.rank() - 1);
  if (rows >= 0 && columns >= 0 && rows != columns) return c.error("the matrices must be square, but have shape %s", in.text().c_str());
  *side = std::max(rows, columns);
  return {};
}

Status square_shape(InferContext& c) {
  int64_t side = 0;
  DTG_TRY(require_square(c, 0, &side));
  PartialShape out = c.input(0);
  if (out.has_rank()) out.set_dim(out.rank() - 2, side), out.set_dim(out.rank() - 1, side);
  c.output(0, out);
  return {};
}

Status determinant_shape(InferContext& c) {
  int64_t side = 0;
  DTG_TRY(require_square(c, 0, &side));
  if (!c.input(0).has_rank()) return {};
  for (int i = 0; i < c.num_outputs(); ++i) c.output(i, batch_of(c.input(0)));
  return {};
}

Status eig_shape(InferContext& c) {
  int64_t side = 0;
  DTG_TRY(require_square(c, 0, &side));
  c.output(1, c.boolean("compute_v") ? c.input(0) : PartialShape::vector(0));
  if (!c.input(0).has_rank()) return {};
  PartialShape values = batch_of(c.input(0));
  DTG_TRY(values.append(side));
  c.output(0, values);
  return {};
}

// Batch dimensions + [rows, columns].
PartialShape with_matrix(const PartialShape& in, int64_t rows, int64_t columns) {
  PartialShape out = in;
  out.set_dim(in.rank() - 2, rows);
  out.set_dim(in.rank() - 1, columns);
  return out;
}

int64_t smaller(int64_t a, int64_t b) { return a < 0 || b < 0 ? -1 : std::min(a, b); }

Status qr_shape(InferContext& c) {
  DTG_TRY(c.require_rank_at_least(0, 2));
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return {};
  const int64_t rows = in.dim(in.rank() - 2), columns = in.dim(in.rank() - 1);
  const int64_t inner = c.boolean("full_matrices") ? rows : smaller(rows, columns);
  c.output(0, with_matrix(in, rows, inner));
  c.output(1, with_matrix(in, inner, columns));
  return {};
}

Status svd_shape(InferContext& c) {
  DTG_TRY(c.require_rank_at_least(0, 2));
  const PartialShape& in = c.input(0);
  const bool vectors = c.boolean("compute_uv"), full = c.boolean("full_matrices");
  if (!vectors) {
    c.output(1, PartialShape::vector(0));
    c.output(2, PartialShape::vector(0));
  }
  if (!in.has_rank()) return {};
  const int64_t rows = in.dim(in.rank() - 2), columns = in.dim(in.rank() - 1), inner = smaller(rows, columns);
  PartialShape values = batch_of(in);
  DTG_TRY(values.append(inner));
  c.output(0, values);
  if (!vectors) return {};
  c.output(1, with_matrix(in, rows, full ? rows : inner));
  c.output(2, with_matrix(in, columns, full ? columns : inner));
  return {};
}

Status solve_shape_of(InferContext& c, bool broadcasts) {
  int64_t side = 0;
  DTG_TRY(require_square(c, 0, &side));
  DTG_TRY(c.require_rank_at_least(1, 2));
  const PartialShape &a = c.input(0), &rhs = c.input(1);
  if (!a.has_rank() || !rhs.has_rank()) return {};
  const int64_t rows = rhs.dim(rhs.rank() - 2);
  if (side >= 0 && rows >= 0 && side != rows) {
    return c.error("matrices of shape %s and right-hand sides of shape %s", a.text().c_str(), rhs.text().c_str());
  }
  auto batch = broadcasts ? broadcast_shapes(batch_of(a), batch_of(rhs)) : PartialShape::merge(batch_of(a), batch_of(rhs), "the batches");
  if (!batch.ok()) return c.error("%s", batch.status().message().c_str());
  PartialShape out = batch.take();
  if (!out.has_rank()) return {};
  DTG_TRY(in_op(c.node(), out.append(std::max(side, rows))));
  DTG_TRY(in_op(c.node(), out.append(rhs.dim(rhs.rank() - 1))));
  c.output(0, out);
  return {};
}
Status solve_shape(InferContext& c) { return solve_shape_of(c, false); }
Status triangular_solve_shape(InferContext& c) { return solve_shape_of(c, true); }

// ---- kernels -----------------------------------------------------------------------------------------------

constexpr int64_t kLinalgShards = 16;

struct LinalgArgs {
  int64_t matrices = 0, rows = 0, columns = 0;
  int64_t rhs = 0;  // columns of the right-hand side
  bool adjoint = false, lower = true, vectors = true, full = false;
  int64_t scratch = 0;  // bytes of one shard
  Shape a, b;           // batches that are broadcast
  PartialShape batch;
};

// Calls fn(matrix, scratch of the shard) for each matrix. An error is that of the first matrix that has one.
template <class Fn>
Status each_matrix(RunContext& c, const LinalgArgs& a, Fn&& fn) {
  const int64_t shards = std::min(a.matrices, kLinalgShards);
  int64_t bad[kLinalgShards];
  std::fill_n(bad, kLinalgShards, a.matrices);
  c.pool().parallel_for(shards, [&](int64_t s) {
    for (int64_t m = a.matrices * s / shards; m < a.matrices * (s + 1) / shards; ++m) {
      Interrupt::look();
      if (!fn(m, c.workspace() + s * a.scratch) && bad[s] == a.matrices) bad[s] = m;
    }
  });
  const int64_t first = *std::min_element(bad, bad + kLinalgShards);
  if (first == a.matrices) return {};
  return c.error("matrix %lld of %lld cannot be decomposed: it is singular, not positive definite or not finite",
                 static_cast<long long>(first), static_cast<long long>(a.matrices));
}

void ask_scratch(PrepareContext& c, LinalgArgs& a, int64_t bytes) {
  a.scratch = (bytes + 63) / 64 * 64;
  c.workspace(Bytes::of(std::min(a.matrices, kLinalgShards), a.scratch));
}

LinalgArgs* matrices_of(PrepareContext& c) {
  auto* a = c.args<LinalgArgs>();
  const Shape& in = c.input(0).shape;
  a->rows = in.dim(in.rank() - 2);
  a->columns = in.dim(in.rank() - 1);
  a->matrices = in.count(0, in.rank() - 2);
  return a;
}

// P A = L U in place; `order[i]` is the row that was exchanged with row i. The number of exchanges goes to `swaps`.
template <class T>
void decompose(T* matrix, int64_t n, int* order, int* swaps) {
  *swaps = 0;
  if (n == 0) return;
  // What PartialPivLU does, without its own memory for the exchanges.
  Eigen::internal::partial_lu_impl<T, Eigen::RowMajor, int>::blocked_lu(n, n, matrix, n, order, *swaps);
}

template <class T>
bool is_invertible(const T* lu, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (!(std::abs(lu[i * n + i]) > T(0))) return false;
  return true;
}

template <class T>
Status cholesky_run(RunContext& c) {
  const auto& a = c.args<LinalgArgs>();
  return each_matrix(c, a, [&](int64_t m, char*) {
    const int64_t n = a.rows;
    Square<T> out(c.out<T>(0) + m * n * n, n, n);
    const ConstSquare<T> in(c.in<T>(0) + m * n * n, n, n);
    out = in.template triangularView<Eigen::Lower>();
    if (n == 0) return true;
    const Eigen::LLT<Eigen::Ref<Rows<T>>> llt(out);
    return llt.info() == Eigen::Success;
  });
}

template <class T>
Status cholesky_prepare(PrepareContext& c) {
  matrices_of(c);
  return c.sync(cholesky_run<T>);
}

// A X = B for each matrix, from its LU decomposition. `x` holds B first.
template <class T>
void solve_in_place(const T* matrix, int64_t n, const int* order, T* x, int64_t columns, bool adjoint) {
  const ConstSquare<T> lu(matrix, n, n);
  Square<T> to(x, n, columns);
  if (!adjoint) {
    for (int64_t i = 0; i < n; ++i)
      if (order[i] != i) to.row(i).swap(to.row(order[i]));
    lu.template triangularView<Eigen::UnitLower>().solveInPlace(to);
    lu.template triangularView<Eigen::Upper>().solveInPlace(to);
    return;
  }
  lu.template triangularView<Eigen::Upper>().adjoint().solveInPlace(to);
  lu.template triangularView<Eigen::UnitLower>().adjoint().solveInPlace(to);
  for (int64_t i = n; i-- > 0;)
    if (order[i] != i) to.row(i).swap(to.row(order[i]));
}

// Of a right-hand side, or of the unit matrix where there is none.
template <class T>
Status solve_run(RunContext& c) {
  const auto& a = c.args<LinalgArgs>();
  return each_matrix(c, a, [&](int64_t m, char* scratch) {
    const int64_t n = a.rows;
    T* const lu = reinterpret_cast<T*>(scratch);
    int* const order = reinterpret_cast<int*>(lu + n * n);
    int swaps = 0;
    std::copy_n(c.in<T>(0) + m * n * n, n * n, lu);
    decompose(lu, n, order, &swaps);
    if (!is_invertible(lu, n)) return false;
    T* const x = c.out<T>(0) + m * n * a.rhs;
    if (c.instruction().node->inputs.size() > 1) std::copy_n(c.in<T>(1) + m * n * a.rhs, n * a.rhs, x);
    else Square<T>(x, n, n).setIdentity();
    if (n > 0 && a.rhs > 0) solve_in_place(lu, n, order, x, a.rhs, a.adjoint);
    return true;
  });
}

template <class T>
Status solve_prepare(PrepareContext& c) {
  auto* a = matrices_of(c);
  a->adjoint = c.boolean("adjoint");
  a->rhs = a->rows;
  if (c.num_inputs() > 1) a->rhs = c.input(1).shape.dim(c.input(1).shape.rank() - 1);
  ask_scratch(c, *a, a->rows * a->rows * static_cast<int64_t>(sizeof(T)) + a->rows * static_cast<int64_t>(sizeof(int)));
  return c.sync(solve_run<T>);
}

// The sign and the logarithm of the absolute value; or the product of both.
template <class T>
Status determinant_run(RunContext& c) {
  const auto& a = c.args<LinalgArgs>();
  return each_matrix(c, a, [&](int64_t m, char* scratch) {
    const int64_t n = a.rows;
    T* const lu = reinterpret_cast<T*>(scratch);
    int swaps = 0;
    std::copy_n(c.in<T>(0) + m * n * n, n * n, lu);
    decompose(lu, n, reinterpret_cast<int*>(lu + n * n), &swaps);
    T sign = swaps % 2 == 0 ? T(1) : T(-1), log = T(0);
    for (int64_t i = 0; i < n; ++i) {
      const T pivot = lu[i * n + i];
      sign *= pivot > T(0) ? T(1) : pivot < T(0) ? T(-1) : pivot;
      log += std::log(std::abs(pivot));
    }
    if (!a.vectors) {
      c.out<T>(0)[m] = sign == T(0) ? T(0) : sign * std::exp(log);
    } else {
      c.out<T>(0)[m] = sign;
      c.out<T>(1)[m] = log;
    }
    return true;
  });
}

template <class T>
Status determinant_prepare(PrepareContext& c) {
  auto* a = matrices_of(c);
  a->vectors = c.num_outputs() > 1;
  ask_scratch(c, *a, a->rows * a->rows * static_cast<int64_t>(sizeof(T)) + a->rows * static_cast<int64_t>(sizeof(int)));
  return c.sync(determinant_run<T>);
}

// Which matrix of a batch that is broadcast stands at place m of the whole.
int64_t broadcast_place(const Shape& batch, const PartialShape& whole, int64_t m) {
  int64_t at = 0, scale = 1;
  for (int d = whole.rank() - 1; d >= 0; --d) {
    const int own = d - (whole.rank() - batch.rank());
    const int64_t index = m % whole.dim(d);
    m /= whole.dim(d);
    if (own < 0) continue;
    if (batch.dim(own) != 1) at += index * scale;
    scale *= batch.dim(own);
  }
  return at;
}

template <class T>
Status triangular_solve_run(RunContext& c) {
  const auto& a = c.args<LinalgArgs>();
  return each_matrix(c, a, [&](int64_t m, char*) {
    const int64_t n = a.rows;
    const ConstSquare<T> matrix(c.in<T>(0) + broadcast_place(a.a, a.batch, m) * n * n, n, n);
    Square<T> x(c.out<T>(0) + m * n * a.rhs, n, a.rhs);
    std::copy_n(c.in<T>(1) + broadcast_place(a.b, a.batch, m) * n * a.rhs, n * a.rhs, x.data());
    if (n == 0 || a.rhs == 0) return true;
    if (a.lower && !a.adjoint) matrix.template triangularView<Eigen::Lower>().solveInPlace(x);
    else if (a.lower) matrix.template triangularView<Eigen::Lower>().adjoint().solveInPlace(x);
    else if (!a.adjoint) matrix.template triangularView<Eigen::Upper>().solveInPlace(x);
    else matrix.template triangularView<Eigen::Upper>().adjoint().solveInPlace(x);
    return true;
  });
}

template <class T>
Status triangular_solve_prepare(PrepareContext& c) {
  auto* a = matrices_of(c);
  const Shape &left = c.input(0).shape, &right = c.input(1).shape;
  a->adjoint = c.boolean("adjoint");
  a->lower = c.boolean("lower");
  a->rhs = right.dim(right.rank() - 1);
  DTG_ASSIGN(a->a, Shape::make(left.dims().first(static_cast<size_t>(left.rank()) - 2)));
  DTG_ASSIGN(a->b, Shape::make(right.dims().first(static_cast<size_t>(right.rank()) - 2)));
  DTG_ASSIGN(a->batch, broadcast_shapes(a->a, a->b));
  a->matrices = 1;
  for (int d = 0; d < a->batch.rank(); ++d) a->matrices *= a->batch.dim(d);
  return c.sync(triangular_solve_run<T>);
}

template <class T>
Status eig_run(RunContext& c) {
  const auto& a = c.args<LinalgArgs>();
  return each_matrix(c, a, [&](int64_t m, char*) {
    const int64_t n = a.rows;
    if (n == 0) return true;
    const ConstSquare<T> in(c.in<T>(0) + m * n * n, n, n);
    const Eigen::SelfAdjointEigenSolver<Rows<T>> solver(in, a.vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
    if (solver.info() != Eigen::Success) return false;
    std::copy_n(solver.eigenvalues().data(), n, c.out<T>(0) + m * n);
    if (a.vectors) Square<T>(c.out<T>(1) + m * n * n, n, n) = solver.eigenvectors();
    return true;
  });
}

template <class T>
Status eig_prepare(PrepareContext& c) {
  matrices_of(c)->vectors = c.boolean("compute_v");
  return c.sync(eig_run<T>);
}

template <class T>
Status qr_run(RunContext& c) {
  const auto& a = c.args<LinalgArgs>();
  return each_matrix(c, a, [&](int64_t m, char*) {
    const int64_t inner = a.full ? a.rows : std::min(a.rows, a.columns);
    Square<T> q(c.out<T>(0) + m * a.rows * inner, a.rows, inner), r(c.out<T>(1) + m * inner * a.columns, inner, a.columns);
    if (a.rows == 0 || a.columns == 0) return q.setIdentity(), true;
    const ConstSquare<T> in(c.in<T>(0) + m * a.rows * a.columns, a.rows, a.columns);
    const Eigen::HouseholderQR<Columns<T>> qr(in);
    Columns<T> whole = Columns<T>::Identity(a.rows, inner);
    whole.applyOnTheLeft(qr.householderQ());
    q = whole;
    r = qr.matrixQR().topRows(inner).template triangularView<Eigen::Upper>();
    return true;
  });
}

template <class T>
Status qr_prepare(PrepareContext& c) {
  matrices_of(c)->full = c.boolean("full_matrices");
  return c.sync(qr_run<T>);
}

template <class T>
using SquareSvd = Eigen::JacobiSVD<Columns<T>, Eigen::NoQRPreconditioner>;

// The tall one of a matrix and its transpose is Q R; R has the same values. (Eigen's own way, with pivots, compiles long.) The largest
// element is brought near one by a power of two: lengths of columns overflow sooner than their elements.
template <class T>
bool oblong_svd(const ConstSquare<T>& in, const LinalgArgs& a, T* values, T* u, T* v) {
  const bool tall = a.rows > a.columns;
  const int64_t inner = std::min(a.rows, a.columns), length = std::max(a.rows, a.columns), columns = a.full ? length : inner;
  Columns<T> work = tall ? Columns<T>(in) : Columns<T>(in.transpose());
  const int power = std::ilogb(std::max(work.cwiseAbs().maxCoeff(), T(1e-30)));
  work = work.unaryExpr([power](T x) { return std::ldexp(x, -power); });
  const Eigen::HouseholderQR<Columns<T>> qr(work);
  Columns<T> r = qr.matrixQR().topRows(inner).template triangularView<Eigen::Upper>();
  const SquareSvd<T> svd(r, a.vectors ? Eigen::ComputeFullU | Eigen::ComputeFullV : 0);
  if (svd.info() != Eigen::Success) return false;
  std::transform(svd.singularValues().data(), svd.singularValues().data() + inner, values, [power](T x) { return std::ldexp(x, power); });
  if (!a.vectors) return true;
  Columns<T> q = Columns<T>::Identity(length, columns);
  q.topLeftCorner(inner, inner) = svd.matrixU();
  q.applyOnTheLeft(qr.householderQ());
  Square<T>(tall ? u : v, length, columns) = q;
  Square<T>(tall ? v : u, inner, inner) = svd.matrixV();
  return true;
}

template <class T>
Status svd_run(RunContext& c) {
  const auto& a = c.args<LinalgArgs>();
  return each_matrix(c, a, [&](int64_t m, char*) {
    const int64_t inner = std::min(a.rows, a.columns), left = a.full ? a.rows : inner, right = a.full ? a.columns : inner;
    T* const u = a.vectors ? c.out<T>(1) + m * a.rows * left : nullptr;
    T* const v = a.vectors ? c.out<T>(2) + m * a.columns * right : nullptr;
    if (inner == 0) {
      if (u) Square<T>(u, a.rows, left).setIdentity();
      if (v) Square<T>(v, a.columns, right).setIdentity();
      return true;
    }
    const ConstSquare<T> in(c.in<T>(0) + m * a.rows * a.columns, a.rows, a.columns);
    if (!in.allFinite()) return false;
    if (a.rows != a.columns) return oblong_svd(in, a, c.out<T>(0) + m * inner, u, v);
    const SquareSvd<T> svd(in, a.vectors ? Eigen::ComputeFullU | Eigen::ComputeFullV : 0);
    std::copy_n(svd.singularValues().data(), inner, c.out<T>(0) + m * inner);
    if (u) Square<T>(u, a.rows, left) = svd.matrixU();
    if (v) Square<T>(v, a.columns, right) = svd.matrixV();
    return true;
  });
}

template <class T>
Status svd_prepare(PrepareContext& c) {
  auto* a = matrices_of(c);
  a->vectors = c.boolean("compute_uv");
  a->full = c.boolean("full_matrices");
  return c.sync(svd_run<T>);
}

template <class T>
void add_linalg_kernels(KernelTable& kernels) {
  struct Row {
    const char* op;
    PrepareFn prepare;
  };
  for (const Row& row : {Row{"Cholesky", cholesky_prepare<T>}, Row{"MatrixInverse", solve_prepare<T>}, Row{"MatrixSolve", solve_prepare<T>},
                         Row{"MatrixDeterminant", determinant_prepare<T>}, Row{"LogMatrixDeterminant", determinant_prepare<T>},
                         Row{"MatrixTriangularSolve", triangular_solve_prepare<T>}, Row{"SelfAdjointEigV2", eig_prepare<T>},
                         Row{"Qr", qr_prepare<T>}, Row{"Svd", svd_prepare<T>}}) {
    kernels.add({.op = row.op, .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = row.prepare});
  }
}

constexpr const char* kAttrMatrix = "T: {double, float, half, complex64, complex128}";

void register_decompositions(OpTable& ops) {
  ops.add(OpDef::make("SelfAdjointEigV2")
              .input("input: T", {.rank_min = 2})
              .output("e: T")
              .output("v: T")
              .attr("compute_v: bool = true")
              .attr(kAttrMatrix)
              .shape(eig_shape)
              .gradient(self_adjoint_eig_grad)
              .doc("Eigenvalues of symmetric matrices in rising order, and their eigenvectors as columns; the lower triangle is read."));
  ops.add(OpDef::make("Qr")
              .input("input: T", {.rank_min = 2})
              .output("q: T")
              .output("r: T")
              .attr("full_matrices: bool = false")
              .attr(kAttrMatrix)
              .shape(qr_shape)
              .gradient(qr_grad)
              .doc("Orthogonal q and upper triangular r whose product is the input."));
  ops.add(OpDef::make("Svd")
              .input("input: T", {.rank_min = 2})
              .output("s: T")
              .output("u: T")
              .output("v: T")
              .attr("compute_uv: bool = true")
              .attr("full_matrices: bool = false")
              .attr(kAttrMatrix)
              .shape(svd_shape)
              .gradient(svd_grad)
              .doc("Singular values in falling order, with the left and right vectors as columns of u and v."));
}

}  // namespace

void register_linalg(OpTable& ops, KernelTable& kernels) {
  constexpr const char* kFields = "T: {double, float, half, complex64, complex128}";
  ops.add(OpDef::make("Cholesky")
              .input("input: T", {.rank_min = 2})
              .output("output: T")
              .attr(kFields)
              .shape(square_shape)
              .gradient(cholesky_grad)
              .doc("Lower triangular matrices whose products with their transposes are the input; its lower triangle is read."));
  ops.add(OpDef::make("MatrixInverse")
              .input("input: T", {.rank_min = 2})
              .output("output: T")
              .attr("adjoint: bool = false")
              .attr(kFields)
              .shape(square_shape)
              .gradient(matrix_inverse_grad)
              .doc("The inverses of matrices, or of their transposes."));
  ops.add(OpDef::make("MatrixDeterminant")
              .input("input: T", {.rank_min = 2})
              .output("output: T")
              .attr(kFields)
              .shape(determinant_shape)
              .gradient(matrix_determinant_grad)
              .doc("The determinants of matrices."));
  ops.add(OpDef::make("LogMatrixDeterminant")
              .input("input: T", {.rank_min = 2})
              .output("sign: T")
              .output("log_abs_determinant: T")
              .attr(kFields)
              .shape(determinant_shape)
              .gradient(log_matrix_determinant_grad)
              .doc("The signs of determinants and the logarithms of their absolute values."));
  ops.add(OpDef::make("MatrixSolve")
              .input("matrix: T", {.rank_min = 2})
              .input("rhs: T", {.rank_min = 2})
              .output("output: T")
              .attr("adjoint: bool = false")
              .attr(kFields)
              .shape(solve_shape)
              .gradient(matrix_solve_grad)
              .doc("Solves systems of linear equations."));
  ops.add(OpDef::make("MatrixTriangularSolve")
              .input("matrix: T", {.rank_min = 2})
              .input("rhs: T", {.rank_min = 2})
              .output("output: T")
              .attr("lower: bool = true")
              .attr("adjoint: bool = false")
              .attr("T: {bfloat16, double, float, half, complex64, complex128}")
              .shape(triangular_solve_shape)
              .gradient(matrix_triangular_solve_grad)
              .doc("Solves systems with triangular matrices by substitution; batches broadcast."));
  register_decompositions(ops);
  add_linalg_kernels<float>(kernels);
  add_linalg_kernels<double>(kernels);
}

}  // namespace dtg::ops
