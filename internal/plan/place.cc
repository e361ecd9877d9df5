// Groups by union-find, requests merged per group, then the first fitting device.
#include "plan/place.h"

#include <algorithm>

#include "graph/function.h"
#include "plan/passes.h"

namespace dtg {

Placer::Placer(std::vector<Device> devices, const KernelTable* kernels, bool soft, Preference preference)
    : devices_(std::move(devices)), kernels_(kernels), soft_(soft) {
  if (preference == Preference::first && !devices_.empty()) preferred_.push_back(0);
  for (const bool host : {false, true}) {
    for (uint32_t i = 0; i < devices_.size(); ++i) {
      if (devices_[i].is_host() == host && (preferred_.empty() || preferred_[0] != i)) preferred_.push_back(i);
    }
  }
  const auto first = std::ranges::find_if(devices_, &Device::is_host);
  if (first != devices_.end()) first_host_ = static_cast<uint32_t>(first - devices_.begin());
}

Placer::Placer(Placer& wide, const DeviceName& task)
    : devices_(wide.devices_),
      preferred_(wide.preferred_),
      first_host_(wide.first_host_),
      kernels_(wide.kernels_),
      soft_(wide.soft_),
      wide_(&wide),
      task_(task) {}

uint32_t Placer::find(uint32_t node) {
  while (groups_[node].parent != node) {
    groups_[node].parent = groups_[groups_[node].parent].parent;
    node = groups_[node].parent;
  }
  return node;
}

uint32_t Placer::number_of(const DeviceName& request) {
  // Without memory both tables stay as they are.
  if (requests_.size() == requests_.capacity()) requests_.reserve(2 * requests_.size());
  const auto [at, fresh] = numbers_.emplace(request.text(), static_cast<uint32_t>(requests_.size()));
  if (fresh) requests_.push_back(request);
  return at->second;
}

uint32_t Placer::keep(Status conflict) {
  conflicts_.push_back(std::move(conflict));
  return static_cast<uint32_t>(conflicts_.size() - 1);
}

void Placer::join(const Graph& graph, uint32_t a, NodeId joining) {
  uint32_t b = joining;
  a = find(a);
  b = find(b);
  if (a == b) return;
  // The group that is placed already, or else the larger one, takes the other in.
  const bool b_first = groups_[a].device < 0 && (groups_[b].device >= 0 || groups_[b].size > groups_[a].size);
  if (b_first) std::swap(a, b);
  Group& into = groups_[a];
  Group& from = groups_[b];
  const auto misfit = [&](Status why) {
    misfits_.emplace(joining, keep(std::move(why).at_node(graph.node(joining).name).in_phase("place")));
  };
  const Node &node = graph.node(joining), &one = graph.node(a), &other = graph.node(b);
  // Both are somewhere already, with what they hold; who asks for less than that goes where the others are.
  if (into.device >= 0 && from.device >= 0 && into.device != from.device) {
    return misfit(invalid_argument("place \"%.*s\": it must share a device with others that are on %s and with others that are on %s",
                                   int(node.name.size()), node.name.data(), devices_[static_cast<size_t>(into.device)].text.c_str(),
                                   devices_[static_cast<size_t>(from.device)].text.c_str()));
  }
  uint32_t request = into.request;
  if (into.request != from.request && from.request != 0) {
    auto both = DeviceName::intersect(requests_[into.request], requests_[from.request]);
    // Where the group is placed already, who joins goes there, whatever it asks for.
    if (!both.ok() && into.device < 0) {
      return misfit(invalid_argument("place \"%.*s\": it shares a device with \"%.*s\", which asks for %s, and with \"%.*s\", which asks "
                                     "for %s; place them alike, or use each in a node (or a function) of its own",
                                     int(node.name.size()), node.name.data(), int(one.name.size()), one.name.data(),
                                     requests_[into.request].text().c_str(), int(other.name.size()), other.name.data(),
                                     requests_[from.request].text().c_str()));
    }
    if (both.ok()) request = number_of(both.value());
  }
  from.parent = a;
  into.request = request;
  into.size += from.size;
  into.holds = into.holds || from.holds;
  into.given = into.given || from.given;
  std::swap(into.next, from.next);  // two rings become one
}

void Placer::request(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.device.empty()) return;
  const auto known = texts_.find(node.device);
  if (known != texts_.end()) {
    groups_[id].request = known->second;
    return;
  }
  auto parsed = DeviceName::parse(node.device);
  if (!parsed.ok()) {
    misfits_.emplace(id, keep(parsed.status().at_node(node.name)));
    return;
  }
  groups_[id].request = texts_[node.device] = number_of(parsed.value());
}

bool Placer::is_free(const Graph& graph, NodeId first, NodeId end) const {
  if (devices_.size() != 1 || !devices_[0].is_host() || wide_ || !groups_.empty()) return false;
  for (NodeId id = first; id < end; ++id) {
    if (!graph.node(id).device.empty()) return false;
  }
  return true;
}

void Placer::update(const Graph& graph, uint32_t node_count) {
  if (wide_) wide_->update(graph, node_count);
  if (is_free(graph, free_, node_count)) {
    free_ = std::max(free_, node_count);
    return;
  }
  if (groups_.empty()) groups_.reserve(node_count);
  for (NodeId id = static_cast<NodeId>(groups_.size()); id < node_count; ++id) group(graph, id);
}

