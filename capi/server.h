// ServerObject: the server behind a dtg_server, and the runtime it runs in. Owned by its handle and by the groups it is in; used by
// server.cc and group.cc. Any thread.
#pragma once

#include "base/ref.h"
#include "cluster/server.h"
#include "session/runtime.h"

namespace dtg::capi {

// Stops with the last handle.
class ServerObject final : public RefCounted {
 public:
  ServerObject(Ref<Runtime> r, Ref<Server> s) : runtime(std::move(r)), server(std::move(s)) {}
  const Ref<Runtime> runtime;
  const Ref<Server> server;
};

}  // namespace dtg::capi
