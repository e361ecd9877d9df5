// The elements of a TensorArray: what may be written and read when, as TensorFlow has it. Called by kernels, on the threads of a run.
#include "ops/list.h"
#include "ops/tensor_array.h"

namespace dtg::ops {
namespace {

long long wide(int64_t number) { return static_cast<long long>(number); }

std::vector<int64_t> joined(const Shape& before, std::span<const int64_t> dims) {
  std::vector<int64_t> all(before.dims().begin(), before.dims().end());
  all.insert(all.end(), dims.begin(), dims.end());
  return all;
}

}  // namespace

TensorArray::TensorArray(std::string name, Options options)
    : Resource(std::move(name)), options_(std::move(options)), elements_(static_cast<size_t>(options_.size)) {}

Status TensorArray::check_growth(const RunContext& c, int64_t count) { return check_room(c, count, sizeof(State), "an array"); }

Status TensorArray::check_open(const RunContext& c) const {
  return closed_ ? c.error("the array \"%s\" was closed", name().c_str()) : Status();
}

Status TensorArray::write(const RunContext& c, int64_t index, Tensor value) {
  const std::lock_guard hold(mutex_);
  DTG_TRY(check_open(c));
  const auto size = static_cast<int64_t>(elements_.size());
  if (index < 0 || (!options_.dynamic_size && index >= size)) {
    return c.error("write element %lld of \"%s\", which has %lld and does not grow", wide(index), name().c_str(), wide(size));
  }
  if (index >= kMost)
    return resource_exhausted("element %lld of \"%s\": at most %lld are possible", wide(index), name().c_str(), wide(kMost));
  if (!options_.element_shape.admits(value.shape())) {
    return c.error("write element %lld of \"%s\": the value has shape %s, the array is for %s", wide(index), name().c_str(),
                   value.shape().text().c_str(), options_.element_shape.text().c_str());
  }
  if (index >= size) {
    DTG_TRY(check_growth(c, index + 1));
    elements_.resize(static_cast<size_t>(index) + 1);
  }
  State& state = elements_[static_cast<size_t>(index)];
  if (state.was_read) return c.error("write element %lld of \"%s\": it was read already", wide(index), name().c_str());
  if (state.written && !options_.adds_up) {
    return c.error("write element %lld of \"%s\": it was written already", wide(index), name().c_str());
  }
  if (options_.identical_shapes) options_.element_shape = PartialShape(value.shape());
  if (!state.written) {
    state.shape = value.shape();
    state.value = std::move(value);
    state.written = true;
    return {};
  }
  if (!(state.shape == value.shape())) {
    return c.error("add to element %lld of \"%s\": it has shape %s, the value %s", wide(index), name().c_str(), state.shape.text().c_str(),
                   value.shape().text().c_str());
  }
  if (state.value.valid()) {
    DTG_ASSIGN(state.value, sum_of(c, state.value, value));
  } else {
    state.value = std::move(value);
  }
  return {};
}

Result<TensorArray::Element> TensorArray::read(const RunContext& c, int64_t index) {
  const std::lock_guard hold(mutex_);
  DTG_TRY(check_open(c));
  const auto size = static_cast<int64_t>(elements_.size());
  if (options_.adds_up && index >= size && options_.element_shape.complete()) {
    // No gradient came here, and none can any more.
    DTG_ASSIGN(Shape shape, options_.element_shape.to_shape());
    return Element{Tensor(), std::move(shape)};
  }
  if (index < 0 || index >= size) return c.error("read element %lld of \"%s\", which has %lld", wide(index), name().c_str(), wide(size));
  State& state = elements_[static_cast<size_t>(index)];
  if (!state.written) {
    if (!options_.element_shape.complete()) {
      return c.error("read element %lld of \"%s\": it was never written, and the shape of its zeros, %s, is not known", wide(index),
                     name().c_str(), options_.element_shape.text().c_str());
    }
    DTG_ASSIGN(state.shape, options_.element_shape.to_shape());
    state.written = true;
  }
  if (state.cleared) {
    return c.error("read element %lld of \"%s\" again: it was let go of when it was read (clear_after_read)", wide(index), name().c_str());
  }
  state.was_read = true;
  Element element{state.value, state.shape};
  if (options_.clear_after_read) {
    state.value = Tensor();
    state.cleared = true;
  }
  return element;
}

Result<int64_t> TensorArray::size(const RunContext& c) const {
  const std::lock_guard hold(mutex_);
  DTG_TRY(check_open(c));
  return static_cast<int64_t>(elements_.size());
}

Result<int64_t> TensorArray::rows(const RunContext& c) const {
  const std::lock_guard hold(mutex_);
  DTG_TRY(check_open(c));
  return options_.adds_up && options_.rows_known >= 0 ? options_.rows_known : static_cast<int64_t>(elements_.size());
}

Status TensorArray::make_room(const RunContext& c, int64_t count, bool exactly) {
  const std::lock_guard hold(mutex_);
  DTG_TRY(check_open(c));
  if (count > kMost)
    return resource_exhausted("%lld elements of \"%s\": at most %lld are possible", wide(count), name().c_str(), wide(kMost));
  auto size = static_cast<int64_t>(elements_.size());
  if (options_.dynamic_size && size < count) {
    DTG_TRY(check_growth(c, count));
    elements_.resize(static_cast<size_t>(count));
    size = count;
  }
  if (size < count) {
    return c.error("%lld elements for \"%s\", which has %lld and does not grow", wide(count), name().c_str(), wide(size));
  }
  if (exactly && size != count) {
    return c.error("%lld elements for \"%s\", which has %lld; all of them are to be written", wide(count), name().c_str(), wide(size));
  }
  if (!options_.adds_up) options_.rows_known = size;
  return {};
}

Status TensorArray::narrow(const RunContext& c, const PartialShape& shape) {
  const std::lock_guard hold(mutex_);
  auto merged = PartialShape::merge(options_.element_shape, shape, "the array's elements and element_shape");
  if (!merged.ok()) return c.error("%s", merged.status().message().c_str());
  options_.element_shape = merged.take();
  return {};
}

// What an array of its gradients is like.
Result<TensorArray::Options> TensorArray::gradient_options(const Shape& before) const {
  Options options = options_;
  options.size = static_cast<int64_t>(elements_.size());
  options.dynamic_size = false;
  // What was added up in one element has one gradient, which each of the addends asks for.
  options.clear_after_read = !options_.adds_up;
  options.adds_up = true;
  options.before = before;
  if (options.element_shape.has_rank()) {
    DTG_ASSIGN(options.element_shape, PartialShape::make(joined(before, options.element_shape.dims())));
  }
  return options;
}

Result<Ref<TensorArray>> TensorArray::gradients(const RunContext& c, const std::string& source, const Shape& before) {
  const std::lock_guard hold(mutex_);
  DTG_TRY(check_open(c));
  options_.dynamic_size = false;
  const auto had = gradients_.find(source);
  if (had != gradients_.end()) {
    if (had->second->options_.before == before) return had->second;
    return c.error("the gradients of \"%s\" for source \"%s\" were made with %s before each element's dimensions, not %s", name().c_str(),
                   source.c_str(), had->second->options_.before.text().c_str(), before.text().c_str());
  }
  DTG_ASSIGN(Options options, gradient_options(before));
  auto made = make_ref<TensorArray>(name() + "@" + source, std::move(options));
  for (size_t i = 0; i < elements_.size(); ++i) {
    if (!elements_[i].written) continue;
    // Nothing has come yet: zeros.
    DTG_ASSIGN(made->elements_[i].shape, Shape::make(joined(before, elements_[i].shape.dims())));
    made->elements_[i].written = true;
  }
  return gradients_[source] = std::move(made);
}

// Four numbers, the shape of elements, and that of each element; a shape is its rank, -1 for none, and its dimensions.
Result<std::vector<int64_t>> TensorArray::outline(const RunContext& c) const {
  const std::lock_guard hold(mutex_);
  DTG_TRY(check_open(c));
  DTG_ASSIGN(const Options options, gradient_options({}));
  std::vector<int64_t> numbers = {options.size, options.clear_after_read, options.identical_shapes, options.rows_known};
  const auto add = [&](int rank, std::span<const int64_t> dims) {
    numbers.push_back(rank);
    numbers.insert(numbers.end(), dims.begin(), dims.end());
  };
  add(options.element_shape.rank(), options.element_shape.dims());
  for (const State& state : elements_) add(state.written ? state.shape.rank() : -1, state.shape.dims());
  return numbers;
}

namespace {

// Numbers that come from a graph are looked at before they are believed.
class OutlineReader {
 public:
  OutlineReader(const RunContext& c, std::span<const int64_t> numbers) : c_(c), numbers_(numbers) {}

