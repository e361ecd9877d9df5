// From a seed to a scene, and from a scene to the truth about it. One thread.
#pragma once

#include "random/workshop.h"

namespace dtg::random {

struct Tables {
  const OpTable* ops = nullptr;
  const KernelTable* kernels = nullptr;
  Pool* pool = nullptr;
};

// What every run of the scene must give; it ends with the first run that fails.
using Truth = std::vector<Outcome>;
Truth truth_of(const Tables& tables, const Scene& scene);

Scene make_scene(const Tables& tables, uint64_t seed, const Wishes& wishes, Tally& tally);

// The ops that a scene may be made of, by name.
std::vector<const OpDef*> public_ops(const OpTable& ops);

}  // namespace dtg::random
