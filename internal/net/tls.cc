// TlsSession over OpenSSL: the only file that calls its TLS functions. One thread at a time.
#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "net/openssl.h"

namespace dtg {
namespace {

constexpr const char* kSuite = "TLS_AES_128_GCM_SHA256";
constexpr unsigned char kSuiteNumber[] = {0x13, 0x01};
constexpr const char* kGroups = "X25519:P-256";
constexpr const char* kClientName = "client";  // in identities, of a client that is no task
constexpr size_t kIdentityMax = 512;

// "dtg", the version of the statement, the mode.
constexpr size_t kStatementBytes = 5;
std::string statement_of(Security mode) { return {'d', 't', 'g', 1, static_cast<char>(mode)}; }

BIO_METHOD* queue_bio() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "dtg bytes");
    if (!made) return made;
    BIO_meth_set_create(made, [](BIO* bio) {
      BIO_set_init(bio, 1);
      return 1;
    });
    BIO_meth_set_ctrl(made, [](BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1L : 0L; });
    BIO_meth_set_write(made, [](BIO* bio, const char* bytes, int count) {
      // OpenSSL is C: nothing may be thrown through it.
      try {
        static_cast<TlsSession*>(BIO_get_data(bio))->out.append(bytes, static_cast<size_t>(count));
      } catch (const std::exception&) {
        return -1;
      }
      return count;
    });
    BIO_meth_set_read(made, [](BIO* bio, char* into, int count) {
      ByteQueue& in = static_cast<TlsSession*>(BIO_get_data(bio))->in;
      BIO_clear_retry_flags(bio);
      if (in.size() == 0) {
        BIO_set_retry_read(bio);
        return -1;
      }
      const size_t now = std::min(in.size(), static_cast<size_t>(count));
      std::memcpy(into, in.data(), now);
      in.drop(now);
      return static_cast<int>(now);
    });
    return made;
  }();
  return method;
}

}  // namespace

void ByteQueue::drop(size_t count) {
  begin_ += count;
  if (begin_ == end_) begin_ = end_ = 0;
}

void ByteQueue::append(const void* bytes, size_t count) {
  if (count == 0) return;
  std::memcpy(room(count), bytes, count);
  filled(count);
}

char* ByteQueue::room(size_t count) {
  if (bytes_.size() - end_ < count && begin_ > 0) {
    std::memmove(bytes_.data(), bytes_.data() + begin_, size());
    end_ -= begin_;
    begin_ = 0;
  }
  if (bytes_.size() - end_ < count) bytes_.resize(end_ + count);
  return bytes_.data() + end_;
}

struct TlsCallbacks {
  static TlsSession& of(SSL* ssl) { return *static_cast<TlsSession*>(SSL_get_app_data(ssl)); }

  static int use(SSL* ssl, const EVP_MD* digest, const unsigned char** identity, size_t* bytes, SSL_SESSION** session) {
    TlsSession& self = of(ssl);
    *session = nullptr;
    *identity = reinterpret_cast<const unsigned char*>(self.identity_.data());
    *bytes = self.identity_.size();
    if (digest && !EVP_MD_is_a(digest, "SHA256")) return 1;
    *session = self.session_for(*self.credentials_.key, self.client_, self.server_);
    return *session ? 1 : 0;
  }

  // Whoever is not known meets a key that nobody has, on the same way and at the same time.
  static int find(SSL* ssl, const unsigned char* identity, size_t bytes, SSL_SESSION** session) {
    *session = nullptr;
    try {
      return find_session(of(ssl), identity, bytes, session);
    } catch (const std::exception&) {
      return 0;
    }
  }

  static int find_session(TlsSession& self, const unsigned char* identity, size_t bytes, SSL_SESSION** session) {
    std::string client = "-", server = "-";
    const bool known = self.accepts({reinterpret_cast<const char*>(identity), bytes}, &client, &server);
    auto nobody = JobKey::random(system_random());
    if (!nobody.ok()) return 0;
    *session = self.session_for(known ? *self.credentials_.key : *nobody.value(), client, server);
    if (known) self.peer_task_ = client == kClientName ? "" : client;
    return *session ? 1 : 0;
  }

