// Strings in the structs of the ABI: one that is given with a length of 0 was most likely meant, and its length forgotten, as by a program
// that clears a struct instead of using its _INIT macro. Taken for "none" it would cost a server its state, or a job its key, without a
// word. And names with a NUL inside, which messages, files and C itself would cut there and take for another's. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "dtg/base.h"

namespace dtg::capi {

// `what` names it in the message.
inline Status check_name(std::string_view name, const std::string& what) {
  if (name.find('\0') == name.npos) return {};
  std::string shown(name.substr(0, 200));
  for (size_t at = 0; (at = shown.find('\0', at)) != shown.npos; at += 2) shown.replace(at, 1, "\\0");
  return invalid_argument("%s is \"%s\", with a NUL inside; leave it out", what.c_str(), shown.c_str());
}

// Every field of a public struct that has a length beside it; the tidy test of structs says which one is missing here. Not `s` of dtg_attr,
// which is a value: an empty string is one.
template <class T>
Status check_given(const T& read, const char* what) {
  const auto check = [what](const char* text, size_t length, const char* field) {
    if (!text || length == DTG_STRLEN) return Status();
    if (length != 0) return check_name({text, length}, std::string(what) + ": " + field);
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
