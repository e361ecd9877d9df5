// Reading and writing cluster specs.
#include "cluster/spec.h"

#include <algorithm>

#include "graph/device_name.h"

namespace dtg {
namespace {

constexpr size_t kTasksMax = 4096;

// Calls `take` with every piece; an empty text has none.
template <class Fn>
Status split(std::string_view text, char mark, Fn&& take) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(mark), text.size());
    DTG_TRY(take(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

}  // namespace

Result<Address> Address::parse(std::string_view text) {
  if (text.starts_with("unix:") && text.size() > 5) return Address{std::string(text.substr(5))};
  return unimplemented("address \"%.*s\": only unix:PATH is built in", int(text.size()), text.data());
}

std::string ClusterSpec::Task::name() const { return "/job:" + job + "/replica:0/task:" + std::to_string(index); }

Result<ClusterSpec> ClusterSpec::parse(std::string_view text) {
  ClusterSpec spec;
  const auto read_job = [&](std::string_view part) -> Status {
    const size_t equals = part.find('=');
    const std::string job(part.substr(0, std::min(equals, part.size())));
    auto name = DeviceName::parse("/job:" + job);
    if (equals == part.npos || !name.ok() || !name.value().job) {
      return invalid_argument("cluster: \"%.*s\" should be JOB=ADDRESS,ADDRESS,...", int(part.size()), part.data());
    }
    if (spec.find(job, 0)) return invalid_argument("cluster: job \"%s\" is there twice", job.c_str());
    int index = 0;
    return split(part.substr(equals + 1), ',', [&](std::string_view at) -> Status {
      DTG_ASSIGN(Address address, Address::parse(at));
      for (const Task& other : spec.tasks_) {
        if (other.address == address) return invalid_argument("cluster: address %s is there twice", address.text().c_str());
      }
      if (spec.tasks_.size() >= kTasksMax) return resource_exhausted("cluster: more than %zu tasks", kTasksMax);
      spec.tasks_.push_back({job, index++, std::move(address)});
      return {};
    });
  };
  DTG_TRY(split(text, ';', read_job));
  return spec;
}

const ClusterSpec::Task* ClusterSpec::find(std::string_view job, int index) const {
  const auto at = std::ranges::find_if(tasks_, [&](const Task& task) { return task.job == job && task.index == index; });
  return at == tasks_.end() ? nullptr : &*at;
}

std::string ClusterSpec::text() const {
  std::string text;
  for (const Task& task : tasks_) {
    text += task.index == 0 ? (text.empty() ? "" : ";") + task.job + "=" : ",";
    text += task.address.text();
  }
  return text;
}

std::string task_of_device(std::string_view device) { return std::string(device.substr(0, std::min(device.find("/device:"), device.size()))); }

}  // namespace dtg
