// Queues as ops. The rules are in exec/queue.h; an op here is an operation that carries the completion of its
// instruction, so that waiting holds no thread.
#include <cstring>
#include <memory>

#include "exec/commits.h"
#include "exec/completion.h"
#include "exec/queue.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "tensor/text.h"

namespace dtg::ops {
namespace {

using Verb = Queue::Verb;

// --- the handles ---

std::vector<DType> types_of(const Node& node) {
  auto types = node.attr<std::vector<DType>>("component_types");
  // The priority comes first, and is not listed.
  if (node.op->name() == "PriorityQueueV2") types.insert(types.begin(), DType::i64);
  return types;
}

std::vector<PartialShape> shapes_of(const Node& node) {
  auto shapes = node.attr<std::vector<PartialShape>>("shapes");
  if (node.op->name() == "PriorityQueueV2") shapes.insert(shapes.begin(), PartialShape::scalar());
  return shapes;
}

// One component: the handle tells what it holds, and dequeues know their shape before they run.
Status queue_shape(InferContext& c) {
  const auto types = types_of(c.node());
  const auto shapes = shapes_of(c.node());
  if (!shapes.empty() && shapes.size() != types.size()) {
    return c.error("%zu component types but %zu shapes; give one shape per component or none", types.size(), shapes.size());
  }
  const bool single = types.size() == 1 && shapes.size() == 1;
  c.output_held(0, single ? types[0] : DType::invalid, single ? shapes[0] : PartialShape::unknown());
  return {};
}

std::string definition(const Queue::Spec& spec) {
  constexpr const char* kOrders[] = {"in order of arrival", "shuffled", "by priority"};
  std::string text = format("%s, capacity %lld, (", kOrders[static_cast<int>(spec.order)], static_cast<long long>(spec.capacity));
  for (size_t k = 0; k < spec.dtypes.size(); ++k) {
    text += k ? ", " : "";
    text += dtype_name(spec.dtypes[k]);
    text += spec.shapes.empty() ? "" : spec.shapes[k].text();
  }
  return text + ")";
}

Result<Queue::Spec> spec_of(const PrepareContext& c) {
  Queue::Spec spec;
  spec.dtypes = types_of(c.node());
  spec.shapes = shapes_of(c.node());
  spec.capacity = c.integer("capacity");
  const std::string& op = c.node().op->name();
  spec.padding = op == "PaddingFIFOQueueV2";
  if (op == "PriorityQueueV2") spec.order = Queue::Order::priority;
  if (op == "RandomShuffleQueueV2") {
    spec.order = Queue::Order::shuffled;
    spec.reserve = c.integer("min_after_dequeue");
    spec.seed = static_cast<uint64_t>(c.integer("seed")) << 32 ^ static_cast<uint64_t>(c.integer("seed2"));
    if (spec.reserve < 0 || (spec.capacity >= 0 && spec.reserve >= spec.capacity)) {
      return c.error("min_after_dequeue %lld must be in [0, capacity %lld)", static_cast<long long>(spec.reserve),
                     static_cast<long long>(spec.capacity));
    }
  }
  for (const DType dtype : spec.dtypes) {
    if (cell_bytes(dtype) == 0) return unimplemented("queues of %s", dtype_name(dtype));
  }
  return spec;
}

Status queue_prepare(PrepareContext& c) {
  DTG_ASSIGN(const Queue::Spec spec, spec_of(c));
  DTG_ASSIGN(Ref<Resource> found,
             c.named_resource(Queue::kKind, [&](const std::string& name) { return Ref<Resource>(make_ref<Queue>(name, spec)); }));
  const Queue::Spec& there = static_cast<const Queue&>(*found).spec();
  if (!(there == spec)) {
    return c.error("attach to the queue \"%s\": it is %s there and %s here; give one of them another shared_name", found->name().c_str(),
                   definition(there).c_str(), definition(spec).c_str());
  }
  c.bind(0, std::move(found));
  return {};
}

void register_queue_handle(OpTable& ops, KernelTable& kernels, const char* name, const char* doc) {
  const std::string_view op = name;
  OpDef def = OpDef::make(name);
  std::move(def).output("handle: resource");
  if (op == "PriorityQueueV2") {
    std::move(def).attr("component_types: list(type) = []").attr("shapes: list(shape)");
  } else {
    std::move(def).attr("component_types: list(type) >= 1").attr("shapes: list(shape) = []");
  }
  std::move(def).attr("capacity: int = -1");
  if (op == "RandomShuffleQueueV2") {
    std::move(def).attr("min_after_dequeue: int = 0").attr("seed: int = 0").attr("seed2: int = 0");
  }
  std::move(def).attr("container: string = ''").attr("shared_name: string = ''");
  std::move(def).shape(queue_shape).no_gradient().stateful().role(Role::handle).doc(doc);
  ops.add(std::move(def));
  kernels.add({.op = name, .prepare = queue_prepare, .mode = KernelMode::host});
}

// --- operations ---

struct QueueArgs {
  Verb verb = Verb::dequeue;
  std::vector<DType> dtypes;
  std::vector<Shape> shapes;   // of the components, for enqueues
  std::vector<bool> dynamic;   // outputs whose memory is not there yet
  std::vector<Shape> outputs;  // of those that have it
};

class QueueOperation final : public Queue::Operation {
 public:
  explicit QueueOperation(const QueueArgs& args) : Operation(args.verb), args_(args) {}
  void expect(Completion done) { done_ = std::move(done); }

