// Cells as numbers: see the header. Digits are read by the standard library, which no locale changes.
#include "data/csv_numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

namespace dtg {
namespace {

// Whether a number beyond the range of double is so because it is small: by the place of its first digit that is not 0.
bool is_tiny(std::string_view cell) {
  const size_t end = std::min(cell.find_first_of("eE"), cell.size());
  const size_t point = std::min(cell.substr(0, end).find('.'), end), first = std::min(cell.find_first_of("123456789"), end);
  long double exponent = 0;
  if (end < cell.size()) {
    bool negative = false;
    for (const char c : cell.substr(end + 1)) {
      if (c == '-') negative = true;
      else if (c >= '0' && c <= '9') exponent = exponent * 10 + static_cast<long double>(c - '0');
    }
    if (negative) exponent = -exponent;
  }
  const auto place = static_cast<long double>(point) - static_cast<long double>(first);
  return exponent + place < 0;
}

// Without commas that each stand before three digits; empty where one does not.
std::string without_thousands(std::string_view cell) {
  std::string plain;
  for (size_t i = 0; i < cell.size(); ++i) {
    if (cell[i] != ',') {
      plain += cell[i];
      continue;
    }
    const size_t end = std::min(cell.find_first_not_of("0123456789", i + 1), cell.size());
    if (end != i + 4) return {};
  }
  return plain;
}

}  // namespace

bool parse_whole(std::string_view cell, int64_t& value) {
  if (cell.starts_with('+')) cell.remove_prefix(1);
  const char* const end = cell.data() + cell.size();
  const auto parsed = std::from_chars(cell.data(), end, value);
  return parsed.ec == std::errc() && parsed.ptr == end && !cell.empty();
}

bool parse_real(std::string_view cell, double& value) {
  if (cell.starts_with('+')) cell.remove_prefix(1);
  const char* const end = cell.data() + cell.size();
  const auto parsed = std::from_chars(cell.data(), end, value);
  if (parsed.ptr != end || cell.empty()) return false;
  if (parsed.ec == std::errc()) return true;
  if (parsed.ec != std::errc::result_out_of_range) return false;
  value = is_tiny(cell) ? 0.0 : std::numeric_limits<double>::infinity();
  if (cell.starts_with('-')) value = -value;
  return true;
}

bool is_number_with_comma(std::string_view cell) {
  if (cell.find(',') == std::string_view::npos) return false;
  // As it is written, and with the two exchanged, which is how 1.234,5 is meant.
  std::string exchanged(cell);
  for (char& c : exchanged) c = c == ',' ? '.' : c == '.' ? ',' : c;
  double value;
  return parse_real(exchanged, value) || parse_real(without_thousands(cell), value) || parse_real(without_thousands(exchanged), value);
}

bool is_too_large(std::string_view cell, double value, bool as_double) {
  if (std::isfinite(as_double ? value : static_cast<double>(static_cast<float>(value)))) return false;
  return cell.find_first_of("0123456789") != std::string_view::npos;
}

}  // namespace dtg
