// Finds the job key: in the file that was named, or on loopback in the user's own, which is made if need be. Any thread
// that may wait for the disk.
#include "net/credentials.h"

namespace dtg {

Result<Credentials> credentials_for(const Address& address, const SecurityOptions& options, std::string self_task, std::string peer_task) {
  Credentials credentials;
  credentials.security = options.security;
  credentials.self_task = std::move(self_task);
  credentials.peer_task = std::move(peer_task);
  if (address.is_unix()) return credentials;
  if (!options.key_file.empty()) {
    DTG_ASSIGN(credentials.key, read_key(options.key_file));
    return credentials;
  }
  if (!address.is_loopback()) {
    return failed_precondition(
        "%s is beyond this machine and there is no job key: run `dtg keygen job.key` once, give every task and session that file and set "
        "key_file, or DTG_KEY_FILE, to it",
        address.text().c_str());
  }
  DTG_ASSIGN(credentials.key, local_key(options.runtime_dir));
  credentials.local = true;
  return credentials;
}

}  // namespace dtg
