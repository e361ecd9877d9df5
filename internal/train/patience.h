// Patience: what ends a training, or lowers its learning rate, once a value has not got better for some epochs. The rules are those of
// Keras' EarlyStopping and ReduceLROnPlateau. Values with a state that checkpoints keep as JSON; the thread that trains.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace dtg {

// Which way a value gets better.
enum class Better : int32_t { by_name, less, greater };
// What `by_name` means for a value of that name: greater is better of accuracies and their kin, less of losses and errors.
Better better_of(Better given, std::string_view name);

// What is watched, and how far it must move to count.
struct Watch {
  std::string name;
  Better better = Better::by_name;
  double min_delta = 0;

  // Infinitely bad, for a start.
  double worst() const;
  bool improves(double value, double over) const;
  // Into a state, so that nobody takes it for that of another value.
  void sign(Json::Object& state) const;
  bool has_signed(const Json& state) const;
};

class EarlyStopping {
 public:
  struct Rule {
    Watch watch;
    int64_t patience = 0;
    std::optional<double> baseline = {};
    bool restores = false;
    int64_t from_epoch = 0;  // epochs before it are not looked at
  };
  struct Verdict {
    bool keep = false;  // the weights as they are now are the best
    bool stop = false;
  };
  explicit EarlyStopping(Rule rule) : rule_(std::move(rule)), best_(rule_.watch.worst()) {}

  const Rule& rule() const { return rule_; }
  // Epochs count from 0.
  Verdict epoch_ended(int64_t epoch, double value);
  int64_t best_epoch() const { return best_epoch_; }
  double best() const { return best_; }
  // Training would have ended by now.
  bool is_over() const { return best_epoch_ >= 0 && wait_ >= rule_.patience; }
  Json state() const;
  // False: the state is that of another watch, and nothing of it was taken.
  bool set_state(const Json& state);

 private:
  const Rule rule_;
  double best_;
  int64_t best_epoch_ = -1;  // none yet
  int64_t wait_ = 0;
};

class Plateau {
 public:
  struct Rule {
    Watch watch;
    double factor = 0.1;
    int64_t patience = 10;
    int64_t cooldown = 0;
    double least_rate = 0;
  };
  explicit Plateau(Rule rule) : rule_(std::move(rule)), best_(rule_.watch.worst()) {}

  const Rule& rule() const { return rule_; }
  // The rate from here on, where it falls.
  std::optional<float> epoch_ended(double value, float rate);
  Json state() const;
  bool set_state(const Json& state);

 private:
  const Rule rule_;
  double best_;
  int64_t wait_ = 0;
  int64_t cooling_ = 0;
};

// A number of a JSON object, be it whole or not; `fallback` where there is none.
double real_of(const Json& object, std::string_view key, double fallback);
int64_t integer_of(const Json& object, std::string_view key, int64_t fallback);

}  // namespace dtg
