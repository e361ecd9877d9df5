// See job.h.
#include "job.h"

#include <algorithm>

namespace dtg::sim {
namespace {

std::string list_of(const char* job, int count) {
  std::string list;
  for (int i = 0; i < count; ++i) list += (i ? ",unix:/sim/" : "unix:/sim/") + std::string(job) + std::to_string(i);
  return std::string(job) + "=" + list;
}

}  // namespace

std::string spec_of(int servers, int workers) { return (servers > 0 ? list_of("ps", servers) + ";" : "") + list_of("worker", workers); }

void run_out(World& world, const std::vector<std::unique_ptr<Process>>& processes, const std::function<void(const std::string&)>& wrong) {
  const auto is_left = [](const auto& process) { return !process->is_gone(); };
  for (const int64_t until = world.now_ns() + 60 * kSecond; std::ranges::any_of(processes, is_left) && world.step(until);) {
  }
  for (const auto& process : processes) {
    if (is_left(process)) wrong(process->name() + " does not end");
  }
  if (!world.ill_told.empty()) wrong(world.ill_told);
}

}  // namespace dtg::sim
