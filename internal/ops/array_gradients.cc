// The arrays that gradients of TensorArrays meet in: whose they are, by which array a handle names, and who makes them. See tensor_array.h.
// Called by the thread that builds the graph.
#include <algorithm>

#include "graph/function.h"
#include "ops/control.h"
#include "ops/tensor_array.h"

namespace dtg::ops {
namespace {

// No pass has that name: what asks for it is found when a function is taken apart.
constexpr const char kCallers[] = "(the caller's)";

bool gives_gradients(const Node& node) { return node.find_attr("source") != nullptr; }

// Where a handle comes from, as far back as it is one array.
struct Origin {
  Value maker;                    // what made it, or the result of a call that gives one array or another
  std::vector<Value> either;      // then, by function: which
  std::vector<NodeId> gradients;  // on the way from there: arrays of gradients of arrays, the first one first
};

Result<Origin> origin_of(const Graph& graph, Value handle) {
  Origin origin;
  for (;;) {
    const Node& node = graph.node(handle.node());
    if (gives_gradients(node)) origin.gradients.insert(origin.gradients.begin(), node.id);
    origin.maker = handle;
    DTG_ASSIGN(std::vector<Value> each, handed_on(node, handle.output()));
    if (each.empty()) return origin;
    if (std::ranges::any_of(each, [&](Value one) { return !(one == each[0]); })) {
      origin.either = std::move(each);
      return origin;
    }
    handle = each[0];
  }
}

// The same array of gradients, of another array.
Value gradients_again(Build& b, const Node& node, Value array, Value flow) {
  std::vector<Value> inputs(node.inputs.begin(), node.inputs.end());
  inputs[0] = array;
  inputs[1] = flow;
  const Attr source = {"source", AttrValue(node.attr<std::string>("source"))};
  return b.op(node.op->name().c_str(), inputs, {&source, 1});
}

class Finder {
 public:
  Finder(GradContext& c, Value done, Value arrived) : c_(c), b_(c.b()), done_(done), arrived_(arrived), in_derivative_(c.call().empty()) {}

  Result<ArrayGradients> of(Value array) {
    const auto origin = origin_of(b_.graph(), array);
    const bool is_either = origin.ok() && !origin.value().either.empty();
    const bool is_one = origin.ok() && !is_either;
    const bool is_argument = is_one && b_.graph().node(origin.value().maker.node()).op->role() == Role::argument;
    // What a run has by a name, whichever array it is.
    if (!in_derivative_ && (is_one ? !is_argument : !b_.graph().outer())) return named(array, std::string(c_.call()));
    if (!origin.ok()) return origin.status();
    if (is_either) return of_either(origin.value());
    // In a derivative it is not yet known whose gradients they are: its callers hand them over (ops/derivative.h).
    if (in_derivative_ && is_argument) return named(array, kCallers);
    DTG_ASSIGN(const Value handle, of_call(origin.value(), array));
    return ArrayGradients{handle, arrived_.valid() ? arrived_ : handle.sibling(1)};
  }

 private:
  Result<ArrayGradients> named(Value array, std::string source) {
    const Value handle = b_.op("TensorArrayGradV3", {array, arrived_.valid() ? arrived_ : done_}, {{"source", std::move(source)}});
    DTG_TRY(b_.status());
    return ArrayGradients{handle, handle.sibling(1)};
  }

  // One array for all that the pass does, whichever op it meets first: the last that did something to the array.
  Result<Value> of_call(const Origin& origin, Value array) {
    std::string key = "gradients of array " + std::to_string(origin.maker.id);
    for (NodeId id : origin.gradients) key += "@" + b_.graph().node(id).attr<std::string>("source");
    if (const auto known = c_.shared().find(key); known != c_.shared().end()) return known->second;
    const ValueInfo info = b_.info(array);
    if (info.held == DType::invalid) return invalid_argument("%s: it is not known what the array holds", c_.node().op->name().c_str());
    const Value outline = b_.op(kOutlineOp, {array, done_});
    const Value made = b_.op(kOfOutlineOp, {outline}, {{"dtype", AttrValue(info.held)}, {"element_shape", AttrValue(info.shape)}});
    DTG_TRY(b_.status());
    return c_.shared()[key] = made;
  }

  // Those of either, by a call that chooses like the one that chose the array.
  Result<ArrayGradients> of_either(const Origin& origin) {
    std::vector<std::vector<Value>> results;
    for (Value array : origin.either) {
      for (NodeId id : origin.gradients) array = gradients_again(b_, b_.graph().node(id), array, done_);
      DTG_TRY(b_.status());
      DTG_ASSIGN(const ArrayGradients found, of(array));
      results.push_back({found.handle, found.flow});
    }
    const Node& call = b_.graph().node(origin.maker.node());
    DTG_ASSIGN(const Value chosen, choose_alike(b_, call, chooser_of(call), results));
    return ArrayGradients{chosen, chosen.sibling(1)};
  }

  GradContext& c_;
  Build& b_;
  const Value done_, arrived_;
  const bool in_derivative_;
};

}  // namespace

Result<ArrayGradients> gradients_of_array(GradContext& c, Value array, Value done, Value arrived) {
  return Finder(c, done, arrived).of(array);
}

bool is_callers_gradients(const Node& node) {
  return node.op->name() == "TensorArrayGradV3" && node.attr<std::string>("source") == kCallers;
}

Result<NamedArray> named_array(const Graph& graph, Value handle) {
  DTG_ASSIGN(const Origin origin, origin_of(graph, handle));
  NamedArray array = {origin.maker, {}};
  for (NodeId id : origin.gradients) {
    const Node& node = graph.node(id);
    ArrayStep step = {node.op->name(), node.attr<std::string>("source"), {}};
    if (node.inputs.size() > 2) {
      step.before = graph.constant_value(node.inputs[2]);
      if (!step.before.valid()) {
        return unimplemented("%s \"%s\": gradients of such an array, of an array that the function was given, need to know "
                             "shape_to_prepend: make it a constant",
                             node.op->name().c_str(), std::string(node.name).c_str());
      }
    }
    array.steps.push_back(std::move(step));
  }
  return array;
}

Value follow_steps(Build& b, Value array, std::span<const ArrayStep> steps) {
  for (const ArrayStep& step : steps) {
    std::vector<Value> inputs = {array, b.scalar(DType::f32, 0)};
    if (step.before.valid()) inputs.push_back(b.constant(step.before));
    const Attr source = {"source", AttrValue(step.source)};
    array = b.op(step.op.c_str(), inputs, {&source, 1});
  }
  return array;
}

}  // namespace dtg::ops
