// Diagonals and bands of matrices: Diag and DiagPart, MatrixDiag, MatrixDiagPart and MatrixSetDiag in their three versions, and
// MatrixBandPart. Diagonals of several are rows of one length; shorter ones are padded on one side, as `align` says. Only the
// size of an element matters.
#include <algorithm>
#include <cstring>

#include "base/watched.h"
#include "device/cpu/copy.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/type_lists.h"

namespace dtg::ops {
namespace {

// ---- which diagonals ---------------------------------------------------------------------------------------

// The diagonals lower .. upper of rows x columns; 0 is the main one, positive ones lie above.
struct Band {
  int64_t rows = 0, columns = 0, lower = 0, upper = 0;
  bool left_above = true, left_below = true;  // where short diagonals are aligned

  int64_t count() const { return upper - lower + 1; }
  int64_t length(int64_t d) const { return std::min(rows + std::min<int64_t>(d, 0), columns - std::max<int64_t>(d, 0)); }
  int64_t longest() const { return std::min(rows + std::min<int64_t>(upper, 0), columns - std::max<int64_t>(lower, 0)); }
  // Where the elements of diagonal d begin in its row.
  int64_t offset(int64_t d) const {
    const bool left = (d >= 0 && left_above) || (d <= 0 && left_below);
    return left ? 0 : longest() - length(d);
  }
  // Of element i of diagonal d in the matrix.
  int64_t place(int64_t d, int64_t i) const { return (i - std::min<int64_t>(d, 0)) * columns + i + std::max<int64_t>(d, 0); }
};

void read_align(const Node& node, Band& band) {
  const AttrValue* align = node.find_attr("align");
  if (!align) return;  // the earlier versions: all to the left
  const auto& text = *align->get<std::string>();
  band.left_above = text.starts_with("LEFT_");
  band.left_below = text.ends_with("_LEFT");
}

Status read_k(std::span<const int64_t> k, Band& band) {
  if (k.empty() || k.size() > 2) return invalid_argument("k must have one or two elements, but has %d", static_cast<int>(k.size()));
  band.lower = k.front();
  band.upper = k.back();
  if (band.lower <= band.upper) return {};
  return invalid_argument("k is [%lld, %lld]; the lower diagonal must come first", static_cast<long long>(band.lower),
                          static_cast<long long>(band.upper));
}

Status check_within(const Band& band) {
  for (int64_t d : {band.lower, band.upper}) {
    if (d == 0 || (-band.rows < d && d < band.columns)) continue;
    return invalid_argument("a matrix of %lld x %lld has no diagonal %lld", static_cast<long long>(band.rows),
                            static_cast<long long>(band.columns), static_cast<long long>(d));
  }
  return {};
}

// How many rows and columns the matrix gets when diagonals of that length are put into it; -1 asks for what fits.
Status fit_matrix(Band& band, int64_t length, int64_t rows, int64_t columns) {
  const int64_t fewest_rows = length - std::min<int64_t>(band.upper, 0), fewest_columns = length + std::max<int64_t>(band.lower, 0);
  if (rows == -1 && columns == -1) rows = columns = std::max(fewest_rows, fewest_columns);
  if (rows == -1) rows = fewest_rows;
  if (columns == -1) columns = fewest_columns;
  band.rows = rows;
  band.columns = columns;
  if (rows >= fewest_rows && columns >= fewest_columns && (rows == fewest_rows || columns == fewest_columns)) return {};
  return invalid_argument("diagonals %lld to %lld of length %lld do not fit a matrix of %lld x %lld", static_cast<long long>(band.lower),
                          static_cast<long long>(band.upper), static_cast<long long>(length), static_cast<long long>(rows),
                          static_cast<long long>(columns));
}

// ---- shapes ------------------------------------------------------------------------------------------------

// Input `i` as k, where the op has one; else the main diagonal. False: not known yet.
Result<bool> known_k(InferContext& c, int i, Band& band) {
  read_align(c.node(), band);
  if (i >= c.num_inputs()) return true;
  if (c.input(i).has_rank() && c.input(i).rank() > 1) return c.error("k must be a scalar or a vector");
  const int64_t count = c.input(i).has_rank() && c.input(i).rank() == 1 ? c.input(i).dim(0) : -1;
  if (count == 0 || count > 2) return c.error("k must have one or two elements, but has %lld", static_cast<long long>(count));
  const KnownIntegers k = known_integers(c, i);
  if (!k.known) return false;
  const Status status = read_k(k.span(), band);
  if (!status.ok()) return c.error("%s", status.message().c_str());
  return true;
}

PartialShape leading(const PartialShape& shape, int count) {
  PartialShape out = PartialShape::of_rank(count);
  for (int d = 0; d < count; ++d) out.set_dim(d, shape.dim(d));
  return out;
}

Status matrix_diag_shape(InferContext& c) {
  Band band;
  DTG_TRY(c.require_rank_at_least(0, 1));
  DTG_ASSIGN(const bool known, known_k(c, 1, band));
  const PartialShape& in = c.input(0);
  if (!known || !in.has_rank()) return {};
  const bool several = band.count() > 1;
  if (several) DTG_TRY(c.require_rank_at_least(0, 2));
  if (several && in.dim(in.rank() - 2) >= 0 && in.dim(in.rank() - 2) != band.count()) {
    return c.error("%lld diagonals in shape %s", static_cast<long long>(band.count()), in.text().c_str());
  }
  PartialShape out = leading(in, in.rank() - (several ? 2 : 1));
  int64_t rows = -1, columns = -1;
  bool open = in.dim(in.rank() - 1) < 0;
  if (c.num_inputs() > 2) {
    const KnownIntegers given_rows = known_integers(c, 2), given_columns = known_integers(c, 3);
    open = open || !given_rows.known || !given_columns.known;
    rows = given_rows.values[0], columns = given_columns.values[0];
  }
  if (!open) {
    const Status status = fit_matrix(band, in.dim(in.rank() - 1), rows, columns);
    if (!status.ok()) return c.error("%s", status.message().c_str());
  }
  DTG_TRY(in_op(c.node(), out.append(open ? -1 : band.rows)));
  DTG_TRY(in_op(c.node(), out.append(open ? -1 : band.columns)));
  c.output(0, out);
  return {};
}

Status matrix_diag_part_shape(InferContext& c) {
  Band band;
  DTG_TRY(c.require_rank_at_least(0, 2));
  DTG_ASSIGN(const bool known, known_k(c, 1, band));
  const PartialShape& in = c.input(0);
  if (!known || !in.has_rank()) return {};
  PartialShape out = leading(in, in.rank() - 2);
  band.rows = in.dim(in.rank() - 2), band.columns = in.dim(in.rank() - 1);
  const bool open = band.rows < 0 || band.columns < 0;
  if (!open) {
    const Status status = check_within(band);
    if (!status.ok()) return c.error("%s", status.message().c_str());
  }
  if (band.count() > 1) DTG_TRY(out.append(band.count()));
  DTG_TRY(out.append(open ? -1 : band.longest()));
  c.output(0, out);
  return {};
}

Status matrix_set_diag_shape(InferContext& c) {
  Band band;
  DTG_TRY(c.require_rank_at_least(0, 2));
  DTG_TRY(c.require_rank_at_least(1, 1));
  DTG_ASSIGN(const bool known, known_k(c, 2, band));
  const PartialShape &in = c.input(0), &diagonal = c.input(1);
  c.output(0, in);
  if (!known || !in.has_rank()) return {};
  band.rows = in.dim(in.rank() - 2), band.columns = in.dim(in.rank() - 1);
  PartialShape wanted = leading(in, in.rank() - 2);
  const bool open = band.rows < 0 || band.columns < 0;
  if (!open) {
    const Status status = check_within(band);
    if (!status.ok()) return c.error("%s", status.message().c_str());
  }
  if (band.count() > 1) DTG_TRY(wanted.append(band.count()));
  DTG_TRY(wanted.append(open ? -1 : band.longest()));
  auto merged = PartialShape::merge(wanted, diagonal, "the diagonal");
  return merged.ok() ? Status() : c.error("%s", merged.status().message().c_str());
}

Status diag_shape(InferContext& c) {
  const PartialShape& in = c.input(0);
  DTG_TRY(c.require_rank_at_least(0, 1));
  if (!in.has_rank()) return {};
  PartialShape out = in;
  for (int d = 0; d < in.rank(); ++d) DTG_TRY(in_op(c.node(), out.append(in.dim(d))));
  c.output(0, out);
  return {};
}

Status diag_part_shape(InferContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return {};
  if (in.rank() == 0 || in.rank() % 2 != 0) return c.error("the rank must be even and not 0, but the shape is %s", in.text().c_str());
  const int half = in.rank() / 2;
  PartialShape out = PartialShape::of_rank(half);
  for (int d = 0; d < half; ++d) {
    const int64_t a = in.dim(d), b = in.dim(half + d);
    if (a >= 0 && b >= 0 && a != b) return c.error("the halves of shape %s differ", in.text().c_str());
    out.set_dim(d, a >= 0 ? a : b);
  }
  c.output(0, out);
  return {};
}

Status band_part_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 0));
  DTG_TRY(c.require_rank(2, 0));
  DTG_TRY(c.require_rank_at_least(0, 2));
  c.output(0, c.input(0));
  return {};
}

