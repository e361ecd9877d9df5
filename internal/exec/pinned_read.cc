// Pins on the fast path; a reader that must wait for a writer in place goes through the waiting of
// exec/update.cc, whose body pins once more for the frame.
#include "exec/pinned_read.h"

namespace dtg {
namespace {

struct PinArgs : UpdateArgs {
  uint32_t pin = 0;
  bool open = false;
  AsyncFn waiting = nullptr;
};

void give(RunContext& c, const PinArgs& args, Variable& variable, Variable::Version* version) {
  c.slots().pin(args.pin, &variable, version);
  const Tensor& tensor = version->tensor;
  if (args.open) c.set_output(0, tensor.data(), tensor.shape(), nullptr);
  else c.slots().bind(c.instruction().out[0], tensor.data());
}

// The version that was waited for, which need not be the present one any more.
Status pin_again(RunContext& c, Variable::Version& version) {
  Variable* const variable = variable_at(c, 0);
  variable->pin_again(&version);
  give(c, c.args<PinArgs>(), *variable, &version);
  return {};
}

bool pinned_read(RunContext& c, Completion done) {
  const auto& args = c.args<PinArgs>();
  Variable* const variable = variable_at(c, 0);
  if (!variable) {
    done.dismiss();
    c.set_status(c.error("the input is not the handle of a variable"));
    return true;
  }
  if (c.step().rights()) [[unlikely]] {
    if (Status status = c.permitted(0); !status.ok()) {
      done.dismiss();
      c.set_status(std::move(status));
      return true;
    }
  }
  Variable::Version* version = nullptr;
  const auto outcome = variable->pin(&version, nullptr);
  if (outcome == Variable::Pinned::wait) return args.waiting(c, std::move(done));
  done.dismiss();
  if (outcome == Variable::Pinned::yes) give(c, args, *variable, version);
  else c.set_status(no_value(*variable, "read"));
  return true;
}

}  // namespace

Status prepare_pinned_read(PrepareContext& c, bool open) {
  auto* args = c.args<PinArgs>();
  args->pin = c.pin();
  args->open = open;
  DTG_TRY(prepare_read(c, 0, pin_again));
  args->waiting = c.async_fn();
  return c.async_in_place(pinned_read);
}

}  // namespace dtg
