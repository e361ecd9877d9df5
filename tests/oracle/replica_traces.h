// Traces of replicated training: async_*.json and sync_*.json, event by event. One thread.
#pragma once

#include "files.h"
#include "report.h"

namespace dtg::oracle {

// Is the file such a trace?
bool is_replica_trace(const Json& file);

// Replays it: every worker and parameter server a virtual device of one session, steps that block as asynchronous runs, the
// state compared after every event.
Verdict check_replica_trace(const Json& file);

}  // namespace dtg::oracle
