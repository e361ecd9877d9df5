// TokenRoll: which workers of strict steps have contributed to the step that is under way. A worker asks for its token behind its
// contribution, so it has until it is served, also where the run that asked was ended meanwhile. Nobody waits for the roll: who has waited
// for a token too long learns from it whom the step waits for.
//
// Owner: the resource store and the plans bound to it. Any thread.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "exec/resource.h"

namespace dtg {

class TokenRoll final : public Resource {
 public:
  static constexpr std::string_view kKind = "roll of tokens";
  static constexpr int64_t kWorkersMost = 4096;

  TokenRoll(std::string name, int64_t workers) : Resource(std::move(name)), has_asked_(static_cast<size_t>(workers)) {}
  const char* kind() const override { return kKind.data(); }
  void destroy(const Status& reason) override;

  int64_t workers() const { return static_cast<int64_t>(has_asked_.size()); }
  // Of a number below workers().
  void asks(int64_t worker);
  void served(int64_t worker);
  // DEADLINE_EXCEEDED: what the worker has waited for.
  Status lateness(int64_t worker) const;

 private:
  mutable std::mutex mutex_;
  std::vector<bool> has_asked_;
};

}  // namespace dtg
