// The stream and its thread.
#include "device/emu/emu.h"

#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <thread>

namespace dtg {

class Emu::Stream : public std::enable_shared_from_this<Emu::Stream> {
 public:
  explicit Stream(Ref<EmuArena> arena) : arena_(std::move(arena)) {}

  // Before there is anything to do: who enqueues is in the middle of a run, and could not go back.
  void begin() {
    const std::lock_guard lock(mutex_);
    start();
  }
  void enqueue(StreamWork* work) {
    work->next = nullptr;
    const std::lock_guard lock(mutex_);
    (last_ ? last_->next : first_) = work;
    last_ = work;
    changed_.notify_one();
  }
  // Ends when all that is enqueued is done; not waited for where the caller is the stream.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_one();
    }
    if (!thread_.joinable()) return;
    if (is_own_thread()) thread_.detach();
    else thread_.join();
  }
  bool is_own_thread() const { return std::this_thread::get_id() == id_.load(std::memory_order_acquire); }

 private:
  void start() {
    // Signals belong to the host, but for those that a fault raises.
    sigset_t all, before;
    sigfillset(&all);
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread([self = shared_from_this()] { self->work(); });
      started_ = true;
    } catch (const std::exception&) {
      // No thread is left, or no memory for one: the same to the caller.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!started_) throw std::bad_alloc();
  }

  // The next piece of work; null when there is none and something is to be told, or when the stream stops.
  StreamWork* pop(bool waits) {
    std::unique_lock lock(mutex_);
    while (waits && !first_ && !stopping_) changed_.wait(lock);
    StreamWork* const work = first_;
    if (work) first_ = work->next;
    if (!first_) last_ = nullptr;
    return work;
  }
  bool is_idle() {
    const std::lock_guard lock(mutex_);
    return !first_;
  }

  // One step: some work runs, then the end of what ran in the step before is told.
  void work() {
    id_.store(std::this_thread::get_id(), std::memory_order_release);
    StreamWork* late = nullptr;
    bool open = false;
    for (;;) {
      StreamWork* const now = pop(late == nullptr);
      if (!now && !late) return;
      if (now && !open) {
        arena_->open();
        open = true;
      }
      const bool ends = now && now->execute();
      if (open && is_idle()) {
        arena_->close();
        open = false;
      }
      if (late) late->completed();
      late = ends ? now : nullptr;
    }
  }

  const Ref<EmuArena> arena_;
  std::atomic<std::thread::id> id_{};
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  StreamWork* first_ = nullptr;
  StreamWork* last_ = nullptr;
  bool stopping_ = false;
  bool started_ = false;
  std::thread thread_;
};

namespace {

// A copy that somebody waits for.
class Copying final : public StreamWork {
 public:
  Copying(void* to, const void* from, int64_t bytes) : to_(to), from_(from), bytes_(bytes) {}
  bool execute() override {
    std::memcpy(to_, from_, static_cast<size_t>(bytes_));
    return true;
  }
  void completed() override {
    const std::lock_guard lock(mutex_);
    done_ = true;
    told_.notify_one();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    while (!done_) told_.wait(lock);
  }

 private:
  void* const to_;
  const void* const from_;
  const int64_t bytes_;
  std::mutex mutex_;
  std::condition_variable told_;
  bool done_ = false;
};

}  // namespace

Emu::Emu(std::string name, const Options& options, Ref<EmuArena> arena)
    : name_(std::move(name)), options_(options), memory_(arena), stream_(std::make_shared<Stream>(std::move(arena))) {}

Emu::~Emu() { stream_->stop(); }

Result<Ref<Emu>> Emu::create(const std::string& name, const Options& options) {
  DTG_ASSIGN(Ref<EmuArena> arena, EmuArena::create(name, options.memory_bytes));
  Ref<Emu> made = Ref<Emu>::adopt(new Emu(name, options, std::move(arena)));
  made->stream_->begin();
  return made;
}

void Emu::enqueue(StreamWork* work) { stream_->enqueue(work); }

Status Emu::copy(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return {};
  // On the stream itself the memory is open, and nobody else would come to the copy.
  if (stream_->is_own_thread()) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return {};
  }
  Copying copying(to, from, bytes);
  stream_->enqueue(&copying);
  copying.wait();
  return {};
}

}  // namespace dtg
