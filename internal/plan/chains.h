// Chains: which segments of a plan run as one. Where a segment of the host waits for the end of one other and nobody else waits for that
// end, the two are one segment of the program, which waits on its way (Program::stops). Nothing begins later for it, and a run in which a
// device waits thousands of times for another has a few segments instead of thousands. The planner reckons with its own segments before
// and after, because their sets say at each of them what has happened.
//
// Owner: who writes the program; one thread.
#pragma once

#include "base/lists.h"
#include "plan/ir.h"

namespace dtg {

class Chains {
 public:
  // `cut`: segments of which a part is prepared later, so that nothing can follow in the same instructions.
  Chains(const Ir& ir, const std::vector<bool>& cut);

  size_t count() const { return chains_.count(); }
  // The planner's segments in the order in which they run.
  std::span<const uint32_t> operator[](size_t chain) const { return chains_[chain]; }
  uint32_t chain_of(uint32_t segment) const { return chain_of_[segment]; }
  // Does it come behind another one in its chain?
  bool is_joined(uint32_t segment) const { return chains_[chain_of_[segment]].front() != segment; }

 private:
  Lists chains_;
  std::vector<uint32_t> chain_of_;
};

}  // namespace dtg
