// Where functions come from, as the dynamic linker tells it.
#include "net/openssl.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/ssl.h>

#include <string>

namespace dtg {
namespace {

using Function = void (*)();

struct Place {
  const void* base = nullptr;
  std::string file;
};

Place place_of(const void* address) {
  Dl_info found{};
  ElfW(Sym)* symbol = nullptr;
  if (!dladdr1(address, &found, reinterpret_cast<void**>(&symbol), RTLD_DL_SYMENT)) return {};
  // A program that is bound to fixed addresses stands in for functions of libraries whose address it takes.
  if (symbol && symbol->st_shndx == SHN_UNDEF) return {};
  return {found.dli_fbase, found.dli_fname ? found.dli_fname : ""};
}

Place place_of(Function function) { return place_of(reinterpret_cast<const void*>(function)); }

// Some of what we call and what other libraries have under the same name; not what tracers like to wrap.
const Function kCalled[] = {
    reinterpret_cast<Function>(OPENSSL_init_ssl),  reinterpret_cast<Function>(TLS_client_method),
    reinterpret_cast<Function>(TLS_server_method), reinterpret_cast<Function>(SSL_CTX_new),
    reinterpret_cast<Function>(SSL_CTX_free),      reinterpret_cast<Function>(SSL_new),
    reinterpret_cast<Function>(SSL_free),          reinterpret_cast<Function>(SSL_set_bio),
    reinterpret_cast<Function>(SSL_SESSION_new),   reinterpret_cast<Function>(SSL_do_handshake),
    reinterpret_cast<Function>(SSL_get_error),     reinterpret_cast<Function>(BIO_new),
    reinterpret_cast<Function>(BIO_free),          reinterpret_cast<Function>(BIO_meth_new),
    reinterpret_cast<Function>(BIO_get_data),      reinterpret_cast<Function>(ERR_clear_error),
    reinterpret_cast<Function>(ERR_peek_error),
};
// Some of what libssl calls in libcrypto.
constexpr const char* kWithin[] = {"EVP_MD_CTX_new", "EVP_CIPHER_CTX_new", "EVP_PKEY_free",
                                   "X509_free",      "BUF_MEM_free",       "CRYPTO_free_ex_data"};

Status look() {
  // Only OpenSSL 3 has these two.
  const Place ssl = place_of(reinterpret_cast<Function>(SSL_CTX_set_psk_use_session_callback));
  const Place crypto = place_of(reinterpret_cast<Function>(EVP_KDF_fetch));
  const Place here = place_of(reinterpret_cast<Function>(check_openssl));
  if (!ssl.base || !crypto.base) return {};
  const auto is_foreign = [&](const Place& place) { return place.base && place.base != ssl.base && place.base != crypto.base; };
  std::string stranger;
  for (Function function : kCalled) {
    if (const Place place = place_of(function); is_foreign(place)) stranger = place.file;
  }
  for (const char* name : kWithin) {
    if (ssl.base == here.base) break;  // inside of us, or of a program with everything inside, nobody comes between
    const void* const address = dlsym(RTLD_DEFAULT, name);
    if (const Place place = address ? place_of(address) : Place{}; is_foreign(place)) stranger = place.file;
  }
  if (stranger.empty()) return {};
  return failed_precondition(
      "start TLS: \"%s\" exports functions of another TLS library under OpenSSL's names, and they come before OpenSSL's in this process; load it "
      "without RTLD_GLOBAL, or use a libdtg that was built with -DDTG_OPENSSL_INSIDE=ON",
      stranger.c_str());
}

}  // namespace

Status check_openssl() {
  static const Status* const found = new Status(look());
  return *found;
}

}  // namespace dtg
