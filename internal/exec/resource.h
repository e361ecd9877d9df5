// Resources: state that outlives a step, found by (device, container, name). Variables, queues and
// accumulators are resources; the store belongs to a task and is shared by all its sessions, or to one
// local session.
//
// Plans look resources up when they are bound, never while they run: a handle's slot points at the object.
// Destroying bumps the store's generation, and a plan that sees another generation binds again.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ref.h"
#include "base/status.h"

namespace dtg {

class Resource : public RefCounted {
 public:
  explicit Resource(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }
  // "variable", "queue", ...; two kinds under one name are an error.
  virtual const char* kind() const = 0;
  // Drops the contents and fails whoever waits; the object stays valid for those who point at it.
  virtual void destroy(const Status& reason) = 0;

 private:
  const std::string name_;
};

// The resource that a handle's slot points at, or null when it is of another kind. A slot holds the address of
// the RefCounted that was bound.
template <class T>
T* resource_cast(const void* slot) {
  auto* const resource = static_cast<Resource*>(static_cast<RefCounted*>(const_cast<void*>(slot)));
  return resource && std::string_view(resource->kind()) == T::kKind ? static_cast<T*>(resource) : nullptr;
}

inline constexpr std::string_view kDefaultContainer = "localhost";

class ResourceStore {
 public:
  // The resource under that key, made by `make` when absent (NOT_FOUND without one). An existing one of another kind is an error.
  // `device` is the full device name, or empty for what the task keeps for itself; an empty container is the default one.
  Result<Ref<Resource>> find_or_create(std::string_view device, std::string_view container, std::string_view name, std::string_view kind,
                                       const std::function<Ref<Resource>()>& make);
  // Null when absent.
  Ref<Resource> find(std::string_view device, std::string_view container, std::string_view name) const;
  void destroy(Resource& resource, const Status& reason);
  // The named containers, or the default one when none is named. What is on no device stays.
  void reset(const std::vector<std::string>& containers);
  // Moves whenever a resource was destroyed.
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  // Without what is on no device.
  std::vector<Ref<Resource>> list() const;
  struct Entry {
    std::string device, container, name;
    Ref<Resource> resource;
  };
  // With what they are found by, in its order.
  std::vector<Entry> entries() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Ref<Resource>> resources_;  // key: device \0 container \0 name
  std::atomic<uint64_t> generation_{1};
};

}  // namespace dtg
