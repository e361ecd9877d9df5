// The passes, in the order they run: prune, infer, fold, simplify, place | fuse, commit, split, order | prepare, lay out, emit. What a
// session asks of a cluster is cut by task after place (plan/partition.h); each part then runs through all of them on its own task. The
// last three are done segment by segment, because they are also done again while a run is under way (plan/emit.h).
//
// Each pass is a function Ir -> Ir in a file of its name, linear in nodes and edges, iterative, and stops when the run's deadline has
// passed.
#pragma once

#include <span>

#include "base/budget.h"
#include "base/clock.h"
#include "exec/memory_pool.h"
#include "exec/rights.h"
#include "monitor/trace.h"
#include "plan/ir.h"
#include "plan/named_handle.h"
#include "plan/place.h"

namespace dtg {

// What becomes of the writes of a plan.
enum class Committing : uint8_t {
  singly,  // each takes place as soon as it can
  joined,  // those of one phase are a unit
  logged,  // and can be made again from what is kept of them (Ir::commits)
};

// Keeps what writes are made again from, and says by which number the gate before them names it. Any thread: bodies are planned while
// runs are under way.
class WritesKeeper {
 public:
  virtual Result<int64_t> keep(const IrCommit& writes) = 0;

 protected:
  ~WritesKeeper() = default;
};

// What the planner works with; all of it outlives every plan.
struct PlanContext {
  const KernelTable* kernels = nullptr;
  const OpTable* ops = nullptr;
  Pool* pool = nullptr;
  ResourceStore* store = nullptr;
  Placer* placer = nullptr;
  Ref<const Rights> rights;  // of the peer that the plan is for; null: all
  const Clock* clock = nullptr;
  MemoryBudget* budget = nullptr;  // null: sizes are only kept from wrapping around
  Ref<MemoryPool> memory;          // of runs, shared by all plans of the device; null: the plan makes its own
  Tracer* tracer = nullptr;        // may be null
  bool fuse = true;
  Committing committing = Committing::singly;
  WritesKeeper* keeper = nullptr;   // where they are logged; null: only the Ir has them
  int64_t strand = -1;              // of a body: the number of the outermost call whose functions have units of their own (exec/commits.h)
  Ref<const NamedHandles> handles;  // of a body: how what its arguments are is named, where writes are logged
  std::string function;             // whose body is planned
  Ref<const RefCounted> holder;     // of what of the above belongs to nobody else
  int frames = 4;                   // runs of one plan at the same time; further ones queue
  Deadline deadline = Deadline::never();

  // Called by every pass every so many nodes. It also obeys the interrupt of whoever plans, by which a call is cancelled.
  Status check_time() const;
  // Only the nodes with these numbers look at the clock, which is not free.
  bool is_checkpoint(uint32_t n) const { return n % 1024 == 1023; }
};

struct Pass {
  const char* name;
  Status (*run)(const PlanContext& context, Ir& ir);
};

// The part of the graph that the request needs.
Status prune(const PlanContext& context, Ir& ir);
// Shapes for these feeds, what constants and shapes alone decide, and that every value fits into memory.
Status infer(const PlanContext& context, Ir& ir);
// Pure nodes whose operands are all known are computed now, where infer has not done so because they are larger than shapes are.
Status fold(const PlanContext& context, Ir& ir);
// Equal nodes become one; cheaper forms with the same bits, by the rules of the ops.
Status simplify(const PlanContext& context, Ir& ir);
// A device for each node.
Status place(const PlanContext& context, Ir& ir);
// Several nodes become one that makes fewer passes over memory.
Status fuse(const PlanContext& context, Ir& ir);
// Writes that may take effect together become a unit, where that is asked for.
Status commit(const PlanContext& context, Ir& ir);
// A stream for each node, a memory space for each value, and copies between them.
Status split(const PlanContext& context, Ir& ir);
// The order of effects on resources, pins, events, segments, and the order inside them.
Status order(const PlanContext& context, Ir& ir);

// The passes up to `place`, and those after it.
std::span<const Pass> front_passes();
std::span<const Pass> back_passes();
// Runs them; `observer` (may be null) sees the Ir after each.
using PassObserver = void (*)(void* user, const Pass& pass, const Ir& ir);
Status run_passes(const PlanContext& context, std::span<const Pass> passes, Ir& ir, PassObserver observer = nullptr, void* user = nullptr);

// Shapes of the outputs of a node for these operands, with the node named in an error.
Status infer_node(const Node& node, std::span<const ValueInfo> inputs, std::span<ValueInfo> outputs, Tensor (*constant_fn)(void*, int),
                  void* constant_context);

// Bytes of a value; RESOURCE_EXHAUSTED with its name where they wrap around or go beyond the budget.
Result<int64_t> value_bytes(const PlanContext& context, const Node& node, DType dtype, const Shape& shape);

}  // namespace dtg
