// How the members of a group agree on an epoch; the rules stand in group.h.
#include <algorithm>

#include "cluster/group.h"

namespace dtg {
namespace {

constexpr int64_t kTickNs = 50'000'000;
constexpr int64_t kSettleNs = 300'000'000;  // who is not there by then is left out, where that is wanted
constexpr int64_t kProposalNs = 1'000'000'000;

}  // namespace

void Group::form(size_t least, Deadline deadline, Done done) {
  loop().post([self = Ref<Group>::share(this), least, deadline, done = std::move(done)]() mutable {
    const Entry entry(*self);
    self->begin_forming(least, deadline, std::move(done));
  });
}

void Group::begin_forming(size_t least, Deadline deadline, Done done) {
  if (state_ == State::left) return done(out_of_it());
  if (forming_) return done(failed_precondition("the group \"%s\" is being formed already", options_.name.c_str()));
  if (state_ == State::formed) stand_aside();
  forming_ = std::make_unique<Forming>(Forming{least == 0 ? options_.members.size() : least, deadline, std::move(done)});
  followed_ = -1;
  proposing_ = false;
  loop().set(alarm_, loop().clock().monotonic_ns() + kTickNs);
  consider();
}

// Who has nothing under way wants nothing of the epoch any more; others may still end in it what they can end without this member.
void Group::stand_aside() {
  const Status why = aborted("group \"%s\": %s forms it anew", options_.name.c_str(), self_task().c_str());
  const bool idle = calls_.size() == 0;
  if (idle) {
    wire::GroupWord word;
    word.verb = static_cast<uint8_t>(GroupVerb::leave);
    word.epoch = epoch_;
    word.status = why;
    for (const int member : members_) {
      if (member != options_.self) peers_[static_cast<size_t>(member)]->queue(word);
    }
  }
  end_epoch(why, !idle);
}

std::vector<int> Group::present() const {
  std::vector<int> here;
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i] || peers_[i]->is_linked()) here.push_back(static_cast<int>(i));
  }
  return here;
}

// Two halves that do not see each other must not both go on.
bool Group::is_quorum(const std::vector<int>& here) const {
  std::vector<int> last = members_;
  if (last.empty()) {
    for (size_t i = 0; i < peers_.size(); ++i) last.push_back(static_cast<int>(i));
  }
  const auto count =
      static_cast<size_t>(std::ranges::count_if(last, [&](int member) { return std::ranges::find(here, member) != here.end(); }));
  return 2 * count > last.size() || (2 * count == last.size() && std::ranges::find(here, last[0]) != here.end());
}

void Group::tick() {
  if (!forming_) return;
  const Entry entry(*this);
  const int64_t now = loop().clock().monotonic_ns();
  if (forming_->deadline.passed(loop().clock())) return give_up_forming();
  if (proposing_ && now - proposed_ns_ > kProposalNs) proposing_ = false;
  // A member that was not forming yet has not kept the first.
  if (followed_ >= 0) tell_want(followed_);
  consider();
  if (forming_) loop().set(alarm_, std::min(now + kTickNs, forming_->deadline.at_ns));
}

void Group::tell_want(int leader) {
  if (leader < 0) return;
  wire::GroupWord word;
  word.verb = static_cast<uint8_t>(GroupVerb::want);
  word.value = static_cast<uint64_t>(leader);
  word.number = std::max(epoch_, promised_);
  for (const int member : asked_members_) {
    if (member == options_.self || peers_[static_cast<size_t>(member)]->is_linked()) continue;
    const GroupPeer& peer = *peers_[static_cast<size_t>(member)];
    word.status = unavailable("it has no connection with %s: %s", peer.task().c_str(), peer.trouble().message().c_str());
  }
  for (const Ref<GroupPeer>& peer : peers_) {
    if (peer) peer->queue(word);
  }
}

