// dtg/group.h: groups of tasks and their collectives. Any thread.
#include "dtg/group.h"

#include "base/last_out.h"
#include "capi/group.h"
#include "capi/guard.h"
#include "capi/objects.h"
#include "session/collective_run.h"

namespace dtg::capi {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kJoinNs = 60 * kSecond;
constexpr int64_t kCallNs = 600 * kSecond;
constexpr size_t kNameMax = 64;
constexpr size_t kMembersMax = 4096;

// A collective with the tensors of the host that it uses.
class CollectiveObject final : public RefCounted {
 public:
  explicit CollectiveObject(Ref<CollectiveRun> r) : run(std::move(r)) {}
  const Ref<CollectiveRun> run;
};

Status form(GroupObject& held, size_t least, int64_t timeout_ns) {
  if (timeout_ns < 0)
    return invalid_argument("form a group: the timeout is %g s; it may not be negative, and 0 means 60 s",
                            static_cast<double>(timeout_ns) * 1e-9);
  if (least > held.group->roster().size())
    return invalid_argument("form a group: least is %zu, but it has %zu members", least, held.group->roster().size());
  return form_and_wait(*held.group, least, held.clock(), Deadline::after(held.clock(), timeout_ns ? timeout_ns : kJoinNs));
}

// The loop gives up by itself before that, unless it has ended.
constexpr int64_t kLeaveNs = 5 * kSecond;

void leave(GroupObject& held) {
  const LastOut out;
  held.group->leave(cancelled("the host has left the group \"%s\"", held.group->name().c_str()), out.ticket());
  out.wait(held.clock(), Deadline::after(held.clock(), kLeaveNs));
}

Status join(ServerObject& server, const dtg_group_options* given, dtg_group** out) {
  DTG_TRY(require(out, "out"));
  dtg_group_options options = DTG_GROUP_OPTIONS_INIT;
  if (given) DTG_TRY(read_struct(given, sizeof(dtg_group_options), "dtg_group_options", &options));
  if (options.join_timeout_ns < 0 || options.default_timeout_ns < 0)
    return invalid_argument("form a group: a time of the options is negative");
  std::string name(options.name ? text(options.name, options.name_len) : "default");
  if (name.empty() || name.size() > kNameMax || name.find('\0') != std::string::npos)
    return invalid_argument("form a group: the name has %zu characters, or a NUL inside; from 1 to %zu are possible", name.size(),
                            kNameMax);
  DTG_TRY(require_array(options.members, options.num_members, "members"));
  if (options.num_members > kMembersMax) return invalid_argument("form a group: %zu members are too many", options.num_members);
  std::vector<std::string> members;
  for (size_t i = 0; i < options.num_members; ++i) {
    DTG_TRY(require(options.members[i], "an entry of members"));
    members.emplace_back(options.members[i]);
  }
  const int32_t key = options.key ? options.key : 1;
  DTG_ASSIGN(Ref<Group> group,
             server.server->join_group(std::move(name), std::move(members), key,
                                       options.default_timeout_ns ? options.default_timeout_ns : kCallNs, server.runtime));
  auto object = make_ref<GroupObject>(Ref<ServerObject>::share(&server), std::move(group),
                                      options.default_timeout_ns ? options.default_timeout_ns : kCallNs);
  DTG_TRY(form(*object, 0, options.join_timeout_ns));
  return give(HandleType::group, std::move(object), out);
}

// What a call is made of: the arguments, and the tensors, held for its length.
struct Asked {
  CollectiveCall call;
  int64_t timeout_ns = 0;
};

Status read_args(const dtg_collective_args* given, Collective kind, Asked* asked) {
  dtg_collective_args args = DTG_COLLECTIVE_ARGS_INIT;
  if (given) DTG_TRY(read_struct(given, sizeof(dtg_collective_args), "dtg_collective_args", &args));
  if (args.reduction < 0 || args.reduction > kReductionMax) return invalid_argument("a collective: reduction %d is none", args.reduction);
  if (args.algorithm < 0 || args.algorithm > kAlgorithmMax) return invalid_argument("a collective: algorithm %d is none", args.algorithm);
  if (args.root < 0) return invalid_argument("a collective: the root is %d; ranks count from 0", args.root);
  if (args.timeout_ns < 0)
    return invalid_argument("a collective: the timeout is %g s; it may not be negative, and 0 means the group's default",
                            static_cast<double>(args.timeout_ns) * 1e-9);
  DTG_TRY(require_array(args.splits, args.num_splits, "splits"));
  if (args.num_splits > kMembersMax) return invalid_argument("a collective: %zu splits are too many", args.num_splits);
  CallTerms& terms = asked->call.terms;
  terms.kind = kind;
  terms.reduction = static_cast<Reduction>(args.reduction);
  terms.algorithm = static_cast<Algorithm>(args.algorithm);
  terms.root = static_cast<uint32_t>(args.root);
  terms.bucket = args.bucket;
  if (args.splits) asked->call.splits.assign(args.splits, args.splits + args.num_splits);
  asked->timeout_ns = args.timeout_ns;
  return {};
}

// Tensors are shared, so that their bytes outlive the call whatever the host does with the handles.
Status read_tensors(GroupObject& group, const dtg_tensor* in, dtg_tensor* into, Asked* asked) {
  CallTerms& terms = asked->call.terms;
  if (terms.kind == Collective::barrier) return {};
  terms.open = terms.kind == Collective::broadcast && static_cast<int>(terms.root) != group.group->view().rank;
  if (into) {
    const Held<TensorObject> held(into, HandleType::tensor);
    DTG_TRY(held.status());
    if (held->read_only) return invalid_argument("the tensor for the result is around read-only memory; give another one, or NULL");
    asked->call.out = held->tensor;
  }
  if (terms.open) return {};
  const Held<TensorObject> held(in, HandleType::tensor);
  DTG_TRY(held.status());
  asked->call.in = held->tensor;
  terms.dtype = asked->call.in.dtype();
  terms.shape = asked->call.in.shape();
  return {};
}

// The call that is not made is counted as the others count theirs.
Status refuse(GroupObject& group, const std::string& what, Status why) {
  group.group->refuse(what, why);
  return why;
}

Status start(GroupObject& group, Collective kind, const dtg_tensor* in, dtg_tensor* into, const dtg_collective_args* args,
             Ref<CompletionQueue> queue, uint64_t tag, Ref<CollectiveRun>* run) {
  Asked asked;
  Status status = read_args(args, kind, &asked);
  if (status.ok()) status = read_tensors(group, in, into, &asked);
  if (!status.ok()) return refuse(group, collective_name(kind), std::move(status));
  *run = make_ref<CollectiveRun>(group.group, std::move(queue), tag);
  const int64_t timeout_ns = asked.timeout_ns ? asked.timeout_ns : group.default_timeout_ns;
  (*run)->start(std::move(asked.call), Deadline::after(group.clock(), timeout_ns));
  return {};
}

Status run(GroupObject& group, Collective kind, const dtg_tensor* in, const dtg_collective_args* args, dtg_tensor** out) {
  if (Status status = require(out, "out"); !status.ok()) return refuse(group, collective_name(kind), std::move(status));
  Ref<CollectiveRun> run;
  DTG_TRY(start(group, kind, in, *out, args, nullptr, 0, &run));
  DTG_TRY(run->wait(group.clock()));
  if (*out) return {};
  DTG_ASSIGN(Tensor result, run->take());
  return give(HandleType::tensor, Ref<TensorObject>::adopt(TensorObject::make(std::move(result))), out);
}

dtg_error* collective(dtg_group* group, Collective kind, const dtg_tensor* in, const dtg_collective_args* args, dtg_tensor** out) noexcept {
  return with<GroupObject>(group, HandleType::group, [&](GroupObject& g) { return run(g, kind, in, args, out); });
}

}  // namespace
}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_group_join(dtg_server* server, const dtg_group_options* options, dtg_group** out) noexcept {
  return with<ServerObject>(server, HandleType::server, [&](ServerObject& s) { return join(s, options, out); });
}
dtg_error* dtg_group_reform(dtg_group* group, size_t least, int64_t timeout_ns) noexcept {
  return with<GroupObject>(group, HandleType::group, [&](GroupObject& g) { return form(g, least, timeout_ns); });
}
dtg_error* dtg_group_leave(dtg_group* group) noexcept {
  return with<GroupObject>(group, HandleType::group, [&](GroupObject& g) -> Status {
    leave(g);
    return {};
  });
}
int32_t dtg_group_rank(const dtg_group* group) noexcept {
  const Held<GroupObject> held(group, HandleType::group);
  return held ? held->group->view().rank : -1;
}
int32_t dtg_group_size(const dtg_group* group) noexcept {
  const Held<GroupObject> held(group, HandleType::group);
  return held ? static_cast<int32_t>(held->group->view().members.size()) : 0;
}
uint64_t dtg_group_epoch(const dtg_group* group) noexcept {
  const Held<GroupObject> held(group, HandleType::group);
  return held ? held->group->view().epoch : 0;
}
const char* dtg_group_member(const dtg_group* group, int32_t rank) noexcept {
  const Held<GroupObject> held(group, HandleType::group);
  if (!held || rank < 0) return nullptr;
  const Group::View view = held->group->view();
  if (static_cast<size_t>(rank) >= view.members.size()) return nullptr;
  for (const Group::Member& member : held->group->roster()) {
    if (member.task == view.members[static_cast<size_t>(rank)]) return member.task.c_str();
  }
  return nullptr;
}
dtg_group* dtg_group_retain(dtg_group* group) noexcept { return retain_handle(group, HandleType::group); }
void dtg_group_release(dtg_group* group) noexcept { release_handle(group, HandleType::group); }

