// Group: tasks that take part in collectives together, as one of them sees it. Its members are named once, in an order that all of them
// have (the roster); those who are there agree on an epoch, in which they have ranks by that order. The first loss, or call that
// does not fit the others', ends the epoch for all of them with the name of the culprit; then they agree on the next one, with whoever
// is there.
//
// Agreeing: whoever wants an epoch says so to all, with the lowest member that it sees as leader. A leader whom everybody present wants
// proposes a number that is higher than all that were heard of, and commits it when all have promised to accept no lower one, which
// each does when it has links to all that are in it. Links
// last over epochs; what is said of an older epoch is not heard.
//
// Any thread may call what is public above the line; the rest belongs to the loop's. Owner: the server, until the member leaves, and the
// host's handle.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cluster/group_calls.h"
#include "cluster/group_peer.h"
#include "cluster/host.h"
#include "exec/collectives.h"

namespace dtg {

// What a GroupWord says. The numbers are part of the wire.
enum class GroupVerb : uint8_t {
  want = 1,       // value: the leader, number: the highest epoch that was heard of
  propose = 2,    // epoch, ranks: who is in it
  promise = 3,    // epoch
  commit = 4,     // epoch
  poison = 5,     // epoch, status
  leave = 6,      // epoch (0: this and all that come), status
  credit = 7,     // epoch, stream, number, lane, value: how far
  dispute = 8,    // epoch, stream, number
  statement = 9,  // the same, status: what it meant
};

class Group final : public CollectiveGroup, private GroupCalls::Epoch {
 public:
  static constexpr int64_t kCallNs = int64_t{600} * 1'000'000'000;
  struct Member {
    std::string task;
    Address address;
    Credentials credentials;  // to dial it
  };
  struct Options {
    std::string name;
    int32_t key = 1;              // by which graph ops find it
    Ref<Collectives> ops = {};    // of the task, which know of it until it leaves
    int64_t call_ns = kCallNs;    // how long calls of ops take at most that say nothing themselves
    std::vector<Member> members;  // in the order of their ranks
    int self = 0;
  };
  struct View {
    uint64_t epoch = 0;  // 0: in none yet
    int rank = -1;
    std::vector<std::string> members;  // names of the tasks, by rank
    Status cause;                      // why nothing goes on in it
  };
  using Done = std::function<void(const Status&)>;

  Group(const Host& host, const Timing& timing, Options options, Ref<RefCounted> owner);
  ~Group() override;

  // Agrees on a next epoch with the members that are there: at least so many, and more than half of those of the last one, or half with
  // its lowest; 0: all of the roster. `done` is called once, on the loop.
  void form(size_t least, Deadline deadline, Done done);
  void start(Ref<GroupCall> call);
  // Ends the epoch, since the others count on this call.
  void cancel(Ref<GroupCall> call);
  // Sticky: nothing of this member goes on.
  void leave(const Status& why);
  View view() const;
  const std::string& name() const override { return options_.name; }
  int32_t key() const { return options_.key; }

  // For ops, whose calls count by instance.
  Standing standing() const override;
  Ref<RefCounted> make_call(CollectiveCall what, int32_t instance, uint64_t epoch, int64_t timeout_ns, Deadline deadline,
                            CollectiveGroup::Done done) override;
  void start_call(const Ref<RefCounted>& call) override;
  void give_up_call(const Ref<RefCounted>& call, const Status& why) override;
  void run_failed(std::optional<uint64_t> epoch, const Status& why) override;

  const std::vector<Member>& roster() const { return options_.members; }

