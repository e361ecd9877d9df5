// CallTable: requests of one connection that wait for their replies, by call number, each with a deadline. Owned by the
// connection; belongs to the loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/status.h"
#include "net/loop.h"

namespace dtg {

class CallTable {
 public:
  // The status, and when it is ok the header of the answer. When it throws over an answer, it is told RESOURCE_EXHAUSTED
  // instead, since somebody waits.
  using Done = std::function<void(const Status&, std::string_view header)>;

  explicit CallTable(Loop& loop);
  ~CallTable();
  CallTable(const CallTable&) = delete;
  CallTable& operator=(const CallTable&) = delete;

  // The number of a new call; `what` names it when nobody answers in time.
  uint32_t start(std::string what, Deadline deadline, Done done);
  // False when nobody waits for that answer (any more).
  bool finish(uint32_t call, std::string_view header);
  void fail_all(const Status& reason);
  size_t size() const { return calls_.size(); }

 private:
  struct Call;
  void expire(uint32_t number);

  Loop& loop_;
  uint32_t last_ = 0;
  std::unordered_map<uint32_t, std::unique_ptr<Call>> calls_;
};

}  // namespace dtg
