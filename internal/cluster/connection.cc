// The server's side of the protocol.
#include "cluster/connection.h"

#include <algorithm>
#include <cstring>

namespace dtg {
namespace {

constexpr size_t kPartsMax = 1024;
constexpr size_t kRegistrationsMax = 64;  // of one session at a time

const char* channel_name(const Channel& channel) {
  const std::string_view security = channel.security();
  if (channel.shares_memory()) return "shared memory";
  return security == "uid" ? "unix" : security == "memory" ? "memory" : "tcp";
}

}  // namespace

// A part on its way from bytes to an answer, which comes by its deadline: the pool prepares it, the loop answers.
class Connection::Registration final : public PartRequest {
 public:
  Registration(Ref<Connection> connection, uint32_t call, Ref<Buffer> graph, size_t bytes, std::vector<uint32_t> targets, Deadline deadline)
      : PartRequest(connection->task_, std::move(targets), connection->rights_, deadline),
        connection_(std::move(connection)),
        call_(call),
        graph_(std::move(graph)),
        bytes_(bytes),
        late_([this] { connection_->late(*this); }) {}
  ~Registration() override { drop_graph(); }

  std::string_view graph() const override { return {static_cast<const char*>(graph_->data()), bytes_}; }
  void prepared(Result<Ref<ServedPart>> part) override {
    drop_graph();
    connection_->loop_.post([self = Ref<Registration>::share(this), part = std::move(part)]() mutable {
      self->connection_->registered(self, std::move(part));
    });
  }

  // Loop thread.
  uint32_t call() const { return call_; }
  void begin() {
    connection_->loop_.set(late_, deadline().at_ns);
    submit();
  }
  // What comes now is not told any more.
  void end() {
    connection_->loop_.cancel(late_);
    give_up();
  }

 private:
  void drop_graph() {
    if (!graph_) return;
    graph_ = nullptr;
    connection_->task_->host().seams.budget->release(static_cast<int64_t>(bytes_));
  }

  const Ref<Connection> connection_;
  const uint32_t call_;
  Ref<Buffer> graph_;
  const size_t bytes_;
  AlarmCall late_;
};

// Meeting the tasks that a part sends to. It begins on the pool, as keys may have to be read, and goes on as they answer.
class Connection::Dial final : public RefCounted, public Pool::Task {
 public:
  Dial(Ref<Connection> connection, Ref<Registration> registration, Ref<ServedPart> part, std::vector<Neighbours::Target> targets)
      : connection_(std::move(connection)), registration_(std::move(registration)), part_(std::move(part)), targets_(std::move(targets)) {}
  // The last answer lets go of it.
  ~Dial() override {
    connection_->loop_.post([connection = connection_, registration = registration_, part = part_, unreachable = std::move(unreachable_)] {
      connection->answer(registration, part, unreachable);
    });
  }

  void run() override {
    const Ref<Dial> self = Ref<Dial>::adopt(this);
    const Deadline until = Deadline::after(connection_->loop_.clock(), connection_->timing_.handshake_ns);
    for (const Neighbours::Target& target : targets_) {
      const auto told = [self, &target](const Status& status) { self->met(target, status); };
      if (target.worker) target.worker->connect(until, told);
      else told(not_found("the cluster that this task knows does not name it"));
    }
  }

 private:
  void met(const Neighbours::Target& target, const Status& status) {
    if (status.ok()) return;
    {
      const std::lock_guard lock(mutex_);
      unreachable_.push_back(target.task);
    }
    say(connection_->task_->host(), LogLevel::warn,
        connection_->task_->name() + " cannot send to " + target.task + " itself, a session does so in its place: " + status.message());
  }

