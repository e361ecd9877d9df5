// Reading and writing cluster specs.
#include "cluster/spec.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "graph/device_name.h"

namespace dtg {
namespace {

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

// As much of foreign text as a message should show.
int shown(std::string_view text) { return static_cast<int>(std::min<size_t>(text.size(), 200)); }

Result<int> read_index(std::string_view digits, const std::string& job) {
  int index = -1;
  const auto [stop, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (failed != std::errc() || stop != digits.data() + digits.size() || index < 0 || index > ClusterSpec::kIndexMax) {
    return invalid_argument("cluster: job \"%s\" has a task \"%.*s\"; a task is a number from 0 to %d", job.c_str(), shown(digits),
                            digits.data(), ClusterSpec::kIndexMax);
  }
  return index;
}

}  // namespace

// Collects jobs and tasks and refuses what is there twice, too much, or has no name.
class ClusterSpec::Reader {
 public:
  Status open_job(std::string name) {
    const auto parsed = DeviceName::parse("/job:" + name);
    if (!parsed.ok() || parsed.value().job != name || name.size() > kJobNameMax) {
      return invalid_argument("cluster: \"%.*s\" cannot name a job; a name is a letter, then letters, digits and '_', %zu bytes at most",
                              shown(name), name.c_str(), kJobNameMax);
    }
    if (!names_.insert(name).second) return invalid_argument("cluster: job \"%s\" is there twice", name.c_str());
    if (spec_.jobs_.size() >= kTasksMax) return resource_exhausted("cluster: more than %zu jobs", kTasksMax);
    spec_.jobs_.push_back({std::move(name), spec_.tasks_.size(), 0, false});
    return {};
  }

  Status add(int index, std::string_view text) {
    Job& job = spec_.jobs_.back();
    auto address = Address::parse(text);
    if (!address.ok()) return address.status().with_context("cluster: task " + std::to_string(index) + " of job \"" + job.name + "\"");
    if (!is_utf8(text) || text.find('\0') != text.npos) {
      return invalid_argument("cluster: the address of task %d of job \"%s\" holds bytes that are not UTF-8, or a zero", index,
                              job.name.c_str());
    }
    const bool chosen_later = !address.value().is_unix() && address.value().port == 0;
    if (!chosen_later && !addresses_.insert(address.value().text()).second) {
      return invalid_argument("cluster: address %s is there twice", address.value().text().c_str());
    }
    if (spec_.tasks_.size() >= kTasksMax) return resource_exhausted("cluster: more than %zu tasks", kTasksMax);
    spec_.tasks_.push_back({job.name, index, address.take()});
    ++job.count;
    return {};
  }

  Status close_job() {
    Job& job = spec_.jobs_.back();
    const auto first = spec_.tasks_.begin() + static_cast<ptrdiff_t>(job.first);
    std::stable_sort(first, spec_.tasks_.end(), [](const Task& a, const Task& b) { return a.index < b.index; });
    const auto same = std::adjacent_find(first, spec_.tasks_.end(), [](const Task& a, const Task& b) { return a.index == b.index; });
    if (same != spec_.tasks_.end()) return invalid_argument("cluster: task %d of job \"%s\" is there twice", same->index, job.name.c_str());
    job.dense = job.count > 0 && spec_.tasks_.back().index + 1 == static_cast<int>(job.count);
    return {};
  }

  Status read_short(std::string_view part) {
    const size_t equals = part.find('=');
    if (equals == part.npos) {
      return invalid_argument("cluster: \"%.*s\" should be JOB=ADDRESS,ADDRESS,...", shown(part), part.data());
    }
    DTG_TRY(open_job(std::string(part.substr(0, equals))));
    int index = -1;
    DTG_TRY(split(part.substr(equals + 1), ',', [&](std::string_view at) -> Status {
      const size_t digits = std::min(at.find_first_not_of("0123456789"), at.size());
      ++index;
      if (digits > 0 && digits < at.size() && at[digits] == '@') {
        DTG_ASSIGN(index, read_index(at.substr(0, digits), spec_.jobs_.back().name));
        at.remove_prefix(digits + 1);
      }
      return index <= kIndexMax ? add(index, at) : invalid_argument("cluster: a task number over %d", kIndexMax);
    }));
    // In JSON a list may be empty, as TensorFlow's: one that a program wrote. Here something was forgotten.
    if (spec_.jobs_.back().count == 0) {
      return invalid_argument("cluster: job \"%s\" has no tasks; give its addresses, JOB=ADDRESS,ADDRESS,..., or leave the job out",
                              spec_.jobs_.back().name.c_str());
    }
    return close_job();
  }

