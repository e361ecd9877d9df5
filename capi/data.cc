// dtg/data.h: data sets, each a pipeline of data/ that a handle owns; transforms replace it by the wrapped one. One
// thread at a time uses a data set.
#include "dtg/data.h"

#include <algorithm>

#include "capi/guard.h"
#include "capi/objects.h"
#include "data/csv.h"
#include "data/dataset.h"

namespace dtg::capi {
namespace {

// A pipeline and the runtime it was made for. After a failed transform there is no pipeline any more, only why.
class DatasetObject final : public RefCounted {
 public:
  DatasetObject(Ref<Runtime> r, DatasetPtr d) : runtime(std::move(r)), pipeline(std::move(d)) {}
  const Ref<Runtime> runtime;
  DatasetPtr pipeline;
  Status broken;
};

template <class Fn>
dtg_error* make_source(dtg_runtime* runtime, dtg_dataset** out, Fn&& fn) {
  return guard([&]() -> Status {
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(Ref<Runtime> held, runtime_of(runtime));
    DTG_ASSIGN(DatasetPtr source, fn(*held->seams().disk));
    return give(HandleType::dataset, make_ref<DatasetObject>(std::move(held), std::move(source)), out);
  });
}

template <class Fn>
dtg_error* with_dataset(const dtg_dataset* handle, Fn&& fn) {
  return guard([&]() -> Status {
    const Held<DatasetObject> held(handle, HandleType::dataset);
    DTG_TRY(held.status());
    DTG_TRY(held->broken);
    return fn(*held);
  });
}

// fn takes the pipeline over and gives the longer one.
template <class Fn>
dtg_error* transform(dtg_dataset* handle, Fn&& fn) {
  return with_dataset(handle, [&](DatasetObject& object) -> Status {
    auto longer = fn(std::move(object.pipeline));
    if (!longer.ok()) return object.broken = longer.status();
    object.pipeline = longer.take();
    return {};
  });
}

Result<int> component_of(const DatasetObject& object, size_t component) {
  const size_t count = object.pipeline->spec().size();
  if (component < count) return static_cast<int>(component);
  return out_of_range("component %zu: elements have %zu", component, count);
}

Result<CsvOptions> read_csv_options(const dtg_csv_options* given) {
  dtg_csv_options c = DTG_CSV_OPTIONS_INIT;
  if (given) DTG_TRY(read_struct(given, sizeof(dtg_csv_options), "dtg_csv_options", &c));
  if (c.header < 0 || c.header > 2 || c.missing < 0 || c.missing > 2 || c.delimiter < 0 || c.delimiter > 127) {
    return invalid_argument("dtg_csv_options: header %d, missing %d, delimiter %d; one of them is out of range", c.header, c.missing,
                            c.delimiter);
  }
  DTG_TRY(require_array(c.columns, c.num_columns, "columns"));
  CsvOptions options;
  options.header = static_cast<CsvHeader>(c.header);
  options.missing = static_cast<CsvMissing>(c.missing);
  if (c.delimiter) options.delimiter = static_cast<char>(c.delimiter);
  options.label = text(c.label, c.label_len);
  for (size_t i = 0; i < c.num_columns; ++i) {
    DTG_TRY(require(c.columns[i], "an entry of columns"));
    options.columns.emplace_back(c.columns[i]);
  }
  return options;
}

// All handles or none.
Status give_tensors(const Element& element, dtg_tensor** tensors) {
  std::vector<dtg_tensor*> given(element.size());
  for (size_t i = 0; i < element.size(); ++i) {
    const Status status = give(HandleType::tensor, Ref<TensorObject>::adopt(TensorObject::make(element[i])), &given[i]);
    if (status.ok()) continue;
    for (size_t k = 0; k < i; ++k) release_handle(given[k], HandleType::tensor);
    return status;
  }
  std::ranges::copy(given, tensors);
  return {};
}

}  // namespace
}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_dataset_tensors(dtg_runtime* runtime, const dtg_tensor* const* tensors, size_t num_tensors, dtg_dataset** out) noexcept {
  return make_source(runtime, out, [&](Disk&) -> Result<DatasetPtr> {
    DTG_TRY(require_array(tensors, num_tensors, "tensors"));
    std::vector<Tensor> list;
    for (size_t i = 0; i < num_tensors; ++i) {
      const Held<TensorObject> held(tensors[i], HandleType::tensor);
      DTG_TRY(held.status());
      list.push_back(held->tensor);
    }
    return make_slices(list);
  });
}

