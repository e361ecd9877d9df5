// Making a plan: the passes, then the nodes of each segment are emitted into its first chunk, memory is laid out, segments are joined, and
// feeds, fetches, constants and waits are written down. And the chunks that are made later, while a run waits for them.
#include "plan/plan.h"

#include <algorithm>

#include "graph/function.h"
#include "plan/chains.h"
#include "plan/collectives.h"
#include "plan/lay_out.h"

namespace dtg {
namespace {

// What the argument block and the operands of a node take, as most do.
constexpr size_t kArenaPerNode = 256;

}  // namespace

class PlanMaker {
 public:
  PlanMaker(Plan& plan, Ir& ir)
      : plan_(plan),
        context_(plan.context_),
        ir_(ir),
        program_(plan.program_),
        emitter_(context_, ir, memory_, {&program_.arena, &program_.tensors, &program_.resources, &program_.constants}) {}

  Status run() {
    DTG_TRY(find_duties(context_, ir_, &program_.duties));
    DTG_TRY(number());
    const SegmentOrder segments(ir_);
    DTG_TRY(context_.check_time());
    program_.arena.expect(kArenaPerNode * (ir_.order.size() + 1));
    DTG_TRY(emit(segments));
    choose_direct_fetches();
    keep_for_later();
    choose_lasting();
    DTG_TRY(lay_out(context_, ir_, segments, emitter_, memory_, chunks_, program_));
    connect();
    if (!ir_.spaces.empty()) describe_devices();
    for (const Chunk& chunk : program_.segments) program_.open |= !chunk.last;
    for (const IrValue& value : ir_.values) program_.open |= value.slot != kNone && value.dynamic();
    for (uint32_t n : ir_.order) program_.blocking |= ir_.nodes[n].blocking();
    program_.straight = !program_.open && program_.segments.size() <= 1 && ir_.spaces.empty() &&
                        std::ranges::all_of(program_.instructions, [](const Instruction& each) { return each.sync && each.event < 0; });
    program_.light = is_light();
    program_.small = is_small();
    return {};
  }

 private:
  bool is_light() const {
    constexpr size_t kInstructions = 64;
    if (program_.open || !ir_.spaces.empty() || !program_.duties.groups.empty() || program_.instructions.size() > kInstructions)
      return false;
    const auto is_more = [&](uint32_t n) {
      const Node& node = *ir_.nodes[n].node;
      const Capability capability = node.op->capability();
      // A draw without repetition may draw for long.
      return capability == Capability::file || capability == Capability::net || node.op->is_draw() || calls_functions(node) ||
             may_copy_much(ir_.nodes[n]);
    };
    return std::ranges::none_of(program_.instructions, &Instruction::looks_at_clock) && std::ranges::none_of(ir_.order, is_more);
  }

  // A write of one row copies all of a variable that somebody reads.
  bool may_copy_much(const IrNode& node) const {
    constexpr int64_t kBytes = int64_t{256} << 10;
    const bool writes = std::ranges::any_of(node.op->inputs(), [](const ArgDef& input) {
      return input.access != Access::undeclared && input.access != Access::read && input.access != Access::peek;
    });
    return writes && std::ranges::any_of(node.inputs, [&](uint32_t v) {
             const ValueInfo& info = *ir_.values[v].info;
             if (info.dtype != DType::resource || info.held == DType::invalid) return false;
             return !info.shape.complete() || info.shape.to_shape().value().count() > kBytes / std::max<int64_t>(1, dtype_size(info.held));
           });
  }

  // What might wait here is a read or a write of a variable, for the kernel of another run that writes it in place.
  bool is_small() const {
    if (program_.open || program_.blocking || program_.segments.size() > 1 || !ir_.spaces.empty()) return false;
    const auto is_brief = [](const Instruction& each) { return !each.looks_at_clock && each.event < 0; };
    const auto is_more = [&](uint32_t n) {
      const IrNode& node = ir_.nodes[n];
      return node.op->role() == Role::commit || node.op->role() == Role::committed || calls_functions(node);
    };
    return std::ranges::all_of(program_.instructions, is_brief) && std::ranges::none_of(ir_.order, is_more);
  }

