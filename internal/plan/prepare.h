// NodePreparer: calls a kernel's prepare for one node and keeps what it said until the next reset(). One thread.
#pragma once

#include "exec/kernel.h"
#include "plan/passes.h"

namespace dtg {

class NodePreparer final : public PrepareContext {
 public:
  // Where a known input value comes from.
  using ConstantFn = Tensor (*)(void* context, int input);
  explicit NodePreparer(const PlanContext& plan);

  // Begins with another node; argument blocks go to `arena`.
  void reset(const Node& node, std::string_view device, DeviceMemory* memory, Arena& arena, uint32_t pin = kNoPin);
  Status add_input(const ValueInfo& info) { return add(inputs_, info); }
  Status add_output(const ValueInfo& info) { return add(outputs_, info); }
  void constants(ConstantFn fn, void* context) {
    constant_fn_ = fn;
    constant_context_ = context;
  }
  // How what the node hands to its functions is named.
  void hand_over(Ref<const NamedHandles> handles) { handles_ = std::move(handles); }
  Status prepare(const KernelRow& row);
  Tensor constant(int i) const override { return constant_fn_ ? constant_fn_(constant_context_, i) : Tensor(); }

  const void* arguments() const { return args_; }
  int64_t workspace_bytes() const { return workspace_; }
  // The input whose memory output o is, or -1.
  int alias_of(int o) const;
  bool has_overwrites() const { return !overwrites_.empty(); }
  // An input that output o may be written over, in the order the kernel prefers.
  template <class Fn>
  void for_overwrites(Fn&& fn) const {
    for (const Pair& pair : overwrites_) fn(pair.in, pair.out);
  }
  Ref<RefCounted> bound_to(int o) const;
  Result<Ref<BodySource>> bodies(const Function& function) override;

 private:
  static Status add(std::vector<Operand>& list, const ValueInfo& info);
  Status check() const;

  const PlanContext& plan_;
  ConstantFn constant_fn_ = nullptr;
  void* constant_context_ = nullptr;
  Ref<const NamedHandles> handles_;
};

// The row for a node on a device, or an error that says what there is.
Result<const KernelRow*> find_kernel(const PlanContext& plan, const Node& node, const Device& device);

}  // namespace dtg
