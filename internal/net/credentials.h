// Credentials: the job key with which an end of a connection proves itself, who the other end must be, and whether
// frames are encrypted afterwards. Values; any thread.
#pragma once

#include <string>
#include <vector>

#include "net/address.h"
#include "net/job_key.h"

namespace dtg {

// What protects the frames after the handshake. Both ends must ask for the same.
enum class Security : uint8_t {
  tls = 0,
  clear_frames = 1,  // authenticated, then readable for whoever is on the way: for networks trusted by other means
};

// What a host says about it.
struct SecurityOptions {
  std::string key_file;  // of the job; empty: only this machine can be reached, with a key made for this user
  Security security = Security::tls;
  std::string runtime_dir;  // where that key lies; empty: the default
};

struct Credentials {
  Ref<const JobKey> key;  // null: unix sockets only
  Security security = Security::tls;
  bool local = false;              // the key is this user's own: nothing beyond this machine
  std::string self_task;           // "": a client that is no task
  std::string peer_task;           // who is expected; "": whoever listens at the address
  std::vector<std::string> tasks;  // of a listener: the tasks that may come; empty: any name
};

// Finds the key that an address needs.
Result<Credentials> credentials_for(const Address& address, const SecurityOptions& options, std::string self_task, std::string peer_task);

}  // namespace dtg
