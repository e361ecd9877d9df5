// dtg/data.h: data sets, each a pipeline of data/ that a handle owns; transforms replace it by the wrapped one. One
// thread at a time uses a data set.
#include "dtg/data.h"

#include <algorithm>
#include <optional>

#include "capi/data.h"
#include "capi/guard.h"
#include "data/csv.h"
#include "data/normalize.h"
#include "data/npy.h"
#include "data/split.h"
#include "data/tfrecord.h"

namespace dtg::capi {
namespace {

// A data set that another one takes, entered for the length of a call.
struct Taken {
  explicit Taken(const dtg_dataset* handle) : held(handle, HandleType::dataset) {
    if (held) turn.emplace(held->owner, Owner::Use::change);
  }
  Status check(const char* what) const {
    DTG_TRY(held.status());
    DTG_TRY(turn->status("data set"));
    DTG_TRY(held->usable());
    DTG_TRY(held->check_apart(what));
    DTG_ASSIGN(const DataPosition at, held->reading.position());
    if (at.elements == 0) return {};
    return failed_precondition("%s: elements have been taken from one of the data sets; restart it first", what);
  }
  const Held<DatasetObject> held;
  std::optional<Owner::Turn> turn;
};

// Whether a function stands between the table and the elements, which may have made the same of what differed.
bool goes_through_function(const DatasetObject& object) {
  const std::string stages = object.reading.text();
  return stages.find(", map(") != stages.npos;
}

// Elements of several tables, one after the other, mean the same only where their columns and names do.
Status check_meanings(const std::vector<std::unique_ptr<Taken>>& all, const char* what) {
  const auto knows = [](const auto& taken) { return !taken->held->reading.schema().empty(); };
  const auto first = std::ranges::find_if(all, knows);
  for (auto other = first; other != all.end(); ++other) {
    const std::string why = schemas_differ((*first)->held->reading.schema(), (*other)->held->reading.schema(), true);
    if (why.empty()) continue;
    Status differs = invalid_argument(
        "%s: number %zu is another table: %s the schema of number %zu; read it with that schema (dtg_dataset_schema), or all "
        "of them with one that has the names of all, so that their numbers mean the same",
        what, static_cast<size_t>(other - all.begin()), why.c_str(), static_cast<size_t>(first - all.begin()));
    DatasetObject& object = *all[0]->held;
    if (!goes_through_function(*(*first)->held) && !goes_through_function(*(*other)->held)) return differs;
    if (LogSink* const log = object.runtime->seams().log) log->write(LogLevel::warn, "data", differs.message());
  }
  return {};
}

// Whether the elements of several stand in the same components, one after the other.
enum class Mixes : uint8_t { no, yes };

// fn makes one pipeline of that of `handle` and those of the others, which are given up.
template <class Fn>
dtg_error* combine(dtg_dataset* handle, dtg_dataset* const* others, size_t count, const char* what, Mixes mixes, Fn&& fn) {
  return guard([&]() -> Status {
    DTG_TRY(require_array(others, count, "others"));
    std::vector<std::unique_ptr<Taken>> all;
    for (size_t i = 0; i <= count; ++i) {
      const dtg_dataset* const next = i == 0 ? handle : others[i - 1];
      for (size_t k = 0; k < i; ++k) {
        if (next && next == (k == 0 ? handle : others[k - 1])) return invalid_argument("%s: one data set is given twice", what);
      }
      all.push_back(std::make_unique<Taken>(next));
      DTG_TRY(all.back()->check(what));
    }
    if (mixes == Mixes::yes) DTG_TRY(check_meanings(all, what));
    DatasetObject& object = *all[0]->held;
    std::vector<Ref<Runtime>> lent = object.lent;
    std::vector<DatasetPtr> parts(all.size());
    for (size_t i = 1; i < all.size(); ++i) {
      lent.push_back(all[i]->held->runtime);
      lent.insert(lent.end(), all[i]->held->lent.begin(), all[i]->held->lent.end());
    }
    const Status part_of = failed_precondition("the data set is a part of another one now, which was made of it: %s", what);
    object.lent = std::move(lent);
    for (size_t i = 0; i < all.size(); ++i) parts[i] = all[i]->held->reading.take();
    for (size_t i = 1; i < all.size(); ++i) {
      object.left_out.join(all[i]->held->left_out);
      static_cast<void>(all[i]->held->give_up(part_of));
    }
    auto made = fn(std::move(parts));
    if (!made.ok()) return object.give_up(made.status());
    object.reading.put(made.take());
    return {};
  });
}

Result<int> component_of(const DatasetObject& object, size_t component) {
  const size_t count = object.reading.data().spec().size();
  if (component < count) return static_cast<int>(component);
  return out_of_range("component %lld: elements have %zu", static_cast<long long>(component), count);
}

Result<CsvOptions> read_csv_options(const dtg_csv_options* given) {
  dtg_csv_options c = DTG_CSV_OPTIONS_INIT;
  if (given) DTG_TRY(read_struct(given, sizeof(dtg_csv_options), "dtg_csv_options", &c));
  DTG_TRY(check_field("dtg_csv_options: `header`", c.header, 2));
  DTG_TRY(check_field("dtg_csv_options: `missing`", c.missing, DTG_MISSING_MEAN));
  DTG_TRY(check_field("dtg_csv_options: `delimiter`, a character of ASCII,", c.delimiter, 127));
  CsvOptions options;
  options.header = static_cast<CsvHeader>(c.header);
  options.missing = missing_of(c.missing);
  if (c.delimiter) options.delimiter = static_cast<char>(c.delimiter);
  options.label = text(c.label, c.label_len);
  DTG_ASSIGN(options.columns, read_columns(c.columns, c.num_columns));
  const std::string_view schema = text(c.schema, c.schema_len);
  if (!schema.empty()) DTG_TRY(read_csv_schema(schema, options));
  return options;
}

Result<JsonLinesOptions> read_json_lines_options(const dtg_json_lines_options* given) {
  dtg_json_lines_options c = DTG_JSON_LINES_OPTIONS_INIT;
  if (given) DTG_TRY(read_struct(given, sizeof(dtg_json_lines_options), "dtg_json_lines_options", &c));
  DTG_TRY(check_field("dtg_json_lines_options: `missing`", c.missing, DTG_MISSING_MEAN));
  DTG_TRY(check_field("dtg_json_lines_options: `skip_bad_rows`", c.skip_bad_rows, 1));
  JsonLinesOptions options;
  options.skip_bad = c.skip_bad_rows != 0;
  options.table.missing = missing_of(c.missing);
  options.table.label = text(c.label, c.label_len);
  DTG_ASSIGN(options.table.columns, read_columns(c.columns, c.num_columns));
  const std::string_view schema = text(c.schema, c.schema_len);
  if (!schema.empty()) DTG_TRY(read_csv_schema(schema, options.table));
  return options;
}

Result<SplitOptions> read_split(const dtg_split* given) {
  dtg_split c = DTG_SPLIT_INIT;
  if (given) DTG_TRY(read_struct(given, sizeof(dtg_split), "dtg_split", &c));
  if (c.folds != 0 && c.fraction != 0) {
    return invalid_argument(
        "split a data set: %d folds and a fraction of %g; one of them is held out, or a share: give one of the two, and 0 for "
        "the other",
        c.folds, c.fraction);
  }
  SplitOptions options;
  if (c.fraction != 0) options.fraction = c.fraction;
  options.seed = c.seed;
  options.folds = c.folds;
  options.fold = c.fold;
  // One beyond what can be stays so, for the message.
  if (c.stratify) options.classes = static_cast<int>(std::min<size_t>(c.classes, 1 << 20));
  return options;
}

// A loop of the host's own is over before its first step then, and looks like one that has trained. Once, as it may well be meant.
void warn_of_nothing(DatasetObject& object) {
  const std::string why = object.warned ? "" : object.reading.why_nothing();
  if (why.empty()) return;
  object.warned = true;
  if (LogSink* const log = object.runtime->seams().log) log->write(LogLevel::warn, "data", "the data ended without an element" + why);
}

// A loop that forgot to begin the next epoch, or that comes behind a fit, is over before its first step too. Once, as it may be meant.
void warn_of_end(DatasetObject& object) {
  if (object.warned_of_end) return;
  object.warned_of_end = true;
  LogSink* const log = object.runtime->seams().log;
  if (!log) return;
  log->write(LogLevel::warn, "data",
             "next element: the data set (" + object.reading.text() +
                 ") had come to its end before, and gives nothing until dtg_dataset_restart begins the next epoch");
}

}  // namespace

Result<std::vector<std::string>> read_texts(const char* const* texts, size_t count, const char* all, const char* one) {
  DTG_TRY(require_array(texts, count, all));
  std::vector<std::string> list;
  for (size_t i = 0; i < count; ++i) {
    DTG_TRY(require(texts[i], one));
    list.emplace_back(texts[i]);
  }
  return list;
}

Result<std::vector<std::string>> read_columns(const char* const* columns, size_t count) {
  if (columns && count == 0) return invalid_argument("columns is given with 0 of them; name those to read, or give NULL for all");
  return read_texts(columns, count, "columns", "an entry of columns");
}

Status check_field(const char* field, int32_t value, int32_t most) {
  if (value >= 0 && value <= most) return {};
  return invalid_argument("%s is %d; it may be 0 to %d", field, value, most);
}

CsvMissing missing_of(int32_t number) {
  switch (number) {
    case DTG_MISSING_DROP: return CsvMissing::drop_row;
    case DTG_MISSING_KEEP: return CsvMissing::keep;
    case DTG_MISSING_MEAN: return CsvMissing::mean;
    default: return CsvMissing::refuse;
  }
}

// All handles or none.
Status give_tensors(const Element& element, dtg_tensor** tensors) {
  struct Given {
    std::vector<dtg_tensor*> list;
    ~Given() {  // what was not handed on: there was no memory for the rest
      for (dtg_tensor* tensor : list) release_handle(tensor, HandleType::tensor);
    }
  } given{std::vector<dtg_tensor*>(element.size())};
  for (size_t i = 0; i < element.size(); ++i) {
    DTG_TRY(give(HandleType::tensor, Ref<TensorObject>::adopt(TensorObject::make(element[i])), &given.list[i]));
  }
  std::ranges::copy(given.list, tensors);
  given.list.clear();
  return {};
}

}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_dataset_tensors(dtg_runtime* runtime, const dtg_tensor* const* tensors, size_t num_tensors, dtg_dataset** out) noexcept {
  return make_source(runtime, out, [&](const Seams&, Found&) -> Result<DatasetPtr> {
    DTG_TRY(require_array(tensors, num_tensors, "tensors"));
    std::vector<Tensor> list;
    for (size_t i = 0; i < num_tensors; ++i) {
      const Held<TensorObject> held(tensors[i], HandleType::tensor);
      DTG_TRY(held.status());
      if (held->tensor.dtype() == DType::string)
        return unimplemented(
            "a data set of strings: tensor %zu is %s; give it numbers in their place: look the texts up before, by a run of the layer "
            "that gives a vocabulary numbers (RECIPES.md, \"Texts that are fed\"), or read a table, whose names become numbers",
            i, held->tensor.text().c_str());
      list.push_back(held->tensor);
    }
    return make_slices(list);
  });
}

