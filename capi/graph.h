// The open graph behind a handle, for whoever adds to it: taken hold of, and one thread at a time inside.
#pragma once

#include "capi/guard.h"
#include "capi/objects.h"

namespace dtg::capi {

// Runs `fn` on it; FAILED_PRECONDITION where another thread is inside.
template <class Fn>
dtg_error* change_graph_object(dtg_graph* handle, Fn&& fn) noexcept {
  return guard([&]() -> Status {
    const Held<GraphObject> held(handle, HandleType::graph);
    DTG_TRY(held.status());
    const Owner::Turn turn(held->owner, Owner::Use::change);
    DTG_TRY(turn.status("graph"));
    return fn(*held);
  });
}

}  // namespace dtg::capi
