// Counts the epochs without progress. See patience.h for threads.
#include "train/patience.h"

#include <algorithm>

namespace dtg {

Better better_of(Better given, std::string_view name) {
  if (given != Better::by_name) return given;
  const std::string_view rising[] = {"acc", "auc", "precision", "recall", "f1", "r2", "iou"};
  const bool rises = std::ranges::any_of(rising, [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
  return rises ? Better::greater : Better::less;
}

double Watch::worst() const {
  const double endless = std::numeric_limits<double>::infinity();
  return better_of(better, name) == Better::greater ? -endless : endless;
}

// What is not a number improves on nothing.
bool Watch::improves(double value, double over) const {
  return better_of(better, name) == Better::greater ? value - min_delta > over : value + min_delta < over;
}

void Watch::sign(Json::Object& state) const {
  state.emplace_back("watch", name);
  state.emplace_back("greater", better_of(better, name) == Better::greater);
}

bool Watch::has_signed(const Json& state) const {
  const Json *const watch = state.find("watch"), *const greater = state.find("greater");
  const std::string* const whose = watch ? watch->string() : nullptr;
  const bool* const up = greater ? greater->boolean() : nullptr;
  return whose && *whose == name && up && *up == (better_of(better, name) == Better::greater);
}

EarlyStopping::Verdict EarlyStopping::epoch_ended(int64_t epoch, double value) {
  if (epoch < rule_.from_epoch) return {};
  Verdict verdict;
  // Some weights must be the best, also where no epoch ever improves on anything.
  if (best_epoch_ < 0) {
    verdict.keep = true;
    best_epoch_ = epoch;
  }
  ++wait_;
  if (rule_.watch.improves(value, best_)) {
    best_ = value;
    best_epoch_ = epoch;
    verdict.keep = true;
    if (!rule_.baseline || rule_.watch.improves(value, *rule_.baseline)) wait_ = 0;
    return verdict;
  }
  verdict.stop = wait_ >= rule_.patience && epoch > 0;
  return verdict;
}

// JSON has no infinity: where nothing was good yet, "best" is null.
Json EarlyStopping::state() const {
  Json::Object state = {{"best", best_}, {"best_epoch", best_epoch_}, {"wait", wait_}};
  rule_.watch.sign(state);
  return Json(std::move(state));
}

bool EarlyStopping::set_state(const Json& state) {
  if (!rule_.watch.has_signed(state)) return false;
  best_ = real_of(state, "best", rule_.watch.worst());
  best_epoch_ = integer_of(state, "best_epoch", -1);
  wait_ = integer_of(state, "wait", 0);
  return true;
}

std::optional<float> Plateau::epoch_ended(double value, float rate) {
  if (cooling_ > 0) {
    --cooling_;
    wait_ = 0;
  }
  if (rule_.watch.improves(value, best_)) {
    best_ = value;
    wait_ = 0;
    return {};
  }
  if (cooling_ > 0 || ++wait_ < rule_.patience) return {};
  if (!(rate > static_cast<float>(rule_.least_rate))) return {};
  cooling_ = rule_.cooldown;
  wait_ = 0;
  return static_cast<float>(std::max(static_cast<double>(rate) * rule_.factor, rule_.least_rate));
}

Json Plateau::state() const {
  Json::Object state = {{"best", best_}, {"wait", wait_}, {"cooling", cooling_}};
  rule_.watch.sign(state);
  return Json(std::move(state));
}

bool Plateau::set_state(const Json& state) {
  if (!rule_.watch.has_signed(state)) return false;
  best_ = real_of(state, "best", rule_.watch.worst());
  wait_ = integer_of(state, "wait", 0);
  cooling_ = integer_of(state, "cooling", 0);
  return true;
}

double real_of(const Json& object, std::string_view key, double fallback) {
  const Json* const found = object.find(key);
  if (!found) return fallback;
  if (const double* const real = found->real()) return *real;
  const int64_t* const whole = found->integer();
  return whole ? static_cast<double>(*whole) : fallback;
}

int64_t integer_of(const Json& object, std::string_view key, int64_t fallback) {
  const Json* const found = object.find(key);
  const int64_t* const whole = found ? found->integer() : nullptr;
  return whole ? *whole : fallback;
}

}  // namespace dtg
