// See regex_sets.h.
#include "ops/regex_sets.h"

#include <algorithm>
#include <cstring>

#include "ops/texts.h"
#include "ops/unicode_case.h"

namespace dtg::ops {
namespace {

constexpr char32_t kLast = 0x10ffff;

// The other case of a letter where that is one letter too, else itself.
char32_t cased(char32_t c, bool upper) {
  std::string text;
  append_char(text, c);
  text = upper ? upper_case(text) : lower_case(text);
  std::string_view rest = text;
  const char32_t other = rest.empty() ? c : next_char(rest);
  return rest.empty() && other != 0xfffd ? other : c;
}

// Letters of which several share one capital, beyond the pair of that and its small letter.
constexpr char32_t kThird[] = {0xb5,   0x17f,  0x1c5,  0x1c8,  0x1cb,  0x1f2,  0x345,  0x3c2,  0x3d0,  0x3d1,  0x3d5,
                               0x3d6,  0x3f0,  0x3f1,  0x3f4,  0x3f5,  0x1c80, 0x1c81, 0x1c82, 0x1c83, 0x1c84, 0x1c85,
                               0x1c86, 0x1c87, 0x1c88, 0x1e9b, 0x1e9e, 0x1fbe, 0x2126, 0x212a, 0x212b};
// No letters with cases from here to there, and from there on.
constexpr std::pair<char32_t, char32_t> kNoCase[] = {{0x2e00, 0xa63f}, {0xabc0, 0xfaff}};
constexpr char32_t kCaseEnd = 0x1e944;

struct Named {
  const char* name;
  const char* ranges;  // pairs of characters
};
constexpr Named kPosix[] = {
    {"alnum", "09AZaz"}, {"alpha", "AZaz"}, {"ascii", "\x01\x7f"}, {"blank", "\t\t  "},  {"cntrl", "\x01\x1f\x7f\x7f"},
    {"digit", "09"},     {"graph", "!~"},   {"lower", "az"},       {"print", " ~"},      {"punct", "!/:@[`{~"},
    {"space", "\t\r  "}, {"upper", "AZ"},   {"word", "09AZaz__"},  {"xdigit", "09AFaf"},
};

RangeSet of_pairs(const char* pairs) {
  RangeSet set;
  for (; *pairs; pairs += 2) set.add(static_cast<unsigned char>(pairs[0]), static_cast<unsigned char>(pairs[1]));
  return set;
}

}  // namespace

RangeSet RangeSet::all() {
  RangeSet set;
  set.add(0, kLast);
  return set;
}

std::vector<RangeSet::Range> RangeSet::ranges() const {
  std::vector<Range> sorted = ranges_, made;
  std::ranges::sort(sorted);
  for (const Range& range : sorted) {
    if (!made.empty() && range.first <= made.back().second + 1) made.back().second = std::max(made.back().second, range.second);
    else made.push_back(range);
  }
  return made;
}

bool RangeSet::has(char32_t c) const {
  return std::ranges::any_of(ranges_, [&](const Range& range) { return c >= range.first && c <= range.second; });
}

RangeSet RangeSet::inverted() const {
  RangeSet made;
  char32_t from = 0;
  for (const auto& [first, last] : ranges()) {
    if (first > from) made.add(from, first - 1);
    from = last + 1;
  }
  if (from <= kLast) made.add(from, kLast);
  return made;
}

RangeSet RangeSet::without(char32_t c) const {
  RangeSet rest = inverted();
  rest.add(c, c);
  return rest.inverted();
}

RangeSet RangeSet::folded() const {
  RangeSet made;
  for (const auto& [first, last] : ranges()) {
    made.add(first, last);
    for (char32_t c = first; c <= std::min(last, kCaseEnd); ++c) {
      for (const auto& [from, to] : kNoCase) {
        if (c >= from && c <= to) c = to + 1;
      }
      if (c > last) break;
      const char32_t upper = cased(c, true);
      for (const char32_t other : {upper, cased(upper, false), cased(c, false)}) {
        if (other != c) made.add(other, other);
      }
    }
  }
  const RangeSet pairs = made;
  for (const char32_t third : kThird) {
    const char32_t small = cased(cased(third, true), false), lower = cased(third, false);
    if (pairs.has(small) || pairs.has(lower) || pairs.has(cased(lower, true))) made.add(third, third);
  }
  return made;
}

bool take_perl_class(std::string_view& text, bool fold, RangeSet* set) {
  if (text.size() < 2 || text[0] != '\\') return false;
  const char* pairs = nullptr;
  switch (text[1] | 0x20) {
    case 'd': pairs = "09"; break;
    case 's': pairs = "\t\n\f\r  "; break;
    case 'w': pairs = "09AZ__az"; break;
    default: return false;
  }
  if (!std::strchr("dswDSW", text[1])) return false;
  // What \\W leaves out are also letters that fold to one of \\w.
  *set = fold ? of_pairs(pairs).folded() : of_pairs(pairs);
  if (!(text[1] & 0x20)) *set = set->inverted();
  text.remove_prefix(2);
  return true;
}

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char small = static_cast<char>(c | 0x20);
  return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

const char* take_hex(std::string_view& text, char32_t* c) {
  constexpr const char* kBad = "\\x takes two hexadecimal digits, or up to 10FFFF in braces";
  const bool braces = text.starts_with("{");
  if (braces) text.remove_prefix(1);
  *c = 0;
  size_t digits = 0;
  for (; !text.empty() && hex_digit(text[0]) >= 0 && (braces || digits < 2) && *c <= kLast; ++digits) {
    *c = *c * 16 + static_cast<char32_t>(hex_digit(text[0]));
    text.remove_prefix(1);
  }
  if (*c > kLast || digits == 0 || (!braces && digits != 2)) return kBad;
  if (!braces) return nullptr;
  if (!text.starts_with("}")) return kBad;
  text.remove_prefix(1);
  return nullptr;
}

}  // namespace

