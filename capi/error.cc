// dtg/error.h: errors and strings, owned by their handles and immutable. Two errors are static, because they must need
// no memory: that memory ran out, and that the process was forked. Any thread.
#include "dtg/error.h"

#include "capi/guard.h"
#include "capi/objects.h"

namespace dtg::capi {
namespace {

// A cell of our own layout without an object: recognised by its address, so releasing it does nothing.
Cell no_memory_cell;
Cell forked_cell;

dtg_error* handle_of(Cell& cell) { return reinterpret_cast<dtg_error*>(&cell); }
bool is(const dtg_error* error, const Cell& cell) { return reinterpret_cast<const Cell*>(error) == &cell; }
bool is_static(const dtg_error* error) { return is(error, no_memory_cell) || is(error, forked_cell); }

constexpr const char* kNoMemory = "out of memory: the call was given up and nothing was changed";
constexpr const char* kForked =
    "this process was forked after dtg was used: only exec, exit and releases are possible; use dtg in the parent, or after exec";

template <class Fn>
const char* field(const dtg_error* error, Fn&& fn) {
  if (!error || is_static(error)) return "";
  const Held<ErrorObject> held(error, HandleType::error);
  return held ? fn(held->status) : "";
}

// Names that a host gives may hold NULs, and at the first of them a message would end.
std::string without_nul(std::string text) {
  for (size_t at = 0; (at = text.find('\0', at)) != std::string::npos; at += 2) text.replace(at, 1, "\\0");
  return text;
}

Status readable(const Status& status) {
  const Origin& where = status.origin();
  if (status.message().find('\0') == std::string::npos && where.node.find('\0') == std::string::npos) return status;
  return Status(status.code(), without_nul(status.message()), {where.task, where.peer, without_nul(where.node), where.phase});
}

}  // namespace

dtg_error* out_of_memory() noexcept { return handle_of(no_memory_cell); }
dtg_error* forked_child() noexcept { return handle_of(forked_cell); }

dtg_error* to_error(const Status& status) noexcept {
  try {
    dtg_error* error = nullptr;
    if (give(HandleType::error, make_ref<ErrorObject>(readable(status)), &error).ok()) return error;
  } catch (const std::bad_alloc&) {
  }
  return out_of_memory();
}

Status taken(dtg_error* error) {
  if (!error) return {};
  Status status;
  if (const Held<ErrorObject> held(error, HandleType::error); held && !is_static(error)) status = held->status;
  else status = Status(static_cast<Code>(dtg_error_code(error)), dtg_error_message(error, nullptr));
  dtg_error_release(error);
  return status;
}

}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_code dtg_error_code(const dtg_error* error) noexcept {
  if (!error) return DTG_OK;
  if (is(error, no_memory_cell)) return DTG_RESOURCE_EXHAUSTED;
  if (is(error, forked_cell)) return DTG_FAILED_PRECONDITION;
  const Held<ErrorObject> held(error, HandleType::error);
  return held ? static_cast<dtg_code>(held->status.code()) : DTG_INTERNAL;
}

const char* dtg_error_message(const dtg_error* error, size_t* length) noexcept {
  const char* message = "";
  if (error && is(error, no_memory_cell)) message = kNoMemory;
  else if (error && is(error, forked_cell)) message = kForked;
  else message = field(error, [](const Status& s) { return s.message().c_str(); });
  if (length) *length = std::strlen(message);
  return message;
}

const char* dtg_error_node(const dtg_error* error) noexcept {
  return field(error, [](const Status& s) { return s.origin().node.c_str(); });
}
const char* dtg_error_task(const dtg_error* error) noexcept {
  return field(error, [](const Status& s) { return s.origin().task.c_str(); });
}
const char* dtg_error_peer(const dtg_error* error) noexcept {
  return field(error, [](const Status& s) { return s.origin().peer.c_str(); });
}
const char* dtg_error_phase(const dtg_error* error) noexcept {
  return field(error, [](const Status& s) { return s.origin().phase.c_str(); });
}
const char* dtg_code_name(dtg_code code) noexcept { return code_name(static_cast<Code>(code)); }

dtg_error* dtg_error_create(dtg_code code, const char* message, size_t message_len) noexcept {
  if (in_forked_child()) return forked_child();
  try {
    const bool is_known = code > DTG_OK && code <= DTG_UNAUTHENTICATED;
    return to_error(Status(is_known ? static_cast<Code>(code) : Code::unknown, std::string(text(message, message_len))));
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

dtg_error* dtg_error_retain(dtg_error* error) noexcept { return is_static(error) ? error : retain_handle(error, HandleType::error); }
void dtg_error_release(dtg_error* error) noexcept {
  if (!is_static(error)) release_handle(error, HandleType::error);
}

const char* dtg_string_data(const dtg_string* string, size_t* length) noexcept {
  if (length) *length = 0;
  const Held<StringObject> held(string, HandleType::string);
  if (!held) return "";
  if (length) *length = held->text.size();
  return held->text.c_str();
}
void dtg_string_release(dtg_string* string) noexcept { release_handle(string, HandleType::string); }

}  // extern "C"
