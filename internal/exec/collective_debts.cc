// Who is owed, and who is told.
#include "exec/collective_debts.h"

#include <algorithm>

#include "graph/graph.h"

namespace dtg {
namespace {

Status misfit(const CollectiveDuty& duty, const CollectiveGroup& group, int members) {
  const std::string name = group.name();
  if (duty.devices == 1) {
    return invalid_argument(
        "group_size is %d, but the group \"%s\" with the key %d has %d members; build the graph for so many, or form the group anew",
        static_cast<int>(duty.size), name.c_str(), static_cast<int>(duty.key), members);
  }
  return invalid_argument(
      "group_size is %d, but the group \"%s\" with the key %d has %d members, of which this one calls from %d devices; build the graph "
      "for %d, or form the group anew",
      static_cast<int>(duty.size), name.c_str(), static_cast<int>(duty.key), members, static_cast<int>(duty.devices),
      members * static_cast<int>(duty.devices));
}

std::string run_text(const Node& node) {
  const std::string where = node.location.empty() ? "" : " (made at " + std::string(node.location) + ")";
  return "run \"" + std::string(node.name) + "\"" + where;
}

}  // namespace

Status CollectiveDebts::take_on(const CollectiveDuties& duties) {
  Status first;
  for (const CollectiveDuty& duty : duties.groups) {
    auto group = duties.where->find(duty.key);
    Status status = group.status();
    if (status.ok() && !group.value()) status = failed_precondition("no group has the key %d", static_cast<int>(duty.key));
    if (status.ok()) {
      Debt& debt = debts_.emplace_back();
      debt.duty = duty;
      debt.group = group.take();
      const CollectiveGroup::Standing standing = debt.group->standing();
      debt.epoch = standing.epoch;
      debt.owed = duty.calls;
      // An epoch that has ended is told by the calls.
      if (standing.members * duty.devices != duty.size) status = misfit(duty, *debt.group, standing.members);
    }
    if (first.ok() && !status.ok()) first = duty.node ? status.with_context(run_text(*duty.node)).at_node(duty.node->name) : status;
  }
  return first;
}

void CollectiveDebts::listen(Step& step) {
  listed_ = Ref<CollectiveDebts>::share(this);
  if (!step.add(this)) listed_ = nullptr;
}

CollectiveDebts::Debt* CollectiveDebts::find(int32_t key) {
  const auto at = std::ranges::find_if(debts_, [&](const Debt& debt) { return debt.duty.key == key; });
  return at == debts_.end() ? nullptr : &*at;
}

void CollectiveDebts::aborted(const Status& cause) {
  const Ref<CollectiveDebts> self = std::move(listed_);
  tell(cause);
}

void CollectiveDebts::settle(Step& step, const Status& why) {
  // Where the abort was first, it tells.
  if (step.remove(this)) listed_ = nullptr;
  tell(why);
}

// Of epochs that are over already nobody hears again.
void CollectiveDebts::tell(const Status& why) {
  for (Debt& debt : debts_) {
    if (debt.owed.load() > 0) debt.group->run_failed(debt.epoch, why);
  }
}

}  // namespace dtg
