// Reads a pattern into a tree, and makes the tree into steps. See regex.h.
#include "ops/regex.h"

#include <algorithm>
#include <memory>

#include "ops/regex_sets.h"
#include "ops/texts.h"

namespace dtg::ops {
namespace {

constexpr size_t kStepsMost = 100000;
constexpr int kDeepest = 500, kRepeatMost = 1000;

}  // namespace

class RegexCompiler {
 public:
  explicit RegexCompiler(std::string_view pattern) : rest_(pattern), pattern_(pattern) {}

  Result<Regex> run() {
    for (std::string_view all = rest_; !all.empty();) {
      const std::string_view before = all;
      if (next_char(all) == 0xfffd && before.substr(0, 3) != "\xef\xbf\xbd") return bad("it is no UTF-8");
    }
    DTG_ASSIGN(const TreeRef tree, alternatives(0));
    if (!rest_.empty()) return bad("a ) without (");
    regex_.groups_ = groups_;
    // From the end to the beginning, so that what follows is known.
    if (!repeats_within(*tree, kRepeatMost)) return bad("repetitions inside of each other, of more than 1000 together");
    const uint32_t match = step(Regex::Do::match, 0, 0);
    const uint32_t end = step(Regex::Do::save, match, 1);
    const uint32_t begin = emit(*tree, end);
    regex_.start_ = step(Regex::Do::save, begin, 0);
    if (too_large_) return resource_exhausted("regular expression \"%s\": it is too large", shown().c_str());
    return std::move(regex_);
  }

 private:
  struct Tree {
    enum Kind { set, keep, repeat, sequence, choice, check } kind = sequence;
    RangeSet ranges;                            // of a set
    int number = 0;                             // of a kept group; of a check which one
    int least = 0, most = -1;                   // of a repeat; -1: without end
    bool lazy = false;                          // a repeat that prefers fewer
    std::vector<std::unique_ptr<Tree>> inside;  // in order
  };
  using TreeRef = std::unique_ptr<Tree>;

  struct Flags {
    bool fold = false, lines = false, dot_newline = false, lazy = false;
  };

  std::string shown() const { return std::string(pattern_.substr(0, 200)); }
  Status bad(const char* what) const {
    return invalid_argument("regular expression \"%s\", at byte %zu: %s", shown().c_str(), pattern_.size() - rest_.size(), what);
  }
  Status missing(const char* what) const {
    return unimplemented("regular expression \"%s\", at byte %zu: %s", shown().c_str(), pattern_.size() - rest_.size(), what);
  }
  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  // ---- reading ----

  Result<TreeRef> alternatives(int depth) {
    if (depth > kDeepest) return bad("parentheses nest too deeply");
    auto choice = std::make_unique<Tree>(Tree{.kind = Tree::choice});
    const Flags outside = flags_;  // flags that are set in a group end with it
    do {
      DTG_ASSIGN(TreeRef one, sequence(depth));
      choice->inside.push_back(std::move(one));
    } while (take("|"));
    flags_ = outside;
    return choice;
  }

  Result<TreeRef> sequence(int depth) {
    auto all = std::make_unique<Tree>(Tree{.kind = Tree::sequence});
    while (!rest_.empty() && rest_[0] != '|' && rest_[0] != ')') {
      if (take("\\Q")) {
        const size_t end = std::min(rest_.find("\\E"), rest_.size());
        std::string_view quoted = rest_.substr(0, end);
        rest_.remove_prefix(end);
        take("\\E");
        while (!quoted.empty()) all->inside.push_back(letter(next_char(quoted)));
        if (all->inside.empty()) continue;
      } else if (rest_.starts_with("\\E")) {
        return bad("\\E without \\Q");
      } else {
        DTG_ASSIGN(TreeRef one, atom(depth));
        if (!one) continue;  // flags
        all->inside.push_back(std::move(one));
      }
      DTG_TRY(repeats(all->inside.back()));
    }
    return all;
  }

  // What stands behind an atom: * + ? {n,m}, and another ? for fewer rather than more.
  Status repeats(TreeRef& of) {
    int least = 0, most = 0;
    DTG_ASSIGN(const bool there, repetition(&least, &most));
    if (!there) return {};
    auto made = std::make_unique<Tree>(Tree{.kind = Tree::repeat, .least = least, .most = most, .lazy = take("?") != flags_.lazy});
    made->inside.push_back(std::move(of));
    of = std::move(made);
    int more = 0;
    DTG_ASSIGN(const bool again, repetition(&more, &more));
    return again ? bad("one repetition behind another; put parentheses around the first") : Status();
  }

