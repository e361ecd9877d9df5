// How a function becomes a graph of its own, and how its calls run. See graph_function.h.
#include "session/graph_function.h"

#include <algorithm>
#include <array>

#include "base/hash.h"
#include "graph/stand_alone.h"
#include "wire/graph_codec.h"

namespace dtg {
namespace {

constexpr int64_t kWaitNs = 1'000'000'000;

// Its answer must hang on its arguments alone: what comes after a position is made anew, and several are made at once.
Status check_pure(const Function& function) {
  if (!function.is_stateful()) return {};
  std::string culprit;
  for (const NodeId id : function.needed()) {
    const Node& node = function.graph().node(id);
    if (node.op->is_stateful() && culprit.empty()) culprit = std::string(node.name) + " (" + std::string(node.op->name()) + ")";
  }
  return invalid_argument("function \"%s\" for a data set: %s is more than a function of its arguments; random numbers come from the "
                          "stateless ops, with the seed that the function may take as its last argument",
                          function.name().c_str(), culprit.empty() ? "a function that it calls" : culprit.c_str());
}

Status check_arguments(const Closure& closure, std::span<const ComponentSpec> given) {
  const Function& function = *closure.function;
  if (closure.own != given.size() && closure.own != given.size() + 1) {
    return invalid_argument(
        "function \"%s\" for a data set: it takes %zu arguments, and elements have %zu components; one more is the seed",
        function.name().c_str(), closure.own, given.size());
  }
  for (size_t i = 0; i < closure.own; ++i) {
    const bool is_seed = i == given.size();
    const ComponentSpec found = is_seed ? ComponentSpec{DType::i64, PartialShape::vector(2)} : given[i];
    const ValueInfo& wanted = function.argument_info(i);
    const std::string what = "argument " + std::to_string(i) + (is_seed ? ", the seed," : "");
    if (wanted.dtype != found.dtype) {
      return invalid_argument("function \"%s\" for a data set: %s is %s, and gets %s%s", function.name().c_str(), what.c_str(),
                              dtype_name(wanted.dtype), dtype_name(found.dtype), found.shape.text().c_str());
    }
    DTG_TRY(PartialShape::merge(wanted.shape, found.shape, what.c_str()).status().with_context("function \"" + function.name() + "\""));
  }
  return {};
}

// What the function took from around, as it is now.
Result<std::vector<Tensor>> captured_values(const Closure& closure, Session* session) {
  std::vector<Tensor> values(closure.captured.size());
  if (values.empty()) return values;
  for (size_t i = 0; i < values.size(); ++i) {
    const ValueInfo& info = closure.function->argument_info(closure.own + i);
    if (is_holder(info.dtype)) {
      return invalid_argument("function \"%s\" for a data set: it uses a variable or a queue from around; read the variable outside, and "
                              "use what was read",
                              closure.function->name().c_str());
    }
  }
  if (!session) {
    return failed_precondition(
        "function \"%s\" for a data set: it uses %zu values from around, which only a session can tell; give one, or "
        "make them inside",
        closure.function->name().c_str(), values.size());
  }
  DTG_TRY(session->run({{}, {}, closure.captured, {}}, values).with_context("function \"" + closure.function->name() + "\", from around"));
  return values;
}

}  // namespace

class GraphFunction::Running final : public Call {
 public:
  Running(Ref<AsyncRun> run, Ref<CompletionQueue> ends, const Clock& clock) : run_(std::move(run)), ends_(std::move(ends)), clock_(clock) {}
  ~Running() override {
    if (!run_->finished()) run_->cancel();
  }
  // Ends of other calls are heard here too; those know by themselves that they have ended.
  Status finish(Element& results) override {
    std::array<CompletionQueue::Event, 16> heard;
    while (!run_->finished()) ends_->next(heard, clock_, Deadline::after(clock_, kWaitNs));
    while (ends_->next(heard, clock_, Deadline{0}) == heard.size()) continue;
    DTG_TRY(run_->outcome());
    results.clear();
    for (size_t i = 0; i < run_->result_count(); ++i) {
      DTG_ASSIGN(Tensor result, run_->take(i));
      results.push_back(std::move(result));
    }
    return {};
  }

