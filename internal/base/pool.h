// Pool: the library's compute threads. One pool per runtime; kernels are single-threaded functions that
// the pool calls on shards, so there is no OpenMP team and no BLAS pool beside it.
//
// Owner: the runtime. Any thread may call parallel_for and submit; the caller of parallel_for works too,
// so a pool of N means N - 1 threads of ours plus whoever waits. Threads start with the first call that
// needs them, block every signal, and park without work; after shards they spin first, because the next ones are
// microseconds away as a rule. No mutex on the way.
//
//   pool.parallel_for(shards, [&](int64_t shard) { ... });   // shard boundaries depend on shapes only
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "base/interrupt.h"
#include "base/spin_lock.h"
#include "base/visitors.h"

namespace dtg {

class Pool {
 public:
  struct Options {
    int threads = 0;      // 0: one per CPU this process may use
    int64_t spin_ns = 0;  // how long a thread polls for more shards before it parks; 0: the default (50 us)
    bool pin = false;     // bind thread i to the i-th allowed CPU
    // False: no thread is ever started. Shards run on their caller, tasks when somebody calls run_queued(): the whole of it in
    // one thread, in an order that repeats.
    bool own_threads = true;
  };

  // A unit of asynchronous work. The submitter owns it until run() is entered.
  class Task {
   public:
    virtual ~Task() = default;
    virtual void run() = 0;

   private:
    friend class Pool;
    Task* next_ = nullptr;
  };
  // Tasks in a row, each in one at a time: that takes no memory. For one thread.
  class Tasks {
   public:
    bool empty() const { return !first_; }
    void push(Task* task) {
      task->next_ = nullptr;
      (last_ ? last_->next_ : first_) = task;
      last_ = task;
    }
    Task* pop() {
      Task* const task = first_;
      first_ = task->next_;
      if (!first_) last_ = nullptr;
      return task;
    }

   private:
    Task* first_ = nullptr;
    Task* last_ = nullptr;
  };

  explicit Pool(const Options& options);
  ~Pool();  // waits for running tasks and for who is within submit(); tasks still queued are run first
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Calls fn(i) for every i in [0, count), possibly at the same time, and returns when all are done. Where an interrupt is up, it is up
  // for the shards too; when it is due, those that have not begun are left out, and this leaves by Interrupted.
  template <class Fn>
  void parallel_for(int64_t count, Fn&& fn) {
    if (count <= 1) {
      if (count == 1) fn(int64_t{0});
      return;
    }
    if (threads_ <= 1) {
      for (int64_t i = 0; i < count; ++i) {
        Interrupt::look();
        fn(i);
      }
      return;
    }
    using F = std::remove_reference_t<Fn>;
    run_shards(
        count, [](void* context, int64_t i) { (*static_cast<F*>(context))(i); },
        const_cast<void*>(static_cast<const void*>(std::addressof(fn))));
  }

  // Runs the task on a thread of the pool, soon. Never blocks, and never runs it before it returns.
  void submit(Task* task);
  bool has_threads() const { return own_threads_; }
  // Tasks wait for a thread: who has one of ours for long may give way, by submitting what is left of its work.
  bool has_queued() const { return queued_.load(std::memory_order_relaxed) > 0; }
  // For a pool without threads: runs what is queued, and what that queues. False: there was nothing.
  bool run_queued();

  // Compute threads, the caller of parallel_for included.
  int threads() const { return threads_; }

  // The calling thread is one of ours, so it may not be the one that destroys the pool.
  bool is_own_thread() const;

  // Threads that parked and were woken again; a counter for the curious.
  int64_t wakes() const { return wakes_.load(std::memory_order_relaxed); }

 private:
  struct Job;
  struct Threads;
  using ShardFn = void (*)(void*, int64_t);
  void run_shards(int64_t count, ShardFn fn, void* context);
  void start_threads();
  void worker(int index);
  bool help_jobs();
  bool run_task();
  bool help(Job& job);
  Task* pop_task();
  void announce();

  static constexpr int kJobs = 8;  // parallel_for calls that can share the threads at one time
  const bool own_threads_;
  const int threads_;
  const int64_t spin_ns_;
  const bool pin_;
  std::unique_ptr<Job[]> jobs_;
  std::unique_ptr<Threads> started_;
  std::atomic<int> state_{0};  // 0 no threads yet, 1 starting, 2 started
  // Bumped by every announcement; parked threads wait on it.
  std::atomic<uint32_t> epoch_{0};
  std::atomic<uint32_t> jobs_posted_{0};
  std::atomic<int> parked_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> wakes_{0};
  SpinLock queue_lock_;  // guards the queue, which is intrusive
  Task* queue_head_ = nullptr;
  Task* queue_tail_ = nullptr;
  std::atomic<int64_t> queued_{0};
  Visitors submitting_;
};

// CPUs this process may run on, at least 1.
int usable_cpus();

}  // namespace dtg
