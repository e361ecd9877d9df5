// Where each thread keeps the interrupt that is up.
#include "base/interrupt.h"

namespace dtg {

constinit thread_local Interrupt* Interrupt::present_ = nullptr;

}  // namespace dtg
