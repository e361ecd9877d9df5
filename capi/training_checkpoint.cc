// dtg/checkpoint.h, the half about training: saving a model's variables, restoring them, going on. One thread at a time uses a handle,
// its model and its data sets, and a call takes the turns of all of them; waiting and status may come from any.
#include <list>
#include <optional>

#include "capi/data.h"
#include "capi/guard.h"
#include "capi/model.h"
#include "dtg/checkpoint.h"
#include "session/checkpoints.h"

namespace dtg::capi {
namespace {

constexpr int64_t kWaitDefaultNs = int64_t{600} * 1'000'000'000;

// A data set whose place is kept, and the turn in it that a call has.
struct KeptData {
  explicit KeptData(Ref<DatasetObject> of) : data(std::move(of)) {}
  const Ref<DatasetObject> data;
  std::optional<Owner::Turn> turn;
};

// What a handle keeps: the checkpoints, and the model's object, which keeps the runtime that its graph needs.
class CheckpointObject final : public RefCounted {
 public:
  CheckpointObject(Ref<ModelObject> m, Ref<Session> s, Ref<Checkpoints> c)
      : model(std::move(m)), session(std::move(s)), checkpoints(std::move(c)) {}
  ~CheckpointObject() override { checkpoints->let_go(); }
  const Ref<ModelObject> model;
  const Ref<Session> session;
  const Ref<Checkpoints> checkpoints;
  Owner owner;
  std::list<KeptData> data;  // each once, whatever names it has; a list, as turns stay where they are
};

// The data sets of a checkpoint, none of which another thread is inside of.
class InsideData {
 public:
  explicit InsideData(CheckpointObject& object) : object_(object) {}
  ~InsideData() {
    for (KeptData& each : object_.data) each.turn.reset();
  }
  InsideData(const InsideData&) = delete;
  InsideData& operator=(const InsideData&) = delete;
  // `moves`: they are brought elsewhere, which a fit that reads one does not expect.
  Status enter(bool moves) {
    for (KeptData& each : object_.data) {
      each.turn.emplace(each.data->owner, Owner::Use::change);
      DTG_TRY(each.turn->status("data set"));
      if (moves) DTG_TRY(each.data->check_unread("bring a data set to its place in a checkpoint"));
    }
    return {};
  }

 private:
  CheckpointObject& object_;
};

// fn(object) on open checkpoints that no other thread is inside of.
template <class Fn>
dtg_error* with_checkpoint(dtg_checkpoint* handle, Fn&& fn) noexcept {
  return guard([&]() -> Status {
    const Held<CheckpointObject> held(handle, HandleType::checkpoint);
    DTG_TRY(held.status());
    const Owner::Turn turn(held->owner, Owner::Use::change);
    DTG_TRY(turn.status("checkpoint"));
    return fn(*held);
  });
}

// fn() while nobody else is inside of the model or of a data set: the values are taken, and where the data sets stand.
template <class Fn>
Status taking(CheckpointObject& object, Fn&& fn) {
  return enter_model(*object.model, Owner::Use::read, [&]() -> Status {
    InsideData inside(object);
    DTG_TRY(inside.enter(false));
    return fn();
  });
}

// The same where values and places are put back. Asking what has a value adds nodes to the graph.
template <class Fn>
Status putting(CheckpointObject& object, Fn&& fn) {
  return enter_model(*object.model, Owner::Use::change, [&]() -> Status {
    InsideData inside(object);
    DTG_TRY(inside.enter(true));
    return fn();
  });
}

Result<Deadline> deadline_of(const CheckpointObject& object, const char* attempted, int64_t timeout_ns) {
  if (timeout_ns < 0) {
    return invalid_argument("%s: the timeout is %g s; give a positive one, or 0 for 10 minutes", attempted,
                            static_cast<double>(timeout_ns) * 1e-9);
  }
  return Deadline::of_call(object.session->runtime().clock(), timeout_ns ? timeout_ns : kWaitDefaultNs);
}

Status tell(const Json& json, dtg_string** out) { return give(HandleType::string, make_ref<StringObject>(json.text() + "\n"), out); }

Status add_data(CheckpointObject& object, std::string_view name, DatasetObject& data) {
  const Owner::Turn turn(data.owner, Owner::Use::change);
  DTG_TRY(turn.status("data set"));
  DTG_TRY(data.broken);
  DTG_TRY(data.check_apart("keep the place of a data set"));
  const auto owner = Ref<DatasetObject>::share(&data);
  // One that was added under another name already is entered once.
  std::list<KeptData> added;
  const auto is_it = [&](const KeptData& each) { return each.data == owner; };
  if (std::ranges::none_of(object.data, is_it)) added.emplace_back(owner);
  DTG_TRY(object.checkpoints->add_data(std::string(name), owner->reading, owner));
  object.data.splice(object.data.end(), added);
  return {};
}

Status answer(const Checkpoints::Restored& restored, int64_t* step, dtg_string** report) {
  if (report) DTG_TRY(tell(restored.json(), report));
  if (step) *step = restored.step;
  return {};
}

Result<Checkpoints::Options> read_options(const dtg_checkpoint_options* given) {
  dtg_checkpoint_options c = DTG_CHECKPOINT_OPTIONS_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_checkpoint_options), "dtg_checkpoint_options", &c));
  DTG_TRY(require(c.directory, "the directory of checkpoints"));
  Checkpoints::Options options;
  options.directory = text(c.directory, c.directory_len);
  options.keep = c.keep;
  options.shards = c.shards;
  options.every_steps = c.every_steps;
  options.every_ns = c.every_ns;
  options.partial = c.partial != 0;
  DTG_ASSIGN(options.names, NameMap::parse(text(c.names, c.names_len)));
  return options;
}

}  // namespace
}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_checkpoint_open(dtg_model* model, dtg_session* session, const dtg_checkpoint_options* options,
                               dtg_checkpoint** out) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require(out, "out"));
    const Held<ModelObject> held(model, HandleType::model);
    DTG_TRY(held.status());
    DTG_TRY(check_outermost(*held));
    const Held<Session> running(session, HandleType::session);
    DTG_TRY(running.status());
    DTG_ASSIGN(Checkpoints::Options read, read_options(options));
    DTG_ASSIGN(Ref<Checkpoints> checkpoints, Checkpoints::open(Ref<Session>::share(running.get()), held->model, std::move(read)));
    auto object =
        make_ref<CheckpointObject>(Ref<ModelObject>::share(held.get()), Ref<Session>::share(running.get()), std::move(checkpoints));
    return give(HandleType::checkpoint, std::move(object), out);
  });
}

