// parse_json: nlohmann's event parser, which does not recurse, feeding a builder that enforces the limits
// and the uniqueness of keys. The only file that includes nlohmann's header, which is slow to compile.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace dtg {
namespace {

// Receives the parser's events and builds the value. open_ is the path from the root to where we are.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(const JsonLimits& limits) : limits_(limits) {}

  bool null() override { return add(Json()); }
  bool boolean(bool value) override { return add(Json(value)); }
  bool number_integer(number_integer_t value) override { return add(Json(int64_t{value})); }
  bool number_unsigned(number_unsigned_t value) override {
    return value <= static_cast<number_unsigned_t>(INT64_MAX) ? add(Json(static_cast<int64_t>(value)))
                                                              : add(Json(static_cast<double>(value)));
  }
  bool number_float(number_float_t value, const string_t&) override { return add(Json(value)); }
  bool string(string_t& value) override { return add(Json(std::move(value))); }
  bool binary(binary_t&) override { return refuse("binary data"); }
  bool start_object(size_t) override { return enter(Json(Json::Object())); }
  bool start_array(size_t) override { return enter(Json(Json::Array())); }
  bool end_array() override { return leave(); }

  bool key(string_t& name) override {
    Json::Object* const object = open_.back()->object();
    object->emplace_back(std::move(name), Json());
    return true;
  }

  bool end_object() override {
    const Json::Object& members = *open_.back()->object();
    std::vector<std::pair<std::string_view, size_t>> keys;
    keys.reserve(members.size());
    for (const Json::Member& member : members) keys.emplace_back(member.first, keys.size() + 1);
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first == b.first; });
    if (twice == keys.end()) return leave();
    return refuse(format("the key \"%.100s\" occurs twice in one object: its members %zu and %zu", std::string(twice->first).c_str(),
                         twice->second, twice[1].second));
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    std::string_view reason = error.what();
    if (const size_t prefix = reason.find("] "); prefix != std::string_view::npos) reason.remove_prefix(prefix + 2);
    return refuse(format("byte %zu: %.200s", position, std::string(reason).c_str()));
  }

  Json take() { return std::move(root_); }
  const std::string& problem() const { return problem_; }

 private:
  bool refuse(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
    return false;
  }

  // Puts a value where it belongs; null when there are too many.
  Json* place(Json&& value) {
    if (++values_ > limits_.values_max) {
      refuse(format("more than %zu values", limits_.values_max));
      return nullptr;
    }
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (Json::Array* const array = open_.back()->array()) {
      array->push_back(std::move(value));
      return &array->back();
    }
    Json& member = open_.back()->object()->back().second;
    member = std::move(value);
    return &member;
  }

  bool add(Json&& value) { return place(std::move(value)) != nullptr; }

  // Pointers in open_ stay good: a container grows only while it is the innermost open one.
  bool enter(Json&& container) {
    if (open_.size() >= static_cast<size_t>(limits_.depth_max)) {
      return refuse(format("nested more than %d deep", limits_.depth_max));
    }
    Json* const placed = place(std::move(container));
    if (!placed) return false;
    open_.push_back(placed);
    return true;
  }

  bool leave() {
    open_.pop_back();
    return true;
  }

  const JsonLimits limits_;
  Json root_;
  std::vector<Json*> open_;
  size_t values_ = 0;
  std::string problem_;
};

}  // namespace

Result<Json> parse_json(std::string_view text, const char* what, const JsonLimits& limits) {
  if (text.size() > limits.bytes_max) {
    return resource_exhausted("parse %s: %zu bytes of JSON, at most %zu are accepted here", what, text.size(), limits.bytes_max);
  }
  Builder builder(limits);
  const char* const begin = text.data();
  if (!nlohmann::json::sax_parse(begin, begin + text.size(), &builder)) {
    return invalid_argument("parse %s: not acceptable JSON: %s", what, builder.problem().c_str());
  }
  return builder.take();
}

}  // namespace dtg
