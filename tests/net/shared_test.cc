// Shared memory between two ends, one of which is played by hand: what a peer may say about it and what not, what comes of a process
// that has no descriptors left, and that nothing stays behind.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "data_frame.h"
#include "net/endpoint.h"
#include "net/segment.h"
#include "net/unix_socket.h"
#include "scratch.h"
#include "wire/messages.h"

namespace dtg {
namespace {

constexpr size_t kSlotBytes = size_t{64} << 10;
constexpr uint32_t kSlots = 4;

// What the channel under test hears.
class Ear final : public Channel::Sink {
 public:
  Result<Channel::Landing> begin(const wire::Prefix& prefix, std::string_view) override {
    landed_.assign(prefix.payload_bytes, '?');
    return Channel::Landing{landed_.data(), this, lender_ != nullptr};
  }
  Status receive(const wire::Prefix& prefix, std::string_view) override {
    const std::lock_guard lock(mutex_);
    const void* const lent = lender_ ? lender_->lent() : nullptr;
    if (lent) heard_.push_back("lent " + std::string(static_cast<const char*>(lent), prefix.payload_bytes));
    else heard_.push_back(prefix.payload_bytes > 0 ? landed_ : std::string("-"));
    changed_.notify_all();
    return {};
  }
  void closed(const Status& reason) override {
    const std::lock_guard lock(mutex_);
    reason_ = reason;
    changed_.notify_all();
  }
  // From now on, on the loop, payloads of that channel may be lent.
  void borrow_from(const Channel* lender) { lender_ = lender; }
  Status end() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(30), [&] { return !reason_.ok(); });
    return reason_;
  }
  std::vector<std::string> frames(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(30), [&] { return heard_.size() >= count || !reason_.ok(); });
    EXPECT_TRUE(reason_.ok()) << reason_.message();
    return heard_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  const Channel* lender_ = nullptr;
  std::string landed_;
  std::vector<std::string> heard_;
  Status reason_;
};

// Without those that look at /proc, as this one does, and the loop's thread now and then.
size_t open_descriptors() {
  size_t count = 0;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code closed;
    const std::string what = std::filesystem::read_symlink(each, closed);
    count += !closed && !what.starts_with("/proc") ? 1 : 0;
  }
  return count;
}

size_t mapped_segments() {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("memfd:") != line.npos;
  return count;
}

