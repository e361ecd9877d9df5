// Recover: a worker's share of replicated training, brought to where it can go on after a task was lost: waits until the variables have
// values again, completes on every task the update that any of them has applied (session/levelling.h), and lets the updates and this
// worker's steps begin where the count of steps is. Repeated updates that are under way do their part of it themselves.
//
// The host's thread, inside a call.
#pragma once

#include "session/session.h"
#include "strategy/replicas.h"

namespace dtg {

// Until every variable of the model has a value, or the deadline has passed: the error names those without.
Status wait_ready(Model& model, Session& session, const Clock& clock, Deadline deadline);
// `added` is what minimize_replicated gave. Losses of tasks are waited for and the work begun again until the deadline. DATA_LOSS where
// a task is further behind than what it keeps can mend.
Status recover(Model& model, const Replicated& added, Session& session, const Clock& clock, Deadline deadline);

}  // namespace dtg
