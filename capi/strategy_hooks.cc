// dtg/strategy.h, the half that the host implements: each hook that is there becomes a function that internal/strategy calls. Called on the
// thread that builds, which lends the host its turn.
#include <string>

#include "capi/nn.h"
#include "capi/strategy.h"

namespace dtg::capi {
namespace {

constexpr size_t kReplicasMost = 256;

// What a hook answers of a variable, read back into what will be made.
Status read_place(const dtg_variable_place& place, VariableSpec& spec, std::vector<std::string>* devices) {
  DTG_ASSIGN(spec.sync, read_enum(place.synchronization, Sync::on_read, "synchronization"));
  DTG_ASSIGN(spec.aggregation, read_enum(place.aggregation, Aggregation::only_first, "aggregation"));
  DTG_TRY(require_array(place.devices, place.num_devices, "devices"));
  if (place.num_devices > kReplicasMost) return invalid_argument("%zu devices for one variable", place.num_devices);
  for (size_t i = 0; i < place.num_devices; ++i) {
    DTG_TRY(require(place.devices[i], "an entry of devices"));
    devices->emplace_back(place.devices[i]);
  }
  return {};
}

Status create_variable(StrategyObject& object, VariableSpec& spec, std::vector<std::string>* devices) {
  const std::string name(spec.name);
  const auto dims = spec.shape.dims();
  dtg_variable_place place{sizeof place,
                           name.c_str(),
                           static_cast<dtg_dtype>(spec.dtype),
                           spec.trainable ? 1 : 0,
                           dims.data(),
                           dims.size(),
                           static_cast<int32_t>(spec.sync),
                           static_cast<int32_t>(spec.aggregation),
                           nullptr,
                           0};
  DTG_TRY(ask_host(*object.model, [&] { return object.hooks.create_variable(object.user, object.handle, &place); }));
  return read_place(place, spec, devices);
}

// Room for the hook's values, first what they are if it leaves them, and back.
template <class Call>
Status fill(StrategyObject& object, std::span<Value> values, Call&& call) {
  std::vector<dtg_value> outs = to_c(values);
  DTG_TRY(ask_host(*object.model, [&] { return call(outs); }));
  for (size_t i = 0; i < values.size(); ++i) values[i] = value_of(outs[i]);
  return {};
}

template <class Call>
Result<Value> one(StrategyObject& object, Call&& call) {
  dtg_value out{};
  DTG_TRY(ask_host(*object.model, [&] { return call(&out); }));
  return value_of(out);
}

Status batch_reduce(StrategyObject& object, Reduce reduce, std::span<const std::vector<Value>> parts, std::span<Value> outs) {
  std::vector<dtg_value> flat;
  for (const auto& of_variable : parts) {
    for (const Value part : of_variable) flat.push_back(to_c(part));
  }
  return fill(object, outs, [&](std::vector<dtg_value>& room) {
    return object.hooks.batch_reduce_to(object.user, object.handle, static_cast<int32_t>(reduce), flat.data(), parts.size(),
                                        parts[0].size(), room.data());
  });
}

Status local_results(StrategyObject& object, std::span<const Value> values, std::vector<Value>* results) {
  const std::vector<dtg_value> given = to_c(values);
  std::vector<dtg_value> outs(given.size());
  size_t count = 0;
  DTG_TRY(ask_host(*object.model, [&] {
    return object.hooks.local_results(object.user, object.handle, given.data(), given.size(), outs.data(), &count);
  }));
  if (count > outs.size()) return invalid_argument("local_results of the strategy: %zu of %zu values", count, outs.size());
  for (size_t i = 0; i < count; ++i) results->push_back(value_of(outs[i]));
  return {};
}

void add_value_hooks(StrategyObject& o, Strategy::Hooks& made) {
  if (o.hooks.reduce_to) {
    made.reduce_to = [&o](Reduce reduce, std::span<const Value> parts) {
      const std::vector<dtg_value> given = to_c(parts);
      return one(o, [&](dtg_value* out) {
        return o.hooks.reduce_to(o.user, o.handle, static_cast<int32_t>(reduce), given.data(), given.size(), out);
      });
    };
  }
  if (o.hooks.batch_reduce_to) {
    made.batch_reduce_to = [&o](Reduce reduce, std::span<const std::vector<Value>> parts, std::span<Value> outs) {
      return batch_reduce(o, reduce, parts, outs);
    };
  }
  if (o.hooks.broadcast_to) {
    made.broadcast_to = [&o](Value value, std::span<Value> outs) {
      return fill(o, outs, [&](auto& room) { return o.hooks.broadcast_to(o.user, o.handle, to_c(value), room.data(), room.size()); });
    };
  }
  if (o.hooks.gather) {
    made.gather = [&o](std::span<const Value> parts, int32_t axis) {
      const std::vector<dtg_value> given = to_c(parts);
      return one(o, [&](dtg_value* out) { return o.hooks.gather(o.user, o.handle, given.data(), given.size(), axis, out); });
    };
  }
  if (o.hooks.split) {
    made.split = [&o](Value batch, std::span<Value> outs) {
      return fill(o, outs, [&](auto& room) { return o.hooks.split(o.user, o.handle, to_c(batch), room.data(), room.size()); });
    };
  }
  if (o.hooks.local_results) {
    made.local_results = [&o](std::span<const Value> values, std::vector<Value>* results) { return local_results(o, values, results); };
  }
}

using AroundReplica = dtg_error* (*)(void*, dtg_strategy*, int32_t);
using AroundUpdate = dtg_error* (*)(void*, dtg_strategy*, const char*, int32_t);

std::function<Status(size_t)> around_replica(StrategyObject& o, AroundReplica hook) {
  if (!hook) return {};
  return [&o, hook](size_t replica) { return ask_host(*o.model, [&] { return hook(o.user, o.handle, static_cast<int32_t>(replica)); }); };
}

std::function<Status(std::string_view, size_t)> around_update(StrategyObject& o, AroundUpdate hook) {
  if (!hook) return {};
  return [&o, hook](std::string_view name, size_t copy) {
    const std::string ended(name);
    return ask_host(*o.model, [&] { return hook(o.user, o.handle, ended.c_str(), static_cast<int32_t>(copy)); });
  };
}

}  // namespace

Strategy::Hooks hooks_of(StrategyObject& o) {
  Strategy::Hooks made;
  made.begin_replica = around_replica(o, o.hooks.begin_replica);
  made.end_replica = around_replica(o, o.hooks.end_replica);
  made.begin_update = around_update(o, o.hooks.begin_update);
  made.end_update = around_update(o, o.hooks.end_update);
  if (o.hooks.create_variable) {
    made.create_variable = [&o](VariableSpec& spec, std::vector<std::string>* devices) { return create_variable(o, spec, devices); };
  }
  if (o.hooks.read_variable) {
    made.read_variable = [&o](std::string_view name, std::span<const Value> reads) {
      const std::string ended(name);
      const std::vector<dtg_value> given = to_c(reads);
      return one(o,
                 [&](dtg_value* out) { return o.hooks.read_variable(o.user, o.handle, ended.c_str(), given.data(), given.size(), out); });
    };
  }
  add_value_hooks(o, made);
  return made;
}

}  // namespace dtg::capi
