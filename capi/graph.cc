// dtg/graph.h: reads op specs, attributes and scopes of the host into calls of graph/; names, shapes, gradients and
// serialised bytes of it out again. One thread at a time adds to a graph; any may read.
#include "dtg/graph.h"

#include <memory_resource>
#include <vector>

#include "capi/cluster.h"
#include "capi/graph.h"
#include "graph/device_name.h"
#include "graph/gradient.h"
#include "graph/recompute.h"
#include "graph/refusal.h"
#include "strategy/device_setter.h"
#include "wire/graph_codec.h"

namespace dtg::capi {
namespace {

using Strings = std::vector<std::string>;
// What is read of one node mostly fits on the stack.
using Room = std::pmr::monotonic_buffer_resource;
constexpr size_t kRoomBytes = 2048;

Result<PartialShape> read_shape(const int64_t* dims, size_t rank) {
  if (rank == DTG_STRLEN) return PartialShape::unknown();
  if (rank > kRankMax) return invalid_argument("a shape of rank %zu: at most %d is supported", rank, kRankMax);
  DTG_TRY(require_array(dims, rank, "ints"));
  return PartialShape::make({dims, rank});
}

Result<DType> read_dtype(int64_t number) {
  if (number < 0 || number > 1000 || !dtype_is_known(static_cast<int32_t>(number))) {
    return invalid_argument("%lld is not an element type", static_cast<long long>(number));
  }
  return static_cast<DType>(number);
}

Result<bool> read_bool(int64_t number) {
  if (number != 0 && number != 1) return invalid_argument("a BOOL is 0 or 1, but %lld was given", static_cast<long long>(number));
  return number == 1;
}

Result<AttrValue> read_list(const dtg_attr& a) {
  if (a.count > (size_t{1} << 24)) return resource_exhausted("a list of %zu entries", a.count);
  const bool reals = a.kind == DTG_ATTR_LIST_FLOAT, words = a.kind == DTG_ATTR_LIST_STRING;
  if (words) DTG_TRY(require_array(a.strings, a.count, "strings"));
  else if (reals) DTG_TRY(require_array(a.floats, a.count, "floats"));
  else if (a.kind == DTG_ATTR_LIST_SHAPE) DTG_TRY(require_array(a.lens, a.count, "lens"));
  else DTG_TRY(require_array(a.ints, a.count, "ints"));
  switch (a.kind) {
    case DTG_ATTR_LIST_INT: return AttrValue(std::vector<int64_t>(a.ints, a.ints + a.count));
    case DTG_ATTR_LIST_FLOAT: return AttrValue(AttrValue::Variant(std::vector<double>(a.floats, a.floats + a.count)));
    case DTG_ATTR_LIST_BOOL: {
      std::vector<bool> list;
      for (size_t i = 0; i < a.count; ++i) {
        DTG_ASSIGN(const bool one, read_bool(a.ints[i]));
        list.push_back(one);
      }
      return AttrValue(AttrValue::Variant(std::move(list)));
    }
    case DTG_ATTR_LIST_TYPE: {
      std::vector<DType> list;
      for (size_t i = 0; i < a.count; ++i) {
        DTG_ASSIGN(const DType dtype, read_dtype(a.ints[i]));
        list.push_back(dtype);
      }
      return AttrValue(std::move(list));
    }
    case DTG_ATTR_LIST_SHAPE: {
      std::vector<PartialShape> list;
      const int64_t* dims = a.ints;
      for (size_t i = 0; i < a.count; ++i) {
        DTG_ASSIGN(PartialShape shape, read_shape(dims, a.lens[i]));
        if (a.lens[i] != DTG_STRLEN) dims += a.lens[i];
        list.push_back(std::move(shape));
      }
      return AttrValue(std::move(list));
    }
    default: {
      Strings list;
      for (size_t i = 0; i < a.count; ++i) {
        if (!a.lens || a.lens[i] != 0) DTG_TRY(require(a.strings[i], "an entry of strings"));
        list.emplace_back(text(a.strings[i], a.lens ? a.lens[i] : DTG_STRLEN));
      }
      return AttrValue(AttrValue::Variant(std::move(list)));
    }
  }
}

Result<AttrValue> read_function(const dtg_attr& a, size_t i) {
  DTG_TRY(require(a.functions, "functions"));
  const Held<FunctionObject> function(a.functions[i], HandleType::function);
  DTG_TRY(function.status());
  return AttrValue(FunctionRef(function->closure.function));
}

Result<AttrValue> read_value(const dtg_attr& a) {
  switch (a.kind) {
    case DTG_ATTR_INT: return AttrValue(a.i);
    case DTG_ATTR_FLOAT: return AttrValue(a.f);
    case DTG_ATTR_BOOL: {
      DTG_ASSIGN(const bool one, read_bool(a.i));
      return AttrValue(one);
    }
    case DTG_ATTR_TYPE: {
      DTG_ASSIGN(const DType dtype, read_dtype(a.i));
      return AttrValue(dtype);
    }
    case DTG_ATTR_SHAPE: {
      DTG_ASSIGN(PartialShape shape, read_shape(a.ints, a.count));
      return AttrValue(std::move(shape));
    }
    case DTG_ATTR_STRING: {
      if (a.s_len != 0) DTG_TRY(require(a.s, "s"));
      return AttrValue(std::string(text(a.s, a.s_len)));
    }
    case DTG_ATTR_TENSOR: {
      const Held<TensorObject> tensor(a.tensor, HandleType::tensor);
      DTG_TRY(tensor.status());
      return AttrValue(tensor->tensor);
    }
    case DTG_ATTR_LIST_INT:
    case DTG_ATTR_LIST_FLOAT:
    case DTG_ATTR_LIST_BOOL:
    case DTG_ATTR_LIST_TYPE:
    case DTG_ATTR_LIST_SHAPE:
    case DTG_ATTR_LIST_STRING: return read_list(a);
    case DTG_ATTR_FUNC: return read_function(a, 0);
    case DTG_ATTR_LIST_FUNC: {
      if (a.count > (size_t{1} << 16)) return resource_exhausted("a list of %zu functions", a.count);
      std::vector<FunctionRef> list;
      for (size_t i = 0; i < a.count; ++i) {
        DTG_ASSIGN(const AttrValue one, read_function(a, i));
        list.push_back(*one.get<FunctionRef>());
      }
      return AttrValue(std::move(list));
    }
    default: return invalid_argument("%d is not a kind of attribute; use the DTG_ATTR_ constants", a.kind);
  }
}

Status read_attrs(const dtg_op_spec& spec, std::pmr::vector<Attr>& attrs) {
  DTG_TRY(require_array(spec.attrs, spec.num_attrs, "attrs"));
  const size_t stride = spec.attr_stride ? spec.attr_stride : sizeof(dtg_attr);
  if (spec.num_attrs > 1000) return invalid_argument("%zu attributes for one node", spec.num_attrs);
  if (stride < sizeof(size_t) || stride % alignof(dtg_attr) != 0)
    return invalid_argument("attr_stride is %zu; it must be sizeof(dtg_attr)", stride);
  const auto* at = reinterpret_cast<const char*>(spec.attrs);
  for (size_t i = 0; i < spec.num_attrs; ++i, at += stride) {
    dtg_attr attr = DTG_ATTR_INIT;
    // Before its tail is looked at: beyond the stride lies the next one, or nothing.
    size_t size = 0;
    std::memcpy(&size, at, sizeof size);
    if (size > stride) return invalid_argument("dtg_attr: struct_size is %zu, more than attr_stride %zu", size, stride);
    DTG_TRY(read_struct(reinterpret_cast<const dtg_attr*>(at), sizeof(dtg_attr), "dtg_attr", &attr));
    DTG_TRY(require(attr.name, "the name of an attribute"));
    const std::string_view name = text(attr.name, attr.name_len);
    auto value = read_value(attr);
    if (!value.ok()) return value.status().with_context("attribute \"" + std::string(name) + "\"");
    attrs.push_back({name, value.take()});
  }
  return {};
}

// Room for so many; none is taken for none.
template <class T>
std::span<T> take(size_t count, Room& room) {
  static_assert(std::is_trivially_copyable_v<T>);
  return count ? std::span(static_cast<T*>(room.allocate(count * sizeof(T), alignof(T))), count) : std::span<T>();
}

Status read_values(const dtg_value* values, size_t count, const char* what, Room& room, std::span<const Value>& into) {
  DTG_TRY(require_array(values, count, what));
  if (count > kNodesMax) return invalid_argument("%s: a count of %zu cannot be right", what, count);
  const std::span<Value> list = take<Value>(count, room);
  for (size_t i = 0; i < count; ++i) list[i] = value_of(values[i]);
  into = list;
  return {};
}

Status read_nodes(const Graph& graph, const dtg_value* values, size_t count, const char* what, Room& room, std::span<const NodeId>& into) {
  if (count == 0) return {};
  DTG_TRY(require_array(values, count, what));
  if (count > kNodesMax) return invalid_argument("%s: a count of %zu cannot be right", what, count);
  const std::span<NodeId> nodes = take<NodeId>(count, room);
  for (size_t i = 0; i < count; ++i) {
    const Value value = value_of(values[i]);
    if (const Status status = check_owner(graph, value); !status.ok()) return status.with_context(what + (" " + std::to_string(i)));
    nodes[i] = value.node();
  }
  into = nodes;
  return {};
}

// The lists of a spec, read into the room; they become those of `node`.
Status read_lists(const Graph& graph, const dtg_op_spec& spec, Room& room, std::pmr::vector<Attr>& attrs, NodeSpec& node) {
  DTG_TRY(require(spec.type, "type"));
  DTG_TRY(read_values(spec.inputs, spec.num_inputs, "inputs", room, node.inputs));
  DTG_TRY(read_nodes(graph, spec.controls, spec.num_controls, "controls", room, node.controls));
  DTG_TRY(read_nodes(graph, spec.colocate, spec.num_colocate, "colocate", room, node.colocate));
  DTG_TRY(read_attrs(spec, attrs));
  node.attrs = attrs;
  // Names that begin with an underscore are the planner's own ops.
  const std::string_view type = text(spec.type, spec.type_len);
  if (type.starts_with("_")) return not_found("no op \"%.*s\": names that begin with _ are private", int(type.size()), type.data());
  return {};
}

Status add_op(Graph& graph, const dtg_op_spec* given, dtg_value* outs, size_t num_outs) {
  dtg_op_spec spec = DTG_OP_SPEC_INIT;
  Status read = read_struct(given, sizeof(dtg_op_spec), "dtg_op_spec", &spec);
  if (read.ok()) read = require_array(outs, num_outs, "outs");
  alignas(std::max_align_t) char stack[kRoomBytes];
  Room room(stack, sizeof stack);
  NodeSpec node = {.op = text(spec.type, spec.type_len),
                   .name = text(spec.name, spec.name_len),
                   .device = text(spec.device, spec.device_len),
                   .location = text(spec.location, spec.location_len)};
  std::pmr::vector<Attr> attrs(&room);
  if (read.ok()) read = read_lists(graph, spec, room, attrs, node);
  if (!read.ok()) return refuse_node(name_of_refused(graph, node), node.location, node.op.empty() ? read : read.with_context(node.op));
  DTG_ASSIGN(const NodeId id, graph.add(node));
  const Node& added = graph.node(id);
  const size_t have = std::max<size_t>(added.outputs.size(), 1);
  if (num_outs > have) {
    return refuse_node(
        added.name, node.location,
        invalid_argument("%s has %zu outputs, room for %zu was given; the node was added", added.op->name().c_str(), have, num_outs));
  }
  for (size_t i = 0; i < num_outs; ++i) outs[i] = to_c(graph.value(id, static_cast<uint32_t>(i)));
  return {};
}

Status gradients(Graph& graph, const dtg_value* ys, size_t num_ys, const dtg_value* xs, size_t num_xs, const dtg_value* grad_ys,
                 dtg_gradient* out) {
  DTG_TRY(require_array(out, num_xs, "out"));
  Room room;
  std::span<const Value> y_list, x_list, weights;
  DTG_TRY(read_values(ys, num_ys, "ys", room, y_list));
  DTG_TRY(read_values(xs, num_xs, "xs", room, x_list));
  if (grad_ys) DTG_TRY(read_values(grad_ys, num_ys, "grad_ys", room, weights));
  if (y_list.empty()) return invalid_argument("gradients: no value to differentiate was given");
  DTG_ASSIGN(const auto result, add_gradients(graph, y_list, x_list, weights));
  for (size_t i = 0; i < result.size(); ++i) {
    out[i] = {to_c(result[i].dense), to_c(result[i].values), to_c(result[i].indices), to_c(result[i].dense_shape)};
  }
  return {};
}

// Runs `fn` on the graph behind a handle.
template <class Handle, class Fn>
dtg_error* with_graph(Handle* handle, Fn&& fn) noexcept {
  return guard([&]() -> Status {
    const Held<GraphObject> held(handle, HandleType::graph);
    DTG_TRY(held.status());
    return fn(*held->graph);
  });
}

// The same for a call that adds nodes or changes scopes.
template <class Fn>
dtg_error* change_graph(dtg_graph* handle, Fn&& fn) noexcept {
  return change_graph_object(handle, [&](GraphObject& object) -> Status { return fn(*object.graph); });
}

// As above, for a call about one node, of the graph or of one around it.
template <class Fn>
dtg_error* with_node(const dtg_graph* handle, dtg_value value, const void* out, Fn&& fn) noexcept {
  return with_graph(handle, [&](Graph& graph) -> Status {
    DTG_TRY(require(out, "out"));
    Graph* owner = &graph;
    while (owner && owner->tag() != value_of(value).tag()) owner = owner->outer();
    if (!owner) owner = &graph;  // whose error it is
    DTG_TRY(check_owner(*owner, value_of(value)));
    return fn(*owner, owner->node(value_of(value).node()));
  });
}

void give_text(std::string_view from, const char** out, size_t* length) {
  *out = from.empty() ? "" : from.data();
  if (length) *length = from.size();
}

// The ps tasks of a setter: those of the cluster's job, or as many as it says.
Status read_ps_tasks(const dtg_device_setter& c, DeviceSetter::Options& options) {
  if (!c.cluster) {
    if (c.ps_tasks < 0 || c.ps_tasks > static_cast<int32_t>(ClusterSpec::kTasksMax)) {
      return invalid_argument("push a device setter: ps_tasks is %d; it is a number from 0 to %zu", c.ps_tasks, ClusterSpec::kTasksMax);
    }
    for (int task = 0; task < c.ps_tasks; ++task) options.tasks.push_back(task);
    return {};
  }
  const Held<ClusterObject> cluster(c.cluster, HandleType::cluster);
  DTG_TRY(cluster.status());
  if (!options.ps_device.job) {
    return invalid_argument("push a device setter: ps_device \"%s\" names no job of the cluster", options.ps_device.text().c_str());
  }
  for (const ClusterSpec::Task& task : cluster->spec.tasks()) {
    if (task.job == *options.ps_device.job) options.tasks.push_back(task.index);
  }
  return {};
}

// Workers that share no variables wait in the end for what only the chief has.
void tell_apart(const GraphObject& object, const dtg_device_setter& c) {
  const Held<ClusterObject> cluster(c.cluster, HandleType::cluster);
  LogSink* const log = object.runtime->seams().log;
  if (!cluster || !log) return;
  size_t workers = 0;
  for (const ClusterSpec::Task& task : cluster->spec.tasks()) workers += task.job == "worker" || task.job == "chief";
  if (workers < 2) return;
  log->write(LogLevel::warn, "graph",
             format("a device setter changes nothing: the cluster has %zu workers, and no parameter server to keep the variables that they "
                    "are to share; each has its own. Start one, as by `dtg run --ps 1`",
                    workers));
}

Result<DeviceSetter::Options> read_setter(const GraphObject& object, const dtg_device_setter* given) {
  dtg_device_setter c = DTG_DEVICE_SETTER_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_device_setter), "dtg_device_setter", &c));
  if (c.strategy != DTG_SETTER_ROUND_ROBIN && c.strategy != DTG_SETTER_GREEDY_BYTES) {
    return invalid_argument("push a device setter: strategy %d is none; it is one of DTG_SETTER_...", c.strategy);
  }
  if (c.keep_explicit < 0 || c.keep_explicit > 1 || c.reserved != 0) {
    return invalid_argument("push a device setter: keep_explicit must be 0 or 1, reserved 0");
  }
  DTG_TRY(require_array(c.ps_ops, c.num_ps_ops, "ps_ops"));
  DeviceSetter::Options options;
  DTG_ASSIGN(options.ps_device, DeviceName::parse_spec(c.ps_device ? c.ps_device : "/job:ps"));
  DTG_ASSIGN(options.worker_device, DeviceName::parse_spec(c.worker_device ? c.worker_device : "/job:worker"));
  options.keep_explicit = c.keep_explicit == 1;
  options.choice = c.strategy == DTG_SETTER_GREEDY_BYTES ? DeviceSetter::Choice::greedy_bytes : DeviceSetter::Choice::round_robin;
  for (size_t i = 0; i < c.num_ps_ops; ++i) {
    DTG_TRY(require(c.ps_ops[i], "an entry of ps_ops"));
    options.ps_ops.emplace_back(c.ps_ops[i]);
  }
  DTG_TRY(read_ps_tasks(c, options));
  if (c.cluster && options.tasks.empty()) tell_apart(object, c);
  return options;
}

}  // namespace
}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_graph_create(dtg_runtime* runtime, dtg_graph** out) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(Ref<Runtime> held, runtime_of(runtime));
    DTG_ASSIGN(Ref<Graph> graph, Graph::create(&held->ops()));
    return give(HandleType::graph, make_ref<GraphObject>(std::move(held), std::move(graph)), out);
  });
}
dtg_graph* dtg_graph_retain(dtg_graph* graph) noexcept { return retain_handle(graph, HandleType::graph); }
void dtg_graph_release(dtg_graph* graph) noexcept { release_handle(graph, HandleType::graph); }

