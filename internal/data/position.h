// DataPosition: where a pipeline stands, so that another one of the same stages, seeds and sources can go on there: how many elements
// it has handed out since its last restart, and the epoch that each of its stages was in then. Orders are functions of seeds and epochs, so
// nothing else is needed: no buffer is kept, and going there reads no data where elements are rows.
//
// Reading keeps a pipeline together with its position. One thread at a time, as the pipeline.
#pragma once

#include <atomic>

#include "data/dataset.h"

namespace dtg {

// The epoch of each stage that has a say in what comes when: a stage, then those below it.
std::vector<int64_t> epochs_of(const Dataset& data);

struct DataPosition {
  int64_t elements = 0;         // since the last restart
  std::vector<int64_t> epochs;  // as it began, by stage, the last one first; those that count none have 0
};

class Reading {
 public:
  explicit Reading(DatasetPtr data) : data_(std::move(data)), width_(data_ ? data_->spec().size() : 0) {}

  Dataset& data() const { return *data_; }
  // Null after take().
  bool valid() const { return data_ != nullptr; }
  // Gives the pipeline up, to be made longer, and takes it back. What was handed out before is then no position of the longer one.
  DatasetPtr take();
  void put(DatasetPtr data) {
    data_ = std::move(data);
    width_.store(data_->spec().size(), std::memory_order_relaxed);
  }
  // What was taken does not come back.
  void lose() { width_.store(0, std::memory_order_relaxed); }
  // What its numbers mean: a schema of data/csv.h; empty where nobody knows. Transforms leave it.
  const std::string& schema() const { return schema_; }
  void set_schema(std::string schema) { schema_ = std::move(schema); }
  // Tensors per element, as it last was. Any thread: a second one that asks while this is in use is refused by what it does next.
  size_t width() const { return width_.load(std::memory_order_relaxed); }

  Result<bool> next(Element& element);
  // Whether it has said that the data are over, and nothing has begun it anew since.
  bool over() const { return over_; }
  Status restart();
  // At the end of the data, where it has handed out nothing: which batch has dropped all there was, to be said after a colon; empty: there
  // was nothing, or nobody knows.
  std::string why_nothing() const;
  // At the end of the data, where it has handed out something: how many elements batches have dropped, and which, to be said after a colon
  // of `what` happened to them. Empty: none.
  std::string tell_dropped(const char* what) const;
  Status no_elements(const char* attempted) const;

  // FAILED_PRECONDITION for one that was made longer after elements had been handed out.
  Result<DataPosition> position() const;
  // Wherever it stands now. INVALID_ARGUMENT for what is no position of such a pipeline; then nothing has changed. After any other
  // error, restart() makes it usable again.
  Status move_to(const DataPosition& position);
  // The stages in words, the source first: "1500 of uint8[8,8] int64[], shuffle(0, 7), batch(32)". Pipelines of equal words hand out equal
  // elements, if their sources do.
  std::string text() const;

 private:
  DatasetPtr data_;
  std::string schema_;
  std::atomic<size_t> width_;
  DataPosition at_;
  bool begun_ = false;  // since the last restart; at_.epochs is valid
  bool lost_ = false;   // until the next restart, nobody can tell where it stands
  bool over_ = false;
};

}  // namespace dtg
