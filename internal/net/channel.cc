// Channel: cuts the stream of bytes into frames and puts frames into the stream, in two lanes. See channel.h for
// threads.
#include "net/channel.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

namespace dtg {
namespace {

constexpr size_t kInput = size_t{64} << 10;
constexpr size_t kStrangersInput = size_t{8} << 10;
constexpr int kReadsAtOnce = 32;                      // then others get their turn
constexpr int kLastTurns = 32;                        // for what is left when nothing can be written any more
constexpr size_t kPieces = 64;                        // per write
constexpr int64_t kSlowestBytes = int64_t{64} << 10;  // per second; what comes more slowly is taken for damaged
constexpr size_t kWriteBytes = size_t{4} << 20;

// On ways that must go on to the end.
void give_up(OutFrame& frame) noexcept {
  try {
    if (frame.taken) frame.taken();
  } catch (...) {
  }
}

}  // namespace

// What is being handled, as a status.
Status Channel::caught() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return resource_exhausted("there was no memory to go on with the conversation");
  } catch (const std::exception& problem) {
    return internal_error("the conversation broke off here: %s", problem.what());
  } catch (...) {
    return internal_error("the conversation broke off here");
  }
}

void Channel::open(Sink* sink) {
  sink_ = sink;
  open_ = true;
  progress_ns_ = loop_.clock().monotonic_ns();
  contain([&] {
    input_.resize(trusted_ ? kInput : kStrangersInput);
    start();
    take_inbox();
  });
}

void Channel::trust() {
  trusted_ = true;
  trusted();
}

void Channel::send(std::string head) {
  auto frame = std::make_unique<OutFrame>();
  frame->head = std::move(head);
  send(std::move(frame));
}

// On the thread that sends: the loop's has other things to do.
void Channel::stamp(OutFrame& frame) const {
  if (!checks_payloads_) return;
  const std::string_view apart(static_cast<const char*>(frame.payload), frame.payload_bytes);
  wire::stamp_payload(frame.head, frame.payload ? apart : wire::payload_in(frame.head));
}

void Channel::send(std::unique_ptr<OutFrame> frame) {
  stamp(*frame);
  {
    const std::lock_guard lock(inbox_mutex_);
    inbox_.push_back(std::move(frame));
    if (posted_) return;
    posted_ = true;
  }
  post_inbox([this](std::function<void()> fn) { loop_.post(std::move(fn)); });
}

template <class Post>
void Channel::post_inbox(Post&& post) {
  try {
    post([self = Ref<Channel>::share(this)] { self->contain([&] { self->take_inbox(); }); });
  } catch (...) {
    // The next one takes along what waits.
    const std::lock_guard lock(inbox_mutex_);
    posted_ = false;
    throw;
  }
}

void Channel::queue(std::unique_ptr<OutFrame> frame) {
  stamp(*frame);
  const std::lock_guard lock(inbox_mutex_);
  inbox_.push_back(std::move(frame));
}

void Channel::kick() {
  {
    const std::lock_guard lock(inbox_mutex_);
    if (inbox_.empty() || posted_) return;
    posted_ = true;
  }
  post_inbox([this](std::function<void()> fn) { loop_.post_now(std::move(fn)); });
}

void Channel::take_inbox() {
  std::vector<std::unique_ptr<OutFrame>> frames;
  {
    const std::lock_guard lock(inbox_mutex_);
    frames.swap(inbox_);
    posted_ = false;
  }
  const bool idle = !partial_ && control_.empty() && data_.empty();
  if (idle) progress_ns_ = loop_.clock().monotonic_ns();
  for (auto& frame : frames) {
    if (!open_ && sink_) {
      if (frame->taken) frame->taken();
      continue;
    }
    if (!frame->data) control_bytes_ += frame->head.size() + frame->payload_bytes;
    (frame->data ? data_ : control_).push_back(std::move(frame));
  }
  if (!open_) return;
  flush();
}

