// Group: tasks that take part in collectives together, as one of them sees it. Its members are named once, in an order that all of them
// have (the roster); those who are there agree on an epoch, in which they have ranks by that order. The first loss, or call that
// does not fit the others', ends the epoch for all of them with the name of the culprit; then they agree on the next one, with whoever
// is there.
//
// How they agree, and who may go on at all, is succession.h's to decide. Links last over epochs; what is said of an older epoch is not
// heard. A task that leaves and joins again is another member to the epoch that it was in: nothing of the one counts for the other.
//
// Any thread may call what is public above the line; the rest belongs to the loop's. Owner: the server, until the member leaves, and the
// host's handle.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "cluster/group_calls.h"
#include "cluster/group_peer.h"
#include "cluster/host.h"
#include "cluster/succession.h"
#include "exec/collectives.h"

namespace dtg {

class Group final : public CollectiveGroup, private GroupCalls::Epoch, private Succession::Around {
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

  // Agrees on a next epoch with the members that are there: at least so many, and a quorum of those of the last one; 0: all of the
  // roster. `done` is called once, on the loop.
  void form(size_t least, Deadline deadline, Done done);
  void start(Ref<GroupCall> call);
  // The host asked for a call that cannot be made: it is counted, and the others hear why it is not made when they come to it.
  void refuse(std::string what, const Status& why);
  // Ends the epoch, since the others count on this call.
  void cancel(Ref<GroupCall> call);
  // Sticky: nothing of this member goes on. `held` (may be null) is let go of when the others have had, or could have had, all that was
  // sent to them.
  void leave(const Status& why, std::shared_ptr<void> held = nullptr);
  View view() const;
  const std::string& name() const override { return options_.name; }
  Poller* poller() override { return &host_.loop(); }
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
  // `before`: this task's last time in the group; null: there was none.
  void open(const Group* before);
  // Which time that its task has joined it; later ones are higher.
  uint64_t life() const { return life_; }
  bool has_left() const { return state_ == State::left; }
  // So many things of calls, under way or not: none where all of them have ended.
  size_t kept() const { return calls_.kept(); }
  void leave_now(const Status& why, const std::shared_ptr<void>& held = nullptr);
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
  Status piece_arrived(GroupPeer& peer, const wire::GroupData& data, uint64_t bytes, const Ref<Buffer>& early, const void* lent);
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

  // GroupCalls::Epoch
  void send(int rank, std::unique_ptr<OutFrame> frame) override;
  void send(int rank, wire::GroupWord word) override;
  std::string name_of(int rank) const override;
  const std::string& task_of(int rank) const override;
  std::vector<int> hosts() const override;
  const std::string& group_name() const override { return options_.name; }
  void poison(const Status& cause) override { end_epoch(cause.at_task(self_task()).in_phase("run"), true); }
  void let_go(const Exchange& exchange) override;
  MemoryBudget& budget() override { return *host_.seams.budget; }
  Ref<RefCounted> keeper() override { return Ref<RefCounted>::share(this); }

  // Succession::Around
  int64_t now_ns() override { return host_.loop().clock().monotonic_ns(); }
  uint64_t life(int member) override { return member == options_.self ? life_ : peers_[static_cast<size_t>(member)]->life(); }
  bool is_linked(int member) override { return peers_[static_cast<size_t>(member)]->is_linked(); }
  Status unlinked(int member) override;
  void tell(int member, const wire::GroupWord& word) override { peers_[static_cast<size_t>(member)]->queue(word); }
  void enter(const Succession::Set& epoch) override;

  void begin_forming(size_t least, Deadline deadline, Done done);
  void end_epoch(const Status& cause, bool announce);
  void stand_aside();
  int rank_of(int member) const;
  int rank_of(int member, uint64_t life) const;
  int rank_of(const GroupPeer& peer) const { return rank_of(peer.member(), peer.life()); }
  GroupPeer* peer_of(int rank) const;
  void tell_epoch(const wire::GroupWord& word, bool behind_data);
  void tell_left(const Status& why);
  void left(GroupPeer& peer, const wire::GroupWord& word);
  bool has_left(int rank) const;
  void end_if_who_left_is_needed();
  void tick();
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
  std::vector<int> members_;     // of the epoch, by rank
  std::vector<uint64_t> lives_;  // theirs; 0: not told
  std::unique_ptr<Forming> forming_;
  Succession succession_;
  std::vector<std::pair<int, Status>> left_;  // ranks of the epoch that no call under way needs
  struct {
    uint64_t epoch = 0;
    int member = -1;  // who said so
    uint64_t life = 0;
    Status why;
  } early_poison_;                             // of an epoch that this member is not in yet
  std::vector<wire::GroupWord> early_leaves_;  // by member: of who has left before this member was in the epoch; verb 0: nobody
  uint64_t life_ = 0;
  AlarmCall alarm_;
  int entered_ = 0;
  bool flushing_ = false;
  bool flush_posted_ = false;
  GroupCalls calls_;
};

}  // namespace dtg
