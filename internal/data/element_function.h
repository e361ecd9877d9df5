// ElementFunction: what maps or filters elements, as the stages of data/ see it: a part of a graph that a session runs
// (session/graph_function.h), or a function of the host (capi/host_data.h). The stages call it one element after the other, by the thread
// of their pipeline; it may work on several at once.
//
// Owner: the stage. One thread at a time.
#pragma once

#include <memory>
#include <string>

#include "base/ref.h"
#include "data/dataset.h"

namespace dtg {

class ElementFunction : public RefCounted {
 public:
  // One call under way. Whoever lets go of it gives it up.
  class Call {
   public:
    virtual ~Call() = default;
    // Waits for its results.
    virtual Status finish(Element& results) = 0;
  };

  // One whose results were there at once.
  class Ended final : public Call {
   public:
    explicit Ended(Element results) : results_(std::move(results)) {}
    Status finish(Element& results) override {
      results = std::move(results_);
      return {};
    }

   private:
    Element results_;
  };

  // What it gives.
  virtual const std::vector<ComponentSpec>& results() const = 0;
  // Begins on one element. `seed`: the number of the epoch and that of the element in it, for who draws random numbers.
  virtual Result<std::unique_ptr<Call>> start(const Element& arguments, const int64_t (&seed)[2]) = 0;
  // How many calls may be under way at once.
  virtual int64_t parallel() const = 0;
  // What it does, in words: equal ones for functions that give the same.
  virtual std::string text() const = 0;
};

// What the function gives for each element, in their order.
Result<DatasetPtr> make_map(DatasetPtr source, Ref<ElementFunction> function);
// The elements for which the function, of one bool, gives true.
Result<DatasetPtr> make_filter(DatasetPtr source, Ref<ElementFunction> function);

}  // namespace dtg
