// SharedParts: the parts that a task has, found by what they were made from, and those that somebody is just making. Who asks for
// one of the latter waits for it without a thread: N workers that start at once cost one preparation.
//
// Owned by the task. Any thread; it calls nobody with its lock held.
#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/pool.h"
#include "base/ref.h"
#include "base/status.h"
#include "exec/rights.h"

namespace dtg {

class ServedPart;
class Task;

// Somebody who wants a part: from which bytes, with which rights and until when. Any thread.
//
// Owner: whoever asks, and the task until it has told what became of it.
class PartRequest : public RefCounted, private Pool::Task {
 public:
  PartRequest(Ref<dtg::Task> task, std::vector<uint32_t> targets, Ref<const Rights> rights, Deadline deadline);
  ~PartRequest() override;
  // The bytes of the graph; until prepared() was called.
  virtual std::string_view graph() const = 0;
  // Once, on a thread of the pool. Twice where there was no memory to tell it the first time.
  virtual void prepared(Result<Ref<ServedPart>> part) = 0;

  // Has the pool see to it, soon.
  void submit();
  // Nobody waits for it any more: what has not begun need not begin.
  void give_up() { wanted_.store(false, std::memory_order_relaxed); }
  bool is_wanted() const { return wanted_.load(std::memory_order_relaxed); }

  const std::vector<uint32_t>& targets() const { return targets_; }
  const Ref<const Rights>& rights() const { return rights_; }
  Deadline deadline() const { return deadline_; }

 private:
  friend class SharedParts;
  void run() override;

  const Ref<dtg::Task> task_;
  const std::vector<uint32_t> targets_;
  const Ref<const Rights> rights_;
  const Deadline deadline_;
  std::atomic<bool> wanted_{true};
  Hash128 hash_;  // of the graph, once it was asked for
};

class SharedParts final {
 public:
  SharedParts();
  ~SharedParts();
  enum class Found : uint8_t {
    present,  // *part is it
    awaited,  // somebody makes it, who is given the request when that has ended
    missing,  // whoever asks makes it now, and says made() however that ends
  };
  Found ask(const Ref<PartRequest>& request, Ref<ServedPart>* part);
  // Null: it failed. Who has waited for it meanwhile.
  std::vector<Ref<PartRequest>> made(const PartRequest& maker, const Ref<ServedPart>& part);
  // Forgets the parts that nobody has registered any more.
  void trim() { forget(false); }
  // Forgets all, and keeps none from now on, as they keep their task.
  void close() { forget(true); }
  // How often ask() left the making to whoever asked.
  uint64_t makings() const;

 private:
  struct Making {
    Ref<PartRequest> maker;
    std::vector<Ref<PartRequest>> waiting;
  };
  struct Kept {
    Hash128 hash;
    Ref<ServedPart> part;
  };
  void forget(bool all);
  static bool same(const PartRequest& one, const PartRequest& other);
  static bool is_made_from(const ServedPart& part, const PartRequest& request);

  mutable std::mutex mutex_;  // over all below
  std::vector<Kept> kept_;
  std::vector<Making> making_;
  uint64_t makings_ = 0;
  bool closed_ = false;
};

}  // namespace dtg
