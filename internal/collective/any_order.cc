// All-reduces whose order of additions follows from the way that values travel: by pairs of ranks, and up a tree. All ranks end with the
// same bits, since of each sum both ends of a pair add the same two values, or one rank adds for all; they are the same in every run with
// the same ranks, whatever the timing.
#include <bit>
#include <cstring>

#include "collective/reducing.h"

namespace dtg {
namespace {

// By pairs. Where the ranks are no power of two, the first of them take a guest each, the rank behind: it sends what it has, and gets the
// result in the end. The others count as 0, 1, 2 ...; in round r those whose numbers differ in one bit are a pair.
class Paired : public Reducing {
 public:
  Paired(CollectiveCall call, int rank, int size, Carrier& carrier, MemoryBudget& budget, const Combine& combine)
      : Reducing(std::move(call), rank, size, carrier, budget, combine),
        pairs_(static_cast<int>(std::bit_floor(static_cast<unsigned>(size)))),
        rounds_(std::countr_zero(static_cast<unsigned>(pairs_))),
        guests_(size - pairs_) {}

  Status begin() override {
    DTG_TRY(make_out(call_.in.dtype(), call_.in.shape()));
    total_ = bytes_of(call_.in.count());
    if (is_guest()) {
      add_out(rank_ - 1, 0, input(), total_).ready = total_;
      place(add_in(rank_ - 1, last_lane(), total_), output());
    } else {
      DTG_TRY(lay_out());
      if (has_guest()) result_ = &add_out(rank_ + 1, last_lane(), output(), total_);
    }
    begin_streams();
    return go_on();
  }

 protected:
  // An addition: `from` and what comes in are added into `to`. `from` is there as far as the one before it is.
  struct Sum {
    In* in = nullptr;
    const char* from = nullptr;
    char* to = nullptr;
    bool first = true;  // what comes in is the second operand
    uint64_t total = 0, done = 0;
  };

  virtual Status lay_out() = 0;
  virtual Status go_on() = 0;
  Status advance(In&) override { return go_on(); }
  uint8_t last_lane() const { return static_cast<uint8_t>(1 + 2 * rounds_); }
  bool is_guest() const { return rank_ < 2 * guests_ && rank_ % 2 == 1; }
  bool has_guest() const { return rank_ < 2 * guests_ && rank_ % 2 == 0; }
  int number() const { return rank_ < 2 * guests_ ? rank_ / 2 : rank_ - guests_; }
  int rank_of(int number) const { return number < guests_ ? number * 2 : number + guests_; }

  // With the one of that number. `from` and `to` hold the bytes of this sum.
  Status add_sum(int with, uint8_t lane, const char* from, char* to, uint64_t total) {
    return add_sum_of(rank_of(with), lane, from, to, total, number() < with);
  }
  Status add_sum_of(int rank, uint8_t lane, const char* from, char* to, uint64_t total, bool first) {
    In& in = add_in(rank, lane, total);
    DTG_TRY(place_window(in));
    sums_.push_back({&in, from, to, first, total, 0});
    return {};
  }

  // As far as `upto` of what is added to is there.
  void work(Sum& sum, uint64_t upto, bool is_last) {
    upto = std::min({upto, sum.total, sum.in->arrived});
    upto -= upto % static_cast<uint64_t>(combine_.element_bytes());
    while (sum.done < upto) {
      const uint64_t from = sum.done, to = std::min(upto, (from / kPieceBytes + 1) * kPieceBytes);
      const char* const own = sum.from + from;
      const char* const theirs = sum.in->at(from);
      combine_.add(sum.first ? own : theirs, sum.first ? theirs : own, sum.to + from, elements_of(to - from));
      if (is_last) combine_.finish(sum.to + from, elements_of(to - from));
      sum.done = to;
    }
    if (sum.in->consumed < sum.done) consume(*sum.in, sum.done);
  }

  const int pairs_, rounds_, guests_;
  uint64_t total_ = 0;
  std::vector<Sum> sums_;  // in their order; a guest's first
  Out* result_ = nullptr;  // for the guest
};

// Everything in each round. Each sum stands in memory of its own, as it leaves while the next one is made.
class DoublingReduce final : public Paired {
 public:
  using Paired::Paired;

 private:
  Status lay_out() override {
    const char* from = static_cast<const char*>(input());
    // In place: what is still on its way to others is not written over.
    if (from == output()) {
      DTG_ASSIGN(char* const copy, scratch());
      if (total_ > 0) std::memcpy(copy, from, total_);
      from = copy;
    }
    const int count = rounds_ + (has_guest() ? 1 : 0);
    for (int i = 0; i < count; ++i) {
      char* to = output();
      if (i + 1 < count) {
        DTG_ASSIGN(to, scratch());
      }
      const int round = i - (count - rounds_);
      if (round < 0) {
        DTG_TRY(add_sum_of(rank_ + 1, 0, from, to, total_, true));
      } else {
        const int with = number() ^ (1 << round);
        const auto lane = static_cast<uint8_t>(1 + round);
        outs_of_.push_back(&add_out(rank_of(with), lane, from, total_));
        DTG_TRY(add_sum(with, lane, from, to, total_));
      }
      from = to;
    }
    return {};
  }

