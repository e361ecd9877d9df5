// The stages that stack elements otherwise than in a row: windows, padded batches, and batches of elements of like length. Each owns its
// source and belongs to the thread of its pipeline.
#include <algorithm>
#include <deque>

#include "data/dataset.h"
#include "data/stack.h"

namespace dtg {
namespace {

long long ll(int64_t value) { return static_cast<long long>(value); }

class Stacking : public Dataset {
 public:
  explicit Stacking(DatasetPtr source) : source_(std::move(source)) {}
  Dataset* source() const override { return source_.get(); }
  int batch_rank() const override { return source_->batch_rank() + 1; }
  int64_t dropped_all() const override { return remainder_.all(); }

 protected:
  const DatasetPtr source_;
  Remainder remainder_;
};

class Window final : public Stacking {
 public:
  Window(DatasetPtr source, WindowOptions options) : Stacking(std::move(source)), options_(options) {}

  Status init() {
    DTG_ASSIGN(spec_, stacked_spec(source_->spec(), options_.drop_remainder ? options_.size : -1, "window a data set"));
    return {};
  }
  Status restart() override {
    coming_.clear();
    ended_ = false;
    remainder_.begin();
    return source_->restart();
  }
  int64_t cardinality() const override {
    const int64_t all = source_->cardinality();
    if (all < 0) return all;
    if (!options_.drop_remainder) return all / options_.shift + (all % options_.shift != 0 ? 1 : 0);
    return all < span() ? 0 : (all - span()) / options_.shift + 1;
  }

  Result<bool> pull(Item& item) override {
    item.row = -1;
    DTG_ASSIGN(const bool there, fill());
    if (!there) return false;
    std::vector<Element> chosen;
    for (size_t at = 0; at < coming_.size(); at += static_cast<size_t>(options_.stride)) chosen.push_back(coming_[at]);
    DTG_ASSIGN(item.tensors, stack_elements(chosen, std::nullopt, "window a data set"));
    DTG_TRY(shift());
    return true;
  }
  Result<int64_t> skip(int64_t count) override {
    for (int64_t passed = 0; passed < count; ++passed) {
      DTG_ASSIGN(const bool there, fill());
      if (!there) return passed;
      DTG_TRY(shift());
    }
    return count;
  }
  std::string stage() const override {
    return format("window(%lld, %lld, %lld%s)", ll(options_.size), ll(options_.shift), ll(options_.stride),
                  options_.drop_remainder ? ", whole" : "");
  }

 private:
  int64_t span() const { return (options_.size - 1) * options_.stride + 1; }

  // The elements from the first to the last of the next window, as far as there are; false at the end.
  Result<bool> fill() {
    while (!ended_ && static_cast<int64_t>(coming_.size()) < span()) {
      Element element;
      DTG_ASSIGN(const bool more, source_->next(element));
      ended_ = !more;
      if (more) coming_.push_back(std::move(element));
    }
    const bool there = options_.drop_remainder ? static_cast<int64_t>(coming_.size()) == span() : !coming_.empty();
    if (there) remainder_.handed_out();
    else remainder_.left(coming_.size());
    return there;
  }

  Status shift() {
    const auto here = std::min(options_.shift, static_cast<int64_t>(coming_.size()));
    coming_.erase(coming_.begin(), coming_.begin() + here);
    if (ended_ || here == options_.shift) return {};
    DTG_ASSIGN(const int64_t passed, source_->skip(options_.shift - here));
    ended_ = passed < options_.shift - here;
    return {};
  }

  const WindowOptions options_;
  std::deque<Element> coming_;
  bool ended_ = false;
};

class PaddedBatch final : public Stacking {
 public:
  PaddedBatch(DatasetPtr source, int64_t size, bool drop_remainder, double padding)
      : Stacking(std::move(source)), size_(size), drop_remainder_(drop_remainder), padding_(padding) {}

  Status init() {
    DTG_TRY(check_padding(source_->spec(), padding_, "pad a batch"));
    DTG_ASSIGN(spec_, stacked_spec(source_->spec(), drop_remainder_ ? size_ : -1, "pad a batch"));
    return {};
  }
  Status restart() override {
    remainder_.begin();
    return source_->restart();
  }
  int64_t cardinality() const override { return batches_of(source_->cardinality(), size_, drop_remainder_); }
  Result<bool> pull(Item& item) override {
    item.row = -1;
    std::vector<Element> elements;
    while (static_cast<int64_t>(elements.size()) < size_) {
      Element element;
      DTG_ASSIGN(const bool more, source_->next(element));
      if (!more) break;
      elements.push_back(std::move(element));
    }
    if (elements.empty() || (drop_remainder_ && static_cast<int64_t>(elements.size()) < size_)) {
      remainder_.left(elements.size());
      return false;
    }
    remainder_.handed_out();
    DTG_ASSIGN(item.tensors, stack_elements(elements, padding_, "pad a batch"));
    return true;
  }
  Result<int64_t> skip(int64_t count) override {
    if (count > INT64_MAX / size_) return Dataset::skip(count);
    DTG_ASSIGN(const int64_t passed, source_->skip(count * size_));
    const int64_t batches = batches_of(passed, size_, drop_remainder_);
    if (batches > 0) remainder_.handed_out();
    else remainder_.left(static_cast<size_t>(passed));
    return batches;
  }
  int64_t dropped() const override { return remainder_.last(); }
  std::string stage() const override {
    return format("padded_batch(%lld, %.17g%s)", ll(size_), padding_, drop_remainder_ ? ", whole" : "");
  }

