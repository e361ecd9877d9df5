// GroupHost: the program of one member of a simulated group: it forms the group, makes step after step of collectives with the others, and
// forms it anew when an epoch has ended. What comes out is held against the oracle (collective_ask.h), and who is named for an end against
// those who can have caused it.
//
// The fiber of its process.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cluster/server.h"
#include "collective_ask.h"
#include "process.h"
#include "session/collective_run.h"

namespace dtg::sim {

// What all hosts of one simulated job share.
struct GroupWatch {
  GroupWatch(World& w, uint64_t s, int m)
      : world(w),
        seed(s),
        members(m),
        guilty_until_ns(static_cast<size_t>(m)),
        last_done_ns(static_cast<size_t>(m)),
        done_in(static_cast<size_t>(m)) {}
  void wrong(const std::string& what);
  // May be named for an end from now on.
  void accuse(int member, int64_t lasts_ns);
  void accuse_all(int64_t lasts_ns) {
    for (int member = 0; member < members; ++member) accuse(member, lasts_ns);
  }
  static std::string task(int member) { return "/job:worker/replica:0/task:" + std::to_string(member); }
  // An error that a member was told names somebody who can have caused it.
  void judge_error(const std::string& who, const std::string& what, const Status& status);

  World& world;
  const uint64_t seed;
  const int members;
  std::string spec;
  int64_t calm_from_ns = 0;
  bool only_kills = false;  // no other faults
  bool come_again = false;  // members leave and join again, and nothing else happens, so nothing may fail
  bool quiet = false;       // no step is begun that not all begin
  bool over = false;        // everybody goes home
  // Whom an epoch was seen with, and by which lives of members. Where none of them lives any more, a group begins anew with 1.
  struct Seen {
    std::vector<std::string> members;
    std::set<uint64_t> lives;
  };
  std::map<uint64_t, Seen> epochs;
  uint64_t lives = 0;
  std::set<uint64_t> living;
  std::vector<int64_t> guilty_until_ns;  // by member
  std::vector<int64_t> last_done_ns;
  std::vector<size_t> done_in;                // how many were in the epoch of the last step
  std::function<void(uint64_t)> epoch_ended;  // somebody was told that it has
  int64_t done = 0, failed = 0;
  std::string first_wrong;
};

class GroupHost final {
 public:
  GroupHost(GroupWatch& watch, Process& process, int member) : watch_(watch), process_(process), member_(member), life_(++watch.lives) {
    watch_.living.insert(life_);
  }
  uint64_t life() const { return life_; }
  // Its process was killed.
  void died() { watch_.living.erase(life_); }
  void run();
  // Null while it has not joined.
  const Ref<Group>& group() const { return group_; }
  bool idle() const { return idle_; }

 private:
  enum class Course : uint8_t { on, anew, quiet };
  struct Call {
    CollectiveAsk ask;
    Ref<CollectiveRun> run;
    bool is_agreement = false;  // on the step
    bool odd = false, somebody_odd = false;
    int odd_member = -1;
    int64_t deadline_ns = 0;
  };
  bool goes_on() const { return !process_.is_cut_off() && !watch_.over; }
  bool join(Server& server);
  bool form(bool with_all = false);
  void look_around();
  Course step();
  Course agree();
  Status make(std::vector<Call>& calls);
  Status wait_for(std::vector<Call>& calls);
  void ended(Call& call, const Status& status);
  void check_time(int64_t until_ns, const std::string& what);
  void leave(Server& server);
  void live_again_and_again(Server& server);
  bool broadcast_last(uint64_t life);
  void ask_once_more();
  bool come_again(Server& server);

  GroupWatch& watch_;
  Process& process_;
  const int member_;
  const uint64_t life_;
  Ref<CompletionQueue> queue_;
  Ref<Group> group_;
  Group::View view_;
  std::vector<int> tasks_;  // of the epoch, by rank
  uint64_t step_ = 0;       // done so far
  int in_epoch_ = 0;        // steps
  bool idle_ = false;
};

}  // namespace dtg::sim
