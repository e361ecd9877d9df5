// Departures: tells a task's resources which sessions are connected (exec/presence.h). A connection that breaks may be followed by another
// at once, so a session counts as gone only when it has been without one for a second, or has said goodbye. What is silent is noticed after
// T_dead, so nobody waits longer for a session that died than T_dead and that second.
//
// Who was connected to a former life of the task needs time to find this one: so long the roll is not settled.
//
// Owner: the server. Loop thread; open() and close() through it.
#pragma once

#include <map>

#include "cluster/host.h"
#include "exec/presence.h"

namespace dtg {

class Departures final {
 public:
  Departures(Loop& loop, const Timing& timing, Ref<Presence> presence);

  void open();
  // Of no use any more; it was opened or not.
  void close();
  void came(uint64_t session);
  // `clean`: it said goodbye.
  void left(uint64_t session, bool clean);

 private:
  static constexpr int64_t kBackNs = 1'000'000'000;  // who is back before that was not gone
  void review();

  Loop& loop_;
  const int64_t settle_ns_;
  const Ref<Presence> presence_;
  std::map<uint64_t, int64_t> gone_at_;  // when they will count as gone
  int64_t settled_at_ns_ = INT64_MAX;
  bool closed_ = false;
  AlarmCall alarm_;
};

}  // namespace dtg