dtg_error* dtg_graph_add_op(dtg_graph* handle, const dtg_op_spec* spec, dtg_value* outs, size_t num_outs) noexcept {
  return change_graph(handle, [&](Graph& graph) { return add_op(graph, spec, outs, num_outs); });
}

size_t dtg_graph_node_count(const dtg_graph* graph) noexcept {
  const Held<GraphObject> held(graph, HandleType::graph);
  return held ? held->graph->node_count() : 0;
}

dtg_error* dtg_graph_node_at(const dtg_graph* handle, size_t index, dtg_value* out) noexcept {
  return with_graph(handle, [&](Graph& graph) -> Status {
    DTG_TRY(require(out, "out"));
    if (index >= graph.node_count()) return out_of_range("node %lld: the graph has %u", static_cast<long long>(index), graph.node_count());
    *out = to_c(graph.value(static_cast<NodeId>(index)));
    return {};
  });
}

dtg_error* dtg_graph_find(const dtg_graph* handle, const char* name, size_t name_len, dtg_value* out) noexcept {
  return with_graph(handle, [&](Graph& graph) -> Status {
    DTG_ASSIGN(const std::string_view wanted, read_name(name, name_len, "name"));
    DTG_TRY(require(out, "out"));
    if (const NodeId id = graph.find(wanted); id != kNoNode) {
      *out = to_c(graph.value(id));
      return {};
    }
    DTG_ASSIGN(const Value value, graph.parse_value(wanted));
    *out = to_c(value);
    return {};
  });
}

