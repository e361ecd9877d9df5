// Admission: decides which new connections a listener keeps. It counts those that have not proven who they are yet, in
// all and by source address, so that a storm of strangers costs proven peers nothing. Owned by the listener and its
// tickets. The loop's thread admits; a ticket goes with the channel that holds it, on whichever thread lets go last.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/ref.h"
#include "base/status.h"

namespace dtg {

struct AcceptLimits {
  size_t connections = 4096;
  size_t unknown_per_host = 64;  // that have not said hello yet
  size_t handshakes = 256;       // under way, from everywhere
  size_t handshakes_per_host = 16;
  double accepts_per_second = 200;  // per host, as many at once
};

class Admission final : public RefCounted {
 private:
  struct Host {
    size_t unknown = 0;
    size_t handshakes = 0;
    double tokens = 0;
    int64_t filled_ns = 0;
  };

 public:
  explicit Admission(const AcceptLimits& limits) : limits_(limits) {}

  // One connection that was let in; gives its place back when it goes.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept
        : admission_(std::move(other.admission_)),
          host_(std::exchange(other.host_, nullptr)),
          handshake_(other.handshake_),
          unknown_(other.unknown_) {}
    Ticket& operator=(Ticket&& other) noexcept;
    ~Ticket() { drop(); }
    void shook_hands();  // the handshake is over
    void known();        // it said who it is
    void drop();

   private:
    friend class Admission;
    Ref<Admission> admission_;
    Host* host_ = nullptr;  // null: a process of this user
    bool handshake_ = false;
    bool unknown_ = false;
  };
  // From the host with that number; "": from this user's processes, of whom only the total counts.
  Result<Ticket> admit(const std::string& host, int64_t now_ns);
  size_t connections() const;
  size_t hosts() const;

 private:
  Result<Host*> find(const std::string& host, int64_t now_ns);  // under mutex_

  const AcceptLimits limits_;
  mutable std::mutex mutex_;  // over all below, hosts' numbers included
  size_t connections_ = 0;
  size_t handshakes_ = 0;
  std::unordered_map<std::string, Host> hosts_;  // nodes stay where they are
};

}  // namespace dtg
