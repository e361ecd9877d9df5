// dtg/trainer.h: trainers and their fits. Reads the host's structs, holds the data sets of a fit, and calls train/. A fit's functions of
// the host run between two pulls, with no turn taken. One thread at a time; stop from any.
#include "dtg/trainer.h"

#include "capi/data_meaning.h"
#include "capi/fit_options.h"
#include "capi/guard.h"
#include "capi/lent_event.h"
#include "capi/losses.h"
#include "capi/model.h"
#include "capi/nn.h"
#include "capi/strategy.h"
#include "train/course.h"

namespace dtg::capi {
namespace {

// What a handle keeps. The model's object keeps the runtime that its graph needs.
class TrainerObject final : public RefCounted {
 public:
  TrainerObject(Ref<ModelObject> m, Ref<Trainer> t) : model(std::move(m)), trainer(std::move(t)) {}
  ~TrainerObject() override {
    course.reset();
    free_data();
  }
  // False: another trainer's fit reads one of them.
  bool claim_data() {
    for (DatasetObject* const each : {data.get(), validation.get()}) {
      const void* nobody = nullptr;
      if (each && !each->fit.compare_exchange_strong(nobody, this)) return false;
    }
    return true;
  }
  void free_data() {
    for (DatasetObject* const each : {data.get(), validation.get()}) {
      const void* self = this;
      if (each) each->fit.compare_exchange_strong(self, nullptr);
    }
  }
  const Ref<ModelObject> model;
  const Ref<Trainer> trainer;
  Owner owner;
  std::atomic<bool> in_fit{false};   // dtg_trainer_fit is under way
  std::atomic<bool> in_next{false};  // a fit goes on to its next event
  bool schema_is_new = false;        // the model has it from this fit, which has made no step yet
  // Somebody asks what becomes of the fit while another thread is inside.
  std::atomic<bool> asked{false};
  Condition told_changed;  // guards what follows
  std::string told;        // as of the event after the last question, or of its beginning; empty: none was begun
  uint64_t tellings = 0;
  Ref<DatasetObject> data, validation;  // of the course; before it, so that they outlive it
  std::unique_ptr<Course> course;
  std::string trained;  // the stages of the data of the last fit
  Element element;      // of a single step
  Record values;        // of the last evaluation
  LentEvents lent;
};

static_assert(static_cast<int>(Course::Kind::begin) == DTG_FIT_BEGIN && static_cast<int>(Course::Kind::step) == DTG_FIT_STEP);
static_assert(static_cast<int>(Course::Kind::rate) == DTG_FIT_RATE && static_cast<int>(Course::Kind::done) == DTG_FIT_DONE);
static_assert(static_cast<int>(ProgressTo::best) == DTG_PROGRESS_BEST && static_cast<int>(ProgressTo::quiet) == DTG_PROGRESS_OFF);
static_assert(static_cast<int>(Better::greater) == DTG_BETTER_GREATER);

// fn(object) on an open trainer that no other thread is inside of.
template <class Fn>
dtg_error* with_trainer(const dtg_trainer* handle, Fn&& fn, Owner::Use use = Owner::Use::change) noexcept {
  return guard([&]() -> Status {
    const Held<TrainerObject> held(handle, HandleType::trainer);
    DTG_TRY(held.status());
    const Owner::Turn turn(held->owner, use);
    DTG_TRY(turn.status("trainer"));
    return fn(*held);
  });
}

// The same for a fit that goes on, which is hours of work: who came in between is waited for, and only a second one is refused.
template <class Fn>
dtg_error* with_fit(const dtg_trainer* handle, Fn&& fn) noexcept {
  return guard([&]() -> Status {
    const Held<TrainerObject> held(handle, HandleType::trainer);
    DTG_TRY(held.status());
    const Owner::Turn turn(held->owner, Owner::Use::change, held->in_next);
    DTG_TRY(turn.status("trainer"));
    held->in_next = true;
    Status status = fn(*held);
    held->in_next = false;
    return status;
  });
}

// The same where nodes may be added to the model's graph.
template <class Fn>
Status building(TrainerObject& object, Fn&& fn) {
  const Owner::Turn model(object.model->owner, Owner::Use::change);
  DTG_TRY(model.status("model"));
  const Owner::Turn graph(object.model->graph->owner, Owner::Use::change);
  DTG_TRY(graph.status("graph of the model"));
  return fn();
}

// And where a data set is read; null: none.
template <class Fn>
Status reading(DatasetObject* data, Fn&& fn) {
  if (!data) return fn();
  const Owner::Turn turn(data->owner, Owner::Use::change);
  DTG_TRY(turn.status("data set"));
  DTG_TRY(data->usable());
  return fn();
}

Result<std::vector<Value>> read_values(const dtg_value* values, size_t count, const char* what) {
  DTG_TRY(require_array(values, count, what));
  if (count > 4096) return invalid_argument("%s: %zu of them cannot be right", what, count);
  std::vector<Value> list;
  for (size_t i = 0; i < count; ++i) list.push_back(value_of(values[i]));
  return list;
}

Result<std::vector<std::string>> read_names(const char* const* names, size_t count, const char* what) {
  std::vector<std::string> list;
  for (size_t i = 0; names && i < count; ++i) {
    DTG_TRY(require(names[i], what));
    list.emplace_back(names[i]);
    if (list.back().empty() || !is_utf8(list.back())) return invalid_argument("%s: name %zu is empty, or not UTF-8", what, i);
    if (std::ranges::count(list, list.back()) > 1) return invalid_argument("%s: \"%s\" is there twice", what, names[i]);
  }
  return list;
}

Status create(const dtg_model* model, const dtg_trainer_options* given, dtg_trainer** out) {
  DTG_TRY(require(out, "out"));
  dtg_trainer_options c = DTG_TRAINER_OPTIONS_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_trainer_options), "dtg_trainer_options", &c));
  return use_model(model, Owner::Use::change, [&](ModelObject& object) -> Status {
    Trainer::Options options;
    DTG_ASSIGN(options.feeds, read_values(c.feeds, c.num_feeds, "feeds"));
    DTG_TRY(check_apart(object.model->graph(), options.feeds, "make a trainer", "feeds"));
    DTG_ASSIGN(options.outputs, read_values(c.outputs, c.num_outputs, "outputs"));
    options.inputs = c.num_inputs ? c.num_inputs : 1;
    if (c.output_names && c.num_outputs == 0)
      return invalid_argument("make a trainer: there are names of outputs and no outputs; give the outputs, or leave the names out");
    options.loss = value_of(c.loss);
    DTG_ASSIGN(options.optimizer, read_optimizer(c.optimizer));
    options.train = value_of(c.train);
    options.training = value_of(c.training);
    // There are as many names as inputs, and a number that cannot be right, which the trainer refuses, must not be read by.
    DTG_ASSIGN(options.input_names, read_names(c.input_names, std::min(options.inputs, options.feeds.size()), "input_names"));
    DTG_ASSIGN(options.output_names, read_names(c.output_names, c.num_outputs, "output_names"));
    if (c.session) {
      const Held<Session> session(c.session, HandleType::session);
      DTG_TRY(session.status());
      options.session = Ref<Session>::share(session.get());
    } else {
      DTG_ASSIGN(options.session, Session::connect(object.graph->runtime, "local", object.graph->graph, {}));
    }
    DTG_ASSIGN(options.crew, crew_of(c.strategy, object));
    Ref<Trainer> trainer;
    DTG_TRY(all_or_nothing(*object.model, [&]() -> Status {
      DTG_ASSIGN(trainer, Trainer::create(object.model, std::move(options)));
      return {};
    }));
    object.trained = trainer->endpoints();
    return give(HandleType::trainer, make_ref<TrainerObject>(Ref<ModelObject>::share(&object), std::move(trainer)), out);
  });
}

