// Whereabouts: what an error that others or the clock have caused tells besides its message, so that a program can act on it: a task, the
// one that found it or the one at the other end, and a phase (capi/include/dtg/error.h lists them). Calls of the host that may end so say
// on their way out what nobody has said deeper inside. Values; any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace dtg {

// DEADLINE_EXCEEDED, ABORTED and UNAVAILABLE: the call was right, and what it needed was not there, or not in time.
inline bool names_whereabouts(Code code) { return code == Code::deadline_exceeded || code == Code::aborted || code == Code::unavailable; }

// The same, of which `task` tells, from which it goes to the host. What is known already stays.
inline Status told_by(Status status, std::string_view task, std::string_view phase) {
  return names_whereabouts(status.code()) ? status.at_task(task).in_phase(phase) : std::move(status);
}
template <class T>
Result<T> told_by(Result<T> result, std::string_view task, std::string_view phase) {
  return result.ok() ? std::move(result) : Result<T>(told_by(result.status(), task, phase));
}

// What an error does not tell and should; empty: nothing. For tests that look at all errors that a host is told.
inline std::string untold(const Status& status) {
  if (!names_whereabouts(status.code())) return {};
  std::string what;
  if (status.origin().task.empty() && status.origin().peer.empty()) what = "neither task nor peer";
  if (status.origin().phase.empty()) what += what.empty() ? "no phase" : ", and no phase";
  return what;
}

}  // namespace dtg