dtg_error* dtg_dataset_range(dtg_runtime* runtime, int64_t start, int64_t stop, int64_t step, dtg_dataset** out) noexcept {
  return make_source(runtime, out, [&](Disk&) { return make_range(start, stop, step); });
}

dtg_error* dtg_dataset_idx(dtg_runtime* runtime, const char* const* paths, size_t num_paths, dtg_dataset** out) noexcept {
  return make_source(runtime, out, [&](Disk& disk) -> Result<DatasetPtr> {
    DTG_TRY(require_array(paths, num_paths, "paths"));
    std::vector<std::string> list;
    for (size_t i = 0; i < num_paths; ++i) {
      DTG_TRY(require(paths[i], "an entry of paths"));
      list.emplace_back(paths[i]);
    }
    return make_idx(disk, list);
  });
}

dtg_error* dtg_dataset_csv(dtg_runtime* runtime, const char* path, size_t path_len, const dtg_csv_options* options,
                           dtg_dataset** out) noexcept {
  return make_source(runtime, out, [&](Disk& disk) -> Result<DatasetPtr> {
    DTG_TRY(require(path, "path"));
    DTG_ASSIGN(const CsvOptions read, read_csv_options(options));
    return make_csv(disk, std::string(text(path, path_len)), read);
  });
}

dtg_dataset* dtg_dataset_retain(dtg_dataset* dataset) noexcept { return retain_handle(dataset, HandleType::dataset); }
void dtg_dataset_release(dtg_dataset* dataset) noexcept { release_handle(dataset, HandleType::dataset); }

dtg_error* dtg_dataset_shuffle(dtg_dataset* dataset, int64_t buffer, uint64_t seed) noexcept {
  return transform(dataset, [&](DatasetPtr source) { return make_shuffle(std::move(source), buffer, seed); });
}
dtg_error* dtg_dataset_batch(dtg_dataset* dataset, int64_t size, int32_t drop_remainder) noexcept {
  return transform(dataset, [&](DatasetPtr source) { return make_batch(std::move(source), size, drop_remainder != 0); });
}
dtg_error* dtg_dataset_shard(dtg_dataset* dataset, int64_t count, int64_t index) noexcept {
  return transform(dataset, [&](DatasetPtr source) { return make_shard(std::move(source), count, index); });
}
dtg_error* dtg_dataset_auto_shard(dtg_dataset* dataset, int64_t count, int64_t index) noexcept {
  return transform(dataset, [&](DatasetPtr source) { return make_auto_shard(std::move(source), count, index); });
}
dtg_error* dtg_dataset_rebatch(dtg_dataset* dataset, int64_t parts) noexcept {
  return transform(dataset, [&](DatasetPtr source) { return make_rebatch(std::move(source), parts); });
}
dtg_error* dtg_batch_sizes(int64_t global_batch, int64_t num_workers, int64_t replicas_per_worker, int64_t worker, int64_t* sizes,
                           size_t cap, size_t* count) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require_array(sizes, cap, "sizes"));
    DTG_TRY(require(count, "count"));
    DTG_ASSIGN(const auto all, batch_sizes(global_batch, num_workers, replicas_per_worker, worker));
    std::copy_n(all.begin(), std::min(cap, all.size()), sizes);
    *count = all.size();
    return {};
  });
}
dtg_error* dtg_dataset_repeat(dtg_dataset* dataset, int64_t count) noexcept {
  return transform(dataset, [&](DatasetPtr source) { return make_repeat(std::move(source), count); });
}
dtg_error* dtg_dataset_take(dtg_dataset* dataset, int64_t count) noexcept {
  return transform(dataset, [&](DatasetPtr source) { return make_take(std::move(source), count); });
}
dtg_error* dtg_dataset_skip(dtg_dataset* dataset, int64_t count) noexcept {
  return transform(dataset, [&](DatasetPtr source) { return make_skip(std::move(source), count); });
}
dtg_error* dtg_dataset_prefetch(dtg_dataset* dataset, int64_t count) noexcept {
  return transform(dataset, [&](DatasetPtr source) { return make_prefetch(std::move(source), count); });
}

