// Features of tf.Example from JSON; see tfrecord.h. Pure.
#include "base/json.h"
#include "data/tfrecord.h"

namespace dtg {
namespace {

Status read_shape(const Json& json, ExampleFeature& feature) {
  const Json::Array* const items = json.array();
  if (!items) return invalid_argument("features: \"shape\" of \"%.100s\" is %s, not a list", feature.name.c_str(), json.kind());
  std::vector<int64_t> dims;
  for (const Json& item : *items) {
    if (!item.integer())
      return invalid_argument("features: a dimension of \"%.100s\" is %s, not a whole number", feature.name.c_str(), item.kind());
    dims.push_back(*item.integer());
  }
  auto shape = Shape::make(dims);
  if (!shape.ok()) return shape.status().with_context("features: \"" + feature.name.substr(0, 100) + "\"");
  feature.shape = shape.take();
  return {};
}

Result<ExampleFeature> read_feature(const Json& json) {
  const Json* const name = json.find("name");
  if (!name || !name->string()) return invalid_argument("features: one is %s without a \"name\"", json.kind());
  ExampleFeature feature{.name = *name->string(), .dtype = DType::invalid};
  for (const auto& [key, value] : *json.object()) {
    if (key == "dtype") {
      feature.dtype = value.string() ? dtype_from_name(*value.string()) : DType::invalid;
    } else if (key == "shape") {
      DTG_TRY(read_shape(value, feature));
    } else if (key == "default") {
      if (!value.real() && !value.integer()) {
        return invalid_argument("features: \"default\" of \"%.100s\" is %s, not a number", feature.name.c_str(), value.kind());
      }
      feature.fallback = value.real() ? *value.real() : static_cast<double>(*value.integer());
    } else if (key == "variable") {
      if (!value.boolean())
        return invalid_argument("features: \"variable\" of \"%.100s\" is %s, not true or false", feature.name.c_str(), value.kind());
      feature.variable = *value.boolean();
    } else if (key != "name") {
      return invalid_argument("features: \"%.100s\" has a \"%.100s\", which is none of name, dtype, shape, default, variable",
                              feature.name.c_str(), key.c_str());
    }
  }
  if (feature.dtype != DType::invalid) return feature;
  return invalid_argument("features: \"%.100s\" needs a \"dtype\": \"float32\", \"int64\" or \"uint8\"", feature.name.c_str());
}

}  // namespace

Result<std::vector<ExampleFeature>> read_features(std::string_view json) {
  DTG_ASSIGN(const Json parsed, parse_json(json, "features"));
  const Json::Array* const items = parsed.array();
  if (!items) return invalid_argument("features: they are %s, not a list", parsed.kind());
  std::vector<ExampleFeature> features;
  for (const Json& item : *items) {
    DTG_ASSIGN(ExampleFeature feature, read_feature(item));
    features.push_back(std::move(feature));
  }
  return features;
}

}  // namespace dtg