 private:
  void finished(Status status) override {
    if (has_changed(status)) note_change(done_.step());
    if (status.ok() && !args_.dynamic.empty()) status = give();
    done_.done(std::move(status));
  }
  Status give() {
    RunContext c = done_.context();
    for (size_t k = 0; k < tuple.size(); ++k) {
      const Tensor& tensor = tuple[k];
      const int o = static_cast<int>(k);
      if (args_.dynamic[k]) {
        c.set_output(o, tensor.data(), tensor.shape(), tensor.buffer());
      } else if (!(tensor.shape() == args_.outputs[k])) {
        return c.error("component %d has shape %s, this graph was prepared for %s", o, tensor.shape().text().c_str(),
                       args_.outputs[k].text().c_str());
      } else if (tensor.count() > 0) {
        std::memcpy(c.out<void>(o), tensor.data(), static_cast<size_t>(tensor.count() * cell_bytes(tensor.dtype())));
        // Cells point at the bytes of what was taken out.
        if (tensor.dtype() == DType::string) c.slots().keep(tensor.buffer());
      }
    }
    return {};
  }

  const QueueArgs& args_;
  Completion done_;
};

Result<Queue*> queue_at(const RunContext& c) {
  DTG_TRY(c.permitted(0));
  Queue* const queue = resource_cast<Queue>(c.in<void>(0));
  if (!queue) return c.error("input 0 is not the handle of a queue");
  return queue;
}

// The step's memory ends with the step, so what stays in the queue is a copy.
Result<Tuple> copy_components(const RunContext& c, const QueueArgs& a) {
  Tuple tuple;
  tuple.reserve(a.dtypes.size());
  for (size_t k = 0; k < a.dtypes.size(); ++k) {
    DTG_ASSIGN(Tensor tensor, copy_value(a.dtypes[k], a.shapes[k], c.in<void>(static_cast<int>(k) + 1)));
    tuple.push_back(std::move(tensor));
  }
  return tuple;
}

Status check_components(const Queue& queue, const QueueArgs& a) {
  const auto& there = queue.spec().dtypes;
  if (there == a.dtypes) return {};
  std::string have, want;
  for (const DType dtype : there) have += std::string(have.empty() ? "" : ", ") + dtype_name(dtype);
  for (const DType dtype : a.dtypes) want += std::string(want.empty() ? "" : ", ") + dtype_name(dtype);
  return invalid_argument("dequeue (%s) from \"%s\": its tuples are (%s)", want.c_str(), queue.name().c_str(), have.c_str());
}

// Checks what can be checked before anybody waits, then fills in the operation.
Status fill_operation(const RunContext& c, const QueueArgs& a, const Queue& queue, Queue::Operation& op) {
  switch (a.verb) {
    case Verb::enqueue:
    case Verb::enqueue_many: {
      DTG_TRY(queue.check_tuple(a.dtypes, a.shapes, a.verb == Verb::enqueue_many));
      DTG_ASSIGN(op.tuple, copy_components(c, a));
      return {};
    }
    case Verb::dequeue: return check_components(queue, a);
    case Verb::dequeue_many:
    case Verb::dequeue_up_to:
      op.count = *c.in<int32_t>(1);
      DTG_TRY(check_components(queue, a));
      return queue.check_count(op.count);
    default: return {};
  }
}

bool queue_run(RunContext& c, Completion done) {
  const auto& a = c.args<QueueArgs>();
  auto op = std::make_unique<QueueOperation>(a);
  auto queue = queue_at(c);
  Status status = queue.ok() ? fill_operation(c, a, *queue.value(), *op) : queue.status();
  if (!status.ok()) {
    c.set_status(std::move(status));
    done.dismiss();
    return true;
  }
  op->expect(std::move(done));
  queue.value()->start(op.release(), &c.step());
  return false;
}

Verb verb_of(const Node& node) {
  const std::string& op = node.op->name();
  if (op == "QueueEnqueueV2") return Verb::enqueue;
  if (op == "QueueEnqueueManyV2") return Verb::enqueue_many;
  if (op == "QueueDequeueV2") return Verb::dequeue;
  if (op == "QueueDequeueManyV2") return Verb::dequeue_many;
  if (op == "QueueDequeueUpToV2") return Verb::dequeue_up_to;
  return node.attr<bool>("cancel_pending_enqueues") ? Verb::close_and_cancel : Verb::close;
}

Status operation_prepare(PrepareContext& c) {
  auto* const a = c.args<QueueArgs>();
  a->verb = verb_of(c.node());
  if (a->verb <= Verb::dequeue_up_to && c.integer("timeout_ms") >= 0) {
    return unimplemented("timeout_ms on a queue; give the run a timeout");
  }
  if (a->verb <= Verb::enqueue_many) {
    for (int i = 1; i < c.num_inputs(); ++i) {
      a->dtypes.push_back(c.input(i).dtype);
      a->shapes.push_back(c.input(i).shape);
    }
  } else {
    for (int o = 0; o < c.num_outputs(); ++o) {
      a->dtypes.push_back(c.output(o).dtype);
      a->dynamic.push_back(c.output(o).dynamic);
      a->outputs.push_back(c.output(o).shape);
    }
  }
  return c.async_in_place(queue_run);
}

Status dequeue_shape(InferContext& c) {
  if (c.num_outputs() == 1 && c.held_dtype(0) != DType::invalid) c.output(0, c.input(0));
  return {};
}

Status dequeue_many_shape(InferContext& c) {
  if (c.num_outputs() != 1 || c.held_dtype(0) == DType::invalid || !c.input(0).has_rank()) return {};
  const Tensor count = c.constant(1);
  const bool exact = c.node().op->name() == "QueueDequeueManyV2" && count.valid() && *count.as<int32_t>() >= 0;
  PartialShape batch = PartialShape::vector(exact ? *count.as<int32_t>() : -1);
  for (const int64_t dim : c.input(0).dims()) DTG_TRY(batch.append(dim));
  c.output(0, batch);
  return {};
}

// --- questions ---

Status size_run(RunContext& c) {
  DTG_ASSIGN(const Queue* queue, queue_at(c));
  *c.out<int32_t>(0) = static_cast<int32_t>(queue->size());
  return {};
}

Status is_closed_run(RunContext& c) {
  DTG_ASSIGN(const Queue* queue, queue_at(c));
  *c.out<bool>(0) = queue->closed();
  return {};
}

void register_enqueue(OpTable& ops, KernelTable& kernels, const char* name, const char* doc) {
  ops.add(OpDef::make(name)
              .input("handle: resource")
              .input("components: Tcomponents")
              .attr("Tcomponents: list(type) >= 1")
              .attr("timeout_ms: int = -1")
              .shape(no_outputs)
              .no_gradient()
              .stateful()
              .access(Access::produce)
              .doc(doc));
  kernels.add({.op = name, .prepare = operation_prepare, .mode = KernelMode::blocking});
}

void register_dequeue(OpTable& ops, KernelTable& kernels, const char* name, bool many, const char* doc) {
  OpDef op = OpDef::make(name);
  std::move(op).input("handle: resource");
  if (many) std::move(op).input("n: int32", {.rank = 0});
  std::move(op).output("components: component_types");
  std::move(op).attr("component_types: list(type) >= 1").attr("timeout_ms: int = -1");
  std::move(op).shape(many ? dequeue_many_shape : dequeue_shape).no_gradient().stateful().access(Access::consume).doc(doc);
  ops.add(std::move(op));
  kernels.add({.op = name, .prepare = operation_prepare, .mode = KernelMode::blocking});
}

void register_close(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("QueueCloseV2")
              .input("handle: resource")
              .attr("cancel_pending_enqueues: bool = false")
              .shape(no_outputs)
              .no_gradient()
              .stateful()
              .access(Access::close)
              .doc("No more enqueues: waits for those before it, or cancels them. What is in the queue can be taken."));
  kernels.add({.op = "QueueCloseV2", .prepare = operation_prepare, .mode = KernelMode::blocking});
}

}  // namespace