dtg_error* dtg_dataset_range(dtg_runtime* runtime, int64_t start, int64_t stop, int64_t step, dtg_dataset** out) noexcept {
  return make_source(runtime, out, [&](const Seams&, Found&) { return make_range(start, stop, step); });
}

dtg_error* dtg_dataset_idx(dtg_runtime* runtime, const char* const* paths, size_t num_paths, dtg_dataset** out) noexcept {
  return make_source(runtime, out, [&](const Seams& seams, Found&) -> Result<DatasetPtr> {
    DTG_ASSIGN(const auto list, read_texts(paths, num_paths, "paths", "an entry of paths"));
    return make_idx(*seams.disk, list, seams.budget);
  });
}

dtg_error* dtg_dataset_npy(dtg_runtime* runtime, const char* const* paths, size_t num_paths, dtg_dataset** out) noexcept {
  return make_source(runtime, out, [&](const Seams& seams, Found&) -> Result<DatasetPtr> {
    DTG_ASSIGN(const auto list, read_texts(paths, num_paths, "paths", "an entry of paths"));
    return make_npy(*seams.disk, list, seams.budget);
  });
}

dtg_error* dtg_dataset_npz(dtg_runtime* runtime, const char* path, size_t path_len, const char* const* names, size_t num_names,
                           dtg_dataset** out) noexcept {
  return make_source(runtime, out, [&](const Seams& seams, Found&) -> Result<DatasetPtr> {
    DTG_ASSIGN(const std::string file, read_path(path, path_len));
    DTG_ASSIGN(const auto list, read_texts(names, num_names, "names", "an entry of names"));
    return make_npz(*seams.disk, file, list, seams.budget);
  });
}

