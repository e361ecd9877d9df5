// The pool's threads, the job board for parallel_for and the queue of tasks.
//
// Job board: a few slots. The owner fills one, opens it and announces; a helper first registers as a
// visitor, then looks whether the job is open, so the owner that has seen all shards finished and no
// visitor may reuse the slot. Both sides use sequentially consistent order for that handshake.
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/futex.h"

namespace dtg {

struct alignas(64) Pool::Job {
  std::atomic<bool> taken{false};
  std::atomic<bool> open{false};
  std::atomic<int> visitors{0};
  alignas(64) std::atomic<int64_t> next{0};
  alignas(64) std::atomic<int64_t> finished{0};
  std::atomic<bool> no_memory{false};  // a shard threw
  std::atomic<bool> cut{false};        // the interrupt was due
  Interrupt* interrupt = nullptr;      // the owner's
  int64_t count = 0;
  ShardFn fn = nullptr;
  void* context = nullptr;
};

struct Pool::Threads {
  std::vector<std::thread> list;
};

namespace {

constexpr int64_t kDefaultSpinNs = 50'000;
// How long the owner of a job polls for its helpers before it sleeps; they wake it.
constexpr int kOwnerTurns = 2000;

// The pool that the current thread works for.
thread_local const Pool* own_pool = nullptr;

// Signals belong to the host: our threads take none but the ones a fault raises on the thread itself.
class BlockSignals {
 public:
  BlockSignals() {
    sigset_t all;
    sigfillset(&all);
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

void pin_to_nth_cpu(int index) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || seen++ != index) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

// A helper that lost its CPU in mid-shard needs ours more than we do, so the poll is short; what changes the value notifies.
template <class T, class Fn>
void wait_while(std::atomic<T>& value, Fn&& holds) {
  for (int turn = 0; turn < kOwnerTurns; ++turn) {
    if (!holds(value.load())) return;
    spin_pause();
  }
  for (T seen = value.load(); holds(seen); seen = value.load()) value.wait(seen);
}

// Is what is left of a job to be left out?
template <class Job>
bool is_cut(Job& job) {
  if (!job.interrupt) return false;
  if (job.cut.load(std::memory_order_relaxed)) return true;
  if (!job.interrupt->is_due()) return false;
  job.cut.store(true, std::memory_order_relaxed);
  return true;
}

// Takes shards until there are none. An exception must not leave a helper's thread, nor the owner while
// helpers use its context, so the owner throws at the end: what an interrupt threw, or else std::bad_alloc, also for one that asked for
// an absurd size.
template <class Job>
bool work_on(Job& job) {
  bool worked = false;
  const Interrupt::Scope scope(job.interrupt);
  for (int64_t i; (i = job.next.fetch_add(1, std::memory_order_relaxed)) < job.count;) {
    try {
      if (!is_cut(job)) job.fn(job.context, i);
    } catch (const Interrupted&) {
      job.cut.store(true, std::memory_order_relaxed);
    } catch (...) {
      job.no_memory.store(true, std::memory_order_relaxed);
    }
    if (job.finished.fetch_add(1, std::memory_order_release) + 1 == job.count) job.finished.notify_one();
    worked = true;
  }
  return worked;
}

}  // namespace

int usable_cpus() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  const int count = CPU_COUNT(&allowed);
  return count > 0 ? count : 1;
}

Pool::Pool(const Options& options)
    : own_threads_(options.own_threads),
      threads_(!own_threads_         ? 1
               : options.threads > 0 ? options.threads
                                     : usable_cpus()),
      // With more threads than CPUs a spinning thread takes the CPU from the one it waits for.
      spin_ns_(threads_ > usable_cpus() ? 0
               : options.spin_ns > 0    ? options.spin_ns
                                        : kDefaultSpinNs),
      pin_(options.pin),
      jobs_(new Job[kJobs]),
      started_(new Threads) {}

Pool::~Pool() {
  stopping_.store(true);
  announce();
  for (std::thread& thread : started_->list) thread.join();
  while (run_task()) {
  }
  submitting_.wait();
}

void Pool::start_threads() {
  int none = 0;
  if (!state_.compare_exchange_strong(none, 1)) return;  // another caller starts them; work without
  const BlockSignals blocked;
  // One thread at least, so that a submitted task runs although nobody waits in parallel_for.
  const int count = threads_ > 1 ? threads_ - 1 : 1;
  try {
    started_->list.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) started_->list.emplace_back([this, i] { worker(i); });
  } catch (const std::bad_alloc&) {
  } catch (const std::system_error&) {
  }
  // Fewer threads do; without a single one the next caller tries again.
  state_.store(started_->list.empty() ? 0 : 2);
}

