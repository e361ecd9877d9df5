// Arguments: see the header.
#include "arguments.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "console.h"

namespace dtg::cli {
namespace {

size_t distance(const std::string& a, const std::string& b) {
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

// One line per entry: the name, padded, and its explanation.
void describe(std::string* out, const std::string& name, const std::string& help) {
  constexpr size_t kColumn = 26;
  std::string line = "  " + name;
  line.append(line.size() < kColumn ? kColumn - line.size() : 2, ' ');
  *out += line + help + "\n";
}

}  // namespace

std::string closest(const std::string& word, const std::vector<std::string>& names) {
  std::string best;
  // A third of the letters, or one, may be wrong: the dashes in front of an option are always right.
  const size_t letters = word.size() - std::min(word.find_first_not_of('-'), word.size());
  size_t least = std::max<size_t>(1, letters / 3) + 1;
  for (const std::string& name : names) {
    const size_t d = distance(word, name);
    if (d < least) least = d, best = name;
  }
  return best;
}

Arguments::Arguments(std::string command, std::string usage, std::string purpose)
    : command_(std::move(command)), usage_(std::move(usage)), purpose_(std::move(purpose)) {}

void Arguments::flag(const std::string& name, bool* target, std::string help) {
  Option option{name, "", std::move(help)};
  option.on = target;
  options_.push_back(std::move(option));
}

void Arguments::text(const std::string& name, const std::string& value, std::string* target, std::string help) {
  Option option{name, value, std::move(help)};
  option.text = target;
  options_.push_back(std::move(option));
}

void Arguments::number(const std::string& name, const std::string& value, int64_t least, int64_t most, int64_t* target, std::string help) {
  Option option{name, value, std::move(help)};
  option.number = target;
  option.least = least;
  option.most = most;
  options_.push_back(std::move(option));
}

void Arguments::range(const std::string& name, const std::string& value, int64_t least, int64_t most, int64_t* low, int64_t* high,
                      std::string help) {
  number(name, value, least, most, low, std::move(help));
  options_.back().high = high;
}

void Arguments::position(const std::string& name, bool required, std::string* target, std::string help) {
  positions_.push_back({name, std::move(help), required, target});
}

void Arguments::rest(const std::string& name, std::vector<std::string>* target, std::string help) {
  rest_name_ = name;
  rest_ = target;
  rest_help_ = std::move(help);
}

std::string Arguments::nearest(const std::string& name) const {
  std::vector<std::string> names = {"--help"};
  for (const Option& option : options_) names.push_back(option.name);
  return closest(name, names);
}

bool Arguments::set(Option& option, const std::string& value, std::string* problem) {
  if (option.seen) return *problem = option.name + " is given twice", false;
  option.seen = true;
  if (option.text) return *option.text = value, true;
  int64_t low = 0, high = 0;
  const size_t dots = option.high ? value.find("..") : std::string::npos;
  bool ok = read_number(option, std::string_view(value).substr(0, dots), &low);
  high = low;
  if (ok && dots != std::string::npos) ok = read_number(option, std::string_view(value).substr(dots + 2), &high) && low < high;
  if (!ok) {
    *problem = option.name + " takes a whole number from " + std::to_string(option.least) + " to " + std::to_string(option.most) +
               (option.high ? ", or two of them as a range, such as 2..8" : "") + ", not \"" + value + "\"";
    return false;
  }
  *option.number = low;
  if (option.high) *option.high = high;
  return true;
}

bool Arguments::read_number(const Option& option, std::string_view text, int64_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size() && *number >= option.least && *number <= option.most;
}

bool Arguments::fill(const std::string& word, std::string* problem) {
  if (filled_ == positions_.size()) return *problem = "\"" + word + "\" is one argument too many", false;
  *positions_[filled_++].text = word;
  return true;
}

// One word of the command line, and its value where it has one.
bool Arguments::take(int argc, char** argv, int* at, std::string* problem) {
  const std::string word = argv[*at];
  if (word.size() < 2 || word[0] != '-') return fill(word, problem);
  const size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const auto option = std::find_if(options_.begin(), options_.end(), [&](const Option& o) { return o.name == name; });
  if (option == options_.end()) {
    const std::string near = nearest(name);
    *problem = "there is no option " + name + (near.empty() ? "" : "; did you mean " + near + "?");
    return false;
  }
  if (option->on) {
    if (equals != std::string::npos) return *problem = name + " takes no value", false;
    return *option->on = true, true;
  }
  if (equals != std::string::npos) return set(*option, word.substr(equals + 1), problem);
  if (*at + 1 == argc) return *problem = name + " needs a value: " + name + " " + option->value, false;
  return set(*option, argv[++*at], problem);
}

bool Arguments::read(int argc, char** argv, int* exit_code) {
  std::string problem;
  for (int at = 1; at < argc && problem.empty(); at++) {
    const std::string word = argv[at];
    if (word == "--help" || word == "-h") {
      print(help());
      return *exit_code = kOk, false;
    }
    if (rest_ && (word == "--" || word.empty() || word[0] != '-')) {
      rest_->assign(argv + at + (word == "--" ? 1 : 0), argv + argc);
      break;
    }
    take(argc, argv, &at, &problem);
  }
  if (problem.empty() && filled_ < positions_.size() && positions_[filled_].required) problem = positions_[filled_].name + " is missing";
  if (problem.empty() && rest_ && rest_->empty()) problem = rest_name_ + " is missing";
  if (problem.empty()) return true;
  complain(problem + "\n  usage: dtg " + usage_ + "\n  all options: dtg " + command_ + " --help");
  return *exit_code = kUsage, false;
}

std::string Arguments::help() const {
  std::string text = "usage: dtg " + usage_ + "\n\n" + purpose_ + "\n\n";
  for (const Position& position : positions_) describe(&text, position.name, position.help);
  if (rest_) describe(&text, rest_name_, rest_help_);
  for (const Option& option : options_) describe(&text, option.name + (option.value.empty() ? "" : " " + option.value), option.help);
  describe(&text, "--help", "this text");
  return text + "\nExit codes: " + (codes_.empty() ? "0 done, 1 failed, 2 a mistake on the command line." : codes_) + "\n";
}

}  // namespace dtg::cli
