// The queue in front of a host's log function, and its thread.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "base/log.h"

namespace dtg {

// Shared with the thread, which is the last to leave when the sink ends the queue from inside a line.
struct LogQueue::State {
  struct Line {
    LogLevel level;
    std::string component, message;
  };

  explicit State(LogSink& to) : sink(to) {}
  void work();
  void hand_on(std::unique_lock<std::mutex>& lock);
  bool start(const std::shared_ptr<State>& self);

  LogSink& sink;
  const pid_t process = getpid();
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Line> lines;
  size_t lost = 0;
  bool stopping = false;
  bool orphaned = false;  // the sink has gone
  std::thread thread;
};

// The next line, without the lock. The sink may have ended the queue when it returns.
void LogQueue::State::hand_on(std::unique_lock<std::mutex>& lock) {
  const Line line = std::move(lines.front());
  lines.pop_front();
  lock.unlock();
  try {
    sink.write(line.level, line.component, line.message);
  } catch (const std::exception&) {
    // No memory for a line: it is lost, and nobody is left to hear of it.
  }
  lock.lock();
  if (lost == 0 || !lines.empty()) return;
  try {
    lines.push_back({LogLevel::warn, "log", std::to_string(lost) + " lines were dropped: the log was too slow for them"});
    lost = 0;
  } catch (const std::exception&) {
    // Told with a later line.
  }
}

void LogQueue::State::work() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [this] { return stopping || !lines.empty(); });
    if (orphaned || lines.empty()) return;
    hand_on(lock);
  }
}

// With the lock held. False where no thread is to be had; the next line asks again.
bool LogQueue::State::start(const std::shared_ptr<State>& self) {
  sigset_t all, before;  // signals belong to the host
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread = std::thread([self] { self->work(); });
  } catch (const std::system_error&) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread.joinable();
}

LogQueue::LogQueue(LogSink& sink) : state_(std::make_shared<State>(sink)) {}

LogQueue::~LogQueue() {
  if (getpid() != state_->process) {
    // The thread stayed in the parent, perhaps holding the lock: what both share is lost to us.
    static_cast<void>(new std::shared_ptr<State>(std::move(state_)));
    return;
  }
  std::unique_lock lock(state_->mutex);
  state_->stopping = true;
  if (state_->thread.get_id() == std::this_thread::get_id()) {
    state_->orphaned = true;
    state_->thread.detach();
    return;
  }
  lock.unlock();
  state_->changed.notify_one();
  if (state_->thread.joinable()) state_->thread.join();
  lock.lock();
  while (!state_->lines.empty()) state_->hand_on(lock);  // there was no thread
}

void LogQueue::write(LogLevel level, std::string_view component, std::string_view message) {
  if (getpid() != state_->process) return;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->lines.size() >= kLines) {
      ++state_->lost;
      return;
    }
    state_->lines.push_back({level, std::string(component), std::string(message)});
    if (!state_->thread.joinable() && !state_->start(state_)) return;
  }
  state_->changed.notify_one();
}

}  // namespace dtg
