// Sets of characters as patterns write them: brackets, \d and its like, escapes of single characters. Values; any thread.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace dtg::ops {

class RangeSet {
 public:
  using Range = std::pair<char32_t, char32_t>;

  static RangeSet all();
  void add(char32_t first, char32_t last) { ranges_.emplace_back(first, last); }
  void add(const RangeSet& other) { ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end()); }
  RangeSet inverted() const;
  RangeSet without(char32_t c) const;
  // With what differs from it only by the case of letters.
  RangeSet folded() const;
  // In order, apart from each other.
  std::vector<Range> ranges() const;
  bool has(char32_t c) const;

 private:
  std::vector<Range> ranges_;
};

// \d \D \s \S \w \W, taken off the front; false: something else stands there.
bool take_perl_class(std::string_view& text, bool fold, RangeSet* set);
// A backslash and what it stands for; what is wrong with it, or null.
const char* take_escape(std::string_view& text, char32_t* c);
// [...], taken off the front. The message of an error says what is wrong, not where.
Result<RangeSet> bracket(std::string_view& text, bool fold);

}  // namespace dtg::ops
