// Planning bodies. See bodies.h.
#include "plan/bodies.h"

#include <algorithm>
#include <chrono>

#include "exec/step_interrupt.h"
#include "plan/plan.h"

namespace dtg {
namespace {

// A body's nodes are placed by themselves; plans that are under way keep the placer.
struct OwnPlacer final : RefCounted {
  OwnPlacer(std::vector<Device> devices, const KernelTable* kernels)
      : placer(std::move(devices), kernels, /*soft=*/true, Placer::Preference::first) {}
  Placer placer;
};

bool same_argument(const ValueInfo& a, const ValueInfo& b) { return a.dtype == b.dtype && a.held == b.held && a.shape == b.shape; }

}  // namespace

BodyPlans::BodyPlans(const PlanContext& context, Ref<const Function> function, const Node& call, std::string_view device,
                     Ref<const NamedHandles> handles)
    : function_(std::move(function)), context_(context), call_(call.name), device_(device) {
  const std::vector<Device>& all = context.placer->devices();
  const auto at = std::ranges::find(all, device, &Device::text);
  std::vector<Device> here = {at != all.end() ? *at : all[0]};
  // What cannot run on an accelerator does so on a CPU beside it, and what asks for another device of the same task is done there.
  DeviceName task = here[0].name;
  task.drop_type_and_id();
  for (const Device& each : all) {
    if (each.text != here[0].text && task.matches(each.name)) here.push_back(each);
  }
  auto own = make_ref<OwnPlacer>(std::move(here), context.kernels);
  context_.placer = &own->placer;
  context_.holder = std::move(own);
  context_.function = function_->name();
  context_.deadline = Deadline::never();
  enter_strand(call, std::move(handles));
}

// What is in no strand is part of its caller's unit, or writes nothing.
void BodyPlans::enter_strand(const Node& call, Ref<const NamedHandles> handles) {
  const AttrValue* const told = call.find_attr(OpDef::kCommitAttr);
  const int64_t number = told ? *told->get<int64_t>() : -1;
  if (number < 0) {
    context_.committing = Committing::singly;
    context_.keeper = nullptr;
  }
  context_.strand = number;
  context_.handles = std::move(handles);
}

Result<Ref<Body>> BodyPlans::find(std::span<const ValueInfo> arguments, Step& caller) {
  {
    const std::lock_guard lock(recent_lock_);
    if (recent_ && std::ranges::equal(recent_->arguments, arguments, same_argument)) return recent_->body;
  }
  DTG_ASSIGN(Ref<const Entry> found, find_slowly(arguments, caller));
  Ref<Body> body = found->body;
  const std::lock_guard lock(recent_lock_);
  std::swap(recent_, found);  // what was there is let go of without the lock
  return body;
}

// Who plans; ends also where planning is left by an exception.
class BodyPlans::Turn {
 public:
  explicit Turn(BodyPlans& plans) : plans_(plans) {}
  Turn(const Turn&) = delete;
  ~Turn() {
    const std::lock_guard lock(plans_.mutex_);
    plans_.planning_ = false;
    plans_.planned_.notify_all();
  }

 private:
  BodyPlans& plans_;
};

Result<Ref<const BodyPlans::Entry>> BodyPlans::find_slowly(std::span<const ValueInfo> arguments, Step& caller) {
  // Whoever plans may do so for long, which is for its run to bear; ours may be over before.
  StepInterrupt interrupt(caller, *context_.clock);
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto at = std::ranges::find_if(
        bodies_, [&](const Ref<const Entry>& entry) { return std::ranges::equal(entry->arguments, arguments, same_argument); });
    if (at != bodies_.end()) {
      std::rotate(bodies_.begin(), at, at + 1);
      return bodies_.front();
    }
    if (!planning_) break;
    planned_.wait_for(lock, std::chrono::milliseconds(2));
    if (interrupt.is_due()) return caller.cause();
  }
  planning_ = true;
  lock.unlock();
  const Turn turn(*this);
  auto made = make(arguments, caller);
  if (made.ok()) return keep(arguments, made.take());
  if (caller.aborted()) return caller.cause();
  return made.status().with_context("plan function \"" + function_->name() + "\", called by \"" + call_ + "\"");
}

Ref<const BodyPlans::Entry> BodyPlans::keep(std::span<const ValueInfo> arguments, Ref<Body> body) {
  auto entry = make_ref<Entry>();
  entry->arguments.assign(arguments.begin(), arguments.end());
  entry->body = std::move(body);
  const std::lock_guard lock(mutex_);
  if (bodies_.size() == kBodies) bodies_.pop_back();
  bodies_.insert(bodies_.begin(), entry);
  return Ref<const Entry>(std::move(entry));
}

Result<Ref<Body>> BodyPlans::make(std::span<const ValueInfo> arguments, Step& caller) {
  DTG_TRY(check_devices());
  PlanRequest request;
  request.body = true;
  request.feeds.reserve(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    FeedSpec feed;
    feed.value = function_->arguments()[i];
    feed.dtype = arguments[i].dtype;
    if (is_holder(feed.dtype)) {
      feed.held = arguments[i].held;
      feed.holds = arguments[i].shape;
    } else {
      DTG_ASSIGN(feed.shape, arguments[i].shape.to_shape());
    }
    request.feeds.push_back(std::move(feed));
  }
  request.fetches.assign(function_->results().begin(), function_->results().end());
  request.targets.assign(function_->targets().begin(), function_->targets().end());
  StepInterrupt interrupt(caller, *context_.clock);
  const Interrupt::Scope scope(&interrupt);
  try {
    DTG_ASSIGN(Ref<Plan> plan, Plan::make(context_, function_->shared_graph(), std::move(request)));
    return Ref<Body>(std::move(plan));
  } catch (const Interrupted&) {
    return caller.cause();
  }
}

// What a node of the body asks for is its caller's device, at least as to the task.
Status BodyPlans::check_devices() const {
  const DeviceName& here = context_.placer->devices()[0].name;
  for (NodeId id : function_->needed()) {
    const Node& node = function_->graph().node(id);
    if (node.device.empty()) continue;
    DTG_ASSIGN(DeviceName wanted, DeviceName::parse(node.device));
    wanted.drop_type_and_id();
    if (wanted.matches(here)) continue;
    return unimplemented(
        "node \"%.*s\" asks for %.*s, but the call runs on %s: all of a function runs on one task; take that node out of it",
        int(node.name.size()), node.name.data(), int(node.device.size()), node.device.data(), device_.c_str());
  }
  return {};
}

}  // namespace dtg
