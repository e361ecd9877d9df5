// Credit: what a step sends to a part that has not begun is bounded, whatever there is to send; it flows when the run
// begins, in order and whole; an abort drops what waits. Two ends on a loop that the test moves.
#include <gtest/gtest.h>

#include <cstring>

#include "base/budget.h"
#include "cluster/step_edges.h"
#include "graph/build.h"
#include "manual_loop.h"
#include "net/memory_channel.h"
#include "session/runtime.h"

namespace dtg {
namespace {

constexpr uint64_t kSequence = 7;
constexpr int64_t kMiB = int64_t{1} << 20;
constexpr const char* kPeer = "/job:ps/replica:0/task:0";

// Listens to a link and has nothing to say.
struct Silent final : Link::Listener {
  Result<Channel::Landing> payload(const wire::Prefix&, std::string_view) override { return data_loss("no payload belongs there"); }
  Status message(const wire::Prefix&, std::string_view) override { return {}; }
  void lost(const Status& why) override { reason = why; }
  Status reason;
};

// Home sends `edges` values of that many bytes, the part receives them.
class CreditTest : public ::testing::Test {
 protected:
  void set_up(int edges, int64_t bytes, bool dynamic = false) {
    shape_ = Shape::of({bytes / 4});
    value_.assign(static_cast<size_t>(bytes / 4), 0.0f);
    for (size_t i = 0; i < value_.size(); ++i) value_[i] = static_cast<float>(i % 1000);
    const PartialShape expected = dynamic ? PartialShape::of_rank(1) : PartialShape(shape_);
    home_ = make(send_graph(edges), home_link_, true);
    part_ = make(receive_graph(edges, expected), part_link_, false);
    ASSERT_TRUE(home_link_->add_step(kSequence, home_).ok());
    ASSERT_TRUE(part_link_->add_step(kSequence, part_).ok());
  }
  CreditTest() {
    auto [a, b] = memory_channels(loop_, limits_);
    home_link_ = make_ref<Link>(loop_, a, timing_, &silent_);
    part_link_ = make_ref<Link>(loop_, b, timing_, &silent_);
    for (const Ref<Link>& link : {home_link_, part_link_}) {
      link->open();
      link->trust(kPeer, timing_.heartbeat_ns);
    }
  }
  ~CreditTest() override {
    if (home_) home_->end();
    for (const Ref<Link>& link : {home_link_, part_link_}) link->close({});
    loop_.run();
  }

  Ref<StepEdges> make(Ref<Graph> graph, const Ref<Link>& link, bool home) {
    auto table = EdgeTable::make(*graph, [](const std::string&, bool) -> Result<uint32_t> { return 0u; });
    EXPECT_TRUE(table.ok()) << table.status().message();
    return make_ref<StepEdges>(loop_, budget_, table.take(), std::vector<Ref<Link>>{link}, kSequence, home);
  }
  Ref<Graph> send_graph(int edges) {
    auto graph = Graph::create(&runtime_->ops()).take();
    Build build(*graph);
    const Value scalar = build.scalar(DType::f32, 1);
    for (int i = 0; i < edges; ++i) {
      const Attr attrs[] = {{"edge", int64_t{i}}, {"peer", std::string(kPeer)}};
      build.node("_Send", std::vector<Value>{scalar}, attrs);
    }
    EXPECT_TRUE(build.ok()) << build.status().message();
    return graph;
  }
  Ref<Graph> receive_graph(int edges, const PartialShape& shape) {
    auto graph = Graph::create(&runtime_->ops()).take();
    Build build(*graph);
    for (int i = 0; i < edges; ++i) {
      build.op("_Recv", {}, {{"edge", int64_t{i}}, {"peer", std::string(kPeer)}, {"dtype", DType::f32}, {"shape", shape}});
    }
    EXPECT_TRUE(build.ok()) << build.status().message();
    return graph;
  }
  void put(uint32_t edge) { home_->put(edge, DType::f32, shape_, value_.data(), Completion()); }
  // What the part holds by now, against its budget.
  int64_t held() {
    loop_.run();
    return budget_.used();
  }

