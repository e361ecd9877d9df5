// Neighbours: the other tasks with which the parts of one session exchange values directly. There is a link for each
// direction, made by the task that sends, when a part that sends is registered. It carries values and credit, nothing
// else; it ends with the session's connection at either end.
//
// Owner: the session's connection. Loop thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cluster/remote_worker.h"
#include "cluster/spec.h"
#include "cluster/task.h"

namespace dtg {

class Neighbours final {
 public:
  // A task that values go to; reached or not. Without an address it is not in the cluster that this task knows.
  struct Target {
    std::string task;
    Ref<RemoteWorker> worker;
  };

  // Somebody sends here from now on; who did so before under that name is gone.
  void add_source(const std::string& task, Ref<Link> link);
  // What the part sends to and what no link leads to at present. Each has a worker that may be connected, unless the
  // cluster does not name the task.
  std::vector<Target> missing(const ServedPart& part, const Host& host, const Timing& timing, const ClusterSpec& cluster, uint64_t session);
  // Of one run of the part, by the peers of its edges. ABORTED, before anything is done, when one is lost.
  Result<std::vector<Ref<Link>>> links(const ServedPart& part, const Ref<Link>& session) const;
  // The session is over.
  void close(const Status& reason);

 private:
  std::map<std::string, Ref<Link>> sources_;
  std::map<std::string, Ref<RemoteWorker>> targets_;
};

}  // namespace dtg