dtg_error* dtg_dataset_tfrecord(dtg_runtime* runtime, const char* const* paths, size_t num_paths, const char* features, size_t features_len,
                                dtg_dataset** out) noexcept {
  return make_source(runtime, out, [&](const Seams& seams, Found&) -> Result<DatasetPtr> {
    DTG_ASSIGN(const auto list, read_texts(paths, num_paths, "paths", "an entry of paths"));
    DTG_TRY(require(features, "features"));
    DTG_ASSIGN(const auto wanted, read_features(text(features, features_len)));
    return make_tfrecord(*seams.disk, list, wanted);
  });
}

dtg_error* dtg_dataset_json_lines(dtg_runtime* runtime, const char* path, size_t path_len, const dtg_json_lines_options* options,
                                  dtg_dataset** out) noexcept {
  return make_source(runtime, out, [&](const Seams& seams, Found& found) -> Result<DatasetPtr> {
    DTG_ASSIGN(const std::string file, read_path(path, path_len));
    DTG_ASSIGN(JsonLinesOptions read, read_json_lines_options(options));
    read.table.budget = seams.budget;
    read.table.log = seams.log;
    return make_json_lines(*seams.disk, file, read, found.left_out, &found.schema);
  });
}

dtg_error* dtg_dataset_csv(dtg_runtime* runtime, const char* path, size_t path_len, const dtg_csv_options* options,
                           dtg_dataset** out) noexcept {
  return make_source(runtime, out, [&](const Seams& seams, Found& found) -> Result<DatasetPtr> {
    DTG_ASSIGN(const std::string file, read_path(path, path_len));
    DTG_ASSIGN(CsvOptions read, read_csv_options(options));
    read.budget = seams.budget;
    read.log = seams.log;
    return make_csv(*seams.disk, file, read, &found.schema, &found.left_out);
  });
}

