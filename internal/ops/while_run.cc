// Running While: the condition and the body each keep a frame over the rounds. A loop variable of known shape has two places in the scratch
// memory of the instruction, which change roles from round to round; one that the body hands on unchanged stays where it is; one whose
// shape changes has a block of the pool, strings have a tensor of their own. A warm round without strings allocates nothing.
//
// Bodies that can run at once do so in a loop on one thread; where one waits, its end goes on with the loop. The loop looks whether it is
// to stop in every round, and at the clock in some; there it also gives way to whoever waits for its thread, since loops may last.
#include <cstring>

#include "exec/body_run.h"
#include "exec/completion.h"
#include "exec/memory_pool.h"
#include "ops/control.h"
#include "ops/control_kernels.h"
#include "ops/function_call.h"
#include "tensor/text.h"

namespace dtg::ops {
namespace {

constexpr int kRoundsPerLook = 32;

struct LoopVariable {
  const ValueInfo* start = nullptr;        // what the call gives
  const PartialShape* declared = nullptr;  // what the body says
  OutputSpec out;
  enum Kind : uint8_t { kept, fixed, open, texts, holder } kind = fixed;
  int64_t bytes = 0;
  int64_t places[2] = {0, 0};  // in the workspace
  // One of its own in each round.
  bool has_shape() const { return kind == open || kind == texts; }
};

struct WhileArgs {
  Ref<BodySource> condition, body;
  std::vector<LoopVariable> variables;
  std::vector<ValueInfo> arguments;
  int64_t scratch = 0;
  Spares spares;
};

class Loop final : public SpareCall, private BodyRun::Owner, private Pool::Task {
 public:
  Loop() : condition_(*this), body_(*this) {}

  bool start(RunContext& c, Completion& done, const WhileArgs& args) {
    args_ = &args;
    done_ = std::move(done);
    frame_ = &done_.frame();
    instruction_ = &c.instruction();
    scratch_ = c.workspace<char>();
    stage_ = Stage::condition;
    status_ = without_throwing([&] { return begin(c); });
    if (status_.ok() && !advance()) return false;
    done = std::move(done_);
    c.set_status(without_throwing([&] { return end(c); }));
    done.dismiss();
    const_cast<WhileArgs&>(args).spares.give_back(this);
    return true;
  }

 private:
  enum class Stage : uint8_t { condition, decide, body, collect };
  struct Current {
    const void* data = nullptr;
    char* block = nullptr;  // of the pool
    Ref<RefCounted> holder;
    Shape shape;
  };
  // What a round does with a loop variable, as far as it is the same in all rounds of one body.
  struct Turn {
    uint32_t in_condition = 0, in_body = 0, result = 0;  // slots
    bool swaps = false;                                  // the body writes into the place that is free, and what it writes fits
    uint8_t place = 0;                                   // where the value is: in the first or the second
    char* places[2] = {nullptr, nullptr};
  };

  Status begin(RunContext& c) {
    const WhileArgs& a = *args_;
    rounds_ = 0;
    now_.resize(a.variables.size());
    next_.resize(a.variables.size());
    turns_.resize(a.variables.size());
    for (size_t i = 0; i < now_.size(); ++i) {
      now_[i].data = c.in<void>(static_cast<int>(i));
      if (!a.variables[i].has_shape()) continue;
      DTG_ASSIGN(now_[i].shape, a.variables[i].start->shape.to_shape());
    }
    // Where the segment goes on meanwhile, its scratch memory is used by others.
    if (instruction_->event >= 0 && a.scratch > 0) {
      DTG_ASSIGN(own_scratch_, frame_->memory().take(a.scratch, "the variables of a loop"));
      scratch_ = own_scratch_;
    }
    for (size_t i = 0; i < turns_.size(); ++i) {
      turns_[i].place = 0;
      for (int k = 0; k < 2; ++k) turns_[i].places[k] = scratch_ + a.variables[i].places[k];
    }
    shapes_changed_ = false;
    condition_known_ = false;
    DTG_ASSIGN(condition_body_, a.condition->find(a.arguments, c.step()));
    return {};
  }

