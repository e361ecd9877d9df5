// Connecting, asking, and noticing that the other end is not who it was.
#include "cluster/remote_worker.h"

#include <algorithm>
#include <cmath>

#include "cluster/run.h"
#include "cluster/security.h"
#include "net/parting.h"
#include "wire/graph_codec.h"

namespace dtg {
namespace {

constexpr int64_t kRetryFirstNs = 2'000'000;
constexpr int64_t kRetryLastNs = 2'000'000'000;
constexpr int64_t kTooLateNs = 20'000'000;  // before a deadline: what is begun then would not end in time
// Who waits for a connection hears why after so long, and then now and then.
constexpr int64_t kNoticeFirstNs = 1'500'000'000;
constexpr int64_t kNoticeNextNs = int64_t{15} * 1'000'000'000;

std::unique_ptr<OutFrame> frame_of(std::string head) {
  auto frame = std::make_unique<OutFrame>();
  frame->head = std::move(head);
  return frame;
}

}  // namespace

// What a server may say unasked: which workers are gone.
class RemoteWorker::Hearing final : public RefCounted, public Link::Listener {
 public:
  Hearing(const Host& host, std::string self, Ref<Absentees> absentees)
      : host_(host), self_(std::move(self)), absentees_(std::move(absentees)) {}
  Result<Channel::Landing> payload(const wire::Prefix& prefix, std::string_view) override {
    return data_loss("a %s frame has no payload", wire::kind_name(prefix.kind));
  }
  Status message(const wire::Prefix& prefix, std::string_view header) override {
    if (prefix.kind != wire::Kind::roll || !absentees_)
      return unimplemented("a %s frame makes no sense to a session", wire::kind_name(prefix.kind));
    wire::Roll roll;
    DTG_TRY(wire::decode(header, roll));
    if (roll.task == self_) return {};
    absentees_->note(roll);
    const bool is_back = roll.presence == wire::Presence::there;
    say(host_, roll.presence == wire::Presence::lost ? LogLevel::warn : LogLevel::info,
        self_ + " hears that " + roll.task + (is_back ? " is back" : " is gone: " + roll.reason));
    return {};
  }
  void lost(const Status&) override {}

 private:
  const Host host_;
  const std::string self_;
  const Ref<Absentees> absentees_;
};

RemoteWorker::RemoteWorker(const Host& host, const Timing& timing, std::string name, Address address, std::string self, uint64_t session,
                           bool is_neighbour, Ref<Absentees> absentees)
    : host_(host),
      timing_(timing),
      name_(std::move(name)),
      address_(std::move(address)),
      self_(std::move(self)),
      session_(session),
      is_neighbour_(is_neighbour),
      hearing_(make_ref<Hearing>(host, self_, std::move(absentees))),
      pause_([this] { attempt(); }),
      notice_([this] { tell_of_trying(); }) {}

// Nothing is under way any more, or it would hold this.
RemoteWorker::~RemoteWorker() {
  if (link_ && link_->is_open()) host_.loop().post([link = std::move(link_), hearing = hearing_] { link->close({}); });
}

std::string RemoteWorker::where() const { return (name_.empty() ? "the task" : name_) + " at " + address_.text(); }

Status RemoteWorker::explained(const Status& status) const {
  return status.with_context("connect to " + where()).at_peer(where()).at_task(self_).in_phase("connect");
}

Ref<Link> RemoteWorker::link() const {
  const std::lock_guard lock(mutex_);
  return link_;
}

bool RemoteWorker::is_current(const Part& part) const { return part.link->is_open(); }

std::vector<std::string> RemoteWorker::devices() const {
  const std::lock_guard lock(mutex_);
  return known_.devices;
}

uint64_t RemoteWorker::features() const {
  const std::lock_guard lock(mutex_);
  return known_.features;
}

bool RemoteWorker::is_there() const {
  const Ref<Link> present = link();
  return present && present->is_open();
}

uint64_t RemoteWorker::life() const {
  const std::lock_guard lock(mutex_);
  return known_.incarnation;
}

std::string RemoteWorker::cluster() const {
  const std::lock_guard lock(mutex_);
  return known_.cluster;
}

// ---- connecting --------------------------------------------------------------------------------------------

void RemoteWorker::connect(Deadline deadline, Done done) { seek(deadline, true, std::move(done)); }

void RemoteWorker::reach(Deadline deadline, Done done) { seek(deadline, false, std::move(done)); }

// Of those who need the state the first is told that it is gone, and those who wait with it.
Status RemoteWorker::take_loss() {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(lost_state_, false)) return {};
  return aborted("%s was started anew: what its variables held is gone; initialise or restore them", where().c_str())
      .at_peer(where())
      .at_task(self_)
      .in_phase("connect");
}

