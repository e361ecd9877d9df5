// Parses tf.Example messages: a map from names to one of three kinds of lists. Unknown features are skipped; those
// asked for are copied into tensors of their declared shape. Belongs to the thread of its pipeline.
#include "data/tfrecord.h"

#include <algorithm>

#include "base/proto.h"
#include "base/record.h"
#include "data/gzip.h"

namespace dtg {
namespace {

// Example.features, Features.feature (a map: key 1, value 2), Feature.{bytes,float,int64}_list, list.value.
constexpr uint32_t kFeatures = 1, kFeature = 1, kKey = 1, kValue = 2, kListValue = 1;
constexpr uint32_t kBytesList = 1, kFloatList = 2, kInt64List = 3;

constexpr const char* kListNames[] = {"nothing", "a bytes_list", "a float_list", "an int64_list"};

uint32_t list_of(DType dtype) {
  if (dtype == DType::f32) return kFloatList;
  if (dtype == DType::i64) return kInt64List;
  return dtype == DType::u8 ? kBytesList : 0;
}

class ExampleParser {
 public:
  ExampleParser(std::span<const ExampleFeature> features, const std::string& where)
      : features_(features), where_(where), lists_(features.size()), kinds_(features.size()) {}

  Result<Element> parse(std::string_view bytes) {
    DTG_TRY(
        each_field(bytes, [this](const ProtoField& field) { return field.number == kFeatures ? parse_features(field.bytes) : Status(); }));
    Element element;
    for (size_t i = 0; i < features_.size(); ++i) {
      DTG_ASSIGN(Tensor tensor, make(i));
      element.push_back(std::move(tensor));
    }
    return element;
  }

 private:
  template <class What>
  Status each_field(std::string_view bytes, What what) {
    ProtoReader reader(bytes, "a tf.Example");
    ProtoField field;
    for (;;) {
      auto more = reader.next(field);
      if (!more.ok()) return more.status().with_context(where_);
      if (!more.value()) return {};
      // Every part of an Example that matters is a message, a list or a string.
      DTG_TRY(what(field));
    }
  }

  Status parse_features(std::string_view bytes) {
    return each_field(bytes, [this](const ProtoField& entry) { return entry.number == kFeature ? parse_entry(entry.bytes) : Status(); });
  }

  // Notes the list of a feature that is asked for; the last one of a name counts, as in any map.
  Status parse_entry(std::string_view bytes) {
    std::string_view key, value;
    DTG_TRY(each_field(bytes, [&](const ProtoField& field) {
      if (field.number == kKey) key = field.bytes;
      if (field.number == kValue) value = field.bytes;
      return Status();
    }));
    for (size_t i = 0; i < features_.size(); ++i) {
      if (features_[i].name != key) continue;
      DTG_TRY(each_field(value, [&](const ProtoField& field) {
        if (field.number > kInt64List || field.wire != ProtoWire::bytes) return Status();
        kinds_[i] = field.number;
        lists_[i] = field.bytes;
        return Status();
      }));
    }
    return {};
  }

  Result<Tensor> make(size_t i) {
    const ExampleFeature& feature = features_[i];
    if (kinds_[i] == 0) {
      DTG_ASSIGN(const Shape shape, shape_for(i, 0));
      DTG_ASSIGN(Tensor tensor, Tensor::allocate(feature.dtype, shape));
      if (!feature.variable) DTG_TRY(fill_fallback(feature, tensor));
      return tensor;
    }
    if (kinds_[i] != list_of(feature.dtype)) {
      return data_loss("%s: feature \"%.100s\" is %s, asked for as %s", where_.c_str(), feature.name.c_str(), kListNames[kinds_[i]],
                       dtype_name(feature.dtype));
    }
    if (feature.dtype == DType::f32) return make_numbers(i, floats_, proto_append_floats);
    if (feature.dtype == DType::i64) return make_numbers(i, integers_, proto_append_integers);
    return make_bytes(i);
  }

