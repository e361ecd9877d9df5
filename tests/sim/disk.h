// The disk of a simulated machine, as one of its processes has it: what a process that was killed still does to it leaves no trace.
// One thread.
#pragma once

#include <memory>

#include "base/disk.h"

namespace dtg::sim {

class ProcessDisk final : public Disk {
 public:
  explicit ProcessDisk(std::shared_ptr<Disk> machine) : machine_(std::move(machine)) {}
  // From now on every call fails.
  void cut_off() { *alive_ = false; }

  Result<std::unique_ptr<FileReader>> open_read(const std::string& path) override;
  Result<std::unique_ptr<FileReader>> open_regular(const std::string& path) override;
  Result<std::unique_ptr<FileWriter>> open_write(const std::string& path) override;
  Result<std::unique_ptr<FileWriter>> open_new(const std::string& path) override;
  Result<std::string> read_file(const std::string& path, int64_t bytes_max) override;
  Status make_directories(const std::string& path) override;
  Status make_directory(const std::string& path) override;
  Status sync_directory(const std::string& path) override;
  Status sync_file(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Result<bool> exists(const std::string& path) override;
  Result<FileStat> look_up(const std::string& path) override;
  Result<int64_t> free_bytes(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& path) override;

 private:
  const std::shared_ptr<Disk> machine_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace dtg::sim
