// Looks host names up by getaddrinfo on a thread of its own, which is left behind when nobody waits for it any more. See
// resolve.h for threads.
#include "net/resolve.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace dtg {
namespace {

constexpr int kLookupsMax = 32;  // threads that wait for name servers
constinit std::atomic<int> lookups{0};

struct Lookup {
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
  int failed = 0;
  std::vector<SocketAddress> found;
};

int look_up(const Address& address, int flags, std::vector<SocketAddress>* found) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* list = nullptr;
  const int failed = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
  if (failed != 0) return failed;
  for (const addrinfo* at = list; at; at = at->ai_next) {
    if (at->ai_addrlen > sizeof(sockaddr_storage)) continue;
    SocketAddress number;
    std::memcpy(&number.storage, at->ai_addr, at->ai_addrlen);
    number.size = at->ai_addrlen;
    found->push_back(number);
  }
  ::freeaddrinfo(list);
  return found->empty() ? EAI_NONAME : 0;
}

using LookedUp = std::function<void(int failed, std::vector<SocketAddress> found)>;

Status not_found(const Address& address, int failed) {
  return unavailable("resolve \"%s\": %s", address.host.c_str(), ::gai_strerror(failed));
}

// The thread may outlive its caller; a name server that does not answer costs a thread for a while, nothing else.
Status start_lookup(const Address& address, LookedUp looked_up) {
  if (lookups.fetch_add(1) >= kLookupsMax) {
    lookups.fetch_sub(1);
    return unavailable("resolve \"%s\": %d lookups wait for name servers already", address.host.c_str(), kLookupsMax);
  }
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Status status;
  try {
    std::thread([address, looked_up = std::move(looked_up)] {
      std::vector<SocketAddress> found;
      int failed = EAI_MEMORY;
      try {
        failed = look_up(address, AI_ADDRCONFIG, &found);
      } catch (const std::exception&) {
      }
      lookups.fetch_sub(1);
      looked_up(failed, std::move(found));
    }).detach();
  } catch (const std::exception&) {
    lookups.fetch_sub(1);
    status = resource_exhausted("resolve \"%s\": no thread could be started", address.host.c_str());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

}  // namespace

bool SocketAddress::is_loopback() const {
  if (storage.ss_family == AF_INET) return (ntohl(reinterpret_cast<const sockaddr_in&>(storage).sin_addr.s_addr) >> 24) == 127;
  if (storage.ss_family != AF_INET6) return false;
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr);
}

uint16_t SocketAddress::port() const {
  if (storage.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
  return ntohs(reinterpret_cast<const sockaddr_in6&>(storage).sin6_port);
}

Result<std::vector<SocketAddress>> resolve(const Address& address, const Clock& clock, Deadline deadline) {
  std::vector<SocketAddress> found;
  if (look_up(address, AI_NUMERICHOST, &found) == 0) return found;
  const auto lookup = std::make_shared<Lookup>();
  DTG_TRY(start_lookup(address, [lookup](int failed, std::vector<SocketAddress> numbers) {
    const std::lock_guard lock(lookup->mutex);
    lookup->failed = failed;
    lookup->found = std::move(numbers);
    lookup->over = true;
    lookup->changed.notify_all();
  }));
  std::unique_lock lock(lookup->mutex);
  while (!lookup->over) {
    const int64_t left = deadline.left_ns(clock);
    if (left == 0) return unavailable("resolve \"%s\": no name server answered in time", address.host.c_str());
    lookup->changed.wait_for(lock, std::chrono::nanoseconds(std::min<int64_t>(left, 1'000'000'000)));
  }
  if (lookup->failed != 0) return not_found(address, lookup->failed);
  return std::move(lookup->found);
}

NameLookup::~NameLookup() {
  const std::lock_guard lock(shared_->mutex);
  shared_->loop = nullptr;
  shared_->found = nullptr;
}

void NameLookup::start(Loop& loop, const Address& address, Found found) {
  std::vector<SocketAddress> numbers;
  if (look_up(address, AI_NUMERICHOST, &numbers) == 0) return found(std::move(numbers));
  shared_->loop = &loop;
  shared_->found = found;
  const Status started = start_lookup(address, [shared = shared_, address](int failed, std::vector<SocketAddress> looked_up) {
    const std::lock_guard lock(shared->mutex);
    if (!shared->loop) return;
    shared->loop->post([shared, address, failed, looked_up = std::move(looked_up)]() mutable {
      const Found tell = std::exchange(shared->found, nullptr);
      if (tell) tell(failed != 0 ? Result<std::vector<SocketAddress>>(not_found(address, failed)) : std::move(looked_up));
    });
  });
  if (!started.ok()) found(started);
}

}  // namespace dtg
