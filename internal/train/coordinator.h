// Coordinator: gives closures out to the workers of a cluster, one at a time to each, and takes back what came of them. A worker that is
// lost gives its closure back, and another one takes it; the writes of a closure are known by one number whoever makes them, that of the
// first attempt, so they take place once.
//
// Hosts' threads schedule and wait, under one lock; everything else happens in pump(), on the pool, one thread at a time. Runs and
// connections tell through a mailbox, which is empty once the coordinator was closed. Owner: the host's handle, which closes it.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "base/pool.h"
#include "session/async_run.h"
#include "train/remote_value.h"

namespace dtg {

class Coordinator final : public RefCounted, private Pool::Task {
 public:
  struct Options {
    std::string job = "worker";                                  // whose tasks are the workers
    int64_t capacity = 262'144;                                  // closures that may wait
    int64_t closure_timeout_ns = 0;                              // of one attempt at a closure; 0: the session's
    int64_t worker_timeout_ns = int64_t{3'600} * 1'000'000'000;  // how long a lost worker is looked for
    int64_t server_timeout_ns = int64_t{30} * 1'000'000'000;     // and a task that is not a worker
    int64_t closure_losses = 3;                                  // workers that may be lost at one closure; then it is at fault
  };
  static Result<Ref<Coordinator>> create(Ref<Session> session, Options options);
  ~Coordinator() override;

  // `worker`: a scalar int64 that is fed with the number of the worker; invalid: none.
  Result<Ref<RemoteClosure>> prepare(std::span<const Value> feeds, std::span<const Value> fetches, std::span<const NodeId> targets,
                                     Value worker);
  // Runs on each worker before its first closure, and again on one that was started anew; in the order of the calls.
  Status add_per_worker(Ref<RemoteClosure> closure, std::vector<Tensor> inputs);
  // Waits while the queue is full. An error of an earlier closure comes out here, too.
  Result<Ref<RemoteValue>> schedule(Ref<RemoteClosure> closure, std::vector<Tensor> inputs, int64_t timeout_ns, Cancellation* cancellation,
                                    Ref<CompletionQueue> queue = nullptr, uint64_t tag = 0);
  // Until all that was scheduled has ended. The first error, after which nothing runs, and the coordinator can be used again.
  Status join(int64_t timeout_ns, Cancellation* cancellation);
  Result<bool> done();
  // What waits and runs ends with CANCELLED; that is no error of join().
  void cancel();
  // The end of all of it. Idempotent.
  void close();
  // JSON, for people.
  std::string describe();

  size_t worker_count() const { return slots_.size(); }
  Session& session() const { return *session_; }

 private:
  struct Mailbox {
    std::mutex mutex;
    Ref<Coordinator> owner;  // null: closed
    Ref<Coordinator> find() {
      const std::lock_guard lock(mutex);
      return owner;
    }
  };
  // A task that is met again when it was lost.
  struct Other {
    std::string task;
    uint64_t life = 0;     // whose variables are known
    bool looking = false;  // a connection is wanted
    uint64_t sought = 0;   // the life it had when that began
    Status why;            // it is not there
  };
  struct Slot : Other {
    int64_t number = 0;
    bool busy = false;
    bool resource = false;  // of its own making, not a closure that was scheduled
    bool stopped = false;   // its run was told to end
    size_t made = 0;        // of per_worker_
    Ref<RemoteValue> work;
    Ref<AsyncRun> run;
    int64_t closures = 0;  // that ended well there
    int64_t losses = 0;    // times that it was gone, or came in a new life before anybody saw that it was
    bool gone = false;     // this loss is counted
  };
  struct Ended {
    size_t slot;
    Ref<AsyncRun> run;  // null: `status` says why there is none
    Status status;
  };
  struct Found {
    size_t other;  // slots first, then servers
    Status status;
  };
  // What is decided under the lock and done without.
  struct Start {
    size_t slot;
    Ref<RemoteValue> work;
    uint64_t write;
  };
  struct Finished {
    Ref<RemoteValue> work;
    Status status;
    std::vector<Tensor> values;
  };
  struct Doings {
    std::vector<Start> starts;
    std::vector<size_t> looks;
    std::vector<Ref<AsyncRun>> stops;
    std::vector<Finished> finished;
    bool empty() const { return starts.empty() && looks.empty() && stops.empty() && finished.empty(); }
  };

  Coordinator(Ref<Session> session, Options options);
  Status find_tasks();
  Status check(const RemoteClosure& closure, std::span<const Tensor> inputs, const char* what) const;
  Other& other(size_t i) { return i < slots_.size() ? slots_[i] : servers_[i - slots_.size()]; }
  void wake();
  void run() override;
  bool pump();
  void decide(Doings& doings);
  void take_end(Ended& ended, Doings& doings);
  void take_failure(Slot& slot, Ref<RemoteValue> work, const Ended& ended, const Status& status, Doings& doings);
  void take_found(const Found& found, Doings& doings);
  bool met_again(Slot& slot);
  bool is_deadly(const RemoteValue& work) const { return static_cast<int64_t>(work.lost_.size()) >= options_.closure_losses; }
  bool servers_are_there(Doings& doings, Status* lost);
  void seek(size_t other, Doings& doings);
  void fail(Status why, Doings& doings);
  void drain(const Status& why, Doings& doings);
  void dispatch(Doings& doings);
  bool may_start_fresh();
  void act(Doings& doings);
  void start(const Start& start);
  void look(size_t i);
  std::string lost_variables(const std::string& task) const;
  bool is_busy() const;
  // Under the lock: nothing goes on any more.
  bool is_quiet() const { return !is_busy() && !telling_; }
  bool has_failed() const { return !error_.ok(); }
  Status take_error();
  // As a host hears it: of what goes on here by itself, nobody else says where and when.
  Status told(Status status) const;
  std::string account() const;

  const Ref<Session> session_;
  const Options options_;
  const uint64_t number_;
  const std::shared_ptr<Mailbox> mailbox_;
  Condition state_;  // guards what follows
  std::vector<Slot> slots_;
  std::vector<Other> servers_;
  std::deque<Ref<RemoteValue>> queue_;
  std::vector<Ref<RemoteValue>> per_worker_;  // their closures and inputs; they never end
  std::vector<Ended> ended_;
  std::vector<Found> found_;
  Status error_;           // the first, until it was told
  bool draining_ = false;  // nothing starts, and what runs is told to end
  Status drain_why_;
  bool closed_ = false;
  bool awake_ = false;    // pump() runs, or is about to
  bool again_ = false;    // something happened meanwhile
  bool telling_ = false;  // remote values are about to hear of their end
  uint64_t starts_ = 0;   // of closures, attempts that follow a first one not counted
  uint64_t oldest_ = 0;   // no closure that has not ended is of an earlier start
};

}  // namespace dtg
