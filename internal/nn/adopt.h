// A model of the variables that a graph has already: one that was read from a file, or built by hand. Called by the thread that builds.
#pragma once

#include <span>
#include <string>

#include "nn/model.h"

namespace dtg {

// What a graph does not say about a variable; by its name.
struct VariableNote {
  std::string name;
  bool trainable = true;
  std::string of, slot;
};

// Without a note, variables of floating-point numbers are trainable that are not named like what optimizers keep. Where a variable is
// never read or assigned, nodes for that are added. INVALID_ARGUMENT for one whose shape is not known.
Result<Ref<Model>> adopt_graph(Ref<Graph> graph, uint64_t seed, std::span<const VariableNote> notes = {});

}  // namespace dtg
