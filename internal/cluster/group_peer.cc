// Dialling a member, and what comes from it.
#include "cluster/group_peer.h"

#include <algorithm>

#include "cluster/group.h"

namespace dtg {
namespace {

// How long others have for what was sent to them before this member left.
constexpr int64_t kPartNs = 2'000'000'000;
constexpr size_t kPastMost = 16;
constexpr int64_t kRetryFirstNs = 2'000'000;
constexpr int64_t kRetryLastNs = 200'000'000;  // re-forming has to be quick

}  // namespace

GroupPeer::GroupPeer(Group& group, int member, std::string task, Address address)
    : group_(&group),
      member_(member),
      task_(std::move(task)),
      address_(std::move(address)),
      loop_(group.loop()),
      trouble_(unavailable("it has not been heard of")),
      pause_([this] { attempt(); }) {}

void GroupPeer::dial(Credentials credentials) {
  credentials_ = std::move(credentials);
  dials_ = true;
  pause_ns_ = kRetryFirstNs;
  attempt();
}

void GroupPeer::attempt() {
  if (!dials_ || !group_ || is_linked() || greeting_) return;
  const Timing& timing = group_->timing();
  const Deadline until = Deadline::after(loop_.clock(), timing.handshake_ns);
  group_->host().network->connect(
      address_, credentials_, {group_->host().limits, timing.dead_ns, {}}, until,
      [self = Ref<GroupPeer>::share(this), until](Result<Ref<Channel>> channel) { self->dialled(std::move(channel), until); });
}

void GroupPeer::dialled(Result<Ref<Channel>> channel, Deadline until) {
  if (!group_) return;
  if (!channel.ok()) return again(channel.status());
  const Ref<Link> fresh = make_ref<Link>(loop_, channel.take(), group_->timing(), this);
  fresh->open();
  greeting_ = fresh;
  wire::Hello hello = group_->hello();
  hello.wanted_task = task_;
  const uint32_t call = fresh->calls().start("greet " + task_, until,
                                             [self = Ref<GroupPeer>::share(this), fresh](const Status& status, std::string_view header) {
                                               wire::HelloReply reply;
                                               const Status read = status.ok() ? wire::decode(header, reply) : status;
                                               self->greeted(fresh, read, reply);
                                             });
  fresh->send(hello, call);
}

void GroupPeer::greeted(const Ref<Link>& link, const Status& status, const wire::HelloReply& reply) {
  greeting_ = nullptr;
  const Status all = status.ok() ? reply.status : status;
  if (!group_ || !all.ok()) {
    link->close(all);
    return group_ ? again(all) : void();
  }
  const Timing& timing = group_->timing();
  link->trust(task_, timing.agreed_heartbeat_ns(reply.heartbeat_ns), reply.features & wire::kFeatures, group_->self_task());
  link->share_memory(reply.features, *group_->host().seams.budget);
  attach(link, reply.incarnation, reply.group_life);
}

void GroupPeer::again(const Status& why) {
  trouble_ = why;
  if (!dials_) return;
  loop_.set(pause_, loop_.clock().monotonic_ns() + pause_ns_);
  pause_ns_ = std::min(pause_ns_ * 2, kRetryLastNs);
}

// Lives of one process are in order; which of two processes came later only shows when both have been here.
bool GroupPeer::is_past(const wire::Hello& hello) const {
  if (hello.life == process_) return hello.group_life < life_;
  return std::ranges::find(past_, hello.life) != past_.end();
}

uint64_t GroupPeer::own_life() const { return group_ ? group_->life() : 0; }

void GroupPeer::attach(Ref<Link> link, uint64_t process, uint64_t life) {
  if (const Ref<Link> before = link_; before && before->is_open()) before->fail(unavailable("%s has connected anew", task_.c_str()));
  if (!group_ || !link->is_open()) return;
  link_ = std::move(link);
  if (process_ != 0 && process != process_) past_.push_back(process_);
  if (past_.size() > kPastMost) past_.pop_front();
  process_ = process;
  life_ = life;
  pause_ns_ = kRetryFirstNs;
  group_->peer_up(*this);
}

void GroupPeer::stop(const Status& reason, const std::shared_ptr<void>& held) {
  group_ = nullptr;
  dials_ = false;
  loop_.cancel(pause_);
  if (const Ref<Link> greeting = std::exchange(greeting_, nullptr)) greeting->fail(reason);
  const Ref<Link> link = std::exchange(link_, nullptr);
  if (!link) return parting_ ? parting_->hold(held) : void();
  if (!link->is_open()) return;
  wire::GroupWord word;
  word.verb = static_cast<uint8_t>(GroupVerb::leave);
  word.status = reason;
  parting_ = link;
  // The link tells this of its end, too.
  link->part(word, reason, kPartNs, std::make_shared<std::pair<Ref<GroupPeer>, std::shared_ptr<void>>>(Ref<GroupPeer>::share(this), held));
}

void GroupPeer::queue(std::unique_ptr<OutFrame> frame) {
  if (!is_linked()) return;  // what belongs to it ends with the link's loss
  link_->channel().queue(std::move(frame));
  queued_ = true;
  if (group_) group_->queued();
}

void GroupPeer::queue(const wire::GroupWord& word) {
  auto frame = std::make_unique<OutFrame>();
  frame->head = wire::make_frame(word);
  queue(std::move(frame));
}

bool GroupPeer::push() {
  if (!std::exchange(queued_, false) || !is_linked()) return false;
  const Ref<Link> link = link_;
  link->channel().push();
  return true;
}

Result<Channel::Landing> GroupPeer::payload(const wire::Prefix& prefix, std::string_view header) {
  if (prefix.kind != wire::Kind::group_data) return data_loss("a %s frame has no payload", wire::kind_name(prefix.kind));
  if (!group_ || !is_linked()) return unauthenticated("a piece of a collective came before hello");
  wire::GroupData data;
  DTG_TRY(wire::decode(header, data));
  early_ = nullptr;
  return group_->piece_begins(*this, data, prefix.payload_bytes, &early_);
}

Status GroupPeer::message(const wire::Prefix& prefix, std::string_view header) {
  if (!group_ || !is_linked()) return unauthenticated("a %s frame came before hello", wire::kind_name(prefix.kind));
  const Ref<GroupPeer> self = Ref<GroupPeer>::share(this);
  const Ref<Group> group = Ref<Group>::share(group_);
  if (prefix.kind == wire::Kind::group_word) {
    wire::GroupWord word;
    DTG_TRY(wire::decode(header, word));
    group->word(*this, word);
    return {};
  }
  if (prefix.kind != wire::Kind::group_data) return unimplemented("a %s frame makes no sense in a group", wire::kind_name(prefix.kind));
  wire::GroupData data;
  DTG_TRY(wire::decode(header, data));
  if (prefix.payload_bytes == 0) {
    early_ = nullptr;
    DTG_ASSIGN(const Channel::Landing landing, group->piece_begins(*this, data, 0, &early_));
    (void)landing;
  }
  return group->piece_arrived(*this, data, prefix.payload_bytes, std::exchange(early_, nullptr), link_->channel().lent());
}

// It leaves as this member does: nothing that is on its way in either direction is wanted any more.
bool GroupPeer::parts(const wire::Prefix& prefix, std::string_view header) {
  wire::GroupWord word;
  return prefix.kind == wire::Kind::group_word && wire::decode(header, word).ok() &&
         static_cast<GroupVerb>(word.verb) == GroupVerb::leave && word.epoch == 0;
}

void GroupPeer::lost(const Status& reason) {
  const Ref<GroupPeer> self = Ref<GroupPeer>::share(this);
  // A group that was left stays known by its name; what its links hold need not.
  parting_ = nullptr;
  if (!group_ || !link_) return;
  link_ = nullptr;
  trouble_ = reason;
  early_ = nullptr;
  const Ref<Group> group = Ref<Group>::share(group_);
  group->peer_down(*this, reason);
  if (group_ && dials_) again(reason);
}

}  // namespace dtg
