// Keys in files: who may own them and read them, and that each pair of tasks has its own.
#include "net/job_key.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "net/credentials.h"
#include "scratch.h"

namespace dtg {
namespace {

std::string text_of(const JobKey& key) { return {key.bytes().data(), key.bytes().size()}; }

TEST(JobKey, MadeOnceAndReadBack) {
  Scratch scratch;
  const std::string path = scratch / "job.key";
  ASSERT_TRUE(keygen(path).ok());
  struct stat found {};
  ASSERT_EQ(::stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600u);
  EXPECT_EQ(found.st_size, 32);
  auto key = read_key(path);
  ASSERT_TRUE(key.ok()) << key.status().message();
  EXPECT_EQ(text_of(*key.value()), scratch.read("job.key"));
  // A key that is in use is not overwritten.
  EXPECT_EQ(keygen(path).code(), Code::already_exists);
  EXPECT_EQ(text_of(*read_key(path).take()), text_of(*key.value()));
  ASSERT_TRUE(keygen(scratch / "other.key").ok());
  EXPECT_NE(text_of(*read_key(scratch / "other.key").take()), text_of(*key.value()));
  // Nothing is left beside them.
  EXPECT_EQ(system_disk().list(scratch.path()).take().size(), 2u);
}

TEST(JobKey, BadFilesAreRefused) {
  Scratch scratch;
  const std::string path = scratch / "job.key";
  ASSERT_TRUE(keygen(path).ok());
  const std::string secret = scratch.read("job.key");
  const auto refused = [&](const std::string& file, Code code) {
    const Status status = read_key(file).status();
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(status.message().find(file), std::string::npos) << status.message();
    EXPECT_EQ(status.message().find(secret), std::string::npos);
  };
  refused(scratch / "none", Code::not_found);
  for (mode_t mode : {0640u, 0604u, 0660u, 0644u, 0610u}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    refused(path, Code::permission_denied);
  }
  ASSERT_EQ(::chmod(path.c_str(), 0400), 0);
  EXPECT_TRUE(read_key(path).ok());
  ASSERT_EQ(::symlink(path.c_str(), (scratch / "link").c_str()), 0);
  refused(scratch / "link", Code::permission_denied);
  refused(scratch.path(), Code::permission_denied);
  ASSERT_EQ(::mkfifo((scratch / "pipe").c_str(), 0600), 0);
  refused(scratch / "pipe", Code::permission_denied);
  for (const char* name : {"short", "long"}) {
    const std::string file = scratch.write(name, std::string(name[0] == 's' ? 31 : 33, 'x'));
    ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
    refused(file, Code::invalid_argument);
  }
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
    refused(path, Code::permission_denied);
  }
}

TEST(JobKey, ThisUsersKeyIsFoundByAll) {
  Scratch scratch;
  std::vector<std::string> found(8);
  std::vector<std::thread> threads;
  for (std::string& text : found) {
    threads.emplace_back([&] {
      if (auto key = local_key(scratch.path()); key.ok()) text = text_of(*key.value());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found[0].size(), 32u);
  for (const std::string& text : found) EXPECT_EQ(text, found[0]);
  ASSERT_EQ(::chmod((scratch / "dtg").c_str(), 0755), 0);
  EXPECT_EQ(local_key(scratch.path()).status().code(), Code::permission_denied);
}

TEST(JobKey, EachOrderedPairHasItsOwn) {
  std::array<char, JobKey::kBytes> bytes{};
  const Ref<JobKey> key = JobKey::make(bytes).take();
  bytes[31] = 1;
  const Ref<JobKey> other = JobKey::make(bytes).take();
  const auto derived = [](const JobKey& from, const char* client, const char* server) {
    PairKey pair;
    EXPECT_TRUE(derive_pair_key(from, client, server, &pair));
    return std::string(reinterpret_cast<const char*>(pair.bytes.data()), pair.bytes.size());
  };
  const std::string ab = derived(*key, "a", "b");
  EXPECT_EQ(derived(*key, "a", "b"), ab);
  EXPECT_NE(derived(*key, "b", "a"), ab);
  EXPECT_NE(derived(*key, "a", "c"), ab);
  EXPECT_NE(derived(*other, "a", "b"), ab);
  EXPECT_EQ(ab.find(std::string(8, '\0')), std::string::npos);
}

TEST(Credentials, WhatAnAddressNeeds) {
  Scratch scratch;
  SecurityOptions options;
  options.runtime_dir = scratch.path();
  const auto find = [&](const char* address) { return credentials_for(Address::parse(address).take(), options, "", ""); };
  EXPECT_FALSE(find("unix:/a").take().key);
  const Credentials local = find("127.0.0.1:0").take();
  EXPECT_TRUE(local.key && local.local);
  for (const char* beyond : {"0.0.0.0:1", "10.0.0.1:1", "[::]:1", "host.example:1"}) {
    const Status status = find(beyond).status();
    EXPECT_EQ(status.code(), Code::failed_precondition);
    EXPECT_NE(status.message().find("dtg keygen job.key"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("key_file"), std::string::npos) << status.message();
  }
  options.key_file = scratch / "job.key";
  EXPECT_EQ(find("10.0.0.1:1").status().code(), Code::not_found);
  ASSERT_TRUE(keygen(options.key_file).ok());
  const Credentials given = find("10.0.0.1:1").take();
  EXPECT_TRUE(given.key && !given.local);
}

}  // namespace
}  // namespace dtg
