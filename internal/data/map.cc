// The stages that convert elements in C++: scale, cast and normalize. Over a table, bytes become floats while batches are
// gathered, and any other conversion is done once for the whole column; elements that are no rows are converted one by
// one. Belongs to the thread of its pipeline.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/hash.h"
#include "data/dataset.h"
#include "data/normalize.h"

namespace dtg {
namespace {

// A whole number has neither NaN nor what is beyond it; taken for 0 or for the largest, as a label that is missing, it would be learnt.
template <class To, class From>
Status convert_all(const Tensor& from, const Tensor& to) {
  const From* const source = from.as<From>();
  To* const target = to.as<To>();
  for (int64_t i = 0, count = from.count(); i < count; ++i) {
    if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
      // The plain conversion is undefined beyond these limits, which are powers of two, exact in From.
      constexpr From kBound = static_cast<From>(uint64_t{1} << (sizeof(To) * 8 - 1));
      if (!(source[i] >= -kBound && source[i] < kBound)) {
        return invalid_argument(
            "cast a component of a data set to %s: value %lld is %g, which is no such number%s", dtype_name(to.dtype()),
            static_cast<long long>(i), static_cast<double>(source[i]),
            source[i] == source[i] ? "" : "; say what stands for a missing value, or leave its row out, where the file is read");
      }
    }
    target[i] = static_cast<To>(source[i]);
  }
  return {};
}

template <class To>
Status convert_to(const Tensor& from, const Tensor& to) {
  switch (from.dtype()) {
    case DType::u8: return convert_all<To, uint8_t>(from, to);
    case DType::i8: return convert_all<To, int8_t>(from, to);
    case DType::u16: return convert_all<To, uint16_t>(from, to);
    case DType::i16: return convert_all<To, int16_t>(from, to);
    case DType::u32: return convert_all<To, uint32_t>(from, to);
    case DType::i32: return convert_all<To, int32_t>(from, to);
    case DType::u64: return convert_all<To, uint64_t>(from, to);
    case DType::i64: return convert_all<To, int64_t>(from, to);
    case DType::f32: return convert_all<To, float>(from, to);
    case DType::f64: return convert_all<To, double>(from, to);
    case DType::boolean: return convert_all<To, bool>(from, to);
    default: break;
  }
  return unimplemented("cast a component of a data set: no conversion from %s", dtype_name(from.dtype()));
}

Result<Tensor> convert(const Tensor& from, DType dtype) {
  if (from.dtype() == dtype) return from;
  DTG_ASSIGN(Tensor to, Tensor::allocate(dtype, from.shape()));
  switch (dtype) {
    case DType::f32: DTG_TRY(convert_to<float>(from, to)); break;
    case DType::f64: DTG_TRY(convert_to<double>(from, to)); break;
    case DType::i32: DTG_TRY(convert_to<int32_t>(from, to)); break;
    case DType::i64: DTG_TRY(convert_to<int64_t>(from, to)); break;
    default:
      return unimplemented("cast a component of a data set to %s: float32, float64, int32 and int64 are possible", dtype_name(dtype));
  }
  return to;
}

// What to do with one component.
struct Conversion {
  DType dtype = DType::f32;
  float divisor = 1;                                      // f32 only
  std::shared_ptr<const ByteScale> bytes = nullptr;       // for uint8 to f32
  std::shared_ptr<const Normalization> normal = nullptr;  // f32 only

  Result<Tensor> apply(const Tensor& from) const {
    if (from.dtype() == DType::u8 && bytes) {
      DTG_ASSIGN(Tensor to, Tensor::allocate(DType::f32, from.shape()));
      bytes->apply(from.as<uint8_t>(), to.as<float>(), from.count());
      return to;
    }
    DTG_ASSIGN(Tensor to, convert(from, dtype));
    if (divisor == 1 && !normal) return to;
    // The tensor may be the caller's own.
    DTG_ASSIGN(Tensor scaled, Tensor::allocate(DType::f32, from.shape()));
    if (normal) {
      normal->apply(to.as<float>(), scaled.as<float>(), to.count());
      return scaled;
    }
    for (int64_t i = 0, count = to.count(); i < count; ++i) scaled.as<float>()[i] = to.as<float>()[i] / divisor;
    return scaled;
  }
};

class Map final : public Dataset {
 public:
  Map(DatasetPtr source, size_t component, Conversion conversion)
      : source_(std::move(source)), component_(component), conversion_(std::move(conversion)) {}

