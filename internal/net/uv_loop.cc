// UvLoop over libuv: polling sockets, timers, wake-ups, and taking turns. libuv's thread pool is never used: a forked
// child would crash in it. See uv_loop.h for threads.
#include "net/uv_loop.h"

#include <poll.h>
#include <signal.h>
#include <uv.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/spin_lock.h"
#include "base/visitors.h"

namespace dtg {
namespace {

constexpr int64_t kPollNs = 50'000;        // without anything happening
constexpr int64_t kPollLeastNs = 10'000;   // less is not worth the while
constexpr int64_t kDriveNs = 100'000'000;  // in one go, as whoever drives has a deadline of his own
constexpr int64_t kAsideNs = 50'000;       // the loop's own thread, after the last who was the loop instead
constexpr int64_t kBriefNs = 200'000;      // who drives longer tells the loop's own thread when he is through
constexpr int64_t kLongNs = 10'000'000;    // how long it waits for that word at most

constexpr size_t kSpareMost = 1024;
constexpr int kRounds = 2;                       // of what was posted, behind one call out
constexpr int64_t kDeferredMostNs = 500'000;     // what was deferred may take so long together; the pool has the rest
constexpr int64_t kDeferredSlowNs = 2'000'000;   // behind one task that took longer
constexpr int64_t kDeferNoneNs = 1'000'000'000;  // nothing is deferred for so long

}  // namespace

// How long to poll, learned from the last waits: where they are long it costs a CPU and brings nothing. Two who wait for each other both
// have to poll before either sees short waits, so whoever has given up tries it in full from time to time. Any thread; a number that is
// lost between two of them does no harm.
class UvLoop::Patience {
 public:
  int64_t ns() {
    const int64_t now = ns_.load(std::memory_order_relaxed);
    if (now >= kPollLeastNs) return now;
    return asked_.fetch_add(1, std::memory_order_relaxed) % kTryEvery == 0 ? kPollNs : 0;
  }
  void learn(bool was_short) { ns_.store(was_short ? kPollNs : ns_.load(std::memory_order_relaxed) / 2, std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kTryEvery = 16;
  std::atomic<int64_t> ns_{kPollNs};
  std::atomic<uint32_t> asked_{0};
};

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
  Pool::Tasks deferred;             // with the turn, as the next ones
  Pool* deferred_pool = nullptr;
  bool is_out = false;       // a call out is under way
  bool posted_here = false;  // by which something was posted
  int64_t defer_none_until_ns = 0;
  std::mutex mutex;  // guards posted, stopping and stopped
  std::vector<std::function<void()>> posted;
  std::vector<std::function<void()>> spare;  // the loop's: room for the next round, so that few posts need memory
  bool stopping = false, stopped = false;
  bool is_open = false;  // before its thread begins

  // Polling.
  FreeCpu cpu;
  Patience own, others;
  std::atomic<uint64_t> happened{0};  // what the loop has called out for; counted with the turn
  std::atomic<bool> driven{false};    // somebody else is the loop, over many turns
  std::atomic<int64_t> driven_ns{0};  // since then
  std::atomic<int64_t> aside_ns{0};   // until then the loop's own thread stays away
  std::mutex aside_mutex;             // with which it sleeps meanwhile
  std::condition_variable come_back;
  std::atomic<bool> is_aside{false};
  std::atomic<bool> wants_word{false};

  Visitors visitors;  // what they post may be all that the loop's owner waited for

  int64_t now() const { return owner->clock().monotonic_ns(); }
  bool has_posted();
  bool turn_once();
  bool drive(Poller::Holds holds, const void* what, int64_t patience_ns, bool* moved);
  void call_back();
  bool stand_aside();
  void stay_aside();
  void poll_or_sleep(int sleep_ms);

  Status open();
  Status start_thread();
  void work();
  bool round(int* sleep_ms);
  void run_posted();
  template <class Fn>
  void call_out(Fn&& fn);
  void run_deferred();
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
  failed = uv_async_init(&loop, &wake, [](uv_async_t* handle) {
    State& state = *static_cast<State*>(handle->data);
    state.call_out([&] { state.run_posted(); });
  });
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
  call_back();
  thread.join();
  visitors.wait();
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
    if (sleep_ms == 0 || stand_aside()) continue;
    poll_or_sleep(sleep_ms);
    stand_aside();  // what there is may be his who is the loop by now
  }
  uv_loop_close(&loop);
}

// ---- waiting for what comes ------------------------------------------------------------------------------------------------

// The loop's own thread, until there is something for it to do.
void UvLoop::State::poll_or_sleep(int sleep_ms) {
  // Readable when the backend has anything to report.
  pollfd backend = {uv_backend_fd(&loop), POLLIN, 0};
  const int64_t began = now(), patience = own.ns();
  for (int64_t at = began; at - began < patience && cpu.exists(at); at = now()) {
    if (driven.load(std::memory_order_relaxed)) return;
    if (::poll(&backend, 1, 0) != 0) return own.learn(true);
    for (int i = 0; i < 8; ++i) spin_pause();
  }
  ::poll(&backend, 1, sleep_ms);
  own.learn(now() - began < kPollNs);
}

bool UvLoop::State::has_posted() {
  const std::lock_guard lock(mutex);
  return !posted.empty() || stopping;
}

// Somebody else is the loop, or was a moment ago and will be again: to look at the sockets too would only take the CPU from him. True:
// it was so, and things may have changed.
bool UvLoop::State::stand_aside() {
  for (bool stood = false;; stood = true) {
    const bool is_driven = driven.load();
    const int64_t at = now();
    int64_t until = is_driven ? driven_ns.load() + kBriefNs : aside_ns.load();
    if (is_driven && until <= at) {
      wants_word.store(true);
      until = at + kLongNs;
    }
    if (at >= until || (!is_driven && stood && has_posted())) return stood;
    std::unique_lock lock(aside_mutex);
    is_aside.store(true);
    // Whoever ends driving or posts something looks afterwards whether this thread sleeps.
    if (is_driven ? driven.load() : !has_posted()) owner->clock().wait(come_back, lock, until);
    is_aside.store(false);
  }
}

// Who was the loop a moment ago begins something, for which he will wait.
void UvLoop::State::stay_aside() {
  const int64_t at = now();
  int64_t until = aside_ns.load();
  if (at < until) aside_ns.compare_exchange_strong(until, at + kBriefNs);
}

// The loop's own thread shall be the loop again, if it is aside.
void UvLoop::State::call_back() {
  if (!is_aside.load() || driven.load()) return;
  const std::lock_guard lock(aside_mutex);
  aside_ns.store(0);
  come_back.notify_one();
}

// One turn for a thread that is not the loop's, if it can be had. True: the loop's own thread would sleep by something else now.
bool UvLoop::State::turn_once() {
  if (!turn.try_lock()) return spin_pause(), false;
  const std::lock_guard mine(turn, std::adopt_lock);
  id = std::this_thread::get_id();
  uv_run(&loop, UV_RUN_NOWAIT);
  id = std::thread::id();
  return std::exchange(changed, false);
}

bool UvLoop::State::drive(Poller::Holds holds, const void* what, int64_t patience_ns, bool* moved) {
  uint64_t seen = happened.load(std::memory_order_relaxed);
  const int64_t began = now();
  for (int64_t until = began + patience_ns; !holds(what);) {
    if (turn_once()) *moved = true;
    const uint64_t upto = happened.load(std::memory_order_relaxed);
    const int64_t at = now();
    if (std::exchange(seen, upto) != upto) until = at + patience_ns;
    if (at >= until || at - began >= kDriveNs || !cpu.exists(at)) return holds(what);
  }
  return true;
}

bool UvLoop::poll(Holds holds, const void* what) {
  State& state = *state_;
  if (holds(what)) return true;
  if (is_current() || !state.cpu.exists(state.now())) return false;
  const int64_t patience = state.others.ns();
  if (patience == 0 || state.driven.exchange(true)) return false;
  state.driven_ns.store(state.now());
  bool moved = false;
  const bool held = state.drive(holds, what, patience, &moved);
  // Where the CPU was wanted elsewhere nothing was learned about waits.
  if (held || state.cpu.exists(state.now())) state.others.learn(held);
  state.aside_ns.store(held ? state.now() + kAsideNs : 0);
  state.driven.store(false);
  if (state.wants_word.exchange(false) || !held) state.call_back();
  const std::lock_guard lock(state.mutex);
  if (!state.stopped && moved) uv_async_send(&state.wake);
  return held;
}

FreeCpu& UvLoop::free_cpu() { return state_->cpu; }

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
  std::vector<std::function<void()>> batch = std::move(spare);
  bool last = false;
  {
    const std::lock_guard lock(mutex);
    batch.swap(posted);
    last = stopping;
  }
  if (!batch.empty()) happened.fetch_add(1, std::memory_order_relaxed);
  for (auto& fn : batch) {
    owner->contain([&] { fn(); });
    fn = nullptr;
  }
  batch.clear();
  if (batch.capacity() > spare.capacity() && batch.capacity() <= kSpareMost) spare = std::move(batch);
  if (last) close_all();
}

