// LogText: what one stream of a child says: cuts it into complete lines, and keeps what stands after the last carriage
// return of an unfinished line as the child's status. Owned by the supervisor; its thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace dtg::cli {

class LogText {
 public:
  // `line` gets each complete line without its end, escape sequences taken out, colours kept where `colors`.
  LogText(bool colors, std::function<void(std::string_view)> line) : colors_(colors), line_(std::move(line)) {}

  void add(std::string_view bytes);
  // The stream has ended: what is left is a line, unless it is a status.
  void finish();
  // What the child draws over itself at the moment; "" when it draws nothing.
  std::string status() const;

 private:
  void end_line();

  const bool colors_;
  const std::function<void(std::string_view)> line_;
  std::string open_;    // the unfinished line, from its last carriage return on
  bool drawn_ = false;  // a carriage return began it
};

// `text` without escape sequences and control characters; with `colors`, the sequences that set colours stay.
std::string plain(std::string_view text, bool colors);

// As much of `text` as fits into `columns`, counting each character as one.
std::string clip(std::string_view text, size_t columns);

}  // namespace dtg::cli
