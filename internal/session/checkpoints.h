// Checkpoints: the sets of one training run in one directory (checkpoint/directory.h): taken from the variables of a model as a session
// has them, together with where its data sets stand, and put back into them.
//
// A save takes the values in one run, which is a copy of what it saves, and leaves the rest to the disk's thread; the next steps go on
// meanwhile. The chief alone saves and restores, and it fetches what other tasks hold: a set is published by one rename, so it lies in
// one directory, and any number of parameter servers may take from it what is theirs. The values belong to one step where nobody trains
// between the steps of the thread that saves, as in one process or in synchronous training; otherwise each variable is whole by itself.
//
// One thread at a time uses it, the one that uses the model and the data sets; only wait() and status() may come from others. Owner: the
// handle, and a save under way.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/condition.h"
#include "base/json.h"
#include "checkpoint/restore.h"
#include "data/position.h"
#include "nn/model.h"
#include "session/fit.h"
#include "session/session.h"

namespace dtg {

class Checkpoints final : public RefCounted {
 public:
  static constexpr int kKeep = 3;
  static constexpr int64_t kShardBytes = int64_t{1} << 30;
  struct Options {
    std::string directory;
    int keep = kKeep;         // sets; older ones go
    int shards = 0;           // 0: as many as make none larger than kShardBytes
    int64_t every_steps = 0;  // 0: not by steps
    int64_t every_ns = 0;     // 0: not by time
    bool partial = false;     // a restore takes what there is, and tells the rest
    NameMap names = {};       // what variables are called in the sets that are restored
    bool alone = false;       // of what each worker has its own of (counts of metrics) this one's is taken, as the others do not save
  };
  static Result<Ref<Checkpoints>> open(Ref<Session> session, Ref<Model> model, Options options);

  // A data set whose place is saved and restored under that name. `owner` keeps it. One that is read from its beginning anyway stays where
  // it stands, with a warning, where a set does not have its place or has that of other data.
  enum class Place { needed, wished };
  Status add_data(std::string name, Reading& data, Ref<RefCounted> owner, Place place = Place::needed);

  // What else belongs to a set, such as what a trainer counts. It lives as long as it is told of.
  class Companion {
   public:
    // The values are being taken: adds what belongs to them, tensors under the role of data.
    virtual Status take(std::vector<ShardTensor>& tensors, TextPairs& metadata) = 0;
    // Sets are there, this the newest of them; an error ends a rewind before one is read, be they of this model or not.
    virtual Status meet(const SetId&) { return {}; }
    // A set was read, all of it, and what it holds is about to be assigned; an error ends that before it begins.
    virtual Status put(const RestoredSet& set) = 0;

   protected:
    ~Companion() = default;
  };
  // Null: none any more.
  void set_companion(Companion* companion) { companion_ = companion; }

  // What became of a restore, for people and programs that look closer.
  struct Restored {
    enum class How { started, kept, restored } how = How::started;
    std::string path;  // of the set
    int64_t step = 0;
    std::vector<std::string> passed_over;               // why newer sets were not taken
    std::vector<std::string> missing, extra, reshaped;  // variables that were left as they are, with `partial`
    std::vector<std::string> notes;
    size_t variables = 0;
    Json json() const;
  };
  // Goes on where the newest valid set was taken, or, where there is none, begins with the first values. What the session has already and
  // is as far by its count of steps stays: a chief that was started again finds its cluster further than its last set.
  Result<Restored> resume();
  // The newest valid set, whatever values there are; the directory is this one's from here on. False: there is none, and nothing changed.
  Result<bool> rewind(Restored& restored);
  // The newest valid set of the directory, or the one that is named; NOT_FOUND where there is none.
  Result<Restored> restore(const std::string& set);

  // Training is that far; saves when that is due. True: a save has begun. While the one before is being written, none does. The steps are
  // the host's: where they go back, because it counts from 0 again or not as the model does, what is due follows them.
  Result<bool> reached(int64_t step);
  // Takes the values now and returns; waits for the save before, if that is being written.
  Status start(int64_t step, Deadline until);
  // Until nothing is being written. What came of the last save.
  Status wait(Deadline until);
  Json status() const;
  // The host is done with it: the directory is free as soon as nothing is being written.
  void let_go();

 private:
  class Saving;
  struct Taken {
    int64_t step = 0;
    std::vector<ShardTensor> tensors;
    TextPairs metadata;
  };
  struct Data {
    std::string name;
    Reading* reading;
    Ref<RefCounted> owner;
    Place place;
  };
  Checkpoints(Ref<Session> session, Ref<Model> model, Options options);
  Status check_party(const char* attempted) const;
  Status claim();
  Result<Taken> take(int64_t step);
  Status take_places(Taken& taken) const;
  Status submit(Taken taken);
  Status write(const Taken& taken, SetId& id);
  Status make_way(int64_t step);
  void written(const SetId& id, const Status& status);
  Result<Restored> restore(const SetId* id);
  Status put(const RestoredSet& set, const Fit& fit, Restored& restored);
  RestoreOptions reading(Restored& restored);
  Status put_places(const RestoredSet& set, int64_t steps, Restored& restored);
  static constexpr const char* kSchema = "schema:";
  static std::string kept_schema(const Reading& data);
  static std::string is_other(const RestoredSet& set, const Data& data);
  static std::optional<DataPosition> place_in(const RestoredSet& set, const Data& data, std::string* why);
  Status move(const Data& data, const DataPosition& place) const;
  Status follow(Restored& restored);
  Status go_on(const Data& data, const DataPosition& place, const SetId& set, int64_t steps, Restored& restored) const;
  Result<bool> is_ahead(int64_t& step);
  void plan_next(int64_t step);
  void count_anew(int64_t step);
  void warn(const std::string& message) const;

  const Ref<Session> session_;
  const Ref<Model> model_;
  const Options options_;
  CheckpointDirectory directory_;
  std::vector<Data> data_;
  Companion* companion_ = nullptr;
  int64_t told_ = 0;       // how far the host said that it is, or a set that was restored
  int64_t next_step_ = 0;  // when a save is due, by the host's count
  int64_t next_ns_ = 0;
  std::vector<Value> ready_;  // whether each variable has a value; made when first asked for
  // The disk's thread and the host's, one at a time by `writing_`.
  std::unique_ptr<FileLock> lock_;  // of the directory
  std::vector<SetId> damaged_;      // found so by a restore; their sizes may be right, and then they would count as the newest
  mutable Condition changed_;       // guards what follows
  bool writing_ = false;
  bool let_go_ = false;
  int64_t saves_ = 0, failures_ = 0;
  SetId last_;
  Status failure_;  // of the last save
};

}  // namespace dtg
