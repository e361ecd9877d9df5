// Attendance: which workers of a job are there, and the barriers at which they wait for each other. One task of the cluster keeps it
// for all (home_of): every session of a worker is connected there, so that it sees who comes and who goes.
//
//   barrier      a name and who has arrived. When all workers have, each is released, and the name may be used again. One that is gone
//                for longer than its time to come back is named to all who wait, and their arrivals are void.
//   the end      the barrier of those whose work is done. A worker that is gone is not waited for, but named; the chief has to be there,
//                as it is the one that ends the job. That a worker's work is done stays true when it leaves. Where somebody asks for the
//                end of those who are there, workers that have said goodbye are not waited for, nor those that never came, once all who
//                were connected to an earlier life of this task had the time to come back; and who is lost has only that time, too.
//
// An arrival is known by its ticket: asking again with the same one joins the same arrival, and where that was released already, it is
// answered once more. Nothing waits here: a question is answered when something is decided, or within the time it says.
//
// Owner: the task. Loop thread; the answers and the announcements are called at the end of what made them due.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "cluster/absentees.h"
#include "cluster/host.h"
#include "cluster/spec.h"

namespace dtg {

class Attendance final : public RefCounted {
 public:
  using Answer = std::function<void(const wire::ArriveReply&)>;
  using Announce = std::function<void(const wire::Roll&)>;

  // The task that keeps it: the first of the job "ps", whom no device filter hides in practice; without one the chief's, or the first of
  // all. Empty where there is no task.
  static std::string home_of(const ClusterSpec& cluster);

  // At `self`. A worker that is gone has `timing.dead_ns` times kReturnFactor to come back. `announce` tells all sessions of workers.
  Attendance(const Host& host, const Timing& timing, const ClusterSpec& cluster, std::string self, Announce announce);
  ~Attendance() override;

  Loop& loop() const { return loop_; }
  // A session of that task has connected; `life` tells an earlier process of it from a later one.
  void came(const std::string& task, uint64_t life);
  // `clean`: it said goodbye.
  void left(const std::string& task, uint64_t session, bool clean, const Status& why);
  // A worker, or a chief that is none. Answered once, unless its session leaves before.
  void arrive(const std::string& task, uint64_t session, const wire::Arrive& question, Answer answer);
  // Those who are gone and were announced, for a session that has come meanwhile.
  std::vector<wire::Roll> absent() const;
  const Ref<Absentees>& absentees() const { return absentees_; }
  // The server stops: everybody is told, and so is who comes later.
  void close(const Status& why);
  Json state() const;

 private:
  static constexpr int kReturnFactor = 6;
  static constexpr int64_t kAnnounceNs = 1'000'000'000;  // who is back before that was not gone
  static constexpr size_t kBarriersMax = 1024;           // names that are remembered
  struct Member {
    std::string task;
    bool is_chief = false;
    bool came = false;
    size_t sessions = 0;
    uint64_t life = 0;
    bool is_done = false;  // has arrived at the end
    int64_t left_ns = 0;
    bool clean = false;
    std::string reason;
    bool announced = false;  // that it is gone
  };
  struct Arrival {
    uint64_t session = 0;
    uint64_t ticket = 0;
    int64_t expires_ns = 0;
    Answer answer;  // empty: the question was answered, the next one is on its way
    int64_t answer_ns = 0;
    bool those_there = false;
  };
  struct Barrier {
    std::map<std::string, Arrival> arrivals;                        // by task
    std::map<std::string, std::pair<uint64_t, uint64_t>> released;  // the last session and ticket of each task
    uint64_t used = 0;                                              // when it was asked for last, as a count
  };
  // What is to be said when the state is whole again: who is told may be gone by that, and its leaving comes back here.
  struct Said {
    std::vector<std::pair<Answer, wire::ArriveReply>> answers;
    std::vector<wire::Roll> rolls;
  };

  Member* find(const std::string& task);
  bool is_there(const Member& member) const { return member.task == self_ || member.sessions > 0; }
  bool is_lost(const Member& member, int64_t now_ns, int64_t return_ns) const;
  std::string described(const Member& member, int64_t now_ns) const;
  std::string list(const std::vector<const Member*>& of, int64_t now_ns) const;
  std::vector<const Member*> missing(const std::string& name, const Barrier& barrier, int64_t now_ns) const;
  bool asks_for_those_there(const Barrier& barrier) const;
  bool chief_is_there(const Barrier& barrier) const;
  Status check(const std::string& task, const wire::Arrive& question);
  void review();
  void decide(const std::string& name, Barrier& barrier, int64_t now_ns, Said& said);
  void look_at_times(const std::string& name, Barrier& barrier, int64_t now_ns, Said& said);
  void release_all(Barrier& barrier, const std::vector<std::string>& gone, Said& said);
  void fail_all(Barrier& barrier, const Status& why, Said& said);
  void announce_absences(int64_t now_ns, Said& said);
  int64_t next_due(int64_t now_ns) const;
  void tell(Said said);
  void forget_idle();

  const Host host_;
  Loop& loop_;
  const int64_t return_ns_;
  const int64_t brief_ns_;    // what those who are there have to come back, where only they are waited for
  const int64_t settled_ns_;  // from then on, who has not come was not there before
  const ClusterSpec cluster_;
  const std::string self_;
  const Announce announce_;
  const Ref<Absentees> absentees_;
  std::vector<Member> members_;
  std::map<std::string, Barrier> barriers_;  // by name; "" is the end
  bool has_ended_ = false;                   // who arrives at the end now need not wait
  uint64_t uses_ = 0;
  Status closed_;
  AlarmCall alarm_;
};

}  // namespace dtg
