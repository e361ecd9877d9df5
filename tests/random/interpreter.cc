// Node after node.
#include "random/interpreter.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "exec/queue.h"

namespace dtg::random {
namespace {

bool asks_shape_only(std::string_view op) {
  return op == "Shape" || op == "ShapeN" || op == "Size" || op == "Rank" || op == "ZerosLike" || op == "OnesLike";
}

// Does the failure of node `from` reach a fetch, a target or an effect only through shapes? Conservative.
bool only_shape_asked(const Scene& scene, const std::vector<bool>& needed, int from) {
  std::vector<bool> below(needed.size());
  below[static_cast<size_t>(from)] = true;
  for (size_t n = static_cast<size_t>(from) + 1; n < needed.size(); ++n) {
    if (!needed[n]) continue;
    for (const Port& input : scene.nodes[n].inputs) below[n] = below[n] || below[static_cast<size_t>(input.node)];
    if (below[n] && asks_shape_only(scene.nodes[n].op)) return true;
  }
  return false;
}

// What the last of a chain takes that was made after the first; nothing where it takes something of the chain itself.
std::optional<std::set<NodeId>> taken_by(const Graph& graph, std::span<const NodeId> chain, const std::function<bool(Value)>& given) {
  std::set<NodeId> found;
  std::vector<NodeId> stack = {chain.back()};
  while (!stack.empty()) {
    const Node& node = graph.node(stack.back());
    stack.pop_back();
    std::vector<NodeId> before(node.controls.begin(), node.controls.end());
    for (Value input : node.inputs) {
      if (!given(input)) before.push_back(input.node());
    }
    for (NodeId id : before) {
      if (std::ranges::find(chain, id) != chain.end()) return {};
      if (id > chain.front() && found.insert(id).second) stack.push_back(id);
    }
  }
  return found;
}

}  // namespace

std::vector<Turn> turns_of(const Graph& graph, std::span<const NodeId> needed, const std::function<bool(Value)>& given) {
  std::set<NodeId> left(needed.begin(), needed.end());
  std::vector<Turn> turns;
  const auto take = [&](NodeId id) {
    if (left.erase(id) > 0) turns.push_back({id, {}});
  };
  for (NodeId id : needed) {
    if (!left.contains(id)) continue;
    std::vector<NodeId> chain = {id};
    for (NodeId next = graph.extension_of(id); next != kNoNode; next = graph.extension_of(next)) chain.push_back(next);
    for (; chain.size() > 1; chain.pop_back()) {
      if (!left.contains(chain.back())) continue;
      if (const auto before = taken_by(graph, chain, given)) {
        std::ranges::for_each(*before, take);
        break;
      }
    }
    take(chain.back());
    chain.pop_back();
    for (NodeId other : chain) left.erase(other);
    turns.back().others = std::move(chain);
  }
  return turns;
}

Outcome Interpreter::run(const Graph& graph, const Scene& scene, const RunRecord& run) {
  if (run.fetches.empty() && run.targets.empty()) return {Verdict::error, invalid_argument("nothing is asked for"), {}};
  may_go_unnoticed_ = false;
  std::vector<bool> needed = needed_nodes(scene, run);
  std::vector<std::vector<Datum>> values(scene.nodes.size());
  std::map<std::pair<int, int>, Datum> fed;
  for (const auto& [port, tensor] : run.feeds) {
    const ValueInfo& info = graph.node(static_cast<NodeId>(port.node)).outputs[static_cast<size_t>(port.output)];
    if (!info.shape.admits(tensor.shape())) return {Verdict::error, invalid_argument("a feed does not fit"), {}};
    fed[{port.node, port.output}] = {tensor, {}, {tensor.dtype(), DType::invalid, tensor.shape()}};
  }
  for (const Port& fetch : run.fetches) {
    if (fed.count({fetch.node, fetch.output})) return {Verdict::error, invalid_argument("a fetch is fed in the same run"), {}};
  }
  const auto value_of = [&](const Port& port) {
    const auto at = fed.find({port.node, port.output});
    return at != fed.end() ? at->second : values[static_cast<size_t>(port.node)][static_cast<size_t>(port.output)];
  };
  std::vector<NodeId> nodes;
  for (size_t n = 0; n < needed.size(); ++n) {
    if (needed[n]) nodes.push_back(static_cast<NodeId>(n));
  }
  const auto given = [&](Value value) { return fed.contains({static_cast<int>(value.node()), static_cast<int>(value.output())}); };
  for (const Turn& turn : turns_of(graph, nodes, given)) {
    const size_t n = turn.node;
    const NodeRecord& record = scene.nodes[n];
    const int number = static_cast<int>(n);
    if (record.op == "Placeholder") {
      if (!fed.count({number, 0})) return {Verdict::error, invalid_argument("a placeholder is not fed"), {}};
      values[n] = {fed[{number, 0}]};
      continue;
    }
    std::vector<Datum> inputs;
    for (const Port& port : record.inputs) inputs.push_back(value_of(port));
    Status status = call(graph.node(static_cast<NodeId>(n)), inputs, values[n]);
    if (!status.ok()) {
      status = status.with_context("n" + std::to_string(n) + " (" + record.op + ")");
      return {may_go_unnoticed_ || only_shape_asked(scene, needed, number) ? Verdict::either : Verdict::error, std::move(status), {}};
    }
    for (NodeId other : turn.others) values[other] = values[n];
  }
  Outcome outcome;
  for (const Port& port : run.fetches) outcome.fetched.push_back(value_of(port).tensor);
  return outcome;
}

Status Interpreter::call(const Node& node, std::span<const Datum> inputs, std::vector<Datum>& outputs) {
  Status status;
  if (queue_op(node, inputs, outputs, status)) return status;
  if (calls_functions(node)) return call_functions(node, inputs, outputs);
  return call_node(machine_, node, inputs, outputs);
}

// Queues are modelled, because the real ones wait.
bool Interpreter::queue_op(const Node& node, std::span<const Datum> inputs, std::vector<Datum>& outputs, Status& status) {
  const std::string& op = node.op->name();
  if (!op.starts_with("Queue")) return false;
  std::deque<Tuple>& queue = queues_[inputs[0].resource.get()];
  outputs.clear();
  if (op.starts_with("QueueEnqueue")) {
    std::vector<DType> dtypes;
    std::vector<Shape> shapes;
    for (const Datum& datum : inputs.subspan(1)) {
      dtypes.push_back(datum.tensor.dtype());
      shapes.push_back(datum.tensor.shape());
    }
    const auto* real = resource_cast<Queue>(static_cast<const void*>(inputs[0].resource.get()));
    status = real ? real->check_tuple(dtypes, shapes, op == "QueueEnqueueManyV2") : invalid_argument("not a queue");
    if (!status.ok()) return true;
  }
  if (op == "QueueEnqueueV2") {
    Tuple tuple;
    for (const Datum& datum : inputs.subspan(1)) tuple.push_back(datum.tensor);
    queue.push_back(std::move(tuple));
  } else if (op == "QueueEnqueueManyV2") {
    status = enqueue_many(queue, inputs);
  } else if (op == "QueueSizeV2") {
    const Tensor size = Tensor::scalar<int32_t>(static_cast<int32_t>(queue.size())).take();
    outputs.push_back({size, {}, {DType::i32, DType::invalid, size.shape()}});
  } else if (op == "QueueDequeueV2" || op == "QueueDequeueManyV2") {
    status = dequeue(node, queue, inputs, outputs);
  } else {
    status = unimplemented("%s is not modelled", op.c_str());
  }
  return true;
}

Status Interpreter::enqueue_many(std::deque<Tuple>& queue, std::span<const Datum> inputs) {
  const int64_t rows = inputs[1].tensor.shape().rank() > 0 ? inputs[1].tensor.shape().dim(0) : -1;
  for (const Datum& datum : inputs.subspan(1)) {
    const Shape& shape = datum.tensor.shape();
    if (shape.rank() < 1 || shape.dim(0) != rows) return invalid_argument("components of different lengths");
  }
  for (int64_t row = 0; row < rows; ++row) {
    Tuple tuple;
    for (const Datum& datum : inputs.subspan(1)) {
      const Tensor& all = datum.tensor;
      DTG_ASSIGN(Shape shape, Shape::make(all.shape().dims().subspan(1)));
      DTG_ASSIGN(Tensor one, Tensor::allocate(all.dtype(), shape));
      if (one.bytes() > 0) std::memcpy(one.data(), all.as<char>() + row * one.bytes(), static_cast<size_t>(one.bytes()));
      tuple.push_back(std::move(one));
    }
    queue.push_back(std::move(tuple));
  }
  return {};
}

Status Interpreter::dequeue(const Node& node, std::deque<Tuple>& queue, std::span<const Datum> inputs, std::vector<Datum>& outputs) {
  const bool many = node.op->name() == "QueueDequeueManyV2";
  const int64_t count = many ? inputs[1].tensor.int_at(0) : 1;
  if (count < 0) return invalid_argument("dequeue %lld", static_cast<long long>(count));
  if (static_cast<int64_t>(queue.size()) < count || queue.empty()) return unavailable("the run would wait for ever");
  for (size_t c = 0; c < queue.front().size(); ++c) {
    const Tensor& first = queue.front()[c];
    if (!many) {
      outputs.push_back({first, {}, {first.dtype(), DType::invalid, first.shape()}});
      continue;
    }
    std::vector<int64_t> dims = {count};
    dims.insert(dims.end(), first.shape().dims().begin(), first.shape().dims().end());
    DTG_ASSIGN(Shape shape, Shape::make(dims));
    DTG_ASSIGN(Tensor batch, Tensor::allocate(first.dtype(), shape));
    for (int64_t row = 0; row < count; ++row) {
      const Tensor& one = queue[static_cast<size_t>(row)][c];
      if (!(one.shape() == first.shape())) return invalid_argument("elements of different shapes");
      if (one.bytes() > 0) std::memcpy(batch.as<char>() + row * one.bytes(), one.data(), static_cast<size_t>(one.bytes()));
    }
    outputs.push_back({batch, {}, {batch.dtype(), DType::invalid, batch.shape()}});
  }
  queue.erase(queue.begin(), queue.begin() + count);
  return {};
}

}  // namespace dtg::random
