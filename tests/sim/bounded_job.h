// BoundedJob: one simulated job of workers that train with bounded staleness: each step adds 1 to a cell of its own on every server, and
// its worker may be no more than so many steps ahead of the slowest that is there. A seed is a history.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "checkpoint/model_disk.h"
#include "job.h"
#include "ledger.h"
#include "net.h"

namespace dtg::sim {

class BoundedWorker;

class BoundedJob final {
 public:
  BoundedJob(uint64_t seed, bool talks);
  ~BoundedJob();
  Outcome run();

 private:
  struct Member {
    std::string name;
    bool is_server = false;
    int index = 0;
    std::unique_ptr<Process> process;
    std::shared_ptr<ModelDisk> disk;  // of a server that keeps its state
    bool stays_away = false;          // it was killed for good
  };
  // What the host of a worker knows of its clock.
  struct Seen {
    int64_t clock = -1;  // told last; negative: not known
    bool busy = false;   // a step is under way, which may have counted
    int64_t done_ns = 0;
  };
  void start(Member& member);
  void serve(Process& process, int index);
  void work(Process& process, int index);
  bool step(Process& process, BoundedWorker& worker, int index);
  void judge_staleness(int index);
  void audit(BoundedWorker& reader);
  void disturb();
  void rest();
  void wrong(const std::string& what);

  World world_;
  Net net_;
  const int servers_, workers_, staleness_;
  const bool keeps_state_;
  const bool is_undisturbed_;
  Ledger ledger_;
  std::vector<Member> members_;
  std::vector<std::unique_ptr<Process>> remains_;  // of those that were killed
  std::vector<Seen> seen_;
  std::vector<int> next_step_;
  std::vector<int64_t> pause_ns_;  // between two steps of a worker
  int64_t calm_from_ns_ = 0;       // no faults any more
  int64_t sound_from_ns_ = 0;      // and nothing left of them
  int faults_ = 0;
  bool quiet_ = false;     // no worker begins a step any more
  bool over_ = false;      // everybody goes home
  bool is_asked_ = false;  // for what the servers hold
  bool audited_ = false;
  std::string wrong_;
};

}  // namespace dtg::sim
