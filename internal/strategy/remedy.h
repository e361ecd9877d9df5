// Remedies: what a session may do by itself when a run of a target was cut short because a task was lost. They are noted in the graph,
// beside the target, so that whoever runs it needs nothing else: for a worker's step of strict training (what it leaves on other tasks is,
// made twice, as made once), and for the chief's update (what was half made is completed, and what was taken is asked for once more).
//
// Functions over a graph; adding by the thread that builds, asking from any.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "strategy/staging.h"

namespace dtg {

struct Remedy {
  NodeId first = kNoNode;          // target: runs before the other is run again; none: nothing has to
  NodeId first_if_made = kNoNode;  // in place of that, where the step was made and only its end got lost
  std::vector<NodeId> effects;     // all by which the target changes something, and each may be made twice; empty: it is an update
  std::vector<UpdateUnit> units;   // are levelled before that (session/levelling.h)
  NodeId begin_units = kNoNode;    // in place of that, where they have never begun
};

Status add_remedy(Graph& graph, NodeId target, const Remedy& remedy);
std::optional<Remedy> remedy_of(const Graph& graph, NodeId target);
// Whether the part of a run that is made here looks at the token: so what became of a step is known here.
bool makes_known_steps(const Graph& home);
// Of a step: the remedy, where a run of the targets may be made once more from its beginning, because it changes nothing else.
std::optional<Remedy> repetition_of(const Graph& graph, std::span<const Value> feeds, std::span<const Value> fetches,
                                    std::span<const NodeId> targets);

}  // namespace dtg
