// Acceptor: accepts connections, asks admission for each, and pauses for a while when descriptors or memory have run
// out. On the loop's thread.
#include "net/acceptor.h"

#include <arpa/inet.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace dtg {
namespace {

constexpr int64_t kPauseFirstNs = 10'000'000;
constexpr int64_t kPauseLastNs = 1'000'000'000;
constexpr int kAcceptsAtOnce = 16;  // then others get their turn: those who have been let in, before they must make room

constexpr const char* kLoopback = "loopback";

Descriptor make_reserve() { return Descriptor(::eventfd(0, EFD_CLOEXEC)); }

// That this process may have now; the host may change it.
size_t descriptors_max() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<size_t>(limit.rlim_cur) : SIZE_MAX;
}

// The host of an address, as the bytes that tell hosts apart; of IPv6 the network, in which one host has any number. All
// loopback addresses are one host.
std::string host_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(address);
    if (ntohl(four.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET) return kLoopback;
    return {reinterpret_cast<const char*>(&four.sin_addr), sizeof four.sin_addr};
  }
  if (address.ss_family != AF_INET6) return "";
  const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
  const char* const bytes = reinterpret_cast<const char*>(&six.sin6_addr);
  if (!IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) return IN6_IS_ADDR_LOOPBACK(&six.sin6_addr) ? kLoopback : std::string(bytes, 8);
  return static_cast<unsigned char>(bytes[12]) == IN_LOOPBACKNET ? kLoopback : std::string(bytes + 12, 4);
}

}  // namespace

Acceptor::Acceptor(UvLoop& loop, Descriptor socket, const AcceptLimits& limits, Make make, Accepted accepted)
    : loop_(loop),
      socket_(std::move(socket)),
      make_(std::move(make)),
      accepted_(std::move(accepted)),
      admission_(make_ref<Admission>(limits)),
      lobby_(loop, limits.first_word_ns,
             [this](Descriptor fresh, Admission::Ticket ticket) { welcome(std::move(fresh), std::move(ticket)); }),
      reserve_(make_reserve()),
      pause_ns_(kPauseFirstNs),
      resume_([this] { resume(); }) {}

Acceptor::~Acceptor() {
  loop_.cancel(resume_);
  if (poll_) loop_.unwatch(poll_);
}

Result<std::unique_ptr<Acceptor>> Acceptor::start(UvLoop& loop, Descriptor socket, const AcceptLimits& limits, Make make,
                                                  Accepted accepted) {
  std::unique_ptr<Acceptor> acceptor(new Acceptor(loop, std::move(socket), limits, std::move(make), std::move(accepted)));
  DTG_ASSIGN(acceptor->poll_, loop.watch(acceptor->socket_.get(), acceptor.get()));
  loop.want(acceptor->poll_, true, false);
  return acceptor;
}

void Acceptor::ready(bool, bool) {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    Descriptor fresh(::accept4(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fresh.get() < 0) return full(errno);
    pause_ns_ = kPauseFirstNs;
    // Whom there is no room for is closed without an answer: who is not trusted learns nothing.
    const std::string host = host_of(address);
    const bool crowded = admission_->crowded(fresh.get(), descriptors_max());
    auto ticket = admission_->admit(host, fresh.get(), crowded, loop_.clock().monotonic_ns());
    if (!ticket.ok()) continue;
    // Processes of this user are who they are; others speak first.
    if (host.empty()) welcome(std::move(fresh), ticket.take());
    else lobby_.add(std::move(fresh), ticket.take());
    // Whoever makes room closes its socket first, in its turn; the reserve is not used up in the meantime.
    if (crowded) return;
  }
}

void Acceptor::welcome(Descriptor socket, Admission::Ticket ticket) {
  if (Ref<Channel> channel = make_(std::move(socket), std::move(ticket))) accepted_(std::move(channel));
}

// The host has taken the reserve as well. Without descriptors accepting would spin: our own spare one serves to refuse whoever
// waits, a stranger has to give its own, and there is a pause.
void Acceptor::full(int error) {
  if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM) return;
  admission_->make_room();
  reserve_ = Descriptor();
  { const Descriptor refused(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }
  reserve_ = make_reserve();
  loop_.want(poll_, false, false);
  loop_.set(resume_, loop_.clock().monotonic_ns() + pause_ns_);
  pause_ns_ = std::min(pause_ns_ * 2, kPauseLastNs);
}

void Acceptor::resume() {
  if (reserve_.get() < 0) reserve_ = make_reserve();
  loop_.want(poll_, true, false);
}

}  // namespace dtg
