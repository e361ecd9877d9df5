// Looks at all elements once for means and deviations (Welford's way, in double), and reads and writes them as JSON. See normalize.h.
#include "data/normalize.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/json.h"

namespace dtg {
namespace {

constexpr size_t kFeaturesMax = size_t{1} << 16;

struct Feature {
  double mean = 0, squares = 0;
  double least = std::numeric_limits<double>::infinity(), most = -std::numeric_limits<double>::infinity();
  int64_t count = 0;

  void add(double x) {
    ++count;
    const double away = x - mean;
    mean += away / static_cast<double>(count);
    squares += away * (x - mean);
    least = std::min(least, x);
    most = std::max(most, x);
  }
};

double number_at(const Tensor& tensor, int64_t i) {
  switch (tensor.dtype()) {
    case DType::u8: return tensor.as<uint8_t>()[i];
    case DType::i8: return tensor.as<int8_t>()[i];
    case DType::u16: return tensor.as<uint16_t>()[i];
    case DType::i16: return tensor.as<int16_t>()[i];
    case DType::u32: return tensor.as<uint32_t>()[i];
    case DType::i32: return tensor.as<int32_t>()[i];
    case DType::u64: return static_cast<double>(tensor.as<uint64_t>()[i]);
    case DType::i64: return static_cast<double>(tensor.as<int64_t>()[i]);
    case DType::f64: return tensor.as<double>()[i];
    default: return tensor.as<float>()[i];
  }
}

Result<size_t> features_of(const Dataset& data, int component) {
  if (component < 0 || static_cast<size_t>(component) >= data.spec().size()) {
    return invalid_argument("fit a normalization to component %d of a data set: its elements have %zu components", component,
                            data.spec().size());
  }
  const ComponentSpec& spec = data.spec()[static_cast<size_t>(component)];
  if (!kReal.has(spec.dtype) || spec.dtype == DType::f16 || spec.dtype == DType::bf16) {
    return unimplemented("fit a normalization to component %d of a data set: it is %s", component, dtype_name(spec.dtype));
  }
  // The last dimension is that of the features, unless it is that of a batch of numbers.
  const int rank = spec.shape.rank();
  const int64_t last = spec.shape.has_rank() && rank > data.batch_rank() ? spec.shape.dim(rank - 1) : 1;
  if (last > static_cast<int64_t>(kFeaturesMax)) {
    return invalid_argument("fit a normalization to component %d of a data set: %lld features, at most %zu are supported; scale them all "
                            "alike",
                            component, static_cast<long long>(last), kFeaturesMax);
  }
  return static_cast<size_t>(std::max<int64_t>(1, last));
}

Status look(Dataset& data, int component, std::vector<Feature>& features) {
  Element element;
  for (int64_t row = 0;; ++row) {
    DTG_ASSIGN(const bool more, data.next(element));
    if (!more) break;
    const Tensor& tensor = element[static_cast<size_t>(component)];
    for (int64_t i = 0, count = tensor.count(); i < count; ++i) {
      const double x = number_at(tensor, i);
      if (!std::isfinite(x)) {
        return invalid_argument("fit a normalization to component %d of a data set: element %lld of what it gives now has %g as feature "
                                "%lld, counted from 0; drop or replace such values where they are read, for CSV by the option \"missing\"",
                                component, static_cast<long long>(row), x, static_cast<long long>(i));
      }
      features[static_cast<size_t>(i) % features.size()].add(x);
    }
  }
  if (features[0].count == 0)
    return invalid_argument("fit a normalization to component %d of a data set: there are no elements", component);
  return {};
}

Result<std::vector<float>> read_numbers(const Json& json, const char* key) {
  const Json* const list = json.find(key);
  if (!list || !list->array() || list->array()->empty() || list->array()->size() > kFeaturesMax) {
    return invalid_argument("a normalization without a list of numbers \"%s\"; give what dtg_dataset_fit_normalization answered", key);
  }
  std::vector<float> numbers;
  for (const Json& item : *list->array()) {
    const double value = item.real() ? *item.real() : item.integer() ? static_cast<double>(*item.integer()) : NAN;
    numbers.push_back(static_cast<float>(value));
    if (!std::isfinite(numbers.back()))
      return invalid_argument("a normalization whose \"%s\" holds %s; numbers are needed", key, item.text().c_str());
  }
  return numbers;
}

}  // namespace

std::string Normalization::text() const {
  const auto list = [](const std::vector<float>& numbers) {
    Json::Array array;
    for (const float number : numbers) array.emplace_back(static_cast<double>(number));
    return array;
  };
  return Json(Json::Object{{"normalization", kind}, {"shift", list(shift)}, {"scale", list(scale)}}).text();
}

Result<Normalization> Normalization::parse(std::string_view text) {
  DTG_ASSIGN(const Json json, parse_json(text, "normalization", {.bytes_max = size_t{8} << 20, .values_max = 3 * kFeaturesMax}));
  Normalization made;
  if (const Json* const kind = json.find("normalization"); kind && kind->string()) made.kind = *kind->string();
  DTG_ASSIGN(made.shift, read_numbers(json, "shift"));
  DTG_ASSIGN(made.scale, read_numbers(json, "scale"));
  if (made.shift.size() != made.scale.size()) {
    return invalid_argument("a normalization of %zu shifts and %zu scales; one of each per feature is needed", made.shift.size(),
                            made.scale.size());
  }
  if (std::ranges::find(made.scale, 0.0f) != made.scale.end()) return invalid_argument("a normalization with a scale of 0");
  return made;
}

void Normalization::apply(const float* from, float* to, int64_t count) const {
  const size_t features = shift.size();
  size_t feature = 0;
  for (int64_t i = 0; i < count; ++i) {
    to[i] = (from[i] - shift[feature]) / scale[feature];
    if (++feature == features) feature = 0;
  }
}

Result<Normalization> fit_normalization(Reading& data, int component, Normalization::Kind kind) {
  if (!data.valid()) return failed_precondition("fit a normalization: a transform of the data set has failed");
  if (data.data().cardinality() == Dataset::kInfinite) {
    return invalid_argument("fit a normalization: the data set never ends; do it before repeat");
  }
  DTG_ASSIGN(const size_t count, features_of(data.data(), component));
  DTG_ASSIGN(const DataPosition before, data.position());
  DTG_TRY(data.restart());
  std::vector<Feature> features(count);
  const Status looked = look(data.data(), component, features);
  DTG_TRY(data.move_to(before));
  DTG_TRY(looked);
  Normalization made;
  const bool standard = kind == Normalization::Kind::standard;
  made.kind = standard ? "standard" : "range";
  for (const Feature& feature : features) {
    made.shift.push_back(static_cast<float>(standard ? feature.mean : feature.least));
    const auto scale =
        static_cast<float>(standard ? std::sqrt(feature.squares / static_cast<double>(feature.count)) : feature.most - feature.least);
    made.scale.push_back(scale > 0 && std::isfinite(scale) ? scale : 1.0f);
  }
  return made;
}

}  // namespace dtg
