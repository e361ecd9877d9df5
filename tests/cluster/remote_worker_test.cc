// The state machine that connects to a task, against listeners that the test plays.
#include "cluster/remote_worker.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "base/condition.h"
#include "cluster/server.h"
#include "scratch.h"
#include "seconds.h"
#include "session/runtime.h"

namespace dtg {
namespace {

// The kernel takes connections for somebody who never looks at them.
class Sleeper {
 public:
  explicit Sleeper(const std::string& path) : path_(path), socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(socket_, 16), 0);
  }
  ~Sleeper() {
    ::unlink(path_.c_str());
    ::close(socket_);
  }

 private:
  const std::string path_;
  const int socket_;
};

// Whose greeting is not answered has until the end of the caller's time, and not only of that greeting's.
TEST(RemoteWorker, GreetsAgainWhoDidNotAnswer) {
  const Scratch scratch;
  ::chmod(scratch.path().c_str(), 0700);
  const std::string path = scratch / "ps";
  const auto runtime = Runtime::create({.compute_threads = 2}).take();
  const Host host = runtime->host().take();
  Timing timing;
  timing.handshake_ns = 100 * kMillisecond;
  auto sleeper = std::make_unique<Sleeper>(path);
  Condition told;
  std::vector<Status> results;
  const auto connect = [&](int64_t timeout_ns) {
    const auto worker = make_ref<RemoteWorker>(host, timing, "", Address::parse("unix:" + path).take(), "", 1);
    worker->connect(Deadline::after(system_clock(), timeout_ns),
                    [&](const Status& status) { told.change([&] { results.push_back(status); }); });
    return worker;
  };
  const auto wait = [&](size_t count) {
    return told.wait(system_clock(), Deadline::after(system_clock(), 20'000 * kMillisecond), [&] { return results.size() == count; });
  };
  const auto hasty = connect(2000 * kMillisecond), patient = connect(20'000 * kMillisecond);
  ASSERT_TRUE(wait(1));
  EXPECT_EQ(results[0].code(), Code::unavailable);
  EXPECT_NE(results[0].message().find(path), std::string::npos) << results[0].message();
  sleeper = nullptr;
  Server::Options options;
  options.cluster = ClusterSpec::parse("ps=unix:" + path).take();
  const auto server = Server::start(host, options, runtime).take();
  ASSERT_TRUE(wait(2));
  EXPECT_TRUE(results[1].ok()) << results[1].message();
  hasty->close();
  patient->close();
}

// Whoever comes within the caller's time is found, also where the pauses between two tries have grown long by then.
TEST(RemoteWorker, FindsWhoComesShortlyBeforeTheEnd) {
  const Scratch scratch;
  ::chmod(scratch.path().c_str(), 0700);
  const std::string path = scratch / "ps";
  const auto runtime = Runtime::create({.compute_threads = 2}).take();
  const Host host = runtime->host().take();
  const auto worker = make_ref<RemoteWorker>(host, Timing(), "", Address::parse("unix:" + path).take(), "", 1);
  Condition told;
  std::vector<Status> results;
  const int64_t begin = system_clock().monotonic_ns();
  worker->connect(Deadline{begin + 4000 * kMillisecond}, [&](const Status& status) { told.change([&] { results.push_back(status); }); });
  // The tries after 2 s were the last ones, for the next pause had led behind the end.
  told.wait(system_clock(), Deadline{begin + 2500 * kMillisecond}, [&] { return !results.empty(); });
  Server::Options options;
  options.cluster = ClusterSpec::parse("ps=unix:" + path).take();
  const auto server = Server::start(host, options, runtime).take();
  ASSERT_TRUE(told.wait(system_clock(), Deadline::after(system_clock(), 20'000 * kMillisecond), [&] { return results.size() == 1; }));
  EXPECT_TRUE(results[0].ok()) << results[0].message();
  worker->close();
}

}  // namespace
}  // namespace dtg
