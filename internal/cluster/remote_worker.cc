// Connecting, asking, and noticing that the other end is not who it was.
#include "cluster/remote_worker.h"

#include <algorithm>

#include "base/condition.h"
#include "cluster/run.h"
#include "cluster/security.h"
#include "wire/graph_codec.h"

namespace dtg {
namespace {

constexpr int64_t kRetryFirstNs = 2'000'000;
constexpr int64_t kRetryLastNs = 2'000'000'000;

std::unique_ptr<OutFrame> frame_of(std::string head) {
  auto frame = std::make_unique<OutFrame>();
  frame->head = std::move(head);
  return frame;
}

}  // namespace

// What a server may say unasked: nothing. Lives as long as the link may call it.
class RemoteWorker::Greeter final : public Link::Listener {
 public:
  Result<Channel::Landing> payload(const wire::Prefix& prefix, std::string_view) override {
    return data_loss("a %s frame has no payload", wire::kind_name(prefix.kind));
  }
  Status message(const wire::Prefix& prefix, std::string_view) override {
    return unimplemented("a %s frame makes no sense to a session", wire::kind_name(prefix.kind));
  }
  void lost(const Status&) override {}
};

RemoteWorker::RemoteWorker(const Host& host, const Timing& timing, std::string name, Address address, std::string self, uint64_t session,
                           bool is_neighbour)
    : host_(host),
      timing_(timing),
      name_(std::move(name)),
      address_(std::move(address)),
      self_(std::move(self)),
      session_(session),
      is_neighbour_(is_neighbour),
      greeter_(new Greeter) {}

RemoteWorker::~RemoteWorker() { close(); }

std::string RemoteWorker::where() const { return (name_.empty() ? "the task" : name_) + " at " + address_.text(); }

Ref<Link> RemoteWorker::link() const {
  const std::lock_guard lock(mutex_);
  return link_;
}

bool RemoteWorker::is_current(const Part& part) const { return part.link->is_open(); }

std::vector<std::string> RemoteWorker::devices() const {
  const std::lock_guard lock(mutex_);
  return known_.devices;
}

std::string RemoteWorker::cluster() const {
  const std::lock_guard lock(mutex_);
  return known_.cluster;
}

template <class Answer>
Status RemoteWorker::ask(Link& link, const char* what, Deadline deadline,
                         const std::function<std::unique_ptr<OutFrame>(uint32_t)>& question, Answer* answer) {
  Condition answered;
  std::optional<Status> outcome;
  const auto answer_with = [&](Status status) { answered.change([&] { outcome = std::move(status); }); };
  const bool posted = host_.loop().call([&] {
    if (!link.is_open()) return answer_with(link.reason().with_context("the connection to " + where() + " is lost"));
    const uint32_t call = link.calls().start(std::string(what) + " " + where(), deadline,
                                             [answer_with, answer](const Status& status, std::string_view header) {
                                               answer_with(status.ok() ? wire::decode(header, *answer) : status);
                                             });
    link.channel().send(question(call));
  });
  if (!posted) return unavailable("%s %s: the network loop has stopped", what, where().c_str());
  // The loop bounds the wait: every call there has a deadline.
  answered.wait(*host_.seams.clock, Deadline::never(), [&] { return outcome.has_value(); });
  return *outcome;
}

Status RemoteWorker::connect_once(Deadline deadline) {
  const Deadline handshake = Deadline::after(*host_.seams.clock, timing_.handshake_ns);
  const Deadline until{std::min(handshake.at_ns, deadline.at_ns)};
  DTG_ASSIGN(const Credentials credentials, cluster_credentials(address_, host_.security, self_, name_));
  DTG_ASSIGN(Ref<Channel> channel, host_.network->connect(address_, credentials, {host_.limits, timing_.dead_ns, {}}, until));
  Ref<Link> fresh = make_ref<Link>(host_.loop(), std::move(channel), timing_, greeter_.get());
  if (is_neighbour_) fresh->keep_early_credit();
  if (!host_.loop().call([&] { fresh->open(); })) return unavailable("the network loop has stopped");
  wire::Hello hello;
  hello.session = session_;
  hello.role = is_neighbour_ ? wire::Role::neighbour : self_.empty() ? wire::Role::client : wire::Role::task;
  hello.task = self_;
  hello.wanted_task = name_;
  hello.heartbeat_ns = static_cast<uint64_t>(timing_.heartbeat_ns);
  wire::HelloReply reply;
  Status status = ask(
      *fresh, "greet", until, [&](uint32_t call) { return frame_of(wire::make_frame(hello, call)); }, &reply);
  if (status.ok()) status = reply.status;
  if (status.ok() && reply.version != wire::kVersion) status = failed_precondition("it speaks version %u of the protocol", reply.version);
  if (status.ok()) return greeted(reply, fresh);
  host_.loop().call([&] { fresh->close(status); });
  return status;
}

Status RemoteWorker::greeted(const wire::HelloReply& reply, Ref<Link> link) {
  if (name_.empty()) name_ = reply.task;
  host_.loop().call([&] { link->trust(where()); });
  const std::lock_guard lock(mutex_);
  const bool restarted = epoch_ > 0 && known_.incarnation != reply.incarnation;
  link_ = std::move(link);
  known_ = reply;
  ++epoch_;
  if (!restarted) return {};
  return aborted("%s was started anew: what its variables held is gone; initialise or restore them", where().c_str());
}

Status RemoteWorker::connect(Deadline deadline) {
  const std::lock_guard one(connecting_);
  int64_t pause_ns = kRetryFirstNs;
  for (;;) {
    if (const Ref<Link> present = link()) {
      if (present->is_open()) return {};
      if (present->reason().code() == Code::cancelled) return present->reason().with_context("connect to " + where());
    }
    const Status status = connect_once(deadline);
    if (status.ok() || status.code() != Code::unavailable) return status.with_context("connect to " + where()).in_phase("connect");
    const int64_t left = deadline.left_ns(*host_.seams.clock);
    if (left <= pause_ns) return status.with_context("connect to " + where()).at_peer(where()).in_phase("connect");
    if (closed_.wait(*host_.seams.clock, Deadline::after(*host_.seams.clock, pause_ns), [this] { return is_closed_; }))
      return failed_precondition("connect to %s: the session is closed", where().c_str());
    pause_ns = std::min(pause_ns * 2, kRetryLastNs);
  }
}

Status RemoteWorker::run(const Part& part, Run& run) {
  wire::RunPart request;
  request.part = part.id;
  request.sequence = run.sequence();
  request.deadline_left_ns = run.deadline().left_ns(*host_.seams.clock);
  DTG_TRY(run.edges()->start([&] { part.link->queue(request); }));
  part.link->kick();
  return {};
}

void RemoteWorker::drop(const Part& part) {
  if (part.link->is_open()) part.link->send(wire::DropPart{part.id});
}

Result<Worker::Part> RemoteWorker::register_part(Ref<Graph> graph, PlanRequest asked, Deadline deadline) {
  // The frame may outlive a call that ran out of time.
  DTG_ASSIGN(std::string encoded, encode_graph(*graph, host_.limits));
  const auto bytes = std::make_shared<const std::string>(std::move(encoded));
  Part part;
  part.link = link();
  if (!part.link) return unavailable("register a part with %s: it is not connected", where().c_str());
  const Deadline call = Deadline::after(*host_.seams.clock, timing_.call_ns);
  const Deadline until{std::min(call.at_ns, deadline.at_ns)};
  wire::RegisterPart request;
  request.targets.assign(asked.targets.begin(), asked.targets.end());
  request.deadline_left_ns = until.left_ns(*host_.seams.clock);
  wire::RegisterReply reply;
  const auto question = [&](uint32_t number) {
    auto frame = frame_of(wire::make_head(wire::Kind::register_part, number, wire::encode(request), bytes->size()));
    frame->payload = bytes->data();
    frame->payload_bytes = bytes->size();
    frame->taken = [bytes] {};
    return frame;
  };
  DTG_TRY(ask(*part.link, "register a part with", until, question, &reply));
  part.unreachable = std::move(reply.unreachable);
  if (!part.unreachable.empty()) return part;
  if (!reply.status.ok()) return reply.status.with_context(where());
  part.id = reply.part;
  return part;
}

Status RemoteWorker::reset(const std::vector<std::string>& containers, Deadline deadline) {
  const Ref<Link> present = link();
  if (!present) return unavailable("reset %s: it is not connected", where().c_str());
  wire::Reset request{containers};
  wire::Reply reply;
  DTG_TRY(ask(
      *present, "reset", deadline, [&](uint32_t call) { return frame_of(wire::make_frame(request, call)); }, &reply));
  return reply.status;
}

Status RemoteWorker::end_job(Deadline deadline) {
  const Ref<Link> present = link();
  if (!present) return unavailable("end the job at %s: it is not connected", where().c_str());
  wire::Reply reply;
  DTG_TRY(ask(
      *present, "end the job at", deadline, [&](uint32_t call) { return frame_of(wire::make_frame(wire::EndJob{}, call)); }, &reply));
  return reply.status;
}

Result<std::string> RemoteWorker::inspect(Deadline deadline) {
  const Ref<Link> present = link();
  if (!present) return unavailable("inspect %s: it is not connected", where().c_str());
  wire::InspectReply reply;
  DTG_TRY(ask(
      *present, "inspect", deadline, [&](uint32_t call) { return frame_of(wire::make_frame(wire::Inspect{}, call)); }, &reply));
  DTG_TRY(reply.status);
  return std::move(reply.json);
}

void RemoteWorker::close() {
  closed_.change([this] { is_closed_ = true; });
  Ref<Link> present;
  {
    const std::lock_guard lock(mutex_);
    present = link_;
  }
  if (present) host_.loop().call([&] { present->close({}); });
}

}  // namespace dtg
