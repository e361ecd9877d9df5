// Restarts: see the header.
#include "restarts.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace dtg::cli {
namespace {

using std::chrono::milliseconds;

constexpr auto kFirstPause = milliseconds(100);
constexpr auto kLongestPause = milliseconds(5000);
constexpr auto kForgiven = std::chrono::seconds(10);  // who lived that long begins anew with the first pause

// What a shell and its kin say of a program that cannot be started, and programs of a mistake on their command line: that is no
// better the second time.
bool is_usage_error(const Death& death) {
  return death.signal == 0 && (death.exit_code == 2 || death.exit_code == 126 || death.exit_code == 127);
}

std::string without(const std::string& who) { return "it needs " + who + ", which has ended"; }

}  // namespace

int64_t Restarts::count() const {
  return std::count_if(deaths_.begin(), deaths_.end(), [](const Death& d) { return d.restarted; });
}

// Twice as long every time, a tenth more or less, so that tasks that died together do not come back together for ever.
Restarts::Clock::duration Restarts::pause() {
  const auto full = std::min<milliseconds>(kFirstPause * (1 << std::min(in_a_row_, 16)), kLongestPause);
  return full * std::uniform_int_distribution<int>(90, 110)(chance_) / 100;
}

std::optional<Restarts::Clock::duration> Restarts::after(Death death) {
  const auto recent =
      std::count_if(deaths_.begin(), deaths_.end(), [&](const Death& d) { return d.restarted && death.when - d.when < kRestartWindow; });
  const bool asked = options_.on_failure && !death.ending, may = asked && !is_usage_error(death) && death.gone.empty();
  death.restarted = may && recent < options_.limit;
  deaths_.push_back(death);
  verdict_.clear();
  if (!death.restarted) {
    if (asked && !death.gone.empty()) verdict_ = "not started again: " + without(death.gone);
    else if (asked && !may) verdict_ = "not started again, as that would not help";
    if (may) {
      verdict_ = "not started again: it has been " + std::to_string(recent) + " times within " + std::to_string(kRestartWindow.count()) +
                 " s, which is the limit";
    }
    return std::nullopt;
  }
  in_a_row_ = death.lived >= kForgiven ? 0 : in_a_row_;
  const Clock::duration wait = pause();
  in_a_row_++;
  verdict_ = "started again in " + seconds_text(wait) + " s (" + std::to_string(recent + 1) + " of " + std::to_string(options_.limit) + ")";
  return wait;
}

void Restarts::give_up(const std::string& who) {
  deaths_.back().restarted = false;
  verdict_ = "not started again after all: " + without(who);
}

std::string how_it_died(const Death& death) {
  if (death.signal) return "was killed by " + signal_name(death.signal);
  return "ended with exit code " + std::to_string(death.exit_code);
}

std::string signal_name(int number) {
  const char* name = sigabbrev_np(number);
  return name ? std::string("SIG") + name : "signal " + std::to_string(number);
}

std::string seconds_text(std::chrono::steady_clock::duration time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", std::chrono::duration<double>(time).count());
  return text;
}

void Restarts::call_off() {
  deaths_.back().restarted = false;
  verdict_ = "not started again after all: the launch is ending";
}

}  // namespace dtg::cli