void register_queue(OpTable& ops, KernelTable& kernels) {
  register_queue_handle(ops, kernels, "FIFOQueueV2", "A queue of tuples, first in, first out.");
  register_queue_handle(ops, kernels, "PaddingFIFOQueueV2", "A FIFOQueueV2 whose batches pad smaller elements with zeros.");
  register_queue_handle(ops, kernels, "RandomShuffleQueueV2", "A queue of tuples that gives out any of them.");
  register_queue_handle(ops, kernels, "PriorityQueueV2", "A queue of tuples, smallest first component (an int64) first.");
  register_enqueue(ops, kernels, "QueueEnqueueV2", "Puts a tuple into a queue; waits while it is full.");
  register_enqueue(ops, kernels, "QueueEnqueueManyV2", "Puts the rows of a batch into a queue, one after the other.");
  register_dequeue(ops, kernels, "QueueDequeueV2", false, "Takes the first tuple; waits while there is none.");
  register_dequeue(ops, kernels, "QueueDequeueManyV2", true, "Takes n tuples as a batch; waits until all are there.");
  register_dequeue(ops, kernels, "QueueDequeueUpToV2", true, "Takes n tuples, or fewer once the queue is closed.");
  register_close(ops, kernels);
  ops.add(OpDef::make("QueueSizeV2")
              .input("handle: resource")
              .output("size: int32")
              .shape(scalar_shape)
              .no_gradient()
              .stateful()
              .access(Access::ask)
              .doc("How many tuples are in a queue."));
  kernels.add({.op = "QueueSizeV2", .prepare = [](PrepareContext& c) { return c.sync(size_run); }, .mode = KernelMode::host});
  ops.add(OpDef::make("QueueIsClosedV2")
              .input("handle: resource")
              .output("is_closed: bool")
              .shape(scalar_shape)
              .no_gradient()
              .stateful()
              .access(Access::ask)
              .doc("Whether a queue was closed."));
  kernels.add({.op = "QueueIsClosedV2", .prepare = [](PrepareContext& c) { return c.sync(is_closed_run); }, .mode = KernelMode::host});
}

}  // namespace dtg::ops