void RemoteWorker::seek(Deadline deadline, bool needs_state, Done done) {
  if (const Ref<Link> present = link(); present && present->is_open()) return done(needs_state ? take_loss() : Status());
  auto credentials = cluster_credentials(address_, host_.security, self_, name_);
  if (!credentials.ok()) return done(explained(credentials.status()));
  host_.loop().post([self = Ref<RemoteWorker>::share(this), credentials = credentials.take(), deadline, needs_state,
                     done = std::move(done)]() mutable { self->want(std::move(credentials), deadline, needs_state, std::move(done)); });
}

void RemoteWorker::want(Credentials credentials, Deadline deadline, bool needs_state, Done done) {
  if (closed_) return done(failed_precondition("connect to %s: the session is closed", where().c_str()));
  if (const Ref<Link> present = link()) {
    if (present->is_open()) return done(needs_state ? take_loss() : Status());
    if (present->reason().code() == Code::cancelled) return done(present->reason().with_context("connect to " + where()));
  }
  credentials_ = std::move(credentials);
  const auto waiter = waiters_.insert(waiters_.end(), {deadline, std::move(done), needs_state, nullptr});
  waiter->alarm = std::make_unique<AlarmCall>([this, waiter] { late(waiter); });
  host_.loop().set(*waiter->alarm, deadline.at_ns);
  if (trying_) return;
  retain();  // until nobody waits any more
  trying_ = true;
  pause_ns_ = kRetryFirstNs;
  last_ = deadline_exceeded("nobody answered in time");
  const int64_t now = host_.seams.clock->monotonic_ns();
  host_.loop().set(notice_, std::max(now + kNoticeFirstNs, noticed_ns_ ? noticed_ns_ + kNoticeNextNs : 0));
  attempt();
}

// A wait of half a minute without a word looks like a program that hangs.
void RemoteWorker::tell_of_trying() {
  if (waiters_.empty()) return;
  int64_t left = 0;
  for (const Waiter& waiter : waiters_) left = std::max(left, waiter.deadline.left_ns(*host_.seams.clock));
  noticed_ns_ = host_.seams.clock->monotonic_ns();
  host_.loop().set(notice_, noticed_ns_ + kNoticeNextNs);
  const std::string how_long =
      left == INT64_MAX ? "until it answers" : format("for %.0f s more", std::ceil(static_cast<double>(left) * 1e-9));
  say(host_, LogLevel::warn, "cannot connect to " + where() + " yet: " + last_.message() + "; trying again " + how_long);
}

// The attempt that goes on may serve those who come after.
void RemoteWorker::late(Waiters::iterator waiter) {
  Waiters told;
  told.splice(told.end(), waiters_, waiter);
  tell(std::move(told), explained(last_));
}

void RemoteWorker::tell(Waiters told, const Status& status) {
  for (Waiter& waiter : told) {
    host_.loop().cancel(*waiter.alarm);
    waiter.done(status);
  }
}

void RemoteWorker::attempt() {
  if (waiters_.empty()) return rest();
  const Deadline until = Deadline::after(*host_.seams.clock, timing_.handshake_ns);
  dialling_ = true;
  host_.network->connect(address_, credentials_, {host_.limits, timing_.dead_ns, {}}, until,
                         [this, until](Result<Ref<Channel>> channel) { dialled(std::move(channel), until); });
}

void RemoteWorker::dialled(Result<Ref<Channel>> channel, Deadline until) {
  dialling_ = false;
  if (!channel.ok() || closed_) return failed(channel.status());
  const Ref<Link> fresh = make_ref<Link>(host_.loop(), channel.take(), timing_, hearing_.get());
  if (is_neighbour_) fresh->keep_early_credit();
  fresh->open();
  greeting_ = fresh;
  wire::Hello hello;
  hello.session = session_;
  hello.role = is_neighbour_ ? wire::Role::neighbour : self_.empty() ? wire::Role::client : wire::Role::task;
  hello.task = self_;
  hello.wanted_task = name_;
  hello.heartbeat_ns = static_cast<uint64_t>(timing_.heartbeat_ns);
  hello.features = host_.features();
  hello.life = host_.life;
  ask<wire::HelloReply>(
      fresh, "greet", until, [hello](uint32_t call) { return frame_of(wire::make_frame(hello, call)); },
      [this, fresh](const Status& status, wire::HelloReply& reply) { greeted(fresh, status, reply); });
}