  bool advance() {
    bool over = true;
    const Status thrown = without_throwing([&] {
      over = go_on();
      return Status();
    });
    if (!thrown.ok()) status_ = thrown;
    return over;
  }

  // True: the loop is over, as status_ says. False: a body is under way, and its end comes back here.
  bool go_on() {
    for (;;) {
      switch (stage_) {
        case Stage::condition:
          if (status_ = enter_condition(); !status_.ok()) return true;
          stage_ = Stage::decide;
          if (!condition_.go()) return false;
          break;
        case Stage::decide:
          if (status_ = condition_.outcome(); !status_.ok()) return true;
          if (!goes_on()) return true;
          stage_ = Stage::body;
          break;
        case Stage::body:
          if (status_ = enter_body(); !status_.ok()) return true;
          stage_ = Stage::collect;
          if (!body_.go()) return false;
          break;
        case Stage::collect:
          if (status_ = body_.outcome(); status_.ok()) status_ = collect();
          if (status_.ok()) status_ = look();
          if (!status_.ok()) return true;
          stage_ = Stage::condition;
          if (!gives_way()) break;
          frame_->pool().submit(this);
          return false;  // and may be under way again on another thread
      }
    }
  }

  bool gives_way() const {
    const Pool& pool = frame_->pool();
    return rounds_ % kRoundsPerLook == 0 && pool.has_queued() && pool.is_own_thread();
  }

  void run() override { body_ended(); }

  void bind_arguments(Frame& frame, uint32_t Turn::*slot) const {
    const Turn* turn = turns_.data();
    for (const Current& current : now_) frame.bind((turn++)->*slot, const_cast<void*>(current.data));
  }

  // Its answer goes into the loop itself, mostly; one that is no scalar has memory of the frame.
  Status enter_condition() {
    DTG_TRY(condition_.enter(condition_body_, *frame_, *instruction_));
    if (!condition_known_) learn_condition();
    bind_arguments(condition_.frame(), &Turn::in_condition);
    const Fetch& fetch = condition_.program().fetches[0];
    if (!fetch.direct) return {};
    if (fetch.shape.is_scalar()) {
      condition_.frame().bind(fetch.slot, answer_);
      return {};
    }
    return condition_.frame().slots().lease(fetch.slot, fetch.dtype, fetch.shape).status();
  }

  void learn_condition() {
    const Program& program = condition_.program();
    for (size_t i = 0; i < turns_.size(); ++i) turns_[i].in_condition = program.feeds[i].slot;
    const Fetch& fetch = program.fetches[0];
    is_plain_answer_ = fetch.direct && fetch.dtype == DType::boolean && fetch.shape.is_scalar();
    condition_known_ = true;
  }

  bool goes_on() const {
    if (is_plain_answer_) return answer_[0] != 0;
    return is_true(condition_.program().fetches[0].dtype, result_shape(condition_, 0), result_data(condition_, 0));
  }

  // It is looked for when there is a round to run: for the shapes of the end it may not be possible.
  Status enter_body() {
    const bool is_new = !body_body_;
    if (is_new) {
      DTG_ASSIGN(body_body_, args_->body->find(shapes_changed_ ? now_infos_ : args_->arguments, frame_->step()));
    }
    DTG_TRY(body_.enter(body_body_, *frame_, *instruction_));
    if (is_new) learn_body();
    Frame& frame = body_.frame();
    bind_arguments(frame, &Turn::in_body);
    for (const Turn& turn : turns_) {
      if (turn.swaps) frame.bind(turn.result, turn.places[turn.place ^ 1]);
    }
    return is_plain_body_ ? Status() : bind_other_results();
  }

