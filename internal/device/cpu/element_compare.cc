// Block functions whose answer is a bool, and the choice between two values. Constant data, any thread.
#include "device/cpu/element_loops.h"

namespace dtg::cpu {
namespace {

// clang-format off
DTG_ELEMENT2(Equal, a == b);
DTG_ELEMENT2(NotEqual, a != b);
DTG_ELEMENT2(Less, a < b);
DTG_ELEMENT2(LessEqual, a <= b);
DTG_ELEMENT2(Greater, a > b);
DTG_ELEMENT2(GreaterEqual, a >= b);
DTG_ELEMENT2(And, a && b);
DTG_ELEMENT2(Or, a || b);
DTG_ELEMENT1(Not, !a);
// clang-format on

// Moves values by size; what they mean does not matter.
template <class W>
void select(const void* const* in, void* out, int64_t n) {
  const bool* condition = static_cast<const bool*>(in[0]);
  const W* a = static_cast<const W*>(in[1]);
  const W* b = static_cast<const W*>(in[2]);
  W* y = static_cast<W*>(out);
  for (int64_t i = 0; i < n; ++i) {
    const W left = a[i], right = b[i];
    y[i] = condition[i] ? left : right;
  }
}

// clang-format off
#define DTG_ROW(name, type, op) {ElementFn::name, dtype_of<type>, 2, ask2<type, op>, false}
#define DTG_REAL(name, op)                                                                                            \
  DTG_ROW(name, float, op), DTG_ROW(name, double, op), DTG_ROW(name, Half, op), DTG_ROW(name, BFloat16, op),          \
      DTG_ROW(name, int8_t, op), DTG_ROW(name, int16_t, op), DTG_ROW(name, int32_t, op), DTG_ROW(name, int64_t, op),  \
      DTG_ROW(name, uint8_t, op), DTG_ROW(name, uint16_t, op), DTG_ROW(name, uint32_t, op), DTG_ROW(name, uint64_t, op)
#define DTG_SELECT(name)                                                                                   \
  {ElementFn::name, DType::f32, 3, select<uint32_t>, false}, {ElementFn::name, DType::f64, 3, select<uint64_t>, false},          \
      {ElementFn::name, DType::f16, 3, select<uint16_t>, false}, {ElementFn::name, DType::bf16, 3, select<uint16_t>, false},     \
      {ElementFn::name, DType::i8, 3, select<uint8_t>, false}, {ElementFn::name, DType::i16, 3, select<uint16_t>, false},        \
      {ElementFn::name, DType::i32, 3, select<uint32_t>, false}, {ElementFn::name, DType::i64, 3, select<uint64_t>, false},      \
      {ElementFn::name, DType::u8, 3, select<uint8_t>, false}, {ElementFn::name, DType::u16, 3, select<uint16_t>, false},        \
      {ElementFn::name, DType::u32, 3, select<uint32_t>, false}, {ElementFn::name, DType::u64, 3, select<uint64_t>, false},      \
      {ElementFn::name, DType::boolean, 3, select<uint8_t>, false}, {ElementFn::name, DType::c64, 3, select<uint64_t>, false}
constexpr ElementBlock kBlocks[] = {
    DTG_REAL(equal, Equal), DTG_ROW(equal, bool, Equal),
    DTG_REAL(not_equal, NotEqual), DTG_ROW(not_equal, bool, NotEqual),
    DTG_REAL(less, Less), DTG_REAL(less_equal, LessEqual),
    DTG_REAL(greater, Greater), DTG_REAL(greater_equal, GreaterEqual),
    DTG_ROW(logical_and, bool, And), DTG_ROW(logical_or, bool, Or),
    {ElementFn::logical_not, DType::boolean, 1, ask1<bool, Not>, false},
    DTG_SELECT(select),
};
// clang-format on

}  // namespace

std::span<const ElementBlock> compare_blocks() { return kBlocks; }

}  // namespace dtg::cpu
