// Walks the nodes in the order in which they were made, with a record per resource of what happened to it last.
#include "plan/effects.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>

#include "graph/function.h"
#include "plan/collectives.h"

namespace dtg {
namespace {

class EffectFinder {
 public:
  EffectFinder(const PlanContext&, Ir& ir) : ir_(ir) {}

  Effects run() {
    found_.writes.resize(ir_.nodes.size());
    resource_of_.assign(ir_.values.size(), kNone);
    memory_of_.assign(ir_.values.size(), kNone);
    take_arguments();
    for (uint32_t n = 0; n < ir_.nodes.size(); ++n) {
      if (!ir_.nodes[n].dead) follow_memory(n);
    }
    find_collectives();
    if (reads_.empty() && records_.empty() && !collectives_) return std::move(found_);
    find_lookers();
    commits_ = std::ranges::any_of(ir_.nodes, [](const IrNode& node) { return !node.dead && node.op->role() == Role::commit; });
    prepare_waits();
    for (uint32_t n = 0; n < ir_.nodes.size(); ++n) {
      if (ir_.nodes[n].dead) continue;
      if (waits_) find_awaited(n);
      apply(n);
      if (collectives_) follow_call(n);
    }
    return std::move(found_);
  }

 private:
  struct Record {
    uint32_t last_write = kNone;
    uint32_t last_produce = kNone;
    uint32_t last_consume = kNone;
    std::vector<uint32_t> reads, peeks;  // since the last write
  };
  // Who looks at the memory that a read handed out.
  struct Lookers {
    uint32_t read = kNone;
    bool kept = false;  // fetched: it must stay as it is until the run ends
    std::vector<uint32_t> nodes;
  };

  // Of the resources that a function is called with, any two may be the same whose types and shapes can be those of one. Where not all is
  // known of one, all of its type are taken for the same.
  void take_arguments() {
    std::map<DType, bool> is_open;  // by type: is there one whose shape is not known?
    std::vector<uint32_t> resources;
    for (uint32_t v : ir_.feeds) {
      const ValueInfo& info = *ir_.values[v].info;
      if (info.dtype != DType::resource) continue;
      resources.push_back(v);
      is_open[info.held] |= !info.shape.complete();
      const std::string key = std::string("argument\n") + dtype_name(info.held) + info.shape.text();
      const auto [at, fresh] = names_.emplace(key, static_cast<uint32_t>(records_.size()));
      if (fresh) records_.emplace_back();
      resource_of_[v] = at->second;
    }
    std::map<DType, uint32_t> first;
    const bool any = is_open.contains(DType::invalid);
    for (uint32_t v : resources) {
      const DType held = any ? DType::invalid : ir_.values[v].info->held;
      if (any || is_open[held]) join(v, first.emplace(held, v).first->second);
    }
  }

  // Two handles with one name are one resource.
  uint32_t resource_named(const IrNode& node) {
    const AttrValue* const shared = node.node->find_attr("shared_name");
    const std::string* const name = shared ? shared->get<std::string>() : nullptr;
    const AttrValue* const container = node.node->find_attr("container");
    std::string key = std::to_string(node.device) + "\n";
    if (container && container->get<std::string>()) key += *container->get<std::string>();
    key += "\n";
    key += name && !name->empty() ? std::string_view(*name) : node.node->name;
    const auto [at, fresh] = names_.emplace(std::move(key), static_cast<uint32_t>(records_.size()));
    if (fresh) records_.emplace_back();
    return at->second;
  }

  // Which resource a handle names, and which read's memory a value is (or may be).
  void follow_memory(uint32_t n) {
    IrNode& node = ir_.nodes[n];
    const OpDef& op = *node.op;
    if (op.role() == Role::argument) return;
    if (op.role() == Role::handle) {
      resource_of_[node.outputs[0]] = resource_named(node);
      return;
    }
    if (reads_a_resource(node)) {
      node.pin = static_cast<uint32_t>(reads_.size());
      reads_.push_back({n, false, {}});
      memory_of_[node.outputs[0]] = node.pin;
      return;
    }
    if (!op.forwards_any() && !calls_functions(node)) return;
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      if (ir_.values[node.outputs[o]].info->dtype == DType::resource) {
        follow_resource(node, o);
        continue;
      }
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (op.forwards(i, o)) memory_of_[node.outputs[o]] = memory_of_[node.inputs[i]];
      }
    }
  }

