// Which parts there are, and who waits for which.
#include "cluster/shared_parts.h"

#include <algorithm>
#include <iterator>
#include <new>

#include "cluster/task.h"

namespace dtg {
namespace {

constexpr size_t kKeptMax = 1024;

}  // namespace

PartRequest::PartRequest(Ref<dtg::Task> task, std::vector<uint32_t> targets, Ref<const Rights> rights, Deadline deadline)
    : task_(std::move(task)), targets_(std::move(targets)), rights_(std::move(rights)), deadline_(deadline) {}

PartRequest::~PartRequest() = default;

void PartRequest::submit() {
  retain();  // until run()
  task_->host().pool->submit(this);
}

void PartRequest::run() {
  const Ref<PartRequest> self = Ref<PartRequest>::adopt(this);
  try {
    task_->prepare(self);
  } catch (...) {
    prepared(resource_exhausted("register a part: there is no memory for it"));
  }
}

SharedParts::SharedParts() = default;
SharedParts::~SharedParts() = default;

bool SharedParts::same(const PartRequest& one, const PartRequest& other) {
  return one.hash_ == other.hash_ && one.rights_->allows(Verb::attach) == other.rights_->allows(Verb::attach) &&
         one.targets_ == other.targets_ && one.graph() == other.graph();
}

bool SharedParts::is_made_from(const ServedPart& part, const PartRequest& request) {
  return part.attaches_ == request.rights_->allows(Verb::attach) && part.targets_ == request.targets_ && part.graph_ == request.graph() &&
         part.plan().is_current();
}

SharedParts::Found SharedParts::ask(const Ref<PartRequest>& request, Ref<ServedPart>* part) {
  const Hash128 hash = hash_content(request->graph());
  const std::lock_guard lock(mutex_);
  request->hash_ = hash;
  for (const Kept& kept : kept_) {
    if (kept.hash != hash || !is_made_from(*kept.part, *request)) continue;
    *part = kept.part;
    return Found::present;
  }
  for (Making& making : making_) {
    if (!same(*making.maker, *request)) continue;
    making.waiting.push_back(request);
    return Found::awaited;
  }
  making_.push_back({request, {}});
  ++makings_;
  return Found::missing;
}

std::vector<Ref<PartRequest>> SharedParts::made(const PartRequest& maker, const Ref<ServedPart>& part) {
  Making over;  // its maker goes after the lock
  const std::lock_guard lock(mutex_);
  const auto at = std::ranges::find_if(making_, [&](const Making& making) { return making.maker.get() == &maker; });
  over = std::move(*at);
  making_.erase(at);
  try {
    if (part && !closed_ && kept_.size() < kKeptMax) kept_.push_back({maker.hash_, part});
  } catch (const std::bad_alloc&) {
    // Then it is not kept; those who wait get it all the same.
  }
  return std::move(over.waiting);
}

void SharedParts::forget(bool all) {
  std::vector<Kept> dropped;  // after the lock
  const std::lock_guard lock(mutex_);
  closed_ |= all;
  const auto keep = [&](const Kept& kept) { return !all && kept.part->ref_count() > 1 && kept.part->plan().is_current(); };
  const auto from = std::stable_partition(kept_.begin(), kept_.end(), keep);
  dropped.assign(std::make_move_iterator(from), std::make_move_iterator(kept_.end()));
  kept_.erase(from, kept_.end());
}

uint64_t SharedParts::makings() const {
  const std::lock_guard lock(mutex_);
  return makings_;
}

}  // namespace dtg