  Status init() {
    spec_ = source_->spec();
    spec_[component_].dtype = conversion_.dtype;
    if (!source_->table()) return {};
    std::vector<Column> columns = source_->table()->columns();
    Column& mine = columns[component_];
    if (mine.scale && conversion_.normal) {  // bytes that were to become floats while they are gathered
      DTG_ASSIGN(Tensor floats, Tensor::allocate(DType::f32, mine.values.shape()));
      mine.scale->apply(mine.values.as<uint8_t>(), floats.as<float>(), floats.count());
      mine.values = floats;
      mine.scale = nullptr;
    }
    if (mine.scale) {
      return unimplemented("convert component %zu of a data set: it is scaled already; convert after the batch", component_);
    }
    if (mine.dtype == DType::u8 && conversion_.bytes) {
      mine.scale = conversion_.bytes;
    } else {
      DTG_ASSIGN(mine.values, conversion_.apply(mine.values));
    }
    mine.dtype = conversion_.dtype;
    stand_on(Table::of(std::move(columns)));
    return {};
  }

  Status restart() override { return source_->restart(); }
  int64_t cardinality() const override { return source_->cardinality(); }

  Result<bool> pull(Item& item) override {
    DTG_ASSIGN(const bool more, source_->pull(item));
    if (!more || item.row >= 0) return more;
    if (component_ >= item.tensors.size()) {
      return invalid_argument("convert component %zu of a data set: an element has only %zu", component_, item.tensors.size());
    }
    DTG_ASSIGN(item.tensors[component_], conversion_.apply(item.tensors[component_]));
    return true;
  }
  Result<int64_t> skip(int64_t count) override { return source_->skip(count); }
  Dataset* source() const override { return source_.get(); }
  std::string stage() const override {
    if (conversion_.normal) {
      return format("normalize(%zu, %016llx)", component_, static_cast<unsigned long long>(hash_bytes(conversion_.normal->text())));
    }
    return format("convert(%zu, %s, %.9g)", component_, dtype_name(conversion_.dtype), static_cast<double>(conversion_.divisor));
  }

 private:
  const DatasetPtr source_;
  const size_t component_;
  const Conversion conversion_;
};

Result<DatasetPtr> make_map(DatasetPtr source, int component, Conversion conversion, const char* what) {
  const size_t components = source->spec().size();
  if (component < 0 || static_cast<size_t>(component) >= components) {
    return invalid_argument("%s component %d of a data set: its elements have %zu components", what, component, components);
  }
  const DType from = source->spec()[static_cast<size_t>(component)].dtype;
  if (!kReal.has(from) && from != DType::boolean) {
    return unimplemented("%s component %d of a data set: no conversion from %s", what, component, dtype_name(from));
  }
  auto map = std::make_unique<Map>(std::move(source), static_cast<size_t>(component), std::move(conversion));
  DTG_TRY(map->init());
  return DatasetPtr(std::move(map));
}

}  // namespace

Result<DatasetPtr> make_scale(DatasetPtr source, int component, float divisor) {
  if (divisor == 0 || !std::isfinite(divisor))
    return invalid_argument(
        "scale component %d of a data set: the divisor is %g as float32; give a number that is not 0, such as 255 for bytes", component,
        double{divisor});
  return make_map(std::move(source), component, {DType::f32, divisor, std::make_shared<ByteScale>(divisor)}, "scale");
}

Result<DatasetPtr> make_normalize(DatasetPtr source, int component, Normalization normalization) {
  const auto& spec = source->spec();
  if (component >= 0 && static_cast<size_t>(component) < spec.size()) {
    const PartialShape& shape = spec[static_cast<size_t>(component)].shape;
    const int64_t last = shape.has_rank() && shape.rank() > 0 ? shape.dim(shape.rank() - 1) : 1;
    const auto features = static_cast<int64_t>(normalization.shift.size());
    if (features != 1 && last != features) {
      return invalid_argument("normalize component %d of a data set: it is %s%s, and the normalization is of %lld features", component,
                              dtype_name(spec[static_cast<size_t>(component)].dtype), shape.text().c_str(),
                              static_cast<long long>(features));
    }
  }
  Conversion conversion{.dtype = DType::f32, .normal = std::make_shared<Normalization>(std::move(normalization))};
  return make_map(std::move(source), component, std::move(conversion), "normalize");
}

Result<DatasetPtr> make_cast(DatasetPtr source, int component, DType dtype) {
  if (dtype != DType::f32 && dtype != DType::f64 && dtype != DType::i32 && dtype != DType::i64) {
    return unimplemented("cast component %d of a data set to %s: float32, float64, int32 and int64 are possible", component,
                         dtype_name(dtype));
  }
  Conversion conversion{dtype, 1, nullptr};
  if (dtype == DType::f32) conversion.bytes = std::make_shared<ByteScale>(1.0f);
  return make_map(std::move(source), component, std::move(conversion), "cast");
}

}  // namespace dtg
