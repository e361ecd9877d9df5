// Supervisor: see the header. One loop over pipes and signals; what happens at which time is a phase with a deadline:
// running -> waiting_for_ps (the chief's task, or else all workers, done) -> ending (SIGTERM, or the user's signal) -> killing (SIGKILL) ->
// done. Only while it is running are tasks started again; one that waits for that counts as alive.
#include "supervisor.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <thread>

#include "console.h"
#include "pid_file.h"

namespace dtg::cli {
namespace {

std::vector<std::string> names(const Launch& launch) {
  std::vector<std::string> out;
  for (const LaunchTask& task : launch.tasks()) out.push_back(task.name());
  return out;
}

std::string how(const Child& child) {
  if (child.ended_by_signal())
    return "was ended by signal " + std::to_string(child.ended_by_signal()) + " (" + strsignal(child.ended_by_signal()) + ")";
  return "ended with exit code " + std::to_string(child.exit_code());
}

std::string times(size_t count) { return count == 1 ? "once" : std::to_string(count) + " times"; }

}  // namespace

// Signals become readable, so that one poll waits for everything. Children get the old mask back.
Supervisor::Supervisor(const Launch& launch, const SuperviseOptions& options)
    : options_(options), control_path_(launch.control()), screen_(names(launch), options.quiet_stdout) {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) sigaddset(&wanted, number);
  if (!ignores_hangup()) sigaddset(&wanted, SIGHUP);
  sigprocmask(SIG_BLOCK, &wanted, &before_);
  std::signal(SIGPIPE, SIG_IGN);
  signals_ = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
  for (const LaunchTask& what : launch.tasks()) {
    tasks_.push_back(std::make_unique<Task>(options_.restart));
    tasks_.back()->what = &what;
    const size_t index = tasks_.size() - 1;
    for (int which = 0; which < 2; which++) {
      tasks_.back()->text[which] =
          std::make_unique<LogText>(screen_.colors(), [this, index, which](std::string_view text) { line(index, text, which == 1); });
    }
  }
}

Supervisor::~Supervisor() {
  for (const auto& task : tasks_) {
    if (task->log) std::fclose(task->log);
  }
  if (signals_ >= 0) close(signals_);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

// ---- starting ----

bool Supervisor::open_log(Task& task) {
  if (options_.log_directory.empty() || task.log) return true;
  std::string path = options_.log_directory + "/" + task.what->name() + ".log";
  std::replace(path.begin() + static_cast<std::ptrdiff_t>(options_.log_directory.size() + 1), path.end(), '/', '-');
  task.log = std::fopen(path.c_str(), "we");
  if (!task.log)
    complain("cannot write " + path + ": " + std::strerror(errno) + "\n  give --log-dir a folder that exists and that you can write to");
  return task.log != nullptr;
}

bool Supervisor::start_task(Task& task) {
  if (!open_log(task)) return result_ = kFailed, false;
  std::vector<std::string> environment = task.what->environment;
  environment.push_back("DTG_RESTARTS=" + std::to_string(task.restarts.count()));
  task.asked_to_end = false;
  task.kill_at = Clock::time_point::max();
  const int problem = task.child.start(options_.program, environment);
  task.started = task.ended = Clock::now();
  if (task.first_started == Clock::time_point{}) task.first_started = task.started;
  if (problem == 0) return true;
  const bool absent = problem == ENOENT || problem == ENOTDIR;
  complain("cannot start " + options_.program[0] + ": " + std::strerror(problem) + "\n  " +
           (absent ? "give the path of a program that is there" : "is it a program that you may execute?"));
  return result_ = absent ? 127 : 126, false;
}

// Parameter servers first, so that the chief finds them sooner.
bool Supervisor::start() {
  if (signals_ < 0) {
    complain(std::string("cannot wait for signals: ") + std::strerror(errno) + "\n  are too many files open? see ulimit -n");
    return result_ = kFailed, false;
  }
  if (!options_.log_directory.empty()) mkdir(options_.log_directory.c_str(), 0777);
  for (auto task = tasks_.rbegin(); task != tasks_.rend(); ++task) {
    const LaunchTask& what = *(*task)->what;
    if (!control_path_.empty() && what.job == "worker" && what.index >= options_.start_workers) continue;
    if (!start_task(**task)) return false;
  }
  if (const int problem = control_path_.empty() ? 0 : control_.listen(control_path_))
    screen_.say("cannot listen at " + control_path_ + ": " + std::strerror(problem) + "; no worker can be added or removed");
  write_pids();
  return true;
}

// Those whose pause is over.
void Supervisor::start_again() {
  bool any = false;
  for (const auto& task : tasks_) {
    if (Clock::now() < task->due) continue;
    task->due = Clock::time_point::max();
    for (const auto& text : task->text) text->finish();
    if (give_up(*task)) return;
    if (!start_task(*task)) return ask_to_end(SIGTERM, Phase::ending);
    any = true;
  }
  if (any) write_pids();
}

// Whom it needs may have ended while it waited; true when that is so.
bool Supervisor::give_up(Task& task) {
  const std::string gone = gone_for_good();
  if (gone.empty()) return false;
  task.restarts.give_up(gone);
  if (result_ == 0) result_ = task.child.exit_code();
  const bool others = any_alive();
  screen_.say(task.what->name() + " is " + task.restarts.verdict() + (others ? "; ending the others" : ""));
  if (others) ask_to_end(SIGTERM, Phase::ending);
  return true;
}

// A file that cannot be written is worth a word, not the launch.
void Supervisor::write_pids() {
  if (options_.pid_file.empty()) return;
  std::vector<std::pair<std::string, pid_t>> running;
  for (const auto& task : tasks_) {
    if (task->child.running()) running.emplace_back(task->what->name(), task->child.pid());
  }
  if (const int problem = write_pid_file(options_.pid_file, running))
    screen_.say("cannot write " + options_.pid_file + ": " + std::strerror(problem));
}

// ---- what the children say ----

void Supervisor::line(size_t index, std::string_view text, bool error) {
  screen_.line(index, text, error);
  if (std::FILE* log = tasks_[index]->log) std::fprintf(log, "%.*s\n", static_cast<int>(text.size()), text.data()), std::fflush(log);
}

void Supervisor::read_pipe(Task& task, int which) {
  char bytes[16384];
  const ssize_t n = read(task.child.pipe(which), bytes, sizeof bytes);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n > 0) {
    task.text[which]->add({bytes, static_cast<size_t>(n)});
  } else {
    task.text[which]->finish();
    task.child.close_pipe(which);
  }
  if (which != 0) return;
  const auto index = std::find_if(tasks_.begin(), tasks_.end(), [&](const auto& t) { return t.get() == &task; }) - tasks_.begin();
  screen_.status(static_cast<size_t>(index), task.text[0]->status());
}