  // What hands a resource on hands on the same one, which has a record even if it was made in the run and has no name. Those of which a
  // call gives one or another are one as far as order goes.
  void follow_resource(const IrNode& node, size_t o) {
    uint32_t first = kNone;
    for_each_source(*node.node, node.inputs.size(), o, [&](size_t i) {
      if (first == kNone) first = node.inputs[i];
      else join(node.inputs[i], first);
    });
    if (first != kNone) resource_of_[node.outputs[o]] = number_of(first);
  }

  bool reads_a_resource(const IrNode& node) const {
    return !node.inputs.empty() && !node.outputs.empty() && node.op->access_of(0) == Access::read;
  }

  void find_lookers() {
    for (uint32_t v = 0; v < ir_.values.size(); ++v) {
      if (memory_of_[v] != kNone && ir_.values[v].fetches > 0) reads_[memory_of_[v]].kept = true;
    }
    for (uint32_t n = 0; n < ir_.nodes.size(); ++n) {
      const IrNode& node = ir_.nodes[n];
      if (node.dead || node.barrier) continue;
      for (uint32_t input : node.inputs) {
        if (memory_of_[input] != kNone) reads_[memory_of_[input]].nodes.push_back(n);
      }
    }
    ir_.pins = static_cast<uint32_t>(reads_.size());
  }

  // `then` is the node at hand.
  void add_edge(uint32_t first, uint32_t then) {
    if (first == kNone || first == then) return;
    found_.edges.emplace_back(first, then);
    if (waits_) awaited_[then] = waits_->unite(awaited_[then], awaited_[first]);
  }

  // What waits for others in the run: a dequeue, a full queue. What is sent goes as the peer takes it; but behind a gate no write may wait
  // for that either.
  bool may_wait(const IrNode& node) const { return node.blocking() && (commits_ || node.op->role() != Role::send); }

  void prepare_waits() {
    uint32_t count = 0;
    for (const IrNode& node : ir_.nodes) count += !node.dead && may_wait(node) ? 1 : 0;
    if (count == 0) return;
    waits_ = std::make_unique<EventSets>(count);
    awaited_.assign(ir_.nodes.size(), 0);
  }

  // By data and control edges; those of effects come as they are found.
  void find_awaited(uint32_t n) {
    const IrNode& node = ir_.nodes[n];
    uint32_t set = 0;
    for (uint32_t input : node.inputs) {
      if (ir_.waits_for(node, ir_.values[input])) set = waits_->unite(set, awaited_[ir_.values[input].producer]);
    }
    for (uint32_t control : node.controls) {
      if (!ir_.nodes[control].dead) set = waits_->unite(set, awaited_[control]);
    }
    if (may_wait(node)) set = waits_->with(set, waiting_++);
    awaited_[n] = set;
  }

  // Groups in which some call's instance is known only when it runs: it may be any.
  void find_collectives() {
    for (const IrNode& node : ir_.nodes) {
      if (node.dead || !is_collective(node)) continue;
      collectives_ = true;
      const CollectiveKeys keys = collective_keys(ir_, node);
      if (!keys.instance) loose_.insert({node.device, keys.group.value_or(0)});
    }
  }

  // The calls of one member to one instance are made in the order of creation, as the other members make theirs; so are those that share
  // a token. Calls to different instances need no order: nobody's call waits for another one to be made.
  void follow_call(uint32_t n) {
    const IrNode& node = ir_.nodes[n];
    if (!is_collective(node)) return;
    const CollectiveKeys keys = collective_keys(ir_, node);
    const int32_t group = keys.group.value_or(0);
    const bool loose = loose_.contains({node.device, group});
    const auto follow = [&](const CallRow& row) {
      const auto [at, fresh] = last_calls_.emplace(row, n);
      if (!fresh) add_edge(std::exchange(at->second, n), n);
    };
    follow({node.device, group, loose ? 0 : *keys.instance, loose});
    for (uint32_t input : node.inputs) {
      if (ir_.values[input].info->dtype == DType::resource) follow({number_of(input), 0, -1, true});
    }
  }