dtg_error* dtg_value_name(const dtg_graph* handle, dtg_value value, const char** out, size_t* length) noexcept {
  return with_node(handle, value, out, [&](Graph&, const Node& node) -> Status {
    give_text(node.name, out, length);
    return {};
  });
}
dtg_error* dtg_value_op(const dtg_graph* handle, dtg_value value, const char** out, size_t* length) noexcept {
  return with_node(handle, value, out, [&](Graph&, const Node& node) -> Status {
    give_text(node.op->name(), out, length);
    return {};
  });
}
dtg_error* dtg_value_device(const dtg_graph* handle, dtg_value value, const char** out, size_t* length) noexcept {
  return with_node(handle, value, out, [&](Graph&, const Node& node) -> Status {
    give_text(node.device, out, length);
    return {};
  });
}

dtg_error* dtg_value_num_outputs(const dtg_graph* handle, dtg_value value, size_t* out) noexcept {
  return with_node(handle, value, out, [&](Graph&, const Node& node) -> Status {
    *out = node.outputs.size();
    return {};
  });
}

dtg_error* dtg_value_output(const dtg_graph* handle, dtg_value value, size_t i, dtg_value* out) noexcept {
  return with_node(handle, value, out, [&](Graph& graph, const Node& node) -> Status {
    if (i >= node.outputs.size())
      return out_of_range("output %lld: \"%s\" has %zu", static_cast<long long>(i), std::string(node.name).c_str(), node.outputs.size());
    *out = to_c(graph.value(node.id, static_cast<uint32_t>(i)));
    return {};
  });
}

