// Makes the runs of training, evaluation and prediction, once. See trainer.h for threads.
#include "train/trainer.h"

#include <algorithm>
#include <cmath>

#include "graph/build.h"
#include "nn/schedule.h"
#include "nn/switches.h"
#include "session/first_ill.h"
#include "strategy/replicas.h"

namespace dtg {
namespace {

Status check_scalar(const Graph& graph, Value value, const char* what) {
  DTG_TRY(graph.check(value).with_context(what));
  const ValueInfo& info = graph.info(value);
  const bool real = info.dtype == DType::f32 || info.dtype == DType::f64;
  if (real && (!info.shape.has_rank() || info.shape.rank() == 0)) return {};
  return invalid_argument("%s: \"%s\" is %s%s; a float32 or float64 scalar is needed", what, graph.value_name(value).c_str(),
                          dtype_name(info.dtype), info.shape.text().c_str());
}

double real_in(const Tensor& tensor) {
  return tensor.dtype() == DType::f64 ? tensor.as<double>()[0] : static_cast<double>(tensor.as<float>()[0]);
}

// Without a crew nobody fits beside the chief, so that a step of all workers together would wait for the others.
Status check_train(const Session& session, NodeId train) {
  const Graph& graph = session.graph();
  DTG_TRY(graph.check_node(train).with_context("make a trainer, train"));
  if (!session.calls_groups(train)) return {};
  return unimplemented(
      "make a trainer: \"%s\" reduces with other workers. Give the trainer the strategy that made it, and let every worker fit; a training "
      "that reduces without a strategy takes a loop of your own",
      std::string(graph.node(train).name).c_str());
}

Status check_values(const Graph& graph, std::span<const Value> values, const char* what) {
  for (const Value value : values) DTG_TRY(graph.check(value).with_context(what));
  return {};
}

// Where a loss became NaN, for a warning: in which element of the data, and by which of its values, if it is one of those.
std::string tell_nan(const Graph& graph, std::span<const Value> feeds, const Element& element, int64_t place) {
  std::string told = format("the loss of element %lld of the data, counted from 0, is NaN", static_cast<long long>(place));
  for (size_t i = 0; i < element.size(); ++i) {
    const std::string what = not_finite(element[i]);
    if (!what.empty()) return told + ": \"" + graph.value_name(feeds[i]) + "\" is fed " + what + "; mend the data, or drop such rows";
  }
  return told + ", although all that is fed is finite";
}

}  // namespace

Result<Ref<Trainer>> Trainer::create(Ref<Model> model, Options options) {
  const Graph& graph = model->graph();
  if (&options.session->graph() != &graph) return invalid_argument("make a trainer: the session is of another graph than the model");
  if (!options.crew && options.session->party() != Party::chief) {
    return unimplemented(
        "make a trainer: the session is a %s's. Fit runs in one process, at the chief of a cluster, or at all workers of a "
        "MultiWorkerMirrored strategy that the trainer is given; with parameter servers, train with dtg/replicas.h and a loop of your own",
        party_name(options.session->party()));
  }
  if (options.feeds.empty()) return invalid_argument("make a trainer: no feeds; name what the components of an element are fed to");
  if (options.inputs > options.feeds.size()) {
    return invalid_argument("make a trainer: %zu inputs, of %zu feeds; the inputs are the first of the feeds", options.inputs,
                            options.feeds.size());
  }
  DTG_TRY(check_values(graph, options.feeds, "make a trainer, feeds"));
  DTG_TRY(check_values(graph, options.outputs, "make a trainer, outputs"));
  if (!options.loss.valid()) return invalid_argument("make a trainer: no loss is given; it is what training makes small");
  DTG_TRY(check_scalar(graph, options.loss, "make a trainer, loss"));
  if (options.crew) {
    if (!options.train.valid())
      return invalid_argument("make a trainer: between workers the strategy makes the training; give what it has made as `train`");
    DTG_TRY(graph.check_node(options.train.node()).with_context("make a trainer, train"));
    DTG_TRY(options.crew->prepare(*model));
  } else if (options.train.valid()) {
    DTG_TRY(check_train(*options.session, options.train.node()));
  }
  if (options.training.valid()) {
    DTG_TRY(graph.check(options.training).with_context("make a trainer, training"));
    const ValueInfo& info = graph.info(options.training);
    if (info.dtype != DType::boolean || (info.shape.has_rank() && info.shape.rank() > 0)) {
      return invalid_argument("make a trainer: training is %s%s; it is a placeholder of one bool", dtype_name(info.dtype),
                              info.shape.text().c_str());
    }
  }
  auto trainer = Ref<Trainer>::adopt(new Trainer(std::move(model), std::move(options)));
  DTG_TRY(trainer->build());
  trainer->tell_switches();
  return trainer;
}

void Trainer::tell_switches() const {
  LogSink* const log = session().runtime().seams().log;
  if (!log) return;
  std::vector<Value> wanted = options_.outputs;
  wanted.push_back(options_.loss);
  for (const std::string& told :
       {tell_always_on(*model_, wanted, "evaluate, predict and model.dtg"), tell_apart(*model_, wanted, options_.feeds, options_.training)})
    if (!told.empty()) log->write(LogLevel::warn, "trainer", told);
}

// The rate can be fed, so that it may change; where nobody feeds one, the step is what the optimizer alone would have made.
Status Trainer::build() {
  DTG_ASSIGN(yes_, Tensor::scalar(true));
  DTG_ASSIGN(no_, Tensor::scalar(false));
  if (options_.train.valid()) {
    train_ = options_.train.node();
    return {};
  }
  if (!options_.optimizer.learning_rate.valid()) {
    DTG_TRY(check_optimizer(*model_, options_.optimizer));
    DTG_ASSIGN(rate_feed_, adjustable_rate(model_->graph(), options_.optimizer.rate));
    options_.optimizer.learning_rate = rate_feed_;
    first_rate_ = rate_ = static_cast<float>(options_.optimizer.rate);
    DTG_ASSIGN(rate_tensor_, Tensor::scalar(rate_));
  }
  DTG_ASSIGN(const Training training, minimize(*model_, options_.loss, options_.optimizer));
  train_ = training.train;
  return {};
}

Status Trainer::add_metric(std::string name, const Measured& metric) {
  if (prepared_) return failed_precondition("add the metric \"%.100s\": steps have been made; add all metrics before", name.c_str());
  const auto plain = [](char c) { return c > ' ' && c <= '~' && c != ',' && c != '"'; };
  if (name.empty() || name.size() > 64 || !std::ranges::all_of(name, plain)) {
    return invalid_argument("add a metric: the name \"%.100s\" will not do; 1 to 64 characters of ASCII, without spaces, commas and quotes",
                            name.c_str());
  }
  const auto same = [&](const NamedMetric& other) { return other.name == name; };
  if (name == "loss" || name == "epoch" || name == "step" || name == "learning_rate" || name.starts_with("val_") ||
      std::ranges::any_of(metrics_, same)) {
    return already_exists("add a metric: \"%s\" is the name of another value; take another one", name.c_str());
  }
  const Graph& graph = model_->graph();
  DTG_TRY(graph.check_node(metric.update).with_context("add a metric, update"));
  DTG_TRY(graph.check_node(metric.reset).with_context("add a metric, reset"));
  DTG_TRY(check_scalar(graph, metric.result, "add a metric, result"));
  metrics_.push_back({std::move(name), metric});
  return {};
}

Status Trainer::give_first_values(bool anew) {
  const size_t variables = model_->variables().size();
  if (variables == 0 || (valued_ == variables && !anew)) return {};
  if (ready_.size() != variables) {
    DTG_ASSIGN(ready_, ready_flags(*model_));
  }
  std::vector<Tensor> ready(ready_.size());
  DTG_TRY(session().run({.feeds = {}, .feed_tensors = {}, .fetches = ready_, .targets = {}}, ready));
  std::vector<NodeId> missing;
  for (size_t i = 0; i < ready.size(); ++i) {
    if (!ready[i].as<bool>()[0]) missing.push_back(model_->variables()[i].assign);
  }
  if (!missing.empty()) {
    DTG_TRY(session()
                .run({.feeds = {}, .feed_tensors = {}, .fetches = {}, .targets = missing}, {})
                .with_context("give variables first values"));
  }
  valued_ = variables;
  return {};
}

Json::Object Trainer::described() const {
  static constexpr const char* kNames[] = {"sgd",    "momentum", "adam", "adagrad", "rmsprop", "adamw", "adadelta",
                                           "adamax", "nadam",    "ftrl", "lion",    "lamb",    "lars",  "adafactor"};
  const auto kind = static_cast<size_t>(options_.optimizer.kind);
  Json::Object told = {{"optimizer", options_.train.valid() ? "of the program" : kind < std::size(kNames) ? kNames[kind] : "another"}};
  if (rate_is_ours()) told.emplace_back("learning_rate", static_cast<double>(rate_));
  int64_t parameters = 0;
  for (const NamedVariable& variable : model_->variables()) {
    if (variable.trainable) parameters += variable.shape.count();
  }
  told.emplace_back("parameters", parameters);
  told.emplace_back("seed", std::to_string(model_->seed()));
  return told;
}

void Trainer::set_rate(float rate) {
  rate_ = rate;
  *rate_tensor_.as<float>() = rate;
}

// A run says which placeholder nothing feeds; here it is known who would feed it.
Status Trainer::unfed(const Status& why) const {
  const Graph& graph = model_->graph();
  const NodeId id = graph.find(why.origin().node);
  if (why.code() != Code::invalid_argument || id == kNoNode || graph.node(id).op->name() != "Placeholder") return why;
  const ValueInfo& info = graph.node(id).outputs[0];
  const bool is_switch = info.dtype == DType::boolean && !(info.shape.rank() > 0) && !options_.training.valid();
  return {why.code(),
          why.message() + (is_switch ? ": if it says whether the model is in training, give it as the trainer's option `training`, which "
                                       "is true in steps and false elsewhere"
                                     : ": a trainer feeds its `feeds`, in the order of the data's components, and predict the inputs "
                                       "among them; name it there"),
          why.origin()};
}

Result<Trainer::Call> Trainer::make_call(std::span<const Value> feeds, bool training, bool rated, std::span<const Value> fetches,
                                         std::span<const NodeId> targets) {
  Call call;
  std::vector<Value> all(feeds.begin(), feeds.end());
  call.tensors.resize(feeds.size());
  if (options_.training.valid()) {
    all.push_back(options_.training);
    call.tensors.push_back(training ? &yes_ : &no_);
  }
  if (rated) {
    all.push_back(rate_feed_);
    call.tensors.push_back(&rate_tensor_);
  }
  DTG_ASSIGN(call.callable, session().prepare(all, fetches, targets));
  call.fetched.resize(fetches.size());
  return call;
}

Status Trainer::prepare() {
  if (prepared_) return {};
  std::vector<NodeId> updates, all = {train_};
  std::vector<Value> results;
  for (const NamedMetric& metric : metrics_) {
    updates.push_back(metric.values.update);
    all.push_back(metric.values.update);
    results.push_back(metric.values.result);
  }
  const std::span<const Value> loss(&options_.loss, 1), feeds = options_.feeds;
  DTG_ASSIGN(step_, make_call(feeds, true, false, loss, all));
  if (rate_is_ours()) {
    DTG_ASSIGN(rated_step_, make_call(feeds, true, true, loss, all));
  }
  DTG_ASSIGN(test_, make_call(feeds, false, false, loss, updates));
  if (!options_.outputs.empty()) {
    DTG_ASSIGN(predict_, make_call(feeds.subspan(0, options_.inputs), false, false, options_.outputs, {}));
  }
  if (!results.empty()) {
    DTG_ASSIGN(results_.callable, session().prepare({}, results, {}));
    results_.fetched.resize(results.size());
  }
  // Where a run writes to from the start.
  for (Call* const call : {&step_, &rated_step_, &test_}) {
    if (call->fetched.empty()) continue;
    DTG_ASSIGN(call->fetched[0], Tensor::allocate(model_->graph().info(options_.loss).dtype, Shape()));
  }
  hides_nan_ = checks_numbers() && hides_nan();
  prepared_ = true;
  return {};
}

Status Trainer::run(Call& call, std::span<const Tensor> element, size_t used, Cancellation* cancellation, const char* what) {
  DTG_TRY(check_element(element.subspan(0, used), what));
  for (size_t i = 0; i < used; ++i) call.tensors[i] = &element[i];
  const Status ran = call.callable->run(call.tensors, call.fetched, 0, cancellation);
  return ran.ok() ? ran : unfed(ran);
}

double Trainer::loss_of(const Call& call) const { return real_in(call.fetched[0]); }

Status Trainer::step(std::span<const Tensor> element, Cancellation* cancellation, double* loss) {
  DTG_TRY(prepare());
  if (element.size() != options_.feeds.size()) {
    return invalid_argument("make a step: %zu tensors for %zu feeds", element.size(), options_.feeds.size());
  }
  Call& call = rate_is_ours() && rate_ != first_rate_ ? rated_step_ : step_;
  if (hides_nan_) DTG_TRY(check_fed_numbers(element));
  DTG_TRY(run(call, element, element.size(), cancellation, "make a step"));
  *loss = loss_of(call);
  return {};
}

Status Trainer::begin_epoch(Reading& data) {
  const auto at = data.position();
  return at.ok() && at.value().elements == 0 ? Status() : data.restart();
}

int64_t Trainer::rows_of(std::span<const Tensor> element) { return element[0].shape().rank() > 0 ? element[0].shape().dim(0) : 1; }

Status Trainer::evaluate(Reading& data, int64_t steps, Cancellation* cancellation, std::string_view prefix, Record& out, std::string& ill) {
  DTG_TRY(check_data(data, "evaluate", feed_count()));
  if (steps == 0 && data.data().cardinality() == Dataset::kInfinite) {
    return invalid_argument("evaluate: the data set is endless; say how many steps, or take() a part of it");
  }
  DTG_TRY(prepare());
  DTG_TRY(begin_epoch(data));
  DTG_TRY(reset_metrics());
  double sum = 0;
  int64_t rows = 0;
  for (int64_t i = 0; steps == 0 || i < steps; ++i) {
    DTG_ASSIGN(const bool more, data.next(element_));
    if (!more) break;
    DTG_TRY(run(test_, element_, element_.size(), cancellation, "evaluate"));
    if (ill.empty() && std::isnan(loss_of(test_))) ill = tell_nan(model_->graph(), options_.feeds, element_, i);
    const int64_t count = rows_of(element_);
    sum += loss_of(test_) * static_cast<double>(count);
    rows += count;
  }
  element_.clear();
  if (rows == 0) return data.no_elements("evaluate");
  out.add(std::string(prefix) + "loss", sum / static_cast<double>(rows));
  return read_metrics(prefix, out);
}

Status Trainer::reset_metrics() {
  std::vector<NodeId> resets;
  for (const NamedMetric& metric : metrics_) resets.push_back(metric.values.reset);
  return resets.empty() ? Status() : session().run({.feeds = {}, .feed_tensors = {}, .fetches = {}, .targets = resets}, {});
}

Status Trainer::read_metrics(std::string_view prefix, Record& out) {
  DTG_TRY(prepare());
  if (metrics_.empty()) return {};
  DTG_TRY(results_.callable->run({}, results_.fetched, 0));
  for (size_t i = 0; i < metrics_.size(); ++i) out.add(std::string(prefix) + metrics_[i].name, real_in(results_.fetched[i]));
  return {};
}

}  // namespace dtg
