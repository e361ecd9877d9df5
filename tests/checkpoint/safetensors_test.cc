// Safetensors: round trips, hostile headers, damage at every byte, atomic writing. Where there is a Python with
// tests/requirements.txt, the reference library reads ours and writes what we read.
#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "judge.h"
#include "passing_disk.h"
#include "scratch.h"

namespace dtg {
namespace {

template <class T>
Tensor tensor(std::initializer_list<int64_t> dims, std::vector<T> values) {
  return Tensor::of<T>(Shape::of(dims), std::span<const T>(values)).take();
}

std::vector<NamedTensor> samples() {
  std::vector<NamedTensor> items;
  items.push_back({"dense/kernel", tensor<float>({2, 3}, {1, 2, 3, 4, 5, -0.5f})});
  items.push_back({"step", tensor<int64_t>({}, {1234567890123})});
  items.push_back({"bytes", tensor<uint8_t>({3}, {1, 2, 255})});
  items.push_back({"empty", tensor<double>({0, 4}, {})});
  items.push_back({"half", tensor<Half>({2}, {Half(1.5f), Half(-2.0f)})});
  items.push_back({"brain", tensor<BFloat16>({1, 2}, {BFloat16(1.5f), BFloat16(3.0f)})});
  items.push_back({"wide", tensor<double>({2}, {0.1, -1e300})});
  items.push_back({"odd name \"\xc3\xa9\"", tensor<int32_t>({1}, {-7})});
  items.push_back({"small", tensor<int16_t>({2}, {-1, 300})});
  items.push_back({"unsigned", tensor<uint32_t>({1}, {4000000000u})});
  Tensor flags = Tensor::allocate(DType::boolean, Shape::of({3})).take();
  std::memcpy(flags.data(), "\x01\x00\x01", 3);
  items.push_back({"flags", flags});
  return items;
}

void expect_equal(const Tensor& a, const Tensor& b, const std::string& name) {
  ASSERT_EQ(a.text(), b.text()) << name;
  EXPECT_EQ(std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())), 0) << name;
}

// A file from a header's text and data.
std::string file_of(const std::string& json, const std::string& data) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(uint64_t{json.size()} >> shift & 0xffu);
  return bytes + json + data;
}

Status problem(const Scratch& scratch, const std::string& bytes) {
  return read_tensors(system_disk(), scratch.write("f.safetensors", bytes)).status();
}

// A limit of files (ulimit -f) is an error; by itself it would end the process.
TEST(Safetensors, NoLargerThanTheProcessMayWrite) {
  const Scratch scratch;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit few{1024, before.rlim_max};
  const std::vector<NamedTensor> items = {{"large", tensor<float>({1000}, std::vector<float>(1000))}};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &few), 0);
  const Status refused = write_tensors(system_disk(), scratch / "f.safetensors", items);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(refused.code(), Code::resource_exhausted) << refused.message();
  const Status written = write_tensors(system_disk(), scratch / "f.safetensors", items);
  EXPECT_TRUE(written.ok()) << written.message();
}

TEST(Safetensors, RoundTrip) {
  const Scratch scratch;
  const auto items = samples();
  const std::string path = scratch / "model.safetensors";
  ASSERT_TRUE(write_tensors(system_disk(), path, items, {{"format", "pt"}, {"made by", "a \"test\""}}).ok());
  EXPECT_EQ(system_disk().list(scratch.path()).value().size(), 1u);
  auto read = read_tensors(system_disk(), path, {.require_checksum = true});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read.value().tensors.size(), items.size());
  for (const NamedTensor& item : items) {
    const Tensor* const found = read.value().find(item.name);
    ASSERT_NE(found, nullptr) << item.name;
    expect_equal(*found, item.tensor, item.name);
  }
  EXPECT_EQ(read.value().find("nothing"), nullptr);
  EXPECT_EQ(read.value().metadata, (TextPairs{{"format", "pt"}, {"made by", "a \"test\""}}));

  auto header = read_tensors_header(system_disk(), path);
  ASSERT_TRUE(header.ok());
  EXPECT_TRUE(header.value().has_checksum);
  for (const TensorEntry& entry : header.value().entries) {
    EXPECT_EQ(entry.begin % std::max<int64_t>(1, dtype_size(entry.dtype)), 0) << entry.name;
  }
  // Nothing in it is fine too.
  ASSERT_TRUE(write_tensors(system_disk(), path, {}).ok());
  EXPECT_EQ(read_tensors(system_disk(), path).value().tensors.size(), 0u);
}

