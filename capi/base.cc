// dtg/base.h: version, features and element types. Any thread.
#include "dtg/base.h"

#include <string_view>

#include "capi/handle.h"
#include "tensor/dtype.h"

using namespace dtg;

extern "C" {

uint32_t dtg_abi_version(void) noexcept { return static_cast<uint32_t>(DTG_VERSION_MAJOR) << 16 | DTG_VERSION_MINOR; }
const char* dtg_version(void) noexcept { return "0.1.0"; }

int32_t dtg_has_feature(const char* name) noexcept {
  if (!name) return 0;
  // What is built in has a row here. TLS always is: OpenSSL is required to build the library.
  constexpr std::string_view kBuiltIn[] = {"cpu", "tls"};
  for (std::string_view feature : kBuiltIn) {
    if (feature == name) return 1;
  }
  return 0;
}

size_t dtg_dtype_size(dtg_dtype dtype) noexcept { return static_cast<size_t>(dtype_size(static_cast<DType>(dtype))); }
const char* dtg_dtype_name(dtg_dtype dtype) noexcept { return dtype_name(static_cast<DType>(dtype)); }
dtg_dtype dtg_dtype_from_name(const char* name) noexcept { return name ? static_cast<dtg_dtype>(dtype_from_name(name)) : 0; }
size_t dtg_live_handles(void) noexcept { return capi::live_cells(); }

}  // extern "C"
