// dtg/cluster.h: parses clusters and TF_CONFIG, and answers what is in them. Clusters are immutable; any thread.
#include "dtg/cluster.h"

#include <algorithm>

#include "capi/cluster.h"
#include "capi/guard.h"
#include "capi/model.h"
#include "capi/objects.h"
#include "cluster/tf_config.h"

namespace dtg::capi {
namespace {

using Task = ClusterSpec::Task;

constexpr size_t kTaskSmallest = sizeof(dtg_task);

// What `answer` says of an open cluster; `otherwise` for anything else.
template <class T, class Fn>
T ask(const dtg_cluster* handle, T otherwise, Fn&& answer) {
  if (in_forked_child()) return otherwise;
  const Held<ClusterObject> held(handle, HandleType::cluster);
  return held ? answer(*held) : otherwise;
}

template <size_t N>
void put_text(const std::string& text, char (&into)[N]) {
  const size_t size = std::min(text.size(), N - 1);
  std::copy_n(text.data(), size, into);
  std::fill(into + size, into + N, '\0');
}

void tell(const TfConfig& config, dtg_task& task) {
  put_text(config.type, task.type);
  task.index = config.index.value_or(-1);
  task.is_chief = config.is_chief();
  task.id = config.id();
  task.num_workers = config.num_workers();
  task.num_ps = config.num_ps();
  task.reserved = 0;
  put_text(config.rpc_layer, task.rpc_layer);
}

// A text of fixed length that the host may have written.
template <size_t N>
std::string_view text_in(const char (&from)[N]) {
  return {from, static_cast<size_t>(std::find(from, from + N, '\0') - from)};
}

Status give_cluster(ClusterSpec spec, dtg_cluster** out) {
  return give(HandleType::cluster, make_ref<ClusterObject>(std::move(spec)), out);
}

}  // namespace
}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_cluster_parse(const char* data, size_t length, dtg_cluster** out) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require(data, "text"));
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(ClusterSpec spec, ClusterSpec::parse(text(data, length)));
    return give_cluster(std::move(spec), out);
  });
}

dtg_error* dtg_cluster_from_tf_config(const char* json, size_t length, dtg_cluster** out, dtg_task* self) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require(out, "out"));
    dtg_task task = DTG_TASK_INIT;
    DTG_TRY(read_struct(self, kTaskSmallest, "dtg_task", &task));
    DTG_ASSIGN(TfConfig config, json ? TfConfig::parse(text(json, length)) : TfConfig::from_environment());
    tell(config, task);
    dtg_cluster* made = nullptr;
    if (!config.cluster.jobs().empty()) DTG_TRY(give_cluster(std::move(config.cluster), &made));
    write_struct(task, self);
    *out = made;
    return {};
  });
}

dtg_error* dtg_cluster_target(const dtg_cluster* handle, const dtg_task* task, dtg_string** out) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require(out, "out"));
    dtg_task asked = DTG_TASK_INIT;
    DTG_TRY(read_struct(task, kTaskSmallest, "dtg_task", &asked));
    if (!handle) return give(HandleType::string, make_ref<StringObject>(std::string()), out);
    const Held<ClusterObject> held(handle, HandleType::cluster);
    DTG_TRY(held.status());
    DTG_ASSIGN(std::string target, task_target(held->spec, text_in(asked.type), asked.index, text_in(asked.rpc_layer)));
    return give(HandleType::string, make_ref<StringObject>(std::move(target)), out);
  });
}

dtg_error* dtg_cluster_json(const dtg_cluster* handle, dtg_string** out) noexcept {
  return guard([&]() -> Status {
    const Held<ClusterObject> held(handle, HandleType::cluster);
    DTG_TRY(held.status());
    DTG_TRY(require(out, "out"));
    return give(HandleType::string, make_ref<StringObject>(held->spec.json().text()), out);
  });
}

size_t dtg_cluster_job_count(const dtg_cluster* cluster) noexcept {
  return ask(cluster, size_t{0}, [](const ClusterObject& object) { return object.spec.jobs().size(); });
}

const char* dtg_cluster_job(const dtg_cluster* cluster, size_t i) noexcept {
  return ask<const char*>(cluster, nullptr, [i](const ClusterObject& object) -> const char* {
    return i < object.spec.jobs().size() ? object.spec.jobs()[i].name.c_str() : nullptr;
  });
}

size_t dtg_cluster_task_count(const dtg_cluster* cluster, const char* job) noexcept {
  return ask(cluster, size_t{0}, [job](const ClusterObject& object) { return job ? object.spec.task_count(job) : 0; });
}

int32_t dtg_cluster_task_index(const dtg_cluster* cluster, const char* job, size_t i) noexcept {
  return ask(cluster, int32_t{-1}, [job, i](const ClusterObject& object) -> int32_t {
    const ClusterSpec::Job* const found = job ? object.spec.find_job(job) : nullptr;
    return found && i < found->count ? object.spec.tasks()[found->first + i].index : -1;
  });
}

const char* dtg_cluster_address(const dtg_cluster* cluster, const char* job, int32_t index) noexcept {
  return ask<const char*>(cluster, nullptr, [job, index](const ClusterObject& object) -> const char* {
    const ClusterSpec::Task* const task = job ? object.spec.find(job, index) : nullptr;
    return task ? object.addresses[static_cast<size_t>(task - object.spec.tasks().data())].c_str() : nullptr;
  });
}

dtg_cluster* dtg_cluster_retain(dtg_cluster* cluster) noexcept { return retain_handle(cluster, HandleType::cluster); }
void dtg_cluster_release(dtg_cluster* cluster) noexcept { release_handle(cluster, HandleType::cluster); }

}  // extern "C"
