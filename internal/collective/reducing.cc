// All-reduce and reduce-scatter. Every element is added in the one order of its bucket, whatever the algorithm and the timing, so the
// bits are always those of a fold on one rank.
#include "collective/reducing.h"

#include <algorithm>

namespace dtg {
namespace {

constexpr uint64_t kDirectBytes = uint64_t{128} << 10;  // that one rank sends; more is cheaper in two ways (tests/bench/collectives.c)

// Everybody sends everything to everybody.
class DirectReduce final : public Reducing {
 public:
  using Reducing::Reducing;
  Status begin() override {
    DTG_TRY(make_out(call_.in.dtype(), call_.in.shape()));
    adding_.ins.assign(static_cast<size_t>(contributions()), nullptr);
    for (int p = 0; p < parts(); ++p) adding_.owns.push_back(part(p));
    adding_.out = output();
    adding_.total = bytes_of(call_.in.count());
    in_place_ = size_ > 1 && input() == output();
    if (in_place_) adding_.free_upto = 0;
    for (int rank = 0; rank < size_; ++rank) {
      for (int p = 0; p < parts() && rank != rank_; ++p) {
        const auto lane = static_cast<uint8_t>(p);
        adding_.ins[static_cast<size_t>(rank * parts() + p)] = &add_in(rank, lane, adding_.total);
        DTG_TRY(place_window(*ins_.back()));
        add_out(rank, lane, part(p), adding_.total).ready = adding_.total;
      }
    }
    begin_streams();
    add_up(adding_);
    return {};
  }

 private:
  Status advance(In&) override {
    add_up(adding_);
    return {};
  }
  // In place: what others still need of the input is not written over.
  Status left(Out&) override {
    if (!in_place_) return {};
    adding_.free_upto = UINT64_MAX;
    for (const auto& out : outs_) adding_.free_upto = std::min(adding_.free_upto, out->complete() ? UINT64_MAX : out->sent);
    add_up(adding_);
    return {};
  }
  bool finished() const override { return adding_.added == adding_.total; }

  Adding adding_;
  bool in_place_ = false;
};

// The first lanes bring the contributions to a share to its rank, one lane for each part, the lane behind them takes the sums to the
// others. Without the second way it is a reduce-scatter, whose shares are made of whole rows.
class SharedReduce final : public Reducing {
 public:
  SharedReduce(CollectiveCall call, int rank, int size, Carrier& carrier, MemoryBudget& budget, const Combine& combine, bool scatters)
      : Reducing(std::move(call), rank, size, carrier, budget, combine), scatters_(scatters) {}

  Status begin() override {
    const Shape& shape = call_.in.shape();
    const int64_t row = scatters_ ? std::max<int64_t>(shape.count(1, shape.rank()), 0) : 1;
    const Shares shares{scatters_ ? shape.dim(0) : shape.count(), size_};
    const auto bytes = [&](int64_t of) { return bytes_of(of * row); };
    PartialShape result(shape);
    if (scatters_) result.set_dim(0, shares.length(rank_));
    DTG_ASSIGN(const Shape made, result.to_shape());
    DTG_TRY(make_out(call_.in.dtype(), made));
    const uint64_t mine = bytes(shares.begin(rank_));
    const auto sums_lane = static_cast<uint8_t>(parts());
    adding_.ins.assign(static_cast<size_t>(contributions()), nullptr);
    for (int p = 0; p < parts(); ++p) adding_.owns.push_back(part(p) + mine);
    adding_.out = scatters_ ? output() : output() + mine;
    adding_.total = bytes(shares.length(rank_));
    for (int i = 1; i < size_; ++i) {
      const int rank = (rank_ + i) % size_;  // not all to the same at once
      const uint64_t theirs = bytes(shares.length(rank));
      for (int p = 0; p < parts(); ++p) {
        const auto lane = static_cast<uint8_t>(p);
        adding_.ins[static_cast<size_t>(rank * parts() + p)] = &add_in(rank, lane, adding_.total);
        DTG_TRY(place_window(*ins_.back()));
        add_out(rank, lane, part(p) + bytes(shares.begin(rank)), theirs).ready = theirs;
      }
      if (scatters_) continue;
      // What lands there has been sent to that rank before: it is the sum of it.
      place(add_in(rank, sums_lane, theirs), output() + bytes(shares.begin(rank)));
      sums_.push_back(&add_out(rank, sums_lane, adding_.out, adding_.total));
    }
    begin_streams();
    return advance_sums();
  }

