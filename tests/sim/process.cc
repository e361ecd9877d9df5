// What a process is handed, and whose turn it is in it.
#include "process.h"

#include "base/whereabouts.h"
#include "net.h"

namespace dtg::sim {

// Runs at its own speed, and began at some time.
class Process::ProcessClock final : public Clock {
 public:
  explicit ProcessClock(World& world) : world_(world), drift_ppm_(world.between(-200, 200)), offset_ns_(world.between(0, 1000 * kSecond)) {}
  int64_t monotonic_ns() const override { return world_.now_ns() + world_.now_ns() / 1'000'000 * drift_ppm_ + offset_ns_; }
  double wall_seconds() const override { return 1.7e9 + static_cast<double>(world_.now_ns()) * 1e-9; }
  void wait(std::condition_variable&, std::unique_lock<std::mutex>& lock, int64_t until_ns) const override {
    lock.unlock();
    Fiber* const self = Fiber::current();
    self->wakes_at_ns = until_ns;
    Fiber::pause();
    lock.lock();
  }
  // When the world has come to that time of this clock, or a little later.
  int64_t world_ns(int64_t at_ns) const {
    if (at_ns - offset_ns_ > INT64_MAX / 4'000'000) return INT64_MAX;
    return (at_ns - offset_ns_) * 1'000'000 / (1'000'000 + drift_ppm_) + kMicrosecond;
  }

 private:
  World& world_;
  const int64_t drift_ppm_;
  const int64_t offset_ns_;
};

class Process::ProcessRandom final : public Random {
 public:
  explicit ProcessRandom(uint64_t seed) : random_(seed) {}
  void fill(void* bytes, size_t count) const override {
    for (size_t i = 0; i < count; ++i) static_cast<unsigned char*>(bytes)[i] = static_cast<unsigned char>(random_());
  }

 private:
  mutable std::mt19937_64 random_;
};

class Process::Silence final : public LogSink {
 public:
  explicit Silence(Process& process) : process_(process) {}
  void write(LogLevel, std::string_view component, std::string_view message) override {
    if (process_.world_.talks) process_.world_.say(process_.name_ + " " + std::string(component) + ": " + std::string(message));
  }

 private:
  Process& process_;
};

Process::Process(World& world, Net& net, std::string name, uint64_t seed, std::shared_ptr<Disk> disk, std::function<void(Process&)> program)
    : world_(world),
      net_(net),
      name_(std::move(name)),
      clock_(new ProcessClock(world)),
      random_(new ProcessRandom(seed)),
      log_(new Silence(*this)),
      disk_(disk ? new ProcessDisk(std::move(disk)) : nullptr) {
  program_ = std::make_unique<Fiber>([this, program = std::move(program)] {
    Runtime::Options options;
    options.compute_threads = 1;
    options.memory_limit_bytes = int64_t{1} << 30;
    options.log = log_.get();
    options.clock = clock_.get();
    options.random = random_.get();
    options.disk = disk_.get();
    options.own_threads = false;
    options.network = [this](const Clock& clock) { return net_.of(*this, clock); };
    runtime_ = Runtime::create(std::move(options)).take();
    program(*this);
    // What others still hold of it ends first.
    while (runtime_->ref_count() > 1) sleep(kMillisecond);
    runtime_ = nullptr;
    gone_ = true;
  });
  wake();
}

Process::~Process() {
  if (!cut_off_) net_.cut_off(*this);
  *exists_ = false;
}

const Clock& Process::clock() const { return *clock_; }

void Process::kill() {
  if (cut_off_) return;
  cut_off_ = true;
  if (disk_) disk_->cut_off();
  net_.cut_off(*this);
  stalled_until_ns_ = 0;
  wake();
}

void Process::hears(const Status& status) {
  const std::string missing = untold(status);
  if (missing.empty() || !world_.ill_told.empty()) return;
  world_.ill_told = name_ + " is told " + code_name(status.code()) + " with " + missing + ": " + status.message();
}

void Process::sleep(int64_t ns) {
  const int64_t until = clock_->monotonic_ns() + ns;
  while (clock_->monotonic_ns() < until) {
    Fiber::current()->wakes_at_ns = until;
    Fiber::pause();
  }
}

void Process::happens_at(int64_t at_ns, std::function<void()> fn) {
  world_.at(at_ns, [this, exists = exists_, fn = std::move(fn)]() mutable {
    if (!*exists || gone_) return;
    if (world_.now_ns() < stalled_until_ns_) return happens_at(stalled_until_ns_, std::move(fn));
    in_loop_ = true;
    fn();
    fn = nullptr;
    in_loop_ = false;
    wake();
  });
}

void Process::wake() { turn_at(world_.now_ns()); }

// The earliest of those that were asked for; others find nothing to do.
void Process::turn_at(int64_t at_ns) {
  if (at_ns >= turn_at_ns_ || at_ns == INT64_MAX) return;
  turn_at_ns_ = at_ns;
  world_.at(at_ns, [this, exists = exists_, at_ns] {
    if (!*exists || gone_ || turn_at_ns_ != at_ns) return;
    turn_at_ns_ = INT64_MAX;
    if (world_.now_ns() < stalled_until_ns_) return turn_at(stalled_until_ns_);
    turn();
  });
}

void Process::turn() {
  do {
    if (runtime_) runtime_->turn();
    program_->resume();
  } while (!gone_ && runtime_ && runtime_->turn());
  if (gone_) return;
  turn_at(clock_->world_ns(program_->wakes_at_ns));
  if (runtime_) turn_at(clock_->world_ns(runtime_->timer().next_due()));
}

}  // namespace dtg::sim
