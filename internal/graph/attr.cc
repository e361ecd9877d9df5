// The names of attribute kinds, as the op registry spells them ("list(int)"), and equality. Pure functions; any thread.
#include "graph/attr.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tensor/text.h"

namespace dtg {
namespace {

constexpr int64_t kComparedBytes = 256;

bool same_bits(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

}  // namespace

bool same_value(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  if (a.data() == b.data()) return true;
  if (a.dtype() == DType::string) return a.buffer() && a.buffer()->bytes() <= kComparedBytes && same_texts(texts_of(a), texts_of(b));
  return a.valid() && a.bytes() <= kComparedBytes && std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())) == 0;
}

bool same_value(const AttrValue& a, const AttrValue& b) {
  if (a.kind() != b.kind()) return false;
  return std::visit(
      [&]<class T>(const T& value) {
        const T& other = *b.get<T>();
        // A minus zero is another constant, a NaN is itself.
        if constexpr (std::is_same_v<T, double>) return same_bits(value, other);
        else if constexpr (std::is_same_v<T, std::vector<double>>) return std::ranges::equal(value, other, same_bits);
        else if constexpr (std::is_same_v<T, Tensor>) return same_value(value, other);
        else return value == other;
      },
      a.variant());
}

const char* attr_kind_name(AttrKind kind) {
  switch (kind) {
    case AttrKind::integer: return "int";
    case AttrKind::real: return "float";
    case AttrKind::boolean: return "bool";
    case AttrKind::type: return "type";
    case AttrKind::shape: return "shape";
    case AttrKind::string: return "string";
    case AttrKind::tensor: return "tensor";
    case AttrKind::list_integer: return "list(int)";
    case AttrKind::list_real: return "list(float)";
    case AttrKind::list_boolean: return "list(bool)";
    case AttrKind::list_type: return "list(type)";
    case AttrKind::list_shape: return "list(shape)";
    case AttrKind::list_string: return "list(string)";
    case AttrKind::function: return "func";
    case AttrKind::list_function: return "list(func)";
  }
  return "unknown";
}

}  // namespace dtg
