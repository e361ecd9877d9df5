// Channel: a conversation in frames over a stream of bytes. Framing, the two lanes, and the memory rules are here;
// how bytes move is the business of the subclass (sockets, with TLS or without, and memory).
//
// A payload is sent straight from the memory of whoever sends and received straight into where it belongs. Memory
// has an owner (a step): let_go(owner) returns when the channel touches none of the owner's memory any more, in
// either direction and whatever the peer does, so that an aborted run never waits for a peer that is stuck.
//
// Between processes of one host and user large payloads of the data lane go through shared memory (slots.h), where both ends have agreed
// on it. It is announced by a frame of the channel's own, which brings a descriptor; until the other end has it, and where that fails,
// everything goes through the socket.
//
// What is thrown while a channel works, in its sink too, ends the conversation, with RESOURCE_EXHAUSTED where there was no memory.
//
// Belongs to the loop's thread; only send() and its halves may be called from others.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/ref.h"
#include "net/descriptor.h"
#include "net/loop.h"
#include "net/slots.h"
#include "wire/frame.h"

namespace dtg {

// A frame on its way out.
struct OutFrame {
  std::string head;
  const void* payload = nullptr;
  size_t payload_bytes = 0;
  const void* owner = nullptr;
  bool data = false;
  int slot = -1;          // where the payload is, if it has been copied into shared memory
  Descriptor descriptor;  // travels with the first byte
  // Called once on the loop's thread when the payload is not needed any more: written, given up, or copied.
  std::function<void()> taken;
};

class Channel : public RefCounted {
 public:
  struct Landing {
    void* data = nullptr;  // null: the payload is read and forgotten, and the frame not received
    const void* owner = nullptr;
    // The sink reads the payload while it receives the frame, and not afterwards: if it lies in shared memory it need not be moved, and
    // lent() says where it is. The other end may write there meanwhile, so nothing of it may be a size or an index.
    bool may_be_lent = false;
  };
  // What comes in. Called on the loop's thread.
  class Sink {
   public:
    virtual ~Sink() = default;
    // Prefix and header are there and their checksum is right; where shall the payload go?
    virtual Result<Landing> begin(const wire::Prefix& prefix, std::string_view header) = 0;
    // The frame is complete. An error closes the channel with it.
    virtual Status receive(const wire::Prefix& prefix, std::string_view header) = 0;
    // Once, last of all; not for a channel that was closed by close().
    virtual void closed(const Status& reason) = 0;
  };

  Channel(Loop& loop, const wire::Limits& limits) : loop_(loop), limits_(limits) {}

  Loop& loop() const { return loop_; }
  // Starts to read; until trust() only few bytes.
  void open(Sink* sink);
  void trust();
  // Payloads carry checksums from now on, in both directions: the other end does the same.
  void check_payloads() { checks_payloads_ = true; }
  // Large payloads go through shared memory from now on where this kind of channel can do that; the other end has agreed. After trust().
  void share_memory(MemoryBudget& budget);
  bool shares_memory() const { return in_slots_ != nullptr; }
  // Of payloads that went that way, in both directions.
  uint64_t shared_bytes() const { return shared_bytes_; }
  // While a frame is received: its payload, where it was not put into its landing but lies in shared memory; else null.
  const void* lent() const { return lent_; }
  // From time to time: gives back what lies idle.
  void tidy();
  void send(std::unique_ptr<OutFrame> frame);
  // A frame without payload.
  void send(std::string head);
  // The two halves of sending: queue(), which may be called with locks held, and kick(), which may not: it writes at once
  // when the loop's thread sleeps.
  void queue(std::unique_ptr<OutFrame> frame);
  void kick();
  void let_go(const void* owner);
  // Writes what can be written now; for a last word before close().
  void push() { take_inbox(); }
  // What is queued is dropped, no further call of the sink.
  void close();
  bool is_open() const { return open_; }
  // How long something has been waiting to be written without any progress.
  int64_t stalled_ns() const;
  // How much longer than `pause_ns` the rest of a header has been on its way, beyond what a slow line needs for it. A length that was
  // damaged looks so: what the other end says from then on is taken for the rest. Not positive where none is awaited.
  int64_t overdue_ns(int64_t pause_ns) const;
  // Bytes came in since the last call of the first.
  bool heard() { return std::exchange(heard_, false); }
  bool has_heard() const { return heard_; }
  // What keeps strangers out of the bytes: "uid" (a unix socket, the other process is this user's), "tls1.3", "clear" (TLS
  // authenticated, then frames travel readable), "memory".
  virtual const char* security() const = 0;
  // Who the other end has proven to be: the name of a task, or "" for a client that is no task. Nothing where the
  // transport proves no names (it then connects processes of one user).
  virtual std::optional<std::string> authenticated_peer() const { return std::nullopt; }

