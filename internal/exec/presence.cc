// Who is there, and who wants to know.
#include "exec/presence.h"

#include <algorithm>
#include <utility>

namespace dtg {

Ref<Presence> Presence::of(ResourceStore& store) {
  // No handle reaches this container.
  auto found = store.find_or_create("", "_presence", "presence", kKind, [] { return Ref<Resource>(make_ref<Presence>()); });
  return Ref<Presence>::share(static_cast<Presence*>(found.value().get()));
}

bool Presence::Roll::has(uint64_t session) const {
  if (session == kOwn) return true;
  const std::lock_guard lock(mutex_);
  return there_.contains(session);
}

bool Presence::Roll::is_settled() const {
  const std::lock_guard lock(mutex_);
  return settled_;
}

void Presence::came(uint64_t session) {
  const std::lock_guard lock(roll_->mutex_);
  roll_->there_.insert(session);
}

void Presence::gone(uint64_t session) {
  {
    const std::lock_guard lock(roll_->mutex_);
    if (roll_->there_.erase(session) == 0) return;
  }
  tell();
}

void Presence::settled(bool is) {
  {
    const std::lock_guard lock(roll_->mutex_);
    if (std::exchange(roll_->settled_, is) == is) return;
  }
  tell();
}

void Presence::watch(std::function<bool()> changed) {
  auto watcher = std::make_shared<const std::function<bool()>>(std::move(changed));
  const std::lock_guard lock(mutex_);
  watchers_.push_back(std::move(watcher));
}

// Each time all of them: what one thread tells at the moment may have been looked at before what this one tells.
void Presence::tell() {
  Watchers told, over;
  {
    const std::lock_guard lock(mutex_);
    told = watchers_;
  }
  for (const auto& changed : told) {
    if (!(*changed)()) over.push_back(changed);
  }
  if (over.empty()) return;
  const std::lock_guard lock(mutex_);
  std::erase_if(watchers_, [&](const auto& watcher) { return std::ranges::find(over, watcher) != over.end(); });
}

}  // namespace dtg