TEST(Safetensors, RefusesToWriteWhatCannotBeRead) {
  const Scratch scratch;
  const Tensor one = tensor<float>({}, {1});
  const auto write = [&](std::vector<NamedTensor> items, TextPairs metadata = {}) {
    return write_tensors(system_disk(), scratch / "x", items, metadata).code();
  };
  EXPECT_EQ(write({{"a", one}, {"a", one}}), Code::invalid_argument);
  EXPECT_EQ(write({{"__metadata__", one}}), Code::invalid_argument);
  EXPECT_EQ(write({{"\xff", one}}), Code::invalid_argument);
  EXPECT_EQ(write({{"a", Tensor()}}), Code::invalid_argument);
  EXPECT_EQ(write({{"a", Tensor::allocate(DType::c128, Shape()).take()}}), Code::unimplemented);
  EXPECT_EQ(write({{"a", one}}, {{"k", "1"}, {"k", "2"}}), Code::invalid_argument);
  EXPECT_EQ(write({{"a", one}}, {{"dtg.crc32c", "0"}}), Code::invalid_argument);
  EXPECT_FALSE(system_disk().exists(scratch / "x").value());
}

TEST(Safetensors, EveryChangedByteIsNoticed) {
  const Scratch scratch;
  const std::string path = scratch / "f.safetensors";
  const std::vector<NamedTensor> items = {{"w", tensor<float>({2, 2}, {1, 2, 3, 4})}, {"b", tensor<uint8_t>({5}, {1, 2, 3, 4, 5})}};
  ASSERT_TRUE(write_tensors(system_disk(), path, items, {{"note", "x"}}).ok());
  const std::string good = scratch.read("f.safetensors");
  const size_t spaces_from = good.find_last_not_of(' ', 8 + static_cast<unsigned char>(good[0]) - 1) + 1;
  int silent = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    for (const int flip : {0x01, 0x20, 0x80}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ flip);
      auto read = read_tensors(system_disk(), scratch.write("bad", bad), {.require_checksum = true});
      // White space for white space is the one change without meaning.
      if (read.ok()) ++silent;
      if (i < spaces_from || i >= 8 + static_cast<size_t>(static_cast<unsigned char>(good[0]))) {
        EXPECT_FALSE(read.ok()) << "byte " << i << " flip " << flip;
      }
    }
  }
  EXPECT_LE(silent, 8);
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(read_tensors(system_disk(), scratch.write("bad", good.substr(0, length))).ok()) << length;
  }
  EXPECT_EQ(read_tensors(system_disk(), scratch.write("bad", good + "x")).status().code(), Code::data_loss);
}

TEST(Safetensors, HostileHeadersAreRefused) {
  const Scratch scratch;
  const std::string four(4, '\0'), eight(8, '\0');
  const auto refused = [&](const std::string& json, const std::string& data, Code code, const char* says) {
    const Status status = problem(scratch, file_of(json, data));
    EXPECT_EQ(status.code(), code) << json << " " << status.message();
    EXPECT_NE(status.message().find(says), std::string::npos) << status.message();
  };
  const Code bad = Code::data_loss;
  refused(R"({"a":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}})", "x", Code::unimplemented, "\"F4\"");
  refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", eight, bad, "begins at byte 4");
  refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})", eight, bad,
          "begins");
  refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", four, bad,
          "begins");
  refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", four, bad, "needs another number");
  refused(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", four, bad, "dimension");
  refused(R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", four, bad, "dimension");
  refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", four, bad, "backwards");
  refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})", four, bad, "backwards");
  refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", four, bad, "pair");
  refused(R"({"a":{"dtype":"F32","shape":[1]}})", four, bad, "pair");
  refused(R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", four, bad, "shape");
  refused(R"({"a":{"shape":[1],"data_offsets":[0,4]}})", four, bad, "dtype");
  refused(R"({"a":7})", four, bad, "dtype");
  refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[0],"data_offsets":[4,4]}})", four, bad,
          "twice");
  refused(R"({"__metadata__":{"k":1}})", "", bad, "strings");
  refused(R"({"__metadata__":[]})", "", bad, "object");
  refused(R"({"__metadata__":{"dtg.crc32c":"xyz"}})", "", bad, "hexadecimal");
  refused(R"({"__metadata__":{"dtg.crc32c":"00"}})", "", bad, "digits");
  refused(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", "", bad, "shape");
  refused(R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})", four, bad, "rank");
  refused(R"({"a":{"dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,0]}})", "", bad, "needs another number");
  refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551616]}})", four, bad, "pair");
  refused(R"({"a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})", "\x02", bad, "neither 0 nor 1");
  refused(R"( {})", "", bad, "does not start");
  refused(R"([])", "", bad, "does not start");
  refused(R"({"a":)", "", bad, "JSON");
  refused(R"({"a":)" + std::string(5000, '[') + "}", "", bad, "nested");
  refused(R"({})", "x", bad, "follow");
  refused(R"({"a":{"dtype":"F32","shape":[1000000000],"data_offsets":[0,4000000000]}})", four, bad, "short");
  const Status huge = problem(scratch, std::string("\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10));
  EXPECT_NE(huge.message().find("announced"), std::string::npos) << huge.message();
  // Announced, not sent: no 100 MB are set aside for it.
  EXPECT_EQ(problem(scratch, std::string("\x00\xe1\xf5\x05\x00\x00\x00\x00{}", 10)).code(), Code::data_loss);
}

TEST(Safetensors, ForeignFilesAndBudget) {
  const Scratch scratch;
  const std::string path = scratch.write(
      "theirs",
      file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"new":1},"z":{"dtype":"I8","shape":[0],"data_offsets":[8,8]}}  )",
              std::string(8, '\0')));
  auto read = read_tensors(system_disk(), path);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read.value().find("a")->text(), "float32[2]");
  EXPECT_EQ(read_tensors(system_disk(), path, {.require_checksum = true}).status().code(), Code::failed_precondition);
  MemoryBudget tight(7), enough(8);
  EXPECT_EQ(read_tensors(system_disk(), path, {.budget = &tight}).status().code(), Code::resource_exhausted);
  EXPECT_TRUE(read_tensors(system_disk(), path, {.budget = &enough}).ok());
  EXPECT_EQ(enough.used(), 0);
  EXPECT_EQ(read_tensors(system_disk(), scratch / "none").status().code(), Code::not_found);
}

