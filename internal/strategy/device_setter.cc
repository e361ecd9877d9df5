// DeviceSetter: merges what a node asks for with the setter's devices, and chooses the task for a variable, by turns or
// by bytes. Called under the graph's lock.
#include "strategy/device_setter.h"

#include <algorithm>
#include <array>
#include <limits>

namespace dtg {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
// clang-format off
constexpr std::array<std::string_view, 10> kPsOps = {
    "Variable", "VariableV2", "AutoReloadVariable", "MutableHashTable", "MutableHashTableV2", "MutableHashTableOfTensors",
    "MutableHashTableOfTensorsV2", "MutableDenseHashTable", "MutableDenseHashTableV2", "VarHandleOp"};
// clang-format on

template <class T>
const T* find(std::span<const Attr> attrs, std::string_view name) {
  const auto at = std::ranges::find(attrs, name, &Attr::name);
  return at == attrs.end() ? nullptr : at->value.get<T>();
}

// Bytes of the variable that the node holds.
Result<int64_t> load_of(const OpDef& op, std::span<const Attr> attrs) {
  const DType* const dtype = find<DType>(attrs, "dtype");
  const PartialShape* const shape = find<PartialShape>(attrs, "shape");
  if (!dtype || !shape || !shape->complete()) {
    return invalid_argument("choose a parameter server by bytes for %s: its type and shape are not fully known; give the shape, or let the "
                            "servers take turns",
                            op.name().c_str());
  }
  DTG_ASSIGN(const Shape known, shape->to_shape());
  const int64_t size = dtype_size(*dtype);
  return known.count() > kMost / std::max<int64_t>(size, 1) ? kMost : known.count() * size;
}

}  // namespace

DeviceSetter::DeviceSetter(Options options) : options_(std::move(options)), loads_(options_.tasks.size(), 0) {}

std::span<const std::string_view> DeviceSetter::default_ps_ops() { return kPsOps; }

bool DeviceSetter::is_ps_op(std::string_view op) const {
  return options_.ps_ops.empty() ? std::ranges::find(kPsOps, op) != kPsOps.end()
                                 : std::ranges::find(options_.ps_ops, op) != options_.ps_ops.end();
}

Result<int> DeviceSetter::next_task(const OpDef& op, std::span<const Attr> attrs) {
  if (options_.choice == Choice::round_robin) {
    const int task = options_.tasks[next_];
    next_ = (next_ + 1) % options_.tasks.size();
    return task;
  }
  DTG_ASSIGN(const int64_t load, load_of(op, attrs));
  int64_t& least = *std::ranges::min_element(loads_);
  least = load > kMost - least ? kMost : least + load;
  return options_.tasks[static_cast<size_t>(&least - loads_.data())];
}

Result<std::string> DeviceSetter::place(const OpDef& op, std::string_view device, std::span<const Attr> attrs) {
  if (options_.tasks.empty() || (options_.keep_explicit && !device.empty())) return std::string(device);
  DTG_ASSIGN(const DeviceName asked, DeviceName::parse_spec(device));
  if (!is_ps_op(op.name())) {
    DeviceName name = options_.worker_device;
    name.merge(asked);
    return name.text();
  }
  DeviceName name = options_.ps_device;
  // The choice is asked only where its answer will stand, so that others do not turn the wheel.
  if (name.job && (!asked.job || asked.job == name.job)) {
    DTG_ASSIGN(name.task, next_task(op, attrs));
  }
  name.merge(asked);
  return name.text();
}

}  // namespace dtg