dtg_error* dtg_group_all_reduce(dtg_group* group, const dtg_tensor* in, const dtg_collective_args* args, dtg_tensor** out) noexcept {
  return collective(group, Collective::all_reduce, in, args, out);
}
dtg_error* dtg_group_all_gather(dtg_group* group, const dtg_tensor* in, const dtg_collective_args* args, dtg_tensor** out) noexcept {
  return collective(group, Collective::all_gather, in, args, out);
}
dtg_error* dtg_group_reduce_scatter(dtg_group* group, const dtg_tensor* in, const dtg_collective_args* args, dtg_tensor** out) noexcept {
  return collective(group, Collective::reduce_scatter, in, args, out);
}
dtg_error* dtg_group_broadcast(dtg_group* group, const dtg_tensor* in, const dtg_collective_args* args, dtg_tensor** out) noexcept {
  return collective(group, Collective::broadcast, in, args, out);
}
dtg_error* dtg_group_all_to_all(dtg_group* group, const dtg_tensor* in, const dtg_collective_args* args, dtg_tensor** out) noexcept {
  return collective(group, Collective::all_to_all, in, args, out);
}
dtg_error* dtg_group_barrier(dtg_group* group, int64_t timeout_ns) noexcept {
  return with<GroupObject>(group, HandleType::group, [&](GroupObject& g) -> Status {
    dtg_collective_args args = DTG_COLLECTIVE_ARGS_INIT;
    args.timeout_ns = timeout_ns;
    Ref<CollectiveRun> run;
    DTG_TRY(start(g, Collective::barrier, nullptr, nullptr, &args, nullptr, 0, &run));
    return run->wait(g.clock());
  });
}

