// CollectiveAsk: one collective of a simulated group as its seed decides it, what each member brings, and what has to come out, computed
// by plain loops in the one order of additions that the design states: the first is the bucket's number modulo the contributions, the
// others follow by rank, around the end.
//
// What a member brings hangs on the epoch and the step too, so that a piece of another attempt would show. Values; one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "collective/call.h"

namespace dtg::sim {

class CollectiveAsk final {
 public:
  // `members` are the tasks of the epoch by rank; the same on each of them. The call of that number in the step.
  CollectiveAsk(uint64_t seed, uint64_t epoch, uint64_t step, int number, std::vector<int> members);

  const CallTerms& terms() const { return terms_; }
  // What the member of that rank asks.
  CollectiveCall call(int rank) const;
  // What a member asks that means something else; it differs from all others in what they have to agree on.
  CollectiveCall odd_call(int rank) const;
  // A broadcast that differs may have reached some members before, and where nothing travels not all of them meet.
  bool may_be_odd() const { return terms_.kind == Collective::barrier || (terms_.kind != Collective::broadcast && rows_ > 0); }
  // Where the result is not what it has to be; empty: nothing is wrong.
  std::string judge(int rank, const Tensor& result) const;

 private:
  int64_t rows_of(int rank) const;
  int64_t split(int from, int to) const;
  Tensor brought(int rank, uint32_t part) const;
  Tensor result(int rank) const;
  Tensor reduced() const;
  uint64_t chance(uint64_t what) const;

  const uint64_t tag_;
  const std::vector<int> members_;
  CallTerms terms_;
  int64_t rows_ = 0, columns_ = 1;
};

}  // namespace dtg::sim