  void learn_body() {
    const Program& program = body_.program();
    is_plain_body_ = true;
    for (size_t i = 0; i < turns_.size(); ++i) {
      const LoopVariable& variable = args_->variables[i];
      const Fetch& fetch = program.fetches[i];
      turns_[i].in_body = program.feeds[i].slot;
      turns_[i].result = fetch.slot;
      turns_[i].swaps = variable.kind == LoopVariable::fixed && fetch.direct && !fetch.dynamic && variable.start->shape.admits(fetch.shape);
      is_plain_body_ = is_plain_body_ && (turns_[i].swaps || variable.kind == LoopVariable::kept);
    }
  }

  Status bind_other_results() {
    const std::vector<Fetch>& fetches = body_.program().fetches;
    for (size_t i = 0; i < now_.size(); ++i) {
      const LoopVariable& variable = args_->variables[i];
      if (!fetches[i].direct || turns_[i].swaps) continue;
      if (variable.kind == LoopVariable::fixed) {
        body_.frame().bind(fetches[i].slot, free_place(i));
      } else if (variable.kind == LoopVariable::open) {
        DTG_TRY(take_block(i, fetches[i].shape));
        body_.frame().bind(fetches[i].slot, next_[i].block);
      } else if (variable.kind == LoopVariable::texts) {
        DTG_TRY(body_.frame().slots().lease(fetches[i].slot, fetches[i].dtype, fetches[i].shape).status());
      }
    }
    return {};
  }

  char* free_place(size_t i) const { return turns_[i].places[turns_[i].place ^ 1]; }
  void take_place(size_t i) {
    Turn& turn = turns_[i];
    turn.place ^= 1;
    now_[i].data = turn.places[turn.place];
  }

  Status take_block(size_t i, const Shape& shape) {
    const Bytes bytes = Bytes::of(shape.count(), dtype_size(args_->variables[i].start->dtype));
    if (bytes.is_overflow()) return resource_exhausted("a loop variable of shape %s is larger than any memory", shape.text().c_str());
    DTG_ASSIGN(next_[i].block, frame_->memory().take(std::max<int64_t>(bytes.value(), 1), "a loop variable"));
    next_[i].shape = shape;
    return {};
  }

  // The results of the body are the arguments of the next round.
  Status collect() {
    if (is_plain_body_) {
      for (size_t i = 0; i < turns_.size(); ++i) {
        if (turns_[i].swaps) take_place(i);
      }
      return {};
    }
    for (size_t i = 0; i < now_.size(); ++i) {
      const LoopVariable& variable = args_->variables[i];
      const Fetch& fetch = body_.program().fetches[i];
      switch (variable.kind) {
        case LoopVariable::kept: break;
        case LoopVariable::fixed: DTG_TRY(collect_fixed(i, fetch)); break;
        case LoopVariable::open: DTG_TRY(collect_open(i, fetch)); break;
        case LoopVariable::texts: DTG_TRY(collect_texts(i)); break;
        case LoopVariable::holder: {
          auto* const object = static_cast<RefCounted*>(const_cast<void*>(result_data(body_, i)));
          if (!object) return internal_error("loop variable %zu: the body made nothing of it", i);
          next_[i].holder = Ref<RefCounted>::share(object);
          next_[i].data = object;
        }
      }
    }
    // Only now: the result of one may be the argument of another.
    bool same = true;
    for (size_t i = 0; i < now_.size(); ++i) {
      const LoopVariable& variable = args_->variables[i];
      if (variable.kind == LoopVariable::fixed) {
        take_place(i);
      } else if (variable.kind == LoopVariable::open) {
        same = same && now_[i].shape == next_[i].shape;
        if (now_[i].block) frame_->memory().give_back(now_[i].block);
        now_[i].block = std::exchange(next_[i].block, nullptr);
        now_[i].data = now_[i].block;
        now_[i].shape = next_[i].shape;
      } else if (variable.kind == LoopVariable::texts || variable.kind == LoopVariable::holder) {
        same = same && now_[i].shape == next_[i].shape;
        now_[i].shape = next_[i].shape;
        now_[i].holder = std::move(next_[i].holder);
        now_[i].data = next_[i].data;
      }
    }
    return same ? Status() : prepare_for_shapes();
  }

