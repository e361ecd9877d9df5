// Sets: SetSize, and differences, intersections and unions of the rows of two tensors, dense or sparse, which give a sparse one with each
// row's elements in order. Registered once by the runtime; kernels run on any thread.
#include <algorithm>
#include <map>
#include <set>

#include "base/watched.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/texts.h"

namespace dtg::ops {
namespace {

using Long = long long;
using Place = std::vector<int64_t>;  // of a row: all dimensions but the last

constexpr DTypeSet kElements{DType::i8, DType::i16, DType::i32, DType::i64, DType::u8, DType::u16, DType::string};
constexpr const char* kElementsAttr = "T: {int8, int16, int32, int64, uint8, uint16, string}";

// Elements as one of two types: whole numbers or strings.
template <class Key>
Key key_at(const void* data, DType dtype, int64_t i) {
  if constexpr (std::is_same_v<Key, std::string_view>) return static_cast<const Text*>(data)[i].view();
  else return integer_at(data, dtype, i);
}

// One operand: dense from input `first`, or sparse with its three inputs.
struct Operand {
  int first = 0;
  bool sparse = false;
  Shape shape;        // of a dense one
  int64_t count = 0;  // of entries of a sparse one
  int rank = 0;
  DType dtype = DType::i32;
};

template <class Key>
using Rows = std::map<Place, std::set<Key>>;

template <class Key>
Status read_dense(const RunContext& c, const Operand& from, Rows<Key>* rows, Place* outer) {
  for (int d = 0; d + 1 < from.rank; ++d) outer->push_back(from.shape.dim(d));
  const int64_t width = from.shape.dim(from.rank - 1), count = from.shape.count();
  Place place(outer->size());
  for (const int64_t i : watched(count, 50)) {
    int64_t row = i / width;
    for (size_t d = place.size(); d-- > 0; row /= (*outer)[d]) place[d] = row % (*outer)[d];
    (*rows)[place].insert(key_at<Key>(c.in<void>(from.first), from.dtype, i));
  }
  return {};
}

template <class Key>
Status read_sparse(const RunContext& c, const Operand& from, bool validate, Rows<Key>* rows, Place* outer) {
  const auto *const indices = c.in<int64_t>(from.first), *const shape = c.in<int64_t>(from.first + 2);
  for (int d = 0; d < from.rank; ++d) {
    if (shape[d] < 0) return c.error("the shape of set %d has %lld as dimension %d", from.first, static_cast<Long>(shape[d]), d);
    if (d + 1 < from.rank) outer->push_back(shape[d]);
  }
  for (const int64_t i : watched(from.count, 50)) {
    const int64_t* const own = indices + i * from.rank;
    for (int d = 0; d < from.rank; ++d) {
      if (own[d] < 0 || own[d] >= shape[d])
        return c.error("entry %lld stands at %lld in dimension %d of %lld", static_cast<Long>(i), static_cast<Long>(own[d]), d,
                       static_cast<Long>(shape[d]));
    }
    if (validate && i > 0 && !std::lexicographical_compare(own - from.rank, own, own, own + from.rank))
      return c.error("entry %lld is out of order, or stands where the one before stands", static_cast<Long>(i));
    (*rows)[Place(own, own + from.rank - 1)].insert(key_at<Key>(c.in<void>(from.first + 1), from.dtype, i));
  }
  return {};
}

enum class SetOp { a_minus_b, b_minus_a, intersection, unite };

struct SetArgs {
  Operand a, b;
  SetOp op = SetOp::unite;
  bool validate = true;
  OutputSpec out[3];
};

template <class Key>
std::vector<Key> combined(const std::set<Key>& a, const std::set<Key>& b, SetOp op) {
  std::vector<Key> made;
  const auto into = std::back_inserter(made);
  switch (op) {
    case SetOp::a_minus_b: std::ranges::set_difference(a, b, into); break;
    case SetOp::b_minus_a: std::ranges::set_difference(b, a, into); break;
    case SetOp::intersection: std::ranges::set_intersection(a, b, into); break;
    case SetOp::unite: std::ranges::set_union(a, b, into); break;
  }
  return made;
}

template <class Key>
struct Result3 {
  std::vector<Place> places;
  std::vector<std::vector<Key>> elements;  // of the row there
  int64_t count = 0, widest = 0;
};

void store(void* data, DType dtype, int64_t i, int64_t value) {
  switch (dtype) {
    case DType::i8: static_cast<int8_t*>(data)[i] = static_cast<int8_t>(value); break;
    case DType::u8: static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(value); break;
    case DType::i16: static_cast<int16_t*>(data)[i] = static_cast<int16_t>(value); break;
    case DType::u16: static_cast<uint16_t*>(data)[i] = static_cast<uint16_t>(value); break;
    case DType::i32: static_cast<int32_t*>(data)[i] = static_cast<int32_t>(value); break;
    default: static_cast<int64_t*>(data)[i] = value; break;
  }
}
// The bytes of a string are an operand's, and stay as long as the run.
void store(void* data, DType, int64_t i, std::string_view value) { static_cast<Text*>(data)[i] = value; }

template <class Key>
Status write_result(RunContext& c, const SetArgs& a, const Place& outer, const Result3<Key>& made) {
  const auto rank = static_cast<int64_t>(outer.size()) + 1;
  DTG_ASSIGN(char* const indices, a.out[0].memory(c, Shape::of({made.count, rank})));
  DTG_ASSIGN(char* const values, a.out[1].memory(c, Shape::of({made.count})));
  DTG_ASSIGN(char* const shape, a.out[2].memory(c, Shape::of({rank})));
  int64_t at = 0;
  for (size_t r = 0; r < made.places.size(); ++r) {
    for (size_t k = 0; k < made.elements[r].size(); ++k, ++at) {
      auto* const row = reinterpret_cast<int64_t*>(indices) + at * rank;
      std::ranges::copy(made.places[r], row);
      row[rank - 1] = static_cast<int64_t>(k);
      store(values, a.a.dtype, at, made.elements[r][k]);
    }
  }
  std::ranges::copy(outer, reinterpret_cast<int64_t*>(shape));
  reinterpret_cast<int64_t*>(shape)[rank - 1] = made.widest;
  return {};
}

template <class Key>
Status sets_run(RunContext& c) {
  const auto& args = c.args<SetArgs>();
  Rows<Key> a, b;
  Place outer_a, outer_b;
  for (const auto& [from, rows, outer] : {std::tuple(&args.a, &a, &outer_a), std::tuple(&args.b, &b, &outer_b)}) {
    DTG_TRY(from->sparse ? read_sparse<Key>(c, *from, args.validate, rows, outer) : read_dense<Key>(c, *from, rows, outer));
  }
  if (outer_a != outer_b) return c.error("the two sets differ in another dimension than the last one");
  const std::set<Key> none;
  Result3<Key> made;
  std::set<Place> places;
  for (const auto& [place, row] : a) places.insert(place);
  for (const auto& [place, row] : b) places.insert(place);
  for (const Place& place : places) {
    const auto at = a.find(place), other = b.find(place);
    std::vector<Key> row = combined(at == a.end() ? none : at->second, other == b.end() ? none : other->second, args.op);
    if (row.empty()) continue;
    made.count += static_cast<int64_t>(row.size());
    made.widest = std::max(made.widest, static_cast<int64_t>(row.size()));
    made.places.push_back(place);
    made.elements.push_back(std::move(row));
  }
  return write_result(c, args, outer_a, made);
}

Status sets_prepare(PrepareContext& c, bool sparse_a, bool sparse_b) {
  auto& a = *c.args<SetArgs>();
  std::string op = c.attr<std::string>("set_operation");
  std::ranges::transform(op, op.begin(), [](char each) { return each >= 'A' && each <= 'Z' ? static_cast<char>(each + 32) : each; });
  static constexpr std::string_view kOps[] = {"a-b", "b-a", "intersection", "union"};
  const auto* const which = std::ranges::find(kOps, std::string_view(op));
  if (which == std::end(kOps)) return c.error("set_operation is \"%s\"; it must be a-b, b-a, intersection or union", op.c_str());
  a.op = static_cast<SetOp>(which - kOps);
  a.validate = c.boolean("validate_indices");
  int next = 0;
  for (const auto& [operand, sparse] : {std::pair(&a.a, sparse_a), std::pair(&a.b, sparse_b)}) {
    const auto& values = c.input(next + (sparse ? 1 : 0));
    operand->first = next;
    operand->sparse = sparse;
    operand->dtype = values.dtype;
    operand->shape = values.shape;
    operand->count = sparse ? values.shape.count() : 0;
    operand->rank = sparse ? static_cast<int>(c.input(next + 2).shape.count()) : values.shape.rank();
    next += sparse ? 3 : 1;
  }
  if (a.a.rank != a.b.rank || a.a.rank < 2)
    return c.error("sets of %d and %d dimensions; both need the same number, at least 2", a.a.rank, a.b.rank);
  for (int i = 0; i < 3; ++i) a.out[i].prepare(c, i);
  return c.sync(a.a.dtype == DType::string ? sets_run<std::string_view> : sets_run<int64_t>);
}
Status dense_dense_prepare(PrepareContext& c) { return sets_prepare(c, false, false); }
Status dense_sparse_prepare(PrepareContext& c) { return sets_prepare(c, false, true); }
Status sparse_sparse_prepare(PrepareContext& c) { return sets_prepare(c, true, true); }

// Indices, values and shape at `at` fit to each other.
Status check_sparse(const InferContext& c, int at) {
  DTG_TRY(c.require_rank(at, 2));
  DTG_TRY(c.require_rank(at + 1, 1));
  DTG_TRY(c.require_rank(at + 2, 1));
  const auto dim = [&](int i, int d) { return c.input(i).has_rank() ? c.input(i).dim(d) : -1; };
  const int64_t rows = dim(at, 0), values = dim(at + 1, 0), columns = dim(at, 1), dims = dim(at + 2, 0);
  if ((rows >= 0 && values >= 0 && rows != values) || (columns >= 0 && dims >= 0 && columns != dims))
    return c.error("indices %s, values %s and shape %s do not fit", c.input(at).text().c_str(), c.input(at + 1).text().c_str(),
                   c.input(at + 2).text().c_str());
  return {};
}

// How many dimensions the operand at `at` has, as far as known; -1 otherwise.
int64_t rank_at(const InferContext& c, int at, bool sparse) {
  if (!sparse) return c.input(at).has_rank() ? c.input(at).rank() : -1;
  if (c.input(at + 2).has_rank() && c.input(at + 2).dim(0) >= 0) return c.input(at + 2).dim(0);
  return c.input(at).has_rank() ? c.input(at).dim(1) : -1;
}

Status sets_shape(InferContext& c) {
  const bool sparse_a = c.num_inputs() == 6, sparse_b = c.num_inputs() != 2;
  const int second = sparse_a ? 3 : 1;
  if (sparse_a) DTG_TRY(check_sparse(c, 0));
  else DTG_TRY(c.require_rank_at_least(0, 2));
  if (sparse_b) DTG_TRY(check_sparse(c, second));
  else DTG_TRY(c.require_rank_at_least(1, 2));
  const int64_t a = rank_at(c, 0, sparse_a), b = rank_at(c, second, sparse_b), rank = a >= 0 ? a : b;
  if ((a >= 0 && b >= 0 && a != b) || (rank >= 0 && rank < 2))
    return c.error("sets of %lld and %lld dimensions; both need the same number, at least 2", static_cast<Long>(a), static_cast<Long>(b));
  PartialShape indices = PartialShape::of_rank(2);
  indices.set_dim(1, rank);
  c.output(0, indices);
  c.output(1, PartialShape::vector(-1));
  c.output(2, PartialShape::vector(rank));
  return {};
}

// ---- SetSize -----------------------------------------------------------------------------------------------

Status set_size_shape(InferContext& c) {
  DTG_TRY(check_sparse(c, 0));
  const int64_t rank = rank_at(c, 0, true);
  if (rank >= 0 && rank < 2) return c.error("sets of %lld dimensions; at least 2 are needed", static_cast<Long>(rank));
  auto shape = c.shape_from_input(2);
  if (!shape.ok() || !shape.value().has_rank()) {
    if (rank > 1) c.output(0, PartialShape::of_rank(static_cast<int>(rank - 1)));
    return {};
  }
  PartialShape out = PartialShape::of_rank(shape.value().rank() - 1);
  for (int d = 0; d < out.rank(); ++d) out.set_dim(d, shape.value().dim(d));
  c.output(0, out);
  return {};
}

template <class Key>
Status set_size_run(RunContext& c) {
  const auto& a = c.args<SetArgs>();
  Rows<Key> rows;
  Place outer;
  DTG_TRY(read_sparse<Key>(c, a.a, a.validate, &rows, &outer));
  DTG_ASSIGN(const Shape shape, Shape::make(outer));
  DTG_ASSIGN(char* const memory, a.out[0].memory(c, shape));
  auto* const out = reinterpret_cast<int32_t*>(memory);
  std::fill_n(out, shape.count(), 0);
  for (const auto& [place, row] : rows) {
    int64_t at = 0;
    for (size_t d = 0; d < place.size(); ++d) at = at * outer[d] + place[d];
    out[at] = static_cast<int32_t>(row.size());
  }
  return {};
}

Status set_size_prepare(PrepareContext& c) {
  auto& a = *c.args<SetArgs>();
  a.validate = c.boolean("validate_indices");
  a.a = {.first = 0,
         .sparse = true,
         .count = c.input(1).shape.count(),
         .rank = static_cast<int>(c.input(2).shape.count()),
         .dtype = c.input(1).dtype};
  if (a.a.rank < 2) return c.error("sets of %d dimensions; at least 2 are needed", a.a.rank);
  a.out[0].prepare(c, 0);
  return c.sync(a.a.dtype == DType::string ? set_size_run<std::string_view> : set_size_run<int64_t>);
}

OpDef with_sparse(OpDef&& def, const char* name) {
  const std::string set = name;
  return std::move(def)
      .input((set + "_indices: int64").c_str(), {.rank = 2})
      .input((set + "_values: T").c_str(), {.rank = 1})
      .input((set + "_shape: int64").c_str(), {.rank = 1});
}

void register_set_op(OpTable& ops, KernelTable& kernels, OpDef&& def, PrepareFn prepare) {
  const std::string name = def.name();
  ops.add(
      std::move(def)
          .output("result_indices: int64")
          .output("result_values: T")
          .output("result_shape: int64")
          .attr("set_operation: string")
          .attr("validate_indices: bool = true")
          .attr(kElementsAttr)
          .shape(sets_shape)
          .no_gradient()
          .doc(
              "The elements of each row of two tensors, subtracted (a-b, b-a), met (intersection) or joined (union), as a sparse tensor."));
  for (const char* each : {"DenseToDenseSetOperation", "DenseToSparseSetOperation", "SparseToSparseSetOperation"}) {
    if (name == each) kernels.add({.op = each, .types = {{"T", kElements}}, .prepare = prepare});
  }
}

}  // namespace

void register_sets(OpTable& ops, KernelTable& kernels) {
  register_set_op(ops, kernels, OpDef::make("DenseToDenseSetOperation").input("set1: T").input("set2: T"), dense_dense_prepare);
  register_set_op(ops, kernels, with_sparse(OpDef::make("DenseToSparseSetOperation").input("set1: T"), "set2"), dense_sparse_prepare);
  register_set_op(ops, kernels, with_sparse(with_sparse(OpDef::make("SparseToSparseSetOperation"), "set1"), "set2"), sparse_sparse_prepare);
  ops.add(with_sparse(OpDef::make("SetSize"), "set")
              .output("size: int32")
              .attr("validate_indices: bool = true")
              .attr(kElementsAttr)
              .shape(set_size_shape)
              .no_gradient()
              .doc("How many different elements each row of a sparse tensor has."));
  kernels.add({.op = "SetSize", .types = {{"T", kElements}}, .prepare = set_size_prepare});
}

}  // namespace dtg::ops
