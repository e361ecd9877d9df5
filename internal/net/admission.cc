// Admission: counts connections by how far their handshake is and by source address, and refuses those beyond the
// limits. On any thread.
#include "net/admission.h"

#include <algorithm>

namespace dtg {
namespace {

constexpr size_t kHostsMax = 8192;

}  // namespace

Result<Admission::Host*> Admission::find(const std::string& name, int64_t now_ns) {
  if (hosts_.size() >= kHostsMax && !hosts_.contains(name)) {
    // Whoever has no connection and would have all its tokens again is as good as new.
    std::erase_if(hosts_, [&](const auto& item) {
      return item.second.unknown == 0 && item.second.handshakes == 0 && now_ns - item.second.filled_ns > 1'000'000'000;
    });
    if (hosts_.size() >= kHostsMax) return resource_exhausted("accept: connections come from more than %zu hosts at once", kHostsMax);
  }
  const auto [at, fresh] = hosts_.try_emplace(name);
  Host& host = at->second;
  if (fresh) {
    host.tokens = limits_.accepts_per_second;
  } else {
    host.tokens = std::min(limits_.accepts_per_second,
                           host.tokens + static_cast<double>(now_ns - host.filled_ns) * 1e-9 * limits_.accepts_per_second);
  }
  host.filled_ns = now_ns;
  return &host;
}

Result<Admission::Ticket> Admission::admit(const std::string& name, int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  if (connections_ >= limits_.connections) return resource_exhausted("accept: there are %zu connections already", connections_);
  Ticket ticket;
  if (!name.empty()) {
    DTG_ASSIGN(Host* const host, find(name, now_ns));
    if (host->tokens < 1)
      return resource_exhausted("accept: more than %.0f connections in a second from one host", limits_.accepts_per_second);
    host->tokens -= 1;
    if (host->unknown >= limits_.unknown_per_host) return resource_exhausted("accept: %zu strangers from one host", host->unknown);
    if (host->handshakes >= limits_.handshakes_per_host)
      return resource_exhausted("accept: %zu handshakes with one host", host->handshakes);
    if (handshakes_ >= limits_.handshakes) return resource_exhausted("accept: %zu handshakes at once", handshakes_);
    ++host->unknown;
    ++host->handshakes;
    ++handshakes_;
    ticket.host_ = host;
    ticket.handshake_ = ticket.unknown_ = true;
  }
  ++connections_;
  ticket.admission_ = Ref<Admission>::share(this);
  return ticket;
}

size_t Admission::connections() const {
  const std::lock_guard lock(mutex_);
  return connections_;
}

size_t Admission::hosts() const {
  const std::lock_guard lock(mutex_);
  return hosts_.size();
}

Admission::Ticket& Admission::Ticket::operator=(Ticket&& other) noexcept {
  drop();
  admission_ = std::move(other.admission_);
  host_ = std::exchange(other.host_, nullptr);
  handshake_ = other.handshake_;
  unknown_ = other.unknown_;
  return *this;
}

void Admission::Ticket::shook_hands() {
  if (!admission_ || !std::exchange(handshake_, false)) return;
  const std::lock_guard lock(admission_->mutex_);
  --host_->handshakes;
  --admission_->handshakes_;
}

void Admission::Ticket::known() {
  shook_hands();
  if (!admission_ || !std::exchange(unknown_, false)) return;
  const std::lock_guard lock(admission_->mutex_);
  --host_->unknown;
}

void Admission::Ticket::drop() {
  if (!admission_) return;
  known();
  {
    const std::lock_guard lock(admission_->mutex_);
    --admission_->connections_;
  }
  admission_ = nullptr;
}

}  // namespace dtg