  const Ref<Connection> connection_;
  const Ref<Registration> registration_;
  const Ref<ServedPart> part_;
  const std::vector<Neighbours::Target> targets_;
  std::mutex mutex_;  // guards unreachable_
  std::vector<std::string> unreachable_;
};

Connection::Connection(Server& server, Ref<Channel> channel)
    : server_(&server),
      task_(server.task_),
      timing_(server.options_.timing),
      loop_(server.host_.loop()),
      link_(make_ref<Link>(loop_, std::move(channel), timing_, this)),
      fence_(server.fence_) {}

Connection::~Connection() = default;

void Connection::open() {
  retain();  // until lost() or close()
  link_->open();
}

void Connection::close(const Status& reason) {
  if (!server_) return;
  link_->close(reason);
  lost(reason);
}

void Connection::lost(const Status& reason) {
  std::erase(server_->connections_, this);
  if (server_->session(session_) == this) {
    server_->sessions_.erase(session_);
    server_->departures_.left(session_, link_->said_goodbye());
    task_->ledger().left(session_);
    // Nobody has its number any more, to ask what it did or to repeat it.
    if (link_->said_goodbye()) fence_->when_quiet(session_, {}, [task = task_, session = session_] { task->ledger().forget(session); });
  }
  server_ = nullptr;
  if (attends_) task_->attendance()->left(peer_task_, session_, link_->said_goodbye(), reason);
  tell((known_ ? link_->peer() : std::string("a connection")) + " has gone: " + reason.message());
  // A session that is gone gets no answers, and nothing of it goes on.
  for (auto& [sequence, run] : runs_) {
    run.run->stop(reason);
    // One that waits for another ends as soon as it begins.
    if (std::exchange(run.waits, false)) run.run->start(false);
  }
  for (const Ref<Registration>& registration : std::exchange(registrations_, {})) registration->end();
  parts_.clear();
  task_->trim();
  drop_graph();
  neighbours_.close(reason);
  if (const Ref<GroupPeer> member = std::exchange(member_, nullptr); member && known_) member->lost(reason);
  release();
}

void Connection::tell(const std::string& what) const { say(task_->host(), LogLevel::info, task_->name() + ": " + what); }

void Connection::drop_graph() {
  if (!graph_) return;
  graph_ = nullptr;
  task_->host().seams.budget->release(static_cast<int64_t>(graph_bytes_));
}

Result<Channel::Landing> Connection::payload(const wire::Prefix& prefix, std::string_view header) {
  if (!known_) return unauthenticated("a payload came before hello");
  if (member_) return member_->payload(prefix, header);
  if (neighbour_) return permission_denied("a neighbour brings values, not a %s", wire::kind_name(prefix.kind));
  if (prefix.kind != wire::Kind::register_part) return data_loss("a %s frame has no payload", wire::kind_name(prefix.kind));
  DTG_TRY(task_->host().seams.budget->reserve(static_cast<int64_t>(prefix.payload_bytes), "a graph that is sent here"));
  graph_bytes_ = static_cast<size_t>(prefix.payload_bytes);
  auto buffer = Buffer::allocate(static_cast<int64_t>(prefix.payload_bytes));
  if (!buffer.ok()) {
    task_->host().seams.budget->release(static_cast<int64_t>(graph_bytes_));
    return buffer.status();
  }
  graph_ = buffer.take();
  return Channel::Landing{graph_->data(), nullptr};
}

Status Connection::message(const wire::Prefix& prefix, std::string_view header) {
  if (prefix.kind == wire::Kind::hello) return hello(prefix.call, header);
  if (!known_) return unauthenticated("a %s frame came before hello", wire::kind_name(prefix.kind));
  if (member_) return member_->message(prefix, header);
  if (neighbour_) return permission_denied("a neighbour brings values, not a %s", wire::kind_name(prefix.kind));
  switch (prefix.kind) {
    case wire::Kind::register_part: return register_part(prefix.call, header);
    case wire::Kind::run_part: return run_part(header);
    case wire::Kind::abort: return abort_run(header);
    case wire::Kind::reset: return reset(prefix.call, header);
    case wire::Kind::end_job: return end_job(prefix.call, header);
    case wire::Kind::inspect: return inspect(prefix.call, header);
    case wire::Kind::arrive: return arrive(prefix.call, header);
    case wire::Kind::drop_part: {
      wire::DropPart drop;
      DTG_TRY(wire::decode(header, drop));
      parts_.erase(drop.part);
      task_->trim();
      return {};
    }
    default: return unimplemented("a %s frame makes no sense to a server", wire::kind_name(prefix.kind));
  }
}

Status Connection::check_hello(const wire::Hello& hello) const {
  if (hello.version_min > wire::kVersion || hello.version_max < wire::kVersionMin) {
    return failed_precondition(
        "hello: this task speaks versions %u to %u of the protocol, the other end %u to %u; run releases of dtg that are next to each "
        "other, or the same",
        wire::kVersionMin, wire::kVersion, hello.version_min, hello.version_max);
  }
  const auto proven = link_->channel().authenticated_peer();
  if (proven && *proven != hello.task) {
    return unauthenticated("hello: it says that it is \"%.*s\", but its key is that of \"%s\"",
                           static_cast<int>(std::min<size_t>(hello.task.size(), 200)), hello.task.c_str(),
                           proven->empty() ? "a client" : proven->c_str());
  }
  // Whoever connects anew comes under his old name; nobody else takes over what belongs to a session.
  const bool is_session = hello.role != wire::Role::neighbour && hello.role != wire::Role::member;
  const Connection* const before = is_session ? server_->session(hello.session) : nullptr;
  if (before && before->peer_task_ != hello.task)
    return permission_denied("hello: the session %llu is somebody else's", static_cast<unsigned long long>(hello.session));
  if (hello.role == wire::Role::task && !fence_->is_present({hello.task, hello.life}))
    return aborted("hello: %s has been started anew since; this process is not it any more", hello.task.c_str());
  if (!hello.wanted_task.empty() && hello.wanted_task != task_->name()) {
    return failed_precondition("hello: this is %s, but %s was expected here; do both ends have the same cluster?", task_->name().c_str(),
                               hello.wanted_task.c_str());
  }
  return {};
}

// Whoever a task brings values for has to be here already, and the task one of ours.
Status Connection::greet_neighbour(const wire::Hello& hello) {
  if (!server_->options_.cluster.find(hello.task)) {
    return permission_denied("hello: \"%s\" is no task of the cluster, so it has no values to bring", hello.task.c_str());
  }
  Connection* const session = server_->session(hello.session);
  if (!session)
    return unavailable("hello: the session that %s brings values for is not connected to %s", hello.task.c_str(), task_->name().c_str());
  session->neighbours_.add_source(hello.task, link_);
  neighbour_ = true;
  return {};
}

Status Connection::greet_member(const wire::Hello& hello) {
  if (!server_->options_.cluster.find(hello.task))
    return permission_denied("hello: \"%s\" is no task of the cluster, so it is in no group of it", hello.task.c_str());
  const Ref<Group> group = server_->group(hello.group);
  if (!group) return unavailable("hello: %s has not joined the group \"%s\" yet", task_->name().c_str(), hello.group.c_str());
  DTG_ASSIGN(member_, group->member_of(hello));
  return {};
}

Status Connection::hello(uint32_t call, std::string_view header) {
  if (greeting_ || !server_) return data_loss("hello came twice");
  greeting_ = true;
  wire::Hello hello;
  DTG_TRY(wire::decode(header, hello));
  Status status = check_hello(hello);
  if (status.ok() && hello.role == wire::Role::neighbour) status = greet_neighbour(hello);
  if (status.ok() && hello.role == wire::Role::member) status = greet_member(hello);
  if (!status.ok() || neighbour_ || member_) return let_in(call, hello, status), Status();
  // Who comes anew is the only one from now on, and what his predecessor began is over before he is told so.
  if (Connection* const before = server_->session(hello.session)) before->close(aborted("the session has connected anew"));
  const Fence::Life life{hello.task, hello.life};
  if (hello.role == wire::Role::task) end_earlier_lives(life);
  fence_->when_quiet(hello.session, life, [self = Ref<Connection>::share(this), call, hello] {
    // Another may have come meanwhile, or this one gone.
    if (self->server_) self->let_in(call, hello, self->check_hello(hello));
  });
  return {};
}

// A process that was started again in the place of one that died: what the dead one began does not go on beside it.
void Connection::end_earlier_lives(const Fence::Life& life) {
  std::vector<Ref<Connection>> earlier;
  for (Connection* const other : server_->connections_) {
    if (other != this && other->life_.is_other_of(life)) earlier.push_back(Ref<Connection>::share(other));
  }
  for (const Ref<Connection>& each : earlier) {
    fence_->is_past(each->life_);
    each->close(aborted("%s has been started anew", life.task.c_str()));
  }
}

void Connection::let_in(uint32_t call, const wire::Hello& hello, const Status& status) {
  wire::HelloReply reply;
  reply.status = status;
  reply.version = std::min(wire::kVersion, hello.version_max);
  const uint64_t both = hello.features & server_->host_.features();
  reply.features = both | (task_->log() ? wire::kKeepsState : 0);
  reply.task = task_->name();
  reply.incarnation = task_->incarnation();
  reply.cluster = server_->options_.cluster.text();
  for (const Device& device : task_->devices()) reply.devices.push_back(device.text);
  reply.heartbeat_ns = static_cast<uint64_t>(timing_.heartbeat_ns);
  if (member_) reply.group_life = member_->own_life();
  link_->send(reply, call);
  if (!reply.status.ok()) {
    tell("refused somebody: " + reply.status.message());
    return;  // it goes away, or its time to say hello runs out
  }
  known_ = true;
  peer_task_ = hello.task;
  session_ = hello.session;
  if (hello.role == wire::Role::task) life_ = {hello.task, hello.life};
  if (!neighbour_ && !member_) {
    Connection*& present = server_->sessions_[session_];
    if (Connection* const before = std::exchange(present, this)) before->close(aborted("the session has connected anew"));
    server_->sessions_[session_] = this;
    server_->departures_.came(session_);
    task_->ledger().came(session_);
  }
  rights_ = rights_of(server_->options_.cluster, peer_task_, task_->name());
  link_->trust(hello.task.empty() ? "session " + std::to_string(hello.session) : hello.task,
               timing_.agreed_heartbeat_ns(hello.heartbeat_ns), both);
  link_->share_memory(both, *task_->host().seams.budget);
  if (member_) member_->attach(link_, hello.life, hello.group_life);
  attend(hello);
  tell(link_->peer() + " has connected, " + channel_name(link_->channel()) + ", " + link_->channel().security());
}

// Who comes while others are gone is told of them.
void Connection::attend(const wire::Hello& hello) {
  Attendance* const attendance = task_->attendance();
  if (!attendance || hello.role != wire::Role::task || !rights_->allows(Verb::meet)) return;
  attends_ = true;
  hears_roll_ = (hello.features & wire::kAttendance) != 0;
  attendance->came(peer_task_, hello.life);
  for (const wire::Roll& roll : attendance->absent()) tell_roll(roll);
}

void Connection::tell_roll(const wire::Roll& roll) {
  if (hears_roll_ && link_->is_open()) link_->send(roll);
}

Status Connection::register_part(uint32_t call, std::string_view header) {
  wire::RegisterPart request;
  Status status = wire::decode(header, request);
  if (status.ok() && !graph_) status = data_loss("a part was registered without a graph");
  if (!status.ok()) {
    drop_graph();
    return status;
  }
  if (registrations_.size() >= kRegistrationsMax) {
    drop_graph();
    link_->send(wire::RegisterReply{.status = resource_exhausted("register a part: %zu parts of this session are being prepared by %s "
                                                                 "already; wait for some of them",
                                                                 registrations_.size(), task_->name().c_str())},
                call);
    return {};
  }
  // Who says no time gets as much as a call may take, and nobody more.
  const int64_t left_ns = request.deadline_left_ns > 0 ? std::min(request.deadline_left_ns, timing_.call_ns) : timing_.call_ns;
  registrations_.push_back(make_ref<Registration>(Ref<Connection>::share(this), call, std::exchange(graph_, nullptr), graph_bytes_,
                                                  std::move(request.targets), Deadline::after(loop_.clock(), left_ns)));
  registrations_.back()->begin();
  return {};
}

void Connection::registered(const Ref<Registration>& registration, Result<Ref<ServedPart>> part) {
  if (!part.ok() || !registration->is_wanted()) return answer(registration, std::move(part), {});
  Host host = task_->host();
  host.security = server_->options_.security;
  host.shared_memory = server_->options_.shared_memory;
  auto missing = neighbours_.missing(*part.value(), host, timing_, server_->options_.cluster, session_);
  if (missing.empty()) return answer(registration, std::move(part), {});
  host.pool->submit(make_ref<Dial>(Ref<Connection>::share(this), registration, part.take(), std::move(missing)).leak());
}

// It counts as under way until its work is over, also when it was too late.
void Connection::late(Registration& registration) {
  registration.end();
  const Status status = deadline_exceeded("register a part: %s had not prepared it in its time", task_->name().c_str()).in_phase("prepare");
  link_->send(wire::RegisterReply{.status = status.at_task(task_->name())}, registration.call());
}

void Connection::answer(const Ref<Registration>& registration, Result<Ref<ServedPart>> part, const std::vector<std::string>& unreachable) {
  std::erase(registrations_, registration);
  if (!registration->is_wanted()) {
    // A session that asks again finds it there; one that is gone does not.
    part = cancelled("nobody waits for it");
    if (!server_) task_->trim();
    return;
  }
  registration->end();
  if (!link_->is_open()) return;
  wire::RegisterReply reply;
  reply.status = part.status().at_task(task_->name());
  reply.unreachable = unreachable;
  if (!unreachable.empty())
    reply.status = unavailable("register a part: %s cannot reach %s", task_->name().c_str(), unreachable[0].c_str());
  if (part.ok() && parts_.size() >= kPartsMax) {
    reply.status = resource_exhausted("register a part: this session has %zu parts here already", parts_.size());
  }
  if (reply.status.ok()) {
    reply.part = ++last_part_;
    parts_[reply.part] = part.take();
  }
  link_->send(reply, registration->call());
}

Status Connection::run_part(std::string_view header) {
  wire::RunPart request;
  DTG_TRY(wire::decode(header, request));
  // An answer to the second would be taken for one to the first.
  if (runs_.contains(request.sequence))
    return data_loss("run part: step %llu was asked for twice", static_cast<unsigned long long>(request.sequence));
  if (Status refused = start_run(request); !refused.ok()) {
    wire::RunReply reply;
    reply.sequence = request.sequence;
    reply.status = refused.at_task(task_->name());
    reply.refused = true;
    link_->send(reply);
  }
  return {};
}

Status Connection::check_parts(const wire::RunPart& request) const {
  const auto part = parts_.find(request.part);
  if (part == parts_.end()) {
    return aborted("run part %llu: this task does not know it (any more); nothing was done", static_cast<unsigned long long>(request.part));
  }
  if (!part->second->plan().is_current()) return aborted("run a part: a resource it names was destroyed; nothing was done");
  if (request.stage != 0) return unimplemented("run a part in stages: commits across tasks are not built in");
  if (runs_.size() >= task_->host().limits.in_flight_calls) {
    return resource_exhausted("run a part: %zu runs of this session are under way here already", runs_.size());
  }
  return {};
}

// Nobody writes in the name of another.
Result<WriteId> Connection::write_of(const wire::RunPart& request) const {
  if (std::max(request.sequence, request.writer_sequence) >= Ledger::kSequences)
    return invalid_argument("run a part: its number is beyond %llu", static_cast<unsigned long long>(Ledger::kSequences));
  if (request.writer == 0) return WriteId{session_, request.sequence, false};
  if (request.writer != session_) return permission_denied("run a part: its writer is another session");
  return WriteId{session_, request.writer_sequence, request.writer_sequence != request.sequence};
}

Status Connection::start_run(const wire::RunPart& request) {
  DTG_TRY(check_parts(request));
  DTG_ASSIGN(const WriteId write, write_of(request));
  const auto part = parts_.find(request.part);
  const Deadline deadline = Deadline::after(loop_.clock(), request.deadline_left_ns);
  DTG_ASSIGN(std::vector<Ref<Link>> links, neighbours_.links(*part->second, link_));
  auto edges = make_ref<StepEdges>(loop_, *task_->host().seams.budget, part->second->edges(), std::move(links), request.sequence, false);
  Status status;
  try {
    status = edges->enter();
    if (status.ok()) add_run(request, write, part->second, edges, deadline);
  } catch (const std::bad_alloc&) {
    status = resource_exhausted("run a part: out of memory; nothing was done");
  }
  if (!status.ok()) return edges->end(), status;
  const Run& added = runs_.at(request.sequence);
  if (!added.waits) added.run->start(true);
  return {};
}

// All or nothing; it is not started.
void Connection::add_run(const wire::RunPart& request, const WriteId& write, const Ref<ServedPart>& part, const Ref<StepEdges>& edges,
                         Deadline deadline) {
  Run run;
  run.write = write.sequence;
  run.waits = write.repeated && std::ranges::any_of(runs_, [&](const auto& other) { return other.second.write == write.sequence; });
  run.run = make_ref<PartRun>(part, rights_, edges, write, deadline,
                              [self = Ref<Connection>::share(this), sequence = request.sequence](const Status& status) {
                                if (self->loop_.is_current()) return self->run_ended(sequence, status);
                                self->loop_.post_now([self, sequence, status] { self->run_ended(sequence, status); });
                              });
  run.deadline = std::make_unique<AlarmCall>([running = run.run] { running->stop(deadline_exceeded("%s", kTimePassed).in_phase("run")); });
  AlarmCall& alarm = *run.deadline;
  const auto at = runs_.emplace(request.sequence, std::move(run)).first;
  // An alarm that may ring is one of a run that is in the list.
  try {
    loop_.set(alarm, deadline.at_ns);
    fence_->began(session_, life_);
  } catch (const std::bad_alloc&) {
    loop_.cancel(alarm);
    runs_.erase(at);
    throw;
  }
}

// Attempts at the same run take place one after the other, so that the later one knows what became of the earlier one.
void Connection::start_repetition(uint64_t write) {
  if (std::ranges::any_of(runs_, [&](const auto& other) { return other.second.write == write && !other.second.waits; })) return;
  const auto next = std::ranges::find_if(runs_, [&](const auto& other) { return other.second.write == write; });
  if (next == runs_.end()) return;
  next->second.waits = false;
  next->second.run->start(false);
}

void Connection::run_ended(uint64_t sequence, const Status& status) {
  const auto at = runs_.find(sequence);
  if (at == runs_.end()) return;
  loop_.cancel(*at->second.deadline);
  const uint64_t write = at->second.write;
  runs_.erase(at);
  start_repetition(write);
  fence_->ended(session_);
  if (runs_.empty() && when_idle_) std::exchange(when_idle_, nullptr)();
  if (!link_->is_open()) return;
  wire::RunReply reply;
  reply.sequence = sequence;
  reply.status = status.at_task(task_->name());
  link_->send(reply);
}

Status Connection::abort_run(std::string_view header) {
  wire::Abort request;
  DTG_TRY(wire::decode(header, request));
  const auto at = runs_.find(request.sequence);
  if (at == runs_.end()) return {};
  const Ref<PartRun> run = at->second.run;
  run->stop(request.status.ok() ? cancelled("the session gave the step up") : request.status);
  return {};
}

Status Connection::reset(uint32_t call, std::string_view header) {
  wire::Reset request;
  DTG_TRY(wire::decode(header, request));
  wire::Reply reply{rights_->check(Verb::reset, "reset containers")};
  if (reply.status.ok() && task_->log())
    reply.status = unimplemented("reset containers of %s, which keeps its state in a log", task_->name().c_str());
  if (reply.status.ok()) task_->store().reset(request.containers);
  link_->send(reply, call);
  return {};
}

Status Connection::end_job(uint32_t call, std::string_view header) {
  wire::EndJob request;
  DTG_TRY(wire::decode(header, request));
  wire::Reply reply{rights_->check(Verb::end_job, "end the job")};
  link_->send(reply, call);
  if (reply.status.ok() && server_) server_->end(true);
  return {};
}

Status Connection::inspect(uint32_t call, std::string_view header) {
  wire::Inspect question;
  DTG_TRY(wire::decode(header, question));
  if (server_) link_->send(wire::InspectReply{{}, (question.write ? outcome(question.write) : server_->state()).text()}, call);
  return {};
}

// Of a run of this session, whichever connection asked for it.
Json Connection::outcome(uint64_t write) const {
  const Ledger::Made made = task_->ledger().made(session_, write);
  const bool goes_on = std::ranges::any_of(runs_, [&](const auto& run) { return run.second.write == write; });
  Json::Object found{{"units", static_cast<int64_t>(made.units)}, {"forgotten", made.forgotten}, {"goes_on", goes_on}};
  if (!made.failure.ok()) found.emplace_back("failure", made.failure.message());
  return Json::Object{{"task", task_->name()}, {"outcome", std::move(found)}};
}

Status Connection::arrive(uint32_t call, std::string_view header) {
  wire::Arrive question;
  DTG_TRY(wire::decode(header, question));
  const auto answer = [self = Ref<Connection>::share(this), call](const wire::ArriveReply& reply) {
    if (self->link_->is_open()) self->link_->send(reply, call);
  };
  wire::ArriveReply refused{.status = rights_->check(Verb::meet, "meet the workers")};
  if (refused.status.ok() && !task_->attendance())
    refused.status = failed_precondition("arrive at a barrier: %s does not keep the attendance of the job", task_->name().c_str());
  if (refused.status.ok()) task_->attendance()->arrive(peer_task_, session_, question, answer);
  else answer(refused);
  return {};
}

Json Connection::state() const {
  return Json::Object{{"peer", neighbour_ ? "values for session " + std::to_string(session_)
                               : member_  ? "a group with " + link_->peer()
                                          : link_->peer()},
                      {"task", peer_task_},
                      {"channel", channel_name(link_->channel())},
                      {"security", link_->channel().security()},
                      {"shared_bytes", static_cast<int64_t>(link_->channel().shared_bytes())},
                      {"parts", static_cast<int64_t>(parts_.size())},
                      {"runs", static_cast<int64_t>(runs_.size())}};
}

}  // namespace dtg
