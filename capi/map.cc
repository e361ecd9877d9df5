// dtg/map.h: functions of graphs and of the host over the elements of a data set, and sources of the host. One thread at a time uses a data
// set; nothing is taken over before all arguments are known to be right.
#include "dtg/map.h"

#include "capi/graph.h"
#include "capi/host_data.h"
#include "session/graph_function.h"

namespace dtg::capi {
namespace {

Result<std::vector<ComponentSpec>> read_components(const dtg_component* components, size_t count) {
  DTG_TRY(require_array(components, count, "components"));
  if (count == 0 || count > 4096) return invalid_argument("%zu components; elements have 1 to 4,096", count);
  std::vector<ComponentSpec> spec;
  for (size_t i = 0; i < count; ++i) {
    const dtg_component& given = components[i];
    if (!dtype_is_known(given.dtype) || is_holder(static_cast<DType>(given.dtype))) {
      return invalid_argument("component %zu: %d is no type of elements; use the DTG_ constants", i, given.dtype);
    }
    const auto dtype = static_cast<DType>(given.dtype);
    if (dtype == DType::string) return unimplemented("component %zu is of strings; elements of data sets are numbers and bools", i);
    if (given.rank < -1 || given.rank > kRankMax) {
      return invalid_argument("component %zu: a rank of %d; it is 0 to %d, or -1 where it is not known", i, given.rank, kRankMax);
    }
    PartialShape shape;
    if (given.rank >= 0) {
      const auto rank = static_cast<size_t>(given.rank);
      DTG_TRY(require_array(given.dims, rank, "the dims of a component"));
      DTG_ASSIGN(shape, PartialShape::make({given.dims, rank}));
    }
    spec.push_back({dtype, shape});
  }
  return spec;
}

using MakeStage = Result<DatasetPtr> (*)(DatasetPtr, Ref<ElementFunction>);

// The longer pipeline; where the function is not one for this stage, the data set stays as it was.
Status apply(DatasetObject& object, MakeStage make, Ref<ElementFunction> function) {
  auto longer = make(object.reading.take(), std::move(function));
  if (!longer.ok()) return object.give_up(longer.status());
  object.reading.put(longer.take());
  return {};
}

Status check_verdict(const ElementFunction& function) {
  const std::vector<ComponentSpec>& results = function.results();
  const bool one = results.size() == 1 && results[0].dtype == DType::boolean && results[0].shape.rank() <= 0;
  if (one) return {};
  return invalid_argument("filter a data set: the function gives %zu results%s; it must give one, a bool that is no array", results.size(),
                          results.size() == 1 ? (", " + std::string(dtype_name(results[0].dtype)) + results[0].shape.text()).c_str() : "");
}

dtg_error* apply_function(dtg_dataset* dataset, const dtg_function* function, const dtg_map_options* given, bool filters) {
  return with_dataset(dataset, [&](DatasetObject& object) -> Status {
    dtg_map_options options = DTG_MAP_OPTIONS_INIT;
    if (given) DTG_TRY(read_struct(given, sizeof(dtg_map_options), "dtg_map_options", &options));
    const Held<FunctionObject> held(function, HandleType::function);
    DTG_TRY(held.status());
    std::optional<Held<Session>> session;
    if (options.session) {
      session.emplace(options.session, HandleType::session);
      DTG_TRY(session->status());
    }
    DTG_ASSIGN(Ref<ElementFunction> made, GraphFunction::make(object.runtime, {.closure = held->closure,
                                                                               .arguments = object.reading.data().spec(),
                                                                               .values = session ? session->get() : nullptr,
                                                                               .parallel = options.parallel}));
    if (filters) DTG_TRY(check_verdict(*made));
    else if (made->results().empty()) return invalid_argument("map a data set: the function gives nothing; elements need a component");
    return apply(object, filters ? make_filter : make_map, std::move(made));
  });
}

// fn makes what keeps `user`, which is the host's again where that fails.
template <class Fn>
Status with_user(void* user, dtg_user_free_fn user_free, Fn&& fn) {
  const Ref<HostUser> held = make_ref<HostUser>(user, user_free);
  Status status;
  try {
    status = fn(held);
  } catch (...) {
    held->disown();
    throw;
  }
  if (!status.ok()) held->disown();
  return status;
}

}  // namespace
}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_dataset_add_arguments(const dtg_dataset* dataset, dtg_graph* body, dtg_value* arguments, size_t num_arguments) noexcept {
  std::vector<ComponentSpec> spec;
  dtg_error* const failed = with_dataset(dataset, [&](DatasetObject& object) -> Status {
    spec = object.reading.data().spec();
    return {};
  });
  if (failed) return failed;
  return change_graph_object(body, [&](GraphObject& graph) -> Status {
    DTG_TRY(require(arguments, "arguments"));
    if (num_arguments != spec.size() && num_arguments != spec.size() + 1) {
      return invalid_argument("add arguments: room for %zu; elements have %zu components, and one more would be the seed", num_arguments,
                              spec.size());
    }
    if (graph.graph->outer_tag() == 0) {
      return invalid_argument("add arguments: the graph is no function's body; dtg_function_begin makes one");
    }
    if (graph.graph->is_closed()) return failed_precondition("add arguments: the function was ended");
    if (num_arguments > spec.size()) spec.push_back({DType::i64, PartialShape::vector(2)});
    for (size_t i = 0; i < num_arguments; ++i) {
      DTG_ASSIGN(const Value made, graph.graph->add_argument({spec[i].dtype, DType::invalid, spec[i].shape}));
      arguments[i] = to_c(made);
    }
    return {};
  });
}

