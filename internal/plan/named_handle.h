// NamedHandle: by which op, names and device a resource is known, wherever its handle has come to: through nodes that hand it on, and into
// the functions that are called with it.
//
// Values; what a body's plan holds of them is shared, as it outlives the Ir that they were found in.
#pragma once

#include <string>
#include <vector>

#include "base/ref.h"
#include "plan/ir.h"

namespace dtg {

struct PlanContext;

struct NamedHandle {
  const OpDef* op = nullptr;  // null: nobody knows
  std::string node, device, location;
  std::vector<Attr> attrs;
};

// Of the arguments of a function, in their order.
struct NamedHandles final : RefCounted {
  std::vector<NamedHandle> of;
};

// The value at the beginning of the way that a handle came: an output of the op that names the resource, or a feed. kNone where it comes
// from elsewhere.
uint32_t origin_of_handle(const Ir& ir, uint32_t value);
// How the resource behind a value is named: by a node of the Ir, or by what the context knows of the function's arguments.
NamedHandle name_handle(const PlanContext& context, const Ir& ir, uint32_t value);
// What the functions that a node calls are called with.
Ref<const NamedHandles> name_arguments(const PlanContext& context, const Ir& ir, const IrNode& call);

}  // namespace dtg
