// Collectives of a crew, and coming together again. See crew.h for threads.
#include "train/crew.h"

#include <cstring>

namespace dtg {
namespace {

// Who was lost may be started anew meanwhile (reliability: T_rejoin).
constexpr int64_t kRejoinNs = int64_t{60} * 1'000'000'000;

}  // namespace

Status Crew::prepare(Model& model) {
  if (!model.step_if_any()) {
    return failed_precondition(
        "make a trainer: the model counts no steps, so nobody could tell which worker is ahead; make its global step before the training");
  }
  DTG_ASSIGN(level_, dtg::level(model, workers_, {}));
  return {};
}

bool Crew::ends_by(const Status& why) const {
  const bool is_loss = why.code() == Code::unavailable || why.code() == Code::aborted;
  return is_loss && !group_->view().cause.ok();
}

Status Crew::form(const Clock& clock) { return form_and_wait(*group_, 0, clock, Deadline::after(clock, kRejoinNs)); }

Result<int64_t> Crew::level(Session& session, const Model& model) {
  DTG_TRY(session.run({.feeds = {}, .feed_tensors = {}, .fetches = {}, .targets = {&level_, 1}}, {}).with_context("level the workers"));
  Tensor steps;
  DTG_TRY(session.run({.feeds = {}, .feed_tensors = {}, .fetches = {&model.step_if_any()->read, 1}, .targets = {}}, {&steps, 1}));
  return steps.as<int64_t>()[0];
}

// The group's own bound for calls ends it, with the names of those that have not come.
Result<Tensor> Crew::call(const Clock& clock, CollectiveCall what) {
  const auto run = make_ref<CollectiveRun>(group_, nullptr, 0);
  run->start(std::move(what), Deadline::after(clock, Group::kCallNs));
  DTG_TRY(run->wait(clock));
  return run->take();
}

Result<std::vector<std::vector<int64_t>>> Crew::gather(const Clock& clock, std::span<const int64_t> mine) {
  const auto columns = static_cast<int64_t>(mine.size());
  CollectiveCall what;
  what.terms.kind = Collective::all_gather;
  what.terms.dtype = DType::i64;
  DTG_ASSIGN(what.in, Tensor::of<int64_t>(Shape::of({1, columns}), mine));
  what.terms.shape = what.in.shape();
  DTG_ASSIGN(const Tensor all, call(clock, std::move(what)));
  std::vector<std::vector<int64_t>> rows;
  for (int64_t row = 0; row < all.shape().dim(0); ++row) {
    const int64_t* const begin = all.as<int64_t>() + row * columns;
    rows.emplace_back(begin, begin + columns);
  }
  return rows;
}

Result<Tensor> Crew::from(const Clock& clock, int root, const Tensor& mine) {
  CollectiveCall what;
  what.terms.kind = Collective::broadcast;
  what.terms.root = static_cast<uint32_t>(root);
  what.terms.open = root != rank();
  if (!what.terms.open) {
    what.in = mine;
    what.terms.dtype = mine.dtype();
    what.terms.shape = mine.shape();
  }
  return call(clock, std::move(what));
}

Result<std::string> Crew::from(const Clock& clock, int root, const std::string& mine) {
  DTG_ASSIGN(const Tensor bytes, Tensor::allocate(DType::u8, Shape::of({static_cast<int64_t>(mine.size())})));
  std::memcpy(bytes.data(), mine.data(), mine.size());
  DTG_ASSIGN(const Tensor text, from(clock, root, bytes));
  return std::string(static_cast<const char*>(text.data()), static_cast<size_t>(text.count()));
}

void Crew::ask(const Clock& clock, bool wishes) {
  const int64_t wish[] = {wishes ? 1 : 0};
  CollectiveCall what;
  what.terms.kind = Collective::all_reduce;
  what.terms.reduction = Reduction::maximum;
  what.terms.dtype = DType::i64;
  auto in = Tensor::of<int64_t>(Shape::of({1}), wish);
  if (!in.ok()) return;  // answer() says so
  what.in = in.take();
  what.terms.shape = what.in.shape();
  asked_ = make_ref<CollectiveRun>(group_, nullptr, 0);
  asked_->start(std::move(what), Deadline::after(clock, Group::kCallNs));
}

Result<bool> Crew::answer(const Clock& clock) {
  const Ref<CollectiveRun> asked = std::exchange(asked_, nullptr);
  if (!asked) return resource_exhausted("ask the other workers: no memory for the question");
  DTG_TRY(asked->wait(clock));
  DTG_ASSIGN(const Tensor most, asked->take());
  return most.as<int64_t>()[0] != 0;
}

}  // namespace dtg
