// Commit: writes that may take effect together become a unit. Before those of a phase stands a gate that waits for all they are made
// from, behind them a point that waits for all of them; in between the run cannot be aborted from outside (exec/commits.h). A call whose
// functions write is a write like others. Where they cannot be one unit (loops, bodies that wait), the call is a strand: it is told its
// number, and its bodies go through this pass themselves. Where the writes are to be logged, the gate also takes what they are made from
// as operands, so that it is still there, and a graph is made that writes the same from it.
#include <algorithm>
#include <map>
#include <queue>

#include "graph/function.h"
#include "plan/named_handle.h"
#include "plan/passes.h"
#include "plan/phases.h"

namespace dtg {
namespace {

// The graph of one phase's writes, without whatever they are computed from.
class WritesOnly {
 public:
  WritesOnly(const PlanContext& context, const Ir& ir, IrCommit& into) : context_(context), ir_(ir), into_(into) {}

  Status begin() {
    DTG_ASSIGN(into_.graph, Graph::create(context_.ops));
    return {};
  }
  Status add_write(uint32_t n) {
    DTG_ASSIGN(const NodeId made, copy(n));
    into_.writes.push_back(made);
    // What a write gives, later ones may be made from; it is not there yet when the gate is passed.
    const IrNode& node = ir_.nodes[n];
    for (uint32_t o = 0; o < node.outputs.size(); ++o) values_.emplace(node.outputs[o], into_.graph->value(made, o));
    return {};
  }
  // The operands of the gate, in the order of IrCommit::fed.
  const std::vector<uint32_t>& operands() const { return operands_; }

 private:
  Result<NodeId> copy(uint32_t n) {
    const IrNode& node = ir_.nodes[n];
    std::vector<Value> inputs;
    for (uint32_t v : node.inputs) {
      DTG_ASSIGN(const Value here, value_of(v, node));
      inputs.push_back(here);
    }
    NodeSpec spec;
    spec.op = node.op->name();
    spec.name = node.node->name;
    spec.location = node.node->location;
    spec.device = context_.placer->devices()[node.device].text;
    spec.inputs = inputs;
    // Which node another one extends, by its number in the graph that was asked for, has done its work in prune.
    std::vector<Attr> attrs(node.node->attrs.begin(), node.node->attrs.end());
    std::erase_if(attrs, [](const Attr& attr) { return attr.name == Graph::kExtendsAttr; });
    spec.attrs = attrs;
    return into_.graph->add(spec);
  }

  Result<Value> value_of(uint32_t v, const IrNode& reader) {
    if (const auto have = values_.find(v); have != values_.end()) return have->second;
    const IrValue& value = ir_.values[v];
    Result<Value> made = value.info->dtype == DType::resource ? handle(v, reader) : value.is_known() ? constant(v) : fed(v, reader);
    if (made.ok()) values_.emplace(v, made.value());
    return made;
  }

  // A handle is made anew by the op that names the resource, by whatever ways it came here.
  Result<Value> handle(uint32_t v, const IrNode& reader) {
    const uint32_t at = origin_of_handle(ir_, v);
    if (const auto have = values_.find(at); at != kNone && have != values_.end()) return have->second;
    NamedHandle named = name_handle(context_, ir_, v);
    if (!named.op) {
      return unimplemented("log a write: the resource of \"%.*s\" is not named by an op of its own",
                           static_cast<int>(reader.node->name.size()), reader.node->name.data());
    }
    if (named.op->is_transient()) {
      return unimplemented("log a write: what \"%s\" (%s) names is not kept by a task with a state directory; place it on another task",
                           named.node.c_str(), named.op->name().c_str());
    }
    DTG_ASSIGN(const Value made, add_handle(named, ir_.values[at].producer == kNone));
    values_.emplace(at, made);
    return made;
  }

