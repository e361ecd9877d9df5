// Making a plan: draft, fuse, schedule, then every node is emitted in order into the first chunk of its
// segment, memory is laid out, and feeds, fetches, constants and waits are written down.
#include <algorithm>

#include "plan/emit.h"
#include "plan/plan.h"

namespace dtg {

class PlanMaker {
 public:
  explicit PlanMaker(Plan& plan) : plan_(plan), context_(plan.context_), draft_(*plan.draft_) {}

  Status run() {
    DTG_TRY(make_draft(context_, *plan_.graph_, plan_.request_, draft_));
    if (context_.fuse) fuse_draft(context_, draft_);
    DTG_TRY(schedule_draft(context_, draft_));
    number();
    DTG_TRY(emit());
    choose_direct_fetches();
    lay_out();
    connect();
    for (const Chunk& chunk : plan_.chunks_) plan_.dynamic_ |= !chunk.last;
    for (const DraftValue& value : draft_.values) plan_.dynamic_ |= value.dynamic() && value.slot != kNone;
    return {};
  }

 private:
  struct Building {
    Chunk* chunk = nullptr;
    MemoryPlan memory;
    bool cut = false;
  };

  void number() {
    uint32_t slot = 0;
    for (DraftValue& value : draft_.values) value.slot = slot++;
    plan_.slot_count_ = slot;
    for (uint32_t v = 0; v < draft_.values.size(); ++v) {
      DraftValue& value = draft_.values[v];
      if (!value.known.valid()) continue;
      plan_.constants_.push_back({value.slot, value.known.data()});
      plan_.tensors_.push_back(value.known);
    }
    for (uint32_t n : draft_.order) {
      DraftNode& node = draft_.nodes[n];
      if (node.node->op->name() == "ReadVariableOp" && !node.snapshot) node.pin = plan_.pin_count_++;
    }
    for (size_t i = 0; i < draft_.feeds.size(); ++i) {
      plan_.feeds_.push_back({draft_.values[draft_.feeds[i]].slot, plan_.request_.feeds[i].dtype, plan_.request_.feeds[i].shape});
    }
  }

  Status emit() {
    buildings_.resize(draft_.segments.size());
    for (Building& building : buildings_) building.chunk = &plan_.chunks_.emplace_back();
    emitter_ = std::make_unique<Emitter>(context_, draft_,
                                         Emitter::Sink{&plan_.arena_, &plan_.tensors_, &plan_.resources_, &plan_.constants_}, nullptr);
    for (uint32_t n : draft_.order) {
      const uint32_t segment = draft_.nodes[n].segment;
      Building& building = buildings_[segment];
      if (building.cut) continue;
      DTG_ASSIGN(const Emitter::Verdict verdict, emitter_->emit(n, segment, *building.chunk, building.memory));
      building.cut = verdict != Emitter::Verdict::done;
      if (verdict == Emitter::Verdict::cut_before) continue;
      ++building.chunk->end;
    }
    for (size_t s = 0; s < buildings_.size(); ++s) {
      Chunk& chunk = *buildings_[s].chunk;
      chunk.last = chunk.end == draft_.segments[s].nodes.size();
    }
    return {};
  }

  void choose_direct_fetches() {
    for (uint32_t v : draft_.fetches) {
      const DraftValue& value = draft_.values[v];
      Fetch fetch;
      fetch.slot = value.slot;
      fetch.dtype = value.info.dtype;
      fetch.dynamic = value.dynamic();
      if (!fetch.dynamic) fetch.shape = value.info.shape.to_shape().value();
      const Home& home = emitter_->homes()[value.slot];
      const bool taken = std::ranges::any_of(plan_.fetches_, [&](const Fetch& f) { return f.slot == fetch.slot && f.direct; });
      fetch.direct = !fetch.dynamic && home.segment != kNone && !taken;
      if (fetch.direct) buildings_[home.segment].memory.drop(home.item);
      else if (home.segment != kNone) buildings_[home.segment].memory.keep(home.item);
      plan_.fetch_pools_.push_back(make_ref<FetchPool>(fetch.dynamic ? 0 : fetch.shape.count() * dtype_size(fetch.dtype)));
      plan_.fetches_.push_back(std::move(fetch));
    }
  }

  // What is read outside of the chunk that made it stays until the run ends.
  void keep_crossing_values() {
    const std::vector<Home>& homes = emitter_->homes();
    for (uint32_t s = 0; s < draft_.segments.size(); ++s) {
      const std::vector<uint32_t>& nodes = draft_.segments[s].nodes;
      for (uint32_t i = 0; i < nodes.size(); ++i) {
        const bool later = i >= buildings_[s].chunk->end;
        for (uint32_t input : draft_.nodes[nodes[i]].inputs) {
          const Home& home = homes[draft_.values[input].slot];
          if (home.segment != kNone && (home.segment != s || later)) buildings_[home.segment].memory.keep(home.item);
        }
      }
    }
  }

  void lay_out() {
    keep_crossing_values();
    std::vector<int64_t> base(buildings_.size());
    for (size_t s = 0; s < buildings_.size(); ++s) {
      Building& building = buildings_[s];
      auto& instructions = building.chunk->instructions;
      base[s] = plan_.frame_bytes_;
      plan_.frame_bytes_ += building.memory.solve(static_cast<uint32_t>(instructions.size()));
      for (uint32_t i = 0; i < instructions.size(); ++i) {
        if (instructions[i].workspace >= 0) instructions[i].workspace = base[s] + building.memory.workspace_offset(i);
      }
    }
    const std::vector<Home>& homes = emitter_->homes();
    for (uint32_t slot = 0; slot < homes.size(); ++slot) {
      if (homes[slot].segment == kNone) continue;
      const int64_t offset = buildings_[homes[slot].segment].memory.offset(homes[slot].item);
      if (offset >= 0) plan_.places_.push_back({slot, base[homes[slot].segment] + offset});
    }
  }

  void connect() {
    plan_.events_.resize(draft_.events);
    plan_.segments_.resize(draft_.segments.size());
    for (uint32_t s = 0; s < draft_.segments.size(); ++s) {
      const DraftSegment& segment = draft_.segments[s];
      plan_.segments_[s].first = buildings_[s].chunk;
      plan_.segments_[s].waits = static_cast<uint32_t>(segment.events.size() + segment.after.size());
      for (uint32_t event : segment.events) plan_.events_[event].successors.push_back(s);
      for (uint32_t before : segment.after) plan_.segments_[before].successors.push_back(s);
    }
    for (uint32_t n : draft_.order) {
      const DraftNode& node = draft_.nodes[n];
      if (node.event >= 0) plan_.segments_[node.segment].raises.push_back(static_cast<uint32_t>(node.event));
    }
    for (const Crossing& crossing : draft_.crossings) {
      plan_.segments_[draft_.nodes[crossing.node].segment].raises.push_back(crossing.event);
    }
  }

  Plan& plan_;
  const PlanContext& context_;
  Draft& draft_;
  std::vector<Building> buildings_;
  std::unique_ptr<Emitter> emitter_;
};

Result<Ref<Plan>> Plan::make(const PlanContext& context, Ref<Graph> graph, PlanRequest request) {
  auto plan = Ref<Plan>::adopt(new Plan(context, std::move(graph), std::move(request)));
  plan->draft_ = std::make_unique<Draft>();
  plan->context_.placer->update(*plan->graph_, plan->graph_->node_count());
  DTG_TRY(PlanMaker(*plan).run());
  if (!plan->dynamic_) plan->draft_.reset();
  return plan;
}

}  // namespace dtg