  Status read_json(const std::string& name, const Json& tasks) {
    DTG_TRY(open_job(name));
    const auto take = [&](int index, const Json& address) -> Status {
      if (const std::string* const text = address.string()) return add(index, *text);
      return invalid_argument("cluster: the address of task %d of job \"%s\" is %s; it must be a string", index, name.c_str(),
                              address.kind());
    };
    if (const Json::Array* const list = tasks.array()) {
      for (size_t i = 0; i < list->size() && i <= kTasksMax; ++i) DTG_TRY(take(static_cast<int>(i), (*list)[i]));
    } else if (const Json::Object* const map = tasks.object()) {
      for (const auto& [key, address] : *map) {
        DTG_ASSIGN(const int index, read_index(key, name));
        DTG_TRY(take(index, address));
      }
    } else {
      return invalid_argument(
          "cluster: the tasks of job \"%s\" are %s; they must be a list of addresses or an object from numbers to addresses", name.c_str(),
          tasks.kind());
    }
    return close_job();
  }

  ClusterSpec take() { return std::move(spec_); }

 private:
  ClusterSpec spec_;
  std::unordered_set<std::string> names_, addresses_;
};

std::string ClusterSpec::Task::name() const { return "/job:" + job + "/replica:0/task:" + std::to_string(index); }

Result<ClusterSpec> ClusterSpec::parse(std::string_view text) {
  const size_t start = text.find_first_not_of(" \t\r\n");
  if (start != text.npos && text[start] == '{') {
    DTG_ASSIGN(const Json jobs, parse_json(text, "cluster", {.bytes_max = size_t{1} << 22}));
    return from_json(jobs);
  }
  Reader reader;
  DTG_TRY(split(text, ';', [&](std::string_view part) { return reader.read_short(part); }));
  return reader.take();
}

Result<ClusterSpec> ClusterSpec::from_json(const Json& jobs) {
  const Json::Object* const map = jobs.object();
  if (!map) return invalid_argument("cluster: it is %s; it must be an object from job names to tasks", jobs.kind());
  Reader reader;
  for (const auto& [name, tasks] : *map) DTG_TRY(reader.read_json(name, tasks));
  return reader.take();
}

const ClusterSpec::Job* ClusterSpec::find_job(std::string_view name) const {
  const auto at = std::ranges::find(jobs_, name, &Job::name);
  return at == jobs_.end() ? nullptr : &*at;
}

const ClusterSpec::Task* ClusterSpec::find(std::string_view job, int index) const {
  const Job* const found = find_job(job);
  if (!found) return nullptr;
  const auto first = tasks_.begin() + static_cast<ptrdiff_t>(found->first), last = first + static_cast<ptrdiff_t>(found->count);
  const auto at = std::lower_bound(first, last, index, [](const Task& task, int wanted) { return task.index < wanted; });
  return at == last || at->index != index ? nullptr : &*at;
}

const ClusterSpec::Task* ClusterSpec::find(std::string_view name) const {
  const auto at = std::ranges::find_if(tasks_, [&](const Task& task) { return task.name() == name; });
  return at == tasks_.end() ? nullptr : &*at;
}

size_t ClusterSpec::task_count(std::string_view job) const {
  const Job* const found = find_job(job);
  return found ? found->count : 0;
}

std::string ClusterSpec::text() const {
  std::string text;
  for (const Job& job : jobs_) {
    if (job.count == 0) return json().text();
    if (&job != &jobs_.front()) text += ";";
    text += job.name + "=";
    for (size_t i = 0; i < job.count; ++i) {
      const Task& task = tasks_[job.first + i];
      const std::string address = task.address.text();
      if (address.find_first_of(",;") != address.npos) return json().text();
      if (i > 0) text += ",";
      if (!job.dense) text += std::to_string(task.index) + "@";
      text += address;
    }
  }
  return text;
}

Json ClusterSpec::json() const {
  Json::Object map;
  for (const Job& job : jobs_) {
    Json::Array list;
    Json::Object sparse;
    for (size_t i = 0; i < job.count; ++i) {
      const Task& task = tasks_[job.first + i];
      if (job.dense) list.emplace_back(task.address.text());
      else sparse.emplace_back(std::to_string(task.index), task.address.text());
    }
    map.emplace_back(job.name, job.dense ? Json(std::move(list)) : Json(std::move(sparse)));
  }
  return Json(std::move(map));
}

std::string task_of_device(std::string_view device) {
  return std::string(device.substr(0, std::min(device.find("/device:"), device.size())));
}

}  // namespace dtg
