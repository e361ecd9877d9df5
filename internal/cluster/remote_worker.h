// RemoteWorker: a task in another process, over a link that is made again when it was lost.
#pragma once

#include <mutex>

#include "base/condition.h"
#include "cluster/spec.h"
#include "cluster/worker.h"

namespace dtg {

class RemoteWorker final : public Worker {
 public:
  // `name` may be empty: then whoever listens there will do. `self` is the task that the session speaks for; empty: none. A
  // neighbour only brings values that parts of the session make at that task.
  RemoteWorker(const Host& host, const Timing& timing, std::string name, Address address, std::string self, uint64_t session,
               bool is_neighbour = false);
  ~RemoteWorker() override;

  const std::string& name() const override { return name_; }
  Status connect(Deadline deadline) override;
  Status run(const Part& part, Run& run) override;
  void drop(const Part& part) override;
  Result<Part> register_part(Ref<Graph> graph, PlanRequest request, Deadline deadline) override;
  Status reset(const std::vector<std::string>& containers, Deadline deadline) override;
  Status end_job(Deadline deadline) override;
  Result<std::string> inspect(Deadline deadline) override;
  bool is_current(const Part& part) const override;
  std::vector<std::string> devices() const override;
  std::string cluster() const override;
  void close() override;
  // Of the last connection; null before the first.
  Ref<Link> link() const;

 private:
  class Greeter;
  Status connect_once(Deadline deadline);
  Status greeted(const wire::HelloReply& reply, Ref<Link> link);
  std::string where() const;
  // A question and its answer, from a thread that may wait.
  template <class Answer>
  Status ask(Link& link, const char* what, Deadline deadline, const std::function<std::unique_ptr<OutFrame>(uint32_t)>& question,
             Answer* answer);

  const Host host_;
  const Timing timing_;
  std::string name_;  // set by the first hello when it was open
  const Address address_;
  const std::string self_;
  const uint64_t session_;
  const bool is_neighbour_;
  std::mutex connecting_;     // one attempt at a time
  mutable std::mutex mutex_;  // guards what follows
  Ref<Link> link_;
  std::unique_ptr<Greeter> greeter_;
  wire::HelloReply known_;
  uint64_t epoch_ = 0;
  Condition closed_;  // guards is_closed_
  bool is_closed_ = false;
};

}  // namespace dtg
