// GroupObject: a member's place in a group, behind a dtg_group. Owned by its handle, and by the strategies whose workers are the group's
// members. Used by group.cc and strategy.cc. Any thread.
#pragma once

#include <atomic>

#include "capi/server.h"
#include "cluster/group.h"

namespace dtg::capi {

// Leaves with the last handle.
class GroupObject final : public RefCounted {
 public:
  GroupObject(Ref<ServerObject> s, Ref<Group> g, int64_t timeout)
      : server(std::move(s)), group(std::move(g)), default_timeout_ns(timeout) {}
  ~GroupObject() override { group->leave(cancelled("the host let go of the group \"%s\"", group->name().c_str())); }
  const Clock& clock() const { return server->runtime->clock(); }
  const Ref<ServerObject> server;
  const Ref<Group> group;
  const int64_t default_timeout_ns;
  // How many there have been; every member makes the same ones, each of which takes instances of its own.
  std::atomic<int32_t> strategies{0};
};

}  // namespace dtg::capi
