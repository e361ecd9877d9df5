// Absentees: which workers of the job are gone, as the task that keeps the attendance has said (cluster/attendance.h), so that who waits
// for one of them can be told. Any thread.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "base/ref.h"
#include "wire/messages.h"

namespace dtg {

class Absentees final : public RefCounted {
 public:
  explicit Absentees(const Clock& clock) : clock_(clock) {}
  void note(const wire::Roll& roll);
  // "/job:worker/replica:0/task:1 (lost 12.0 s ago: ...)"; empty where nobody is gone.
  std::string text() const;

 private:
  struct Entry {
    wire::Presence presence;
    int64_t since_ns;
    std::string reason;
  };
  const Clock& clock_;
  mutable std::mutex mutex_;  // guards absent_
  std::map<std::string, Entry> absent_;
};

// How long somebody has been gone and why, for people: "lost 12.0 s ago: nothing was heard from it".
std::string absence_text(wire::Presence presence, int64_t for_ns, const std::string& reason);

}  // namespace dtg
