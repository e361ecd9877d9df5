// Admission: decides which new connections a listener keeps. Whoever has not proven who they are yet holds a place only
// until somebody else needs it: at every limit the oldest of them goes, of the host with most of them, and the newcomer
// stays, since a peer that means it proves itself within milliseconds. So no crowd of strangers shuts the door, and none costs a proven
// peer its place. Owned by the listener and its tickets. The loop's thread admits; a ticket goes with the channel that holds it, on
// whichever thread lets go last.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/ref.h"
#include "base/status.h"

namespace dtg {

struct AcceptLimits {
  size_t connections = 4096;
  size_t strangers = 256;        // from everywhere, that have not said a whole first word
  size_t unknown_per_host = 64;  // strangers and handshakes
  size_t handshakes = 256;       // under way, from everywhere
  size_t handshakes_per_host = 16;
  double accepts_per_second = 200;  // per host, as many at once: handshakes begun, which is what costs something
  int64_t first_word_ns = 3'000'000'000;
  size_t descriptor_reserve = 16;  // that are left to the host
};

class Admission final : public RefCounted {
 private:
  enum class Stage : uint8_t { stranger, local, handshake, settled };  // settled: proven, or sent away
  struct Host {
    size_t strangers = 0;
    size_t handshakes = 0;
    double tokens = 0;
    int64_t filled_ns = 0;
  };
  struct Place {
    Host* host;  // null: a process of this user
    int socket;
    Stage stage;
  };
  using Places = std::list<Place>;

 public:
  explicit Admission(const AcceptLimits& limits) : limits_(limits) {}

  // One connection that was let in; gives its place back when it goes, which is before its socket is closed.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept : admission_(std::move(other.admission_)), at_(other.at_) {}
    Ticket& operator=(Ticket&& other) noexcept;
    ~Ticket() { drop(); }
    // It has said its first word. Fails beyond the pace of its host, or when it had to make room meanwhile.
    Status begin_handshake(int64_t now_ns);
    void proven();
    void drop();

   private:
    friend class Admission;
    Ref<Admission> admission_;
    Places::iterator at_;
  };
  // `socket` from the host with that number; "": from this user's processes, of whom only the total counts. `crowded`: a
  // place must come free for it although the limits have room.
  Result<Ticket> admit(const std::string& host, int socket, bool crowded, int64_t now_ns);
  // Only the reserve is left of that many descriptors, after a connection has got that one.
  bool crowded(int socket, size_t descriptors) const;
  // Sends away one that has proven nothing. False: there is none.
  bool make_room();
  size_t connections() const;
  size_t hosts() const;

 private:
  // All under mutex_.
  Result<Host*> find(const std::string& host, int64_t now_ns);
  void fill(Host& host, int64_t now_ns) const;
  void count(const Place& place, int by);
  static size_t share(const Place& place);
  void settle(Places::iterator place);
  bool send_away(Stage least, const Host* host);

  const AcceptLimits limits_;
  mutable std::mutex mutex_;  // over all below, hosts' numbers included
  Places open_;               // that have proven nothing, the oldest at their stage first
  Places settled_;
  size_t strangers_ = 0;
  size_t handshakes_ = 0;
  std::unordered_map<std::string, Host> hosts_;  // nodes stay where they are
};

}  // namespace dtg
