// What a node hands on: which of its inputs a result is, and calls that choose among other values as it chose. Called by the thread that
// builds the graph.
#include "ops/control.h"
#include "ops/making.h"

namespace dtg::ops {

std::vector<Attr> function_attrs(const Node& node, const std::vector<FunctionRef>& functions) {
  std::vector<Attr> attrs;
  size_t next = 0;
  for (const Attr& attr : node.attrs) {
    if (attr.value.kind() == AttrKind::function) attrs.push_back({attr.name, AttrValue(functions[next++])});
    else if (attr.value.kind() == AttrKind::list_function) attrs.push_back({attr.name, AttrValue(functions)});
  }
  return attrs;
}

Result<std::vector<Value>> handed_on(const Node& node, uint32_t output) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.op->forwards(i, output)) return std::vector<Value>{node.inputs[i]};
  }
  std::vector<Value> each;
  Status status;
  for_each_function(node, [&](const Function& function) {
    const int returned = function.returned_argument(output);
    if (returned < 0 && status.ok()) {
      status = unimplemented(
          "%s \"%s\": its function \"%s\" gives an array of gradients, or what a call inside it chose; gradients need to know which array "
          "or variable it is: give that itself, or use it in the function",
          node.op->name().c_str(), std::string(node.name).c_str(), function.name().c_str());
    }
    if (status.ok()) each.push_back(node.inputs[static_cast<size_t>(first_argument(node) + returned)]);
  });
  if (!status.ok()) return status;
  return each;
}

Result<Value> choose_alike(Build& b, const Node& call, std::span<const Value> chooser, std::span<const std::vector<Value>> results) {
  std::vector<Value> inputs(chooser.begin(), chooser.end());
  std::vector<ValueInfo> infos;
  for (const std::vector<Value>& list : results) {
    for (Value value : list) {
      inputs.push_back(value);
      infos.push_back(b.info(value));
    }
  }
  std::vector<FunctionRef> functions;
  size_t from = 0;
  for (const std::vector<Value>& list : results) {
    Making made("choice of \"" + std::string(call.name) + "\"");
    DTG_TRY(made.begin(b.graph().ops()));
    DTG_ASSIGN(const std::vector<Value> arguments, made.arguments(infos));
    made.give(std::span(arguments).subspan(from, list.size()));
    DTG_ASSIGN(FunctionRef function, made.end());
    functions.push_back(std::move(function));
    from += list.size();
  }
  std::vector<DType> types;
  for (Value value : results[0]) types.push_back(b.info(value).dtype);
  std::vector<Attr> attrs = function_attrs(call, functions);
  attrs.push_back({"Tout", AttrValue(std::move(types))});
  const Value first = b.op(call.op->name(), inputs, attrs);
  DTG_TRY(b.status());
  return first;
}

}  // namespace dtg::ops