  // What `found` values are the contents of.
  Result<Shape> shape_for(size_t i, size_t found) const {
    const ExampleFeature& feature = features_[i];
    if (!feature.variable) return feature.shape;
    const int64_t each = feature.shape.count();
    const auto all = static_cast<int64_t>(found);
    if (each == 0 ? all != 0 : all % each != 0) return wrong_count(i, found);
    std::vector<int64_t> dims{each == 0 ? 0 : all / each};
    dims.insert(dims.end(), feature.shape.dims().begin(), feature.shape.dims().end());
    return Shape::make(dims);
  }

  Status wrong_count(size_t i, size_t found) const {
    if (features_[i].variable) {
      return data_loss("%s: feature \"%.100s\" has %zu values, which are no whole number of %s%s", where_.c_str(),
                       features_[i].name.c_str(), found, dtype_name(features_[i].dtype), features_[i].shape.text().c_str());
    }
    return data_loss("%s: feature \"%.100s\" has %zu values, %s%s needs %lld", where_.c_str(), features_[i].name.c_str(), found,
                     dtype_name(features_[i].dtype), features_[i].shape.text().c_str(), static_cast<long long>(features_[i].shape.count()));
  }

  Result<Tensor> make_bytes(size_t i) {
    std::optional<std::string_view> only;
    size_t strings = 0;
    DTG_TRY(each_field(lists_[i], [&](const ProtoField& field) {
      if (field.number != kListValue || field.wire != ProtoWire::bytes) return Status();
      only = field.bytes;
      ++strings;
      return Status();
    }));
    if (strings > 1 || (strings == 0 && !features_[i].variable)) {
      return data_loss("%s: feature \"%.100s\" has %zu strings; uint8 is read from one", where_.c_str(), features_[i].name.c_str(),
                       strings);
    }
    const std::string_view bytes = only.value_or(std::string_view());
    DTG_ASSIGN(const Shape shape, shape_for(i, bytes.size()));
    if (static_cast<int64_t>(bytes.size()) != shape.count()) return wrong_count(i, bytes.size());
    DTG_ASSIGN(Tensor tensor, Tensor::allocate(DType::u8, shape));
    if (!bytes.empty()) std::memcpy(tensor.data(), bytes.data(), bytes.size());
    return tensor;
  }

  template <class T, class Append>
  Result<Tensor> make_numbers(size_t i, std::vector<T>& values, Append append) {
    values.clear();
    DTG_TRY(each_field(lists_[i], [&](const ProtoField& field) {
      return field.number == kListValue ? append(field, values).with_context(where_) : Status();
    }));
    DTG_ASSIGN(const Shape shape, shape_for(i, values.size()));
    if (static_cast<int64_t>(values.size()) != shape.count()) return wrong_count(i, values.size());
    DTG_ASSIGN(Tensor tensor, Tensor::allocate(features_[i].dtype, shape));
    std::copy(values.begin(), values.end(), tensor.as<T>());
    return tensor;
  }

  static Status proto_append_floats(const ProtoField& field, std::vector<float>& values) { return proto_append_reals(field, values); }

  Status fill_fallback(const ExampleFeature& feature, const Tensor& tensor) const {
    if (!feature.fallback) {
      return data_loss("%s: it lacks the feature \"%.100s\"; give a fallback if that is to be expected", where_.c_str(),
                       feature.name.c_str());
    }
    const double value = *feature.fallback;
    const int64_t count = tensor.count();
    if (feature.dtype == DType::f32) std::fill_n(tensor.as<float>(), count, static_cast<float>(value));
    if (feature.dtype == DType::i64) std::fill_n(tensor.as<int64_t>(), count, static_cast<int64_t>(value));
    if (feature.dtype == DType::u8) std::fill_n(tensor.as<uint8_t>(), count, static_cast<uint8_t>(value));
    return {};
  }