dtg_error* dtg_value_dtype(const dtg_graph* handle, dtg_value value, dtg_dtype* out) noexcept {
  return with_node(handle, value, out, [&](Graph& graph, const Node&) -> Status {
    DTG_TRY(graph.check(value_of(value)));
    *out = static_cast<dtg_dtype>(graph.info(value_of(value)).dtype);
    return {};
  });
}

dtg_error* dtg_value_shape(const dtg_graph* handle, dtg_value value, int64_t* dims, size_t cap, int32_t* rank) noexcept {
  return with_node(handle, value, rank, [&](Graph& graph, const Node&) -> Status {
    DTG_TRY(require_array(dims, cap, "dims"));
    DTG_TRY(graph.check(value_of(value)));
    const ValueInfo& info = graph.info(value_of(value));
    // A handle is a scalar; what it holds is another matter.
    const PartialShape shape = is_holder(info.dtype) ? PartialShape::scalar() : info.shape;
    *rank = shape.rank();
    for (size_t i = 0; i < shape.dims().size() && i < cap; ++i) dims[i] = shape.dims()[i];
    return {};
  });
}

dtg_error* dtg_graph_push_name_scope(dtg_graph* handle, const char* name, size_t name_len) noexcept {
  return change_graph(handle, [&](Graph& graph) -> Status {
    DTG_TRY(check_name(text(name, name_len), "name"));
    DTG_TRY(graph.check_name_scope(text(name, name_len)));
    graph.push_name_scope(text(name, name_len));
    return {};
  });
}
dtg_error* dtg_graph_pop_name_scope(dtg_graph* handle) noexcept {
  return change_graph(handle, [](Graph& graph) { return graph.pop_name_scope(); });
}
dtg_error* dtg_graph_push_device(dtg_graph* handle, const char* device, size_t device_len) noexcept {
  return change_graph(handle, [&](Graph& graph) -> Status {
    DTG_TRY(check_name(text(device, device_len), "device"));
    DTG_ASSIGN(const DeviceName name, DeviceName::parse_spec(text(device, device_len)));
    graph.push_device(device && name.empty() ? "/" : name.text());
    return {};
  });
}
dtg_error* dtg_graph_push_device_setter(dtg_graph* handle, const dtg_device_setter* setter) noexcept {
  return change_graph_object(handle, [&](GraphObject& object) -> Status {
    DTG_ASSIGN(DeviceSetter::Options options, read_setter(object, setter));
    object.graph->push_device_function(make_ref<DeviceSetter>(std::move(options)));
    return {};
  });
}