  Result<bool> repetition(int* least, int* most) {
    if (take("*")) return *least = 0, *most = -1, true;
    if (take("+")) return *least = 1, *most = -1, true;
    if (take("?")) return *least = 0, *most = 1, true;
    if (!rest_.starts_with("{")) return false;
    // Braces that say no numbers stand for themselves.
    std::string_view at = rest_.substr(1);
    const int low = digits(at);
    int high = low;
    if (low < 0) return false;
    if (at.starts_with(",")) {
      at.remove_prefix(1);
      high = at.starts_with("}") ? -1 : digits(at);
      if (high < 0 && !at.starts_with("}")) return false;
    }
    if (!at.starts_with("}")) return false;
    if (low > kRepeatMost || high > kRepeatMost || (high >= 0 && low > high)) return bad("{n,m} with n above m, or above 1000");
    rest_ = at.substr(1);
    *least = low, *most = high;
    return true;
  }
  static int digits(std::string_view& at) {
    if (at.empty() || at[0] < '0' || at[0] > '9') return -1;
    int number = 0;
    while (!at.empty() && at[0] >= '0' && at[0] <= '9') {
      number = std::min(number * 10 + (at[0] - '0'), 100000);
      at.remove_prefix(1);
    }
    return number;
  }

  // Null where it was flags for what follows.
  Result<TreeRef> atom(int depth) {
    if (rest_.starts_with("(")) return group(depth);
    if (rest_.starts_with("[")) return of_set(bracket(rest_, flags_.fold));
    if (rest_.starts_with("\\")) return escape();
    if (take(".")) return of_ranges(flags_.dot_newline ? RangeSet::all() : RangeSet::all().without('\n'));
    if (take("^")) return check(flags_.lines ? Regex::Check::line_begin : Regex::Check::text_begin);
    if (take("$")) return check(flags_.lines ? Regex::Check::line_end : Regex::Check::text_end);
    if (rest_[0] == '*' || rest_[0] == '+' || rest_[0] == '?') return bad("nothing stands before it that could repeat");
    return letter(next_char(rest_));
  }

  Result<TreeRef> group(int depth) {
    take("(");
    int number = -1;
    if (take("?P<") || (rest_.starts_with("?<") && !rest_.starts_with("?<=") && !rest_.starts_with("?<!") && take("?<"))) {
      const size_t end = rest_.find('>');
      const std::string name(rest_.substr(0, std::min(end, rest_.size())));
      const auto word = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; };
      if (end == rest_.npos || name.empty() || !std::ranges::all_of(name, word)) return bad("a bad name of a group");
      rest_.remove_prefix(end + 1);
      number = ++groups_;
    } else if (take("?")) {
      const Flags outside = flags_;
      DTG_ASSIGN(const bool opens, read_flags());
      if (!opens) return TreeRef();
      DTG_ASSIGN(TreeRef inside, alternatives(depth + 1));
      flags_ = outside;
      if (!take(")")) return bad("a ) is missing");
      return inside;
    } else {
      number = ++groups_;
    }
    auto kept = std::make_unique<Tree>(Tree{.kind = Tree::keep, .number = number});
    DTG_ASSIGN(TreeRef inside, alternatives(depth + 1));
    if (!take(")")) return bad("a ) is missing");
    kept->inside.push_back(std::move(inside));
    return kept;
  }

  // (?is-mU) for what follows, or (?i:...) for what is inside; true: a group begins.
  Result<bool> read_flags() {
    bool value = true, any = false;
    for (; !rest_.empty(); rest_.remove_prefix(1)) {
      const char c = rest_[0];
      if (c == 'i') flags_.fold = value;
      else if (c == 'm') flags_.lines = value;
      else if (c == 's') flags_.dot_newline = value;
      else if (c == 'U') flags_.lazy = value;
      else if (c == '-' && value) value = false, any = false;
      else break;
      any = any || c != '-';
    }
    if (rest_.empty() || (rest_[0] != ':' && rest_[0] != ')') || (!value && !any))
      return bad("no such group or flag; there is no looking around");
    const bool opens = rest_[0] == ':';
    rest_.remove_prefix(1);
    return opens;
  }

  Result<TreeRef> escape() {
    if (take("\\A")) return check(Regex::Check::text_begin);
    if (take("\\z")) return check(Regex::Check::text_end);
    if (take("\\b")) return check(Regex::Check::word);
    if (take("\\B")) return check(Regex::Check::no_word);
    if (rest_.starts_with("\\C")) return missing("\\C, a single byte, is not there; . is a character");
    if (rest_.starts_with("\\p") || rest_.starts_with("\\P")) return missing("classes by Unicode property are not there yet; use ranges");
    RangeSet perl;
    if (take_perl_class(rest_, flags_.fold, &perl)) return of_ranges(std::move(perl));
    char32_t c = 0;
    if (const char* const wrong = take_escape(rest_, &c)) return bad(wrong);
    return letter(c);
  }

