// What of a course is shown while it goes on: the line of its progress, and curves for TensorBoard. See course.h for threads.
#include <thread>

#include "train/course.h"
#include "train/report.h"

namespace dtg {

// A host that has a log of its own has its own idea of what is on the terminal.
void Course::begin_watch() {
  const Seams& seams = trainer_->session().runtime().seams();
  if (directory_ && options_.board) {
    board_.emplace(*seams.disk, clock_, seams.log, directory_->file("tensorboard"), resumed_ ? steps_ : -1);
    if (!resumed_) board_->settings(settings());
  }
  if (options_.progress == ProgressTo::quiet) return;
  const bool draws = options_.progress == ProgressTo::best && seams.log == &stderr_sink();
  progress_.emplace(clock_, draws ? &stderr_terminal() : nullptr, seams.log);
}

Json Course::settings() const {
  Json::Object told = trainer_->described();
  told.emplace_back("epochs", options_.epochs);
  if (options_.steps_per_epoch > 0) told.emplace_back("steps_per_epoch", options_.steps_per_epoch);
  told.emplace_back("data", data_.reading->text());
  if (validation_.reading) told.emplace_back("validation", validation_.reading->text());
  if (stopping_) told.emplace_back("early_stopping", stopping_->rule().watch.name);
  if (plateau_) told.emplace_back("plateau", plateau_->rule().watch.name);
  return Json(std::move(told));
}

Json Course::environment() {
  return Json(Json::Object{{"dtg", DTG_VERSION}, {"cpus", static_cast<int64_t>(std::thread::hardware_concurrency())}});
}

// Where the time of an epoch went; the rest is what the host did between two pulls. The checkpoint behind an epoch is added when it has
// begun (checkpoint()).
void Course::count_epoch(const Event& event) {
  const auto seconds = [](int64_t ns) { return static_cast<double>(ns) * 1e-9; };
  times_.emplace_back(Json::Object{{"epoch", event.epoch},
                                   {"seconds", seconds(clock_.monotonic_ns() - epoch_ns_)},
                                   {"data", seconds(data_ns_)},
                                   {"compute", seconds(compute_ns_)},
                                   {"validation", seconds(validation_ns_)},
                                   {"files", seconds(files_ns_)},
                                   {"examples_per_s", event.examples_per_s}});
}

void Course::add_files(int64_t ns) {
  if (times_.empty()) return;
  for (auto& [name, value] : *times_.back().object()) {
    if (name == "seconds" || name == "files") value = Json(*value.real() + static_cast<double>(ns) * 1e-9);
  }
}

Status Course::write_page(const Json& summary) const {
  std::string name = directory_->path();
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  Json::Object run = {{"name", name.substr(name.rfind('/') + 1)}};
  for (const auto& [key, value] : *summary.object()) run.emplace_back(key, value);
  return write_report(*trainer_->session().runtime().seams().disk, directory_->file("report.html"), Json(std::move(run)));
}

Status Course::watch_epoch(const Event& event) {
  if (!board_) return {};
  board_->epoch(steps_, values_, event.examples_per_s);
  if (options_.histogram_epochs > 0 && (epoch_ + 1) % options_.histogram_epochs == 0) {
    std::vector<Value> fetches;
    std::vector<std::string> names;
    for (const NamedVariable& variable : trainer_->model().variables()) {
      if (!variable.trainable) continue;
      fetches.push_back(variable.read);
      names.push_back(variable.name);
    }
    std::vector<Tensor> values(fetches.size());
    DTG_TRY(trainer_->session().run({.feeds = {}, .feed_tensors = {}, .fetches = fetches, .targets = {}}, values));
    for (size_t i = 0; i < values.size(); ++i) board_->weights(steps_, names[i], values[i]);
  }
  board_->flush();
  return {};
}

Progress::At Course::place_of(const Event& event) const {
  const double mean = rows_ > 0 ? loss_sum_ / static_cast<double>(rows_) : 0;
  return {event.epoch, options_.epochs, event.batch, event.batches, mean, event.examples_per_s};
}

void Course::show(const Event& event) {
  if (!progress_) return;
  switch (event.kind) {
    case Kind::epoch_begin: return progress_->epoch_begins(place_of(event));
    case Kind::step: return progress_->step(place_of(event));
    case Kind::epoch_end: return progress_->epoch_ends(place_of(event), values_);
    case Kind::rate:
    case Kind::stopped:
    case Kind::done: return progress_->wipe();
    default: return;
  }
}

}  // namespace dtg
