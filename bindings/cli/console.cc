// Console: see the header.
#include "console.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace dtg::cli {
namespace {

bool speaks_json = false;

// All of it, whatever the descriptor takes at a time.
bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// `more`: further members, each after a comma.
void write_error(std::string_view code, std::string_view message, const std::string& more = "") {
  write_all(STDERR_FILENO, "{\"error\": {\"code\": " + quote(code) + ", \"message\": " + quote(message) + more + "}}\n");
}

}  // namespace

bool on_terminal(int fd) {
  const char* term = std::getenv("TERM");
  return isatty(fd) && term && std::strcmp(term, "dumb") != 0;
}

bool colorful(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  return on_terminal(fd) && !(no_color && *no_color);
}

std::string paint(Color color, std::string_view text, int fd) {
  static constexpr const char* kCodes[kColors] = {"1", "2", "31", "32", "33", "36"};
  if (!colorful(fd)) return std::string(text);
  return std::string("\033[") + kCodes[static_cast<int>(color)] + "m" + std::string(text) + "\033[0m";
}

bool print(std::string_view text) { return write_all(STDOUT_FILENO, text); }

void speak_json() { speaks_json = true; }

void complain(std::string_view text) {
  if (speaks_json) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view next = text.substr(std::min(text.find_first_not_of(" \n", end), text.size()));
    return write_error("INVALID_ARGUMENT", text.substr(0, end), ", \"next\": " + quote(next));
  }
  write_all(STDERR_FILENO, paint(Color::red, "dtg:", STDERR_FILENO) + " " + std::string(text) + "\n");
}

bool ignores_hangup() {
  struct sigaction present = {};
  return sigaction(SIGHUP, nullptr, &present) == 0 && present.sa_handler == SIG_IGN;
}

int report(dtg_error* error, bool json, std::string_view next) {
  const Owned<dtg_error> owned(error);
  const std::string code = dtg_code_name(dtg_error_code(error)), message = dtg_error_message(error, nullptr);
  if (json) {
    write_error(code, message);
  } else {
    complain(code + ": " + message + (next.empty() ? "" : "\n  " + std::string(next)));
  }
  return kFailed;
}

int report_on_words(dtg_error* error, bool json, std::string_view next) {
  const bool mistake = dtg_error_code(error) == DTG_INVALID_ARGUMENT;
  report(error, json, next);
  return mistake ? kUsage : kFailed;
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 32) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", byte);
      out += code;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string_view view(const dtg_string* text) {
  size_t size = 0;
  const char* data = dtg_string_data(text, &size);
  return {data, size};
}

}  // namespace dtg::cli
