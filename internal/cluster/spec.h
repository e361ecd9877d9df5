// ClusterSpec: which jobs there are, and where their tasks listen. A value. Two forms of text are read:
//   short  "ps=unix:/run/job/ps0;worker=10.0.0.1:4000,10.0.0.2:4000", a task with a number of its own "worker=3@10.0.0.4:4000"
//   JSON   {"ps": ["unix:/run/job/ps0"], "worker": {"3": "10.0.0.4:4000"}}
// A job is dense when its tasks are 0..n-1, sparse otherwise: a sparse job leaves out peers that nobody here talks to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "net/address.h"

namespace dtg {

class ClusterSpec {
 public:
  struct Task {
    std::string job;
    int index = 0;
    Address address;
    std::string name() const;  // "/job:ps/replica:0/task:0"
  };

  struct Job {
    std::string name;
    size_t first = 0, count = 0;  // its part of tasks()
    bool dense = true;            // a job without tasks is not
  };
  static constexpr size_t kTasksMax = 4096;  // and as many jobs
  static constexpr size_t kJobNameMax = 63;
  static constexpr int kIndexMax = (1 << 20) - 1;

  static Result<ClusterSpec> parse(std::string_view text);  // either form; "" has no job
  static Result<ClusterSpec> from_json(const Json& jobs);
  // Jobs in the order of the text, tasks by index.
  const std::vector<Job>& jobs() const { return jobs_; }
  const std::vector<Task>& tasks() const { return tasks_; }
  const Job* find_job(std::string_view name) const;
  const Task* find(std::string_view job, int index) const;
  const Task* find(std::string_view name) const;
  size_t task_count(std::string_view job) const;
  std::string text() const;  // the short form, or JSON where a path holds one of its marks
  Json json() const;         // dense jobs as lists, others as objects
  bool empty() const { return tasks_.empty(); }

 private:
  class Reader;
  std::vector<Job> jobs_;
  std::vector<Task> tasks_;
};

// "/job:ps/replica:0/task:0" of "/job:ps/replica:0/task:0/device:CPU:0".
std::string task_of_device(std::string_view device);

}  // namespace dtg