dtg_error* dtg_graph_pop_device(dtg_graph* handle) noexcept {
  return change_graph(handle, [](Graph& graph) { return graph.pop_device(); });
}
dtg_error* dtg_graph_push_controls(dtg_graph* handle, const dtg_value* values, size_t num_values) noexcept {
  return change_graph(handle, [&](Graph& graph) -> Status {
    Room room;
    std::span<const NodeId> nodes;
    DTG_TRY(read_nodes(graph, values, num_values, "values", room, nodes));
    graph.push_controls(nodes);
    return {};
  });
}
dtg_error* dtg_graph_pop_controls(dtg_graph* handle) noexcept {
  return change_graph(handle, [](Graph& graph) { return graph.pop_controls(); });
}
dtg_error* dtg_graph_push_colocation(dtg_graph* handle, dtg_value value) noexcept {
  return change_graph(handle, [&](Graph& graph) -> Status {
    DTG_TRY(check_owner(graph, value_of(value)));
    graph.push_colocation(value_of(value).node());
    return {};
  });
}
dtg_error* dtg_graph_pop_colocation(dtg_graph* handle) noexcept {
  return change_graph(handle, [](Graph& graph) { return graph.pop_colocation(); });
}
dtg_error* dtg_graph_push_recompute(dtg_graph* handle) noexcept { return change_graph(handle, open_recompute); }
dtg_error* dtg_graph_pop_recompute(dtg_graph* handle) noexcept { return change_graph(handle, close_recompute); }

