// StrategyObject: the strategy behind a dtg_strategy, with what the host's hooks need. Shared by strategy.cc, which the host calls, and
// strategy_hooks.cc, which calls the host. One thread at a time uses it: the one inside its model and graph.
#pragma once

#include <optional>

#include "capi/group.h"
#include "capi/model.h"
#include "dtg/strategy.h"
#include "strategy/strategy.h"
#include "train/crew.h"

namespace dtg::capi {

class StrategyObject final : public RefCounted {
 public:
  explicit StrategyObject(Ref<ModelObject> m) : model(std::move(m)) {}
  const Ref<ModelObject> model;
  Ref<Strategy> strategy;
  dtg_strategy* handle = nullptr;  // ours, for hooks; not held
  dtg_strategy_hooks hooks = DTG_STRATEGY_HOOKS_INIT;
  void* user = nullptr;
  dtg_strategy_info facts = DTG_STRATEGY_INFO_INIT;
  std::optional<Replicated> replicated;
  Ref<GroupObject> group;  // of the workers; null: this process alone
};

// The workers that fit together with this one; null where the strategy has no other, or is NULL. An error where it is of another model.
Result<Ref<Crew>> crew_of(const dtg_strategy* strategy, const ModelObject& model);

// Calls a function of the host while it may use model and graph; its error is the answer.
template <class Call>
Status ask_host(ModelObject& model, Call&& call) {
  const Owner::Loan building(model.graph->owner);
  const Owner::Loan changing(model.owner);
  return taken(call());
}

// The hooks of the host that are not NULL.
Strategy::Hooks hooks_of(StrategyObject& object);

inline std::vector<dtg_value> to_c(std::span<const Value> values) {
  std::vector<dtg_value> list;
  for (const Value value : values) list.push_back(to_c(value));
  return list;
}

}  // namespace dtg::capi
