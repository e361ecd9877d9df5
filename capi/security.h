// Reads the key file and the security mode out of the options of servers and sessions. A pure function; any thread.
#pragma once

#include <cstdlib>

#include "capi/guard.h"
#include "dtg/session.h"
#include "net/endpoint.h"

namespace dtg::capi {

inline Status read_security(const char* key_file, size_t key_file_len, dtg_security mode, SecurityOptions* into) {
  if (mode != DTG_SECURITY_TLS && mode != DTG_SECURITY_CLEAR_FRAMES) {
    return invalid_argument("security is %d; DTG_SECURITY_TLS and DTG_SECURITY_CLEAR_FRAMES are known", mode);
  }
  into->key_file = text(key_file, key_file_len);
  // Where the program says nothing, whoever started it may: the path, never the key.
  const char* const path = into->key_file.empty() ? std::getenv("DTG_KEY_FILE") : nullptr;
  if (path) into->key_file = path;
  into->security = mode == DTG_SECURITY_TLS ? Security::tls : Security::clear_frames;
  return {};
}

}  // namespace dtg::capi
