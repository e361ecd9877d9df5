// Which device a node asks for: what it says itself, and what the scopes say that are open when it is made. See graph.h for threads.
#include <algorithm>

#include "graph/device_name.h"
#include "graph/graph.h"

namespace dtg {

// What a program writes may be the lenient form ("CPU:1"); the text of what was read then stands in the graph.
static Result<DeviceName> read_device(std::string_view text) {
  auto strict = DeviceName::parse(text);
  if (strict.ok()) return strict;
  auto lenient = DeviceName::parse_spec(text);
  return lenient.ok() ? lenient : strict;
}

// The same for what is asked for one node, which can be no device's only by mistake.
static Result<DeviceName> read_own_device(std::string_view text) {
  auto strict = DeviceName::parse(text);
  return strict.ok() ? strict : DeviceName::parse_given(text);
}

std::string_view Graph::keep_device(std::string_view device) {
  if (device != last_device_) last_device_ = arena_.copy(device);
  return last_device_;
}

Status Graph::resolve_device(const NodeSpec& spec) {
  Node& node = draft_.node;
  // Inside a colocation scope a node asks for what the other node asks; device scopes and the device function are for
  // who stands by himself. Otherwise an update made under a worker's scope would contradict its variable on a ps.
  const NodeId beside = scopes_.colocations.empty() ? kNoNode : scopes_.colocations.back();
  if (beside != kNoNode && spec.device.empty()) {
    node.device = this->node(beside).device;
    return {};
  }
  // The common case: what a scope says, as it stands there.
  if (spec.device.empty() && (scopes_.devices.empty() || (!scopes_.devices.back().function && scopes_.devices.back().inside == 0))) {
    node.device = keep_device(scopes_.devices.empty() ? std::string_view() : std::string_view(scopes_.devices.back().device));
    return {};
  }
  DTG_ASSIGN(const std::string device, device_in_scopes(spec));
  node.device = keep_device(device);
  return {};
}

// In a scope a job "*" is a name that goes before others, so the lenient form is tried first.
static Result<DeviceName> read_scope(std::string_view text) {
  auto lenient = DeviceName::parse_spec(text);
  return lenient.ok() ? lenient : DeviceName::parse(text);
}

// `inner` where it says something, the scope `outer` for the rest.
static Result<std::string> merge_devices(std::string_view outer, const Result<DeviceName>& inner) {
  DTG_TRY(inner.status());
  DTG_ASSIGN(DeviceName merged, read_scope(outer));
  merged.merge(inner.value());
  return merged.text();
}

// From the inside out: what the node asks for, then the scopes up to a function, what the function makes of it, and so on.
Result<std::string> Graph::device_in_scopes(const NodeSpec& spec) {
  const Node& node = draft_.node;
  std::string device;
  if (!spec.device.empty()) {
    DTG_ASSIGN(device, merge_devices({}, read_own_device(spec.device)));
  }
  for (size_t open = scopes_.devices.size(); open > 0;) {
    const DeviceScope& scope = scopes_.devices[open - 1];
    if (scope.function) {
      DTG_ASSIGN(device, scope.function->place(*node.op, device, node.attrs));
      --open;
    } else {
      if (device.empty()) {
        device = scope.device;
      } else {
        DTG_ASSIGN(device, merge_devices(scope.device, read_device(device)));
      }
      open = scope.inside;
    }
  }
  return device;
}

void Graph::push_device(std::string_view device) {
  const std::lock_guard lock(mutex_);
  auto& open = scopes_.devices;
  DeviceScope scope{std::string(device), {}, 0};
  if (!device.empty()) {
    if (!open.empty()) scope.inside = open.back().function ? open.size() : open.back().inside;
    const std::string_view outer = open.empty() ? std::string_view() : std::string_view(open.back().device);
    const auto known = std::ranges::find_if(merged_, [&](const MergedDevice& each) { return each.inner == device && each.outer == outer; });
    if (known != merged_.end()) {
      scope.device = known->both;
    } else if (auto merged = merge_devices(outer, read_scope(device)); merged.ok()) {
      scope.device = merged.take();
      merged_[next_merged_++ % merged_.size()] = {std::string(outer), std::string(device), scope.device};
    }
    // An unreadable name is kept as it is; placing reports it with the node.
  }
  open.push_back(std::move(scope));
}

void Graph::push_device_function(Ref<DeviceFunction> function) {
  const std::lock_guard lock(mutex_);
  scopes_.devices.push_back({{}, std::move(function), 0});
}

}  // namespace dtg
