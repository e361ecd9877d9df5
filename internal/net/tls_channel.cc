// TlsChannel: moves bytes between the socket and the TLS session: handshake first, then frames. On the loop's thread.
#include "net/tls_channel.h"

#include <algorithm>
#include <cstring>

namespace dtg {
namespace {

constexpr size_t kTakeInMax = size_t{128} << 10;  // ciphertext read at once
constexpr size_t kGreetingTakeIn = size_t{4} << 10;
constexpr size_t kOutMax = size_t{256} << 10;  // ciphertext that waits for the socket
constexpr size_t kRecord = size_t{16} << 10;

}  // namespace

TlsChannel::TlsChannel(UvLoop& loop, Descriptor socket, const wire::Limits& limits, std::unique_ptr<TlsSession> session, Security security,
                       Admission::Ticket ticket)
    : SocketChannel(loop, std::move(socket), limits, security == Security::tls ? "tls1.3" : "clear"),
      mode_(security),
      session_(std::move(session)),
      ticket_(std::move(ticket)) {}

TlsChannel::~TlsChannel() = default;

std::optional<std::string> TlsChannel::authenticated_peer() const { return peer_; }

void TlsChannel::start() {
  SocketChannel::start();
  // The client speaks first.
  loop().post([self = Ref<TlsChannel>::share(this)] { self->contain([&] { self->ready_to(true, false); }); });
}

void TlsChannel::shut() {
  // One attempt to write the last word; an alert tells the other end what was wrong.
  if (session_) (void)send_out().ok();
  ticket_.drop();
  SocketChannel::shut();
}

void TlsChannel::ready_to(bool read, bool write) {
  if (!is_open()) return;
  if (write && session_) {
    if (const Status sent = send_out(); !sent.ok()) return fail(sent);
  }
  const bool greeting = stage_ == Stage::greeting;
  if (read) on_readable();
  // What was queued in the meantime may go now.
  if (is_open() && (write || (greeting && stage_ != Stage::greeting))) on_writable();
  // What TLS has taken from the socket already raises no event any more.
  if (is_open() && read && more_ && session_ && !std::exchange(posted_, true)) {
    loop().post([self = Ref<TlsChannel>::share(this)] { self->read_on(); });
  }
}

void TlsChannel::read_on() {
  posted_ = false;
  contain([&] { ready_to(true, false); });
}

void TlsChannel::want_write(bool want) {
  frames_wait_ = want;
  const bool cipher_waits = session_ && session_->out.size() > 0;
  SocketChannel::want_write(cipher_waits || (want && stage_ != Stage::greeting));
}

Status TlsChannel::send_out() {
  ByteQueue& out = session_->out;
  while (out.size() > 0) {
    const iovec bytes{const_cast<char*>(out.data()), out.size()};
    DTG_ASSIGN(const size_t sent, SocketChannel::write_bytes(&bytes, 1));
    if (sent == 0) break;
    out.drop(sent);
  }
  want_write(frames_wait_);
  return {};
}

Result<size_t> TlsChannel::take_in() {
  size_t most = take_in_;
  if (stage_ == Stage::greeting) {
    if (greeting_bytes_ >= limits().pre_auth_bytes) {
      return resource_exhausted("a peer sent %zu bytes before it had proven who it is", limits().pre_auth_bytes);
    }
    most = std::min<size_t>(kGreetingTakeIn, limits().pre_auth_bytes - static_cast<size_t>(greeting_bytes_));
  }
  const iovec room{session_->in.room(most), most};
  DTG_ASSIGN(const size_t got, SocketChannel::read_bytes(&room, 1));
  session_->in.filled(got);
  if (stage_ == Stage::greeting) greeting_bytes_ += got;
  else if (got == most) take_in_ = std::min(take_in_ * 2, kTakeInMax);
  return got;
}

Result<bool> TlsChannel::greet() {
  for (;;) {
    auto over = session_->greet();
    // Before anything else, so that the other end learns what this one thinks.
    const Status sent = send_out();
    if (!over.ok()) return over.status();
    DTG_TRY(sent);
    if (session_->authenticated() && !peer_) {
      peer_ = session_->peer_task();
      ticket_.proven();
    }
    if (over.value()) return true;
    DTG_ASSIGN(const size_t got, take_in());
    if (got == 0) return false;
  }
}

void TlsChannel::end_greeting() {
  stage_ = mode_ == Security::tls ? Stage::tls : Stage::clear;
  if (stage_ == Stage::tls) return;
  left_over_.append(session_->in.data(), session_->in.size());
  // Its own statement must have left; until then TLS stays for its buffer.
  if (session_->out.size() == 0) session_ = nullptr;
}

Result<size_t> TlsChannel::read_bytes(const iovec* into, int count) {
  more_ = false;
  if (stage_ == Stage::greeting) {
    DTG_ASSIGN(const bool over, greet());
    if (!over) return size_t{0};
    end_greeting();
  }
  DTG_ASSIGN(const size_t got, stage_ == Stage::tls ? read_tls(into, count) : read_clear(into, count));
  more_ = got > 0;
  return got;
}

Result<size_t> TlsChannel::read_tls(const iovec* into, int count) {
  for (;;) {
    size_t total = 0;
    for (int i = 0; i < count; ++i) {
      size_t at = 0;
      while (at < into[i].iov_len) {
        DTG_ASSIGN(const size_t got, session_->read(static_cast<char*>(into[i].iov_base) + at, into[i].iov_len - at));
        if (got == 0) {
          i = count;
          break;
        }
        at += got;
        total += got;
      }
    }
    if (total > 0) return total;
    DTG_ASSIGN(const size_t got, take_in());
    if (got == 0) return size_t{0};
  }
}

Result<size_t> TlsChannel::read_clear(const iovec* into, int count) {
  if (left_over_.size() == 0) return SocketChannel::read_bytes(into, count);
  const size_t now = std::min(left_over_.size(), into[0].iov_len);
  std::memcpy(into[0].iov_base, left_over_.data(), now);
  left_over_.drop(now);
  return now;
}

Result<size_t> TlsChannel::write_bytes(const iovec* from, int count) {
  if (stage_ == Stage::greeting) return size_t{0};
  if (session_) DTG_TRY(send_out());
  if (stage_ == Stage::clear) {
    if (session_ && session_->out.size() > 0) return size_t{0};
    session_ = nullptr;
    return SocketChannel::write_bytes(from, count);
  }
  size_t total = 0;
  char record[kRecord];
  size_t filled = 0;
  for (int i = 0; i < count && session_->out.size() < kOutMax; ++i) {
    const char* at = static_cast<const char*>(from[i].iov_base);
    size_t left = from[i].iov_len;
    while (left > 0 && session_->out.size() < kOutMax) {
      // Whole records straight from where they lie; what is smaller shares one.
      const size_t now = std::min(left, kRecord - filled);
      if (now == kRecord) {
        DTG_TRY(session_->write(at, now));
      } else {
        std::memcpy(record + filled, at, now);
        filled += now;
        if (filled == kRecord) DTG_TRY(session_->write(record, std::exchange(filled, 0)));
      }
      at += now;
      left -= now;
      total += now;
    }
  }
  if (filled > 0) DTG_TRY(session_->write(record, filled));
  DTG_TRY(send_out());
  return total;
}

}  // namespace dtg
