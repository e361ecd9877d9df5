// Where the cluster's credentials come from: what the host said, and what the environment adds. Any thread that may wait.
#pragma once

#include "net/credentials.h"

namespace dtg {

// As credentials_for(), with this user's own directory from the environment ($XDG_RUNTIME_DIR) unless the options name one.
Result<Credentials> cluster_credentials(const Address& address, SecurityOptions options, std::string self_task, std::string peer_task);

}  // namespace dtg
