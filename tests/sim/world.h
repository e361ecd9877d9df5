// World: simulated time, what happens in it, and chance. Everything that is to happen stands in one list; what happens at the same
// moment does so in the order in which it was said. The seed decides everything else, so the same seed is the same history.
//
// One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>

namespace dtg::sim {

inline constexpr int64_t kMicrosecond = 1'000, kMillisecond = 1'000'000, kSecond = 1'000'000'000;

class World final {
 public:
  explicit World(uint64_t seed) : random_(seed) {}

  int64_t now_ns() const { return now_ns_; }
  void at(int64_t at_ns, std::function<void()> fn) { events_.emplace(Key{std::max(at_ns, now_ns_), ++number_}, std::move(fn)); }
  void after(int64_t ns, std::function<void()> fn) { at(now_ns_ + ns, std::move(fn)); }
  // The next event; false when there is none before `until_ns`, which it is then.
  bool step(int64_t until_ns);
  void run(int64_t until_ns) {
    while (step(until_ns)) {
    }
  }

  // Chance.
  uint64_t u64() { return random_(); }
  int64_t between(int64_t low, int64_t high) { return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1)); }
  bool one_in(int64_t n) { return random_() % static_cast<uint64_t>(n) == 0; }

  // What happened, as a number: two runs of a seed must end with the same.
  void note(uint64_t what) { history_ = (history_ ^ what) * 0x9e3779b97f4a7c15ull ^ history_ >> 29; }
  void note(const std::string& what);
  uint64_t history() const { return history_; }
  uint64_t events() const { return happened_; }
  // The first error that a host was told without saying who or when (Process::hears); empty: there was none.
  std::string ill_told;
  // Tells every line of what happens, for whoever looks into a seed.
  bool talks = false;
  void say(const std::string& what);

 private:
  using Key = std::pair<int64_t, uint64_t>;
  int64_t now_ns_ = kSecond;
  uint64_t number_ = 0;
  uint64_t happened_ = 0;
  uint64_t history_ = 0;
  std::map<Key, std::function<void()>> events_;
  std::mt19937_64 random_;
};

}  // namespace dtg::sim