  static SSL_CTX* make(const SSL_METHOD* method) {
    // The host's libcrypto must not be taken apart at exit while our threads run.
    OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr);
    SSL_CTX* const context = SSL_CTX_new(method);
    if (!context) return nullptr;
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, nullptr);
    SSL_CTX_set_psk_use_session_callback(context, use);
    SSL_CTX_set_psk_find_session_callback(context, find);
    const bool ok = SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
                    SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 && SSL_CTX_set_ciphersuites(context, kSuite) == 1 &&
                    SSL_CTX_set1_groups_list(context, kGroups) == 1 && SSL_CTX_set_num_tickets(context, 0) == 1 &&
                    SSL_CTX_set_max_early_data(context, 0) == 1;
    if (ok) return context;
    SSL_CTX_free(context);
    return nullptr;
  }
};

TlsSession::TlsSession(Side side, const Credentials& credentials, const std::string& name) : side_(side), credentials_(credentials) {
  client_ = credentials_.self_task.empty() ? kClientName : credentials_.self_task;
  server_ = credentials_.peer_task.empty() ? name : credentials_.peer_task;
  identity_ = "dtg1|" + client_ + "|" + server_;
  if (side_ == Side::client) peer_task_ = credentials_.peer_task;
}

TlsSession::~TlsSession() { SSL_free(ssl_); }

Result<std::unique_ptr<TlsSession>> TlsSession::make(Side side, const Credentials& credentials, const std::string& name) {
  if (!credentials.key) return failed_precondition("start TLS: there is no job key");
  DTG_TRY(check_openssl());
  std::unique_ptr<TlsSession> session(new TlsSession(side, credentials, name));
  DTG_TRY(session->start());
  return session;
}

Status TlsSession::start() {
  static SSL_CTX* const client = TlsCallbacks::make(TLS_client_method());
  static SSL_CTX* const server = TlsCallbacks::make(TLS_server_method());
  ERR_clear_error();
  SSL_CTX* const context = side_ == Side::client ? client : server;
  BIO* const bio = context && queue_bio() ? BIO_new(queue_bio()) : nullptr;
  ssl_ = bio ? SSL_new(context) : nullptr;
  if (!ssl_) {
    BIO_free(bio);
    return problem("start TLS");
  }
  BIO_set_data(bio, this);
  SSL_set_bio(ssl_, bio, bio);
  SSL_set_app_data(ssl_, this);
  side_ == Side::client ? SSL_set_connect_state(ssl_) : SSL_set_accept_state(ssl_);
  return {};
}

// Which pair an identity names, and whether this end is the server of that pair.
bool TlsSession::accepts(std::string_view identity, std::string* client, std::string* server) const {
  if (identity.size() > kIdentityMax || !identity.starts_with("dtg1|")) return false;
  identity.remove_prefix(5);
  const size_t bar = identity.find('|');
  if (bar == identity.npos || identity.find('|', bar + 1) != identity.npos) return false;
  const std::string_view from = identity.substr(0, bar), to = identity.substr(bar + 1);
  const auto& tasks = credentials_.tasks;
  // Whoever says that it is this very task is an echo of it.
  if (from.empty() || to.empty() || from == credentials_.self_task) return false;
  if (from != kClientName && !tasks.empty() && std::ranges::find(tasks, from) == tasks.end()) return false;
  // A client may know only an address; which one leads here is not known here. The name of a task must be right.
  if (to.starts_with("/job:") && to != credentials_.self_task) return false;
  *client = from;
  *server = to;
  return true;
}