void Pool::announce() {
  epoch_.fetch_add(1);
  if (parked_.load() > 0) futex_wake_all(epoch_);
}

void Pool::run_shards(int64_t count, ShardFn fn, void* context) {
  if (state_.load(std::memory_order_acquire) == 0) start_threads();
  Job* job = nullptr;
  for (int i = 0; i < kJobs && !job; ++i) {
    if (!jobs_[i].taken.exchange(true, std::memory_order_acquire)) job = &jobs_[i];
  }
  if (!job) {  // every slot is busy, so are the threads: doing it all here is as good
    for (int64_t i = 0; i < count; ++i) {
      Interrupt::look();
      fn(context, i);
    }
    return;
  }
  job->no_memory.store(false, std::memory_order_relaxed);
  job->cut.store(false, std::memory_order_relaxed);
  job->interrupt = Interrupt::present();
  job->count = count;
  job->fn = fn;
  job->context = context;
  job->next.store(0, std::memory_order_relaxed);
  job->finished.store(0, std::memory_order_relaxed);
  job->open.store(true);
  jobs_posted_.fetch_add(1, std::memory_order_relaxed);
  announce();
  work_on(*job);
  wait_while(job->finished, [count](int64_t finished) { return finished < count; });
  job->open.store(false);
  wait_while(job->visitors, [](int visitors) { return visitors != 0; });
  const bool no_memory = job->no_memory.load(std::memory_order_relaxed), cut = job->cut.load(std::memory_order_relaxed);
  job->taken.store(false, std::memory_order_release);
  if (cut) throw Interrupted();
  if (no_memory) throw std::bad_alloc();
}

bool Pool::help(Job& job) {
  if (!job.open.load(std::memory_order_relaxed)) return false;
  job.visitors.fetch_add(1);
  const bool helped = job.open.load() && work_on(job);
  if (job.visitors.fetch_sub(1) == 1) job.visitors.notify_one();
  return helped;
}

void Pool::submit(Task* task) {
  if (own_threads_ && state_.load(std::memory_order_acquire) == 0) start_threads();
  // Nobody would ever run it.
  if (own_threads_ && state_.load(std::memory_order_acquire) == 0) throw std::bad_alloc();
  // As soon as the task is in the queue it may run, and who waited for it may let the pool go.
  const Visitors::Visit inside(submitting_);
  task->next_ = nullptr;
  {
    const std::lock_guard lock(queue_lock_);
    (queue_tail_ ? queue_tail_->next_ : queue_head_) = task;
    queue_tail_ = task;
  }
  queued_.fetch_add(1);
  announce();
}

Pool::Task* Pool::pop_task() {
  if (queued_.load(std::memory_order_acquire) == 0) return nullptr;
  const std::lock_guard lock(queue_lock_);
  Task* const task = queue_head_;
  if (task) {
    queue_head_ = task->next_;
    if (!queue_head_) queue_tail_ = nullptr;
    queued_.fetch_sub(1);
  }
  return task;
}

bool Pool::help_jobs() {
  bool worked = false;
  for (int i = 0; i < kJobs; ++i) worked |= help(jobs_[i]);
  return worked;
}

bool Pool::run_task() {
  Task* const task = pop_task();
  if (!task) return false;
  // A task tells its own failures. One that throws all the same ends there, and not the host with it.
  try {
    task->run();
  } catch (...) {
  }
  return true;
}

bool Pool::run_queued() {
  if (own_threads_) return false;
  bool ran = false;
  while (run_task()) ran = true;
  return ran;
}

bool Pool::is_own_thread() const { return own_pool == this; }

void Pool::worker(int index) {
  own_pool = this;
  if (pin_) pin_to_nth_cpu(index + 1);
  const Clock& clock = system_clock();
  // Polling is for shards. After a task, such as a part that another process asked for, whoever waits for its outcome (the
  // network's thread, that process) needs this CPU more than we do.
  uint32_t jobs_seen = jobs_posted_.load(std::memory_order_relaxed);
  int64_t shards_at = clock.monotonic_ns();
  for (;;) {
    const uint32_t seen = epoch_.load();
    const uint32_t jobs = jobs_posted_.load(std::memory_order_relaxed);
    if (help_jobs() || jobs != jobs_seen) shards_at = clock.monotonic_ns();
    jobs_seen = jobs;
    if (run_task()) continue;
    if (stopping_.load()) return;
    if (epoch_.load() != seen) continue;
    if (clock.monotonic_ns() - shards_at < spin_ns_) {
      for (int i = 0; i < 32; ++i) spin_pause();
      continue;
    }
    parked_.fetch_add(1);
    if (epoch_.load() == seen) futex_wait(epoch_, seen);
    parked_.fetch_sub(1);
    wakes_.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace dtg
