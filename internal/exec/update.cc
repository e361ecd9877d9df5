// Updates: how an instruction takes the variables it reads or changes. The common case, nobody else at work on
// them, costs a spin word per variable and no allocation. Otherwise a small state on the heap waits in the
// variable's queue and on the step, holds no thread, and goes on from the pool; variables are taken in the order of
// their addresses, so that two updates never wait for each other.
#include <algorithm>
#include <memory>
#include <new>

#include "base/interrupt.h"
#include "exec/rights.h"
#include "exec/step.h"
#include "exec/variable.h"

namespace dtg {

using Writing = Variable::Writing;
using Mode = UpdateArgs::Mode;

// The variables of one update, in the order in which they are taken.
struct UpdateRun {
  Variable* order[4] = {};
  Variable::Version* held[4] = {};
  int count = 0;
  int taken = 0;
  Mode mode = Mode::update;
  bool copy = true;
  bool replace = true;  // what has a value may get another one

  Status start(const RunContext& c, const UpdateArgs& args);
  // Asks for the next variable; taken only when take() follows, because an abort may come in between.
  Writing begin(Variable::Version** version, Variable::Turn* turn) const;
  void take(Variable::Version* version) { held[taken++] = version; }
  void give_back(Variable* variable, Variable::Version* version, bool changed) const;
  void release(bool changed) {
    for (; taken > 0; --taken) give_back(order[taken - 1], held[taken - 1], changed);
  }
  // Both give a status for whatever fails, memory too: who has rights to write has to give them back.
  Status run(RunContext& c, const UpdateArgs& args);
  Status refused(Writing why, const Step& step) const;

 private:
  Status body(RunContext& c, const UpdateArgs& args);
  Status why_not(Writing why, const Step& step) const;
};

Status UpdateRun::start(const RunContext& c, const UpdateArgs& args) {
  mode = args.mode;
  copy = !args.rewrites;
  if (c.step().rights()) [[unlikely]] {
    replace = c.step().rights()->allows(Verb::replace);
    for (int k = 0; k < args.count; ++k) DTG_TRY(c.permitted(args.inputs[k]));
  }
  for (int k = 0; k < args.count; ++k) {
    Variable* const variable = variable_at(c, args.inputs[k]);
    if (!variable) return c.error("input %d is not the handle of a variable", args.inputs[k]);
    // Insertion by address; a variable that is named twice is taken once.
    int at = count;
    while (at > 0 && std::less<>()(variable, order[at - 1])) --at;
    if (at > 0 && order[at - 1] == variable) continue;
    std::copy_backward(order + at, order + count, order + count + 1);
    order[at] = variable;
    ++count;
  }
  return {};
}

Writing UpdateRun::begin(Variable::Version** version, Variable::Turn* turn) const {
  Variable& variable = *order[taken];
  if (mode == Mode::update) return variable.begin_update(version, turn, copy);
  if (mode == Mode::assign) return variable.begin_assign(turn, replace);
  switch (variable.pin(version, turn)) {
    case Variable::Pinned::yes: return Writing::yes;
    case Variable::Pinned::wait: return Writing::wait;
    case Variable::Pinned::uninitialized: break;
  }
  return Writing::uninitialized;
}

void UpdateRun::give_back(Variable* variable, Variable::Version* version, bool changed) const {
  switch (mode) {
    case Mode::update: return variable->end_update(version, changed);
    case Mode::assign: return variable->cancel_assign();
    case Mode::read: return variable->unpin(version);
  }
}

Status UpdateRun::body(RunContext& c, const UpdateArgs& args) {
  if (mode == Mode::assign) {
    Tensor fresh;
    DTG_TRY(args.assign(c, *order[0], fresh));
    taken = 0;
    return order[0]->end_assign(std::move(fresh));
  }
  if (mode == Mode::read) return args.read(c, *held[0]);
  VariableUpdate update;
  update.count_ = args.count;
  for (int k = 0; k < args.count; ++k) {
    Variable* const variable = variable_at(c, args.inputs[k]);
    update.versions_[k] = held[std::find(order, order + count, variable) - order];
    update.olds_[k] = variable->present();
  }
  Status status = args.update(c, update);
  release(status.ok());
  return status;
}

Status UpdateRun::why_not(Writing why, const Step& step) const {
  const Variable& variable = *order[taken];
  if (why == Writing::uninitialized) {
    return no_value(variable, mode == Mode::read ? "read" : "update");
  }
  if (why == Writing::has_value) {
    return step.rights()->refuse(Verb::replace, format("assign the variable \"%s\", which has a value,", variable.name().c_str()));
  }
  return resource_exhausted("update the variable \"%s\": readers hold its value and there is no memory for a second one, of %lld bytes%s",
                            variable.name().c_str(), static_cast<long long>(variable.bytes()),
                            variable.is_on_device() ? ", on its device" : "");
}

Status UpdateRun::run(RunContext& c, const UpdateArgs& args) {
  try {
    return body(c, args);
  } catch (const Interrupted&) {
    return c.step().cause();  // it was a read, as nothing else may be cut
  } catch (const std::bad_alloc&) {
    return resource_exhausted("update a variable: out of memory");
  }
}

Status UpdateRun::refused(Writing why, const Step& step) const {
  try {
    return why_not(why, step);
  } catch (const std::bad_alloc&) {
    return resource_exhausted("update a variable: out of memory");
  }
}

namespace {

// An update that waits for one of its variables. Exactly one of the turn and the abort claims it and owes the
// completion; the other one only drops its reference.
class UpdateWait final : public Step::Waiter, public Pool::Task {
 public:
  UpdateWait(const UpdateRun& run, Pool& pool, Completion done) : run_(run), pool_(pool), step_(done.step()), done_(std::move(done)) {
    turn_.ready = called;
    turn_.owner = this;
    // An aborted run may end, and its plan go, while the turn is still queued.
    for (int k = 0; k < run_.count; ++k) kept_[k] = Ref<Variable>::share(run_.order[k]);
  }