// A call out of the loop, and what it leaves to be run behind it: that needs no wake-up, which costs more than most of it. What was posted
// has two rounds, an end and the answer that tells it; what more is posted waits for the sockets, so that nobody keeps the loop to himself.
template <class Fn>
void UvLoop::State::call_out(Fn&& fn) {
  const bool outermost = !std::exchange(is_out, true);
  owner->contain(fn);
  if (!outermost) return;
  run_deferred();
  for (int round = 0; round < kRounds && std::exchange(posted_here, false); ++round) {
    run_posted();
    run_deferred();
  }
  is_out = false;
  if (!std::exchange(posted_here, false)) return;
  const std::lock_guard lock(mutex);
  if (!stopped) uv_async_send(&wake);
}

// What they defer comes behind them. Where all of it takes long, the pool has the rest; one that took long by itself is remembered.
void UvLoop::State::run_deferred() {
  if (deferred.empty()) return;
  const int64_t began = now();
  for (int64_t before = began; !deferred.empty();) {
    owner->contain([task = deferred.pop()] { task->run(); });
    const int64_t at = now();
    if (at - before > kDeferredSlowNs) defer_none_until_ns = at + kDeferNoneNs;
    if (at - began > kDeferredMostNs) break;
    before = at;
  }
  while (!deferred.empty()) {
    Pool::Task* const task = deferred.pop();
    try {
      deferred_pool->submit(task);
    } catch (const std::bad_alloc&) {  // it has no thread and can make none
      owner->contain([&] { task->run(); });
    }
  }
}