Status add_metric(TrainerObject& object, std::string_view name, const dtg_metric_values* given) {
  dtg_metric_values c = DTG_METRIC_VALUES_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_metric_values), "dtg_metric_values", &c));
  const Graph& graph = object.trainer->model().graph();
  DTG_TRY(check_owner(graph, value_of(c.update)).with_context("add a metric, update"));
  DTG_TRY(check_owner(graph, value_of(c.reset)).with_context("add a metric, reset"));
  return object.trainer->add_metric(std::string(name), {value_of(c.update).node(), value_of(c.reset).node(), value_of(c.result)});
}

void give_up(TrainerObject& object) {
  if (object.course) object.course->settle();
  object.course.reset();
  object.free_data();
  object.data = {};
  object.validation = {};
}

Status start(TrainerObject& object, Course::Options options) {
  const auto source = [](const Ref<DatasetObject>& held) { return held ? Course::Data{&held->reading, held} : Course::Data{}; };
  if (!object.claim_data()) {
    return failed_precondition("fit: the data set is read by the fit of another trainer; make a second one, it may share the same tensors");
  }
  DTG_ASSIGN(object.course, Course::begin(object.trainer, source(object.data), source(object.validation), std::move(options)));
  return {};
}

Status begin(TrainerObject& object, dtg_dataset* data, dtg_dataset* validation, const dtg_fit* how) {
  if (object.in_fit.load()) return failed_precondition("begin a fit: the trainer is in the middle of one, which has called this function");
  const Held<DatasetObject> train(data, HandleType::dataset);
  DTG_TRY(train.status());
  // A fit goes through whole epochs of its own, which for one that is dealt never end unless others train as well.
  DTG_TRY(train->check_undealt("fit"));
  std::optional<Held<DatasetObject>> test;
  if (validation) {
    test.emplace(validation, HandleType::dataset);
    DTG_TRY(test->status());
    DTG_TRY((*test)->check_undealt("fit, data to validate with"));
    if (test->get() == train.get()) {
      return invalid_argument(
          "fit: the data set to validate with is the one to train on; make a second one, it may share the same tensors");
    }
  }
  DTG_ASSIGN(Course::Options options, read_fit(how, validation != nullptr));
  give_up(object);
  // Who asks from here on means the fit that begins.
  object.trainer->ask_stop(false);
  DatasetObject* const tested = test ? test->get() : nullptr;
  return building(object, [&] {
    return reading(train.get(), [&] {
      return reading(tested, [&]() -> Status {
        object.data = Ref<DatasetObject>::share(train.get());
        if (tested) object.validation = Ref<DatasetObject>::share(tested);
        object.schema_is_new = false;
        DTG_TRY(keep_schema(*object.model, *object.trainer, *object.data, tested, &object.schema_is_new));
        object.trained = train->reading.text();
        options.metadata = object.model->metadata;
        Status started = start(object, std::move(options));
        if (!started.ok()) give_up(object);
        if (!started.ok() && object.schema_is_new) drop_schema(*object.model);
        return started;
      });
    });
  });
}

