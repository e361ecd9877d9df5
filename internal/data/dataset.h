// Dataset: a pipeline that hands out elements (lists of tensors) one by one: a source, wrapped by
// transforms, each owning the one below. The end of the data is not an error; restart() begins the next
// epoch. Equal seeds give equal orders on every machine.
//
// A pipeline belongs to one thread at a time; the only thread of its own is that of prefetch.
//
//   DTG_ASSIGN(auto data, make_idx(disk, {images, labels}));
//   DTG_ASSIGN(data, make_scale(std::move(data), 0, 255));
//   DTG_ASSIGN(data, make_shuffle(std::move(data), 0, seed));
//   DTG_ASSIGN(data, make_batch(std::move(data), 128, true));
//   while (true) { DTG_ASSIGN(const bool more, data->next(element)); if (!more) break; ... }
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/disk.h"
#include "data/table.h"
#include "tensor/tensor.h"

namespace dtg {

using Element = std::vector<Tensor>;

// What is known of one tensor of every element.
struct ComponentSpec {
  DType dtype = DType::invalid;
  PartialShape shape;
};

class Dataset {
 public:
  static constexpr int64_t kInfinite = -1;
  static constexpr int64_t kUnknown = -2;

  // What stages pass to each other: a row of the table, or tensors when row is negative.
  struct Item {
    int64_t row = -1;
    Element tensors;
  };

  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  // The next element, or false at the end (again and again, until restart). Tensors of a batch may stand
  // on recycled memory: they stay as they are for as long as somebody holds them.
  Result<bool> next(Element& element);
  // Begins the next epoch, from the start of the data; a shuffle takes a new order.
  virtual Status restart() = 0;

  const std::vector<ComponentSpec>& spec() const { return spec_; }
  // Elements per epoch, kInfinite or kUnknown.
  virtual int64_t cardinality() const = 0;

  // For transforms. The table, where elements are its rows; null otherwise.
  const Ref<Table>& table() const { return table_; }
  virtual Result<bool> pull(Item& item) = 0;
  // The tensors of an item of this data set, whichever way it holds them.
  Status materialize(Item& item, Element& element) const;
  // Passes over up to `count` elements, without making them where that can be; how many there were.
  virtual Result<int64_t> skip(int64_t count);

  // For positions (data/position.h): the stage below, null for a source; what this one does, with all it was told, in words (empty:
  // nothing that could be seen); and the number of the epoch, where the order hangs on it, which may be set right after restart() only.
  virtual Dataset* source() const { return nullptr; }
  // All that are below: the one, or those that are made one of.
  virtual std::vector<Dataset*> sources() const { return source() ? std::vector<Dataset*>{source()} : std::vector<Dataset*>(); }
  // The epochs of all stages below, where what they did in an earlier one is what counts; else null.
  virtual const std::vector<int64_t>* epochs_below() const { return nullptr; }
  // Drops what was kept of earlier epochs, and begins what is below anew; right after restart(), which does not go down to there.
  virtual Status forget() { return {}; }
  virtual std::string stage() const { return "data"; }
  virtual int64_t epoch() const { return 0; }
  // How many leading dimensions of the elements are of batches.
  virtual int batch_rank() const { return source() ? source()->batch_rank() : 0; }
  virtual void set_epoch(int64_t) {}
  // Of data that are repeated for ever: how often they have begun anew, for whoever waits for an element that never comes; else 0.
  virtual int64_t passes() const { return source() ? source()->passes() : 0; }
  // How many elements this stage got since the last restart, where it has handed out nothing because they were too few for a batch.
  virtual int64_t dropped_all() const { return 0; }
  // How many elements at the end of the data are in none of its batches, as they were too few for a whole one.
  virtual int64_t dropped() const { return 0; }

 protected:
  Dataset() = default;
  // Elements are the rows of `table`.
  void stand_on(Ref<Table> table);
  // The spec in words, for stage().
  std::string spec_text() const;
  std::vector<ComponentSpec> spec_;