  // Nodes of other graphs may be called as one of this body is, so that what is named by its node is named by an attribute then.
  Result<Value> add_handle(NamedHandle& named, bool from_outside) {
    NodeSpec spec;
    spec.op = named.op->name();
    spec.name = named.node;
    spec.location = named.location;
    spec.device = named.device;
    if (from_outside) {
      const auto shared = std::ranges::find(named.attrs, std::string_view("shared_name"), &Attr::name);
      if (shared == named.attrs.end()) named.attrs.push_back({"shared_name", AttrValue(named.node)});
      else if (shared->value.get<std::string>()->empty()) shared->value = AttrValue(named.node);
      named.node = "_handle/" + std::to_string(values_.size());
      spec.name = named.node;
    }
    spec.attrs = named.attrs;
    DTG_ASSIGN(const NodeId made, into_.graph->add(spec));
    return into_.graph->value(made);
  }

  Result<Value> constant(uint32_t v) {
    const Tensor& tensor = ir_.constant(ir_.values[v]);
    const Attr attrs[] = {{"value", AttrValue(tensor)}, {"dtype", AttrValue(tensor.dtype())}};
    return add(Role::constant, "_known/", v, attrs);
  }

  Result<Value> fed(uint32_t v, const IrNode& reader) {
    const ValueInfo& info = *ir_.values[v].info;
    if (dtype_size(info.dtype) == 0) {
      return unimplemented("log a write: \"%.*s\" is made from a %s, which cannot be kept", static_cast<int>(reader.node->name.size()),
                           reader.node->name.data(), dtype_name(info.dtype));
    }
    // A body is planned for many shapes, whose writes are made again by one graph.
    const PartialShape shape = context_.strand < 0 ? info.shape : PartialShape::unknown();
    const Attr attrs[] = {{"dtype", AttrValue(info.dtype)}, {"shape", AttrValue(shape)}};
    DTG_ASSIGN(const Value made, add(Role::feed, "_from/", v, attrs));
    operands_.push_back(v);
    into_.fed.push_back(made);
    return made;
  }

  Result<Value> add(Role role, const char* prefix, uint32_t v, std::span<const Attr> attrs) {
    const std::string name = prefix + std::to_string(v);
    DTG_ASSIGN(const NodeId node, into_.graph->add({.op = context_.ops->with_role(role)->name(), .name = name, .attrs = attrs}));
    return into_.graph->value(node);
  }

  const PlanContext& context_;
  const Ir& ir_;
  IrCommit& into_;
  std::map<uint32_t, Value> values_;
  std::vector<uint32_t> operands_;
};

class Joiner {
 public:
  Joiner(const PlanContext& context, Ir& ir) : context_(context), ir_(ir) {}

  Status run() {
    find_kernels(context_, ir_);
    const Effects effects = find_effects(context_, ir_);
    before_ = find_before(ir_, effects);
    number_phases(ir_, effects, before_);
    forget_pins();
    for (uint32_t n = 0; n < ir_.nodes.size(); ++n) {
      if (!ir_.nodes[n].dead && ir_.nodes[n].write) writes_[ir_.nodes[n].phase].push_back(n);
    }
    if (writes_.empty()) return {};
    original_ = static_cast<uint32_t>(ir_.nodes.size());
    uint32_t last = kNone;
    for (auto& [phase, writes] : writes_) {
      const auto strands = std::stable_partition(writes.begin(), writes.end(), [&](uint32_t n) { return !ir_.nodes[n].strand; });
      const std::vector<uint32_t> apart(strands, writes.end());
      writes.erase(strands, writes.end());
      if (!writes.empty()) {
        ends_.emplace_back(writes.front(), writes.back());
        DTG_TRY(join(phase, writes, last));
        last = static_cast<uint32_t>(ir_.nodes.size()) - 1;
      }
      for (uint32_t strand : apart) {
        tell_number(strand);
        if (is_inside()) follow(strand, last);
        if (is_inside()) last = strand;
      }
    }
    return renumber();
  }

