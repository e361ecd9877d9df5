// Names and sizes of the element types, and the 16-bit float conversions. Pure functions; any thread.
#include "tensor/dtype.h"

#include <array>
#include <bit>

namespace dtg {
namespace {
struct Row {
  DType dtype;
  const char* name;
  const char* cpp_name;  // TensorFlow's C++ spelling where it differs
  int8_t size;
};
constexpr Row kRows[] = {
    {DType::f32, "float32", "float", 4},
    {DType::f64, "float64", "double", 8},
    {DType::i32, "int32", nullptr, 4},
    {DType::u8, "uint8", nullptr, 1},
    {DType::i16, "int16", nullptr, 2},
    {DType::i8, "int8", nullptr, 1},
    {DType::string, "string", nullptr, 0},
    {DType::c64, "complex64", nullptr, 8},
    {DType::i64, "int64", nullptr, 8},
    {DType::boolean, "bool", nullptr, 1},
    {DType::qi8, "qint8", nullptr, 1},
    {DType::qu8, "quint8", nullptr, 1},
    {DType::qi32, "qint32", nullptr, 4},
    {DType::bf16, "bfloat16", nullptr, 2},
    {DType::qi16, "qint16", nullptr, 2},
    {DType::qu16, "quint16", nullptr, 2},
    {DType::u16, "uint16", nullptr, 2},
    {DType::c128, "complex128", nullptr, 16},
    {DType::f16, "float16", "half", 2},
    {DType::resource, "resource", nullptr, 0},
    {DType::variant, "variant", nullptr, 0},
    {DType::u32, "uint32", nullptr, 4},
    {DType::u64, "uint64", nullptr, 8},
    {DType::f8_e5m2, "float8_e5m2", nullptr, 1},
    {DType::f8_e4m3fn, "float8_e4m3fn", nullptr, 1},
    {DType::i4, "int4", nullptr, 0},
    {DType::u4, "uint4", nullptr, 0},
};
const Row* find(DType dtype) {
  for (const Row& row : kRows) {
    if (row.dtype == dtype) return &row;
  }
  return nullptr;
}
// By number, because sizes are asked for in every call.
constexpr auto kSizes = [] {
  std::array<int8_t, 32> sizes{};
  for (const Row& row : kRows) sizes[static_cast<size_t>(row.dtype)] = row.size;
  return sizes;
}();
}  // namespace

int64_t dtype_size(DType dtype) {
  const auto number = static_cast<uint32_t>(dtype);
  return number < kSizes.size() ? kSizes[number] : 0;
}

const char* dtype_name(DType dtype) {
  const Row* row = find(dtype);
  return row ? row->name : "invalid";
}

DType dtype_from_name(std::string_view name) {
  for (const Row& row : kRows) {
    if (name == row.name || (row.cpp_name && name == row.cpp_name)) return row.dtype;
  }
  return DType::invalid;
}

bool dtype_is_known(int32_t number) { return find(static_cast<DType>(number)) != nullptr; }
bool dtype_is_floating(DType dtype) { return kFloating.has(dtype); }
bool dtype_is_integer(DType dtype) { return kIntegers.has(dtype); }
bool dtype_is_complex(DType dtype) { return kComplex.has(dtype); }

// IEEE binary16, round to nearest even, NaN payload kept in the high bits.
Half::Half(float value) {
  const uint32_t raw = std::bit_cast<uint32_t>(value);
  const uint32_t sign = raw >> 16 & 0x8000u;
  const uint32_t magnitude = raw & 0x7fffffffu;
  uint32_t out;
  if (magnitude > 0x7f800000u) {
    out = 0x7e00u | (magnitude >> 13 & 0x3ffu);
  } else if (magnitude >= 0x477ff000u) {  // 65520 and above round to infinity
    out = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {  // normal
    const uint32_t rebased = magnitude - 0x38000000u;
    out = (rebased + 0xfffu + (rebased >> 13 & 1u)) >> 13;
  } else {  // subnormal or zero: adding 0.5 lines the bits up and lets the hardware round
    const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
    out = std::bit_cast<uint32_t>(aligned) - 0x3f000000u;
  }
  bits = static_cast<uint16_t>(sign | out);
}

Half::operator float() const {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = bits >> 10 & 0x1fu;
  const uint32_t fraction = bits & 0x3ffu;
  if (exponent == 0x1fu) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112u) << 23 | fraction << 13);
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}

}  // namespace dtg
