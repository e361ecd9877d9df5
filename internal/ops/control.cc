// Control flow as ops that call functions: If, Case, While, PartitionedCall and their stateless forms. Definitions, shapes; kernels are in
// control_run.cc and while_run.cc, gradients in control_grad.cc.
#include "ops/control.h"

#include <algorithm>

#include "ops/all.h"
#include "ops/control_kernels.h"

namespace dtg::ops {

Result<const Function*> function_of(const Node& node, const char* attr) {
  const FunctionRef& function = node.attr<FunctionRef>(attr);
  if (function) return function.get();
  return invalid_argument("%s: attribute %s is no function", node.op->name().c_str(), attr);
}

Result<std::vector<const Function*>> branches_of(const Node& node) {
  std::vector<const Function*> branches;
  for (const Attr& attr : node.attrs) {
    if (attr.value.kind() == AttrKind::function) {
      DTG_ASSIGN(const Function* const one, function_of(node, std::string(attr.name).c_str()));
      branches.push_back(one);
    } else if (const auto* list = attr.value.get<std::vector<FunctionRef>>()) {
      for (const FunctionRef& each : *list) {
        if (!each) return invalid_argument("%s: an entry of %s is no function", node.op->name().c_str(), std::string(attr.name).c_str());
        branches.push_back(each.get());
      }
    }
  }
  return branches;
}

int first_argument(const Node& node) { return static_cast<int>(node.op->inputs().size()) - 1; }

namespace {

std::string type_list(std::span<const DType> types) {
  std::string text;
  for (DType type : types) text += (text.empty() ? "" : ", ") + std::string(dtype_name(type));
  return "(" + text + ")";
}

}  // namespace

Status check_signature(const Function& function, std::span<const DType> arguments, std::span<const DType> results) {
  std::vector<DType> takes, gives;
  for (size_t i = 0; i < function.arguments().size(); ++i) takes.push_back(function.argument_info(i).dtype);
  for (size_t r = 0; r < function.results().size(); ++r) gives.push_back(function.result_info(r).dtype);
  if (!std::ranges::equal(takes, arguments)) {
    return invalid_argument("function \"%s\" takes %s, but is called with %s", function.name().c_str(), type_list(takes).c_str(),
                            type_list(arguments).c_str());
  }
  if (std::ranges::equal(gives, results)) return {};
  return invalid_argument("function \"%s\" gives %s, but %s is wanted", function.name().c_str(), type_list(gives).c_str(),
                          type_list(results).c_str());
}

PartialShape common_shape(const PartialShape& a, const PartialShape& b) {
  if (!a.has_rank() || !b.has_rank() || a.rank() != b.rank()) return PartialShape::unknown();
  PartialShape both = a;
  for (int d = 0; d < a.rank(); ++d) {
    if (a.dim(d) != b.dim(d)) both.set_dim(d, -1);
  }
  return both;
}

namespace {

void give(InferContext& c, int o, const ValueInfo& info) {
  if (is_holder(info.dtype)) c.output_held(o, info.held, info.shape);
  else c.output(o, info.shape);
}

ValueInfo common_info(const ValueInfo& a, const ValueInfo& b) {
  return {a.dtype, a.held == b.held ? a.held : DType::invalid, common_shape(a.shape, b.shape)};
}

std::vector<ValueInfo> argument_infos(const InferContext& c, int first) {
  std::vector<ValueInfo> infos;
  for (int i = first; i < c.num_inputs(); ++i) infos.push_back({c.input_dtype(i), c.held_dtype(i), c.input(i)});
  return infos;
}

struct Constants {
  const InferContext* context;
  int first;
  static Tensor of(void* self, int i) {
    const auto* constants = static_cast<const Constants*>(self);
    return constants->context->constant(constants->first + i);
  }
};

// What the attribute says narrows what the bodies say.
Status apply_output_shapes(InferContext& c, std::vector<ValueInfo>& results) {
  const AttrValue* const attr = c.node().find_attr("output_shapes");
  const auto* const shapes = attr ? attr->get<std::vector<PartialShape>>() : nullptr;
  if (!shapes || shapes->empty()) return {};
  if (shapes->size() != results.size()) return c.error("output_shapes has %zu entries for %zu outputs", shapes->size(), results.size());
  for (size_t o = 0; o < results.size(); ++o) {
    if (is_holder(results[o].dtype)) continue;
    auto merged = PartialShape::merge(results[o].shape, (*shapes)[o], "the result of the functions and output_shapes");
    if (!merged.ok()) return c.error("output %zu: %s", o, merged.status().message().c_str());
    results[o].shape = merged.take();
  }
  return {};
}

Status refuse_state(InferContext& c, std::span<const Function* const> branches) {
  if (c.node().op->is_stateful()) return {};
  for (const Function* function : branches) {
    if (function->is_stateful()) {
      return c.error("function \"%s\" uses state or chance; the op for that is the one without Stateless (StatefulPartitionedCall)",
                     function->name().c_str());
    }
  }
  return {};
}

// --- If, Case, PartitionedCall: one of the functions is called ---

Status call_shape(InferContext& c) {
  const Node& node = c.node();
  const int first = first_argument(node);
  DTG_ASSIGN(const auto branches, branches_of(node));
  if (branches.empty()) return c.error("it needs at least one branch");
  if (node.op->inputs()[0].name == "branch_index") DTG_TRY(c.require_rank(0, 0));
  DTG_TRY(refuse_state(c, branches));
  std::vector<ValueInfo> results;
  Constants constants{&c, first};
  const std::vector<ValueInfo> arguments = argument_infos(c, first);
  for (const Function* function : branches) {
    DTG_TRY(in_function(c, check_signature(*function, c.attr<std::vector<DType>>("Tin"), c.attr<std::vector<DType>>("Tout"))));
    std::vector<ValueInfo> here(function->results().size());
    DTG_TRY(in_function(c, function->infer(arguments, here, Constants::of, &constants)));
    if (results.empty()) results = here;
    else std::ranges::transform(results, here, results.begin(), common_info);
  }
  DTG_TRY(apply_output_shapes(c, results));
  for (size_t o = 0; o < results.size(); ++o) give(c, static_cast<int>(o), results[o]);
  return {};
}

// --- While ---

void widen_to(const Function& body, std::vector<ValueInfo>& infos) {
  for (size_t i = 0; i < infos.size(); ++i) {
    if (!is_holder(infos[i].dtype)) infos[i].shape = body.argument_info(i).shape;
  }
}

// The shapes that stay what they are over any number of rounds: those of the start, and wider ones where the body gives others and the
// body's argument allows it.
Result<std::vector<ValueInfo>> lasting_infos(InferContext& c, const Function& body) {
  std::vector<ValueInfo> infos = argument_infos(c, 0);
  // What the body's argument is declared to be holds in every round; what is known of it beyond that may go.
  const auto within = [&](size_t i, const PartialShape& shape, const char* what) -> Result<PartialShape> {
    const PartialShape& declared = body.argument_info(i).shape;
    auto merged = PartialShape::merge(declared, shape, "");
    if (merged.ok()) return merged;
    return c.error(
        "loop variable %zu: %s %s, but the body's argument is declared %s; where shapes are meant to change, declare a wider one "
        "(TensorFlow's shape_invariants)",
        i, what, shape.text().c_str(), declared.text().c_str());
  };
  for (size_t i = 0; i < infos.size(); ++i) {
    if (is_holder(infos[i].dtype)) continue;
    DTG_ASSIGN(infos[i].shape, within(i, infos[i].shape, "it begins with shape"));
  }
  // Each round opens a dimension at least, or is the last. Where many would open one after the other, all that the body was made for is
  // open after a few; loops around such a loop look at it again and again, so the more lie in a body the fewer are made.
  const int most = body.depth() == 1 ? 8 : body.depth() == 2 ? 4 : 2;
  std::vector<ValueInfo> results(infos.size());
  for (int round = 1;; ++round) {
    DTG_TRY(in_function(c, body.infer(infos, results)));
    bool stays = true;
    for (size_t i = 0; i < infos.size(); ++i) {
      if (!is_holder(infos[i].dtype)) {
        DTG_ASSIGN(results[i].shape, within(i, results[i].shape, "the body makes shape"));
      }
      const ValueInfo both = common_info(infos[i], results[i]);
      if (both.held == infos[i].held && both.shape == infos[i].shape) continue;
      // Nothing is declared of a list: after as many rounds again nothing is known of it, either.
      infos[i] = round > 2 * most ? ValueInfo{both.dtype, DType::invalid, PartialShape::unknown()} : both;
      stays = false;
    }
    if (stays) return infos;
    if (round == most) widen_to(body, infos);
  }
}

Status while_shape(InferContext& c) {
  const Node& node = c.node();
  DTG_ASSIGN(const Function* const condition, function_of(node, "cond"));
  DTG_ASSIGN(const Function* const body, function_of(node, "body"));
  const Function* const both[] = {condition, body};
  DTG_TRY(refuse_state(c, both));
  const auto& types = c.attr<std::vector<DType>>("T");
  if (condition->results().size() != 1) {
    return c.error("function \"%s\" gives %zu results; a condition gives one", condition->name().c_str(), condition->results().size());
  }
  const DType truth[] = {condition->result_info(0).dtype};
  DTG_TRY(in_function(c, check_signature(*condition, types, truth)));
  DTG_TRY(in_function(c, check_signature(*body, types, types)));
  if (is_holder(truth[0]) || dtype_size(truth[0]) == 0) return c.error("the condition gives a %s", dtype_name(truth[0]));
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] == DType::resource && body->returned_argument(i) != static_cast<int>(i)) {
      return unimplemented("%s: loop variable %zu is a resource, which the body must hand on unchanged", node.op->name().c_str(), i);
    }
  }
  const auto& declared = c.attr<std::vector<PartialShape>>("output_shapes");
  if (!declared.empty() && declared.size() != types.size()) {
    return c.error("output_shapes has %zu entries for %zu outputs", declared.size(), types.size());
  }
  DTG_ASSIGN(const std::vector<ValueInfo> infos, lasting_infos(c, *body));
  for (size_t i = 0; i < infos.size(); ++i) give(c, static_cast<int>(i), infos[i]);
  return {};
}