// Not for long: who is inside may be in a function of the host, and that one ask.
void await_telling(TrainerObject& object) {
  constexpr int64_t kPatienceNs = 1'000'000'000;
  const Clock& clock = object.model->graph->runtime->clock();
  uint64_t seen = 0;
  object.told_changed.change([&] { seen = object.tellings; });
  object.asked = true;
  object.told_changed.wait(clock, Deadline::after(clock, kPatienceNs), [&] { return object.tellings != seen; });
}

void keep_told(TrainerObject& object) {
  std::string text = object.course->summary().text() + "\n";
  object.told_changed.change([&] {
    object.told = std::move(text);
    ++object.tellings;
  });
}

// By whatever thread. Where another is inside it goes on to its next event, and tells there; it takes no time to be asked by nobody.
Status tell(TrainerObject& object, dtg_string** out) {
  DTG_TRY(require(out, "out"));
  {
    const Owner::Turn turn(object.owner, Owner::Use::glance);
    if (turn.inside() && object.course) keep_told(object);
    else if (!turn.inside()) await_telling(object);
  }
  std::string text;
  object.told_changed.change([&] { text = object.told; });
  if (text.empty()) return failed_precondition("tell of a fit: none was begun");
  return give(HandleType::string, make_ref<StringObject>(std::move(text)), out);
}

Status pull(TrainerObject& object, dtg_fit_event* out) {
  dtg_fit_event answer = DTG_FIT_EVENT_INIT;
  DTG_TRY(read_struct(out, sizeof(dtg_fit_event), "dtg_fit_event", &answer));
  if (!object.course) return failed_precondition("fit: none was begun");
  if (object.course->is_over()) return object.course->next().status();
  const std::atomic<bool> nobody{false};
  const Owner::Turn model(object.model->owner, Owner::Use::read, nobody);
  DTG_TRY(model.status("model"));
  Course::Event event;
  const Status pulled = reading(object.data.get(), [&] {
    return reading(object.validation.get(), [&]() -> Status {
      DTG_ASSIGN(event, object.course->next());
      return {};
    });
  });
  if (object.course->is_over()) object.free_data();
  if (pulled.ok() && event.kind != Course::Kind::begin && event.kind != Course::Kind::epoch_begin) object.schema_is_new = false;
  // Data that no step could be made with say nothing of the model.
  if (!pulled.ok() && std::exchange(object.schema_is_new, false)) drop_schema(*object.model);
  const bool begins = pulled.ok() && event.kind == Course::Kind::begin;
  if (begins || (object.asked.load(std::memory_order_relaxed) && object.asked.exchange(false))) keep_told(object);
  DTG_TRY(pulled);
  answer.kind = static_cast<dtg_fit_event_kind>(event.kind);
  answer.epoch = event.epoch;
  answer.batch = event.batch;
  answer.batches = event.batches;
  answer.step = event.step;
  answer.examples = event.examples;
  answer.loss = event.loss;
  answer.learning_rate = event.learning_rate;
  answer.examples_per_s = event.examples_per_s;
  answer.seconds = event.seconds;
  object.lent.fill(*event.values, event.text ? event.text : "", answer);
  write_struct(answer, out);
  return {};
}

