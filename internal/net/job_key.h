// JobKey: the secret that the tasks of one job share: 32 random bytes in a file of the user. From it come the keys of pairs.
// Secrets stand in memory that no core dump holds, are wiped when they go, and are in no message. Values behind a Ref; any
// thread, files never on the loop's.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "base/random.h"
#include "base/ref.h"
#include "base/status.h"

namespace dtg {

class JobKey final : public RefCounted {
 public:
  static constexpr size_t kBytes = 32;
  static Result<Ref<JobKey>> make(std::span<const char, kBytes> bytes);
  static Result<Ref<JobKey>> random(const Random& random);
  ~JobKey() override;
  std::span<const char, kBytes> bytes() const { return std::span<const char, kBytes>(page_, kBytes); }

 private:
  friend Result<Ref<JobKey>> read_key(const std::string& path);
  JobKey() = default;
  static Result<Ref<JobKey>> empty();
  char* page_ = nullptr;
};

// The key of the ordered pair (client, server), HKDF-SHA256; false when the library refuses. To be wiped by the caller.
struct PairKey {
  std::array<unsigned char, 32> bytes{};
  PairKey() = default;
  PairKey(const PairKey&) = delete;
  PairKey& operator=(const PairKey&) = delete;
  ~PairKey();
};
bool derive_pair_key(const JobKey& key, std::string_view client, std::string_view server, PairKey* pair);

// Makes a file with a fresh key, mode 0600; ALREADY_EXISTS when there is a file.
Status keygen(const std::string& path, const Random& random = system_random());
// The file must belong to this user, be closed to others and hold a key.
Result<Ref<JobKey>> read_key(const std::string& path);
// The key that processes of this user find without being told, for addresses that do not leave the machine; made when it is
// missing. `runtime_dir` is $XDG_RUNTIME_DIR, or empty.
Result<Ref<JobKey>> local_key(const std::string& runtime_dir);

}  // namespace dtg
