// Forming, stepping, judging.
#include "group_host.h"

#include <algorithm>

#include "base/last_out.h"

namespace dtg::sim {
namespace {

constexpr int64_t kFormNs = 4 * kSecond, kCallNs = 9 * kSecond;
constexpr int64_t kSlackNs = 100 * kMillisecond;
constexpr int64_t kLeaveNs = kSecond;  // at most, where everybody reads

}  // namespace

void GroupWatch::wrong(const std::string& what) {
  world.say("WRONG: " + what);
  if (first_wrong.empty()) first_wrong = what;
}

void GroupWatch::accuse(int member, int64_t lasts_ns) {
  int64_t& until = guilty_until_ns[static_cast<size_t>(member)];
  until = std::max(until, world.now_ns() + lasts_ns);
}

void GroupWatch::judge_error(const std::string& who, const std::string& what, const Status& status) {
  bool names_one = false;
  for (int member = 0; member < members; ++member) {
    if (status.message().find(task(member)) == std::string::npos) continue;
    names_one = true;
    if (guilty_until_ns[static_cast<size_t>(member)] >= world.now_ns()) return;
  }
  wrong(who + ", " + what + (names_one ? ": names only members that have done nothing: " : ": names nobody: ") + status.message());
}

void GroupHost::run() {
  queue_ = CompletionQueue::create().take();
  Server::Options options;
  options.cluster = ClusterSpec::parse(watch_.spec).take();
  options.job = "worker";
  options.task = member_;
  auto server = Server::start(process_.runtime()->host().take(), options, process_.runtime());
  if (!server.ok()) {
    if (!process_.is_cut_off()) watch_.wrong(process_.name() + " does not start: " + server.status().message());
    return;
  }
  if (join(*server.value()) && watch_.come_again) {
    live_again_and_again(*server.value());
  } else if (group_) {
    Course course = Course::anew;
    while (goes_on()) {
      if (course == Course::anew && !form()) continue;
      course = course == Course::quiet ? course : step();
      idle_ = course == Course::quiet;
      if (!watch_.only_kills && watch_.world.now_ns() < watch_.calm_from_ns && watch_.world.one_in(80)) {
        watch_.accuse(member_, 12 * kSecond);
        if (!come_again(*server.value())) break;
        course = Course::anew;
      }
      process_.sleep(idle_ ? 20 * kMillisecond : watch_.world.between(0, 60) * kMillisecond);
    }
  }
  leave(*server.value());
}

// Now and then it is told of other members first, which nobody agrees with.
bool GroupHost::join(Server& server) {
  const World& world = watch_.world;
  const bool odd = world.now_ns() < watch_.calm_from_ns && watch_.members > 2 && watch_.world.one_in(12);
  std::vector<std::string> names;
  for (int member = 0; member < watch_.members; ++member) names.push_back(GroupWatch::task(member));
  if (odd) {
    watch_.world.say(process_.name() + " names other members");
    watch_.accuse(member_, 30 * kSecond);
    std::vector<std::string> others = names;
    if (watch_.world.one_in(2)) std::swap(others[0], others[1]);
    else others.erase(others.begin() + (member_ == 0 ? 1 : 0));
    auto group = server.join_group("sim", others, 1, kCallNs, process_.runtime());
    if (!group.ok()) return watch_.wrong("it cannot join: " + group.status().message()), false;
    group_ = group.take();
    if (form()) watch_.wrong(process_.name() + " has formed a group that the others do not know");
    group_->leave(cancelled("the program has ended"));
    while (goes_on() && !group_->view().cause.message().starts_with("the program")) process_.sleep(kMillisecond);
    watch_.accuse(member_, 12 * kSecond);
    if (!goes_on()) return false;
  }
  auto group = server.join_group("sim", names, 1, kCallNs, process_.runtime());
  if (group.ok()) group_ = group.take();
  else if (!process_.is_cut_off()) watch_.wrong(process_.name() + " cannot join: " + group.status().message());
  return group.ok();
}

// No end comes later than it was asked for, but for a process that stood still.
void GroupHost::check_time(int64_t until_ns, const std::string& what) {
  const int64_t late_ns = process_.clock().monotonic_ns() - until_ns;
  if (late_ns <= kSlackNs || process_.is_cut_off() || process_.last_stall_ns() >= watch_.world.now_ns() - late_ns - kSecond) return;
  watch_.wrong(process_.name() + ": " + what + " ended " + std::to_string(late_ns / kMillisecond) + " ms after its deadline");
}

bool GroupHost::form(bool with_all) {
  if (group_->view().cause.ok()) watch_.accuse(member_, 12 * kSecond);  // the others go on
  const auto least = static_cast<size_t>(with_all || watch_.world.one_in(3) ? 0 : watch_.world.between(1, watch_.members));
  struct Forming {
    bool over = false;
    Status status;
  };
  const auto forming = std::make_shared<Forming>();
  const Clock& clock = process_.clock();
  const int64_t until = clock.monotonic_ns() + kFormNs;
  group_->form(least, Deadline::after(clock, kFormNs), [forming](const Status& status) {
    forming->over = true;
    forming->status = status;
  });
  while (!forming->over && clock.monotonic_ns() < until + 20 * kSecond) process_.sleep(kMillisecond / 2);
  if (process_.is_cut_off()) return false;
  if (!forming->over) watch_.wrong(process_.name() + ": forming does not end");
  check_time(until, "forming");
  if (!forming->status.ok()) {
    watch_.world.say(process_.name() + " cannot form: " + forming->status.message());
    process_.hears(forming->status);
    const std::string& text = forming->status.message();
    // A part of the group that is no majority, or a vote that was late, has nobody to name.
    if (text.find("/task:") == std::string::npos && text.find("majority") == std::string::npos &&
        text.find("agree in time") == std::string::npos)
      watch_.wrong(process_.name() + " cannot form, and nobody is named: " + text);
    return false;
  }
  look_around();
  return true;
}

// All who are in an epoch see the same members in it.
void GroupHost::look_around() {
  view_ = group_->view();
  in_epoch_ = 0;
  tasks_.clear();
  for (const std::string& name : view_.members) {
    for (int member = 0; member < watch_.members; ++member) {
      if (name == GroupWatch::task(member)) tasks_.push_back(member);
    }
  }
  GroupWatch::Seen& seen = watch_.epochs[view_.epoch];
  const bool lives_on = std::ranges::any_of(seen.lives, [this](uint64_t life) { return watch_.living.contains(life); });
  if (!lives_on) seen = {view_.members, {}};
  seen.lives.insert(life_);
  if (seen.members != view_.members) watch_.wrong("epoch " + std::to_string(view_.epoch) + " has other members elsewhere");
  if (view_.rank < 0 || tasks_.size() != view_.members.size() || tasks_[static_cast<size_t>(view_.rank)] != member_)
    watch_.wrong(process_.name() + " has another rank than its place");
}

// Which step comes next, and whether one more does: everybody says how far it is, and the furthest is right.
GroupHost::Course GroupHost::agree() {
  const int64_t own[] = {static_cast<int64_t>(step_), watch_.quiet ? 1 : 0, static_cast<int64_t>(view_.epoch)};
  CollectiveCall what;
  what.terms.kind = Collective::all_gather;
  what.terms.dtype = DType::i64;
  what.in = Tensor::of<int64_t>(Shape::of({1, 3}), own).take();
  what.terms.shape = what.in.shape();
  const Clock& clock = process_.clock();
  std::vector<Call> calls;
  calls.push_back({CollectiveAsk(0, 0, 0, 0, tasks_), make_ref<CollectiveRun>(group_, queue_, 0)});
  calls[0].is_agreement = true;
  calls[0].deadline_ns = clock.monotonic_ns() + kCallNs;
  calls[0].run->start(std::move(what), Deadline::after(clock, kCallNs));
  const Status status = wait_for(calls);
  if (!status.ok()) return Course::anew;
  const Tensor all = calls[0].run->take().take();
  if (all.count() != 3 * static_cast<int64_t>(tasks_.size())) return watch_.wrong("rows are missing"), Course::anew;
  bool quiet = false;
  for (size_t rank = 0; rank < tasks_.size(); ++rank) {
    const int64_t* const row = all.as<int64_t>() + 3 * rank;
    if (row[2] != static_cast<int64_t>(view_.epoch)) watch_.wrong(process_.name() + " meets a value of another epoch");
    if (in_epoch_ > 0 && row[0] != static_cast<int64_t>(step_)) watch_.wrong(process_.name() + " meets a value of another step");
    quiet = quiet || row[1] != 0;
  }
  for (size_t rank = 0; rank < tasks_.size(); ++rank) step_ = std::max(step_, static_cast<uint64_t>(all.as<int64_t>()[3 * rank]));
  return quiet ? Course::quiet : Course::on;
}

GroupHost::Course GroupHost::step() {
  const bool alone = tasks_.size() < static_cast<size_t>(watch_.members);
  // Who is missing may be back.
  if (in_epoch_ >= (alone ? 20 : 400)) return in_epoch_ = 0, Course::anew;
  if (const Course course = agree(); course != Course::on) {
    // Those who are outside could not join it any more.
    if (course == Course::quiet && alone) return Course::anew;
    return course;
  }
  std::vector<Call> calls;
  const Status made = make(calls);
  const Status status = wait_for(calls);
  if (!made.ok() || !status.ok()) return Course::anew;
  ++step_;
  ++in_epoch_;
  ++watch_.done;
  watch_.last_done_ns[static_cast<size_t>(member_)] = watch_.world.now_ns();
  watch_.done_in[static_cast<size_t>(member_)] = tasks_.size();
  watch_.world.note(step_);
  return Course::on;
}

// Starts the calls of the next step, some of them while others are under way.
Status GroupHost::make(std::vector<Call>& calls) {
  World& world = watch_.world;
  const Clock& clock = process_.clock();
  const bool calm = world.now_ns() >= watch_.calm_from_ns - 12 * kSecond;
  const int count = 1 + static_cast<int>((watch_.seed ^ step_ * 7) % 4);
  for (int number = 0; number < count && goes_on(); ++number) {
    Call call{CollectiveAsk(watch_.seed, view_.epoch, step_, number, tasks_), make_ref<CollectiveRun>(group_, queue_, calls.size())};
    // The same on all members, so that each knows who is the odd one.
    const uint64_t odds =
        (watch_.seed * 31 + view_.epoch * 1009 + step_ * 101 + static_cast<uint64_t>(number)) * 0x9e3779b97f4a7c15ull >> 20;
    call.somebody_odd = !calm && tasks_.size() > 1 && call.ask.may_be_odd() && odds % 150 == 0;
    call.odd_member = tasks_[odds / 150 % tasks_.size()];
    call.odd = call.somebody_odd && call.odd_member == member_;
    if (call.odd) {
      world.say(process_.name() + " means something else");
      if (tasks_.size() == 2) watch_.accuse_all(12 * kSecond);
      watch_.accuse(member_, 12 * kSecond);
    }
    // The time is the members' own affair.
    int64_t lasts_ns = kCallNs;
    if (!calm && world.one_in(200)) {
      lasts_ns = world.between(1, 400) * kMillisecond;
      watch_.accuse_all(12 * kSecond);
    }
    call.deadline_ns = clock.monotonic_ns() + lasts_ns;
    call.run->start(call.odd ? call.ask.odd_call(view_.rank) : call.ask.call(view_.rank), Deadline::after(clock, lasts_ns));
    if (!calm && world.one_in(300)) {
      world.say(process_.name() + " gives a call up");
      watch_.accuse(member_, 12 * kSecond);
      if (world.one_in(2)) process_.sleep(world.between(0, 2000) * kMicrosecond);
      call.run->cancel();
    }
    calls.push_back(std::move(call));
    if (world.one_in(3)) process_.sleep(world.between(0, 3000) * kMicrosecond);
  }
  return calls.size() == static_cast<size_t>(count) ? Status() : cancelled("killed");
}

// All of them, even where one has failed: none may go on without end, nor keep what it had.
Status GroupHost::wait_for(std::vector<Call>& calls) {
  const Clock& clock = process_.clock();
  Status first;
  size_t left = calls.size();
  int64_t latest_ns = 0;
  for (const Call& call : calls) latest_ns = std::max(latest_ns, call.deadline_ns);
  while (left > 0) {
    CompletionQueue::Event event;
    if (queue_->next({&event, 1}, clock, Deadline{latest_ns + 20 * kSecond}) == 0) {
      watch_.wrong(process_.name() + ": a call does not end");
      return unavailable("a call does not end");
    }
    --left;
    if (!event.status.ok() && first.ok()) first = event.status;
    ended(calls[event.tag], event.status);
  }
  return first;
}

void GroupHost::ended(Call& call, const Status& status) {
  if (process_.is_cut_off()) return;
  check_time(call.deadline_ns, "a call");
  if (status.ok()) {
    if (call.is_agreement) return;
    if (call.somebody_odd)
      watch_.wrong(process_.name() + ": a call ended well that means something else at " + GroupWatch::task(call.odd_member));
    if (call.somebody_odd || call.ask.terms().kind == Collective::barrier) return;
    const Result<Tensor> result = call.run->take();
    const std::string found = result.ok() ? call.ask.judge(view_.rank, result.value()) : result.status().message();
    if (!found.empty())
      watch_.wrong(process_.name() + ", epoch " + std::to_string(view_.epoch) + ", step " + std::to_string(step_) + ": " + found);
    return;
  }
  ++watch_.failed;
  watch_.world.say(process_.name() + " failed: " + status.message());
  watch_.judge_error(process_.name(), "a call", status);
  process_.hears(status);
  watch_.epoch_ended(view_.epoch);
}

// Forms it with all, makes a few steps, gets or gives a last value, and leaves or forms it anew at once, whatever the others still have to
// do.
void GroupHost::live_again_and_again(Server& server) {
  for (uint64_t life = 0; goes_on(); ++life) {
    if (!form(true)) {
      if (goes_on()) watch_.wrong(process_.name() + " cannot form, though all come");
      return;
    }
    for (uint64_t left = (watch_.seed * 31 + life * 7) % 4; left > 0; --left) {
      const Course course = step();
      idle_ = course == Course::quiet;
      while (idle_ && goes_on()) process_.sleep(20 * kMillisecond);
      if (course == Course::anew && goes_on()) watch_.wrong(process_.name() + ": a step has failed, though all were there for it");
      if (course != Course::on) return;
    }
    if (!broadcast_last(life)) return;
    if (watch_.world.one_in(2)) process_.sleep(watch_.world.between(0, 30) * kMillisecond);
    if (watch_.world.one_in(3)) ask_once_more();
    // All of them do the one or the other.
    if ((watch_.seed * 17 + life * 11) % 4 == 0) continue;
    const int64_t began_ns = process_.clock().monotonic_ns();
    if (!come_again(server)) return;
    if (process_.clock().monotonic_ns() - began_ns > kLeaveNs && goes_on())
      watch_.wrong(process_.name() + " takes long to leave, though everybody reads");
  }
}

// Its root is through with it at once, and may have left before the others ask for it.
bool GroupHost::broadcast_last(uint64_t life) {
  const auto root = static_cast<int>(life / 4 % tasks_.size());
  const auto value = static_cast<int64_t>(watch_.seed * 1000 + life);
  CollectiveCall what;
  what.terms.kind = Collective::broadcast;
  what.terms.root = static_cast<uint32_t>(root);
  what.terms.open = view_.rank != root;
  if (what.terms.open) {
    if (watch_.world.one_in(2)) process_.sleep(watch_.world.between(0, 40) * kMillisecond);
  } else {
    what.terms.dtype = DType::i64;
    what.in = Tensor::of<int64_t>(Shape(), {&value, 1}).take();
  }
  const Clock& clock = process_.clock();
  std::vector<Call> calls;
  calls.push_back({CollectiveAsk(0, 0, 0, 0, tasks_), make_ref<CollectiveRun>(group_, queue_, 0)});
  calls[0].is_agreement = true;
  calls[0].deadline_ns = clock.monotonic_ns() + kCallNs;
  calls[0].run->start(std::move(what), Deadline::after(clock, kCallNs));
  if (!wait_for(calls).ok()) return false;
  const Tensor result = calls[0].run->take().take();
  if (result.count() != 1 || *result.as<int64_t>() != value) watch_.wrong(process_.name() + " gets another value than the root gave");
  return true;
}

// As some have gone, which ends this call and nothing else: the others still get what all of them sent before.
void GroupHost::ask_once_more() {
  const Clock& clock = process_.clock();
  const auto run = make_ref<CollectiveRun>(group_, queue_, 0);
  run->start(CollectiveCall{}, Deadline::after(clock, kCallNs));
  CompletionQueue::Event event;
  if (queue_->next({&event, 1}, clock, Deadline::after(clock, kCallNs + 20 * kSecond)) == 0)
    watch_.wrong(process_.name() + ": a call does not end that some do not make");
  if (!event.status.ok()) watch_.world.say(process_.name() + " asks once more: " + event.status.message());
  process_.hears(event.status);
}

// Leaves, and joins as another life of the same process.
bool GroupHost::come_again(Server& server) {
  watch_.world.say(process_.name() + " leaves and comes again");
  const LastOut out;
  group_->leave(cancelled("the member comes again"), out.ticket());
  if (!out.wait(process_.clock(), Deadline::after(process_.clock(), 10 * kSecond)) && goes_on())
    watch_.wrong(process_.name() + " does not come to an end of leaving");
  if (goes_on() && group_->kept() > 0) watch_.wrong(process_.name() + " has left, and keeps something of a call");
  return goes_on() && join(server);
}

void GroupHost::leave(Server& server) {
  idle_ = false;
  if (group_) group_->leave(cancelled("the program has ended"));
  process_.hears(server.stop(5 * kSecond));
  if (group_ && group_->kept() > 0) watch_.wrong(process_.name() + " has left, and keeps something of a call");
  group_ = nullptr;
  queue_ = nullptr;
}

}  // namespace dtg::sim