  Status number() {
    uint32_t slot = 0;
    for (IrValue& value : ir_.values) value.slot = slot++;
    program_.slot_count = slot;
    program_.pin_count = ir_.pins;
    std::vector<bool> wanted(ir_.values.size());
    for (uint32_t n : ir_.order) {
      for (uint32_t input : ir_.nodes[n].inputs) wanted[input] = true;
    }
    for (uint32_t fetch : ir_.fetches) wanted[fetch] = true;
    size_t known = 0;
    for (uint32_t v = 0; v < ir_.values.size(); ++v) known += wanted[v] && ir_.values[v].is_known() ? 1 : 0;
    program_.constants.reserve(known);
    program_.tensors.reserve(known);
    for (uint32_t v = 0; v < ir_.values.size(); ++v) {
      if (!wanted[v] || !ir_.values[v].is_known()) continue;
      if (ir_.values[v].space != 0) {
        DTG_TRY(put_on_device(ir_.values[v]));
        continue;
      }
      const Tensor& tensor = ir_.constant(ir_.values[v]);
      program_.constants.push_back({ir_.values[v].slot, tensor.data()});
      program_.tensors.push_back(tensor);
      if (!is_of_graph(ir_.values[v], tensor)) program_.folded_bytes += tensor.bytes();
    }
    program_.feeds.reserve(ir_.feeds.size());
    for (size_t i = 0; i < ir_.feeds.size(); ++i) {
      const FeedSpec& feed = plan_.request_.feeds[i];
      program_.feeds.push_back({ir_.values[ir_.feeds[i]].slot, feed.dtype, feed.shape});
    }
    return {};
  }

  // What is known is copied to the device once, and stays there as long as the plan.
  Status put_on_device(const IrValue& value) {
    const Tensor& tensor = ir_.constant(value);
    Accelerator& device = *ir_.spaces[value.space - 1];
    DTG_ASSIGN(Ref<Buffer> buffer, device.memory()->take_buffer(tensor.bytes(), "a constant"));
    DTG_TRY(device.copy(buffer->data(), tensor.data(), tensor.bytes()));
    program_.constants.push_back({value.slot, buffer->data()});
    program_.resources.push_back(Ref<RefCounted>(std::move(buffer)));
    return {};
  }

  void describe_devices() {
    program_.homes.resize(program_.slot_count);
    for (const IrValue& value : ir_.values) {
      Program::Home& home = program_.homes[value.slot];
      home.space = static_cast<uint8_t>(value.space);
      home.exempt |= is_holder(value.info->dtype);
      home.made |= value.producer != kNone && !value.is_known() && ir_.nodes[value.producer].space != 0;
    }
    for (const Program::Constant& constant : program_.constants) program_.homes[constant.slot].made = false;
  }

  bool is_of_graph(const IrValue& value, const Tensor& tensor) const {
    if (value.producer == kNone) return false;
    const std::span<const Tensor> known = ir_.nodes[value.producer].node->known;
    return value.output < known.size() && known[value.output].data() == tensor.data();
  }

  Status emit(const SegmentOrder& segments) {
    chunks_.resize(ir_.segments.size());
    ends_.resize(chunks_.size());
    for (uint32_t s : segments.walk()) {
      DTG_ASSIGN(ends_[s], emitter_.emit(ir_.segments[s].nodes, 0, chunks_[s]));
    }
    program_.shapes = emitter_.take_shapes();
    return {};
  }

  // Where a kernel can write a fetched value straight into its buffer, it has no place in the run's own memory.
  void choose_direct_fetches() {
    std::vector<bool> taken(ir_.values.size());
    program_.fetches.reserve(ir_.fetches.size());
    for (uint32_t v : ir_.fetches) {
      const IrValue& value = ir_.values[v];
      Fetch fetch;
      fetch.slot = value.slot;
      fetch.dtype = value.info->dtype;
      fetch.dynamic = value.dynamic();
      if (!fetch.dynamic && !is_holder(fetch.dtype)) fetch.shape = value.info->shape.to_shape().value();
      const uint32_t item = emitter_.items()[value.slot];
      // Of strings the run has cells only; what is fetched owns its bytes.
      fetch.direct = !fetch.dynamic && item != kNone && value.space == 0 && !taken[value.slot] && fetch.dtype != DType::string;
      if (fetch.direct) {
        taken[value.slot] = true;
        memory_.drop(item);
      } else if (item != kNone) {
        memory_.keep(item);
      }
      program_.fetches.push_back(std::move(fetch));
    }
  }

  // What is read by chunks that are made later stays until the run ends.
  void keep_for_later() {
    for (uint32_t s = 0; s < ir_.segments.size(); ++s) {
      const std::vector<uint32_t>& nodes = ir_.segments[s].nodes;
      for (uint32_t i = ends_[s]; i < nodes.size(); ++i) {
        for (uint32_t input : ir_.nodes[nodes[i]].inputs) {
          const uint32_t item = emitter_.items()[ir_.values[input].slot];
          if (item != kNone) memory_.keep(item);
        }
      }
    }
  }

