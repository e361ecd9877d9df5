// Lobby: looks at the first bytes of a connection without taking them, and asks the kernel for news only when the rest is
// there. On the loop's thread.
#include "net/lobby.h"

#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>

namespace dtg {
namespace {

// Type, version, length: the head of a record of TLS.
constexpr int kHead = 5;
constexpr unsigned char kHandshake = 22, kVersion = 3;
constexpr int kRecordMax = 4096;  // ours have some 300 bytes

void wake_when_there_are(int socket, int bytes) { ::setsockopt(socket, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes); }

}  // namespace

struct Lobby::Guest final : UvLoop::Watch {
  Guest(Lobby& in, Descriptor connected, Admission::Ticket place, int64_t until)
      : lobby(in), socket(std::move(connected)), ticket(std::move(place)), until_ns(until) {}
  // Asked for all of what it waits for; when less is there, no more will come.
  void ready(bool, bool) override {
    const int before = wanted;
    const Word word = listen(*this);
    if (word == Word::whole) return lobby.enter(*this);
    if (word == Word::none || wanted == before) lobby.leave(*this);
  }

  Lobby& lobby;
  Descriptor socket;
  Admission::Ticket ticket;  // goes before the socket
  const int64_t until_ns;
  int wanted = 0;
  UvLoop::Poll* poll = nullptr;
  std::list<Guest>::iterator at;
};

Lobby::Lobby(UvLoop& loop, int64_t patience_ns, Enter enter)
    : loop_(loop), patience_ns_(patience_ns), enter_(std::move(enter)), alarm_([this] { show_out(); }) {}

Lobby::~Lobby() {
  while (!guests_.empty()) leave(guests_.front());
  loop_.cancel(alarm_);
}

void Lobby::add(Descriptor socket, Admission::Ticket ticket) {
  Guest& guest = guests_.emplace_back(*this, std::move(socket), std::move(ticket), loop_.clock().monotonic_ns() + patience_ns_);
  guest.at = std::prev(guests_.end());
  const Word word = listen(guest);
  if (word == Word::whole) return enter(guest);
  auto poll = word == Word::part ? loop_.watch(guest.socket.get(), &guest) : unavailable("it has gone");
  if (!poll.ok()) return leave(guest);
  guest.poll = poll.value();
  loop_.want(guest.poll, true, false);
  set_alarm();
}

Lobby::Word Lobby::listen(Guest& guest) {
  const int socket = guest.socket.get();
  unsigned char head[kHead];
  const ssize_t seen = ::recv(socket, head, sizeof head, MSG_PEEK | MSG_DONTWAIT);
  if (seen == 0 || (seen < 0 && errno != EAGAIN && errno != EINTR)) return Word::none;
  int wanted = kHead, there = 0;
  if (seen == kHead) {
    wanted += head[3] << 8 | head[4];
    if (head[0] != kHandshake || head[1] != kVersion || wanted > kRecordMax) return Word::none;
    if (::ioctl(socket, FIONREAD, &there) != 0) return Word::none;
  }
  if (there >= wanted) return Word::whole;
  if (wanted != guest.wanted) wake_when_there_are(socket, wanted);
  guest.wanted = wanted;
  return Word::part;
}

void Lobby::leave(Guest& guest) {
  if (guest.poll) loop_.unwatch(guest.poll);
  guests_.erase(guest.at);
}

void Lobby::enter(Guest& guest) {
  Descriptor socket = std::move(guest.socket);
  Admission::Ticket ticket = std::move(guest.ticket);
  leave(guest);
  if (!ticket.begin_handshake(loop_.clock().monotonic_ns()).ok()) return ticket.drop();
  wake_when_there_are(socket.get(), 1);
  enter_(std::move(socket), std::move(ticket));
}

void Lobby::show_out() {
  const int64_t now = loop_.clock().monotonic_ns();
  while (!guests_.empty() && guests_.front().until_ns <= now) leave(guests_.front());
  set_alarm();
}

void Lobby::set_alarm() { loop_.set(alarm_, guests_.empty() ? INT64_MAX : guests_.front().until_ns); }

}  // namespace dtg