  Result<TreeRef> of_set(Result<RangeSet> set) {
    if (set.ok()) return of_ranges(set.take());
    return set.status().code() == Code::unimplemented ? missing(set.status().message().c_str()) : bad(set.status().message().c_str());
  }
  TreeRef of_ranges(RangeSet ranges) { return std::make_unique<Tree>(Tree{.kind = Tree::set, .ranges = std::move(ranges)}); }
  TreeRef letter(char32_t c) {
    RangeSet one;
    one.add(c, c);
    return of_ranges(flags_.fold ? one.folded() : one);
  }
  TreeRef check(Regex::Check which) { return std::make_unique<Tree>(Tree{.kind = Tree::check, .number = static_cast<int>(which)}); }

  // ---- making steps ----

  uint32_t step(Regex::Do what, uint32_t next, uint32_t other) {
    if (regex_.steps_.size() >= kStepsMost) {
      too_large_ = true;
      return 0;
    }
    regex_.steps_.push_back({what, next, other});
    return static_cast<uint32_t>(regex_.steps_.size() - 1);
  }
  uint32_t split(uint32_t more, uint32_t out, bool lazy) { return step(Regex::Do::split, lazy ? out : more, lazy ? more : out); }

  static bool repeats_within(const Tree& tree, int most) {
    if (tree.kind == Tree::repeat) {
      const int times = tree.most < 0 ? tree.least : tree.most;
      if (times > most) return false;
      if (times > 0) most /= times;
    }
    return std::ranges::all_of(tree.inside, [&](const TreeRef& one) { return repeats_within(*one, most); });
  }

  static bool may_be_empty(const Tree& tree) {
    const auto inside = [](const TreeRef& one) { return may_be_empty(*one); };
    switch (tree.kind) {
      case Tree::set: return false;
      case Tree::repeat: return tree.least == 0 || may_be_empty(*tree.inside[0]);
      case Tree::choice: return std::ranges::any_of(tree.inside, inside);
      default: return std::ranges::all_of(tree.inside, inside);
    }
  }

  // The first step of the tree, which goes on with `next`.
  uint32_t emit(const Tree& tree, uint32_t next) {
    if (too_large_) return 0;
    switch (tree.kind) {
      case Tree::set: {
        regex_.sets_.push_back(tree.ranges.ranges());
        return step(Regex::Do::range_set, next, static_cast<uint32_t>(regex_.sets_.size() - 1));
      }
      case Tree::check: return step(Regex::Do::check, next, static_cast<uint32_t>(tree.number));
      case Tree::keep: {
        const auto place = static_cast<uint32_t>(2 * tree.number);
        return step(Regex::Do::save, emit(*tree.inside[0], step(Regex::Do::save, next, place + 1)), place);
      }
      case Tree::repeat: return emit_repeat(tree, next);
      case Tree::choice: {
        uint32_t first = emit(*tree.inside.back(), next);
        for (size_t i = tree.inside.size() - 1; i-- > 0;) first = split(emit(*tree.inside[i], next), first, false);
        return first;
      }
      default: break;
    }
    for (size_t i = tree.inside.size(); i-- > 0;) next = emit(*tree.inside[i], next);
    return next;
  }

  uint32_t emit_repeat(const Tree& tree, uint32_t next) {
    const Tree& inside = *tree.inside[0];
    if (tree.most < 0) {
      // The loop: its own split stands first, so that the inside can go back to it.
      const uint32_t loop = split(0, next, tree.lazy);
      const uint32_t body = emit(inside, loop);
      if (too_large_) return 0;
      (tree.lazy ? regex_.steps_[loop].other : regex_.steps_[loop].next) = body;
      // x* of what may be empty is (x+)?: otherwise the empty way would come before the better ones.
      next = tree.least > 0 ? body : may_be_empty(inside) ? split(body, next, tree.lazy) : loop;
      for (int i = 1; i < tree.least; ++i) next = emit(inside, next);
      return next;
    }
    // x{2,4} is xx(x(x)?)?
    const uint32_t out = next;
    for (int i = tree.least; i < tree.most; ++i) next = split(emit(inside, next), out, tree.lazy);
    for (int i = 0; i < tree.least; ++i) next = emit(inside, next);
    return next;
  }

  std::string_view rest_;
  const std::string_view pattern_;
  Flags flags_;
  int groups_ = 0;
  bool too_large_ = false;
  Regex regex_;
};

Result<Regex> Regex::compile(std::string_view pattern) { return RegexCompiler(pattern).run(); }

}  // namespace dtg::ops
