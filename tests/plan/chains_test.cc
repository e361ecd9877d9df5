// Chains: joined segments run when they would have run by themselves, and every run comes to its end.
#include "plan/chains.h"

#include <random>

#include "passes_fixture.h"

namespace dtg {
namespace {

// Runs the segments of an Ir node by node, in some order that their waits allow, and compares what may go on next with what the chains
// allow.
class Walk {
 public:
  Walk(const Ir& ir, const Chains& chains, std::mt19937& random) : ir_(ir), chains_(chains), random_(random) {
    for (const IrSegment& segment : ir.segments) left_.push_back(segment.nodes.size());
    done_.resize(ir.nodes.size());
  }

  void run() {
    size_t steps = 0;
    for (;; ++steps) {
      std::vector<uint32_t> ready;
      for (uint32_t s = 0; s < ir_.segments.size(); ++s) {
        if (left_[s] == 0) continue;
        const bool may = may_go(s);
        ASSERT_EQ(may, may_go_in_chain(s)) << "segment " << s << " after " << steps << " nodes";
        if (may) ready.push_back(s);
      }
      if (ready.empty()) break;
      const uint32_t s = ready[random_() % ready.size()];
      const std::vector<uint32_t>& nodes = ir_.segments[s].nodes;
      done_[nodes[nodes.size() - left_[s]--]] = true;
    }
    EXPECT_EQ(steps, ir_.order.size());
  }

 private:
  bool have_happened(uint32_t s) const {
    return std::ranges::all_of(ir_.segments[s].events, [&](uint32_t event) { return done_[ir_.raisers[event]]; });
  }
  bool may_go(uint32_t s) const {
    return have_happened(s) && std::ranges::all_of(ir_.segments[s].after, [&](uint32_t before) { return left_[before] == 0; });
  }
  bool chain_ended(uint32_t chain) const {
    return std::ranges::all_of(chains_[chain], [&](uint32_t s) { return left_[s] == 0; });
  }
  bool may_go_in_chain(uint32_t s) const {
    if (!have_happened(s)) return false;
    if (!chains_.is_joined(s)) {
      return std::ranges::all_of(ir_.segments[s].after, [&](uint32_t before) { return chain_ended(chains_.chain_of(before)); });
    }
    const std::span<const uint32_t> chain = chains_[chains_.chain_of(s)];
    return std::all_of(chain.begin(), std::ranges::find(chain, s), [&](uint32_t before) { return left_[before] == 0; });
  }

  const Ir& ir_;
  const Chains& chains_;
  std::mt19937& random_;
  std::vector<size_t> left_;  // of each segment, nodes that have not run
  std::vector<bool> done_;
};

class ChainsTest : public PassesTest {
 protected:
  ChainsTest() { context.fuse = false; }
  static std::vector<bool> nothing_cut(const Ir& ir) { return std::vector<bool>(ir.segments.size()); }

  // Sums and sines over three devices, and what waits for a queue.
  std::unique_ptr<Ir> random_ir(std::mt19937& random, int nodes) {
    const Value queue =
        build->op("FIFOQueueV2", std::span<const Value>(), std::vector<Attr>{{"component_types", std::vector<DType>{DType::f32}}});
    std::vector<Value> values = {placeholder(Shape())};
    const FeedSpec fed = feed(values[0]);
    const auto near = [&] {
      return random() % 5 == 0 ? values[0] : values[values.size() - 1 - random() % std::min<size_t>(values.size(), 6)];
    };
    for (int i = 0; i < nodes; ++i) {
      const int device = static_cast<int>(random() % 3);
      if (random() % 12 == 0) {
        values.push_back(build->op("Reshape", {build->op("QueueDequeueV2", {queue}, {{"component_types", std::vector<DType>{DType::f32}}}),
                                               build->constant(zeros(Shape::of({0}), DType::i32))}));
      } else if (random() % 2 == 0) {
        values.push_back(on(device, "Sin", {near()}));
      } else {
        values.push_back(on(device, "AddV2", {near(), near()}));
      }
    }
    return passes("order", {values.end() - std::min<std::ptrdiff_t>(8, std::ssize(values) - 1), values.end()}, {}, {fed});
  }
};

TEST_F(ChainsTest, NothingBeginsSoonerOrLater) {
  std::mt19937 random(9);
  size_t segments = 0, chains = 0;
  for (int round = 0; round < 60 && !HasFailure(); ++round) {
    const auto ir = random_ir(random, 10 + static_cast<int>(random() % 60));
    std::vector<bool> cut = nothing_cut(*ir);
    if (round % 3 == 0) {
      for (size_t s = 0; s < cut.size(); ++s) cut[s] = random() % 4 == 0;
    }
    const Chains joined(*ir, cut);
    segments += ir->segments.size();
    chains += joined.count();
    for (uint32_t c = 0; c < joined.count(); ++c) {
      for (uint32_t s : joined[c]) {
        EXPECT_EQ(joined.chain_of(s), c);
        EXPECT_TRUE(s == joined[c].back() || !cut[s]) << "what is cut is the last of its chain";
      }
    }
    Walk(*ir, joined, random).run();
  }
  EXPECT_LT(chains, segments) << "nothing was joined";
}

// The segment of what waits has the lower number, because the first of its nodes needs nothing else.
TEST_F(ChainsTest, AChainIsInTheOrderInWhichItRuns) {
  const Value x = placeholder(Shape()), far = on(1, "Sin", {x}), waits = on(0, "Sin", {far}), near = on(0, "Cos", {x});
  const auto ir = passes("order", {on(0, "AddV2", {waits, near})}, {}, {feed(x)});
  const uint32_t first = node_of(*ir, near).segment, then = node_of(*ir, waits).segment;
  ASSERT_LT(then, first);
  const Chains chains(*ir, nothing_cut(*ir));
  ASSERT_EQ(chains.chain_of(first), chains.chain_of(then));
  EXPECT_EQ(chains[chains.chain_of(first)].front(), first);
  std::mt19937 random(1);
  Walk(*ir, chains, random).run();
}

TEST_F(ChainsTest, ThousandsOfWaitsAreFewSegments) {
  const Value x = placeholder(Shape());
  Value term = x, sum = x;
  for (int i = 0; i < 1000; ++i) {
    term = on(1, "Sin", {term});
    sum = on(0, "AddV2", {sum, term});
  }
  const auto ir = passes("order", {sum}, {}, {feed(x)});
  EXPECT_GE(ir->segments.size(), 1000u);
  EXPECT_LE(Chains(*ir, nothing_cut(*ir)).count(), 3u);
  EXPECT_EQ(Chains(*ir, std::vector<bool>(ir->segments.size(), true)).count(), ir->segments.size());
}

}  // namespace
}  // namespace dtg
