// The adding half of Graph: resolves names and scopes, attributes (given, inferred from the inputs, or defaults),
// types, contract and shapes of a new node. Everything is decided on a draft under the graph's lock; only a node
// that passed takes memory and becomes visible.
#include <algorithm>
#include <bit>

#include "graph/infer.h"
#include "graph/known.h"
#include "graph/planned.h"
#include "graph/refusal.h"

namespace dtg {
namespace {

// How many values an argument stands for, from the attributes known so far; -1 when not known yet.
int64_t arg_count(const ArgDef& arg, std::span<const Attr> attrs, std::span<const char> known) {
  const int at = arg.list_at >= 0 ? arg.list_at : arg.number_at;
  if (at < 0) return 1;
  const auto i = static_cast<size_t>(at);
  if (!known[i]) return -1;
  if (const auto* types = attrs[i].value.get<std::vector<DType>>()) return static_cast<int64_t>(types->size());
  const auto* const number = attrs[i].value.get<int64_t>();
  return number ? *number : -1;
}

// Fills attributes that only the inputs can tell: T from an input's type, N from how many there are.
class Inference {
 public:
  Inference(const OpDef& op, const Graph& graph, std::span<const Value> inputs, std::span<Attr> attrs, std::span<char> known)
      : op_(op), graph_(graph), inputs_(inputs), attrs_(attrs), known_(known) {}

  Status run() {
    size_t at = 0;
    for (size_t k = 0; k < op_.inputs().size(); ++k) {
      const ArgDef& arg = op_.inputs()[k];
      int64_t count = arg_count(arg, attrs_, known_);
      if (count < 0) count = remaining(at, k);
      if (count < 0 || at + static_cast<size_t>(count) > inputs_.size()) return arity();
      DTG_TRY(take(arg, at, static_cast<size_t>(count)));
      at += static_cast<size_t>(count);
    }
    return at == inputs_.size() ? Status() : arity();
  }

 private:
  DType type(size_t i) const { return graph_.info(inputs_[i]).dtype; }
  // Null where it is decided already, or there is none.
  Attr* open(int at) {
    const auto i = static_cast<size_t>(at);
    if (at < 0 || known_[i]) return nullptr;
    known_[i] = true;
    return &attrs_[i];
  }
  // Values left for a list argument when every later argument is single.
  int64_t remaining(size_t at, size_t arg) const {
    const size_t later = op_.inputs().size() - arg - 1;
    return inputs_.size() >= at + later ? static_cast<int64_t>(inputs_.size() - at - later) : -1;
  }
  Status take(const ArgDef& arg, size_t at, size_t count) {
    if (Attr* number = open(arg.number_at)) number->value = AttrValue(static_cast<int64_t>(count));
    if (Attr* list = open(arg.list_at)) {
      std::vector<DType> types;
      for (size_t i = 0; i < count; ++i) types.push_back(type(at + i));
      list->value = AttrValue(std::move(types));
    }
    if (count == 0) return {};
    if (Attr* one = open(arg.type_at)) one->value = AttrValue(type(at));
    return {};
  }
  Status arity() const {
    std::string want;
    for (const ArgDef& arg : op_.inputs()) {
      if (!want.empty()) want += ", ";
      want += arg.name;
      if (!arg.number_attr.empty() || !arg.list_attr.empty()) want += "...";
    }
    return invalid_argument("%s takes the inputs (%s), but %zu were given", op_.name().c_str(), want.c_str(), inputs_.size());
  }

