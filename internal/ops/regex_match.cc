// The searches: all ways through the pattern at once, in the order in which Perl would try them, one character of the text after the other
// (Pike's machine). See regex.h.
#include <algorithm>

#include "base/interrupt.h"
#include "ops/regex.h"
#include "ops/texts.h"

namespace dtg::ops {
namespace {

constexpr char32_t kNoChar = 0xffffffff;  // the end, or a byte that is no UTF-8

struct Letter {
  char32_t c = kNoChar;
  size_t bytes = 0;
};

Letter letter_at(std::string_view text, size_t at) {
  if (at >= text.size()) return {};
  std::string_view rest = text.substr(at);
  const char32_t c = next_char(rest);
  const size_t bytes = text.size() - at - rest.size();
  // U+FFFD itself takes three bytes, and stands for what cannot be read else.
  if (c == 0xfffd && text.substr(at, 3) != "\xef\xbf\xbd") return {kNoChar, 1};
  return {c, bytes};
}

bool is_word(std::string_view text, size_t at) {
  if (at >= text.size()) return false;
  const char c = text[at];
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

}  // namespace

RegexMatcher::RegexMatcher(const Regex& regex) : regex_(regex) {
  for (Threads* const threads : {&now_, &next_}) {
    threads->at.resize(regex.steps_.size());
    threads->steps.reserve(regex.steps_.size());
    threads->places.resize(regex.steps_.size());
  }
}

bool RegexMatcher::holds(Regex::Check check, std::string_view text, size_t at) const {
  using Check = Regex::Check;
  const bool between = is_word(text, at) != (at > 0 && is_word(text, at - 1));
  switch (check) {
    case Check::text_begin: return at == 0;
    case Check::text_end: return at == text.size();
    case Check::line_begin: return at == 0 || text[at - 1] == '\n';
    case Check::line_end: return at == text.size() || text[at] == '\n';
    case Check::word: return between;
    case Check::no_word: return !between;
  }
  return false;
}

bool RegexMatcher::has(uint32_t set, char32_t c) const {
  const auto& ranges = regex_.sets_[set];
  const auto after = std::ranges::upper_bound(ranges, c, {}, &Regex::Range::first);
  return after != ranges.begin() && c <= std::prev(after)->second;
}

// All steps that can be reached from here without a character, those of the better way first.
void RegexMatcher::add(Threads& to, uint32_t step, const Places& places, std::string_view text, size_t at) {
  stack_.clear();
  stack_.push_back({step, places});
  while (!stack_.empty()) {
    Waiting way = stack_.back();
    stack_.pop_back();
    while (true) {
      const uint32_t known = to.at[way.step];
      if (known < to.steps.size() && to.steps[known] == way.step) break;
      to.at[way.step] = static_cast<uint32_t>(to.steps.size());
      to.places[to.steps.size()] = way.places;
      to.steps.push_back(way.step);
      const Regex::Step& s = regex_.steps_[way.step];
      if (s.what == Regex::Do::split) {
        stack_.push_back({s.other, way.places});
      } else if (s.what == Regex::Do::save) {
        if (s.other < way.places.size()) way.places[s.other] = at;
      } else if (s.what != Regex::Do::check || !holds(static_cast<Regex::Check>(s.other), text, at)) {
        break;
      }
      way.step = s.next;
    }
  }
}

bool RegexMatcher::search(std::string_view text, size_t from, bool whole, Places* places) {
  Places none;
  none.fill(SIZE_MAX);
  bool found = false;
  now_.steps.clear();
  Lookout lookout;
  for (size_t at = from;;) {
    if (!found && (!whole || at == from)) add(now_, regex_.start_, none, text, at);
    if (now_.steps.empty()) break;
    const Letter letter = letter_at(text, at);
    next_.steps.clear();
    for (size_t t = 0; t < now_.steps.size(); ++t) {
      const Regex::Step& s = regex_.steps_[now_.steps[t]];
      if (s.what == Regex::Do::match && (!whole || at == text.size())) {
        found = true;
        *places = now_.places[t];
        break;  // what comes behind would be a worse match
      }
      if (s.what == Regex::Do::range_set && letter.c != kNoChar && has(s.other, letter.c))
        add(next_, s.next, now_.places[t], text, at + letter.bytes);
    }
    lookout.after(static_cast<int64_t>(now_.steps.size()) * 10);
    std::swap(now_, next_);
    if (at >= text.size()) break;
    at += letter.bytes;
  }
  return found;
}

bool RegexMatcher::matches_all(std::string_view text) {
  Places places;
  return search(text, 0, true, &places);
}

bool RegexMatcher::find(std::string_view text, size_t from, Places* places) { return search(text, from, false, places); }

Result<Rewrite> Rewrite::parse(std::string_view text, int groups) {
  Rewrite made;
  std::string piece;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      piece += text[i];
      continue;
    }
    const char next = i + 1 < text.size() ? text[++i] : '\0';
    if (next == '\\') {
      piece += '\\';
    } else if (next >= '0' && next <= '9') {
      if (next - '0' > groups)
        return invalid_argument("rewrite \"%s\": there is no group %c, the pattern has %d", std::string(text).c_str(), next, groups);
      made.parts_.emplace_back(std::move(piece), next - '0');
      piece.clear();
    } else {
      return invalid_argument("rewrite \"%s\": behind a backslash stands a digit or another backslash", std::string(text).c_str());
    }
  }
  if (!piece.empty()) made.parts_.emplace_back(std::move(piece), -1);
  return made;
}

void Rewrite::append(std::string* to, std::string_view text, const RegexMatcher::Places& places) const {
  for (const auto& [piece, group] : parts_) {
    *to += piece;
    if (group < 0) continue;
    const size_t begin = places[2 * static_cast<size_t>(group)], end = places[2 * static_cast<size_t>(group) + 1];
    if (begin != SIZE_MAX && end != SIZE_MAX) *to += text.substr(begin, end - begin);
  }
}

std::string replaced(RegexMatcher& matcher, std::string_view text, const Rewrite& rewrite, bool all) {
  std::string made;
  RegexMatcher::Places places;
  size_t at = 0, last_end = SIZE_MAX;
  Lookout lookout;
  while (at <= text.size() && matcher.find(text, at, &places)) {
    made += text.substr(at, places[0] - at);
    if (places[0] == last_end && places[1] == places[0]) {
      // An empty match where the last one ended does not count: a character further.
      const size_t bytes = letter_at(text, places[0]).bytes;
      made += text.substr(places[0], bytes);
      at = places[0] + std::max<size_t>(bytes, 1);
      continue;
    }
    const size_t before = made.size();
    rewrite.append(&made, text, places);
    lookout.after(static_cast<int64_t>((made.size() - before) / 8 + (places[1] - at) + 10));
    at = last_end = places[1];
    if (!all) break;
  }
  if (at < text.size()) made += text.substr(at);
  return made;
}

}  // namespace dtg::ops
