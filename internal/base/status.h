// Status and Result: how every fallible call inside the library answers.
//
// A Status is one pointer: null means success, otherwise a shared, immutable record of what failed and
// where. Copying shares the record, so a Status is cheap to keep as the first cause of an aborted step.
// Any thread may hold, copy and read one. Nothing throws across a rung; the C ABI turns a Status into a
// dtg_error.
//
//   Status open(...) { if (bad) return invalid_argument("open \"%s\": no such set", name); return {}; }
//   DTG_TRY(open(...));              // returns early with the error
//   DTG_ASSIGN(auto shape, Shape::make(dims));
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace dtg {

// The canonical codes; the numbers are part of the C ABI and of the wire.
enum class Code : int32_t {
  ok = 0,
  cancelled = 1,
  unknown = 2,
  invalid_argument = 3,
  deadline_exceeded = 4,
  not_found = 5,
  already_exists = 6,
  permission_denied = 7,
  resource_exhausted = 8,
  failed_precondition = 9,
  aborted = 10,
  out_of_range = 11,
  unimplemented = 12,
  internal = 13,
  unavailable = 14,
  data_loss = 15,
  unauthenticated = 16,
};

// "INVALID_ARGUMENT" and so on; "CODE_42" never happens: an unknown number reads as "UNKNOWN".
const char* code_name(Code code);

// Where a failure came from. Empty fields are unknown or do not apply.
struct Origin {
  std::string task;   // "/job:ps/task:0": the task that found the failure
  std::string peer;   // the other end, where there is one
  std::string node;   // name of the graph node
  std::string phase;  // "build", "place", "prepare", "run", "connect", ...
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message);
  Status(Code code, std::string message, Origin origin);
  Status(const Status& other) : rep_(other.rep_) {
    if (rep_) retain();
  }
  Status(Status&& other) noexcept : rep_(std::exchange(other.rep_, nullptr)) {}
  Status& operator=(Status other) noexcept {
    std::swap(rep_, other.rep_);
    return *this;
  }
  ~Status() {
    if (rep_) release();
  }

  bool ok() const { return rep_ == nullptr; }
  Code code() const;
  const std::string& message() const;
  const Origin& origin() const;

  // The same failure, seen from one place further out. Fields already known are kept: the first cause
  // names the culprit best.
  Status at_node(std::string_view node) const;
  Status at_task(std::string_view task) const;
  Status at_peer(std::string_view peer) const;
  Status in_phase(std::string_view phase) const;
  // "context: message", same code and origin.
  Status with_context(std::string_view context) const;

 private:
  struct Rep;
  void retain() const;
  void release();
  Status edit(void (*change)(Rep&, std::string_view), std::string_view value) const;
  Rep* rep_ = nullptr;
};

// Constructors by code, printf style. The message says what was attempted, on what, what was found and
// what to try.
#define DTG_DECLARE_ERROR(name) [[gnu::format(printf, 1, 2)]] Status name(const char* format, ...)
DTG_DECLARE_ERROR(cancelled);
DTG_DECLARE_ERROR(invalid_argument);
DTG_DECLARE_ERROR(deadline_exceeded);
DTG_DECLARE_ERROR(not_found);
DTG_DECLARE_ERROR(already_exists);
DTG_DECLARE_ERROR(permission_denied);
DTG_DECLARE_ERROR(resource_exhausted);
DTG_DECLARE_ERROR(failed_precondition);
DTG_DECLARE_ERROR(aborted);
DTG_DECLARE_ERROR(out_of_range);
DTG_DECLARE_ERROR(unimplemented);
DTG_DECLARE_ERROR(internal_error);
DTG_DECLARE_ERROR(unavailable);
DTG_DECLARE_ERROR(data_loss);
DTG_DECLARE_ERROR(unauthenticated);
#undef DTG_DECLARE_ERROR

// A formatted std::string, for messages built in pieces.
[[gnu::format(printf, 1, 2)]] std::string format(const char* format, ...);

// A value or the reason why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit on purpose
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit on purpose

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  T& value() { return *value_; }
  const T& value() const { return *value_; }
  T take() { return std::move(*value_); }

 private:
  Status status_;
  std::optional<T> value_;
};

#define DTG_CONCAT2(a, b) a##b
#define DTG_CONCAT(a, b) DTG_CONCAT2(a, b)
#define DTG_TRY(expr)                                                              \
  do {                                                                             \
    if (::dtg::Status dtg_status_ = (expr); !dtg_status_.ok()) return dtg_status_; \
  } while (0)
#define DTG_ASSIGN_IMPL(result, target, expr) \
  auto result = (expr);                       \
  if (!result.ok()) return result.status();   \
  target = result.take()
#define DTG_ASSIGN(target, expr) DTG_ASSIGN_IMPL(DTG_CONCAT(dtg_result_, __LINE__), target, expr)

}  // namespace dtg