  Status collect_fixed(size_t i, const Fetch& fetch) {
    const LoopVariable& variable = args_->variables[i];
    const bool fits =
        fetch.dynamic ? variable.start->shape.admits(body_.frame().shape(fetch.slot)) : variable.start->shape.admits(fetch.shape);
    if (!fits) return shape_left(i, result_shape(body_, i));
    if (!fetch.direct && variable.bytes > 0) {
      std::memcpy(free_place(i), result_data(body_, i), static_cast<size_t>(variable.bytes));
    }
    return {};
  }

  Status collect_open(size_t i, const Fetch& fetch) {
    const Shape shape = result_shape(body_, i);
    if (!args_->variables[i].declared->admits(shape)) return shape_left(i, shape);
    if (fetch.direct) return {};
    DTG_TRY(take_block(i, shape));
    const int64_t bytes = shape.count() * dtype_size(fetch.dtype);
    if (bytes > 0) std::memcpy(next_[i].block, result_data(body_, i), static_cast<size_t>(bytes));
    return {};
  }

  // Their bytes are the body's, whose frame is used again.
  Status collect_texts(size_t i) {
    const Shape shape = result_shape(body_, i);
    const LoopVariable& variable = args_->variables[i];
    if (!variable.declared->admits(shape) || (!variable.out.dynamic && !(shape == variable.out.shape))) return shape_left(i, shape);
    DTG_ASSIGN(const Tensor copy, copy_value(DType::string, shape, result_data(body_, i)));
    next_[i].shape = shape;
    next_[i].data = copy.data();
    next_[i].holder = copy.buffer();
    return {};
  }

  Status shape_left(size_t i, const Shape& shape) const {
    const LoopVariable& variable = args_->variables[i];
    return invalid_argument("%s: after round %lld loop variable %zu has shape %s, which does not stay within %s",
                            instruction_->node->op->name().c_str(), static_cast<long long>(rounds_ + 1), i, shape.text().c_str(),
                            (variable.kind == LoopVariable::fixed ? variable.start->shape : *variable.declared).text().c_str());
  }

  Status prepare_for_shapes() {
    const WhileArgs& a = *args_;
    now_infos_ = a.arguments;
    for (size_t i = 0; i < now_infos_.size(); ++i) {
      if (a.variables[i].has_shape()) now_infos_[i].shape = PartialShape(now_[i].shape);
    }
    shapes_changed_ = true;
    body_body_ = nullptr;
    condition_known_ = false;
    DTG_ASSIGN(condition_body_, a.condition->find(now_infos_, frame_->step()));
    return {};
  }

  // Is the run to go on?
  Status look() {
    const Step& step = frame_->step();
    if (step.aborted()) return step.cause();
    if (++rounds_ % kRoundsPerLook != 0 || !step.deadline().passed(frame_->clock())) return {};
    return deadline_exceeded("the run's deadline passed in round %lld; give it more time, or see why the loop does not end",
                             static_cast<long long>(rounds_));
  }

  void body_ended() override {
    if (!advance()) return;
    Completion done = std::move(done_);
    RunContext c = done.context();
    Status status = without_throwing([&] { return end(c); });
    const_cast<WhileArgs*>(args_)->spares.give_back(this);
    done.done(std::move(status));
  }

  // The last values are the outputs.
  Status end(RunContext& c) {
    Status status = std::move(status_);
    for (size_t i = 0; status.ok() && i < now_.size(); ++i) status = give(c, i);
    for (Current& current : now_) {
      if (current.block) frame_->memory().give_back(std::exchange(current.block, nullptr));
      current.holder = nullptr;
    }
    for (Current& current : next_) {
      if (current.block) frame_->memory().give_back(std::exchange(current.block, nullptr));
      current.holder = nullptr;
    }
    if (own_scratch_) frame_->memory().give_back(std::exchange(own_scratch_, nullptr));
    condition_.leave();
    body_.leave();
    condition_body_ = nullptr;
    body_body_ = nullptr;
    return status;
  }

