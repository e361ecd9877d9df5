// Course: a fit from its first step to its end, pulled event by event: epochs of steps, a validation after some of them, and what is
// decided at an epoch's end: whether the weights are the best so far, whether the learning rate falls, whether training stops; checkpoints
// in between, and rows in the run directory.
//
// A checkpoint holds the model as it is, where both data sets stand, and what is counted here (the companion's part), so a course that is
// begun again goes on with the very step that would have come next. Nothing is decided by a clock but the end by a time limit.
//
// It ends in good order before its next step where somebody asks the trainer to stop. Owner: the host's handle. One thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "session/checkpoints.h"
#include "train/board.h"
#include "train/patience.h"
#include "train/progress.h"
#include "train/run_directory.h"
#include "train/trainer.h"

namespace dtg {

class Course final : private Checkpoints::Companion {
 public:
  struct Options {
    int64_t epochs = 1;            // in all, those before a resume too
    int64_t steps_per_epoch = 0;   // 0: until the data ends
    int64_t validation_every = 1;  // epochs
    int64_t validation_steps = 0;  // 0: all of the data
    int64_t time_limit_ns = 0;     // 0: none
    std::string directory;         // empty: nothing is kept
    int64_t checkpoint_steps = 0;  // 0: not by steps
    int64_t checkpoint_ns = 0;     // 0: not by time
    int64_t checkpoint_epochs = 1;
    int keep = 0;                    // 0: the default of checkpoints
    bool fresh = false;              // a directory in which training stands already is an error
    std::optional<Watch> best = {};  // best.safetensors is written whenever this value is
    std::optional<EarlyStopping::Rule> stopping = {};
    std::optional<Plateau::Rule> plateau = {};
    Ref<Cancellation> cancellation;
    TextPairs metadata = {};       // into model.dtg, and beside weights
    bool board = true;             // with a directory: curves for TensorBoard
    int64_t board_steps = 0;       // the loss of each multiple of that; 0: of epochs only
    int64_t histogram_epochs = 0;  // weights after so many epochs; 0: never
    ProgressTo progress = ProgressTo::quiet;
  };
  // A data set, and who keeps it; null: none.
  struct Data {
    Reading* reading = nullptr;
    Ref<RefCounted> owner;
  };
  enum class Kind : int32_t { begin, epoch_begin, step, validation, rate, epoch_end, checkpoint, stopped, done };
  // What has happened. What it points to is valid until the next one.
  struct Event {
    Kind kind = Kind::begin;
    int64_t epoch = 0;         // from 1; of begin, how many are over
    int64_t batch = 0;         // steps of the epoch so far
    int64_t batches = -1;      // steps of an epoch, where that is known
    int64_t step = 0;          // steps in all
    int64_t examples = 0;      // of the epoch so far
    double loss = 0;           // of a step: its own; else the mean over the epoch so far
    double learning_rate = 0;  // of the steps that it tells of; of a fall, the new one; 0: not the trainer's to say
    double examples_per_s = 0;
    double seconds = 0;  // since the course began, in this process
    const Record* values = nullptr;
    const char* text = "";  // what there is to say
  };

  // Begins, or goes on where the directory says that training is.
  static Result<std::unique_ptr<Course>> begin(Ref<Trainer> trainer, Data data, Data validation, Options options);
  ~Course();
  // Waits for a checkpoint that is being written, so that another course may have the directory when this one is gone.
  void settle();
  // FAILED_PRECONDITION after the last. What a step or the disk refuses is told again by every later call.
  Result<Event> next();
  // Ends it with that error, as if a step had refused. The directory is free when it returns. Nothing where it is over.
  void fail(Status why);
  const Options& options() const { return options_; }
  // Steps and evaluations of anybody else would change what is counted: also where a stop, or a resumed course's beginning, has come in
  // the middle of an epoch.
  bool in_epoch() const { return (stage_ == Stage::step || batch_ > 0) && !is_over(); }
  bool is_over() const { return stage_ == Stage::over || !failure_.ok(); }
  // Outcome, history and what was best.
  Json summary() const { return summary_of(stage_, failure_); }

