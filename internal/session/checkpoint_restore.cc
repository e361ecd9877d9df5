// Restoring: a set is held against the model before a byte of it is read, and every byte of it is read before anything is assigned. See
// checkpoints.h for threads.
#include <algorithm>

#include "base/sha256.h"
#include "base/whereabouts.h"
#include "data/csv.h"
#include "session/checkpoints.h"
#include "strategy/replicas.h"

namespace dtg {
namespace {

constexpr const char* kPlace = "data:";
constexpr const char* kHash = "sha256:";

Json::Array array(const std::vector<std::string>& texts) { return {texts.begin(), texts.end()}; }

const std::string* find_text(const TextPairs& pairs, const std::string& key) {
  const auto at = std::ranges::find(pairs, key, &std::pair<std::string, std::string>::first);
  return at == pairs.end() ? nullptr : &at->second;
}

}  // namespace

// The variables that a set holds, in the order of its manifest.
static std::vector<SavedTensor> variables_in(const Manifest& manifest) {
  std::vector<SavedTensor> variables;
  for (const ManifestTensor& saved : manifest.tensors) {
    const bool variable = saved.role == TensorRole::variable || saved.role == TensorRole::slot || saved.role == TensorRole::step;
    if (variable) variables.push_back({saved.name, saved.dtype, saved.shape});
  }
  return variables;
}

Json Checkpoints::Restored::json() const {
  const char* const words[] = {"started", "kept", "restored"};
  return Json(Json::Object{{"outcome", words[static_cast<int>(how)]},
                           {"path", path},
                           {"step", step},
                           {"variables", static_cast<int64_t>(variables)},
                           {"passed_over", array(passed_over)},
                           {"missing", array(missing)},
                           {"extra", array(extra)},
                           {"reshaped", array(reshaped)},
                           {"notes", array(notes)}});
}

Result<Checkpoints::Restored> Checkpoints::restore(const std::string& set) {
  DTG_TRY(check_party("restore a checkpoint"));
  changed_.wait(session_->runtime().clock(), Deadline::never(), [this] { return !writing_; });
  if (set.empty()) return restore(nullptr);
  SetId id;
  if (SetId::parse(set, id)) return restore(&id);
  return invalid_argument("restore \"%.200s\" from \"%s\": that is not the name of a set; give one as `dtg checkpoint list` tells them",
                          set.c_str(), directory_.path().c_str());
}

RestoreOptions Checkpoints::reading(Restored& restored) {
  RestoreOptions options;
  options.budget = session_->runtime().seams().budget;
  options.passed_over = [this, &restored](const SetId& damaged, const Status& why) {
    restored.passed_over.push_back(why.message());
    damaged_.push_back(damaged);
    warn("a damaged checkpoint is passed over: " + why.message());
  };
  return options;
}

Result<Checkpoints::Restored> Checkpoints::restore(const SetId* id) {
  const Seams& seams = session_->runtime().seams();
  Restored restored;
  Fit fit;
  RestoreOptions options = reading(restored);
  options.check = [&](const Manifest& manifest) -> Status {
    DTG_ASSIGN(fit, Fit::of(*model_, variables_in(manifest), options_.names));
    return options_.partial ? Status() : fit.check(directory_.path_of(manifest.id), true);
  };
  if (options_.partial) {
    options.wanted = [&](const ManifestTensor& saved) { return saved.role == TensorRole::data || fit.takes(saved.name); };
  }
  auto set =
      id ? restore_set(*seams.disk, directory_, *id, options) : restore_newest(*seams.disk, directory_, OnDamage::fall_back, options);
  DTG_TRY(told_by(set.status(), session_->driver().task().name(), "restore"));
  restored.how = Restored::How::restored;
  restored.path = directory_.path_of(set.value().manifest.id);
  restored.step = set.value().manifest.id.step;
  DTG_TRY(fit.check_any(restored.path));
  DTG_TRY(put(set.value(), fit, restored).with_context("restore \"" + restored.path + "\""));
  plan_next(restored.step);
  return restored;
}

// All variables in one run, the places of data sets before it: they are held against their data, and may not fit.
Status Checkpoints::put(const RestoredSet& set, const Fit& fit, Restored& restored) {
  restored.missing = Fit::names(fit.missing);
  restored.extra = Fit::names(fit.extra);
  restored.reshaped = Fit::names(fit.reshaped);
  restored.variables = fit.both.size();
  const std::string* const seed = find_text(set.manifest.metadata, "seed");
  if (seed && *seed != std::to_string(model_->seed())) {
    restored.notes.push_back("the set was saved with the seed " + *seed + ", the model has " + std::to_string(model_->seed()) +
                             "; what is drawn at random goes on differently");
    warn("restore \"" + restored.path + "\": " + restored.notes.back());
  }
  Assignment assign;
  for (const auto& [variable, saved] : fit.both) DTG_TRY(assign.add(model_->graph(), variable, *set.find(saved)));
  if (companion_) DTG_TRY(companion_->put(set));
  DTG_TRY(put_places(set, 0, restored));
  return session_->run({.feeds = assign.feeds, .feed_tensors = assign.pointers(), .fetches = {}, .targets = assign.targets}, {});
}

// A schema is the host's vocabularies too, and each set would hold them once more: of a long one the hash must do.
std::string Checkpoints::kept_schema(const Reading& data) {
  constexpr size_t kBytes = size_t{1} << 20;
  const std::string& schema = data.schema();
  return schema.size() <= kBytes ? schema : kHash + sha256(schema).hex();
}

// How the data differ from those of the set, by what schemas tell; sets of older days have none.
std::string Checkpoints::is_other(const RestoredSet& set, const Data& data) {
  const std::string* const before = find_text(set.manifest.metadata, kSchema + data.name);
  const std::string now = kept_schema(*data.reading);
  if (!before || now.empty() || *before == now) return "";
  const bool hashed = before->starts_with(kHash) || now.starts_with(kHash);
  return hashed ? "its schema is another one, which is too long to be kept and compared name by name" : is_other_data(*before, now);
}

// Where a set says that a data set stood; where it does not, `why`.
std::optional<DataPosition> Checkpoints::place_in(const RestoredSet& set, const Data& data, std::string* why) {
  const Tensor* const saved = set.find(kPlace + data.name);
  const std::string* const text = find_text(set.manifest.metadata, kPlace + data.name);
  if (!saved || !text || saved->dtype() != DType::i64 || saved->shape().rank() != 1 || saved->count() < 1) *why = "it is not in the set";
  else if (std::string other = is_other(set, data); !other.empty()) *why = "it is other data than training had: " + other;
  else if (*text != data.reading->text()) *why = "it was \"" + *text + "\" and is \"" + data.reading->text() + "\"";
  if (!why->empty()) return std::nullopt;
  const int64_t* const numbers = saved->as<int64_t>();
  return DataPosition{numbers[0], {numbers + 1, numbers + saved->count()}};
}

Status Checkpoints::move(const Data& data, const DataPosition& place) const {
  const Status moved = data.reading->move_to(place);
  if (moved.ok() || data.place == Place::needed) return moved;
  // As many rows less, perhaps, under the same description.
  warn("the place of the data set \"" + data.name + "\": " + moved.message());
  return data.reading->restart();
}

// `steps`: as many were done after the set.
Status Checkpoints::put_places(const RestoredSet& set, int64_t steps, Restored& restored) {
  std::vector<std::optional<DataPosition>> places;
  for (const Data& data : data_) {
    std::string why;
    places.push_back(place_in(set, data, &why));
    if (places.back()) continue;
    why = "the place of the data set \"" + data.name + "\": " + why;
    if (data.place == Place::wished) warn(why + "; it stays where it stands");
    else if (!options_.partial)
      return failed_precondition("%s; a new training takes a directory of its own, a partial restore leaves the data set where it stands",
                                 why.c_str());
    restored.notes.push_back(why);
  }
  for (size_t i = 0; i < places.size(); ++i) {
    if (!places[i]) continue;
    if (steps == 0) DTG_TRY(move(data_[i], *places[i]));
    else DTG_TRY(go_on(data_[i], *places[i], set.manifest.id, steps, restored));
  }
  // Whoever forgot to add one would train with its first elements again, without a word.
  for (const auto& [key, text] : set.manifest.metadata) {
    const std::string_view name = std::string_view(key).substr(std::min(key.size(), std::string_view(kPlace).size()));
    if (!key.starts_with(kPlace) || std::ranges::any_of(data_, [&](const Data& data) { return data.name == name; })) continue;
    restored.notes.push_back("the set has the place of a data set \"" + std::string(name) +
                             "\", and none of that name was added: what it gave before comes again");
  }
  return {};
}

// The variables stay, and are as far as the newest set or further; the data sets begin where their process did, so they have to follow.
Status Checkpoints::follow(Restored& restored) {
  if (data_.empty() || restored.step == 0) return {};
  RestoreOptions options = reading(restored);
  options.wanted = [](const ManifestTensor& saved) { return saved.role == TensorRole::data; };
  auto set = restore_newest(*session_->runtime().seams().disk, directory_, OnDamage::fall_back, options);
  const bool none = set.status().code() == Code::not_found || set.status().code() == Code::data_loss;
  if (!set.ok() && !none) return told_by(set.status(), session_->driver().task().name(), "restore");
  const size_t before = restored.notes.size();
  if (set.ok()) {
    const int64_t steps = restored.step - set.value().manifest.id.step;
    DTG_TRY(put_places(set.value(), steps, restored).with_context("resume training from \"" + directory_.path() + "\""));
  } else {
    restored.notes.push_back("no set tells where the data sets stood at step " + std::to_string(restored.step) +
                             ", so they stay where they are, and what those steps took comes again");
  }
  for (size_t i = before; i < restored.notes.size(); ++i) warn("resume \"" + directory_.path() + "\": " + restored.notes[i]);
  return {};
}

// From its place in the set over what the steps since then took, if that can be known: as many elements each as those before.
Status Checkpoints::go_on(const Data& data, const DataPosition& place, const SetId& set, int64_t steps, Restored& restored) const {
  const std::string what = "the data set \"" + data.name + "\" stands ",
                    beyond = std::to_string(steps) + " steps that training did after " + set.name();
  DataPosition further = place;
  std::string why;
  int64_t more = 0;
  // Whoever began its data anew at some time has handed out more than the place tells.
  const bool whole = std::ranges::all_of(place.epochs, [](int64_t epoch) { return epoch == 0; });
  const bool even = set.step > 0 && place.elements > 0 && place.elements % set.step == 0;
  if (!whole) why = "it was begun anew before, so it is not known how many elements a step takes";
  else if (!even)
    why = format("%lld elements in %lld steps are not as many for each", static_cast<long long>(place.elements),
                 static_cast<long long>(set.step));
  else if (__builtin_mul_overflow(place.elements / set.step, steps, &more) ||
           __builtin_add_overflow(place.elements, more, &further.elements))
    why = "it has not so many elements";
  if (why.empty()) {
    const Status moved = data.reading->move_to(further);
    if (moved.ok()) {
      restored.notes.push_back(what + format("%lld elements beyond its place there, over the ", static_cast<long long>(more)) + beyond +
                               format(", at %lld each as before", static_cast<long long>(more / steps)));
      return {};
    }
    why = moved.message();
  }
  restored.notes.push_back(what + "at its place there, and what it gave the " + beyond + " comes again: " + why);
  return move(data, place);
}

// Have all variables a value, and how far are they? A model without a count of steps is not ahead of anything.
Result<bool> Checkpoints::is_ahead(int64_t& step) {
  step = -1;
  if (ready_.size() != model_->variables().size()) {
    DTG_ASSIGN(ready_, ready_flags(*model_));
  }
  std::vector<Tensor> flags(ready_.size());
  DTG_TRY(session_->run({.feeds = {}, .feed_tensors = {}, .fetches = ready_, .targets = {}}, flags));
  if (!std::ranges::all_of(flags, [](const Tensor& flag) { return flag.as<bool>()[0]; })) return false;
  const NamedVariable* const counts = model_->step_if_any();
  if (!counts) return false;
  Tensor value;
  DTG_TRY(session_->run({.feeds = {}, .feed_tensors = {}, .fetches = {&counts->read, 1}, .targets = {}}, {&value, 1}));
  step = value.as<int64_t>()[0];
  return true;
}

Result<bool> Checkpoints::rewind(Restored& restored) {
  DTG_TRY(check_party("resume training"));
  changed_.wait(session_->runtime().clock(), Deadline::never(), [this] { return !writing_; });
  DTG_TRY(claim());
  DTG_ASSIGN(const std::vector<FoundSet> sets, directory_.list());
  if (sets.empty()) return false;
  if (companion_) DTG_TRY(companion_->meet(sets[0].id));
  DTG_ASSIGN(restored, restore(nullptr));
  return true;
}

Result<Checkpoints::Restored> Checkpoints::resume() {
  DTG_TRY(check_party("resume training"));
  if (model_->variables().empty())
    return failed_precondition("resume training from \"%s\": the model has no variables", directory_.path().c_str());
  changed_.wait(session_->runtime().clock(), Deadline::never(), [this] { return !writing_; });
  DTG_TRY(claim());
  Restored restored;
  DTG_ASSIGN(const std::vector<FoundSet> sets, directory_.list());
  DTG_ASSIGN(const bool ahead, is_ahead(restored.step));
  const auto newest = std::ranges::find_if(sets, [](const FoundSet& set) { return set.status.ok(); });
  const bool further = ahead && (newest == sets.end() || restored.step >= newest->id.step);
  if (!sets.empty() && !further) return restore(nullptr);
  restored.how = further ? Restored::How::kept : Restored::How::started;
  restored.variables = model_->variables().size();
  if (further) {
    DTG_TRY(follow(restored));
  } else {
    DTG_ASSIGN(const NodeId init, model_->init_target());
    DTG_TRY(session_->run({.feeds = {}, .feed_tensors = {}, .fetches = {}, .targets = {&init, 1}}, {}));
    restored.step = 0;
  }
  plan_next(restored.step);
  return restored;
}

}  // namespace dtg