 private:
  const Ref<AsyncRun> run_;
  const Ref<CompletionQueue> ends_;
  const Clock& clock_;  // the run holds its session, and that the runtime
};

Result<Ref<ElementFunction>> GraphFunction::make(const Ref<Runtime>& runtime, const Wanted& wanted) {
  DTG_TRY(check_pure(*wanted.closure.function));
  DTG_TRY(check_arguments(wanted.closure, wanted.arguments));
  if (wanted.parallel < 0 || wanted.parallel > kParallelMax) {
    return invalid_argument(
        "a function for a data set: %lld elements at once; give 1 to %lld, or 0 for as many as there are compute threads",
        static_cast<long long>(wanted.parallel), static_cast<long long>(kParallelMax));
  }
  Ref<GraphFunction> made = Ref<GraphFunction>::adopt(new GraphFunction);
  DTG_TRY(made->build(runtime, wanted));
  return Ref<ElementFunction>(std::move(made));
}

Status GraphFunction::build(const Ref<Runtime>& runtime, const Wanted& wanted) {
  const Function& function = *wanted.closure.function;
  DTG_ASSIGN(const std::vector<Tensor> captured, captured_values(wanted.closure, wanted.values));
  seeded_ = wanted.closure.own > wanted.arguments.size();
  std::vector<PartialShape> shapes;
  for (const ComponentSpec& argument : wanted.arguments) shapes.push_back(argument.shape);
  if (seeded_) shapes.push_back(PartialShape::vector(2));
  auto alone = stand_alone(runtime->ops(), function, shapes, captured);
  if (!alone.ok()) return alone.status().with_context("function \"" + function.name() + "\"");
  graph_ = std::move(alone.value().graph);
  feeds_ = std::move(alone.value().feeds);
  fetches_ = std::move(alone.value().fetches);
  DTG_TRY(read_results().with_context("function \"" + function.name() + "\" for a data set"));
  DTG_ASSIGN(const std::string bytes, encode_graph(*graph_));
  text_ = format("%s, %016llx", function.name().c_str(), static_cast<unsigned long long>(hash_bytes(bytes)));
  DTG_ASSIGN(session_, Session::connect(runtime, "local", graph_, {}));
  parallel_ = wanted.parallel == 0 ? runtime->pool().threads() : wanted.parallel;
  if (parallel_ > 1) {
    DTG_ASSIGN(ends_, CompletionQueue::create());
  } else {
    DTG_ASSIGN(callable_, session_->prepare(feeds_, fetches_, {}));
  }
  return {};
}

// What it gives is known better here, where shapes are those of elements.
Status GraphFunction::read_results() {
  for (const Value fetch : fetches_) {
    const ValueInfo& info = graph_->info(fetch);
    if (info.dtype == DType::string || is_holder(info.dtype)) {
      return unimplemented("it gives %s; elements of data sets are numbers and bools", dtype_name(info.dtype));
    }
    results_.push_back({info.dtype, info.shape});
  }
  return {};
}

Result<std::unique_ptr<ElementFunction::Call>> GraphFunction::start(const Element& arguments, const int64_t (&seed)[2]) {
  Tensor drawn;
  std::vector<const Tensor*> feeds;
  for (const Tensor& tensor : arguments) feeds.push_back(&tensor);
  if (seeded_) {
    DTG_ASSIGN(drawn, Tensor::allocate(DType::i64, Shape::of({2})));
    std::copy_n(seed, 2, drawn.as<int64_t>());
    feeds.push_back(&drawn);
  }
  if (callable_) {
    Element results(fetches_.size());
    DTG_TRY(callable_->run(feeds, results, 0));
    return std::unique_ptr<Call>(new Ended(std::move(results)));
  }
  DTG_ASSIGN(Ref<AsyncRun> run, session_->run_async(args(feeds), ends_, 0));
  return std::unique_ptr<Call>(new Running(std::move(run), ends_, session_->runtime().clock()));
}

}  // namespace dtg