// A folder that is there but takes no file is not called absent, nor is a file a folder.
TEST(Safetensors, FoldersWhereNoFileCanBeMade) {
  const Scratch scratch;
  const std::vector<NamedTensor> nothing;
  const auto refused = [&](const std::string& path, Code code, const std::string& part) {
    const Status status = write_tensors(system_disk(), path, nothing, {});
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  };
  refused("/proc/w.st", Code::permission_denied, "no file may be made in the folder \"/proc\"");
  refused(scratch.write("file", "text") + "/w.st", Code::failed_precondition, "is no folder");
  refused(scratch / "none/w.st", Code::not_found, "there is no folder");
  const Status made = system_disk().make_directories("/proc/none/sets");
  EXPECT_EQ(made.code(), Code::permission_denied) << made.message();
  EXPECT_NE(made.message().find("nothing can be made in \"/proc\""), std::string::npos) << made.message();
}

// The real disk until call number `fail_at` of those that write; that one and nothing else fails.
class FailingDisk final : public PassingDisk {
 public:
  explicit FailingDisk(int fail_at) : left_(fail_at) {}
  bool failed() const { return left_ < 0; }
  struct Writer final : FileWriter {
    Writer(std::unique_ptr<FileWriter> file, FailingDisk& disk) : file_(std::move(file)), disk_(disk) {}
    Status append(std::string_view bytes) override {
      DTG_TRY(disk_.step());
      return file_->append(bytes);
    }
    Status reserve(int64_t bytes) override { return file_->reserve(bytes); }
    Status sync() override {
      DTG_TRY(disk_.step());
      return file_->sync();
    }
    Status close() override {
      DTG_TRY(disk_.step());
      return file_->close();
    }
    std::unique_ptr<FileWriter> file_;
    FailingDisk& disk_;
  };
  Status step() { return left_-- == 0 ? data_loss("input/output error") : Status(); }
  Result<std::unique_ptr<FileWriter>> open_new(const std::string& path) override {
    DTG_TRY(step());
    DTG_ASSIGN(auto file, system_disk().open_new(path));
    return std::unique_ptr<FileWriter>(new Writer(std::move(file), *this));
  }
  Status rename(const std::string& from, const std::string& to) override {
    DTG_TRY(step());
    return system_disk().rename(from, to);
  }

 private:
  int left_;
};

TEST(Safetensors, AFailedWriteLeavesTheOldFile) {
  const Scratch scratch;
  const std::string path = scratch / "model";
  ASSERT_TRUE(write_tensors(system_disk(), path, samples(), {{"version", "old"}}).ok());
  const std::string old = scratch.read("model");
  for (int call = 0;; ++call) {
    ASSERT_LT(call, 100);
    FailingDisk disk(call);
    const Status status = write_tensors(disk, path, samples(), {{"version", "new"}});
    if (!disk.failed()) {
      EXPECT_TRUE(status.ok());
      break;
    }
    EXPECT_EQ(status.code(), Code::data_loss) << call;
    EXPECT_EQ(scratch.read("model"), old) << call;
    EXPECT_EQ(system_disk().list(scratch.path()).value().size(), 1u) << call;
  }
  EXPECT_EQ(read_tensors(system_disk(), path).value().metadata, (TextPairs{{"version", "new"}}));
}

