// Elements of JSON to bytes and back, and how far two of them are apart; see values.h.
#include "values.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace dtg::oracle {
namespace {

// Half floats by hand: the compilers that we support do not share a type for them.
uint16_t half_of(double value) {
  const float narrow = static_cast<float>(value);
  const uint32_t bits = std::bit_cast<uint32_t>(narrow);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  if (std::isnan(narrow)) return static_cast<uint16_t>(sign | 0x7e00);
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (magnitude >= 65520.0) return static_cast<uint16_t>(sign | 0x7c00);
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  const int scale = std::max(exponent - 1, -14) - 10;  // the weight of the last mantissa bit
  const auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, -scale)));
  // A carry out of the mantissa lands in the exponent, as it should.
  return static_cast<uint16_t>(sign | (static_cast<uint32_t>(scale + 24) * 1024u + units));
}

double value_of_half(uint16_t half) {
  const double sign = half & 0x8000 ? -1.0 : 1.0;
  const int exponent = (half >> 10) & 31, mantissa = half & 1023;
  if (exponent == 31) return mantissa ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(mantissa + 1024, exponent - 25);
}

uint16_t bfloat_of(double value) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16); }

double value_of_bfloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

template <typename T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
void put_integer(std::string& bytes, const Json& value) {
  // uint64 is read as such: its upper half does not fit a signed number.
  put(bytes, value.is_number_unsigned() ? static_cast<T>(value.get<uint64_t>()) : static_cast<T>(value.get<int64_t>()));
}

bool put_element(std::string& bytes, dtg_dtype dtype, const Json& value) {
  switch (dtype) {
    case DTG_F32: put(bytes, static_cast<float>(number(value))); return true;
    case DTG_F64: put(bytes, number(value)); return true;
    case DTG_F16: put(bytes, half_of(number(value))); return true;
    case DTG_BF16: put(bytes, bfloat_of(number(value))); return true;
    case DTG_BOOL: put(bytes, static_cast<uint8_t>(value.get<bool>())); return true;
    case DTG_QI8:
    case DTG_I8: put_integer<int8_t>(bytes, value); return true;
    case DTG_QU8:
    case DTG_U8: put_integer<uint8_t>(bytes, value); return true;
    case DTG_QI16:
    case DTG_I16: put_integer<int16_t>(bytes, value); return true;
    case DTG_QU16:
    case DTG_U16: put_integer<uint16_t>(bytes, value); return true;
    case DTG_QI32:
    case DTG_I32: put_integer<int32_t>(bytes, value); return true;
    case DTG_U32: put_integer<uint32_t>(bytes, value); return true;
    case DTG_I64: put_integer<int64_t>(bytes, value); return true;
    case DTG_U64: put_integer<uint64_t>(bytes, value); return true;
    default: return false;
  }
}

bool is_floating(dtg_dtype dtype) { return dtype == DTG_F32 || dtype == DTG_F64 || dtype == DTG_F16 || dtype == DTG_BF16; }

double element(dtg_dtype dtype, const char* at) {
  const auto read = [at]<typename T>(T value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (dtype) {
    case DTG_F32: return read(float{});
    case DTG_F64: return read(double{});
    case DTG_F16: return value_of_half(read(uint16_t{}));
    case DTG_BF16: return value_of_bfloat(read(uint16_t{}));
    case DTG_BOOL:
    case DTG_QU8:
    case DTG_U8: return read(uint8_t{});
    case DTG_QI8:
    case DTG_I8: return read(int8_t{});
    case DTG_QI16:
    case DTG_I16: return read(int16_t{});
    case DTG_QU16:
    case DTG_U16: return read(uint16_t{});
    case DTG_QI32:
    case DTG_I32: return read(int32_t{});
    case DTG_U32: return read(uint32_t{});
    case DTG_I64: return static_cast<double>(read(int64_t{}));
    case DTG_U64: return static_cast<double>(read(uint64_t{}));
    default: return std::nan("");
  }
}

bool close(double got, double want, Tolerance tolerance) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (std::isinf(want) || std::isinf(got)) return got == want;
  return std::fabs(got - want) <= tolerance.atol + tolerance.rtol * std::fabs(want);
}

