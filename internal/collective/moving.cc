// The collectives that only move bytes: all-gather, broadcast, all-to-all, barrier.
#include <algorithm>
#include <cstring>

#include "collective/exchange.h"

namespace dtg {
namespace {

// Everybody brings rows to everybody: its own ones, or of its own ones those for each rank. How many come is known when the first piece
// of each stream is there.
class Moving final : public Exchange {
 public:
  Moving(CollectiveCall call, int rank, int size, Carrier& carrier, MemoryBudget& budget)
      : Exchange(std::move(call), rank, size, carrier, budget) {}

  Status begin() override {
    DTG_TRY(cut());
    const char* const in = static_cast<const char*>(input());
    for (int i = 1; i < size_; ++i) {
      const int rank = (rank_ + i) % size_;
      add_in(rank, 0);
      const Range range = cut_[static_cast<size_t>(rank)];
      Out& out = add_out(rank, 0, in + range.from, range.bytes);
      out.ready = range.bytes;
      out.rows = range.rows;
    }
    begin_streams();
    return place_all();
  }

 private:
  struct Range {
    uint64_t from = 0, bytes = 0;
    int64_t rows = 0;
  };

  // A broadcast whose root nobody knows beforehand: all get what all bring, which is one tensor.
  bool is_broadcast() const { return call_.terms.kind == Collective::broadcast; }

  Status learn(int rank, const CallTerms& terms) override {
    if (is_broadcast() && !terms.open) senders_.push_back(rank);
    if (terms.rows < 0 || __builtin_add_overflow(rows_, terms.rows, &rows_))
      return invalid_argument("%s: the ranks bring more rows together than a tensor can have", call_.terms.text().c_str());
    return {};
  }

  Status cut() {
    if (call_.terms.kind == Collective::barrier) {
      cut_.assign(static_cast<size_t>(size_), {});
      return {};
    }
    if (is_broadcast()) {
      row_ = static_cast<uint64_t>(dtype_size(call_.terms.dtype));
      if (!call_.terms.open) senders_.push_back(rank_);
      rows_ = call_.terms.open ? 0 : call_.in.count();
      cut_.assign(static_cast<size_t>(size_), {0, static_cast<uint64_t>(rows_) * row_, rows_});
      return {};
    }
    const Shape& shape = call_.in.shape();
    row_ = static_cast<uint64_t>(shape.count(1, shape.rank()) * dtype_size(call_.in.dtype()));
    if (call_.terms.kind == Collective::all_gather) {
      rows_ = shape.dim(0);
      cut_.assign(static_cast<size_t>(size_), {0, static_cast<uint64_t>(call_.in.bytes()), rows_});
      return {};
    }
    return cut_splits(shape.dim(0));
  }

  Status cut_splits(int64_t rows) {
    if (call_.splits.empty()) {
      if (rows % size_ != 0) {
        return invalid_argument("all_to_all: %lld rows cannot be cut into %d equal parts; give the splits", static_cast<long long>(rows),
                                size_);
      }
      call_.splits.assign(static_cast<size_t>(size_), rows / size_);
    }
    int64_t sum = 0;
    for (const int64_t split : call_.splits) {
      if (split < 0 || split > rows - sum)
        return invalid_argument("all_to_all: the splits do not cut %lld rows", static_cast<long long>(rows));
      cut_.push_back({static_cast<uint64_t>(sum) * row_, static_cast<uint64_t>(split) * row_, split});
      sum += split;
    }
    if (sum == rows && call_.splits.size() == static_cast<size_t>(size_)) {
      rows_ = cut_[static_cast<size_t>(rank_)].rows;
      return {};
    }
    return invalid_argument("all_to_all: %zu splits over %lld of %lld rows; one for each of %d ranks is needed, and all rows",
                            call_.splits.size(), static_cast<long long>(sum), static_cast<long long>(rows), size_);
  }

  Status heard(In& in) override {
    if (row_ == 0 ? in.total != 0 : in.total % row_ != 0)
      return data_loss("rank %d sends %llu bytes, which are no whole rows", in.rank, static_cast<unsigned long long>(in.total));
    return place_all();
  }

  Status place_all() {
    if (placed_) return {};
    for (const auto& in : ins_) {
      if (in->total == kUnknown) return {};
    }
    placed_ = true;
    if (is_broadcast()) DTG_TRY(check_senders());
    const Range own = cut_[static_cast<size_t>(rank_)];
    // What the others say of their streams may be anything.
    uint64_t total = own.bytes;
    for (const auto& in : ins_) {
      if (!__builtin_add_overflow(total, in->total, &total) && total <= INT64_MAX) continue;
      return data_loss("%s: rank %d sends %llu bytes, more than a tensor can have", call_.terms.text().c_str(), in->rank,
                       static_cast<unsigned long long>(in->total));
    }
    DTG_TRY(make_result(total));
    uint64_t at = 0;
    for (int rank = 0; rank < size_; ++rank) {
      if (rank == rank_) {
        if (own.bytes > 0) std::memcpy(output() + at, static_cast<const char*>(input()) + own.from, own.bytes);
        at += own.bytes;
        continue;
      }
      In& in = **std::ranges::find_if(ins_, [&](const auto& each) { return each->rank == rank; });
      place(in, output() + at);
      at += in.total;
    }
    return {};
  }

