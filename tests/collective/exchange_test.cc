// Exchanges without a network: pieces are handed over in any order that links allow, from seeds, so that every timing gives the bits of
// a fold on one rank; what a group of 1,024 sends over its links, counted, and in how many rounds; and peers that send what does not
// belong.
#include "collective/exchange.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <random>

namespace dtg {
namespace {

// All ranks in one thread. A pair of ranks has one link in each direction, on which things stay in order; which link moves next, and
// when a sender hears that its bytes have left, is chance.
class World {
 public:
  World(int size, unsigned seed) : random_(seed), exchanges_(static_cast<size_t>(size)), carriers_(static_cast<size_t>(size)) {
    for (int rank = 0; rank < size; ++rank) {
      carriers_[static_cast<size_t>(rank)].world = this;
      carriers_[static_cast<size_t>(rank)].rank = rank;
    }
  }
  int size() const { return static_cast<int>(exchanges_.size()); }

  void run(const std::function<CollectiveCall(int rank)>& call_of) {
    make(call_of);
    while (!waiting_.empty() || !links_.empty() || !leaving_.empty()) {
      const auto left = waiting_.size() + links_.size() + leaving_.size();
      size_t which = std::uniform_int_distribution<size_t>(0, left - 1)(random_);
      if (which < waiting_.size()) begin(which);
      else if ((which -= waiting_.size()) < links_.size()) move(std::next(links_.begin(), static_cast<ptrdiff_t>(which)));
      else leave(which - links_.size());
    }
    for (const auto& exchange : exchanges_) ASSERT_TRUE(exchange->done()) << "rank " << exchange->rank();
  }
  // All ranks begin at once, and what they send takes as long for all: how many of those times it takes is the longest way that
  // something goes on which the end depends.
  int rounds(const std::function<CollectiveCall(int rank)>& call_of) {
    int rounds = 0;
    make(call_of);
    while (!waiting_.empty()) begin(waiting_.size() - 1);
    for (; !links_.empty(); ++rounds) {
      std::vector<std::pair<int, int>> sent;
      std::vector<size_t> words;
      for (const auto& [link, queue] : links_) {
        sent.push_back(link);
        words.push_back(queue.size());
      }
      for (size_t i = 0; i < sent.size(); ++i) {
        for (size_t k = 0; k < words[i]; ++k) move(links_.find(sent[i]));
      }
      while (!leaving_.empty()) leave(leaving_.size() - 1);
    }
    for (const auto& exchange : exchanges_) EXPECT_TRUE(exchange->done()) << "rank " << exchange->rank();
    return rounds;
  }
  const Tensor& result(int rank) const { return exchanges_[static_cast<size_t>(rank)]->result(); }
  uint64_t sent_by(int rank) const { return carriers_[static_cast<size_t>(rank)].sent; }
  size_t peers_of(int rank) const { return carriers_[static_cast<size_t>(rank)].peers.size(); }
  uint64_t sent_to(int from, int to) const {
    const auto& peers = carriers_[static_cast<size_t>(from)].peers;
    const auto at = peers.find(to);
    return at == peers.end() ? 0 : at->second;
  }

 private:
  void make(const std::function<CollectiveCall(int rank)>& call_of) {
    for (int rank = 0; rank < size(); ++rank) {
      auto made = Exchange::make(call_of(rank), rank, size(), carriers_[static_cast<size_t>(rank)], budget_);
      ASSERT_TRUE(made.ok()) << made.status().message();
      exchanges_[static_cast<size_t>(rank)] = made.take();
      waiting_.push_back(rank);
    }
  }
  struct Word {
    bool is_grant = false;
    Exchange::Carrier::Piece piece;
    CallTerms terms;
    uint64_t upto = 0;
  };
  struct Carrier final : Exchange::Carrier {
    void send(Exchange& exchange, const Piece& piece) override {
      sent += piece.bytes;
      if (piece.bytes > 0) peers[piece.rank] += piece.bytes;
      world->links_[{rank, piece.rank}].push_back({false, piece, exchange.terms(), 0});
      world->links_[{rank, piece.rank}].back().terms.rows = piece.rows;
    }
    void grant(Exchange&, int to, uint8_t lane, uint64_t upto) override {
      Word word;
      word.is_grant = true;
      word.piece.lane = lane;
      word.upto = upto;
      world->links_[{rank, to}].push_back(word);
    }
    World* world = nullptr;
    int rank = 0;
    uint64_t sent = 0;
    std::map<int, uint64_t> peers;
  };
  using Links = std::map<std::pair<int, int>, std::deque<Word>>;

