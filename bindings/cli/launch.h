// Launch: what a local cluster is before its processes exist: its tasks with their addresses and environments, and the
// private directory that holds the sockets and the key. The directory goes when the Launch goes. Main thread.
#pragma once

#include <string>
#include <vector>

namespace dtg::cli {

struct LaunchOptions {
  int64_t ps = 1, workers = 1;
  int64_t least_workers = 1;  // below `workers`: a range, in which workers come and go
  bool is_range() const { return least_workers < workers; }
  bool chief = false;  // a task of its own, for which the workers are servers
  bool tcp = false;
  bool clear_frames = false;
  std::string state;       // "": none; otherwise each task gets a folder of its own there
  std::string durability;  // "": what PROGRAM does by itself
};

struct LaunchTask {
  std::string job;
  int index = 0;
  std::string address;
  std::vector<std::string> environment;  // "NAME=value", on top of ours
  std::string name() const { return job + "/" + std::to_string(index); }
};

class Launch {
 public:
  Launch() = default;
  ~Launch();
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  // Makes directory, addresses and environments; false after a complaint. The chief's task comes first, then the workers, then ps.
  bool prepare(const LaunchOptions& options);
  const std::vector<LaunchTask>& tasks() const { return tasks_; }
  // Where the launcher can be asked for something; "": nowhere.
  const std::string& control() const { return control_; }

 private:
  bool make_directory();
  bool choose_ports();
  void fill_environments(const LaunchOptions& options);
  bool make_state(const std::string& directory);
  std::string cluster_json() const;

  std::string directory_, control_;
  int lock_ = -1;  // of a file in it: held for as long as this process lives
  std::vector<LaunchTask> tasks_;
};

// Those of this user's launches that run.
std::vector<std::string> find_controls();

}  // namespace dtg::cli
