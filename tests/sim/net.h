// Net: what carries bytes between simulated processes: streams that take time, that a fault cuts or holds up, listeners at addresses,
// and nobody's word for it that the other end is there.
//
// One thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "net/network.h"
#include "process.h"

namespace dtg::sim {

class Stream;
class SimListener;

class Net final {
 public:
  explicit Net(World& world) : world_(world) {}

  World& world() { return world_; }
  // What the runtime of a process is handed.
  Result<std::unique_ptr<Network>> of(Process& process, const Clock& clock);
  // Nobody hears of it again, and it hears of nobody; as a rule those who are connected with it are told, and always where that is said.
  void always_tell() { always_tells_ = true; }
  void cut_off(Process& process);

  // Faults. What is sent from one to the other is held back; both ways are to be said.
  void block(const std::string& from, const std::string& to) { blocked_.insert({from, to}); }
  void heal();
  bool is_blocked(const std::string& from, const std::string& to) const { return blocked_.contains({from, to}); }
  // Breaks a connection between two who live, if there is one.
  bool break_one();
  // From now on bytes take up to so much longer.
  void slow_down(int64_t most_ns) { slow_ns_ = most_ns; }
  int64_t latency();

 private:
  friend class SimNetwork;
  friend class SimListener;
  friend class Stream;
  World& world_;
  std::set<std::pair<std::string, std::string>> blocked_;
  int64_t slow_ns_ = 0;
  bool always_tells_ = false;
  std::map<std::string, SimListener*> listeners_;
  std::vector<std::weak_ptr<Stream>> streams_;  // in the order in which they were made
};

}  // namespace dtg::sim
