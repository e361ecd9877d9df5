// TCP sockets, connected and listening: without delay, closed on exec, given up when the peer acknowledges nothing for its
// time. Listening waits for names, so never on the loop's thread; connecting belongs to it.
#pragma once

#include "net/resolve.h"
#include "net/socket_channel.h"

namespace dtg {

// Binds exactly the given host (of a name: its first number), and no other than a loopback one if so asked.
// `address` gets the port that the system chose when it was 0.
Result<Descriptor> listen_tcp(Address* address, bool loopback_only, const Clock& clock, Deadline deadline);

// A connection in the making: the host's numbers are tried in order. Loop thread; nobody is told any more once it is gone.
class TcpDial final : private UvLoop::Watch {
 public:
  using Connected = std::function<void(Result<Descriptor>)>;
  TcpDial(UvLoop& loop, Address address, bool loopback_only);
  ~TcpDial() override;
  // `connected` is called once on the loop's thread, by the deadline; it may let go of this.
  void start(Deadline deadline, Connected connected);
  void give_up(const Status& why) { end(why); }

 private:
  void ready(bool readable, bool writable) override;
  void try_next();
  // False where it has to be waited for.
  bool try_number(const SocketAddress& number);
  void stop_watching();
  void end(Result<Descriptor> result);

  UvLoop& loop_;
  const Address address_;
  const bool loopback_only_;
  NameLookup lookup_;
  AlarmCall alarm_;
  Connected connected_;
  std::vector<SocketAddress> numbers_;
  size_t next_ = 0;
  Descriptor socket_;
  UvLoop::Poll* poll_ = nullptr;
  Status last_ = unavailable("nobody answered in time");
};

// A port of the range that the system takes its own ends from may meet itself where nobody listens. Such a socket leaves nothing behind
// when it is closed.
bool met_itself(int socket, const SocketAddress& number);

// No delay, and the end of a connection whose other end acknowledges nothing for so long.
void tune_tcp(int socket, int64_t dead_ns);

}  // namespace dtg