  const OpDef& op_;
  const Graph& graph_;
  std::span<const Value> inputs_;
  std::span<Attr> attrs_;
  std::span<char> known_;
};

Status check_types(const AttrDef& def, const AttrValue& value, const std::string& op) {
  const auto refuse = [&](DType found) {
    std::string allowed;
    for (int n = 1; n < 32; ++n) {
      if (def.types.has(static_cast<DType>(n)) && dtype_is_known(n)) {
        allowed += (allowed.empty() ? "" : ", ") + std::string(dtype_name(static_cast<DType>(n)));
      }
    }
    return invalid_argument("%s: attribute %s is %s, but allowed are {%s}", op.c_str(), def.name.c_str(), dtype_name(found),
                            allowed.c_str());
  };
  if (const auto* one = value.get<DType>()) {
    if (!def.types.has(*one)) return refuse(*one);
  }
  if (const auto* list = value.get<std::vector<DType>>()) {
    for (DType dtype : *list) {
      if (!def.types.has(dtype)) return refuse(dtype);
    }
  }
  return {};
}

int64_t list_length(const AttrValue& value) {
  return std::visit(
      [](const auto& v) -> int64_t {
        // clang-format off
        if constexpr (requires { v.size(); v.begin(); }) return static_cast<int64_t>(v.size());
        // clang-format on
        else return -1;
      },
      value.variant());
}

Status check_attr(const AttrDef& def, const AttrValue& value, const std::string& op) {
  if (value.kind() != def.kind) {
    return invalid_argument("%s: attribute %s must be %s, but a %s was given", op.c_str(), def.name.c_str(), attr_kind_name(def.kind),
                            attr_kind_name(value.kind()));
  }
  DTG_TRY(check_types(def, value, op));
  if (def.minimum) {
    const auto* number = value.get<int64_t>();
    const int64_t found = number ? *number : list_length(value);
    if (found < *def.minimum) {
      return invalid_argument("%s: attribute %s is %s%lld, but at least %lld is needed", op.c_str(), def.name.c_str(),
                              number ? "" : "of length ", static_cast<long long>(found), static_cast<long long>(*def.minimum));
    }
  }
  if (const auto* word = value.get<std::string>();
      word && !def.strings.empty() && std::ranges::find(def.strings, *word) == def.strings.end()) {
    std::string allowed;
    for (const auto& s : def.strings) allowed += (allowed.empty() ? "'" : ", '") + s + "'";
    return invalid_argument("%s: attribute %s is '%s', but allowed are {%s}", op.c_str(), def.name.c_str(), word->c_str(), allowed.c_str());
  }
  return {};
}

}  // namespace

Status Graph::resolve_attrs(const NodeSpec& spec) {
  const OpDef& op = *draft_.node.op;
  const auto defs = op.attrs();
  draft_.signature = spec.attrs.empty() ? AttrLists::signature(*this, spec.inputs) : 0;
  // The commonest case: they are those of a node before, which were looked at.
  draft_.node.attrs = attr_lists_.find(op, draft_.signature);
  if (!draft_.node.attrs.empty()) return {};
  std::vector<Attr>& list = draft_.attrs;
  std::vector<char>& known = draft_.given;
  list.resize(defs.size());
  known.assign(defs.size(), 0);
  for (size_t i = 0; i < defs.size(); ++i) list[i].name = defs[i].name;
  for (const Attr& given : spec.attrs) {
    const auto at = std::ranges::find(list, given.name, &Attr::name);
    if (at == list.end()) {
      return invalid_argument("%s has no attribute \"%.*s\"", op.name().c_str(), int(given.name.size()), given.name.data());
    }
    const auto i = static_cast<size_t>(at - list.begin());
    if (known[i]) return invalid_argument("%s: attribute %s is given twice", op.name().c_str(), defs[i].name.c_str());
    at->value = given.value;
    known[i] = true;
  }
  DTG_TRY(Inference(op, *this, draft_.node.inputs, list, known).run());
  for (size_t i = 0; i < defs.size(); ++i) {
    if (!known[i] && defs[i].fallback) list[i].value = *defs[i].fallback;
    else if (!known[i]) return invalid_argument("%s: attribute %s is missing and has no default", op.name().c_str(), defs[i].name.c_str());
    DTG_TRY(check_attr(defs[i], list[i].value, op.name()));
  }
  draft_.node.attrs = list;
  return {};
}

namespace {
constexpr int64_t kArgValuesMax = 0xffff;

// What to do about one type in the place of another, where that helps.
const char* cast_hint(DType want, DType found) {
  const auto casts = [](DType type) { return dtype_size(type) > 0 && !is_holder(type); };
  return casts(want) && casts(found) ? "; add a Cast" : "";
}

template <class T>
const T* attr_at(const Node& node, int at) {
  return node.attrs[static_cast<size_t>(at)].value.get<T>();
}

// Calls fn(arg, index in the list, expected type) for each flattened argument.
template <class Fn>
Status for_each_arg(std::span<const ArgDef> args, const Node& node, Fn&& fn) {
  for (const ArgDef& arg : args) {
    const std::vector<DType>* types = arg.list_at < 0 ? nullptr : attr_at<std::vector<DType>>(node, arg.list_at);
    int64_t count = types ? static_cast<int64_t>(types->size()) : 1;
    if (arg.number_at >= 0) count = *attr_at<int64_t>(node, arg.number_at);
    if (count < 0 || count > kArgValuesMax) {
      return invalid_argument("%s: %lld values for %s: at most %lld are possible; use several nodes", node.op->name().c_str(),
                              static_cast<long long>(count), arg.name.c_str(), static_cast<long long>(kArgValuesMax));
    }
    for (int64_t i = 0; i < count; ++i) {
      DType dtype = arg.dtype;
      if (types) dtype = (*types)[static_cast<size_t>(i)];
      else if (arg.type_at >= 0) dtype = *attr_at<DType>(node, arg.type_at);
      DTG_TRY(fn(arg, dtype));
    }
  }
  return {};
}
}  // namespace

Status Graph::resolve_types() {
  Node& node = draft_.node;
  size_t at = 0;
  DTG_TRY(for_each_arg(node.op->inputs(), node, [&](const ArgDef& arg, DType want) -> Status {
    if (at >= node.inputs.size()) return invalid_argument("%s: too few inputs for %s", node.op->name().c_str(), arg.name.c_str());
    const Value value = node.inputs[at++];
    const ValueInfo& found = info(value);
    if (found.dtype != want) {
      return invalid_argument("%s: input %s must be %s, but \"%s\" is %s%s", node.op->name().c_str(), arg.name.c_str(), dtype_name(want),
                              value_name(value).c_str(), dtype_name(found.dtype), cast_hint(want, found.dtype));
    }
    if (!is_holder(found.dtype) && found.shape.has_rank() && (found.shape.rank() < arg.rank_min || found.shape.rank() > arg.rank_max)) {
      return invalid_argument("%s: input %s must have rank %d%s, but \"%s\" has shape %s", node.op->name().c_str(), arg.name.c_str(),
                              arg.rank_min,
                              arg.rank_max == arg.rank_min ? ""
                              : arg.rank_max >= kRankMax   ? " or more"
                                                           : (" to " + std::to_string(arg.rank_max)).c_str(),
                              value_name(value).c_str(), found.shape.text().c_str());
    }
    return {};
  }));
  if (at != node.inputs.size())
    return invalid_argument("%s: %zu inputs given, %zu wanted", node.op->name().c_str(), node.inputs.size(), at);
  draft_.outputs.clear();
  DTG_TRY(for_each_arg(node.op->outputs(), node, [&](const ArgDef&, DType dtype) -> Status {
    draft_.outputs.push_back({dtype, DType::invalid, PartialShape::unknown()});
    return {};
  }));
  node.outputs = draft_.outputs;
  return {};
}

// It may stand where the other one stood: what it adds is behind what that one takes and gives.
Status Graph::check_extension() const {
  const Node& node = draft_.node;
  const AttrValue* const extends = node.find_attr(kExtendsAttr);
  if (!extends || *extends->get<int64_t>() < 0) return {};
  const int64_t number = *extends->get<int64_t>();
  if (number >= node.id)
    return invalid_argument("%s: it says that it extends node %lld, which is not before it", node.op->name().c_str(),
                            static_cast<long long>(number));
  const Node& other = this->node(static_cast<NodeId>(number));
  bool fits = other.op == node.op && other.inputs.size() <= node.inputs.size() && other.outputs.size() <= node.outputs.size();
  for (size_t i = 0; fits && i < other.inputs.size(); ++i) fits = other.inputs[i] == node.inputs[i];
  for (size_t o = 0; fits && o < other.outputs.size(); ++o) fits = other.outputs[o].dtype == node.outputs[o].dtype;
  if (fits && extensions_.count(other.id) == 0) return {};
  return invalid_argument("%s: it says that it extends \"%s\", which has other inputs or outputs, or an extension already",
                          node.op->name().c_str(), std::string(other.name).c_str());
}

Status Graph::infer() {
  const Node& node = draft_.node;
  draft_.inputs.clear();
  for (Value value : node.inputs) draft_.inputs.push_back(info(value));
  struct Known {
    const Graph* graph;
    const Node* node;
  } known{this, &node};
  const auto constant = [](void* context, int input) {
    const auto* k = static_cast<const Known*>(context);
    return k->graph->constant_value(k->node->inputs[static_cast<size_t>(input)]);
  };
  InferContext context(node, draft_.inputs, draft_.outputs, constant, &known);
  return node.op->shape_fn()(context);
}

namespace {
// What is known when a node is made: its inputs are in the graph.
class BuildValues final : public ValueContext {
 public:
  BuildValues(const Graph& graph, const Node& node, std::span<Tensor> known) : ValueContext(node, node.outputs, known), graph_(graph) {}
  Tensor input(int i) const override { return graph_.constant_value(node().inputs[static_cast<size_t>(i)]); }
  const ValueInfo& input_info(int i) const override { return graph_.info(node().inputs[static_cast<size_t>(i)]); }

