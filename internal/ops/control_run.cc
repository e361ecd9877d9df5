// Running If, Case and PartitionedCall: one function is called, its arguments are the memory of the operands, its results go straight into
// the memory of the outputs where the body can write there. A body that waits holds no thread.
//
// A call under way is an object that the argument block keeps for the next one; what it holds belongs to one run at a time.
#include <cstring>

#include "base/spin_lock.h"
#include "exec/body_run.h"
#include "exec/completion.h"
#include "exec/text_space.h"
#include "ops/control.h"
#include "ops/control_kernels.h"
#include "ops/function_call.h"
#include "ops/integers.h"

namespace dtg::ops {

std::vector<ValueInfo> call_arguments(const PrepareContext& c, int first) {
  std::vector<ValueInfo> infos;
  infos.reserve(static_cast<size_t>(c.num_inputs() - first));
  for (int i = first; i < c.num_inputs(); ++i) {
    const auto& input = c.input(i);
    infos.push_back({input.dtype, input.held, is_holder(input.dtype) ? input.holds : PartialShape(input.shape)});
  }
  return infos;
}

namespace {

template <class T>
bool is_nonzero(const void* data) {
  return static_cast<double>(*static_cast<const T*>(data)) != 0;
}

}  // namespace

bool is_true(DType dtype, const Shape& shape, const void* data) {
  if (!shape.is_scalar()) return shape.count() > 0;
  switch (dtype) {
    case DType::f32: return is_nonzero<float>(data);
    case DType::f64: return is_nonzero<double>(data);
    case DType::f16: return is_nonzero<Half>(data);
    case DType::bf16: return is_nonzero<BFloat16>(data);
    case DType::string: return static_cast<const Text*>(data)->bytes > 0;
    default: {
      const auto* const bytes = static_cast<const char*>(data);
      for (int64_t b = 0; b < dtype_size(dtype); ++b) {
        if (bytes[b] != 0) return true;
      }
      return false;
    }
  }
}

void bind_argument(BodyRun& run, size_t i, const void* data) { run.frame().bind(run.program().feeds[i].slot, const_cast<void*>(data)); }

Shape result_shape(const BodyRun& run, size_t r) {
  const Fetch& fetch = run.program().fetches[r];
  if (is_holder(fetch.dtype)) return {};
  return fetch.dynamic ? run.frame().shape(fetch.slot) : fetch.shape;
}

const void* result_data(const BodyRun& run, size_t r) { return run.frame().data(run.program().fetches[r].slot); }

Status own_texts(RunContext& c, void* cells, int64_t count) {
  const std::span<Text> texts(static_cast<Text*>(cells), static_cast<size_t>(count));
  TextSpace space;
  for (const Text& text : texts) space.want(text.bytes);
  DTG_TRY(space.take(c));
  for (Text& text : texts) {
    const char* const from = space.here();
    space.put(text.view());
    text = space.since(from);
  }
  return {};
}

Status give_result(RunContext& c, const BodyRun& run, size_t r, const OutputSpec& out) {
  const Fetch& fetch = run.program().fetches[r];
  void* const data = run.frame().data(fetch.slot);
  if (is_holder(fetch.dtype)) {
    if (!data && fetch.dtype == DType::variant) return c.error("function \"%s\": result %zu was never made", run.program().name.c_str(), r);
    c.set_output(out.index, data, {}, fetch.dtype == DType::variant ? Ref<RefCounted>::share(static_cast<RefCounted*>(data)) : nullptr);
    return {};
  }
  if (fetch.direct && !out.dynamic && fetch.shape == out.shape) {
    return fetch.dtype == DType::string ? own_texts(c, data, fetch.shape.count()) : Status();
  }
  const Shape shape = result_shape(run, r);
  if (!out.dynamic && !(shape == out.shape)) {
    return c.error("function \"%s\" gives result %zu of shape %s, this graph was prepared for %s", run.program().name.c_str(), r,
                   shape.text().c_str(), out.shape.text().c_str());
  }
  DTG_ASSIGN(char* const memory, out.memory(c, shape));
  const int64_t bytes = shape.count() * cell_bytes(fetch.dtype);
  if (bytes > 0 && memory != data) std::memcpy(memory, data, static_cast<size_t>(bytes));
  return fetch.dtype == DType::string ? own_texts(c, memory, shape.count()) : Status();
}

// Where the body writes a result: the output itself, where it has memory, or `spare`, which is to be held by who asks.
Status bind_result(RunContext& c, BodyRun& run, size_t r, const OutputSpec& out) {
  const Fetch& fetch = run.program().fetches[r];
  if (!fetch.direct) return {};
  if (!out.dynamic && fetch.shape == out.shape) {
    run.frame().bind(fetch.slot, c.out<void>(out.index));
    return {};
  }
  DTG_ASSIGN(void* const memory, run.frame().slots().lease(fetch.slot, fetch.dtype, fetch.shape));
  run.frame().bind(fetch.slot, memory);
  return {};
}

namespace {

struct CallArgs {
  std::vector<Ref<BodySource>> branches;
  std::vector<ValueInfo> arguments;
  std::vector<OutputSpec> outputs;
  int first = 0;
  DType condition = DType::invalid;
  Shape condition_shape;
  Spares spares;
};

class Call final : public SpareCall, private BodyRun::Owner {
 public:
  Call() : run_(*this) {}

