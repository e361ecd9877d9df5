// Attributes: the constants of a node, with TensorFlow's kinds. Values are immutable once a node has
// them; any thread may read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/ref.h"
#include "tensor/tensor.h"

namespace dtg {

// More than plain bytes: a handle, or an object such as a list.
inline constexpr bool is_holder(DType dtype) { return dtype == DType::resource || dtype == DType::variant; }

enum class AttrKind : uint8_t {
  integer,
  real,
  boolean,
  type,
  shape,
  string,
  tensor,
  list_integer,
  list_real,
  list_boolean,
  list_type,
  list_shape,
  list_string,
  function,
  list_function,
};

class Function;

// A function of a graph, by count; what it is, is in graph/function.h.
class FunctionRef {
 public:
  FunctionRef() = default;
  explicit FunctionRef(Ref<const Function> function);
  const Function* get() const;
  explicit operator bool() const { return static_cast<bool>(held_); }
  bool operator==(const FunctionRef& other) const { return held_ == other.held_; }

 private:
  Ref<const RefCounted> held_;
};

const char* attr_kind_name(AttrKind kind);  // "int", "list(type)", ...

class AttrValue {
 public:
  using Variant = std::variant<int64_t, double, bool, DType, PartialShape, std::string, Tensor, std::vector<int64_t>, std::vector<double>,
                               std::vector<bool>, std::vector<DType>, std::vector<PartialShape>, std::vector<std::string>, FunctionRef,
                               std::vector<FunctionRef>>;
  AttrValue() : value_(int64_t{0}) {}
  AttrValue(Variant value) : value_(std::move(value)) {}                    // NOLINT: implicit on purpose
  AttrValue(int value) : value_(int64_t{value}) {}                          // NOLINT
  AttrValue(int64_t value) : value_(value) {}                               // NOLINT
  AttrValue(double value) : value_(value) {}                                // NOLINT
  AttrValue(bool value) : value_(value) {}                                  // NOLINT
  AttrValue(DType value) : value_(value) {}                                 // NOLINT
  AttrValue(PartialShape value) : value_(std::move(value)) {}               // NOLINT
  AttrValue(const Shape& value) : value_(PartialShape(value)) {}            // NOLINT
  AttrValue(std::string value) : value_(std::move(value)) {}                // NOLINT
  AttrValue(const char* value) : value_(std::string(value)) {}              // NOLINT
  AttrValue(Tensor value) : value_(std::move(value)) {}                     // NOLINT
  AttrValue(std::vector<int64_t> value) : value_(std::move(value)) {}       // NOLINT
  AttrValue(std::vector<DType> value) : value_(std::move(value)) {}         // NOLINT
  AttrValue(std::vector<PartialShape> value) : value_(std::move(value)) {}  // NOLINT
  AttrValue(FunctionRef value) : value_(std::move(value)) {}                // NOLINT
  AttrValue(std::vector<FunctionRef> value) : value_(std::move(value)) {}   // NOLINT

  AttrKind kind() const { return static_cast<AttrKind>(value_.index()); }
  const Variant& variant() const { return value_; }
  template <class T>
  const T* get() const {
    return std::get_if<T>(&value_);
  }

 private:
  Variant value_;
};

// The same kind and the same value, bit by bit. Tensors that are large count as the same only where their memory is one.
bool same_value(const AttrValue& a, const AttrValue& b);
bool same_value(const Tensor& a, const Tensor& b);

struct Attr {
  std::string_view name;
  AttrValue value;
};

}  // namespace dtg