  void begin(size_t which) {
    const int rank = waiting_[which];
    waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(which));
    check(exchanges_[static_cast<size_t>(rank)]->begin());
  }
  void move(Links::iterator at) {
    const auto [from, to] = at->first;
    if (std::ranges::find(waiting_, to) != waiting_.end()) return;  // it keeps what comes early
    const Word word = at->second.front();
    at->second.pop_front();
    if (at->second.empty()) links_.erase(at);
    Exchange& exchange = *exchanges_[static_cast<size_t>(to)];
    if (word.is_grant) return check(exchange.granted(from, word.piece.lane, word.upto));
    if (word.piece.offset == 0) check(exchange.learn(from, word.terms));
    const auto landing = exchange.landing(from, word.piece.lane, word.piece.offset, word.piece.bytes, word.piece.total);
    check(landing.status());
    // Some of it lies where only the one that carries it can tell, and is gone afterwards.
    std::vector<char> lent;
    if (word.piece.bytes > 0 && landing.ok()) {
      const auto* const data = static_cast<const char*>(word.piece.data);
      if (random_() % 2 == 0) lent.assign(data, data + word.piece.bytes);
      else std::memcpy(landing.value(), data, word.piece.bytes);
    }
    check(exchange.arrived(from, word.piece.lane, word.piece.offset, word.piece.bytes, lent.empty() ? nullptr : lent.data()));
    std::ranges::fill(lent, char{0x7f});
    leaving_.push_back({from, to, word.piece.lane, word.piece.bytes});
  }
  // The sender hears that its bytes have left, at the latest after they have arrived; maybe much later.
  void leave(size_t which) {
    const auto [from, to, lane, bytes] = leaving_[which];
    leaving_.erase(leaving_.begin() + static_cast<ptrdiff_t>(which));
    check(exchanges_[static_cast<size_t>(from)]->sent(to, lane, bytes));
  }
  static void check(const Status& status) { EXPECT_TRUE(status.ok()) << status.message(); }

  struct Left {
    int from, to;
    uint8_t lane;
    uint64_t bytes;
  };
  std::mt19937 random_;
  MemoryBudget budget_{int64_t{1} << 32};
  std::vector<Ref<Exchange>> exchanges_;
  std::vector<Carrier> carriers_;
  std::vector<int> waiting_;
  Links links_;
  std::vector<Left> leaving_;
};

Tensor contribution(int rank, int64_t count) {
  Tensor tensor = Tensor::allocate(DType::f32, Shape::of({count})).take();
  uint32_t state = static_cast<uint32_t>(rank * 31 + 7);
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    tensor.as<float>()[i] = static_cast<float>(static_cast<double>(state >> 8) * 0x1p-22 - 2);
  }
  return tensor;
}

std::vector<float> folded(int size, int64_t count, uint32_t bucket) {
  std::vector<float> sum(static_cast<size_t>(count));
  for (int i = 0; i < size; ++i) {
    const Tensor more = contribution((first_in_order(bucket, size) + i) % size, count);
    for (int64_t k = 0; k < count; ++k)
      sum[static_cast<size_t>(k)] = i == 0 ? more.as<float>()[k] : sum[static_cast<size_t>(k)] + more.as<float>()[k];
  }
  return sum;
}

