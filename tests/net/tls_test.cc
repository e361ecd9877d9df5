// TLS as bytes between two ends in one thread: who gets in, who does not, and what every cut and every flipped bit of
// the dialogue comes to.
#include "net/tls.h"

#include <gtest/gtest.h>

namespace dtg {
namespace {

constexpr const char* kWorker = "/job:worker/replica:0/task:0";
constexpr const char* kServer = "/job:ps/replica:0/task:0";

Ref<const JobKey> key_of(char letter) {
  std::array<char, JobKey::kBytes> bytes;
  bytes.fill(letter);
  return JobKey::make(bytes).take();
}

Credentials credentials(char key, std::string self, std::string peer, Security security = Security::tls) {
  Credentials made;
  made.key = key_of(key);
  made.security = security;
  made.self_task = std::move(self);
  made.peer_task = std::move(peer);
  return made;
}

struct Ends {
  Ends(const Credentials& from, const Credentials& to, const std::string& name = "10.0.0.1:4000") {
    client = TlsSession::make(TlsSession::Side::client, from, name).take();
    server = TlsSession::make(TlsSession::Side::server, to, "10.0.0.1:4000").take();
  }
  // Until nothing moves any more. The bytes of each direction are kept.
  void talk() {
    for (bool moved = true; moved;) {
      moved = step(*client, &client_over, &client_says, *server) | step(*server, &server_over, &server_says, *client);
    }
  }
  bool both_in() const { return client_over.ok() && server_over.ok() && client_over.value() && server_over.value(); }

  std::unique_ptr<TlsSession> client, server;
  Result<bool> client_over = false, server_over = false;
  std::string client_says, server_says;

 private:
  static bool step(TlsSession& end, Result<bool>* over, std::string* says, TlsSession& other) {
    if (over->ok() && !over->value()) *over = end.greet();
    const std::string bytes(end.out.data(), end.out.size());
    if (bytes.empty()) return false;
    end.out.drop(bytes.size());
    says->append(bytes);
    other.in.append(bytes.data(), bytes.size());
    return true;
  }
};

std::string pass(TlsSession& from, TlsSession& to, std::string_view text) {
  EXPECT_TRUE(from.write(text.data(), text.size()).ok());
  to.in.append(from.out.data(), from.out.size());
  from.out.drop(from.out.size());
  std::string heard;
  char bytes[1000];
  for (;;) {
    auto got = to.read(bytes, sizeof bytes);
    EXPECT_TRUE(got.ok()) << got.status().message();
    if (!got.ok() || got.value() == 0) return heard;
    heard.append(bytes, got.value());
  }
}

TEST(Tls, PairsWithTheKeyTalk) {
  for (const char* self : {kWorker, ""}) {
    for (const char* peer : {kServer, ""}) {
      Ends ends(credentials('k', self, peer), credentials('k', kServer, ""));
      ends.talk();
      ASSERT_TRUE(ends.both_in()) << ends.client_over.status().message() << " / " << ends.server_over.status().message();
      EXPECT_EQ(ends.server->peer_task(), self);
      EXPECT_EQ(pass(*ends.client, *ends.server, "hello"), "hello");
      EXPECT_EQ(pass(*ends.server, *ends.client, std::string(50000, 'x')), std::string(50000, 'x'));
      EXPECT_EQ(ends.client_says.find("hello"), std::string::npos);
    }
  }
}

void expect_refused(Ends& ends, Code code = Code::unauthenticated) {
  ends.talk();
  EXPECT_FALSE(ends.both_in());
  EXPECT_FALSE(ends.server->authenticated());
  EXPECT_EQ(ends.server_over.status().code(), code) << ends.server_over.status().message();
  EXPECT_EQ(ends.client_over.status().code(), code) << ends.client_over.status().message();
}

TEST(Tls, StrangersAreRefusedAlike) {
  std::vector<std::string> answers, reasons;
  const auto refused = [&](const Credentials& from, const Credentials& to) {
    Ends ends(from, to);
    expect_refused(ends);
    answers.push_back(ends.server_says);
    reasons.push_back(ends.client_over.status().message());
  };
  refused(credentials('x', kWorker, kServer), credentials('k', kServer, ""));                    // wrong key
  refused(credentials('k', kWorker, "/job:ps/replica:0/task:1"), credentials('k', kServer, ""));  // meant for another
  refused(credentials('k', kServer, kWorker), credentials('k', kServer, ""));                    // roles swapped
  refused(credentials('k', kServer, ""), credentials('k', kServer, ""));                         // an echo of itself
  refused(credentials('k', "a|b", kServer), credentials('k', kServer, ""));                      // no identity
  refused(credentials('k', std::string(600, 'a'), kServer), credentials('k', kServer, ""));
  Credentials known = credentials('k', kServer, "");
  known.tasks = {kServer, "/job:worker/replica:0/task:1"};
  refused(credentials('k', kWorker, kServer), known);  // a task that the cluster does not have
  // Nobody learns from the answer why.
  for (const std::string& answer : answers) EXPECT_EQ(answer, answers[0]);
  for (const std::string& reason : reasons) EXPECT_EQ(reason, reasons[0]);
  EXPECT_NE(reasons[0].find("key_file"), std::string::npos) << reasons[0];
}

TEST(Tls, BothEndsAskForTheSame) {
  const auto with = [](Security from, Security to) { return Ends(credentials('k', kWorker, kServer, from), credentials('k', kServer, "", to)); };
  Ends clear = with(Security::clear_frames, Security::clear_frames);
  clear.talk();
  EXPECT_TRUE(clear.both_in());
  for (auto [from, to] : {std::pair(Security::tls, Security::clear_frames), std::pair(Security::clear_frames, Security::tls)}) {
    Ends ends = with(from, to);
    ends.talk();
    for (const auto* over : {&ends.client_over, &ends.server_over}) {
      EXPECT_EQ(over->status().code(), Code::failed_precondition) << over->status().message();
      EXPECT_NE(over->status().message().find("set security to clear_frames at both ends"), std::string::npos) << over->status().message();
    }
  }
}

}  // namespace
}  // namespace dtg
