// Functions and sources of the host. Everything that they give is somebody else's word: what is no open tensor, or none of the announced
// type and shape, is an error. See host_data.h.
#include "capi/host_data.h"

namespace dtg::capi {
namespace {

long long ll(int64_t value) { return static_cast<long long>(value); }

// Calls a function of the host. An exception of it ends here.
template <class Call>
Status ask(const char* what, Call&& call) {
  try {
    return taken(call());
  } catch (const std::exception& thrown) {
    return internal_error("%s of the host threw an exception: %s", what, thrown.what());
  } catch (...) {
    return internal_error("%s of the host threw something that is no std::exception", what);
  }
}

// Handles that are given back at the end of the scope, those that are there.
class Handles {
 public:
  explicit Handles(size_t count) : list_(count) {}
  ~Handles() {
    for (dtg_tensor* tensor : list_) release_handle(tensor, HandleType::tensor);
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;
  dtg_tensor** data() { return list_.data(); }
  size_t size() const { return list_.size(); }

  // The tensors behind them, as announced.
  Status read(const std::vector<ComponentSpec>& spec, const char* what, Element& element) const {
    element.clear();
    for (size_t i = 0; i < list_.size(); ++i) {
      const Held<TensorObject> held(list_[i], HandleType::tensor);
      if (!held) return held.status().with_context(format("%s of the host, component %zu", what, i));
      const Tensor& tensor = held->tensor;
      if (tensor.dtype() != spec[i].dtype || !spec[i].shape.admits(tensor.shape())) {
        return invalid_argument("%s of the host: component %zu is %s, announced was %s%s", what, i, tensor.text().c_str(),
                                dtype_name(spec[i].dtype), spec[i].shape.text().c_str());
      }
      element.push_back(tensor);
    }
    return {};
  }

 private:
  std::vector<dtg_tensor*> list_;
};

class HostFunction : public ElementFunction {
 public:
  HostFunction(Ref<HostUser> user, std::vector<ComponentSpec> results) : user_(std::move(user)), results_(std::move(results)) {}
  const std::vector<ComponentSpec>& results() const override { return results_; }
  // Whoever asks for an element waits for it anyway.
  Result<std::unique_ptr<Call>> start(const Element& arguments, const int64_t (&)[2]) override {
    Handles given(arguments.size());
    DTG_TRY(give_tensors(arguments, given.data()));
    Element results;
    DTG_TRY(call(given, results));
    return std::unique_ptr<Call>(new Ended(std::move(results)));
  }
  int64_t parallel() const override { return 1; }
  std::string text() const override { return "host"; }

 protected:
  virtual Status call(Handles& arguments, Element& results) = 0;
  void* user() const { return user_->get(); }

 private:
  const Ref<HostUser> user_;
  const std::vector<ComponentSpec> results_;
};

class HostMap final : public HostFunction {
 public:
  HostMap(dtg_element_fn fn, Ref<HostUser> user, std::vector<ComponentSpec> results)
      : HostFunction(std::move(user), std::move(results)), fn_(fn) {}

 private:
  Status call(Handles& arguments, Element& element) override {
    Handles given(results().size());
    DTG_TRY(ask("the function", [&] { return fn_(user(), arguments.data(), arguments.size(), given.data(), given.size()); }));
    return given.read(results(), "the function", element);
  }
  const dtg_element_fn fn_;
};

class HostFilter final : public HostFunction {
 public:
  HostFilter(dtg_predicate_fn fn, Ref<HostUser> user)
      : HostFunction(std::move(user), {{DType::boolean, PartialShape::scalar()}}), fn_(fn) {}

 private:
  Status call(Handles& arguments, Element& element) override {
    int32_t keep = 0;
    DTG_TRY(ask("the predicate", [&] { return fn_(user(), arguments.data(), arguments.size(), &keep); }));
    DTG_ASSIGN(Tensor verdict, Tensor::scalar<bool>(keep != 0));
    element = {std::move(verdict)};
    return {};
  }
  const dtg_predicate_fn fn_;
};

class HostSource final : public Dataset {
 public:
  HostSource(const dtg_host_source& source, Ref<HostUser> user, std::string name, std::vector<ComponentSpec> spec)
      : next_(source.next),
        restart_(source.restart),
        skip_(source.skip),
        cardinality_(source.cardinality),
        user_(std::move(user)),
        name_(std::move(name)) {
    spec_ = std::move(spec);
  }

