// The order of a draft. Three things are decided here:
//
// 1. Variables. A write waits for everything that still uses an earlier read of the same variable, so that
//    it can happen in place; where a user of the read must itself come after the write, the read copies (a
//    read before a write in one step is a snapshot). A read that nothing orders after a write comes first.
// 2. Events. A node's set is the events (ends of blocking nodes, hand-overs between devices) it comes
//    after. Nodes of one device and one set form a segment: none of them waits for anything the others do
//    not wait for, so a segment runs straight through.
// 3. Order inside segments: a topological order in which nodes whose shapes are known come before those
//    that depend on data, and writes come as early as they may, while the gradient is still in the cache.
#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <unordered_map>

#include "plan/draft.h"

namespace dtg {
namespace {

// What a node does with a variable.
enum class Access { none, read, peek, write };

Access access_of(const Node& node) {
  const std::string& op = node.op->name();
  if (op == "ReadVariableOp") return Access::read;
  if (op == "VarHandleOp" || op == "Identity" || op == "NoOp") return Access::none;
  if (op == "VarIsInitializedOp" || op == "VariableShape" || op == "ResourceGather" || op == "ResourceGatherNd") return Access::peek;
  return node.op->is_stateful() ? Access::write : Access::none;
}

class Scheduler {
 public:
  Scheduler(const PlanContext& context, Draft& draft) : context_(context), draft_(draft), nodes_(draft.nodes) {}

  Status run() {
    collect_edges();
    order_variables();
    DTG_TRY(topological_order());
    find_kernels();
    assign_sets();
    assign_segments();
    return {};
  }

 private:
  // An edge from a folded or fused node means what it forwards to.
  void resolve(uint32_t control, std::vector<uint32_t>& into) const {
    std::vector<uint32_t> stack = {control};
    while (!stack.empty()) {
      const uint32_t n = stack.back();
      stack.pop_back();
      if (nodes_[n].dead) stack.insert(stack.end(), nodes_[n].forwards.begin(), nodes_[n].forwards.end());
      else into.push_back(n);
    }
  }

  void collect_edges() {
    before_.resize(nodes_.size());
    after_.resize(nodes_.size());
    for (uint32_t n = 0; n < nodes_.size(); ++n) {
      if (nodes_[n].dead) continue;
      std::vector<uint32_t>& before = before_[n];
      for (uint32_t input : nodes_[n].inputs) {
        const DraftValue& value = draft_.values[input];
        if (value.producer == kNone) continue;
        if (value.known.valid()) resolve(value.producer, before);
        else before.push_back(value.producer);
      }
      for (uint32_t control : nodes_[n].controls) resolve(control, before);
      std::ranges::sort(before);
      before.erase(std::unique(before.begin(), before.end()), before.end());
      std::erase(before, n);
      for (uint32_t b : before) after_[b].push_back(n);
    }
  }

  // The handle a resource value comes from, looking through Identity.
  uint32_t root_of(uint32_t value) const {
    for (int depth = 0; depth < 64; ++depth) {
      const uint32_t producer = draft_.values[value].producer;
      if (producer == kNone || nodes_[producer].node->op->name() != "Identity") break;
      value = nodes_[producer].inputs[0];
    }
    return value;
  }

  // Two handle nodes with one name are one variable.
  std::string key_of(uint32_t root) const {
    const uint32_t producer = draft_.values[root].producer;
    if (producer == kNone) return "#" + std::to_string(root);
    const Node& node = *nodes_[producer].node;
    const AttrValue* shared = node.find_attr("shared_name");
    const std::string* name = shared ? shared->get<std::string>() : nullptr;
    if (!name || name->empty()) return std::string(node.name);
    const AttrValue* container = node.find_attr("container");
    return (container && container->get<std::string>() ? *container->get<std::string>() : std::string()) + "\n" + *name;
  }

  struct Uses {
    std::vector<uint32_t> reads, peeks, writes;
  };

  void order_variables() {
    std::map<std::string, Uses> variables;
    for (uint32_t n = 0; n < nodes_.size(); ++n) {
      if (nodes_[n].dead) continue;
      const Access access = access_of(*nodes_[n].node);
      if (access == Access::none) continue;
      for (uint32_t input : nodes_[n].inputs) {
        if (draft_.values[input].info.dtype != DType::resource) continue;
        Uses& uses = variables[key_of(root_of(input))];
        (access == Access::read ? uses.reads : access == Access::peek ? uses.peeks : uses.writes).push_back(n);
      }
    }
    soft_before_.resize(nodes_.size());
    for (auto& [name, uses] : variables) {
      for (uint32_t write : uses.writes) {
        const std::set<uint32_t> descendants = reach(write);
        for (uint32_t peek : uses.peeks) {
          if (!descendants.count(peek)) soft_before_[write].push_back({peek, kNone});
        }
        for (uint32_t read : uses.reads) order_read(read, write, descendants);
      }
    }
  }

