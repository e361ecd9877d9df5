// Host: what cluster code takes from the process it runs in. The runtime owns the parts; this only points.
#pragma once

#include <algorithm>

#include "base/pool.h"
#include "base/seams.h"
#include "exec/kernel.h"
#include "exec/memory_pool.h"
#include "net/network.h"
#include "wire/frame.h"
#include "wire/limits.h"

namespace dtg {

class Directory;

struct Host {
  Loop& loop() const { return network->loop(); }
  // What this end of a connection can do.
  uint64_t features() const { return wire::kFeatures & ~(shared_memory ? 0 : wire::kSharedMemory); }
  const OpTable* ops = nullptr;
  const KernelTable* kernels = nullptr;
  Pool* pool = nullptr;
  Pool* disk_pool = nullptr;  // whose threads may wait for the disk
  Seams seams;
  Ref<MemoryPool> memory;          // that runs work in
  Network* network = nullptr;      // null: a local session needs none
  Directory* directory = nullptr;  // servers of this process
  wire::Limits limits;
  SecurityOptions security = {};  // of connections that leave from here
  uint64_t life = 0;              // a number that the process drew when it began, so that a task's earlier life is not taken for it
  bool shared_memory = true;      // with processes of this host and user, over unix sockets
};

// A few words for the log; not with a lock held.
inline void say(const Host& host, LogLevel level, const std::string& message) {
  if (host.seams.log) host.seams.log->write(level, "cluster", message);
}

// The timers of design §6.8. Both ends of a link send as often as the one that asks for more (agreed_heartbeat_ns).
struct Timing {
  static constexpr int64_t kHeartbeatLeastNs = 10'000'000;
  int64_t heartbeat_ns = 1'000'000'000;
  int64_t dead_ns = 5'000'000'000;
  int64_t handshake_ns = 3'000'000'000;
  int64_t call_ns = int64_t{30} * 1'000'000'000;
  int64_t stall_ns = int64_t{10} * 1'000'000'000;

  int64_t agreed_heartbeat_ns(uint64_t theirs) const {
    const int64_t wanted = theirs == 0 || theirs > INT64_MAX ? heartbeat_ns : std::min(heartbeat_ns, static_cast<int64_t>(theirs));
    return std::max(wanted, kHeartbeatLeastNs);
  }
};

}  // namespace dtg
