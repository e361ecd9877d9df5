// Draws the line. See progress.h for threads.
#include "train/progress.h"

#include <algorithm>
#include <cstdio>

#include "base/status.h"

namespace dtg {
namespace {

constexpr int64_t kDrawNs = 100'000'000;
constexpr int kBar = 24, kLineMax = 240;

// "1:05", "2:00:10".
void put_time(char (&text)[24], double seconds) {
  const auto whole = static_cast<long long>(std::clamp(seconds, 0.0, 3.6e8));
  if (whole >= 3600) std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
  else std::snprintf(text, sizeof text, "%lld:%02lld", whole / 60, whole % 60);
}

std::string line_of(const Progress::At& at, const Record& values) {
  std::string line = format("epoch %lld/%lld", static_cast<long long>(at.epoch), static_cast<long long>(at.epochs));
  for (size_t i = 0; i < values.size(); ++i) line += format("  %s %.4g", values.name(i).c_str(), values.value(i));
  return line + format("  %.0f examples/s", at.examples_per_s);
}

}  // namespace

void Progress::epoch_begins(const At& at) {
  began_ns_ = clock_.monotonic_ns();
  began_batch_ = at.batch;
}

void Progress::step(const At& at) {
  if (!terminal_) return;
  const int64_t now = clock_.monotonic_ns();
  if (drawn_ && now - drawn_ns_ < kDrawNs) return;
  const int width = std::min(terminal_->width(), kLineMax);
  if (width == 0) return;
  char bar[kBar + 1] = "", left[24] = "", line[kLineMax + 8];
  const bool known = at.batches > 0;
  const int64_t done = known ? std::min(at.batch, at.batches) * kBar / at.batches : 0;
  for (int i = 0; i < kBar; ++i) bar[i] = i < done ? '=' : i == done ? '>' : ' ';
  if (known && at.batch > began_batch_) {
    const double each = static_cast<double>(now - began_ns_) * 1e-9 / static_cast<double>(at.batch - began_batch_);
    put_time(left, each * (static_cast<double>(at.epochs - at.epoch) * static_cast<double>(at.batches) +
                           static_cast<double>(at.batches - at.batch)));
  }
  // Over the line before, of which nothing may be left behind this one's end.
  const int length =
      std::snprintf(line, sizeof line, "\repoch %lld/%lld [%s] %lld/%lld  %s left  loss %.4g  %.0f examples/s\x1b[K",
                    static_cast<long long>(at.epoch), static_cast<long long>(at.epochs), known ? bar : "...",
                    static_cast<long long>(at.batch), static_cast<long long>(at.batches), *left ? left : "?", at.loss, at.examples_per_s);
  if (length <= 0) return;
  // A line that is too long would wrap, and could not be drawn over.
  const int text = std::min(length, static_cast<int>(sizeof line) - 1) - 3;
  if (text > width) std::snprintf(line + width, sizeof line - static_cast<size_t>(width), "\x1b[K");
  terminal_->show({line, static_cast<size_t>(std::min(text, width) + 3)});
  drawn_ns_ = now;
  drawn_ = true;
}

void Progress::wipe() {
  if (drawn_) terminal_->show("\r\x1b[K");
  drawn_ = false;
}

void Progress::epoch_ends(const At& at, const Record& values) {
  wipe();
  const std::string line = line_of(at, values);
  if (terminal_ && terminal_->width() > 0) terminal_->show(line + "\n");
  else if (log_) log_->write(LogLevel::info, "fit", line);
}

}  // namespace dtg