// With `parts`, rank r brings the contributions from r * parts on.
CollectiveCall reduction(const Tensor& in, Algorithm algorithm, uint32_t bucket, bool in_place, std::vector<Tensor> more = {}) {
  CollectiveCall call;
  call.terms.kind = Collective::all_reduce;
  call.terms.algorithm = algorithm;
  call.terms.dtype = in.dtype();
  call.terms.shape = in.shape();
  call.terms.bucket = bucket;
  call.in = in;
  call.terms.parts = static_cast<uint32_t>(more.size()) + 1;
  call.more = std::move(more);
  if (in_place) call.out = in;
  return call;
}

TEST(Exchange, EveryTimingGivesTheBitsOfAFold) {
  std::mt19937 random(17);
  for (unsigned seed = 0; seed < 400; ++seed) {
    const int size = 1 + static_cast<int>(random() % 7);
    const int64_t count = random() % 4 == 0 ? random() % 400'000 : random() % 3000;
    const auto algorithm = static_cast<Algorithm>(random() % 4);
    const auto bucket = static_cast<uint32_t>(random() % 9);
    const bool in_place = random() % 2 == 0;
    const int parts = algorithm == Algorithm::ring ? 1 : 1 + static_cast<int>(random() % 3);
    World world(size, seed);
    world.run([&](int rank) {
      std::vector<Tensor> more;
      for (int p = 1; p < parts; ++p) more.push_back(contribution(rank * parts + p, count));
      return reduction(contribution(rank * parts, count), algorithm, bucket, in_place, std::move(more));
    });
    const std::vector<float> sum = folded(size * parts, count, bucket);
    for (int rank = 0; rank < size; ++rank) {
      const std::span<const float> values = world.result(rank).values<float>();
      ASSERT_TRUE(std::ranges::equal(values, sum))
          << "seed " << seed << ", rank " << rank << " of " << size << ", parts " << parts << ", count " << count << ", algorithm "
          << static_cast<int>(algorithm) << (in_place ? ", in place" : "");
    }
  }
}

// Whole numbers, of which every order of additions gives the same.
Tensor whole_numbers(int rank, int64_t count) {
  Tensor tensor = contribution(rank, count);
  for (int64_t i = 0; i < count; ++i) tensor.as<float>()[i] = std::floor(tensor.as<float>()[i] * 1000);
  return tensor;
}

CollectiveCall any_order(const Tensor& in, Algorithm algorithm, Reduction reduced, bool in_place, int size, int per_host) {
  CollectiveCall call = reduction(in, algorithm, 0, in_place);
  call.terms.reduction = reduced;
  for (int rank = 0; rank < size; ++rank) call.hosts.push_back(rank / per_host);
  return call;
}