  Status go_on() override {
    uint64_t there = total_;
    for (size_t i = 0; i < sums_.size(); ++i) {
      const size_t guests = sums_.size() - outs_of_.size();
      if (i >= guests) make_ready(*outs_of_[i - guests], there);
      work(sums_[i], there, i + 1 == sums_.size());
      there = sums_[i].done;
    }
    if (result_) make_ready(*result_, there);
    return {};
  }
  bool finished() const override { return sums_.empty() || sums_.back().done == total_; }

  Result<char*> scratch() {
    DTG_TRY(reserve(total_, "sums on their way to other ranks"));
    DTG_ASSIGN(Ref<Buffer> memory, Buffer::allocate(static_cast<int64_t>(std::max<uint64_t>(total_, 1))));
    memory_.push_back(memory);
    return static_cast<char*>(memory->data());
  }

  std::vector<Out*> outs_of_;  // by round
  std::vector<Ref<Buffer>> memory_;
};

// In each round a pair halves what both have: each sends one half and adds the other. Then, the last round first, they bring what they
// have to each other. A sum comes back only when what was sent of it has been added, so it may land where that was.
class HalvingReduce final : public Paired {
 public:
  using Paired::Paired;

 private:
  struct Range {
    int64_t from = 0, upto = 0;
    int64_t count() const { return upto - from; }
  };
  struct Round {
    Range keeps, sends;
    Out* out = nullptr;        // of what is sent to be added
    Out* brings = nullptr;     // of what has been added
    const In* gets = nullptr;  // what the other one has added
  };

  Status lay_out() override {
    const char* from = static_cast<const char*>(input());
    if (has_guest()) {
      DTG_TRY(add_sum_of(rank_ + 1, 0, from, output(), total_, true));
      from = output();
    }
    Range range{0, call_.in.count()};
    for (int r = 0; r < rounds_; ++r) {
      const int bit = pairs_ >> (r + 1), with = number() ^ bit;
      const int64_t middle = range.from + range.count() / 2;
      Round round{{range.from, middle}, {middle, range.upto}};
      if ((number() & bit) != 0) std::swap(round.keeps, round.sends);
      const auto lane = static_cast<uint8_t>(1 + r), back = static_cast<uint8_t>(1 + rounds_ + r);
      const uint64_t keeps = bytes_of(round.keeps.from), sends = bytes_of(round.sends.from);
      round.out = &add_out(rank_of(with), lane, from + sends, bytes_of(round.sends.count()));
      DTG_TRY(add_sum(with, lane, from + keeps, output() + keeps, bytes_of(round.keeps.count())));
      round.brings = &add_out(rank_of(with), back, output() + keeps, bytes_of(round.keeps.count()));
      In& gets = add_in(rank_of(with), back, bytes_of(round.sends.count()));
      place(gets, output() + sends);
      round.gets = &gets;
      ways_.push_back(round);
      range = round.keeps;
      from = output();
    }
    return {};
  }

  Status go_on() override {
    // Of the range that the next round halves, from its beginning on.
    uint64_t there = total_;
    int64_t begin = 0;
    size_t i = 0;
    if (has_guest()) {
      work(sums_[i], there, ways_.empty());
      there = sums_[i++].done;
    }
    for (size_t r = 0; r < ways_.size(); ++r, ++i) {
      const auto part = [&](const Range& range) {
        const uint64_t before = bytes_of(range.from - begin);
        return std::min(bytes_of(range.count()), there - std::min(there, before));
      };
      make_ready(*ways_[r].out, part(ways_[r].sends));
      work(sums_[i], part(ways_[r].keeps), r + 1 == ways_.size());
      there = sums_[i].done;
      begin = ways_[r].keeps.from;
    }
    bring_back();
    return {};
  }

  void bring_back() {
    complete_ = finished_sums();
    for (size_t r = ways_.size(); complete_ && r-- > 0;) {
      make_ready(*ways_[r].brings, ways_[r].brings->total);
      complete_ = ways_[r].gets->complete();
    }
    if (complete_ && result_) make_ready(*result_, total_);
  }
  bool finished_sums() const { return sums_.empty() || sums_.back().done == sums_.back().total; }
  bool finished() const override { return finished_sums(); }

  std::vector<Round> ways_;
  bool complete_ = false;
};

// Each adds what its children have to its own and hands it to its parent; the root's sums come down the same way.
class TreeReduce final : public Reducing {
 public:
  // `parent`: by rank; that of the root is -1.
  TreeReduce(CollectiveCall call, int rank, int size, Carrier& carrier, MemoryBudget& budget, const Combine& combine,
             const std::vector<int>& parent)
      : Reducing(std::move(call), rank, size, carrier, budget, combine), parent_(parent[static_cast<size_t>(rank)]) {
    for (int child = 0; child < size; ++child) {
      if (parent[static_cast<size_t>(child)] == rank) children_.push_back(child);
    }
  }