dtg_error* dtg_dataset_scale(dtg_dataset* dataset, size_t component, double divisor) noexcept {
  return with_dataset(dataset, [&](DatasetObject& object) -> Status {
    DTG_ASSIGN(const int index, component_of(object, component));
    auto scaled = make_scale(std::move(object.pipeline), index, static_cast<float>(divisor));
    if (!scaled.ok()) return object.broken = scaled.status();
    object.pipeline = scaled.take();
    return {};
  });
}

dtg_error* dtg_dataset_cast(dtg_dataset* dataset, size_t component, dtg_dtype dtype) noexcept {
  return with_dataset(dataset, [&](DatasetObject& object) -> Status {
    DTG_ASSIGN(const int index, component_of(object, component));
    if (!dtype_is_known(dtype)) return invalid_argument("%d is not an element type; use the DTG_ constants", dtype);
    auto cast = make_cast(std::move(object.pipeline), index, static_cast<DType>(dtype));
    if (!cast.ok()) return object.broken = cast.status();
    object.pipeline = cast.take();
    return {};
  });
}

dtg_error* dtg_dataset_next(dtg_dataset* dataset, dtg_tensor** tensors, size_t num_tensors, int32_t* more) noexcept {
  return with_dataset(dataset, [&](DatasetObject& object) -> Status {
    DTG_TRY(require(more, "more"));
    DTG_TRY(require_array(tensors, num_tensors, "tensors"));
    const size_t count = object.pipeline->spec().size();
    if (num_tensors != count) return invalid_argument("next element: room for %zu tensors, but elements have %zu", num_tensors, count);
    Element element;
    DTG_ASSIGN(const bool got, object.pipeline->next(element));
    if (got) DTG_TRY(give_tensors(element, tensors));
    *more = got ? 1 : 0;
    return {};
  });
}

dtg_error* dtg_dataset_restart(dtg_dataset* dataset) noexcept {
  return with_dataset(dataset, [](DatasetObject& object) { return object.pipeline->restart(); });
}

int64_t dtg_dataset_cardinality(const dtg_dataset* dataset) noexcept {
  const Held<DatasetObject> held(dataset, HandleType::dataset);
  return held && held->pipeline ? held->pipeline->cardinality() : Dataset::kUnknown;
}

size_t dtg_dataset_component_count(const dtg_dataset* dataset) noexcept {
  const Held<DatasetObject> held(dataset, HandleType::dataset);
  return held && held->pipeline ? held->pipeline->spec().size() : 0;
}

dtg_error* dtg_dataset_component(const dtg_dataset* dataset, size_t i, dtg_dtype* dtype, int64_t* dims, size_t cap,
                                 int32_t* rank) noexcept {
  return with_dataset(dataset, [&](DatasetObject& object) -> Status {
    DTG_TRY(require(rank, "rank"));
    DTG_TRY(require_array(dims, cap, "dims"));
    DTG_ASSIGN(const int index, component_of(object, i));
    const ComponentSpec& spec = object.pipeline->spec()[static_cast<size_t>(index)];
    if (dtype) *dtype = static_cast<dtg_dtype>(spec.dtype);
    *rank = spec.shape.rank();
    for (int d = 0; d < spec.shape.rank() && static_cast<size_t>(d) < cap; ++d) dims[d] = spec.shape.dim(d);
    return {};
  });
}

}  // extern "C"
