// Chance, contributions and plain sums.
#include "collective_ask.h"

#include <cstring>

namespace dtg::sim {
namespace {

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15ull ^ (b + 0x7f4a7c15ull) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 31) * 0x94d049bb133111ebull;
  return x ^ x >> 29;
}

// Floats have all their digits, so that another order of additions gives other bits; `whole`: they do not, and every order gives the same.
template <class T>
void fill(Tensor& tensor, uint64_t from, bool whole) {
  T* const to = tensor.as<T>();
  for (int64_t i = 0; i < tensor.count(); ++i) {
    const uint64_t bits = mix(from, static_cast<uint64_t>(i));
    if (std::is_floating_point_v<T> && !whole) to[i] = static_cast<T>(static_cast<double>(bits >> 11) * 0x1p-52 - 0.5);
    else to[i] = static_cast<T>(static_cast<int64_t>(bits % 2001) - 1000);
  }
}

template <class T>
T together(Reduction reduction, T a, T b) {
  switch (reduction) {
    case Reduction::minimum: return b < a ? b : a;
    case Reduction::maximum: return a < b ? b : a;
    case Reduction::product: return a * b;
    default: return a + b;
  }
}

template <class T>
void reduce(const std::vector<Tensor>& all, const CallTerms& terms, Tensor& out) {
  const size_t first = terms.bucket % all.size();
  for (int64_t i = 0; i < out.count(); ++i) {
    T sum = all[first].as<T>()[i];
    for (size_t n = 1; n < all.size(); ++n) sum = together(terms.reduction, sum, all[(first + n) % all.size()].as<T>()[i]);
    if (terms.reduction == Reduction::mean) sum = sum / static_cast<T>(all.size());
    out.as<T>()[i] = sum;
  }
}

}  // namespace

CollectiveAsk::CollectiveAsk(uint64_t seed, uint64_t epoch, uint64_t step, int number, std::vector<int> members)
    : tag_(mix(mix(seed, epoch), step * 64 + static_cast<uint64_t>(number))), members_(std::move(members)) {
  const auto size = static_cast<int64_t>(members_.size());
  constexpr Collective kKinds[] = {Collective::all_reduce, Collective::all_reduce,     Collective::all_reduce, Collective::broadcast,
                                   Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all, Collective::barrier};
  terms_.kind = kKinds[chance(1) % 8];
  if (terms_.kind == Collective::barrier) return;
  constexpr DType kTypes[] = {DType::f32, DType::f64, DType::i32, DType::i64};
  terms_.dtype = kTypes[chance(2) % 4];
  terms_.reduction = static_cast<Reduction>(chance(3) % (kReductionMax + 1));
  const bool is_float = terms_.dtype == DType::f32 || terms_.dtype == DType::f64;
  // Products of whole numbers would not fit.
  if (!is_float && (terms_.reduction == Reduction::product || terms_.reduction == Reduction::mean)) terms_.reduction = Reduction::sum;
  // Now and then more than what leaves unasked, and more than a piece.
  columns_ = static_cast<int64_t>(1 + chance(4) % 5);
  const uint64_t big = chance(5) % 40;
  rows_ = big == 0 ? static_cast<int64_t>(20'000 + chance(6) % 40'000) : big < 4 ? 2'000 : static_cast<int64_t>(chance(6) % 40);
  if (terms_.kind == Collective::all_reduce || terms_.kind == Collective::reduce_scatter) {
    terms_.bucket = static_cast<uint32_t>(chance(7) % 9);
    if (chance(8) % 4 == 0) terms_.parts = static_cast<uint32_t>(2 + chance(9) % 2);
    if (terms_.kind == Collective::all_reduce) terms_.algorithm = static_cast<Algorithm>(chance(10) % (kAlgorithmMax + 1));
    if (terms_.parts > 1 && terms_.algorithm >= Algorithm::ring) terms_.algorithm = Algorithm::shared;
    if (takes_any_order(terms_.algorithm) && terms_.reduction == Reduction::product) terms_.reduction = Reduction::sum;
  }
  if (terms_.kind == Collective::broadcast) terms_.root = static_cast<uint32_t>(chance(11) % static_cast<uint64_t>(size));
}

uint64_t CollectiveAsk::chance(uint64_t what) const { return mix(tag_, what); }

int64_t CollectiveAsk::split(int from, int to) const {
  return static_cast<int64_t>(chance(1000 + static_cast<uint64_t>(from * 64 + to)) % static_cast<uint64_t>(rows_ / 4 + 3));
}

int64_t CollectiveAsk::rows_of(int rank) const {
  if (terms_.kind == Collective::all_gather) return split(rank, rank);
  if (terms_.kind != Collective::all_to_all) return rows_;
  int64_t rows = 0;
  for (int to = 0; to < static_cast<int>(members_.size()); ++to) rows += split(rank, to);
  return rows;
}

Tensor CollectiveAsk::brought(int rank, uint32_t part) const {
  Tensor tensor = Tensor::allocate(terms_.dtype, Shape::of({rows_of(rank), columns_})).take();
  const bool whole = takes_any_order(terms_.algorithm);
  const uint64_t from = mix(tag_, 5000 + static_cast<uint64_t>(members_[static_cast<size_t>(rank)]) * 16 + part);
  switch (terms_.dtype) {
    case DType::f32: fill<float>(tensor, from, whole); break;
    case DType::f64: fill<double>(tensor, from, whole); break;
    case DType::i32: fill<int32_t>(tensor, from, whole); break;
    default: fill<int64_t>(tensor, from, whole); break;
  }
  return tensor;
}