  Status begin() override {
    DTG_TRY(make_out(call_.in.dtype(), call_.in.shape()));
    total_ = bytes_of(call_.in.count());
    for (const int child : children_) {
      ups_.push_back(&add_in(child, 0, total_));
      DTG_TRY(place_window(*ups_.back()));
      downs_.push_back(&add_out(child, 1, output(), total_));
    }
    if (parent_ >= 0) {
      up_ = &add_out(parent_, 0, children_.empty() ? input() : output(), total_);
      if (children_.empty()) up_->ready = total_;
      down_ = &add_in(parent_, 1, total_);
      place(*down_, output());
    }
    begin_streams();
    add_children();
    return {};
  }

 private:
  Status advance(In& in) override {
    if (&in != down_) add_children();
    else hand_down(in.arrived);
    return {};
  }

  void add_children() {
    if (children_.empty()) return;
    uint64_t upto = total_;
    for (const In* in : ups_) upto = std::min(upto, in->arrived);
    upto -= upto % static_cast<uint64_t>(combine_.element_bytes());
    std::vector<const void*> all(ups_.size() + 1);
    while (added_ < upto) {
      const uint64_t from = added_, to = std::min(upto, (from / kPieceBytes + 1) * kPieceBytes);
      all[0] = static_cast<const char*>(input()) + from;
      for (size_t i = 0; i < ups_.size(); ++i) all[i + 1] = ups_[i]->at(from);
      combine_.fold(all, output() + from, elements_of(to - from));
      if (!up_) combine_.finish(output() + from, elements_of(to - from));
      added_ = to;
    }
    for (In* in : ups_) {
      if (in->consumed < added_) consume(*in, added_);
    }
    if (up_) make_ready(*up_, added_);
    else hand_down(added_);
  }
  void hand_down(uint64_t upto) {
    for (Out* out : downs_) make_ready(*out, upto);
  }
  bool finished() const override { return children_.empty() || added_ == total_; }

  const int parent_;
  std::vector<int> children_;
  uint64_t total_ = 0, added_ = 0;
  std::vector<In*> ups_;
  std::vector<Out*> downs_;
  Out* up_ = nullptr;
  In* down_ = nullptr;
};

// The first rank of each host takes part in a binary tree of hosts; the others of the host hang on it.
std::vector<int> tree_of(const std::vector<int>& hosts, int size) {
  std::vector<int> parent(static_cast<size_t>(size), -1), leaders, leader_of;
  for (int rank = 0; rank < size; ++rank) {
    const auto host = static_cast<size_t>(hosts.empty() ? 0 : hosts[static_cast<size_t>(rank)]);
    if (host >= leader_of.size()) leader_of.resize(host + 1, -1);
    if (leader_of[host] >= 0) {
      parent[static_cast<size_t>(rank)] = leader_of[host];
      continue;
    }
    leader_of[host] = rank;
    if (!leaders.empty()) parent[static_cast<size_t>(rank)] = leaders[(leaders.size() - 1) / 2];
    leaders.push_back(rank);
  }
  return parent;
}

std::vector<int> tree_of_ranks(int size) {
  std::vector<int> parent(static_cast<size_t>(size), -1);
  for (int rank = 1; rank < size; ++rank) parent[static_cast<size_t>(rank)] = (rank - 1) / 2;
  return parent;
}

bool has_several_hosts(const std::vector<int>& hosts) {
  return std::ranges::any_of(hosts, [](int host) { return host != 0; });
}

// The table for any order: what was the fastest between processes of one host (make bench, growth), and between hosts what sends the least
// over their network.
constexpr uint64_t kDoublingBytes = uint64_t{16} << 10;
constexpr uint64_t kHalvingBytes = uint64_t{1} << 20;

Algorithm choose(const CollectiveCall& call, int size) {
  if (call.terms.algorithm != Algorithm::any) return call.terms.algorithm;
  const auto bytes = static_cast<uint64_t>(call.in.bytes());
  if (has_several_hosts(call.hosts) && *std::ranges::max_element(call.hosts) + 1 < size) return Algorithm::hierarchy;
  if (bytes <= kDoublingBytes) return Algorithm::doubling;
  return bytes <= kHalvingBytes ? Algorithm::halving : Algorithm::shared;
}

}  // namespace

Result<Ref<Exchange>> make_any_order(CollectiveCall call, int rank, int size, Exchange::Carrier& carrier, MemoryBudget& budget,
                                     const Combine& combine) {
  switch (choose(call, size)) {
    case Algorithm::doubling: return Ref<Exchange>::adopt(new DoublingReduce(std::move(call), rank, size, carrier, budget, combine));
    case Algorithm::halving: return Ref<Exchange>::adopt(new HalvingReduce(std::move(call), rank, size, carrier, budget, combine));
    case Algorithm::tree:
      return Ref<Exchange>::adopt(new TreeReduce(std::move(call), rank, size, carrier, budget, combine, tree_of_ranks(size)));
    case Algorithm::hierarchy: {
      const std::vector<int> parent = tree_of(call.hosts, size);
      return Ref<Exchange>::adopt(new TreeReduce(std::move(call), rank, size, carrier, budget, combine, parent));
    }
    default: return Ref<Exchange>();
  }
}

}  // namespace dtg
