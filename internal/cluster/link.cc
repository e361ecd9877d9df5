// Liveness and dispatch.
#include "cluster/link.h"

#include <exception>

namespace dtg {

Link::Link(Loop& loop, Ref<Channel> channel, const Timing& timing, Listener* listener)
    : loop_(loop), channel_(std::move(channel)), timing_(timing), listener_(listener), calls_(loop), alarm_([this] { watch(); }) {}

void Link::open() {
  retain();  // until end()
  heard_ns_ = ticked_ns_ = loop_.clock().monotonic_ns();
  open_ = true;
  channel_->open(this);
  if (open_) loop_.set(alarm_, heard_ns_ + timing_.handshake_ns);
}

void Link::trust(std::string peer, int64_t heartbeat_ns, uint64_t features, std::string home) {
  peer_ = std::move(peer);
  home_ = std::move(home);
  if ((features & wire::kPayloadChecksums) != 0 && channel_->security() == std::string_view("clear")) channel_->check_payloads();
  timing_.heartbeat_ns = heartbeat_ns;
  // Who speaks seldom must not be taken for dead between two words.
  timing_.dead_ns = std::max(timing_.dead_ns, 3 * heartbeat_ns);
  trusted_ = true;
  channel_->trust();
  heard_ns_ = ticked_ns_ = loop_.clock().monotonic_ns();
  if (open_) loop_.set(alarm_, heard_ns_ + timing_.heartbeat_ns);
}

// Who slept himself accuses nobody here either.
bool Link::is_silent() const {
  const int64_t now = loop_.clock().monotonic_ns(), most_ns = 2 * timing_.heartbeat_ns;
  return trusted_ && now - heard_ns_ > most_ns && now - ticked_ns_ <= most_ns && !channel_->has_heard();
}

// Without its alarm nobody would notice a dead peer any more, so what is thrown ends the link.
void Link::watch() {
  const Ref<Link> self = Ref<Link>::share(this);
  try {
    tick();
  } catch (const std::exception& problem) {
    fail(resource_exhausted("the connection could not be watched any more: %s", problem.what()));
  }
}

void Link::tick() {
  if (parting_) return fail(parting_->reason);
  const int64_t now = loop_.clock().monotonic_ns();
  if (!trusted_) {
    return fail(deadline_exceeded("the other end did not say who it is within %.1f s", static_cast<double>(timing_.handshake_ns) * 1e-9));
  }
  // Who slept through a heartbeat himself accuses nobody and begins to listen again.
  const bool stalled = now - ticked_ns_ > 2 * timing_.heartbeat_ns;
  ticked_ns_ = now;
  if (channel_->heard() || stalled) heard_ns_ = now;
  if (now - heard_ns_ >= timing_.dead_ns) {
    return fail(unavailable("nothing was heard from it for %.1f s", static_cast<double>(now - heard_ns_) * 1e-9));
  }
  if (channel_->overdue_ns(timing_.dead_ns) > 0 && !stalled) return fail(unavailable("a frame from it came in parts and has no end"));
  if (channel_->stalled_ns() >= timing_.stall_ns && !stalled) {
    return fail(unavailable("it has read nothing for %.1f s", static_cast<double>(channel_->stalled_ns()) * 1e-9));
  }
  channel_->tidy();
  // It looks twice as often as it speaks, so that who falls silent is noticed no later than half a heartbeat after its time.
  if (++beats_ % 2 == 1) send(wire::Heartbeat{beats_ / 2 + 1});
  loop_.set(alarm_, now + timing_.heartbeat_ns / 2);
}

Status Link::add_step(uint64_t sequence, Ref<StepPort> port) {
  {
    const std::lock_guard lock(steps_mutex_);
    if (!open_) return reason_.ok() ? unavailable("it is not connected") : reason_;
    const bool fresh = steps_.emplace(sequence, port).second;
    if (!fresh) return already_exists("step %llu runs already", static_cast<unsigned long long>(sequence));
    if (std::erase(early_credits_, sequence) == 0) return {};
  }
  port->credited(*this);
  return {};
}

Status Link::reason() {
  const std::lock_guard lock(steps_mutex_);
  return reason_.ok() ? unavailable("it is not connected") : reason_;
}

Ref<StepPort> Link::step(uint64_t sequence) {
  const std::lock_guard lock(steps_mutex_);
  const auto at = steps_.find(sequence);
  return at == steps_.end() ? nullptr : at->second;
}

void Link::remove_step(uint64_t sequence, const StepPort* port) {
  Ref<StepPort> dropped;  // after the lock
  const std::lock_guard lock(steps_mutex_);
  const auto at = steps_.find(sequence);
  if (at == steps_.end() || at->second.get() != port) return;
  dropped = std::move(at->second);
  steps_.erase(at);
}

Result<Channel::Landing> Link::begin(const wire::Prefix& prefix, std::string_view header) {
  if (parting_) return Channel::Landing{};
  if (prefix.kind != wire::Kind::data) return listener_->payload(prefix, header);
  if (!trusted_) return unauthenticated("data came before hello");
  wire::Data data;
  DTG_TRY(wire::decode(header, data));
  const Ref<StepPort> port = step(data.sequence);
  // Of a step that has ended: forgotten.
  return port ? port->landing(*this, data, prefix.payload_bytes) : Channel::Landing{};
}

Status Link::receive(const wire::Prefix& prefix, std::string_view header) {
  if (parting_) return listener_->parts(prefix, header) ? parting_->reason : Status();
  switch (prefix.kind) {
    case wire::Kind::heartbeat: return {};
    case wire::Kind::data: return trusted_ ? data_arrived(prefix, header) : unauthenticated("data came before hello");
    case wire::Kind::run_reply: return trusted_ ? run_replied(header) : unauthenticated("an answer came before hello");
    case wire::Kind::credit: return trusted_ ? credited(header) : unauthenticated("credit came before hello");
    case wire::Kind::goodbye: {
      wire::Goodbye goodbye;
      DTG_TRY(wire::decode(header, goodbye));
      said_goodbye_ = goodbye.status.ok();
      return goodbye.status.ok() ? unavailable("the other end said goodbye") : goodbye.status;
    }
    case wire::Kind::hello_reply:
    case wire::Kind::register_reply:
    case wire::Kind::reply:
    case wire::Kind::inspect_reply:
    case wire::Kind::arrive_reply:
      // Nobody waits for an answer that comes too late.
      calls_.finish(prefix.call, header);
      return {};
    default: return listener_->message(prefix, header);
  }
}

Status Link::data_arrived(const wire::Prefix& prefix, std::string_view header) {
  wire::Data data;
  DTG_TRY(wire::decode(header, data));
  if (const Ref<StepPort> port = step(data.sequence)) port->arrived(*this, data, prefix.payload_bytes);
  return {};
}

Status Link::run_replied(std::string_view header) {
  wire::RunReply reply;
  DTG_TRY(wire::decode(header, reply));
  if (const Ref<StepPort> port = step(reply.sequence)) port->replied(*this, reply.status, reply.refused);
  return {};
}

Status Link::credited(std::string_view header) {
  wire::Credit credit;
  DTG_TRY(wire::decode(header, credit));
  if (credit.edge != wire::kEveryEdge) return unimplemented("credit for a single edge");
  Ref<StepPort> port;
  {
    const std::lock_guard lock(steps_mutex_);
    if (const auto at = steps_.find(credit.sequence); at != steps_.end()) port = at->second;
    if (!port && keeps_credit_) {
      if (early_credits_.size() >= kEarlyCredits) early_credits_.pop_front();
      early_credits_.push_back(credit.sequence);
    }
  }
  if (port) port->credited(*this);
  return {};
}

void Link::close(const Status& reason) {
  if (!open_) return;
  // Where the last word cannot be written, the link ends in push(), and whoever is told of it lets go of it.
  const Ref<Link> self = Ref<Link>::share(this);
  listener_ = nullptr;
  wire::Goodbye goodbye{reason};
  send(goodbye);
  // One attempt to write; whoever does not read learns it from the end of the connection.
  channel_->push();
  channel_->close();
  end(reason.ok() ? cancelled("the connection was closed here") : reason);
}

void Link::fail(const Status& reason) {
  const Ref<Link> self = Ref<Link>::share(this);
  channel_->close();
  end(reason);
}

// In the lane of data, since words overtake it.
void Link::part_with(std::string head, const Status& reason, int64_t patience_ns, std::shared_ptr<void> held) {
  if (!open_ || parting_) return;
  const Ref<Link> self = Ref<Link>::share(this);
  parting_ = std::make_unique<Parting>(Parting{reason, {std::move(held)}});
  auto frame = std::make_unique<OutFrame>();
  frame->head = std::move(head);
  frame->data = true;
  channel_->queue(std::move(frame));
  loop_.set(alarm_, loop_.clock().monotonic_ns() + patience_ns);
  channel_->push();
}

void Link::end(const Status& why) {
  if (!open_) return;
  const Status reason = peer_.empty() ? why : why.with_context(peer_).at_peer(peer_).at_task(home_).in_phase("run");
  std::unordered_map<uint64_t, Ref<StepPort>> steps;
  {
    const std::lock_guard lock(steps_mutex_);
    open_ = false;
    reason_ = reason;
    steps.swap(steps_);
  }
  loop_.cancel(alarm_);
  Listener* const listener = std::exchange(listener_, nullptr);
  calls_.fail_all(reason);
  for (auto& [sequence, port] : steps) port->replied(*this, reason, false);
  if (listener) listener->lost(reason);
  if (parting_) std::exchange(parting_->held, {}).clear();
  release();
}

}  // namespace dtg
