// Pipes and devices in the place of files of data: refused at once, with a word on what to do. An open of a pipe waits for somebody who
// writes, a read for as long as that one takes, and none of these calls has a deadline.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <map>

#include "checkpoint/safetensors.h"
#include "data/csv.h"
#include "data/json_lines.h"
#include "data/npy.h"
#include "data/tfrecord.h"
#include "scratch.h"

namespace dtg {
namespace {

using Reader = std::function<Status(const std::string& path)>;

// Everything that reads a file whose name the program gives.
std::map<std::string, Reader> readers() {
  const auto paths_of = [](const std::string& path) { return std::array<std::string, 1>{path}; };
  const auto tfrecord = [paths_of](const std::string& path) -> Status {
    const ExampleFeature feature{.name = "x", .dtype = DType::i64};
    DTG_ASSIGN(const DatasetPtr data, make_tfrecord(system_disk(), paths_of(path), {&feature, 1}));
    Element element;
    return data->next(element).status();
  };
  const auto json_lines = [](const std::string& path) {
    LeftOut left_out;
    return make_json_lines(system_disk(), path, {}, left_out).status();
  };
  return {
      {"CSV", [](const std::string& path) { return make_csv(system_disk(), path).status(); }},
      {"JSON lines", json_lines},
      {"IDX", [paths_of](const std::string& path) { return make_idx(system_disk(), paths_of(path)).status(); }},
      {"npy", [paths_of](const std::string& path) { return make_npy(system_disk(), paths_of(path)).status(); }},
      {"npz", [](const std::string& path) { return make_npz(system_disk(), path, {}).status(); }},
      {"TFRecord", tfrecord},
      {"tensors", [](const std::string& path) { return read_tensors(system_disk(), path).status(); }},
      {"the header of tensors", [](const std::string& path) { return read_tensors_header(system_disk(), path).status(); }},
      {"a whole file", [](const std::string& path) { return system_disk().read_file(path, 100).status(); }},
  };
}

void expect_refused(const std::string& path) {
  for (const auto& [what, read] : readers()) {
    const Status refused = read(path);
    EXPECT_EQ(refused.code(), Code::failed_precondition) << what << ": " << refused.message();
    EXPECT_NE(refused.message().find("\"" + path + "\": it is no regular file"), std::string::npos) << what << ": " << refused.message();
    EXPECT_NE(refused.message().find("write it to a file first"), std::string::npos) << what << ": " << refused.message();
  }
}

TEST(Pipes, AreRefusedWhereNobodyWrites) {
  const Scratch scratch;
  const std::string pipe = scratch / "pipe", link = scratch / "link";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ASSERT_EQ(::symlink("pipe", link.c_str()), 0);
  expect_refused(pipe);
  for (const auto& [what, read] : readers()) EXPECT_EQ(read(link).code(), Code::failed_precondition) << what;
}

// Nor does somebody who is there and writes nothing keep anybody.
TEST(Pipes, AreRefusedWhereSomebodyMayWrite) {
  const Scratch scratch;
  const std::string pipe = scratch / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int writer = ::open(pipe.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(writer, 0);
  expect_refused(pipe);
  // As a shell hands over what another program prints.
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  expect_refused("/proc/self/fd/" + std::to_string(ends[0]));
  for (const int fd : {writer, ends[0], ends[1]}) ::close(fd);
}

TEST(Pipes, DevicesAreRefusedToo) {
  expect_refused("/dev/zero");
  expect_refused("/dev/null");
}

// Files are read through links as ever.
TEST(Pipes, LinksToFilesAreFollowed) {
  const Scratch scratch;
  scratch.write("table.csv", "a,b\n1,2\n");
  const std::string link = scratch / "link";
  ASSERT_EQ(::symlink("table.csv", link.c_str()), 0);
  EXPECT_TRUE(make_csv(system_disk(), link).ok());
}

}  // namespace
}  // namespace dtg
