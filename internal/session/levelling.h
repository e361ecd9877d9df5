// Levelling: which runs bring the tasks of a replicated update to where it can go on after a task was lost, one after the other: what any
// of them has applied is applied by all (strategy/staging.h), and the workers are asked for what is missing. Whoever waits for the runs,
// and whoever does not, asks here for the next.
//
// One thread at a time.
#pragma once

#include <vector>

#include "strategy/remedy.h"
#include "tensor/tensor.h"

namespace dtg {

class Levelling {
 public:
  explicit Levelling(Remedy remedy) : remedy_(std::move(remedy)) {}

  struct Wanted {
    std::vector<Value> fetches;
    std::vector<NodeId> targets;
    bool is_nothing() const { return fetches.empty() && targets.empty(); }
  };
  // The next run, by what the last fetched; nothing: all has been run. DATA_LOSS where a task is further behind than what it keeps can
  // mend.
  Result<Wanted> next(const std::vector<Tensor>& fetched);

 private:
  enum class Stage : uint8_t { begin, flags, notes, follow, resume, done };
  Wanted ask_flags();
  Wanted ask_notes();
  Wanted resume();
  Status judge(const std::vector<Tensor>& notes);

  const Remedy remedy_;
  Stage stage_ = Stage::begin;
  std::vector<NodeId> behind_;  // what those do that have to follow
};

}  // namespace dtg