// What all algorithms that take any order have to bring: each rank has the bits that each other has, the same by every timing, and where
// the order cannot matter those of a fold.
TEST(Exchange, AnyOrderIsTheSameEverywhere) {
  std::mt19937 random(23);
  for (unsigned seed = 0; seed < 200; ++seed) {
    const int size = 1 + static_cast<int>(random() % 17), per_host = 1 + static_cast<int>(random() % 5);
    const int64_t count = random() % 8 == 0 ? random() % 200'000 : random() % 3000;
    const auto algorithm = static_cast<Algorithm>(4 + random() % 5);
    const bool in_place = random() % 2 == 0, whole = random() % 2 == 0;
    const auto kind = whole ? static_cast<Reduction>(random() % 4) : Reduction::sum;
    const std::string which = format("seed %u, %d ranks, %lld elements, %s%s", seed, size, static_cast<long long>(count),
                                     algorithm_name(algorithm), in_place ? ", in place" : "");
    std::vector<Tensor> ins;
    for (int rank = 0; rank < size; ++rank) ins.push_back(whole ? whole_numbers(rank, count) : contribution(rank, count));
    std::vector<float> first;
    for (unsigned timing = 0; timing < 2; ++timing) {
      World world(size, seed * 2 + timing);
      world.run([&](int rank) {
        return any_order(whole ? whole_numbers(rank, count) : contribution(rank, count), algorithm, kind, in_place, size, per_host);
      });
      if (timing == 0) first.assign(world.result(0).values<float>().begin(), world.result(0).values<float>().end());
      for (int rank = 0; rank < size; ++rank) ASSERT_TRUE(std::ranges::equal(world.result(rank).values<float>(), first)) << which;
    }
    for (int64_t k = 0; k < count; k += 1 + count / 50) {
      double sum = 0, least = INFINITY, most = -INFINITY;
      for (const Tensor& in : ins) {
        sum += in.as<float>()[k];
        least = std::min<double>(least, in.as<float>()[k]);
        most = std::max<double>(most, in.as<float>()[k]);
      }
      const float got = first[static_cast<size_t>(k)];
      if (!whole) ASSERT_NEAR(got, sum, 1e-5) << which;
      else if (kind == Reduction::sum) ASSERT_EQ(got, static_cast<float>(sum)) << which;
      else if (kind == Reduction::mean) ASSERT_EQ(got, static_cast<float>(sum) / static_cast<float>(size)) << which;
      else ASSERT_EQ(got, static_cast<float>(kind == Reduction::minimum ? least : most)) << which;
    }
  }
}

// The schedules of 1,024 ranks: how many times something has to travel one after the other, and how many bytes leave a rank.
TEST(Exchange, RoundsOfAThousandRanks) {
  constexpr int kSize = 1024;
  constexpr int64_t kCount = 4096;
  constexpr uint64_t kBytes = kCount * 4;
  struct Row {
    Algorithm algorithm;
    int rounds;
    uint64_t most_sent;  // by one rank
  };
  const std::vector<float> sum = [] {
    std::vector<float> all(kCount, 0.0f);
    for (int rank = 0; rank < kSize; ++rank) {
      const Tensor in = whole_numbers(rank, kCount);
      for (size_t k = 0; k < all.size(); ++k) all[k] += in.as<float>()[k];
    }
    return all;
  }();
  for (const Row& row : {Row{Algorithm::ring, 2 * (kSize - 1), 2 * kBytes},
                         {Algorithm::doubling, 10, 10 * kBytes},
                         {Algorithm::halving, 20, 2 * (kSize - 1) * kBytes / kSize},
                         {Algorithm::tree, 20, 3 * kBytes}}) {
    World world(kSize, 1);
    EXPECT_EQ(world.rounds([&](int rank) { return reduction(whole_numbers(rank, kCount), row.algorithm, 0, false); }), row.rounds)
        << algorithm_name(row.algorithm);
    uint64_t most = 0;
    for (int rank = 0; rank < kSize; ++rank) most = std::max(most, world.sent_by(rank));
    EXPECT_EQ(most, row.most_sent) << algorithm_name(row.algorithm);
    for (const int rank : {0, 511, kSize - 1}) EXPECT_TRUE(std::ranges::equal(world.result(rank).values<float>(), sum)) << rank;
  }
}

// 128 hosts of 8 ranks: between hosts only the first rank of each sends, up and down a tree of hosts.
TEST(Exchange, HierarchyOfAThousandRanks) {
  constexpr int kSize = 1024, kHost = 8;
  constexpr int64_t kCount = 2048;
  World world(kSize, 2);
  const int rounds =
      world.rounds([&](int rank) { return any_order(whole_numbers(rank, kCount), Algorithm::any, Reduction::sum, true, kSize, kHost); });
  EXPECT_EQ(rounds, 2 * (1 + 7)) << "into the host, and six or seven hosts up";
  uint64_t between = 0;
  for (int from = 0; from < kSize; ++from) {
    for (int to = 0; to < kSize; ++to) {
      const uint64_t sent = world.sent_to(from, to);
      if (sent == 0 || from / kHost == to / kHost) continue;
      EXPECT_TRUE(from % kHost == 0 && to % kHost == 0) << from << " to " << to;
      EXPECT_EQ(sent, static_cast<uint64_t>(kCount) * 4) << from << " to " << to;
      between += sent;
    }
  }
  EXPECT_EQ(between, uint64_t{2} * (kSize / kHost - 1) * kCount * 4);
}

