// The list of what is to happen.
#include "world.h"

#include <cstdio>

namespace dtg::sim {

bool World::step(int64_t until_ns) {
  if (events_.empty() || events_.begin()->first.first > until_ns) {
    now_ns_ = std::max(now_ns_, until_ns);
    return false;
  }
  const auto event = events_.extract(events_.begin());
  now_ns_ = event.key().first;
  ++happened_;
  note(static_cast<uint64_t>(now_ns_));
  event.mapped()();
  return true;
}

void World::note(const std::string& what) {
  for (const char c : what) note(static_cast<uint64_t>(static_cast<unsigned char>(c)));
}

void World::say(const std::string& what) {
  note(what);
  if (talks) std::fprintf(stderr, "%10.6f  %s\n", static_cast<double>(now_ns_) * 1e-9, what.c_str());
}

}  // namespace dtg::sim