  // What is fetched into its buffer stays there, and is copied by who keeps it.
  void choose_lasting() {
    std::vector<uint32_t> slots = emitter_.kept();
    std::ranges::sort(slots);
    slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
    for (uint32_t slot : slots) {
      const uint32_t item = emitter_.items()[slot];
      if (memory_.is_dropped(item)) continue;
      memory_.drop(item);
      program_.lasting.push_back({slot, memory_.bytes_of(item)});
    }
  }

  bool is_cut(uint32_t s) const { return ends_[s] != ir_.segments[s].nodes.size(); }

  void connect() {
    std::vector<bool> cut(ir_.segments.size());
    for (uint32_t s = 0; s < cut.size(); ++s) cut[s] = is_cut(s);
    const Chains chains(ir_, cut);
    join_chunks(chains);
    number_waits(chains);
    program_.events = ir_.events;
    for (const Chunk& chunk : program_.segments) program_.receives_first.push_back(receives_first(chunk));
    program_.raised = Lists(chains.count(), [&](auto&& add) {
      for (uint32_t event = 0; event < ir_.events; ++event) add(chains.chain_of(ir_.nodes[ir_.raisers[event]].segment), event);
    });
  }

  bool receives_first(const Chunk& chunk) const {
    const bool stops = chunk.stop != chunk.stops_end;
    if (!stops && !chunk.last) return false;
    const size_t end = stops ? program_.stops[chunk.stop].at : chunk.instructions.size();
    return std::ranges::all_of(chunk.instructions.first(end), [](const Instruction& each) {
      return each.node && each.event >= 0 && each.node->op->role() == Role::receive;
    });
  }

  // All instructions stand in one row: a program of many small segments is read from its beginning to its end.
  void join_chunks(const Chains& chains) {
    Instructions& all = program_.instructions;
    size_t count = 0;
    for (const Instructions& chunk : chunks_) count += chunk.size();
    all.reserve(count);
    program_.segments.reserve(chains.count());
    for (uint32_t c = 0; c < chains.count(); ++c) {
      const size_t begin = all.size();
      Chunk chunk;
      chunk.stop = static_cast<uint32_t>(program_.stops.size());
      for (uint32_t s : chains[c]) {
        if (chains.is_joined(s)) program_.stops.push_back({c, static_cast<uint32_t>(all.size() - begin)});
        all.insert(all.end(), chunks_[s].begin(), chunks_[s].end());
        chunks_[s] = {};
        chunk.planned = s;
      }
      chunk.stops_end = static_cast<uint32_t>(program_.stops.size());
      chunk.instructions = {all.data() + begin, all.size() - begin};
      chunk.end = ends_[chunk.planned];
      chunk.last = !is_cut(chunk.planned);
      program_.segments.push_back(chunk);
      if (!ir_.spaces.empty()) program_.lanes.push_back(ir_.segments[chunk.planned].space);
    }
  }

  // Who waits for whom, by the numbers that segments and stops have in the program.
  void number_waits(const Chains& chains) {
    const auto count = static_cast<uint32_t>(ir_.segments.size());
    std::vector<uint32_t> numbers(count);
    program_.waits.resize(chains.count() + program_.stops.size());
    auto stop = static_cast<uint32_t>(chains.count());
    for (uint32_t c = 0; c < chains.count(); ++c) {
      for (uint32_t s : chains[c]) {
        numbers[s] = chains.is_joined(s) ? stop++ : c;
        // Behind a stop it waits for the end of the one before, as it did: that is the segment's own coming.
        program_.waits[numbers[s]] = static_cast<uint32_t>(ir_.segments[s].events.size() + ir_.segments[s].after.size());
      }
    }
    program_.after_segment = Lists(chains.count(), [&](auto&& add) {
      for (uint32_t s = 0; s < count; ++s) {
        if (chains.is_joined(s)) continue;
        for (uint32_t before : ir_.segments[s].after) add(chains.chain_of(before), numbers[s]);
      }
    });
    program_.after_event = Lists(ir_.events, [&](auto&& add) {
      for (uint32_t s = 0; s < count; ++s) {
        for (uint32_t event : ir_.segments[s].events) add(event, numbers[s]);
      }
    });
  }

