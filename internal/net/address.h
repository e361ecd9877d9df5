// Address: where a task listens: a unix socket or a TCP port. As text: "unix:/run/job/ps0", "10.0.0.7:4000",
// "trainer-0.example:4000", "[::1]:4000"; port 0 lets the system choose when a server starts. A value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace dtg {

struct Address {
  std::string path;  // of a unix socket; empty: TCP
  std::string host;  // a number or a name, without brackets
  uint16_t port = 0;

  bool is_unix() const { return !path.empty(); }
  // By what the text says: a number that never leaves the machine, or "localhost". What a name resolves to is
  // looked at again when it is used.
  bool is_loopback() const;
  std::string text() const;
  static Result<Address> parse(std::string_view text);
  bool operator==(const Address&) const = default;
};

}  // namespace dtg