  Status restart() override {
    if (begun_ && !restart_) {
      return failed_precondition("restart a data set: its source, \"%s\" of the host, has one epoch, which has begun; give it a function "
                                 "\"restart\", or keep its elements by cache",
                                 name_.c_str());
    }
    ++epoch_;
    begun_ = ended_ = false;
    return {};
  }
  int64_t cardinality() const override { return cardinality_; }

  Result<bool> pull(Item& item) override {
    DTG_TRY(begin());
    if (ended_) return false;
    Handles given(spec_.size());
    int32_t more = 1;
    DTG_TRY(ask("the source", [&] { return next_(user_->get(), given.data(), given.size(), &more); }));
    if (!more) {
      DTG_TRY(end());
      return false;
    }
    item.row = -1;
    DTG_TRY(given.read(spec_, "the source", item.tensors));
    DTG_TRY(count(1));
    return true;
  }

  Result<int64_t> skip(int64_t wanted) override {
    if (!skip_) return Dataset::skip(wanted);
    DTG_TRY(begin());
    if (ended_ || wanted == 0) return int64_t{0};
    int64_t passed = 0;
    DTG_TRY(ask("the skipping", [&] { return skip_(user_->get(), wanted, &passed); }));
    if (passed < 0 || passed > wanted) {
      return invalid_argument("the source \"%s\" of the host passed over %lld elements where %lld were asked for", name_.c_str(),
                              ll(passed), ll(wanted));
    }
    DTG_TRY(count(passed));
    if (passed < wanted) DTG_TRY(end());
    return passed;
  }

  std::string stage() const override { return name_ + spec_text(); }
  int64_t epoch() const override { return epoch_; }
  void set_epoch(int64_t epoch) override { epoch_ = epoch; }

 private:
  Status begin() {
    if (begun_) return {};
    if (restart_) DTG_TRY(ask("the restart", [&] { return restart_(user_->get(), epoch_); }));
    begun_ = true;
    given_ = 0;
    return {};
  }
  // Stages above pass over whole epochs by this number, so it has to be right.
  Status count(int64_t elements) {
    given_ += elements;
    if (cardinality_ < 0 || given_ <= cardinality_) return {};
    return data_loss("the source \"%s\" of the host gave an element more than the %lld that it announced", name_.c_str(), ll(cardinality_));
  }
  Status end() {
    ended_ = true;
    if (cardinality_ == kUnknown || given_ == cardinality_) return {};
    return data_loss("the source \"%s\" of the host ended after %lld elements; it announced %s", name_.c_str(), ll(given_),
                     cardinality_ < 0 ? "that it never ends" : std::to_string(cardinality_).c_str());
  }

  const dtg_source_next_fn next_;
  const dtg_source_restart_fn restart_;
  const dtg_source_skip_fn skip_;
  const int64_t cardinality_;
  const Ref<HostUser> user_;
  const std::string name_;
  int64_t epoch_ = 0;
  int64_t given_ = 0;   // in this epoch
  bool begun_ = false;  // this epoch
  bool ended_ = false;
};

}  // namespace

Ref<ElementFunction> host_map(dtg_element_fn fn, Ref<HostUser> user, std::vector<ComponentSpec> results) {
  return make_ref<HostMap>(fn, std::move(user), std::move(results));
}

Ref<ElementFunction> host_filter(dtg_predicate_fn fn, Ref<HostUser> user) { return make_ref<HostFilter>(fn, std::move(user)); }

DatasetPtr host_source(const dtg_host_source& source, Ref<HostUser> user, std::string name, std::vector<ComponentSpec> spec) {
  return std::make_unique<HostSource>(source, std::move(user), std::move(name), std::move(spec));
}

}  // namespace dtg::capi
