// Control: see the header.
#include "control.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace dtg::cli {
namespace {

constexpr size_t kLine = 256, kClients = 8;
constexpr int kAnswerSeconds = 10;

bool address_of(const std::string& path, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  if (path.size() >= sizeof address->sun_path) return errno = ENAMETOOLONG, false;
  std::memcpy(address->sun_path, path.data(), path.size());
  return true;
}

}  // namespace

Control::~Control() {
  for (const Client& client : clients_) close(client.fd);
  if (listening_ >= 0) close(listening_);
}

int Control::listen(const std::string& path) {
  sockaddr_un address;
  if (!address_of(path, &address)) return errno;
  listening_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listening_ < 0 || bind(listening_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return errno;
  return ::listen(listening_, kClients) == 0 ? 0 : errno;
}

void Control::add_to(std::vector<pollfd>* polled) const {
  if (listening_ >= 0) polled->push_back({listening_, POLLIN, 0});
  for (const Client& client : clients_) polled->push_back({client.fd, POLLIN, 0});
}

// True when there is nothing more to be said.
bool Control::take(Client& client, const std::function<std::string(const std::string&)>& answer) {
  char bytes[kLine];
  const ssize_t n = recv(client.fd, bytes, sizeof bytes, MSG_DONTWAIT);
  if (n < 0) return errno != EAGAIN && errno != EINTR;
  client.text.append(bytes, static_cast<size_t>(n));
  const size_t end = client.text.find('\n');
  if (end == std::string::npos) return n == 0 || client.text.size() >= kLine;
  const std::string told = answer(client.text.substr(0, end)) + "\n";
  // It fits into any socket's memory.
  (void)!send(client.fd, told.data(), told.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return true;
}

void Control::serve(const std::function<std::string(const std::string&)>& answer) {
  if (listening_ < 0) return;
  for (int fd; (fd = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) {
    if (clients_.size() == kClients) close(clients_.front().fd), clients_.erase(clients_.begin());
    clients_.push_back({fd, {}});
  }
  std::erase_if(clients_, [&](Client& client) {
    const bool over = take(client, answer);
    if (over) close(client.fd);
    return over;
  });
}

bool ask(const std::string& path, const std::string& question, std::string* answer) {
  sockaddr_un address;
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience = {kAnswerSeconds, 0};
  const std::string line = question + "\n";
  answer->clear();
  bool ok = fd >= 0 && address_of(path, &address) && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
            connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
            send(fd, line.data(), line.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(line.size());
  char bytes[kLine];
  for (ssize_t n = 1; ok && n > 0;) {
    n = recv(fd, bytes, sizeof bytes, 0);
    ok = n >= 0;
    if (n > 0) answer->append(bytes, static_cast<size_t>(n));
  }
  ok = ok && answer->ends_with('\n');
  if (ok) answer->pop_back();
  else *answer = errno == EAGAIN ? "no answer within " + std::to_string(kAnswerSeconds) + " s" : std::strerror(errno);
  if (fd >= 0) close(fd);
  return ok;
}

}  // namespace dtg::cli
