// Rows of comma-separated values: cuts text into rows of fields, with quotes undone and line numbers kept. Owner: who reads; one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace dtg {

// Cuts text into rows of fields. Views into the text, or into scratch where quotes had to be undone.
class CsvRows {
 public:
  CsvRows(std::string_view text, char delimiter) : left_(text), delimiter_(delimiter) {
    if (left_.starts_with("\xef\xbb\xbf")) left_.remove_prefix(3);
  }

  // The next row that is not blank, or false at the end.
  Result<bool> next(std::vector<std::string_view>& fields) {
    fields.clear();
    unquoted_.clear();
    while (!left_.empty() && (left_[0] == '\n' || left_[0] == '\r')) skip_line_end();
    if (left_.empty()) return false;
    line_of_row_ = line_;
    for (;;) {
      DTG_TRY(field(fields));
      if (left_.empty()) break;
      if (left_[0] == delimiter_) {
        left_.remove_prefix(1);
        continue;
      }
      skip_line_end();
      break;
    }
    // Pointers into unquoted_ only now, when it grows no more.
    for (const auto& [index, begin, end] : patches_) {
      fields[index] = std::string_view(unquoted_).substr(begin, end - begin);
    }
    patches_.clear();
    return true;
  }

  int64_t line() const { return line_of_row_; }

 private:
  static constexpr size_t kColumnsMax = size_t{1} << 16;
  struct Patch {
    size_t index, begin, end;
  };

  void skip_line_end() {
    if (left_.starts_with("\r\n")) left_.remove_prefix(1);
    left_.remove_prefix(1);
    ++line_;
  }

  // One field; afterwards left_ is empty or starts with the delimiter or a line's end.
  Status field(std::vector<std::string_view>& fields) {
    if (fields.size() >= kColumnsMax) {
      return resource_exhausted("line %lld: more than %zu columns", static_cast<long long>(line_), kColumnsMax);
    }
    if (!left_.empty() && left_[0] == '"') return quoted(fields);
    size_t end = 0;
    while (end < left_.size() && left_[end] != delimiter_ && left_[end] != '\n' && left_[end] != '\r') ++end;
    fields.push_back(left_.substr(0, end));
    left_.remove_prefix(end);
    return {};
  }

  Status quoted(std::vector<std::string_view>& fields) {
    const int64_t opened = line_;
    left_.remove_prefix(1);
    const size_t begin = unquoted_.size();
    for (;;) {
      const size_t quote = left_.find('"');
      if (quote == std::string_view::npos) {
        return data_loss("line %lld: a quoted field never ends", static_cast<long long>(opened));
      }
      line_ += std::count(left_.begin(), left_.begin() + static_cast<std::ptrdiff_t>(quote), '\n');
      unquoted_.append(left_.substr(0, quote));
      left_.remove_prefix(quote + 1);
      if (left_.empty() || left_[0] != '"') break;
      unquoted_ += '"';
      left_.remove_prefix(1);
    }
    if (!left_.empty() && left_[0] != delimiter_ && left_[0] != '\n' && left_[0] != '\r') {
      return data_loss("line %lld: text follows a quoted field", static_cast<long long>(line_));
    }
    patches_.push_back({fields.size(), begin, unquoted_.size()});
    fields.emplace_back();
    return {};
  }

  std::string_view left_;
  const char delimiter_;
  int64_t line_ = 1;
  int64_t line_of_row_ = 1;
  std::string unquoted_;
  std::vector<Patch> patches_;
};

}  // namespace dtg