 private:
  const Graph& graph_;
};
}  // namespace

// Once, for all who will ask: what it rests on never changes.
void Graph::find_known() {
  Node& node = draft_.node;
  const ValueFn fn = node.op->value_fn();
  draft_.known.clear();
  if (!fn) return;
  draft_.known.resize(node.outputs.size());
  BuildValues context(*this, node, draft_.known);
  fn(context);
  if (std::ranges::none_of(draft_.known, [](const Tensor& tensor) { return tensor.valid(); })) draft_.known.clear();
}

// Most nodes give what the node before gives, or what they take: one list then serves them all.
std::span<const ValueInfo> Graph::keep_outputs() {
  const std::span<const ValueInfo> fresh = draft_.outputs;
  const auto is_same = [&](std::span<const ValueInfo> kept) { return std::ranges::equal(kept, fresh); };
  if (fresh.empty()) return {};
  if (is_same(last_outputs_)) return last_outputs_;
  if (!draft_.node.inputs.empty()) {
    const std::span<const ValueInfo> taken = node(draft_.node.inputs[0].node()).outputs;
    if (is_same(taken)) return taken;
  }
  return last_outputs_ = arena_.copy(fresh);
}

// From here on nothing can fail but memory, and the count says last that the node is there.
NodeId Graph::publish(const NodeSpec& spec) {
  const NodeId id = draft_.node.id;
  const uint32_t shifted = id / kFirstChunk + 1;
  const auto chunk = static_cast<size_t>(std::bit_width(shifted) - 1);
  const uint32_t start = kFirstChunk * ((1u << chunk) - 1);
  if (!chunks_[chunk]) chunks_[chunk] = NodeMemory(size_t{kFirstChunk} << chunk);
  Node& node = *new (chunks_[chunk].at(id - start)) Node(draft_.node);
  node.name = arena_.copy(draft_.name);
  node.location = arena_.copy(spec.location);
  node.inputs = arena_.copy(spec.inputs);
  node.controls = arena_.copy(std::span<const NodeId>(draft_.controls));
  node.colocate = arena_.copy(std::span<const NodeId>(draft_.colocate));
  node.outputs = keep_outputs();
  if (!draft_.attrs.empty()) node.attrs = attr_lists_.keep(*node.op, draft_.attrs, draft_.signature);
  // Tensors have destructors: the list is an object of the arena.
  if (!draft_.known.empty()) node.known = *arena_.make<std::vector<Tensor>>(std::move(draft_.known));
  if (const AttrValue* const extends = node.find_attr(kExtendsAttr); extends && *extends->get<int64_t>() >= 0) {
    extensions_.emplace(static_cast<NodeId>(*extends->get<int64_t>()), id);
    extended_.store(true, std::memory_order_release);
  }
  names_.add(id, draft_.name_hash);
  count_.store(id + 1, std::memory_order_release);
  return id;
}

// What the node asks for and what the scopes add.
Status Graph::resolve_edges(const NodeSpec& spec) {
  Node& node = draft_.node;
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    const Status status = check(spec.inputs[i]);
    if (!status.ok()) return status.with_context(node.op->name() + ": input " + std::to_string(i));
  }
  node.inputs = spec.inputs;
  std::vector<NodeId>& controls = draft_.controls;
  controls.assign(spec.controls.begin(), spec.controls.end());
  for (const auto& scope : scopes_.controls) {
    // One that lifts those around it.
    if (scope.size() == 1 && scope[0] == kNoNode) controls.assign(spec.controls.begin(), spec.controls.end());
    else controls.insert(controls.end(), scope.begin(), scope.end());
  }
  std::ranges::sort(controls);
  controls.erase(std::unique(controls.begin(), controls.end()), controls.end());
  for (NodeId control : controls) DTG_TRY(check_node(control));
  node.controls = controls;
  std::vector<NodeId>& colocate = draft_.colocate;
  colocate.assign(spec.colocate.begin(), spec.colocate.end());
  if (!scopes_.colocations.empty() && scopes_.colocations.back() != kNoNode) colocate.push_back(scopes_.colocations.back());
  for (NodeId other : colocate) DTG_TRY(check_node(other));
  node.colocate = colocate;
  return {};
}