 private:
  // The model may get more variables meanwhile, so that a place in its list would not do.
  struct Kept {
    std::string name;
    Tensor value;
    NodeId assign;
  };
  enum class Stage { begin, epoch_begin, step, validation, rate, epoch_end, epoch_checkpoint, stopped, finish, over };
  Course(Ref<Trainer> trainer, Data data, Data validation, Options options);
  Status check() const;
  Status check_watch(const Watch& watch, const char* what) const;
  Status open_directory();
  void begin_watch();
  Json settings() const;
  // {"dtg", "cpus"}: what the speed hangs on.
  static Json environment();
  void count_epoch(const Event& event);
  void add_files(int64_t ns);  // to the times of the epoch that was counted last
  Status write_page(const Json& summary) const;
  Status watch_epoch(const Event& event);
  Progress::At place_of(const Event& event) const;
  void show(const Event& event);
  Status count_steps();
  Json::Object state() const;
  // course_crew.cc: with the fits of other workers.
  Status meet_crew();
  Status try_to_meet();
  Status form_anew(const Status& why);
  Result<Event> rejoin(Status why);
  Status agree_on_sizes(const std::vector<std::vector<int64_t>>& all);
  int64_t settings_hash() const;
  int64_t progress() const;
  Result<Json> place_and_state() const;
  Status adopt(const Json& state);
  Status adopt_best(int root);
  Status move_data(const Json& state);
  Status count_unseen(int64_t model_steps);
  Status share_values();
  Status rewrite_history();
  Status take(std::vector<ShardTensor>& tensors, TextPairs& metadata) override;
  Status meet(const SetId& newest) override;
  Status put(const RestoredSet& set) override;
  void put_best(const Json& state);
  void put_stopping(const RestoredSet& set, const Json& state, const std::string& why);
  void put_plateau(const Json& state);
  void put_rate(const Json& state);
  void warn(const std::string& message) const;
  Result<Event> advance();
  Result<Event> begin_epoch();
  Result<Event> step();
  Result<double> make_step();
  // Ok: a step is to be made, and element_ is what with. False: the epoch is over.
  Result<bool> pull();
  Result<bool> due();
  bool at_multiple() const;
  Status end_epoch();
  Result<Event> validate();
  Result<Event> judge();
  Result<Event> checkpoint();
  Result<Event> finish();
  Status start_checkpoint();
  Status write_results(const Status& saved);
  Json summary_of(Stage stage, const Status& failure) const;
  Status keep_best();
  Status restore_best();
  Status check_weights(const std::vector<const NamedVariable*>& weights, const std::vector<Tensor>& values);
  Status check_weight(const std::string& name, const Tensor& value);
  Status check_model();
  Status write_weights(const char* file);
  Status write_model();
  void tell_what_is_not_kept() const;
  void tell_what_is_done() const;
  const double* value_of(const Watch& watch) const;
  Status log_epoch();
  Event event(Kind kind, const char* text = "") const;
  void stop_now(std::string why);
  bool validates() const;

  const Ref<Trainer> trainer_;
  Crew* const crew_;  // null: nobody else
  const Data data_, validation_;
  const Options options_;
  const Clock& clock_;
  std::optional<RunDirectory> directory_;
  Ref<Checkpoints> checkpoints_;
  std::optional<EarlyStopping> stopping_;
  std::optional<Plateau> plateau_;
  std::optional<Board> board_;
  std::optional<Progress> progress_;
  Stage stage_ = Stage::begin;
  Stage first_stage_ = Stage::epoch_begin;  // behind `begin`
  Status failure_;
  // What a checkpoint keeps.
  int64_t epoch_ = 0;  // complete ones
  int64_t batch_ = 0;  // of the one at hand
  int64_t steps_ = 0;
  int64_t rows_ = 0;  // of the epoch at hand, and the sum of their losses
  double loss_sum_ = 0;
  double best_ = 0;  // of options_.best
  int64_t best_epoch_ = -1;
  std::string why_;              // why it has stopped early; empty: it has not
  Status ill_;                   // weights are no numbers any more: nothing of them is kept
  std::vector<Kept> best_kept_;  // weights of the best epoch
  bool decided_ = false;         // by a rule, so that going on does not undo it
  // And what it need not.
  std::optional<float> found_rate_;  // in a checkpoint; set when the course has begun
  int64_t first_step_ = 0;           // the model's count of steps when this course had made none
  bool resumed_ = false;
  bool saved_ = false;       // what there is now is in a checkpoint
  int64_t saved_step_ = -1;  // of the last checkpoint, in steps_
  // With a crew: steps of an epoch and of a validation, as all have agreed; whether element_ is still to be made a step with; whether any
  // worker wishes to stop; and how often the crew was formed anew since the last step.
  int64_t epoch_batches_ = -1, validation_batches_ = -1;
  bool pulled_ = false;
  std::string wish_;  // this one's own reason
  bool stops_ = false;
  int rejoined_ = 0;
  int64_t begun_ns_ = 0, epoch_ns_ = 0, epoch_rows_ = 0;
  // Of the epoch, in this process: waiting for elements, steps, validation, and writing checkpoints and the best weights.
  int64_t data_ns_ = 0, compute_ns_ = 0, validation_ns_ = 0, files_ns_ = 0;
  Json::Array times_;
  bool told_dropped_ = false;  // that a validation was not of all its data
  bool told_ill_ = false;      // that the loss of the last validation was NaN
  Element element_;
  Record step_values_, values_;
  Json::Array history_;
  std::string text_;  // of the last event
};

}  // namespace dtg