std::string shape_text(const std::vector<int64_t>& shape) { return Json(shape).dump(); }

}  // namespace

Tensor adopt(dtg_tensor* tensor) { return {tensor, dtg_tensor_release}; }

bool is_tensor(const Json& value) { return value.is_object() && value.contains("dtype") && value.contains("data"); }

bool is_core_dtype(const std::string& name) {
  for (const char* core : {"float32", "float64", "int32", "int64", "uint8", "bool"}) {
    if (name == core) return true;
  }
  return false;
}

double number(const Json& value) {
  if (!value.is_string()) return value.get<double>();
  const std::string word = value.get<std::string>();
  if (word == "inf") return std::numeric_limits<double>::infinity();
  if (word == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nan("");
}

Tensor make_tensor(dtg_dtype dtype, const std::vector<int64_t>& shape, const void* data, size_t nbytes, std::string* why) {
  dtg_tensor* tensor = nullptr;
  dtg_error* error = dtg_tensor_allocate(dtype, shape.data(), shape.size(), &tensor);
  if (error) {
    *why = dtg_error_message(error, nullptr);
    dtg_error_release(error);
    return nullptr;
  }
  size_t room = 0;
  dtg_tensor_data(tensor, &room);
  if (room != nbytes) {
    *why = "a tensor of " + std::to_string(room) + " bytes was given " + std::to_string(nbytes);
    dtg_tensor_release(tensor);
    return nullptr;
  }
  if (nbytes > 0) std::memcpy(dtg_tensor_mutable_data(tensor), data, nbytes);
  return adopt(tensor);
}

namespace {

Tensor make_strings(const Json& value, std::string* why) {
  const auto shape = value.at("shape").get<std::vector<int64_t>>();
  const auto texts = value.at("data").get<std::vector<std::string>>();
  std::vector<const char*> strings;
  std::vector<size_t> lengths;
  for (const std::string& text : texts) {
    strings.push_back(text.data());
    lengths.push_back(text.size());
  }
  dtg_tensor* tensor = nullptr;
  dtg_error* error = dtg_tensor_create_strings(shape.data(), shape.size(), strings.data(), lengths.data(), &tensor);
  if (!error) return adopt(tensor);
  *why = dtg_error_message(error, nullptr);
  dtg_error_release(error);
  return nullptr;
}

std::string string_difference(const Json& data, const Tensor& got) {
  for (size_t i = 0; i < data.size(); ++i) {
    size_t bytes = 0;
    const char* const at = dtg_tensor_string(got.get(), i, &bytes);
    const std::string text(at ? at : "", bytes), wanted = data[i].get<std::string>();
    if (text != wanted) return "element " + std::to_string(i) + " is \"" + text + "\", expected \"" + wanted + "\"";
  }
  return "";
}

}  // namespace

Tensor make_tensor(const Json& value, std::string* why) {
  const std::string name = value.at("dtype");
  if (name == "string") return make_strings(value, why);
  const dtg_dtype dtype = dtg_dtype_from_name(name.c_str());
  std::string bytes;
  for (const Json& item : value.at("data")) {
    if (!put_element(bytes, dtype, item)) {
      *why = "dtype " + name;
      return nullptr;
    }
  }
  if (dtg_dtype_size(dtype) == 0) {
    *why = "dtype " + name;
    return nullptr;
  }
  return make_tensor(dtype, value.at("shape").get<std::vector<int64_t>>(), bytes.data(), bytes.size(), why);
}

Tensor make_scalar(dtg_dtype dtype, double value) {
  std::string bytes, why;
  put_element(bytes, dtype, Json(value));
  return make_tensor(dtype, {}, bytes.data(), bytes.size(), &why);
}

std::vector<int64_t> shape_of(const Tensor& tensor) {
  std::vector<int64_t> shape(dtg_tensor_rank(tensor.get()));
  for (size_t i = 0; i < shape.size(); ++i) shape[i] = dtg_tensor_dim(tensor.get(), i);
  return shape;
}

std::vector<double> elements(const Tensor& tensor) {
  const dtg_dtype dtype = dtg_tensor_dtype(tensor.get());
  const auto* at = static_cast<const char*>(dtg_tensor_data(tensor.get(), nullptr));
  std::vector<double> list(static_cast<size_t>(dtg_tensor_count(tensor.get())));
  const size_t step = dtg_dtype_size(dtype);
  for (size_t i = 0; i < list.size(); ++i) list[i] = element(dtype, at + i * step);
  return list;
}

std::string difference(const Json& want, const Tensor& got, Tolerance tolerance) {
  const dtg_dtype dtype = dtg_tensor_dtype(got.get());
  const std::string name = want.at("dtype");
  if (dtg_dtype_from_name(name.c_str()) != dtype) return "dtype " + std::string(dtg_dtype_name(dtype)) + ", expected " + name;
  const auto shape = want.at("shape").get<std::vector<int64_t>>();
  if (shape != shape_of(got)) return "shape " + shape_text(shape_of(got)) + ", expected " + shape_text(shape);
  if (!want.contains("data")) return "";
  const Json& data = want.at("data");
  if (dtype == DTG_STRING) return string_difference(data, got);
  const auto* at = static_cast<const char*>(dtg_tensor_data(got.get(), nullptr));
  const size_t step = dtg_dtype_size(dtype);
  for (size_t i = 0; i < data.size(); ++i) {
    // The digits of the vectors name an element of the type, so they are rounded to it before anything is compared.
    std::string bytes;
    bool same = put_element(bytes, dtype, data[i]);
    if (is_floating(dtype)) same = same && close(element(dtype, at + i * step), element(dtype, bytes.data()), tolerance);
    else same = same && std::memcmp(bytes.data(), at + i * step, step) == 0;
    if (same) continue;
    char text[160];
    std::snprintf(text, sizeof text, "element %zu is %.9g, expected %s", i, element(dtype, at + i * step), data[i].dump().c_str());
    return text;
  }
  return "";
}

Tolerance scaled_tolerance(const Json& want, double tol) {
  double largest = 1;
  for (const Json& item : want.at("data")) {
    if (item.is_number() && std::fabs(item.get<double>()) > largest) largest = std::fabs(item.get<double>());
  }
  return {0, tol * largest};
}

Json densified(const Json& gradient) {
  if (!gradient.is_object() || !gradient.value("indexed_slices", false)) return gradient;
  const Json& values = gradient.at("values");
  const auto plain = [](const Json& list) { return is_tensor(list) ? list.at("data") : list; };
  const auto shape = plain(gradient.at("dense_shape")).get<std::vector<int64_t>>();
  size_t count = 1, row = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    count *= static_cast<size_t>(shape[i]);
    if (i > 0) row *= static_cast<size_t>(shape[i]);
  }
  std::vector<double> sum(count);
  const Json indices = plain(gradient.at("indices"));
  for (size_t i = 0; i < indices.size(); ++i) {
    for (size_t k = 0; k < row; ++k) sum[indices[i].get<size_t>() * row + k] += number(values.at("data")[i * row + k]);
  }
  Json data = Json::array();
  for (double item : sum) {
    if (std::isnan(item)) data.push_back("nan");
    else if (std::isinf(item)) data.push_back(item > 0 ? "inf" : "-inf");
    else data.push_back(item);
  }
  return {{"dtype", values.at("dtype")}, {"shape", shape}, {"data", data}};
}

}  // namespace dtg::oracle
