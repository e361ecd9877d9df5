// Groups by union-find, requests merged per group, then the first fitting device.
#include "plan/place.h"

#include <algorithm>

#include "plan/passes.h"

namespace dtg {

uint32_t Placer::find(uint32_t node) {
  while (parents_[node] != node) {
    parents_[node] = parents_[parents_[node]];
    node = parents_[node];
  }
  return node;
}

void Placer::join(const Graph& graph, uint32_t a, uint32_t b) {
  a = find(a);
  b = find(b);
  if (a == b) return;
  // The group that is placed already, or else the larger one, takes the other in.
  const bool b_first = groups_[a].device < 0 && (groups_[b].device >= 0 || groups_[b].members.size() > groups_[a].members.size());
  if (b_first) std::swap(a, b);
  Group& into = groups_[a];
  Group& from = groups_[b];
  parents_[b] = a;
  into.members.insert(into.members.end(), from.members.begin(), from.members.end());
  from.members = {};
  if (into.conflict.ok()) into.conflict = from.conflict;
  auto both = DeviceName::intersect(into.request, from.request);
  if (both.ok()) {
    into.request = both.take();
  } else if (into.conflict.ok()) {
    const Node& node = graph.node(b);
    into.conflict = invalid_argument("place \"%.*s\": it must share a device with others that ask for %s, but asks for %s",
                                     int(node.name.size()), node.name.data(), into.request.text().c_str(), from.request.text().c_str());
  }
}

Status Placer::add_request(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.device.empty()) return {};
  auto parsed = DeviceName::parse(node.device);
  if (!parsed.ok()) return parsed.status().at_node(node.name);
  groups_[id].request = parsed.take();
  return {};
}

void Placer::update(const Graph& graph, uint32_t node_count) {
  for (NodeId id = static_cast<NodeId>(parents_.size()); id < node_count; ++id) {
    parents_.push_back(id);
    groups_.emplace_back();
    groups_[id].members.push_back(id);
    if (Status status = add_request(graph, id); !status.ok()) groups_[id].conflict = status;
    const Node& node = graph.node(id);
    for (Value input : node.inputs) {
      if (graph.info(input).dtype == DType::resource) join(graph, input.node(), id);
    }
    for (NodeId other : node.colocate) join(graph, other, id);
  }
}

bool Placer::has_kernels(const Graph& graph, const Group& group, const Device& device) const {
  return std::ranges::all_of(group.members, [&](NodeId id) {
    // An op without any kernel is reported when the plan prepares it, with what it has.
    const std::string& op = graph.node(id).op->name();
    return kernels_->has_device(op, device.type) || !kernels_->has_device(op, "CPU");
  });
}

Result<uint32_t> Placer::choose(const Graph& graph, const Group& group, NodeId id, const DeviceName& request) const {
  const Node& node = graph.node(id);
  const Device* unable = nullptr;
  for (uint32_t i = 0; i < devices_.size(); ++i) {
    if (!request.matches(devices_[i].name)) continue;
    if (has_kernels(graph, group, devices_[i])) return i;
    unable = &devices_[i];
  }
  if (unable) {
    return invalid_argument("place \"%.*s\" (%s): no kernel on %s; there is: %s", int(node.name.size()), node.name.data(),
                            node.op->name().c_str(), unable->text.c_str(), kernels_->describe(node.op->name()).c_str());
  }
  return invalid_argument("place \"%.*s\" (%s): no device matches \"%s\"; there are: %s%s", int(node.name.size()), node.name.data(),
                          node.op->name().c_str(), request.text().c_str(), device_list().c_str(),
                          soft_ ? "" : "; soft placement would take another device of the same task");
}

Result<uint32_t> Placer::place(const Graph& graph, NodeId id) {
  Group& group = groups_[find(id)];
  if (group.device >= 0) return static_cast<uint32_t>(group.device);
  if (!group.conflict.ok()) return group.conflict;
  auto chosen = choose(graph, group, id, group.request);
  if (!chosen.ok() && soft_) {
    DeviceName relaxed = group.request;
    relaxed.drop_type_and_id();
    chosen = choose(graph, group, id, relaxed);
  }
  if (!chosen.ok()) return chosen.status().at_node(graph.node(id).name).in_phase("place");
  group.device = chosen.value();
  return chosen;
}

std::string Placer::device_list() const {
  std::string text;
  for (const Device& device : devices_) text += (text.empty() ? "" : ", ") + device.text;
  return text;
}

Status place(const PlanContext& context, Ir& ir) {
  for (uint32_t n = 0; n < ir.nodes.size(); ++n) {
    if (context.is_checkpoint(n)) DTG_TRY(context.check_time());
    // Those too that turned out to have nothing to do: a wrong device is an error, whatever a pass made of the node.
    DTG_ASSIGN(ir.nodes[n].device, context.placer->place(*ir.graph, ir.nodes[n].node->id));
  }
  return {};
}

}  // namespace dtg
