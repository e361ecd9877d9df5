// The lists of element types that many of TensorFlow's definitions share, in the spelling of OpDef::attr. Constant text.
#pragma once

namespace dtg::ops {

// numbertype of the registry: everything that can be added.
inline constexpr const char* kAttrNumbers =
    "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, "
    "complex128, half, uint32, uint64}";
// realnumbertype: everything with an order.
inline constexpr const char* kAttrReals = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}";
inline constexpr const char* kAttrFloats = "T: {bfloat16, half, float, double}";
inline constexpr const char* kAttrIntegers = "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}";

}  // namespace dtg::ops