 private:
  Ref<Table> table_;
  Item item_;
};

using DatasetPtr = std::unique_ptr<Dataset>;

// ---- sources ------------------------------------------------------------------------------------------

// Slices along the first dimension, which all tensors share. The tensors are shared, not copied.
Result<DatasetPtr> make_slices(std::span<const Tensor> tensors);
// int64 scalars start, start + step, ... up to, not including, stop.
Result<DatasetPtr> make_range(int64_t start, int64_t stop, int64_t step);
// IDX files (MNIST's format, plain or gzip), one component each, with equal numbers of rows.
Result<DatasetPtr> make_idx(Disk& disk, std::span<const std::string> paths, MemoryBudget* budget = nullptr);
// CSV files: make_csv in data/csv.h.

// ---- transforms; each takes its source over -----------------------------------------------------------

// Draws at random from a buffer of that many elements; 0 shuffles the whole epoch. With `reshuffle` each
// epoch has an order of its own, determined by the seed and its number.
Result<DatasetPtr> make_shuffle(DatasetPtr source, int64_t buffer, uint64_t seed, bool reshuffle = true);
// Stacks `size` elements along a new first dimension. A short last batch is dropped or kept.
Result<DatasetPtr> make_batch(DatasetPtr source, int64_t size, bool drop_remainder);
// Of every `count` elements the one with number `index`: what one of `count` workers trains on.
Result<DatasetPtr> make_shard(DatasetPtr source, int64_t count, int64_t index);
// The same, where every shard must get something: data with fewer elements than shards is an error for each shard that
// found one.
Result<DatasetPtr> make_auto_shard(DatasetPtr source, int64_t count, int64_t index);
// Each batch cut along its first dimension into `parts` of ceil(rows / parts) rows; the last ones may be short or empty.
// Semantics: the rebatching of a global batch to replicas.
Result<DatasetPtr> make_rebatch(DatasetPtr source, int64_t parts);
// How worker `worker` cuts its data so that every step uses `global_batch` elements in all: the sizes of its batches, one
// after the other and then over again, workers x replicas of them.
Result<std::vector<int64_t>> batch_sizes(int64_t global_batch, int64_t workers, int64_t replicas, int64_t worker);
// `count` epochs as one; negative for ever.
Result<DatasetPtr> make_repeat(DatasetPtr source, int64_t count);
Result<DatasetPtr> make_take(DatasetPtr source, int64_t count);
Result<DatasetPtr> make_skip(DatasetPtr source, int64_t count);
// Component `component` as float32, divided by `divisor` (255 for pixels).
Result<DatasetPtr> make_scale(DatasetPtr source, int component, float divisor);
// Component `component` as float32, float64, int32 or int64. Reals lose their fraction and are held to
// the range of the integer; NaN becomes 0.
Result<DatasetPtr> make_cast(DatasetPtr source, int component, DType dtype);
// One data set of several, which it takes. zip: the components of all, side by side, until the first ends. concatenate: one after the
// other. interleave: `block` elements of each in turn, without those that have ended. The last two want the same types everywhere.
Result<DatasetPtr> make_zip(std::vector<DatasetPtr> parts);
Result<DatasetPtr> make_concatenate(std::vector<DatasetPtr> parts);
Result<DatasetPtr> make_interleave(std::vector<DatasetPtr> parts, int64_t block);
// Keeps the elements in memory: every epoch is the first one again.
Result<DatasetPtr> make_cache(DatasetPtr source, MemoryBudget* budget = nullptr);
// Windows of `size` elements stacked along a new first dimension: number k holds elements k * shift, k * shift + stride, ... Those at the
// end that are not whole are handed out, or dropped.
struct WindowOptions {
  int64_t size = 1;
  int64_t shift = 1;
  int64_t stride = 1;
  bool drop_remainder = false;
};
Result<DatasetPtr> make_window(DatasetPtr source, WindowOptions options);
// As make_batch for elements of different sizes: each is made as large as the largest of its batch, with `padding`.
Result<DatasetPtr> make_padded_batch(DatasetPtr source, int64_t size, bool drop_remainder, double padding);
// Padded batches of elements of like length, which is the first dimension of `component`: bucket i takes lengths from boundary i - 1 up to,
// not including, boundary i, and is handed out when it has sizes[i]; what is left at the end comes in the order of the buckets.
struct BucketOptions {
  size_t component = 0;
  std::vector<int64_t> boundaries{};
  std::vector<int64_t> sizes{};  // one more
  bool drop_remainder = false;
  double padding = 0;
};
Result<DatasetPtr> make_buckets(DatasetPtr source, BucketOptions options);
// Keeps up to `count` elements ready, made by a thread of its own that starts with the first next() and
// ends, after the element in hand, with restart() or the data set.
Result<DatasetPtr> make_prefetch(DatasetPtr source, int64_t count);

}  // namespace dtg
