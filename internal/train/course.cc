// The events of a fit, one after the other. What is kept between them, and on the disk, is in course_state.cc. See course.h for threads.
#include "train/course.h"

#include <algorithm>
#include <cmath>

namespace dtg {

Course::Course(Ref<Trainer> trainer, Data data, Data validation, Options options)
    : trainer_(std::move(trainer)),
      crew_(trainer_->crew()),
      data_(std::move(data)),
      validation_(std::move(validation)),
      options_(std::move(options)),
      clock_(trainer_->session().runtime().clock()) {
  if (options_.stopping) stopping_.emplace(*options_.stopping);
  if (options_.plateau) plateau_.emplace(*options_.plateau);
  if (options_.best) best_ = options_.best->worst();
  step_values_.add("loss", 0);
}

Course::~Course() {
  if (!checkpoints_) return;
  checkpoints_->set_companion(nullptr);
  checkpoints_->let_go();
}

void Course::settle() {
  // What became of it is in the log, or was told by next().
  if (checkpoints_) (void)checkpoints_->wait(Deadline::never());
}

Result<std::unique_ptr<Course>> Course::begin(Ref<Trainer> trainer, Data data, Data validation, Options options) {
  std::unique_ptr<Course> course(new Course(std::move(trainer), std::move(data), std::move(validation), std::move(options)));
  DTG_TRY(course->check());
  DTG_TRY(course->trainer_->give_first_values(true));
  const bool writes = !course->crew_ || course->crew_->is_first();
  if (!course->options_.directory.empty() && writes) DTG_TRY(course->open_directory());
  // A checkpoint has brought the data to its place.
  if (!course->resumed_) DTG_TRY(Trainer::begin_epoch(*course->data_.reading));
  DTG_TRY(course->count_steps());
  if (course->crew_) DTG_TRY(course->meet_crew());
  // Last, as a course that could not begin changes nothing.
  if (course->found_rate_) course->trainer_->set_rate(*course->found_rate_);
  course->begin_watch();
  course->tell_what_is_not_kept();
  course->tell_what_is_done();
  course->begun_ns_ = course->clock_.monotonic_ns();
  return course;
}

Status Course::check() const {
  const Options& o = options_;
  const std::pair<const char*, int64_t> counts[] = {{"epochs", o.epochs > 0 ? 0 : -1},
                                                    {"steps_per_epoch", o.steps_per_epoch},
                                                    {"validation_every", o.validation_every > 0 ? 0 : -1},
                                                    {"validation_steps", o.validation_steps},
                                                    {"the time limit", o.time_limit_ns},
                                                    {"checkpoint_steps", o.checkpoint_steps},
                                                    {"checkpoint_epochs", o.checkpoint_epochs > 0 ? 0 : -1},
                                                    {"the time between checkpoints", o.checkpoint_ns},
                                                    {"keep", o.keep},
                                                    {"tensorboard_steps", o.board_steps},
                                                    {"histogram_epochs", o.histogram_epochs}};
  for (const auto& [name, count] : counts) {
    if (count < 0) return invalid_argument("fit: %s may not be negative; 0 is the default", name);
  }
  DTG_TRY(trainer_->check_data(*data_.reading, "fit", trainer_->feed_count()));
  if (o.steps_per_epoch == 0 && data_.reading->data().cardinality() == Dataset::kInfinite) {
    return invalid_argument("fit: the data set is endless; say how many steps are an epoch");
  }
  if (validation_.reading) {
    DTG_TRY(trainer_->check_data(*validation_.reading, "fit, validation", trainer_->feed_count()));
    if (validation_.reading == data_.reading) {
      return invalid_argument(
          "fit: the data set to validate with is the one to train on; make a second one, it may share the same tensors");
    }
    if (o.validation_steps == 0 && validation_.reading->data().cardinality() == Dataset::kInfinite) {
      return invalid_argument("fit: the data set to validate with is endless; say how many steps to validate with");
    }
  }
  if (o.best) DTG_TRY(check_watch(*o.best, "the best weights"));
  if (o.stopping) DTG_TRY(check_watch(o.stopping->watch, "early stopping"));
  if (!o.plateau) return {};
  if (!trainer_->rate_is_ours()) {
    return invalid_argument("fit: a plateau cannot lower the learning rate: it is a schedule, or the training was not made by the trainer");
  }
  return check_watch(o.plateau->watch, "the plateau");
}

// A name that no epoch will have is a mistake, which Keras only warns of, epoch by epoch.
Status Course::check_watch(const Watch& watch, const char* what) const {
  Record known;
  for (const char* const prefix : {"", "val_"}) {
    if (*prefix && !validation_.reading) continue;
    known.add(std::string(prefix) + "loss", 0);
    for (size_t i = 0; i < trainer_->metric_count(); ++i) known.add(prefix + trainer_->metric_name(i), 0);
  }
  if (known.find(watch.name)) return {};
  const char* const advice = watch.name.starts_with("val_") && !validation_.reading ? "; give the fit data to validate with" : "";
  return invalid_argument("fit: %s would watch \"%.100s\", which this fit does not have; there are %s%s", what, watch.name.c_str(),
                          known.list().c_str(), advice);
}

Course::Event Course::event(Kind kind, const char* text) const {
  Event made;
  made.kind = kind;
  const bool between = kind == Kind::begin || kind == Kind::checkpoint || kind == Kind::stopped || kind == Kind::done;
  made.epoch = between && batch_ == 0 ? epoch_ : epoch_ + 1;
  made.batch = batch_;
  const int64_t cardinality = data_.reading->data().cardinality();
  made.batches = options_.steps_per_epoch ? options_.steps_per_epoch : crew_ ? epoch_batches_ : cardinality >= 0 ? cardinality : -1;
  made.step = steps_;
  made.examples = rows_;
  made.loss = rows_ > 0 ? loss_sum_ / static_cast<double>(rows_) : 0;
  made.learning_rate = static_cast<double>(trainer_->rate());
  const int64_t now = clock_.monotonic_ns();
  made.seconds = static_cast<double>(now - begun_ns_) * 1e-9;
  const double spent = static_cast<double>(now - epoch_ns_) * 1e-9;
  made.examples_per_s = spent > 0 ? static_cast<double>(epoch_rows_) / spent : 0;
  made.values = &values_;
  made.text = text;
  return made;
}

Result<Course::Event> Course::next() {
  if (!failure_.ok()) return failure_;
  if (stage_ == Stage::over) return failed_precondition("the fit is over; begin another one");
  // Out of memory leaves as an exception, from the middle of whatever was being done: the fit is over by it as by any other error.
  auto result = [&]() -> Result<Event> {
    try {
      auto made = advance();
      while (crew_ && !made.ok() && crew_->ends_by(made.status())) made = rejoin(made.status());
      if (made.ok()) show(made.value());
      return made;
    } catch (const std::bad_alloc&) {
      return resource_exhausted("go on with a fit: there was no memory for it");
    }
  }();
  if (!result.ok()) fail(result.status());
  return result;
}

void Course::fail(Status why) {
  if (is_over()) return;
  failure_ = std::move(why);
  try {
    if (progress_) progress_->wipe();
    if (board_) board_->finished(false);
  } catch (const std::bad_alloc&) {
    // It was for those who look on.
  }
  settle();
  if (checkpoints_) checkpoints_->let_go();
}

Result<Course::Event> Course::advance() {
  switch (stage_) {
    case Stage::begin:
      stage_ = why_.empty() ? first_stage_ : Stage::stopped;
      text_ = resumed_ ? format("goes on after step %lld", static_cast<long long>(steps_)) : "starts";
      return event(Kind::begin, text_.c_str());
    case Stage::epoch_begin: return begin_epoch();
    case Stage::step: return step();
    case Stage::validation: return validate();
    case Stage::rate:
    case Stage::epoch_end: return judge();
    case Stage::epoch_checkpoint: return checkpoint();
    case Stage::stopped: stage_ = Stage::finish; return event(Kind::stopped, why_.c_str());
    default: return finish();
  }
}

Result<Course::Event> Course::begin_epoch() {
  if (epoch_ >= options_.epochs) return finish();
  if (batch_ == 0) {
    rows_ = 0;
    loss_sum_ = 0;
    // An epoch that is so many steps goes on in the data where the one before has ended.
    // So do the data of an epoch whose first step has failed with a worker that was lost.
    if (options_.steps_per_epoch == 0 && !pulled_) DTG_TRY(Trainer::begin_epoch(*data_.reading));
    DTG_TRY(trainer_->reset_metrics());
  }
  values_.clear();
  epoch_ns_ = clock_.monotonic_ns();
  epoch_rows_ = data_ns_ = compute_ns_ = validation_ns_ = files_ns_ = 0;
  stage_ = Stage::step;
  return event(Kind::epoch_begin);
}

void Course::stop_now(std::string why) {
  why_ = std::move(why);
  stage_ = Stage::stopped;
}

Result<bool> Course::pull() {
  if (options_.steps_per_epoch > 0 && batch_ >= options_.steps_per_epoch) return false;
  if (crew_ && batch_ >= epoch_batches_) return false;
  DTG_ASSIGN(bool more, data_.reading->next(element_));
  if (crew_ && !more && options_.steps_per_epoch == 0) {
    return data_loss("fit: the data of this worker ended after %lld steps of an epoch, and it had said %lld",
                     static_cast<long long>(batch_), static_cast<long long>(epoch_batches_));
  }
  if (more || options_.steps_per_epoch == 0) return more;
  DTG_TRY(data_.reading->restart());
  DTG_ASSIGN(more, data_.reading->next(element_));
  return more ? Result<bool>(true) : data_.reading->no_elements("fit");
}

Result<double> Course::make_step() {
  double loss = 0;
  if (crew_) crew_->ask(clock_, !wish_.empty());
  DTG_TRY(trainer_->step(element_, options_.cancellation.get(), &loss));
  if (!crew_) return loss;
  DTG_ASSIGN(stops_, crew_->answer(clock_));
  rejoined_ = 0;
  return loss;
}

Result<Course::Event> Course::step() {
  if (checkpoints_ && !saved_) {
    const int64_t began_ns = clock_.monotonic_ns();
    DTG_ASSIGN(const bool saves, due());
    files_ns_ += clock_.monotonic_ns() - began_ns;
    if (saves) return event(Kind::checkpoint, text_.c_str());
  }
  if (options_.cancellation) DTG_TRY(options_.cancellation->status());
  const bool late = options_.time_limit_ns > 0 && clock_.monotonic_ns() - begun_ns_ >= options_.time_limit_ns;
  wish_ = late ? "the time limit" : trainer_->stop_is_asked() ? "asked to" : "";
  // Workers stop behind the step beside which one of them has wished so.
  if (crew_ ? stops_ : !wish_.empty()) {
    stop_now(wish_.empty() ? "another worker was asked to" : wish_);
    return advance();
  }
  const int64_t asked_ns = clock_.monotonic_ns();
  if (!pulled_) {
    DTG_ASSIGN(const bool more, pull());
    if (!more) {
      if (batch_ == 0) return data_.reading->no_elements("fit");
      DTG_TRY(end_epoch());
      return advance();
    }
  }
  pulled_ = crew_ != nullptr;
  const int64_t given_ns = clock_.monotonic_ns();
  data_ns_ += given_ns - asked_ns;
  DTG_ASSIGN(const double loss, make_step());
  pulled_ = false;
  compute_ns_ += clock_.monotonic_ns() - given_ns;
  const int64_t rows = Trainer::rows_of(element_);
  ++batch_;
  ++steps_;
  rows_ += rows;
  epoch_rows_ += rows;
  loss_sum_ += loss * static_cast<double>(rows);
  saved_ = false;
  step_values_.set(0, loss);
  if (board_ && options_.board_steps > 0 && steps_ % options_.board_steps == 0) board_->step(steps_, loss);
  Event made = event(Kind::step);
  made.loss = loss;
  made.values = &step_values_;
  return made;
}

bool Course::validates() const { return validation_.reading && (epoch_ + 1) % options_.validation_every == 0; }

Status Course::end_epoch() {
  values_.clear();
  values_.add("loss", loss_sum_ / static_cast<double>(rows_));
  DTG_TRY(trainer_->read_metrics("", values_));
  stage_ = validates() ? Stage::validation : Stage::rate;
  return {};
}

Result<Course::Event> Course::validate() {
  const int64_t began_ns = clock_.monotonic_ns();
  std::string ill;
  const int64_t steps = crew_ ? validation_batches_ : options_.validation_steps;
  DTG_TRY(
      trainer_->evaluate(*validation_.reading, steps, options_.cancellation.get(), "val_", values_, ill).with_context("fit, validation"));
  if (!ill.empty() && !told_ill_)
    warn("validation: " + ill +
         "; while a \"val_\" value is NaN nothing is decided by it: neither early stopping nor a plateau counts the epoch");
  told_ill_ = !ill.empty();
  if (steps == 0 && !told_dropped_) {
    const std::string dropped = validation_.reading->tell_dropped("count for nothing");
    told_dropped_ = !dropped.empty();
    if (told_dropped_) warn("validation: " + dropped);
  }
  validation_ns_ += clock_.monotonic_ns() - began_ns;
  stage_ = Stage::rate;
  return event(Kind::validation);
}

// Null where the epoch has no such value, or one of the validation that is NaN: one bad row there says nothing about the weights.
const double* Course::value_of(const Watch& watch) const {
  const double* const value = values_.find(watch.name);
  return value && std::isnan(*value) && watch.name.starts_with("val_") ? nullptr : value;
}

// What an epoch's end decides, in two events where the learning rate falls. Keras' callbacks are asked in this order where they are given
// so.
Result<Course::Event> Course::judge() {
  if (stage_ == Stage::rate) {
    if (crew_) DTG_TRY(share_values());
    stage_ = Stage::epoch_end;
    if (trainer_->rate_is_ours()) values_.add("learning_rate", static_cast<double>(trainer_->rate()));
    const double* const watched = plateau_ ? value_of(plateau_->rule().watch) : nullptr;
    const auto lower = watched ? plateau_->epoch_ended(*watched, trainer_->rate()) : std::nullopt;
    if (lower) {
      trainer_->set_rate(*lower);
      text_ = format("the learning rate falls to %g", static_cast<double>(*lower));
      return event(Kind::rate, text_.c_str());
    }
  }
  const double* const best = options_.best ? value_of(*options_.best) : nullptr;
  bool keep = false;
  if (best && options_.best->improves(*best, best_)) {
    best_ = *best;
    best_epoch_ = epoch_;
    keep = true;
  }
  const double* const watched = stopping_ ? value_of(stopping_->rule().watch) : nullptr;
  const EarlyStopping::Verdict verdict = watched ? stopping_->epoch_ended(epoch_, *watched) : EarlyStopping::Verdict{};
  const int64_t began_ns = clock_.monotonic_ns();
  if (keep && directory_) DTG_TRY(write_weights("best.safetensors"));
  if (verdict.keep && stopping_->rule().restores) DTG_TRY(keep_best());
  DTG_TRY(log_epoch());
  files_ns_ += clock_.monotonic_ns() - began_ns;
  Event made = event(Kind::epoch_end);
  // A fall is the next epoch's.
  if (const double* const rate = values_.find("learning_rate")) made.learning_rate = *rate;
  count_epoch(made);
  DTG_TRY(watch_epoch(made));
  ++epoch_;
  batch_ = 0;
  saved_ = false;
  if (verdict.stop) {
    stop_now(stopping_->rule().watch.name + " has not improved");
    decided_ = true;
  } else {
    stage_ = Stage::epoch_begin;
  }
  const bool saves = checkpoints_ && (epoch_ % options_.checkpoint_epochs == 0 || epoch_ >= options_.epochs || verdict.stop);
  if (saves) stage_ = Stage::epoch_checkpoint;
  return made;
}

Result<Course::Event> Course::finish() {
  Status saved;
  if (checkpoints_ && !saved_) {
    saved = start_checkpoint();
    stage_ = Stage::finish;
    if (saved.ok()) return event(Kind::checkpoint, text_.c_str());
  } else if (checkpoints_) {
    saved = checkpoints_->wait(Deadline::never());
  }
  // Where no checkpoint could be written the weights may still find room, and would be lost otherwise.
  const Status written = write_results(saved);
  if (!saved.ok()) return saved;
  DTG_TRY(written);
  stage_ = Stage::over;
  if (board_) board_->finished(true);
  if (checkpoints_) checkpoints_->let_go();
  return event(Kind::done, why_.empty() ? "all epochs" : why_.c_str());
}

}  // namespace dtg
