// LogText: see the header.
#include "log_text.h"

namespace dtg::cli {
namespace {

constexpr size_t kLongestLine = 65536;  // a longer one is cut, so that a child cannot make us hold it all

// Bytes of the escape sequence at the front of `text`: ESC [ ... letter, or ESC and one more.
size_t escape_size(std::string_view text) {
  if (text.size() < 2 || text[1] != '[') return text.size() < 2 ? text.size() : 2;
  size_t n = 2;
  while (n < text.size() && (text[n] < 0x40 || text[n] > 0x7e)) n++;
  return n < text.size() ? n + 1 : n;
}

}  // namespace

std::string plain(std::string_view text, bool colors) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    size_t n = 1;
    if (text[0] == '\033') {
      n = escape_size(text);
      if (colors && text[n - 1] == 'm' && n > 2) out += text.substr(0, n);
    } else if (static_cast<unsigned char>(text[0]) >= 32 || text[0] == '\t') {
      out += text[0];
    }
    text.remove_prefix(n);
  }
  return out;
}

std::string clip(std::string_view text, size_t columns) {
  size_t n = 0, seen = 0;
  while (n < text.size()) {
    const bool begins = (static_cast<unsigned char>(text[n]) & 0xc0) != 0x80;  // not inside a UTF-8 character
    if (begins && seen++ == columns) break;
    n++;
  }
  return std::string(text.substr(0, n));
}

void LogText::add(std::string_view bytes) {
  for (const char c : bytes) {
    if (c == '\n') {
      end_line();
    } else if (c == '\r') {
      open_.clear();
      drawn_ = true;
    } else {
      open_ += c;
      if (open_.size() == kLongestLine) end_line();
    }
  }
}

void LogText::end_line() {
  const std::string text = plain(open_, colors_);
  // A status that was wiped and left behind with a newline is no line.
  if (!drawn_ || !text.empty()) line_(text);
  open_.clear();
  drawn_ = false;
}

void LogText::finish() {
  if (!open_.empty() && !drawn_) end_line();
  open_.clear();
  drawn_ = false;
}

std::string LogText::status() const { return drawn_ ? plain(open_, false) : std::string(); }

}  // namespace dtg::cli