// ---- gradients ---------------------------------------------------------------------------------------------

// The op of this version with that name, on `inputs`; `k` follows and the attribute align goes with it.
Value versioned(GradContext& c, const char* name, std::vector<Value> inputs, int k, bool padded) {
  Build& b = c.b();
  std::string op = name;
  std::vector<Attr> attrs;
  if (const AttrValue* align = c.node().find_attr("align")) {
    op += "V3";
    attrs.push_back({"align", *align->get<std::string>()});
  } else if (k < c.num_inputs()) {
    op += "V2";
  }
  if (k < c.num_inputs()) inputs.push_back(c.input(k));
  if (k < c.num_inputs() && padded) inputs.push_back(b.like(c.dy(), 0.0));
  return b.op(op, inputs, attrs);
}

Status matrix_diag_grad(GradContext& c) {
  c.dx(0, versioned(c, "MatrixDiagPart", {c.dy()}, 1, true));
  return {};
}
Status matrix_diag_part_grad(GradContext& c) {
  c.dx(0, versioned(c, "MatrixSetDiag", {c.b().zeros_like(c.input(0)), c.dy()}, 1, false));
  return {};
}
Status matrix_set_diag_grad(GradContext& c) {
  c.dx(0, versioned(c, "MatrixSetDiag", {c.dy(), c.b().zeros_like(c.input(1))}, 2, false));
  c.dx(1, versioned(c, "MatrixDiagPart", {c.dy()}, 2, true));
  return {};
}
Status diag_grad(GradContext& c) {
  c.dx(0, c.b().op("DiagPart", {c.dy()}));
  return {};
}
Status diag_part_grad(GradContext& c) {
  c.dx(0, c.b().op("Diag", {c.dy()}));
  return {};
}
Status band_part_grad(GradContext& c) {
  c.dx(0, c.b().op("MatrixBandPart", {c.dy(), c.input(1), c.input(2)}));
  return {};
}

