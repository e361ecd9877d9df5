// InstanceCounts: how many calls each row of a group's calls has begun in an epoch. Instances are mostly numbered one after the other and
// called equally often, so neighbours with equal counts are kept as one: what they take does not grow with their number.
//
// Owner: the calls of a group. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace dtg {

class InstanceCounts final {
 public:
  // Rows that are no neighbours, at most.
  static constexpr size_t kRunsMost = size_t{1} << 16;

  uint64_t count(uint64_t row) const {
    const auto at = find(row);
    return at == runs_.end() ? 0 : at->second.count;
  }
  // May another row be begun?
  bool has_room() const { return runs_.size() < kRunsMost; }
  void add(uint64_t row) {
    const uint64_t count = take_out(row) + 1;
    uint64_t begin = row, end = row + 1;
    if (const auto after = runs_.find(end); after != runs_.end() && after->second.count == count) {
      end = after->second.end;
      runs_.erase(after);
    }
    if (const auto before = row == 0 ? runs_.end() : find(row - 1); before != runs_.end() && before->second.count == count) {
      begin = before->first;
      runs_.erase(before);
    }
    runs_[begin] = {end, count};
  }
  void clear() { runs_.clear(); }
  size_t runs() const { return runs_.size(); }

 private:
  struct Run {
    uint64_t end = 0;  // behind the last row
    uint64_t count = 0;
  };
  using Runs = std::map<uint64_t, Run>;  // by the first row

  Runs::const_iterator find(uint64_t row) const {
    auto at = runs_.upper_bound(row);
    if (at == runs_.begin()) return runs_.end();
    --at;
    return row < at->second.end ? at : runs_.end();
  }
  // Of its run, which falls into what is before it and what is behind it. Returns its count.
  uint64_t take_out(uint64_t row) {
    const auto at = find(row);
    if (at == runs_.end()) return 0;
    const uint64_t begin = at->first;
    const Run run = at->second;
    runs_.erase(at);
    if (begin < row) runs_[begin] = {row, run.count};
    if (row + 1 < run.end) runs_[row + 1] = run;
    return run.count;
  }

  Runs runs_;
};

}  // namespace dtg
