// Joined: what the devices of one task call together, as the one call that their task makes in its group, and its result taken apart for
// them again. The ranks are those of the devices, task by task, so the values are those of so many members of one process, to the bit.
// Pure functions; any thread.
#pragma once

#include <span>

#include "collective/call.h"

namespace dtg {

// One device's part: its call, and who it is in errors.
struct JoinedPart {
  CollectiveCall call;
  std::string who;
};

// `parts` by the order of the devices; as many on each of `members` tasks. An error names those that do not fit together.
Result<CollectiveCall> join_calls(std::span<JoinedPart* const> parts, int members);
// Gives each part its share of what the joined call gave: into its `out`, or memory of its own where that is no tensor.
Status hand_out(std::span<JoinedPart* const> parts, int members, const Tensor& result);

}  // namespace dtg
