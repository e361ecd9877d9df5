// StepEdges: the edges of one run of one part. Values go to the links of the tasks at their other ends; what comes
// in is read straight into the memory of the run when the run waits for it already, and into memory of its own
// otherwise. An abort of the step takes all memory of the run back from the links before anything that waits is
// ended, so a run never ends while somebody still writes into it.
//
// Owner: whoever runs the part, and the links until they forgot the step. Any thread; landing and arrival on the
// loop's.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "cluster/credit_window.h"
#include "cluster/link.h"
#include "exec/edges.h"
#include "exec/step.h"

namespace dtg {

// The edges of a part, by number. Immutable, shared by its runs.
class EdgeTable : public RefCounted {
 public:
  struct Row {
    uint32_t edge = 0;
    uint32_t peer = 0;  // index into the peers of a run
    bool incoming = false;
    bool dynamic = false;  // incoming: the shape comes with the value
    DType dtype = DType::invalid;
    Shape shape;
  };
  // The index of the peer that the peer attribute of a private op names; what comes in from a task and what goes out to it
  // may have different ones.
  using PeerOf = std::function<Result<uint32_t>(const std::string& peer, bool incoming)>;
  static Result<Ref<EdgeTable>> make(const Graph& graph, const PeerOf& peer_of);
  // Index of the row, or -1.
  int find(uint32_t edge) const;
  const std::vector<Row>& rows() const { return rows_; }
  // More may come in from peer 0 than it sends unasked.
  bool needs_credit() const { return needs_credit_; }
  // The other peers that something comes from.
  const std::vector<uint32_t>& sources() const { return sources_; }

 private:
  std::vector<Row> rows_;  // by edge
  bool needs_credit_ = false;
  std::vector<uint32_t> sources_;
};

// How a part ends when its time is over, unless it was told so by the home.
inline constexpr const char* kTimePassed = "the run's deadline passed on this task";

class StepEdges final : public Edges, public StepPort, private Step::Waiter {
 public:
  // `peers` are the links by number. The edges of a home part join them all, counted by the same numbers; of any other, peer
  // 0 is the session and the rest are tasks that exchange values with it.
  StepEdges(Loop& loop, MemoryBudget& budget, Ref<EdgeTable> table, std::vector<Ref<Link>> peers, uint64_t sequence, bool is_home);
  ~StepEdges() override;

  // From now on, until end(), what comes for the step over any of the links comes here. When one of them is lost: end() it.
  Status enter();
  // Begins to watch the step, whose memory is there: the peers may send all they have. The step must stay until end().
  void begin(Step& step);
  // Calls `send`, which queues what asks another task to run its part, unless the step is aborted already: then it must not
  // hear of it at all. Once per other task.
  Status start(const std::function<void()>& send);
  // The run has ended: no completion is open any more.
  void end();
  // Before the run is known to its step, and after it ended, there is nothing to abort.
  void give_up(const Status& cause);
  uint64_t sequence() const { return sequence_; }
  Loop& loop() const { return loop_; }
  // Every other task refused its part, before anything was done.
  bool refused() const;
  // One of them did; what the others have done is another matter.
  bool any_refused() const;
  // What note_step() said last.
  enum class Made : uint8_t { unknown, no, yes };
  Made made() const { return made_.load(std::memory_order_relaxed); }

  void put(uint32_t edge, DType dtype, const Shape& shape, const void* data, Completion done) override;
  void take(uint32_t edge, void* into, Completion done) override;
  void join(uint32_t peer, Completion done) override;
  void note_step(bool made) override { made_.store(made ? Made::yes : Made::no, std::memory_order_relaxed); }
  Channel::Landing landing(const Link& link, const wire::Data& data, uint64_t bytes) override;
  void arrived(const Link& link, const wire::Data& data, uint64_t bytes) override;
  void replied(const Link& link, const Status& status, bool refused) override;
  void credited(const Link& link) override;

 private:
  // One incoming value.
  struct In {
    Completion waiting;
    void* into = nullptr;  // where the run wants it
    Ref<Buffer> buffer;    // where it is meanwhile
    uint64_t room = 0;     // bytes of it
    Shape shape;
    uint64_t received = 0;
    bool begun = false;
    bool direct = false;  // it goes straight to `into`
    bool complete = false;
  };
  struct Join {
    Completion waiting;
    Status status;
    bool replied = false;
    bool refused = false;
  };
  class Sending;

  void aborted(const Status& cause) override;
  void settle();
  bool tell_others(const Status& cause);
  bool listen(int64_t time_ns);
  void hear_last_words(const Status& status);
  void stop_listening();
  Status check(const Link& link, const wire::Data& data, int* row) const;
  Result<Channel::Landing> place(const Link& link, const wire::Data& data, uint64_t bytes);
  Status make_room(In& in, uint64_t end, uint64_t total);
  Status deliver(In& in, const EdgeTable::Row& row);
  // Its number; that of no peer where it is none.
  size_t peer_at(const Link& link) const;
  std::vector<CreditWindow::Frames> drop_unsent();
  void grant();
  // False where the frame waits for credit.
  bool send_range(uint32_t peer, const wire::Data& data, const void* from, uint64_t bytes, const Ref<Sending>& sending);

  Loop& loop_;
  MemoryBudget& budget_;
  const Ref<EdgeTable> table_;
  const std::vector<Ref<Link>> peers_;
  const uint64_t sequence_;
  const bool is_home_;
  std::atomic<Made> made_{Made::unknown};
  mutable std::mutex mutex_;  // guards what follows
  std::vector<In> in_;        // by row of the table
  std::vector<Join> joins_;
  std::vector<CreditWindow> credits_;  // by peer
  int64_t reserved_ = 0;
  Step* step_ = nullptr;
  bool started_ = false;
  bool aborted_ = false;
  int aborting_ = 0;              // calls of give_up() that may still touch the step
  std::condition_variable calm_;  // that number, or left_, has changed
  bool left_ = false;             // aborted() is over
  bool ended_ = false;
  Status cause_;
  std::unique_ptr<AlarmCall> listening_;  // loop thread: for what the others waited for when the time was over
  Ref<StepEdges> self_;                   // loop thread: while it does
};

}  // namespace dtg
