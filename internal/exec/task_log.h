// TaskLog: the log of a task's runtime as a resource of its store, where the kernels of ops that print find it.
#pragma once

#include "base/log.h"
#include "exec/resource.h"

namespace dtg {

class TaskLog final : public Resource {
 public:
  static constexpr std::string_view kKind = "log";
  // What it is found by; containers of graphs have names without this beginning.
  static constexpr std::string_view kContainer = "_task";

  // `sink` outlives the task.
  explicit TaskLog(LogSink& sink) : Resource("log"), sink_(sink) {}
  const char* kind() const override { return kKind.data(); }
  void destroy(const Status&) override {}
  LogSink& sink() const { return sink_; }

  // That of a store, or where it has none stderr.
  static LogSink& of(const ResourceStore& store) {
    const Ref<Resource> found = store.find("", kContainer, kKind);
    return found && found->kind() == kKind ? static_cast<TaskLog&>(*found).sink_ : stderr_sink();
  }
  static void put(ResourceStore& store, LogSink& sink) {
    // Nothing else is there under that name.
    (void)store.find_or_create("", kContainer, kKind, kKind, [&]() -> Ref<Resource> { return make_ref<TaskLog>(sink); });
  }

 private:
  LogSink& sink_;
};

}  // namespace dtg
