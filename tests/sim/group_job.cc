// Faults and checks around the hosts of a group.
#include "group_job.h"

#include <algorithm>

namespace dtg::sim {
namespace {

constexpr int64_t kDisturbedNs = 40 * kSecond, kCalmNs = 20 * kSecond;
constexpr int64_t kDeadNs = Timing().dead_ns;

}  // namespace

GroupJob::GroupJob(uint64_t seed, bool talks)
    : world_(seed), net_(world_), only_kills_(world_.one_in(4)), watch_(world_, seed, static_cast<int>(world_.between(2, 6))) {
  world_.talks = talks;
  watch_.come_again = world_.one_in(5);
  watch_.only_kills = only_kills_;
  watch_.epoch_ended = [this](uint64_t epoch) { expect_end(epoch, "a call of it failed"); };
  watch_.spec = spec_of(0, watch_.members);
  for (int m = 0; m < watch_.members; ++m) {
    Member& member = members_.emplace_back();
    member.name = "worker" + std::to_string(m);
    member.number = m;
  }
}

GroupJob::~GroupJob() = default;

void GroupJob::start(Member& member) {
  world_.say("start " + member.name);
  // Its own, not the member's: a fiber that was killed may still unwind when the next one runs.
  const auto host = std::make_shared<GroupHost*>(nullptr);
  member.process = std::make_unique<Process>(world_, net_, member.name, world_.u64(), nullptr, [host](Process&) { (*host)->run(); });
  member.host = std::make_unique<GroupHost>(watch_, *member.process, member.number);
  *host = member.host.get();
}

void GroupJob::kill(Member& member, int64_t back_in_ns) {
  world_.say("kill " + member.name);
  watch_.accuse(member.number, back_in_ns + 14 * kSecond);
  if (const Ref<Group>& group = member.host->group(); group && group->view().cause.ok())
    expect_end(group->view().epoch, member.name + " was killed");
  member.host->died();
  member.process->kill();
  remains_.push_back(std::move(member.process));
  hosts_.push_back(std::move(member.host));
  world_.after(back_in_ns, [this, &member] { start(member); });
}

// Who is in an epoch that has ended for one member, or with one that is killed, hears of it within T_dead + 1 s. Other faults than deaths
// may hold that up.
void GroupJob::expect_end(uint64_t epoch, const std::string& why) {
  if (!only_kills_ || epoch == 0) return;
  world_.after(kDeadNs + kSecond, [this, why, epoch, begun = watch_.lives] {
    for (const Member& member : members_) {
      if (!member.host || !member.host->group() || member.host->life() > begun) continue;
      const Group::View now = member.host->group()->view();
      if (now.epoch == epoch && now.cause.ok())
        watch_.wrong(member.name + " has not heard of the end of epoch " + std::to_string(epoch) + ": " + why);
    }
  });
}

// One fault, and when it is over.
void GroupJob::disturb() {
  if (world_.now_ns() >= watch_.calm_from_ns) return;
  ++faults_;
  Member& one = members_[static_cast<size_t>(world_.between(0, watch_.members - 1))];
  Member& other = members_[static_cast<size_t>(world_.between(0, watch_.members - 1))];
  const int64_t lasts_ns = world_.between(1, 60) * world_.between(1, 100) * kMillisecond;
  const int64_t guilty_ns = lasts_ns + 14 * kSecond;
  switch (only_kills_ ? 3 : world_.between(0, 6)) {
    case 0:
      world_.say("block " + one.name + " -> " + other.name);
      // Until it is healed, which may be at the end.
      watch_.accuse(one.number, kDisturbedNs);
      watch_.accuse(other.number, kDisturbedNs);
      net_.block(one.name, other.name);
      if (world_.one_in(2)) net_.block(other.name, one.name);
      break;
    case 1:
      world_.say("slow");
      watch_.accuse_all(kDisturbedNs);
      net_.slow_down(world_.between(1, 300) * kMillisecond);
      break;
    case 2:
      world_.say("stall " + one.name);
      watch_.accuse(one.number, guilty_ns);
      if (one.process) one.process->stall(world_.now_ns() + lasts_ns);
      break;
    case 3:
    case 4:
      // Who stays away shows whether its end is noticed, and not only that it is back.
      if (one.process) kill(one, only_kills_ && world_.one_in(2) ? world_.between(7, 10) * kSecond : lasts_ns / 2);
      break;
    default:
      world_.say("break a connection");
      watch_.accuse_all(14 * kSecond);
      for (int64_t k = world_.between(1, 3); k > 0 && net_.break_one(); --k) {
      }
  }
  if (world_.one_in(3)) world_.after(lasts_ns, [this] { rest(); });
  world_.after(only_kills_ ? world_.between(4, 14) * kSecond : world_.between(10, 4000) * kMillisecond, [this] { disturb(); });
}

void GroupJob::rest() {
  world_.say("heal");
  net_.heal();
  net_.slow_down(0);
}

void GroupJob::check_calm() {
  for (const Member& member : members_) {
    const auto m = static_cast<size_t>(member.number);
    if (watch_.last_done_ns[m] < world_.now_ns() - 3 * kSecond)
      watch_.wrong(member.name + " has done nothing for three seconds, though all is well again");
    else if (watch_.done_in[m] != members_.size()) watch_.wrong(member.name + " is in a part of the group only, though all is well again");
  }
}

// Nothing goes on, so nothing is kept.
void GroupJob::check_quiet() {
  for (const Member& member : members_) {
    if (!member.host || !member.host->idle()) watch_.wrong(member.name + " does not come to an end of its steps");
    else if (const size_t kept = member.host->group()->kept())
      watch_.wrong(member.name + " keeps " + std::to_string(kept) + " things of calls that are over");
  }
}

Outcome GroupJob::run() {
  const int64_t began = world_.now_ns();
  watch_.calm_from_ns = began + (watch_.come_again ? 0 : kDisturbedNs);
  for (Member& member : members_) start(member);
  world_.after(2 * kSecond, [this] { disturb(); });
  world_.at(watch_.calm_from_ns + 4 * kSecond, [this] { rest(); });
  world_.run(watch_.calm_from_ns + kCalmNs);
  check_calm();
  watch_.quiet = true;
  world_.run(world_.now_ns() + 8 * kSecond);
  check_quiet();
  watch_.over = true;
  for (Member& member : members_) {
    if (member.process) remains_.push_back(std::move(member.process));
  }
  run_out(world_, remains_, [this](const std::string& what) { watch_.wrong(what); });
  return {watch_.first_wrong, watch_.done, watch_.failed, faults_, world_.events(), world_.history()};
}

}  // namespace dtg::sim
