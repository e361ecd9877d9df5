// A data set source: TFRecord files of tf.Example messages, plain or gzip. Files are read as a stream, one record at a
// time; every checksum is verified. Belongs to the thread of its pipeline.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace dtg {

// One component of the elements: float32 from a float_list, int64 from an int64_list, uint8 from the one
// string of a bytes_list. The number of values must be that of the shape; of a feature of variable length, a multiple of it: the tensor
// is [n, shape...], and a message that lacks the feature has none, n = 0.
struct ExampleFeature {
  std::string name;
  DType dtype = DType::f32;
  Shape shape{};
  std::optional<double> fallback{};  // fills the tensor of a message that lacks the feature; not with variable length
  bool variable = false;
};

// Features from text: [{"name": "image", "dtype": "uint8", "shape": [28, 28]}, {"name": "label", "dtype": "int64", "default": 0},
// {"name": "words", "dtype": "int64", "variable": true}].
Result<std::vector<ExampleFeature>> read_features(std::string_view json);

// The features of one serialized tf.Example. `where` names it in errors.
Result<Element> parse_example(std::string_view bytes, std::span<const ExampleFeature> features, const std::string& where);

// The records of the files, in that order. `disk` must outlive the data set. For several workers give
// each its own files, or use make_shard.
Result<DatasetPtr> make_tfrecord(Disk& disk, std::span<const std::string> paths, std::span<const ExampleFeature> features);

}  // namespace dtg
