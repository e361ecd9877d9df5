// The text side of Json: quoting, number formatting and looking up members. Apart from json.cc so that it
// compiles without the parser. Pure functions and values.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/json.h"

namespace dtg {
namespace {

// Length of the UTF-8 sequence at the front of `text` (not empty), 0 when it is not well-formed.
size_t utf8_length(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(text[i])); };
  const unsigned first = byte(0);
  if (first < 0x80u) return 1;
  const size_t length = first >= 0xf0u ? 4 : first >= 0xe0u ? 3 : first >= 0xc2u ? 2 : 0;
  if (length == 0 || first > 0xf4u || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0u) != 0x80u) return 0;
  }
  // Overlong forms, surrogates and what lies beyond U+10FFFF.
  const unsigned second = byte(1);
  if ((first == 0xe0u && second < 0xa0u) || (first == 0xedu && second > 0x9fu)) return 0;
  if ((first == 0xf0u && second < 0x90u) || (first == 0xf4u && second > 0x8fu)) return 0;
  return length;
}

void append_integer(std::string& out, int64_t value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value);
  out.append(digits, end.ptr);
}

}  // namespace

// Most text is ASCII, of which eight bytes are looked at at once.
size_t utf8_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint64_t eight = 0;
    if (text.size() - at >= sizeof eight) {
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080u) == 0) {
        at += sizeof eight;
        continue;
      }
    }
    const size_t length = utf8_length(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  return at;
}

bool is_utf8(std::string_view text) { return utf8_prefix(text) == text.size(); }

std::string quoted(std::string_view text, size_t most) {
  size_t end = std::min(text.size(), most);
  // Not within a letter.
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0u) == 0x80u) --end;
  std::string out;
  append_json_string(out, text.substr(0, end));
  return end < text.size() ? out + "..." : out;
}

void append_json_string(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  while (!text.empty()) {
    const char c = text[0];
    const size_t length = utf8_length(text);
    if (length == 0) {
      out += "\xef\xbf\xbd";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\u00";
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[static_cast<unsigned char>(c) & 0xf];
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(length ? length : 1);
  }
  out += '"';
}

void append_json_real(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, value);
  out.append(digits, end.ptr);
  // "-0" would come back as the integer, which has no sign.
  if (value == 0 && std::signbit(value)) out += ".0";
}

// Out of line: inlined into users, the variant's moves trip the compiler's warning about uninitialised use.
Json::Json() = default;
// libstdc++'s variant takes itself for never without a value where all its alternatives can be moved without an exception, and crashes
// when the copy of one throws, as without memory: so the copy is made beside it.
Json::Json(const Json& other) {
  std::visit(
      [this](const auto& value) {
        auto copy = value;
        value_ = std::move(copy);
      },
      other.value_);
}
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(const Json& other) {
  if (this != &other) *this = Json(other);
  return *this;
}
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;

const char* Json::kind() const {
  static constexpr const char* kKinds[] = {"null", "a boolean", "an integer", "a real", "a string", "an array", "an object"};
  return kKinds[value_.index()];
}

const Json* Json::find(std::string_view key) const {
  const Object* const members = object();
  if (!members) return nullptr;
  for (const Member& member : *members) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

void Json::append_to(std::string& out) const {
  if (const bool* const flag = boolean()) {
    out += *flag ? "true" : "false";
  } else if (const int64_t* const number = integer()) {
    append_integer(out, *number);
  } else if (const double* const number64 = real()) {
    append_json_real(out, *number64);
  } else if (const std::string* const characters = string()) {
    append_json_string(out, *characters);
  } else if (const Array* const items = array()) {
    char separator = '[';
    for (const Json& item : *items) {
      out += separator;
      item.append_to(out);
      separator = ',';
    }
    out += items->empty() ? "[]" : "]";
  } else if (const Object* const members = object()) {
    char separator = '{';
    for (const Member& member : *members) {
      out += separator;
      append_json_string(out, member.first);
      out += ':';
      member.second.append_to(out);
      separator = ',';
    }
    out += members->empty() ? "{}" : "}";
  } else {
    out += "null";
  }
}

std::string Json::text() const {
  std::string out;
  append_to(out);
  return out;
}

}  // namespace dtg