  Status check_senders() {
    if (senders_.size() == 1) return {};
    if (senders_.empty()) return invalid_argument("nobody sends: all %d ranks receive", size_);
    std::ranges::sort(senders_);
    return invalid_argument("rank %d and rank %d both send, and one does it for all", senders_[0], senders_[1]);
  }

  Status make_result(uint64_t bytes) {
    if (call_.terms.kind == Collective::barrier) return {};
    // Of rows without elements nothing comes but their number.
    const int64_t rows = row_ > 0 ? static_cast<int64_t>(bytes / row_) : rows_;
    PartialShape shape(is_broadcast() ? Shape::of({0}) : call_.in.shape());
    shape.set_dim(0, rows);
    DTG_ASSIGN(const Shape made, shape.to_shape());
    if (is_broadcast() && call_.out.valid() && call_.out.count() != rows)
      return invalid_argument("rank %d sends %lld elements, but rank %d receives %lld", senders_[0], static_cast<long long>(rows), rank_,
                              static_cast<long long>(call_.out.count()));
    return make_out(call_.terms.dtype, made);
  }

  bool finished() const override { return placed_; }

  std::vector<Range> cut_;  // what goes to each rank
  uint64_t row_ = 0;        // bytes
  int64_t rows_ = 0;        // of all whose streams have begun
  std::vector<int> senders_;
  bool placed_ = false;
};

// Down a binary tree, handed on as it comes.
class Broadcast final : public Exchange {
 public:
  Broadcast(CollectiveCall call, int rank, int size, Carrier& carrier, MemoryBudget& budget)
      : Exchange(std::move(call), rank, size, carrier, budget) {}

  Status begin() override {
    const int root = static_cast<int>(call_.terms.root);
    place_in_tree_ = (rank_ - root + size_) % size_;
    if (place_in_tree_ > 0) {
      from_ = &add_in(((place_in_tree_ - 1) / 2 + root) % size_, 0);
      begin_streams();
      return {};
    }
    DTG_TRY(make_out(call_.in.dtype(), call_.in.shape()));
    if (output() != input() && call_.in.bytes() > 0) std::memcpy(output(), input(), static_cast<size_t>(call_.in.bytes()));
    hand_on(static_cast<uint64_t>(call_.in.bytes()), static_cast<uint64_t>(call_.in.bytes()));
    begin_streams();
    return {};
  }

  // The root's terms, which its first piece brings along from rank to rank.
  Status learn(int, const CallTerms& terms) override {
    if (place_in_tree_ == 0) return {};
    if (call_.out.valid() || !terms.open) DTG_TRY(make_out(terms.dtype, terms.shape));
    call_.terms.dtype = terms.dtype;
    call_.terms.shape = terms.shape;
    call_.terms.open = false;
    return {};
  }

 private:
  void hand_on(uint64_t total, uint64_t ready) {
    for (int child = 2 * place_in_tree_ + 1; child <= 2 * place_in_tree_ + 2 && child < size_; ++child)
      add_out((child + static_cast<int>(call_.terms.root)) % size_, 0, output(), total).ready = ready;
  }
  Status heard(In& in) override {
    if (!call_.out.valid() || static_cast<uint64_t>(call_.out.bytes()) != in.total)
      return data_loss("rank %d sends %llu bytes, which are no %s", in.rank, static_cast<unsigned long long>(in.total),
                       terms().text().c_str());
    hand_on(in.total, 0);
    place(in, output());
    begin_streams();
    return {};
  }
  Status advance(In& in) override {
    for (const auto& out : outs_) make_ready(*out, in.arrived);
    return {};
  }
  bool finished() const override { return !from_ || from_->heard; }

  int place_in_tree_ = 0;
  In* from_ = nullptr;
};

}  // namespace

Result<Ref<Exchange>> make_moving(CollectiveCall call, int rank, int size, Exchange::Carrier& carrier, MemoryBudget& budget) {
  if (call.terms.kind == Collective::broadcast && call.terms.root != CallTerms::kAnyRoot)
    return Ref<Exchange>(make_ref<Broadcast>(std::move(call), rank, size, carrier, budget));
  return Ref<Exchange>(make_ref<Moving>(std::move(call), rank, size, carrier, budget));
}

}  // namespace dtg
