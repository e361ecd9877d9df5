// Body: a function prepared for arguments of certain shapes, as the instruction that calls it sees it: a program, and frames to run it in.
// And BodySource, which has the bodies of one function for one place that calls it. Implemented by the planner (plan/bodies.h), because
// a body is planned when its shapes are first met, also while a run is under way.
//
// Owner: the argument block of the instruction, and each call under way, by count. Any thread.
#pragma once

#include <span>

#include "base/ref.h"
#include "base/status.h"
#include "exec/program.h"

namespace dtg {

class Frame;
class Function;
class Step;

class Body : public RefCounted {
 public:
  virtual const Program& program() const = 0;
  // There is always one, as long as there is memory.
  virtual Result<Frame*> lease_frame() = 0;
  virtual void give_back(Frame& frame) = 0;
};

class BodySource : public RefCounted {
 public:
  // For arguments of these types and shapes, which are complete but for what a resource or a variant holds. Where it has to be planned
  // first, that ends with the step that calls.
  virtual Result<Ref<Body>> find(std::span<const ValueInfo> arguments, Step& caller) = 0;
  virtual const Function& function() const = 0;
};

}  // namespace dtg
