// The programs of a job of bounded staleness, what befalls it, and the checks.
#include "bounded_job.h"

#include <algorithm>

#include "bounded_worker.h"
#include "cluster/server.h"

namespace dtg::sim {
namespace {

constexpr int64_t kDisturbedNs = 25 * kSecond, kCalmNs = 20 * kSecond;
// When the last fault is over: who is silent is missed, who was lost is back, and all have stepped since.
constexpr int64_t kSoundNs = Timing().dead_ns + 6 * kSecond;

}  // namespace

BoundedJob::BoundedJob(uint64_t seed, bool talks)
    : world_(seed),
      net_(world_),
      servers_(static_cast<int>(world_.between(1, 2))),
      workers_(static_cast<int>(world_.between(2, 4))),
      staleness_(static_cast<int>(world_.between(0, 3))),
      keeps_state_(world_.one_in(2)),
      is_undisturbed_(world_.one_in(4)),
      ledger_(servers_, workers_),
      seen_(static_cast<size_t>(workers_)),
      next_step_(static_cast<size_t>(workers_)) {
  world_.talks = talks;
  for (int p = 0; p < servers_; ++p)
    members_.push_back({"ps" + std::to_string(p), true, p, nullptr, keeps_state_ ? std::make_shared<ModelDisk>() : nullptr});
  for (int w = 0; w < workers_; ++w) {
    members_.push_back({"worker" + std::to_string(w), false, w, nullptr, nullptr});
    pause_ns_.push_back(world_.one_in(3) ? 400 * kMillisecond : world_.between(2, 100) * kMillisecond);
  }
}

BoundedJob::~BoundedJob() = default;

void BoundedJob::wrong(const std::string& what) {
  world_.say("WRONG: " + what);
  if (wrong_.empty()) wrong_ = what;
}

void BoundedJob::start(Member& member) {
  if (member.stays_away) return;
  world_.say("start " + member.name);
  const bool is_server = member.is_server;
  const int index = member.index;
  member.process =
      std::make_unique<Process>(world_, net_, member.name, world_.u64(), member.disk, [this, is_server, index](Process& process) {
        if (is_server) serve(process, index);
        else work(process, index);
      });
}

void BoundedJob::serve(Process& process, int index) {
  Server::Options options;
  options.cluster = ClusterSpec::parse(spec_of(servers_, workers_)).take();
  options.job = "ps";
  options.task = index;
  // Nobody needs a worker that does not come back.
  options.filters = {"/job:ps"};
  if (keeps_state_) options.state_directory = "/state";
  options.set_bytes = 20'000;
  auto server = Server::start(process.runtime()->host().take(), options, process.runtime());
  if (!server.ok()) return process.is_cut_off() ? void() : wrong("a server does not start: " + server.status().message());
  while (!process.is_cut_off() && !over_) process.sleep(50 * kMillisecond);
  process.hears(server.value()->stop(5 * kSecond));
}

void BoundedJob::work(Process& process, int index) {
  Server::Options options;
  options.cluster = ClusterSpec::parse(spec_of(servers_, workers_)).take();
  options.job = "worker";
  options.task = index;
  options.filters = {"/job:ps", "/job:worker/task:" + std::to_string(index)};
  auto server = Server::start(process.runtime()->host().take(), options, process.runtime());
  if (!server.ok()) return process.is_cut_off() ? void() : wrong("a worker does not start: " + server.status().message());
  {
    BoundedWorker worker(process, servers_, ledger_.cells(),
                         {.mode = SyncMode::ssp, .worker = index, .total = workers_, .staleness = staleness_});
    Status status;
    while (!process.is_cut_off() && !quiet_ && !(status = worker.connect(server.value()->target())).ok()) {
      world_.say(process.name() + " cannot connect: " + status.message());
      process.sleep(100 * kMillisecond);
    }
    while (status.ok() && !process.is_cut_off() && !quiet_ && step(process, worker, index)) {
      if (worker.was_late() && !process.is_cut_off() && process.last_stall_ns() < world_.now_ns() - 5 * kSecond)
        wrong(process.name() + ": a run ended later than its deadline and 100 ms");
      process.sleep(world_.between(1, 2) * pause_ns_[static_cast<size_t>(index)] / 2);
    }
    // It stays, and nobody is to wait for its next step.
    while (!process.is_cut_off() && !quiet_ && !worker.leave().ok()) process.sleep(100 * kMillisecond);
    for (; !process.is_cut_off() && !over_; process.sleep(50 * kMillisecond)) {
      if (index == 0 && is_asked_ && !audited_) audit(worker);
    }
  }
  process.hears(server.value()->stop(5 * kSecond));
}

// Joins where that is due, then a step. False: there are no cells left.
bool BoundedJob::step(Process& process, BoundedWorker& worker, int index) {
  Seen& seen = seen_[static_cast<size_t>(index)];
  const auto failed = [&](const Status& status) {
    if (process.is_cut_off()) return true;
    seen.clock = -1;
    world_.say(process.name() + " failed: " + status.message());
    return true;
  };
  if (seen.clock < 0) {
    if (const Status status = worker.go_on(); !status.ok()) return failed(status);
    const Result<int64_t> clock = worker.clock();
    if (!clock.ok()) return failed(clock.status());
    if (process.is_cut_off()) return true;
    seen.clock = clock.value();
  }
  const int number = next_step_[static_cast<size_t>(index)]++;
  if (number >= Ledger::kSteps) {
    seen.clock = -1;  // it leaves
    return false;
  }
  const int cell = Ledger::cell(index, number);
  ledger_.began(cell);
  seen.busy = true;
  const Result<int64_t> clock = worker.step(cell);
  if (process.is_cut_off()) return true;
  seen.busy = false;
  ledger_.ended(cell, clock.status());
  if (!clock.ok()) {
    // What nothing befalls does not fail.
    if (is_undisturbed_ && clock.status().code() != Code::deadline_exceeded)
      wrong(process.name() + " failed, though nothing befell it: " + clock.status().message());
    if (clock.status().code() == Code::deadline_exceeded && world_.now_ns() > sound_from_ns_ &&
        clock.status().message().find("waits for worker") == std::string::npos)
      wrong(process.name() + ": a deadline names nobody: " + clock.status().message());
    return failed(clock.status());
  }
  seen.clock = clock.value();
  seen.done_ns = world_.now_ns();
  world_.note(static_cast<uint64_t>(clock.value()));
  judge_staleness(index);
  return true;
}

// It may begin its next step: everybody else that is there is at most so many behind. Judged where all are there for certain.
void BoundedJob::judge_staleness(int index) {
  if (!is_undisturbed_ && world_.now_ns() < sound_from_ns_) return;
  for (int w = 0; w < workers_; ++w) {
    const Seen& other = seen_[static_cast<size_t>(w)];
    if (w == index || other.clock < 0 || members_[static_cast<size_t>(servers_ + w)].stays_away) continue;
    const int64_t ahead = seen_[static_cast<size_t>(index)].clock - other.clock - (other.busy ? 1 : 0);
    if (ahead <= staleness_) continue;
    wrong("worker " + std::to_string(index) + " is " + std::to_string(ahead) + " steps ahead of worker " + std::to_string(w) + ", not " +
          std::to_string(staleness_));
  }
}

// By a worker, as a client that is no task would look for those that are gone.
void BoundedJob::audit(BoundedWorker& reader) {
  const Result<std::vector<Tensor>> read = reader.counts();
  if (!read.ok()) return world_.say("the cells cannot be read: " + read.status().message());
  for (size_t p = 0; p < read.value().size(); ++p) {
    const std::string found = ledger_.judge(p, read.value()[p]);
    if (!found.empty()) wrong(found);
  }
  audited_ = true;
}

void BoundedJob::disturb() {
  if (world_.now_ns() >= calm_from_ns_) return;
  ++faults_;
  Member& one = members_[static_cast<size_t>(world_.between(0, static_cast<int64_t>(members_.size()) - 1))];
  Member& other = members_[static_cast<size_t>(world_.between(0, static_cast<int64_t>(members_.size()) - 1))];
  const int64_t lasts_ns = world_.between(1, 80) * world_.between(1, 100) * kMillisecond;
  switch (world_.between(0, 6)) {
    case 0:
      world_.say("block " + one.name + " -> " + other.name);
      net_.block(one.name, other.name);
      if (world_.one_in(2)) net_.block(other.name, one.name);
      break;
    case 1:
      world_.say("stall " + one.name);
      if (one.process) one.process->stall(world_.now_ns() + lasts_ns);
      break;
    case 2:
    case 3:
      if (!one.process || (one.is_server && !keeps_state_)) break;
      world_.say("kill " + one.name);
      one.process->kill();
      if (!one.is_server) seen_[static_cast<size_t>(one.index)] = {};
      remains_.push_back(std::move(one.process));
      world_.after(lasts_ns / 2, [this, &one] { start(one); });
      break;
    default:
      world_.say("break a connection");
      for (int64_t k = world_.between(1, 6); k > 0 && net_.break_one(); --k) {
      }
  }
  if (world_.one_in(3)) world_.after(lasts_ns, [this] { rest(); });
  world_.after(world_.between(10, 2500) * kMillisecond, [this] { disturb(); });
}

void BoundedJob::rest() {
  world_.say("heal");
  net_.heal();
}

Outcome BoundedJob::run() {
  for (Member& member : members_) start(member);
  calm_from_ns_ = world_.now_ns() + kDisturbedNs;
  sound_from_ns_ = calm_from_ns_ + 8 * kSecond + kSoundNs;
  if (!is_undisturbed_) world_.after(2 * kSecond, [this] { disturb(); });
  world_.at(calm_from_ns_ + 8 * kSecond, [this] {
    rest();
    // One does not come back, and nobody waits for it for ever.
    Member& last = members_.back();
    if (is_undisturbed_ || !world_.one_in(3)) return;
    last.stays_away = true;
    if (last.process) {
      world_.say("kill " + last.name + ", for good");
      last.process->kill();
      remains_.push_back(std::move(last.process));
    }
  });
  world_.run(sound_from_ns_ + kCalmNs);
  for (int w = 0; w < workers_; ++w) {
    if (members_[static_cast<size_t>(servers_ + w)].stays_away || next_step_[static_cast<size_t>(w)] >= Ledger::kSteps) continue;
    if (seen_[static_cast<size_t>(w)].done_ns < world_.now_ns() - 4 * kSecond)
      wrong("worker " + std::to_string(w) + " has done nothing for four seconds, though all is well again");
  }
  quiet_ = true;
  world_.run(world_.now_ns() + 5 * kSecond);
  is_asked_ = true;
  for (const int64_t until = world_.now_ns() + 30 * kSecond; !audited_ && world_.step(until);) {
  }
  if (!audited_ && wrong_.empty()) wrong("the cells could not be read in time");
  over_ = true;
  for (Member& member : members_) {
    if (member.process) remains_.push_back(std::move(member.process));
  }
  run_out(world_, remains_, [this](const std::string& what) { wrong(what); });
  return {wrong_, ledger_.done(), ledger_.failed(), faults_, world_.events(), world_.history()};
}

}  // namespace dtg::sim
