// Judging the cells.
#include "ledger.h"

namespace dtg::sim {

std::string Ledger::judge(size_t server, const Tensor& cells) const {
  std::string wrong;
  int count = 0;
  for (size_t c = 0; c < rows_.size(); ++c) {
    const Row& row = rows_[c];
    const int64_t value = cells.as<int64_t>()[c];
    const bool lives_on = row.state == Row::State::done && row.begun_in[server] == lives_[server] && row.ended_in[server] == lives_[server];
    const int64_t least = lives_on ? 1 : 0;
    const int64_t most = row.state == Row::State::none ? 0 : 1;
    if (value >= least && value <= most) continue;
    if (++count > 5) continue;
    wrong += (wrong.empty() ? "" : ", ") + std::string("worker ") + std::to_string(c / kSteps) + " step " + std::to_string(c % kSteps) +
             " on ps " + std::to_string(server) + ": " + std::to_string(value) + " times, " +
             (row.state == Row::State::done   ? "told done"
              : row.state == Row::State::none ? "never asked"
                                              : "outcome unknown");
  }
  return count > 5 ? wrong + ", and " + std::to_string(count - 5) + " more" : wrong;
}

}  // namespace dtg::sim
