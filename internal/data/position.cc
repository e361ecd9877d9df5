// Walks down the stages of a pipeline. Its epochs are read before its first element is asked for, when no thread of its own is at work.
#include "data/position.h"

#include <algorithm>

#include "base/or_undo.h"

namespace dtg {
namespace {

// A pipeline without end would be walked through for years.
constexpr int64_t kElementsMax = int64_t{1} << 40;

// Those that have a say in what comes when: a stage, then those below it.
void collect(Dataset& data, std::vector<Dataset*>& stages) {
  if (!data.stage().empty()) stages.push_back(&data);
  for (Dataset* below : data.sources()) collect(*below, stages);
}

std::vector<Dataset*> stages_of(Dataset& data) {
  std::vector<Dataset*> stages;
  collect(data, stages);
  return stages;
}

// The source first; several are parts of the stage that makes one of them.
std::string text_of(const Dataset& data) {
  std::string text;
  const std::vector<Dataset*> below = data.sources();
  for (const Dataset* part : below) text += (text.empty() ? "" : "; ") + text_of(*part);
  if (below.size() > 1) text = "{" + text + "}";
  if (data.stage().empty()) return text;
  return text.empty() ? data.stage() : text + ", " + data.stage();
}

}  // namespace

std::vector<int64_t> epochs_of(const Dataset& data) {
  std::vector<int64_t> epochs;
  if (!data.stage().empty()) epochs.push_back(data.epoch());
  if (const std::vector<int64_t>* kept = data.epochs_below()) {
    epochs.insert(epochs.end(), kept->begin(), kept->end());
    return epochs;
  }
  for (const Dataset* below : data.sources()) {
    const std::vector<int64_t> theirs = epochs_of(*below);
    epochs.insert(epochs.end(), theirs.begin(), theirs.end());
  }
  return epochs;
}

DatasetPtr Reading::take() {
  lost_ = lost_ || at_.elements > 0;
  begun_ = over_ = false;
  return std::move(data_);
}

Result<bool> Reading::next(Element& element) {
  if (!begun_) {
    // Where it is lost, a thread of a stage below may be at work.
    if (!lost_) at_.epochs = epochs_of(*data_);
    begun_ = true;
  }
  // Where memory runs out in the middle of an element, stages may have taken what never comes out of them.
  auto more = or_undo([&] { return data_->next(element); }, [&] { lost_ = true; });
  if (!more.ok() && more.status().code() == Code::resource_exhausted) lost_ = true;
  if (!more.ok()) return more;
  if (more.value()) ++at_.elements;
  over_ = !more.value();
  return more;
}

Status Reading::restart() {
  at_.elements = 0;
  begun_ = lost_ = over_ = false;
  return data_->restart();
}

std::string Reading::why_nothing() const {
  if (!data_ || at_.elements > 0) return "";
  for (const Dataset* stage : stages_of(*data_)) {
    if (const int64_t dropped = stage->dropped_all(); dropped > 0) {
      return format(": %s hands out whole batches only, and %lld element%s too few for one; give it a smaller size, or let it keep the "
                    "remainder",
                    stage->stage().c_str(), static_cast<long long>(dropped), dropped == 1 ? " is" : "s are");
    }
  }
  return "";
}

std::string Reading::tell_dropped(const char* what) const {
  int64_t dropped = 0;
  std::string batch;
  if (!data_ || at_.elements == 0) return "";
  for (const Dataset* stage : stages_of(*data_)) {
    if (stage->dropped() > 0 && dropped == 0) batch = stage->stage();
    dropped += stage->dropped();
  }
  if (dropped == 0) return "";
  return format("%lld row%s of the data %s: %s hands out whole batches only, and %s too few for one; let it keep the remainder, by "
                "batch(n, false)",
                static_cast<long long>(dropped), dropped == 1 ? "" : "s", what, batch.c_str(), dropped == 1 ? "it was" : "they were");
}

Status Reading::no_elements(const char* attempted) const {
  return failed_precondition("%s: the data set has no elements%s", attempted, why_nothing().c_str());
}

Result<DataPosition> Reading::position() const {
  if (!data_) return failed_precondition("where the data set stands cannot be told: a transform of it has failed");
  if (lost_) {
    return failed_precondition("where the data set stands cannot be told: a transform was added after elements had been taken, or "
                               "memory ran out in the middle of one; begin its next epoch, or move it");
  }
  if (begun_) return at_;
  return DataPosition{0, epochs_of(*data_)};
}

Status Reading::move_to(const DataPosition& position) {
  if (!data_) return failed_precondition("move a data set: a transform of it has failed");
  const auto negative = [](int64_t epoch) { return epoch < 0; };
  const std::vector<Dataset*> stages = stages_of(*data_);
  if (position.elements < 0 || position.elements > kElementsMax || position.epochs.size() != stages.size() ||
      std::ranges::any_of(position.epochs, negative)) {
    return invalid_argument("move a data set to element %lld: the position is of a pipeline of %zu stages, this one has %zu",
                            static_cast<long long>(position.elements), position.epochs.size(), stages.size());
  }
  DTG_TRY(restart());
  // From above downwards: what forgets begins what is below anew, and only then no thread of a stage in between is at work there.
  for (Dataset* stage : stages) DTG_TRY(stage->forget());
  for (size_t i = 0; i < stages.size(); ++i) stages[i]->set_epoch(position.epochs[i]);
  at_ = {0, position.epochs};
  begun_ = lost_ = true;
  DTG_ASSIGN(const int64_t passed, data_->skip(position.elements));
  if (passed < position.elements) {
    return data_loss("move a data set to element %lld: it has %lld now; is it the data it was?", static_cast<long long>(position.elements),
                     static_cast<long long>(passed));
  }
  at_.elements = passed;
  lost_ = false;
  return {};
}

std::string Reading::text() const { return data_ ? text_of(*data_) : ""; }

}  // namespace dtg
