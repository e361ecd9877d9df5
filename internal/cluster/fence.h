// Fence: the runs of each session that go on at a server, whichever connection asked for them. A session that connects anew is let
// in when nothing goes on any more that its old connection began, or a run that was given up could still change something beside
// the one that takes its place. The same for a task whose process was started anew: what sessions of its earlier life began is over
// before one of the new life is let in.
//
// Owner: the server and its connections, by count. Loop thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ref.h"

namespace dtg {

class Fence final : public RefCounted {
 public:
  // Whose session it is: the task, "" for a client, and a number of its process; 0: not told.
  struct Life {
    std::string task;
    uint64_t number = 0;
    bool is_other_of(const Life& life) const {
      return number != 0 && life.number != 0 && number != life.number && !task.empty() && task == life.task;
    }
  };

  void began(uint64_t session, const Life& life) {
    Session& there = sessions_[session];
    there.life = life;
    ++there.runs;
  }
  void ended(uint64_t session) {
    const auto at = sessions_.find(session);
    if (at == sessions_.end() || --at->second.runs > 0) return;
    const std::vector<std::function<void()>> waiting = std::move(at->second.waiting);
    sessions_.erase(at);
    for (const auto& fn : waiting) fn();
  }
  // Calls `fn` once, when no run of the session goes on, nor one of an earlier life of its task; maybe at once.
  void when_quiet(uint64_t session, const Life& life, std::function<void()> fn) {
    std::vector<Session*> going_on;
    for (auto& [number, other] : sessions_) {
      if (number == session || other.life.is_other_of(life)) going_on.push_back(&other);
    }
    if (going_on.empty()) return fn();
    const auto left = std::make_shared<size_t>(going_on.size());
    for (Session* each : going_on) {
      each->waiting.push_back([left, fn] {
        if (--*left == 0) fn();
      });
    }
  }
  // False: a later life of the task was let in before.
  bool is_present(const Life& life) const {
    const auto at = past_.find(life.task);
    return at == past_.end() || std::ranges::find(at->second, life.number) == at->second.end();
  }
  void is_past(const Life& life) {
    if (!is_present(life)) return;
    std::deque<uint64_t>& lives = past_[life.task];
    lives.push_back(life.number);
    if (lives.size() > kPastMost) lives.pop_front();
  }

 private:
  static constexpr size_t kPastMost = 64;  // lives of a task that are remembered
  struct Session {
    size_t runs = 0;
    Life life;
    std::vector<std::function<void()>> waiting;
  };
  std::unordered_map<uint64_t, Session> sessions_;
  std::unordered_map<std::string, std::deque<uint64_t>> past_;
};

}  // namespace dtg
