// Reading a state directory.
#include "cluster/recovery.h"

#include <cinttypes>
#include <map>

#include "checkpoint/directory.h"
#include "cluster/run.h"
#include "cluster/saved_state.h"
#include "wire/graph_codec.h"

namespace dtg {
namespace {

constexpr size_t kIdentityDigits = 16;

// A commit that is made once more. On the stack of whoever recovers.
class RepeatedRun final : public Run {
 public:
  RepeatedRun(Plan& plan, const Clock& clock, uint64_t number) : Run(plan, clock, Caller::waits, number, Deadline::never()) {}
  using Run::give;

 private:
  Status begun() override { return {}; }
  void left() override {}
  void ended(Status) override {}
};

// The graphs that repeat writes, and their plans by the shapes of what they are fed.
class Writes {
 public:
  explicit Writes(Task& task) : task_(task) {}

  Status learn(std::string_view record) {
    LoggedWrites writes;
    DTG_TRY(decode(record, writes));
    Known& known = known_[writes.key];
    if (known.graph) return {};
    known.placer = std::make_unique<Placer>(task_.devices(), task_.host().kernels, false);
    DTG_ASSIGN(known.graph, Graph::create(task_.host().ops));
    DTG_TRY(decode_graph(writes.graph, *known.graph, *task_.host().seams.budget, task_.host().limits));
    for (const LoggedWrites::Fed& fed : writes.fed) {
      if (fed.node >= known.graph->node_count()) return data_loss("a graph of the log has no node %u", fed.node);
      known.fed.push_back(known.graph->value(fed.node, fed.output));
    }
    known.writes.assign(writes.writes.begin(), writes.writes.end());
    return {};
  }

  Status make_again(CommitRecord& commit) {
    const auto known = known_.find(commit.writes);
    if (known == known_.end()) return data_loss("commit %" PRIu64 " is of a graph that the log does not hold", commit.number);
    DTG_ASSIGN(const Ref<Plan> plan, plan_for(known->second, commit.values));
    std::vector<const Tensor*> feeds;
    for (const Tensor& value : commit.values) feeds.push_back(&value);
    RepeatedRun run(*plan, *task_.host().seams.clock, commit.number);
    run.give(feeds, {});
    return run.execute();
  }

 private:
  struct Known {
    Ref<Graph> graph;
    std::vector<Value> fed;
    std::vector<NodeId> writes;
    std::unique_ptr<Placer> placer;
    Ref<Plan> plan;  // of the last shapes
  };

  Result<Ref<Plan>> plan_for(Known& known, const std::vector<Tensor>& values) {
    if (values.size() != known.fed.size())
      return data_loss("a commit of the log has %zu values, its graph takes %zu", values.size(), known.fed.size());
    PlanRequest request;
    bool same = static_cast<bool>(known.plan);
    for (size_t i = 0; i < values.size(); ++i) {
      request.feeds.push_back({known.fed[i], values[i].dtype(), values[i].shape()});
      same = same && known.plan->feeds()[i].dtype == values[i].dtype() && known.plan->feeds()[i].shape == values[i].shape();
    }
    if (same) return known.plan;
    request.targets = known.writes;
    const Host& host = task_.host();
    PlanContext context;
    context.kernels = host.kernels;
    context.ops = host.ops;
    context.pool = host.pool;
    context.store = &task_.store();
    context.placer = known.placer.get();
    context.clock = host.seams.clock;
    context.memory = host.memory;
    context.budget = host.seams.budget;
    DTG_ASSIGN(known.plan, Plan::make(context, known.graph, std::move(request)));
    return known.plan;
  }

  Task& task_;
  std::map<uint64_t, Known> known_;
};

class Reader {
 public:
  Reader(Task& task, const std::string& directory) : task_(task), disk_(*task.host().seams.disk), directory_(directory), writes_(task) {}

  // Which state this is: what the first process wrote.
  Result<uint64_t> identity() {
    const std::string path = directory_ + "/identity";
    DTG_ASSIGN(const bool there, disk_.exists(path));
    DTG_ASSIGN(const std::vector<JournalFile> files, list_journals(disk_, directory_));
    if (there) {
      DTG_ASSIGN(const std::string text, disk_.read_file(path, 4096));
      if (text.size() > kIdentityDigits && text.back() == '\n' && text.find_first_not_of("0123456789abcdef") == kIdentityDigits) {
        const std::string name = text.substr(kIdentityDigits + 1, text.size() - kIdentityDigits - 2);
        if (name == task_.name()) return std::strtoull(text.c_str(), nullptr, 16);
        return failed_precondition("\"%s\" holds the state of %s, not of %s", directory_.c_str(), name.c_str(), task_.name().c_str());
      }
    }
    if (!files.empty()) return data_loss("\"%s\" does not hold what was written there, beside a log", path.c_str());
    // A first process may have ended before anything was kept.
    if (there) DTG_TRY(disk_.remove(path));
    const uint64_t fresh = task_.incarnation();
    DTG_ASSIGN(const auto file, disk_.open_new(path));
    DTG_TRY(file->append(format("%016" PRIx64 " %s\n", fresh, task_.name().c_str())));
    DTG_TRY(file->sync());
    DTG_TRY(file->close());
    DTG_TRY(disk_.sync_directory(directory_));
    return fresh;
  }

