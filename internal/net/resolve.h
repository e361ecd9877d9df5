// Resolves host names to socket addresses. Numeric ones are parsed on the spot; names are looked up on a thread of
// their own, never the loop's and never libuv's pool. Whoever listens waits for it, no longer than its deadline; whoever
// connects is told on the loop.
#pragma once

#include <sys/socket.h>

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "net/address.h"
#include "net/loop.h"

namespace dtg {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  bool is_loopback() const;
  uint16_t port() const;
};

// All numbers of the host, best first; at least one. UNAVAILABLE when the name is not known (yet). Any thread that may wait.
Result<std::vector<SocketAddress>> resolve(const Address& address, const Clock& clock, Deadline deadline);

// The same for who may not wait. Belongs to the loop's thread; nobody is told any more once it is gone.
class NameLookup final {
 public:
  using Found = std::function<void(Result<std::vector<SocketAddress>>)>;
  NameLookup() : shared_(std::make_shared<Shared>()) {}
  ~NameLookup();
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;
  // `found` is called once on the loop's thread; of a numeric address before this returns.
  void start(Loop& loop, const Address& address, Found found);

 private:
  // With the thread that looks up, which may outlive the loop.
  struct Shared {
    std::mutex mutex;
    Loop* loop = nullptr;  // null: nobody wants to know any more
    Found found;           // the loop's
  };
  const std::shared_ptr<Shared> shared_;
};

}  // namespace dtg
