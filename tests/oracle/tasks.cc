// Servers, started and stopped.
#include "tasks.h"

#include <stdlib.h>

#include <filesystem>

namespace dtg::oracle {

Tasks::Tasks(int servers, int workers) {
  std::string name = (std::filesystem::temp_directory_path() / "dtg-oracle-XXXXXX").string();
  if (!mkdtemp(name.data())) {
    failed_ = Failure{DTG_UNAVAILABLE, "no folder for sockets"};
    return;
  }
  folder_ = name;
  std::string text;
  for (int i = 0; i < servers; ++i) text += (i ? "," : "ps=") + ("unix:" + folder_ + "/p" + std::to_string(i));
  for (int i = 0; i < workers; ++i) text += (i ? "," : ";worker=") + ("unix:" + folder_ + "/w" + std::to_string(i));
  dtg_cluster* cluster = nullptr;
  failed_ = outcome(dtg_cluster_parse(text.c_str(), DTG_STRLEN, &cluster));
  for (int i = 0; i < servers; ++i) start(cluster, "ps", i);
  for (int i = workers; i-- > 0;) start(cluster, "worker", i);
  dtg_cluster_release(cluster);
}

Tasks::~Tasks() {
  servers_.clear();
  runtimes_.clear();
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

void Tasks::start(const dtg_cluster* cluster, const char* job, int32_t task) {
  if (failed_) return;
  dtg_runtime_options settings = DTG_RUNTIME_OPTIONS_INIT;
  settings.compute_threads = 1;
  dtg_runtime* runtime = nullptr;
  failed_ = outcome(dtg_runtime_create(&settings, &runtime));
  if (failed_) return;
  runtimes_.emplace_back(runtime, dtg_runtime_release);
  dtg_server_options options = DTG_SERVER_OPTIONS_INIT;
  options.job = job;
  options.task = task;
  dtg_server* server = nullptr;
  failed_ = outcome(dtg_server_start(runtime, cluster, &options, &server));
  if (!failed_) servers_.emplace_back(server, dtg_server_release);
}

std::string Tasks::target() const { return failed_ ? "" : dtg_server_target(servers_.back().get()); }

}  // namespace dtg::oracle
