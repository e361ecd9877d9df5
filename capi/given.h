// Strings in the structs of the ABI: one that is given with a length of 0 was most likely meant, and its length forgotten, as by a program
// that clears a struct instead of using its _INIT macro. Taken for "none" it would cost a server its state, or a job its key, without a
// word. One that holds a NUL would be cut there by whoever hands it on. Pure; any thread.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/status.h"

namespace dtg::capi {

// Every field of a public struct that has a length beside it; the tidy test of structs says which one is missing here. Not `s` of dtg_attr,
// which is a value: an empty string is one.
template <class T>
Status check_given(const T& read, const char* what) {
  const auto check = [what](const char* text, size_t length, const char* field) {
    // Whoever takes it for one that ends with NUL would have another text.
    if (text && length != 0 && length != SIZE_MAX && std::memchr(text, 0, length)) {
      return invalid_argument("%s: %s goes on after a NUL, at byte %zu of %zu; give it without, or DTG_STRLEN for a string that ends there",
                              what, field, static_cast<size_t>(static_cast<const char*>(std::memchr(text, 0, length)) - text), length);
    }
    if (!text || length != 0) return Status();
    return invalid_argument(
        "%s: %s is given with length 0; give its length, or DTG_STRLEN for a string that ends with NUL, or NULL for none", what, field);
  };
#define DTG_GIVEN(field)                                                                          \
  if constexpr (requires { read.field##_len; }) {                                                 \
    if (Status status = check(read.field, read.field##_len, #field); !status.ok()) return status; \
  }
  DTG_GIVEN(best)
  DTG_GIVEN(device)
  DTG_GIVEN(directory)
  DTG_GIVEN(job)
  DTG_GIVEN(key_file)
  DTG_GIVEN(label)
  DTG_GIVEN(location)
  DTG_GIVEN(monitor)
  DTG_GIVEN(name)
  DTG_GIVEN(names)
  DTG_GIVEN(pass)
  DTG_GIVEN(schema)
  DTG_GIVEN(state_dir)
  DTG_GIVEN(type)
  DTG_GIVEN(undecayed_names)
  DTG_GIVEN(weights_of)
#undef DTG_GIVEN
  return {};
}

}  // namespace dtg::capi
