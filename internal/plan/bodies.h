// BodyPlans: the bodies of one function for one node that calls it, planned for the shapes that they are first met with and kept, least
// recently used going first. A body runs on the task of the node that calls, and on its device where its nodes ask for nothing else.
//
// Owner: the argument block of the call. Any thread; the planning itself is done by one at a time.
#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

#include "base/spin_lock.h"
#include "exec/body.h"
#include "graph/function.h"
#include "plan/passes.h"

namespace dtg {

class BodyPlans final : public BodySource {
 public:
  // `handles` (may be null): how what the call hands over is named.
  BodyPlans(const PlanContext& context, Ref<const Function> function, const Node& call, std::string_view device,
            Ref<const NamedHandles> handles);
  Result<Ref<Body>> find(std::span<const ValueInfo> arguments, Step& caller) override;
  const Function& function() const override { return *function_; }

 private:
  static constexpr size_t kBodies = 32;
  struct Entry final : RefCounted {
    std::vector<ValueInfo> arguments;
    Ref<Body> body;
  };
  class Turn;
  Result<Ref<Body>> make(std::span<const ValueInfo> arguments, Step& caller);
  void enter_strand(const Node& call, Ref<const NamedHandles> handles);
  Status check_devices() const;
  Result<Ref<const Entry>> find_slowly(std::span<const ValueInfo> arguments, Step& caller);
  Ref<const Entry> keep(std::span<const ValueInfo> arguments, Ref<Body> body);

  const Ref<const Function> function_;
  PlanContext context_;
  const std::string call_;
  std::string device_;
  SpinLock recent_lock_;
  Ref<const Entry> recent_;  // mostly it is the same as the last time
  std::mutex mutex_;         // guards what follows; not held while planning
  std::condition_variable planned_;
  bool planning_ = false;
  std::vector<Ref<const Entry>> bodies_;  // most recently used first
};

}  // namespace dtg
