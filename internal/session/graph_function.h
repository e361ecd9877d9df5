// GraphFunction: a function of a graph as what maps or filters elements of a data set. Its ops stand in a graph of their own, with a
// placeholder for each argument, and a local session runs them: on the thread of the pipeline, or several at once on the pool.
//
// Owner: the stage of the data set. One thread at a time.
#pragma once

#include <string>
#include <vector>

#include "data/element_function.h"
#include "graph/closure.h"
#include "session/async_run.h"

namespace dtg {

class GraphFunction final : public ElementFunction {
 public:
  struct Wanted {
    Closure closure;
    std::span<const ComponentSpec> arguments;  // of the elements; the closure takes these, or these and the seed
    Session* values = nullptr;                 // tells what was captured; null: nothing may be
    int64_t parallel = 1;                      // 0: one per compute thread
  };
  static constexpr int64_t kParallelMax = 1024;
  // FAILED_PRECONDITION where it captured values that nobody tells; INVALID_ARGUMENT for one that acts on something, or takes other
  // arguments.
  static Result<Ref<ElementFunction>> make(const Ref<Runtime>& runtime, const Wanted& wanted);

  const std::vector<ComponentSpec>& results() const override { return results_; }
  Result<std::unique_ptr<Call>> start(const Element& arguments, const int64_t (&seed)[2]) override;
  int64_t parallel() const override { return parallel_; }
  std::string text() const override { return text_; }

 private:
  class Running;
  GraphFunction() = default;
  Status build(const Ref<Runtime>& runtime, const Wanted& wanted);
  Status read_results();
  RunArgs args(std::span<const Tensor* const> feeds) const { return {feeds_, feeds, fetches_, {}}; }

  Ref<Graph> graph_;
  Ref<Session> session_;
  Ref<Callable> callable_;
  Ref<CompletionQueue> ends_;
  std::vector<Value> feeds_;
  std::vector<Value> fetches_;
  std::vector<ComponentSpec> results_;
  bool seeded_ = false;
  int64_t parallel_ = 1;
  std::string text_;
};

}  // namespace dtg