int64_t Channel::stalled_ns() const {
  if (!partial_ && control_.empty() && data_.empty()) return 0;
  return loop_.clock().monotonic_ns() - progress_ns_;
}

int64_t Channel::overdue_ns(int64_t pause_ns) const {
  if (reading_ != Reading::header) return 0;
  const int64_t needed_ns = int64_t{prefix_.header_bytes} * (1'000'000'000 / kSlowestBytes);
  return loop_.clock().monotonic_ns() - header_ns_ - needed_ns - pause_ns;
}

// What it queues itself.
void Channel::queue_control(std::string head, Descriptor descriptor) {
  auto frame = std::make_unique<OutFrame>();
  frame->head = std::move(head);
  frame->descriptor = std::move(descriptor);
  control_bytes_ += frame->head.size();
  control_.push_back(std::move(frame));
}

// The frame that was begun goes on, then control, then data.
void Channel::gather(std::vector<iovec>& list, std::vector<OutFrame*>& frames) {
  size_t bytes = 0;
  const auto piece = [&](const char* data, size_t size) {
    if (size == 0) return;
    list.push_back({const_cast<char*>(data), size});
    bytes += size;
  };
  if (partial_) {
    const size_t head = partial_->head.size();
    if (partial_at_ < head) piece(partial_->head.data() + partial_at_, head - partial_at_);
    const size_t into = partial_at_ > head ? partial_at_ - head : 0;
    piece(static_cast<const char*>(partial_->payload) + into, partial_->payload_bytes - into);
  }
  for (const auto* queue : {&control_, &data_}) {
    for (const auto& frame : *queue) {
      if (list.size() + 2 > kPieces || bytes >= kWriteBytes) return;
      const bool brings = frame->descriptor.get() >= 0;
      if (wants_slot(*frame) || (brings && !list.empty())) return;
      piece(frame->head.data(), frame->head.size());
      piece(static_cast<const char*>(frame->payload), frame->payload_bytes);
      frames.push_back(frame.get());
      if (brings) return;
    }
  }
}

void Channel::flush() {
  if (control_bytes_ > limits_.outbound_bytes) {
    return fail(resource_exhausted("send to a peer that does not read: more than %zu bytes are waiting", limits_.outbound_bytes));
  }
  std::vector<iovec> list;
  std::vector<OutFrame*> frames;
  while (open_ && broken_.ok() && (partial_ || !control_.empty() || !data_.empty())) {
    list.clear();
    frames.clear();
    fill_slots();
    gather(list, frames);
    if (list.empty()) break;  // until slots come back
    auto sent = write_some(list);
    if (!sent.ok()) return write_broke(sent.status());
    if (sent.value() == 0) return want_write(true);
    progress_ns_ = loop_.clock().monotonic_ns();
    written(sent.value());
  }
  if (open_) want_write(false);
}

// What the other end said before it went is still to be read: it may be all that somebody waits for. In a turn of its own, as this may be
// in the midst of a frame.
void Channel::write_broke(const Status& reason) {
  broken_ = reason;
  want_write(false);
  loop_.post([self = Ref<Channel>::share(this)] { self->contain([&] { self->read_out(); }); });
}

void Channel::read_out() {
  for (int turn = 0; turn < kLastTurns && open_; ++turn) on_readable();
  fail(broken_);
}

// Crosses off in the order in which gather() listed.
void Channel::written(size_t bytes) {
  for (;;) {
    if (!partial_) {
      auto& queue = control_.empty() ? data_ : control_;
      if (bytes == 0 || queue.empty()) return;
      partial_ = std::move(queue.front());
      queue.pop_front();
      partial_at_ = 0;
      if (!partial_->data) control_bytes_ -= partial_->head.size() + partial_->payload_bytes;
    }
    const size_t left = partial_->head.size() + partial_->payload_bytes - partial_at_;
    const size_t now = std::min(left, bytes);
    partial_at_ += now;
    bytes -= now;
    if (now < left) return;
    const std::unique_ptr<OutFrame> done = std::move(partial_);
    partial_copy_.clear();
    if (done->taken) done->taken();
    if (!open_) return;
  }
}

// A descriptor is the whole business of its write.
Result<size_t> Channel::write_some(const std::vector<iovec>& list) {
  const int count = static_cast<int>(list.size());
  const int descriptor = partial_ || control_.empty() ? -1 : control_.front()->descriptor.get();
  if (descriptor < 0) return write_bytes(list.data(), count);
  auto sent = write_with(list.data(), count, descriptor);
  if (sent.ok() && sent.value() == 0) return sent;
  control_.front()->descriptor = Descriptor();
  if (sent.status().code() != Code::resource_exhausted) return sent;
  // The frame goes without; who gets it sees that, so nothing of it may go.
  out_slots_->fail();
  control_bytes_ -= control_.front()->head.size();
  control_.pop_front();
  return size_t{0};
}

void Channel::let_go(const void* owner) {
  // What is in the inbox may be the end of the conversation, and of whoever had the channel.
  const Ref<Channel> self = Ref<Channel>::share(this);
  take_inbox();
  if (landing_.owner == owner && reading_ == Reading::payload) landing_ = {};
  if (partial_ && partial_->owner == owner && partial_->owner) {
    // The peer has the beginning of this frame, so it gets the rest, from a copy.
    const auto* payload = static_cast<const char*>(partial_->payload);
    partial_copy_.assign(payload, payload + partial_->payload_bytes);
    partial_->payload = partial_copy_.data();
    partial_->owner = nullptr;
    if (auto taken = std::exchange(partial_->taken, nullptr)) taken();
  }
  std::vector<std::unique_ptr<OutFrame>> dropped;
  for (auto& frame : data_) {
    if (frame->owner == owner) dropped.push_back(std::move(frame));
  }
  std::erase(data_, nullptr);
  for (auto& frame : dropped) {
    if (frame->slot >= 0 && out_slots_) out_slots_->take_back(static_cast<uint32_t>(frame->slot));
    if (frame->taken) frame->taken();
  }
}

void Channel::close() {
  if (!open_) return;
  open_ = false;
  shut();
  out_slots_ = nullptr;
  in_slots_ = nullptr;
  descriptor_ = Descriptor();
  if (const auto frame = std::move(partial_)) give_up(*frame);
  // Nothing is queued any more, so this comes to an end; and it takes no memory, of which there may be none.
  for (auto* queue : {&control_, &data_}) {
    while (!queue->empty()) {
      const auto frame = std::move(queue->front());
      queue->pop_front();
      give_up(*frame);
    }
  }
}

void Channel::fail(const Status& reason) {
  if (!open_) return;
  const Ref<Channel> self = Ref<Channel>::share(this);
  close();
  sink_->closed(reason);
}

void Channel::on_readable() {
  const Ref<Channel> self = Ref<Channel>::share(this);
  bool more = true;
  for (int i = 0; i < kReadsAtOnce && more && open_; ++i) {
    Status status = read_some(&more);
    if (status.ok()) status = parse();
    if (!status.ok()) return fail(status);
    give_back();
  }
}

void Channel::reserve_input() {
  if (trusted_ && input_.size() < kInput) input_.resize(kInput);
  if (begin_ == end_) begin_ = end_ = 0;
  if (begin_ > 0 && input_.size() - end_ < input_.size() / 2) {
    std::memmove(input_.data(), input_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  // A long header grows the buffer as its bytes come in, never ahead of them.
  if (end_ == input_.size()) input_.resize(input_.size() * 2);
}

// One read: the rest of a payload straight to where it belongs, and what follows it into the buffer.
Status Channel::read_some(bool* more) {
  reserve_input();
  iovec into[2];
  int count = 0;
  const bool direct = reading_ == Reading::payload && landing_.data && begin_ == end_;
  const uint64_t wanted = direct ? payload_left_ : 0;
  if (direct) {
    const uint64_t at = prefix_.payload_bytes - payload_left_;
    into[count++] = {static_cast<char*>(landing_.data) + at, static_cast<size_t>(payload_left_)};
  }
  const size_t room = input_.size() - end_;
  into[count++] = {input_.data() + end_, room};
  DTG_ASSIGN(const size_t bytes, read_bytes(into, count));
  *more = bytes > 0;
  if (bytes == 0) return {};
  heard_ = true;
  bytes_in_ += bytes;
  if (descriptor_upto_ == UINT64_MAX) descriptor_upto_ = bytes_in_;
  if (!trusted_ && bytes_in_ > limits_.pre_auth_bytes) {
    return resource_exhausted("a peer sent more than %zu bytes before it said who it is", limits_.pre_auth_bytes);
  }
  const uint64_t landed = std::min<uint64_t>(bytes, wanted);
  payload_left_ -= landed;
  end_ += bytes - static_cast<size_t>(landed);
  return {};
}

Status Channel::parse() {
  while (open_) {
    if (reading_ == Reading::prefix) {
      if (end_ - begin_ < wire::kPrefixBytes) return {};
      DTG_ASSIGN(prefix_, wire::read_prefix({input_.data() + begin_, wire::kPrefixBytes}, limits_));
      if (prefix_.payload_crc != 0 && !checks_payloads_) return data_loss("a payload came with a checksum that nobody asked for");
      reading_ = Reading::header;
      header_ns_ = 0;
    }
    if (reading_ == Reading::header) {
      if (end_ - begin_ < wire::kPrefixBytes + prefix_.header_bytes) {
        if (header_ns_ == 0) header_ns_ = loop_.clock().monotonic_ns();
        return {};
      }
      DTG_TRY(parse_header());
    }
    take_payload();
    if (payload_left_ > 0) return {};
    DTG_TRY(finish_frame());
  }
  return {};
}

Status Channel::parse_header() {
  const char* const at = input_.data() + begin_;
  header_.assign(at + wire::kPrefixBytes, prefix_.header_bytes);
  DTG_TRY(wire::check_header({at, wire::kPrefixBytes}, header_));
  begin_ += wire::kPrefixBytes + prefix_.header_bytes;
  landing_ = {};
  payload_left_ = prefix_.payload_bytes;
  reading_ = Reading::payload;
  if (prefix_.payload_bytes > 0) {
    DTG_ASSIGN(landing_, sink_->begin(prefix_, header_));
  }
  return prefix_.in_slot ? take_from_slot() : Status();
}

void Channel::take_payload() {
  const size_t have = static_cast<size_t>(std::min<uint64_t>(payload_left_, end_ - begin_));
  if (have == 0) return;
  const uint64_t at = prefix_.payload_bytes - payload_left_;
  if (landing_.data) std::memcpy(static_cast<char*>(landing_.data) + at, input_.data() + begin_, have);
  begin_ += have;
  payload_left_ -= have;
}

Status Channel::finish_frame() {
  reading_ = Reading::prefix;
  const bool forgotten = prefix_.payload_bytes > 0 && !landing_.data;
  if (checks_payloads_ && landing_.data) {
    DTG_TRY(wire::check_payload(prefix_, {static_cast<const char*>(landing_.data), static_cast<size_t>(prefix_.payload_bytes)}));
  }
  landing_ = {};
  if (prefix_.kind == wire::Kind::segment || prefix_.kind == wire::Kind::release) return own_frame();
  DTG_TRY(check_descriptor());
  const Status received = forgotten ? Status() : sink_->receive(prefix_, header_);
  lent_ = nullptr;
  return received;
}

}  // namespace dtg
