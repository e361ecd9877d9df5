// What is said to whoever's loss is no finite number. Constant; any thread.
#pragma once

namespace dtg::ops {

// Ends the message of a check that failed; whoever finds out more may say something else instead.
inline constexpr const char* kLossAdvice = "look for values in the data that are no numbers, lower the learning rate or clip the gradients";

}  // namespace dtg::ops
