// Guard: the wall around every function of the ABI. Inside is C++ with Status; outside is C with errors.
// No exception passes, a forked child is refused, memory that runs out is an error that needs no memory.
#pragma once

#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include "base/status.h"
#include "capi/given.h"
#include "capi/handle.h"
#include "dtg/error.h"

namespace dtg::capi {

// The error for the host; null for ok. Never fails: without memory it is a static error.
dtg_error* to_error(const Status& status) noexcept;
// What a function of the host said, which is ours from now on.
Status taken(dtg_error* error);
dtg_error* out_of_memory() noexcept;
dtg_error* forked_child() noexcept;

template <class Fn>
dtg_error* guard(Fn&& fn) noexcept {
  if (in_forked_child()) return forked_child();
  try {
    const Status status = fn();
    return status.ok() ? nullptr : to_error(status);
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& unexpected) {
    return to_error(internal_error("unexpected: %s", unexpected.what()));
  }
}

// The same around a call on an open handle of that type.
template <class T, class Handle, class Fn>
dtg_error* with(Handle* handle, HandleType type, Fn&& fn) noexcept {
  return guard([&]() -> Status {
    const Held<T> held(handle, type);
    if (!held) return held.status();
    return fn(*held);
  });
}

// A string argument. NULL is allowed where the caller says so by asking for an optional one.
inline std::string_view text(const char* data, size_t length) {
  if (!data) return {};
  return length == DTG_STRLEN ? std::string_view(data) : std::string_view(data, length);
}

inline Status require(const void* pointer, const char* what) {
  return pointer ? Status() : invalid_argument("%s is NULL; it must point to something", what);
}

// A name that must be given, whole.
inline Result<std::string_view> read_name(const char* data, size_t length, const char* what) {
  DTG_TRY(require(data, what));
  const std::string_view given = text(data, length);
  DTG_TRY(check_name(given, what));
  return given;
}

// The path of a file. One that the system would cut at a NUL would be another file's.
inline Result<std::string> read_path(const char* path, size_t length) {
  DTG_TRY(require(path, "path"));
  const std::string_view given = text(path, length);
  if (given.empty()) return invalid_argument("path is empty; give the name of a file");
  if (given.find('\0') != std::string_view::npos)
    return invalid_argument("path \"%s\" goes on after a NUL; no file's name does", std::string(given).c_str());
  return std::string(given);
}

// An array argument: NULL only together with a count of 0.
inline Status require_array(const void* pointer, size_t count, const char* what) {
  if (pointer || count == 0) return {};
  return invalid_argument("%s is NULL, but its count is %zu; give an array of that many, or a count of 0", what, count);
}

// Reads a struct of the host into our newest form: an older, shorter one leaves the rest at its default; of
// a newer, longer one the tail must be zero. Its strings have lengths. `smallest` is its size in release 0.1.
template <class T>
Status read_struct(const T* given, size_t smallest, const char* what, T* into) {
  DTG_TRY(require(given, what));
  size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (size < smallest) {
    return invalid_argument("%s: struct_size is %zu, at least %zu is needed; initialise it with its _INIT macro", what, size, smallest);
  }
  if (size > 65536) return invalid_argument("%s: struct_size is %zu, which cannot be right", what, size);
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (size_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] != 0) {
      return invalid_argument("%s: it has fields that this library (%s) does not know, and they are not zero", what, "0.1");
    }
  }
  std::memcpy(static_cast<void*>(into), given, size < sizeof(T) ? size : sizeof(T));
  return check_given(*into, what);
}

}  // namespace dtg::capi