dtg_error* dtg_dataset_map(dtg_dataset* dataset, const dtg_function* function, const dtg_map_options* options) noexcept {
  return apply_function(dataset, function, options, false);
}
dtg_error* dtg_dataset_filter(dtg_dataset* dataset, const dtg_function* function, const dtg_map_options* options) noexcept {
  return apply_function(dataset, function, options, true);
}

dtg_error* dtg_dataset_map_host(dtg_dataset* dataset, dtg_element_fn fn, void* user, dtg_user_free_fn user_free,
                                const dtg_component* components, size_t num_components) noexcept {
  return with_dataset(dataset, [&](DatasetObject& object) -> Status {
    DTG_TRY(require(reinterpret_cast<const void*>(fn), "fn"));
    DTG_ASSIGN(std::vector<ComponentSpec> spec, read_components(components, num_components));
    return with_user(user, user_free, [&](Ref<HostUser> held) { return apply(object, make_map, host_map(fn, held, std::move(spec))); });
  });
}
dtg_error* dtg_dataset_filter_host(dtg_dataset* dataset, dtg_predicate_fn fn, void* user, dtg_user_free_fn user_free) noexcept {
  return with_dataset(dataset, [&](DatasetObject& object) -> Status {
    DTG_TRY(require(reinterpret_cast<const void*>(fn), "fn"));
    return with_user(user, user_free, [&](Ref<HostUser> held) { return apply(object, make_filter, host_filter(fn, held)); });
  });
}

dtg_error* dtg_dataset_host(dtg_runtime* runtime, const dtg_host_source* source, dtg_dataset** out) noexcept {
  dtg_host_source given = DTG_HOST_SOURCE_INIT;
  return guard([&]() -> Status {
    DTG_TRY(require(source, "source"));
    DTG_TRY(read_struct(source, sizeof(dtg_host_source), "dtg_host_source", &given));
    DTG_TRY(require(reinterpret_cast<const void*>(given.next), "next of dtg_host_source"));
    if (given.cardinality < Dataset::kUnknown) {
      return invalid_argument("a source of the host: %lld elements per epoch; -1 is endless, -2 not known",
                              static_cast<long long>(given.cardinality));
    }
    DTG_ASSIGN(std::vector<ComponentSpec> spec, read_components(given.components, given.num_components));
    const std::string_view name = text(given.name, given.name_len);
    return with_user(given.user, given.user_free, [&](Ref<HostUser> held) {
      return taken(make_source(runtime, out, [&](const Seams&, Found&) -> Result<DatasetPtr> {
        return host_source(given, held, std::string(name.empty() ? "host" : name), std::move(spec));
      }));
    });
  });
}

}  // extern "C"
