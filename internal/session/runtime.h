// Runtime: what sessions share: the compute pool, the op and kernel tables, the seams, the timer. Several
// may live in one process; the default one is made at its first use and stays. Nothing here starts a
// thread before it is needed.
//
// Owner: the host through the C ABI, and every session. Shared by all threads.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "base/pool.h"
#include "base/ref.h"
#include "base/seams.h"
#include "cluster/directory.h"
#include "exec/kernel.h"
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
  };
  static Result<Ref<Runtime>> create(Options options);
  // The runtime of callers who name none.
  static Result<Ref<Runtime>> shared();

  const OpTable& ops() const { return ops_; }
  const KernelTable& kernels() const { return kernels_; }
  Pool& pool() { return pool_; }
  const Seams& seams() const { return seams_; }
  const Clock& clock() const { return *seams_.clock; }
  Timer& timer() { return timer_; }
  Counters& counters() { return counters_; }
  Tracer& tracer() { return tracer_; }
  // The runtime's numbers as Prometheus reads them.
  std::string metrics_text();
  // What clusters need of this runtime; starts the network loop with the first call.
  Result<Host> host();
  // A number no other session of this process has.

 private:
  explicit Runtime(Options options);
  void last_release() override;

  const Ref<RefCounted> log_owner_;
  MemoryBudget budget_;
  Seams seams_;
  Counters counters_;
  Tracer tracer_;
  OpTable ops_;
  KernelTable kernels_;
  Pool pool_;
  Timer timer_;
  Directory directory_;
  std::mutex loop_mutex_;
  std::unique_ptr<UvLoop> loop_;  // first to go: what it still runs may use everything above
};

}  // namespace dtg
