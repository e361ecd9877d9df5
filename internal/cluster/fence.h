// Fence: the runs of each session that go on at a server, whichever connection asked for them. A session that connects anew is let
// in when nothing goes on any more that its old connection began, or a run that was given up could still change something beside
// the one that takes its place.
//
// Owner: the server and its connections, by count. Loop thread.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ref.h"

namespace dtg {

class Fence final : public RefCounted {
 public:
  void began(uint64_t session) { ++sessions_[session].runs; }
  void ended(uint64_t session) {
    const auto at = sessions_.find(session);
    if (at == sessions_.end() || --at->second.runs > 0) return;
    const std::vector<std::function<void()>> waiting = std::move(at->second.waiting);
    sessions_.erase(at);
    for (const auto& fn : waiting) fn();
  }
  // Calls `fn` once, when no run of the session goes on; maybe at once.
  void when_quiet(uint64_t session, std::function<void()> fn) {
    const auto at = sessions_.find(session);
    if (at == sessions_.end()) return fn();
    at->second.waiting.push_back(std::move(fn));
  }

 private:
  struct Session {
    size_t runs = 0;
    std::vector<std::function<void()>> waiting;
  };
  std::unordered_map<uint64_t, Session> sessions_;
};

}  // namespace dtg