TEST(Safetensors, GoesWhereALinkLeadsAndKeepsTheRightsOfTheFile) {
  const Scratch scratch;
  const std::string real = scratch / "real", link = scratch / "link", dangling = scratch / "dangling";
  ASSERT_TRUE(write_tensors(system_disk(), real, samples(), {{"version", "old"}}).ok());
  ASSERT_EQ(::chmod(real.c_str(), 0640), 0);
  ASSERT_EQ(::symlink("real", link.c_str()), 0);
  ASSERT_EQ(::symlink((scratch / "elsewhere").c_str(), dangling.c_str()), 0);
  ASSERT_TRUE(write_tensors(system_disk(), link, samples(), {{"version", "new"}}).ok());
  struct stat info {};
  ASSERT_EQ(::lstat(link.c_str(), &info), 0);
  EXPECT_TRUE(S_ISLNK(info.st_mode));
  ASSERT_EQ(::stat(real.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777u, 0640u);
  EXPECT_EQ(read_tensors(system_disk(), real).value().metadata, (TextPairs{{"version", "new"}}));
  EXPECT_EQ(read_tensors(system_disk(), link).value().metadata, (TextPairs{{"version", "new"}}));
  ASSERT_TRUE(write_tensors(system_disk(), dangling, samples()).ok());
  EXPECT_TRUE(read_tensors(system_disk(), scratch / "elsewhere").ok());
  EXPECT_EQ(system_disk().list(scratch.path()).value().size(), 4u);
}

TEST(Safetensors, ReplacesAndReadsNothingButFiles) {
  const Scratch scratch;
  const std::string pipe = scratch / "pipe", folder = scratch / "folder", circle = scratch / "circle";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ASSERT_EQ(::mkdir(folder.c_str(), 0700), 0);
  ASSERT_EQ(::symlink("circle", circle.c_str()), 0);
  for (const std::string& path : {pipe, folder, circle, std::string("/dev/full")}) {
    const Status refused = write_tensors(system_disk(), path, samples());
    EXPECT_EQ(refused.code(), Code::failed_precondition) << path << ": " << refused.message();
    EXPECT_FALSE(read_tensors(system_disk(), path).ok()) << path;  // and does not hang
  }
  EXPECT_EQ(system_disk().list(scratch.path()).value().size(), 3u);
}

TEST(Safetensors, ManyMaySaveToOnePath) {
  const Scratch scratch;
  const std::string path = scratch / "model";
  ASSERT_TRUE(write_tensors(system_disk(), path, samples()).ok());
  std::atomic<int> failed{0}, torn{0};
  std::vector<std::thread> savers;
  for (int saver = 0; saver < 3; ++saver) {
    savers.emplace_back([&] {
      for (int i = 0; i < 30; ++i) failed += !write_tensors(system_disk(), path, samples()).ok();
    });
  }
  for (int i = 0; i < 60; ++i) torn += !read_tensors(system_disk(), path).ok();
  for (std::thread& saver : savers) saver.join();
  EXPECT_EQ(failed.load(), 0);
  EXPECT_EQ(torn.load(), 0);
  EXPECT_EQ(system_disk().list(scratch.path()).value().size(), 1u);
}

// safetensors_check.py reads ours.safetensors, compares it with the same values, and writes
// theirs.safetensors.
TEST(Safetensors, TheReferenceLibraryAgrees) {
  const Scratch scratch;
  auto items = samples();
  ASSERT_TRUE(write_tensors(system_disk(), scratch / "ours.safetensors", items, {{"format", "np"}}).ok());
  const Verdict verdict = judge("tests/checkpoint/safetensors_check.py", scratch.path());
  if (verdict == Verdict::absent) GTEST_SKIP() << "no Python with tests/requirements.txt; see tests/judge.h";
  ASSERT_EQ(verdict, Verdict::fine);
  auto theirs = read_tensors(system_disk(), scratch / "theirs.safetensors");
  ASSERT_TRUE(theirs.ok()) << theirs.status().message();
  for (const NamedTensor& item : items) {
    if (item.name == "brain") continue;  // NumPy has no bfloat16
    const Tensor* const found = theirs.value().find(item.name);
    ASSERT_NE(found, nullptr) << item.name;
    expect_equal(*found, item.tensor, item.name);
  }
  EXPECT_EQ(theirs.value().metadata, (TextPairs{{"made by", "numpy"}}));
}

}  // namespace
}  // namespace dtg