  Result<int64_t> number() {
    if (at_ == numbers_.size()) return c_.error("the outline of an array ends after %zu numbers", at_);
    return numbers_[at_++];
  }
  Result<PartialShape> shape() {
    DTG_ASSIGN(const int64_t rank, number());
    if (rank < 0) return PartialShape::unknown();
    if (static_cast<uint64_t>(rank) > numbers_.size() - at_)
      return c_.error("the outline of an array ends in a shape of rank %lld", wide(rank));
    const std::span<const int64_t> dims = numbers_.subspan(at_, static_cast<size_t>(rank));
    at_ += dims.size();
    auto made = PartialShape::make(dims);
    if (!made.ok()) return c_.error("the outline of an array: %s", made.status().message().c_str());
    return made;
  }

 private:
  const RunContext& c_;
  std::span<const int64_t> numbers_;
  size_t at_ = 0;
};

}  // namespace

Result<Ref<TensorArray>> TensorArray::of_outline(const RunContext& c, std::string name, DType dtype, std::span<const int64_t> outline) {
  OutlineReader reader(c, outline);
  Options options;
  options.dtype = dtype;
  options.adds_up = true;
  DTG_ASSIGN(options.size, reader.number());
  // Each element has a number at least.
  if (options.size < 0 || options.size > static_cast<int64_t>(outline.size()))
    return c.error("an outline of %lld elements", wide(options.size));
  DTG_ASSIGN(options.clear_after_read, reader.number());
  DTG_ASSIGN(options.identical_shapes, reader.number());
  DTG_ASSIGN(options.rows_known, reader.number());
  if (options.rows_known > options.size)
    return c.error("an outline of %lld elements, %lld of them known", wide(options.size), wide(options.rows_known));
  DTG_ASSIGN(options.element_shape, reader.shape());
  auto made = make_ref<TensorArray>(std::move(name), std::move(options));
  for (State& state : made->elements_) {
    DTG_ASSIGN(const PartialShape shape, reader.shape());
    if (!shape.has_rank()) continue;
    if (!shape.complete()) return c.error("the outline of an array: an element of shape %s", shape.text().c_str());
    DTG_ASSIGN(state.shape, shape.to_shape());
    state.written = true;
  }
  return made;
}

void TensorArray::close() {
  const std::lock_guard hold(mutex_);
  closed_ = true;
  elements_.clear();
}

}  // namespace dtg::ops