SSL_SESSION* TlsSession::session_for(const JobKey& key, std::string_view client, std::string_view server) {
  PairKey pair;
  if (!derive_pair_key(key, client, server, &pair)) return nullptr;
  const SSL_CIPHER* const cipher = SSL_CIPHER_find(ssl_, kSuiteNumber);
  SSL_SESSION* const session = SSL_SESSION_new();
  if (session && cipher && SSL_SESSION_set1_master_key(session, pair.bytes.data(), pair.bytes.size()) == 1 &&
      SSL_SESSION_set_cipher(session, cipher) == 1 && SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1) {
    return session;
  }
  SSL_SESSION_free(session);
  return nullptr;
}

// What went wrong, from OpenSSL's own record; never with a secret in it.
Status TlsSession::problem(const char* doing) const {
  const unsigned long error = ERR_peek_error();
  const int reason = ERR_GET_REASON(error);
  const char* const words = ERR_reason_error_string(error);
  const bool alert = ERR_GET_LIB(error) == ERR_LIB_SSL && reason >= SSL_AD_REASON_OFFSET;
  const std::string what = words ? words : "no reason given";
  ERR_clear_error();
  if (authenticated_) return data_loss("%s: the connection was tampered with or broke: %s", doing, what.c_str());
  if (!ssl_) return internal_error("%s: %s", doing, what.c_str());
  if (alert || side_ == Side::server) {
    return unauthenticated("%s: %s (%s); both ends need the same job key (key_file) and the same cluster", doing,
                           alert ? "the other end refused this one" : "the other end did not prove who it is", what.c_str());
  }
  return unauthenticated("%s: the other end does not answer like a task of this job (%s)", doing, what.c_str());
}

Result<bool> TlsSession::greet() {
  ERR_clear_error();
  if (!authenticated_) {
    const int done = SSL_do_handshake(ssl_);
    if (done != 1) {
      if (SSL_get_error(ssl_, done) == SSL_ERROR_WANT_READ) return false;
      return problem("TLS handshake");
    }
    // Without certificates nothing but the PSK can have carried it; all the same, only a resumed session proves it.
    if (SSL_session_reused(ssl_) != 1) return unauthenticated("TLS handshake: it went without the job key");
    authenticated_ = true;
    DTG_TRY(state_mode());
  }
  return read_statement();
}

Status TlsSession::state_mode() {
  const std::string statement = statement_of(credentials_.security);
  return write(statement.data(), statement.size());
}

Result<bool> TlsSession::read_statement() {
  while (statement_.size() < kStatementBytes) {
    char bytes[kStatementBytes];
    DTG_ASSIGN(const size_t got, read(bytes, kStatementBytes - statement_.size()));
    if (got == 0) return false;
    statement_.append(bytes, got);
  }
  if (statement_ == statement_of(credentials_.security)) return true;
  const bool clear_here = credentials_.security == Security::clear_frames;
  if (statement_ != statement_of(clear_here ? Security::tls : Security::clear_frames)) {
    return failed_precondition("TLS handshake: the other end speaks another version of dtg");
  }
  return failed_precondition(
      "TLS handshake: %s asks for frames in the clear, %s for TLS; set security to clear_frames at both ends, or leave it out at both (tls)",
      clear_here ? "this end" : "the other end", clear_here ? "the other" : "this end");
}

Result<size_t> TlsSession::read(void* into, size_t count) {
  ERR_clear_error();
  size_t got = 0;
  const int done = SSL_read_ex(ssl_, into, count, &got);
  if (done == 1) return got;
  switch (SSL_get_error(ssl_, done)) {
    case SSL_ERROR_WANT_READ: return size_t{0};
    case SSL_ERROR_ZERO_RETURN: return unavailable("the other end closed the connection");
    default: return problem("read");
  }
}

Status TlsSession::write(const void* bytes, size_t count) {
  ERR_clear_error();
  const char* at = static_cast<const char*>(bytes);
  while (count > 0) {
    size_t done = 0;
    if (SSL_write_ex(ssl_, at, count, &done) != 1) return problem("write");
    at += done;
    count -= done;
  }
  return {};
}

}  // namespace dtg
