// Order: when nodes run. Four things are decided here:
//
// 1. Effects on resources are kept in order (plan/effects.h).
// 2. Inside a device, nodes whose shapes are known come before those that depend on data, otherwise in the order in which they were
//    made, with writes as early as they may, while the gradient is still in the cache.
// 3. Phases (plan/phases.h).
// 4. Events are ends of blocking nodes and hand-overs between devices. A node's set is all events that have happened when it runs.
//    Nodes of one device and one set form a segment: none of them waits for anything the others do not wait for, so a segment runs
//    straight through. A segment waits only for what the segments and events before it do not imply.
#include <algorithm>

#include "base/flat_map.h"
#include "base/lists.h"
#include "plan/passes.h"
#include "plan/phases.h"

namespace dtg {
namespace {

class Orderer {
 public:
  Orderer(const PlanContext& context, Ir& ir) : context_(context), ir_(ir), nodes_(ir.nodes) {}

  Status run() {
    find_kernels(context_, ir_);
    const Effects effects = find_effects(context_, ir_);
    before_ = find_before(ir_, effects);
    spread_dynamic();
    number_phases(ir_, effects, before_);
    DTG_TRY(sort(effects.writes));
    DTG_TRY(assign_sets());
    return assign_segments();
  }

 private:
  // Edges go from lower to higher numbers, so one walk reaches everyone.
  void spread_dynamic() {
    for (uint32_t n = 0; n < nodes_.size(); ++n) {
      if (nodes_[n].dead) continue;
      for (uint32_t b : before_[n]) nodes_[n].dynamic |= nodes_[b].dynamic;
    }
  }

  // Who waits for each node among the writes.
  Lists writes_after(const std::vector<bool>& writes) const {
    return Lists(nodes_.size(), [&](auto&& add) {
      for (uint32_t n = 0; n < nodes_.size(); ++n) {
        if (nodes_[n].dead || !writes[n]) continue;
        for (uint32_t b : before_[n]) add(b, n);
      }
    });
  }

  Status sort(const std::vector<bool>& writes) {
    const Lists after = writes_after(writes);
    std::vector<uint32_t> missing(nodes_.size());
    for (uint32_t n = 0; n < nodes_.size(); ++n) missing[n] = static_cast<uint32_t>(before_[n].size());
    std::vector<bool> done(nodes_.size());
    std::vector<uint32_t> ready;
    ir_.order.reserve(nodes_.size());
    for (const bool dynamic : {false, true}) {
      for (uint32_t n = 0; n < nodes_.size(); ++n) {
        if (context_.is_checkpoint(n)) DTG_TRY(context_.check_time());
        if (nodes_[n].dead || nodes_[n].dynamic != dynamic || done[n]) continue;
        ready.push_back(n);
        while (!ready.empty()) {
          const uint32_t next = ready.back();
          ready.pop_back();
          done[next] = true;
          nodes_[next].position = static_cast<uint32_t>(ir_.order.size());
          ir_.order.push_back(next);
          for (uint32_t write : after[next]) {
            if (--missing[write] == 0 && nodes_[write].dynamic == dynamic) ready.push_back(write);
          }
        }
      }
    }
    return {};
  }

  // No more events than blocking nodes and edges between devices.
  uint32_t count_events() const {
    uint32_t count = 0;
    for (uint32_t n : ir_.order) {
      count += nodes_[n].blocking() ? 1 : 0;
      for (uint32_t b : before_[n]) count += nodes_[b].lane != nodes_[n].lane ? 1 : 0;
    }
    return count;
  }

  // The event that tells node `n` of the end of `b`, or -1 where they run in turn on one device.
  int64_t event_between(uint32_t b, uint32_t n) {
    if (nodes_[b].blocking()) return nodes_[b].event;
    if (nodes_[b].lane == nodes_[n].lane) return -1;
    const auto [at, fresh] = hand_overs_.emplace(uint64_t{b} << 32 | nodes_[n].lane, ir_.events);
    if (fresh) {
      ir_.hand_overs.push_back({b, ir_.events++});
      ir_.raisers.push_back(b);
    }
    return *at;
  }

  Status assign_sets() {
    EventSets sets(count_events());
    for (uint32_t n : ir_.order) {
      if (context_.is_checkpoint(nodes_[n].position)) DTG_TRY(context_.check_time());
      uint32_t set = 0;
      for (uint32_t b : before_[n]) {
        set = sets.unite(set, nodes_[b].set);
        if (const int64_t event = event_between(b, n); event >= 0) set = sets.with(set, static_cast<uint32_t>(event));
      }
      nodes_[n].set = set;
      if (nodes_[n].blocking()) {
        nodes_[n].event = static_cast<int32_t>(ir_.events++);
        ir_.raisers.push_back(n);
      }
    }
    std::ranges::stable_sort(ir_.hand_overs, {}, &HandOver::node);
    ir_.sets = std::make_unique<EventSets>(std::move(sets));
    return {};
  }

  Status assign_segments() {
    FlatMap<uint32_t> numbers;  // (device, set) -> segment
    for (uint32_t n : ir_.order) {
      IrNode& node = nodes_[n];
      if (context_.is_checkpoint(node.position)) DTG_TRY(context_.check_time());
      const auto [at, fresh] = numbers.emplace(uint64_t{node.lane} << 32 | node.set, static_cast<uint32_t>(ir_.segments.size()));
      if (fresh) {
        IrSegment& made = ir_.segments.emplace_back();
        made.device = node.lane;
        made.space = node.space;
        made.set = node.set;
        // Mostly there is no other.
        if (*at == 0) made.nodes.reserve(ir_.order.size());
      }
      node.segment = *at;
      IrSegment& segment = ir_.segments[*at];
      segment.nodes.push_back(n);
      for (uint32_t b : before_[n]) {
        if (const int64_t event = event_between(b, n); event >= 0) segment.events.push_back(static_cast<uint32_t>(event));
        else if (nodes_[b].segment != node.segment) segment.after.push_back(nodes_[b].segment);
      }
    }
    for (IrSegment& segment : ir_.segments) drop_implied(segment);
    return {};
  }

  static void make_unique(std::vector<uint32_t>& list) {
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }

  // What has happened when a segment before this one ran, or when the raiser of another event did, need not be waited for again.
  void drop_implied(IrSegment& segment) {
    make_unique(segment.after);
    make_unique(segment.events);
    if (segment.events.size() + segment.after.size() < 2) return;
    uint32_t implied = 0;
    for (uint32_t before : segment.after) implied = ir_.sets->unite(implied, ir_.segments[before].set);
    for (uint32_t event : segment.events) implied = ir_.sets->unite(implied, nodes_[ir_.raisers[event]].set);
    std::erase_if(segment.events, [&](uint32_t event) { return ir_.sets->contains(implied, event); });
  }

  const PlanContext& context_;
  Ir& ir_;
  std::vector<IrNode>& nodes_;
  Lists before_;
  FlatMap<uint32_t> hand_overs_;  // (node, device) -> event
};

}  // namespace

Status order(const PlanContext& context, Ir& ir) { return Orderer(context, ir).run(); }

}  // namespace dtg
