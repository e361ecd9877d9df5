// OrderWatch: in which order the steps of a job took place on each server, as its readers saw it. A step multiplies a number by 16 and adds
// its token to it, and counts, in one commit; so the number holds the last sixteen tokens, and steps in another order leave another number.
//
// What a read has shown holds for every later read, once a step that began after it was told done: what came before that is on the disk.
// Servers that keep their state must know it whatever befalls them. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dtg::sim {

class OrderWatch final {
 public:
  static constexpr uint64_t kBase = 16;
  static uint64_t token(int cell) { return 1 + static_cast<uint64_t>(cell) % (kBase - 1); }

  struct Seen {
    uint64_t count = 0, last = 0;
  };
  explicit OrderWatch(int servers) : firm_(static_cast<size_t>(servers)), shown_(static_cast<size_t>(servers)) {}

  // When a read begins: what it must not fall behind.
  std::vector<Seen> firm() const { return firm_; }
  // What it has shown, and what is wrong with that; empty: nothing.
  std::string show(size_t server, const Seen& before, const Seen& seen, int64_t now_ns) {
    // Between the two writes of a step.
    if (seen.last % kBase == 0) return {};
    shown_[server].push_back({seen, now_ns});
    if (seen.count < before.count)
      return "ps " + std::to_string(server) + " has gone back from step " + std::to_string(before.count) + " to " +
             std::to_string(seen.count);
    const uint64_t since = seen.count - before.count;
    if (since >= kBits / 4 || before.count == 0) return {};
    const uint64_t mask = ~uint64_t{0} >> (4 * since);
    if ((seen.last >> (4 * since)) == (before.last & mask)) return {};
    return "ps " + std::to_string(server) + " knows another order of its steps up to " + std::to_string(before.count) +
           " than it had shown";
  }
  // A step that began then was told done.
  void done(int64_t began_ns) {
    for (size_t p = 0; p < firm_.size(); ++p) {
      std::erase_if(shown_[p], [&](const Shown& shown) {
        if (shown.at_ns >= began_ns) return false;
        if (shown.seen.count > firm_[p].count) firm_[p] = shown.seen;
        return true;
      });
    }
  }

 private:
  static constexpr uint64_t kBits = 64;
  struct Shown {
    Seen seen;
    int64_t at_ns;
  };
  std::vector<Seen> firm_;
  std::vector<std::vector<Shown>> shown_;
};

}  // namespace dtg::sim
