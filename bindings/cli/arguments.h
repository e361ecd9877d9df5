// Arguments: the options and positions of one command: reads them from a command line, says what is wrong with it, and
// prints the help. One per run of the command; single thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dtg::cli {

class Arguments {
 public:
  // `usage` is what follows "dtg " on the first line of the help; `purpose` is a paragraph.
  Arguments(std::string command, std::string usage, std::string purpose);

  // Where to put what is found; the target holds the default.
  void flag(const std::string& name, bool* target, std::string help);
  void text(const std::string& name, const std::string& value, std::string* target, std::string help);
  void number(const std::string& name, const std::string& value, int64_t least, int64_t most, int64_t* target, std::string help);
  // "N", or "N..M" with N below M; one number is both.
  void range(const std::string& name, const std::string& value, int64_t least, int64_t most, int64_t* low, int64_t* high, std::string help);
  void position(const std::string& name, bool required, std::string* target, std::string help);
  // Everything after "--" (or the first position) belongs to a program.
  void rest(const std::string& name, std::vector<std::string>* target, std::string help);
  // Shown at the end of the help.
  void exit_codes(std::string text) { codes_ = std::move(text); }

  // True: go on. False: `exit_code` says how to end (0 after --help, 2 after a mistake, which has been reported).
  bool read(int argc, char** argv, int* exit_code);

 private:
  struct Option {
    std::string name;   // "--workers"
    std::string value;  // how the help calls it; empty for a flag
    std::string help;
    bool* on = nullptr;
    std::string* text = nullptr;
    int64_t* number = nullptr;
    int64_t* high = nullptr;  // of a range
    int64_t least = 0, most = 0;
    bool seen = false;
  };
  struct Position {
    std::string name, help;
    bool required;
    std::string* text;
  };

  bool take(int argc, char** argv, int* at, std::string* problem);
  static bool read_number(const Option& option, std::string_view text, int64_t* number);
  bool set(Option& option, const std::string& value, std::string* problem);
  bool fill(const std::string& word, std::string* problem);
  std::string help() const;
  std::string nearest(const std::string& name) const;

  std::string command_, usage_, purpose_, codes_;
  std::vector<Option> options_;
  std::vector<Position> positions_;
  size_t filled_ = 0;
  std::string rest_name_, rest_help_;
  std::vector<std::string>* rest_ = nullptr;
};

// The name of `names` that `word` probably meant; "" when none is close.
std::string closest(const std::string& word, const std::vector<std::string>& names);

}  // namespace dtg::cli
