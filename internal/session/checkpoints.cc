// Saving: the values in one run, then the disk's thread. See checkpoints.h for threads.
#include "session/checkpoints.h"

#include <algorithm>
#include <limits>
#include <new>

#include "base/whereabouts.h"
#include "nn/wholes.h"

namespace dtg {
namespace {

constexpr const char* kLock = "/.lock";
constexpr const char* kPlace = "data:";

// An interval longer than there is time never ends.
int64_t later(int64_t from, int64_t by) {
  int64_t sum = 0;
  return __builtin_add_overflow(from, by, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

}  // namespace

// One set on its way to the disk. Deletes itself.
class Checkpoints::Saving final : public Pool::Task {
 public:
  Saving(Ref<Checkpoints> of, Taken taken) : of_(std::move(of)), taken_(std::move(taken)) {}
  void run() override {
    SetId id;
    const Status status = [&]() -> Status {
      try {
        return of_->write(taken_, id);
      } catch (const std::bad_alloc&) {
        return resource_exhausted("out of memory");
      }
    }();
    taken_ = {};
    of_->written(id, status);
    delete this;
  }

 private:
  const Ref<Checkpoints> of_;
  Taken taken_;
};

Checkpoints::Checkpoints(Ref<Session> session, Ref<Model> model, Options options)
    : session_(std::move(session)),
      model_(std::move(model)),
      options_(std::move(options)),
      directory_(*session_->runtime().seams().disk, *session_->runtime().seams().random, options_.directory) {
  plan_next(0);
}

Result<Ref<Checkpoints>> Checkpoints::open(Ref<Session> session, Ref<Model> model, Options options) {
  while (options.directory.size() > 1 && options.directory.back() == '/') options.directory.pop_back();
  const char* const attempted = "open checkpoints";
  if (options.directory.empty()) return invalid_argument("%s: the directory's name is empty", attempted);
  if (&session->graph() != &model->graph()) return invalid_argument("%s: the session is of another graph than the model", attempted);
  if (options.keep < 0 || options.shards < 0 || options.shards > static_cast<int>(kShardsMax)) {
    return invalid_argument("%s: keep is %d and shards %d; neither may be negative, and there may be %zu shards", attempted, options.keep,
                            options.shards, kShardsMax);
  }
  if (options.every_steps < 0 || options.every_ns < 0) {
    return invalid_argument("%s: every %lld steps or %lld ns; neither may be negative, 0 means not so", attempted,
                            static_cast<long long>(options.every_steps), static_cast<long long>(options.every_ns));
  }
  if (options.keep == 0) options.keep = kKeep;
  return Ref<Checkpoints>::adopt(new Checkpoints(std::move(session), std::move(model), std::move(options)));
}

Status Checkpoints::add_data(std::string name, Reading& data, Ref<RefCounted> owner, Place place) {
  const auto plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.' || c == '/'; };
  if (name.empty() || name.size() > 64 || !std::ranges::all_of(name, plain)) {
    return invalid_argument("keep the place of a data set as \"%.100s\": a name has 1 to 64 letters, digits, or any of ._-/", name.c_str());
  }
  const auto same = [&](const Data& there) { return there.name == name; };
  if (std::ranges::any_of(data_, same)) return already_exists("keep the place of a data set: \"%s\" is one already", name.c_str());
  data_.push_back({std::move(name), &data, std::move(owner), place});
  return {};
}

Status Checkpoints::check_party(const char* attempted) const {
  const Party party = session_->party();
  if (party == Party::chief) return {};
  return permission_denied("%s in \"%s\": this session is a %s's; the chief alone does that, and a client where there is none. Others wait "
                           "until the variables have values",
                           attempted, options_.directory.c_str(), party_name(party));
}

// The directory is ours from here on: nobody else saves into it, so attempts that are there are dead.
Status Checkpoints::claim() {
  if (lock_) return {};
  Disk& disk = *session_->runtime().seams().disk;
  DTG_TRY(disk.make_directories(directory_.path()).with_context("save checkpoints"));
  auto lock = disk.lock(directory_.path() + kLock);
  if (lock.status().code() == Code::already_exists) {
    return failed_precondition("save checkpoints in \"%s\": another process, or another handle of this one, does so already; give each "
                               "training run a directory of its own",
                               directory_.path().c_str());
  }
  DTG_TRY(lock.status().with_context("save checkpoints"));
  lock_ = lock.take();
  return directory_.remove_leftovers(session_->runtime().clock(), {.live = {}, .older_than_s = 0});
}

void Checkpoints::warn(const std::string& message) const {
  if (LogSink* const log = session_->runtime().seams().log) log->write(LogLevel::warn, "checkpoint", message);
}

// ---- when ----

// Saves by steps come at multiples, wherever training began.
void Checkpoints::plan_next(int64_t step) {
  told_ = step;
  if (options_.every_steps > 0) next_step_ = later(step / options_.every_steps * options_.every_steps, options_.every_steps);
  next_ns_ = later(session_->runtime().clock().monotonic_ns(), options_.every_ns);
}

// A host that goes on but counts from 0 again: waiting for the old count would save nothing for as long as was trained before.
void Checkpoints::count_anew(int64_t step) {
  if (options_.every_steps <= 0) return;
  warn(format("training was at step %lld and is told to be at %lld: saves follow the new count; go on with the step that resume gives",
              static_cast<long long>(told_), static_cast<long long>(step)));
  const int64_t before = std::max<int64_t>(step - 1, 0);
  next_step_ = later(before / options_.every_steps * options_.every_steps, options_.every_steps);
}

Result<bool> Checkpoints::reached(int64_t step) {
  if (step < 0) return invalid_argument("step %lld: steps count from 0", static_cast<long long>(step));
  if (step < told_) count_anew(step);
  told_ = step;
  bool busy = false;
  const bool by_step = options_.every_steps > 0 && step >= next_step_;
  const bool by_time = options_.every_ns > 0 && session_->runtime().clock().monotonic_ns() >= next_ns_;
  if (!by_step && !by_time) return false;
  changed_.change([&] { busy = writing_; });
  if (busy) return false;
  DTG_TRY(start(step, Deadline::never()));
  return true;
}

// ---- taking ----

Status Checkpoints::start(int64_t step, Deadline until) {
  DTG_TRY(check_party("save a checkpoint"));
  if (step < 0) return invalid_argument("save a checkpoint of step %lld: steps count from 0", static_cast<long long>(step));
  if (!changed_.wait(session_->runtime().clock(), until, [this] { return !writing_; })) {
    return told_by(deadline_exceeded("save a checkpoint in \"%s\": the one before is still being written", directory_.path().c_str()),
                   session_->driver().task().name(), "save");
  }
  DTG_ASSIGN(Taken taken, take(step));
  plan_next(std::max(step, told_));
  return submit(std::move(taken));
}

Result<Checkpoints::Taken> Checkpoints::take(int64_t step) {
  const auto variables = model_->variables();
  if (variables.empty()) return failed_precondition("save a checkpoint in \"%s\": the model has no variables", directory_.path().c_str());
  Taken taken;
  taken.step = step;
  DTG_TRY(take_places(taken));
  std::vector<Value> fetches;
  for (const NamedVariable& variable : variables) fetches.push_back(options_.alone ? variable.read_here() : variable.read);
  std::vector<Tensor> values(fetches.size());
  DTG_TRY(session_->run({.feeds = {}, .feed_tensors = {}, .fetches = fetches, .targets = {}}, values).with_context("save a checkpoint"));
  const NamedVariable* const counts = model_->step_if_any();
  for (const WholeVariable& whole : whole_variables(*model_)) {
    std::vector<Tensor> parts;
    for (const NamedVariable* part : whole.parts) parts.push_back(std::move(values[static_cast<size_t>(part - variables.data())]));
    DTG_ASSIGN(Tensor value, join_parts(whole, parts));
    const bool is_step = &whole.first() == counts;
    const TensorRole role = is_step ? TensorRole::step : whole.of.empty() ? TensorRole::variable : TensorRole::slot;
    if (is_step) taken.step = value.as<int64_t>()[0];
    taken.tensors.push_back({whole.name, std::move(value), role, whole.of, whole.slot});
  }
  taken.metadata.emplace_back("seed", std::to_string(model_->seed()));
  if (companion_) DTG_TRY(companion_->take(taken.tensors, taken.metadata));
  return taken;
}

Status Checkpoints::take_places(Taken& taken) const {
  for (const Data& data : data_) {
    DTG_ASSIGN(const DataPosition at, data.reading->position());
    std::vector<int64_t> numbers = {at.elements};
    numbers.insert(numbers.end(), at.epochs.begin(), at.epochs.end());
    DTG_ASSIGN(Tensor tensor, Tensor::of<int64_t>(Shape::of({static_cast<int64_t>(numbers.size())}), numbers));
    taken.tensors.push_back({kPlace + data.name, std::move(tensor), TensorRole::data, "", ""});
    taken.metadata.emplace_back(kPlace + data.name, data.reading->text());
    if (std::string schema = kept_schema(*data.reading); !schema.empty())
      taken.metadata.emplace_back(kSchema + data.name, std::move(schema));
  }
  return {};
}

Status Checkpoints::submit(Taken taken) {
  changed_.change([this] { writing_ = true; });
  try {
    auto saving = std::make_unique<Saving>(Ref<Checkpoints>::share(this), std::move(taken));
    session_->runtime().local_host().disk_pool->submit(saving.get());
    static_cast<void>(saving.release());  // it deletes itself
  } catch (const std::bad_alloc&) {
    changed_.change([this] { writing_ = false; });
    return resource_exhausted("save a checkpoint: no memory for a thread to write it");
  }
  return {};
}

// ---- writing; the disk's thread ----

// Nothing may stand in the directory that would be taken for newer than what is saved now.
Status Checkpoints::make_way(int64_t step) {
  for (; !damaged_.empty(); damaged_.pop_back()) {
    const std::string name = damaged_.back().name(), aside = directory_.path() + "/damaged-" + name;
    const Status moved = session_->runtime().seams().disk->rename(directory_.path_of(damaged_.back()), aside);
    if (!moved.ok() && moved.code() != Code::not_found) return moved.with_context("put a damaged checkpoint aside");
    if (moved.ok()) warn("the damaged checkpoint " + name + " was put aside as \"" + aside + "\"");
  }
  DTG_ASSIGN(const std::vector<FoundSet> sets, directory_.list());
  for (const FoundSet& set : sets) {
    if (!set.status.ok() || set.id.step <= step) continue;
    return failed_precondition("save a checkpoint of step %lld in \"%s\": %s there is of a later step, and would be taken for the newest; "
                               "resume from it, remove it, or save to another directory",
                               static_cast<long long>(step), directory_.path().c_str(), set.id.name().c_str());
  }
  return {};
}

Status Checkpoints::write(const Taken& taken, SetId& id) {
  DTG_TRY(claim());
  DTG_TRY(make_way(taken.step));
  Manifest rows;
  for (const ShardTensor& each : taken.tensors) {
    rows.tensors.push_back({each.name, each.tensor.dtype(), each.tensor.shape(), 0, 0, each.role, each.of, each.slot});
  }
  const int64_t bytes = rows.data_bytes();
  const int shards = options_.shards > 0 ? options_.shards : static_cast<int>(bytes / kShardBytes + 1);
  const std::vector<int> placed = balanced_placement(rows, shards);
  DTG_ASSIGN(id, directory_.begin(taken.step));
  std::vector<ShardReceipt> receipts;
  for (int shard = 0; shard < shards; ++shard) {
    std::vector<ShardTensor> mine;
    for (size_t i = 0; i < placed.size(); ++i) {
      if (placed[i] == shard) mine.push_back(taken.tensors[i]);
    }
    auto receipt = directory_.write(id, {shard, shards}, mine);
    if (!receipt.ok()) {
      directory_.give_up(id);
      return receipt.status();
    }
    receipts.push_back(receipt.take());
  }
  return directory_.publish(id, receipts, {{}, taken.metadata});
}

// What cannot be pruned, or said, does no harm to what was saved; who waits must hear in any case.
void Checkpoints::written(const SetId& id, const Status& status) {
  try {
    if (!status.ok()) warn("a checkpoint was not saved, training goes on: " + status.message());
    const Status pruned = status.ok() ? directory_.prune(options_.keep) : Status();
    if (!pruned.ok()) warn("old checkpoints stay: " + pruned.message());
  } catch (const std::bad_alloc&) {
  }
  changed_.change([&] {
    writing_ = false;
    failure_ = status;
    ++(status.ok() ? saves_ : failures_);
    if (status.ok()) last_ = id;
    if (let_go_) lock_.reset();
  });
}

void Checkpoints::let_go() {
  changed_.change([this] {
    let_go_ = true;
    if (!writing_) lock_.reset();
  });
}

Status Checkpoints::wait(Deadline until) {
  Status status;
  const bool over = changed_.wait(session_->runtime().clock(), until, [&] {
    status = failure_;
    return !writing_;
  });
  if (over) return status;
  return told_by(deadline_exceeded("wait for a checkpoint in \"%s\": it is still being written", directory_.path().c_str()),
                 session_->driver().task().name(), "save");
}

Json Checkpoints::status() const {
  Json::Object told = {{"directory", directory_.path()}};
  changed_.change([&] {
    told.emplace_back("writing", writing_);
    told.emplace_back("saves", saves_);
    told.emplace_back("failures", failures_);
    told.emplace_back("step", saves_ > 0 ? last_.step : int64_t{-1});
    told.emplace_back("path", saves_ > 0 ? directory_.path_of(last_) : "");
    told.emplace_back("failure", failure_.message());
  });
  return Json(std::move(told));
}

}  // namespace dtg
