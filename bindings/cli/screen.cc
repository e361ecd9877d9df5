// Screen: see the header.
#include "screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "console.h"
#include "log_text.h"

namespace dtg::cli {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);

size_t columns(int fd) {
  winsize size = {};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 10 ? size.ws_col - 1u : 79u;
}

}  // namespace

Screen::Screen(std::vector<std::string> names, bool quiet_stdout)
    : names_(std::move(names)),
      statuses_(names_.size()),
      out_(quiet_stdout ? STDERR_FILENO : STDOUT_FILENO),
      live_(on_terminal(out_)),
      colors_(colorful(out_)) {
  static constexpr Color kTurn[] = {Color::cyan, Color::green, Color::yellow};
  size_t width = 0;
  for (const std::string& name : names_) width = std::max(width, name.size());
  for (size_t i = 0; i < names_.size(); i++) {
    const std::string padded = names_[i] + std::string(width - names_[i].size(), ' ');
    labels_.push_back((colors_ ? paint(kTurn[i % std::size(kTurn)], padded, out_) : padded) + " | ");
  }
}

Screen::~Screen() { wipe(); }

void Screen::write(int fd, std::string_view text) {
  while (!text.empty() && alive_) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return void(alive_ = false);
    text.remove_prefix(static_cast<size_t>(n));
  }
}

void Screen::wipe() {
  if (shown_) write(out_, "\r\033[K");
  dirty_ |= shown_;
  shown_ = false;
}

void Screen::line(size_t task, std::string_view text, bool error) {
  wipe();
  write(error ? STDERR_FILENO : out_, labels_[task] + std::string(text) + (colors_ ? "\033[0m\n" : "\n"));
}

void Screen::say(std::string_view text) {
  wipe();
  complain(text);
}

void Screen::status(size_t task, std::string text) {
  if (!live_ || statuses_[task] == text) return;
  statuses_[task] = std::move(text);
  dirty_ = true;
}

// "worker/0: step 120/900 loss 0.41 | worker/1: 830 images/s", the first without its name: it is the chief's.
std::string Screen::bottom() const {
  std::string text;
  for (size_t i = 0; i < names_.size(); i++) {
    if (statuses_[i].empty()) continue;
    if (i > 0) text += (text.empty() ? "" : "  |  ") + names_[i] + ": ";
    text += statuses_[i];
  }
  return text;
}

int Screen::draw() {
  if (!live_ || !dirty_) return -1;
  const auto now = std::chrono::steady_clock::now();
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(drawn_ + kRedraw - now).count();
  // A line that was wiped for a log line comes back at once, so that nothing flickers.
  if (left > 0 && shown_) return static_cast<int>(left);
  const std::string text = clip(bottom(), columns(out_));
  if (!text.empty()) write(out_, "\r" + (colors_ ? paint(Color::cyan, text, out_) : text) + "\033[K");
  else wipe();
  shown_ = !text.empty();
  dirty_ = false;
  drawn_ = now;
  return -1;
}

}  // namespace dtg::cli