Status Graph::resolve(const NodeSpec& spec) {
  Node& node = draft_.node;
  node = {};
  draft_.name.clear();
  draft_.attrs.clear();
  draft_.counted = {};
  const Status resolved = [&]() -> Status {
    node.op = ops_->find(spec.op);
    if (!node.op) return no_such_op(spec.op, ops_->closest(spec.op));
    node.id = count_.load(std::memory_order_relaxed);
    if (node.id >= kNodesMax) return resource_exhausted("the graph has 2^28 nodes, which is the limit");
    DTG_TRY(resolve_name(spec));
    DTG_TRY(resolve_edges(spec));
    DTG_TRY(resolve_attrs(spec));
    DTG_TRY(resolve_types());
    DTG_TRY(check_extension());
    DTG_TRY(infer());
    find_known();
    draft_.name_hash = settle_name(draft_.name, draft_.name_hash);
    // Last: a device function counts the nodes that it is asked about, and should not count one that was refused.
    return resolve_device(spec);
  }();
  if (resolved.ok()) return {};
  draft_.name_hash = settle_name(draft_.name, draft_.name_hash);
  if (draft_.counted.counter) *draft_.counted.counter = draft_.counted.before;
  if (draft_.name.empty()) {
    append_prefix(draft_.name);
    draft_.name += spec.name.empty() ? spec.op : spec.name;
  }
  return refuse_node(draft_.name, spec.location, resolved);
}

