// Cluster: one simulated job: parameter servers, workers that add to their cells as fast as they may, or step by step together
// (strict.h), faults, and the checks. A seed is a history: the same seed ends in the same one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "checkpoint/model_disk.h"
#include "job.h"
#include "ledger.h"
#include "net.h"
#include "order.h"
#include "process.h"
#include "strategy/replicas.h"

namespace dtg::sim {

class StrictWorker;
class WorkerHost;
// What the workers of a seed do; `any`: as the seed says, which is never to be elastic.
enum class Work : uint8_t { any, strict, elastic };
enum class Adding : uint8_t { plain, in_branch, in_rounds, in_strand };  // how a worker adds to a cell

inline constexpr double kSimulatedSeconds = 65;  // of a seed, at least

class Cluster final {
 public:
  Cluster(uint64_t seed, bool talks, Work work = Work::any);
  ~Cluster();
  Outcome run();

 private:
  struct Member {
    std::string name;
    bool is_server = false;
    int index = 0;
    std::unique_ptr<Process> process;
    std::shared_ptr<ModelDisk> disk;  // of a server that keeps its state
    int64_t back_at_ns = 0;           // while it is down
    bool stays_away = false;          // it was killed for good
  };
  void start(Member& member);
  void serve(Process& process, int index);
  void work(Process& process, int index);
  void add(Process& process, const std::string& target, int index);
  void train(Process& process, const std::string& target, int index);
  bool step(Process& process, WorkerHost& host, int index);
  void look_at_order(Process& process, WorkerHost& host);
  void audit(Process& process);
  void audit_steps(StrictWorker& worker);
  void disturb();
  void kill(Member& one, int64_t away_ns);
  void fail_disk(Member& one, int64_t lasts_ns);
  void rest();
  void take_one_away();
  Replication share(int index) const {
    return {.mode = elastic_ ? SyncMode::elastic : SyncMode::strict, .worker = index, .total = workers_, .elements = elastic_ ? 7 : 0};
  }
  void wrong(const std::string& what);

  World world_;
  Net net_;
  int servers_, workers_;
  const bool elastic_;      // with whoever is there
  const bool strict_;       // synchronous training, on servers that keep their state or are not killed
  const bool keeps_state_;  // the servers do
  const Adding adding_;
  const bool keeps_order_;  // steps that do not commute
  Ledger ledger_;
  OrderWatch order_;
  std::vector<Member> members_;
  std::vector<std::unique_ptr<Process>> remains_;  // of those that were killed
  std::vector<int> next_step_;
  std::vector<int64_t> last_done_ns_;
  int64_t calm_from_ns_ = 0;
  int faults_ = 0;
  bool quiet_ = false;     // no worker begins a step any more
  bool over_ = false;      // everybody goes home
  bool is_asked_ = false;  // for what the servers hold
  bool audited_ = false;
  bool finished_ = false;  // there are no cells left for another step
  std::string wrong_;
};

}  // namespace dtg::sim
