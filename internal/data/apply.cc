// The stages that ask a function about each element: map and filter. Elements are asked for ahead of what is handed out, as many as the
// function takes at once, and come out in their order; so nothing hangs on which call ends first. Belongs to the thread of its pipeline.
#include <deque>

#include "data/element_function.h"

namespace dtg {
namespace {

class Application : public Dataset {
 public:
  Application(DatasetPtr source, Ref<ElementFunction> function) : source_(std::move(source)), function_(std::move(function)) {}

  Status restart() override {
    begin_anew();
    ++epoch_;
    return source_->restart();
  }
  Dataset* source() const override { return source_.get(); }
  int64_t epoch() const override { return epoch_; }
  void set_epoch(int64_t epoch) override { epoch_ = epoch; }

 protected:
  // An element that was asked for and not yet handed out.
  struct Pending {
    Item item;
    std::unique_ptr<ElementFunction::Call> call;
    Status failure;  // there is no call then
  };

  // The next one, once its call has ended; false at the end.
  Result<bool> take(Item& item, Element& results) {
    while (!ended_ && static_cast<int64_t>(pending_.size()) < function_->parallel()) ask();
    if (pending_.empty()) return false;
    Pending next = std::move(pending_.front());
    pending_.pop_front();
    DTG_TRY(next.failure);
    DTG_TRY(next.call->finish(results));
    item = std::move(next.item);
    return true;
  }
  // Passes over elements without an answer about them: first those that were asked for ahead.
  Result<int64_t> pass(int64_t count) {
    int64_t passed = 0;
    for (; passed < count && !pending_.empty(); ++passed) {
      DTG_TRY(pending_.front().failure);
      pending_.pop_front();
    }
    if (passed == count || ended_) return passed;
    DTG_ASSIGN(const int64_t below, source_->skip(count - passed));
    index_ += below;
    return passed + below;
  }

  const DatasetPtr source_;
  const Ref<ElementFunction> function_;

 private:
  void begin_anew() {
    pending_.clear();
    ended_ = false;
    index_ = 0;
  }

  // An error waits for its turn, behind the elements before it.
  void ask() {
    Pending asked;
    asked.failure = ask_for(asked);
    if (asked.failure.ok() && !asked.call) {
      ended_ = true;
      return;
    }
    pending_.push_back(std::move(asked));
  }
  Status ask_for(Pending& asked) {
    Element element;
    DTG_ASSIGN(const bool more, source_->pull(asked.item));
    if (!more) return {};
    if (asked.item.row < 0) {
      element = asked.item.tensors;
    } else {
      Item row;
      row.row = asked.item.row;
      DTG_TRY(source_->materialize(row, element));
    }
    const int64_t seed[2] = {epoch_, index_++};
    DTG_ASSIGN(asked.call, function_->start(element, seed));
    return {};
  }

  std::deque<Pending> pending_;
  bool ended_ = false;  // the source was asked for one more than it has
  int64_t epoch_ = 0;
  int64_t index_ = 0;  // of the next element that is asked for
};

class Mapped final : public Application {
 public:
  Mapped(DatasetPtr source, Ref<ElementFunction> function) : Application(std::move(source), std::move(function)) {
    spec_ = function_->results();
  }
  int64_t cardinality() const override { return source_->cardinality(); }
  Result<bool> pull(Item& item) override {
    Item from;
    Element results;
    DTG_ASSIGN(const bool more, take(from, results));
    if (!more) return false;
    item.row = -1;
    item.tensors = std::move(results);
    return true;
  }
  Result<int64_t> skip(int64_t count) override { return pass(count); }
  std::string stage() const override { return "map(" + function_->text() + ")"; }
};

class Filtered final : public Application {
 public:
  Filtered(DatasetPtr source, Ref<ElementFunction> function) : Application(std::move(source), std::move(function)) {
    if (source_->table()) stand_on(source_->table());
    else spec_ = source_->spec();
  }
  int64_t cardinality() const override {
    const int64_t all = source_->cardinality();
    return all == 0 ? 0 : kUnknown;
  }
  Result<bool> pull(Item& item) override {
    // What a host's function keeps may hang on chance, so one pass says little. The first one may have begun already.
    constexpr int64_t kPasses = 10;
    const int64_t begun = source_->passes();
    Element verdict;
    for (;;) {
      if (source_->passes() - begun > kPasses) {
        return failed_precondition("filter a data set: it is repeated without end, and of %lld whole passes over it the filter has kept "
                                   "nothing; mend the filter, or filter before repeat",
                                   static_cast<long long>(kPasses));
      }
      DTG_ASSIGN(const bool more, take(item, verdict));
      if (!more) return false;
      if (verdict.size() != 1 || verdict[0].dtype() != DType::boolean || verdict[0].count() != 1) {
        return invalid_argument("filter a data set: the function must give one bool for each element, and gave %s",
                                verdict.empty() ? "nothing" : verdict[0].text().c_str());
      }
      if (*verdict[0].as<bool>()) return true;
    }
  }
  std::string stage() const override { return "filter(" + function_->text() + ")"; }
};

}  // namespace

Result<DatasetPtr> make_map(DatasetPtr source, Ref<ElementFunction> function) {
  if (function->results().empty()) return invalid_argument("map a data set: the function gives nothing; elements need a component");
  return DatasetPtr(new Mapped(std::move(source), std::move(function)));
}

Result<DatasetPtr> make_filter(DatasetPtr source, Ref<ElementFunction> function) {
  const std::vector<ComponentSpec>& results = function->results();
  const bool one = results.size() == 1 && results[0].dtype == DType::boolean;
  if (!one || results[0].shape.rank() > 0) {
    std::string found;
    for (const ComponentSpec& spec : results) found += " " + std::string(dtype_name(spec.dtype)) + spec.shape.text();
    return invalid_argument("filter a data set: the function must give one bool for each element, and gives%s",
                            found.empty() ? " nothing" : found.c_str());
  }
  return DatasetPtr(new Filtered(std::move(source), std::move(function)));
}

}  // namespace dtg
