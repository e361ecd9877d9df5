// Connection: one session at a server: its parts and its runs, which end with it. Or a neighbour: another task that only
// brings what parts of a session, which is connected here itself, make over there; or a member of a group of this task's. Loop thread;
// results of work on the pool are posted back to it.
#pragma once

#include <unordered_map>

#include "base/json.h"
#include "cluster/group.h"
#include "cluster/neighbours.h"
#include "cluster/part_run.h"
#include "cluster/server.h"

namespace dtg {

class Connection final : public RefCounted, public Link::Listener {
 public:
  Connection(Server& server, Ref<Channel> channel);
  ~Connection() override;
  void open();
  // The server is stopping.
  void close(const Status& reason);
  bool idle() const { return runs_.empty(); }
  // `fn` is called once, when the last of the runs has ended.
  void when_idle(std::function<void()> fn) { when_idle_ = std::move(fn); }
  // To a session of a worker; nothing to others.
  void tell_roll(const wire::Roll& roll);
  // For whoever asks what the server is doing.
  Json state() const;

 private:
  class Registration;
  class Dial;
  struct Run {
    Ref<PartRun> run;
    std::unique_ptr<AlarmCall> deadline;
    uint64_t write = 0;  // what its writes are known by
    bool waits = false;  // for an earlier attempt at the same, which has not ended
  };

  Result<Channel::Landing> payload(const wire::Prefix& prefix, std::string_view header) override;
  Status message(const wire::Prefix& prefix, std::string_view header) override;
  bool parts(const wire::Prefix& prefix, std::string_view header) override { return member_ && member_->parts(prefix, header); }
  void lost(const Status& reason) override;

  Status hello(uint32_t call, std::string_view header);
  Status check_hello(const wire::Hello& hello) const;
  Status greet_neighbour(const wire::Hello& hello);
  Status greet_member(const wire::Hello& hello);
  void end_earlier_lives(const Fence::Life& life);
  void let_in(uint32_t call, const wire::Hello& hello, const Status& status);
  Status register_part(uint32_t call, std::string_view header);
  void registered(const Ref<Registration>& registration, Result<Ref<ServedPart>> part);
  void answer(const Ref<Registration>& registration, Result<Ref<ServedPart>> part, const std::vector<std::string>& unreachable);
  void late(Registration& registration);
  Status run_part(std::string_view header);
  Status start_run(const wire::RunPart& request);
  void add_run(const wire::RunPart& request, const WriteId& write, const Ref<ServedPart>& part, const Ref<StepEdges>& edges,
               Deadline deadline);
  Result<WriteId> write_of(const wire::RunPart& request) const;
  void start_repetition(uint64_t write);
  void run_ended(uint64_t sequence, const Status& status);
  Status abort_run(std::string_view header);
  Status reset(uint32_t call, std::string_view header);
  Status end_job(uint32_t call, std::string_view header);
  Status inspect(uint32_t call, std::string_view header);
  Json outcome(uint64_t write) const;
  Status arrive(uint32_t call, std::string_view header);
  void attend(const wire::Hello& hello);
  Status check_parts(const wire::RunPart& request) const;
  void drop_graph();
  void tell(const std::string& what) const;

  Server* server_;  // null when the server has stopped
  const Ref<Task> task_;
  const Timing timing_;
  Loop& loop_;
  const Ref<Link> link_;
  const Ref<Fence> fence_;
  bool greeting_ = false;  // hello has come
  bool known_ = false;     // and passed
  bool neighbour_ = false;
  bool attends_ = false;      // a worker's, at the task that keeps the attendance
  bool hears_roll_ = false;   // its process knows what that means
  Ref<GroupPeer> member_;     // that the other end is, in a group of ours
  uint64_t session_ = 0;      // which it is, or for which the neighbour brings values
  Fence::Life life_;          // of a task's session
  std::string peer_task_;     // whom the session speaks for; empty: a client that is no task
  Ref<const Rights> rights_;  // its
  uint64_t last_part_ = 0;
  std::unordered_map<uint64_t, Ref<ServedPart>> parts_;
  std::vector<Ref<Registration>> registrations_;  // under way
  std::unordered_map<uint64_t, Run> runs_;
  std::function<void()> when_idle_;
  Neighbours neighbours_;
  Ref<Buffer> graph_;  // on its way in
  size_t graph_bytes_ = 0;
};

}  // namespace dtg
