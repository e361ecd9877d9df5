// Process: a simulated process: a runtime without threads that is handed a clock, chance, a loop and a network of the world, and the
// host's program as a fiber. A process that was killed is cut off from everybody at once; what is left of it ends by itself, seen by
// nobody, while another may start under its name.
//
// One thread.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "disk.h"
#include "fiber.h"
#include "session/runtime.h"
#include "world.h"

namespace dtg::sim {

class Net;
class ProcessLoop;

class Process final {
 public:
  // `program` is the host's main function; `disk` its machine's, null where it needs none.
  Process(World& world, Net& net, std::string name, uint64_t seed, std::shared_ptr<Disk> disk, std::function<void(Process&)> program);
  ~Process();

  World& world() { return world_; }
  Net& net() { return net_; }
  const std::string& name() const { return name_; }
  const Ref<Runtime>& runtime() const { return runtime_; }
  const Clock& clock() const;
  // Killed; the program should return soon.
  bool is_cut_off() const { return cut_off_; }
  // The program has returned, and nothing of the process is left.
  bool is_gone() const { return gone_; }
  void kill();
  // Nothing of it happens until then, like a process that is stopped; nor earlier than was said before, or what was put off then would come
  // behind what comes now.
  void stall(int64_t until_ns) { stalled_until_ns_ = last_stall_ns_ = std::max(stalled_until_ns_, until_ns); }
  int64_t last_stall_ns() const { return last_stall_ns_; }
  // For the program: how a call of the library ended. An error that others or the clock have caused names a task and a phase, or the seed
  // has failed.
  void hears(const Status& status);
  // For the program: lets time pass.
  void sleep(int64_t ns);

  // Runs `fn` as the process, on its loop, at that time or when it goes on; never once it is gone.
  void happens_at(int64_t at_ns, std::function<void()> fn);
  // Something may go on in it that waits for no event.
  void wake();
  bool in_loop() const { return in_loop_; }

 private:
  class ProcessClock;
  class ProcessRandom;
  class Silence;
  void turn();
  void turn_at(int64_t at_ns);

  World& world_;
  Net& net_;
  const std::string name_;
  const std::shared_ptr<bool> exists_ = std::make_shared<bool>(true);
  std::unique_ptr<ProcessClock> clock_;
  std::unique_ptr<ProcessRandom> random_;
  std::unique_ptr<Silence> log_;
  std::unique_ptr<ProcessDisk> disk_;
  Ref<Runtime> runtime_;
  std::unique_ptr<Fiber> program_;
  int64_t turn_at_ns_ = INT64_MAX;
  int64_t stalled_until_ns_ = 0, last_stall_ns_ = 0;
  bool in_loop_ = false;
  bool cut_off_ = false;
  bool gone_ = false;
};

}  // namespace dtg::sim