CollectiveCall CollectiveAsk::call(int rank) const {
  CollectiveCall call;
  call.terms = terms_;
  if (terms_.kind == Collective::barrier) return call;
  if (terms_.kind == Collective::broadcast && static_cast<int>(terms_.root) != rank) {
    call.terms.open = true;
    call.terms.dtype = DType::invalid;
    return call;
  }
  call.in = brought(rank, 0);
  call.terms.shape = call.in.shape();
  for (uint32_t part = 1; part < terms_.parts; ++part) call.more.push_back(brought(rank, part));
  for (int to = 0; terms_.kind == Collective::all_to_all && to < static_cast<int>(members_.size()); ++to)
    call.splits.push_back(split(rank, to));
  if (terms_.kind == Collective::all_reduce && chance(12) % 3 == 0) call.out = call.in;  // in place
  return call;
}

CollectiveCall CollectiveAsk::odd_call(int rank) const {
  CollectiveCall odd = call(rank);
  odd.more.clear();
  odd.splits.clear();
  odd.out = Tensor();
  odd.terms.parts = 1;
  const bool reduces = terms_.kind == Collective::all_reduce || terms_.kind == Collective::reduce_scatter;
  const uint64_t how = chance(13) % 4;
  if (terms_.kind == Collective::barrier || how == 0) {
    odd.terms = {};
    odd.terms.kind = Collective::all_reduce;
    odd.in = Tensor::allocate(DType::i64, Shape::of({7})).take();
    std::fill_n(odd.in.as<int64_t>(), 7, int64_t{1});
    odd.terms.dtype = DType::i64;
  } else if (reduces && how == 1) {
    odd.terms.bucket = terms_.bucket + 9;
  } else {
    // Another type where shapes may differ, or another shape.
    const DType type = how == 2 || !reduces ? DType::u8 : terms_.dtype;
    odd.in = Tensor::allocate(type, Shape::of({8, columns_ + 1})).take();
    std::memset(odd.in.data(), 0, static_cast<size_t>(odd.in.bytes()));
    odd.terms.dtype = type;
    if (terms_.kind == Collective::all_to_all) odd.splits.assign(members_.size(), 0), odd.splits[0] = 8;
  }
  if (odd.terms.kind != Collective::barrier) odd.terms.shape = odd.in.shape();
  return odd;
}

Tensor CollectiveAsk::reduced() const {
  std::vector<Tensor> all;
  for (int rank = 0; rank < static_cast<int>(members_.size()); ++rank) {
    for (uint32_t part = 0; part < terms_.parts; ++part) all.push_back(brought(rank, part));
  }
  Tensor out = Tensor::allocate(terms_.dtype, all[0].shape()).take();
  switch (terms_.dtype) {
    case DType::f32: reduce<float>(all, terms_, out); break;
    case DType::f64: reduce<double>(all, terms_, out); break;
    case DType::i32: reduce<int32_t>(all, terms_, out); break;
    default: reduce<int64_t>(all, terms_, out); break;
  }
  return out;
}

// What has to come out at that rank: rows of what was brought, or of the sum.
Tensor CollectiveAsk::result(int rank) const {
  const auto size = static_cast<int>(members_.size());
  if (terms_.kind == Collective::all_reduce) return reduced();
  if (terms_.kind == Collective::broadcast) return brought(static_cast<int>(terms_.root), 0);
  std::string bytes;
  int64_t rows = 0;
  const int64_t row_bytes = columns_ * dtype_size(terms_.dtype);
  const auto take = [&](const Tensor& of, int64_t from, int64_t count) {
    bytes.append(static_cast<const char*>(of.data()) + from * row_bytes, static_cast<size_t>(count * row_bytes));
    rows += count;
  };
  if (terms_.kind == Collective::reduce_scatter) {
    int64_t from = 0;
    const auto share = [&](int of) { return rows_ / size + (of < rows_ % size ? 1 : 0); };
    for (int before = 0; before < rank; ++before) from += share(before);
    take(reduced(), from, share(rank));
  }
  for (int from = 0; terms_.kind == Collective::all_gather && from < size; ++from) take(brought(from, 0), 0, rows_of(from));
  for (int from = 0; terms_.kind == Collective::all_to_all && from < size; ++from) {
    int64_t before = 0;
    for (int to = 0; to < rank; ++to) before += split(from, to);
    take(brought(from, 0), before, split(from, rank));
  }
  Tensor out = Tensor::allocate(terms_.dtype, Shape::of({rows, columns_})).take();
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

std::string CollectiveAsk::judge(int rank, const Tensor& found) const {
  if (terms_.kind == Collective::barrier) return "";
  const Tensor wanted = result(rank);
  if (found.dtype() != wanted.dtype() || !(found.shape() == wanted.shape()))
    return terms_.text() + " gives " + found.text() + ", and not " + wanted.text();
  const auto* const a = static_cast<const char*>(found.data());
  const auto* const b = static_cast<const char*>(wanted.data());
  for (int64_t i = 0; i < wanted.bytes(); ++i) {
    if (a[i] != b[i]) return terms_.text() + ", " + wanted.text() + ": byte " + std::to_string(i) + " is another";
  }
  return "";
}

}  // namespace dtg::sim