// Bytes per rank of large tensors: what the shape of each algorithm says, no more.
TEST(Exchange, WhatTravels) {
  const int64_t count = 8 * 64 * 1024;
  const uint64_t whole = static_cast<uint64_t>(count) * 4;
  for (const auto& [kind, sent, peers] :
       {std::tuple{Algorithm::direct, 7 * whole, 7u}, {Algorithm::shared, 2 * 7 * whole / 8, 7u}, {Algorithm::ring, 2 * whole, 2u}}) {
    const Algorithm algorithm = kind;  // a lambda cannot take a binding along
    World world(8, 3);
    world.run([&](int rank) { return reduction(contribution(rank, count), algorithm, 0, true); });
    for (int rank = 0; rank < 8; ++rank) {
      EXPECT_LE(world.sent_by(rank), sent) << rank;
      EXPECT_LE(world.peers_of(rank), peers) << rank;
    }
    EXPECT_EQ(world.sent_by(3), sent);
  }
}

TEST(Exchange, AThousandRanks) {
  for (const auto& [size, algorithm, sent] : {std::tuple{1024, Algorithm::ring, 2u * 4096 * 4}, {64, Algorithm::shared, 2u * 63 * 256}}) {
    World world(size, 1);
    world.run([algorithm = algorithm](int rank) { return reduction(contribution(rank, 4096), algorithm, 5, false); });
    const std::vector<float> sum = folded(size, 4096, 5);
    for (const int rank : {0, 5, size - 1}) EXPECT_TRUE(std::ranges::equal(world.result(rank).values<float>(), sum)) << rank;
    EXPECT_EQ(world.sent_by(7), sent);
  }
}

// Their number is all there is of them.
TEST(Exchange, RowsWithoutElements) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const int size = 1 + static_cast<int>(seed % 4);
    for (const bool all_to_all : {false, true}) {
      World world(size, seed);
      world.run([&](int rank) {
        CollectiveCall call;
        call.terms.kind = all_to_all ? Collective::all_to_all : Collective::all_gather;
        call.terms.dtype = DType::f32;
        for (int to = 0; to < size && all_to_all; ++to) call.splits.push_back(rank * 10 + to);
        const int64_t rows = all_to_all ? rank * 10 * size + size * (size - 1) / 2 : rank * 3;
        call.in = Tensor::allocate(DType::f32, Shape::of({rows, 0})).take();
        call.terms.shape = call.in.shape();
        return call;
      });
      for (int rank = 0; rank < size; ++rank) {
        const int64_t others = static_cast<int64_t>(size) * (size - 1) / 2;  // 0 + 1 + .. of the ranks
        EXPECT_EQ(world.result(rank).shape(), Shape::of({all_to_all ? others * 10 + rank * size : others * 3, 0})) << seed;
      }
    }
  }
}

struct Silent final : Exchange::Carrier {
  void send(Exchange&, const Piece&) override {}
  void grant(Exchange&, int, uint8_t, uint64_t) override {}
};