 protected:
  // Both say 0 when nothing can be moved now. The end of the stream is an error.
  virtual Result<size_t> read_bytes(const iovec* into, int count) = 0;
  virtual Result<size_t> write_bytes(const iovec* from, int count) = 0;
  // Where descriptors can travel too: writes as write_bytes, with one. RESOURCE_EXHAUSTED: none can travel now, and nothing was written.
  virtual bool passes_descriptors() const { return false; }
  virtual Result<size_t> write_with(const iovec* from, int count, int descriptor);
  // For read_bytes to call: a descriptor came with these bytes, or (none) was lost as this process may have no more.
  Status descriptor_came(Descriptor descriptor);
  virtual void want_write(bool want) = 0;
  virtual void start() = 0;
  virtual void shut() = 0;
  // The other end is known now.
  virtual void trusted() {}
  // For the subclass to call. All that the loop calls goes through contain(): what it throws closes the channel.
  template <class Fn>
  void contain(Fn&& fn) {
    const Ref<Channel> self = Ref<Channel>::share(this);
    try {
      fn();
    } catch (...) {
      fail(caught());
    }
  }
  void on_readable();
  void on_writable() { flush(); }
  void fail(const Status& reason);
  const wire::Limits& limits() const { return limits_; }

 private:
  enum class Reading : uint8_t { prefix, header, payload };

  void stamp(OutFrame& frame) const;
  static Status caught();
  template <class Post>
  void post_inbox(Post&& post);
  void take_inbox();
  void flush();
  void write_broke(const Status& reason);
  void read_out();
  void queue_control(std::string head, Descriptor descriptor = Descriptor());
  bool wants_slot(const OutFrame& frame) const;
  void fill_slots();
  void open_slots();
  Result<size_t> write_some(const std::vector<iovec>& list);
  Status take_from_slot();
  Status own_frame();
  Status check_descriptor() const;
  void give_back();
  void gather(std::vector<iovec>& list, std::vector<OutFrame*>& frames);
  void written(size_t bytes);
  Status read_some(bool* more);
  Status parse();
  Status parse_header();
  Status finish_frame();
  void take_payload();
  void reserve_input();

  Loop& loop_;
  const wire::Limits limits_;
  Sink* sink_ = nullptr;
  bool open_ = false;
  bool trusted_ = false;
  std::atomic<bool> checks_payloads_{false};
  bool heard_ = false;
  uint64_t bytes_in_ = 0;
  std::unique_ptr<OutSlots> out_slots_;  // both or none
  std::unique_ptr<InSlots> in_slots_;
  uint64_t shared_bytes_ = 0;

  // In.
  Reading reading_ = Reading::prefix;
  int64_t header_ns_ = 0;  // when the prefix of the header that is awaited was there
  std::vector<char> input_;
  size_t begin_ = 0, end_ = 0;  // unread bytes in input_
  wire::Prefix prefix_;
  std::string header_;
  Landing landing_;
  const void* lent_ = nullptr;
  uint64_t payload_left_ = 0;
  Descriptor descriptor_;  // came, and waits for the frame that it came with
  bool descriptor_lost_ = false;
  uint64_t descriptor_upto_ = 0;  // where that has begun at the latest

  // Out.
  std::unique_ptr<OutFrame> partial_;  // begun, not finished
  size_t partial_at_ = 0;
  std::vector<char> partial_copy_;
  std::deque<std::unique_ptr<OutFrame>> control_, data_;
  size_t control_bytes_ = 0;
  Status broken_;  // nothing can be written any more
  int64_t progress_ns_ = 0;

  std::mutex inbox_mutex_;  // guards what follows
  std::vector<std::unique_ptr<OutFrame>> inbox_;
  bool posted_ = false;
};

}  // namespace dtg