 private:
  // What is inside a strand has the strand's number, and one order.
  bool is_inside() const { return context_.strand >= 0; }

  void tell_number(uint32_t n) {
    IrNode& node = ir_.nodes[n];
    Node* const made = ir_.arena.make<Node>();
    *made = *node.node;
    std::vector<Attr> attrs(node.node->attrs.begin(), node.node->attrs.end());
    std::erase_if(attrs, [](const Attr& attr) { return attr.name == OpDef::kCommitAttr; });
    attrs.push_back({OpDef::kCommitAttr, AttrValue(is_inside() ? context_.strand : strands_++)});
    made->attrs = ir_.attr_lists.keep(*made->op, attrs);
    node.stand_for(made, true);
  }

  void follow(uint32_t n, uint32_t last) {
    if (last == kNone) return;
    IrNode& node = ir_.nodes[n];
    std::vector<uint32_t> controls(node.controls.begin(), node.controls.end());
    controls.push_back(last);
    node.controls = ir_.arena.copy(std::span<const uint32_t>(controls));
    ir_.nodes[last].controlled = true;
  }

  // The order pass looks again, at other numbers.
  void forget_pins() {
    for (IrNode& node : ir_.nodes) {
      node.pin = kNone;
      node.unpins = 0;
    }
    ir_.pins = 0;
  }

  // The gate of a phase and the point behind its writes, which are the last two nodes then; `last` is that point of the phase before.
  Status join(uint32_t phase, const std::vector<uint32_t>& writes, uint32_t last) {
    std::vector<uint32_t> operands, needed;
    int64_t record = -1;
    if (context_.committing == Committing::logged) {
      DTG_ASSIGN(record, log(phase, writes, operands));
    }
    for (uint32_t write : writes) {
      for (uint32_t b : before_[write]) {
        if (!ir_.nodes[b].write || ir_.nodes[b].phase != phase) needed.push_back(b);
      }
    }
    if (last != kNone) needed.push_back(last);
    std::ranges::sort(needed);
    needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
    const uint32_t gate = add(Role::commit, phase, operands, needed, record);
    for (uint32_t write : writes) {
      std::vector<uint32_t> controls(ir_.nodes[write].controls.begin(), ir_.nodes[write].controls.end());
      controls.push_back(gate);
      ir_.nodes[write].controls = ir_.arena.copy(std::span<const uint32_t>(controls));
    }
    add(Role::committed, phase, {}, writes);
    return {};
  }

  // By which number the gate names what makes the writes again, and from which operands.
  Result<int64_t> log(uint32_t phase, const std::vector<uint32_t>& writes, std::vector<uint32_t>& operands) {
    IrCommit& commit = ir_.commits.emplace_back();
    commit.phase = phase;
    WritesOnly only(context_, ir_, commit);
    DTG_TRY(only.begin());
    for (uint32_t write : writes) DTG_TRY(only.add_write(write));
    operands = only.operands();
    if (context_.keeper) return context_.keeper->keep(commit);
    return static_cast<int64_t>(ir_.commits.size()) - 1;
  }

  uint32_t add(Role role, uint32_t phase, std::span<const uint32_t> operands, std::span<const uint32_t> controls, int64_t record = -1) {
    const OpDef& op = *context_.ops->with_role(role);
    Node* const made = ir_.arena.make<Node>();
    made->op = &op;
    made->name = ir_.arena.copy(op.name() + "/" + std::to_string(phase));
    std::vector<Attr> attrs;
    if (role == Role::commit) {
      std::vector<DType> types;
      for (uint32_t v : operands) types.push_back(ir_.values[v].info->dtype);
      attrs.push_back({"T", AttrValue(std::move(types))});
    }
    attrs.push_back({"phase", AttrValue(int64_t{phase})});
    attrs.push_back({"strand", AttrValue(context_.strand)});
    attrs.push_back({"record", AttrValue(record)});
    made->attrs = ir_.attr_lists.keep(op, attrs);
    IrNode node;
    node.stand_for(made, true);
    node.inputs = ir_.arena.copy(operands);
    node.controls = ir_.arena.copy(controls);
    node.target = node.controlled = true;
    for (uint32_t v : operands) ++ir_.values[v].uses;
    for (uint32_t control : controls) ir_.nodes[control].controlled = true;
    ir_.nodes.push_back(node);
    return static_cast<uint32_t>(ir_.nodes.size()) - 1;
  }

