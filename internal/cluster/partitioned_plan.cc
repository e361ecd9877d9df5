// A run of parts on several tasks.
#include "cluster/partitioned_plan.h"

namespace dtg {

PartitionedPlan::~PartitionedPlan() {
  for (const Piece& piece : others_) {
    try {
      piece.worker->drop(piece.part);
    } catch (const std::bad_alloc&) {
      // The task keeps its part for as long as it is connected.
    }
  }
}

bool PartitionedPlan::others_are_current() const {
  return !stale_.load(std::memory_order_relaxed) &&
         std::ranges::all_of(others_, [](const Piece& piece) { return piece.worker->is_current(piece.part); });
}

Status PartitionedPlan::begin_others(Run& run) {
  std::vector<Ref<Link>> links;
  for (const Piece& piece : others_) links.push_back(piece.part.link);
  run.set_edges(make_ref<StepEdges>(host_.loop(), *host_.seams.budget, edges_, std::move(links), run.sequence(), true));
  DTG_TRY(run.edges()->enter());
  run.edges()->begin(run.frame().step());
  for (const Piece& piece : others_) DTG_TRY(piece.worker->run(piece.part, run));
  return {};
}

bool PartitionedPlan::lost_keep_state() const {
  return std::ranges::any_of(others_, [](const Piece& piece) { return piece.part.keeps_state; }) &&
         std::ranges::all_of(others_, [](const Piece& piece) { return piece.part.link->is_open() || piece.part.keeps_state; });
}

NodeId PartitionedPlan::first(const Run& run) const {
  return run.edges() && run.edges()->made() == StepEdges::Made::yes ? repeats_->first_if_made : repeats_->first;
}

PartitionedPlan::Remedy PartitionedPlan::remedy(const Run& run, const Status& status) {
  if (status.ok()) {
    const bool unmade = repeats_ && run.edges() && run.edges()->made() == StepEdges::Made::no;
    return unmade ? Remedy::once_more : Remedy::none;
  }
  const bool may_pass = status.code() == Code::unavailable || status.code() == Code::aborted;
  if (!run.edges() || !may_pass) return Remedy::none;
  // A task that refused does not know its part any more, or something the part names is gone, or a task that it exchanges values with.
  stale_.store(true, std::memory_order_relaxed);
  if (status.code() == Code::aborted && home_is_pure_ && run.edges()->refused()) return Remedy::anew;
  const auto is_lost = [](const Piece& piece) {
    return !piece.part.link->is_open() && piece.part.link->reason().code() == Code::unavailable;
  };
  const bool lost = status.code() == Code::unavailable || run.edges()->any_refused() || std::ranges::any_of(others_, is_lost);
  if (!lost) return Remedy::none;
  return is_repeatable_ ? Remedy::again : repeats_ ? Remedy::afresh : Remedy::none;
}

}  // namespace dtg
