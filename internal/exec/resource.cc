// Resources: the store that finds them by (device, container, name). The map is touched when plans are bound and
// when resources die, never while a step runs, so one mutex is enough; what a resource does when it is destroyed
// happens outside of it.
#include "exec/resource.h"

#include <algorithm>
#include <tuple>

namespace dtg {
namespace {

std::string resource_key(std::string_view device, std::string_view container, std::string_view name) {
  if (container.empty()) container = kDefaultContainer;
  std::string key;
  key.reserve(device.size() + container.size() + name.size() + 2);
  key.append(device).push_back('\0');
  key.append(container).push_back('\0');
  key.append(name);
  return key;
}

// What a task keeps for itself is on no device, so that no handle reaches it.
bool is_private(std::string_view key) { return key.front() == '\0'; }

std::string_view container_of(std::string_view key) {
  const size_t from = key.find('\0') + 1;
  return key.substr(from, key.find('\0', from) - from);
}

}  // namespace

Result<Ref<Resource>> ResourceStore::find_or_create(std::string_view device, std::string_view container, std::string_view name,
                                                    std::string_view kind, const std::function<Ref<Resource>()>& make) {
  std::string key = resource_key(device, container, name);
  std::lock_guard hold(mutex_);
  if (const auto found = resources_.find(key); found != resources_.end()) {
    if (kind == found->second->kind()) return found->second;
    return invalid_argument("make or attach the %.*s \"%.*s\" on %.*s: a %s has that name already; choose another shared_name or container",
                            static_cast<int>(kind.size()), kind.data(), static_cast<int>(name.size()), name.data(),
                            static_cast<int>(device.size()), device.data(), found->second->kind());
  }
  if (!make)
    return not_found("the %.*s \"%.*s\" is not there", static_cast<int>(kind.size()), kind.data(), static_cast<int>(name.size()),
                     name.data());
  Ref<Resource> made = make();
  if (!made) {
    return resource_exhausted("make the %.*s \"%.*s\": no memory", static_cast<int>(kind.size()), kind.data(),
                              static_cast<int>(name.size()), name.data());
  }
  resources_.emplace(std::move(key), made);
  return made;
}

Ref<Resource> ResourceStore::find(std::string_view device, std::string_view container, std::string_view name) const {
  const std::string key = resource_key(device, container, name);
  std::lock_guard hold(mutex_);
  const auto found = resources_.find(key);
  return found == resources_.end() ? nullptr : found->second;
}

void ResourceStore::destroy(Resource& resource, const Status& reason) {
  // The map's reference outlives the lock, so that the last one never goes while it is held.
  Ref<Resource> gone;
  {
    std::lock_guard hold(mutex_);
    const auto at = std::find_if(resources_.begin(), resources_.end(), [&](const auto& entry) { return entry.second.get() == &resource; });
    if (at != resources_.end()) {
      gone = std::move(at->second);
      resources_.erase(at);
    }
  }
  generation_.fetch_add(1, std::memory_order_acq_rel);
  resource.destroy(reason);
}

void ResourceStore::reset(const std::vector<std::string>& containers) {
  const auto named = [&](std::string_view container) {
    if (containers.empty()) return container == kDefaultContainer;
    return std::find(containers.begin(), containers.end(), container) != containers.end();
  };
  std::vector<Ref<Resource>> gone;
  {
    std::lock_guard hold(mutex_);
    for (auto at = resources_.begin(); at != resources_.end();) {
      if (!is_private(at->first) && named(container_of(at->first))) {
        gone.push_back(std::move(at->second));
        at = resources_.erase(at);
      } else {
        ++at;
      }
    }
  }
  if (gone.empty()) return;
  generation_.fetch_add(1, std::memory_order_acq_rel);
  for (const auto& resource : gone) {
    resource->destroy(aborted("the container of the %s \"%s\" was reset", resource->kind(), resource->name().c_str()));
  }
}

std::vector<ResourceStore::Entry> ResourceStore::entries() const {
  std::vector<Entry> all;
  {
    std::lock_guard hold(mutex_);
    for (const auto& [key, resource] : resources_) {
      const size_t first = key.find('\0'), second = key.find('\0', first + 1);
      all.push_back({key.substr(0, first), key.substr(first + 1, second - first - 1), key.substr(second + 1), resource});
    }
  }
  std::ranges::sort(all, {}, [](const Entry& entry) { return std::tie(entry.device, entry.container, entry.name); });
  return all;
}

std::vector<Ref<Resource>> ResourceStore::list() const {
  std::vector<Ref<Resource>> all;
  std::lock_guard hold(mutex_);
  all.reserve(resources_.size());
  for (const auto& [key, resource] : resources_) {
    if (!is_private(key)) all.push_back(resource);
  }
  return all;
}

}  // namespace dtg