// What needs no look at the graph's nodes.
static Status check_spec(const Graph& graph, const NodeSpec& spec) {
  for (const Attr& attr : spec.attrs) {
    // What was not asked for stands at -1 in nodes that are copied.
    const auto* const number = attr.name == OpDef::kCommitAttr ? attr.value.get<int64_t>() : nullptr;
    if (number && *number != -1) {
      return invalid_argument("%.*s: %s is the planner's; leave it out", int(spec.op.size()), spec.op.data(), OpDef::kCommitAttr);
    }
  }
  if (!graph.is_closed()) return {};
  return failed_precondition("%.*s: the graph is the body of a function that was finished; make another function", int(spec.op.size()),
                             spec.op.data());
}

Result<NodeId> Graph::add(const NodeSpec& spec) {
  if (const Status status = check_spec(*this, spec); !status.ok()) {
    return refuse_node(name_of_refused(*this, spec), spec.location, status);
  }
  return outer_ ? add_inside(spec) : add_here(spec);
}

Result<NodeId> Graph::add_here(const NodeSpec& spec) {
  const std::lock_guard lock(mutex_);
  const Status resolved = resolve(spec);
  auto added = resolved.ok() ? Result<NodeId>(publish(spec)) : Result<NodeId>(resolved);
  draft_.attrs.clear();  // holds no tensor of the caller's any longer
  return added;
}

void Graph::push_controls(std::span<const NodeId> nodes) {
  const std::lock_guard lock(mutex_);
  scopes_.controls.emplace_back(nodes.begin(), nodes.end());
}

void Graph::push_no_controls() {
  const std::lock_guard lock(mutex_);
  scopes_.controls.push_back({kNoNode});
}

void Graph::push_colocation(NodeId node) {
  const std::lock_guard lock(mutex_);
  scopes_.colocations.push_back(node);
}

namespace {
template <class List>
Status pop_scope(List& list, const char* what) {
  if (list.empty()) return failed_precondition("leave a %s scope: none is open", what);
  list.pop_back();
  return {};
}
}  // namespace

Status Graph::pop_name_scope() {
  const std::lock_guard lock(mutex_);
  return pop_scope(scopes_.names, "name");
}
Status Graph::pop_device() {
  const std::lock_guard lock(mutex_);
  return pop_scope(scopes_.devices, "device");
}
Status Graph::pop_controls() {
  const std::lock_guard lock(mutex_);
  return pop_scope(scopes_.controls, "control");
}
Status Graph::pop_colocation() {
  const std::lock_guard lock(mutex_);
  return pop_scope(scopes_.colocations, "colocation");
}

}  // namespace dtg
