// Which links there are between two tasks of a session.
#include "cluster/neighbours.h"

#include <utility>

namespace dtg {

void Neighbours::add_source(const std::string& task, Ref<Link> link) {
  const Ref<Link> before = std::exchange(sources_[task], std::move(link));
  if (before && before->is_open()) before->fail(unavailable("the task has connected anew"));
}

std::vector<Neighbours::Target> Neighbours::missing(const ServedPart& part, const Host& host, const Timing& timing,
                                                    const ClusterSpec& cluster, uint64_t session) {
  std::vector<Target> found;
  for (const ServedPart::Neighbour& neighbour : part.neighbours()) {
    if (neighbour.incoming) continue;
    Ref<RemoteWorker>& worker = targets_[neighbour.task];
    const Ref<Link> link = worker ? worker->link() : nullptr;
    // The session has just met a task that may have been started anew, while this one still takes the dead one for slow.
    if (link && link->is_open() && !link->is_silent()) continue;
    const ClusterSpec::Task* const task = cluster.find(neighbour.task);
    // One that is being connected for another part is shared; one that was lost is not asked again.
    if (task && (!worker || link))
      worker = make_ref<RemoteWorker>(host, timing, neighbour.task, task->address, part.task().name(), session, true);
    found.push_back({neighbour.task, worker});
  }
  return found;
}

Result<std::vector<Ref<Link>>> Neighbours::links(const ServedPart& part, const Ref<Link>& session) const {
  std::vector<Ref<Link>> links = {session};
  for (const ServedPart::Neighbour& neighbour : part.neighbours()) {
    Ref<Link> link;
    if (neighbour.incoming) {
      if (const auto at = sources_.find(neighbour.task); at != sources_.end()) link = at->second;
    } else if (const auto at = targets_.find(neighbour.task); at != targets_.end() && at->second) {
      link = at->second->link();
    }
    if (!link || !link->is_open()) {
      return aborted("run a part: the connection %s %s is lost; nothing was done", neighbour.incoming ? "from" : "to",
                     neighbour.task.c_str());
    }
    links.push_back(std::move(link));
  }
  return links;
}

void Neighbours::close(const Status& reason) {
  for (const auto& [task, link] : std::exchange(sources_, {})) {
    if (link->is_open()) link->fail(reason);
  }
  for (const auto& [task, worker] : std::exchange(targets_, {})) {
    if (worker) worker->close();
  }
}

}  // namespace dtg