// ---- ends ----

bool Supervisor::any_alive(const char* job) const {
  return std::any_of(tasks_.begin(), tasks_.end(), [&](const auto& task) { return task->lives() && (!job || task->what->job == job); });
}

// The job is over when the chief has ended well and, where there are some, a ps has, with what it held: so it does when the chief says so.
// A chief that died comes back.
std::string Supervisor::gone_for_good() const {
  const auto is_gone = [](const auto& task) { return !task->lives() && task->child.exit_code() == 0; };
  if (!is_gone(tasks_.front())) return {};
  const auto is_ps = [](const auto& task) { return task->what->job == "ps"; };
  if (std::none_of(tasks_.begin(), tasks_.end(), is_ps)) return tasks_.front()->what->name();
  const auto gone = std::find_if(tasks_.begin(), tasks_.end(), [&](const auto& task) { return is_ps(task) && is_gone(task); });
  return gone == tasks_.end() ? std::string() : (*gone)->what->name();
}

void Supervisor::ask_to_end(int number, Phase next) {
  for (const auto& task : tasks_) {
    if (task->child.running()) task->asked_to_end = true, task->child.signal(number);
    if (task->waits()) {
      task->restarts.call_off();
      screen_.say(task->what->name() + " is " + task->restarts.verdict());
    }
    task->due = Clock::time_point::max();
  }
  phase_ = next;
  deadline_ = Clock::now() + (next == Phase::killing ? std::chrono::seconds(5) : options_.grace);
}

void Supervisor::on_signal(int number) {
  if (number == SIGUSR1 || number == SIGUSR2) {  // what they mean, if anything, the program knows
    for (const auto& task : tasks_) task->child.signal(number);
    return;
  }
  if (phase_ == Phase::ending || phase_ == Phase::killing) {
    screen_.say("once more; killing what still runs");
    return ask_to_end(SIGKILL, Phase::killing);
  }
  screen_.say(std::string(strsignal(number)) + ": passed on to all tasks; once more kills them");
  if (result_ == 0) result_ = 128 + number;
  interrupted_ = true;
  ask_to_end(number, Phase::ending);
}

void Supervisor::take_signals() {
  signalfd_siginfo info;
  while (read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (info.ssi_signo != SIGCHLD) on_signal(static_cast<int>(info.ssi_signo));
  }
}

