// What the functions of dtg/nn.h and dtg/layers.h have in common: reading the fields of a layer's struct, and giving out the one value that
// it makes. The thread that builds the model.
#pragma once

#include <string_view>
#include <type_traits>

#include "capi/model.h"
#include "dtg/layers.h"
#include "nn/attention.h"
#include "nn/initializer.h"
#include "nn/layers.h"

namespace dtg::capi {

// A number of an enum of the ABI as our enum, which counts alike.
template <class E>
Result<E> read_enum(int32_t number, E last, const char* what) {
  if (number < 0 || number > static_cast<int32_t>(last)) {
    return invalid_argument("%s: %d is none of its values (0 to %d)", what, number, static_cast<int>(last));
  }
  return static_cast<E>(number);
}

Result<Initializer> read_initializer(const dtg_initializer& given, const Initializer& fallback);

// A value that a layer is given, in the body that the model is inside of where it is inside of one.
inline Value here(const Model& model, dtg_value given) { return model.here(value_of(given)); }

// What the host says of a layer or a variable, with the defaults filled in; texts stay the host's.
Result<DenseLayer> read_dense(const dtg_dense* given);
Result<EmbeddingLayer> read_embedding(const dtg_embedding* given);
Result<AttentionLayer> read_attention(const Model& model, const dtg_attention* given, Value* key);
Result<VariableSpec> read_variable_spec(const dtg_variable_spec* given);

inline std::string_view name_or(const char* name, size_t length, std::string_view fallback) {
  const std::string_view given = text(name, length);
  return given.empty() ? fallback : given;
}

inline int64_t number_or(int64_t given, int64_t fallback) { return given == 0 ? fallback : given; }
inline double real_or(double given, double fallback) { return given == 0 ? fallback : given; }

// Holds the model, makes a value, hands it out; or leaves the model as it was. `fn` takes the model or its object.
template <class Fn>
dtg_error* value_of_model(dtg_model* handle, dtg_value* out, Fn&& fn) {
  return with_builder(handle, Owner::Use::change, [&](ModelObject& object) -> Status {
    DTG_TRY(require(out, "out"));
    return all_or_nothing(*object.model, [&]() -> Status {
      DTG_ASSIGN(const Value value, [&] {
        if constexpr (std::is_invocable_v<Fn, ModelObject&>) return fn(object);
        else return fn(*object.model);
      }());
      *out = to_c(value);
      return {};
    });
  });
}

}  // namespace dtg::capi
