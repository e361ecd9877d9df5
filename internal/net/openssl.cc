// Asks the dynamic linker which library OpenSSL's functions come from. Any thread.
#include "net/openssl.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/ssl.h>

#include <string>
#include <vector>

namespace dtg {
namespace {

struct Place {
  const void* base = nullptr;
  std::string file;
};

// Of nothing where nobody has it.
Place place_of(const void* address) {
  Dl_info found{};
  ElfW(Sym)* symbol = nullptr;
  if (!dladdr1(address, &found, reinterpret_cast<void**>(&symbol), RTLD_DL_SYMENT)) return {};
  // A program that is bound to fixed addresses stands in for functions of libraries whose address it takes.
  if (symbol && symbol->st_shndx == SHN_UNDEF) return {};
  return {found.dli_fbase, found.dli_fname ? found.dli_fname : ""};
}

template <class Out, class... In>
const void* at(Out (*function)(In...)) {
  return reinterpret_cast<const void*>(function);
}

Status look() {
  // Only OpenSSL 3 has these two.
  const Place ssl = place_of(at(SSL_CTX_set_psk_use_session_callback)), crypto = place_of(at(EVP_KDF_fetch));
  if (!ssl.base || !crypto.base) return {};
  // Some of what we call and what other libraries have under the same name; not what tracers like to wrap.
  std::vector<const void*> called = {
      at(OPENSSL_init_ssl), at(TLS_client_method), at(TLS_server_method), at(SSL_CTX_new),      at(SSL_CTX_free),  at(SSL_new),
      at(SSL_free),         at(SSL_set_bio),       at(SSL_SESSION_new),   at(SSL_do_handshake), at(SSL_get_error), at(BIO_new),
      at(BIO_free),         at(BIO_meth_new),      at(BIO_get_data),      at(ERR_clear_error),  at(ERR_peek_error)};
  // And of what libssl calls in libcrypto. Inside of us, or of a program with everything inside, nobody comes between.
  if (ssl.base != place_of(at(check_openssl)).base) {
    for (const char* name : {"EVP_MD_CTX_new", "EVP_CIPHER_CTX_new", "EVP_PKEY_free", "X509_free", "BUF_MEM_free", "CRYPTO_free_ex_data"}) {
      called.push_back(dlsym(RTLD_DEFAULT, name));
    }
  }
  for (const void* function : called) {
    const Place place = place_of(function);
    if (!place.base || place.base == ssl.base || place.base == crypto.base) continue;
    return failed_precondition(
        "start TLS: \"%s\" exports functions of another TLS library under OpenSSL's names, and they come before OpenSSL's in this process; "
        "load it without RTLD_GLOBAL, or use a libdtg that was built with -DDTG_OPENSSL_INSIDE=ON",
        place.file.c_str());
  }
  return {};
}

}  // namespace

Status check_openssl() {
  static const Status* const found = new Status(look());
  return *found;
}

}  // namespace dtg
