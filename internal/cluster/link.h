// Link: a conversation with another process over one channel: heartbeats, calls and their deadlines, and the steps
// whose values travel here. What else a message means is for its listener (a server's connection, a remote worker).
//
// Belongs to the loop's thread; send() may be called from others.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>

#include "cluster/host.h"
#include "net/call_table.h"
#include "net/channel.h"
#include "wire/messages.h"

namespace dtg {

class Link;

// A step as the link sees it. Called on the loop's thread.
class StepPort : public RefCounted {
 public:
  // Where this range of a value goes; no memory: it is read and forgotten.
  virtual Channel::Landing landing(const Link& link, const wire::Data& data, uint64_t bytes) = 0;
  virtual void arrived(const Link& link, const wire::Data& data, uint64_t bytes) = 0;
  // The part that runs at the other end of that link has ended, or the link has. `refused`: it never began.
  virtual void replied(const Link& link, const Status& status, bool refused) = 0;
  // It has memory for everything that the step sends there.
  virtual void credited(const Link& link) = 0;
};

class Link final : public RefCounted, private Channel::Sink {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    // Memory for a payload other than data.
    virtual Result<Channel::Landing> payload(const wire::Prefix& prefix, std::string_view header) = 0;
    // Everything but heartbeats, data and answers to calls. An error closes the link.
    virtual Status message(const wire::Prefix& prefix, std::string_view header) = 0;
    // While this end parts: with that the other end parts too, so that neither wants anything of the other any more.
    virtual bool parts(const wire::Prefix&, std::string_view) { return false; }
    // Once; the link is of no use any more.
    virtual void lost(const Status& reason) = 0;
  };

  Link(Loop& loop, Ref<Channel> channel, const Timing& timing, Listener* listener);

  void open();
  // The other end said who it is: its name goes into errors, and from now on it must be heard, as often as was agreed.
  void trust(std::string peer, int64_t heartbeat_ns, uint64_t features = 0, std::string home = {});
  // What both ends can: large values go through shared memory where the channel can do that. After trust().
  void share_memory(uint64_t features, MemoryBudget& budget) {
    if ((features & wire::kSharedMemory) != 0) channel_->share_memory(budget);
  }
  const std::string& peer() const { return peer_; }
  const std::string& home() const { return home_; }
  // Any thread; false is final.
  bool is_open() const { return open_.load(std::memory_order_acquire); }
  // It has been silent for longer than somebody is who lives, if not for so long that it is taken for dead. Loop thread.
  bool is_silent() const;
  // The other end went because it was through, and said so. Loop thread.
  bool said_goodbye() const { return said_goodbye_; }
  // Why it is of no use any more. Any thread.
  Status reason();
  Channel& channel() { return *channel_; }

  template <class M>
  void send(const M& message, uint32_t call = 0) {
    channel_->send(wire::make_frame(message, call));
  }
  // As the halves of Channel::send.
  template <class M>
  void queue(const M& message) {
    auto frame = std::make_unique<OutFrame>();
    frame->head = wire::make_frame(message);
    channel_->queue(std::move(frame));
  }
  void kick() { channel_->kick(); }
  CallTable& calls() { return calls_; }

  // Values of that step go there until it is removed.
  // Any thread, so that a step is known before its first message leaves. Fails when the link is lost.
  Status add_step(uint64_t sequence, Ref<StepPort> port);
  void remove_step(uint64_t sequence, const StepPort* port);
  // The other end may grant credit for a step before it has begun here; it is given to the step then. Before open().
  void keep_early_credit() { keeps_credit_ = true; }

  // Says why, without a word to the listener.
  void close(const Status& reason);
  // As if the other end had gone away.
  void fail(const Status& reason);
  // With a last word behind everything that was sent, so that all of it arrives; closing is the other end's then, and this one's after
  // `patience_ns`, or when the other end parts too. Nothing else that comes in meanwhile is heard. `held` (may be null) is let go of at
  // the end.
  template <class M>
  void part(const M& word, const Status& reason, int64_t patience_ns, std::shared_ptr<void> held) {
    part_with(wire::make_frame(word), reason, patience_ns, std::move(held));
  }
  // One more that waits for the end of that.
  void hold(std::shared_ptr<void> held) {
    if (parting_ && is_open()) parting_->held.push_back(std::move(held));
  }

 private:
  Result<Channel::Landing> begin(const wire::Prefix& prefix, std::string_view header) override;
  Status receive(const wire::Prefix& prefix, std::string_view header) override;
  void closed(const Status& reason) override { end(reason); }
  void end(const Status& why);
  void part_with(std::string head, const Status& reason, int64_t patience_ns, std::shared_ptr<void> held);
  void watch();
  void tick();
  Status data_arrived(const wire::Prefix& prefix, std::string_view header);
  Status run_replied(std::string_view header);
  Status credited(std::string_view header);
  Ref<StepPort> step(uint64_t sequence);

  Loop& loop_;
  const Ref<Channel> channel_;
  Timing timing_;
  Listener* listener_;
  CallTable calls_;
  static constexpr size_t kEarlyCredits = 8192;  // more than runs of a session can be under way
  std::mutex steps_mutex_;                       // guards steps_, reason_ and early_credits_
  std::unordered_map<uint64_t, Ref<StepPort>> steps_;
  Status reason_;
  bool keeps_credit_ = false;
  std::deque<uint64_t> early_credits_;
  std::atomic<bool> open_{false};
  std::string peer_;
  std::string home_;  // the task at this end; empty for one that is none
  bool trusted_ = false;
  bool said_goodbye_ = false;
  AlarmCall alarm_;
  int64_t heard_ns_ = 0;
  int64_t ticked_ns_ = 0;
  uint64_t beats_ = 0;
  struct Parting {
    Status reason;
    std::vector<std::shared_ptr<void>> held;
  };
  std::unique_ptr<Parting> parting_;
};

}  // namespace dtg