  uint32_t number_of(uint32_t value) {
    uint32_t& resource = resource_of_[value];
    if (resource == kNone) {
      resource = static_cast<uint32_t>(records_.size());
      records_.emplace_back();
    }
    while (joined_.size() < records_.size()) joined_.push_back(static_cast<uint32_t>(joined_.size()));
    while (joined_[resource] != resource) resource = joined_[resource] = joined_[joined_[resource]];
    return resource;
  }
  void join(uint32_t value, uint32_t with) {
    const uint32_t one = number_of(value), other = number_of(with);
    joined_[one] = other;
  }
  Record& record_of(uint32_t value) { return records_[number_of(value)]; }

  void apply(uint32_t n) {
    IrNode& node = ir_.nodes[n];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (ir_.values[node.inputs[i]].info->dtype != DType::resource) continue;
      const uint32_t accesses = accesses_of(*node.node, i);
      constexpr uint32_t kLooks = access_bit(Access::read) | access_bit(Access::peek);
      constexpr uint32_t kProduces = access_bit(Access::produce) | access_bit(Access::fence);
      // Others: a handle that is passed on, or whose resource keeps order itself.
      if ((accesses & (kWrites | kLooks | kProduces | access_bit(Access::consume))) == 0) continue;
      Record& record = record_of(node.inputs[i]);
      if (accesses & kWrites) {
        write(record, n);
      } else if (accesses & kLooks) {
        add_edge(record.last_write, n);
        // What a body reads it has done with when it ends.
        (node.pin != kNone ? record.reads : record.peeks).push_back(n);
      }
      if (accesses & kProduces) add_edge(std::exchange(record.last_produce, n), n);
      if (accesses & access_bit(Access::consume)) add_edge(std::exchange(record.last_consume, n), n);
    }
  }

  void write(Record& record, uint32_t n) {
    found_.writes[n] = true;
    // A variable that a node names twice is written once.
    if (record.last_write == n) return;
    add_edge(record.last_write, n);
    for (uint32_t peek : record.peeks) add_edge(peek, n);
    std::vector<uint32_t> unpins;
    for (uint32_t read : record.reads) {
      add_edge(read, n);
      if (release(reads_[ir_.nodes[read].pin], n)) unpins.push_back(read);
    }
    if (!unpins.empty()) {
      const std::span<const uint32_t> before = ir_.unpins_of(ir_.nodes[n]);
      unpins.insert(unpins.end(), before.begin(), before.end());
      ir_.nodes[n].unpins = static_cast<uint32_t>(ir_.unpins.size());
      ir_.unpins.push_back(ir_.arena.copy(std::span<const uint32_t>(unpins)));
    }
    record.reads.clear();
    record.peeks.clear();
    record.last_write = n;
  }

  // Everyone who looks at the memory comes before the write, when all of them can. Not when the write would wait for what it does not
  // wait for otherwise: that may in turn wait for something that comes after the write.
  bool release(const Lookers& lookers, uint32_t write) {
    if (lookers.kept) return false;
    for (uint32_t looker : lookers.nodes) {
      if (looker > write || (waits_ && waits_->unite(awaited_[write], awaited_[looker]) != awaited_[write])) return false;
    }
    for (uint32_t looker : lookers.nodes) add_edge(looker, write);
    // A write that looks at the memory itself reads it while it writes; the update copies then, as for any other reader.
    return lookers.nodes.empty() || lookers.nodes.back() != write;
  }

  Ir& ir_;
  Effects found_;
  std::vector<Record> records_;
  std::vector<uint32_t> joined_;  // by record: itself, or one that it is one with
  std::unordered_map<std::string, uint32_t> names_;
  std::vector<uint32_t> resource_of_;  // by value: index of the record
  std::vector<uint32_t> memory_of_;    // by value: pin of the read
  std::vector<Lookers> reads_;         // by pin
  std::unique_ptr<EventSets> waits_;   // sets of what may wait for others; null when nothing does
  std::vector<uint32_t> awaited_;      // by node: which of them it comes after, or is
  uint32_t waiting_ = 0;
  bool commits_ = false;  // there are gates
  // Device (or the record of a token), group, instance, whether any; and the last call of that row.
  using CallRow = std::tuple<uint32_t, int32_t, int32_t, bool>;
  std::map<CallRow, uint32_t> last_calls_;
  std::set<std::pair<uint32_t, int32_t>> loose_;
  bool collectives_ = false;
};

}  // namespace

Effects find_effects(const PlanContext& context, Ir& ir) { return EffectFinder(context, ir).run(); }

}  // namespace dtg
