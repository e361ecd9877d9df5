// TlsSession: TLS 1.3 as bytes in, bytes out, without a socket: external PSK with an ephemeral key exchange and nothing else:
// no certificates, tickets, early data or other versions. After the handshake both ends state inside it what is to
// protect the frames (TLS on, or nothing). Belongs to whoever moves its bytes; one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/credentials.h"

struct ssl_st;
struct ssl_session_st;

namespace dtg {

// Bytes between an end and the TLS machine.
class ByteQueue {
 public:
  size_t size() const { return end_ - begin_; }
  const char* data() const { return bytes_.data() + begin_; }
  void drop(size_t count);
  void append(const void* bytes, size_t count);
  // Room for so many bytes behind the last one; filled() says how many came.
  char* room(size_t count);
  void filled(size_t count) { end_ += count; }

 private:
  std::vector<char> bytes_;
  size_t begin_ = 0, end_ = 0;
};

class TlsSession {
 public:
  enum class Side : uint8_t { client, server };
  // `name` is what the server is called when the client does not know which task it is: its address.
  static Result<std::unique_ptr<TlsSession>> make(Side side, const Credentials& credentials, const std::string& name);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Ciphertext: what came in is appended to `in`, what goes out is taken from `out`.
  ByteQueue in, out;
  // Goes on with the handshake and the statements as far as `in` allows. True when both are over.
  Result<bool> greet();
  // The other end has proven itself; greet() may still wait for its statement.
  bool authenticated() const { return authenticated_; }
  // The task at the other end, "" for a client that is no task. When authenticated.
  const std::string& peer_task() const { return peer_task_; }

  // After greet(). Clear bytes out of `in`; 0 when it holds no whole record.
  Result<size_t> read(void* into, size_t count);
  // Up to a record of `bytes` into `out`.
  Status write(const void* bytes, size_t count);

 private:
  TlsSession(Side side, const Credentials& credentials, const std::string& name);
  Status start();
  Status problem(const char* doing) const;
  Status state_mode();
  Result<bool> read_statement();
  bool accepts(std::string_view identity, std::string* client, std::string* server) const;
  ssl_session_st* session_for(const JobKey& key, std::string_view client, std::string_view server);
  friend struct TlsCallbacks;

  const Side side_;
  const Credentials credentials_;
  std::string client_, server_, identity_;  // as a client says them
  std::string peer_task_;
  ssl_st* ssl_ = nullptr;
  bool authenticated_ = false;
  std::string statement_;
};

}  // namespace dtg
