// GroupCalls: the collectives that are under way in one epoch of a group, by the row of calls they belong to and their number there,
// and what came for calls that this member has not begun yet. Where members mean different things by a call, rank 0 hears what each
// meant and names the odd one.
//
// Owner: the group. Belongs to the loop's thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/instance_counts.h"
#include "collective/exchange.h"
#include "net/channel.h"
#include "net/loop.h"
#include "wire/messages.h"

namespace dtg {

// A call as its member made it. Ends once, with a result or without one.
class GroupCall final : public RefCounted {
 public:
  using Done = std::function<void(const Status&, const Tensor& result)>;
  GroupCall(CollectiveCall what, uint64_t stream, Deadline deadline, Done done)
      : what_(std::move(what)), stream_(stream), deadline_(deadline), done_(std::move(done)) {}
  Deadline deadline() const { return deadline_; }
  uint64_t stream() const { return stream_; }

 private:
  friend class GroupCalls;
  friend class Group;
  // Loop thread.
  void end(const Status& status, const Tensor& result) {
    if (const Done done = std::exchange(done_, nullptr)) done(status, result);
  }
  CollectiveCall what_;
  const uint64_t stream_;
  const Deadline deadline_;
  Done done_;
  uint64_t epoch_ = 0;  // in which it counts; 0: in that in which it is started
  std::unique_ptr<AlarmCall> alarm_;
  Status given_up_;  // by whoever made it
};

class GroupCalls final : private Exchange::Carrier {
 public:
  struct Key {
    uint64_t stream = 0, number = 0;
    auto operator<=>(const Key&) const = default;
  };
  // What carries the calls: the epoch and its members.
  class Epoch {
   public:
    virtual ~Epoch() = default;
    virtual void send(int rank, std::unique_ptr<OutFrame> frame) = 0;
    virtual void send(int rank, wire::GroupWord word) = 0;
    virtual std::string name_of(int rank) const = 0;
    virtual const std::string& task_of(int rank) const = 0;
    // By rank: on which host it is, counted from 0, by the addresses that all members know.
    virtual std::vector<int> hosts() const = 0;
    virtual const std::string& group_name() const = 0;
    // Nothing goes on in this epoch.
    virtual void poison(const Status& cause) = 0;
    // No link touches the call's memory any more when it returns.
    virtual void let_go(const Exchange& exchange) = 0;
    virtual Loop& loop() = 0;
    virtual MemoryBudget& budget() = 0;
    // Of the object that `taken` must keep alive.
    virtual Ref<RefCounted> keeper() = 0;
  };
  explicit GroupCalls(Epoch& epoch);
  // The row of an op's calls, which count by instance; row 0 is that of calls without ops.
  static uint64_t stream_of(int32_t instance) { return kInstances | static_cast<uint32_t>(instance); }

  // A new epoch: nothing is under way; what came early for it is kept.
  void restart(uint64_t epoch, int rank, std::vector<int> members);
  void begin(const Ref<GroupCall>& call);
  // This member cannot make the call of that row that would be its next. It takes its number all the same, or later ones would meet others
  // than they are; whoever makes it ends the epoch with this member's name. Where all refuse it, all go on.
  void refuse(uint64_t stream, const std::string& what, const Status& why);
  void cancel(const Ref<GroupCall>& call, const Status& why);
  // It has no time left, whatever its own deadline.
  void out_of_time(const Ref<GroupCall>& call);
  // The epoch is over, and nothing of it is kept; `ends_for_good`: nor of any other.
  void fail_all(const Status& cause, bool ends_for_good);
  // Some call cannot end without that rank.
  bool needs(int rank) const;
  size_t size() const { return flights_.size(); }
  // What is under way, and what came or was said of calls that are not.
  size_t kept() const { return flights_.size() + early_.size() + early_grants_.size() + stated_.size() + asked_.size() + refused_.size(); }

  // From the member with that number (in the roster) and rank (-1: the epoch is still to come).
  Result<Channel::Landing> piece_begins(int member, int rank, const wire::GroupData& data, uint64_t bytes, Ref<Buffer>* early);
  // `lent`: see Channel::lent().
  Status piece_arrived(int member, int rank, const wire::GroupData& data, uint64_t bytes, const Ref<Buffer>& early, const void* lent);
  Status granted(int member, int rank, const wire::GroupWord& word);
  void disputed(const wire::GroupWord& word);
  void stated(int rank, const wire::GroupWord& word);
  // What came early from that member is of no use; `has_left`: but for what it has sent in this epoch, or a later one, before.
  void forget(int member, bool has_left);

 private:
  struct Flight {
    Ref<GroupCall> call;
    Ref<Exchange> exchange;
    bool disputed = false;
  };
  struct EarlyStream {
    wire::GroupData first;
    Ref<Buffer> bytes;
    uint64_t arrived = 0;
  };
  struct EarlyKey {
    uint64_t epoch = 0;
    Key key;
    int member = 0;
    uint8_t lane = 0;
    auto operator<=>(const EarlyKey&) const = default;
  };

  void send(Exchange& exchange, const Piece& piece) override;
  void grant(Exchange& exchange, int rank, uint8_t lane, uint64_t upto) override;
  void sent(const Key& key, const Exchange* exchange, int rank, uint8_t lane, uint64_t bytes);
  Flight* find(const Key& key);
  static Key key_of(const Exchange& exchange) { return {exchange.stream, exchange.number}; }
  Result<bool> meet(const Key& key, int rank, const wire::GroupData& data);
  void catch_up(const Key& key);
  void settle(const Key& key, const Status& status);
  void late(const Key& key);
  void dispute(const Key& key);
  void state(const Key& key);
  void judge(const Key& key);
  void refused_elsewhere(uint64_t epoch, const Key& key, const Status& why);
  void forget_early(const Key& key);
  void drop_before(uint64_t epoch);
  std::string other_calls(const Key& key, const std::vector<int>& ranks) const;
  std::string describe(const Key& key, const CallTerms& terms) const;
  std::map<Key, Flight>::iterator find(const Ref<GroupCall>& call);
  static std::string number_text(const Key& key, const char* what, const char* of_instance);

  static constexpr uint64_t kInstances = uint64_t{1} << 32;
  static constexpr size_t kEarlyMost = 4096;  // streams that one member may send ahead
  Epoch& epoch_;
  uint64_t number_ = 0;  // of the epoch
  int rank_ = 0;
  std::vector<int> members_;
  InstanceCounts counts_;  // by row: the number of the next call
  std::map<Key, Flight> flights_;
  std::map<EarlyKey, EarlyStream> early_;
  std::map<EarlyKey, uint64_t> early_grants_;
  std::map<int, size_t> early_counts_;                  // by member
  std::deque<std::pair<Key, CallTerms>> ended_;         // the last ones
  std::map<Key, std::map<int, std::string>> stated_;    // by rank: what each meant
  std::vector<Key> asked_;                              // disputed calls that have not begun here
  std::map<std::pair<uint64_t, Key>, Status> refused_;  // by others, in that epoch; calls that have not begun here
  Key judging_;
  AlarmCall verdict_;
};

}  // namespace dtg