// ---- kernels -----------------------------------------------------------------------------------------------

struct DiagArgs {
  Shape in, diagonal;
  Band align;  // alignment only
  bool has_k = false;
  Integers k, rows, columns;
  int padding = -1;  // input
  int64_t size = 0;
  OutputSpec out;
};

Result<Band> band_in_run(RunContext& c, const DiagArgs& a) {
  Band band = a.align;
  if (!a.has_k) return band;
  Integers::Buffer buffer;
  const Status status = read_k(a.k.get(c, buffer), band);
  if (!status.ok()) return c.error("%s", status.message().c_str());
  return band;
}

// Moves the diagonals of each matrix between it and rows of the longest length.
void move_diagonals(const Band& band, int64_t matrices, int64_t size, char* matrix, char* packed, bool into_matrix) {
  const int64_t whole = band.rows * band.columns, longest = band.longest();
  for (int64_t m = 0; m < matrices; ++m) {
    for (int64_t d = band.upper; d >= band.lower; --d, packed += longest * size) {
      for (const int64_t i : watched(band.length(d), 8)) {
        char* const in_matrix = matrix + (m * whole + band.place(d, i)) * size;
        char* const in_packed = packed + (band.offset(d) + i) * size;
        cpu::copy_row(into_matrix ? in_matrix : in_packed, into_matrix ? in_packed : in_matrix, size);
      }
    }
  }
}