dtg_error* dtg_graph_add_gradients(dtg_graph* handle, const dtg_value* ys, size_t num_ys, const dtg_value* xs, size_t num_xs,
                                   const dtg_value* grad_ys, dtg_gradient* out) noexcept {
  return change_graph(handle, [&](Graph& graph) { return gradients(graph, ys, num_ys, xs, num_xs, grad_ys, out); });
}

dtg_error* dtg_graph_densify(dtg_graph* handle, const dtg_gradient* gradient, dtg_value* out) noexcept {
  return change_graph(handle, [&](Graph& graph) -> Status {
    DTG_TRY(require(gradient, "gradient"));
    DTG_TRY(require(out, "out"));
    const Gradient given{value_of(gradient->dense), value_of(gradient->values), value_of(gradient->indices),
                         value_of(gradient->dense_shape)};
    if (!given.any()) return invalid_argument("densify: the gradient is neither dense nor rows; no path leads there");
    for (Value part : {given.dense, given.values, given.indices, given.dense_shape}) {
      if (part.valid()) DTG_TRY(graph.check(part));
    }
    if (given.is_rows() && (!given.indices.valid() || !given.dense_shape.valid()))
      return invalid_argument("densify: rows need indices and dense_shape");
    Build build(graph);
    const Value dense = densify(build, given);
    DTG_TRY(build.status());
    *out = to_c(dense);
    return {};
  });
}

dtg_error* dtg_graph_serialize(const dtg_graph* handle, dtg_string** out) noexcept {
  return with_graph(handle, [&](Graph& graph) -> Status {
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(std::string bytes, encode_graph(graph));
    return give(HandleType::string, make_ref<StringObject>(std::move(bytes)), out);
  });
}

dtg_error* dtg_graph_import(dtg_graph* handle, const void* bytes, size_t nbytes) noexcept {
  return guard([&]() -> Status {
    const Held<GraphObject> held(handle, HandleType::graph);
    DTG_TRY(held.status());
    DTG_TRY(require(bytes, "bytes"));
    const Owner::Turn turn(held->owner, Owner::Use::change);
    DTG_TRY(turn.status("graph"));
    if (held->graph->node_count() != 0) return failed_precondition("import: the graph has nodes; import into an empty one");
    return decode_graph({static_cast<const char*>(bytes), nbytes}, *held->graph, *held->runtime->seams().budget);
  });
}

}  // extern "C"
