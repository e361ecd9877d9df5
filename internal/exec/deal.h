// Deal: which elements of an epoch of data are in no update yet. How often each element has been in one says the ledger, a variable beside
// the count of steps that an update counts up in its own commit; so the epoch that is now is the lowest of those numbers, an element that
// has this number is open, and an epoch is over when all have the next. Nothing else has to be kept: where the ledger comes back, from a
// log or a checkpoint, so does the place in the data.
//
// Not thread-safe. Owner: StepMembers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dtg {

class Deal {
 public:
  static constexpr int64_t kElementsMost = int64_t{1} << 22;  // an update looks at the number of each
  static constexpr int64_t kNone = -1;
  struct Element {
    int64_t epoch = kNone;
    int64_t index = kNone;
    bool any() const { return index != kNone; }
    bool operator==(const Element&) const = default;
  };

  explicit Deal(int64_t elements) : elements_(elements) {}
  int64_t elements() const { return elements_; }
  // Whether there is anything to be dealt.
  bool is_on() const { return elements_ != 0; }
  // What the ledger says. Until it was told, nothing is known of it.
  void told(std::span<const double> times);
  bool is_known() const { return known_; }
  // It is in an update now.
  void made(Element element);

  int64_t epoch() const { return epoch_; }
  bool is_open(Element element) const {
    return known_ && element.index >= 0 && element.index < elements_ && element.epoch == epoch_ &&
           times_[static_cast<size_t>(element.index)] == epoch_;
  }
  // The first open one that is none of `held`, which are in order.
  Element first_but(std::span<const int64_t> held) const;

 private:
  void look();

  const int64_t elements_;
  std::vector<int64_t> times_;  // none before it was told: whoever names a deal has not got so many numbers yet
  int64_t epoch_ = 0;
  int64_t first_open_ = 0;  // none below it is
  bool known_ = false;
};

}  // namespace dtg
