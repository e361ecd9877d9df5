// Endpoints: picks by address the socket, the credentials and the kind of channel, for connecting and for listening.
// Any thread that may wait.
#include "net/endpoint.h"

#include "net/acceptor.h"
#include "net/openssl.h"
#include "net/tls_channel.h"
#include "net/unix_socket.h"

namespace dtg {
namespace {

constexpr int64_t kResolveNs = int64_t{10} * 1'000'000'000;

class SocketListener final : public Listener {
 public:
  SocketListener(Address address, std::unique_ptr<UnixName> name) : address_(std::move(address)), name_(std::move(name)) {}
  // The name goes before its socket is closed: afterwards it may be a successor's.
  ~SocketListener() override { name_ = nullptr; }
  const Address& address() const override { return address_; }
  Status start(UvLoop& loop, Descriptor socket, const AcceptLimits& limits, Acceptor::Make make, Acceptor::Accepted accepted) {
    DTG_ASSIGN(acceptor_, Acceptor::start(loop, std::move(socket), limits, std::move(make), std::move(accepted)));
    return {};
  }

 private:
  const Address address_;
  std::unique_ptr<UnixName> name_;  // of a unix socket
  std::unique_ptr<Acceptor> acceptor_;
};

class Sockets final : public Network {
 public:
  explicit Sockets(std::unique_ptr<UvLoop> loop) : loop_(std::move(loop)), dialling_(std::make_unique<Dialling>(*loop_)) {}
  ~Sockets() override {
    loop_->call([this] { dialling_ = nullptr; });
  }
  Loop& loop() override { return *loop_; }
  void connect(const Address& address, const Credentials& credentials, const EndpointLimits& limits, Deadline deadline,
               Connected connected) override {
    dialling_->connect(address, credentials, limits, deadline, std::move(connected));
  }
  Result<std::unique_ptr<Listener>> listen(const Address& address, const Credentials& credentials, const EndpointLimits& limits,
                                           Accepted accepted) override {
    return dtg::listen(*loop_, address, credentials, limits, std::move(accepted));
  }

 private:
  const std::unique_ptr<UvLoop> loop_;
  std::unique_ptr<Dialling> dialling_;
};

class UnixChannel final : public SocketChannel {
 public:
  UnixChannel(UvLoop& loop, Descriptor socket, const wire::Limits& limits, Admission::Ticket ticket = {})
      : SocketChannel(loop, std::move(socket), limits, "uid"), ticket_(std::move(ticket)) {}

 private:
  // The other process is this user's, which both ends have seen to (check_unix_peer).
  bool passes_descriptors() const override { return true; }
  void trusted() override { ticket_.proven(); }
  void shut() override {
    ticket_.drop();
    SocketChannel::shut();
  }
  Admission::Ticket ticket_;
};

Acceptor::Make unix_channels(UvLoop& loop, const wire::Limits& limits) {
  return [&loop, limits](Descriptor socket, Admission::Ticket ticket) -> Ref<Channel> {
    if (!check_unix_peer(socket.get()).ok()) return nullptr;
    size_unix_buffers(socket.get());
    return make_ref<UnixChannel>(loop, std::move(socket), limits, std::move(ticket));
  };
}

Acceptor::Make tcp_channels(UvLoop& loop, const Address& address, const Credentials& credentials, const EndpointLimits& limits) {
  return [&loop, name = address.text(), credentials, wire = limits.wire, dead_ns = limits.dead_ns](
             Descriptor socket, Admission::Ticket ticket) -> Ref<Channel> {
    auto session = TlsSession::make(TlsSession::Side::server, credentials, name);
    if (!session.ok()) return nullptr;
    tune_tcp(socket.get(), dead_ns);
    return make_ref<TlsChannel>(loop, std::move(socket), wire, session.take(), credentials.security, std::move(ticket));
  };
}

}  // namespace

Dialling::~Dialling() {
  while (!dials_.empty()) dials_.begin()->second->give_up(unavailable("the network loop has stopped"));
}

void Dialling::connect(const Address& address, const Credentials& credentials, const EndpointLimits& limits, Deadline deadline,
                       Network::Connected connected) {
  if (address.is_unix()) {
    auto socket = connect_unix(address.path);
    if (!socket.ok()) return connected(socket.status());
    return connected(Ref<Channel>(make_ref<UnixChannel>(loop_, socket.take(), limits.wire)));
  }
  if (address.port == 0) return connected(invalid_argument("connect to %s: port 0 is only for listening", address.text().c_str()));
  auto session = TlsSession::make(TlsSession::Side::client, credentials, address.text());
  if (!session.ok()) return connected(session.status());
  const uint64_t number = ++last_;
  auto& dial = dials_[number] = std::make_unique<TcpDial>(loop_, address, credentials.local);
  const auto shared = std::make_shared<std::unique_ptr<TlsSession>>(session.take());
  dial->start(deadline,
              [this, number, shared, security = credentials.security, limits, connected = std::move(connected)](Result<Descriptor> socket) {
                const auto done = dials_.extract(number);
                if (!socket.ok()) return connected(socket.status());
                tune_tcp(socket.value().get(), limits.dead_ns);
                connected(Ref<Channel>(make_ref<TlsChannel>(loop_, socket.take(), limits.wire, std::move(*shared), security)));
              });
}

Result<std::unique_ptr<Network>> start_sockets(const Clock& clock) {
  DTG_ASSIGN(auto loop, UvLoop::start(clock));
  return std::unique_ptr<Network>(new Sockets(std::move(loop)));
}

Result<std::unique_ptr<Listener>> listen(UvLoop& loop, const Address& address, const Credentials& credentials, const EndpointLimits& limits,
                                         Network::Accepted accepted) {
  Descriptor socket;
  std::unique_ptr<UnixName> name;
  Address bound = address;
  if (address.is_unix()) {
    DTG_ASSIGN(UnixListener unix_listener, listen_unix(address.path));
    socket = std::move(unix_listener.socket);
    name = std::move(unix_listener.name);
  } else {
    if (!credentials.key) return failed_precondition("listen on %s: there is no job key", address.text().c_str());
    DTG_TRY(check_openssl());
    DTG_ASSIGN(socket, listen_tcp(&bound, credentials.local, loop.clock(), Deadline::after(loop.clock(), kResolveNs)));
  }
  Acceptor::Make make = address.is_unix() ? unix_channels(loop, limits.wire) : tcp_channels(loop, bound, credentials, limits);
  auto listener = std::make_unique<SocketListener>(std::move(bound), std::move(name));
  Status status = unavailable("listen on %s: the network loop has stopped", address.text().c_str());
  loop.call([&] { status = listener->start(loop, std::move(socket), limits.accept, std::move(make), std::move(accepted)); });
  DTG_TRY(status);
  return std::unique_ptr<Listener>(std::move(listener));
}

}  // namespace dtg
