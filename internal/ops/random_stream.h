// Streams of random numbers as the ops name them: a key and a counter, or a seed that is mixed into both; and the state of an op that
// goes on where its last run stopped. Values; any thread.
#pragma once

#include <mutex>
#include <string>

#include "base/spin_lock.h"
#include "device/cpu/philox.h"
#include "exec/kernel.h"
#include "exec/resource.h"

namespace dtg::ops {

// TensorFlow's numbers of the generators.
inline constexpr int32_t kPhilox = 1, kThreeFry = 2, kAutomatic = 3;

struct Stream {
  uint64_t key = 0;
  uint64_t low = 0;
  uint64_t high = 0;
};

// Any two seeds, also small and alike ones, become a well mixed key and counter.
inline Stream stream_from_seed(int64_t seed0, int64_t seed1) {
  constexpr uint64_t kKey = uint64_t{0x02461e29} << 32 | 0x3ec8f720;
  const auto mix = cpu::Philox(kKey, static_cast<uint64_t>(seed0), static_cast<uint64_t>(seed1)).next();
  return {uint64_t{mix[1]} << 32 | mix[0], 0, uint64_t{mix[3]} << 32 | mix[2]};
}

inline Stream stream_from_input(const RunContext& c, int input, bool wide) {
  if (wide) return stream_from_seed(c.in<int64_t>(input)[0], c.in<int64_t>(input)[1]);
  return stream_from_seed(c.in<int32_t>(input)[0], c.in<int32_t>(input)[1]);
}

inline Status check_algorithm(const RunContext& c, int32_t number) {
  if (number == kPhilox || number == kAutomatic) return {};
  if (number == kThreeFry) return unimplemented("random numbers by ThreeFry (alg 2); use Philox (alg 1)");
  return c.error("unknown generator alg %d; Philox is 1", number);
}

// The stream of one node with seeds: each run takes the blocks that follow those of the run before it. It lives in the store, since
// a node may stand in several plans; whoever prepares the node first makes it. So it is of the session where that has a store of its own,
// and at a server of all sessions whose node has that name, op and seeds: one goes on where another stopped, and what a session left there
// stays until the default container is reset, or the server ends. What is to be a function of the step draws without a state.
class RandomState final : public Resource {
 public:
  RandomState(std::string name, const cpu::Philox& stream) : Resource(std::move(name)), stream_(stream) {}
  static constexpr std::string_view kKind = "random state";
  const char* kind() const override { return kKind.data(); }
  void destroy(const Status&) override {}

  // The stream from here on; `blocks` of it will not come again.
  cpu::Philox take(uint64_t blocks) {
    const std::lock_guard lock(word_);
    const cpu::Philox here = stream_;
    stream_.skip(blocks);
    return here;
  }

 private:
  SpinLock word_;
  cpu::Philox stream_;
};

// Where the store keeps what draws go on from: beside the device. No handle names such a place, so nothing that a client makes can be in
// the way there.
inline std::string place_of_draws(const PrepareContext& c) { return std::string(c.device()) + " draws"; }

// The state of the node that is prepared, by its name, its op and its seeds. Two seeds of 0 mean any.
Result<Ref<RandomState>> random_state(PrepareContext& c);

}  // namespace dtg::ops
