// Emu: an emulated accelerator, for tests of everything that an accelerator does otherwise than the host: memory that the host cannot
// read, work that runs later, ends and errors that are told later still, memory that runs out. Kernels are the CPU's, run by the
// stream's one thread (which other threads of the pool may help with shards).
//
// Owner: the task, by count. Any thread; the stream's thread starts with the first work and takes no signals.
#pragma once

#include <memory>

#include "device/emu/arena.h"

namespace dtg {

class Emu final : public Accelerator {
 public:
  static constexpr const char* kType = "EMU";
  static constexpr int64_t kMemoryBytes = int64_t{256} << 20;
  struct Options {
    int64_t memory_bytes = kMemoryBytes;
    Mutant mutant = Mutant::none;
  };
  static Result<Ref<Emu>> create(const std::string& name, const Options& options);
  ~Emu() override;

  const std::string& name() const override { return name_; }
  const Ref<DeviceMemory>& memory() const override { return memory_; }
  void enqueue(StreamWork* work) override;
  Status copy(void* to, const void* from, int64_t bytes) override;
  Mutant mutant() const override { return options_.mutant; }
  bool is_checking() const override { return true; }

 private:
  class Stream;
  Emu(std::string name, const Options& options, Ref<EmuArena> arena);

  const std::string name_;
  const Options options_;
  const Ref<DeviceMemory> memory_;
  const std::shared_ptr<Stream> stream_;  // shared with its thread, which may be the one that lets the device go
};

}  // namespace dtg