dtg_checkpoint* dtg_checkpoint_retain(dtg_checkpoint* checkpoint) noexcept { return retain_handle(checkpoint, HandleType::checkpoint); }
void dtg_checkpoint_release(dtg_checkpoint* checkpoint) noexcept { release_handle(checkpoint, HandleType::checkpoint); }

dtg_error* dtg_checkpoint_add_data(dtg_checkpoint* checkpoint, const char* name, size_t name_len, dtg_dataset* dataset) noexcept {
  return with_checkpoint(checkpoint, [&](CheckpointObject& object) -> Status {
    DTG_ASSIGN(const std::string_view called, read_name(name, name_len, "name"));
    const Held<DatasetObject> data(dataset, HandleType::dataset);
    DTG_TRY(data.status());
    return add_data(object, called, *data);
  });
}

dtg_error* dtg_checkpoint_resume(dtg_checkpoint* checkpoint, int64_t* step, dtg_string** report) noexcept {
  return with_checkpoint(checkpoint, [&](CheckpointObject& object) {
    return putting(object, [&]() -> Status {
      DTG_ASSIGN(const Checkpoints::Restored restored, object.checkpoints->resume());
      return answer(restored, step, report);
    });
  });
}

dtg_error* dtg_checkpoint_restore(dtg_checkpoint* checkpoint, const char* set, size_t set_len, int64_t* step,
                                  dtg_string** report) noexcept {
  return with_checkpoint(checkpoint, [&](CheckpointObject& object) -> Status {
    DTG_TRY(check_name(text(set, set_len), "set"));
    return putting(object, [&]() -> Status {
      DTG_ASSIGN(const Checkpoints::Restored restored, object.checkpoints->restore(std::string(text(set, set_len))));
      return answer(restored, step, report);
    });
  });
}

dtg_error* dtg_checkpoint_reached(dtg_checkpoint* checkpoint, int64_t step, int32_t* began) noexcept {
  return with_checkpoint(checkpoint, [&](CheckpointObject& object) {
    // Also where no save is due: what is wrong shows at the first step.
    return taking(object, [&]() -> Status {
      DTG_ASSIGN(const bool begun, object.checkpoints->reached(step));
      if (began) *began = begun ? 1 : 0;
      return {};
    });
  });
}

dtg_error* dtg_checkpoint_save(dtg_checkpoint* checkpoint, int64_t step, int64_t timeout_ns) noexcept {
  return with_checkpoint(checkpoint, [&](CheckpointObject& object) -> Status {
    DTG_ASSIGN(const Deadline until, deadline_of(object, "save a checkpoint", timeout_ns));
    DTG_TRY(taking(object, [&] { return object.checkpoints->start(step, until); }));
    return object.checkpoints->wait(until);
  });
}

dtg_error* dtg_checkpoint_begin_save(dtg_checkpoint* checkpoint, int64_t step, int64_t timeout_ns) noexcept {
  return with_checkpoint(checkpoint, [&](CheckpointObject& object) -> Status {
    DTG_ASSIGN(const Deadline until, deadline_of(object, "save a checkpoint", timeout_ns));
    return taking(object, [&] { return object.checkpoints->start(step, until); });
  });
}

dtg_error* dtg_checkpoint_wait(dtg_checkpoint* checkpoint, int64_t timeout_ns) noexcept {
  return guard([&]() -> Status {
    const Held<CheckpointObject> held(checkpoint, HandleType::checkpoint);
    DTG_TRY(held.status());
    DTG_ASSIGN(const Deadline until, deadline_of(*held, "wait for a checkpoint", timeout_ns));
    return held->checkpoints->wait(until);
  });
}

dtg_error* dtg_checkpoint_status(const dtg_checkpoint* checkpoint, dtg_string** out) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require(out, "out"));
    const Held<CheckpointObject> held(checkpoint, HandleType::checkpoint);
    DTG_TRY(held.status());
    return tell(held->checkpoints->status(), out);
  });
}

}  // extern "C"