  // Where a node stands among the others, as far as its edges allow: the gate before the first of its writes, the point behind the last.
  uint64_t wanted_place(uint32_t n) const {
    if (n < original_) return uint64_t{n} * 3 + 1;
    const auto& [first, last] = ends_[(n - original_) / 2];
    return (n - original_) % 2 == 0 ? uint64_t{first} * 3 : uint64_t{last} * 3 + 2;
  }

  // Every edge goes from a lower number to a higher one again.
  Status renumber() {
    const auto count = static_cast<uint32_t>(ir_.nodes.size());
    const auto for_each_edge = [&](auto&& add) {
      for (uint32_t n = 0; n < count; ++n) {
        // Nobody waits for what is known, and phases are numbered by who waits for whom.
        if (n < original_) {
          for (uint32_t b : before_[n]) add(b, n);
        }
        for (uint32_t v : ir_.nodes[n].inputs) {
          const IrValue& value = ir_.values[v];
          if (value.producer != kNone && ir_.waits_for(ir_.nodes[n], value)) add(value.producer, n);
        }
        for (uint32_t control : ir_.nodes[n].controls) add(control, n);
      }
    };
    const Lists after(count, for_each_edge);
    std::vector<uint32_t> missing(count);
    for_each_edge([&](uint32_t, uint32_t n) { ++missing[n]; });
    std::priority_queue<std::pair<uint64_t, uint32_t>, std::vector<std::pair<uint64_t, uint32_t>>, std::greater<>> ready;
    for (uint32_t n = 0; n < count; ++n) {
      if (missing[n] == 0) ready.emplace(wanted_place(n), n);
    }
    std::vector<uint32_t> order;
    order.reserve(count);
    while (!ready.empty()) {
      const uint32_t n = ready.top().second;
      ready.pop();
      order.push_back(n);
      for (uint32_t then : after[n]) {
        if (--missing[then] == 0) ready.emplace(wanted_place(then), then);
      }
      if (context_.is_checkpoint(static_cast<uint32_t>(order.size()))) DTG_TRY(context_.check_time());
    }
    if (order.size() != count) return internal_error("plan: writes that are to take effect together wait for each other");
    move_to(order);
    return {};
  }

  void move_to(const std::vector<uint32_t>& order) {
    std::vector<uint32_t> number(order.size());
    for (uint32_t i = 0; i < order.size(); ++i) number[order[i]] = i;
    std::vector<IrNode> nodes;
    nodes.reserve(order.size());
    for (uint32_t n : order) {
      IrNode& node = nodes.emplace_back(ir_.nodes[n]);
      node.controls = ir_.arena.copy(std::span<const uint32_t>(node.controls));
      for (uint32_t& control : node.controls) control = number[control];
    }
    ir_.nodes = std::move(nodes);
    for (IrValue& value : ir_.values) {
      if (value.producer != kNone) value.producer = number[value.producer];
    }
  }

  const PlanContext& context_;
  Ir& ir_;
  Lists before_;
  std::map<uint32_t, std::vector<uint32_t>> writes_;  // by phase
  std::vector<std::pair<uint32_t, uint32_t>> ends_;   // the first and the last of them, in its order
  uint32_t original_ = 0;                             // nodes before any were added
  int64_t strands_ = 0;                               // that write
};

}  // namespace

Status commit(const PlanContext& context, Ir& ir) {
  if (context.committing == Committing::singly) return {};
  return Joiner(context, ir).run();
}

}  // namespace dtg