const char* take_escape(std::string_view& text, char32_t* c) {
  text.remove_prefix(1);
  if (text.empty()) return "a backslash at the end";
  const char first = text[0];
  if (first >= '0' && first <= '7') {
    if (first != '0' && (text.size() < 2 || text[1] < '0' || text[1] > '7')) return "references to groups are not there";
    *c = 0;
    for (int i = 0; i < 3 && !text.empty() && text[0] >= '0' && text[0] <= '7'; ++i) {
      *c = *c * 8 + static_cast<char32_t>(text[0] - '0');
      text.remove_prefix(1);
    }
    return nullptr;
  }
  static constexpr char kNames[] = "afnrtv", kMeant[] = "\a\f\n\r\t\v";
  if (const char* const at = std::strchr(kNames, first); at && first != '\0') {
    text.remove_prefix(1);
    *c = static_cast<unsigned char>(kMeant[at - kNames]);
    return nullptr;
  }
  if (first == 'x') {
    text.remove_prefix(1);
    return take_hex(text, c);
  }
  const bool letter = (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z') || (first >= '0' && first <= '9');
  if (letter || static_cast<unsigned char>(first) >= 0x80) return "no such escape";
  *c = static_cast<unsigned char>(first);
  text.remove_prefix(1);
  return nullptr;
}

namespace {

// [:alpha:] and [:^alpha:]; false: no such thing stands there.
Result<bool> take_posix(std::string_view& text, bool fold, RangeSet* set) {
  const size_t end = text.find(":]");
  if (!text.starts_with("[:") || end == text.npos) return false;
  std::string_view name = text.substr(2, end - 2);
  const bool inverted = name.starts_with("^");
  if (inverted) name.remove_prefix(1);
  const auto* const row = std::ranges::find(kPosix, name, [](const Named& named) { return std::string_view(named.name); });
  if (row == std::end(kPosix)) return invalid_argument("no class of that name between [: and :]");
  *set = of_pairs(row->ranges);
  // The tables end at 0, which two of them have.
  if (name == "ascii" || name == "cntrl") set->add(0, 0);
  if (fold) *set = set->folded();
  if (inverted) *set = set->inverted();
  text.remove_prefix(end + 2);
  return true;
}

Status take_one(std::string_view& text, char32_t* c) {
  if (text.empty()) return invalid_argument("a ] is missing");
  if (text[0] != '\\') {
    *c = next_char(text);
    return {};
  }
  if (text.size() > 1 && (text[1] == 'p' || text[1] == 'P'))
    return unimplemented("classes by Unicode property are not there yet; use ranges");
  const char* const wrong = take_escape(text, c);
  return wrong ? invalid_argument("%s", wrong) : Status();
}

}  // namespace

Result<RangeSet> bracket(std::string_view& text, bool fold) {
  text.remove_prefix(1);
  const bool inverted = text.starts_with("^");
  if (inverted) text.remove_prefix(1);
  RangeSet set;
  for (bool first = true; first || text.empty() || text[0] != ']'; first = false) {
    RangeSet named;
    DTG_ASSIGN(const bool known, take_posix(text, fold, &named));
    if (known || take_perl_class(text, fold, &named)) {
      set.add(named);
      continue;
    }
    char32_t low = 0, high = 0;
    DTG_TRY(take_one(text, &low));
    high = low;
    if (text.size() > 1 && text[0] == '-' && text[1] != ']') {
      text.remove_prefix(1);
      DTG_TRY(take_one(text, &high));
      if (high < low) return invalid_argument("a range that ends before it begins");
    }
    named.add(low, high);
    set.add(fold ? named.folded() : named);
  }
  text.remove_prefix(1);
  return inverted ? set.inverted() : set;
}

}  // namespace dtg::ops
