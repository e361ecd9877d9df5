// What other ranks send, from anywhere: one member's part in a collective of any kind, algorithm and size, told of pieces, grants, ends of
// sends and terms in any order. Where a piece may land all of it is written, lent ones are read to their end, and what was reserved is
// given back.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "collective/exchange.h"
#include "program.h"

namespace {

using namespace dtg;

// What leaves is read to its end.
struct Reader final : Exchange::Carrier {
  void send(Exchange&, const Piece& piece) override {
    const auto* const from = static_cast<const unsigned char*>(piece.data);
    for (uint64_t i = 0; i < piece.bytes; ++i) seen = static_cast<unsigned char>(seen + from[i]);
    sent.push_back(piece);
  }
  void grant(Exchange&, int, uint8_t, uint64_t upto) override { granted = upto; }
  std::vector<Piece> sent;
  uint64_t granted = 0;
  volatile unsigned char seen = 0;
};

CollectiveCall call_of(Program& program, int size) {
  CollectiveCall call;
  call.terms.kind = static_cast<Collective>(program.byte() % (kCollectiveMax + 1));
  call.terms.reduction = static_cast<Reduction>(program.byte() % (kReductionMax + 1));
  call.terms.algorithm = static_cast<Algorithm>(program.byte() % (kAlgorithmMax + 1));
  call.terms.root = static_cast<uint32_t>(program.byte() % static_cast<uint64_t>(size));
  call.terms.bucket = static_cast<uint32_t>(program.byte());
  call.terms.open = call.terms.kind == Collective::broadcast && program.byte() % 2 == 0;
  const auto rows = static_cast<int64_t>(program.number() % 70'000);
  if (call.terms.kind == Collective::barrier || call.terms.open) return call;
  auto in = Tensor::allocate(DType::f32, Shape::of({rows, 3}));
  if (!in.ok()) return call;
  call.in = in.take();
  std::memset(call.in.data(), 0, static_cast<size_t>(call.in.bytes()));
  call.terms.dtype = DType::f32;
  call.terms.shape = call.in.shape();
  if (call.terms.kind == Collective::all_reduce && program.byte() % 2 == 0) call.out = call.in;
  for (int rank = 0; rank < size && program.byte() % 4 == 0; ++rank) call.hosts.assign(static_cast<size_t>(size), 0);
  return call;
}

void piece(Program& program, Exchange& exchange) {
  const int rank = static_cast<int>(program.byte() % 8);
  const auto lane = static_cast<uint8_t>(program.byte() % 12);
  const uint64_t offset = program.number(), bytes = program.number(), total = program.number();
  const auto to = exchange.landing(rank, lane, offset, bytes, total);
  if (!to.ok()) return;
  // A payload that nobody can have sent.
  if (bytes > kPieceBytes) __builtin_trap();
  std::vector<char> lent;
  if (program.byte() % 2 == 0) lent.assign(bytes, 1);
  else if (bytes > 0) std::memset(to.value(), 1, static_cast<size_t>(bytes));
  (void)exchange.arrived(rank, lane, offset, bytes, lent.empty() ? nullptr : lent.data()).ok();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Program program(data, size);
  MemoryBudget budget(int64_t{64} << 20);
  {
    Reader carrier;
    const int ranks = 1 + static_cast<int>(program.byte() % 6);
    auto made =
        Exchange::make(call_of(program, ranks), static_cast<int>(program.byte() % static_cast<uint64_t>(ranks)), ranks, carrier, budget);
    if (!made.ok()) return 0;
    const Ref<Exchange> exchange = made.take();
    bool goes_on = exchange->begin().ok();
    for (int i = 0; i < 100 && goes_on && program.more(); ++i) {
      switch (program.byte() % 5) {
        case 0: {
          CallTerms theirs = exchange->terms();
          theirs.rows = static_cast<int64_t>(program.number());
          theirs.shape = Shape::of({static_cast<int64_t>(program.number() % 1000)});
          theirs.dtype = DType::f32;
          goes_on = exchange->learn(static_cast<int>(program.byte() % 8), theirs).ok();
          break;
        }
        case 1:
          goes_on =
              exchange->granted(static_cast<int>(program.byte() % 8), static_cast<uint8_t>(program.byte() % 12), program.number()).ok();
          break;
        case 2:
          if (!carrier.sent.empty()) {
            const Exchange::Carrier::Piece left = carrier.sent.back();
            carrier.sent.pop_back();
            goes_on = exchange->sent(left.rank, left.lane, left.bytes).ok();
          }
          break;
        default: piece(program, *exchange); break;
      }
      if (exchange->begun()) (void)exchange->done();
    }
  }
  if (budget.used() != 0) __builtin_trap();
  return 0;
}
