// Losses of masks: how much of two areas is not common to them. Called by the thread that builds the model.
#include "nn/loss_parts.h"

namespace dtg {

// Dice: 1 - 2 |A B| / (|A| + |B|). Tversky: 1 - |A B| / (|A B| + alpha |A without B| + beta |B without A|), with A the labels.
Value overlap_loss(const LossInput& in) {
  Build& b = in.build;
  const int first = in.loss.per_example ? 1 : 0;
  const auto area = [&](Value x) { return b.sum(x, axes_from(b, x, first)); };
  const Value common = area(b.mul(in.labels, in.predictions));
  Value share;
  if (in.loss.kind == Loss::Kind::dice) {
    share = b.div(times(b, common, 2), plus(b, b.add(area(in.labels), area(in.predictions)), kFuzz));
  } else {
    const Value missed = area(b.mul(rest_of(b, 1, in.predictions), in.labels));
    const Value invented = area(b.mul(in.predictions, rest_of(b, 1, in.labels)));
    const Value all = b.add(b.add(common, times(b, missed, in.loss.alpha)), times(b, invented, in.loss.beta));
    share = b.div(common, plus(b, all, kFuzz));
  }
  return rest_of(b, 1, share);
}

}  // namespace dtg
