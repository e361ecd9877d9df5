// TlsChannel: a channel over TCP whose ends prove with the job key who they are, and whose frames then travel in TLS, or,
// where both ends ask for it, in the clear. Belongs to the loop's thread.
#pragma once

#include "net/admission.h"
#include "net/socket_channel.h"
#include "net/tls.h"

namespace dtg {

class TlsChannel final : public SocketChannel {
 public:
  // `ticket` is the place of a connection that was accepted.
  TlsChannel(UvLoop& loop, Descriptor socket, const wire::Limits& limits, std::unique_ptr<TlsSession> session, Security security,
             Admission::Ticket ticket = {});
  ~TlsChannel() override;
  std::optional<std::string> authenticated_peer() const override;

 private:
  enum class Stage : uint8_t { greeting, tls, clear };

  Result<size_t> read_bytes(const iovec* into, int count) override;
  Result<size_t> write_bytes(const iovec* from, int count) override;
  void want_write(bool want) override;
  void start() override;
  void shut() override;
  void trusted() override { ticket_.proven(); }
  void ready_to(bool read, bool write) override;

  Result<size_t> read_tls(const iovec* into, int count);
  Result<size_t> read_clear(const iovec* into, int count);
  Result<bool> greet();
  void end_greeting();
  Result<size_t> take_in();
  Status send_out();
  void read_on();

  const Security mode_;
  std::unique_ptr<TlsSession> session_;  // goes when the frames are in the clear
  std::optional<std::string> peer_;
  Admission::Ticket ticket_;
  Stage stage_ = Stage::greeting;
  uint64_t greeting_bytes_ = 0;
  size_t take_in_ = size_t{8} << 10;  // grows with those who send much
  bool frames_wait_ = false;
  bool more_ = false;  // the last read found something
  bool posted_ = false;
  ByteQueue left_over_;  // clear bytes that came with the end of the greeting
};

}  // namespace dtg