void Placer::group(const Graph& graph, NodeId id) {
  groups_.push_back({id, id});
  try {
    request(graph, id);
  } catch (...) {
    groups_.pop_back();  // the node has no group yet, so the next plan begins with it again
    throw;
  }
  const Node& node = graph.node(id);
  const auto holds = [](const ValueInfo& info) { return info.dtype == DType::resource; };
  groups_[id].holds =
      std::ranges::any_of(node.outputs, holds) || std::ranges::any_of(node.inputs, [&](Value input) { return holds(graph.info(input)); });
  groups_[id].given = node.op->role() == Role::argument && node.outputs[0].dtype == DType::resource;
  for (Value input : node.inputs) {
    if (is_holder(graph.info(input).dtype)) join(graph, input.node(), id);
  }
  for (NodeId other : node.colocate) join(graph, other, id);
}

bool Placer::has_kernels(const Graph& graph, NodeId member, const Device& device) const {
  NodeId at = member;
  do {
    // An op without any kernel is reported when the plan prepares it, with what it has.
    const OpDef& op = *graph.node(at).op;
    if (!kernels_->has_device(op, device.type) && kernels_->has_device(op, "CPU")) return false;
    at = groups_[at].next;
  } while (at != member);
  return true;
}

// Somebody in the group would run on the host although it is placed on that device; then another one is the better place. What calls
// functions is no such node: it runs on the host, but where it is placed their nodes go.
bool Placer::is_for_host(const Graph& graph, NodeId member, const Device& device) const {
  if (device.is_host()) return false;
  bool somebody = false;
  NodeId at = member;
  do {
    const Node& node = graph.node(at);
    const KernelRow* const row = kernels_->find(node, device.type);
    somebody = somebody || (row && row->runs_on_host(node, [&](Value input) { return graph.info(input).dtype; }) && !calls_functions(node));
    at = groups_[at].next;
  } while (at != member);
  return somebody;
}

Result<uint32_t> Placer::choose(const Graph& graph, NodeId id, const DeviceName& request) const {
  const Node& node = graph.node(id);
  const Device* unable = nullptr;
  uint32_t possible = kNone;
  for (uint32_t i : preferred_) {
    if (!request.matches(devices_[i].name)) continue;
    if (!has_kernels(graph, id, devices_[i])) {
      unable = &devices_[i];
      continue;
    }
    if (!is_for_host(graph, id, devices_[i])) return i;
    if (possible == kNone) possible = i;
  }
  if (possible != kNone) return possible;
  if (unable) {
    return invalid_argument("place \"%.*s\" (%s): no kernel on %s; there is: %s", int(node.name.size()), node.name.data(),
                            node.op->name().c_str(), unable->text.c_str(), kernels_->describe(node.op->name()).c_str());
  }
  // Soft placement stays at the task, so it is no way out where the task itself is not there.
  DeviceName relaxed = request;
  relaxed.drop_type_and_id();
  const bool has_task = std::ranges::any_of(devices_, [&](const Device& device) { return relaxed.matches(device.name); });
  const char* const advice = !has_task ? "; the session has no such task"
                             : soft_   ? ""
                                       : "; soft placement would take another device of the same task";
  return invalid_argument("place \"%.*s\" (%s): no device matches \"%s\"; there are: %s%s", int(node.name.size()), node.name.data(),
                          node.op->name().c_str(), request.text().c_str(), device_list().c_str(), advice);
}

Result<uint32_t> Placer::choose_or_relax(const Graph& graph, NodeId id, const DeviceName& request) const {
  auto chosen = choose(graph, id, request);
  if (!chosen.ok() && soft_) {
    DeviceName relaxed = request;
    relaxed.drop_type_and_id();
    chosen = choose(graph, id, relaxed);
  }
  return chosen.ok() ? chosen : chosen.status().at_node(graph.node(id).name).in_phase("place");
}

// What is asked for, at the task that this places for.
Result<uint32_t> Placer::narrowed(uint32_t request) {
  const DeviceName& wanted = requests_[request];
  if (wanted.job && (wanted.job != task_.job || wanted.task)) return request;
  DTG_ASSIGN(const DeviceName both, DeviceName::intersect(wanted, task_));
  return number_of(both);
}

Result<uint32_t> Placer::place(const Graph& graph, NodeId id) {
  if (groups_.empty()) return 0;
  if (!misfits_.empty()) {
    if (const auto misfit = misfits_.find(id); misfit != misfits_.end()) return conflicts_[misfit->second];
  }
  Group& group = groups_[find(id)];
  if (group.device >= 0) return static_cast<uint32_t>(group.device);
  if (group.given) return group.device = 0;
  if (wide_) {
    if (group.holds && !requests_[group.request].job) return wide_->place(graph, id);
    DTG_ASSIGN(group.request, narrowed(group.request));
  }
  if (group.size > 1) {
    auto chosen = choose_or_relax(graph, id, requests_[group.request]);
    if (chosen.ok()) group.device = static_cast<int32_t>(chosen.value());
    return chosen;
  }
  // Nodes of one op that ask for the same get the same, where all are the host's; otherwise it hangs on their types.
  if (!std::ranges::all_of(devices_, &Device::is_host)) {
    auto chosen = choose_or_relax(graph, id, requests_[group.request]);
    if (chosen.ok()) group.device = static_cast<int32_t>(chosen.value());
    return chosen;
  }
  const uint64_t key = uint64_t{group.request} << 32 | graph.node(id).op->number();
  const uint32_t* known = chosen_.find(key);
  if (!known) {
    DTG_ASSIGN(const uint32_t chosen, choose_or_relax(graph, id, requests_[group.request]));
    known = chosen_.emplace(key, chosen).first;
  }
  group.device = static_cast<int32_t>(*known);
  return *known;
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
