// Whether the functions that carry OpenSSL's names in this process are OpenSSL's. A host may hold another TLS library that
// exports them first (BoringSSL does so inside of some packages); symbol versions do not keep them out, and a call of ours
// into that library would end the host. Any thread; looked at once.
#pragma once

#include "base/status.h"

namespace dtg {

// FAILED_PRECONDITION names the other library and says what to do.
Status check_openssl();

}  // namespace dtg