 private:
  Status advance(In& in) override { return in.lane < parts() ? advance_sums() : Status(); }
  Status advance_sums() {
    add_up(adding_);
    for (Out* out : sums_) make_ready(*out, adding_.added);
    return {};
  }
  bool finished() const override { return adding_.added == adding_.total; }

  const bool scatters_;
  Adding adding_;
  std::vector<Out*> sums_;
};

// The first of the order sends its elements up, each adds its own and hands on, the last sends the sums down again: both directions
// of every link are busy, and nobody talks to more than two.
class RingReduce final : public Reducing {
 public:
  using Reducing::Reducing;
  Status begin() override {
    DTG_TRY(make_out(call_.in.dtype(), call_.in.shape()));
    total_ = bytes_of(call_.in.count());
    const int place_in_order = (rank_ - first_in_order(call_.terms.bucket, size_) + size_) % size_;
    const int before = (rank_ + size_ - 1) % size_, after = (rank_ + 1) % size_;
    is_last_ = place_in_order == size_ - 1;
    if (place_in_order > 0) {
      up_in_ = &add_in(before, 0, total_);
      DTG_TRY(place_window(*up_in_));
      down_out_ = &add_out(before, 1, output(), total_);
    }
    if (!is_last_) {
      up_out_ = &add_out(after, 0, place_in_order == 0 ? input() : output(), total_);
      if (place_in_order == 0) up_out_->ready = total_;
      down_in_ = &add_in(after, 1, total_);
      // A sum comes back only when what was handed on has been added elsewhere.
      place(*down_in_, output());
    }
    begin_streams();
    return {};
  }

 private:
  Status advance(In& in) override {
    if (&in == down_in_) {
      if (down_out_) make_ready(*down_out_, in.arrived);
      return {};
    }
    const char* const own = static_cast<const char*>(input());
    const uint64_t upto = in.arrived - in.arrived % static_cast<uint64_t>(combine_.element_bytes());
    while (added_ < upto) {
      const uint64_t from = added_, to = std::min(upto, (from / kPieceBytes + 1) * kPieceBytes);
      combine_.add(in.at(from), own + from, output() + from, elements_of(to - from));
      if (is_last_) combine_.finish(output() + from, elements_of(to - from));
      added_ = to;
    }
    consume(in, added_);
    make_ready(is_last_ ? *down_out_ : *up_out_, added_);
    return {};
  }
  bool finished() const override { return !up_in_ || added_ == total_; }

  uint64_t total_ = 0, added_ = 0;
  bool is_last_ = false;
  In* up_in_ = nullptr;
  In* down_in_ = nullptr;
  Out* up_out_ = nullptr;
  Out* down_out_ = nullptr;
};

Algorithm choose(const CollectiveCall& call, int size) {
  if (call.terms.algorithm != Algorithm::automatic && !takes_any_order(call.terms.algorithm)) return call.terms.algorithm;
  const auto sent = static_cast<uint64_t>(call.in.bytes()) * static_cast<uint64_t>(size - 1) * call.terms.parts;
  return size == 2 || sent <= kDirectBytes ? Algorithm::direct : Algorithm::shared;
}

}  // namespace

Result<Ref<Exchange>> make_reducing(CollectiveCall call, int rank, int size, Exchange::Carrier& carrier, MemoryBudget& budget) {
  const auto parts = static_cast<int>(call.terms.parts);
  if (parts > 1 && call.terms.algorithm >= Algorithm::ring && call.terms.algorithm != Algorithm::any)
    return unimplemented("%s by that algorithm; leave it open", call.terms.text().c_str());
  DTG_ASSIGN(const Combine combine, Combine::make(call.terms.reduction, call.terms.dtype, size * parts));
  Ref<Exchange> made;
  if (call.terms.kind == Collective::all_reduce && size > 1 && parts == 1 && takes_any_order(call.terms.algorithm)) {
    DTG_ASSIGN(made, make_any_order(call, rank, size, carrier, budget, combine));
    if (made) return made;
  }
  if (call.terms.kind == Collective::reduce_scatter)
    made = Ref<Exchange>::adopt(new SharedReduce(std::move(call), rank, size, carrier, budget, combine, true));
  else if (const Algorithm algorithm = choose(call, size); size == 1 || algorithm == Algorithm::direct)
    made = Ref<Exchange>::adopt(new DirectReduce(std::move(call), rank, size, carrier, budget, combine));
  else if (algorithm == Algorithm::ring) made = Ref<Exchange>::adopt(new RingReduce(std::move(call), rank, size, carrier, budget, combine));
  else made = Ref<Exchange>::adopt(new SharedReduce(std::move(call), rank, size, carrier, budget, combine, false));
  return made;
}

}  // namespace dtg
