// Ir: a plan in the making. Typed nodes over typed values, in an order that respects inputs and control edges; an edge always goes
// from a lower number to a higher one. Passes (plan/passes.h) change it in turn until it is a program; each is a function of its
// own, O(nodes + edges), and looks at no op by its name: what an op means to a pass is in its definition.
//
// Owner: the plan that is made; one thread. A plan with shapes that depend on data keeps its Ir, read-only from then on, because the
// rest of it is prepared when those shapes are known.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/accelerator.h"
#include "exec/kernel.h"
#include "graph/function.h"
#include "graph/graph.h"
#include "plan/event_set.h"

namespace dtg {

struct FeedSpec {
  Value value;
  DType dtype = DType::invalid;
  Shape shape;
  // Of a resource or a variant that a function is called with.
  DType held = DType::invalid;
  PartialShape holds = {};
};

// What a run asks for; with the graph and the devices it decides the plan.
struct PlanRequest {
  std::vector<FeedSpec> feeds;
  std::vector<Value> fetches;
  std::vector<NodeId> targets;
  std::string at;     // the task that does what asks for none, or only for a task of its job; "": as the placer says
  bool body = false;  // of a function: resources and variants come in and go out as well
};

inline constexpr uint32_t kNone = UINT32_MAX;

struct IrValue {
  const ValueInfo* info = nullptr;  // type, and shape or what is open of it
  uint32_t producer = kNone;        // kNone for a feed
  uint32_t output = 0;
  uint32_t known = kNone;  // in Ir::constants: nobody computes it
  int32_t feed = -1;
  uint32_t fetches = 0;  // how often it is fetched
  uint32_t uses = 0;     // operands of live nodes that it is
  uint32_t slot = kNone;
  uint32_t space = 0;   // memory it lies in: 0 the host's, k that of Ir::spaces[k - 1]
  bool late = false;    // known to the plan, which it was not when the graph was built
  bool unsure = false;  // what was known of it when the graph was built rests on a value that is fed now

  bool is_known() const { return known != kNone; }
  bool dynamic() const { return !is_holder(info->dtype) && !info->shape.complete(); }
};

struct IrNode {
  const Node* node = nullptr;  // of the graph, or a private one that a rule made; its own inputs are never looked at
  const OpDef* op = nullptr;   // its op: most passes ask for no more of it, and it lies elsewhere
  const KernelRow* row = nullptr;
  std::span<uint32_t> inputs;    // values
  std::span<uint32_t> outputs;   // values
  std::span<uint32_t> controls;  // nodes that must be done first
  uint32_t device = 0;           // where it was placed
  uint32_t lane = 0;             // the device that it runs on
  uint32_t space = 0;            // whose memory its kernel works in
  uint32_t set = 0;              // which events it comes after
  uint32_t segment = kNone;
  uint32_t position = 0;  // in Ir::order
  uint32_t phase = 0;     // a write: the commit it belongs to; others: commits whose effects they may see
  uint32_t pin = kNone;   // a read: number of its pin
  uint32_t unpins = 0;    // in Ir::unpins: reads whose pins are over when this write begins
  int32_t event = -1;     // blocking: the event of its end
  bool made = false;      // `node` is a private one
  bool dead = false;      // folded, fused or not needed
  bool dynamic = false;   // a shape it needs or gives depends on data, or it comes after such a node
  bool target = false;
  bool controlled = false;  // a live node has a control edge from it
  bool write = false;       // changes a resource
  bool barrier = false;     // computes nothing: a point in the order that somebody waits for
  bool gated = false;       // its value may be known, but control edges, its own or those before it, say when it is there

  bool waits = false;   // its kernel may wait for others
  bool strand = false;  // a call whose writes cannot be one unit: its functions have units of their own

  bool blocking() const { return waits; }
  void stand_for(const Node* of, bool is_made) {
    node = of;
    op = of->op;
    made = is_made;
  }
};

inline bool calls_functions(const IrNode& node) { return node.op->takes_functions() && calls_functions(*node.node); }

struct IrSegment {
  std::vector<uint32_t> nodes;   // in order
  std::vector<uint32_t> events;  // it waits for these, beyond what the segments before it waited for
  std::vector<uint32_t> after;   // and for these segments
  uint32_t device = 0;
  uint32_t space = 0;
  uint32_t set = 0;
};

// After node `node` has run, another device may go on with its results.
struct HandOver {
  uint32_t node;
  uint32_t event;
};

// The writes of one phase as a graph of its own, which makes them again from what the gate before them saw: operand i of the gate is
// fed to value i.
struct IrCommit {
  uint32_t phase = 0;
  Ref<Graph> graph;
  std::vector<Value> fed;
  std::vector<NodeId> writes;
};

struct Ir {
  Arena arena;
  AttrLists attr_lists;  // of nodes that rules made
  const Graph* graph = nullptr;
  const PlanRequest* request = nullptr;
  std::vector<IrNode> nodes;
  std::vector<IrValue> values;
  std::vector<Tensor> constants;
  std::vector<uint32_t> feeds;                        // values, in the order of the request
  std::vector<uint32_t> fetches;                      // values, in the order of the request
  std::vector<uint32_t> order;                        // live nodes as they run
  std::vector<IrCommit> commits;                      // where they are logged, by phase
  std::vector<std::span<const uint32_t>> unpins{{}};  // the first is of those that end no pin
  std::vector<IrSegment> segments;
  std::vector<HandOver> hand_overs;      // by node
  std::vector<uint32_t> raisers;         // event -> the node that raises it
  std::vector<Ref<Accelerator>> spaces;  // devices with memory of their own that it uses
  std::unique_ptr<EventSets> sets;       // what the numbers of sets mean
  uint32_t events = 0;
  uint32_t pins = 0;

  uint32_t add_value(const IrValue& value) {
    values.push_back(value);
    return static_cast<uint32_t>(values.size() - 1);
  }
  const Tensor& constant(const IrValue& value) const { return constants[value.known]; }
  std::span<const uint32_t> unpins_of(const IrNode& node) const { return unpins[node.unpins]; }
  void set_known(uint32_t value, Tensor tensor) {
    IrValue& at = values[value];
    if (!at.info->shape.complete()) at.info = arena.make<ValueInfo>(ValueInfo{at.info->dtype, at.info->held, PartialShape(tensor.shape())});
    at.known = static_cast<uint32_t>(constants.size());
    constants.push_back(std::move(tensor));
  }
  // All outputs are known, and there is at least one.
  bool all_known(const IrNode& node) const;
  // Does `node` come after who makes this operand? What is known is there already, but for a barrier, which waits for whoever would have
  // made it, and where control edges say when a known value may be used.
  bool waits_for(const IrNode& node, const IrValue& operand) const;
  // For messages: "node:0", or "feed 2".
  std::string value_text(uint32_t value) const;

  // One line per live node: values, op, what it is known to be, where it runs, segment, pins. For people and tests.
  std::string text() const;
};

// Counts uses and control edges anew, from the back, and lets go of what nobody needs. Every pass that takes readers away ends so.
void sweep(Ir& ir);

}  // namespace dtg
