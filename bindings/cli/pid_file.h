// The pid file of a launch: which process each running task is at this moment, for whoever looks after them or does them harm on
// purpose. Supervisor's thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace dtg::cli {

// Writes one line per task, "worker/0 4711 123456": its name, its process, and when that was started, as field 22 of
// /proc/PID/stat tells it. A number is soon given to another process; number and start together are not. The file is replaced
// as a whole. 0, or the errno of what failed.
int write_pid_file(const std::string& path, const std::vector<std::pair<std::string, pid_t>>& tasks);

}  // namespace dtg::cli
