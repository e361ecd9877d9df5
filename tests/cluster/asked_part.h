// A part that a test asks a task for, without a connection.
#pragma once

#include <optional>
#include <string>

#include "base/condition.h"
#include "cluster/task.h"

namespace dtg {

class AskedPart final : public PartRequest {
 public:
  AskedPart(dtg::Task& task, std::string graph, std::vector<uint32_t> targets, Ref<const Rights> rights,
            Deadline deadline = Deadline::never())
      : PartRequest(Ref<dtg::Task>::share(&task), std::move(targets), std::move(rights), deadline), graph_(std::move(graph)) {}
  std::string_view graph() const override { return graph_; }
  void prepared(Result<Ref<ServedPart>> part) override {
    told_.change([&] {
      part_ = std::move(part);
      ++times_;
    });
  }
  bool is_told() {
    bool told = false;
    told_.change([&] { told = times_ > 0; });
    return told;
  }
  Result<Ref<ServedPart>> wait() {
    if (!told_.wait(system_clock(), Deadline::after(system_clock(), kPatienceNs), [&] { return times_ > 0; }))
      return deadline_exceeded("nobody told what became of a part");
    return *part_;
  }
  int times() const { return times_; }

 private:
  static constexpr int64_t kPatienceNs = 20'000'000'000;  // a machine may be busy
  const std::string graph_;
  Condition told_;  // guards what follows
  std::optional<Result<Ref<ServedPart>>> part_;
  int times_ = 0;
};

}  // namespace dtg