  void order_read(uint32_t read, uint32_t write, const std::set<uint32_t>& descendants) {
    if (descendants.count(read)) return;  // it reads what was written
    soft_before_[write].push_back({read, read});
    const uint32_t value = nodes_[read].outputs[0];
    if (draft_.values[value].fetches > 0) nodes_[read].snapshot = true;
    for (uint32_t user : users_of(value)) {
      if (user == write) continue;
      if (descendants.count(user)) nodes_[read].snapshot = true;
      else soft_before_[write].push_back({user, read});
    }
  }

  // Everyone who reads a value's memory: its users, and the users of values that alias it.
  std::vector<uint32_t> users_of(uint32_t value) {
    std::vector<uint32_t> users, stack = {value};
    while (!stack.empty()) {
      const uint32_t v = stack.back();
      stack.pop_back();
      const uint32_t producer = draft_.values[v].producer;
      for (uint32_t user : after_[producer]) {
        if (std::ranges::find(nodes_[user].inputs, v) == nodes_[user].inputs.end()) continue;
        users.push_back(user);
        if (!may_alias(*nodes_[user].node)) continue;
        for (uint32_t output : nodes_[user].outputs) {
          stack.push_back(output);
          if (draft_.values[output].fetches > 0) nodes_[draft_.values[value].producer].snapshot = true;
        }
      }
    }
    return users;
  }

  static bool may_alias(const Node& node) {
    const std::string& op = node.op->name();
    return op == "Identity" || op == "Reshape" || op == "ExpandDims" || op == "Squeeze" || op == "StopGradient" ||
           op == "PreventGradient" || op == "Snapshot" || op == "EnsureShape" || op == "IdentityN" || op == "BroadcastTo" || op == "Cast" ||
           op == "Transpose" || op == "AddN" || op == "Slice" || op == "Tile" || op == "Pad";
  }

  std::set<uint32_t> reach(uint32_t from) const {
    std::set<uint32_t> seen;
    std::vector<uint32_t> stack = {from};
    while (!stack.empty()) {
      const uint32_t n = stack.back();
      stack.pop_back();
      for (uint32_t next : after_[n]) {
        if (seen.insert(next).second) stack.push_back(next);
      }
    }
    return seen;
  }

  // Kahn's algorithm with a heap. Should the waits of writes close a circle, the first write gives its
  // waits up and the reads concerned become snapshots.
  Status topological_order() {
    std::vector<uint32_t> missing(nodes_.size()), soft_missing(nodes_.size());
    std::vector<std::vector<uint32_t>> soft_after(nodes_.size());
    for (uint32_t n = 0; n < nodes_.size(); ++n) {
      missing[n] = static_cast<uint32_t>(before_[n].size());
      for (const Soft& soft : soft_before_[n]) soft_after[soft.node].push_back(n);
      soft_missing[n] = static_cast<uint32_t>(soft_before_[n].size());
    }
    spread_dynamic();
    using Key = std::pair<uint64_t, uint32_t>;
    std::priority_queue<Key, std::vector<Key>, std::greater<>> ready;
    const auto push = [&](uint32_t n) {
      const uint64_t rank = (nodes_[n].dynamic ? 2u : 0u) + (soft_before_[n].empty() ? 1u : 0u);
      ready.push({rank << 32 | n, n});
    };
    std::set<uint32_t> held;  // writes whose inputs are there but whose soft waits are not
    size_t live = 0;
    for (uint32_t n = 0; n < nodes_.size(); ++n) {
      if (nodes_[n].dead) continue;
      ++live;
      if (missing[n] != 0) continue;
      if (soft_missing[n] == 0) push(n);
      else held.insert(n);
    }
    std::vector<bool> done(nodes_.size());
    while (draft_.order.size() < live) {
      if (ready.empty()) {
        if (held.empty()) return internal_error("schedule: the graph has a cycle");
        release_write(*held.begin(), done);
        push(*held.begin());
        held.erase(held.begin());
      }
      const uint32_t n = ready.top().second;
      ready.pop();
      done[n] = true;
      nodes_[n].position = static_cast<uint32_t>(draft_.order.size());
      draft_.order.push_back(n);
      const auto arrive = [&](uint32_t next, std::vector<uint32_t>& count) {
        --count[next];
        if (missing[next] != 0 || done[next]) return;
        if (soft_missing[next] == 0) {
          held.erase(next);
          push(next);
        } else {
          held.insert(next);
        }
      };
      for (uint32_t next : after_[n]) arrive(next, missing);
      for (uint32_t next : soft_after[n]) {
        if (given_up_.count(next)) --soft_missing[next];
        else arrive(next, soft_missing);
      }
    }
    keep_soft_edges();
    return {};
  }

  void release_write(uint32_t write, const std::vector<bool>& done) {
    given_up_.insert(write);
    for (const Soft& soft : soft_before_[write]) {
      if (!done[soft.node] && soft.read != kNone) nodes_[soft.read].snapshot = true;
    }
  }

