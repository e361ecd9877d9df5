// Traces of replicated training: async_*.json and sync_*.json, event by event. One thread.
#pragma once

#include "files.h"
#include "report.h"

namespace dtg::oracle {

// Is the file such a trace?
bool is_replica_trace(const Json& file);

// Replays it twice: every worker and parameter server a virtual device of a local session, then a server of its own. Steps
// that block are asynchronous runs, the state is compared after every event.
Verdict check_replica_trace(const Json& file);

}  // namespace dtg::oracle
