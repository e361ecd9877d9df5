// ClosureJob: one simulated coordinator, the workers it gives closures to, which are killed and come back, and the parameter servers that
// count what was done. A closure adds 1 to a cell of its own on every server, from a value that a worker computes. A seed is a history.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "job.h"
#include "net.h"

namespace dtg::sim {

class ClosureJob final {
 public:
  ClosureJob(uint64_t seed, bool talks);
  ~ClosureJob();
  Outcome run();

 private:
  static constexpr int kCells = 4096;
  struct Member {
    std::string name, job;
    int number = 0;
    std::unique_ptr<Process> process;
  };
  void start(Member& member);
  void serve(Process& process, const Member& member);
  void coordinate(Process& process);
  void disturb();
  void wrong(const std::string& what);

  World world_;
  Net net_;
  const int servers_, workers_;
  const bool is_told_;  // of each death at once, and nobody stands still
  std::vector<Member> members_;
  std::vector<std::unique_ptr<Process>> remains_;  // of those that were killed
  int64_t calm_from_ns_ = 0;
  int64_t last_change_ns_ = 0;  // a worker was killed, or is back
  int64_t done_ = 0;
  int faults_ = 0;
  bool over_ = false, finished_ = false;
  std::string wrong_;
};

}  // namespace dtg::sim
