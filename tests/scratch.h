// Scratch: a private directory for one test, removed with all it holds. Clocks and disks that tests steer.
#pragma once

#include <filesystem>
#include <string>

#include "base/clock.h"
#include "base/disk.h"
#include "base/random.h"

namespace dtg {

class Scratch {
 public:
  Scratch() {
    path_ = (std::filesystem::temp_directory_path() / ("dtg-test-" + std::to_string(system_random().u64()))).string();
    std::filesystem::create_directories(path_);
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  // Writes a file of the directory and returns its path.
  std::string write(const std::string& name, std::string_view bytes) const {
    const std::string path = *this / name;
    auto file = system_disk().open_write(path);
    if (file.ok() && file.value()->append(bytes).ok() && file.value()->close().ok()) return path;
    return "";
  }
  std::string read(const std::string& name) const {
    auto bytes = system_disk().read_file(*this / name, int64_t{1} << 30);
    return bytes.ok() ? bytes.take() : "";
  }

 private:
  std::string path_;
};

// Time that passes only when told to.
class SteppedClock final : public Clock {
 public:
  int64_t monotonic_ns() const override { return now_ns; }
  double wall_seconds() const override { return 1.7e9 + static_cast<double>(now_ns) * 1e-9; }
  // Whoever waits looks again now and then.
  void wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, int64_t) const override {
    changed.wait_for(lock, std::chrono::milliseconds(1));
  }
  int64_t now_ns = 0;
};

}  // namespace dtg
