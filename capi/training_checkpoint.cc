// dtg/checkpoint.h, the half about training: saving a model's variables, restoring them, going on. One thread at a time uses a handle,
// but for waiting and status.
#include "capi/data.h"
#include "capi/guard.h"
#include "capi/model.h"
#include "dtg/checkpoint.h"
#include "session/checkpoints.h"

namespace dtg::capi {
namespace {

constexpr int64_t kWaitDefaultNs = int64_t{600} * 1'000'000'000;

// What a handle keeps: the checkpoints, and the model's object, which keeps the runtime that its graph needs.
class CheckpointObject final : public RefCounted {
 public:
  CheckpointObject(Ref<ModelObject> m, Ref<Session> s, Ref<Checkpoints> c)
      : model(std::move(m)), session(std::move(s)), checkpoints(std::move(c)) {}
  ~CheckpointObject() override { checkpoints->let_go(); }
  const Ref<ModelObject> model;
  const Ref<Session> session;
  const Ref<Checkpoints> checkpoints;
};

Result<Deadline> deadline_of(const CheckpointObject& object, const char* attempted, int64_t timeout_ns) {
  if (timeout_ns < 0) {
    return invalid_argument("%s: the timeout is %g s; give a positive one, or 0 for 10 minutes", attempted,
                            static_cast<double>(timeout_ns) * 1e-9);
  }
  return Deadline::of_call(object.session->runtime().clock(), timeout_ns ? timeout_ns : kWaitDefaultNs);
}

Status tell(const Json& json, dtg_string** out) { return give(HandleType::string, make_ref<StringObject>(json.text() + "\n"), out); }

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
  return guard([&]() -> Status {
    const Held<CheckpointObject> held(checkpoint, HandleType::checkpoint);
    DTG_TRY(held.status());
    DTG_ASSIGN(const std::string_view called, read_name(name, name_len, "name"));
    const Held<DatasetObject> data(dataset, HandleType::dataset);
    DTG_TRY(data.status());
    DTG_TRY(data->broken);
    DTG_TRY(data->check_apart("keep the place of a data set"));
    const auto owner = Ref<DatasetObject>::share(data.get());
    return held->checkpoints->add_data(std::string(called), owner->reading, owner);
  });
}

dtg_error* dtg_checkpoint_resume(dtg_checkpoint* checkpoint, int64_t* step, dtg_string** report) noexcept {
  return guard([&]() -> Status {
    const Held<CheckpointObject> held(checkpoint, HandleType::checkpoint);
    DTG_TRY(held.status());
    DTG_ASSIGN(const Checkpoints::Restored restored, held->checkpoints->resume());
    return answer(restored, step, report);
  });
}

dtg_error* dtg_checkpoint_restore(dtg_checkpoint* checkpoint, const char* set, size_t set_len, int64_t* step,
                                  dtg_string** report) noexcept {
  return guard([&]() -> Status {
    const Held<CheckpointObject> held(checkpoint, HandleType::checkpoint);
    DTG_TRY(held.status());
    DTG_TRY(check_name(text(set, set_len), "set"));
    DTG_ASSIGN(const Checkpoints::Restored restored, held->checkpoints->restore(std::string(text(set, set_len))));
    return answer(restored, step, report);
  });
}

dtg_error* dtg_checkpoint_reached(dtg_checkpoint* checkpoint, int64_t step, int32_t* began) noexcept {
  return guard([&]() -> Status {
    const Held<CheckpointObject> held(checkpoint, HandleType::checkpoint);
    DTG_TRY(held.status());
    DTG_ASSIGN(const bool begun, held->checkpoints->reached(step));
    if (began) *began = begun ? 1 : 0;
    return {};
  });
}

dtg_error* dtg_checkpoint_save(dtg_checkpoint* checkpoint, int64_t step, int64_t timeout_ns) noexcept {
  return guard([&]() -> Status {
    const Held<CheckpointObject> held(checkpoint, HandleType::checkpoint);
    DTG_TRY(held.status());
    DTG_ASSIGN(const Deadline until, deadline_of(*held, "save a checkpoint", timeout_ns));
    DTG_TRY(held->checkpoints->start(step, until));
    return held->checkpoints->wait(until);
  });
}

dtg_error* dtg_checkpoint_begin_save(dtg_checkpoint* checkpoint, int64_t step, int64_t timeout_ns) noexcept {
  return guard([&]() -> Status {
    const Held<CheckpointObject> held(checkpoint, HandleType::checkpoint);
    DTG_TRY(held.status());
    DTG_ASSIGN(const Deadline until, deadline_of(*held, "save a checkpoint", timeout_ns));
    return held->checkpoints->start(step, until);
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
