// Admission: counts connections by how far they have come and by source address, and makes room for newcomers at the
// limits. On any thread.
#include "net/admission.h"

#include <sys/socket.h>

#include <algorithm>

namespace dtg {
namespace {

constexpr size_t kHostsMax = 8192;

}  // namespace

void Admission::fill(Host& host, int64_t now_ns) const {
  const double since = static_cast<double>(now_ns - host.filled_ns) * 1e-9;
  host.tokens = std::min(limits_.accepts_per_second, host.tokens + since * limits_.accepts_per_second);
  host.filled_ns = now_ns;
}

Result<Admission::Host*> Admission::find(const std::string& name, int64_t now_ns) {
  if (hosts_.size() >= kHostsMax && !hosts_.contains(name)) {
    // Whoever has no connection and would have all its tokens again is as good as new.
    std::erase_if(hosts_, [&](const auto& item) {
      return item.second.strangers == 0 && item.second.handshakes == 0 && now_ns - item.second.filled_ns > 1'000'000'000;
    });
    if (hosts_.size() >= kHostsMax) return resource_exhausted("accept: connections come from more than %zu hosts at once", kHostsMax);
  }
  const auto [at, fresh] = hosts_.try_emplace(name);
  if (fresh) {
    at->second.tokens = limits_.accepts_per_second;
    at->second.filled_ns = now_ns;
  }
  return &at->second;
}

void Admission::count(const Place& place, int by) {
  if (place.stage == Stage::stranger) {
    strangers_ += by;
    place.host->strangers += by;
  } else if (place.stage == Stage::handshake) {
    handshakes_ += by;
    place.host->handshakes += by;
  }
}

void Admission::settle(Places::iterator place) {
  count(*place, -1);
  place->stage = Stage::settled;
  settled_.splice(settled_.end(), open_, place);
}

// How many its host has at its stage.
size_t Admission::share(const Place& place) {
  if (place.stage == Stage::stranger) return place.host->strangers;
  return place.stage == Stage::handshake ? place.host->handshakes : 0;
}

// At the least stage that anybody is at, of the host that has most there, the oldest: who comes alone stays however many come from
// elsewhere. Or the oldest of one host, if that is given.
bool Admission::send_away(Stage least, const Host* host) {
  auto chosen = open_.end();
  for (auto at = open_.begin(); at != open_.end(); ++at) {
    if (at->stage < least || (host && at->host != host)) continue;
    if (chosen == open_.end() || at->stage < chosen->stage || (at->stage == chosen->stage && share(*at) > share(*chosen))) chosen = at;
  }
  if (chosen == open_.end()) return false;
  // Its owner sees the end of the stream and closes it. The number is still that socket's: the ticket goes first.
  ::shutdown(chosen->socket, SHUT_RDWR);
  settle(chosen);
  return true;
}

bool Admission::make_room() {
  const std::lock_guard lock(mutex_);
  return send_away(Stage::stranger, nullptr);
}

// The lowest free number is given out first, so all below it are taken, and of those above it ours are known.
bool Admission::crowded(int socket, size_t descriptors) const {
  const std::lock_guard lock(mutex_);
  const size_t room = descriptors - std::min(descriptors, limits_.descriptor_reserve);
  size_t taken = static_cast<size_t>(socket) + 1;
  if (taken + open_.size() + settled_.size() <= room) return false;
  for (const Places* places : {&open_, &settled_}) {
    taken += static_cast<size_t>(std::ranges::count_if(*places, [&](const Place& place) { return place.socket > socket; }));
  }
  return taken > room;
}

Result<Admission::Ticket> Admission::admit(const std::string& name, int socket, bool crowded, int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  const size_t present = open_.size() + settled_.size();
  if ((crowded || present >= limits_.connections) && !send_away(Stage::stranger, nullptr)) {
    return resource_exhausted("accept: there are %zu connections of peers that have proven themselves", present);
  }
  Place place{nullptr, socket, Stage::local};
  if (!name.empty()) {
    DTG_ASSIGN(place.host, find(name, now_ns));
    place.stage = Stage::stranger;
    if (place.host->strangers + place.host->handshakes >= limits_.unknown_per_host) {
      send_away(Stage::stranger, place.host);
    } else if (strangers_ >= limits_.strangers) {
      send_away(Stage::stranger, nullptr);
    }
  }
  open_.push_back(place);
  count(place, 1);
  Ticket ticket;
  ticket.at_ = std::prev(open_.end());
  ticket.admission_ = Ref<Admission>::share(this);
  return ticket;
}

size_t Admission::connections() const {
  const std::lock_guard lock(mutex_);
  return open_.size() + settled_.size();
}

size_t Admission::hosts() const {
  const std::lock_guard lock(mutex_);
  return hosts_.size();
}

Admission::Ticket& Admission::Ticket::operator=(Ticket&& other) noexcept {
  drop();
  admission_ = std::move(other.admission_);
  at_ = other.at_;
  return *this;
}

Status Admission::Ticket::begin_handshake(int64_t now_ns) {
  if (!admission_) return {};
  Admission& all = *admission_;
  const std::lock_guard lock(all.mutex_);
  if (at_->stage != Stage::stranger) return resource_exhausted("accept: it had to make room for others");
  Host& host = *at_->host;
  all.fill(host, now_ns);
  if (host.tokens < 1) {
    return resource_exhausted("accept: more than %.0f connections in a second from one host", all.limits_.accepts_per_second);
  }
  host.tokens -= 1;
  if (host.handshakes >= all.limits_.handshakes_per_host) {
    all.send_away(Stage::handshake, &host);
  } else if (all.handshakes_ >= all.limits_.handshakes) {
    all.send_away(Stage::handshake, nullptr);
  }
  all.count(*at_, -1);
  at_->stage = Stage::handshake;
  all.count(*at_, 1);
  all.open_.splice(all.open_.end(), all.open_, at_);
  return {};
}

void Admission::Ticket::proven() {
  if (!admission_) return;
  const std::lock_guard lock(admission_->mutex_);
  if (at_->stage != Stage::settled) admission_->settle(at_);
}

void Admission::Ticket::drop() {
  if (!admission_) return;
  proven();
  {
    const std::lock_guard lock(admission_->mutex_);
    admission_->settled_.erase(at_);
  }
  admission_ = nullptr;
}

}  // namespace dtg
