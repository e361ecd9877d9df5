// Turns values of a fit into records. See board.h for threads.
#include "train/board.h"

#include <vector>

namespace dtg {
namespace {

constexpr std::string_view kOfValidation = "val_";

template <class T>
std::vector<float> floats_of(const Tensor& tensor) {
  const T* const values = tensor.as<T>();
  std::vector<float> all(static_cast<size_t>(tensor.count()));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(values[i]);
  return all;
}

Hyperparameter setting_of(const std::string& name, const Json& value) {
  if (const bool* const flag = value.boolean()) return {name, *flag};
  if (const double* const real = value.real()) return {name, *real};
  if (const int64_t* const integer = value.integer()) return {name, static_cast<double>(*integer)};
  if (const std::string* const text = value.string()) return {name, *text};
  return {name, value.text()};
}

}  // namespace

Board::Board(Disk& disk, const Clock& clock, LogSink* log, std::string directory, int64_t after)
    : disk_(disk), clock_(clock), log_(log), directory_(std::move(directory)), after_(after) {}

Board::~Board() = default;

EventWriter* Board::writer(Role role) {
  if (lost_) return nullptr;
  if (writers_[role]) return writers_[role].get();
  const char* const names[] = {"/train", "/validation"};
  EventFileOptions options;
  // Readers drop what is said of this step and later ones; the last one of the checkpoint is right.
  options.resumed_at_step = after_ < 0 ? 0 : after_ + 1;
  auto opened = EventWriter::open(disk_, clock_, directory_ + names[role], options);
  look(opened.status());
  if (opened.ok()) writers_[role] = opened.take();
  return writers_[role].get();
}

void Board::look(const Status& written) {
  if (written.ok() || lost_) return;
  lost_ = true;
  if (log_) log_->write(LogLevel::warn, "fit", "there are no more curves for TensorBoard, and training goes on: " + written.message());
}

void Board::settings(const Json& settings) {
  EventWriter* const to = writer(train);
  if (!to || !settings.object()) return;
  std::string table = "| setting | value |\n|---|---|\n";
  std::vector<Hyperparameter> row;
  for (const auto& [name, value] : *settings.object()) {
    row.push_back(setting_of(name, value));
    const std::string* const text = value.string();
    table += "| " + name + " | " + (text ? *text : value.text()) + " |\n";
  }
  look(to->text("configuration", 0, table));
  look(to->hyperparameters(row));
}

void Board::step(int64_t step, double loss) {
  if (EventWriter* const to = writer(train)) look(to->scalar("batch_loss", step, loss));
}

void Board::epoch(int64_t step, const Record& values, double examples_per_s) {
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string& name = values.name(i);
    const bool validates = name.starts_with(kOfValidation);
    EventWriter* const to = writer(validates ? validation : train);
    if (to) look(to->scalar("epoch_" + (validates ? name.substr(kOfValidation.size()) : name), step, values.value(i)));
  }
  if (EventWriter* const to = writer(train)) look(to->scalar("epoch_examples_per_second", step, examples_per_s));
}

void Board::weights(int64_t step, const std::string& name, const Tensor& value) {
  EventWriter* const to = writer(train);
  if (!to) return;
  if (value.dtype() == DType::f32) look(to->histogram(name, step, {value.as<float>(), static_cast<size_t>(value.count())}));
  if (value.dtype() == DType::f64) look(to->histogram(name, step, floats_of<double>(value)));
}

void Board::flush() {
  for (const auto& each : writers_) {
    if (each && !lost_) look(each->flush());
  }
}

void Board::finished(bool success) {
  if (writers_[train] && after_ < 0 && !lost_) look(writers_[train]->finished(success));
  flush();
}

}  // namespace dtg
