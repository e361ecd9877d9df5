// Json: a parsed JSON value, for what arrives as JSON (checkpoint headers, TF_CONFIG), and the text side
// for what leaves as JSON (traces, reports). The parser inside is nlohmann's and stays inside json.cc.
// Values; one thread each.
//
//   DTG_ASSIGN(Json config, parse_json(text, "TF_CONFIG"));
//   if (const Json* task = config.find("task")) ...
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"

namespace dtg {

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;  // in the order of the text

  Json();  // null
  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  ~Json();
  Json(bool value) : value_(value) {}                      // NOLINT: implicit on purpose, as literals are
  Json(int value) : value_(int64_t{value}) {}              // NOLINT
  Json(int64_t value) : value_(value) {}                   // NOLINT
  Json(double value) : value_(value) {}                    // NOLINT
  Json(std::string value) : value_(std::move(value)) {}    // NOLINT
  Json(const char* value) : value_(std::string(value)) {}  // NOLINT
  Json(Array value) : value_(std::move(value)) {}          // NOLINT
  Json(Object value) : value_(std::move(value)) {}         // NOLINT

  bool is_null() const { return value_.index() == 0; }
  // Null unless the value is of that kind.
  const bool* boolean() const { return std::get_if<bool>(&value_); }
  const int64_t* integer() const { return std::get_if<int64_t>(&value_); }  // integers outside 64 bits are reals
  const double* real() const { return std::get_if<double>(&value_); }
  const std::string* string() const { return std::get_if<std::string>(&value_); }
  const Array* array() const { return std::get_if<Array>(&value_); }
  const Object* object() const { return std::get_if<Object>(&value_); }
  Array* array() { return std::get_if<Array>(&value_); }
  Object* object() { return std::get_if<Object>(&value_); }
  // "a string", "an object", ... for messages.
  const char* kind() const;

  // A member of an object; null when there is none or this is no object. Looks at each member in turn.
  const Json* find(std::string_view key) const;

  // The value as JSON text without spaces. Reals that JSON cannot say (infinities, NaN) become null.
  std::string text() const;
  void append_to(std::string& out) const;

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> value_;
};

struct JsonLimits {
  size_t bytes_max = size_t{1} << 20;
  size_t values_max = size_t{1} << 17;  // every number, string, list, ... counts; bounds the memory
  int depth_max = 64;
};

// Strict JSON in UTF-8; a key given twice is refused. `what` names the text in errors.
Result<Json> parse_json(std::string_view text, const char* what, const JsonLimits& limits = {});

// Appends the text as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);
void append_json_real(std::string& out, double value);
bool is_utf8(std::string_view text);
// How many bytes at its beginning are UTF-8; all of them: it is.
size_t utf8_prefix(std::string_view text);
// What somebody else wrote, for a message: on one line, in quotes, with what no terminal shows escaped; "..." where it is longer.
std::string quoted(std::string_view text, size_t most = 100);

}  // namespace dtg
