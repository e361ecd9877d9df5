// The table, and how a refusal reads.
#include "exec/rights.h"

#include <utility>

namespace dtg {
namespace {

struct Row {
  const char* name;
  Grant of[kParties];
};

constexpr Grant o = Grant::no, t = Grant::own, x = Grant::yes;

// A worker may do what training takes. What undoes or ends the work of others is the chief's; a queue that was closed, or an
// accumulator whose step was moved ahead, is of no more use to them than one that was destroyed. At its own task everybody who may run
// anything is at home.
constexpr Row kTable[kVerbs] = {
    //             chief worker ps client neighbour observer
    {"run parts", {x, x, x, x, o, o}},   {"attach", {x, x, t, x, o, o}},
    {"read", {x, x, x, x, o, o}},        {"update", {x, x, t, x, o, o}},
    {"put", {x, x, t, x, o, o}},         {"take", {x, x, t, x, o, o}},
    {"initialise", {x, x, t, x, o, o}},  {"replace", {x, t, t, o, o, o}},
    {"fence", {x, t, t, o, o, o}},       {"close", {x, t, t, o, o, o}},
    {"destroy", {x, t, t, o, o, o}},     {"reset containers", {x, t, t, o, o, o}},
    {"end the job", {x, o, o, o, o, o}}, {"meet the workers", {x, x, o, o, o, o}},
};

constexpr const char* kPartyNames[kParties] = {"chief", "worker", "ps", "client", "neighbour", "observer"};

}  // namespace

const char* verb_name(Verb verb) { return kTable[static_cast<size_t>(verb)].name; }
const char* party_name(Party party) { return kPartyNames[static_cast<size_t>(party)]; }
Grant grant_of(Verb verb, Party party) { return kTable[static_cast<size_t>(verb)].of[static_cast<size_t>(party)]; }

Verb verb_of(Access access) {
  switch (access) {
    case Access::read:
    case Access::peek:
    case Access::ask: return Verb::read;
    case Access::attend:
    case Access::write: return Verb::update;
    case Access::assign: return Verb::initialize;  // whether it replaces something, only the variable knows
    case Access::produce: return Verb::put;
    case Access::consume: return Verb::take;
    case Access::fence: return Verb::fence;
    case Access::close: return Verb::close;
    case Access::destroy:
    case Access::undeclared: break;
  }
  return Verb::destroy;
}

Rights::Rights(Party party, std::string peer, std::string task) : party_(party), peer_(std::move(peer)), task_(std::move(task)) {
  for (size_t i = 0; i < kVerbs; ++i) {
    const Grant grant = grant_of(static_cast<Verb>(i), party);
    if (grant == Grant::yes || (grant == Grant::own && peer_ == task_)) verbs_ |= 1u << i;
  }
}

Status Rights::refuse(Verb verb, const std::string& attempted) const {
  std::string may;
  for (size_t i = 0; i < kVerbs; ++i) {
    if (allows(static_cast<Verb>(i))) may += (may.empty() ? "" : ", ") + std::string(kTable[i].name);
  }
  const std::string who = peer_.empty() ? "a client that is no task" : peer_;
  const char* const home = grant_of(verb, party_) == Grant::own ? " or the task itself" : verb == Verb::meet ? " and the workers" : "";
  return permission_denied("%s at %s: only the chief%s may do that; this session speaks for %s (%s), which may %s", attempted.c_str(),
                           task_.c_str(), home, who.c_str(), party_name(party_), may.empty() ? "only ask for the status" : may.c_str())
      .at_peer(who);
}

}  // namespace dtg