dtg_dataset* dtg_dataset_retain(dtg_dataset* dataset) noexcept { return retain_handle(dataset, HandleType::dataset); }
void dtg_dataset_release(dtg_dataset* dataset) noexcept { release_handle(dataset, HandleType::dataset); }

dtg_error* dtg_dataset_shuffle(dtg_dataset* dataset, int64_t buffer, uint64_t seed) noexcept {
  return transform(dataset, [&](DatasetPtr source) { return make_shuffle(std::move(source), buffer, seed); });
}
dtg_error* dtg_dataset_shuffle_once(dtg_dataset* dataset, int64_t buffer, uint64_t seed) noexcept {
  return transform(dataset, [&](DatasetPtr source) { return make_shuffle(std::move(source), buffer, seed, false); });
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

dtg_error* dtg_dataset_zip(dtg_dataset* dataset, dtg_dataset* const* others, size_t num_others) noexcept {
  return combine(dataset, others, num_others, "zip data sets", Mixes::no,
                 [](std::vector<DatasetPtr> parts) { return make_zip(std::move(parts)); });
}
dtg_error* dtg_dataset_concatenate(dtg_dataset* dataset, dtg_dataset* const* others, size_t num_others) noexcept {
  return combine(dataset, others, num_others, "concatenate data sets", Mixes::yes,
                 [](std::vector<DatasetPtr> parts) { return make_concatenate(std::move(parts)); });
}
dtg_error* dtg_dataset_interleave(dtg_dataset* dataset, dtg_dataset* const* others, size_t num_others, int64_t block) noexcept {
  return combine(dataset, others, num_others, "interleave data sets", Mixes::yes,
                 [&](std::vector<DatasetPtr> parts) { return make_interleave(std::move(parts), block); });
}

dtg_error* dtg_dataset_cache(dtg_dataset* dataset) noexcept {
  return with_dataset(dataset, [&](DatasetObject& object) -> Status {
    auto longer = make_cache(object.reading.take(), object.runtime->seams().budget);
    if (!longer.ok()) return object.give_up(longer.status());
    object.reading.put(longer.take());
    return {};
  });
}
dtg_error* dtg_dataset_window(dtg_dataset* dataset, int64_t size, int64_t shift, int64_t stride, int32_t drop_remainder) noexcept {
  return transform(dataset, [&](DatasetPtr source) { return make_window(std::move(source), {size, shift, stride, drop_remainder != 0}); });
}
dtg_error* dtg_dataset_padded_batch(dtg_dataset* dataset, int64_t size, int32_t drop_remainder, double padding) noexcept {
  return transform(dataset, [&](DatasetPtr source) { return make_padded_batch(std::move(source), size, drop_remainder != 0, padding); });
}
dtg_error* dtg_dataset_bucket_batch(dtg_dataset* dataset, size_t component, const int64_t* boundaries, size_t num_boundaries,
                                    const int64_t* sizes, size_t num_sizes, int32_t drop_remainder, double padding) noexcept {
  return with_dataset(dataset, [&](DatasetObject& object) -> Status {
    DTG_TRY(require_array(boundaries, num_boundaries, "boundaries"));
    DTG_TRY(require_array(sizes, num_sizes, "sizes"));
    DTG_TRY(component_of(object, component).status());
    BucketOptions options{component, {}, {}, drop_remainder != 0, padding};
    options.boundaries.assign(boundaries, boundaries + num_boundaries);
    options.sizes.assign(sizes, sizes + num_sizes);
    auto longer = make_buckets(object.reading.take(), std::move(options));
    if (!longer.ok()) return object.give_up(longer.status());
    object.reading.put(longer.take());
    return {};
  });
}

dtg_error* dtg_dataset_scale(dtg_dataset* dataset, size_t component, double divisor) noexcept {
  return with_dataset(dataset, [&](DatasetObject& object) -> Status {
    DTG_ASSIGN(const int index, component_of(object, component));
    auto scaled = make_scale(object.reading.take(), index, static_cast<float>(divisor));
    if (!scaled.ok()) return object.give_up(scaled.status());
    object.reading.put(scaled.take());
    return {};
  });
}

dtg_error* dtg_dataset_cast(dtg_dataset* dataset, size_t component, dtg_dtype dtype) noexcept {
  return with_dataset(dataset, [&](DatasetObject& object) -> Status {
    DTG_ASSIGN(const int index, component_of(object, component));
    if (!dtype_is_known(dtype)) return invalid_argument("%d is not an element type; use the DTG_ constants", dtype);
    auto cast = make_cast(object.reading.take(), index, static_cast<DType>(dtype));
    if (!cast.ok()) return object.give_up(cast.status());
    object.reading.put(cast.take());
    return {};
  });
}

dtg_error* dtg_dataset_normalize(dtg_dataset* dataset, size_t component, const char* normalization, size_t normalization_len) noexcept {
  return with_dataset(dataset, [&](DatasetObject& object) -> Status {
    DTG_ASSIGN(const int index, component_of(object, component));
    DTG_TRY(require(normalization, "normalization"));
    DTG_ASSIGN(Normalization numbers, Normalization::parse(text(normalization, normalization_len)));
    auto normalized = make_normalize(object.reading.take(), index, std::move(numbers));
    if (!normalized.ok()) return object.give_up(normalized.status());
    object.reading.put(normalized.take());
    return {};
  });
}

dtg_error* dtg_dataset_fit_normalization(const dtg_dataset* dataset, size_t component, int32_t kind, dtg_string** out) noexcept {
  return with_dataset(dataset, [&](DatasetObject& object) -> Status {
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(const int index, component_of(object, component));
    if (kind != DTG_NORMALIZE_STANDARD && kind != DTG_NORMALIZE_RANGE) {
      return invalid_argument("fit a normalization: kind %d; use the DTG_NORMALIZE_ constants", kind);
    }
    DTG_ASSIGN(const Normalization made, fit_normalization(object.reading, index, static_cast<Normalization::Kind>(kind)));
    return give(HandleType::string, make_ref<StringObject>(made.text()), out);
  });
}

dtg_error* dtg_dataset_split(const dtg_dataset* dataset, const dtg_split* options, dtg_dataset** train, dtg_dataset** held_out) noexcept {
  return with_dataset(dataset, [&](DatasetObject& object) -> Status {
    DTG_TRY(require(train, "train"));
    DTG_TRY(require(held_out, "held_out"));
    DTG_ASSIGN(const SplitOptions read, read_split(options));
    DTG_ASSIGN(Split made, split_rows(object.reading, read));
    const auto part = [&](DatasetPtr rows) {
      auto made_object = make_ref<DatasetObject>(object.runtime, std::move(rows));
      made_object->reading.set_schema(object.reading.schema());
      return made_object;
    };
    auto to_train = part(std::move(made.train)), to_test = part(std::move(made.held_out));
    dtg_dataset* first = nullptr;
    DTG_TRY(give(HandleType::dataset, std::move(to_train), &first));
    const Status second = give(HandleType::dataset, std::move(to_test), held_out);
    if (second.ok()) *train = first;
    else release_handle(first, HandleType::dataset);
    return second;
  });
}

dtg_error* dtg_dataset_bad_rows(const dtg_dataset* dataset, int64_t* count, dtg_string** why) noexcept {
  return look_at_dataset(dataset, [&](DatasetObject& object) -> Status {
    DTG_TRY(require(count, "count"));
    std::string reasons;
    for (const std::string& reason : object.left_out.reasons) reasons += reason + "\n";
    if (why) DTG_TRY(give(HandleType::string, make_ref<StringObject>(std::move(reasons)), why));
    *count = object.left_out.count;
    return {};
  });
}

dtg_error* dtg_dataset_schema(const dtg_dataset* dataset, dtg_string** out) noexcept {
  return look_at_dataset(dataset, [&](DatasetObject& object) -> Status {
    DTG_TRY(require(out, "out"));
    if (object.reading.schema().empty())
      return failed_precondition("schema: the data set does not come from a CSV file, from JSON lines or from an Arrow stream");
    return give(HandleType::string, make_ref<StringObject>(object.reading.schema()), out);
  });
}

dtg_error* dtg_dataset_next(dtg_dataset* dataset, dtg_tensor** tensors, size_t num_tensors, int32_t* more) noexcept {
  return read_dataset(dataset, [&](DatasetObject& object) -> Status {
    DTG_TRY(require(more, "more"));
    DTG_TRY(require_array(tensors, num_tensors, "tensors"));
    const size_t count = object.reading.data().spec().size();
    if (num_tensors != count) return invalid_argument("next element: room for %zu tensors, but elements have %zu", num_tensors, count);
    Element element;
    const bool over = object.reading.over();
    DTG_ASSIGN(const bool got, object.reading.next(element));
    if (got) DTG_TRY(give_tensors(element, tensors));
    else if (over) warn_of_end(object);
    else warn_of_nothing(object);
    *more = got ? 1 : 0;
    return {};
  });
}

dtg_error* dtg_dataset_restart(dtg_dataset* dataset) noexcept {
  return read_dataset(dataset, [](DatasetObject& object) { return object.reading.restart(); });
}

dtg_error* dtg_dataset_position(const dtg_dataset* dataset, int64_t* numbers, size_t cap, size_t* count) noexcept {
  return look_at_dataset(dataset, [&](DatasetObject& object) -> Status {
    DTG_TRY(require_array(numbers, cap, "numbers"));
    DTG_TRY(require(count, "count"));
    DTG_ASSIGN(const DataPosition at, object.reading.position());
    if (cap > 0) numbers[0] = at.elements;
    for (size_t i = 0; i < at.epochs.size() && i + 1 < cap; ++i) numbers[i + 1] = at.epochs[i];
    *count = 1 + at.epochs.size();
    return {};
  });
}

dtg_error* dtg_dataset_move_to(dtg_dataset* dataset, const int64_t* numbers, size_t count) noexcept {
  return with_dataset(dataset, [&](DatasetObject& object) -> Status {
    DTG_TRY(require(numbers, "numbers"));
    if (count == 0 || count > 1024) return invalid_argument("move a data set: a position of %zu numbers; give all of them", count);
    for (size_t i = 0; i < count; ++i) {
      if (numbers[i] >= 0) continue;
      return invalid_argument("move a data set: number %zu of the position is %lld, and none is below 0; give a position as it was told", i,
                              static_cast<long long>(numbers[i]));
    }
    return object.reading.move_to({numbers[0], {numbers + 1, numbers + count}});
  });
}

int64_t dtg_dataset_cardinality(const dtg_dataset* dataset) noexcept {
  const Held<DatasetObject> held(dataset, HandleType::dataset);
  if (!held) return Dataset::kUnknown;
  const Owner::Turn turn(held->owner, Owner::Use::change);
  return turn.inside() && held->reading.valid() ? held->reading.data().cardinality() : Dataset::kUnknown;
}

size_t dtg_dataset_component_count(const dtg_dataset* dataset) noexcept {
  const Held<DatasetObject> held(dataset, HandleType::dataset);
  return held ? held->reading.width() : 0;
}

dtg_error* dtg_dataset_component(const dtg_dataset* dataset, size_t i, dtg_dtype* dtype, int64_t* dims, size_t cap,
                                 int32_t* rank) noexcept {
  return with_dataset(dataset, [&](DatasetObject& object) -> Status {
    DTG_TRY(require(rank, "rank"));
    DTG_TRY(require_array(dims, cap, "dims"));
    DTG_ASSIGN(const int index, component_of(object, i));
    const ComponentSpec& spec = object.reading.data().spec()[static_cast<size_t>(index)];
    if (dtype) *dtype = static_cast<dtg_dtype>(spec.dtype);
    *rank = spec.shape.rank();
    for (int d = 0; d < spec.shape.rank() && static_cast<size_t>(d) < cap; ++d) dims[d] = spec.shape.dim(d);
    return {};
  });
}

}  // extern "C"