void RemoteWorker::greeted(const Ref<Link>& link, Status status, const wire::HelloReply& reply) {
  greeting_ = nullptr;
  // Who is too busy to answer, or stands still, may answer the next time; who says so himself has answered.
  if (status.code() == Code::deadline_exceeded) status = unavailable("%s", status.message().c_str());
  if (status.ok()) status = reply.status;
  if (status.ok() && (reply.version < wire::kVersionMin || reply.version > wire::kVersion)) {
    status =
        failed_precondition("it speaks version %u of the protocol, this end %u to %u", reply.version, wire::kVersionMin, wire::kVersion);
  }
  if (status.ok() && closed_) status = cancelled("the session is closed");
  if (!status.ok()) {
    link->close(status);
    return failed(status);
  }
  take_over(reply, link);
  Waiters asking = std::exchange(waiters_, {}), needing;
  for (auto at = asking.begin(); at != asking.end();) {
    const auto waiter = at++;
    if (waiter->needs_state) needing.splice(needing.end(), asking, waiter);
  }
  tell(std::move(asking), {});
  if (!needing.empty()) tell(std::move(needing), take_loss());
  rest();
}

void RemoteWorker::take_over(const wire::HelloReply& reply, const Ref<Link>& link) {
  if (name_.empty()) name_ = reply.task;
  link->trust(where(), timing_.agreed_heartbeat_ns(reply.heartbeat_ns), reply.features & wire::kFeatures, self_);
  link->share_memory(reply.features, *host_.seams.budget);
  const std::lock_guard lock(mutex_);
  if (epoch_ > 0 && known_.incarnation != reply.incarnation) lost_state_ = true;
  link_ = link;
  known_ = reply;
  ++epoch_;
}

// What may pass is tried again, for those who still have time for it: after pauses that grow, but never beyond half of what somebody has
// left, so that whoever is there before the deadline is found.
void RemoteWorker::failed(const Status& status) {
  last_ = status;
  const bool may_pass = status.code() == Code::unavailable && !closed_;
  const int64_t too_late = std::min(pause_ns_, kTooLateNs);
  int64_t pause = pause_ns_;
  Waiters told;
  for (auto at = waiters_.begin(); at != waiters_.end();) {
    const auto waiter = at++;
    const int64_t left = waiter->deadline.left_ns(*host_.seams.clock);
    if (!may_pass || left <= too_late) told.splice(told.end(), waiters_, waiter);
    else pause = std::min(pause, std::max(left / 2, too_late / 2));
  }
  tell(std::move(told), explained(status));
  if (waiters_.empty()) return rest();
  host_.loop().set(pause_, host_.seams.clock->monotonic_ns() + pause);
  pause_ns_ = std::min(pause_ns_ + pause_ns_ / 2, kRetryLastNs);
}

void RemoteWorker::rest() {
  host_.loop().cancel(pause_);
  host_.loop().cancel(notice_);
  if (std::exchange(trying_, false)) release();
}

void RemoteWorker::close() {
  post_parting(host_.loop(), this, [](RemoteWorker& self) { self.shut(); });
}

void RemoteWorker::shut() {
  closed_ = true;
  if (const Ref<Link> present = link()) present->close({});
  tell(std::exchange(waiters_, {}), failed_precondition("connect to %s: the session is closed", where().c_str()));
  // A dial ends soon by itself.
  if (greeting_) greeting_->close(cancelled("the session is closed"));
  else if (!dialling_) rest();
}

// ---- asking ------------------------------------------------------------------------------------------------

template <class M>
void RemoteWorker::ask(const Ref<Link>& link, const char* what, Deadline deadline,
                       std::function<std::unique_ptr<OutFrame>(uint32_t)> question, std::function<void(const Status&, M&)> answer) {
  auto put = [self = Ref<RemoteWorker>::share(this), link, what, deadline, question = std::move(question), answer = std::move(answer)] {
    M message;
    if (!link || !link->is_open()) {
      const Status why = link ? link->reason() : unavailable("it is not connected");
      return answer(why.with_context(std::string(what) + " " + self->where()).at_peer(self->where()).at_task(self->self_), message);
    }
    const auto told = [self, answer](Status status, std::string_view header) {
      M reply;
      if (status.ok()) status = wire::decode(header, reply);
      answer(status.at_peer(self->where()).at_task(self->self_), reply);
    };
    link->channel().send(question(link->calls().start(std::string(what) + " " + self->where(), deadline, told)));
  };
  if (host_.loop().is_current()) put();
  else host_.loop().post(std::move(put));
}

