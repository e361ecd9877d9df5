// Who may go on, and the words that lead to it; the rules stand in succession.h.
#include "cluster/succession.h"

#include <algorithm>
#include <utility>

namespace dtg {
namespace {

bool contains(const std::vector<int>& members, int member) { return std::ranges::find(members, member) != members.end(); }

size_t place_of(const Succession::Set& set, int member) {
  return static_cast<size_t>(std::ranges::find(set.members, member) - set.members.begin());
}

wire::GroupSet to_wire(const Succession::Set& set) {
  wire::GroupSet out{set.number, {}};
  for (const int member : set.members) out.ranks.push_back(static_cast<uint32_t>(member));
  return out;
}

wire::GroupWord word_of(GroupVerb verb, uint64_t epoch) {
  wire::GroupWord word;
  word.verb = static_cast<uint8_t>(verb);
  word.epoch = epoch;
  return word;
}

}  // namespace

Succession::Succession(Around& around, int members, int self) : around_(around), self_(self), wants_(static_cast<size_t>(members)) {}

// ---- who may ---------------------------------------------------------------------------------------------------

// Two halves that do not see each other must not both go on.
bool Succession::is_quorum(const std::vector<int>& of, const std::vector<int>& counting) {
  const auto count = static_cast<size_t>(std::ranges::count_if(of, [&](int member) { return contains(counting, member); }));
  return 2 * count > of.size() || (2 * count == of.size() && contains(counting, of[0]));
}

bool Succession::may_succeed(const std::vector<int>& members, const std::vector<int>& counting, const std::vector<Set>& open) const {
  if (all_of_them(members)) return true;
  if (known_.number == 0 || !is_quorum(known_.members, counting)) return false;
  return std::ranges::all_of(open, [&](const Set& each) { return each.number <= known_.number || is_quorum(each.members, counting); });
}

// As far as this member has been told; the others look for themselves.
bool Succession::may_lead(const std::vector<int>& here) const {
  const std::vector<int> counted = counting(here);
  if (!may_succeed(here, counted, open_)) return false;
  return std::ranges::all_of(
      here, [&](int member) { return member == self_ || may_succeed(here, counted, wants_[static_cast<size_t>(member)].open); });
}

std::vector<int> Succession::present() const {
  std::vector<int> here;
  for (int member = 0; member < static_cast<int>(wants_.size()); ++member) {
    if (member == self_ || around_.is_linked(member)) here.push_back(member);
  }
  return here;
}

std::vector<int> Succession::counting(const std::vector<int>& here) const {
  std::vector<int> counted;
  for (const int member : here) {
    if (member == self_ ? entered_ > 0 : wants_[static_cast<size_t>(member)].remembers) counted.push_back(member);
  }
  return counted;
}

std::string Succession::hindrance() const {
  const std::vector<int> here = present();
  if (may_lead(here)) return "";
  if (known_.number == 0) return "a group that has not come together yet needs all of its members";
  return format("those who are there, and have been since, are no majority of the %zu members of epoch %llu, or of a later one that may "
                "have come to be: the others could go on too",
                known_.members.size(), static_cast<unsigned long long>(known_.number));
}

// ---- what happens ----------------------------------------------------------------------------------------------

void Succession::begin(size_t least) {
  forming_ = true;
  least_ = least;
  followed_ = -1;
  proposing_ = false;
  consider();
}

void Succession::give_up() {
  forming_ = proposing_ = false;
  asked_ = {};
}

void Succession::tick() {
  if (!forming_) return;
  if (proposing_ && around_.now_ns() - proposed_ns_ > kProposalNs) proposing_ = false;
  // A member that was not forming yet has not kept the first.
  tell_want();
  consider();
}

void Succession::link_up(int member) {
  (void)member;
  changed_ns_ = around_.now_ns();
  if (!forming_) return;
  tell_want();
  promise();
  consider();
}

void Succession::link_down(int member) {
  changed_ns_ = around_.now_ns();
  wants_[static_cast<size_t>(member)] = {};
  if (promised_to_ == member) promised_to_ = -1;
  proposing_ = false;
  consider();
}

void Succession::word(int member, const wire::GroupWord& word) {
  switch (static_cast<GroupVerb>(word.verb)) {
    case GroupVerb::want: return wanted(member, word);
    case GroupVerb::propose: return proposed(member, word);
    case GroupVerb::promise: return promised(member, word.epoch);
    case GroupVerb::commit: return committed(member, word.epoch);
    default: return;
  }
}

// ---- wanting ---------------------------------------------------------------------------------------------------

void Succession::tell_want() {
  if (followed_ < 0) return;
  wire::GroupWord word = word_of(GroupVerb::want, 0);
  word.value = static_cast<uint64_t>(followed_);
  word.number = heard();
  word.lane = entered_ > 0 ? 1 : 0;
  word.sets.push_back(to_wire(known_));
  for (const Set& each : open_) word.sets.push_back(to_wire(each));
  for (size_t i = 0; i < asked_.set.members.size(); ++i) {
    if (!is_linked_to(asked_.set, i)) word.status = around_.unlinked(asked_.set.members[i]);
  }
  for (int member = 0; member < static_cast<int>(wants_.size()); ++member) {
    if (member != self_) around_.tell(member, word);
  }
}

// In order, of the roster, each once.
bool Succession::read(const std::vector<uint32_t>& ranks, std::vector<int>* members) const {
  for (const uint32_t rank : ranks) {
    if (rank >= wants_.size() || (!members->empty() && members->back() >= static_cast<int>(rank))) return false;
    members->push_back(static_cast<int>(rank));
  }
  return true;
}

// That it came to be is a fact, so what was promised before it is over.
void Succession::learn(const Set& epoch) {
  if (epoch.number <= known_.number || epoch.members.empty()) return;
  known_ = epoch;
  std::erase_if(open_, [&](const Set& each) { return each.number <= epoch.number; });
}

void Succession::wanted(int member, const wire::GroupWord& word) {
  const int leader = static_cast<int>(std::min<uint64_t>(word.value, wants_.size()));
  Want want{leader, word.number, word.sets.empty() ? 0 : word.sets[0].number, word.lane == 1, {}, word.status};
  for (size_t i = 0; i < word.sets.size(); ++i) {
    Set set{word.sets[i].number, {}};
    if (!read(word.sets[i].ranks, &set.members)) return;
    if (i == 0) learn(set);
    else if (!set.members.empty()) want.open.push_back(std::move(set));
  }
  wants_[static_cast<size_t>(member)] = std::move(want);
  if (proposing_ && !promises_.contains(member)) {
    proposing_ = word.number <= promised_.number && known_.number < promised_.number && may_lead(promised_.members);
  }
  consider();
}

// ---- leading ---------------------------------------------------------------------------------------------------

void Succession::consider() {
  if (!forming_) return;
  const std::vector<int> here = present();
  if (here[0] != followed_) {
    followed_ = here[0];
    proposing_ = false;
    tell_want();
  }
  if (followed_ != self_ || proposing_ || here.size() < least_) return;
  for (const int member : here) {
    if (member != self_ && wants_[static_cast<size_t>(member)].leader != self_) return;
  }
  const bool settled = around_.now_ns() - changed_ns_ >= kSettleNs;
  if (!all_of_them(here) && !settled) return;
  if (may_lead(here)) propose(here);
}

void Succession::tell_others(const std::vector<int>& members, const wire::GroupWord& word) {
  for (const int member : members) {
    if (member != self_) around_.tell(member, word);
  }
}

void Succession::propose(const std::vector<int>& here) {
  uint64_t number = heard();
  for (const Want& want : wants_) number = std::max(number, want.heard);
  Set next{number + 1, here};
  for (const int member : here) next.lives.push_back(around_.life(member));
  if (!open_up(next)) return;
  promised_to_ = -1;
  asked_ = {};
  proposing_ = true;
  promises_ = {self_};
  proposed_ns_ = around_.now_ns();
  wire::GroupWord word = word_of(GroupVerb::propose, promised_.number);
  word.ranks = to_wire(promised_).ranks;
  word.lives = promised_.lives;
  word.sets.push_back(to_wire(known_));
  word.sets.push_back(to_wire({0, counting(here)}));
  tell_others(here, word);
  if (here.size() == 1) enter();
}

void Succession::promised(int member, uint64_t number) {
  if (!forming_ || !proposing_ || number != promised_.number || known_.number >= number || !contains(promised_.members, member)) return;
  promises_.insert(member);
  if (promises_.size() < promised_.members.size()) return;
  tell_others(promised_.members, word_of(GroupVerb::commit, number));
  enter();
}

// ---- following -------------------------------------------------------------------------------------------------

// A promise that may still come to be, until a later epoch has. Of the same members the last one says it all.
bool Succession::open_up(const Set& promise) {
  std::erase_if(open_, [&](const Set& each) { return each.members == promise.members; });
  if (open_.size() >= kOpenMost && !all_of_them(promise.members)) return false;
  open_.push_back(promise);
  promised_ = promise;
  return true;
}

void Succession::proposed(int member, const wire::GroupWord& word) {
  Proposal asked{{word.epoch, {}, word.lives}, 0, {}, member};
  Set base;
  const bool sane = word.sets.size() == 2 && read(word.ranks, &asked.set.members) && read(word.sets[0].ranks, &base.members) &&
                    read(word.sets[1].ranks, &asked.counted) && contains(asked.set.members, self_) && contains(asked.set.members, member) &&
                    std::ranges::all_of(asked.counted, [&](int each) { return contains(asked.set.members, each); }) &&
                    (word.lives.empty() || word.lives.size() == word.ranks.size()) && is_linked_to(asked.set, place_of(asked.set, self_));
  if (sane && forming_) {
    base.number = asked.base = word.sets[0].number;
    learn(base);
    asked_ = std::move(asked);
    if (acceptable()) return promise();
    asked_ = {};
  }
  if (forming_) tell_want();
}

// By what this member knows now, which may be more than the leader did.
bool Succession::acceptable() const {
  return forming_ && asked_.by == followed_ && asked_.set.number > heard() && asked_.base == known_.number &&
         contains(asked_.counted, self_) == (entered_ > 0) && may_succeed(asked_.set.members, asked_.counted, open_);
}

// A link to another life of a member ends with that, and so would the epoch.
bool Succession::is_linked_to(const Set& set, size_t place) const {
  const int member = set.members[place];
  if (member != self_ && !around_.is_linked(member)) return false;
  return set.lives.empty() || is_same_life(set.lives[place], around_.life(member));
}

void Succession::promise() {
  if (asked_.set.number == 0 || !acceptable()) return;
  for (size_t i = 0; i < asked_.set.members.size(); ++i) {
    if (!is_linked_to(asked_.set, i)) return;
  }
  const Proposal asked = std::exchange(asked_, {});
  if (!open_up(asked.set)) return;
  promised_to_ = asked.by;
  around_.tell(promised_to_, word_of(GroupVerb::promise, promised_.number));
}

// That others have entered it already may have been heard.
void Succession::committed(int member, uint64_t number) {
  if (number == entered_) return;
  if (forming_ && number == promised_.number && number >= known_.number && promised_to_ == member) return enter();
  // The leader counts on it.
  wire::GroupWord word = word_of(GroupVerb::leave, number);
  word.status = aborted("it had not the time to wait for the epoch, or wants another");
  around_.tell(member, word);
}

void Succession::enter() {
  learn(promised_);
  entered_ = promised_.number;
  proposing_ = forming_ = false;
  promised_to_ = followed_ = -1;
  asked_ = {};
  for (Want& want : wants_) {
    if (want.known < entered_) want = {};
  }
  around_.enter(Set(promised_));
}

}  // namespace dtg