Status matrix_diag_run(RunContext& c) {
  const auto& a = c.args<DiagArgs>();
  DTG_ASSIGN(Band band, band_in_run(c, a));
  Integers::Buffer rows, columns;
  const int rank = a.in.rank(), outer = rank - (band.count() > 1 ? 2 : 1);
  if (outer < 0 || (band.count() > 1 && a.in.dim(rank - 2) != band.count())) {
    return c.error("%lld diagonals in shape %s", static_cast<long long>(band.count()), a.in.text().c_str());
  }
  const bool given = a.padding >= 0;
  const Status fits = fit_matrix(band, a.in.dim(rank - 1), given ? a.rows.get(c, rows)[0] : -1, given ? a.columns.get(c, columns)[0] : -1);
  if (!fits.ok()) return c.error("%s", fits.message().c_str());
  int64_t dims[kRankMax + 1];
  std::copy_n(a.in.dims().begin(), outer, dims);
  dims[outer] = band.rows, dims[outer + 1] = band.columns;
  const auto shape = Shape::make({dims, static_cast<size_t>(outer) + 2});
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  DTG_ASSIGN(char* out, a.out.memory(c, shape.value()));
  if (given) cpu::fill(c.pool(), out, shape.value().count(), a.size, c.in<char>(a.padding));
  else cpu::clear(c.pool(), out, shape.value().count() * a.size);
  move_diagonals(band, a.in.count(0, outer), a.size, out, const_cast<char*>(c.in<char>(0)), true);
  return {};
}

Status matrix_diag_part_run(RunContext& c) {
  const auto& a = c.args<DiagArgs>();
  DTG_ASSIGN(Band band, band_in_run(c, a));
  const int outer = a.in.rank() - 2;
  band.rows = a.in.dim(outer), band.columns = a.in.dim(outer + 1);
  const Status within = check_within(band);
  if (!within.ok()) return c.error("%s", within.message().c_str());
  int64_t dims[kRankMax];
  size_t rank = static_cast<size_t>(outer);
  std::copy_n(a.in.dims().begin(), outer, dims);
  if (band.count() > 1) dims[rank++] = band.count();
  dims[rank++] = band.longest();
  DTG_ASSIGN(const Shape shape, Shape::make({dims, rank}));
  DTG_ASSIGN(char* out, a.out.memory(c, shape));
  if (a.padding >= 0) cpu::fill(c.pool(), out, shape.count(), a.size, c.in<char>(a.padding));
  else cpu::clear(c.pool(), out, shape.count() * a.size);
  move_diagonals(band, a.in.count(0, outer), a.size, const_cast<char*>(c.in<char>(0)), out, false);
  return {};
}

Status matrix_set_diag_run(RunContext& c) {
  const auto& a = c.args<DiagArgs>();
  DTG_ASSIGN(Band band, band_in_run(c, a));
  const int outer = a.in.rank() - 2;
  band.rows = a.in.dim(outer), band.columns = a.in.dim(outer + 1);
  const Status within = check_within(band);
  if (!within.ok()) return c.error("%s", within.message().c_str());
  const int rank = outer + (band.count() > 1 ? 2 : 1);
  bool fits = a.diagonal.rank() == rank && a.diagonal.dim(rank - 1) == band.longest();
  if (band.count() > 1) fits = fits && a.diagonal.dim(rank - 2) == band.count();
  for (int d = 0; fits && d < outer; ++d) fits = a.diagonal.dim(d) == a.in.dim(d);
  if (!fits) return c.error("a diagonal of shape %s for an input of shape %s", a.diagonal.text().c_str(), a.in.text().c_str());
  const int64_t bytes = a.in.count() * a.size;
  if (c.in<char>(0) != c.out<char>(0)) {
    Lookout lookout;
    cpu::copy_row(c.out<char>(0), c.in<char>(0), bytes, lookout);
  }
  move_diagonals(band, a.in.count(0, outer), a.size, c.out<char>(0), const_cast<char*>(c.in<char>(1)), true);
  return {};
}

Status prepare_diagonals(PrepareContext& c, SyncFn run, int k) {
  auto* a = c.args<DiagArgs>();
  a->in = c.input(0).shape;
  a->size = dtype_size(c.input(0).dtype);
  read_align(c.node(), a->align);
  a->has_k = k < c.num_inputs();
  if (a->has_k) DTG_TRY(a->k.prepare(c, k));
  a->out.prepare(c, 0);
  return c.sync(run);
}