Status argument_shape(InferContext& c) {
  c.output_held(0, static_cast<DType>(c.integer("held")), c.attr<PartialShape>("shape"));
  return {};
}

OpDef make_if(bool stateful) {
  OpDef def = OpDef::make(stateful ? "If" : "StatelessIf");
  std::move(def)
      .input("cond: Tcond")
      .input("input: Tin")
      .output("output: Tout")
      .attr("Tcond: type")
      .attr("Tin: list(type)")
      .attr("Tout: list(type)")
      .attr("then_branch: func")
      .attr("else_branch: func")
      .attr("output_shapes: list(shape) = []")
      .attr("_extends: int = -1")
      .shape(call_shape)
      .gradient(call_grad)
      .doc("Calls then_branch where cond is true (a number that is not 0, a tensor that is not empty), else_branch otherwise.");
  return def;
}

OpDef make_case(bool stateful) {
  OpDef def = OpDef::make(stateful ? "Case" : "StatelessCase");
  std::move(def)
      .input("branch_index: int32")
      .input("input: Tin")
      .output("output: Tout")
      .attr("Tin: list(type)")
      .attr("Tout: list(type)")
      .attr("branches: list(func) >= 1")
      .attr("output_shapes: list(shape) = []")
      .attr("_extends: int = -1")
      .shape(call_shape)
      .gradient(call_grad)
      .doc("Calls the function of that number, counted from 0; the last one for every other number.");
  return def;
}

