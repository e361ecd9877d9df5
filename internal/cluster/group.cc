// Calls, losses and ends; how an epoch comes to be is in group_forming.cc.
#include "cluster/group.h"

#include <algorithm>

#include "base/hash.h"
#include "base/whereabouts.h"
#include "net/parting.h"

namespace dtg {

Group::Group(const Host& host, const Timing& timing, Options options, Ref<RefCounted> owner)
    : host_(host),
      timing_(timing),
      options_(std::move(options)),
      owner_(std::move(owner)),
      succession_(*this, static_cast<int>(options_.members.size()), options_.self),
      alarm_([this] { tick(); }),
      calls_(*this) {}

Group::~Group() = default;

void Group::open(const Group* before) {
  life_ = static_cast<uint64_t>(std::max<int64_t>(now_ns(), 1));
  if (before) {
    life_ = std::max(life_, before->life_ + 1);
    succession_.begin_behind(before->succession_.heard());
  }
  early_leaves_.resize(options_.members.size());
  for (size_t i = 0; i < options_.members.size(); ++i) {
    const Member& member = options_.members[i];
    const bool self = static_cast<int>(i) == options_.self;
    peers_.push_back(self ? nullptr : make_ref<GroupPeer>(*this, static_cast<int>(i), member.task, member.address));
  }
  for (size_t i = static_cast<size_t>(options_.self) + 1; i < peers_.size(); ++i) peers_[i]->dial(options_.members[i].credentials);
}

wire::Hello Group::hello() const {
  wire::Hello hello;
  hello.role = wire::Role::member;
  hello.task = self_task();
  hello.heartbeat_ns = static_cast<uint64_t>(timing_.heartbeat_ns);
  hello.features = host_.features();
  hello.life = host_.life;
  hello.group_life = life_;
  hello.group = options_.name;
  hello.roster = hash_bytes(options_.name);
  for (const Member& member : options_.members) hello.roster = hash_combine(hello.roster, hash_bytes(member.task));
  return hello;
}

Result<Ref<GroupPeer>> Group::member_of(const wire::Hello& hello) const {
  if (state_ == State::left) return unavailable("hello: %s has left the group \"%s\"", self_task().c_str(), options_.name.c_str());
  if (hello.roster != this->hello().roster) {
    return failed_precondition("hello: %s and %s name other members, or the same in another order, for the group \"%s\"",
                               hello.task.c_str(), self_task().c_str(), options_.name.c_str());
  }
  const auto at = std::ranges::find(options_.members, hello.task, &Member::task);
  const auto member = at - options_.members.begin();
  if (at == options_.members.end() || member >= options_.self)
    return permission_denied("hello: %s is not dialled by \"%s\" in the group \"%s\"", self_task().c_str(), hello.task.c_str(),
                             options_.name.c_str());
  const Ref<GroupPeer>& peer = peers_[static_cast<size_t>(member)];
  if (peer->is_past(hello)) return aborted("hello: %s has joined the group \"%s\" anew since", hello.task.c_str(), options_.name.c_str());
  return peer;
}

Group::View Group::view() const {
  const std::lock_guard lock(view_mutex_);
  return view_;
}

void Group::publish() {
  View view;
  view.epoch = epoch_;
  view.rank = rank_of(options_.self);
  for (const int member : members_) view.members.push_back(options_.members[static_cast<size_t>(member)].task);
  if (state_ != State::formed) view.cause = out_of_it();
  const std::lock_guard lock(view_mutex_);
  std::swap(view_, view);
}

Status Group::out_of_it() const {
  if (!cause_.ok()) return cause_;
  return failed_precondition("the group \"%s\" has not come together yet", options_.name.c_str());
}

int Group::rank_of(int member) const {
  const auto at = std::ranges::find(members_, member);
  return at == members_.end() ? -1 : static_cast<int>(at - members_.begin());
}

// -1 for another life of the member than that which is in the epoch.
int Group::rank_of(int member, uint64_t life) const {
  const int rank = rank_of(member);
  return rank >= 0 && Succession::is_same_life(lives_[static_cast<size_t>(rank)], life) ? rank : -1;
}

// Null where the link is to another life, which must hear nothing of this epoch.
GroupPeer* Group::peer_of(int rank) const {
  GroupPeer* const peer = peers_[static_cast<size_t>(members_[static_cast<size_t>(rank)])].get();
  return rank_of(*peer) == rank ? peer : nullptr;
}

std::string Group::name_of(int rank) const { return format("rank %d (%s)", rank, task_of(rank).c_str()); }

const std::string& Group::task_of(int rank) const {
  return options_.members[static_cast<size_t>(members_[static_cast<size_t>(rank)])].task;
}

// Unix sockets are all of one host.
std::vector<int> Group::hosts() const {
  std::vector<std::string> names;
  std::vector<int> hosts;
  for (const int member : members_) {
    const Address& address = options_.members[static_cast<size_t>(member)].address;
    const auto at = std::ranges::find(names, address.host);
    hosts.push_back(static_cast<int>(at - names.begin()));
    if (at == names.end()) names.push_back(address.host);
  }
  return hosts;
}

// ---- calls -------------------------------------------------------------------------------------------------------

void Group::start(Ref<GroupCall> call) {
  loop().post_now([self = Ref<Group>::share(this), call = std::move(call)] {
    const Entry entry(*self);
    const bool old = call->epoch_ != 0 && call->epoch_ != self->epoch_;
    if (self->state_ == State::formed && !old && !call->given_up_.ok()) self->end_epoch(call->given_up_, true);
    if (!old && self->state_ == State::formed) {
      self->calls_.begin(call);
      // What it needs of who has left may have come before that.
      return self->end_if_who_left_is_needed();
    }
    const std::string what = call->what_.terms.text();
    const Status why = old && self->state_ != State::left ? self->too_old(call->epoch_) : self->out_of_it();
    // What ended the group may be this very call, as the others made it.
    call->end(why.message().starts_with(what) ? why : why.with_context(what), {});
  });
}

void Group::refuse(std::string what, const Status& why) {
  loop().post_now([self = Ref<Group>::share(this), what = std::move(what), why] {
    const Entry entry(*self);
    if (self->state_ == State::formed) self->calls_.refuse(0, what, why);
  });
}

// A call belongs with the others of its run, and they with those of the other members' runs of that epoch.
Status Group::too_old(uint64_t epoch) const {
  const std::string ended = last_end_.first == epoch ? ", which ended: " + last_end_.second.message() : ", which is over";
  return aborted("group \"%s\": the run began in epoch %llu%s; the group is in epoch %llu now: run it again", options_.name.c_str(),
                 static_cast<unsigned long long>(epoch), ended.c_str(), static_cast<unsigned long long>(epoch_))
      .at_task(self_task())
      .in_phase("run");
}

void Group::cancel(Ref<GroupCall> call) {
  loop().post([self = Ref<Group>::share(this), call = std::move(call)] {
    const Entry entry(*self);
    self->calls_.cancel(call, cancelled("%s gave a call up", self->self_task().c_str()));
  });
}

CollectiveGroup::Standing Group::standing() const {
  const std::lock_guard lock(view_mutex_);
  return {view_.epoch, static_cast<int>(view_.members.size())};
}

Ref<RefCounted> Group::make_call(CollectiveCall what, int32_t instance, uint64_t epoch, int64_t timeout_ns, Deadline deadline,
                                 CollectiveGroup::Done done) {
  const Deadline own = Deadline::after(loop().clock(), timeout_ns > 0 ? timeout_ns : options_.call_ns);
  const Deadline sooner{std::min(own.at_ns, deadline.at_ns)};
  auto call = make_ref<GroupCall>(std::move(what), GroupCalls::stream_of(instance), sooner, std::move(done));
  call->epoch_ = epoch;
  return call;
}

void Group::start_call(const Ref<RefCounted>& call) { start(Ref<GroupCall>::share(static_cast<GroupCall*>(call.get()))); }

// What the others hear of the end of this member's run.
Status Group::run_ended(const Status& why) const {
  const std::string text = format("group \"%s\": a run of %s ended before its collectives did: %s", options_.name.c_str(),
                                  self_task().c_str(), why.message().c_str());
  const Code code = why.code();
  const Status status = code == Code::cancelled           ? cancelled("%s", text.c_str())
                        : code == Code::deadline_exceeded ? deadline_exceeded("%s", text.c_str())
                                                          : aborted("%s", text.c_str());
  return status.at_peer(self_task()).in_phase("run");
}

// The call may not have been started yet; it ends when it is.
void Group::give_up_call(const Ref<RefCounted>& given, const Status& why) {
  loop().post([self = Ref<Group>::share(this), call = Ref<GroupCall>::share(static_cast<GroupCall*>(given.get())), why] {
    const Entry entry(*self);
    call->given_up_ = self->run_ended(why);
    if (why.code() == Code::deadline_exceeded) self->calls_.out_of_time(call);
    self->calls_.cancel(call, call->given_up_);
  });
}

void Group::run_failed(std::optional<uint64_t> epoch, const Status& why) {
  loop().post([self = Ref<Group>::share(this), epoch = epoch ? *epoch : standing().epoch, why] {
    const Entry entry(*self);
    if (epoch == self->epoch_) self->end_epoch(self->run_ended(why), true);
  });
}

void Group::send(int rank, std::unique_ptr<OutFrame> frame) {
  if (GroupPeer* const peer = peer_of(rank)) peer->queue(std::move(frame));
}

void Group::send(int rank, wire::GroupWord word) {
  if (GroupPeer* const peer = peer_of(rank)) peer->queue(word);
}

// All of its other members. `behind_data`: they have what was sent to them before they hear it, as words overtake data.
void Group::tell_epoch(const wire::GroupWord& word, bool behind_data) {
  for (int rank = 0; rank < static_cast<int>(members_.size()); ++rank) {
    if (members_[static_cast<size_t>(rank)] == options_.self) continue;
    auto frame = std::make_unique<OutFrame>();
    frame->head = wire::make_frame(word);
    frame->data = behind_data;
    send(rank, std::move(frame));
  }
}

// What has left may be what something waited for, here or at the end of a deadline, when nothing else happens.
void Group::queued() {
  if (entered_ > 0 || flushing_ || std::exchange(flush_posted_, true)) return;
  loop().post([self = Ref<Group>::share(this)] {
    self->flush_posted_ = false;
    self->flush();
  });
}

// What leaves may be what others wait for, so it may take several turns.
void Group::flush() {
  if (flushing_) return;
  flushing_ = true;
  const Ref<Group> self = Ref<Group>::share(this);
  for (bool more = true; more;) {
    more = false;
    for (const Ref<GroupPeer>& peer : peers_) more = (peer && peer->push()) || more;
  }
  flushing_ = false;
}

Result<Channel::Landing> Group::piece_begins(GroupPeer& peer, const wire::GroupData& data, uint64_t bytes, Ref<Buffer>* early) {
  // Of an epoch that is over, or that this member does not take part in.
  const bool future = data.epoch > epoch_ && forming_;
  if (data.epoch != epoch_ ? !future : state_ != State::formed) return Channel::Landing{};
  const int rank = future ? -1 : rank_of(peer);
  if (!future && rank < 0 && rank_of(peer.member()) >= 0) return Channel::Landing{};
  if (!future && rank < 0)
    return data_loss("%s takes no part in epoch %llu", peer.task().c_str(), static_cast<unsigned long long>(data.epoch));
  return calls_.piece_begins(peer.member(), rank, data, bytes, early);
}

Status Group::piece_arrived(GroupPeer& peer, const wire::GroupData& data, uint64_t bytes, const Ref<Buffer>& early, const void* lent) {
  const Entry entry(*this);
  const bool future = data.epoch > epoch_ && forming_;
  if (data.epoch != epoch_ ? !future : state_ != State::formed) return {};
  const int rank = future ? -1 : rank_of(peer);
  if (!future && rank < 0) return {};
  // A piece that began to arrive before this member was in the epoch, and was forgotten, is not received at all.
  return calls_.piece_arrived(peer.member(), rank, data, bytes, early, lent);
}

void Group::let_go(const Exchange& exchange) {
  for (const Ref<GroupPeer>& peer : peers_) {
    if (peer && peer->is_linked()) peer->link().channel().let_go(&exchange);
  }
}

// ---- ends --------------------------------------------------------------------------------------------------------

void Group::end_epoch(const Status& cause, bool announce) {
  if (state_ != State::formed) return;
  state_ = State::poisoned;
  cause_ = told_by(cause, self_task(), "run");
  // Who has left is what its end was for, whoever says so first.
  last_end_ = {epoch_, left_.empty() ? cause_ : left_[0].second};
  if (announce) {
    wire::GroupWord word;
    word.verb = static_cast<uint8_t>(GroupVerb::poison);
    word.epoch = epoch_;
    word.status = cause_;
    // Where somebody has left, the others end what they can end.
    tell_epoch(word, !left_.empty());
  }
  publish();
  say(host_, LogLevel::warn,
      format("group \"%s\", epoch %llu: %s", options_.name.c_str(), static_cast<unsigned long long>(epoch_), cause.message().c_str()));
  calls_.fail_all(cause_, false);
}

void Group::peer_up(GroupPeer& peer) {
  const Entry entry(*this);
  early_leaves_[static_cast<size_t>(peer.member())] = {};
  if (const int rank = rank_of(peer.member()); state_ == State::formed && rank >= 0 && !has_left(rank))
    end_epoch(unavailable("group \"%s\": %s has connected anew", options_.name.c_str(), name_of(rank).c_str()).at_peer(peer.task()), true);
  succession_.link_up(peer.member());
}

void Group::peer_down(GroupPeer& peer, const Status& reason) {
  const Entry entry(*this);
  const int rank = state_ == State::formed ? rank_of(peer) : -1;
  const bool expected = rank >= 0 && has_left(rank);
  // What it has sent before it left is all of it.
  calls_.forget(peer.member(), expected || early_leaves_[static_cast<size_t>(peer.member())].verb != 0);
  if (rank >= 0 && !expected) {
    end_epoch(unavailable("group \"%s\": %s is lost: %s", options_.name.c_str(), name_of(rank).c_str(), reason.message().c_str())
                  .at_peer(peer.task())
                  .at_task(self_task()),
              true);
  }
  end_if_who_left_is_needed();
  succession_.link_down(peer.member());
}

bool Group::has_left(int rank) const {
  return std::ranges::any_of(left_, [&](const auto& each) { return each.first == rank; });
}

void Group::left(GroupPeer& peer, const wire::GroupWord& word) {
  const int rank = rank_of(peer);
  if (has_left(rank)) return;
  // Where it has left because somebody else had, it says who that was.
  const bool tells_who = word.epoch != 0 && !word.status.origin().peer.empty();
  left_.emplace_back(rank, tells_who ? word.status
                                     : unavailable("group \"%s\": %s has left it: %s", options_.name.c_str(), name_of(rank).c_str(),
                                                   word.status.message().c_str())
                                           .at_peer(peer.task()));
  end_if_who_left_is_needed();
}

// The end of this member's part only: the others may still have to receive what who has left had sent them, or this member.
void Group::end_if_who_left_is_needed() {
  if (state_ != State::formed) return;
  const auto needed = std::ranges::find_if(left_, [&](const auto& each) { return calls_.needs(each.first); });
  if (needed == left_.end()) return;
  const Status why = needed->second;
  tell_left(why);
  end_epoch(why, false);
}

// Behind all that this member has sent in the epoch.
void Group::tell_left(const Status& why) {
  wire::GroupWord word;
  word.verb = static_cast<uint8_t>(GroupVerb::leave);
  word.epoch = epoch_;
  word.status = why;
  tell_epoch(word, true);
}

void Group::leave(const Status& why, std::shared_ptr<void> held) {
  try {
    loop().post([self = Ref<Group>::share(this), why, held = std::move(held)] { self->leave_now(why, held); });
  } catch (const std::bad_alloc&) {
    post_parting(loop(), this, [](Group& self) { self.leave_now(cancelled("it has left"), nullptr); });
  }
}

void Group::leave_now(const Status& why, const std::shared_ptr<void>& held) {
  if (state_ == State::left) {
    for (const Ref<GroupPeer>& peer : peers_) {
      if (peer) peer->stop(why, held);
    }
    return;
  }
  state_ = State::left;
  cause_ = told_by(why, self_task(), "run");
  if (options_.ops) options_.ops->leave(options_.key, *this, why);
  calls_.fail_all(cause_, true);
  give_up_forming();
  loop().cancel(alarm_);
  for (const Ref<GroupPeer>& peer : peers_) {
    if (peer) peer->stop(why, held);
  }
  publish();
}

}  // namespace dtg
