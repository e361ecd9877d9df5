// Acceptor: takes connections from a listening socket, lets those in that there is room for, and makes channels of them: of TCP
// connections when they have begun to speak. Of the process's descriptors it leaves some to the host.
// Belongs to the loop's thread; made and destroyed there.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "net/admission.h"
#include "net/lobby.h"
#include "net/socket_channel.h"

namespace dtg {

class Acceptor final : private UvLoop::Watch {
 public:
  // What becomes of a fresh connection; null: it is closed without a word.
  using Make = std::function<Ref<Channel>(Descriptor socket, Admission::Ticket ticket)>;
  using Accepted = std::function<void(Ref<Channel>)>;
  static Result<std::unique_ptr<Acceptor>> start(UvLoop& loop, Descriptor socket, const AcceptLimits& limits, Make make, Accepted accepted);
  ~Acceptor() override;

 private:
  Acceptor(UvLoop& loop, Descriptor socket, const AcceptLimits& limits, Make make, Accepted accepted);
  void ready(bool readable, bool writable) override;
  void welcome(Descriptor socket, Admission::Ticket ticket);
  void full(int error);
  void resume();

  UvLoop& loop_;
  const Descriptor socket_;
  const Make make_;
  const Accepted accepted_;
  const Ref<Admission> admission_;
  Lobby lobby_;
  // Given up to be able to refuse a connection when there are no descriptors left.
  Descriptor reserve_;
  int64_t pause_ns_;
  UvLoop::Poll* poll_ = nullptr;
  AlarmCall resume_;
};

}  // namespace dtg