// Each is refused, and nothing is written where it does not belong.
TEST(Exchange, PiecesThatDoNotBelong) {
  Silent carrier;
  MemoryBudget budget(int64_t{1} << 30);
  const auto fresh = [&] {
    auto made = Exchange::make(reduction(contribution(0, 400'000), Algorithm::direct, 0, false), 0, 2, carrier, budget);
    EXPECT_TRUE(made.ok() && made.value()->begin().ok());
    return made.take();
  };
  const uint64_t total = 1'600'000;
  EXPECT_TRUE(fresh()->landing(1, 0, 0, 1000, total).ok());
  EXPECT_FALSE(fresh()->landing(1, 1, 0, 1000, total).ok()) << "a lane of its own";
  EXPECT_FALSE(fresh()->landing(0, 0, 0, 1000, total).ok()) << "from itself";
  EXPECT_FALSE(fresh()->landing(7, 0, 0, 1000, total).ok()) << "from nobody";
  EXPECT_FALSE(fresh()->landing(1, 0, 0, 1000, total + 4).ok()) << "another size";
  EXPECT_FALSE(fresh()->landing(1, 0, 4, 1000, total).ok()) << "a gap";
  EXPECT_FALSE(fresh()->landing(1, 0, 0, kPieceBytes + 4, total).ok()) << "a piece that is too long";
  EXPECT_FALSE(fresh()->landing(1, 0, 0, UINT64_MAX, total).ok()) << "a length that is none";
  const Ref<Exchange> far = fresh();
  ASSERT_TRUE(far->landing(1, 0, 0, kPieceBytes, total).ok());
  ASSERT_TRUE(far->arrived(1, 0, 0, kPieceBytes).ok());
  EXPECT_FALSE(far->landing(1, 0, 0, kPieceBytes, total).ok()) << "again";
  EXPECT_FALSE(far->landing(1, 0, kPieceBytes - 4, 8, total).ok()) << "over the end of a piece";
  EXPECT_FALSE(far->arrived(1, 0, 0, kPieceBytes).ok());
}

// Three streams whose sizes are known only from who sends them, of 24 bytes here: sums that overflow, and sizes that were refused once.
TEST(Exchange, SizesThatDoNotBelong) {
  Silent carrier;
  MemoryBudget budget(int64_t{1} << 30);
  const auto fresh = [&] {
    CollectiveCall call;
    call.terms.kind = Collective::all_gather;
    call.terms.dtype = DType::f32;
    call.in = Tensor::allocate(DType::f32, Shape::of({2, 3})).take();
    call.terms.shape = call.in.shape();
    auto made = Exchange::make(call, 2, 3, carrier, budget);
    EXPECT_TRUE(made.ok() && made.value()->begin().ok());
    return made.take();
  };
  const auto tell = [](Exchange& exchange, uint64_t first, uint64_t second) {
    const Status status = exchange.landing(0, 0, 0, 0, first).status();
    const Status last = exchange.landing(1, 0, 0, 0, second).status();
    return status.ok() ? last : status;
  };
  EXPECT_TRUE(tell(*fresh(), 12, 24).ok());
  const uint64_t half = (uint64_t{1} << 63) / 12 * 12;  // twice of it and the own rows are 8 bytes again, to who does not look
  for (const uint64_t size : {half, half / 2, half - 12}) EXPECT_EQ(tell(*fresh(), size, size).code(), Code::data_loss) << size;
  const Ref<Exchange> broken = fresh();
  EXPECT_FALSE(broken->landing(1, 0, 0, 0, 13).ok()) << "no whole rows";
  EXPECT_FALSE(broken->landing(0, 0, 0, 24, 24).ok()) << "what has failed takes nothing more";
}

TEST(Exchange, MoreRowsThanATensorHas) {
  Silent carrier;
  MemoryBudget budget(int64_t{1} << 30);
  CollectiveCall call;
  call.terms.kind = Collective::all_gather;
  call.terms.dtype = DType::f32;
  call.in = Tensor::allocate(DType::f32, Shape::of({int64_t{1} << 62, 0})).take();
  call.terms.shape = call.in.shape();
  auto made = Exchange::make(call, 0, 2, carrier, budget);
  ASSERT_TRUE(made.ok() && made.value()->begin().ok());
  CallTerms theirs = call.terms;
  theirs.rows = int64_t{1} << 62;
  const Status status = made.value()->learn(1, theirs);
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_NE(status.message().find("more rows together than a tensor can have"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace dtg
