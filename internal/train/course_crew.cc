// A course among those of other workers: they begin at one place, decide by the same values, and when one was lost go on together from
// where the furthest of them has come to, which is also how one that was started again catches up. See course.h for threads.
#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "train/course.h"

namespace dtg {
namespace {

// Of losses one after the other without a step in between.
constexpr int kRejoinsMost = 20;
constexpr JsonLimits kStateLimits{size_t{1} << 28, size_t{1} << 24, 64};
constexpr const char* kStages[] = {"begin",     "epoch_begin",      "step",    "validation", "rate",
                                   "epoch_end", "epoch_checkpoint", "stopped", "finish",     "over"};

bool is_true(const Json& state, const char* name) {
  const Json* const found = state.find(name);
  return found && found->boolean() && *found->boolean();
}

std::string text_in(const Json& state, const char* name) {
  const Json* const found = state.find(name);
  return found && found->string() ? *found->string() : "";
}

}  // namespace

// Where this course stands, later places being greater: steps, then what comes behind the last of an epoch.
int64_t Course::progress() const {
  const int64_t place = batch_ == 0 ? 3 : stage_ == Stage::validation ? 1 : stage_ == Stage::rate ? 2 : 0;
  return steps_ * 4 + place;
}

// What all workers must mean alike.
int64_t Course::settings_hash() const {
  std::string text = format("%lld epochs, %lld steps, validation every %lld of %lld, %d", static_cast<long long>(options_.epochs),
                            static_cast<long long>(options_.steps_per_epoch), static_cast<long long>(options_.validation_every),
                            static_cast<long long>(options_.validation_steps), validation_.reading ? 1 : 0);
  for (size_t i = 0; i < trainer_->metric_count(); ++i) text += "; " + trainer_->metric_name(i);
  if (stopping_)
    text += "; stopping by " + stopping_->rule().watch.name + format(", patience %lld", static_cast<long long>(stopping_->rule().patience));
  if (options_.best) text += "; best by " + options_.best->name;
  return static_cast<int64_t>(hash_bytes(text) >> 1);
}

Status Course::meet_crew() {
  for (;;) {
    Status met = try_to_meet();
    if (met.ok() || !crew_->ends_by(met)) return met;
    DTG_TRY(form_anew(met));
  }
}

Status Course::form_anew(const Status& why) {
  if (++rejoined_ > kRejoinsMost) return why.with_context(format("fit: a worker was lost %d times without a step", kRejoinsMost));
  warn("the workers come together again: " + why.message());
  return crew_->form(clock_).with_context("fit, after the loss of a worker");
}

// A worker was lost. Those who are there wait for it, and go on from where the furthest is.
Result<Course::Event> Course::rejoin(Status why) {
  DTG_TRY(form_anew(why));
  DTG_TRY(meet_crew());
  warn(format("all workers go on after step %lld", static_cast<long long>(steps_)));
  return advance();
}

Status Course::try_to_meet() {
  DTG_ASSIGN(const int64_t model_steps, crew_->level(trainer_->session(), trainer_->model()));
  const auto size_of = [](int64_t said, const Data& data) { return said > 0 || !data.reading ? said : data.reading->data().cardinality(); };
  const int64_t mine[] = {progress(), size_of(options_.steps_per_epoch, data_), size_of(options_.validation_steps, validation_),
                          settings_hash()};
  DTG_ASSIGN(const auto all, crew_->gather(clock_, mine));
  DTG_TRY(agree_on_sizes(all));
  // The first of those that are furthest.
  const auto furthest = std::ranges::max_element(all, {}, [](const auto& row) { return row[0]; });
  const int root = static_cast<int>(furthest - all.begin());
  std::string text;
  if (root == crew_->rank()) {
    DTG_ASSIGN(const Json own, place_and_state());
    text = own.text();
  }
  DTG_ASSIGN(text, crew_->from(clock_, root, text));
  if (root != crew_->rank()) {
    DTG_ASSIGN(const Json state, parse_json(text, "where another worker's fit stands", kStateLimits));
    DTG_TRY(adopt(state));
    DTG_TRY(move_data(state));
  }
  if (steps_ == 0 && epoch_ == 0) first_step_ = model_steps;
  DTG_TRY(adopt_best(root));
  DTG_TRY(count_unseen(model_steps));
  // A wish that was agreed on in an epoch that is over is wished again.
  stops_ = false;
  return {};
}

Status Course::agree_on_sizes(const std::vector<std::vector<int64_t>>& all) {
  const auto differs = std::ranges::find_if(all, [&](const auto& row) { return row[3] != all[0][3]; });
  if (differs != all.end()) {
    return failed_precondition(
        "fit: worker %d asks for another fit than worker 0: epochs, steps, validation, metrics and rules must be the same at all workers",
        static_cast<int>(differs - all.begin()));
  }
  epoch_batches_ = (*std::ranges::min_element(all, {}, [](const auto& row) { return row[1]; }))[1];
  validation_batches_ = (*std::ranges::min_element(all, {}, [](const auto& row) { return row[2]; }))[2];
  if (epoch_batches_ < 0) {
    return invalid_argument(
        "fit: nobody knows how many elements the data of each worker have, and all must make as many steps; say how many are an epoch");
  }
  if (epoch_batches_ == 0) return invalid_argument("fit: a worker has no data for a single step");
  if (validation_.reading && validation_batches_ <= 0) {
    return invalid_argument(
        "fit: nobody knows how many elements the data to validate with have at each worker, or one has none; say how many steps to "
        "validate with");
  }
  return {};
}

// The data's place is that in front of the element of the next step.
Result<Json> Course::place_and_state() const {
  Json::Object told = state();
  told.emplace_back("first_step", first_step_);
  told.emplace_back("stage", kStages[static_cast<size_t>(stage_ == Stage::begin ? first_stage_ : stage_)]);
  told.emplace_back("decided", decided_);
  told.emplace_back("stop", why_);
  DTG_ASSIGN(const DataPosition place, data_.reading->position());
  told.emplace_back("elements", place.elements - (pulled_ ? 1 : 0));
  told.emplace_back("data_epochs", Json::Array(place.epochs.begin(), place.epochs.end()));
  Json::Object values;
  for (size_t i = 0; i < values_.size(); ++i) values.emplace_back(values_.name(i), values_.value(i));
  told.emplace_back("values", std::move(values));
  told.emplace_back("history", history_);
  return Json(std::move(told));
}

Status Course::adopt(const Json& state) {
  epoch_ = integer_of(state, "epoch", 0);
  batch_ = integer_of(state, "batch", 0);
  steps_ = integer_of(state, "steps", 0);
  rows_ = integer_of(state, "rows", 0);
  loss_sum_ = real_of(state, "loss_sum", 0);
  first_step_ = integer_of(state, "first_step", 0);
  why_ = text_in(state, "stop");
  decided_ = is_true(state, "decided");
  const auto found = std::ranges::find(kStages, text_in(state, "stage"), [](const char* name) { return std::string(name); });
  if (found == std::end(kStages)) return data_loss("fit: another worker says that it is at \"%s\"", text_in(state, "stage").c_str());
  auto stage = static_cast<Stage>(found - kStages);
  // What is the first worker's alone, or needs nobody.
  if (stage == Stage::epoch_checkpoint || stage == Stage::epoch_end) stage = why_.empty() ? Stage::epoch_begin : Stage::stopped;
  (stage_ == Stage::begin ? first_stage_ : stage_) = stage;
  resumed_ = resumed_ || steps_ > 0;
  saved_ = false;
  values_.clear();
  if (const Json* const values = state.find("values"); values && values->object()) {
    for (const auto& [name, value] : *values->object()) values_.add(name, value.real() ? *value.real() : std::nan(""));
  }
  put_best(state);
  if (const Json* const kept = state.find("stopping"); kept && stopping_) (void)stopping_->set_state(*kept);
  const Json* const rows = state.find("history");
  history_ = rows && rows->array() ? *rows->array() : Json::Array();
  return directory_ ? rewrite_history() : Status();
}

// The rows of the others' epochs, in the place of those that this worker had written before it was lost.
Status Course::rewrite_history() {
  size_t damaged = 0;
  DTG_TRY(directory_->open(0, damaged).status());
  for (const Json& row : history_) DTG_TRY(directory_->append(row));
  return {};
}

// The weights that early stopping would restore. Who has them sends them; all workers have the same model.
Status Course::adopt_best(int root) {
  const int64_t mine[] = {static_cast<int64_t>(best_kept_.size())};
  DTG_ASSIGN(const auto all, crew_->gather(clock_, mine));
  const auto count = static_cast<size_t>(all[static_cast<size_t>(root)][0]);
  // As many may be of an older epoch, where a worker has them from its checkpoint.
  if (std::ranges::all_of(all, [](const auto& row) { return row[0] == 0; })) return {};
  std::vector<Kept> kept = best_kept_;
  if (root != crew_->rank()) kept.assign(count, {});
  for (Kept& each : kept) {
    DTG_ASSIGN(each.name, crew_->from(clock_, root, each.name));
    DTG_ASSIGN(each.value, crew_->from(clock_, root, each.value));
    const NamedVariable* const variable = trainer_->model().find(each.name);
    if (!variable) return data_loss("fit: another worker keeps the best \"%s\", which this one's model does not have", each.name.c_str());
    each.assign = variable->assign;
  }
  best_kept_ = std::move(kept);
  return {};
}

Status Course::move_data(const Json& state) {
  DataPosition wanted{integer_of(state, "elements", 0), {}};
  if (const Json* const epochs = state.find("data_epochs"); epochs && epochs->array()) {
    for (const Json& each : *epochs->array()) wanted.epochs.push_back(each.integer() ? *each.integer() : 0);
  }
  DTG_ASSIGN(const DataPosition at, data_.reading->position());
  if (at.elements - (pulled_ ? 1 : 0) == wanted.elements && at.epochs == wanted.epochs) return {};
  pulled_ = false;
  return data_.reading->move_to(wanted).with_context("fit, go where the other workers are");
}

// A step whose end nobody has heard of, but which the workers have applied. What its loss was nobody knows: the epoch's mean stays.
Status Course::count_unseen(int64_t model_steps) {
  const int64_t unseen = model_steps - first_step_ - steps_;
  if (unseen == 0) return {};
  if (unseen != 1 || stage_ == Stage::validation || stage_ == Stage::rate) {
    return failed_precondition("fit: the model counts %lld steps and the fit %lld; the training must count one each step, and nobody else",
                               static_cast<long long>(model_steps), static_cast<long long>(first_step_ + steps_));
  }
  if (!pulled_) {
    DTG_ASSIGN(const bool more, pull());
    if (!more) return data_loss("fit: the workers have made a step more than this one's data have elements");
  }
  pulled_ = false;
  const double mean = rows_ > 0 ? loss_sum_ / static_cast<double>(rows_) : std::nan("");
  const int64_t rows = batch_ > 0 ? rows_ / batch_ : Trainer::rows_of(element_);
  rows_ += rows;
  loss_sum_ = mean * static_cast<double>(rows_);
  ++batch_;
  ++steps_;
  return {};
}

// What is decided at an epoch's end is decided by the first worker's values.
Status Course::share_values() {
  std::vector<double> mine;
  for (size_t i = 0; i < values_.size(); ++i) mine.push_back(values_.value(i));
  DTG_ASSIGN(const Tensor own, Tensor::of<double>(Shape::of({static_cast<int64_t>(mine.size())}), mine));
  DTG_ASSIGN(const Tensor first, crew_->from(clock_, 0, own));
  if (first.count() != own.count()) return data_loss("fit: the first worker tells of %lld values", static_cast<long long>(first.count()));
  for (size_t i = 0; i < values_.size(); ++i) values_.set(i, first.as<double>()[i]);
  return {};
}

}  // namespace dtg