dtg_error* dtg_group_start(dtg_group* group, dtg_collective_kind kind, const dtg_tensor* in, dtg_tensor* into,
                           const dtg_collective_args* args, dtg_cq* cq, uint64_t tag, dtg_collective** out) noexcept {
  return with<GroupObject>(group, HandleType::group, [&](GroupObject& g) -> Status {
    if (kind < 0 || kind > kCollectiveMax) return refuse(g, "a collective", invalid_argument("start a collective: kind %d is none", kind));
    const Held<CompletionQueue> queue(cq, HandleType::cq);
    if (!queue.status().ok()) return refuse(g, collective_name(static_cast<Collective>(kind)), queue.status());
    Ref<CollectiveRun> run;
    DTG_TRY(start(g, static_cast<Collective>(kind), in, into, args, Ref<CompletionQueue>::share(queue.get()), tag, &run));
    return out ? give(HandleType::collective, make_ref<CollectiveObject>(std::move(run)), out) : Status();
  });
}
void dtg_collective_cancel(dtg_collective* collective) noexcept {
  // A cancel cannot report anything, so running out of memory inside it is swallowed.
  dtg_error_release(with<CollectiveObject>(collective, HandleType::collective, [](CollectiveObject& held) -> Status {
    held.run->cancel();
    return {};
  }));
}
dtg_error* dtg_collective_take_result(dtg_collective* collective, dtg_tensor** out) noexcept {
  return with<CollectiveObject>(collective, HandleType::collective, [&](CollectiveObject& held) -> Status {
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(Tensor result, held.run->take());
    return give(HandleType::tensor, Ref<TensorObject>::adopt(TensorObject::make(std::move(result))), out);
  });
}
dtg_collective* dtg_collective_retain(dtg_collective* collective) noexcept { return retain_handle(collective, HandleType::collective); }
void dtg_collective_release(dtg_collective* collective) noexcept { release_handle(collective, HandleType::collective); }

}  // extern "C"
