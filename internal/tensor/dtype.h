// Element types: every type the ABI names, with TensorFlow's numbers, so that graphs and checkpoints can be exchanged
// without a table. Kernels exist for a part of them; the name of the rest is still known, so that an error can say it.
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace dtg {

enum class DType : int32_t {
  invalid = 0,
  f32 = 1,
  f64 = 2,
  i32 = 3,
  u8 = 4,
  i16 = 5,
  i8 = 6,
  string = 7,
  c64 = 8,
  i64 = 9,
  boolean = 10,
  qi8 = 11,
  qu8 = 12,
  qi32 = 13,
  bf16 = 14,
  qi16 = 15,
  qu16 = 16,
  u16 = 17,
  c128 = 18,
  f16 = 19,
  resource = 20,
  variant = 21,
  u32 = 22,
  u64 = 23,
  f8_e5m2 = 24,
  f8_e4m3fn = 25,
  i4 = 29,
  u4 = 30,
};

// Bytes of one element; 0 for types without a fixed plain size (string, resource, variant, 4-bit).
int64_t dtype_size(DType dtype);
// Bytes of one element where a run keeps it: its size, and of a string the cell that says where its bytes lie (tensor/text.h). Whoever
// moves elements within a run asks this; whoever takes bytes out of it asks dtype_size, and treats strings by themselves.
inline constexpr int64_t kTextCellBytes = 16;
inline int64_t cell_bytes(DType dtype) { return dtype == DType::string ? kTextCellBytes : dtype_size(dtype); }
// TensorFlow's spelling: "float32", "int64", "bool", ... ; "dtype 99" style names never occur: "invalid".
const char* dtype_name(DType dtype);
// Accepts dtype_name's spelling and TensorFlow's C++ one ("float", "double", "half"). invalid if unknown.
DType dtype_from_name(std::string_view name);
bool dtype_is_known(int32_t number);
bool dtype_is_floating(DType dtype);  // f16, bf16, f32, f64
bool dtype_is_integer(DType dtype);   // the signed and unsigned whole-byte integers
bool dtype_is_complex(DType dtype);

// 16-bit floats as values: stored as bits, computed as float.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float value);
  operator float() const;  // NOLINT: implicit on purpose, arithmetic happens in float
};

struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) {
    uint32_t raw;
    std::memcpy(&raw, &value, 4);
    if ((raw & 0x7fffffffu) > 0x7f800000u) {
      bits = static_cast<uint16_t>((raw >> 16) | 0x40u);  // NaN stays NaN
    } else {
      bits = static_cast<uint16_t>((raw + 0x7fffu + ((raw >> 16) & 1u)) >> 16);  // to nearest even
    }
  }
  operator float() const {  // NOLINT: implicit on purpose
    const uint32_t raw = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &raw, 4);
    return value;
  }
};

// clang-format off
template <class T> struct DTypeOf;
template <> struct DTypeOf<float> { static constexpr DType value = DType::f32; };
template <> struct DTypeOf<double> { static constexpr DType value = DType::f64; };
template <> struct DTypeOf<int8_t> { static constexpr DType value = DType::i8; };
template <> struct DTypeOf<int16_t> { static constexpr DType value = DType::i16; };
template <> struct DTypeOf<int32_t> { static constexpr DType value = DType::i32; };
template <> struct DTypeOf<int64_t> { static constexpr DType value = DType::i64; };
template <> struct DTypeOf<uint8_t> { static constexpr DType value = DType::u8; };
template <> struct DTypeOf<uint16_t> { static constexpr DType value = DType::u16; };
template <> struct DTypeOf<uint32_t> { static constexpr DType value = DType::u32; };
template <> struct DTypeOf<uint64_t> { static constexpr DType value = DType::u64; };
template <> struct DTypeOf<bool> { static constexpr DType value = DType::boolean; };
template <> struct DTypeOf<Half> { static constexpr DType value = DType::f16; };
template <> struct DTypeOf<BFloat16> { static constexpr DType value = DType::bf16; };
template <class T> inline constexpr DType dtype_of = DTypeOf<T>::value;
// clang-format on

// A set of element types, for contracts and kernel rows.
class DTypeSet {
 public:
  constexpr DTypeSet() = default;
  template <class... D>
  constexpr explicit DTypeSet(D... dtypes) : bits_((0u | ... | (1u << static_cast<uint32_t>(dtypes)))) {}
  constexpr bool has(DType dtype) const {
    const auto n = static_cast<uint32_t>(dtype);
    return n < 32 && (bits_ >> n & 1u) != 0;
  }
  constexpr DTypeSet operator|(DTypeSet other) const {
    DTypeSet both;
    both.bits_ = bits_ | other.bits_;
    return both;
  }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr uint32_t bits() const { return bits_; }

 private:
  uint32_t bits_ = 0;
};

inline constexpr DTypeSet kFloating{DType::f16, DType::bf16, DType::f32, DType::f64};
inline constexpr DTypeSet kIntegers{DType::i8, DType::i16, DType::i32, DType::i64, DType::u8, DType::u16, DType::u32, DType::u64};
inline constexpr DTypeSet kComplex{DType::c64, DType::c128};
inline constexpr DTypeSet kReal = kFloating | kIntegers;  // every ordered number
inline constexpr DTypeSet kNumbers = kReal | kComplex;
inline constexpr DTypeSet kPlain = kNumbers | DTypeSet{DType::boolean};  // fixed size, no pointers inside
inline constexpr DTypeSet kMovable = kPlain | DTypeSet{DType::string};   // whose elements ops may move about as they are
inline constexpr DTypeSet kIndex{DType::i32, DType::i64};
inline constexpr DTypeSet kAnyType =
    kPlain | DTypeSet{DType::string, DType::resource, DType::variant, DType::qi8, DType::qu8, DType::qi32, DType::qi16, DType::qu16};

}  // namespace dtg
