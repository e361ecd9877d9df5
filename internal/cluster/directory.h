// Directory: the servers that run under one runtime, by their targets. A session that connects to one of them shares its
// task directly, with no socket in between.
//
// Owner: the runtime. Any thread.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cluster/spec.h"
#include "cluster/task.h"

namespace dtg {

class Directory {
 public:
  struct Entry {
    Ref<Task> task;
    ClusterSpec cluster;
    std::vector<std::string> filters;  // devices that sessions of this server see
    SecurityOptions security;          // of the connections that its sessions make
    bool shared_memory = true;         // by these
  };
  void add(const std::string& target, Entry entry) {
    const std::lock_guard lock(mutex_);
    entries_[target] = std::move(entry);
  }
  void remove(const std::string& target) {
    std::optional<Entry> dropped;  // after the lock
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(target);
    if (at == entries_.end()) return;
    dropped = std::move(at->second);
    entries_.erase(at);
  }
  std::optional<Entry> find(const std::string& target) const {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(target);
    return at == entries_.end() ? std::nullopt : std::optional<Entry>(at->second);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

}  // namespace dtg