void Group::consider() {
  if (!forming_) return;
  const std::vector<int> here = present();
  if (here[0] != followed_) {
    followed_ = here[0];
    proposing_ = false;
    tell_want(followed_);
  }
  if (followed_ != options_.self || proposing_ || here.size() < forming_->least) return;
  for (const int member : here) {
    if (member != options_.self && wants_[static_cast<size_t>(member)].leader != options_.self) return;
  }
  const bool settled = loop().clock().monotonic_ns() - changed_ns_ >= kSettleNs;
  if (here.size() < peers_.size() && (!settled || !is_quorum(here))) return;
  propose(here);
}

void Group::propose(const std::vector<int>& here) {
  uint64_t highest = std::max(epoch_, promised_);
  for (const int member : here) highest = std::max(highest, wants_[static_cast<size_t>(member)].heard);
  promised_ = highest + 1;
  promised_members_ = here;
  promises_ = {options_.self};
  proposing_ = true;
  proposed_ns_ = loop().clock().monotonic_ns();
  wire::GroupWord word;
  word.verb = static_cast<uint8_t>(GroupVerb::propose);
  word.epoch = promised_;
  for (const int member : here) word.ranks.push_back(static_cast<uint32_t>(member));
  for (const int member : here) {
    if (member != options_.self) peers_[static_cast<size_t>(member)]->queue(word);
  }
  if (here.size() == 1) enter(promised_, here);
}

void Group::proposed(GroupPeer& peer, const wire::GroupWord& word) {
  std::vector<int> members;
  for (const uint32_t member : word.ranks) members.push_back(static_cast<int>(std::min<uint32_t>(member, 1u << 20)));
  const bool sane = !members.empty() && std::ranges::is_sorted(members) && std::ranges::adjacent_find(members) == members.end() &&
                    static_cast<size_t>(members.back()) < peers_.size() && std::ranges::find(members, options_.self) != members.end() &&
                    std::ranges::find(members, peer.member()) != members.end();
  if (!forming_ || peer.member() != followed_ || word.epoch <= std::max(epoch_, promised_) || !sane) {
    if (forming_) tell_want(followed_);
    return;
  }
  asked_for_ = word.epoch;
  asked_members_ = std::move(members);
  asked_by_ = peer.member();
  promise();
}

void Group::promise() {
  if (asked_for_ == 0 || !forming_ || asked_by_ != followed_ || asked_for_ <= std::max(epoch_, promised_)) return;
  for (const int member : asked_members_) {
    if (member != options_.self && !peers_[static_cast<size_t>(member)]->is_linked()) return;
  }
  promised_ = std::exchange(asked_for_, 0);
  promised_members_ = std::exchange(asked_members_, {});
  promised_to_ = asked_by_;
  wire::GroupWord answer;
  answer.verb = static_cast<uint8_t>(GroupVerb::promise);
  answer.epoch = promised_;
  peers_[static_cast<size_t>(promised_to_)]->queue(answer);
}

void Group::promised(GroupPeer& peer, const wire::GroupWord& word) {
  if (!forming_ || !proposing_ || word.epoch != promised_) return;
  promises_.insert(peer.member());
  if (promises_.size() < promised_members_.size()) return;
  wire::GroupWord commit;
  commit.verb = static_cast<uint8_t>(GroupVerb::commit);
  commit.epoch = promised_;
  for (const int member : promised_members_) {
    if (member != options_.self) peers_[static_cast<size_t>(member)]->queue(commit);
  }
  enter(promised_, promised_members_);
}

void Group::enter(uint64_t epoch, std::vector<int> members) {
  epoch_ = epoch;
  members_ = std::move(members);
  state_ = State::formed;
  cause_ = doomed_ = Status();
  proposing_ = false;
  promised_to_ = followed_ = -1;
  asked_for_ = 0;
  asked_members_.clear();
  for (Want& want : wants_) {
    if (want.heard < epoch) want = {};
  }
  calls_.restart(epoch, rank_of(options_.self), members_);
  publish();
  say(host_, LogLevel::info,
      format("group \"%s\": %s is rank %d of %zu in epoch %llu", options_.name.c_str(), self_task().c_str(), rank_of(options_.self),
             members_.size(), static_cast<unsigned long long>(epoch)));
  formed({});
  if (early_poison_.first == epoch) end_epoch(early_poison_.second, false);
  for (const int member : members_) {
    if (state_ != State::formed || member == options_.self || peers_[static_cast<size_t>(member)]->is_linked()) continue;
    const GroupPeer& peer = *peers_[static_cast<size_t>(member)];
    end_epoch(unavailable("group \"%s\": %s is lost: %s", options_.name.c_str(), name_of(rank_of(member)).c_str(),
                          peer.trouble().message().c_str())
                  .at_peer(peer.task()),
              true);
  }
}