void Supervisor::ended(Task& task) {
  task.ended = Clock::now();
  const Child& child = task.child;
  if (child.exit_code() == 0 || task.asked_to_end || died(task) || goes_on_without(task)) return;
  if (result_ == 0) result_ = child.exit_code();
  const bool others = any_alive();
  const std::string& verdict = task.restarts.verdict();
  screen_.say(task.what->name() + " " + how(child) + " after " + seconds_text(task.ended - task.started) + " s" +
              (verdict.empty() ? "" : "; " + verdict) + (others ? "; ending the others" : ""));
  if (others && phase_ < Phase::ending) ask_to_end(SIGTERM, Phase::ending);
}

// Enters it among the deaths; true when the task is started again.
bool Supervisor::died(Task& task) {
  const Death death = {.when = task.ended,
                       .lived = task.ended - task.started,
                       .exit_code = task.child.exit_code(),
                       .signal = task.child.ended_by_signal(),
                       .ending = phase_ != Phase::running,
                       .gone = gone_for_good()};
  const auto pause = task.restarts.after(death);
  if (!pause) return false;
  task.due = task.ended + std::chrono::duration_cast<Clock::duration>(*pause);
  screen_.say(task.what->name() + " " + how_it_died(death) + " after " + seconds_text(death.lived) + " s; " + task.restarts.verdict());
  return true;
}