// An event that there was no memory to tell of would be missing: the fit is over by that, as by any other error.
Status next(TrainerObject& object, dtg_fit_event* out) {
  try {
    return pull(object, out);
  } catch (const std::bad_alloc&) {
    const Status why = resource_exhausted("go on with a fit: there was no memory to tell what came of it");
    if (object.course) {
      object.course->fail(why);
      object.free_data();
    }
    return why;
  }
}

// The host's own pull; dtg_trainer_fit's comes by itself.
Status next_alone(TrainerObject& object, dtg_fit_event* out) {
  if (object.in_fit.load()) {
    return failed_precondition("go on with a fit: the call that trains does that, and has called this function; only one of them may");
  }
  return next(object, out);
}

Status end_early(TrainerObject& object) {
  if (object.in_fit.load()) {
    return failed_precondition("give up a fit: the call that trains has called this function; return an error from it, or ask it to stop");
  }
  if (!object.course || object.course->is_over()) return {};
  object.course->fail(cancelled("the fit was given up"));
  object.free_data();
  return {};
}

// What the host wants to hear of an event of that kind; null: nothing.
dtg_fit_fn listener_of(const dtg_fit_callbacks& callbacks, dtg_fit_event_kind kind) {
  const dtg_fit_fn listeners[] = {callbacks.begin,     callbacks.epoch_begin, callbacks.step,    callbacks.validation, callbacks.rate,
                                  callbacks.epoch_end, callbacks.checkpoint,  callbacks.stopped, callbacks.done};
  return listeners[kind];
}

// A fit, a step or an evaluation of the host's own in the middle of an epoch would change what the fit counts.
Status check_between(const TrainerObject& object, const char* attempted) {
  if (!object.course || !object.course->in_epoch()) return {};
  return failed_precondition("%s: a fit is in the middle of an epoch; do that at its end", attempted);
}

// What a function of the host has returned ends the fit.
Status end_with(TrainerObject& object, dtg_error* error) {
  Status why = taken(error);
  const Owner::Turn turn(object.owner, Owner::Use::change);
  if (turn.inside() && object.course) {
    object.course->fail(why);
    object.free_data();
  }
  return why;
}

class HeldWish {
 public:
  explicit HeldWish(dtg_cancellation* handle) {
    if (handle) held_.emplace(handle, HandleType::cancellation);
  }
  Status status() const { return held_ ? held_->status() : Status(); }
  Cancellation* get() const { return held_ ? held_->get() : nullptr; }

 private:
  std::optional<Held<Cancellation>> held_;
};

Status train_step(TrainerObject& object, const dtg_tensor* const* tensors, size_t count, Cancellation* cancellation, double* loss) {
  DTG_TRY(check_between(object, "make a step"));
  DTG_TRY(require_array(tensors, count, "tensors"));
  if (count != object.trainer->feed_count()) {
    return invalid_argument("make a step: %zu tensors for %zu feeds", count, object.trainer->feed_count());
  }
  object.element.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const Held<TensorObject> held(tensors[i], HandleType::tensor);
    DTG_TRY(held.status());
    object.element[i] = held->tensor;
  }
  DTG_TRY(building(object, [&] { return object.trainer->give_first_values(); }));
  double told = 0;
  const Status status = object.trainer->step(object.element, cancellation, &told);
  std::ranges::fill(object.element, Tensor());
  DTG_TRY(status);
  if (loss) *loss = told;
  return {};
}

Status make_ready(TrainerObject& object, const DatasetObject& data, Use use) {
  return building(object, [&]() -> Status {
    DTG_TRY(check_use(*object.model, data, use, object.trained));
    return object.trainer->give_first_values();
  });
}

