// UvLoop over libuv: polling sockets, timers, wake-ups, and taking turns. libuv's thread pool is never used: a forked
// child would crash in it. See uv_loop.h for threads.
#include "net/uv_loop.h"

#include <poll.h>
#include <signal.h>
#include <uv.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace dtg {

struct UvLoop::Poll {
  uv_poll_t handle;
  Watch* watch = nullptr;
};

struct UvLoop::State {
  UvLoop* owner = nullptr;
  uv_loop_t loop;
  uv_async_t wake;
  uv_timer_t timer;
  std::thread thread;
  std::mutex turn;                  // whoever holds it is the loop
  std::atomic<std::thread::id> id;  // of the thread that has the turn
  bool changed = false;             // in this turn: something that the loop's thread sleeps by
  std::mutex mutex;                 // guards posted, stopping and stopped
  std::vector<std::function<void()>> posted;
  bool stopping = false, stopped = false;
  bool is_open = false;  // before its thread begins

  Status open();
  Status start_thread();
  void work();
  bool round(int* sleep_ms);
  void run_posted();
  void close_all();
  void stop();
};

namespace {

void close_handle(uv_handle_t* handle) {
  if (uv_is_closing(handle)) return;
  uv_close(handle, handle->type == UV_POLL ? [](uv_handle_t* closed) { delete static_cast<UvLoop::Poll*>(closed->data); }
                                           : static_cast<uv_close_cb>(nullptr));
}

// Signals belong to the host, and a write to a closed socket must not kill it.
void block_signals(sigset_t* before) {
  sigset_t all;
  sigfillset(&all);
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, before);
}

}  // namespace

UvLoop::UvLoop(const Clock& clock) : Loop(clock), state_(new State) { state_->owner = this; }

Result<std::unique_ptr<UvLoop>> UvLoop::start(const Clock& clock) {
  std::unique_ptr<UvLoop> loop(new UvLoop(clock));
  DTG_TRY(loop->state_->open());
  DTG_TRY(loop->state_->start_thread());
  return loop;
}

Status UvLoop::State::open() {
  int failed = uv_loop_init(&loop);
  if (failed != 0) return resource_exhausted("start a network loop: %s", uv_strerror(failed));
  is_open = true;
  loop.data = wake.data = timer.data = this;
  uv_timer_init(&loop, &timer);
  failed = uv_async_init(&loop, &wake, [](uv_async_t* handle) { static_cast<State*>(handle->data)->run_posted(); });
  return failed == 0 ? Status() : resource_exhausted("start a network loop: %s", uv_strerror(failed));
}

