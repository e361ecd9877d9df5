// Split: which stream each node runs on, which memory space each value lies in, and a copy wherever a value is used in another space than
// the one it was made in. Nodes whose kernels run on the host wherever they were placed (queues, strings) go there, with operands there;
// so do single operands, as the kernel's row says. From one device to another a value goes through the host. What is known beforehand is
// put into the device's memory when the plan is made, and resources stay where they are: a handle is no value.
//
// A plan of the host alone leaves here as it came.
#include <map>

#include "plan/passes.h"
#include "plan/phases.h"

namespace dtg {
namespace {

bool lives_on_host(DType dtype) { return dtype == DType::string || dtype == DType::variant; }

class Splitter {
 public:
  Splitter(const PlanContext& context, Ir& ir) : context_(context), ir_(ir) {}

  Status run() {
    number_spaces();
    if (ir_.spaces.empty()) {
      for (IrNode& node : ir_.nodes) node.lane = node.device;
      return {};
    }
    find_kernels(context_, ir_);
    for (IrNode& node : ir_.nodes) settle(node);
    const auto count = static_cast<uint32_t>(ir_.nodes.size());
    nodes_.reserve(count + count / 8);
    number_.resize(count);
    for (uint32_t n = 0; n < count; ++n) {
      if (context_.is_checkpoint(n)) DTG_TRY(context_.check_time());
      if (!ir_.nodes[n].dead && !ir_.nodes[n].barrier) fetch_operands(n);
      number_[n] = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back(ir_.nodes[n]);
    }
    for (uint32_t& fetch : ir_.fetches) {
      if (ir_.values[fetch].space == 0) continue;
      const uint32_t here = value_in(fetch, 0);
      if (here == fetch) continue;
      --ir_.values[fetch].fetches;
      ++ir_.values[here].fetches;
      fetch = here;
    }
    renumber();
    return {};
  }

 private:
  void number_spaces() {
    const std::vector<Device>& devices = context_.placer->devices();
    space_of_.assign(devices.size(), 0);
    for (const IrNode& node : ir_.nodes) {
      const Device& device = devices[node.device];
      if (node.dead || !device.accelerator || space_of_[node.device] != 0) continue;
      ir_.spaces.push_back(device.accelerator);
      lanes_.push_back(node.device);
      space_of_[node.device] = static_cast<uint32_t>(ir_.spaces.size());
    }
  }

  bool runs_on_host(const IrNode& node) const {
    if (space_of_[node.device] == 0) return true;
    if (node.barrier) return false;
    if (node.waits || (node.row && node.row->mode != KernelMode::plain)) return true;
    for (uint32_t v : node.inputs) {
      if (lives_on_host(ir_.values[v].info->dtype)) return true;
    }
    for (uint32_t v : node.outputs) {
      if (lives_on_host(ir_.values[v].info->dtype)) return true;
    }
    return false;
  }

  // Where the node runs, and what it makes lies.
  void settle(IrNode& node) {
    if (node.dead) return;
    const bool on_host = runs_on_host(node);
    node.lane = on_host ? context_.placer->host_of(node.device) : node.device;
    node.space = on_host ? 0 : space_of_[node.device];
    if (on_host) return;
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      IrValue& value = ir_.values[node.outputs[o]];
      const bool stays = is_holder(value.info->dtype) || value.is_known() || (node.row && node.row->gives_host(o));
      if (!stays) value.space = node.space;
    }
  }

  void fetch_operands(uint32_t n) {
    IrNode& node = ir_.nodes[n];
    std::span<uint32_t> inputs = ir_.arena.copy(std::span<const uint32_t>(node.inputs));
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (is_holder(ir_.values[inputs[i]].info->dtype)) continue;
      const bool here = node.space == 0 || (node.row && node.row->reads_host(i));
      inputs[i] = value_in(inputs[i], here ? 0 : node.space);
    }
    node.inputs = inputs;
  }

  uint32_t value_in(uint32_t v, uint32_t space) {
    const uint32_t from = ir_.values[v].space;
    if (from == space) return v;
    if (from != 0 && space == 0 && ir_.spaces[from - 1]->mutant() == Accelerator::Mutant::reads_device) return v;
    const auto key = std::pair(v, space);
    if (const auto have = copies_.find(key); have != copies_.end()) return have->second;
    uint32_t here;
    if (ir_.values[v].is_known()) {
      IrValue known = ir_.values[v];
      known.space = space;
      known.fetches = known.uses = 0;
      here = ir_.add_value(known);
    } else {
      here = from != 0 && space != 0 ? add_copy(value_in(v, 0), space) : add_copy(v, space);
    }
    return copies_.emplace(key, here).first->second;
  }

  // On the stream of the device at either end.
  uint32_t add_copy(uint32_t v, uint32_t space) {
    const IrValue from = ir_.values[v];
    const OpDef& op = *context_.ops->with_role(Role::copy);
    Node* const made = ir_.arena.make<Node>();
    if (from.producer != kNone) *made = *maker(from.producer).node;
    made->op = &op;
    made->name = ir_.arena.copy(from.producer != kNone ? std::string(made->name) : ir_.value_text(v));
    std::vector<Attr> attrs = {{"T", AttrValue(from.info->dtype)}};
    made->attrs = ir_.attr_lists.keep(op, attrs);
    made->inputs = {};
    made->controls = {};
    made->known = {};
    IrNode node;
    node.stand_for(made, true);
    const uint32_t stream = space != 0 ? space : from.space;
    node.device = node.lane = lanes_[stream - 1];
    node.space = stream;
    node.row = context_.kernels->find(*made, "CPU");
    IrValue value;
    value.info = from.info;
    value.producer = kFresh + static_cast<uint32_t>(nodes_.size());
    value.space = space;
    value.uses = 1;
    const uint32_t here = ir_.add_value(value);
    const uint32_t in[] = {v}, out[] = {here};
    node.inputs = ir_.arena.copy(std::span<const uint32_t>(in));
    node.outputs = ir_.arena.copy(std::span<const uint32_t>(out));
    nodes_.push_back(node);
    return here;
  }

  const IrNode& maker(uint32_t producer) const { return producer >= kFresh ? nodes_[producer - kFresh] : ir_.nodes[producer]; }

  // Every edge goes from a lower number to a higher one, as copies stand before whoever needed them first.
  void renumber() {
    for (IrNode& node : nodes_) {
      node.controls = ir_.arena.copy(std::span<const uint32_t>(node.controls));
      for (uint32_t& control : node.controls) control = number_[control];
    }
    for (IrValue& value : ir_.values) {
      if (value.producer == kNone) continue;
      value.producer = value.producer >= kFresh ? value.producer - kFresh : number_[value.producer];
    }
    ir_.nodes = std::move(nodes_);
  }

  static constexpr uint32_t kFresh = 1u << 30;  // a producer that is a copy: its number from here on

  const PlanContext& context_;
  Ir& ir_;
  std::vector<uint32_t> space_of_;  // by device
  std::vector<uint32_t> lanes_;     // device of each space
  std::vector<IrNode> nodes_;
  std::vector<uint32_t> number_;  // of the nodes that were there, among nodes_
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> copies_;
};

}  // namespace

Status split(const PlanContext& context, Ir& ir) { return Splitter(context, ir).run(); }

}  // namespace dtg