Status evaluate(TrainerObject& object, DatasetObject& data, int64_t steps, Cancellation* cancellation, dtg_fit_event* out) {
  dtg_fit_event answer = DTG_FIT_EVENT_INIT;
  DTG_TRY(read_struct(out, sizeof(dtg_fit_event), "dtg_fit_event", &answer));
  DTG_TRY(check_between(object, "evaluate"));
  DTG_TRY(data.check_apart("evaluate"));
  if (steps < 0)
    return invalid_argument("evaluate: %lld steps; give a positive number, or 0 for all of the data", static_cast<long long>(steps));
  DTG_TRY(make_ready(object, data, Use::evaluate));
  object.values.clear();
  std::string ill;
  DTG_TRY(reading(&data, [&] { return object.trainer->evaluate(data.reading, steps, cancellation, "", object.values, ill); }));
  LogSink* const log = object.model->graph->runtime->seams().log;
  if (!ill.empty() && log) log->write(LogLevel::warn, "trainer", "evaluate: " + ill);
  if (steps == 0) tell_dropped(*object.model, data, Use::evaluate);
  answer = DTG_FIT_EVENT_INIT;
  answer.struct_size = out->struct_size;
  answer.kind = DTG_FIT_VALIDATION;
  answer.loss = object.values.value(0);
  answer.learning_rate = static_cast<double>(object.trainer->rate());
  object.lent.fill(object.values, "", answer);
  write_struct(answer, out);
  return {};
}

Status export_it(TrainerObject& object, const std::string& path) {
  DTG_ASSIGN(const ModelExport what, object.trainer->exported());
  DTG_TRY(building(object, [&] { return object.trainer->give_first_values(); }));
  return export_model(object.trainer->model(), object.trainer->session(), what, object.model->metadata, path);
}

// All handles or none.
Status give_outputs(std::vector<Tensor> joined, dtg_tensor** outputs) {
  for (size_t i = 0; i < joined.size(); ++i) {
    const Status given = give(HandleType::tensor, Ref<TensorObject>::adopt(TensorObject::make(std::move(joined[i]))), &outputs[i]);
    if (given.ok()) continue;
    for (size_t k = 0; k < i; ++k) release_handle(outputs[k], HandleType::tensor);
    return given;
  }
  return {};
}

Status predict(TrainerObject& object, DatasetObject& data, Cancellation* cancellation, dtg_tensor** outputs, size_t num_outputs) {
  DTG_TRY(require_array(outputs, num_outputs, "outputs"));
  DTG_TRY(data.check_apart("predict"));
  if (num_outputs != object.trainer->output_count()) {
    return invalid_argument("predict: room for %zu outputs, of which the trainer has %zu%s", num_outputs, object.trainer->output_count(),
                            object.trainer->output_count() == 0 ? "; set `outputs` where it is made" : "");
  }
  DTG_TRY(make_ready(object, data, Use::predict));
  return reading(&data, [&]() -> Status {
    DTG_ASSIGN(std::vector<Tensor> joined, object.trainer->predict(data.reading, cancellation));
    tell_dropped(*object.model, data, Use::predict);
    return give_outputs(std::move(joined), outputs);
  });
}

}  // namespace
}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_trainer_create(dtg_model* model, const dtg_trainer_options* options, dtg_trainer** out) noexcept {
  return guard([&] { return create(model, options, out); });
}

dtg_trainer* dtg_trainer_retain(dtg_trainer* trainer) noexcept { return retain_handle(trainer, HandleType::trainer); }
void dtg_trainer_release(dtg_trainer* trainer) noexcept { release_handle(trainer, HandleType::trainer); }

dtg_error* dtg_trainer_session(const dtg_trainer* trainer, dtg_session** out) noexcept {
  const auto lend = [&](TrainerObject& object) -> Status {
    DTG_TRY(require(out, "out"));
    return give(HandleType::session, object.trainer->session_ref(), out);
  };
  return with_trainer(trainer, lend, Owner::Use::glance);
}

dtg_error* dtg_trainer_add_metric(dtg_trainer* trainer, const char* name, size_t name_len, const dtg_metric_values* metric) noexcept {
  return with_trainer(trainer, [&](TrainerObject& object) -> Status {
    DTG_ASSIGN(const std::string_view called, read_name(name, name_len, "the name of the metric"));
    return add_metric(object, called, metric);
  });
}