  // From now on the waits are ordinary edges: the set of a write includes what its readers wait for.
  void keep_soft_edges() {
    for (uint32_t n = 0; n < nodes_.size(); ++n) {
      for (const Soft& soft : soft_before_[n]) {
        if (nodes_[soft.node].position < nodes_[n].position && !nodes_[soft.node].dead) before_[n].push_back(soft.node);
        if (soft.node == soft.read && !nodes_[soft.read].snapshot) nodes_[n].unpins.push_back(soft.read);
      }
      std::ranges::sort(before_[n]);
      before_[n].erase(std::unique(before_[n].begin(), before_[n].end()), before_[n].end());
    }
  }

  // A write that waits for the user of a data-dependent shape is itself late.
  void spread_dynamic() {
    for (uint32_t n = 0; n < nodes_.size(); ++n) {
      for (const Soft& soft : soft_before_[n]) nodes_[n].dynamic |= nodes_[soft.node].dynamic;
      for (uint32_t b : before_[n]) nodes_[n].dynamic |= nodes_[b].dynamic;
    }
  }

  void find_kernels() {
    for (uint32_t n : draft_.order) {
      const std::string& op = nodes_[n].node->op->name();
      if (op == "NoOp" || op == "Placeholder") continue;
      const Device& device = context_.placer->devices()[nodes_[n].device];
      if (nodes_[n].row) continue;
      nodes_[n].row = context_.kernels->find(*nodes_[n].node, device.type);
    }
  }

  bool blocking(uint32_t n) const { return nodes_[n].row && nodes_[n].row->mode == KernelMode::blocking; }

  uint32_t intern(std::vector<uint32_t> set) {
    const auto [at, fresh] = sets_.emplace(std::move(set), static_cast<uint32_t>(sets_.size()));
    if (fresh) set_list_.push_back(&at->first);
    return at->second;
  }

  uint32_t unite(uint32_t a, uint32_t b) {
    if (a == b || b == 0) return a;
    if (a == 0) return b;
    const auto key = std::minmax(a, b);
    if (const auto known = unions_.find(key); known != unions_.end()) return known->second;
    std::vector<uint32_t> both;
    std::ranges::set_union(*set_list_[a], *set_list_[b], std::back_inserter(both));
    const uint32_t united = intern(std::move(both));
    unions_.emplace(key, united);
    return united;
  }

  void assign_sets() {
    intern({});
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> crossings;  // (node, device) -> event
    for (uint32_t n : draft_.order) {
      uint32_t set = 0;
      for (uint32_t b : before_[n]) {
        if (nodes_[b].device != nodes_[n].device && !blocking(b)) {
          const auto [at, fresh] = crossings.emplace(std::pair{b, nodes_[n].device}, events_);
          if (fresh) {
            draft_.crossings.push_back({b, events_});
            ++events_;
          }
          set = unite(set, intern({at->second}));
          continue;
        }
        if (blocking(b)) set = unite(set, intern({static_cast<uint32_t>(nodes_[b].event)}));
        if (nodes_[b].device == nodes_[n].device) set = unite(set, nodes_[b].set);
      }
      nodes_[n].set = set;
      if (blocking(n)) nodes_[n].event = static_cast<int32_t>(events_++);
    }
    std::ranges::stable_sort(draft_.crossings, {}, &Crossing::node);
    draft_.events = events_;
  }

  void assign_segments() {
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> numbers;  // (device, set) -> segment
    for (uint32_t n : draft_.order) {
      const auto [at, fresh] = numbers.emplace(std::pair{nodes_[n].device, nodes_[n].set}, static_cast<uint32_t>(draft_.segments.size()));
      if (fresh) {
        draft_.segments.emplace_back();
        draft_.segments.back().events = *set_list_[nodes_[n].set];
        draft_.segments.back().device = nodes_[n].device;
      }
      nodes_[n].segment = at->second;
      DraftSegment& segment = draft_.segments[at->second];
      segment.nodes.push_back(n);
      for (uint32_t b : before_[n]) {
        if (nodes_[b].segment != at->second && nodes_[b].device == nodes_[n].device) segment.after.push_back(nodes_[b].segment);
      }
    }
    for (DraftSegment& segment : draft_.segments) {
      std::ranges::sort(segment.after);
      segment.after.erase(std::unique(segment.after.begin(), segment.after.end()), segment.after.end());
    }
  }

  struct Soft {
    uint32_t node;  // must come before the write
    uint32_t read;  // the read on whose behalf; kNone for a peek
  };

  const PlanContext& context_;
  Draft& draft_;
  std::vector<DraftNode>& nodes_;
  std::vector<std::vector<uint32_t>> before_, after_;
  std::vector<std::vector<Soft>> soft_before_;
  std::set<uint32_t> given_up_;
  std::map<std::vector<uint32_t>, uint32_t> sets_;
  std::vector<const std::vector<uint32_t>*> set_list_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> unions_;
  uint32_t events_ = 0;
};

}  // namespace

Status schedule_draft(const PlanContext& context, Draft& draft) { return Scheduler(context, draft).run(); }

}  // namespace dtg