  // Takes what is missing and runs the body, or leaves when it has to wait. The caller owns the state alone.
  void drive();

 private:
  enum State : int { waiting, claimed, abandoned };
  struct OwnTurn : Variable::Turn {
    UpdateWait* owner = nullptr;
  };

  static void called(Variable::Turn* turn);
  void run() override { drive(); }
  void aborted(const Status& cause) override;
  bool claim(State by) {
    int expected = waiting;
    return state_.compare_exchange_strong(expected, by, std::memory_order_acq_rel);
  }
  // After a claim by the turn: true when no abort is on its way.
  bool leave_step();
  void finish(Status status);
  void drop() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  UpdateRun run_;
  Ref<Variable> kept_[4];
  Pool& pool_;
  Step& step_;
  Completion done_;
  OwnTurn turn_;
  std::atomic<int> state_{claimed};
  std::atomic<int> refs_{1};
};

void UpdateWait::drive() {
  const UpdateArgs& args = done_.context().args<UpdateArgs>();
  while (run_.taken < run_.count) {
    Variable* const variable = run_.order[run_.taken];
    refs_.store(2, std::memory_order_relaxed);
    state_.store(waiting, std::memory_order_release);
    if (!step_.add(this)) {
      refs_.store(1, std::memory_order_relaxed);
      variable->abandon(&turn_);
      return finish(step_.cause());
    }
    Variable::Version* version = nullptr;
    const auto outcome = run_.begin(&version, &turn_);
    if (outcome == Writing::wait) return;  // this state may be gone already
    if (!claim(claimed)) {
      // The abort was faster and has ended the instruction; only this last variable is left to give back.
      if (outcome == Writing::yes) run_.give_back(variable, version, false);
      return drop();
    }
    const bool alone = leave_step();
    if (outcome == Writing::yes) run_.take(version);
    if (!alone) return finish(step_.cause());
    if (outcome != Writing::yes) return finish(run_.refused(outcome, step_));
  }
  RunContext c = done_.context();
  finish(run_.run(c, args));
}

bool UpdateWait::leave_step() {
  if (!step_.remove(this)) return false;
  refs_.fetch_sub(1, std::memory_order_acq_rel);
  return true;
}

// The step may be gone as soon as the token has fired, so that comes last.
void UpdateWait::finish(Status status) {
  run_.release(false);
  Completion done = std::move(done_);
  drop();
  done.done(std::move(status));
}

void UpdateWait::called(Variable::Turn* turn) {
  UpdateWait* const wait = static_cast<OwnTurn*>(turn)->owner;
  if (!wait->claim(claimed)) {
    wait->run_.order[wait->run_.taken]->abandon(turn);
    return wait->drop();
  }
  if (wait->leave_step()) return wait->pool_.submit(wait);
  wait->run_.order[wait->run_.taken]->abandon(turn);
  wait->finish(wait->step_.cause());
}

void UpdateWait::aborted(const Status& cause) {
  if (!claim(abandoned)) return drop();
  // The turn that is still queued reads order and taken, so both stay as they are.
  for (int k = run_.taken; k > 0; --k) run_.give_back(run_.order[k - 1], run_.held[k - 1], false);
  Completion done = std::move(done_);
  drop();
  done.done(cause);
}

bool update_run(RunContext& c, Completion done) {
  const auto& args = c.args<UpdateArgs>();
  UpdateRun run;
  Status status = run.start(c, args);
  if (c.step().skips_writes() && args.mode != Mode::read) [[unlikely]] {
    if (status.ok() && !c.node().outputs.empty()) status = c.error("it took place in an earlier run, and what it gave is not kept");
    c.set_status(std::move(status));
    done.dismiss();
    return true;
  }
  while (status.ok() && run.taken < run.count) {
    Variable::Version* version = nullptr;
    const auto outcome = run.begin(&version, nullptr);
    if (outcome == Writing::yes) {
      run.take(version);
      continue;
    }
    if (outcome != Writing::wait) {
      status = run.refused(outcome, c.step());
      break;
    }
    UpdateWait* wait = nullptr;
    try {
      wait = new UpdateWait(run, c.pool(), std::move(done));
    } catch (const std::bad_alloc&) {
      run.release(false);  // others wait for what it has taken
      throw;
    }
    wait->drive();
    return false;
  }
  if (status.ok()) status = run.run(c, args);
  run.release(false);
  c.set_status(std::move(status));
  done.dismiss();
  return true;
}

}  // namespace

Status prepare_update(PrepareContext& c, std::initializer_list<int> inputs, UpdateFn body) {
  auto* const args = c.args<UpdateArgs>();
  if (inputs.size() > std::size(args->inputs)) {
    return internal_error("prepare %.*s: an update takes at most %zu variables, %zu were named", static_cast<int>(c.node().name.size()),
                          c.node().name.data(), std::size(args->inputs), inputs.size());
  }
  args->update = body;
  args->mode = Mode::update;
  args->count = 0;
  for (int input : inputs) args->inputs[args->count++] = static_cast<int8_t>(input);
  return c.async_in_place(update_run);
}

Status prepare_read(PrepareContext& c, int input, ReadFn body) {
  c.args<UpdateArgs>()->read = body;
  DTG_TRY(prepare_update(c, {input}, nullptr));
  c.args<UpdateArgs>()->mode = Mode::read;
  return {};
}

Status prepare_assign(PrepareContext& c, int input, AssignFn body) {
  c.args<UpdateArgs>()->assign = body;
  DTG_TRY(prepare_update(c, {input}, nullptr));
  c.args<UpdateArgs>()->mode = Mode::assign;
  return {};
}

}  // namespace dtg
