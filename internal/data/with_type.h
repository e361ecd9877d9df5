// Columns of numbers of any type, read as what they are. Pure; any thread.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace dtg {

// Calls fn with a value of the type of the elements; not at all for what is no number.
template <class Fn>
void with_type(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::i8: return fn(int8_t{});
    case DType::u8: return fn(uint8_t{});
    case DType::i16: return fn(int16_t{});
    case DType::u16: return fn(uint16_t{});
    case DType::i32: return fn(int32_t{});
    case DType::u32: return fn(uint32_t{});
    case DType::i64: return fn(int64_t{});
    case DType::u64: return fn(uint64_t{});
    case DType::f32: return fn(float{});
    case DType::f64: return fn(double{});
    case DType::boolean: return fn(bool{});
    default: return;
  }
}

}  // namespace dtg
