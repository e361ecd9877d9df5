// Reading dtg_fit and the rules in it.
#include "capi/fit_options.h"

#include "capi/cancellation.h"
#include "capi/guard.h"
#include "capi/nn.h"

namespace dtg::capi {
namespace {

Result<Watch> read_watch(const char* name, size_t length, dtg_better better, bool validated) {
  Watch watch;
  watch.name = name_or(name, length, validated ? "val_loss" : "loss");
  DTG_ASSIGN(watch.better, read_enum(better, Better::greater, "which way is better"));
  return watch;
}

Result<EarlyStopping::Rule> read_early_stopping(const dtg_early_stopping* given, bool validated) {
  dtg_early_stopping c = DTG_EARLY_STOPPING_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_early_stopping), "dtg_early_stopping", &c));
  EarlyStopping::Rule rule;
  DTG_ASSIGN(rule.watch, read_watch(c.monitor, c.monitor_len, c.better, validated));
  if (!(c.min_delta >= 0) || c.patience < 0 || c.start_from_epoch < 0 || c.baseline != c.baseline) {
    return invalid_argument(
        "dtg_early_stopping: `min_delta` %g, `patience` %lld, `start_from_epoch` %lld, `baseline` %g; none may be negative but the "
        "baseline, and none NaN",
        c.min_delta, static_cast<long long>(c.patience), static_cast<long long>(c.start_from_epoch), c.baseline);
  }
  rule.watch.min_delta = c.min_delta;
  rule.patience = c.patience;
  rule.from_epoch = c.start_from_epoch;
  rule.restores = c.restore_best != 0;
  if (c.has_baseline) rule.baseline = c.baseline;
  else if (c.baseline != 0)
    return invalid_argument("dtg_early_stopping: `baseline` is %g and would do nothing: set `has_baseline` too, or leave it out",
                            c.baseline);
  return rule;
}

Result<Plateau::Rule> read_plateau(const dtg_plateau* given, bool validated) {
  dtg_plateau c = DTG_PLATEAU_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_plateau), "dtg_plateau", &c));
  Plateau::Rule rule;
  DTG_ASSIGN(rule.watch, read_watch(c.monitor, c.monitor_len, c.better, validated));
  rule.factor = real_or(c.factor, 0.1);
  rule.watch.min_delta = c.min_delta < 0 ? 0 : real_or(c.min_delta, 1e-4);
  rule.patience = number_or(c.patience, 10);
  rule.cooldown = c.cooldown;
  rule.least_rate = c.min_rate;
  const bool good =
      rule.factor > 0 && rule.factor < 1 && rule.watch.min_delta >= 0 && c.min_rate >= 0 && c.patience >= 0 && c.cooldown >= 0;
  if (good) return rule;
  return invalid_argument(
      "dtg_plateau: factor %g, min_delta %g, min_rate %g, patience %lld, cooldown %lld; a factor is between 0 and 1, and "
      "the others are not negative",
      rule.factor, c.min_delta, c.min_rate, static_cast<long long>(c.patience), static_cast<long long>(c.cooldown));
}

// What would do nothing was meant to do something.
Status check_used(const dtg_fit& c, bool validated) {
  struct Unused {
    const char* name;
    double value;
    const char* needs;
  };
  const bool kept = !text(c.directory, c.directory_len).empty();
  const char* const directory = kept ? nullptr : "a directory, in which a fit keeps what it writes";
  const char* const board = kept && c.no_tensorboard ? "the curves for TensorBoard, which are switched off" : directory;
  const char* const validation = validated ? nullptr : "data to validate with";
  const char* const best = !text(c.best, c.best_len).empty() ? nullptr : "the name of the value by which the best weights are kept";
  const Unused all[] = {{"checkpoint_steps", static_cast<double>(c.checkpoint_steps), directory},
                        {"the time between checkpoints", static_cast<double>(c.checkpoint_ns) * 1e-9, directory},
                        {"checkpoint_epochs", static_cast<double>(c.checkpoint_epochs), directory},
                        {"keep", static_cast<double>(c.keep), directory},
                        {"fresh", static_cast<double>(c.fresh), directory},
                        {"tensorboard_steps", static_cast<double>(c.tensorboard_steps), board},
                        {"histogram_epochs", static_cast<double>(c.histogram_epochs), board},
                        {"validation_every", static_cast<double>(c.validation_every), validation},
                        {"validation_steps", static_cast<double>(c.validation_steps), validation},
                        {"best_better", static_cast<double>(c.best_better), best}};
  for (const auto& [name, value, needs] : all) {
    if (value == 0 || !needs) continue;
    return invalid_argument("fit: %s is %g and would do nothing: it needs %s; give the fit that, or leave this option out", name, value,
                            needs);
  }
  return {};
}

}  // namespace

Result<Course::Options> read_fit(const dtg_fit* given, bool validated) {
  dtg_fit c = DTG_FIT_INIT;
  if (given) DTG_TRY(read_struct(given, sizeof(dtg_fit), "dtg_fit", &c));
  DTG_TRY(check_used(c, validated));
  Course::Options options;
  options.epochs = number_or(c.epochs, 1);
  options.steps_per_epoch = c.steps_per_epoch;
  options.validation_every = number_or(c.validation_every, 1);
  options.validation_steps = c.validation_steps;
  options.time_limit_ns = c.time_limit_ns;
  options.directory = text(c.directory, c.directory_len);
  options.checkpoint_steps = c.checkpoint_steps;
  options.checkpoint_ns = c.checkpoint_ns;
  options.checkpoint_epochs = number_or(c.checkpoint_epochs, 1);
  options.keep = c.keep;
  options.fresh = c.fresh != 0;
  options.board = c.no_tensorboard == 0;
  options.board_steps = c.tensorboard_steps;
  options.histogram_epochs = c.histogram_epochs;
  DTG_ASSIGN(options.progress, read_enum(c.progress, ProgressTo::quiet, "where the progress is shown"));
  if (!text(c.best, c.best_len).empty()) {
    if (options.directory.empty())
      return invalid_argument(
          "dtg_fit: `best` keeps the best weights in a file of the run's directory, and `directory` is not given; set it");
    DTG_ASSIGN(options.best, read_watch(c.best, c.best_len, c.best_better, validated));
  }
  if (c.early_stopping) {
    DTG_ASSIGN(EarlyStopping::Rule rule, read_early_stopping(c.early_stopping, validated));
    options.stopping = std::move(rule);
  }
  if (c.plateau) {
    DTG_ASSIGN(Plateau::Rule rule, read_plateau(c.plateau, validated));
    options.plateau = std::move(rule);
  }
  if (!c.cancellation) return options;
  const Held<Cancellation> held(c.cancellation, HandleType::cancellation);
  DTG_TRY(held.status());
  options.cancellation = Ref<Cancellation>::share(held.get());
  return options;
}

}  // namespace dtg::capi