  // True when it is over already, in the context's status.
  bool start(RunContext& c, Completion& done, const CallArgs& args) {
    args_ = &args;
    Status status = without_throwing([&] { return begin(c, done.frame()); });
    if (!status.ok()) return over(c, done, std::move(status));
    Completion kept = std::move(done);
    done_ = std::move(kept);
    if (!run_.go()) return false;
    done = std::move(done_);
    return over(c, done, without_throwing([&] { return end(c); }));
  }

 private:
  size_t branch(RunContext& c) const {
    const CallArgs& a = *args_;
    if (a.first == 0) return 0;
    if (a.condition != DType::invalid) return is_true(a.condition, a.condition_shape, c.in<void>(0)) ? 0 : 1;
    const int32_t index = *c.in<int32_t>(0);
    return index < 0 || static_cast<size_t>(index) >= a.branches.size() ? a.branches.size() - 1 : static_cast<size_t>(index);
  }

  Status begin(RunContext& c, Frame& caller) {
    const CallArgs& a = *args_;
    DTG_ASSIGN(const Ref<Body> body, a.branches[branch(c)]->find(a.arguments, c.step()));
    DTG_TRY(run_.enter(body, caller, c.instruction()));
    for (size_t i = 0; i < a.arguments.size(); ++i) bind_argument(run_, i, c.in<void>(a.first + static_cast<int>(i)));
    for (size_t r = 0; r < a.outputs.size(); ++r) DTG_TRY(bind_result(c, run_, r, a.outputs[r]));
    return {};
  }

  Status end(RunContext& c) {
    DTG_TRY(run_.outcome());
    for (size_t r = 0; r < args_->outputs.size(); ++r) DTG_TRY(give_result(c, run_, r, args_->outputs[r]));
    return {};
  }

  bool over(RunContext& c, Completion& done, Status status) {
    run_.leave();
    c.set_status(std::move(status));
    done.dismiss();
    const_cast<CallArgs*>(args_)->spares.give_back(this);
    return true;
  }

  void body_ended() override {
    RunContext c = done_.context();
    Status status = without_throwing([&] { return end(c); });
    run_.leave();
    Completion done = std::move(done_);
    const_cast<CallArgs*>(args_)->spares.give_back(this);
    done.done(std::move(status));
  }

  const CallArgs* args_ = nullptr;
  BodyRun run_;
  Completion done_;
};

bool call_run(RunContext& c, Completion done) {
  const auto& a = c.args<CallArgs>();
  return const_cast<CallArgs&>(a).spares.take<Call>()->start(c, done, a);
}

}  // namespace

Status call_prepare(PrepareContext& c) {
  auto* const a = c.args<CallArgs>();
  a->first = first_argument(c.node());
  if (a->first == 1 && c.node().find_attr("Tcond")) {
    a->condition = c.input(0).dtype;
    a->condition_shape = c.input(0).shape;
    if (is_holder(a->condition) || cell_bytes(a->condition) == 0) {
      return unimplemented("%s: a condition of %s", c.node().op->name().c_str(), dtype_name(a->condition));
    }
  }
  if (a->first == 1 && a->condition == DType::invalid && !c.input(0).shape.is_scalar()) {
    return c.error("branch_index has shape %s; it is one number", c.input(0).shape.text().c_str());
  }
  DTG_ASSIGN(const auto branches, branches_of(c.node()));
  a->branches.clear();
  for (const Function* function : branches) {
    DTG_ASSIGN(Ref<BodySource> bodies, c.bodies(*function));
    a->branches.push_back(std::move(bodies));
  }
  a->arguments = call_arguments(c, a->first);
  a->outputs.resize(static_cast<size_t>(c.num_outputs()));
  for (int o = 0; o < c.num_outputs(); ++o) a->outputs[static_cast<size_t>(o)].prepare(c, o);
  return c.async_in_place(call_run);
}

}  // namespace dtg::ops