Status matrix_diag_prepare(PrepareContext& c) {
  auto* a = c.args<DiagArgs>();
  if (c.num_inputs() > 2) {
    DTG_TRY(a->rows.prepare(c, 2));
    DTG_TRY(a->columns.prepare(c, 3));
    a->padding = 4;
    for (int i = 2; i < 5; ++i) {
      if (c.input(i).shape.rank() != 0) return c.error("input %d must be a scalar", i);
    }
  }
  return prepare_diagonals(c, matrix_diag_run, 1);
}
Status matrix_diag_part_prepare(PrepareContext& c) {
  if (c.num_inputs() > 2) {
    if (c.input(2).shape.rank() != 0) return c.error("padding_value must be a scalar");
    c.args<DiagArgs>()->padding = 2;
  }
  return prepare_diagonals(c, matrix_diag_part_run, 1);
}
Status matrix_set_diag_prepare(PrepareContext& c) {
  c.args<DiagArgs>()->diagonal = c.input(1).shape;
  c.may_overwrite(0, 0);
  return prepare_diagonals(c, matrix_set_diag_run, 2);
}

// [d..., d...]: the flat index of the diagonal is that of the vector times its length plus 1.
Status diag_run(RunContext& c) {
  const auto& a = c.args<DiagArgs>();
  const int64_t count = a.in.count();
  cpu::clear(c.pool(), c.out<char>(0), count * count * a.size);
  for (const int64_t i : watched(count, 8)) cpu::copy_row(c.out<char>(0) + i * (count + 1) * a.size, c.in<char>(0) + i * a.size, a.size);
  return {};
}
Status diag_part_run(RunContext& c) {
  const auto& a = c.args<DiagArgs>();
  const int64_t count = a.in.count(0, a.in.rank() / 2);
  for (const int64_t i : watched(count, 8)) cpu::copy_row(c.out<char>(0) + i * a.size, c.in<char>(0) + i * (count + 1) * a.size, a.size);
  return {};
}
Status diag_prepare(PrepareContext& c) { return prepare_diagonals(c, diag_run, c.num_inputs()); }
Status diag_part_prepare(PrepareContext& c) { return prepare_diagonals(c, diag_part_run, c.num_inputs()); }

Status band_part_run(RunContext& c) {
  const auto& a = c.args<DiagArgs>();
  Integers::Buffer lower_buffer, upper_buffer;
  const int64_t rows = a.in.dim(a.in.rank() - 2), columns = a.in.dim(a.in.rank() - 1), row = columns * a.size;
  const int64_t lower = a.rows.get(c, lower_buffer)[0], upper = a.columns.get(c, upper_buffer)[0];
  if (lower > rows)
    return c.error("num_lower is %lld, but there are %lld rows", static_cast<long long>(lower), static_cast<long long>(rows));
  if (upper > columns) {
    return c.error("num_upper is %lld, but there are %lld columns", static_cast<long long>(upper), static_cast<long long>(columns));
  }
  const int64_t all = a.in.count(0, a.in.rank() - 1), shards = std::min(cpu::shards_for_bytes(all * row), std::max<int64_t>(all, 1));
  c.pool().parallel_for(shards, [&](int64_t s) {
    for (const int64_t r : watched(all * s / shards, all * (s + 1) / shards, 20 + row / 4)) {
      const int64_t m = r % rows, begin = lower < 0 ? 0 : std::clamp<int64_t>(m - lower, 0, columns);
      const int64_t end = upper < 0 ? columns : std::clamp<int64_t>(m + upper + 1, begin, columns);
      char* const to = c.out<char>(0) + r * row;
      if (begin > 0) std::memset(to, 0, static_cast<size_t>(begin * a.size));
      if (to != c.in<char>(0) + r * row && end > begin) {
        std::memcpy(to + begin * a.size, c.in<char>(0) + r * row + begin * a.size, static_cast<size_t>((end - begin) * a.size));
      }
      if (end < columns) std::memset(to + end * a.size, 0, static_cast<size_t>((columns - end) * a.size));
    }
  });
  return {};
}

