// Journals: what was appended comes back in order; a torn end is an end, any other damage is said to be one; and whatever a machine
// wakes up with after a power cut, all that was synced is there.
#include "checkpoint/journal.h"

#include <gtest/gtest.h>

#include "model_disk.h"

namespace dtg {
namespace {

std::vector<std::string> sample() {
  return {"one", "", std::string(100, 'x'), std::string(70 << 10, 'y'), "three", std::string(200 << 10, 'z'), "end"};
}

Status append(JournalWriter& journal, const std::string& record) {
  const std::string_view whole = record;
  const std::string_view pieces[] = {whole.substr(0, whole.size() / 3), whole.substr(whole.size() / 3)};
  return journal.append(pieces);
}

void fill(Disk& disk) {
  ASSERT_TRUE(disk.make_directories("/j").ok());
  auto journal = JournalWriter::begin(disk, "/j", 1);
  ASSERT_TRUE(journal.ok()) << journal.status().message();
  for (const std::string& record : sample()) ASSERT_TRUE(append(*journal.value(), record).ok());
  ASSERT_TRUE(journal.value()->sync().ok());
}

Result<std::vector<std::string>> read(Disk& disk) {
  std::vector<std::string> records;
  DTG_ASSIGN(const auto files, list_journals(disk, "/j"));
  for (const JournalFile& file : files) {
    const auto whole = read_journal(disk, file.path, [&](std::string_view record) {
      records.emplace_back(record);
      return Status();
    });
    DTG_TRY(whole.status());
  }
  return records;
}

// The disk with other bytes in the journal.
std::unique_ptr<ModelDisk> with(const std::string& bytes) {
  auto disk = std::make_unique<ModelDisk>();
  EXPECT_TRUE(disk->make_directories("/j").ok());
  auto file = disk->open_new("/j/journal-0000000000000001");
  EXPECT_TRUE(file.value()->append(bytes).ok());
  return disk;
}

std::string bytes_of(Disk& disk) { return disk.read_file("/j/journal-0000000000000001", 1 << 24).take(); }

TEST(Journal, WhatWasAppendedComesBack) {
  ModelDisk disk;
  EXPECT_TRUE(read(disk).value().empty());
  fill(disk);
  EXPECT_EQ(read(disk).value(), sample());
  const auto files = list_journals(disk, "/j").take();
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].first, 1u);
  EXPECT_EQ(JournalWriter::begin(disk, "/j", 1).status().code(), Code::already_exists);
}

TEST(Journal, CutAtEveryByteItEndsThere) {
  ModelDisk disk;
  fill(disk);
  const std::string bytes = bytes_of(disk);
  const auto all = sample();
  size_t last = 0;
  for (size_t length = 0; length<bytes.size(); length += length> 2000 && length + 2000 < bytes.size() ? 997 : 1) {
    const auto records = read(*with(bytes.substr(0, length)));
    ASSERT_TRUE(records.ok()) << length << ": " << records.status().message();
    ASSERT_LE(records.value().size(), all.size());
    ASSERT_GE(records.value().size(), last);
    last = records.value().size();
    for (size_t i = 0; i < last; ++i) ASSERT_EQ(records.value()[i], all[i]);
  }
}

// File systems may have made a file longer than what came to the disk of it.
TEST(Journal, ZerosAtTheEndAreNoRecords) {
  ModelDisk disk;
  fill(disk);
  EXPECT_EQ(read(*with(bytes_of(disk) + std::string(5000, '\0'))).value(), sample());
  EXPECT_EQ(read(*with(bytes_of(disk) + std::string(5000, '\0') + "x")).status().code(), Code::data_loss);
}

// As a power cut may leave it: the last records have holes, up to the end.
TEST(Journal, HolesAtTheEndAreNoRecords) {
  ModelDisk disk;
  ASSERT_TRUE(disk.make_directories("/j").ok());
  auto journal = JournalWriter::begin(disk, "/j", 1).take();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(append(*journal, "record number " + std::to_string(i)).ok());
  const std::string bytes = bytes_of(disk);
  for (size_t zeros = 1; zeros < bytes.size(); ++zeros) {
    const auto records = read(*with(bytes.substr(0, bytes.size() - zeros) + std::string(zeros, '\0')));
    ASSERT_TRUE(records.ok()) << zeros << ": " << records.status().message();
    for (size_t i = 0; i < records.value().size(); ++i) EXPECT_EQ(records.value()[i], "record number " + std::to_string(i));
  }
}

TEST(Journal, AnyOtherBitIsFound) {
  ModelDisk disk;
  ASSERT_TRUE(disk.make_directories("/j").ok());
  auto journal = JournalWriter::begin(disk, "/j", 1).take();
  for (const char* record : {"first", "second", "third"}) ASSERT_TRUE(append(*journal, record).ok());
  const std::string bytes = bytes_of(disk);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string bad = bytes;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    const auto records = read(*with(bad));
    // Of the last record nobody can say whether it ever was whole.
    if (records.ok()) {
      EXPECT_EQ(records.value(), (std::vector<std::string>{"first", "second"})) << bit;
      EXPECT_GE(bit / 8, bytes.size() - 5 - 4) << bit;
    } else {
      EXPECT_EQ(records.status().code(), Code::data_loss) << bit;
    }
  }
}

TEST(Journal, WhatWasSyncedOutlivesThePowerCut) {
  ModelDisk disk;
  ASSERT_TRUE(disk.make_directories("/j").ok());
  ASSERT_TRUE(disk.sync_directory("/").ok());
  auto journal = JournalWriter::begin(disk, "/j", 1).take();
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(append(*journal, "record " + std::to_string(i)).ok());
    if (i == 3) {
      ASSERT_TRUE(journal->sync().ok());
    }
  }
  const int states = disk.for_each_crash_state([](ModelDisk& left) {
    const auto records = read(left);
    ASSERT_TRUE(records.ok()) << records.status().message();
    ASSERT_GE(records.value().size(), 4u);
    for (size_t i = 0; i < records.value().size(); ++i) EXPECT_EQ(records.value()[i], "record " + std::to_string(i));
  });
  EXPECT_GT(states, 2);
}

}  // namespace
}  // namespace dtg
