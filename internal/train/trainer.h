// Trainer: a model, its loss, its metrics and its optimizer, tied to a session: what makes a step of training, evaluates and predicts. A
// fit of many epochs is a course (train/course.h), which pulls its steps from here.
//
//   DTG_ASSIGN(Ref<Trainer> trainer, Trainer::create(model, {.session = session, .feeds = {x, y}, .loss = loss, .optimizer = adam}));
//   DTG_TRY(trainer->add_metric("accuracy", measured));
//   DTG_TRY(trainer->give_first_values());
//   DTG_TRY(trainer->step(batch, nullptr, &loss));
//
// A warm step allocates nothing but what the data set does. One thread at a time uses it, the one that uses the model. Owner: the host's
// handle, by count.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "base/json.h"
#include "data/position.h"
#include "nn/metric.h"
#include "nn/optimizer.h"
#include "session/saved_model.h"
#include "session/session.h"
#include "train/crew.h"
#include "train/record.h"

namespace dtg {

class Trainer final : public RefCounted {
 public:
  struct Options {
    Ref<Session> session;
    std::vector<Value> feeds;  // one for each component of an element: the inputs, then labels and weights
    size_t inputs = 1;         // how many of them are needed to predict
    std::vector<Value> outputs;
    Value loss;
    Optimizer optimizer;
    Value train;     // the target of a step; invalid: made by the optimizer
    Value training;  // a bool that is true while training; invalid: none
    // What inputs and outputs are called in an exported model; empty: by their nodes, and "output" or "output_1" and so on.
    std::vector<std::string> input_names = {};
    std::vector<std::string> output_names = {};
    Ref<Crew> crew = {};  // of the workers that train together with this one; null: it trains alone
  };
  // Adds the training to the graph, unless it is there.
  static Result<Ref<Trainer>> create(Ref<Model> model, Options options);
  // Before the first step, evaluation or prediction.
  Status add_metric(std::string name, const Measured& metric);
  // To the variables that have none; those that have values keep them. Changes the graph. `anew`: also where they had some before, as the
  // task that held them may have come back without.
  Status give_first_values(bool anew = false);

  // One step. Adds to the metrics.
  Status step(std::span<const Tensor> element, Cancellation* cancellation, double* loss);
  // Over all of the data, or `steps` elements of it (0: all), from its beginning: "loss" and the metrics, in `out`, with `prefix` before
  // their names. Begins the metrics anew. `ill` receives where the loss was first NaN, and why; empty: nowhere.
  Status evaluate(Reading& data, int64_t steps, Cancellation* cancellation, std::string_view prefix, Record& out, std::string& ill);
  // The outputs for all of the data, one below the other.
  Result<std::vector<Tensor>> predict(Reading& data, Cancellation* cancellation);

  // Inputs and outputs by the names that they have there.
  std::vector<Endpoint> endpoints() const;
  // The model as predict() runs it, for a file: inputs and outputs by name, the switch of training off. FAILED_PRECONDITION or
  // UNIMPLEMENTED where it cannot be exported.
  Result<ModelExport> exported() const;

  Status reset_metrics();
  // Appends the results so far.
  Status read_metrics(std::string_view prefix, Record& out);
  size_t metric_count() const { return metrics_.size(); }
  const std::string& metric_name(size_t i) const { return metrics_[i].name; }

  // An element of that data set can be fed.
  Status check_data(const Reading& data, const char* what, size_t needed) const;
  size_t feed_count() const { return options_.feeds.size(); }
  size_t input_count() const { return options_.inputs; }
  size_t output_count() const { return options_.outputs.size(); }
  // The learning rate; 0 where it is not the trainer's to say: a schedule, or a training that was made elsewhere.
  float rate() const { return rate_; }
  bool rate_is_ours() const { return rate_feed_.valid(); }
  // Optimizer, rate, seed and sizes, for people who look at a run.
  Json::Object described() const;
  // Whether the loss is made from what elements have beside the inputs.
  bool learns_labels() const;
  // Whether a step, and what is kept of the weights, is to be of finite numbers.
  bool checks_numbers() const { return options_.optimizer.check_loss; }
  // What the optimizer said, before anything lowered it.
  float first_rate() const { return first_rate_; }
  void set_rate(float rate);

  // Any thread; a course looks before each step.
  void ask_stop(bool asked) { stop_asked_.store(asked, std::memory_order_relaxed); }
  bool stop_is_asked() const { return stop_asked_.load(std::memory_order_relaxed); }

  Model& model() const { return *model_; }
  const Ref<Model>& model_ref() const { return model_; }
  Crew* crew() const { return options_.crew.get(); }
  Session& session() const { return *options_.session; }
  const Ref<Session>& session_ref() const { return options_.session; }
  // Begins an epoch of a data set, wherever it stands; one that has not begun stays so.
  static Status begin_epoch(Reading& data);
  // How many examples an element has.
  static int64_t rows_of(std::span<const Tensor> element);

 private:
  struct NamedMetric {
    std::string name;
    Measured values;
  };
  // A run that is made again and again: what was fed first, then what is the trainer's own.
  struct Call {
    Ref<Callable> callable;
    std::vector<const Tensor*> tensors;
    std::vector<Tensor> fetched;
  };
  Trainer(Ref<Model> model, Options options) : model_(std::move(model)), options_(std::move(options)) {}
  Status build();
  Status prepare();
  void tell_switches() const;
  Status unfed(const Status& why) const;
  Result<Call> make_call(std::span<const Value> feeds, bool training, bool rated, std::span<const Value> fetches,
                         std::span<const NodeId> targets);
  Status run(Call& call, std::span<const Tensor> element, size_t used, Cancellation* cancellation, const char* what);
  Status check_element(std::span<const Tensor> element, const char* what) const;
  Status check_fed_numbers(std::span<const Tensor> element) const;
  double loss_of(const Call& call) const;
  bool hides_nan() const;

  const Ref<Model> model_;
  Options options_;
  NodeId train_ = kNoNode;
  Value rate_feed_;  // what a rate is fed to
  float rate_ = 0, first_rate_ = 0;
  Tensor rate_tensor_, yes_, no_;
  std::vector<NamedMetric> metrics_;
  size_t valued_ = 0;         // how many variables are known to have a value
  std::vector<Value> ready_;  // whether each of them has
  bool prepared_ = false;
  bool hides_nan_ = false;  // an op of the loss passes NaN over, so that the loss would not tell of it
  std::atomic<bool> stop_asked_{false};
  Call step_, rated_step_, test_, predict_, results_;
  Element element_;  // of an evaluation
};

}  // namespace dtg
