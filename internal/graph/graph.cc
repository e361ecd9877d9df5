// The reading half of Graph: looking up nodes, values and names, and the scopes. Adding nodes is in graph_add.cc. See
// graph.h for threads.
#include "graph/graph.h"

#include <bit>
#include <charconv>

#include "base/spelling.h"

namespace dtg {
namespace {
// Counts the graphs of this process; the tag 0 is never given out, so that a Value of 0 is invalid.
std::atomic<uint32_t> next_tag{1};
constexpr uint32_t kTags = 1u << 20;
}  // namespace

const AttrValue* Node::find_attr(std::string_view key) const {
  for (const Attr& attr : attrs) {
    if (attr.name == key) return &attr.value;
  }
  return nullptr;
}

Result<Ref<Graph>> Graph::create(const OpTable* ops) {
  const uint32_t tag = next_tag.fetch_add(1, std::memory_order_relaxed);
  if (tag >= kTags) {
    next_tag.store(kTags, std::memory_order_relaxed);
    return resource_exhausted("create a graph: this process has made %u graphs, which is the limit", kTags - 1);
  }
  return Ref<Graph>::adopt(new Graph(ops, tag));
}

// Chunk k starts at kFirstChunk * (2^k - 1).
const Node& Graph::node(NodeId id) const {
  const uint32_t shifted = id / kFirstChunk + 1;
  const int chunk = std::bit_width(shifted) - 1;
  const uint32_t start = kFirstChunk * ((1u << chunk) - 1);
  return chunks_[static_cast<size_t>(chunk)][id - start];
}

Status Graph::check_node(NodeId id) const {
  if (id < node_count()) return {};
  return invalid_argument("node %u does not exist: the graph has %u nodes", id, node_count());
}

Status Graph::check(Value value) const {
  if (!value.valid()) return invalid_argument("the value is invalid (0): it was left out, or the call that should have made it has failed");
  if (value.tag() != tag_) {
    return invalid_argument(
        "the value is of another graph (graph %u, this one is graph %u): a value may only be used with the graph that made it", value.tag(),
        tag_);
  }
  DTG_TRY(check_node(value.node()));
  const Node& owner = node(value.node());
  if (owner.outputs.empty()) {
    return invalid_argument("\"%.*s\" is a target: a %s has no outputs, and so no value; it can be run, and named as a control input",
                            int(owner.name.size()), owner.name.data(), owner.op->name().c_str());
  }
  if (value.output() >= owner.outputs.size()) {
    return invalid_argument("output %u of node \"%.*s\" does not exist: %s has %zu outputs", value.output(), int(owner.name.size()),
                            owner.name.data(), owner.op->name().c_str(), owner.outputs.size());
  }
  return {};
}

NodeId Graph::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  return names_.find(name);
}

namespace {

// What may have been meant, for a graph that a person wrote: whoever asks a larger one is mostly a program that wants to know whether.
std::string names_near(const Graph& graph, std::string_view name) {
  constexpr uint32_t kByHand = 2000;
  const uint32_t count = graph.node_count();
  if (count > kByHand) return {};
  std::vector<std::string_view> names;
  for (NodeId id = 0; id < count; ++id) names.push_back(graph.node(id).name);
  return ": " + names_text(name, names);
}

}  // namespace

Result<Value> Graph::parse_value(std::string_view text) const {
  std::string_view name = text;
  uint32_t output = 0;
  if (const size_t colon = text.rfind(':'); colon != std::string_view::npos) {
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data() + colon + 1, end, output);
    if (parsed.ec != std::errc() || parsed.ptr != end) {
      return invalid_argument("value \"%.*s\": after the colon an output number is expected", int(text.size()), text.data());
    }
    name = text.substr(0, colon);
  }
  const NodeId id = find(name);
  if (id == kNoNode) {
    return not_found("no node \"%.*s\" in the graph%s", int(name.size()), name.data(), names_near(*this, name).c_str());
  }
  const Value found = value(id, output);
  if (output > 0xffff) return invalid_argument("value \"%.*s\": no such output", int(text.size()), text.data());
  DTG_TRY(check(found));
  return found;
}

Tensor Graph::constant_value(Value v) const {
  if (!check(v).ok()) return {};
  const Node& owner = node(v.node());
  return owner.known.empty() ? Tensor() : owner.known[v.output()];
}

std::string Graph::value_name(Value v) const {
  if (!check(v).ok()) return "<invalid value>";
  return std::string(node(v.node()).name) + ":" + std::to_string(v.output());
}

}  // namespace dtg
