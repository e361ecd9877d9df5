// The one variable of the environment that matters here.
#include "cluster/security.h"

#include <cstdlib>

namespace dtg {

Result<Credentials> cluster_credentials(const Address& address, SecurityOptions options, std::string self_task, std::string peer_task) {
  const char* const directory = options.runtime_dir.empty() ? ::secure_getenv("XDG_RUNTIME_DIR") : nullptr;
  if (directory) options.runtime_dir = directory;
  return credentials_for(address, options, std::move(self_task), std::move(peer_task));
}

}  // namespace dtg
