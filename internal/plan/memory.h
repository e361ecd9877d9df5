// MemoryPlan: offsets for the values and workspaces of one chunk. Values live from the instruction that makes
// them to the last one that reads them; a block that became free is used again, an element-wise result may
// take the place of an operand that dies. Because a chunk is a straight line, its order is the only thing
// this relies on. Pure; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace dtg {

class MemoryPlan {
 public:
  // A value of `bytes`, made by instruction `from`. Returns its number.
  uint32_t value(int64_t bytes, uint32_t from);
  void used(uint32_t value, uint32_t instruction);  // read by that instruction
  void keep(uint32_t value);                        // needed beyond the chunk: never reused
  void drop(uint32_t value);                        // lives elsewhere: gets no offset here
  void workspace(int64_t bytes, uint32_t instruction);
  // `out` (made by `instruction`) may be written over `in`.
  void may_overwrite(uint32_t in, uint32_t out, uint32_t instruction);

  // Decides all offsets; returns the bytes needed.
  int64_t solve(uint32_t instruction_count);
  int64_t bytes() const { return top_; }
  int64_t offset(uint32_t value) const { return values_[value].offset; }
  int64_t workspace_offset(uint32_t instruction) const;

 private:
  struct Item {
    int64_t bytes = 0;
    uint32_t from = 0;
    uint32_t last = 0;
    bool kept = false;
    bool dropped = false;
    bool given = false;  // its block went to an output written over it
    int64_t offset = -1;
  };
  struct Overwrite {
    uint32_t in, out, instruction;
  };
  int64_t take(int64_t bytes);
  void give(int64_t offset, int64_t bytes);
  bool overwrite(uint32_t value);

  std::vector<Item> values_;
  std::vector<Item> workspaces_;
  std::vector<Overwrite> overwrites_;
  std::map<int64_t, int64_t> free_;  // offset -> bytes
  int64_t top_ = 0;
};

}  // namespace dtg