void Group::formed(const Status& status) {
  const auto forming = std::exchange(forming_, nullptr);
  loop().cancel(alarm_);
  if (forming) forming->done(status);
}

// Says who is missing, and why.
void Group::give_up_forming() {
  if (!forming_) return;
  if (state_ == State::left) return formed(out_of_it());
  std::string missing;
  for (const Ref<GroupPeer>& peer : peers_) {
    if (!peer) continue;
    std::string why;
    if (!peer->is_linked()) why = peer->trouble().message();
    else if (wants_[static_cast<size_t>(peer->member())].leader < 0) why = "it is connected, but does not ask for the group (any more)";
    else if (const Status& trouble = wants_[static_cast<size_t>(peer->member())].trouble; !trouble.ok()) why = trouble.message();
    else continue;
    missing += (missing.empty() ? "" : "; ") + peer->task() + ": " + why;
  }
  if (missing.empty()) missing = "everybody is there, but they did not agree in time";
  formed(deadline_exceeded("form the group \"%s\" of %zu: %s", options_.name.c_str(), options_.members.size(), missing.c_str())
             .at_task(self_task())
             .in_phase("form"));
}

void Group::word(GroupPeer& peer, const wire::GroupWord& word) {
  const Entry entry(*this);
  const auto member = static_cast<size_t>(peer.member());
  switch (static_cast<GroupVerb>(word.verb)) {
    case GroupVerb::want:
      wants_[member] = {static_cast<int>(std::min<uint64_t>(word.value, peers_.size())), word.number, word.status};
      if (proposing_ && word.number >= promised_ && !promises_.contains(peer.member())) proposing_ = word.number == promised_;
      consider();
      break;
    case GroupVerb::propose: proposed(peer, word); break;
    case GroupVerb::promise: promised(peer, word); break;
    case GroupVerb::commit:
      if (forming_ && word.epoch == promised_ && promised_to_ == peer.member()) enter(promised_, promised_members_);
      break;
    default: about_epoch(peer, word);
  }
}

// What is said within an epoch.
void Group::about_epoch(GroupPeer& peer, const wire::GroupWord& word) {
  const auto verb = static_cast<GroupVerb>(word.verb);
  const int rank = rank_of(peer.member());
  const bool present = word.epoch == epoch_ && state_ == State::formed && rank >= 0;
  if (verb == GroupVerb::leave && word.epoch > epoch_) {
    early_poison_ = {word.epoch, word.status};
  } else if (verb == GroupVerb::leave && state_ == State::formed && rank >= 0 && (word.epoch == 0 || word.epoch == epoch_)) {
    doomed_ = unavailable("group \"%s\": %s has left it: %s", options_.name.c_str(), name_of(rank).c_str(), word.status.message().c_str())
                  .at_peer(peer.task());
    if (calls_.needs(rank)) end_epoch(doomed_, true);
  } else if (verb == GroupVerb::poison && !word.status.ok()) {
    if (present) end_epoch(word.status, false);
    else if (word.epoch > epoch_) early_poison_ = {word.epoch, word.status};
  } else if (verb == GroupVerb::credit) {
    const bool future = word.epoch > epoch_ && forming_;
    if (present || future) {
      const Status status = calls_.granted(peer.member(), present ? rank : -1, word);
      if (!status.ok() && peer.is_linked()) peer.link().fail(status);
    }
  } else if (verb == GroupVerb::dispute && present) {
    calls_.disputed(word);
  } else if (verb == GroupVerb::statement && present) {
    calls_.stated(rank, word);
  }
}

}  // namespace dtg
