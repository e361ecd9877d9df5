// Draft: a plan in the making. The part of the graph that a run needs, with shapes for these feeds, known
// values folded, devices chosen, chains fused. Passes change it in order: draft (prune, infer, fold,
// place), fuse, schedule. Plans with shapes that depend on data keep their draft, because the rest of it is
// prepared when those shapes are known.
//
// Owner: the plan that is being made; one thread.
#pragma once

#include <span>
#include <vector>

#include "exec/kernel.h"
#include "graph/graph.h"
#include "monitor/trace.h"
#include "plan/place.h"

namespace dtg {

struct FeedSpec {
  Value value;
  DType dtype = DType::invalid;
  Shape shape;
};

// What a run asks for; with the graph and the devices it decides the plan.
struct PlanRequest {
  std::vector<FeedSpec> feeds;
  std::vector<Value> fetches;
  std::vector<NodeId> targets;
};

inline constexpr uint32_t kNone = UINT32_MAX;

struct DraftValue {
  uint32_t producer = kNone;  // draft node; kNone for a feed
  uint32_t output = 0;
  ValueInfo info;  // after inference
  Tensor known;    // valid: a constant, nobody computes it
  int32_t feed = -1;
  int32_t fetches = 0;  // how often it is fetched
  uint32_t uses = 0;    // inputs of live nodes that read it
  uint32_t slot = kNone;
  bool dynamic() const { return info.dtype != DType::resource && !info.shape.complete(); }
};

struct DraftNode {
  const Node* node = nullptr;
  const KernelRow* row = nullptr;
  std::span<uint32_t> inputs;      // draft values
  std::span<uint32_t> outputs;     // draft values
  std::vector<uint32_t> controls;  // draft nodes that must be done first
  uint32_t device = 0;
  bool dead = false;      // folded or fused away; controls on it are forwarded
  bool dynamic = false;   // a shape it needs or gives depends on data
  bool late = false;      // control edges, its own or those of folded inputs, hold it behind something dynamic
  bool snapshot = false;  // a variable read that must copy
  bool target = false;
  std::vector<uint32_t> unpins;    // a write: reads of the variable that are over by then
  std::vector<uint32_t> forwards;  // dead: what an edge from it means instead
  uint32_t set = 0;                // which events it comes after
  uint32_t segment = kNone;
  uint32_t position = 0;  // in the schedule
  uint32_t pin = 0;       // a read that pins: which pin of the frame
  int32_t event = -1;     // blocking: the event of its end
};

struct DraftSegment {
  std::vector<uint32_t> nodes;   // in order
  std::vector<uint32_t> events;  // it waits for these
  std::vector<uint32_t> after;   // and for these segments
  uint32_t device = 0;
};

// After node `node` has run, another device may go on with its results.
struct Crossing {
  uint32_t node;
  uint32_t event;
};

struct Draft {
  Arena arena;
  std::vector<DraftNode> nodes;  // in an order that respects inputs and controls
  std::vector<DraftValue> values;
  std::vector<uint32_t> feeds;    // values, in the order of the request
  std::vector<uint32_t> fetches;  // values, in the order of the request
  std::vector<uint32_t> order;    // schedule: live draft nodes
  std::vector<DraftSegment> segments;
  std::vector<Crossing> crossings;  // by node
  uint32_t events = 0;

  uint32_t add_value(DraftValue value) {
    values.push_back(std::move(value));
    return static_cast<uint32_t>(values.size() - 1);
  }
};

// What the planner works with; all of it outlives every plan.
struct PlanContext {
  const KernelTable* kernels = nullptr;
  const OpTable* ops = nullptr;
  Pool* pool = nullptr;
  ResourceStore* store = nullptr;
  Placer* placer = nullptr;
  const Clock* clock = nullptr;
  Tracer* tracer = nullptr;  // may be null
  bool fuse = true;
  int frames = 4;  // runs of one plan at the same time; further ones queue
};

// Prune, infer, fold, place.
Status make_draft(const PlanContext& context, const Graph& graph, const PlanRequest& request, Draft& draft);
// Bias, activation and element-wise chains become single nodes.
void fuse_draft(const PlanContext& context, Draft& draft);
// Order, events and segments: fills order, segments, crossings, and per node set, segment, position, event,
// snapshot.
Status schedule_draft(const PlanContext& context, Draft& draft);

// Shapes of the outputs of a node for these inputs; constants come from `constant_fn`.
Status infer_node(const Node& node, std::span<const ValueInfo> inputs, std::span<ValueInfo> outputs, Tensor (*constant_fn)(void*, int),
                  void* constant_context);

}  // namespace dtg
