// The pid file: see the header.
#include "pid_file.h"

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace dtg::cli {
namespace {

// Field 22 of /proc/PID/stat; the name of the program, field 2, may hold anything and ends with the last ")". "" when it is gone.
std::string start_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line, field;
  std::getline(file, line);
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  for (int number = 3; number <= 22; number++) {
    if (!(fields >> field)) return "";
  }
  return field;
}

}  // namespace

int write_pid_file(const std::string& path, const std::vector<std::pair<std::string, pid_t>>& tasks) {
  const std::string beside = path + ".new";
  std::FILE* file = std::fopen(beside.c_str(), "we");
  if (!file) return errno;
  for (const auto& [name, pid] : tasks) {
    const std::string start = start_of(pid);
    if (!start.empty()) std::fprintf(file, "%s %d %s\n", name.c_str(), static_cast<int>(pid), start.c_str());
  }
  if (std::fclose(file) != 0 || std::rename(beside.c_str(), path.c_str()) != 0) return errno;
  return 0;
}

}  // namespace dtg::cli
