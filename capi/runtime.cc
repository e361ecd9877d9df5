// dtg/runtime.h: makes runtimes, keeps the default one of the process, and gives out metrics and traces. Any thread.
#include "dtg/runtime.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>

#include "capi/guard.h"
#include "capi/objects.h"

namespace dtg::capi {

namespace {

// What DTG_THREADS says, for who does not say how many; 0: nothing.
Result<int> threads_wished() {
  const char* const text = std::getenv("DTG_THREADS");
  if (!text || *text == '\0') return 0;
  int threads = 0;
  const char* const end = text + std::strlen(text);
  const auto [stop, failed] = std::from_chars(text, end, threads);
  if (failed == std::errc() && stop == end && threads >= 1 && threads <= Runtime::kThreadsMost) return threads;
  return invalid_argument("create a runtime: DTG_THREADS is \"%.40s\"; it is a whole number from 1 to %d", text, Runtime::kThreadsMost);
}

}  // namespace

Result<Ref<Runtime>> runtime_of(dtg_runtime* handle) {
  if (!handle) {
    Runtime::Options options;
    DTG_ASSIGN(options.compute_threads, threads_wished());
    return Runtime::shared(options);
  }
  const Held<Runtime> held(handle, HandleType::runtime);
  if (!held) return held.status();
  return Ref<Runtime>::share(held.get());
}

Status check_owner(const Graph& graph, Value value) {
  const bool bare = value.valid() && value.tag() == graph.tag() && value.node() < graph.node_count() && value.output() == 0;
  return bare ? Status() : graph.check(value);
}

Status check_apart(const Graph& graph, std::span<const Value> values, const char* what, const char* list) {
  for (size_t i = 1; i < values.size(); ++i) {
    const auto end = values.begin() + static_cast<ptrdiff_t>(i), first = std::find(values.begin(), end, values[i]);
    if (first == end) continue;
    DTG_TRY(check_owner(graph, values[i]).with_context(what));
    return invalid_argument("%s: %s %td and %zu are both \"%s\"; each component of the data goes to one of its own", what, list,
                            first - values.begin(), i, graph.value_name(values[i]).c_str());
  }
  return {};
}

namespace {

// The host's log function.
class HostLog final : public LogSink, public RefCounted {
 public:
  HostLog(dtg_log_fn fn, void* user, dtg_user_free_fn user_free, dtg_log_level level)
      : function_(fn, user), user_free_(user_free), level_(level), queue_(std::make_unique<LogQueue>(function_)) {}
  ~HostLog() override {
    queue_ = nullptr;  // with the last line
    if (user_free_) user_free_(function_.user);
  }
  void write(LogLevel level, std::string_view component, std::string_view message) override {
    if (static_cast<dtg_log_level>(level) >= level_) queue_->write(level, component, message);
  }
  // The runtime was not made: `user` stays the host's.
  void disown() { user_free_ = nullptr; }

 private:
  struct Function final : LogSink {
    Function(dtg_log_fn to, void* with) : fn(to), user(with) {}
    void write(LogLevel level, std::string_view component, std::string_view message) override {
      fn(user, static_cast<dtg_log_level>(level), std::string(component).c_str(), std::string(message).c_str());
    }
    const dtg_log_fn fn;
    void* const user;
  };

  Function function_;
  dtg_user_free_fn user_free_;
  const dtg_log_level level_;
  std::unique_ptr<LogQueue> queue_;
};

Status create(const dtg_runtime_options* given, dtg_runtime** out) {
  DTG_TRY(require(out, "out"));
  dtg_runtime_options options = DTG_RUNTIME_OPTIONS_INIT;
  if (given) DTG_TRY(read_struct(given, sizeof(dtg_runtime_options), "dtg_runtime_options", &options));
  Runtime::Options wanted;
  wanted.compute_threads = options.compute_threads;
  if (options.compute_threads == 0) {
    DTG_ASSIGN(wanted.compute_threads, threads_wished());
  }
  wanted.pin_threads = options.pin_threads != 0;
  wanted.spin_ns = options.spin_ns;
  wanted.memory_limit_bytes = options.memory_limit_bytes;
  Ref<HostLog> log;
  if (options.log) {
    log = make_ref<HostLog>(options.log, options.log_user, options.log_user_free, options.log_level);
    wanted.log = log.get();
    wanted.log_owner = log;
  }
  auto made = Runtime::create(std::move(wanted));
  Status status = made.ok() ? give(HandleType::runtime, made.take(), out) : made.status();
  if (!status.ok() && log) log->disown();
  // Without a function nobody will ever use it.
  if (status.ok() && !options.log && options.log_user_free) options.log_user_free(options.log_user);
  return status;
}

}  // namespace
}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_runtime_create(const dtg_runtime_options* options, dtg_runtime** out) noexcept {
  return guard([&] { return create(options, out); });
}
int32_t dtg_runtime_threads(dtg_runtime* runtime) noexcept {
  int32_t threads = 0;
  dtg_error_release(guard([&]() -> Status {
    DTG_ASSIGN(const Ref<Runtime> held, runtime_of(runtime));
    threads = held->pool().threads();
    return {};
  }));
  return threads;
}
dtg_runtime* dtg_runtime_retain(dtg_runtime* runtime) noexcept { return retain_handle(runtime, HandleType::runtime); }
void dtg_runtime_release(dtg_runtime* runtime) noexcept { release_handle(runtime, HandleType::runtime); }

dtg_error* dtg_runtime_trim(dtg_runtime* runtime) noexcept {
  return guard([&]() -> Status {
    DTG_ASSIGN(const Ref<Runtime> held, runtime_of(runtime));
    held->memory()->trim(0);
    trim_blocks();
    return {};
  });
}

dtg_error* dtg_runtime_metrics(dtg_runtime* runtime, dtg_string** out) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(const Ref<Runtime> held, runtime_of(runtime));
    return give(HandleType::string, make_ref<StringObject>(held->metrics_text()), out);
  });
}

dtg_error* dtg_runtime_trace_start(dtg_runtime* runtime) noexcept {
  return guard([&]() -> Status {
    DTG_ASSIGN(const Ref<Runtime> held, runtime_of(runtime));
    held->tracer().start();
    return {};
  });
}

dtg_error* dtg_runtime_trace_stop(dtg_runtime* runtime, dtg_string** out) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(const Ref<Runtime> held, runtime_of(runtime));
    held->tracer().stop();
    const TraceDump dump = held->tracer().collect("dtg");
    return give(HandleType::string, make_ref<StringObject>(chrome_trace({&dump, 1})), out);
  });
}

}  // extern "C"
