// The files of a run's directory on a disk that is full: what cannot be written leaves nothing behind, and what was there stays.
#include "train/run_directory.h"

#include <gtest/gtest.h>

#include "passing_disk.h"
#include "scratch.h"
#include "train/report.h"

namespace dtg {
namespace {

// Has no room for another byte.
class FullDisk final : public PassingDisk {
 public:
  bool full = false;
  Result<std::unique_ptr<FileWriter>> open_new(const std::string& path) override {
    DTG_ASSIGN(auto file, PassingDisk::open_new(path));
    return std::unique_ptr<FileWriter>(new Writer(*this, std::move(file)));
  }

 private:
  class Writer final : public FileWriter {
   public:
    Writer(const FullDisk& disk, std::unique_ptr<FileWriter> file) : disk_(disk), file_(std::move(file)) {}
    Status append(std::string_view bytes) override {
      return disk_.full ? resource_exhausted("write: no space left on device") : file_->append(bytes);
    }
    Status reserve(int64_t bytes) override { return file_->reserve(bytes); }
    Status sync() override { return file_->sync(); }
    Status close() override { return file_->close(); }

   private:
    const FullDisk& disk_;
    const std::unique_ptr<FileWriter> file_;
  };
};

TEST(RunDirectory, AFullDiskKeepsNoDrafts) {
  const Scratch scratch;
  FullDisk disk;
  RunDirectory directory(disk, scratch / "run");
  size_t damaged = 0;
  ASSERT_TRUE(directory.open(0, damaged).ok());
  ASSERT_TRUE(directory.write_summary(Json(Json::Object{{"epochs", int64_t{1}}})).ok());
  disk.full = true;
  EXPECT_EQ(directory.write_summary(Json(Json::Object{{"epochs", int64_t{2}}})).code(), Code::resource_exhausted);
  EXPECT_EQ(write_report(disk, directory.file("report.html"), Json(Json::Object{{"name", "run"}})).code(), Code::resource_exhausted);
  const auto files = disk.list(directory.path());
  ASSERT_TRUE(files.ok());
  for (const std::string& name : files.value()) EXPECT_FALSE(name.ends_with(".new")) << name;
  EXPECT_EQ(disk.read_file(directory.file("summary.json"), 100).value(), "{\"epochs\":1}\n");
}

}  // namespace
}  // namespace dtg
