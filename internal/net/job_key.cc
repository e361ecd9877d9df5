// JobKey: reads and makes key files, and derives the keys of pairs of tasks from the job's. See job_key.h for threads.
#include "net/job_key.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <sys/mman.h>

#include <cstring>

#include "base/private_file.h"

namespace dtg {
namespace {

constexpr size_t kPage = 4096;

}  // namespace

Result<Ref<JobKey>> JobKey::empty() {
  auto key = Ref<JobKey>::adopt(new JobKey);
  void* const page = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return resource_exhausted("hold a job key: no memory");
  ::madvise(page, kPage, MADV_DONTDUMP);
  key->page_ = static_cast<char*>(page);
  return key;
}

JobKey::~JobKey() {
  if (!page_) return;
  OPENSSL_cleanse(page_, kBytes);
  ::munmap(page_, kPage);
}

Result<Ref<JobKey>> JobKey::make(std::span<const char, kBytes> bytes) {
  DTG_ASSIGN(Ref<JobKey> key, empty());
  std::memcpy(key->page_, bytes.data(), kBytes);
  return key;
}

Result<Ref<JobKey>> JobKey::random(const Random& random) {
  DTG_ASSIGN(Ref<JobKey> key, empty());
  random.fill(key->page_, kBytes);
  return key;
}

PairKey::~PairKey() { OPENSSL_cleanse(bytes.data(), bytes.size()); }

bool derive_pair_key(const JobKey& key, std::string_view client, std::string_view server, PairKey* pair) {
  EVP_KDF* const kind = EVP_KDF_fetch(nullptr, "HKDF", nullptr);
  EVP_KDF_CTX* const context = kind ? EVP_KDF_CTX_new(kind) : nullptr;
  std::string info = "dtg1|";
  info.append(client).append("|").append(server);
  char digest[] = "SHA256";
  char salt[] = "dtg pair key";
  const OSSL_PARAM params[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, const_cast<char*>(key.bytes().data()), JobKey::kBytes),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, salt, sizeof salt - 1),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info.data(), info.size()),
      OSSL_PARAM_construct_end(),
  };
  const bool ok = context && EVP_KDF_derive(context, pair->bytes.data(), pair->bytes.size(), params) == 1;
  EVP_KDF_CTX_free(context);
  EVP_KDF_free(kind);
  return ok;
}

Status keygen(const std::string& path, const Random& random) {
  DTG_ASSIGN(const Ref<JobKey> key, JobKey::random(random));
  return create_private_file(path, key->bytes()).with_context("make a job key");
}

Result<Ref<JobKey>> read_key(const std::string& path) {
  DTG_ASSIGN(Ref<JobKey> key, JobKey::empty());
  DTG_TRY(read_private_file(path, {key->page_, JobKey::kBytes}).with_context("read the job key (key_file)"));
  return key;
}

Result<Ref<JobKey>> local_key(const std::string& runtime_dir) {
  DTG_ASSIGN(const std::string directory, private_runtime_directory(runtime_dir.c_str()));
  const std::string path = directory + "/local.key";
  if (auto key = read_key(path); key.status().code() != Code::not_found) return key;
  // Of two that make it at the same time, both use the first one's.
  if (const Status made = keygen(path); !made.ok() && made.code() != Code::already_exists) return made;
  return read_key(path);
}

}  // namespace dtg
