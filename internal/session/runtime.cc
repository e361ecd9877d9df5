// Building a runtime: tables filled by the op families, seams from the machine.
#include "session/runtime.h"

#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "monitor/prometheus.h"
#include "net/endpoint.h"
#include "ops/all.h"

namespace dtg {

Runtime::Runtime(Options options)
    : log_owner_(std::move(options.log_owner)),
      budget_(options.memory_limit_bytes > 0 ? options.memory_limit_bytes : default_budget_bytes()),
      seams_{options.clock ? options.clock : &system_clock(), options.random ? options.random : &system_random(),
             options.disk ? options.disk : &system_disk(), &budget_, options.log ? options.log : &stderr_sink()},
      life_(seams_.random->u64() | 1),
      memory_(make_ref<MemoryPool>(&budget_)),
      tracer_(clock()),
      pool_(
          {.threads = options.compute_threads, .spin_ns = options.spin_ns, .pin = options.pin_threads, .own_threads = options.own_threads}),
      disk_pool_(options.own_threads ? std::make_unique<Pool>(Pool::Options{.threads = 1}) : nullptr),
      timer_(clock(), options.own_threads),
      make_network_(options.network ? std::move(options.network) : start_sockets) {
  ops::register_all(ops_, kernels_);
  kernels_.index(ops_);
}

Runtime::~Runtime() { memory_->close(); }

// The end of an asynchronous run may drop the last reference on a thread of the runtime itself, which cannot
// join itself; then a thread of its own does the rest.
void Runtime::last_release() {
  if (!pool_.is_own_thread() && !(disk_pool_ && disk_pool_->is_own_thread()) && !timer_.is_own_thread() &&
      !(network_ && network_->loop().is_current())) {
    delete this;
    return;
  }
  try {
    std::thread([this] { delete this; }).detach();
  } catch (const std::bad_alloc&) {
    // Without memory for a thread it stays, asleep: better than the end of the process.
  } catch (const std::system_error&) {
  }
}

Result<Ref<Runtime>> Runtime::create(Options options) {
  if (options.compute_threads < 0 || options.compute_threads > kThreadsMost) {
    return invalid_argument("create a runtime: compute_threads is %d; 0 means one per CPU, %d is the limit", options.compute_threads,
                            kThreadsMost);
  }
  if (options.memory_limit_bytes < 0 || options.spin_ns < 0) {
    return invalid_argument("create a runtime: memory_limit_bytes and spin_ns may not be negative");
  }
  auto runtime = Ref<Runtime>::adopt(new Runtime(std::move(options)));
  DTG_TRY(runtime->ops_.status());
  return runtime;
}

Result<Host> Runtime::host() {
  Host host = local_host();
  const std::lock_guard lock(network_mutex_);
  if (!network_) {
    DTG_ASSIGN(network_, make_network_(clock()));
  }
  host.network = network_.get();
  return host;
}

Host Runtime::local_host() {
  return Host{&ops_, &kernels_, &pool_, disk_pool_ ? disk_pool_.get() : &pool_, seams_, memory_, nullptr, &directory_, {}, {}, life_};
}

bool Runtime::turn() {
  const bool ran = pool_.run_queued();
  return timer_.ring_due() || ran;
}

std::string Runtime::metrics_text() {
  counters_.gauge("dtg_compute_threads", "Threads that run kernels, the caller of a run included.").set(pool_.threads());
  counters_.gauge("dtg_pool_wakes", "Times a parked compute thread was woken.").set(static_cast<double>(pool_.wakes()));
  counters_.gauge("dtg_budget_bytes", "Memory reserved for sizes that came from outside.").set(static_cast<double>(budget_.used()));
  return prometheus_text(counters_.snapshot());
}

Result<Ref<Runtime>> Runtime::shared(const Options& options) {
  // Leaked: it must outlive whatever the host still runs at exit.
  static std::mutex* const mutex = new std::mutex;
  static Ref<Runtime>* const shared = new Ref<Runtime>;
  const std::lock_guard lock(*mutex);
  if (!*shared) {
    DTG_ASSIGN(*shared, create(options));
  }
  return *shared;
}

}  // namespace dtg
