// What calls functions, walked through body by body: no plan, no frame, no gradient has a part in it.
#include <algorithm>

#include "exec/kernel.h"
#include "random/interpreter.h"

namespace dtg::random {
namespace {

constexpr int kRoundsMax = 1000;

bool is_true(const Tensor& tensor) {
  if (!tensor.shape().is_scalar()) return tensor.count() > 0;
  switch (tensor.dtype()) {
    case DType::f32: return tensor.values<float>()[0] != 0;
    case DType::f64: return tensor.values<double>()[0] != 0;
    case DType::f16: return static_cast<float>(tensor.values<Half>()[0]) != 0;
    case DType::bf16: return static_cast<float>(tensor.values<BFloat16>()[0]) != 0;
    case DType::boolean: return tensor.values<bool>()[0];
    default: return tensor.int_at(0) != 0;
  }
}

Status check_declared(const Function& function, size_t i, const Tensor& given) {
  const PartialShape& declared = function.argument_info(i).shape;
  if (!given.valid() || declared.admits(given.shape())) return {};
  return invalid_argument("argument %zu has shape %s where %s is declared", i, given.shape().text().c_str(), declared.text().c_str());
}

const Function& function_at(const Node& node, const char* attr) { return *node.attr<FunctionRef>(attr).get(); }

}  // namespace

Status Interpreter::call_functions(const Node& node, std::span<const Datum> inputs, std::vector<Datum>& outputs) {
  const bool repeats = node.op->name().find("While") != std::string::npos;
  DTG_TRY(repeats ? loop(node, inputs, outputs) : branch(node, inputs, outputs));
  for (size_t o = 0; o < outputs.size(); ++o) {
    const Tensor& tensor = outputs[o].tensor;
    if (tensor.valid() && !node.outputs[o].shape.admits(tensor.shape())) {
      return internal_error("%s: shape %s was inferred, but %s came", node.op->name().c_str(), node.outputs[o].shape.text().c_str(),
                            tensor.shape().text().c_str());
    }
  }
  // It went well; but whoever looks at all bodies with these values may refuse one.
  std::vector<Datum> unused;
  const Status refused = infer(node, inputs, unused);
  may_go_unnoticed_ |= !refused.ok();
  return refused;
}

Status Interpreter::branch(const Node& node, std::span<const Datum> inputs, std::vector<Datum>& outputs) {
  const std::string& op = node.op->name();
  if (op == "If" || op == "StatelessIf") {
    return apply(function_at(node, is_true(inputs[0].tensor) ? "then_branch" : "else_branch"), inputs.subspan(1), outputs);
  }
  if (op == "Case" || op == "StatelessCase") {
    const auto& branches = node.attr<std::vector<FunctionRef>>("branches");
    const int64_t index = inputs[0].tensor.int_at(0), last = static_cast<int64_t>(branches.size()) - 1;
    return apply(*branches[static_cast<size_t>(index < 0 || index > last ? last : index)].get(), inputs.subspan(1), outputs);
  }
  return apply(function_at(node, "f"), inputs, outputs);
}

Status Interpreter::loop(const Node& node, std::span<const Datum> inputs, std::vector<Datum>& outputs) {
  const Function &condition = function_at(node, "cond"), &body = function_at(node, "body");
  std::vector<Datum> now(inputs.begin(), inputs.end());
  for (int round = 0;; ++round) {
    std::vector<Datum> said;
    DTG_TRY(apply(condition, now, said));
    if (!is_true(said[0].tensor)) break;
    if (round == kRoundsMax) return unavailable("a loop of more than %d rounds", kRoundsMax);
    std::vector<Datum> next;
    DTG_TRY(apply(body, now, next));
    for (size_t i = 0; i < next.size(); ++i) DTG_TRY(check_declared(body, i, next[i].tensor));
    now = std::move(next);
  }
  outputs = std::move(now);
  return {};
}

Status Interpreter::apply(const Function& function, std::span<const Datum> arguments, std::vector<Datum>& results) {
  const Graph& graph = function.graph();
  std::map<NodeId, std::vector<Datum>> values;
  for (size_t i = 0; i < arguments.size(); ++i) {
    DTG_TRY(check_declared(function, i, arguments[i].tensor));
    values[function.arguments()[i].node()] = {arguments[i]};
  }
  for (const Turn& turn : turns_of(graph, function.needed(), [](Value) { return false; })) {
    const NodeId id = turn.node;
    const Node& node = graph.node(id);
    if (node.op->role() == Role::argument) continue;
    std::vector<Datum> inputs, outputs;
    for (Value input : node.inputs) inputs.push_back(values.at(input.node())[input.output()]);
    DTG_TRY(call(node, inputs, outputs));
    for (NodeId other : turn.others) values[other] = outputs;
    values[id] = std::move(outputs);
  }
  results.clear();
  for (Value result : function.results()) results.push_back(values.at(result.node())[result.output()]);
  return {};
}

}  // namespace dtg::random