Status UvLoop::State::start_thread() {
  sigset_t before;
  block_signals(&before);
  Status status;
  try {
    thread = std::thread([this] { work(); });
  } catch (const std::exception& problem) {
    status = resource_exhausted("start the network's thread: %s; is there a limit on threads?", problem.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

UvLoop::~UvLoop() { state_->stop(); }

void UvLoop::State::stop() {
  if (!is_open) return;
  if (!thread.joinable()) {  // it never began
    close_all();
    return work();
  }
  {
    const std::lock_guard lock(mutex);
    stopping = true;
    uv_async_send(&wake);
  }
  thread.join();
}

// One turn of the loop's own thread; false when nothing is open any more.
bool UvLoop::State::round(int* sleep_ms) {
  const std::lock_guard lock(turn);
  id = std::this_thread::get_id();
  const bool alive = uv_run(&loop, UV_RUN_NOWAIT) != 0;
  uv_update_time(&loop);
  *sleep_ms = uv_backend_timeout(&loop);
  changed = false;
  id = std::thread::id();
  return alive;
}

void UvLoop::State::work() {
  int sleep_ms = 0;
  while (round(&sleep_ms)) {
    // Readable when the backend has anything to report.
    pollfd backend = {uv_backend_fd(&loop), POLLIN, 0};
    if (sleep_ms != 0) ::poll(&backend, 1, sleep_ms);
  }
  uv_loop_close(&loop);
}

void UvLoop::State::close_all() {
  std::vector<std::function<void()>> dropped;
  {
    const std::lock_guard lock(mutex);
    stopped = true;
    dropped.swap(posted);
  }
  uv_walk(
      &loop, [](uv_handle_t* handle, void*) { close_handle(handle); }, nullptr);
}

void UvLoop::State::run_posted() {
  std::vector<std::function<void()>> batch;
  bool last = false;
  {
    const std::lock_guard lock(mutex);
    batch.swap(posted);
    last = stopping;
  }
  for (auto& fn : batch) {
    owner->contain([&] { fn(); });
    fn = nullptr;
  }
  if (last) close_all();
}

void UvLoop::post(std::function<void()> fn) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  if (state.stopped) return;
  state.posted.push_back(std::move(fn));
  uv_async_send(&state.wake);
}

void UvLoop::post_now(std::function<void()> fn) {
  State& state = *state_;
  {
    const std::lock_guard lock(state.mutex);
    if (state.stopped) return;
    state.posted.push_back(std::move(fn));
  }
  bool wake = true;
  if (!is_current() && state.turn.try_lock()) {
    const std::lock_guard mine(state.turn, std::adopt_lock);
    state.id = std::this_thread::get_id();
    state.changed = false;
    state.run_posted();
    wake = state.changed;
    state.id = std::thread::id();
  }
  const std::lock_guard lock(state.mutex);
  if (!state.stopped && (wake || !state.posted.empty())) uv_async_send(&state.wake);
}

bool UvLoop::is_current() const { return state_->id.load() == std::this_thread::get_id(); }

void UvLoop::rearm() {
  State& state = *state_;
  if (uv_is_closing(reinterpret_cast<uv_handle_t*>(&state.timer))) return;
  uv_update_time(&state.loop);
  const int64_t left = next_due() - clock().monotonic_ns();
  state.changed = true;
  // At most an hour at a time: libuv counts milliseconds in an int at places.
  const auto ms = static_cast<uint64_t>(std::clamp<int64_t>(left / 1'000'000 + 1, 0, 3'600'000));
  uv_timer_start(
      &state.timer,
      [](uv_timer_t* timer) {
        UvLoop& loop = *static_cast<State*>(timer->data)->owner;
        loop.contain([&] { loop.ring_due(); });
        if (loop.next_due() != INT64_MAX) loop.rearm();
      },
      ms, 0);
}

Result<UvLoop::Poll*> UvLoop::watch(int descriptor, Watch* watch) {
  auto poll = std::make_unique<Poll>();
  if (const int failed = uv_poll_init(&state_->loop, &poll->handle, descriptor); failed != 0) {
    return resource_exhausted("watch a socket: %s", uv_strerror(failed));
  }
  poll->handle.data = poll.get();
  poll->watch = watch;
  return poll.release();
}

void UvLoop::want(Poll* poll, bool readable, bool writable) {
  if (uv_is_closing(reinterpret_cast<uv_handle_t*>(&poll->handle))) return;
  state_->changed = true;
  const int events = (readable ? UV_READABLE | UV_DISCONNECT : 0) | (writable ? UV_WRITABLE : 0);
  if (events == 0) {
    uv_poll_stop(&poll->handle);
    return;
  }
  uv_poll_start(&poll->handle, events, [](uv_poll_t* handle, int failed, int found) {
    Watch* const watch = static_cast<Poll*>(handle->data)->watch;
    if (!watch) return;
    // An error shows itself to whoever reads. libuv is C: nothing may be thrown through it.
    static_cast<State*>(handle->loop->data)->owner->contain([&] {
      watch->ready(failed != 0 || (found & (UV_READABLE | UV_DISCONNECT)) != 0, (found & UV_WRITABLE) != 0);
    });
  });
}

void UvLoop::unwatch(Poll* poll) {
  state_->changed = true;
  poll->watch = nullptr;
  uv_poll_stop(&poll->handle);
  close_handle(reinterpret_cast<uv_handle_t*>(&poll->handle));
}

}  // namespace dtg
