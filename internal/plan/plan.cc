// Plans at work: leasing frames, recycling fetched memory, and preparing later chunks.
#include "plan/plan.h"

#include <algorithm>

#include "plan/emit.h"
#include "plan/fetch_pool.h"

namespace dtg {

Plan::Plan(const PlanContext& context, Ref<Graph> graph, PlanRequest request)
    : context_(context), graph_(std::move(graph)), request_(std::move(request)), generation_(context.store->generation()) {}

Plan::~Plan() = default;

void Plan::attend(Ref<Attendant> attendant, Ref<Graph> asked_graph, PlanRequest asked) {
  attendant_ = std::move(attendant);
  asked_graph_ = std::move(asked_graph);
  asked_ = std::move(asked);
}

Result<Frame*> Plan::lease(FrameWaiter* waiter) {
  for (auto& cell : free_) {
    if (!cell.load(std::memory_order_relaxed)) continue;
    if (Frame* frame = cell.exchange(nullptr, std::memory_order_acq_rel)) return frame;
  }
  const std::lock_guard lock(frames_mutex_);
  if (!spare_.empty()) {
    Frame* const frame = spare_.back();
    spare_.pop_back();
    return frame;
  }
  if (frames_.size() < static_cast<size_t>(context_.frames)) {
    spare_.reserve(frames_.size() + 1);  // giving back must not fail
    DTG_ASSIGN(auto frame, Frame::create(*this, *this, *context_.pool, *context_.clock, context_.tracer));
    frames_.push_back(std::move(frame));
    return frames_.back().get();
  }
  // Who gives a frame back looks at waiting_ after it has freed the cell, and we look at the cells after
  // we have raised it, so one of the two sees the other.
  if (waiter) waiters_.push_back(waiter);  // what may fail comes first
  waiting_.fetch_add(1);
  for (auto& cell : free_) {
    if (Frame* frame = cell.exchange(nullptr)) {
      if (waiter) waiters_.pop_back();
      waiting_.fetch_sub(1);
      return frame;
    }
  }
  if (!waiter) waiting_.fetch_sub(1);
  return nullptr;
}

bool Plan::withdraw(FrameWaiter* waiter) {
  const std::lock_guard lock(frames_mutex_);
  const auto at = std::ranges::find(waiters_, waiter);
  if (at == waiters_.end()) return false;
  waiters_.erase(at);
  waiting_.fetch_sub(1);
  return true;
}

bool Plan::give_back(Frame& frame) {
  const bool outdated = attendant_ && attendant_->end(frame);
  recycle(frame);
  return outdated;
}

void Plan::recycle(Frame& frame) {
  frame.end();
  if (waiting_.load() == 0) {
    for (auto& cell : free_) {
      Frame* none = nullptr;
      if (!cell.compare_exchange_strong(none, &frame)) continue;
      if (waiting_.load() == 0) return;
      // A waiter came just now; take the frame out again for it, unless somebody was faster.
      Frame* mine = &frame;
      if (!cell.compare_exchange_strong(mine, nullptr)) return;
      break;
    }
  }
  FrameWaiter* next = nullptr;
  {
    const std::lock_guard lock(frames_mutex_);
    if (!waiters_.empty()) {
      next = waiters_.front();
      waiters_.pop_front();
      waiting_.fetch_sub(1);
    } else {
      bool kept = false;
      for (auto& cell : free_) {
        Frame* none = nullptr;
        kept = kept || cell.compare_exchange_strong(none, &frame);
      }
      if (!kept) spare_.push_back(&frame);
    }
  }
  if (next) next->granted(frame);
}

Result<Tensor> Plan::fetch_tensor(size_t fetch) const {
  const Fetch& wanted = fetches_[fetch];
  DTG_ASSIGN(auto buffer, fetch_pools_[fetch]->take());
  return Tensor::wrap(std::move(buffer), 0, wanted.dtype, wanted.shape);
}

size_t Plan::instruction_count() const {
  size_t count = 0;
  for (const Chunk& chunk : chunks_) count += chunk.instructions.size();
  return count;
}

bool Plan::matches(const Variant& variant, Frame& frame) const {
  for (const auto& [slot, shape] : variant.shapes) {
    if (!(frame.shape(slot) == shape)) return false;
  }
  for (const auto& [slot, bytes] : variant.values) {
    if (!bytes.empty() && std::memcmp(frame.data(slot), bytes.data(), bytes.size()) != 0) return false;
  }
  return true;
}

Result<const Chunk*> Plan::next_chunk(Frame& frame, uint32_t segment, uint32_t position) const {
  const std::lock_guard lock(variants_mutex_);
  for (auto at = variants_.begin(); at != variants_.end(); ++at) {
    if ((*at)->segment != segment || (*at)->position != position || !matches(**at, frame)) continue;
    Ref<Variant> found = *at;
    variants_.erase(at);
    variants_.push_front(found);
    frame.keep(found);
    return &found->chunk;
  }
  auto variant = make_ref<Variant>();
  variant->segment = segment;
  variant->position = position;
  const std::vector<uint32_t>& nodes = draft_->segments[segment].nodes;
  // Every value from before whose shape the plan did not know is part of the key.
  std::vector<bool> made(draft_->values.size());
  for (uint32_t i = position; i < nodes.size(); ++i) {
    for (uint32_t output : draft_->nodes[nodes[i]].outputs) made[output] = true;
  }
  for (uint32_t i = position; i < nodes.size(); ++i) {
    for (uint32_t input : draft_->nodes[nodes[i]].inputs) {
      const DraftValue& value = draft_->values[input];
      if (value.dynamic() && !made[input]) variant->shapes.emplace_back(value.slot, frame.shape(value.slot));
    }
  }
  Emitter emitter(context_, *draft_, {&variant->arena, &variant->tensors, &variant->resources, nullptr}, &frame);
  MemoryPlan memory;
  Chunk& chunk = variant->chunk;
  uint32_t at = position;
  for (; at < nodes.size(); ++at) {
    DTG_ASSIGN(const Emitter::Verdict verdict, emitter.emit(nodes[at], segment, chunk, memory));
    if (verdict == Emitter::Verdict::cut_before) {
      if (at == position) {
        return internal_error("prepare \"%s\": the shapes of its inputs are still unknown",
                              std::string(draft_->nodes[nodes[at]].node->name).c_str());
      }
      break;
    }
    if (verdict == Emitter::Verdict::cut_after) {
      ++at;
      break;
    }
  }
  chunk.end = at;
  chunk.last = at == nodes.size();
  finish_memory(chunk, memory, emitter, segment);
  chunk.bytes = memory.bytes();
  variant->values = emitter.consulted();
  variants_.push_front(variant);
  if (variants_.size() > kVariants) variants_.pop_back();
  frame.keep(variant);
  return &chunk;
}

// Values that somebody outside of the chunk reads stay; then offsets are decided and written down.
void Plan::finish_memory(Chunk& chunk, MemoryPlan& memory, Emitter& emitter, uint32_t segment) const {
  const std::vector<Home>& homes = emitter.homes();
  const std::vector<uint32_t>& nodes = draft_->segments[segment].nodes;
  std::vector<bool> inside(draft_->nodes.size());
  for (uint32_t i = 0; i < chunk.end; ++i) inside[nodes[i]] = true;
  for (uint32_t n : draft_->order) {
    const DraftNode& node = draft_->nodes[n];
    for (uint32_t input : node.inputs) {
      const Home& home = homes[draft_->values[input].slot];
      if (!inside[n] && home.segment == segment) memory.keep(home.item);
    }
  }
  for (uint32_t fetch : draft_->fetches) {
    const Home& home = homes[draft_->values[fetch].slot];
    if (home.segment == segment) memory.keep(home.item);
  }
  memory.solve(static_cast<uint32_t>(chunk.instructions.size()));
  for (uint32_t slot = 0; slot < homes.size(); ++slot) {
    if (homes[slot].segment == segment) chunk.places.push_back({slot, memory.offset(homes[slot].item)});
  }
  for (uint32_t i = 0; i < chunk.instructions.size(); ++i) {
    if (chunk.instructions[i].workspace >= 0) chunk.instructions[i].workspace = memory.workspace_offset(i);
  }
}

}  // namespace dtg
