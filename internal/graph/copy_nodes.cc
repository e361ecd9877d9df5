// Copying nodes. See copy_nodes.h.
#include "graph/copy_nodes.h"

namespace dtg {

Result<Value> NodeCopier::operator[](Value here) const {
  const auto at = values_.find(here.id);
  if (at != values_.end()) return at->second;
  return internal_error("copy nodes: \"%s\" is needed, but was not copied", from_.value_name(here).c_str());
}

std::vector<NodeId> NodeCopier::copied(std::span<const NodeId> nodes) const {
  std::vector<NodeId> there;
  for (NodeId node : nodes) {
    if (const auto at = nodes_.find(node); at != nodes_.end()) there.push_back(at->second);
  }
  return there;
}

Status NodeCopier::copy(NodeId id) {
  const Node& node = from_.node(id);
  std::vector<Value> inputs;
  for (Value input : node.inputs) {
    DTG_ASSIGN(const Value there, (*this)[input]);
    inputs.push_back(there);
  }
  std::vector<NodeId> controls;
  for (NodeId control : node.controls) {
    if (const auto there = nodes_.find(control); there != nodes_.end()) controls.push_back(there->second);
  }
  std::vector<Attr> attrs(node.attrs.begin(), node.attrs.end());
  for (Attr& attr : attrs) {
    if (attr.name != Graph::kExtendsAttr || *attr.value.get<int64_t>() < 0) continue;
    const auto extended = nodes_.find(static_cast<NodeId>(*attr.value.get<int64_t>()));
    attr.value = AttrValue(extended == nodes_.end() ? int64_t{-1} : int64_t{extended->second});
  }
  const std::string name = into_.find(node.name) == kNoNode ? std::string(node.name) : std::string();
  NodeSpec spec;
  spec.op = node.op->name();
  spec.name = name;
  spec.device = node.device;
  spec.location = node.location;
  spec.inputs = inputs;
  spec.controls = controls;
  spec.attrs = attrs;
  DTG_ASSIGN(const NodeId made, into_.add(spec));
  nodes_[id] = made;
  for (uint32_t o = 0; o < node.outputs.size(); ++o) values_[from_.value(id, o).id] = into_.value(made, o);
  return {};
}

}  // namespace dtg
