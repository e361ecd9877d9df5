// Console: how the command talks: colours where a person looks, errors with a code, exit codes. Main thread.
#pragma once

#include <dtg/dtg.h>

#include <memory>
#include <string>
#include <string_view>

namespace dtg::cli {

enum ExitCode { kOk = 0, kFailed = 1, kUsage = 2 };

enum class Color { bold, dim, red, green, yellow, cyan };
constexpr int kColors = 6;

// True when `fd` is a terminal that takes colours, and NO_COLOR is not set.
bool colorful(int fd);
// True when `fd` is a terminal that can draw over a line.
bool on_terminal(int fd);
// `text` in a colour if stdout (or `fd`) shows it.
std::string paint(Color color, std::string_view text, int fd = 1);

// To stdout, whole; false when the reader is gone.
bool print(std::string_view text);
// "dtg: text" to stderr; after speak_json() as {"error": {"code", "message", "next"}}. What comes after the first line's end is what
// to do about it.
void complain(std::string_view text);
void speak_json();

// True when SIGHUP was ignored from the start: nohup wants the command to outlive its terminal.
bool ignores_hangup();

// For every kind of handle: released at the end of the scope.
struct Release {
  void operator()(dtg_error* p) const { dtg_error_release(p); }
  void operator()(dtg_string* p) const { dtg_string_release(p); }
  void operator()(dtg_graph* p) const { dtg_graph_release(p); }
  void operator()(dtg_model* p) const { dtg_model_release(p); }
  void operator()(dtg_session* p) const { dtg_session_release(p); }
};
template <class T>
using Owned = std::unique_ptr<T, Release>;

// Reports an error of the library, as one line or as {"error": {...}} with `json`; `next` is what to do about it. Gives
// the exit code.
int report(dtg_error* error, bool json, std::string_view next = {});
// The same where words of the command line were what the library was asked: INVALID_ARGUMENT is a mistake there.
int report_on_words(dtg_error* error, bool json, std::string_view next = {});

// A string as JSON, with quotes.
std::string quote(std::string_view text);
std::string_view view(const dtg_string* text);

}  // namespace dtg::cli
