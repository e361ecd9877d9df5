// Rights: what a run may do to the resources of a task, by the party that asked for it. One table (verb by party) says it all; the
// kernels that take a resource ask it as they begin, and tests are made from it. What an op does to a resource is what its definition
// declares (graph/op_def.h), so no list of names can be out of date, and no way that a handle took can lead around it.
//
// A run of the task's own sessions carries no rights at all and may do everything. Immutable; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/ref.h"
#include "base/status.h"
#include "graph/op_def.h"

namespace dtg {

enum class Verb : uint8_t {
  run,         // register parts and run them
  attach,      // name a resource: make it, or say more of its shape than was known
  read,        // look at it
  update,      // add to a variable, step a counter, apply a gradient
  put,         // into a queue, into an accumulator
  take,        // out of them
  initialize,  // a variable's first value
  replace,     // a new value in place of one that is there: initialise again, restore
  fence,       // decide which gradients an accumulator still takes
  close,       // a queue, for everybody
  destroy,
  reset,  // containers
  end_job,
  meet,  // the other workers, at a barrier or at the end
};
inline constexpr size_t kVerbs = 14;
const char* verb_name(Verb verb);

// Who asks, by the task that a session speaks for.
enum class Party : uint8_t {
  chief,
  worker,
  ps,
  client,     // no task, in a cluster that has a chief; in one that has none it is the chief
  neighbour,  // brings values for another's session
  observer,
};
inline constexpr size_t kParties = 6;
const char* party_name(Party party);

// `own`: at the task that the session speaks for.
enum class Grant : uint8_t { no, own, yes };
Grant grant_of(Verb verb, Party party);
Verb verb_of(Access access);

class Rights final : public RefCounted {
 public:
  // Of `peer`, the task that speaks ("" is a client), at `task`.
  Rights(Party party, std::string peer, std::string task);

  Party party() const { return party_; }
  // The task that speaks; "" is a client.
  const std::string& peer() const { return peer_; }
  bool allows(Verb verb) const { return verbs_ >> static_cast<unsigned>(verb) & 1; }
  // What was attempted ("destroy the queue "q""), who may, and what the peer may do instead.
  Status refuse(Verb verb, const std::string& attempted) const;
  Status check(Verb verb, const char* attempted) const { return allows(verb) ? Status() : refuse(verb, attempted); }

 private:
  const Party party_;
  const std::string peer_;
  const std::string task_;
  uint32_t verbs_ = 0;
};

}  // namespace dtg