  // ---- the loop's ----
  void open();
  bool has_left() const { return state_ == State::left; }
  void leave_now(const Status& why);
  Loop& loop() override { return host_.loop(); }
  const Host& host() const { return host_; }
  const Timing& timing() const { return timing_; }
  const std::string& self_task() const { return options_.members[static_cast<size_t>(options_.self)].task; }
  wire::Hello hello() const;
  // Whom a hello comes from; an error: why it may not.
  Result<Ref<GroupPeer>> member_of(const wire::Hello& hello) const;
  void peer_up(GroupPeer& peer);
  void peer_down(GroupPeer& peer, const Status& reason);
  void word(GroupPeer& peer, const wire::GroupWord& word);
  Result<Channel::Landing> piece_begins(GroupPeer& peer, const wire::GroupData& data, uint64_t bytes, Ref<Buffer>* early);
  Status piece_arrived(GroupPeer& peer, const wire::GroupData& data, uint64_t bytes, const Ref<Buffer>& early);
  // Something waits for a peer: it leaves when what happens now is over, or in a turn of its own.
  void queued();

 private:
  // Around everything that comes from outside: what was queued meanwhile leaves at its end.
  class Entry {
   public:
    explicit Entry(Group& group) : group_(Ref<Group>::share(&group)) { ++group_->entered_; }
    ~Entry() {
      if (--group_->entered_ == 0) group_->flush();
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    const Ref<Group> group_;
  };
  enum class State : uint8_t { outside, formed, poisoned, left };
  struct Forming {
    size_t least = 0;
    Deadline deadline;
    Done done;
  };
  struct Want {
    int leader = -1;
    uint64_t heard = 0;
    Status trouble;  // what keeps it from promising
  };

  // GroupCalls::Epoch
  void send(int rank, std::unique_ptr<OutFrame> frame) override;
  void send(int rank, wire::GroupWord word) override;
  std::string name_of(int rank) const override;
  const std::string& group_name() const override { return options_.name; }
  void poison(const Status& cause) override { end_epoch(cause, true); }
  void let_go(const Exchange& exchange) override;
  MemoryBudget& budget() override { return *host_.seams.budget; }
  Ref<RefCounted> keeper() override { return Ref<RefCounted>::share(this); }

  void begin_forming(size_t least, Deadline deadline, Done done);
  void end_epoch(const Status& cause, bool announce);
  void stand_aside();
  int rank_of(int member) const;
  std::vector<int> present() const;
  bool is_quorum(const std::vector<int>& present) const;
  void tick();
  void consider();
  void tell_want(int leader);
  void propose(const std::vector<int>& present);
  void proposed(GroupPeer& peer, const wire::GroupWord& word);
  void promise();
  void promised(GroupPeer& peer, const wire::GroupWord& word);
  void enter(uint64_t epoch, std::vector<int> members);
  void formed(const Status& status);
  void give_up_forming();
  void publish();
  void flush();
  Status out_of_it() const;
  Status run_ended(const Status& why) const;
  Status too_old(uint64_t epoch) const;
  void about_epoch(GroupPeer& peer, const wire::GroupWord& word);

  const Host host_;
  const Timing timing_;
  const Options options_;
  const Ref<RefCounted> owner_;
  mutable std::mutex view_mutex_;  // guards view_
  View view_;
  // Loop thread.
  State state_ = State::outside;
  Status cause_;
  std::pair<uint64_t, Status> last_end_;  // the last epoch that has ended, and why
  std::vector<Ref<GroupPeer>> peers_;     // by member; null: this one
  uint64_t epoch_ = 0;
  std::vector<int> members_;  // of the epoch, by rank
  std::unique_ptr<Forming> forming_;
  int followed_ = -1;
  std::vector<Want> wants_;
  uint64_t promised_ = 0;  // the highest number that was promised or proposed
  std::vector<int> promised_members_;
  int promised_to_ = -1;
  uint64_t asked_for_ = 0;  // a promise of this number, when there are links to all of these; 0: none
  std::vector<int> asked_members_;
  int asked_by_ = -1;
  std::set<int> promises_;  // of those to whom it was proposed; this one leads
  bool proposing_ = false;
  int64_t proposed_ns_ = 0;
  int64_t changed_ns_ = 0;  // who is present has
  Status doomed_;           // somebody has left, whom no call under way needs
  std::pair<uint64_t, Status> early_poison_;
  AlarmCall alarm_;
  int entered_ = 0;
  bool flushing_ = false;
  bool flush_posted_ = false;
  GroupCalls calls_;
};

}  // namespace dtg