OpDef make_call(bool stateful) {
  OpDef def = OpDef::make(stateful ? "StatefulPartitionedCall" : "PartitionedCall");
  std::move(def)
      .input("args: Tin")
      .output("output: Tout")
      .attr("Tin: list(type)")
      .attr("Tout: list(type)")
      .attr("f: func")
      .attr("config: string = ''")
      .attr("config_proto: string = ''")
      .attr("executor_type: string = ''")
      .attr("_extends: int = -1")
      .shape(call_shape)
      .gradient(call_grad)
      .doc("Calls a function.");
  return def;
}

OpDef make_while(bool stateful) {
  OpDef def = OpDef::make(stateful ? "While" : "StatelessWhile");
  std::move(def)
      .input("input: T")
      .output("output: T")
      .attr("T: list(type)")
      .attr("cond: func")
      .attr("body: func")
      .attr("output_shapes: list(shape) = []")
      .attr("parallel_iterations: int = 10")
      .attr("_extends: int = -1")
      .attr("_commit: int = -1")
      .shape(while_shape)
      .forwards_each()
      .repeats()
      .gradient(while_grad)
      .doc("Calls body on what it gave the last time, first on the input, for as long as cond says so. Shapes stay, where the body's "
           "arguments do not declare wider ones.");
  return def;
}

void register_calls(OpTable& ops) {
  for (const bool stateful : {true, false}) {
    OpDef defs[] = {make_if(stateful), make_case(stateful), make_call(stateful), make_while(stateful)};
    for (OpDef& def : defs) {
      if (stateful) std::move(def).stateful();
      ops.add(std::move(def));
    }
  }
}

}  // namespace

Status in_function(const InferContext& c, Status status) { return status.ok() ? status : status.with_context(c.node().op->name()); }

void register_control(OpTable& ops, KernelTable& kernels) {
  register_calls(ops);
  ops.add(OpDef::make("_Arg")
              .output("output: T")
              .attr("T: type")
              .attr("shape: shape = unknown")
              .attr("held: int = 0")
              .role(Role::argument)
              .shape(argument_shape)
              .no_gradient()
              .doc("An argument of a function."));
  kernels.add({.op = "_Arg", .prepare = [](PrepareContext&) { return Status(); }});
  for (const char* op : {"If", "StatelessIf"})
    kernels.add({.op = op, .types = {{"Tcond", kPlain}}, .prepare = call_prepare, .mode = KernelMode::host});
  for (const char* op : {"Case", "StatelessCase", "PartitionedCall", "StatefulPartitionedCall"}) {
    kernels.add({.op = op, .prepare = call_prepare, .mode = KernelMode::host});
  }
  for (const char* op : {"While", "StatelessWhile"}) kernels.add({.op = op, .prepare = while_prepare, .mode = KernelMode::host});
}

}  // namespace dtg::ops