  SteppedClock clock_;
  ManualLoop loop_{clock_};
  wire::Limits limits_;
  Timing timing_;
  MemoryBudget budget_{int64_t{1} << 30};
  Ref<Runtime> runtime_ = Runtime::create({.compute_threads = 1}).take();
  Silent silent_;
  Ref<Link> home_link_, part_link_;
  Shape shape_;
  std::vector<float> value_;
  Ref<StepEdges> home_, part_;
  Step step_{kSequence, Deadline{INT64_MAX}};
};

TEST_F(CreditTest, ALargeValueWaitsForTheRun) {
  set_up(1, 32 * kMiB);
  put(0);
  EXPECT_EQ(held(), 4 * kMiB);
  part_->begin(step_);
  EXPECT_EQ(held(), 32 * kMiB);
  std::vector<float> landed(value_.size());
  part_->take(0, landed.data(), Completion());
  EXPECT_EQ(landed, value_);
  part_->end();
}

TEST_F(CreditTest, AValueThatIsTakenFirstLandsWhereItBelongs) {
  set_up(1, 32 * kMiB);
  part_->begin(step_);
  std::vector<float> landed(value_.size());
  part_->take(0, landed.data(), Completion());
  put(0);
  EXPECT_EQ(held(), 0);
  EXPECT_EQ(landed, value_);
  part_->end();
}

TEST_F(CreditTest, ManySmallValuesTogetherAreBoundedToo) {
  set_up(100, 256 << 10);
  for (uint32_t i = 0; i < 100; ++i) put(i);
  EXPECT_EQ(held(), 4 * kMiB);
  part_->begin(step_);
  EXPECT_EQ(held(), 25 * kMiB);
  part_->end();
}

// Their sizes are known to both ends: no frame is spent on what needs none.
TEST_F(CreditTest, SmallPartsNeverAsk) {
  set_up(4, kMiB);
  for (uint32_t i = 0; i < 4; ++i) put(i);
  EXPECT_EQ(held(), 4 * kMiB);
  part_->begin(step_);
  part_->end();
}

TEST_F(CreditTest, AValueOfUnknownSizeIsGrantedAsWell) {
  set_up(1, 8 * kMiB, true);
  put(0);
  EXPECT_EQ(held(), 4 * kMiB);
  part_->begin(step_);
  EXPECT_EQ(held(), 8 * kMiB);
  part_->end();
}

TEST_F(CreditTest, AnAbortDropsWhatWaits) {
  set_up(1, 32 * kMiB);
  home_->begin(step_);
  put(0);
  EXPECT_EQ(held(), 4 * kMiB);
  step_.abort(cancelled("the test gave it up"));
  loop_.run();
  Step late{kSequence, Deadline{INT64_MAX}};
  part_->begin(late);
  EXPECT_EQ(held(), 4 * kMiB) << "nothing came after the abort";
  part_->end();
}

TEST_F(CreditTest, NoMemoryIsAnErrorOfTheStepAlone) {
  MemoryBudget small(2 * kMiB);
  set_up(1, 32 * kMiB);
  auto table = EdgeTable::make(*receive_graph(1, shape_), [](const std::string&, bool) -> Result<uint32_t> { return 0u; });
  auto poor = make_ref<StepEdges>(loop_, small, table.take(), std::vector<Ref<Link>>{part_link_}, kSequence, false);
  part_link_->remove_step(kSequence, part_.get());
  ASSERT_TRUE(part_link_->add_step(kSequence, poor).ok());
  put(0);
  loop_.run();
  poor->begin(step_);
  EXPECT_EQ(step_.cause().code(), Code::resource_exhausted) << step_.cause().message();
  EXPECT_TRUE(part_link_->is_open());
  loop_.run();
  poor->end();
}

// Two tasks, neither of which began the step: what one of them makes for the other.
class NeighbourCredit : public CreditTest {
 protected:
  // The far end is the session's for peer 0, a neighbour's for peer 1; here both lead to the same place.
  Ref<StepEdges> part(Ref<Graph> graph, const Ref<Link>& link) {
    auto [a, b] = memory_channels(loop_, limits_);
    session_links_.push_back(make_ref<Link>(loop_, a, timing_, &silent_));
    other_ends_.push_back(make_ref<Link>(loop_, b, timing_, &silent_));
    for (const Ref<Link>& each : {session_links_.back(), other_ends_.back()}) {
      each->open();
      each->trust("the session", timing_.heartbeat_ns);
    }
    auto table = EdgeTable::make(*graph, [](const std::string&, bool) -> Result<uint32_t> { return 1u; });
    EXPECT_TRUE(table.ok()) << table.status().message();
    return make_ref<StepEdges>(loop_, budget_, table.take(), std::vector<Ref<Link>>{session_links_.back(), link}, kSequence, false);
  }
  void set_up(int64_t bytes) {
    CreditTest::set_up(1, bytes);
    home_link_->remove_step(kSequence, home_.get());
    part_link_->remove_step(kSequence, part_.get());
    home_link_->keep_early_credit();
    home_ = part(send_graph(1), home_link_);
    part_ = part(receive_graph(1, PartialShape(shape_)), part_link_);
  }
  ~NeighbourCredit() override {
    for (const auto& links : {session_links_, other_ends_}) {
      for (const Ref<Link>& link : links) link->close({});
    }
  }
  std::vector<Ref<Link>> session_links_, other_ends_;
};

// The receiver may not even have heard of the step: nothing leaves, however small, and nothing is lost.
TEST_F(NeighbourCredit, NothingLeavesBeforeTheOtherRunHasBegun) {
  set_up(64);
  ASSERT_TRUE(home_link_->add_step(kSequence, home_).ok());
  put(0);
  EXPECT_EQ(held(), 0);
  ASSERT_TRUE(part_link_->add_step(kSequence, part_).ok());
  part_->begin(step_);
  EXPECT_EQ(held(), 64);
  part_->end();
}

TEST_F(NeighbourCredit, CreditThatComesBeforeTheSendersRunIsKept) {
  set_up(8 * kMiB);
  ASSERT_TRUE(part_link_->add_step(kSequence, part_).ok());
  part_->begin(step_);
  EXPECT_EQ(held(), 0);
  ASSERT_TRUE(home_link_->add_step(kSequence, home_).ok());
  put(0);
  EXPECT_EQ(held(), 8 * kMiB);
  part_->end();
}

// Each edge has one sender: a task cannot put words into another's mouth, nor into the session's.
TEST_F(NeighbourCredit, AValueFromSomebodyElseIsRefused) {
  set_up(64);
  ASSERT_TRUE(part_link_->add_step(kSequence, part_).ok());
  ASSERT_TRUE(session_links_[1]->add_step(kSequence, part_).ok());
  part_->begin(step_);
  wire::Data forged{.sequence = kSequence, .edge = 0, .dtype = DType::f32, .shape = shape_};
  auto frame = std::make_unique<OutFrame>();
  frame->head = wire::make_head(wire::Kind::data, 0, wire::encode(forged), 64) + std::string(64, 'x');
  other_ends_[1]->channel().send(std::move(frame));
  EXPECT_EQ(held(), 0);
  EXPECT_EQ(step_.cause().code(), Code::permission_denied) << step_.cause().message();
  EXPECT_TRUE(session_links_[1]->is_open());
  part_->end();
}

}  // namespace
}  // namespace dtg