 private:
  const int64_t size_;
  const bool drop_remainder_;
  const double padding_;
};

class Buckets final : public Stacking {
 public:
  Buckets(DatasetPtr source, BucketOptions options)
      : Stacking(std::move(source)), options_(std::move(options)), waiting_(options_.sizes.size()) {}

  Status init() {
    DTG_TRY(check_padding(source_->spec(), options_.padding, "batch by length"));
    DTG_ASSIGN(spec_, stacked_spec(source_->spec(), -1, "batch by length"));
    return {};
  }
  Status restart() override {
    for (auto& bucket : waiting_) bucket.clear();
    flushed_ = 0;
    ended_ = false;
    remainder_.begin();
    return source_->restart();
  }
  int64_t cardinality() const override { return source_->cardinality() == kInfinite ? kInfinite : kUnknown; }

  Result<bool> pull(Item& item) override {
    item.row = -1;
    while (!ended_) {
      Element element;
      DTG_ASSIGN(const bool more, source_->next(element));
      ended_ = !more;
      if (!more) break;
      DTG_ASSIGN(const size_t bucket, bucket_of(element));
      waiting_[bucket].push_back(std::move(element));
      if (static_cast<int64_t>(waiting_[bucket].size()) == options_.sizes[bucket]) return hand_out(bucket, item);
    }
    // What is left, the shortest first.
    for (; flushed_ < waiting_.size(); ++flushed_) {
      if (!waiting_[flushed_].empty() && !options_.drop_remainder) return hand_out(flushed_, item);
    }
    size_t left = 0;
    for (const auto& bucket : waiting_) left += bucket.size();
    remainder_.left(left);
    return false;
  }
  int64_t dropped() const override { return remainder_.last(); }
  std::string stage() const override {
    std::string text = format("buckets(%zu, %.17g%s", options_.component, options_.padding, options_.drop_remainder ? ", whole" : "");
    for (const int64_t boundary : options_.boundaries) text += ", " + std::to_string(boundary);
    for (const int64_t size : options_.sizes) text += " x" + std::to_string(size);
    return text + ")";
  }

 private:
  Result<size_t> bucket_of(const Element& element) const {
    const Tensor* const tensor = options_.component < element.size() ? &element[options_.component] : nullptr;
    if (!tensor || tensor->shape().is_scalar()) {
      return invalid_argument("batch by length: component %zu is %s; its first dimension is its length", options_.component,
                              tensor ? tensor->text().c_str() : "not there");
    }
    const auto& boundaries = options_.boundaries;
    return static_cast<size_t>(std::upper_bound(boundaries.begin(), boundaries.end(), tensor->shape().dim(0)) - boundaries.begin());
  }
  Result<bool> hand_out(size_t bucket, Item& item) {
    const std::vector<Element> elements = std::move(waiting_[bucket]);
    waiting_[bucket].clear();
    remainder_.handed_out();
    DTG_ASSIGN(item.tensors, stack_elements(elements, options_.padding, "batch by length"));
    return true;
  }

  const BucketOptions options_;
  std::vector<std::vector<Element>> waiting_;
  size_t flushed_ = 0;
  bool ended_ = false;
};

}  // namespace

Result<DatasetPtr> make_window(DatasetPtr source, WindowOptions options) {
  constexpr int64_t kMost = int64_t{1} << 24;
  const auto fits = [](int64_t number) { return number >= 1 && number <= kMost; };
  if (!fits(options.size) || !fits(options.shift) || !fits(options.stride) || options.size > kMost / options.stride) {
    return invalid_argument(
        "window a data set: %lld elements, %lld on, every %lldth of them; each is 1 or more, and a window spans at most "
        "%lld elements",
        ll(options.size), ll(options.shift), ll(options.stride), ll(kMost));
  }
  auto made = std::make_unique<Window>(std::move(source), options);
  DTG_TRY(made->init());
  return DatasetPtr(std::move(made));
}

Result<DatasetPtr> make_padded_batch(DatasetPtr source, int64_t size, bool drop_remainder, double padding) {
  if (size < 1) return invalid_argument("pad a batch: %lld elements a batch; give 1 or more", ll(size));
  auto made = std::make_unique<PaddedBatch>(std::move(source), size, drop_remainder, padding);
  DTG_TRY(made->init());
  return DatasetPtr(std::move(made));
}

Result<DatasetPtr> make_buckets(DatasetPtr source, BucketOptions options) {
  const auto& boundaries = options.boundaries;
  for (size_t i = 0; i < boundaries.size(); ++i) {
    if (boundaries[i] > (i ? boundaries[i - 1] : 0)) continue;
    return invalid_argument("batch by length: boundary %zu is %lld; they are positive and rise", i, ll(boundaries[i]));
  }
  if (options.sizes.size() != boundaries.size() + 1) {
    return invalid_argument("batch by length: %zu sizes of batches for %zu boundaries; there is one bucket more than boundaries",
                            options.sizes.size(), boundaries.size());
  }
  for (const int64_t size : options.sizes) {
    if (size < 1) return invalid_argument("batch by length: %lld elements a batch; give 1 or more", ll(size));
  }
  if (options.component >= source->spec().size()) {
    return out_of_range("batch by length: component %zu; elements have %zu", options.component, source->spec().size());
  }
  auto made = std::make_unique<Buckets>(std::move(source), std::move(options));
  DTG_TRY(made->init());
  return DatasetPtr(std::move(made));
}

}  // namespace dtg
