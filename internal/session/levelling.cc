// From flags to notes, from notes to those who follow.
#include "session/levelling.h"

#include <algorithm>

namespace dtg {

Result<Levelling::Wanted> Levelling::next(const std::vector<Tensor>& fetched) {
  switch (stage_) {
    case Stage::begin: return remedy_.units.empty() ? resume() : ask_flags();
    case Stage::flags:
      // Before the first update there is nothing to compare.
      if (std::ranges::any_of(fetched, [](const Tensor& has) { return !has.values<bool>()[0]; })) {
        stage_ = Stage::follow;
        return Wanted{{}, {remedy_.begin_units}};
      }
      return ask_notes();
    case Stage::notes: DTG_TRY(judge(fetched)); [[fallthrough]];
    case Stage::follow: {
      stage_ = Stage::follow;
      if (behind_.empty()) return resume();
      const NodeId follow = behind_.back();
      behind_.pop_back();
      return Wanted{{}, {follow}};
    }
    default: stage_ = Stage::done; return Wanted{};
  }
}

Levelling::Wanted Levelling::ask_flags() {
  stage_ = Stage::flags;
  Wanted wanted;
  for (const UpdateUnit& unit : remedy_.units) {
    if (unit.has_note.valid()) wanted.fetches.push_back(unit.has_note);
  }
  return wanted.is_nothing() ? ask_notes() : wanted;
}

Levelling::Wanted Levelling::ask_notes() {
  stage_ = Stage::notes;
  Wanted wanted;
  for (const UpdateUnit& unit : remedy_.units) {
    wanted.fetches.push_back(unit.applied);
    wanted.fetches.push_back(unit.kept.valid() ? unit.kept : unit.applied);
  }
  return wanted;
}

Levelling::Wanted Levelling::resume() {
  stage_ = Stage::done;
  return remedy_.first == kNoNode ? Wanted{} : Wanted{{}, {remedy_.first}};
}

// Everybody at the same step: the furthest that any is at.
Status Levelling::judge(const std::vector<Tensor>& notes) {
  const auto number = [&](size_t i) { return static_cast<long long>(notes[i].values<int64_t>()[0]); };
  long long furthest = 0;
  for (size_t i = 0; i < notes.size(); i += 2) furthest = std::max(furthest, number(i));
  for (size_t i = 0; i < remedy_.units.size(); ++i) {
    const UpdateUnit& unit = remedy_.units[i];
    const long long applied = number(2 * i), kept = number(2 * i + 1);
    if (applied == furthest) continue;
    if (applied != furthest - 1 || kept != applied) {
      return data_loss(
          "recover: %s at step %lld, while others are at %lld, and what it keeps is for step %lld; restore the variables from a "
          "checkpoint (if they were: run chief_init once before this)",
          (unit.what.empty() ? "the variables are" : unit.what + " is").c_str(), applied, furthest, kept);
    }
    behind_.push_back(unit.follow);
  }
  return {};
}

}  // namespace dtg