Status RemoteWorker::run(const Part& part, Run& run) {
  wire::RunPart request;
  request.part = part.id;
  request.sequence = run.sequence();
  request.writer = session_;
  request.writer_sequence = run.write();
  request.deadline_left_ns = run.deadline().left_ns(*host_.seams.clock);
  DTG_TRY(run.edges()->start([&] { part.link->queue(request); }));
  part.link->kick();
  return {};
}

void RemoteWorker::drop(const Part& part) {
  if (part.link->is_open()) part.link->send(wire::DropPart{part.id});
}

void RemoteWorker::register_part(Ref<Graph> graph, PlanRequest asked, Deadline deadline, Answer<Part> answer) {
  auto encoded = encode_graph(*graph, host_.limits);
  if (!encoded.ok()) return answer(encoded.status());
  // The frame may outlive a call that ran out of time.
  const auto bytes = std::make_shared<const std::string>(encoded.take());
  const Deadline call = Deadline::after(*host_.seams.clock, timing_.call_ns);
  const Deadline until{std::min(call.at_ns, deadline.at_ns)};
  wire::RegisterPart request;
  request.targets.assign(asked.targets.begin(), asked.targets.end());
  request.deadline_left_ns = until.left_ns(*host_.seams.clock);
  const Ref<Link> link = this->link();
  ask<wire::RegisterReply>(
      link, "register a part with", until,
      [bytes, request](uint32_t number) {
        auto frame = frame_of(wire::make_head(wire::Kind::register_part, number, wire::encode(request), bytes->size()));
        frame->payload = bytes->data();
        frame->payload_bytes = bytes->size();
        frame->taken = [bytes] {};
        return frame;
      },
      [self = Ref<RemoteWorker>::share(this), link, answer = std::move(answer)](const Status& status, wire::RegisterReply& reply) {
        Part part;
        part.link = link;
        part.id = reply.part;
        part.unreachable = std::move(reply.unreachable);
        part.knows_writes = (self->features() & wire::kWriteIds) != 0;
        part.keeps_state = (self->features() & wire::kKeepsState) != 0;
        if (!status.ok()) answer(status.in_phase("prepare"));
        else if (!reply.status.ok() && part.unreachable.empty()) answer(reply.status.with_context(self->where()));
        else answer(std::move(part));
      });
}

void RemoteWorker::reset(const std::vector<std::string>& containers, Deadline deadline, Done done) {
  const wire::Reset request{containers};
  ask<wire::Reply>(
      link(), "reset", deadline, [request](uint32_t call) { return frame_of(wire::make_frame(request, call)); },
      [done = std::move(done)](const Status& status, const wire::Reply& reply) { done(status.ok() ? reply.status : status); });
}

void RemoteWorker::end_job(Deadline deadline, Done done) {
  ask<wire::Reply>(
      link(), "end the job at", deadline, [](uint32_t call) { return frame_of(wire::make_frame(wire::EndJob{}, call)); },
      [done = std::move(done)](const Status& status, const wire::Reply& reply) { done(status.ok() ? reply.status : status); });
}

void RemoteWorker::arrive(uint64_t, const wire::Arrive& question, Deadline deadline, Answer<wire::ArriveReply> answer) {
  if ((features() & wire::kAttendance) == 0)
    return answer(unimplemented("arrive at a barrier: %s runs a release of dtg that keeps none", where().c_str()));
  ask<wire::ArriveReply>(
      link(), "arrive at a barrier of", deadline, [question](uint32_t call) { return frame_of(wire::make_frame(question, call)); },
      [answer = std::move(answer)](const Status& status, wire::ArriveReply& reply) {
        if (!status.ok()) answer(status);
        else answer(std::move(reply));
      });
}

void RemoteWorker::inspect(uint64_t write, Deadline deadline, Answer<std::string> answer) {
  ask<wire::InspectReply>(
      link(), "inspect", deadline, [write](uint32_t call) { return frame_of(wire::make_frame(wire::Inspect{write}, call)); },
      [answer = std::move(answer)](const Status& status, wire::InspectReply& reply) {
        if (!status.ok()) answer(status);
        else if (!reply.status.ok()) answer(reply.status);
        else answer(std::move(reply.json));
      });
}

}  // namespace dtg
