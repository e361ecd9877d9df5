// ClusterSpec: which jobs there are, and where their tasks listen. As text:
// "ps=unix:/run/job/ps0;worker=unix:/run/job/w0,unix:/run/job/w1". A value.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace dtg {

struct Address {
  std::string path;  // of a unix socket
  std::string text() const { return "unix:" + path; }
  static Result<Address> parse(std::string_view text);
  bool operator==(const Address&) const = default;
};

class ClusterSpec {
 public:
  struct Task {
    std::string job;
    int index = 0;
    Address address;
    std::string name() const;  // "/job:ps/replica:0/task:0"
  };

  static Result<ClusterSpec> parse(std::string_view text);
  // Jobs in the order of the text, tasks by index.
  const std::vector<Task>& tasks() const { return tasks_; }
  const Task* find(std::string_view job, int index) const;
  std::string text() const;
  bool empty() const { return tasks_.empty(); }

 private:
  std::vector<Task> tasks_;
};

// "/job:ps/replica:0/task:0" of "/job:ps/replica:0/task:0/device:CPU:0".
std::string task_of_device(std::string_view device);

}  // namespace dtg
