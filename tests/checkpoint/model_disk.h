// ModelDisk: a file system in memory that tells apart what a program sees and what a power cut leaves. Any call can be made to fail;
// after a crash every call fails, and for_each_crash_state() builds every disk that the machine might wake up with:
//
//   - what a file was given since its last sync is there, is not, is there by half, or is a hole of that length;
//   - each entry made, renamed or removed since its directory's last sync is there or is not, whatever became of the others.
//
// That is less than POSIX file systems give in practice and what the standard promises. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/disk.h"

namespace dtg {

class ModelDisk final : public Disk {
 public:
  enum class Fault { none, io_error, no_space, short_write, crash };

  ModelDisk();

  // The fault meets call number `call` (from 0) and, with `for_good`, all that follow; a crash always does.
  void fail(int call, Fault fault, bool for_good = false);
  // Besides: every call from this one on is after a crash. To be set after fail().
  void crash_at(int call) { crash_at_ = call; }
  int calls() const { return calls_; }
  bool failed() const { return failed_; }
  // Sync number `sync` says ok and does nothing.
  void lie(int sync) { lie_at_ = sync; }
  int syncs() const { return syncs_; }
  // True once a file was synced again after a sync of it failed.
  bool synced_again() const { return synced_again_; }
  int64_t free = int64_t{1} << 40;

  // Calls `fn` with each disk that may be left, no two alike; gives their number.
  int for_each_crash_state(const std::function<void(ModelDisk&)>& fn) const;
  // One of them; `choose(n)` gives a number below n.
  std::unique_ptr<ModelDisk> after_crash(const std::function<int(int n)>& choose) const;

  Result<std::unique_ptr<FileReader>> open_read(const std::string& path) override { return open_regular(path); }
  Result<std::unique_ptr<FileReader>> open_regular(const std::string& path) override;
  Result<std::unique_ptr<FileWriter>> open_write(const std::string& path) override { return open_new(path); }
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

  // All files with their contents, for comparing.
  std::string text() const;

 private:
  friend class ModelWriter;
  friend class ModelReader;
  using Entries = std::map<std::string, int>;
  struct Node {
    bool directory = false;
    std::string seen, durable;  // a file's bytes
    Entries entries, durable_entries;
    bool sync_failed = false;
  };
  struct Effect {
    int parent = 0;
    std::string gone, made;  // names; either may be empty
    int node = 0;
  };

  Status step(bool* half = nullptr);
  int find(const std::string& path) const;  // -1 if there is nothing
  bool locate(const std::string& path, int* parent, std::string* name) const;
  int add(bool directory);
  void change(int parent, const std::string& gone, const std::string& made, int node);
  Status sync_node(int node);
  std::unique_ptr<ModelDisk> after_crash(const std::vector<bool>& happened, const std::map<int, int>& contents) const;
  void collect(int node, const std::string& path, std::string& out) const;

  std::vector<Node> nodes_;
  std::vector<Effect> pending_;
  int calls_ = 0, syncs_ = 0, fail_at_ = -1, lie_at_ = -1, crash_at_ = INT32_MAX;
  Fault fault_ = Fault::none;
  bool for_good_ = false, failed_ = false, synced_again_ = false;
};

}  // namespace dtg
