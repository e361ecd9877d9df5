// What a group does around its succession: who waits for an epoch, how it is entered, and what is said of it.
#include <algorithm>
#include <iterator>

#include "base/whereabouts.h"
#include "cluster/group.h"

namespace dtg {
namespace {

constexpr int64_t kTickNs = 50'000'000;

}  // namespace

void Group::form(size_t least, Deadline deadline, Done done) {
  auto told = [task = self_task(), done = std::move(done)](const Status& status) { done(told_by(status, task, "form")); };
  loop().post([self = Ref<Group>::share(this), least, deadline, told = std::move(told)]() mutable {
    const Entry entry(*self);
    self->begin_forming(least, deadline, std::move(told));
  });
}

void Group::begin_forming(size_t least, Deadline deadline, Done done) {
  if (state_ == State::left) return done(out_of_it());
  if (forming_) return done(failed_precondition("the group \"%s\" is being formed already", options_.name.c_str()));
  if (state_ == State::formed) stand_aside();
  const size_t so_many = least == 0 ? options_.members.size() : least;
  forming_ = std::make_unique<Forming>(Forming{so_many, deadline, std::move(done)});
  loop().set(alarm_, now_ns() + kTickNs);
  succession_.begin(so_many);
}

// Who has nothing under way wants nothing of the epoch any more; others may still end in it what they can end without this member.
void Group::stand_aside() {
  const Status why = aborted("group \"%s\": %s forms it anew", options_.name.c_str(), self_task().c_str());
  const bool idle = calls_.size() == 0;
  if (idle) tell_left(why);
  end_epoch(why, !idle);
}

void Group::tick() {
  if (!forming_) return;
  const Entry entry(*this);
  if (forming_->deadline.passed(loop().clock())) return give_up_forming();
  succession_.tick();
  if (forming_) loop().set(alarm_, std::min(now_ns() + kTickNs, forming_->deadline.at_ns));
}

Status Group::unlinked(int member) {
  const GroupPeer& peer = *peers_[static_cast<size_t>(member)];
  if (peer.is_linked()) return unavailable("%s has joined anew meanwhile", peer.task().c_str());
  return unavailable("it has no connection with %s: %s", peer.task().c_str(), peer.trouble().message().c_str());
}

void Group::enter(const Succession::Set& epoch) {
  epoch_ = epoch.number;
  members_ = epoch.members;
  lives_ = epoch.lives;
  // Whoever leads may be of a release that does not tell.
  if (lives_.empty()) std::ranges::transform(members_, std::back_inserter(lives_), [this](int member) { return life(member); });
  state_ = State::formed;
  cause_ = Status();
  left_.clear();
  calls_.restart(epoch_, rank_of(options_.self), members_);
  publish();
  say(host_, LogLevel::info,
      format("group \"%s\": %s is rank %d of %zu in epoch %llu", options_.name.c_str(), self_task().c_str(), rank_of(options_.self),
             members_.size(), static_cast<unsigned long long>(epoch_)));
  formed({});
  if (early_poison_.epoch == epoch_ && rank_of(early_poison_.member, early_poison_.life) >= 0) end_epoch(Status(early_poison_.why), false);
  for (const int member : members_) {
    if (state_ != State::formed || member == options_.self) continue;
    GroupPeer& peer = *peers_[static_cast<size_t>(member)];
    // It was in the epoch before this member was, and has gone on its way.
    const wire::GroupWord word = std::exchange(early_leaves_[static_cast<size_t>(member)], {});
    if (word.verb != 0 && (word.epoch == 0 || word.epoch == epoch_) && rank_of(peer) >= 0) {
      left(peer, word);
      continue;
    }
    if (peer.is_linked() && rank_of(peer) >= 0) continue;
    const Status why = peer.is_linked() ? unlinked(member) : peer.trouble();
    end_epoch(unavailable("group \"%s\": %s is lost: %s", options_.name.c_str(), name_of(rank_of(member)).c_str(), why.message().c_str())
                  .at_peer(peer.task()),
              true);
  }
}

void Group::formed(const Status& status) {
  const auto forming = std::exchange(forming_, nullptr);
  succession_.give_up();
  loop().cancel(alarm_);
  if (forming) forming->done(status);
}

// Says who is missing, and why.
void Group::give_up_forming() {
  if (!forming_) return;
  if (state_ == State::left) return formed(out_of_it());
  std::string missing, first;
  for (const Ref<GroupPeer>& peer : peers_) {
    if (!peer) continue;
    std::string why;
    if (!peer->is_linked()) why = peer->trouble().message();
    else if (!succession_.wants(peer->member())) why = "it is connected, but does not ask for the group (any more)";
    else if (const Status& trouble = succession_.trouble(peer->member()); !trouble.ok()) why = trouble.message();
    else continue;
    if (missing.empty()) first = peer->task();
    missing += (missing.empty() ? "" : "; ") + peer->task() + ": " + why;
  }
  if (const std::string hindrance = succession_.hindrance(); !hindrance.empty()) missing += (missing.empty() ? "" : "; ") + hindrance;
  if (missing.empty()) missing = "everybody is there, but they did not agree in time";
  formed(deadline_exceeded("form the group \"%s\" of %zu: %s", options_.name.c_str(), options_.members.size(), missing.c_str())
             .at_task(self_task())
             .at_peer(first)
             .in_phase("form"));
}

void Group::word(GroupPeer& peer, const wire::GroupWord& word) {
  const Entry entry(*this);
  if (static_cast<GroupVerb>(word.verb) <= GroupVerb::commit) succession_.word(peer.member(), word);
  else about_epoch(peer, word);
}

// What is said within an epoch.
void Group::about_epoch(GroupPeer& peer, const wire::GroupWord& word) {
  const auto verb = static_cast<GroupVerb>(word.verb);
  const int rank = rank_of(peer);
  const bool present = word.epoch == epoch_ && state_ == State::formed && rank >= 0;
  // Of who leaves for good: it says nothing behind that, and waits for this end to close.
  if (verb == GroupVerb::leave && word.epoch == 0)
    loop().post([link = Ref<Link>::share(&peer.link()), why = word.status] { link->fail(why); });
  if (verb == GroupVerb::leave && state_ == State::formed && rank >= 0 && (word.epoch == 0 || word.epoch == epoch_)) {
    left(peer, word);
  } else if (verb == GroupVerb::leave && (word.epoch == 0 || word.epoch > epoch_)) {
    early_leaves_[static_cast<size_t>(peer.member())] = word;
  } else if (verb == GroupVerb::poison && !word.status.ok()) {
    if (present) end_epoch(word.status, false);
    else if (word.epoch > epoch_) early_poison_ = {word.epoch, peer.member(), peer.life(), word.status};
  } else if (verb == GroupVerb::credit) {
    const bool future = word.epoch > epoch_ && forming_;
    if (present || future) {
      const Status status = calls_.granted(peer.member(), present ? rank : -1, word);
      if (!status.ok() && peer.is_linked()) peer.link().fail(status);
    }
  } else if (verb == GroupVerb::dispute && (present || (word.epoch > epoch_ && forming_ && !word.status.ok()))) {
    calls_.disputed(word);
  } else if (verb == GroupVerb::statement && present) {
    calls_.stated(rank, word);
  }
}

}  // namespace dtg