void UvLoop::defer(Pool::Task* task, Pool& pool) {
  State& state = *state_;
  const bool is_late = state.defer_none_until_ns != 0 && state.now() < state.defer_none_until_ns;
  if (is_late || (state.deferred_pool && state.deferred_pool != &pool)) return pool.submit(task);
  state.defer_none_until_ns = 0;
  state.deferred_pool = &pool;
  state.deferred.push(task);
}

void UvLoop::post(std::function<void()> fn) {
  State& state = *state_;
  const Visitors::Visit inside(state.visitors);
  bool is_here = false;
  {
    const std::lock_guard lock(state.mutex);
    if (state.stopped) return;
    state.posted.push_back(std::move(fn));
    is_here = is_current() && state.is_out;
    if (is_here) state.posted_here = true;
    else uv_async_send(&state.wake);
  }
  if (!is_here) state.call_back();
}

void UvLoop::post_now(std::function<void()> fn) {
  State& state = *state_;
  const Visitors::Visit inside(state.visitors);
  {
    const std::lock_guard lock(state.mutex);
    if (state.stopped) return;
    state.posted.push_back(std::move(fn));
  }
  bool wake = true;
  if (is_current() && state.is_out) {
    state.posted_here = true;
    return;
  }
  if (!is_current() && state.turn.try_lock()) {
    const std::lock_guard mine(state.turn, std::adopt_lock);
    state.stay_aside();
    state.id = std::this_thread::get_id();
    state.changed = false;
    state.call_out([&] { state.run_posted(); });
    wake = state.changed;
    state.id = std::thread::id();
  }
  {
    const std::lock_guard lock(state.mutex);
    wake = !state.stopped && (wake || !state.posted.empty());
    if (wake) uv_async_send(&state.wake);
  }
  if (wake) state.call_back();
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
        State& mine = *static_cast<State*>(timer->data);
        UvLoop& loop = *mine.owner;
        mine.call_out([&] { loop.ring_due(); });
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
    State& state = *static_cast<State*>(handle->loop->data);
    state.happened.fetch_add(1, std::memory_order_relaxed);
    state.call_out([&] { watch->ready(failed != 0 || (found & (UV_READABLE | UV_DISCONNECT)) != 0, (found & UV_WRITABLE) != 0); });
  });
}

void UvLoop::unwatch(Poll* poll) {
  state_->changed = true;
  poll->watch = nullptr;
  uv_poll_stop(&poll->handle);
  close_handle(reinterpret_cast<uv_handle_t*>(&poll->handle));
}

}  // namespace dtg
