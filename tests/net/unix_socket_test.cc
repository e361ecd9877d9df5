// Who may listen at a path: one at a time, whatever became of those before.
#include "net/unix_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "scratch.h"

namespace dtg {
namespace {

class UnixSocket : public ::testing::Test {
 protected:
  UnixSocket() { ::chmod(scratch_.path().c_str(), 0700); }
  // Somebody listens there who takes connections.
  bool answers() const { return connect_unix(path_).ok(); }

  Scratch scratch_;
  const std::string path_ = scratch_ / "socket";
};

TEST_F(UnixSocket, ForkedChildDoesNotKeepTheAddress) {
  int life[2], told[2];
  ASSERT_EQ(::pipe(life), 0);
  ASSERT_EQ(::pipe(told), 0);
  const pid_t host = ::fork();
  if (host == 0) {
    auto listener = listen_unix(path_);
    if (listener.ok() && ::fork() == 0) {
      ::close(life[1]);
      (void)!::write(told[1], "x", 1);
      char byte;
      (void)!::read(life[0], &byte, 1);  // until the test is over
      ::_exit(0);
    }
    ::pause();
  }
  char byte;
  ASSERT_EQ(::read(told[0], &byte, 1), 1);
  EXPECT_EQ(listen_unix(path_).status().code(), Code::already_exists);
  ::kill(host, SIGKILL);
  ::waitpid(host, nullptr, 0);
  EXPECT_TRUE(answers());  // the child still has the socket
  auto next = listen_unix(path_);
  EXPECT_TRUE(next.ok()) << next.status().message();
  for (int end : {life[0], life[1], told[0], told[1]}) ::close(end);
}

TEST_F(UnixSocket, OneServerOfAProcess) {
  auto first = listen_unix(path_);
  ASSERT_TRUE(first.ok()) << first.status().message();
  // By other names as well; and asking does not end the lock, which another process would see.
  for (const std::string& path : {path_, path_, scratch_.path() + "/./socket"}) {
    const Status refused = listen_unix(path).status();
    EXPECT_EQ(refused.code(), Code::already_exists) << refused.message();
  }
  const pid_t other = ::fork();
  if (other == 0) ::_exit(listen_unix(path_).status().code() == Code::already_exists ? 0 : 1);
  int status = 1;
  ::waitpid(other, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(answers());
  first = Status();
  EXPECT_TRUE(listen_unix(path_).ok());
}

TEST_F(UnixSocket, NothingStaysBehind) {
  { const auto listener = listen_unix(path_); }
  EXPECT_TRUE(std::filesystem::is_empty(scratch_.path()));
}

TEST_F(UnixSocket, SuccessorSurvivesItsPredecessorsEnd) {
  auto first = listen_unix(path_).take();
  // Against the rules: somebody cleared the directory away under a server that lives.
  std::filesystem::remove(path_);
  std::filesystem::remove(path_ + ".lock");
  const pid_t child = ::fork();
  if (child == 0) {
    auto listener = listen_unix(path_);
    if (!listener.ok()) ::_exit(1);
    ::pause();
  }
  for (int i = 0; i < 1000 && !answers(); ++i) ::usleep(5000);
  ASSERT_TRUE(answers());
  first = UnixListener();
  EXPECT_TRUE(answers());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

// Each opens as soon as the one before closes; none takes another's name away.
TEST_F(UnixSocket, ManyTakeTurns) {
  constexpr int kProcesses = 4, kTurns = 200;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    for (int turn = 0; turn < kTurns;) {
      auto listener = listen_unix(path_);
      if (!listener.ok()) {
        if (listener.status().code() != Code::already_exists) ::_exit(1);
        continue;
      }
      ++turn;
      // Whoever listens is found.
      if (!answers()) ::_exit(2);
    }
    ::_exit(0);
  }
  for (pid_t child : children) {
    int status = 1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
}

TEST_F(UnixSocket, NoOtherFileIsRemoved) {
  scratch_.write("socket", "precious");
  EXPECT_EQ(listen_unix(path_).status().code(), Code::failed_precondition);
  EXPECT_EQ(scratch_.read("socket"), "precious");
}

TEST_F(UnixSocket, NoLinkIsFollowed) {
  scratch_.write("elsewhere", "");
  std::filesystem::create_symlink(scratch_ / "elsewhere", path_ + ".lock");
  EXPECT_EQ(listen_unix(path_).status().code(), Code::failed_precondition);
}

}  // namespace
}  // namespace dtg
