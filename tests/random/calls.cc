// Taking parts of a scene for bodies.
#include "random/calls.h"

#include <algorithm>
#include <set>

#include "graph/build.h"

namespace dtg::random {

bool Calls::Piece::holds(int node) const { return std::ranges::binary_search(nodes, node); }

// A list that a call has worked on is where the call is, and that is where what it uses is.
bool Calls::is_tied(int node) const {
  std::vector<int> open = {node};
  std::set<int> seen;
  while (!open.empty()) {
    const int next = open.back();
    open.pop_back();
    if (!seen.insert(next).second) continue;
    for (const Port& input : w_.scene.nodes[static_cast<size_t>(next)].inputs) {
      if (w_.ops.find(w_.scene.nodes[static_cast<size_t>(input.node)].op)->role() == Role::handle) return true;
      if (w_.graph().info(w_.value(input)).dtype == DType::variant) open.push_back(input.node);
    }
  }
  return false;
}

// A body neither feeds nor makes what lives longer than it; what it uses lives in one place.
bool Calls::is_fit(int node) {
  const NodeRecord& record = w_.scene.nodes[static_cast<size_t>(node)];
  const OpDef& op = *w_.ops.find(record.op);
  if (op.role() == Role::feed || op.role() == Role::handle) return false;
  // An array of a run is read once, in an order of its own.
  if (record.op.starts_with("TensorArray")) return false;
  if (op.is_stateful() && w_.wishes.ordered) return false;
  // What only asks is ordered by control edges, which a body leaves behind.
  if (!record.inputs.empty() && op.access_of(0) == Access::ask) return false;
  std::optional<int> place = place_;
  const auto is_list = [](const ValueInfo& info) { return info.dtype == DType::variant; };
  bool lists = lists_ || std::ranges::any_of(w_.graph().node(w_.value({node, 0}).node()).outputs, is_list);
  for (const Port& input : record.inputs) {
    const NodeRecord& from = w_.scene.nodes[static_cast<size_t>(input.node)];
    const bool list = is_list(w_.graph().info(w_.value(input)));
    lists = lists || list;
    if (list && is_tied(input.node)) return false;
    if (w_.ops.find(from.op)->role() != Role::handle) continue;
    if (place.value_or(from.place) != from.place) return false;
    place = from.place;
  }
  // A list does not travel, so what is made with it has to be where it is.
  if (lists && place) return false;
  place_ = place;
  lists_ = lists;
  return true;
}

std::optional<Calls::Piece> Calls::piece(const std::function<bool(const Known&)>& wanted) {
  std::vector<Known> fit;
  for (size_t back = 0; back < w_.known.size() && back < 60; ++back) {
    const Known& known = w_.known[w_.known.size() - 1 - back];
    if (!w_.fed(known.port.node) && wanted(known)) fit.push_back(known);
  }
  if (fit.empty()) return {};
  Piece made;
  // What waits is seldom, and a body that does is worth having.
  std::vector<Known> calls;
  const bool waiting = w_.draw.chance(30);
  std::ranges::copy_if(fit, std::back_inserter(calls),
                       [&](const Known& known) { return waiting ? waits(known.port.node) : is_call(known.port.node); });
  made.result = w_.wishes.functions && !calls.empty() && w_.draw.chance(50) ? w_.draw.pick(calls).port : w_.draw.pick(fit).port;
  if (!is_fit(made.result.node)) return {};
  made.nodes = {made.result.node};
  const int64_t size = w_.draw.between(1, 14);
  for (size_t next = 0; next < made.nodes.size() && static_cast<int64_t>(made.nodes.size()) < size; ++next) {
    const NodeRecord& record = w_.scene.nodes[static_cast<size_t>(made.nodes[next])];
    std::vector<int> before = record.controls;
    for (const Port& input : record.inputs) before.push_back(input.node);
    for (int node : before) {
      if (std::ranges::find(made.nodes, node) == made.nodes.end() && w_.draw.chance(75) && is_fit(node)) made.nodes.push_back(node);
    }
  }
  std::ranges::sort(made.nodes);
  if (std::ranges::any_of(made.nodes, [&](int node) { return is_call(node); })) w_.count("call_within");
  if (std::ranges::any_of(made.nodes, [&](int node) { return waits(node); })) w_.count("body_that_waits");
  return made;
}

bool Calls::is_call(int node) const {
  const auto& attrs = w_.scene.nodes[static_cast<size_t>(node)].attrs;
  return std::ranges::any_of(
      attrs, [](const auto& attr) { return attr.second.kind() == AttrKind::function || attr.second.kind() == AttrKind::list_function; });
}

bool Calls::waits(int node) const { return w_.scene.nodes[static_cast<size_t>(node)].op.starts_with("QueueDe"); }

// Where there are accelerators, borders between them run through bodies; elsewhere these are wishes that nothing comes of. What deals
// with lists and resources is where they are.
const char* Calls::device_inside(int n) const {
  static constexpr const char* kDevices[] = {"", "", "/device:EMU:0", "/device:EMU:1", "/device:CPU:0"};
  const char* const device = kDevices[w_.draw.between(0, 4)];
  const auto holds = [](const ValueInfo& info) { return is_holder(info.dtype); };
  const auto& outputs = w_.graph().node(w_.value({n, 0}).node()).outputs;
  const auto& inputs = w_.scene.nodes[static_cast<size_t>(n)].inputs;
  const auto given = [&](const Port& port) { return holds(w_.graph().info(w_.value(port))); };
  return std::ranges::any_of(outputs, holds) || std::ranges::any_of(inputs, given) ? "" : device;
}

Result<Value> Calls::rebuild(Graph& body, const Piece& piece, Instead instead, std::vector<NodeId>* nodes) const {
  std::map<int, NodeId> here;
  const auto value_of = [&](const Port& port) {
    if (const auto at = instead.find({port.node, port.output}); at != instead.end()) return at->second;
    const auto at = here.find(port.node);
    return at == here.end() ? w_.value(port) : body.value(at->second, static_cast<uint32_t>(port.output));
  };
  for (int n : piece.nodes) {
    const NodeRecord& record = w_.scene.nodes[static_cast<size_t>(n)];
    std::vector<Value> inputs;
    for (const Port& port : record.inputs) inputs.push_back(value_of(port));
    std::vector<NodeId> controls;
    for (int control : record.controls) {
      if (const auto at = here.find(control); at != here.end()) controls.push_back(at->second);
    }
    std::vector<Attr> attrs;
    for (const auto& [name, value] : record.attrs) attrs.push_back({name, value});
    // What extends another node does so only beside that one.
    std::erase_if(attrs, [](const Attr& attr) { return attr.name == Graph::kExtendsAttr; });
    DTG_ASSIGN(here[n], body.add({.op = record.op, .device = device_inside(n), .inputs = inputs, .controls = controls, .attrs = attrs}));
    if (nodes) nodes->push_back(here[n]);
  }
  return value_of(piece.result);
}

Result<Closure> Calls::closure(const Piece& piece, std::span<const Port> arguments) {
  DTG_ASSIGN(Ref<Graph> body, Graph::create_inside(Ref<Graph>::share(&w_.graph())));
  Instead instead;
  for (const Port& port : arguments) {
    DTG_ASSIGN(const Value argument, body->add_argument(w_.graph().info(w_.value(port))));
    instead[{port.node, port.output}] = argument;
  }
  std::vector<NodeId> nodes;
  DTG_ASSIGN(const Value result, rebuild(*body, piece, std::move(instead), &nodes));
  std::vector<NodeId> controls;
  if (w_.draw.chance(20) && !nodes.empty()) controls.push_back(w_.draw.pick(nodes));
  return finish_function(std::move(body), "part", {result}, std::move(controls));
}

// A part that gives that, or a value as it is.
Result<Closure> Calls::branch(DType dtype, const Shape& shape) {
  const bool any_shape = w_.draw.chance(15);
  const auto fits = [&](const Known& known) { return known.tensor.dtype() == dtype && (any_shape || known.tensor.shape() == shape); };
  if (w_.draw.chance(80)) {
    if (const auto part = piece(fits)) return closure(*part, {});
  }
  const Port port = w_.wanted(dtype, shape);
  if (port.node < 0) return invalid_argument("no such value");
  return closure({{}, port}, {});
}

bool Calls::adopt(const Result<std::vector<Value>>& made, uint32_t before, const char* feature) {
  if (!made.ok() || !w_.adopt(before)) {
    w_.count("call_refused");
    return false;
  }
  w_.count(feature);
  return true;
}

void Calls::call() {
  const auto part = piece([](const Known&) { return true; });
  if (!part) return;
  std::vector<Port> arguments;
  for (int n : part->nodes) {
    for (const Port& input : w_.scene.nodes[static_cast<size_t>(n)].inputs) {
      if (!part->holds(input.node) && w_.draw.chance(40) && std::ranges::find(arguments, input) == arguments.end())
        arguments.push_back(input);
    }
  }
  auto function = closure(*part, arguments);
  if (!function.ok()) return w_.count("call_refused");
  // Others than those that the body was made with, where there are any.
  std::vector<Value> given;
  for (const Port& port : arguments) {
    const Tensor& usual = w_.tensor(port);
    const auto other =
        usual.valid() && w_.draw.chance(30) ? w_.find(usual.dtype(), usual.shape().rank(), usual.shape().rank()) : std::nullopt;
    given.push_back(w_.value(other && other->tensor.shape() == usual.shape() ? other->port : port));
  }
  const uint32_t before = w_.graph().node_count();
  adopt(add_call(w_.graph(), given, function.take()), before, "function_call");
}

void Calls::when() {
  const auto part = piece([](const Known&) { return true; });
  if (!part) return;
  const Port condition =
      w_.draw.chance(70) ? w_.wanted(w_.draw.chance(50) ? DType::boolean : DType::i32, Shape()) : w_.any(DType::f32, 0, 2);
  const Tensor result = w_.tensor(part->result);
  const Port spare = w_.draw.chance(30) ? w_.source(result.dtype(), result.shape()) : Port();
  auto yes = closure(*part, {});
  auto no = spare.node >= 0 ? closure({{}, spare}, {}) : branch(result.dtype(), result.shape());
  if (condition.node < 0 || !yes.ok() || !no.ok()) return w_.count("call_refused");
  if (w_.draw.chance(50)) std::swap(yes, no);
  const uint32_t before = w_.graph().node_count();
  adopt(add_if(w_.graph(), w_.value(condition), yes.take(), no.take()), before, "if");
}

void Calls::either() {
  const auto part = piece([](const Known&) { return true; });
  if (!part) return;
  const Tensor result = w_.tensor(part->result);
  const Port index = w_.wanted(DType::i32, Shape());
  std::vector<Closure> branches;
  for (int64_t i = w_.draw.between(1, 3); i > 0; --i) {
    auto one = branches.empty() ? closure(*part, {}) : branch(result.dtype(), result.shape());
    if (!one.ok()) return w_.count("call_refused");
    branches.push_back(one.take());
  }
  if (index.node < 0) return;
  const uint32_t before = w_.graph().node_count();
  adopt(add_case(w_.graph(), w_.value(index), std::move(branches)), before, "case");
}

Result<Closure> Calls::condition(std::span<const Value> like, Value limit, bool open) {
  DTG_ASSIGN(Ref<Graph> graph, Graph::create_inside(Ref<Graph>::share(&w_.graph())));
  std::vector<Value> arguments;
  for (size_t i = 0; i < like.size(); ++i) {
    ValueInfo info = w_.graph().info(like[i]);
    if (i == 1 && open) info.shape = PartialShape::unknown();
    DTG_ASSIGN(arguments.emplace_back(), graph->add_argument(info));
  }
  Build b(*graph);
  const Value less = b.op("Less", {arguments[0], limit});
  DTG_TRY(b.status());
  return finish_function(std::move(graph), "condition", {less});
}

// What a round made goes through an array that lives as long as the round, beside what it was made of.
Value Calls::through_array(Build& b, Value value, Value other) {
  const ValueInfo info = b.info(value);
  const Attr type{"dtype", info.dtype};
  const bool told = w_.draw.chance(50), cut = info.shape.has_rank() && info.shape.rank() > 0 && w_.draw.chance(30);
  const PartialShape shape = told && !cut ? info.shape : PartialShape::unknown();
  const Value array =
      b.op("TensorArrayV3", {b.integer(w_.draw.between(2, 4))},
           {type, {"element_shape", shape}, {"clear_after_read", w_.draw.chance(50)}, {"dynamic_size", w_.draw.chance(30)}});
  if (!b.ok()) return {};
  w_.count("array_in_body");
  Value flow = array.sibling(1);
  if (!cut && w_.draw.chance(50) && (!told || b.info(other).shape == shape)) {
    flow = b.op("TensorArrayWriteV3", {array, b.integer(1), other, flow});
  }
  if (!cut) return b.op("TensorArrayReadV3", {array, b.integer(0), b.op("TensorArrayWriteV3", {array, b.integer(0), value, flow})}, {type});
  // Row by row, backwards and back again.
  const Value rows = b.op("StridedSlice", {b.shape(value), b.ints({0}), b.ints({1}), b.ints({1})}, {{"shrink_axis_mask", int64_t{1}}});
  const Value own = b.op("TensorArrayV3", {rows}, {type}), last = b.sub(rows, b.integer(1));
  const Value places = b.op("Range", {last, b.integer(-1), b.integer(-1)});
  if (!b.ok()) return {};
  const Value all = b.op("TensorArrayScatterV3", {own, places, value, own.sibling(1)});
  return b.op("TensorArrayGatherV3", {own, places, all}, {type});
}

// What a round puts into its list: the result, the argument, or what the result is made of, in whose place it may not be written then.
Value Calls::element_of(Build& b, Value& result, Value argument) {
  if (!b.ok() || !dtype_is_floating(b.info(result).dtype) || !w_.draw.chance(40)) return w_.draw.chance(50) ? result : argument;
  w_.count("element_of_a_round");
  const Value element = b.neg(result);
  result = b.neg(element);
  return element;
}

// The counter, the variable that the part changes, and perhaps a list of what it was.
Result<Closure> Calls::round(std::span<const Value> like, const Piece& piece, const Port& variable, bool open, bool listed) {
  DTG_ASSIGN(Ref<Graph> graph, Graph::create_inside(Ref<Graph>::share(&w_.graph())));
  std::vector<Value> arguments;
  for (size_t i = 0; i < like.size(); ++i) {
    ValueInfo info = w_.graph().info(like[i]);
    if (i == 1 && open) info.shape = PartialShape::unknown();
    DTG_ASSIGN(arguments.emplace_back(), graph->add_argument(info));
  }
  Build b(*graph);
  std::vector<Value> results = {b.add(arguments[0], b.integer(1))};
  DTG_ASSIGN(results.emplace_back(), rebuild(*graph, piece, {{{variable.node, variable.output}, arguments[1]}}, nullptr));
  if (dtype_is_floating(b.info(results[1]).dtype) && w_.draw.chance(25)) results[1] = through_array(b, results[1], arguments[1]);
  if (listed) {
    const Value element = element_of(b, results[1], arguments[1]);
    results.push_back(b.op("TensorListPushBack", {arguments[2], element}));
  }
  DTG_TRY(b.status());
  return finish_function(std::move(graph), "round", std::move(results));
}

void Calls::loop() {
  const auto part = piece([](const Known& known) { return known.tensor.valid(); });
  if (!part) return;
  const Tensor result = w_.tensor(part->result);
  // The variable is something that the part uses and that looks like what it gives.
  std::vector<Port> fit;
  const bool open = w_.draw.chance(20);
  for (int n : part->nodes) {
    for (const Port& input : w_.scene.nodes[static_cast<size_t>(n)].inputs) {
      const Tensor& tensor = w_.tensor(input);
      if (tensor.valid() && tensor.dtype() == result.dtype() && (open || tensor.shape() == result.shape())) fit.push_back(input);
    }
  }
  if (fit.empty()) return w_.count("no_loop_variable");
  const Port variable = w_.draw.pick(fit);
  const Port zero = w_.ints(DType::i32, {0}, true), limit = w_.ints(DType::i32, {w_.draw.between(0, 4)}, true);
  if (zero.node < 0 || limit.node < 0) return;
  const bool listed = w_.draw.chance(35);
  const uint32_t before = w_.graph().node_count();
  Build b(w_.graph());
  std::vector<Value> start = {w_.value(zero), w_.value(variable)};
  if (listed) start.push_back(b.op("EmptyTensorList", {b.integer(-1), b.integer(-1)}, {{"element_dtype", result.dtype()}}));
  auto test = condition(start, w_.value(limit), open && w_.draw.chance(85));
  auto body = round(start, *part, variable, open, listed);
  if (!b.ok() || !test.ok() || !body.ok()) {
    w_.adopt(before);
    return w_.count("call_refused");
  }
  auto made = add_while(w_.graph(), start, test.take(), body.take());
  if (listed && made.ok()) {
    const Value list = made.value()[2];
    if (w_.draw.chance(60)) b.op("TensorListStack", {list, b.integer(-1)}, {{"element_dtype", result.dtype()}});
    else b.op("TensorListGetItem", {list, b.integer(0), b.integer(-1)}, {{"element_dtype", result.dtype()}});
    b.op("TensorListLength", {list});
  }
  adopt(made, before, listed ? "while_with_list" : open ? "while_open" : "while");
}

// A value cut into pieces, as a list or as an array of the run, and put together again.
void Calls::pieces() {
  const auto known = w_.find(w_.draw.chance(70) ? DType::f32 : DType::f64, 1, 3);
  if (!known || w_.fed(known->port.node)) return;
  const DType dtype = known->tensor.dtype();
  std::vector<int64_t> lengths;
  for (int64_t left = known->tensor.shape().dim(0); left > 0; left -= lengths.back()) lengths.push_back(w_.draw.between(0, left));
  const uint32_t before = w_.graph().node_count();
  Build b(w_.graph());
  const Value x = w_.value(known->port), sizes = b.ints(lengths, DType::i64), any = b.integer(-1);
  const auto count = static_cast<int64_t>(lengths.size());
  const Attr element{"element_dtype", dtype}, type{"dtype", dtype};
  const bool listed = w_.draw.chance(50);
  if (listed) {
    Value list = b.op("TensorListSplit", {x, any, sizes});
    if (w_.draw.chance(40)) list = b.op("TensorListConcatLists", {list, b.op("TensorListSplit", {x, any, sizes})}, {element});
    if (w_.draw.chance(30)) list = b.op("TensorListResize", {list, b.integer(w_.draw.between(0, 2 * count + 1))});
    if (w_.draw.chance(30)) {
      const Value row = b.op("ExpandDims", {x, b.integer(0)}), place = b.ints({w_.draw.between(0, count)});
      list = b.op("TensorListScatterIntoExistingList", {list, row, place});
    }
    const std::vector<int64_t> leading(static_cast<size_t>(2 * count + 1), w_.draw.between(0, 3));
    if (w_.draw.chance(80)) b.op("TensorListConcatV2", {list, any, b.ints(leading, DType::i64)}, {element});
    else b.op("TensorListConcat", {list}, {element});
  } else {
    const bool keeps = w_.draw.chance(70), grows = w_.draw.chance(30);
    const Value array =
        b.op("TensorArrayV3", {b.integer(grows ? 0 : count)}, {type, {"dynamic_size", grows}, {"clear_after_read", !keeps}});
    if (!b.ok()) return;
    Value flow = b.op("TensorArraySplitV3", {array, x, sizes, array.sibling(1)});
    if (count > 0 && w_.draw.chance(60)) b.op("TensorArrayReadV3", {array, b.integer(w_.draw.below(count)), flow}, {type});
    if (grows) flow = b.op("TensorArrayWriteV3", {array, b.integer(count), x, flow});
    if (w_.draw.chance(80)) b.op("TensorArrayConcatV3", {array, flow}, {type});
    b.op("TensorArraySizeV3", {array, flow});
  }
  if (!b.ok()) {
    w_.adopt(before);
    return w_.count("call_refused");
  }
  adopt(std::vector<Value>(), before, listed ? "list_of_pieces" : "array_of_pieces");
}

void Calls::make() {
  place_.reset();
  lists_ = false;
  switch (w_.draw.below(6)) {
    case 5: return pieces();
    case 0: return call();
    case 1: return when();
    case 2: return either();
    default: return loop();
  }
}

}  // namespace dtg::random
