// What a supervisor does where workers come and go: it starts one more, ends one, and goes on without one that died.
#include <csignal>
#include <cstdlib>

#include "supervisor.h"

namespace dtg::cli {

std::vector<Supervisor::Task*> Supervisor::live_workers() const {
  std::vector<Task*> live;
  for (const auto& task : tasks_) {
    if (task->what->job == "worker" && task->lives() && !task->asked_to_end) live.push_back(task.get());
  }
  return live;
}

// Those that were never started come first; null: all run.
Supervisor::Task* Supervisor::absent_worker() const {
  Task* found = nullptr;
  for (const auto& task : tasks_) {
    if (task->what->job != "worker" || task->lives()) continue;
    if (!found || (found->was_started() && !task->was_started())) found = task.get();
  }
  return found;
}

// The others of the range go on as long as they are enough, and the chief is among them.
bool Supervisor::goes_on_without(Task& task) {
  const auto left = static_cast<int64_t>(live_workers().size());
  const bool is_chief = &task == tasks_.front().get();
  if (control_path_.empty() || phase_ != Phase::running || task.what->job != "worker" || is_chief || left < options_.least_workers)
    return false;
  const std::string& verdict = task.restarts.verdict();
  screen_.say(task.what->name() + " " + how_it_died(task.restarts.deaths().back()) + " after " + seconds_text(task.ended - task.started) +
              " s" + (verdict.empty() ? "" : "; " + verdict) + "; going on with " + std::to_string(left) +
              (left == 1 ? " worker" : " workers"));
  return true;
}

std::string Supervisor::add_workers(int64_t count) {
  std::string started;
  for (int64_t i = 0; i < count; ++i) {
    Task* const task = absent_worker();
    if (!task) return "all workers of the range run" + (started.empty() ? started : ", with" + started + " that were started now");
    for (const auto& text : task->text) text->finish();
    if (!start_task(*task)) {
      ask_to_end(SIGTERM, Phase::ending);
      return task->what->name() + " cannot be started; see what the launcher says";
    }
    screen_.say(task->what->name() + " was added");
    started += " " + task->what->name();
  }
  write_pids();
  return "ok started" + started;
}

std::string Supervisor::remove_workers(int64_t count) {
  std::string ended;
  for (int64_t i = 0; i < count; ++i) {
    const std::vector<Task*> live = live_workers();
    if (static_cast<int64_t>(live.size()) <= options_.least_workers || live.back() == tasks_.front().get()) {
      return std::to_string(live.size()) + " workers run, and the launch was begun with " + std::to_string(options_.least_workers) +
             " at least" + (ended.empty() ? ended : "; ended were" + ended);
    }
    Task& task = *live.back();
    screen_.say(task.what->name() + " was removed");
    ended += " " + task.what->name();
    task.due = Clock::time_point::max();
    if (!task.child.running()) continue;
    task.asked_to_end = true;
    task.kill_at = Clock::now() + options_.grace;
    task.child.signal(SIGTERM);
  }
  return "ok ended" + ended;
}

std::string Supervisor::list_workers() const {
  std::string list = "ok";
  for (const Task* task : live_workers()) list += " " + task->what->name();
  return list;
}

std::string Supervisor::obey(const std::string& question) {
  if (phase_ != Phase::running) return "the launch is ending";
  const size_t space = question.find(' ');
  const std::string what = question.substr(0, space);
  const int64_t count = space == std::string::npos ? 0 : std::atoll(question.c_str() + space);
  if (count < 1 || count > 999) return "\"" + question + "\" is not understood";
  if (what == "add") return add_workers(count);
  if (what == "remove") return remove_workers(count);
  return what == "list" ? list_workers() : "\"" + question + "\" is not understood";
}

}  // namespace dtg::cli
