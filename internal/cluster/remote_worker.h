// RemoteWorker: a task in another process, over a link that is made again when it was lost. Connecting is a state machine on the
// loop: dial, greet, and after a failure that may pass a pause and once more, as long as somebody wants it.
//
// Any thread, but connect(); the state machine belongs to the loop's.
#pragma once

#include <list>
#include <mutex>

#include "cluster/absentees.h"
#include "cluster/spec.h"
#include "cluster/worker.h"
#include "net/credentials.h"

namespace dtg {

class RemoteWorker final : public Worker {
 public:
  // `name` may be empty: then whoever listens there will do. `self` is the task that the session speaks for; empty: none. A
  // neighbour only brings values that parts of the session make at that task. What the task says of who is gone goes into `absentees`.
  RemoteWorker(const Host& host, const Timing& timing, std::string name, Address address, std::string self, uint64_t session,
               bool is_neighbour = false, Ref<Absentees> absentees = nullptr);
  ~RemoteWorker() override;

  // That of the first hello where it was open; before that, empty.
  const std::string& name() const override { return name_; }
  void connect(Deadline deadline, Done done) override;
  void reach(Deadline deadline, Done done) override;
  Status run(const Part& part, Run& run) override;
  void drop(const Part& part) override;
  void register_part(Ref<Graph> graph, PlanRequest request, Deadline deadline, Answer<Part> answer) override;
  void reset(const std::vector<std::string>& containers, Deadline deadline, Done done) override;
  void end_job(Deadline deadline, Done done) override;
  void arrive(uint64_t session, const wire::Arrive& question, Deadline deadline, Answer<wire::ArriveReply> answer) override;
  void inspect(uint64_t write, Deadline deadline, Answer<std::string> answer) override;
  bool is_current(const Part& part) const override;
  std::vector<std::string> devices() const override;
  std::string cluster() const override;
  bool is_there() const override;
  uint64_t life() const override;
  bool keeps_state() const override { return (features() & wire::kKeepsState) != 0; }
  void close() override;
  // Of the last connection; null before the first.
  Ref<Link> link() const;

 private:
  class Hearing;
  // Somebody who wants a connection.
  struct Waiter {
    Deadline deadline;
    Done done;
    bool needs_state;  // hears that it was lost
    std::unique_ptr<AlarmCall> alarm;
  };
  using Waiters = std::list<Waiter>;

  // Loop thread.
  void seek(Deadline deadline, bool needs_state, Done done);
  void want(Credentials credentials, Deadline deadline, bool needs_state, Done done);
  void attempt();
  void dialled(Result<Ref<Channel>> channel, Deadline until);
  void greeted(const Ref<Link>& link, Status status, const wire::HelloReply& reply);
  void take_over(const wire::HelloReply& reply, const Ref<Link>& link);
  Status take_loss();
  void failed(const Status& status);
  void late(Waiters::iterator waiter);
  void tell_of_trying();
  void tell(Waiters told, const Status& status);
  void rest();
  void shut();

  std::string where() const;
  uint64_t features() const;
  Status explained(const Status& status) const;
  // A question and its answer, over the present link.
  template <class M>
  void ask(const Ref<Link>& link, const char* what, Deadline deadline, std::function<std::unique_ptr<OutFrame>(uint32_t)> question,
           std::function<void(const Status&, M&)> answer);

  const Host host_;
  const Timing timing_;
  std::string name_;  // set by the first hello when it was open
  const Address address_;
  const std::string self_;
  const uint64_t session_;
  const bool is_neighbour_;
  const Ref<Hearing> hearing_;
  mutable std::mutex mutex_;  // guards what follows
  Ref<Link> link_;
  wire::HelloReply known_;
  uint64_t epoch_ = 0;
  bool lost_state_ = false;  // which nobody was told yet who needs it
  // Loop thread.
  Credentials credentials_;
  Waiters waiters_;
  bool trying_ = false;  // an attempt is under way, or the pause after one
  bool dialling_ = false;
  Ref<Link> greeting_;  // that the hello went over
  bool closed_ = false;
  int64_t pause_ns_ = 0;
  Status last_;  // why the last attempt failed
  AlarmCall pause_;
  AlarmCall notice_;
  int64_t noticed_ns_ = 0;  // when a line was last written about this task; 0: never
};

}  // namespace dtg
