// Rounds: collectives between devices of one process, whose members are ops of one run, one for each device. Who comes waits, without
// a thread; whoever is last does the work for all, in the order of the devices, so that the bits do not hang on who was last.
//
// Owner: the task's resources. Any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/pool.h"
#include "collective/call.h"
#include "exec/pending_op.h"

namespace dtg {

// Which member a device is: by type, then by number.
struct DeviceRank {
  std::string type;
  int64_t id = 0;
  auto operator<=>(const DeviceRank&) const = default;
};

class Rounds final : public WaitingResource {
 public:
  static constexpr std::string_view kKind = "rounds";
  class Round;

  // One member's part in a round.
  class Part : public PendingOp {
   public:
    Part();
    ~Part() override;
    int32_t group = 0;
    int32_t instance = 0;
    int size = 0;
    DeviceRank rank;
    std::string who;      // the node and its device, for errors
    CollectiveCall call;  // where `out` is no tensor, one is made
    const void* run = nullptr;
    Pool* pool = nullptr;

   protected:
    // The end; all results have been written.
    virtual void ended(Status status) = 0;

   private:
    friend class Rounds;
    friend class Round;
    void finished(Status status) final;
    Ref<Round> round_;
  };

  Rounds();
  ~Rounds() override;
  const char* kind() const override { return kKind.data(); }
  void destroy(const Status& reason) override;

  // Devices of one run that mean the same round.
  using Key = std::tuple<const void*, int32_t, int32_t>;

 private:
  void enter(PendingOp& pending, PendingOpList& ended) override;
  void withdraw(PendingOp& pending, PendingOpList& ended) override;

  std::map<Key, Ref<Round>> open_;
  PendingOpList waiting_;
};

}  // namespace dtg
