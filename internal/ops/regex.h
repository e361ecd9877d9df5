// Regex: regular expressions with RE2's syntax and answers, in time that grows with text times pattern whatever the pattern: no
// backtracking. The leftmost match counts, and of those the one that Perl would find first. Text is UTF-8; a byte that is none matches
// nothing. Classes by Unicode property (\p) and single bytes (\C) are UNIMPLEMENTED.
//
// A pattern is immutable, any thread may use it; a Matcher has the memory of one search after the other, on one thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace dtg::ops {

class Regex {
 public:
  // INVALID_ARGUMENT with what is wrong where; RESOURCE_EXHAUSTED for a pattern that becomes too large.
  static Result<Regex> compile(std::string_view pattern);

  // Pairs of parentheses that keep what they match.
  int groups() const { return groups_; }

 private:
  friend class RegexCompiler;
  friend class RegexMatcher;
  enum class Do : uint8_t { range_set, split, save, check, match };
  enum class Check : uint8_t { text_begin, text_end, line_begin, line_end, word, no_word };
  struct Step {
    Do what;
    uint32_t next = 0;
    uint32_t other = 0;  // of a split, which is tried after `next`; of a set its number, of a save the place, of a check which one
  };
  using Range = std::pair<char32_t, char32_t>;
  std::vector<Step> steps_;
  std::vector<std::vector<Range>> sets_;  // in order, apart from each other
  uint32_t start_ = 0;
  int groups_ = 0;
};

class RegexMatcher {
 public:
  static constexpr int kGroupsMost = 10;  // the whole and \1 to \9

  explicit RegexMatcher(const Regex& regex);
  // Does all of the text match?
  bool matches_all(std::string_view text);
  // The first match from `from` on; group i is text[places[2 i], places[2 i + 1]), SIZE_MAX where it took no part.
  using Places = std::array<size_t, 2 * kGroupsMost>;
  bool find(std::string_view text, size_t from, Places* places);

 private:
  struct Threads {
    std::vector<uint32_t> steps, at;  // sparse set: steps[at[s]] == s
    std::vector<Places> places;
  };
  bool search(std::string_view text, size_t from, bool whole, Places* places);
  void add(Threads& to, uint32_t step, const Places& places, std::string_view text, size_t at);
  bool holds(Regex::Check check, std::string_view text, size_t at) const;
  bool has(uint32_t set, char32_t c) const;

  const Regex& regex_;
  Threads now_, next_;
  struct Waiting {
    uint32_t step;
    Places places;
  };
  std::vector<Waiting> stack_;
};

// A rewrite: text with \0 for the whole match, \1 to \9 for groups, \\ for a backslash.
class Rewrite {
 public:
  static Result<Rewrite> parse(std::string_view text, int groups);
  void append(std::string* to, std::string_view text, const RegexMatcher::Places& places) const;

 private:
  std::vector<std::pair<std::string, int>> parts_;  // text, then a group or -1
};

// The text with its first match, or all of them, rewritten. Matches do not overlap, and none is empty where one just ended.
std::string replaced(RegexMatcher& matcher, std::string_view text, const Rewrite& rewrite, bool all);

}  // namespace dtg::ops
