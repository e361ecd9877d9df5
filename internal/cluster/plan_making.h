// PlanMaking: a plan for several tasks in the making: the graph is cut, the tasks are connected, each is given its part, and what is
// left is prepared at home. It computes on whoever calls advance() and waits for nobody: while the others have the word it stands
// still, and says when it can go on.
//
// Owner: whoever makes the plan, and the questions that are under way. advance() by one thread at a time, one plan of a driver at a
// time; answers come on the loop's.
#pragma once

#include <mutex>
#include <vector>

#include "cluster/driver.h"

namespace dtg {

class PlanMaking final : public RefCounted {
 public:
  PlanMaking(Ref<Driver> driver, Ref<Graph> graph, PlanRequest request, Deadline deadline, int64_t wanted_ns);

  // Goes on as far as it can. False: others have been asked.
  bool advance();
  // After that: calls `fn` once when they have answered, or give_up() was called; maybe at once.
  void when_answered(std::function<void()> fn);
  // Nobody is waited for any more; what goes on ends with `cause` in the next advance(). Any thread.
  void give_up(const Status& cause);
  // When advance() was true.
  Result<Ref<PartitionedPlan>> take() { return std::move(result_); }

 private:
  enum class Stage : uint8_t { cut, connected, registered };
  // A round of questions. Answers to one that was given up are dropped.
  struct Asked {
    uint64_t round = 0;
    size_t left = 0;
    std::vector<Status> status;
    std::vector<Worker::Part> parts;
    std::function<void()> then;
    Status given_up;
    bool ends_early = false;  // with the first error
  };

  Result<bool> step();
  Result<bool> cut();
  bool ask(Stage next, const std::function<void(size_t i, uint64_t round)>& question);
  void answered(uint64_t round, size_t i, Result<Worker::Part> answer);
  Status outcome();
  Status why(const Status& status);
  Result<bool> take_parts();
  Status finish(Part home);

  const Ref<Driver> driver_;
  const Ref<Graph> graph_;
  const PlanRequest request_;
  const Deadline deadline_;
  const int64_t wanted_ns_;
  Stage stage_ = Stage::cut;
  Partition parts_;
  Ref<PartitionedPlan> plan_;
  Result<Ref<PartitionedPlan>> result_{Status()};
  std::atomic<bool> is_given_up_{false};  // by give_up(), for who computes
  std::mutex mutex_;                      // guards asked_
  Asked asked_;
};

}  // namespace dtg
