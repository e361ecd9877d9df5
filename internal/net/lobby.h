// Lobby: where TCP connections wait that have not said a whole first word, the record of TLS with which a client begins.
// One that waits here costs a descriptor and some 200 bytes, and no processor time: the kernel wakes us for it when all of
// that word is there, however slowly it comes. Only then does a channel come to be, with a handshake and its limits.
//
// Owned by the acceptor; belongs to the loop's thread.
#pragma once

#include <list>

#include "net/admission.h"
#include "net/socket_channel.h"

namespace dtg {

class Lobby final {
 public:
  // A connection that may begin its handshake.
  using Enter = std::function<void(Descriptor socket, Admission::Ticket ticket)>;
  Lobby(UvLoop& loop, int64_t patience_ns, Enter enter);
  ~Lobby();
  void add(Descriptor socket, Admission::Ticket ticket);

 private:
  struct Guest;
  enum class Word : uint8_t { none, part, whole };  // none: it has gone, or speaks something else
  static Word listen(Guest& guest);
  void leave(Guest& guest);
  void enter(Guest& guest);
  void show_out();
  void set_alarm();

  UvLoop& loop_;
  const int64_t patience_ns_;
  const Enter enter_;
  std::list<Guest> guests_;  // who came first has to go first
  AlarmCall alarm_;
};

}  // namespace dtg
