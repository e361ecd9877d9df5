// EmuArena: the memory of an emulated accelerator. One mapping of the size of the device's limit; while its stream does nothing, no
// thread can read or write it. The books are kept outside of it, so that blocks are taken and given back by anybody. What comes back is
// spoilt before the stream goes on, unless somebody has taken it in the meantime: who still looks at it gets nonsense.
//
// Owner: the device and all who hold blocks, by count. Any thread; open() and close() are the stream's.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "device/accelerator.h"

namespace dtg {

class EmuArena final : public DeviceMemory {
 public:
  static Result<Ref<EmuArena>> create(const std::string& device, int64_t limit);
  ~EmuArena() override;

  Result<char*> take(int64_t bytes, const char* what) override;
  void give_back(char* block) override;
  bool holds(const void* address) const override {
    const auto* const at = static_cast<const char*>(address);
    return at >= base_ && at < base_ + limit_;
  }
  int64_t limit() const override { return limit_; }
  int64_t used() const override;

  // From here until close() the memory can be reached.
  void open();
  void close();

 private:
  // Given back and kept for who wants the same size again; a block that is joined with its neighbours costs the host an allocation.
  struct Idle {
    int64_t offset;
    int64_t bytes;
    bool spoilt;
  };
  static constexpr size_t kIdle = 64;
  using Blocks = std::map<int64_t, int64_t>;  // offset -> bytes
  EmuArena(std::string device, int64_t limit) : device_(std::move(device)), limit_(limit) {
    free_.emplace(0, limit);
    idle_.reserve(kIdle);
  }
  int64_t take_idle(int64_t bytes);
  int64_t take_free(int64_t bytes);
  void merge(Blocks::node_type entry);
  void merge_idle();

  const std::string device_;
  char* base_ = nullptr;
  const int64_t limit_;
  mutable std::mutex mutex_;  // guards what follows
  Blocks free_;
  Blocks blocks_;  // what was cut out of it, idle ones included
  std::vector<Idle> idle_;
  int64_t used_ = 0;
};

}  // namespace dtg
