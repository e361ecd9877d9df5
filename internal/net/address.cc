// Parses and prints addresses. Pure functions; any thread.
#include "net/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

namespace dtg {
namespace {

constexpr size_t kHostMax = 253;

bool is_host_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}

Status bad(std::string_view text, const char* why) {
  const int shown = static_cast<int>(std::min<size_t>(text.size(), 300));
  return invalid_argument("address \"%.*s\": %s; an address is unix:PATH, HOST:PORT or [IPV6]:PORT", shown, text.data(), why);
}

}  // namespace

bool Address::is_loopback() const {
  if (is_unix()) return false;
  if (host == "localhost") return true;
  in_addr four{};
  if (::inet_pton(AF_INET, host.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  in6_addr six{};
  return ::inet_pton(AF_INET6, host.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

std::string Address::text() const {
  if (is_unix()) return "unix:" + path;
  const bool six = host.find(':') != host.npos;
  return (six ? "[" + host + "]:" : host + ":") + std::to_string(port);
}

Result<Address> Address::parse(std::string_view text) {
  Address address;
  if (text.starts_with("unix:")) {
    if (text.size() == 5) return bad(text, "the path is missing");
    address.path = text.substr(5);
    return address;
  }
  const bool bracketed = text.starts_with('[');
  const size_t colon = text.rfind(':');
  const size_t end = bracketed ? text.find(']') : colon;
  if (end == text.npos || colon == text.npos || (bracketed && colon != end + 1)) return bad(text, "the port is missing");
  address.host = text.substr(bracketed ? 1 : 0, end - (bracketed ? 1 : 0));
  if (address.host.empty() || address.host.size() > kHostMax) return bad(text, "the host is missing or longer than 253 bytes");
  in6_addr six{};
  const std::string number = address.host.substr(0, address.host.find('%'));  // less the zone
  if (bracketed && ::inet_pton(AF_INET6, number.c_str(), &six) != 1) return bad(text, "there is no IPv6 number in the brackets");
  const auto odd = [&](char c) { return !is_host_letter(c) && !(bracketed && (c == ':' || c == '%')); };
  if (std::ranges::any_of(address.host, odd)) return bad(text, "the host holds a character that no host name has");
  const std::string_view port = text.substr(colon + 1);
  const auto [stop, failed] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (failed != std::errc() || stop != port.data() + port.size()) return bad(text, "the port is not a number from 0 to 65535");
  return address;
}

}  // namespace dtg