dtg_error* dtg_trainer_begin(dtg_trainer* trainer, dtg_dataset* data, dtg_dataset* validation, const dtg_fit* how) noexcept {
  return with_trainer(trainer, [&](TrainerObject& object) { return begin(object, data, validation, how); });
}

dtg_error* dtg_trainer_next(dtg_trainer* trainer, dtg_fit_event* event) noexcept {
  return with_fit(trainer, [&](TrainerObject& object) { return next_alone(object, event); });
}

dtg_error* dtg_trainer_give_up(dtg_trainer* trainer) noexcept {
  return with_trainer(trainer, [&](TrainerObject& object) { return end_early(object); });
}

dtg_error* dtg_trainer_fit(dtg_trainer* trainer, dtg_dataset* data, dtg_dataset* validation, const dtg_fit* how,
                           const dtg_fit_callbacks* callbacks) noexcept {
  dtg_fit_callbacks listeners = DTG_FIT_CALLBACKS_INIT;
  dtg_error* error = guard([&]() -> Status {
    return callbacks ? read_struct(callbacks, sizeof(dtg_fit_callbacks), "dtg_fit_callbacks", &listeners) : Status();
  });
  const Held<TrainerObject> held(trainer, HandleType::trainer);
  if (!error)
    error = with_trainer(trainer, [&](TrainerObject& object) -> Status {
      DTG_TRY(begin(object, data, validation, how));
      object.in_fit = true;
      return {};
    });
  if (error) return error;
  dtg_fit_event event = DTG_FIT_EVENT_INIT;
  while (!error && event.kind != DTG_FIT_DONE) {
    error = with_fit(trainer, [&](TrainerObject& object) { return next(object, &event); });
    const dtg_fit_fn listener = error ? nullptr : listener_of(listeners, event.kind);
    dtg_error* const refused = listener ? listener(listeners.user, trainer, &event) : nullptr;
    if (refused) error = guard([&] { return end_with(*held, refused); });
  }
  held->in_fit = false;
  return error;
}

void dtg_trainer_stop(dtg_trainer* trainer) noexcept {
  const Held<TrainerObject> held(trainer, HandleType::trainer);
  if (held && !in_forked_child()) held->trainer->ask_stop(true);
}

dtg_error* dtg_trainer_summary(const dtg_trainer* trainer, dtg_string** out) noexcept {
  return guard([&]() -> Status {
    const Held<TrainerObject> held(trainer, HandleType::trainer);
    DTG_TRY(held.status());
    return tell(*held, out);
  });
}

dtg_error* dtg_trainer_train_step(dtg_trainer* trainer, const dtg_tensor* const* tensors, size_t num_tensors,
                                  dtg_cancellation* cancellation, double* loss) noexcept {
  return with_trainer(trainer, [&](TrainerObject& object) -> Status {
    const HeldWish wish(cancellation);
    DTG_TRY(wish.status());
    return train_step(object, tensors, num_tensors, wish.get(), loss);
  });
}

dtg_error* dtg_trainer_evaluate(dtg_trainer* trainer, dtg_dataset* data, int64_t steps, dtg_cancellation* cancellation,
                                dtg_fit_event* out) noexcept {
  return with_trainer(trainer, [&](TrainerObject& object) -> Status {
    const Held<DatasetObject> held(data, HandleType::dataset);
    DTG_TRY(held.status());
    const HeldWish wish(cancellation);
    DTG_TRY(wish.status());
    return evaluate(object, *held, steps, wish.get(), out);
  });
}

dtg_error* dtg_trainer_export(dtg_trainer* trainer, const char* path, size_t path_len) noexcept {
  return with_trainer(trainer, [&](TrainerObject& object) -> Status {
    DTG_ASSIGN(const std::string file, read_path(path, path_len));
    return export_it(object, file);
  });
}

dtg_error* dtg_trainer_predict(dtg_trainer* trainer, dtg_dataset* data, dtg_cancellation* cancellation, dtg_tensor** outputs,
                               size_t num_outputs) noexcept {
  return with_trainer(trainer, [&](TrainerObject& object) -> Status {
    const Held<DatasetObject> held(data, HandleType::dataset);
    DTG_TRY(held.status());
    const HeldWish wish(cancellation);
    DTG_TRY(wish.status());
    return predict(object, *held, wish.get(), outputs, num_outputs);
  });
}

}  // extern "C"
