// Coming and going.
#include "cluster/departures.h"

#include <algorithm>

namespace dtg {

Departures::Departures(Loop& loop, const Timing& timing, Ref<Presence> presence)
    : loop_(loop), settle_ns_(timing.dead_ns + kBackNs), presence_(std::move(presence)), alarm_([this] { review(); }) {}

void Departures::open() {
  settled_at_ns_ = loop_.clock().monotonic_ns() + settle_ns_;
  presence_->settled(false);
  review();
}

void Departures::close() {
  closed_ = true;
  loop_.cancel(alarm_);
}

void Departures::came(uint64_t session) {
  gone_at_.erase(session);
  presence_->came(session);
}

void Departures::left(uint64_t session, bool clean) {
  if (closed_) return;
  gone_at_[session] = loop_.clock().monotonic_ns() + (clean ? 0 : kBackNs);
  review();
}

void Departures::review() {
  const int64_t now = loop_.clock().monotonic_ns();
  int64_t due = INT64_MAX;
  for (auto at = gone_at_.begin(); at != gone_at_.end();) {
    const auto [session, when] = *at;
    if (when > now) {
      due = std::min(due, when);
      ++at;
      continue;
    }
    at = gone_at_.erase(at);
    presence_->gone(session);
  }
  if (settled_at_ns_ <= now) {
    settled_at_ns_ = INT64_MAX;
    presence_->settled(true);
  }
  loop_.set(alarm_, std::min(due, settled_at_ns_));
}

}  // namespace dtg
