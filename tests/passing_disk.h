// PassingDisk: hands every call on to another disk; tests override what is to fail.
#pragma once

#include "base/disk.h"

namespace dtg {

class PassingDisk : public Disk {
 public:
  explicit PassingDisk(Disk& under = system_disk()) : under_(under) {}
  Result<std::unique_ptr<FileReader>> open_read(const std::string& path) override { return under_.open_read(path); }
  Result<std::unique_ptr<FileReader>> open_regular(const std::string& path) override { return under_.open_regular(path); }
  Result<std::unique_ptr<FileWriter>> open_write(const std::string& path) override { return under_.open_write(path); }
  Result<std::unique_ptr<FileWriter>> open_new(const std::string& path) override { return under_.open_new(path); }
  Result<std::string> read_file(const std::string& path, int64_t max) override { return under_.read_file(path, max); }
  Status make_directories(const std::string& path) override { return under_.make_directories(path); }
  Status make_directory(const std::string& path) override { return under_.make_directory(path); }
  Status sync_directory(const std::string& path) override { return under_.sync_directory(path); }
  Status sync_file(const std::string& path) override { return under_.sync_file(path); }
  Status rename(const std::string& from, const std::string& to) override { return under_.rename(from, to); }
  Result<std::string> follow(const std::string& path) override { return under_.follow(path); }
  Status take_rights(const std::string& from, const std::string& to) override { return under_.take_rights(from, to); }
  Status remove(const std::string& path) override { return under_.remove(path); }
  Result<bool> exists(const std::string& path) override { return under_.exists(path); }
  Result<FileStat> look_up(const std::string& path) override { return under_.look_up(path); }
  Result<int64_t> free_bytes(const std::string& path) override { return under_.free_bytes(path); }
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override { return under_.lock(path); }
  Result<std::vector<std::string>> list(const std::string& path) override { return under_.list(path); }

 private:
  Disk& under_;
};

}  // namespace dtg
