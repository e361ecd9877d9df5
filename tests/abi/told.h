// A runtime that keeps what it logs, for tests of what is told. One thread; the log is written by others.
#pragma once

#include <dtg/dtg.h>

#include <mutex>
#include <string>

#include "world.h"

namespace outside {

struct Told {
  std::mutex guard;
  std::string all;
  dtg_runtime* runtime = nullptr;
  Told() {
    dtg_runtime_options options = DTG_RUNTIME_OPTIONS_INIT;
    options.log_user = this;
    options.log = [](void* user, dtg_log_level, const char* place, const char* message) {
      Told& told = *static_cast<Told*>(user);
      const std::lock_guard<std::mutex> lock(told.guard);
      told.all += std::string(place) + ": " + message + "\n";
    };
    OK(dtg_runtime_create(&options, &runtime));
  }
  // The last lines are handed on.
  std::string end() {
    dtg_runtime_release(runtime);
    runtime = nullptr;
    const std::lock_guard<std::mutex> lock(guard);
    return all;
  }
};

}  // namespace outside