Status band_part_prepare(PrepareContext& c) {
  auto* a = c.args<DiagArgs>();
  DTG_TRY(a->rows.prepare(c, 1));
  DTG_TRY(a->columns.prepare(c, 2));
  c.may_overwrite(0, 0);
  return prepare_diagonals(c, band_part_run, c.num_inputs());
}

constexpr const char* kAlign = "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'";

// The three versions of one op: `tail` are the inputs that the later ones have more.
struct Versioned {
  const char* name;
  const char* inputs[2];
  const char* tail[4];
  const char* output;
  ShapeFn shape;
  GradFn gradient;
  PrepareFn prepare;
  const char* doc;
};
constexpr Versioned kVersioned[] = {
    {"MatrixDiag",
     {"diagonal: T", nullptr},
     {"k: int32", "num_rows: int32", "num_cols: int32", "padding_value: T"},
     "output: T",
     matrix_diag_shape,
     matrix_diag_grad,
     matrix_diag_prepare,
     "Matrices with the given diagonals."},
    {"MatrixDiagPart",
     {"input: T", nullptr},
     {"k: int32", "padding_value: T", nullptr, nullptr},
     "diagonal: T",
     matrix_diag_part_shape,
     matrix_diag_part_grad,
     matrix_diag_part_prepare,
     "The diagonals of matrices."},
    {"MatrixSetDiag",
     {"input: T", "diagonal: T"},
     {"k: int32", nullptr, nullptr, nullptr},
     "output: T",
     matrix_set_diag_shape,
     matrix_set_diag_grad,
     matrix_set_diag_prepare,
     "Matrices with some diagonals replaced."},
};

void register_version(OpTable& ops, KernelTable& kernels, const Versioned& row, const char* name, int version) {
  OpDef def = OpDef::make(name);
  for (const char* input : row.inputs) {
    if (input) std::move(def).input(input);
  }
  for (const char* input : row.tail) {
    if (input && version > 1) std::move(def).input(input);
  }
  std::move(def).output(row.output).attr("T: type");
  if (version == 3) std::move(def).attr(kAlign);
  ops.add(std::move(def).shape(row.shape).gradient(row.gradient).doc(row.doc));
  kernels.add({.op = name, .types = {{"T", kPlain}}, .prepare = row.prepare});
}

}  // namespace

void register_diag(OpTable& ops, KernelTable& kernels) {
  static constexpr const char* names[3][3] = {{"MatrixDiag", "MatrixDiagV2", "MatrixDiagV3"},
                                              {"MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3"},
                                              {"MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3"}};
  for (size_t i = 0; i < 3; ++i) {
    for (size_t v = 0; v < 3; ++v) register_version(ops, kernels, kVersioned[i], names[i][v], static_cast<int>(v) + 1);
  }
  constexpr const char* kTypes = "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}";
  ops.add(OpDef::make("Diag")
              .input("diagonal: T", {.rank_min = 1})
              .output("output: T")
              .attr(kTypes)
              .shape(diag_shape)
              .gradient(diag_grad)
              .doc("A tensor of twice the rank with the input where the two halves of the coordinates agree."));
  ops.add(OpDef::make("DiagPart")
              .input("input: T")
              .output("diagonal: T")
              .attr(kTypes)
              .shape(diag_part_shape)
              .gradient(diag_part_grad)
              .doc("The elements for which the two halves of the coordinates agree."));
  ops.add(OpDef::make("MatrixBandPart")
              .input("input: T")
              .input("num_lower: Tindex", {.rank = 0})
              .input("num_upper: Tindex", {.rank = 0})
              .output("band: T")
              .attr("T: type")
              .attr("Tindex: {int32, int64} = int64")
              .shape(band_part_shape)
              .gradient(band_part_grad)
              .doc("The matrices with zeros outside of a band around the diagonal; a negative width keeps that whole side."));
  kernels.add({.op = "Diag", .types = {{"T", kPlain}}, .prepare = diag_prepare});
  kernels.add({.op = "DiagPart", .types = {{"T", kPlain}}, .prepare = diag_part_prepare});
  kernels.add({.op = "MatrixBandPart", .types = {{"T", kPlain}}, .prepare = band_part_prepare});
}

}  // namespace dtg::ops