  Plan& plan_;
  const PlanContext& context_;
  Ir& ir_;
  Program& program_;
  MemoryPlan memory_;
  Emitter emitter_;
  // Of each segment, the first chunk, and how many of its nodes are in it.
  std::vector<Instructions> chunks_;
  std::vector<uint32_t> ends_;
};

Plan::Plan(const PlanContext& context, Ref<Graph> graph, PlanRequest request)
    : context_(context),
      graph_(std::move(graph)),
      request_(std::move(request)),
      generation_(context.store->generation()),
      memory_(context.memory ? context.memory : make_ref<MemoryPool>(context.budget)) {}

Plan::~Plan() = default;

namespace {

// By slot: where in its segment the last node stands that reads it. kNone: another segment does, or the host.
std::vector<uint32_t> last_reads(const Ir& ir) {
  std::vector<uint32_t> place(ir.nodes.size());  // in the segment, by node
  for (const IrSegment& segment : ir.segments) {
    for (uint32_t i = 0; i < segment.nodes.size(); ++i) place[segment.nodes[i]] = i;
  }
  std::vector<uint32_t> until(ir.values.size());
  const auto read = [&](uint32_t v, uint32_t segment, uint32_t at) {
    const IrValue& value = ir.values[v];
    if (value.slot == kNone || value.producer == kNone) return;
    if (ir.nodes[value.producer].segment != segment) at = kNone;
    until[value.slot] = std::max(until[value.slot], at);
  };
  for (uint32_t n : ir.order) {
    for (uint32_t input : ir.nodes[n].inputs) read(input, ir.nodes[n].segment, place[n]);
  }
  for (uint32_t fetch : ir.fetches) read(fetch, kNone, kNone);
  return until;
}

}  // namespace

Result<Ref<Plan>> Plan::make(const PlanContext& context, Ref<Graph> graph, PlanRequest request, Observer* observer) {
  auto plan = Ref<Plan>::adopt(new Plan(context, std::move(graph), std::move(request)));
  auto ir = std::make_unique<Ir>();
  ir->graph = plan->graph_.get();
  ir->request = &plan->request_;
  context.placer->update(*plan->graph_, plan->graph_->node_count());
  const PassObserver passed = [](void* user, const Pass& pass, const Ir& now) { static_cast<Observer*>(user)->passed(pass, now); };
  DTG_TRY(run_passes(context, front_passes(), *ir, observer ? passed : nullptr, observer));
  DTG_TRY(run_passes(context, back_passes(), *ir, observer ? passed : nullptr, observer));
  DTG_TRY(PlanMaker(*plan, *ir).run());
  if (observer) observer->made(*ir, plan->program_);
  // Later chunks are made for runs with deadlines of their own.
  plan->context_.deadline = Deadline::never();
  if (plan->program_.open) {
    plan->read_until_ = last_reads(*ir);
    plan->ir_ = std::move(ir);
  }
  // Nobody asks a body for what it was planned for, but for who prepares the rest of it.
  if (!plan->program_.open && plan->request_.body) std::vector<FeedSpec>().swap(plan->request_.feeds);
  plan->program_.name = context.function;
  const size_t frames = plan->program_.blocking || plan->request_.body ? SIZE_MAX : static_cast<size_t>(context.frames);
  const Frame::Surroundings around{plan->program_, *plan, *plan, *plan->memory_, *context.pool, *context.clock, context.tracer};
  plan->frames_ = std::make_unique<FramePool>(around, frames);
  return plan;
}

void Plan::took(int64_t ns) {
  const int slow = slow_.load(std::memory_order_relaxed);
  if (ns > kBriefNs) slow_.store(slow + kSlowStep >= kSlowMany ? kSlowFor : slow + kSlowStep, std::memory_order_relaxed);
  else if (slow > 0) slow_.store(slow - 1, std::memory_order_relaxed);
}

bool Plan::is_brief() {
  if (!program_.small) return false;
  const int slow = slow_.load(std::memory_order_relaxed);
  if (slow < kSlowMany) return true;
  slow_.store(slow - 1, std::memory_order_relaxed);
  return false;
}

Result<Tensor> Plan::fetch_tensor(size_t fetch) const {
  const Fetch& wanted = program_.fetches[fetch];
  DTG_ASSIGN(auto buffer, memory_->take_buffer(wanted.shape.count() * dtype_size(wanted.dtype)));
  return Tensor::over(std::move(buffer), wanted.dtype, wanted.shape);
}

int64_t Plan::bytes() const {
  int64_t bytes = program_.bytes() + later_.bytes() + static_cast<int64_t>(sizeof *this);
  if (ir_) {
    bytes += static_cast<int64_t>(ir_->arena.bytes() + ir_->nodes.capacity() * sizeof(IrNode) + ir_->values.capacity() * sizeof(IrValue) +
                                  read_until_.capacity() * sizeof(uint32_t));
  }
  return bytes;
}

Result<const LaterChunk*> Plan::next_chunk(Slots& slots, uint32_t segment, uint32_t position) {
  Ref<LaterChunk> later = later_.find(segment, position, slots);
  if (!later) {
    // Two runs that meet the same shapes at the same time each make it; one of them is dropped soon.
    DTG_ASSIGN(later, make_chunk(slots, segment, position));
    later_.add(later);
  }
  const LaterChunk* const chunk = later.get();
  slots.keep(std::move(later));
  return chunk;
}

Result<Ref<LaterChunk>> Plan::make_chunk(const Slots& slots, uint32_t segment, uint32_t position) const {
  auto later = make_ref<LaterChunk>();
  later->segment = segment;
  later->position = position;
  const std::vector<uint32_t>& nodes = ir_->segments[segment].nodes;
  later->arena.expect(kArenaPerNode);  // where every node needs one of its own, there may be thousands
  MemoryPlan memory;
  Emitter emitter(context_, *ir_, memory, {&later->arena, &later->tensors, &later->resources, nullptr}, slots);
  DTG_ASSIGN(const uint32_t end, emitter.emit(nodes, position, later->instructions));
  if (end == position) {
    return internal_error("prepare \"%s\": the shapes of its inputs are still unknown",
                          std::string(ir_->nodes[nodes[end]].node->name).c_str());
  }
  later->chunk = {.instructions = later->instructions, .planned = segment, .end = end, .last = end == nodes.size()};
  note_key(*later, nodes, slots);
  keep_outside_values(*later, emitter, memory);
  // In one straight line nothing but its own order is relied on.
  class Alone final : public SegmentReach {
    bool ended(uint32_t, uint32_t) const override { return false; }
    bool happened(uint32_t, uint32_t) const override { return false; }
  };
  DTG_TRY(memory.solve({segment}, Alone()));
  const uint32_t space = ir_->segments[segment].space;
  later->bytes = memory.bytes();
  later->device_bytes = space == 0 ? 0 : memory.bytes(space);
  later->gives = emitter.take_shapes();
  memory.for_workspaces([&](uint32_t, uint32_t instruction, int64_t offset) { later->instructions[instruction].workspace = offset; });
  for_each_item(*later, emitter, [&](uint32_t slot, uint32_t item) {
    (memory.space(item) == 0 ? later->places : later->device_places).push_back({slot, memory.offset(item)});
  });
  later->values = emitter.consulted();
  return later;
}

// Calls fn(slot, item) for what the chunk makes in memory of its own. All that is asked about a chunk is asked of its own nodes: there may
// be as many chunks as nodes.
template <class Fn>
void Plan::for_each_item(const LaterChunk& later, const Emitter& emitter, Fn&& fn) const {
  const std::vector<uint32_t>& nodes = ir_->segments[later.segment].nodes;
  for (uint32_t i = later.position; i < later.chunk.end; ++i) {
    for (uint32_t output : ir_->nodes[nodes[i]].outputs) {
      const uint32_t slot = ir_->values[output].slot;
      if (slot != kNone && emitter.items()[slot] != kNone) fn(slot, emitter.items()[slot]);
    }
  }
}

// Every value from before whose shape the plan did not know, and which its nodes read, or the one that it ended at.
void Plan::note_key(LaterChunk& later, const std::vector<uint32_t>& nodes, const Slots& slots) const {
  const auto end = std::min<size_t>(later.chunk.end + 1, nodes.size());
  const uint32_t first = ir_->nodes[nodes[later.position]].position;
  const auto is_inside = [&](uint32_t n) { return ir_->nodes[n].segment == later.segment && ir_->nodes[n].position >= first; };
  for (size_t i = later.position; i < end; ++i) {
    for (uint32_t input : ir_->nodes[nodes[i]].inputs) {
      const IrValue& value = ir_->values[input];
      if (!value.dynamic() || (value.producer != kNone && is_inside(value.producer))) continue;
      later.shapes.emplace_back(value.slot, slots.shape(value.slot));
    }
  }
}

// What somebody outside of the chunk reads stays until the run ends.
void Plan::keep_outside_values(const LaterChunk& later, const Emitter& emitter, MemoryPlan& memory) const {
  for_each_item(later, emitter, [&](uint32_t slot, uint32_t item) {
    if (read_until_[slot] >= later.chunk.end) memory.keep(item);
  });
}

}  // namespace dtg
