// The prefetch stage: a thread of its own makes elements ahead and puts them into a bounded queue. That thread uses the
// source while it runs; the pipeline's own thread touches the source only when the other has ended. All signals are
// blocked on it, so that the host's handlers never run on a thread of ours.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <new>

#include "data/dataset.h"

namespace dtg {
namespace {

// How long the end of a data set waits for the element in hand; then the thread is left to finish it by itself.
constexpr std::chrono::milliseconds kLeaveAfter(20);

// What both threads see. The one that comes last destroys it, and the source with it.
struct Shared {
  explicit Shared(DatasetPtr from) : source(std::move(from)) {}
  const DatasetPtr source;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Element> ready;
  Status failure;
  bool ended = false;  // no more elements will come: the end, or a failure
  bool stop = false;
  bool gone = false;  // the thread touches nothing any more

  void end(Status why) {
    {
      const std::lock_guard lock(mutex);
      failure = std::move(why);
      ended = true;
    }
    changed.notify_one();
  }
};
using SharedPtr = std::shared_ptr<Shared>;

// The thread's whole life: until the end, a failure, or stop.
void fill(Shared& shared, size_t count) {
  for (;;) {
    Element element;
    const Result<bool> more = shared.source->next(element);
    if (!more.ok() || !more.value()) return shared.end(more.status());
    std::unique_lock lock(shared.mutex);
    shared.changed.wait(lock, [&] { return shared.ready.size() < count || shared.stop; });
    if (shared.stop) return;
    shared.ready.push_back(std::move(element));
    lock.unlock();
    shared.changed.notify_one();
  }
}

class Prefetch final : public Dataset {
 public:
  Prefetch(DatasetPtr source, int64_t count) : count_(static_cast<size_t>(count)), shared_(std::make_shared<Shared>(std::move(source))) {
    // Elements are materialized over there, so the table stays with the source.
    spec_ = shared_->source->spec();
  }

  ~Prefetch() override {
    if (forked()) {
      // The thread stayed in the parent, perhaps holding the lock: what both share is lost to us.
      static_cast<void>(new (std::nothrow) SharedPtr(std::move(shared_)));
      return;
    }
    if (!running_) return;
    ask_to_stop();
    std::unique_lock lock(shared_->mutex);
    const bool over = shared_->changed.wait_for(lock, kLeaveAfter, [this] { return shared_->gone; });
    lock.unlock();
    // A source may look for its next element for long. The host that gives the data set up does not wait for what it will never see.
    if (over) pthread_join(thread_, nullptr);
    else pthread_detach(thread_);
  }

  Status restart() override {
    DTG_TRY(check_process());
    stop_thread();
    shared_->ready.clear();
    shared_->failure = {};
    shared_->ended = false;
    shared_->stop = false;
    shared_->gone = false;
    return shared_->source->restart();
  }

  int64_t cardinality() const override { return shared_->source->cardinality(); }

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

  Result<int64_t> skip(int64_t count) override { return running_ ? Dataset::skip(count) : shared_->source->skip(count); }
  // Only while the thread is not running.
  Dataset* source() const override { return shared_->source.get(); }
  int64_t passes() const override { return 0; }  // what is below is the thread's
  // How far ahead is nobody's business.
  std::string stage() const override { return ""; }

 private:
  // What the thread is given.
  struct Start {
    SharedPtr shared;
    size_t count;
  };

  bool forked() const { return running_ && getpid() != process_; }

  Status check_process() const {
    if (!forked()) return {};
    return failed_precondition("take from a prefetching data set: this process was forked after its thread started; make the data "
                               "set anew in the child");
  }

  Status start_thread() {
    auto start = std::make_unique<Start>(Start{shared_, count_});
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&thread_, nullptr, &Prefetch::enter, start.get());
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (failed != 0) {
      return resource_exhausted("start the thread of a prefetching data set: error %d; is there a limit on threads?", failed);
    }
    static_cast<void>(start.release());
    running_ = true;
    process_ = getpid();
    return {};
  }

  void ask_to_stop() {
    {
      const std::lock_guard lock(shared_->mutex);
      shared_->stop = true;
    }
    shared_->changed.notify_one();
  }

  void stop_thread() {
    if (!running_) return;
    ask_to_stop();
    pthread_join(thread_, nullptr);
    running_ = false;
  }

  static void* enter(void* given) {
    const std::unique_ptr<Start> start(static_cast<Start*>(given));
    try {
      fill(*start->shared, start->count);
    } catch (...) {
      start->shared->end(resource_exhausted("prefetch from a data set: there was no memory for the next element"));
    }
    {
      const std::lock_guard lock(start->shared->mutex);
      start->shared->gone = true;
    }
    start->shared->changed.notify_one();
    return nullptr;
  }

  const size_t count_;
  SharedPtr shared_;
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
