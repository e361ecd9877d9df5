// Which groups a task is in, by key.
#include "exec/collectives.h"

#include <algorithm>

namespace dtg {

Ref<Collectives> Collectives::of(ResourceStore& store) {
  // No handle reaches this container.
  auto found = store.find_or_create("", "_collectives", "collectives", kKind, [] { return Ref<Resource>(make_ref<Collectives>()); });
  return Ref<Collectives>::share(static_cast<Collectives*>(found.value().get()));
}

void Collectives::join(int32_t key, Ref<CollectiveGroup> group) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[key];
  entry.groups.push_back(std::move(group));
  entry.gone = Status();
  joins_.fetch_add(1, std::memory_order_release);
}

void Collectives::leave(int32_t key, const CollectiveGroup& group, const Status& why) {
  Ref<CollectiveGroup> left;  // goes when nothing is locked
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[key];
  const auto at = std::ranges::find(entry.groups, &group, &Ref<CollectiveGroup>::get);
  if (at == entry.groups.end()) return;
  left = std::move(*at);
  entry.groups.erase(at);
  if (entry.groups.empty()) entry.gone = why;
}

Result<Ref<CollectiveGroup>> Collectives::find(int32_t key) const {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(key);
  if (at == entries_.end()) return Ref<CollectiveGroup>();
  const Entry& entry = at->second;
  if (entry.groups.size() == 1) return entry.groups[0];
  if (entry.groups.empty()) {
    return entry.gone.with_context("the group with the key " + std::to_string(key) + ", which this task has left, and can join again");
  }
  return failed_precondition("the groups \"%s\" and \"%s\" both have the key %d; give one of them another one (dtg_group_options.key)",
                             entry.groups[0]->name().c_str(), entry.groups[1]->name().c_str(), static_cast<int>(key));
}

void Collectives::run_refused(const std::vector<int32_t>& keys, const Status& why) const {
  for (const int32_t key : keys) {
    const auto group = find(key);
    if (group.ok() && group.value()) group.value()->run_failed({}, why);
  }
}

Ref<Resource> Collectives::rounds(Ref<Resource> (*make)()) {
  const std::lock_guard lock(mutex_);
  if (!rounds_) rounds_ = make();
  return rounds_;
}

}  // namespace dtg