// All that are dead. Whoever ends by himself with an error may follow another whose end is not seen yet: a moment is left for it.
std::vector<Supervisor::Task*> Supervisor::collect_dead() {
  std::vector<Task*> dead;
  const auto by_itself = [](const Task* task) {
    return task->child.exit_code() != 0 && !task->child.ended_by_signal() && !task->asked_to_end;
  };
  for (int looks = 0; looks < 6; ++looks) {
    for (size_t before = SIZE_MAX; before != dead.size();) {
      before = dead.size();
      for (const auto& task : tasks_) {
        if (task->child.reap()) dead.push_back(task.get());
      }
    }
    if (dead.empty() || !std::all_of(dead.begin(), dead.end(), by_itself) || !any_alive()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return dead;
}

// One death brings others with it, and the one behind them may be found last. Who was ended by a signal is no follower, and a parameter
// server dies of no worker.
void Supervisor::reap() {
  std::vector<Task*> dead = collect_dead();
  std::stable_sort(dead.begin(), dead.end(), [](const Task* a, const Task* b) {
    const auto rank = [](const Task* task) { return task->child.ended_by_signal() ? 0 : task->what->job == "ps" ? 1 : 2; };
    return rank(a) < rank(b);
  });
  for (Task* const task : dead) {
    // What it said before it ended comes before what the launcher says about it.
    for (int which = 0; which < 2; which++) {
      for (int parts = 0; parts < 64 && task->child.pipe(which) >= 0; parts++) {
        pollfd ready = {task->child.pipe(which), POLLIN, 0};
        if (poll(&ready, 1, 0) <= 0) break;
        read_pipe(*task, which);
      }
    }
    const auto is_it = [&](const auto& each) { return each.get() == task; };
    screen_.status(static_cast<size_t>(std::find_if(tasks_.begin(), tasks_.end(), is_it) - tasks_.begin()), "");
    ended(*task);
  }
  if (!dead.empty()) write_pids();
}

// A deadline has passed.
void Supervisor::escalate() {
  std::string late;
  for (const auto& task : tasks_) {
    if (task->child.running()) late += (late.empty() ? "" : ", ") + task->what->name();
  }
  if (phase_ == Phase::killing) {
    screen_.say(late + " cannot be killed; giving up");
    phase_ = Phase::done;
  } else if (phase_ == Phase::waiting_for_ps) {
    screen_.say("the " + leader() + (leader() == "chief" ? " is" : "s are") + " done, but " + late + " still runs after " +
                std::to_string(options_.grace.count()) + " s; ending it (the chief ends the job with dtg_session_end_job)");
    ask_to_end(SIGTERM, Phase::ending);
  } else {
    screen_.say(late + " did not end within " + std::to_string(options_.grace.count()) + " s; killing");
    ask_to_end(SIGKILL, Phase::killing);
  }
}

void Supervisor::advance() {
  if (phase_ == Phase::running) start_again();
  for (const auto& task : tasks_) {
    if (Clock::now() < task->kill_at) continue;
    task->kill_at = Clock::time_point::max();
    screen_.say(task->what->name() + " did not end within " + std::to_string(options_.grace.count()) + " s; killing");
    task->child.signal(SIGKILL);
  }
  if (!any_alive()) phase_ = Phase::done;
  if (phase_ == Phase::running && !any_alive(leader().c_str())) {
    phase_ = Phase::waiting_for_ps;
    deadline_ = Clock::now() + options_.grace;
  }
  if (phase_ != Phase::done && Clock::now() >= deadline_) escalate();
  if (!screen_.alive() && phase_ < Phase::ending) {
    result_ = 128 + SIGPIPE;
    ask_to_end(SIGTERM, Phase::ending);
  }
}

// ---- the loop ----

int Supervisor::timeout_ms() const {
  Clock::time_point next = deadline_;
  for (const auto& task : tasks_) next = std::min({next, task->due, task->kill_at});
  if (next == Clock::time_point::max()) return -1;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left + 1, 0, 60'000));
}

void Supervisor::poll_once() {
  std::vector<pollfd> polled = {{signals_, POLLIN, 0}};
  std::vector<std::pair<Task*, int>> whose = {{nullptr, 0}};
  for (const auto& task : tasks_) {
    for (int which = 0; which < 2; which++) {
      if (task->child.pipe(which) < 0) continue;
      polled.push_back({task->child.pipe(which), POLLIN, 0});
      whose.emplace_back(task.get(), which);
    }
  }
  const size_t pipes = polled.size();
  control_.add_to(&polled);
  const int redraw = screen_.draw(), left = timeout_ms();
  const int wait = redraw < 0 ? left : left < 0 ? redraw : std::min(redraw, left);
  if (poll(polled.data(), polled.size(), wait) < 0 && errno != EINTR) return;
  for (size_t i = 1; i < pipes; i++) {
    if (polled[i].revents) read_pipe(*whose[i].first, whose[i].second);
  }
  take_signals();
  reap();
  control_.serve([this](const std::string& question) { return obey(question); });
}

int Supervisor::run() {
  if (!start()) {
    ask_to_end(SIGKILL, Phase::killing);
  }
  while (phase_ != Phase::done) {
    advance();
    if (phase_ != Phase::done) poll_once();
  }
  for (const auto& task : tasks_) {
    for (const auto& text : task->text) text->finish();
  }
  if (options_.restart.on_failure) say_deaths();
  if (!options_.pid_file.empty()) unlink(options_.pid_file.c_str());
  return result_;
}

// ---- the report ----

// "worker/1 died 3 times (SIGKILL 2 times, exit code 3 once) and was started again 3 times"
void Supervisor::say_deaths() {
  for (const auto& task : tasks_) {
    const std::vector<Death>& deaths = task->restarts.deaths();
    if (deaths.empty()) continue;
    std::map<std::string, size_t> causes;
    for (const Death& death : deaths) causes[death.signal ? signal_name(death.signal) : "exit code " + std::to_string(death.exit_code)]++;
    std::string list;
    for (const auto& [cause, count] : causes) list += (list.empty() ? "" : ", ") + cause + " " + times(count);
    screen_.say(task->what->name() + " died " + times(deaths.size()) + " (" + list + ") and was started again " +
                times(static_cast<size_t>(task->restarts.count())));
  }
}

std::string Supervisor::deaths_json() const {
  std::vector<std::pair<Clock::time_point, std::string>> list;
  for (const auto& task : tasks_) {
    for (const Death& death : task->restarts.deaths()) {
      list.emplace_back(death.when, "{\"task\": " + quote(task->what->name()) + ", \"seconds\": " + seconds_text(death.when - start_) +
                                        ", \"exit_code\": " + std::to_string(death.exit_code) +
                                        ", \"signal\": " + (death.signal ? quote(signal_name(death.signal)) : "null") +
                                        ", \"restarted\": " + (death.restarted ? "true" : "false") + "}");
    }
  }
  std::sort(list.begin(), list.end());
  std::string json;
  for (const auto& [when, death] : list) json += (json.empty() ? "" : ", ") + death;
  return "[" + json + "]";
}

std::string Supervisor::report_json() const {
  std::string list;
  for (const auto& task : tasks_) {
    if (!task->was_started()) continue;
    list += (list.empty() ? "" : ", ") + std::string("{\"task\": ") + quote(task->what->name()) +
            ", \"exit_code\": " + std::to_string(task->child.exit_code()) +
            ", \"ended_by_launcher\": " + (task->asked_to_end ? "true" : "false") +
            ", \"restarts\": " + std::to_string(task->restarts.count()) +
            ", \"seconds\": " + seconds_text(task->ended - task->first_started) + "}";
  }
  return "[" + list + "]";
}

}  // namespace dtg::cli
