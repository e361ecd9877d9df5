// The prefetch stage: a thread of its own makes elements ahead and puts them into a bounded queue. That thread owns the
// source while it runs; the pipeline's own thread touches the source only when the other has ended. All signals are
// blocked on it, so that the host's handlers never run on a thread of ours.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>

#include "data/dataset.h"

namespace dtg {
namespace {

// What both threads see.
struct Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Element> ready;
  Status failure;
  bool ended = false;  // no more elements will come: the end, or a failure
  bool stop = false;
};

class Prefetch final : public Dataset {
 public:
  Prefetch(DatasetPtr source, int64_t count) : source_(std::move(source)), count_(static_cast<size_t>(count)), shared_(new Shared) {
    // Elements are materialized over there, so the table stays with the source.
    spec_ = source_->spec();
  }

  ~Prefetch() override {
    if (forked()) {
      // The thread stayed in the parent, perhaps holding the lock: what both share is lost to us.
      static_cast<void>(shared_.release());
      static_cast<void>(source_.release());
      return;
    }
    stop_thread();
  }

  Status restart() override {
    DTG_TRY(check_process());
    stop_thread();
    shared_->ready.clear();
    shared_->failure = {};
    shared_->ended = false;
    shared_->stop = false;
    return source_->restart();
  }

  int64_t cardinality() const override { return source_->cardinality(); }

  Result<bool> pull(Item& item) override {
    DTG_TRY(check_process());
    if (!running_ && !shared_->ended) DTG_TRY(start_thread());
    std::unique_lock lock(shared_->mutex);
    shared_->changed.wait(lock, [this] { return !shared_->ready.empty() || shared_->ended; });
    if (shared_->ready.empty()) {
      DTG_TRY(shared_->failure);
      return false;
    }
    item.row = -1;
    item.tensors = std::move(shared_->ready.front());
    shared_->ready.pop_front();
    lock.unlock();
    shared_->changed.notify_one();
    return true;
  }

 private:
  bool forked() const { return running_ && getpid() != process_; }

  Status check_process() const {
    if (!forked()) return {};
    return failed_precondition("take from a prefetching data set: this process was forked after its thread started; make the data "
                               "set anew in the child");
  }

  Status start_thread() {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&thread_, nullptr, &Prefetch::enter, this);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (failed != 0) {
      return resource_exhausted("start the thread of a prefetching data set: error %d; is there a limit on threads?", failed);
    }
    running_ = true;
    process_ = getpid();
    return {};
  }

  void stop_thread() {
    if (!running_) return;
    {
      const std::lock_guard lock(shared_->mutex);
      shared_->stop = true;
    }
    shared_->changed.notify_one();
    pthread_join(thread_, nullptr);
    running_ = false;
  }

  static void* enter(void* self) {
    try {
      static_cast<Prefetch*>(self)->fill();
    } catch (...) {
      static_cast<Prefetch*>(self)->end(resource_exhausted("prefetch from a data set: there was no memory for the next element"));
    }
    return nullptr;
  }

  void end(Status failure) {
    {
      const std::lock_guard lock(shared_->mutex);
      shared_->failure = std::move(failure);
      shared_->ended = true;
    }
    shared_->changed.notify_one();
  }

  // The thread's whole life: until the end, a failure, or stop.
  void fill() {
    for (;;) {
      Element element;
      const Result<bool> more = source_->next(element);
      if (!more.ok() || !more.value()) return end(more.status());
      std::unique_lock lock(shared_->mutex);
      shared_->changed.wait(lock, [this] { return shared_->ready.size() < count_ || shared_->stop; });
      if (shared_->stop) return;
      shared_->ready.push_back(std::move(element));
      lock.unlock();
      shared_->changed.notify_one();
    }
  }

  DatasetPtr source_;
  const size_t count_;
  std::unique_ptr<Shared> shared_;
  pthread_t thread_{};
  pid_t process_ = 0;
  bool running_ = false;
};

}  // namespace

Result<DatasetPtr> make_prefetch(DatasetPtr source, int64_t count) {
  if (count < 1) return invalid_argument("prefetch from a data set: %lld elements; give 1 or more", static_cast<long long>(count));
  return DatasetPtr(new Prefetch(std::move(source), count));
}

}  // namespace dtg