  Status read_set() {
    CheckpointDirectory sets(disk_, *task_.host().seams.random, directory_ + "/sets");
    DTG_TRY(sets.remove_leftovers(*task_.host().seams.clock, {.live = {}, .older_than_s = 0}));
    auto set = restore_newest(disk_, sets, OnDamage::fall_back, {.budget = task_.host().seams.budget, .wanted = {}});
    if (set.status().code() == Code::not_found) return {};
    if (set.status().code() == Code::data_loss) {
      // The first sets are made while the log still reaches back to the beginning.
      DTG_ASSIGN(const std::vector<JournalFile> files, list_journals(disk_, directory_));
      if (!files.empty() && files.front().first == 1) return {};
    }
    DTG_TRY(set.status());
    last_ = recovered_.set = static_cast<uint64_t>(set.value().manifest.id.step);
    const Status put = put_state(set.value(), task_.store(), task_.ledger());
    task_.host().seams.budget->release(set.value().manifest.data_bytes());
    return put;
  }

  Status read_journals() {
    DTG_ASSIGN(const std::vector<JournalFile> files, list_journals(disk_, directory_));
    for (size_t i = 0; i < files.size(); ++i) {
      // What the set holds need not be read, but for the graphs, which each file has itself.
      if (i + 1 < files.size() && files[i + 1].first <= last_ + 1) continue;
      // A file without a single commit ends its time where the next one begins.
      if (files[i].first > last_ + 1) return gap(files[i].first);
      DTG_ASSIGN(const int64_t bytes, read_journal(disk_, files[i].path, [this](std::string_view record) { return take(record); }));
      bytes_ += bytes;
      // A process that was killed may have left it with the system only, and nobody is told of what is not on the disk.
      DTG_TRY(disk_.sync_file(files[i].path));
    }
    DTG_TRY(failed_);
    // The next file gets a name of its own: one of that name has no commit that is on the disk.
    if (!files.empty() && files.back().first == last_ + 1) DTG_TRY(disk_.remove(files.back().path));
    return {};
  }

  uint64_t last() const { return last_; }
  int64_t bytes() const { return bytes_; }
  const Recovered& recovered() const { return recovered_; }

 private:
  Status gap(uint64_t found) const {
    return data_loss("recover the state in \"%s\": commit %" PRIu64 " is followed by commit %" PRIu64
                     ", and what was in between is lost; to go on without it, move the directory away and restore a checkpoint",
                     directory_.c_str(), last_, found);
  }

  Status take(std::string_view record) {
    DTG_ASSIGN(const RecordKind kind, record_kind(record));
    if (kind == RecordKind::failure) {
      uint64_t number = 0;
      DTG_TRY(decode(record, number));
      if (number == last_) failed_ = Status();
      return {};
    }
    if (kind == RecordKind::writes) return writes_.learn(record);
    DTG_TRY(failed_);
    CommitRecord commit;
    DTG_TRY(decode(record, commit));
    if (commit.number <= last_) return {};
    if (commit.number != last_ + 1) return gap(commit.number);
    const Status outcome = writes_.make_again(commit);
    // What failed then fails again, and a record behind it says so. Anything else must not be passed over.
    if (!outcome.ok()) {
      failed_ = data_loss("recover the state in \"%s\": commit %" PRIu64
                          " took place and cannot be made again (%s); start the task with the devices and the release that wrote it",
                          directory_.c_str(), commit.number, outcome.message().c_str());
    }
    if (outcome.ok() && Ledger::is_strand(commit.phase)) task_.ledger().enter_round(commit.write, commit.phase, commit.round);
    else task_.ledger().enter(commit.write, commit.phase, outcome);
    last_ = commit.number;
    ++recovered_.repeated;
    return {};
  }

  Task& task_;
  Disk& disk_;
  const std::string& directory_;
  Writes writes_;
  Recovered recovered_;
  uint64_t last_ = 0;
  int64_t bytes_ = 0;
  Status failed_;  // of the last commit, unless a record says that it failed before
};

}  // namespace

namespace {

// The directory, and that it is where it is. What is further up may be closed to us, and mostly was there before.
Status make_lasting(Disk& disk, const std::string& directory) {
  DTG_TRY(disk.make_directories(directory));
  std::string parent = parent_directory(directory);
  DTG_TRY(disk.sync_directory(parent));
  for (std::string next = parent_directory(parent); next != parent; next = parent_directory(parent)) {
    parent = next;
    if (!disk.sync_directory(parent).ok()) break;
  }
  return {};
}

}  // namespace

Result<Recovered> recover(Task& task, const Keeping& keeping, Ref<RefCounted> owner) {
  const std::string& directory = keeping.directory;
  const Host& host = task.host();
  const int64_t began = host.seams.clock->monotonic_ns();
  DTG_TRY(make_lasting(*host.seams.disk, directory));
  CommitLog::Beginning beginning;
  auto lock = host.seams.disk->lock(directory + "/lock");
  if (!lock.ok()) return lock.status().with_context("use the state in \"" + directory + "\"");
  beginning.lock = lock.take();
  Reader reader(task, directory);
  DTG_ASSIGN(const uint64_t identity, reader.identity());
  DTG_TRY(reader.read_set());
  DTG_TRY(reader.read_journals());
  beginning.set_bytes = keeping.set_bytes;
  beginning.waits_for_disk = keeping.waits_for_disk;
  beginning.last = reader.last();
  beginning.journal_bytes = reader.bytes();
  DTG_ASSIGN(Ref<CommitLog> log, CommitLog::begin(host, directory, std::move(beginning), std::move(owner)));
  task.keep_in(std::move(log), identity);
  Recovered recovered = reader.recovered();
  recovered.seconds = static_cast<double>(host.seams.clock->monotonic_ns() - began) * 1e-9;
  return recovered;
}

}  // namespace dtg
