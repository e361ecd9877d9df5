// Runtime: what sessions share: the compute pool, the op and kernel tables, the seams, the timer. Several
// may live in one process; the default one is made at its first use and stays. Nothing here starts a
// thread before it is needed.
//
// Owner: the host through the C ABI, and every session. Shared by all threads.
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "base/pool.h"
#include "base/ref.h"
#include "base/seams.h"
#include "cluster/directory.h"
#include "exec/kernel.h"
#include "exec/memory_pool.h"
#include "graph/op_def.h"
#include "monitor/counter.h"
#include "monitor/trace.h"
#include "session/timer.h"

namespace dtg {

class Runtime final : public RefCounted {
 public:
  struct Options {
    int compute_threads = 0;  // 0: one per CPU this process may use
    bool pin_threads = false;
    int64_t spin_ns = 0;             // 0: the default
    int64_t memory_limit_bytes = 0;  // 0: half of what the machine or the cgroup has
    LogSink* log = nullptr;          // null: WARN and above to stderr
    Ref<RefCounted> log_owner;       // kept as long as the runtime
    // The outside world; null: this machine's. What is handed in stays until the runtime has gone.
    const Clock* clock = nullptr;
    const Random* random = nullptr;
    Disk* disk = nullptr;
    std::function<Result<std::unique_ptr<Network>>(const Clock&)> network;  // empty: sockets, on a loop with a thread
    // False: no thread for computing or for deadlines. Tasks run and deadlines ring when somebody calls turn(), so that a
    // simulator has everything in one thread.
    bool own_threads = true;
  };
  static Result<Ref<Runtime>> create(Options options);
  static constexpr int kThreadsMost = 1024;
  // The runtime of callers who name none; the options are those of the first call.
  static Result<Ref<Runtime>> shared(const Options& options);

  const OpTable& ops() const { return ops_; }
  const KernelTable& kernels() const { return kernels_; }
  Pool& pool() { return pool_; }
  const Seams& seams() const { return seams_; }
  const Clock& clock() const { return *seams_.clock; }
  Timer& timer() { return timer_; }
  // What runs work in, for all devices of this process.
  const Ref<MemoryPool>& memory() const { return memory_; }
  Counters& counters() { return counters_; }
  Tracer& tracer() { return tracer_; }
  // The runtime's numbers as Prometheus reads them.
  std::string metrics_text();
  // What clusters need of this runtime; starts the network with the first call.
  Result<Host> host();
  // The same for what stays in this process: no network.
  Host local_host();
  // Without threads of its own: runs what is queued and rings what is due. False: there was nothing.
  bool turn();

 private:
  explicit Runtime(Options options);
  ~Runtime() override;
  void last_release() override;

  const Ref<RefCounted> log_owner_;
  MemoryBudget budget_;
  Seams seams_;
  const uint64_t life_;
  const Ref<MemoryPool> memory_;
  Counters counters_;
  Tracer tracer_;
  OpTable ops_;
  KernelTable kernels_;
  Pool pool_;
  std::unique_ptr<Pool> disk_pool_;  // a thread that may wait for the disk; null: that is pool_'s to do
  Timer timer_;
  Directory directory_;
  const std::function<Result<std::unique_ptr<Network>>(const Clock&)> make_network_;
  std::mutex network_mutex_;
  std::unique_ptr<Network> network_;  // first to go: what it still runs may use everything above
};

}  // namespace dtg