  const std::span<const ExampleFeature> features_;
  const std::string& where_;
  std::vector<std::string_view> lists_;  // of each feature asked for
  std::vector<uint32_t> kinds_;          // 0: not met
  std::vector<float> floats_;
  std::vector<int64_t> integers_;
};

class Records final : public Dataset {
 public:
  Records(Disk& disk, std::span<const std::string> paths, std::span<const ExampleFeature> features)
      : disk_(disk), paths_(paths.begin(), paths.end()), features_(features.begin(), features.end()) {
    for (const ExampleFeature& feature : features_) {
      ComponentSpec& component = spec_.emplace_back();
      component.dtype = feature.dtype;
      component.shape = PartialShape::of_rank(feature.shape.rank() + feature.variable);
      if (feature.variable) component.shape.set_dim(0, -1);
      for (int i = 0; i < feature.shape.rank(); ++i) component.shape.set_dim(i + feature.variable, feature.shape.dim(i));
    }
  }

  Status restart() override {
    reader_.reset();
    file_.reset();
    next_path_ = 0;
    return {};
  }

  int64_t cardinality() const override { return kUnknown; }

  Result<bool> pull(Item& item) override {
    for (;;) {
      if (!reader_) {
        if (next_path_ == paths_.size()) return false;
        DTG_ASSIGN(file_, open_plain(disk_, paths_[next_path_]));
        reader_.emplace(*file_, paths_[next_path_]);
        ++next_path_;
      }
      DTG_ASSIGN(const bool more, reader_->next(record_));
      if (more) break;
      reader_.reset();
      file_.reset();
    }
    const std::string where =
        format("read \"%s\": record %lld", paths_[next_path_ - 1].c_str(), static_cast<long long>(reader_->records() - 1));
    item.row = -1;
    DTG_ASSIGN(item.tensors, parse_example(record_, features_, where));
    return true;
  }
  // Not where the files are, which may change.
  std::string stage() const override { return "records of " + std::to_string(paths_.size()) + " files" + spec_text(); }

 private:
  Disk& disk_;
  const std::vector<std::string> paths_;
  const std::vector<ExampleFeature> features_;
  size_t next_path_ = 0;
  std::unique_ptr<FileReader> file_;
  std::optional<RecordReader> reader_;
  std::string record_;
};

}  // namespace

Result<Element> parse_example(std::string_view bytes, std::span<const ExampleFeature> features, const std::string& where) {
  return ExampleParser(features, where).parse(bytes);
}

Result<DatasetPtr> make_tfrecord(Disk& disk, std::span<const std::string> paths, std::span<const ExampleFeature> features) {
  if (features.empty()) return invalid_argument("read TFRecord files: no feature is asked for");
  if (paths.empty()) return invalid_argument("read TFRecord files: no file is given");
  for (const ExampleFeature& feature : features) {
    if (list_of(feature.dtype) == 0) {
      return invalid_argument("read TFRecord files: feature \"%.100s\" as %s; float32, int64 and uint8 are possible", feature.name.c_str(),
                              dtype_name(feature.dtype));
    }
    if (feature.variable && (feature.fallback || feature.shape.rank() == kRankMax)) {
      return invalid_argument("read TFRecord files: feature \"%.100s\" of variable length %s", feature.name.c_str(),
                              feature.fallback ? "has a default; a message without it has none of its values" : "has too many dimensions");
    }
    const double fallback = feature.fallback.value_or(0);
    const double bound = feature.dtype == DType::u8 ? 255 : 0x1p53;
    if (feature.dtype == DType::f32 || (fallback >= (feature.dtype == DType::u8 ? 0 : -bound) && fallback <= bound)) {
      continue;
    }
    return invalid_argument("read TFRecord files: feature \"%.100s\" has the fallback %g, which %s cannot hold", feature.name.c_str(),
                            fallback, dtype_name(feature.dtype));
  }
  return DatasetPtr(new Records(disk, paths, features));
}

}  // namespace dtg
