// Addresses as text, and names to numbers.
#include "net/address.h"

#include <gtest/gtest.h>

#include "net/resolve.h"

namespace dtg {
namespace {

TEST(Address, ReadsAndWrites) {
  for (const char* text :
       {"unix:/run/job/ps0", "unix:a:1", "10.0.0.7:4000", "trainer-0.example.org:65535", "localhost:0", "[::1]:80", "[fe80::1%eth0]:9"}) {
    auto address = Address::parse(text);
    ASSERT_TRUE(address.ok()) << address.status().message();
    EXPECT_EQ(address.value().text(), text);
    EXPECT_EQ(Address::parse(address.value().text()).take(), address.value());
    EXPECT_EQ(address.value().is_unix(), std::string_view(text).starts_with("unix:"));
  }
  const Address six = Address::parse("[::1]:80").take();
  EXPECT_EQ(six.host, "::1");
  EXPECT_EQ(six.port, 80);
}

TEST(Address, Refuses) {
  for (const char* text : {"", "unix:", "host", ":80", "host:", "host:-1", "host:65536", "host:8o", "::1:80", "[::1]", "[::1]80",
                           "[nonsense]:80", "a b:80", "a|b:80", "[]:80", "host:80 ", "grpc://host:80", "[::1]:80:80"}) {
    const Status status = Address::parse(text).status();
    EXPECT_EQ(status.code(), Code::invalid_argument) << text;
  }
  EXPECT_EQ(Address::parse(std::string(254, 'a') + ":1").status().code(), Code::invalid_argument);
}

TEST(Address, Loopback) {
  for (const char* text : {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1"})
    EXPECT_TRUE(Address::parse(text).take().is_loopback()) << text;
  for (const char* text : {"128.0.0.1:1", "0.0.0.0:1", "[::]:1", "[::2]:1", "localhost.example:1", "unix:/a", "127.0.0.1.example:1"}) {
    EXPECT_FALSE(Address::parse(text).take().is_loopback()) << text;
  }
}

TEST(Resolve, NumbersAndNames) {
  const auto find = [](const char* text, int64_t ns) {
    return resolve(Address::parse(text).take(), system_clock(), Deadline::after(system_clock(), ns));
  };
  auto four = find("127.0.0.1:4000", 0);  // no time is needed
  ASSERT_TRUE(four.ok()) << four.status().message();
  ASSERT_EQ(four.value().size(), 1u);
  EXPECT_TRUE(four.value()[0].is_loopback());
  EXPECT_EQ(four.value()[0].port(), 4000);
  EXPECT_FALSE(find("[::]:1", 0).take()[0].is_loopback());
  auto local = find("localhost:1", 5'000'000'000);
  ASSERT_TRUE(local.ok()) << local.status().message();
  for (const SocketAddress& number : local.value()) EXPECT_TRUE(number.is_loopback());
  const int64_t began = system_clock().monotonic_ns();
  const Status unknown = find("no-such-host.invalid:1", 300'000'000).status();
  EXPECT_EQ(unknown.code(), Code::unavailable) << unknown.message();
  EXPECT_NE(unknown.message().find("no-such-host.invalid"), std::string::npos);
  EXPECT_LT(system_clock().monotonic_ns() - began, 4'000'000'000);
}

}  // namespace
}  // namespace dtg
