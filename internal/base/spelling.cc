// The distance is Levenshtein's, with neighbours that changed places, a row at a time.
#include "base/spelling.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/json.h"

namespace dtg {
namespace {

// Names stand on the line of their message, whatever is in them.
std::string shown(std::string_view name, size_t letters) {
  const std::string text = quoted(name, letters);
  return text.substr(1, text.rfind('"') - 1) + (text.ends_with("...") ? "..." : "");
}

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  // The last two rows: two letters in the wrong order are one slip.
  std::vector<size_t> row(b.size() + 1), before(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    std::vector<size_t> next(b.size() + 1, i);
    for (size_t j = 1; j <= b.size(); ++j) {
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) next[j] = std::min(next[j], before[j - 2] + 1);
    }
    before = std::exchange(row, std::move(next));
  }
  return row[b.size()];
}

size_t alike_below(std::string_view name) { return std::min<size_t>(4, name.size() / 2 + 1); }

std::string names_text(std::string_view meant, std::span<const std::string_view> names) {
  constexpr size_t kShown = 12, kLetters = 60;
  std::string_view near;
  size_t least = alike_below(meant);
  std::string all;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i < kShown) all += (i > 0 ? ", " : "") + shown(names[i], kLetters);
    if (names[i].size() > meant.size() + 4 || meant.size() > names[i].size() + 4) continue;
    if (const size_t distance = edit_distance(meant, names[i]); distance < least) least = distance, near = names[i];
  }
  if (names.size() > kShown) all += ", ...";
  const std::string there = "there " + std::string(names.size() == 1 ? "is " : "are ") + (names.empty() ? "none" : all);
  return near.empty() ? there : "did you mean " + quoted(near) + "? " + there;
}

}  // namespace dtg
