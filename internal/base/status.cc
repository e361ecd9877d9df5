// Status records: allocation, sharing and the printf-style constructors. Records are immutable once
// made, so only the count is atomic. Any thread. Making a status never fails: without memory it becomes one
// that says so, since it is made where nobody could catch anything, on a thread of the pool or in a destructor.
#include "base/status.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <new>

namespace dtg {

namespace {

// A message is for reading, and a name in it may be as long as whoever gave it liked: of more than kNameMost bytes without a space the ends
// are kept, and how many there are.
constexpr size_t kNameMost = 400, kEnd = 100;

bool goes_on(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }  // within a character of UTF-8

// `word` without the quotes and stops around it.
void append_readable(std::string& out, std::string_view word) {
  const size_t begin = std::min(word.find_first_not_of("\"'(["), word.size()), end = word.find_last_not_of("\"'),.:;]") + 1;
  if (end <= begin + kNameMost) {
    out += word;
    return;
  }
  size_t head = begin + kEnd, tail = end - kEnd;
  while (head > begin && goes_on(word[head])) --head;
  while (tail < end && goes_on(word[tail])) ++tail;
  out.append(word.substr(0, head)).append("...(" + std::to_string(end - begin) + " bytes)...").append(word.substr(tail));
}

// Without memory for that, as it is.
std::string readable(std::string message) {
  if (message.size() <= kNameMost) return message;
  try {
    std::string out;
    for (std::string_view left = message; !left.empty();) {
      const size_t end = std::min(left.find_first_of(" \n"), left.size());
      append_readable(out, left.substr(0, end));
      out += left.substr(end, 1);
      left.remove_prefix(std::min(end + 1, left.size()));
    }
    return out;
  } catch (const std::bad_alloc&) {
    return message;
  }
}

}  // namespace

struct Status::Rep {
  std::atomic<int> refs{1};
  Code code = Code::unknown;
  std::string message;
  Origin origin;
};

const char* code_name(Code code) {
  switch (code) {
    case Code::ok: return "OK";
    case Code::cancelled: return "CANCELLED";
    case Code::unknown: return "UNKNOWN";
    case Code::invalid_argument: return "INVALID_ARGUMENT";
    case Code::deadline_exceeded: return "DEADLINE_EXCEEDED";
    case Code::not_found: return "NOT_FOUND";
    case Code::already_exists: return "ALREADY_EXISTS";
    case Code::permission_denied: return "PERMISSION_DENIED";
    case Code::resource_exhausted: return "RESOURCE_EXHAUSTED";
    case Code::failed_precondition: return "FAILED_PRECONDITION";
    case Code::aborted: return "ABORTED";
    case Code::out_of_range: return "OUT_OF_RANGE";
    case Code::unimplemented: return "UNIMPLEMENTED";
    case Code::internal: return "INTERNAL";
    case Code::unavailable: return "UNAVAILABLE";
    case Code::data_loss: return "DATA_LOSS";
    case Code::unauthenticated: return "UNAUTHENTICATED";
  }
  return "UNKNOWN";
}

Status::Status(Code code, std::string message) : Status(code, std::move(message), Origin{}) {}

Status::Status(Code code, std::string message, Origin origin) {
  if (code == Code::ok) return;
  rep_ = new (std::nothrow) Rep;
  if (!rep_) {
    // The one record that is never freed, because its own reference is never dropped. The message is short
    // enough to live inside the string.
    alignas(Rep) static unsigned char memory[sizeof(Rep)];
    static Rep* const no_memory = [] {
      Rep* const made = new (memory) Rep;
      made->code = Code::resource_exhausted;
      made->message = "out of memory";
      return made;
    }();
    rep_ = no_memory;
    retain();
    return;
  }
  rep_->code = code;
  rep_->message = readable(std::move(message));
  rep_->origin = std::move(origin);
}

void Status::retain() const { rep_->refs.fetch_add(1, std::memory_order_relaxed); }

void Status::release() {
  if (rep_->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete rep_;
}

Code Status::code() const { return rep_ ? rep_->code : Code::ok; }

const std::string& Status::message() const {
  // Never destroyed: a destructor would run at exit, under the host. In memory of its own, because it may be asked for when there is none.
  alignas(std::string) static unsigned char memory[sizeof(std::string)];
  static const std::string* const empty = new (memory) std::string;
  return rep_ ? rep_->message : *empty;
}

const Origin& Status::origin() const {
  alignas(Origin) static unsigned char memory[sizeof(Origin)];
  static const Origin* const empty = new (memory) Origin;
  return rep_ ? rep_->origin : *empty;
}

Status Status::edit(void (*change)(Rep&, std::string_view), std::string_view value) const {
  if (ok()) return {};
  try {
    Status copy(rep_->code, rep_->message, rep_->origin);
    // Shared: it is the record for lack of memory. What is known already is better than that.
    if (copy.rep_->refs.load(std::memory_order_relaxed) != 1) return *this;
    change(*copy.rep_, value);
    return copy;
  } catch (const std::bad_alloc&) {
    return *this;
  }
}

Status Status::at_node(std::string_view node) const {
  if (ok() || !rep_->origin.node.empty()) return *this;
  return edit([](Rep& rep, std::string_view v) { rep.origin.node = v; }, node);
}

Status Status::at_task(std::string_view task) const {
  if (ok() || !rep_->origin.task.empty()) return *this;
  return edit([](Rep& rep, std::string_view v) { rep.origin.task = v; }, task);
}

Status Status::at_peer(std::string_view peer) const {
  if (ok() || !rep_->origin.peer.empty()) return *this;
  return edit([](Rep& rep, std::string_view v) { rep.origin.peer = v; }, peer);
}

Status Status::in_phase(std::string_view phase) const {
  if (ok() || !rep_->origin.phase.empty()) return *this;
  return edit([](Rep& rep, std::string_view v) { rep.origin.phase = v; }, phase);
}

Status Status::with_context(std::string_view context) const {
  return edit([](Rep& rep, std::string_view v) { rep.message = readable(std::string(v)) + ": " + rep.message; }, context);
}

namespace {
std::string format_list(const char* format, va_list args) {
  va_list again;
  va_copy(again, args);
  char small[256];
  const int needed = vsnprintf(small, sizeof small, format, args);
  std::string text;
  if (needed >= 0 && static_cast<size_t>(needed) < sizeof small) {
    text.assign(small, static_cast<size_t>(needed));
  } else if (needed >= 0) {
    text.resize(static_cast<size_t>(needed));
    vsnprintf(text.data(), text.size() + 1, format, again);
  }
  va_end(again);
  return text;
}

Status format_status(Code code, const char* format, va_list args) {
  try {
    return Status(code, format_list(format, args));
  } catch (const std::bad_alloc&) {
    return Status(Code::resource_exhausted, "out of memory");
  }
}
}  // namespace

#define DTG_DEFINE_ERROR(name, code)                   \
  Status name(const char* format, ...) {               \
    va_list args;                                      \
    va_start(args, format);                            \
    Status status = format_status(code, format, args); \
    va_end(args);                                      \
    return status;                                     \
  }
DTG_DEFINE_ERROR(cancelled, Code::cancelled)
DTG_DEFINE_ERROR(invalid_argument, Code::invalid_argument)
DTG_DEFINE_ERROR(deadline_exceeded, Code::deadline_exceeded)
DTG_DEFINE_ERROR(not_found, Code::not_found)
DTG_DEFINE_ERROR(already_exists, Code::already_exists)
DTG_DEFINE_ERROR(permission_denied, Code::permission_denied)
DTG_DEFINE_ERROR(resource_exhausted, Code::resource_exhausted)
DTG_DEFINE_ERROR(failed_precondition, Code::failed_precondition)
DTG_DEFINE_ERROR(aborted, Code::aborted)
DTG_DEFINE_ERROR(out_of_range, Code::out_of_range)
DTG_DEFINE_ERROR(unimplemented, Code::unimplemented)
DTG_DEFINE_ERROR(internal_error, Code::internal)
DTG_DEFINE_ERROR(unavailable, Code::unavailable)
DTG_DEFINE_ERROR(data_loss, Code::data_loss)
DTG_DEFINE_ERROR(unauthenticated, Code::unauthenticated)
#undef DTG_DEFINE_ERROR

std::string format(const char* format, ...) {
  va_list args;
  va_start(args, format);
  std::string text = format_list(format, args);
  va_end(args);
  return text;
}

}  // namespace dtg
