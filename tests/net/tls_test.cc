// TLS as bytes between two ends in one thread: who gets in, who does not, and what every cut and every flipped bit of
// the dialogue comes to.
#include "net/tls.h"

#include <gtest/gtest.h>
#include <openssl/ssl.h>

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
  refused(credentials('x', kWorker, kServer), credentials('k', kServer, ""));                     // wrong key
  refused(credentials('k', kWorker, "/job:ps/replica:0/task:1"), credentials('k', kServer, ""));  // meant for another
  refused(credentials('k', kServer, kWorker), credentials('k', kServer, ""));                     // roles swapped
  refused(credentials('k', kServer, ""), credentials('k', kServer, ""));                          // an echo of itself
  refused(credentials('k', "a|b", kServer), credentials('k', kServer, ""));                       // no identity
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
  const auto with = [](Security from, Security to) {
    return Ends(credentials('k', kWorker, kServer, from), credentials('k', kServer, "", to));
  };
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

// Gives a server these bytes of a client; what it then thinks.
struct Heard {
  explicit Heard(std::string_view bytes)
      : server(TlsSession::make(TlsSession::Side::server, credentials('k', kServer, ""), "here").take()) {
    server->in.append(bytes.data(), bytes.size());
    over = server->greet();
  }
  bool in() const { return server->authenticated() || (over.ok() && over.value()); }
  std::unique_ptr<TlsSession> server;
  Result<bool> over = false;
};

TEST(Tls, ReplayedDialoguesProveNothing) {
  Ends ends(credentials('k', kWorker, kServer), credentials('k', kServer, ""));
  ends.talk();
  ASSERT_TRUE(ends.both_in());
  pass(*ends.client, *ends.server, "a word");
  const Heard heard(ends.client_says);
  EXPECT_FALSE(heard.in());
  EXPECT_EQ(heard.over.status().code(), Code::unauthenticated) << heard.over.status().message();
  // Nor does the same first word a second time in one connection.
  EXPECT_FALSE(Heard(ends.client_says.substr(0, 200) + ends.client_says).in());
}

// One end hears the other with one change; both must notice or wait, and nobody may take the change for the truth.
TEST(Tls, CutAtEveryByteAndEveryBitFlipped) {
  Ends whole(credentials('k', kWorker, kServer), credentials('k', kServer, ""));
  whole.talk();
  const size_t first =
      5 + static_cast<size_t>(static_cast<unsigned char>(whole.client_says[3]) * 256 + static_cast<unsigned char>(whole.client_says[4]));
  ASSERT_LT(first, whole.client_says.size());
  const std::string hello = whole.client_says.substr(0, first);
  for (size_t length = 0; length < hello.size(); ++length) EXPECT_FALSE(Heard(hello.substr(0, length)).in()) << length;
  for (size_t bit = 0; bit < hello.size() * 8; ++bit) {
    std::string bad = hello;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(Heard(bad).in()) << bit;
  }
}

TEST(Tls, EveryBitOfALiveDialogueFlipped) {
  for (const bool from_client : {true, false}) {
    size_t length = 1;
    for (size_t at = 0; at < length; ++at) {
      const auto client = credentials('k', kWorker, kServer), server = credentials('k', kServer, "");
      for (int bit = 0; bit < 8; bit += at % 4 == 0 ? 1 : 7) {
        Ends ends(client, server);
        size_t said = 0;
        // By hand, so that one byte can be changed on its way.
        for (bool moved = true; moved;) {
          moved = false;
          for (const bool is_client : {true, false}) {
            TlsSession& end = is_client ? *ends.client : *ends.server;
            TlsSession& other = is_client ? *ends.server : *ends.client;
            auto& over = is_client ? ends.client_over : ends.server_over;
            if (over.ok() && !over.value()) over = end.greet();
            std::string bytes(end.out.data(), end.out.size());
            end.out.drop(bytes.size());
            if (bytes.empty()) continue;
            moved = true;
            if (is_client == from_client) {
              if (at >= said && at < said + bytes.size()) bytes[at - said] = static_cast<char>(bytes[at - said] ^ (1 << bit));
              said += bytes.size();
            }
            other.in.append(bytes.data(), bytes.size());
          }
        }
        length = std::max(length, said);
        // The version that stands before a clear record is for old middle boxes; TLS 1.3 takes no notice of it.
        if (at == 1 || at == 2) continue;
        EXPECT_FALSE(ends.both_in()) << (from_client ? "client" : "server") << " byte " << at << " bit " << bit;
      }
    }
    EXPECT_GT(length, 200u);
  }
}

TEST(Tls, WhatFollowsIsSealed) {
  for (size_t at = 0; at < 40; ++at) {
    Ends ends(credentials('k', kWorker, kServer), credentials('k', kServer, ""));
    ends.talk();
    ASSERT_TRUE(ends.client->write("eighteen bytes long", 18).ok());
    std::string bytes(ends.client->out.data(), ends.client->out.size());
    ASSERT_GE(bytes.size(), 40u);
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    ends.server->in.append(bytes.data(), bytes.size());
    char into[100];
    const auto got = ends.server->read(into, sizeof into);
    // A length that grew waits for more; everything else is found out.
    EXPECT_TRUE(!got.ok() || got.value() == 0) << at;
    if (!got.ok()) {
      EXPECT_EQ(got.status().code(), Code::data_loss) << got.status().message();
    }
  }
}

// Other people's TLS: older versions, and this one without the key.
TEST(Tls, NothingWeakerIsSpoken) {
  const auto first_word = [](int version) {
    SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_min_proto_version(context, version);
    SSL_CTX_set_max_proto_version(context, version);
    SSL* const ssl = SSL_new(context);
    BIO *const in = BIO_new(BIO_s_mem()), *const out = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl, in, out);
    SSL_connect(ssl);
    char* bytes = nullptr;
    const long count = BIO_get_mem_data(out, &bytes);
    std::string said(bytes, static_cast<size_t>(count));
    SSL_free(ssl);
    SSL_CTX_free(context);
    return said;
  };
  for (int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const std::string said = first_word(version);
    ASSERT_GT(said.size(), 50u);
    const Heard heard(said);
    EXPECT_FALSE(heard.in());
    EXPECT_EQ(heard.over.status().code(), Code::unauthenticated) << heard.over.status().message();
    // An alert, nothing more.
    EXPECT_LE(heard.server->out.size(), 7u);
  }
  const Heard http("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  EXPECT_EQ(http.over.status().code(), Code::unauthenticated);
}

}  // namespace
}  // namespace dtg
