// Presence: which sessions are connected to this task. Where steps wait for each other, who is gone is not waited for; the server says who
// has come and who has gone (cluster/departures.h), and what waits here looks again. A task without a server has its own sessions only,
// which are always there.
//
// Owner: the task's resources, by count. Any thread.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "exec/resource.h"

namespace dtg {

class Presence final : public Resource {
 public:
  static constexpr std::string_view kKind = "presence";
  static constexpr uint64_t kOwn = 0;  // stands for all sessions of this process

  // Those of a task.
  static Ref<Presence> of(ResourceStore& store);
  Presence() : Resource("presence") {}
  const char* kind() const override { return kKind.data(); }
  void destroy(const Status&) override {}

  // What is known; it never waits for anybody, so it may be asked under any lock.
  class Roll final : public RefCounted {
   public:
    bool has(uint64_t session) const;
    // False: the task has just begun, and who was connected to its former life may not have had the time to come back.
    bool is_settled() const;

   private:
    friend class Presence;
    mutable std::mutex mutex_;  // guards what follows
    std::unordered_set<uint64_t> there_;
    bool settled_ = true;
  };
  const Ref<Roll>& roll() const { return roll_; }

  void came(uint64_t session);
  void gone(uint64_t session);
  void settled(bool is);
  // `changed` is called, with nothing locked, whenever somebody has gone; false: it need not be any more.
  void watch(std::function<bool()> changed);

 private:
  using Watchers = std::vector<std::shared_ptr<const std::function<bool()>>>;
  void tell();

  const Ref<Roll> roll_ = make_ref<Roll>();
  std::mutex mutex_;  // guards watchers_
  Watchers watchers_;
};

}  // namespace dtg