  Status give(RunContext& c, size_t i) {
    const LoopVariable& variable = args_->variables[i];
    const Current& current = now_[i];
    if (variable.kind == LoopVariable::kept) {
      // Where the functions inside are too many to look into, it is not known beforehand that its shape stays.
      if (!variable.out.dynamic || is_holder(variable.start->dtype)) return {};
      DTG_ASSIGN(const Shape shape, variable.start->shape.to_shape());
      c.set_output(static_cast<int>(i), const_cast<void*>(current.data), shape, nullptr);
      return {};
    }
    if (variable.kind == LoopVariable::holder) {
      // Without a round it is what came in, and that is held by who made it.
      c.set_output(static_cast<int>(i), const_cast<void*>(current.data), {}, current.holder);
      return {};
    }
    const bool open = variable.has_shape();
    if (open && !variable.out.dynamic && !(current.shape == variable.out.shape)) return shape_left(i, current.shape);
    DTG_ASSIGN(char* const memory, variable.out.memory(c, open ? current.shape : variable.out.shape));
    const int64_t bytes = open ? current.shape.count() * cell_bytes(variable.start->dtype) : variable.bytes;
    if (bytes > 0) std::memcpy(memory, current.data, static_cast<size_t>(bytes));
    if (current.holder) c.slots().keep(current.holder);
    return {};
  }

  const WhileArgs* args_ = nullptr;
  Frame* frame_ = nullptr;
  const Instruction* instruction_ = nullptr;
  char* scratch_ = nullptr;
  char* own_scratch_ = nullptr;
  alignas(64) char answer_[64] = {};
  BodyRun condition_, body_;
  Ref<Body> condition_body_, body_body_;
  std::vector<Current> now_, next_;
  std::vector<Turn> turns_;
  bool condition_known_ = false;
  bool is_plain_answer_ = false;      // one truth, in answer_
  bool is_plain_body_ = false;        // all variables swap their places or stay where they are
  std::vector<ValueInfo> now_infos_;  // where shapes changed
  bool shapes_changed_ = false;
  int64_t rounds_ = 0;
  Stage stage_ = Stage::condition;
  Status status_;
  Completion done_;
};

bool while_run(RunContext& c, Completion done) {
  const auto& a = c.args<WhileArgs>();
  return const_cast<WhileArgs&>(a).spares.take<Loop>()->start(c, done, a);
}

}  // namespace

Status while_prepare(PrepareContext& c) {
  auto* const a = c.args<WhileArgs>();
  DTG_ASSIGN(const Function* const condition, function_of(c.node(), "cond"));
  DTG_ASSIGN(const Function* const body, function_of(c.node(), "body"));
  DTG_ASSIGN(a->condition, c.bodies(*condition));
  DTG_ASSIGN(a->body, c.bodies(*body));
  a->arguments = call_arguments(c, 0);
  a->variables.resize(a->arguments.size());
  Bytes scratch(0);
  for (int i = 0; i < c.num_inputs(); ++i) {
    const auto n = static_cast<size_t>(i);
    LoopVariable& variable = a->variables[n];
    variable.start = &a->arguments[n];
    variable.declared = &body->argument_info(n).shape;
    variable.out.prepare(c, i);
    if (body->returned_argument(n) == i) {
      variable.kind = LoopVariable::kept;
      c.alias(i, i);
    } else if (is_holder(variable.start->dtype)) {
      variable.kind = LoopVariable::holder;
    } else if (variable.start->dtype == DType::string) {
      variable.kind = LoopVariable::texts;
    } else if (variable.out.dynamic) {
      variable.kind = LoopVariable::open;
    } else {
      variable.kind = LoopVariable::fixed;
      variable.bytes = c.input(i).bytes();
      for (int64_t& place : variable.places) {
        place = scratch.value();
        scratch = scratch + Bytes((variable.bytes + 63) / 64 * 64);
      }
    }
  }
  a->scratch = scratch.value();
  if (scratch.value() > 0) c.workspace(scratch);
  return c.async_in_place(while_run);
}

}  // namespace dtg::ops