Descriptor memfd(size_t bytes, int seals) {
  Descriptor made(::memfd_create("peer", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(made.get(), static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(::fcntl(made.get(), F_ADD_SEALS, seals), 0);
  return made;
}
Descriptor sealed(size_t bytes = kSlots * kSlotBytes) { return memfd(bytes, F_SEAL_SHRINK | F_SEAL_GROW); }

std::string announcement(uint64_t number = 1, uint32_t slots = kSlots, uint64_t slot_bytes = kSlotBytes) {
  return wire::make_frame(wire::Segment{number, slots, slot_bytes});
}

// A data frame whose payload is said to lie in a slot.
std::string in_slot(uint32_t slot, size_t bytes) {
  std::string head = data_frame(std::string(bytes, 'x'))->head;
  wire::place_in_slot(head, slot);
  return head;
}

class Shared : public ::testing::Test {
 protected:
  Shared() {
    ::chmod(scratch_.path().c_str(), 0700);
    loop_ = UvLoop::start(system_clock()).take();
    path_ = scratch_ / "socket";
    auto listener = listen(*loop_, Address::parse("unix:" + path_).take(), {}, {}, [this](Ref<Channel> channel) {
      channel->open(&ear_);
      const std::lock_guard lock(mutex_);
      channel_ = std::move(channel);
      changed_.notify_all();
    });
    EXPECT_TRUE(listener.ok()) << listener.status().message();
    listener_ = listener.take();
    EXPECT_TRUE(loop_->call([] {}));
    before_ = open_descriptors();
  }
  ~Shared() override {
    if (channel_) part();
    loop_->call([&] { listener_ = nullptr; });
    EXPECT_EQ(budget_.used(), 0);
  }

  // The peer connects, and has been let in.
  void meet(bool shares = true) {
    peer_ = connect_unix(path_).take();
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(30), [&] { return channel_ != nullptr; }));
    loop_->call([&] {
      channel_->trust();
      if (shares) channel_->share_memory(budget_);
    });
  }
  // Both ends are gone, and with them everything that was between them.
  void part() {
    peer_ = Descriptor();
    loop_->call([&] { channel_->close(); });
    channel_ = nullptr;
    loop_->call([] {});
    EXPECT_EQ(open_descriptors(), before_);
    EXPECT_EQ(mapped_segments(), 0u);
  }
  void say(std::string_view words, const std::vector<int>& descriptors = {}) {
    iovec piece{const_cast<char*>(words.data()), words.size()};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    std::vector<char> control(CMSG_SPACE(descriptors.size() * sizeof(int)));
    if (!descriptors.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* const head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
      std::memcpy(CMSG_DATA(head), descriptors.data(), descriptors.size() * sizeof(int));
    }
    ASSERT_EQ(::sendmsg(peer_.get(), &message, MSG_NOSIGNAL), static_cast<ssize_t>(words.size()));
  }
  // The next frame that the peer is sent, without its payload; and a descriptor, if one comes with it.
  wire::Prefix listen_for(std::string* header, Descriptor* descriptor = nullptr) {
    std::string bytes = take(wire::kPrefixBytes, descriptor);
    auto prefix = wire::read_prefix(bytes, {});
    EXPECT_TRUE(prefix.ok()) << prefix.status().message();
    *header = take(prefix.value().header_bytes, descriptor);
    return prefix.value();
  }
  std::string take(size_t bytes, Descriptor* descriptor = nullptr) {
    std::string all(bytes, '\0');
    for (size_t at = 0; at < bytes;) {
      iovec piece{all.data() + at, bytes - at};
      alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
      msghdr message{};
      message.msg_iov = &piece;
      message.msg_iovlen = 1;
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      pollfd ready{peer_.get(), POLLIN, 0};
      if (::poll(&ready, 1, 30'000) != 1) ADD_FAILURE() << "nothing came";
      const ssize_t got = ::recvmsg(peer_.get(), &message, MSG_CMSG_CLOEXEC);
      if (got <= 0) {
        ADD_FAILURE() << "the end came";
        break;
      }
      at += static_cast<size_t>(got);
      if (const cmsghdr* const head = CMSG_FIRSTHDR(&message)) {
        int number = -1;
        std::memcpy(&number, CMSG_DATA(head), sizeof number);
        Descriptor came(number);
        if (descriptor) *descriptor = std::move(came);
      }
    }
    return all;
  }
  // What the channel announces before its first large payload.
  wire::Segment announced(Descriptor* came) {
    std::string header;
    EXPECT_EQ(listen_for(&header, came).kind, wire::Kind::segment);
    wire::Segment segment;
    EXPECT_TRUE(wire::decode(header, segment).ok());
    return segment;
  }
  // The peer has it, and all slots are the channel's.
  void accept(const wire::Segment& segment) {
    wire::Release there{segment.number, {}};
    for (uint32_t i = 0; i < segment.slots; ++i) there.slots.push_back(i);
    say(wire::make_frame(there));
    say(wire::make_frame(wire::Heartbeat{1}));
    ear_.frames(1);
  }

  Scratch scratch_;
  std::string path_;
  std::unique_ptr<UvLoop> loop_;
  std::unique_ptr<Listener> listener_;
  MemoryBudget budget_{int64_t{64} << 20};
  Ear ear_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Ref<Channel> channel_;
  Descriptor peer_;
  size_t before_ = 0;
};

// What a peer of the same user might try. Each ends the conversation with an error that says what was wrong, and leaves nothing.
struct Attack {
  const char* name;
  const char* expected;  // in the message
  std::function<void(std::function<void(std::string_view, const std::vector<int>&)>)> words;
  bool agreed = true;
};

class Hostile : public Shared, public ::testing::WithParamInterface<Attack> {};

TEST_P(Hostile, IsRefused) {
  meet(GetParam().agreed);
  GetParam().words([this](std::string_view words, const std::vector<int>& descriptors) { say(words, descriptors); });
  const Status end = ear_.end();
  EXPECT_FALSE(end.ok());
  EXPECT_NE(end.message().find(GetParam().expected), std::string::npos) << end.message();
  part();
}

using Say = std::function<void(std::string_view, const std::vector<int>&)>;

const Attack kAttacks[] = {
    {"no_descriptor", "did not come", [](const Say& say) { say(announcement(), {}); }},
    {"shorter", "but 262144 were announced", [](const Say& say) { say(announcement(), {sealed(4096).get()}); }},
    {"longer", "but 262144 were announced", [](const Say& say) { say(announcement(), {sealed(1 << 20).get()}); }},
    {"empty", "but 262144 were announced", [](const Say& say) { say(announcement(), {sealed(0).get()}); }},
    {"not_sealed", "not sealed", [](const Say& say) { say(announcement(), {memfd(kSlots * kSlotBytes, 0).get()}); }},
    {"may_shrink", "not sealed", [](const Say& say) { say(announcement(), {memfd(kSlots * kSlotBytes, F_SEAL_GROW).get()}); }},
    {"may_grow", "not sealed", [](const Say& say) { say(announcement(), {memfd(kSlots * kSlotBytes, F_SEAL_SHRINK).get()}); }},
    {"a_file", "it is no memfd",
     [](const Say& say) {
       const Scratch folder;
       const Descriptor file(::open((folder / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
       EXPECT_EQ(::ftruncate(file.get(), kSlots * kSlotBytes), 0);
       say(announcement(), {file.get()});
     }},
    {"a_device", "it is no memfd",
     [](const Say& say) { say(announcement(), {Descriptor(::open("/dev/zero", O_RDWR | O_CLOEXEC)).get()}); }},
    {"a_folder", "it is no memfd", [](const Say& say) { say(announcement(), {Descriptor(::open("/", O_RDONLY | O_CLOEXEC)).get()}); }},
    {"two_descriptors", "2 descriptors came at once",
     [](const Say& say) {
       const Descriptor one = sealed(), two = sealed();
       say(announcement(), {one.get(), two.get()});
     }},
    {"more_than_are_taken", "descriptors came at once",
     [](const Say& say) {
       const Descriptor one = sealed();
       say(announcement(), std::vector<int>(60, one.get()));
     }},
    {"one_too_early", "which needs none", [](const Say& say) { say(wire::make_frame(wire::Heartbeat{1}), {sealed().get()}); }},
    {"one_with_a_return", "which needs none",
     [](const Say& say) {
       say(wire::make_frame(wire::Release{1, {}}), {sealed().get()});
     }},
    {"one_with_an_end", "is gone", [](const Say& say) { say(announcement(1, 0, 0), {sealed().get()}); }},
    {"too_many_slots", "up to 64", [](const Say& say) { say(announcement(1, 65, 4096), {sealed(65 * 4096).get()}); }},
    {"slots_without_room", "up to 64", [](const Say& say) { say(announcement(1, 4, 0), {sealed(0).get()}); }},
    {"slots_too_large", "up to 64", [](const Say& say) { say(announcement(1, 1, 2 << 20), {sealed(2 << 20).get()}); }},
    {"slots_that_overflow", "up to 64", [](const Say& say) { say(announcement(1, 4, uint64_t{1} << 62), {sealed(0).get()}); }},
    {"the_same_again", "a number that is over",
     [](const Say& say) {
       say(announcement(), {sealed().get()});
       say(announcement(), {sealed().get()});
     }},
    {"a_slot_of_nothing", "slot 0 of shared memory, which has 0 slots", [](const Say& say) { say(in_slot(0, 4096), {}); }},
    {"a_slot_beyond", "slot 4 of shared memory",
     [](const Say& say) {
       say(announcement(), {sealed().get()});
       say(in_slot(4, 4096), {});
     }},
    {"a_slot_far_beyond", "slot 4294967295 of shared memory",
     [](const Say& say) {
       say(announcement(), {sealed().get()});
       say(in_slot(UINT32_MAX, 4096), {});
     }},
    {"more_than_a_slot", "65537 bytes were said to lie in slot 3",
     [](const Say& say) {
       say(announcement(), {sealed().get()});
       say(in_slot(3, kSlotBytes + 1), {});
     }},
    {"a_slot_after_the_end", "which has 0 slots",
     [](const Say& say) {
       say(announcement(), {sealed().get()});
       say(announcement(2, 0, 0), {});
       say(in_slot(0, 4096), {});
     }},
    {"not_agreed", "was not agreed on", [](const Say& say) { say(announcement(), {sealed().get()}); }, false},
    {"a_slot_not_agreed", "was not agreed on", [](const Say& say) { say(in_slot(0, 4096), {}); }, false},
    {"a_return_not_agreed", "was not agreed on",
     [](const Say& say) {
       say(wire::make_frame(wire::Release{0, {0}}), {});
     },
     false},
};

INSTANTIATE_TEST_SUITE_P(Peers, Hostile, ::testing::ValuesIn(kAttacks), [](const auto& attack) { return std::string(attack.param.name); });

// What the seals are for: nobody makes it shorter once it is accepted, so it can be read to its end.
TEST_F(Shared, CannotBeCutUnderAReader) {
  meet();
  const Descriptor mine = sealed();
  char* const memory = static_cast<char*>(::mmap(nullptr, kSlots * kSlotBytes, PROT_READ | PROT_WRITE, MAP_SHARED, mine.get(), 0));
  ASSERT_NE(memory, MAP_FAILED);
  say(announcement(), {mine.get()});
  std::string header;
  EXPECT_EQ(listen_for(&header).kind, wire::Kind::release);
  EXPECT_EQ(::ftruncate(mine.get(), 0), -1);
  EXPECT_EQ(::fallocate(mine.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kSlots * kSlotBytes), 0);
  say(in_slot(kSlots - 1, kSlotBytes));
  EXPECT_EQ(ear_.frames(1)[0], std::string(kSlotBytes, '\0'));
  // What was taken out is the receiver's alone.
  std::memset(memory, 'a', kSlots * kSlotBytes);
  say(in_slot(0, kSlotBytes));
  const std::string first = ear_.frames(2)[1];
  std::memset(memory, 'b', kSlots * kSlotBytes);
  EXPECT_EQ(first, std::string(kSlotBytes, 'a'));
  EXPECT_EQ(ear_.frames(2)[1], std::string(kSlotBytes, 'a'));
  ::munmap(memory, kSlots * kSlotBytes);
}

// A sink that reads while it receives gets what lies in a slot where it lies, once, and the slot goes back afterwards; what came through
// the socket lands as ever.
TEST_F(Shared, LendsWhatNeedNotBeMoved) {
  meet();
  loop_->call([&] { ear_.borrow_from(channel_.get()); });
  const Descriptor mine = sealed();
  char* const memory = static_cast<char*>(::mmap(nullptr, kSlots * kSlotBytes, PROT_READ | PROT_WRITE, MAP_SHARED, mine.get(), 0));
  ASSERT_NE(memory, MAP_FAILED);
  std::memset(memory, 'a', kSlots * kSlotBytes);
  say(announcement(), {mine.get()});
  std::string header;
  EXPECT_EQ(listen_for(&header).kind, wire::Kind::release);
  say(in_slot(2, kSlotBytes));
  EXPECT_EQ(ear_.frames(1)[0], "lent " + std::string(kSlotBytes, 'a'));
  EXPECT_EQ(listen_for(&header).kind, wire::Kind::release);
  wire::Release back;
  ASSERT_TRUE(wire::decode(header, back).ok());
  EXPECT_EQ(back.slots, std::vector<uint32_t>{2});
  loop_->call([&] { EXPECT_EQ(channel_->lent(), nullptr); });
  const std::string plain(1000, 'p');
  say(data_frame(plain)->head + plain);
  EXPECT_EQ(ear_.frames(2)[1], plain);
  ::munmap(memory, kSlots * kSlotBytes);
}

// The other way round: what the channel makes is sealed, and a peer cannot have slots back that it did not get.
TEST_F(Shared, WhatItMakes) {
  meet();
  const std::string payload(wire::kChunkBytes, 'p');
  channel_->send(data_frame(payload));
  Descriptor came;
  const wire::Segment segment = announced(&came);
  std::string header;
  struct stat found {};
  ASSERT_EQ(::fstat(came.get(), &found), 0);
  EXPECT_EQ(static_cast<uint64_t>(found.st_size), segment.slots * segment.slot_bytes);
  EXPECT_EQ(::fcntl(came.get(), F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  EXPECT_EQ(::ftruncate(came.get(), 0), -1);
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, came.get(), 0), MAP_FAILED);
  // Until it is told that the segment is there it uses the socket.
  wire::Prefix prefix = listen_for(&header);
  EXPECT_FALSE(prefix.in_slot);
  EXPECT_EQ(take(prefix.payload_bytes), payload);
  accept(segment);
  channel_->send(data_frame(payload));
  prefix = listen_for(&header);
  EXPECT_TRUE(prefix.in_slot);
  EXPECT_EQ(prefix.slot, segment.slots - 1);
  const void* const memory = ::mmap(nullptr, segment.slots * segment.slot_bytes, PROT_READ, MAP_SHARED, came.get(), 0);
  ASSERT_NE(memory, MAP_FAILED);
  EXPECT_EQ(std::memcmp(static_cast<const char*>(memory) + prefix.slot * segment.slot_bytes, payload.data(), payload.size()), 0);
  ::munmap(const_cast<void*>(memory), segment.slots * segment.slot_bytes);
  // Of what is long over nothing is taken amiss; of what it has and never had, it is.
  say(wire::make_frame(wire::Release{segment.number + 1, {0}}));
  say(wire::make_frame(wire::Release{segment.number, {prefix.slot}}));
  say(wire::make_frame(wire::Release{segment.number, {prefix.slot}}));
  EXPECT_NE(ear_.end().message().find("which it does not have"), std::string::npos) << ear_.end().message();
  came = Descriptor();
  part();
}

// All slots are out and none comes back: what waits leaves as soon as one does, and words overtake it.
TEST_F(Shared, WaitsForSlots) {
  meet();
  const std::string payload(wire::kChunkBytes, 'p');
  channel_->send(data_frame(payload));
  Descriptor came;
  const wire::Segment segment = announced(&came);
  std::string header;
  EXPECT_EQ(take(listen_for(&header).payload_bytes), payload);
  accept(segment);
  int owner = 0, taken = 0;
  for (uint32_t i = 0; i < segment.slots + 2; ++i) {
    auto frame = data_frame(payload, &owner);
    frame->taken = [&] { ++taken; };
    channel_->send(std::move(frame));
  }
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < segment.slots; ++i) {
    const wire::Prefix prefix = listen_for(&header);
    EXPECT_TRUE(prefix.in_slot);
    out.push_back(prefix.slot);
  }
  channel_->send(wire::make_frame(wire::Heartbeat{7}));
  EXPECT_EQ(listen_for(&header).kind, wire::Kind::heartbeat);
  say(wire::make_frame(wire::Release{segment.number, {out[2]}}));
  const wire::Prefix next = listen_for(&header);
  EXPECT_EQ(next.slot, out[2]);
  // The last of them is taken back by its owner: it never leaves.
  loop_->call([&] {
    EXPECT_EQ(taken, static_cast<int>(segment.slots) + 1);
    channel_->let_go(&owner);
    EXPECT_EQ(taken, static_cast<int>(segment.slots) + 2);
  });
  say(wire::make_frame(wire::Release{segment.number, {out[1]}}));
  channel_->send(wire::make_frame(wire::Heartbeat{8}));
  EXPECT_EQ(listen_for(&header).kind, wire::Kind::heartbeat);
}

class FewDescriptors {
 public:
  FewDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit now = before_;
    const Descriptor next(::dup(0));
    now.rlim_cur = static_cast<rlim_t>(next.get());
    ::setrlimit(RLIMIT_NOFILE, &now);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

// A process without room for one more descriptor goes on over the socket, in both directions.
TEST_F(Shared, NoDescriptorsLeft) {
  meet();
  const Descriptor mine = sealed();
  const std::string payload(wire::kChunkBytes, 'p');
  {
    const FewDescriptors few;
    ASSERT_EQ(::dup(0), -1);
    say(announcement(), {mine.get()});
    say(wire::make_frame(wire::Heartbeat{1}));
    EXPECT_EQ(ear_.frames(1).size(), 1u);
    channel_->send(data_frame(payload));
    std::string header;
    const wire::Prefix prefix = listen_for(&header);
    EXPECT_EQ(prefix.kind, wire::Kind::data);
    EXPECT_FALSE(prefix.in_slot);
    EXPECT_EQ(take(prefix.payload_bytes), payload);
  }
  // It is tried again later.
  loop_->call([&] { channel_->tidy(); });
  channel_->send(data_frame(payload));
  std::string header;
  Descriptor came;
  EXPECT_EQ(listen_for(&header, &came).kind, wire::Kind::segment);
  EXPECT_GE(came.get(), 0);
  loop_->call([] {});  // TSan does not see that what came through the socket has left the sender's memory
}

// Nor is a limit of files that is smaller than the memory, which would end the process.
TEST_F(Shared, FilesMayNotBeAsLarge) {
  meet();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit few{4096, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &few), 0);
  const std::string payload(wire::kChunkBytes, 'p');
  Descriptor mine;
  EXPECT_FALSE(Segment::make(wire::kChunkBytes, &mine).ok());
  channel_->send(data_frame(payload));
  std::string header;
  const wire::Prefix prefix = listen_for(&header);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_FALSE(prefix.in_slot);
  EXPECT_EQ(take(prefix.payload_bytes), payload);
  loop_->call([] {});  // as above
}

// A budget that is used up is no error either.
TEST_F(Shared, NoMemoryLeft) {
  meet();
  ASSERT_TRUE(budget_.reserve(budget_.limit(), "all").ok());
  const std::string payload(wire::kChunkBytes, 'p');
  channel_->send(data_frame(payload));
  std::string header;
  const wire::Prefix prefix = listen_for(&header);
  EXPECT_EQ(prefix.kind, wire::Kind::data);
  EXPECT_FALSE(prefix.in_slot);
  EXPECT_EQ(take(prefix.payload_bytes), payload);
  budget_.release(budget_.limit());
  loop_->call([] {});  // as above
}

// One segment goes and the next comes, and both words are read at once.
TEST_F(Shared, AnEndAndABeginningInOneRead) {
  meet();
  const Descriptor first = sealed(), second = sealed();
  say(announcement(), {first.get()});
  say(announcement(2, 0, 0) + announcement(3) + wire::make_frame(wire::Heartbeat{1}), {second.get()});
  EXPECT_EQ(ear_.frames(1).size(), 1u);
}

// The conversation is cut at every byte of an announcement, with its descriptor: nothing stays.
TEST_F(Shared, CutAnywhere) {
  const std::string words = announcement() + in_slot(0, 4096);
  for (size_t length = 1; length < words.size(); ++length) {
    meet();
    say(std::string_view(words).substr(0, length), {sealed().get()});
    part();
  }
}

}  // namespace
}  // namespace dtg
