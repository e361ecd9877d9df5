// What a course keeps: its part of a checkpoint, the best weights, rows and summary. See course.h for threads.
#include <algorithm>

#include "checkpoint/safetensors.h"
#include "train/course.h"
#include "train/finite.h"

namespace dtg {
namespace {

constexpr const char* kState = "trainer";
constexpr const char* kBest = "best:";

// What a model is when it is used: no counts of steps, and nothing of what optimizers keep.
std::vector<const NamedVariable*> weights_of(const Model& model) {
  std::vector<const NamedVariable*> weights;
  for (const NamedVariable& variable : model.variables()) {
    if (!variable.absolute) weights.push_back(&variable);
  }
  return weights;
}

Result<std::vector<Tensor>> values_of(Trainer& trainer, const std::vector<const NamedVariable*>& weights) {
  std::vector<Value> fetches;
  for (const NamedVariable* weight : weights) fetches.push_back(trainer.crew() ? weight->read_here() : weight->read);
  std::vector<Tensor> values(fetches.size());
  DTG_TRY(trainer.session().run({.feeds = {}, .feed_tensors = {}, .fetches = fetches, .targets = {}}, values));
  return values;
}

}  // namespace

// What is kept is gone back to, here or in another process.
Status Course::check_weights(const std::vector<const NamedVariable*>& weights, const std::vector<Tensor>& values) {
  for (size_t i = 0; i < weights.size(); ++i) DTG_TRY(check_weight(weights[i]->name, values[i]));
  return {};
}

Status Course::check_weight(const std::string& name, const Tensor& value) {
  if (!trainer_->checks_numbers()) return {};
  Status status = check_finite(name, value, first_step_ + steps_);
  if (!status.ok()) ill_ = status;
  return status;
}

// One after the other, so that no more than the largest is held.
Status Course::check_model() {
  if (!trainer_->checks_numbers()) return {};
  for (const NamedVariable* const weight : weights_of(trainer_->model())) {
    if (!dtype_is_floating(weight->dtype)) continue;
    DTG_ASSIGN(const std::vector<Tensor> value, values_of(*trainer_, {weight}));
    DTG_TRY(check_weight(weight->name, value[0]));
  }
  return {};
}

Status Course::open_directory() {
  directory_.emplace(*trainer_->session().runtime().seams().disk, options_.directory);
  DTG_ASSIGN(
      checkpoints_,
      Checkpoints::open(
          trainer_->session_ref(), trainer_->model_ref(),
          {.directory = directory_->checkpoints(), .keep = options_.keep, .every_ns = options_.checkpoint_ns, .alone = crew_ != nullptr}));
  DTG_TRY(checkpoints_->add_data("train", *data_.reading, data_.owner));
  if (validation_.reading) {
    DTG_TRY(checkpoints_->add_data("validation", *validation_.reading, validation_.owner, Checkpoints::Place::wished));
  }
  checkpoints_->set_companion(this);
  Checkpoints::Restored restored;
  DTG_ASSIGN(resumed_, checkpoints_->rewind(restored));
  saved_ = resumed_;
  size_t damaged = 0;
  DTG_ASSIGN(history_, directory_->open(epoch_, damaged));
  if (damaged > 0) {
    warn(format("%zu lines of \"%s\" are damaged and left out; the history has the other %zu of %lld epochs", damaged,
                directory_->file("metrics.jsonl").c_str(), history_.size(), static_cast<long long>(epoch_)));
  }
  return {};
}

// Sets are named by the model's count of steps, which may have begun before this course.
Status Course::count_steps() {
  const NamedVariable* const counts = trainer_->model().step_if_any();
  if (!counts) return {};
  Tensor value;
  DTG_TRY(trainer_->session().run({.feeds = {}, .feed_tensors = {}, .fetches = {&counts->read, 1}, .targets = {}}, {&value, 1}));
  first_step_ = value.as<int64_t>()[0] - steps_;
  return {};
}

// What is counted and decided so far.
Json::Object Course::state() const {
  Json::Object state = {{"epoch", epoch_}, {"batch", batch_}, {"steps", steps_}, {"rows", rows_}, {"loss_sum", loss_sum_}};
  if (trainer_->rate_is_ours()) {
    state.emplace_back("rate", static_cast<double>(trainer_->rate()));
    state.emplace_back("first_rate", static_cast<double>(trainer_->first_rate()));
  }
  if (options_.best) {
    Json::Object best = {{"best", best_}, {"best_epoch", best_epoch_}};
    options_.best->sign(best);
    state.emplace_back("best", std::move(best));
  }
  // Only what a rule has decided stays decided.
  state.emplace_back("why", decided_ ? why_ : "");
  if (stopping_) state.emplace_back("stopping", stopping_->state());
  if (plateau_) state.emplace_back("plateau", plateau_->state());
  return state;
}

Status Course::take(std::vector<ShardTensor>& tensors, TextPairs& metadata) {
  for (const ShardTensor& each : tensors) {
    if (each.role == TensorRole::variable) DTG_TRY(check_weight(each.name, each.tensor));
  }
  metadata.emplace_back(kState, Json(state()).text());
  for (const Kept& kept : best_kept_) tensors.push_back({kBest + kept.name, kept.value, TensorRole::data, "", ""});
  return {};
}

Status Course::meet(const SetId& newest) {
  if (!options_.fresh) return {};
  return already_exists("fit: \"%s\" has a training already, which stands at step %lld; go on with it, or give the fit another directory",
                        options_.directory.c_str(), static_cast<long long>(newest.step));
}

Status Course::put(const RestoredSet& set) {
  const auto found = std::ranges::find(set.manifest.metadata, kState, &std::pair<std::string, std::string>::first);
  if (found == set.manifest.metadata.end()) {
    return failed_precondition("fit: the checkpoint was not saved by a fit; restore it and give the fit a directory of its own");
  }
  DTG_ASSIGN(const Json state, parse_json(found->second, "the trainer's part of a checkpoint"));
  epoch_ = integer_of(state, "epoch", 0);
  batch_ = integer_of(state, "batch", 0);
  steps_ = integer_of(state, "steps", 0);
  rows_ = integer_of(state, "rows", 0);
  loss_sum_ = real_of(state, "loss_sum", 0);
  saved_step_ = steps_;
  put_rate(state);
  put_best(state);
  const Json* const why = state.find("why");
  put_stopping(set, state, why && why->string() ? *why->string() : "");
  put_plateau(state);
  return {};
}

void Course::warn(const std::string& message) const {
  if (LogSink* const log = trainer_->session().runtime().seams().log) log->write(LogLevel::warn, "fit", message);
}

// A rate that falls goes on from where it has come to. A rate that the program says anew is meant: Keras would put the checkpoint's over it
// without a word. A checkpoint of a schedule's course has none.
void Course::put_rate(const Json& state) {
  if (!trainer_->rate_is_ours() || !state.find("rate")) return;
  const float rate = static_cast<float>(real_of(state, "rate", 0));
  const float first = static_cast<float>(real_of(state, "first_rate", static_cast<double>(trainer_->first_rate())));
  if (first == trainer_->first_rate()) {
    found_rate_ = rate;
    return;
  }
  found_rate_ = trainer_->first_rate();
  warn(format("the learning rate is %g from here on; the optimizer's was %g, and %g when the checkpoint was saved",
              static_cast<double>(trainer_->first_rate()), static_cast<double>(first), static_cast<double>(rate)));
}

// A rule that is given only now begins with the next epoch. So does one that watched something else, which is told.
void Course::put_best(const Json& state) {
  const Json* const kept = state.find("best");
  if (!options_.best || !kept) return;
  if (!options_.best->has_signed(*kept)) {
    return warn("the best weights are those by \"" + options_.best->name +
                "\" from here on; the checkpoint knew the best by another value");
  }
  best_ = real_of(*kept, "best", options_.best->worst());
  best_epoch_ = integer_of(*kept, "best_epoch", -1);
}

// What it has decided holds while the rule is one that would decide it. `why`: empty where nothing was decided.
void Course::put_stopping(const RestoredSet& set, const Json& state, const std::string& why) {
  const auto goes_on = [&](const char* because) {
    if (!why.empty()) warn(std::string("training had ended early, and goes on: ") + because);
  };
  if (!stopping_) return goes_on("there is no early stopping any more");
  const Json* const kept = state.find("stopping");
  if (!kept) return;
  const auto anew = [&](const char* because) {
    warn(std::string("early stopping begins anew: ") + because);
    stopping_.emplace(*options_.stopping);
  };
  if (!stopping_->set_state(*kept)) return anew("the checkpoint is of one that watched another value");
  if (stopping_->rule().restores && stopping_->best_epoch() >= 0) {
    for (const NamedVariable* weight : weights_of(trainer_->model())) {
      const Tensor* const best = set.find(kBest + weight->name);
      if (best && best->dtype() == weight->dtype && best->shape() == weight->shape) {
        best_kept_.push_back({weight->name, *best, weight->assign});
        continue;
      }
      best_kept_.clear();
      return anew("the weights of the best epoch, which it is to restore, are not in the checkpoint");
    }
  }
  if (!why.empty() && !stopping_->is_over()) return goes_on("early stopping has more patience");
  why_ = why;
  decided_ = !why.empty();
}

void Course::put_plateau(const Json& state) {
  const Json* const kept = state.find("plateau");
  if (kept && plateau_ && !plateau_->set_state(*kept)) {
    warn("the plateau begins anew: the checkpoint is of one that watched another value");
  }
}

bool Course::at_multiple() const {
  const int64_t every = options_.checkpoint_steps;
  return every > 0 && steps_ > 0 && steps_ != saved_step_ && (first_step_ + steps_) % every == 0;
}

// Whether a save by steps or by time has begun. One by steps waits for the one before, so that it is of the step that was asked for.
Result<bool> Course::due() {
  if (at_multiple()) {
    DTG_TRY(start_checkpoint());
    return true;
  }
  DTG_ASSIGN(const bool began, checkpoints_->reached(first_step_ + steps_));
  if (!began) return false;
  saved_ = true;
  saved_step_ = steps_;
  text_ = directory_->checkpoints();
  return true;
}

Result<Course::Event> Course::checkpoint() {
  stage_ = why_.empty() ? Stage::epoch_begin : Stage::stopped;
  const int64_t began_ns = clock_.monotonic_ns();
  DTG_TRY(start_checkpoint());
  add_files(clock_.monotonic_ns() - began_ns);
  return event(Kind::checkpoint, text_.c_str());
}

Status Course::start_checkpoint() {
  DTG_TRY(checkpoints_->start(first_step_ + steps_, Deadline::never()));
  saved_ = true;
  saved_step_ = steps_;
  text_ = directory_->checkpoints();
  return {};
}

// The end of a training, whose last checkpoint was saved or not.
Status Course::write_results(const Status& saved) {
  if (ill_.ok()) DTG_TRY(restore_best());
  if (!directory_) return check_model();
  // Each is tried, as a disk that has no room for the weights may have some for what became of them. The first that fails is told.
  Status failed = ill_.ok() ? write_weights("model.safetensors") : ill_;
  const auto also = [&](Status written) {
    if (failed.ok()) failed = std::move(written);
  };
  if (ill_.ok()) also(write_model());
  const Json summary = summary_of(Stage::over, saved.ok() ? failed : saved);
  also(directory_->write_summary(summary));
  also(write_page(summary));
  return failed;
}

// A model that cannot be exported is no reason to lose a training.
Status Course::write_model() {
  if (trainer_->output_count() == 0) return {};
  const auto what = trainer_->exported();
  if (!what.ok()) {
    warn("model.dtg is not written: " + what.status().message());
    return {};
  }
  return export_model(trainer_->model(), trainer_->session(), what.value(), options_.metadata, directory_->file("model.dtg"));
}

// At the end it would be too late to mend.
void Course::tell_what_is_not_kept() const {
  if (!directory_ || trainer_->output_count() == 0) return;
  const auto what = trainer_->exported();
  if (!what.ok()) warn("this fit will not write model.dtg at its end, only weights: " + what.status().message());
}

// A training that is over ends at once, which looks like one that has trained.
void Course::tell_what_is_done() const {
  if (!resumed_ || epoch_ <= options_.epochs) return;
  warn(format(
      "the training in \"%s\" has %lld epochs, and this fit asks for %lld in all, so it makes no step; ask for more, or give it another "
      "directory",
      options_.directory.c_str(), static_cast<long long>(epoch_), static_cast<long long>(options_.epochs)));
}

Status Course::keep_best() {
  const std::vector<const NamedVariable*> weights = weights_of(trainer_->model());
  DTG_ASSIGN(std::vector<Tensor> values, values_of(*trainer_, weights));
  DTG_TRY(check_weights(weights, values));
  best_kept_.clear();
  for (size_t i = 0; i < weights.size(); ++i) best_kept_.push_back({weights[i]->name, std::move(values[i]), weights[i]->assign});
  return {};
}

Status Course::restore_best() {
  if (best_kept_.empty() || !stopping_ || !stopping_->rule().restores) return {};
  std::vector<Value> feeds;
  std::vector<const Tensor*> tensors;
  std::vector<NodeId> targets;
  for (const Kept& kept : best_kept_) {
    feeds.push_back(trainer_->model().graph().node(kept.assign).inputs[1]);
    tensors.push_back(&kept.value);
    targets.push_back(kept.assign);
  }
  return trainer_->session().run({.feeds = feeds, .feed_tensors = tensors, .fetches = {}, .targets = targets}, {});
}

Status Course::write_weights(const char* file) {
  const std::vector<const NamedVariable*> weights = weights_of(trainer_->model());
  DTG_ASSIGN(const std::vector<Tensor> values, values_of(*trainer_, weights));
  DTG_TRY(check_weights(weights, values));
  std::vector<NamedTensor> named;
  for (size_t i = 0; i < weights.size(); ++i) named.push_back({weights[i]->name, values[i]});
  return write_tensors(*trainer_->session().runtime().seams().disk, directory_->file(file), named, options_.metadata);
}

// All columns that this fit can have, so that each row has the same ones.
Status Course::log_epoch() {
  Json::Object row = {{"epoch", epoch_ + 1}, {"step", steps_}, {"loss", *values_.find("loss")}};
  const auto add = [&](const std::string& name) {
    const double* const value = values_.find(name);
    row.emplace_back(name, value ? Json(*value) : Json());
  };
  for (size_t i = 0; i < trainer_->metric_count(); ++i) add(trainer_->metric_name(i));
  if (validation_.reading) {
    add("val_loss");
    for (size_t i = 0; i < trainer_->metric_count(); ++i) add("val_" + trainer_->metric_name(i));
  }
  if (trainer_->rate_is_ours()) add("learning_rate");
  history_.emplace_back(std::move(row));
  return directory_ ? directory_->append(history_.back()) : Status();
}

Json Course::summary_of(Stage stage, const Status& failure) const {
  const char* const outcome = !failure.ok() ? "failed" : stage != Stage::over ? "running" : why_.empty() ? "done" : "stopped";
  Json::Object told = {{"outcome", outcome},  {"why", failure.ok() ? why_ : failure.message()},
                       {"epochs", epoch_},    {"steps", steps_},
                       {"resumed", resumed_}, {"directory", options_.directory}};
  if (stopping_ && stopping_->best_epoch() >= 0) {
    told.emplace_back("best_epoch", stopping_->best_epoch() + 1);
    told.emplace_back("best", stopping_->best());
    told.emplace_back("monitor", stopping_->rule().watch.name);
  } else if (best_epoch_ >= 0) {
    told.emplace_back("best_epoch", best_epoch_ + 1);
    told.emplace_back("best", best_);
    told.emplace_back("monitor", options_.best->name);
  }
  told.emplace_back("settings", settings());
  told.emplace_back("environment", environment());
  told.emplace_back("times", times_);
  told.emplace_back("history", history_);
  return Json(std::move(told));
}

}  // namespace dtg
