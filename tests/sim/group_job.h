// GroupJob: one simulated group of 2 to 6 members, what befalls it, and the checks. A seed is a history: the same seed ends in the same
// one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "group_host.h"
#include "job.h"
#include "net.h"

namespace dtg::sim {

class GroupJob final {
 public:
  GroupJob(uint64_t seed, bool talks);
  ~GroupJob();
  Outcome run();

 private:
  struct Member {
    std::string name;
    int number = 0;
    std::unique_ptr<Process> process;
    std::unique_ptr<GroupHost> host;
  };
  void start(Member& member);
  void kill(Member& member, int64_t back_in_ns);
  void expect_end(uint64_t epoch, const std::string& why);
  void disturb();
  void rest();
  void check_calm();
  void check_quiet();

  World world_;
  Net net_;
  const bool only_kills_;  // each of which is to be named
  GroupWatch watch_;
  std::vector<Member> members_;
  std::vector<std::unique_ptr<Process>> remains_;  // of those that were killed
  std::vector<std::unique_ptr<GroupHost>> hosts_;  // of those
  int faults_ = 0;
};

}  // namespace dtg::sim
